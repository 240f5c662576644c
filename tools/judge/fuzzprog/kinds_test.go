package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/aten/rules"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/judge/fuzzprog/mutant"
	"github.com/aton-project/aton/tools/lib/cli"
	"github.com/aton-project/aton/verify"
)

// kind is something besides programs that the commands read. try gives what became of a mutant: an error is as good as none, a panic is not.
type kind struct {
	name string
	// make makes a mutant, and try tries it.
	make func(rng *rand.Rand) []byte
	try  func(mutant []byte) (said string, err error)
}

// TestKinds changes files of rules, pipelines of passes, data sets, problems that become SARIF, and the JSON of exported programs. None of them
// ends in a panic, without an end, or in a message that says nothing. ATON_MUTANTS=20000 is how many of all kinds there are.
func TestKinds(t *testing.T) {
	n := 2000
	if text := os.Getenv("ATON_MUTANTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	kinds := []kind{rulesKind(t), pipelineKind(t), npzKind(t), sarifKind(t), exportedKind(t)}
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			good, longest := 0, time.Duration(0)
			for seed := range uint64((n + len(kinds) - 1) / len(kinds)) {
				changed := k.make(rand.New(rand.NewPCG(seed, uint64(len(k.name)))))
				began := time.Now()
				said, err := attempt(k, changed)
				took := time.Since(began)
				longest = max(longest, took)
				switch {
				case errors.Is(err, errFell):
					t.Errorf("mutant %d of %s: %v\n%.2000q", seed, k.name, err, changed)
				case errors.Is(err, errLong):
					t.Fatalf("mutant %d of %s does not end:\n%.2000q", seed, k.name, changed)
				case err != nil && (err.Error() == "" || strings.Contains(err.Error(), "%!")):
					t.Errorf("mutant %d of %s: message %q", seed, k.name, err)
				case err == nil:
					good++
				}
				if strings.Contains(said, "%!") {
					t.Errorf("mutant %d of %s says %q", seed, k.name, said)
				}
			}
			t.Logf("%d mutants, %d of them valid, none longer than %v", (n+len(kinds)-1)/len(kinds), good, longest.Round(time.Millisecond))
		})
	}
}

// What is a defect of ours, whatever the mutant.
var (
	errFell = errors.New("panic")
	errLong = errors.New("it takes more than a minute")
)

// attempt tries a mutant.
func attempt(k kind, changed []byte) (said string, err error) {
	type outcome struct {
		said string
		err  error
	}
	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				o.err = fmt.Errorf("%w: %v\n%s", errFell, r, debug.Stack())
			}
			ended <- o
		}()
		o.said, o.err = k.try(changed)
	}()
	select {
	case o := <-ended:
		return o.said, o.err
	case <-time.After(time.Minute):
		return "", errLong
	}
}

// graph is the text of a program that rules and passes are tried on.
const graph = `graph(%x : Float(2, 3), %w : Float(3, 3), %n : int):
  %one : int = prim::Constant[value=1]()
  %a : Float(2, 3) = aten::relu(%x) # net.py:1:2
  %b : Float(2, 3) = aten::add(%a, %x, %one)
  %c : Float(2, 3) = aten::matmul(%b, %w)
  %d : Float(2, 3) = aten::mul(%c, %n)
  return (%d)
`

func module(table *aten.Table) (*ssa.Module, error) {
	m, err := ssa.Parse(graph, "net.ir", all.Dialects()...)
	if err == nil {
		table.BindSchemas(m)
	}
	return m, err
}

