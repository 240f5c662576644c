package onnx_test

import (
	"fmt"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// A graph by hand: the builder infers the types, and computes what is constant.
func ExampleBuilder() {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": onnx.Newest}
	f := m.NewFunc("main")
	x := f.Body.AddParam("x", ssa.Tensor(tensor.Float32, ssa.Sizes([]int64{2, 3})...))

	b := &onnx.Builder{Block: f.Body, Eval: kernel.Eval, FoldLimit: 1 << 20}
	two := b.Const(tensor.FromFloats(tensor.Float32, []int64{}, []float64{2}))
	four := b.Mul(two, two)
	axes := b.Const(tensor.FromInts(tensor.Int64, []int64{1}, []int64{1}))
	sum := b.ReduceSum(b.Mul(x, four), axes, onnx.KeepDims(false))
	sum.Name = "sum"
	f.Body.SetReturns(sum)

	if err := ssa.Verify(m); err != nil {
		fmt.Println(err)
	}
	fmt.Print(ssa.Print(m))
	// Output:
	// graph(%x : Float(2, 3)):
	//   %0 : Float() = onnx::Constant[value={2}]()
	//   %1 : Float() = onnx::Constant[value={4}]()
	//   %2 : Long(1) = onnx::Constant[value={1}]()
	//   %3 : Float(2, 3) = onnx::Mul(%x, %1)
	//   %sum : Float(2) = onnx::ReduceSum[keepdims=0](%3, %2)
	//   return (%sum)
}
