package batch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/aton-project/aton/backend/atomicfile"
	"github.com/aton-project/aton/tools/lib/cli"
)

// journal is results.jsonl: a line for each item that is done. It grows as results come in; in the end its lines stand in the order of
// the plan.
type journal struct {
	path string
	file *os.File
}

// readJournal reads the lines that are complete, by key. A line that a killed process has not finished is dropped.
func readJournal(path string) (map[string]*Result, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	done := map[string]*Result{}
	for line := range bytes.Lines(text) {
		var r Result
		if bytes.HasSuffix(line, []byte("\n")) && json.Unmarshal(line, &r) == nil && r.Key != "" {
			done[r.Key] = &r
		}
	}
	return done, nil
}

// writeJournal writes the results of items, in the order of these.
func writeJournal(path string, items []*Item, done map[string]*Result) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		for _, it := range items {
			if r := done[it.Key]; r != nil {
				if err := writeLine(w, r); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// openJournal goes on with a journal.
func openJournal(path string) (*journal, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	return &journal{path, f}, err
}

// add writes a line at once.
func (j *journal) add(r *Result) error { return writeLine(j.file, r) }

func writeLine(w io.Writer, r *Result) error {
	var b bytes.Buffer
	if err := cli.EncodeJSON(&b, r, false); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