func rulesKind(t *testing.T) kind {
	var sources []string
	for _, pattern := range []string{"../seedcheck/graphs/*.rules", "../seedcheck/*.rules", "../../../docs/custom_operators/*.rules", "../../../lit-tests/rules/*.rules"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, string(text))
		}
	}
	sources = append(sources, "rule f:\n  aten::relu(%x)\n  => my::f(%x)\n", "domain my 3\n")
	words := mutant.Words(strings.Join(sources, "\n"))
	make := func(rng *rand.Rand) []byte { return []byte(mutant.Text(sources[rng.IntN(len(sources))], words, rng)) }
	return kind{"rules", make, func(changed []byte) (string, error) {
		set, err := rules.Parse(rules.Source{Name: "m.rules", Text: string(changed)})
		if err != nil {
			return "", err
		}
		table := aten.NewTable()
		if err := set.Register(table); err != nil {
			return "", err
		}
		m, err := module(table)
		if err != nil {
			return "", err
		}
		_, err = aton.Convert(m, aton.ConvertOptions{Table: table, CustomOpsets: set.Domains})
		return fmt.Sprint(set.Unused()), err
	}}
}

func pipelineKind(t *testing.T) kind {
	pipeline, err := all.Set.Parse("export")
	if err != nil {
		t.Fatal(err)
	}
	names := pipeline.Passes()
	sources := []string{
		"export", strings.Join(names, ","), "export{opset=13}", "inline,freeze,specialize,lower{opset=20},fixpoint(simplify,dce)", "inline,fixpoint(dce,fixpoint(cse,dce))",
		`lower{opset=17 target="ort"},legalize{opset=17}`,
	}
	for _, p := range all.Set.Passes {
		for _, o := range p.Options {
			sources = append(sources, p.Name+"{"+o.Name+"="+o.Default+"}")
		}
		names = append(names, p.Name)
	}
	make := func(rng *rand.Rand) []byte { return []byte(mutant.Text(sources[rng.IntN(len(sources))], names, rng)) }
	return kind{"passes", make, func(changed []byte) (string, error) {
		p, err := all.Set.Parse(string(changed))
		if err != nil {
			return "", err
		}
		m, err := module(aten.NewTable())
		if err != nil {
			return "", err
		}
		list, err := p.Run(m, &passes.Runner{VerifyEach: true})
		var f *passes.Failure
		if asFailure(err, &f) {
			panic(f) // a defect of ours, whatever the pipeline
		}
		return list.Error(), err
	}}
}

// asFailure finds a panic of a pass. What a pass requires, and does not find, is the pipeline's.
func asFailure(err error, f **passes.Failure) bool { return errors.As(err, f) && (*f).Stack != "" }

func npzKind(t *testing.T) kind {
	given, err := os.ReadFile("../../../docs/custom_operators/data.npz")
	if err != nil {
		t.Fatal(err)
	}
	array := func(header string, data []byte) []byte {
		b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
		return append(append(b, header...), data...)
	}
	heads := []string{"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", "{'descr': '<i8', 'fortran_order': True, 'shape': (3, 2), }\n", "{'descr': '|b1', 'fortran_order': False, 'shape': (), }\n"}
	words := []string{"<f4", "9223372036854775807", "-1", "4294967296", "True", "'shape'", "(", "1e9", "c16", "O"}
	file := filepath.Join(t.TempDir(), "m.npz")
	change := func(rng *rand.Rand) []byte {
		if rng.IntN(2) == 0 {
			text := bytes.Clone(given)
			for range 1 + rng.IntN(4) {
				text[rng.IntN(len(text))] ^= byte(1 << rng.IntN(8))
			}
			if rng.IntN(8) == 0 {
				text = text[:rng.IntN(len(text))]
			}
			return text
		}
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for range 1 + rng.IntN(3) {
			h := &zip.FileHeader{Name: mutant.Text([]string{"0/in/0/x.npy", "input_0.npy", "output_0.npy", "0/out/0/y.npy"}[rng.IntN(4)], words, rng), Method: uint16(8 * rng.IntN(2))}
			body := array(mutant.Text(heads[rng.IntN(len(heads))], words, rng), make([]byte, rng.IntN(64)))
			create := z.CreateHeader
			if rng.IntN(4) == 0 { // sizes that are not so
				h.UncompressedSize64, h.CompressedSize64, h.Method = 1<<(rng.IntN(63)), uint64(len(body)), 0
				create = z.CreateRaw
			}
			if w, err := create(h); err == nil {
				_, _ = w.Write(body) // a Buffer does not fail
			}
		}
		_ = z.Close()
		return b.Bytes()
	}
	return kind{"npz", change, func(text []byte) (string, error) {
		if err := os.WriteFile(file, text, 0o666); err != nil {
			t.Fatal(err)
		}
		sets, err := verify.ReadData(file)
		for _, s := range sets {
			for _, v := range append(s.Inputs, s.Outputs...) {
				if v.Tensor != nil && v.Tensor.DType.HoldsNumbers() && !v.Tensor.DType.IsComplex() {
					_ = v.Tensor.Bytes()
				}
			}
		}
		return "", err
	}}
}

