// Command damage asks aton about the damaged models that damage.py made, and compares with what onnx.checker and onnxruntime
// said: `make damaged`.
//
// It runs check, export, inspect and verify on every model, in this process. It fails if onnx.checker refuses a model that
// aton takes, or if anything panics or takes long. With -mutants it changes fields of the models in the folder at random
// instead, and only looks for panics.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/tools/cmd/aton/cmd"
	"github.com/aton-project/aton/tools/judge/fuzzprog/mutant"
)

func main() {
	list := flag.Bool("list", false, "tell of every model that aton alone refuses, and why")
	n := flag.Int("mutants", 0, "make this many mutants of every model below the folder")
	seed := flag.Int64("seed", 1, "the seed of the mutants")
	every := flag.Int("every", 1, "make mutants of every so many models only")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: damage [-list] [-mutants N [-every N] [-seed N]] FOLDER")
		os.Exit(2)
	}
	var ok bool
	var err error
	if *n > 0 {
		ok, err = mutants(os.Stdout, flag.Arg(0), *n, max(*every, 1), *seed)
	} else {
		ok, err = run(os.Stdout, flag.Arg(0), *list)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !ok {
		os.Exit(1)
	}
}

// model is a line of the index, and what aton says.
type model struct {
	file, kind, of, checker, ort string
	aton                         string // why it is refused, empty if it is not
	panics                       []string
}

func (m *model) refused() bool { return m.checker != "ok" }

// row sums up the models of one kind.
type row struct {
	n, checker, ort, aton, missed, alone, aloneLoads int
}

func (r *row) add(m *model) {
	r.n++
	count := func(n *int, yes bool) {
		if yes {
			*n++
		}
	}
	count(&r.checker, m.refused())
	count(&r.ort, m.ort != "ok")
	count(&r.aton, m.aton != "")
	count(&r.missed, m.refused() && m.aton == "")
	count(&r.alone, !m.refused() && m.aton != "")
	count(&r.aloneLoads, !m.refused() && m.ort == "ok" && m.aton != "")
}

func (r *row) print(w io.Writer, kind string) {
	fmt.Fprintf(w, "| %s | %d | %d | %d | %d | %d | %d | %d |\n", kind, r.n, r.checker, r.ort, r.aton, r.missed, r.alone, r.aloneLoads)
}

func run(w io.Writer, dir string, list bool) (bool, error) {
	models, err := readIndex(dir)
	if err != nil {
		return false, err
	}
	var kinds []string
	rows, all := map[string]*row{}, &row{}
	panics := 0
	for _, m := range models {
		m.limited(filepath.Join(dir, m.file))
		if rows[m.kind] == nil {
			rows[m.kind] = &row{}
			kinds = append(kinds, m.kind)
		}
		rows[m.kind].add(m)
		all.add(m)
		panics += len(m.panics)
	}
	fmt.Fprintln(w, "| damage | models | onnx.checker refuses | onnxruntime refuses | aton refuses | missed | aton alone | of these loaded by onnxruntime |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, k := range kinds {
		rows[k].print(w, k)
	}
	all.print(w, "all")
	fmt.Fprintf(w, "\n%d panics\n", panics)
	for _, m := range models {
		for _, p := range m.panics {
			fmt.Fprintf(w, "panic: %s (%s of %s): %s\n", m.file, m.kind, m.of, p)
		}
		if m.refused() && m.aton == "" {
			fmt.Fprintf(w, "missed: %s (%s of %s): %s\n", m.file, m.kind, m.of, m.checker)
		}
		if list && !m.refused() && m.aton != "" {
			fmt.Fprintf(w, "alone: %s (%s of %s): %s [onnxruntime: %s]\n", m.file, m.kind, m.of, m.aton, m.ort)
		}
	}
	return all.missed == 0 && panics == 0, nil
}

