package plan_test

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// A backend for another device reads a plan: kernels, buffers, and the steps in their order.
func Example() {
	m, err := ssa.Parse(`graph(%x : Float(N, 4), %y : Float(4)):
  %a : Float(N, 4) = onnx::Add(%x, %y)
  %b : Float(N, 4) = onnx::Relu(%a)
  return (%b)
`, "graph.ir", onnx.Dialect{})
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := plan.New(m, fuse.Light)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range p.Steps {
		args := make([]string, len(s.Args))
		for i, b := range s.Args {
			args[i] = fmt.Sprintf("%s %s", b.Kind, b.Value.Type)
		}
		fmt.Printf("one kernel computes %d nodes: %s\n", len(s.Ops), strings.Join(args, ", "))
	}
	for _, k := range p.Kernels {
		text, err := ptx.Print(k.Kernel, ptx.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(k.Class, strings.Contains(text, ".visible .entry"))
	}
	// Output:
	// one kernel computes 2 nodes: output Float(N, 4), input Float(N, 4), input Float(4)
	// loop true
}
