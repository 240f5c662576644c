package verify_test

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

const double = `graph(%x : Float(N)):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::add(%x, %x, %one)
  return (%y)
`

// A program of PyTorch runs as it is; the model that is made of it is compared with what the program returned.
func Example() {
	x := tensor.FromFloats(tensor.Float32, []int64{3}, []float64{1, 2, 3.5})
	data := verify.DataSet{Name: "mine", Inputs: []verify.Named{{Name: "x", Tensor: x}}}

	program, err := aton.LoadBytes([]byte(double), "double.ir", aton.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if data.Outputs, err = verify.Run(program, data); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(data.Outputs[0].Tensor.Float64s())

	m, err := aton.LoadBytes([]byte(double), "double.ir", aton.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := aton.Convert(m, aton.ConvertOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	results, err := verify.Verifier{Tolerance: verify.DefaultTolerance}.Verify(m, data)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range results {
		fmt.Printf("%s: %d elements, wrong: %q\n", r.Type, r.Elements, r.Wrong)
	}
	// Output:
	// [2 4 7]
	// Float(3): 3 elements, wrong: ""
}

// Minimize cuts the part of a model out of which a test says that it is wrong.
func ExampleVerifier_Minimize() {
	m, err := aton.LoadBytes([]byte(strings.Replace(double, "return (%y)", "%z : Tensor = aten::tanh(%y)\n  return (%z)", 1)), "graph.ir", aton.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := aton.Convert(m, aton.ConvertOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	data, err := verify.RandomData(m, verify.RandomOptions{Seed: 1, Sizes: map[string]int64{"N": 4}})
	if err != nil {
		fmt.Println(err)
		return
	}
	piece, err := verify.Verifier{}.Minimize(m, data, func(p *verify.Piece) bool { return strings.Contains(p.First, "onnx::Tanh") })
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(piece.Nodes, piece.First)
	// Output:
	// 1 onnx::Tanh z
}
