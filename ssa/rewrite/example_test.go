package rewrite_test

import (
	"fmt"
	"os"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
)

// Two rules, one as a pattern and one in Go, run until none fits.
func Example() {
	rules, err := rewrite.Compile(
		rewrite.Rule{
			Name: "negate twice",
			From: `%a = onnx::Neg(%x)
			       %y = onnx::Neg(%a)`,
			To: `%y = %x`,
		},
		rewrite.Rule{
			Name:  "relu of relu",
			Kinds: []ssa.Kind{"onnx::Relu"},
			Apply: func(r *rewrite.Rewriter, o *ssa.Op) bool {
				x := o.Operand(0)
				if x.Def() == nil || x.Def().Kind != "onnx::Relu" {
					return false
				}
				r.Replace(o, x)
				return true
			},
		},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := ssa.Parse(`graph(%x : Float(2, 3)):
  %a : Float(2, 3) = onnx::Relu(%x)
  %b : Float(2, 3) = onnx::Neg(%a)
  %c : Float(2, 3) = onnx::Neg(%b)
  %y : Float(2, 3) = onnx::Relu(%c)
  return (%y)
`, "example", onnx.Dialect{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rewrite.Run(m.Main(), rules, rewrite.Config{}).Applied)
	_ = ssa.Fprint(os.Stdout, m, ssa.PrintOptions{NoLocs: true})
	// Output:
	// [negate twice relu of relu]
	// graph(%x : Float(2, 3)):
	//   %y : Float(2, 3) = onnx::Relu(%x)
	//   return (%y)
}

// Compile says where a pattern is wrong.
func ExampleCompile() {
	_, err := rewrite.Compile(rewrite.Rule{
		Name: "relu of relu",
		From: `%a* = onnx::Relu(%x)
		       %y = onnx::Relu(%a)`,
		To: `%y = onnx::Relu(%x)`,
	})
	fmt.Println(err)
	// Output:
	// rule relu of relu: From:1:3: "%a* = onnx::Relu(%x)": * stands behind an operand, not behind the value that a line defines
}
