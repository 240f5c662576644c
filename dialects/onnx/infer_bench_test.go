package onnx

import (
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// BenchmarkInfer infers a block of 10,000 ops of the kinds that exports are made of.
func BenchmarkInfer(b *testing.B) {
	m := ssa.NewModule(Dialect{})
	f := m.NewFunc("main")
	n := sym.Symbol("N", 0)
	x := f.Body.AddParam("x", ssa.Tensor(tensor.Float32, n, sym.Const(8), sym.Symbol("H", 0), sym.Symbol("W", 0)))
	w := f.Body.AddParam("w", ssa.Tensor(tensor.Float32, sym.Const(8), sym.Const(8), sym.Const(3), sym.Const(3)))
	v := x
	for f.Body.Len() < 10000 {
		o := f.Body.Append("onnx::Conv", 0, []*ssa.Value{v, w}, ssa.AnyTensor)
		o.SetAttr("pads", ssa.Ints(1, 1, 1, 1))
		o = f.Body.Append("onnx::Relu", 0, []*ssa.Value{o.Results[0]}, ssa.AnyTensor)
		o = f.Body.Append("onnx::Add", 0, []*ssa.Value{o.Results[0], v}, ssa.AnyTensor)
		s := f.Body.Append("onnx::Shape", 0, []*ssa.Value{o.Results[0]}, ssa.AnyTensor)
		o = f.Body.Append("onnx::Reshape", 0, []*ssa.Value{o.Results[0], s.Results[0]}, ssa.AnyTensor)
		v = o.Results[0]
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := InferBlock(f.Body); err != nil {
			b.Fatal(err)
		}
	}
}