func sarifKind(t *testing.T) kind {
	problems, err := json.Marshal([]cli.Problem{
		{ID: "unsupported-op", Op: "aten::f", File: "net.py", Line: 3, Column: 4, Scope: "a.b", Level: "error", Message: "is not converted", Hint: "write a rule"},
		{ID: "usage", Level: "warning", Message: "no"}, {ID: "none", File: "/a/../b c%.py", Level: "note", Message: "\u009b\u202e\x00"},
	})
	if err != nil {
		t.Fatal(err)
	}
	make := func(rng *rand.Rand) []byte {
		model := mutant.Text([]string{"m.pt", "-", "/a/b c.pt", "C:\\m.pt", "a\x00\u202e.pt"}[rng.IntN(5)], []string{"..", "%", ":", "\x1b"}, rng)
		return append([]byte(strings.ReplaceAll(model, "\n", "")+"\n"), mutant.JSON(problems, rng)...)
	}
	return kind{"sarif", make, func(changed []byte) (string, error) {
		model, text, _ := bytes.Cut(changed, []byte("\n"))
		var list []cli.Problem
		if err := json.Unmarshal(text, &list); err != nil {
			return "", err
		}
		var b bytes.Buffer
		if err := cli.WriteSARIF(&b, "v1", string(model), list, len(list)%2 == 0); err != nil {
			return "", err
		}
		var log any
		if err := json.Unmarshal(b.Bytes(), &log); err != nil {
			panic(err) // it is no JSON
		}
		if cli.Printable(b.String()) != b.String() {
			panic("the log steers a terminal")
		}
		return "", nil
	}}
}

func exportedKind(t *testing.T) kind {
	files, err := filepath.Glob("../../../testdata/fixtures/torch2.15/*.pt2")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	type archive struct {
		names   []string
		records map[string][]byte
	}
	var all []archive
	for _, file := range files {
		z, err := zip.OpenReader(file)
		if err != nil {
			t.Fatal(err)
		}
		a := archive{records: map[string][]byte{}}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			a.names, a.records[f.Name] = append(a.names, f.Name), b
		}
		z.Close()
		all = append(all, a)
	}
	change := func(rng *rand.Rand) []byte {
		a := all[rng.IntN(len(all))]
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for _, name := range a.names {
			body := a.records[name]
			if strings.HasSuffix(name, ".json") && (rng.IntN(4) == 0 || strings.HasSuffix(name, "/models/model.json")) {
				body = mutant.JSON(body, rng)
			}
			if w, err := z.CreateHeader(&zip.FileHeader{Name: name}); err == nil {
				_, _ = w.Write(body) // a Buffer does not fail
			}
		}
		_ = z.Close()
		return b.Bytes()
	}
	return kind{"pt2", change, func(changed []byte) (string, error) {
		var said []string
		warn := func(s string) { said = append(said, s) }
		m, err := aton.LoadBytes(changed, "mutant.pt2", aton.LoadOptions{Warn: warn})
		if err == nil {
			err = aton.ExportTo(io.Discard, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Warn: warn}})
		}
		var f *passes.Failure
		if asFailure(err, &f) {
			panic(fmt.Sprint(f, f.Stack))
		}
		return strings.Join(said, "\n"), err
	}}
}
