package cmd_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/tools/cmd/aton-opt/cmd"
	"github.com/aton-project/aton/tools/lib/cli"
)

// An aton-opt with a pass of one's own, beside the built-in ones. Here the input is a text; a main gives os.Args[1:],
// os.Stdin and so on.
func ExampleNew() {
	mine, err := passes.FromRules("mine", "relu makes abs redundant", onnx.RewriteConfig(0),
		rewrite.Rule{Name: "abs of relu", From: "%a = onnx::Relu(%x)\n%y = onnx::Abs(%a)", To: "%y = onnx::Relu(%x)"})
	if err != nil {
		fmt.Println(err)
		return
	}
	set := all.New(nil)
	set.Passes = append(set.Passes, mine)
	graph := strings.NewReader(`graph(%x : Float(2, 3)):
  %a : Float(2, 3) = onnx::Relu(%x)
  %y : Float(2, 3) = onnx::Abs(%a)
  return (%y)
`)
	args := []string{"-", "--passes=mine,cse", "--no-locs"}
	cli.Run(cmd.New(set), args, graph, os.Stdout, os.Stdout)
	// Output:
	// graph(%x : Float(2, 3)):
	//   %y : Float(2, 3) = onnx::Relu(%x)
	//   return (%y)
}
