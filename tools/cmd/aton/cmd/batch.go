package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/aton-project/aton/tools/lib/batch/limited"
	"github.com/aton-project/aton/tools/lib/cli"
)

// Many does what the commands batch and worker say. The program aton has none: the queue would make it nearly twice as large and slower to
// start. It hands these commands over to the program aton-batch, which lies beside it (see [HandOver]).
type Many interface {
	Batch(c *cobra.Command, o *BatchOptions) error
	Worker(c *cobra.Command, o *WorkerOptions) error
}

// missing says that there is no aton-batch.
type missing struct{}

var errMissing = errors.New("the program " + batchProgram + " is missing: put the one of the same version beside aton (go build ./tools/cmd/aton-batch)")

func (missing) Batch(*cobra.Command, *BatchOptions) error   { return errMissing }
func (missing) Worker(*cobra.Command, *WorkerOptions) error { return errMissing }

// batchProgram is the program that has the commands batch and worker.
const batchProgram = "aton-batch"

// Program is the variable of the environment by which aton tells aton-batch which program models are to be converted by.
const Program = "ATON_PROGRAM"

// HandOver runs aton-batch in the place of this program if the arguments ask for a command of it. It comes back, with false, if they do not
// or there is no such program.
func HandOver(args []string) (status int, done bool) {
	if len(args) == 0 || args[0] != "batch" && args[0] != "worker" {
		return 0, false
	}
	self, err := os.Executable()
	if err != nil {
		return 0, false
	}
	program := filepath.Join(filepath.Dir(self), batchProgram+filepath.Ext(self))
	if _, err := os.Stat(program); err != nil {
		return 0, false
	}
	return become(program, args, append(os.Environ(), Program+"="+self))
}

// withheld are the options of commands that are not for batch: it decides itself where things go, and watches no passes.
var withheld = []string{
	"output", "json", "sarif", "verbose", "quiet", "repro", "timing", "print-changed", "print-after", "verify-each", "minimize", "list-ops", "help",
}

// CommandFlags gives the flags of export, check or verify that a batch may have, fresh ones in each call; nil for any other word.
func CommandFlags(do string) *pflag.FlagSet {
	commands := map[string]func() *cobra.Command{"export": newExport, "check": newCheck, "verify": newVerify}
	if commands[do] == nil {
		return nil
	}
	f := pflag.NewFlagSet(do, pflag.ContinueOnError)
	commands[do]().Flags().VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(withheld, flag.Name) {
			f.AddFlag(flag)
		}
	})
	return f
}

// Given is an option as it was given.
type Given struct{ Name, Value string }

// recorded is the value of a flag that keeps what it was given, in order.
type recorded struct {
	pflag.Value
	name string
	to   *[]Given
}

func (r recorded) Set(s string) error {
	if err := r.Value.Set(s); err != nil {
		return err
	}
	*r.to = append(*r.to, Given{r.name, s})
	return nil
}

// Bytes is a size as a flag has it, such as 4GB or 500MB.
type Bytes uint64

// String is the number.
func (s *Bytes) String() string {
	if *s == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(*s), 10)
}

// Type is what help calls it.
func (s *Bytes) Type() string { return "bytes" }

// Set reads a number with a unit.
func (s *Bytes) Set(text string) error {
	number, factor := text, uint64(1)
	for i, unit := range []string{"kB", "MB", "GB", "TB"} {
		if before, ok := strings.CutSuffix(text, unit); ok {
			number = before
			for range i + 1 {
				factor *= 1000
			}
		}
	}
	n, err := strconv.ParseUint(strings.TrimSpace(number), 10, 63)
	if err != nil || n > (1<<62)/factor {
		return errors.New("not a number of bytes")
	}
	*s = Bytes(n * factor)
	return nil
}

// WorkOptions are those that batch and worker have in common. Zero limits are none.
type WorkOptions struct {
	Jobs    int
	Timeout time.Duration
	Memory  Bytes
	Cache   string // its folder; empty for the user's
	NoCache bool
	// Queue is where the server is, the others are files: what to come in with, and TLS.
	Queue, Creds, NKey, Token, CA, Cert, Key string
}

func (w *WorkOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.IntVarP(&w.Jobs, "jobs", "j", runtime.NumCPU(), "how many models run at the same time on this machine")
	f.DurationVar(&w.Timeout, "timeout", 0, "the time limit of a model, such as 90s or 10m; 0 means no limit")
	f.Var(&w.Memory, "memory", "the memory limit of a model, such as 4GB")
	f.StringVar(&w.Cache, "cache", "", "the `FOLDER` of the cache (default aton/batch in the user's folder for caches, for this user alone)")
	f.BoolVar(&w.NoCache, "no-cache", false, "run every model, and keep no results in the cache")
	f.StringVar(&w.Queue, "queue", "", "the `URL` of a NATS server with JetStream (nats:// or tls://), or of several of a cluster, with commas")
	f.StringVar(&w.Creds, "queue-creds", "", "a credentials `FILE` of NATS")
	f.StringVar(&w.NKey, "queue-nkey", "", "a `FILE` with the seed of an NKey")
	f.StringVar(&w.Token, "queue-token-file", "", "a `FILE` with a token")
	f.StringVar(&w.CA, "queue-ca", "", "a `FILE` with the certificates that the server's must be signed by")
	f.StringVar(&w.Cert, "queue-cert", "", "a `FILE` with a certificate to show to the server")
	f.StringVar(&w.Key, "queue-key", "", "a `FILE` with the key of --queue-cert")
}

