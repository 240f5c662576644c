// Package batch runs one command of aton (export, check or verify) on many models, each within limits of its own, on one machine or
// several.
//
// The work is a [Plan]: an [Item] for each model, from a manifest or a folder. [Run] puts the items that have no result yet into a
// queue of NATS JetStream, in a server inside of the process or one elsewhere, and collects results. A [Worker] takes one item after the
// other, brings its files together, looks into the [Cache], runs the command within limits, and gives back a [Result] with the files
// that were written.
//
// What makes it safe to kill any process at any moment:
//
//   - an item stays in the queue until its result is stored, and goes to another worker when its worker no longer says that it is at work;
//   - a result is stored under the item's key by whoever is first, and never replaced;
//   - files appear under their names when they are complete, and a result after its files;
//   - a result is a line of results.jsonl, and what has its line is not done again.
package batch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/aton-project/aton/tools/lib/cli"
)

// Source says where a worker finds a file or a folder: one of Path, URL and Objects.
type Source struct {
	// Path is relative to the root of the worker; an absolute one is for workers that allow it.
	Path string `json:"path,omitempty"`
	// URL is of http or https.
	URL string `json:"url,omitempty"`
	// Objects are files of the job in the queue. Entry is the one that is meant, or the folder that they are all in.
	Objects []File `json:"objects,omitempty"`
	Entry   string `json:"entry,omitempty"`
}

// File is a file by name, with slashes, and content.
type File struct {
	Name string `json:"file"`
	Size int64  `json:"size"`
	Hash string `json:"hash"` // SHA-256, in hexadecimal
}

// Option is an option of the command: --Name=Value. One that names a file has the file as a source, and as Value what stands before
// the path (NAME= of --input-file).
type Option struct {
	Name  string  `json:"name"`
	Value string  `json:"value,omitempty"`
	File  *Source `json:"file,omitempty"`
}

// Limits are what the process of one model may take. Zero is no limit.
type Limits struct {
	Timeout time.Duration `json:"timeout,omitempty"`
	Memory  uint64        `json:"memory,omitempty"` // bytes
}

// Within is the smaller of each limit. A time below zero, which an item from anybody may have, is no limit.
func (l Limits) Within(m Limits) Limits {
	l.Timeout, m.Timeout = max(0, l.Timeout), max(0, m.Timeout)
	if l.Timeout == 0 || m.Timeout != 0 && m.Timeout < l.Timeout {
		l.Timeout = m.Timeout
	}
	if l.Memory == 0 || m.Memory != 0 && m.Memory < l.Memory {
		l.Memory = m.Memory
	}
	return l
}

// Item is a model to be done, as it goes through the queue.
type Item struct {
	// Key identifies the item and its options among those of the job.
	Key string `json:"key"`
	Job string `json:"job"`
	// Name is that of the model, with slashes; an exported model goes to NAME.onnx.
	Name string `json:"name"`
	// Do is the command: export, check or verify.
	Do      string   `json:"do"`
	Model   Source   `json:"model"`
	Options []Option `json:"options,omitempty"`
	Limits  Limits   `json:"limits"`
	// Tries is how many workers may take the item before it is set aside.
	Tries int `json:"tries"`
}

// Status is how an item ended.
type Status string

// The ends of an item.
const (
	OK      Status = "ok"
	Refused Status = "refused" // the model cannot be converted as it is
	Failed  Status = "failed"  // a wrong number, a defect of aton, a file that cannot be read, or an item that was set aside
	Timeout Status = "timeout"
	Memory  Status = "memory"
)

// Statuses lists them.
var Statuses = []Status{OK, Refused, Failed, Timeout, Memory}

// Result is how an item ended, with all that is told of it. It is a line of results.jsonl.
type Result struct {
	Name        string        `json:"name"`
	Status      Status        `json:"status"`
	Diagnostics []cli.Problem `json:"diagnostics"`
	// More counts the diagnostics that are left out because there are too many.
	More int `json:"more,omitempty"`
	// Outputs are the files that were written, below the folder of outputs.
	Outputs []File `json:"outputs"`
	// Hash is that of the model with its external data: SHA-256, in hexadecimal; empty if it could not be read. Made is the hash of all
	// that the result was made of: the model, the command, and the options with the files in them.
	Hash string `json:"hash,omitempty"`
	Made string `json:"made,omitempty"`
	// Within are the limits that the process passed, if it passed one.
	Within *Limits `json:"within,omitempty"`
	// Seconds and PeakMemory (bytes; 0 where it is not known) are those of the process, of the first one if Cached.
	Seconds    float64 `json:"seconds"`
	PeakMemory uint64  `json:"peak_memory"`
	Cached     bool    `json:"cached,omitempty"`
	// Tries counts the workers that took the item.
	Tries  int    `json:"tries"`
	Worker string `json:"worker,omitempty"`
	Key    string `json:"key"`
}

// Final says that doing the item again gives the same.
func (r *Result) Final() bool { return r.Status == OK || r.Status == Refused }

// most is how many bytes of diagnostics a result holds; a message of the queue holds 1 MiB.
const most = 256 << 10

// shorten leaves out diagnostics that are too many for a message of the queue.
func (r *Result) shorten() {
	size := 0
	for i, d := range r.Diagnostics {
		if size += len(d.Message) + len(d.Hint) + len(d.File) + len(d.Scope) + 200; size > most {
			r.Diagnostics, r.More = r.Diagnostics[:i], len(r.Diagnostics)-i
			return
		}
	}
}

// made is the hash of what the result of an item is made of: the hashes of the model and of the files in options, which are empty for
// options without.
func made(it *Item, model string, files []string) string {
	parts := []any{it.Do, model}
	for i, o := range it.Options {
		parts = append(parts, o.Name, o.Value, files[i])
	}
	return digest(parts...)
}

// digest is the hash of values that JSON spells in one way.
func digest(values ...any) string {
	b, err := json.Marshal(values)
	if err != nil {
		panic(err) // strings, numbers and structs of them
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
