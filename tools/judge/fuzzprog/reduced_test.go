package main

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/tools/lib/reduce"
	"github.com/aton-project/aton/verify"
)

// mostLeft is the greatest number of operators that a reduced finding may have.
const mostLeft = 5

// faults are mistakes of a conversion. Each changes every operator of its kind in the converted graph.
var faults = []struct {
	name   string
	kind   ssa.Kind
	plant  func(o *ssa.Op)
	random bool // whether a program comes from the generator of the kind random, or of loops
}{
	{"a loop runs once", "onnx::Loop", func(o *ssa.Op) { o.SetOperand(0, constant(o, tensor.ScalarInt(1))) }, false},
	{"branches are exchanged", "onnx::If", func(o *ssa.Op) {
		then, other := o.Blocks[0].Returns(), o.Blocks[1].Returns()
		if len(then) == len(other) {
			o.Blocks[0], o.Blocks[1] = o.Blocks[1], o.Blocks[0]
		}
	}, true},
	{"parts are joined in reverse", "onnx::Concat", func(o *ssa.Op) { exchange(o, 0, o.NumOperands()-1) }, false},
	{"a write at indices is lost", "onnx::ScatterND", func(o *ssa.Op) { o.Replace(o.Operand(0)) }, true},
	{"a choice is exchanged", "onnx::Where", func(o *ssa.Op) { exchange(o, 1, 2) }, true},
	{"a difference is exchanged", "onnx::Sub", func(o *ssa.Op) { exchange(o, 0, 1) }, true},
	{"a comparison is exchanged", "onnx::Less", func(o *ssa.Op) { exchange(o, 0, 1) }, false},
	{"the greatest is the least", "onnx::ReduceMax", func(o *ssa.Op) { o.Kind = "onnx::ReduceMin" }, true},
	{"a product is a sum", "onnx::Mul", func(o *ssa.Op) { o.Kind = "onnx::Add" }, true},
	{"an element of a sequence is the first one", "onnx::SequenceAt", func(o *ssa.Op) {
		o.SetOperand(1, constant(o, tensor.ScalarInt(0)))
	}, false},
}

func constant(before *ssa.Op, t *tensor.Tensor) *ssa.Value {
	o := before.Block().InsertBefore(before, "onnx::Constant", before.Loc, nil, ssa.TensorOf(t))
	o.SetAttr("value", ssa.Literal{Kind: ssa.TensorLit, Tensor: t})
	return o.Results[0]
}

func exchange(o *ssa.Op, i, j int) {
	operands := slices.Clone(o.Operands())
	operands[i], operands[j] = operands[j], operands[i]
	o.SetOperands(operands...)
}

// TestReduced: programs that a planted fault makes wrong shrink to a few operators that it makes wrong.
func TestReduced(t *testing.T) {
	var w worker
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			planted := &passes.Pass{Name: "planted", Doc: "a fault", Run: func(c *passes.Context) error {
				for _, f := range c.Module.Funcs {
					for o := range f.Body.AllOps() {
						if o.Kind == fault.kind {
							fault.plant(o)
						}
					}
				}
				return nil
			}}
			wrong := func(m *ssa.Module) bool {
				var text bytes.Buffer
				if err := ssa.Fprint(&text, m, ssa.PrintOptions{Complete: true}); err != nil {
					t.Fatal(err)
				}
				m, err := aton.LoadBytes(text.Bytes(), "program.ir", aton.LoadOptions{})
				if err != nil {
					return false
				}
				set, err := verify.RandomData(m, verify.RandomOptions{Seed: 1, Sizes: map[string]int64{"N": 2}})
				if err != nil {
					return false
				}
				ran, err := w.ask(m, []verify.DataSet{set})
				if err != nil || len(ran) == 0 {
					return false
				}
				if _, err := aton.Convert(m, aton.ConvertOptions{Passes: []*passes.Pass{planted}, After: map[string]string{"lower": "planted"}}); err != nil {
					return false
				}
				return agrees(m, ran) != nil
			}
			for seed := range uint64(1000) {
				rng := rand.New(rand.NewPCG(seed, 36))
				var p program
				if fault.random {
					g := newGenerator(rng, &w.eager)
					g.program(12)
					p = g
				} else {
					p = newLooper(rng)
				}
				if strings.Contains(p.code(), "while") {
					continue // what is left of it may have no end
				}
				archive, err := p.archive()
				if err != nil {
					t.Fatal(err)
				}
				var opts aton.LoadOptions
				for _, s := range p.specs() {
					in, err := spec.Parse(s)
					if err != nil {
						t.Fatal(err)
					}
					opts.Inputs = append(opts.Inputs, in)
				}
				load := func() (*ssa.Module, error) { return aton.LoadBytes(archive, "program.pt", opts) }
				whole, err := load()
				if err != nil || !wrong(whole) {
					continue
				}
				if whole, err = load(); err != nil {
					t.Fatal(err)
				}
				r := reduce.Reducer{Load: load, Test: func(m *ssa.Module) (bool, error) { return wrong(m), nil }}
				small, tested, err := r.Run()
				if err != nil {
					t.Fatal(err)
				}
				left := reduce.Operators(small)
				t.Logf("program %d: %d operators, %d are left, %d models tested\n%s", seed, reduce.Operators(whole), left, tested, ssa.Print(small))
				if left > mostLeft || !wrong(small) {
					t.Errorf("%d operators are left", left)
				}
				return
			}
			t.Error("no program is wrong")
		})
	}
}