func (w *WorkOptions) check() error {
	switch {
	case w.Jobs < 0 || w.Jobs > 4096:
		return cli.Misusef("--jobs must be 0 or more, not %d", w.Jobs)
	case w.Timeout < 0:
		return cli.Misusef("--timeout must be a time of 0 or more, not %v", w.Timeout)
	case (w.Cert == "") != (w.Key == ""):
		return cli.Misusef("--queue-cert and --queue-key go together")
	}
	return nil
}

// BatchOptions are those of batch.
type BatchOptions struct {
	WorkOptions
	// Models is a manifest or a folder, Output the folder for what is written.
	Models, Output string
	// Do is the command, Given what was given of its options.
	Do                  string
	Given               []Given
	JSON, Upload, Retry bool
	Tries               int
	// Listen is an address, and ListenConfig a file with a configuration of NATS, for the server in this process.
	Listen, ListenConfig string
	// Silence is how long a worker may say nothing, Patience how long a server elsewhere may be gone.
	Silence, Patience time.Duration
}

func newBatch(many Many) *cobra.Command {
	var o BatchOptions
	c := &cobra.Command{
		Use:   "batch MANIFEST|DIR -o DIR",
		Short: "Convert, check or verify many models, on all cores or several machines",
		Long: `batch runs export, check or verify on many models, each within limits of its own. A folder stands for every model file in it
(.pt, .pth, .pt2, .onnx, .ir). A manifest has a line of JSON for each model: "model" is a path (relative to the manifest) or an http(s)
URL, "name" what its output is called, and every other field an option of the command:

  {"model": "resnet.pt", "name": "vision/resnet", "input": "x:f32[N,3,224,224]", "opset": 17}

The options of the command may be given to batch too, for all models. Each model gets a line in results.jsonl, in the folder of -o: status
(ok, refused, failed, timeout, memory), diagnostics, files, hashes, seconds and memory. A model that has its line is not run again, so the
same command continues a batch that was killed. Results for the same bytes, options and version come from the cache.

--memory is enforced by the garbage collector, by a watchdog and, on Linux, by the system (RLIMIT_DATA).

Jobs go through NATS JetStream: a server in this process that opens no port, with --listen one that 'aton worker' on other machines
can reach, or with --queue a server elsewhere. The exit status is 1 if a model is not ok.`,
		Example: `  aton batch models -o out
  aton batch models.jsonl -o out --opset 17 --timeout 2m --memory 4GB
  aton batch models.jsonl -o out --do verify --json
  aton batch models -o out --queue nats://queue:4222 --queue-creds me.creds --upload --jobs 0`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%s takes one manifest or folder, not %d", c.CommandPath(), len(args))
			}
			return nil
		},
	}
	o.flags(c)
	f := c.Flags()
	f.StringVarP(&o.Output, "output", "o", "", "the `FOLDER` for results.jsonl and what is written")
	cli.Choice(c, &o.Do, "do", []string{"export", "check", "verify"}, "the command: export, check or verify")
	f.BoolVar(&o.JSON, "json", false, "write each result to standard output as a line of JSON when it arrives; errors as JSON")
	f.BoolVar(&o.Upload, "upload", false, "send the models through the queue, for workers that do not see the files of this machine")
	f.BoolVar(&o.Retry, "retry", false, "run models again that failed or exceeded a limit before")
	f.IntVar(&o.Tries, "tries", 3, "how many workers may fail to finish a model before it is set aside")
	f.StringVar(&o.Listen, "listen", "", "`HOST:PORT` at which the server in this process accepts workers, by a token and without encryption")
	f.StringVar(&o.ListenConfig, "listen-config", "", "a `FILE` with the configuration of NATS by which the server in this process accepts workers: TLS, accounts and rights")
	f.DurationVar(&o.Silence, "ack-wait", 15*time.Second, "how long a worker may be silent before its model goes to another one")
	f.DurationVar(&o.Patience, "queue-timeout", time.Minute, "how long the server of --queue may be gone, or full, before the batch ends")
	for _, do := range []string{"export", "check", "verify"} {
		CommandFlags(do).VisitAll(func(flag *pflag.Flag) {
			if f.Lookup(flag.Name) == nil {
				flag.Value = recorded{flag.Value, flag.Name, &o.Given}
				f.AddFlag(flag)
			}
		})
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		o.Models = args[0]
		switch err := o.check(); {
		case err != nil:
			return err
		case o.Output == "":
			return cli.Misusef("-o is missing: it names the folder for the results")
		case o.Tries < 1:
			return cli.Misusef("--tries must be 1 or more, not %d", o.Tries)
		case o.Silence < time.Second:
			return cli.Misusef("--ack-wait must be a time of 1s or more, not %v", o.Silence)
		case o.Patience < time.Second:
			return cli.Misusef("--queue-timeout must be a time of 1s or more, not %v", o.Patience)
		case o.Listen != "" && o.Queue != "":
			return cli.Misusef("--listen and --queue are mutually exclusive")
		case o.ListenConfig != "" && (o.Listen != "" || o.Queue != ""):
			return cli.Misusef("--listen-config says where workers come in: it excludes --listen and --queue")
		case o.Jobs == 0 && o.Listen == "" && o.ListenConfig == "" && o.Queue == "":
			return cli.Misusef("--jobs 0 leaves the work to other machines: give --queue or --listen")
		}
		return many.Batch(c, &o)
	}
	return c
}