// mutants runs the commands on n mutants of every so many of the models below a folder. Those that bring something down are
// kept in the folder of temporary files.
func mutants(w io.Writer, dir string, n, every int, seed int64) (bool, error) {
	tmp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(tmp)
	made, refused, bad, models := 0, 0, 0, 0
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".onnx" {
			return err
		}
		if models++; models%every != 0 {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		p := &onnxpb.ModelProto{}
		if err := proto.Unmarshal(b, p); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for k := range n {
			b, err := proto.MarshalOptions{Deterministic: true}.Marshal(mutant.Model(p, rand.New(rand.NewPCG(uint64(seed), uint64(made)))))
			made++
			if err != nil { // text that is no UTF-8
				continue
			}
			file := filepath.Join(tmp, "mutant.onnx")
			if err := os.WriteFile(file, b, 0o666); err != nil {
				return err
			}
			m := &model{}
			if m.limited(file); m.aton != "" {
				refused++
			}
			if len(m.panics) > 0 {
				bad++
				kept := filepath.Join(os.TempDir(), fmt.Sprintf("mutant-%s-%d.onnx", filepath.Base(filepath.Dir(path)), k))
				fmt.Fprintf(w, "%s: %s\n", kept, strings.Join(m.panics, "; "))
				if err := os.WriteFile(kept, b, 0o666); err != nil {
					return err
				}
			}
		}
		return nil
	})
	fmt.Fprintf(w, "%d mutants, %d refused, %d with a panic or slow\n", made, refused, bad)
	return bad == 0, err
}

func readIndex(dir string) ([]*model, error) {
	b, err := os.ReadFile(filepath.Join(dir, "index.tsv"))
	if err != nil {
		return nil, err
	}
	var out []*model
	for _, line := range strings.Split(strings.TrimRight(string(b), "\n"), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 5 {
			return nil, fmt.Errorf("index.tsv: %q has %d columns", line, len(f))
		}
		out = append(out, &model{file: f[0], kind: f[1], of: f[2], checker: f[3], ort: f[4]})
	}
	return out, nil
}

// limit is how long all commands on one model may take together. The models are tiny.
const limit = 20 * time.Second

// limited asks, and takes what does not end for a panic.
func (m *model) limited(path string) {
	done := make(chan *model, 1)
	go func() {
		copied := *m // what is still running must not change what is printed
		copied.ask(path)
		done <- &copied
	}()
	select {
	case answer := <-done:
		*m = *answer
	case <-time.After(limit):
		m.note(fmt.Sprintf("it takes more than %v", limit))
	}
}

// ask runs the commands on a model.
func (m *model) ask(path string) {
	status, said := m.command("check", path)
	if status != 0 {
		m.aton = said
	}
	m.command("inspect", path, "--at", "onnx")
	m.command("verify", path, "--device", "sim", "--no-passes")
	m.export(path)
}

// export goes the whole way to a file, which must not panic either.
func (m *model) export(path string) {
	defer m.recover("export")
	module, err := aton.Load(path, aton.LoadOptions{})
	if err == nil {
		err = aton.ExportTo(io.Discard, module, aton.ExportOptions{})
	}
	m.failure("export", err)
}

// command runs a command in this process and gives its exit status and the first line that it says.
func (m *model) command(args ...string) (status int, said string) {
	defer m.recover(args[0])
	var stderr bytes.Buffer
	status = cmd.Main(append(args, "--repro", ""), strings.NewReader(""), io.Discard, &stderr)
	said, _, _ = strings.Cut(stderr.String(), "\n")
	if strings.Contains(stderr.String(), "internal error in pass") || strings.Contains(stderr.String(), "goroutine ") {
		m.note(args[0] + ": " + said)
	}
	return status, said
}

func (m *model) failure(what string, err error) {
	var f *passes.Failure
	if errors.As(err, &f) {
		m.note(what + ": " + f.Error())
	}
}

func (m *model) recover(what string) {
	if v := recover(); v != nil {
		m.note(fmt.Sprintf("%s: %v", what, v))
	}
}

func (m *model) note(s string) {
	if !slices.Contains(m.panics, s) {
		m.panics = append(m.panics, s)
	}
}
