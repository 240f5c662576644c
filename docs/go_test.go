// Package docs has the pages for users. Its tests check what they show.
package docs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/internal/markdown"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// TestGo compares the Go blocks of the page on Go with the bodies of the functions below: what the page shows is compiled and run.
func TestGo(t *testing.T) {
	source, err := os.ReadFile("go_test.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	page, err := markdown.Blocks("go.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range page {
		if b.Kind != "go" {
			continue
		}
		shown++
		if !strings.Contains(string(source), b.Text) {
			t.Errorf("go.md:%d: go_test.go does not have this block", b.Line)
		}
	}
	if shown < 6 {
		t.Errorf("the page shows %d blocks of Go", shown)
	}
	model := filepath.Join("..", "testdata", "fixtures", "torch2.15", "convnet.script.pt")
	if err := convert(model, filepath.Join(t.TempDir(), "model.onnx")); err != nil {
		t.Error(err)
	}
}

func convert(model, file string) error {
	input, err := spec.Parse("x:f32[N,3,18,18]")
	if err != nil {
		return err
	}
	m, err := aton.Load(model, aton.LoadOptions{Inputs: []spec.Input{input}})
	if err != nil {
		return err
	}
	var o aton.ExportOptions
	o.Opset = 17
	return aton.Export(m, file, o)
}

const program = `graph(%x : Float(2, 3)):
  %one : int = prim::Constant[value=1]()
  %a : Float(2, 3) = aten::relu(%x)
  %y : Float(2, 3) = aten::add(%a, %x, %one)
  return (%y)
`

func check(text string) {
	m, err := aton.LoadBytes([]byte(text), "graph.ir", aton.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := aton.Check(m, aton.ConvertOptions{}) // of a copy: m can be converted
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range list.Items {
		if d.Severity == diag.Error {
			fmt.Println(d.ID, list.Format(d))
		}
	}
}

func Example_check() {
	check(program)
	check(strings.Replace(program, "aten::relu", "my::relu", 1))
	// Output:
	// unsupported-op my::relu: the operator is not supported; give a rule for it (--rules), register a symbolic function, or export with --fallthrough my
}

func run(text string) {
	m, err := aton.LoadBytes([]byte(text), "graph.ir", aton.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	x := tensor.Of(tensor.Float32, []int64{2, 3}, []float32{1, -2, 3, -4, 5, -6})
	outputs, err := verify.Run(m, verify.DataSet{Inputs: []verify.Named{{Name: "x", Tensor: x}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range outputs {
		fmt.Println(o.Name, o.Tensor.Shape, tensor.Data[float32](o.Tensor))
	}
}

func Example_run() {
	run(program)
	// Output:
	// output [2 3] [2 -2 6 -4 10 -6]
}

func count(text string) {
	m, err := ssa.Parse(text, "graph.ir", all.Dialects()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	counts := map[ssa.Kind]int{}
	for op := range m.Main().Body.AllOps() { // those in the bodies of If and Loop too
		counts[op.Kind]++
	}
	for _, kind := range []ssa.Kind{"aten::add", "aten::relu"} {
		fmt.Println(kind, counts[kind])
	}
}

func Example_count() {
	count(program)
	// Output:
	// aten::add 1
	// aten::relu 1
}

func build() (*ssa.Module, error) {
	m := ssa.NewModule(all.Dialects()...)
	onnx.SetOpset(m, onnx.Newest)
	body := m.NewFunc("main").Body
	x := body.AddParam("x", ssa.Tensor(tensor.Float32, sym.Symbol("N", 0), sym.Const(3)))
	b := onnx.Builder{Block: body}
	err := onnx.Build(func() { // returns why an operator does not fit its operands
		half := b.Const(tensor.Of(tensor.Float32, nil, []float32{0.5}))
		y := b.Op("Relu", b.Op("Mul", x, half))
		y.Name = "y"
		body.SetReturns(y)
	})
	if err != nil {
		return nil, err
	}
	return m, ssa.Verify(m)
}

func Example_build() {
	m, err := build()
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = ssa.Fprint(os.Stdout, m, ssa.PrintOptions{NoLocs: true})
	var file bytes.Buffer
	fmt.Println(aton.ExportTo(&file, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: 17}}), file.Len() > 0)
	// Output:
	// graph(%x : Float(N, 3)):
	//   %0 : Float() = onnx::Constant[value={0.5}]()
	//   %1 : Float(N, 3) = onnx::Mul(%x, %0)
	//   %y : Float(N, 3) = onnx::Relu(%1)
	//   return (%y)
	// <nil> true
}

// reluOfRelu removes the second of two Relus.
var reluOfRelu = passes.Pass{
	Name: "relu-of-relu",
	Doc:  "remove a Relu whose operand is a Relu",
	Run: passes.EachFunc(func(c *passes.Context, f *ssa.Func) error {
		for op := range f.Body.AllOps() {
			if op.Kind != "onnx::Relu" {
				continue
			}
			if def := op.Operand(0).Def(); def != nil && def.Kind == "onnx::Relu" {
				op.Replace(op.Operand(0))
				c.Changed("relu-of-relu") // fixpoints and statistics count changes
			}
		}
		return nil
	}),
}

func runPass(text string) error {
	m, err := ssa.Parse(text, "graph.ir", all.Dialects()...)
	if err != nil {
		return err
	}
	set := all.New(nil)
	set.Passes = append(set.Passes, &reluOfRelu)
	pipeline, err := set.Parse("relu-of-relu,dce")
	if err != nil {
		return err
	}
	list, err := pipeline.Run(m, nil)
	if err := errors.Join(err, list.Err()); err != nil {
		return err
	}
	return ssa.Fprint(os.Stdout, m, ssa.PrintOptions{NoLocs: true})
}

func Example_pass() {
	err := runPass(`graph(%x : Float(3)):
  %a : Float(3) = onnx::Relu(%x)
  %y : Float(3) = onnx::Relu(%a)
  return (%y)
`)
	fmt.Println(err)
	// Output:
	// graph(%x : Float(3)):
	//   %a : Float(3) = onnx::Relu(%x)
	//   return (%a)
	// <nil>
}