// WorkerOptions are those of worker.
type WorkerOptions struct {
	WorkOptions
	// Root is the folder that paths begin at, Folder one for files that are worked on; empty for the system's.
	Root, Folder string
	AnyPath      bool
	URLs         []string
	// Idle is how long the worker waits for work; 0 for ever.
	Idle time.Duration
}

func newWorker(many Many) *cobra.Command {
	var o WorkerOptions
	c := &cobra.Command{
		Use:   "worker --queue URL",
		Short: "Run the jobs of a batch that was started on another machine",
		Long: `worker takes jobs from a NATS JetStream queue and returns results until it is stopped. It runs only jobs of its own
version of aton. A worker does not trust the queue: it reads files below --root only, fetches only URLs that
begin with one of --url, and writes only results, which go through the queue. A worker may be killed at any time: its current job
goes to another one.`,
		Example: `  aton worker --queue nats://queue:4222 --queue-creds worker.creds --root /models
  aton worker --queue tls://queue:4222 --queue-ca ca.pem --queue-token-file token --url https://models.example.org/ --memory 8GB`,
		Args: cobra.NoArgs,
	}
	o.flags(c)
	f := c.Flags()
	f.StringVar(&o.Root, "root", ".", "the `FOLDER` that paths of models begin at, in which the manifest or the folder of models lies; nothing else is read")
	f.BoolVar(&o.AnyPath, "any-path", false, "allow absolute paths and links that lead out of --root")
	f.StringArrayVar(&o.URLs, "url", nil, "the prefix of `URLS` that may be fetched; may be given several times")
	f.StringVar(&o.Folder, "work", "", "the `FOLDER` for temporary files (default: one in the system's folder for them, for this user alone)")
	f.Duration("ack-wait", 0, "")
	_ = f.MarkDeprecated("ack-wait", "the batch says how long a worker may be silent") // there is such a flag
	f.DurationVar(&o.Idle, "idle", 0, "exit after being idle for this long; 0 means never")
	c.RunE = func(c *cobra.Command, _ []string) error {
		switch err := o.check(); {
		case err != nil:
			return err
		case o.Queue == "":
			return cli.Misusef("--queue is missing: it names the server that has the jobs")
		case o.Jobs == 0:
			return cli.Misusef("--jobs must be 1 or more, not 0")
		}
		return many.Worker(c, &o)
	}
	return c
}

// newLimited is the command that a process of batch runs: it does the words of other commands, which come one after the other on standard input, within limits.
func newLimited() *cobra.Command {
	var memory uint64
	var most int
	c := &cobra.Command{Use: "limited", Hidden: true, Short: "Run commands for batch", Args: cobra.NoArgs}
	c.Flags().Uint64Var(&memory, "memory", 0, "bytes; 0 is no limit")
	c.Flags().IntVar(&most, "most", 1, "how many commands are run")
	c.RunE = func(c *cobra.Command, _ []string) error {
		return limited.Serve(memory, most, c.InOrStdin(), c.OutOrStdout(), func(words []string) limited.Report {
			var report limited.Report
			told := false
			inner := newFor(words, missing{})
			inner.SetContext(context.WithValue(context.Background(), listener{}, func(problems []cli.Problem) { report.Problems, told = problems, true }))
			var stdout, stderr strings.Builder
			report.Exit = cli.Run(inner, words, strings.NewReader(""), &stdout, &stderr)
			if words[0] == "verify" {
				report.Output = stdout.String()
			}
			var failed struct{ Errors []cli.Problem }
			if !told && json.Unmarshal([]byte(stderr.String()), &failed) == nil {
				report.Problems = failed.Errors
			}
			return report
		})
	}
	return c
}
