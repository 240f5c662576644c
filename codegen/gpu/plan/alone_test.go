package plan

import (
	"testing"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Kernels are built once, and anew if something that they are built of has changed.
func TestAlone(t *testing.T) {
	m := ssa.NewModule(onnx.Dialect{})
	f := m.NewFunc("main")
	n := sym.Symbol("N", 0)
	x := f.Body.AddParam("x", ssa.Tensor(tensor.Float32, n, sym.Const(8)))
	s := f.Body.AddParam("s", ssa.Tensor(tensor.Float32, sym.Const(8)))
	b := &onnx.Builder{Block: f.Body}
	y := b.LayerNormalization(x, s, nil)
	f.Body.SetReturns(y)
	p := &builder{Plan: &Plan{Module: m, Func: f}, built: map[*ssa.Op]*built{}}
	build := func() *emit.Launch {
		t.Helper()
		ls, err := p.alone(y.Def())
		if err != nil {
			t.Fatal(err)
		}
		return &ls[0]
	}
	first := build()
	if build() != first {
		t.Error("the same kernels are built twice")
	}
	y.Type = ssa.Tensor(tensor.Float32, n, sym.Const(8)) // another one that says the same
	if build() != first {
		t.Error("kernels are built anew for an equal type")
	}
	x.Type = ssa.Tensor(tensor.Float32, sym.Const(3), sym.Const(8))
	y.Type = x.Type
	second := build()
	if second == first {
		t.Error("kernels for another type are those that were built before")
	}
	y.Def().SetOperand(1, f.Body.AddParam("other", s.Type))
	if build() == second {
		t.Error("kernels of another operand are those that were built before")
	}
}
