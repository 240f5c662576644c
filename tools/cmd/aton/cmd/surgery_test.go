package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The commands that edit files write them, or say in a sentence what is wrong.
func TestSurgery(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(args string) (int, string) {
		var out bytes.Buffer
		code := Main(strings.Fields(args), strings.NewReader(""), &out, &out)
		return code, out.String()
	}
	graph := "graph(%x : Tensor):\n  %w : Float(2, 3) = prim::Constant[value= 1  2  3  4  5  6 [ CPUFloatType{2,3} ]]()\n  %h : Tensor = aten::matmul(%x, %w)\n  %y : Tensor = aten::relu(%h)\n  return (%y)\n"
	if err := os.WriteFile("net.ir", []byte(graph), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("head.ir", []byte("graph(%y : Tensor):\n  %c : int = prim::Constant[value=1]()\n  %n : NoneType = prim::Constant()\n  %p : Tensor = aten::softmax(%y, %c, %n)\n  return (%p)\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"net.ir -o net.onnx --input x:f32[N,2] --opset 17 --output-names y", "head.ir -o head.onnx --input y:f32[M,3] --opset 13 --output-names p"} {
		if code, out := run("export " + made); code != 0 {
			t.Fatal(out)
		}
	}
	for _, c := range []struct {
		args string
		code int
		want []string
		file string // that is written
	}{
		{"join net.onnx head.onnx", 0, []string{"3 operators, opset 17", "input  x : Float(N, 2)", "output p : Float(N, 3)"}, "net.joined.onnx"},
		{"join net.onnx head.onnx --link y=y --json -o a.onnx", 0, []string{`"output": "a.onnx"`, `"onnx::Softmax": 1`}, "a.onnx"},
		{"cut net.joined.onnx --outputs y", 0, []string{"2 operators", "output y : Float(N, 3)"}, "net.joined.cut.onnx"},
		{"cut net.joined.onnx --inputs y -o tail.onnx", 0, []string{"1 operators", "input  y : Float(N, 3)"}, "tail.onnx"},
		{"set net.onnx --rename x=image,y=scores", 0, []string{"input  image", "output scores"}, "net.set.onnx"},
		{"cut net.onnx --outputs z", 1, []string{"net.onnx: there is no value z"}, ""},
		{"cut net.onnx", 2, []string{"say where to cut"}, ""},
		{"cut net.ir --outputs y", 1, []string{"program of PyTorch", "aton export"}, ""},
		{"cut nothing.onnx --outputs y", 1, []string{"nothing.onnx"}, ""},
		{"join net.onnx", 2, []string{"two models"}, ""},
		{"join net.onnx head.onnx --link y", 2, []string{"OUTPUT=INPUT"}, ""},
		{"join net.onnx head.onnx --link y=q", 1, []string{"second model has no input q"}, ""},
		{"join net.onnx head.onnx --link q=y", 1, []string{"first model has no output q"}, ""},
		{"join net.onnx net.onnx", 1, []string{"axis 1 is of size 3 and 2"}, ""},
		{"export head.ir -o fixed.onnx --input y:f32[2,3] --output-names p", 0, nil, "fixed.onnx"},
		{"set fixed.onnx --axes y:0=M -o free.onnx", 0, []string{"input  y : Float(M, 3)", "output p : Float(M, 3)"}, "free.onnx"},
		{"set fixed.onnx --axes y:0", 2, []string{"--axes y:0", "AXIS=AXISNAME"}, ""},
		{"set fixed.onnx --axes z:0=M", 1, []string{"there is no input z"}, ""},
		{"set net.onnx", 2, []string{"--rename, --weight or --axes"}, ""},
		{"set net.onnx --rename x=y", 1, []string{"the name y is taken"}, ""},
		{"set net.onnx --weight q=net.onnx", 1, []string{"--weight q=net.onnx"}, ""},
		{"set net.onnx --weight =x", 2, []string{"NAME=FILE"}, ""},
	} {
		code, out := run(c.args)
		if code != c.code {
			t.Errorf("aton %s: exit status %d, not %d\n%s", c.args, code, c.code, out)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("aton %s: %q is missing in\n%s", c.args, want, out)
			}
		}
		if c.file != "" {
			if _, err := os.Stat(filepath.FromSlash(c.file)); err != nil {
				t.Errorf("aton %s: %v", c.args, err)
			}
		}
	}
	// exchanged names
	if code, out := run("set net.onnx --rename x=y,y=x -o swapped.onnx"); code != 0 || !strings.Contains(out, "input  y") || !strings.Contains(out, "output x") {
		t.Errorf("%d: %s", code, out)
	}
}
