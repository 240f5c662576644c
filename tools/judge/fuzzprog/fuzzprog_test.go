package main

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/tools/judge/fuzzprog/mutant"
)

// A short run of all kinds finds nothing, and says the same when it is repeated.
func TestRun(t *testing.T) {
	var said [2]bytes.Buffer
	for i := range said {
		o := options{t: 1 << 40, seed: 7, n: 70, only: -1, out: t.TempDir(), root: "../../..", kinds: kinds}
		if err := work(o, &said[i]); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(said[0].String(), "found") {
		t.Error(said[0].String())
	}
	if said[0].String() != said[1].String() {
		t.Error("two runs differ")
	}
	for _, k := range kinds {
		if !strings.Contains(said[0].String(), "\t"+k+"\n") {
			t.Errorf("no program of the kind %s", k)
		}
	}
}

// The judge tells a wrong number: a program gives what the evaluator says, and not what it says with one element changed.
func TestJudge(t *testing.T) {
	w := &worker{}
	g := newGenerator(rand.New(rand.NewPCG(1, 2)), &w.eager)
	g.program(10)
	archive, err := archiveOf(g.code())
	if err != nil {
		t.Fatal(err)
	}
	var opts aton.LoadOptions
	for _, s := range g.specs() {
		in, err := spec.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		opts.Inputs = append(opts.Inputs, in)
	}
	m, err := aton.LoadBytes(archive, "program.pt", opts)
	if err != nil {
		t.Fatal(err)
	}
	ran, err := w.ask(m, g.data())
	if err != nil || len(ran) != sets {
		t.Fatal(len(ran), err)
	}
	if _, err := aton.Convert(m, aton.ConvertOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := agrees(m, ran); err != nil {
		t.Fatal(err)
	}
	out := &ran[0].Outputs[0]
	changed := out.Tensor.Float64s()
	changed[0]++
	out.Tensor = tensor.FromFloats(out.Tensor.DType, out.Tensor.Shape, changed)
	if agrees(m, ran) == nil {
		t.Error("a changed element is the same")
	}
}

// Mutants are mostly others than what they are made of, and the same for the same random numbers.
func TestMutants(t *testing.T) {
	rng := func(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 3)) }
	pickle := []byte("\x80\x02c__torch__\nProgram\n)\x81}(X\x08\x00\x00\x00training\x89ub.")
	code := "def forward(self, x: Tensor) -> Tensor:\n  y = torch.add(x, 1)\n  return torch.mul(y, 2)\n"
	text := []byte(`{"a": [1, 2, {"b": "c"}], "d": null, "e": true}`)
	for name, make := range map[string]func(seed uint64) string{
		"text":   func(seed uint64) string { return mutant.Text(code, []string{"torch.sub"}, rng(seed)) },
		"number": func(seed uint64) string { return mutant.Number(code, rng(seed)) },
		"pickle": func(seed uint64) string { return string(mutant.Pickle(pickle, rng(seed))) },
		"json":   func(seed uint64) string { return string(mutant.JSON(text, rng(seed))) },
		"spec":   func(seed uint64) string { return mutant.Spec("x:f32[N,3]", rng(seed)) },
	} {
		seen := map[string]bool{}
		for seed := range uint64(50) {
			m := make(seed)
			if m != make(seed) {
				t.Errorf("%s: seed %d gives two mutants", name, seed)
			}
			seen[m] = true
		}
		if len(seen) < 15 {
			t.Errorf("%s: %d of 50 mutants differ", name, len(seen))
		}
	}
}
