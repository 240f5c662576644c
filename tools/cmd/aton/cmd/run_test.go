package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// run prints, saves and refuses: a program of PyTorch, whose write is seen through a view, and the ONNX file that is made of it.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	graph, onnxFile := filepath.Join(dir, "graph.ir"), filepath.Join(dir, "graph.onnx")
	text := `graph(%x : Float(2, N)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::clone(%x, %none)
  %row : Tensor = aten::select(%y, %0, %1)
  %sum : Tensor = aten::add_(%row, %1, %1)
  %n : int = aten::size(%x, %1)
  return (%y, %n)
`
	if err := os.WriteFile(graph, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if status, _, said := call("", "export", graph, "-o", onnxFile); status != 0 {
		t.Fatal(said)
	}
	inputs := filepath.Join(dir, "inputs.npz")
	x := tensor.FromFloats(tensor.Float32, []int64{2, 2}, []float64{1, 2, 3, 4})
	if err := verify.WriteOutputs(inputs, []verify.DataSet{{Outputs: []verify.Named{{Name: "input_0", Tensor: x}}}}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{graph + " --data " + inputs, 0, "0 : Float(2, 2) = [1, 2, 4, 5]\n1 : Long() = 2\n"},
		{onnxFile + " --data " + inputs, 0, "0 : Float(2, 2) = [1, 2, 4, 5]\n1 : Long() = 2\n"},
		{graph + " --json --data " + inputs, 0, `"name": "1"`},
		{graph + " --random 1 --size N=0", 0, "0 : Float(2, 0) = []\n1 : Long() = 0\n"},
		{graph, 1, "0 inputs are given for 1 (x)"},
		{graph + " --random 1 --data " + inputs, 2, "mutually exclusive"},
		{graph + " --size N=1", 2, "--size requires --random"},
		{graph + " --random 1 -o out.bin", 2, "must end in .npz or .safetensors"},
	} {
		status, out, said := call("", append([]string{"run"}, strings.Fields(c.args)...)...)
		if status != c.status || !strings.Contains(out+said, c.want) {
			t.Errorf("run %s: status %d\n%s%s", c.args, status, out, said)
		}
	}
	for _, name := range []string{"out.npz", "out.safetensors"} {
		file := filepath.Join(dir, name)
		if status, out, said := call("", "run", graph, "--data", inputs, "-o", file); status != 0 || out != "" {
			t.Fatalf("%s: status %d\n%s%s", name, status, out, said)
		}
		got, err := verify.ReadOutputs(file)
		if err != nil || len(got) != 2 || fmt.Sprint(got[0].Name, got[0].Tensor.Float64s(), got[1].Tensor.Int64s()) != "0[1 2 4 5] [2]" {
			t.Errorf("%s: %v %v", name, got, err)
		}
		if status, out, said := call("", "verify", onnxFile, "--data", inputs, "--expected", file); status != 0 {
			t.Errorf("what run has saved is expected: status %d\n%s%s", status, out, said)
		}
	}
}

// verify without recorded outputs tells of a file that gives something else than the program itself.
func TestVerifyAsksTheProgram(t *testing.T) {
	dir := t.TempDir()
	graph := filepath.Join(dir, "graph.ir")
	text := "graph(%x : Float(N)):\n  %1 : int = prim::Constant[value=1]()\n  %y : Tensor = aten::add(%x, %1, %1)\n  return (%y)\n"
	if err := os.WriteFile(graph, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if status, out, said := call("", "verify", graph, "--random", "4"); status != 0 || strings.Count(out, "as expected") != 4 {
		t.Errorf("a right file: status %d\n%s%s", status, out, said)
	}
	// a fault that all graphs have that the interpreter runs
	v := &verifier{observers: []passes.Observer{{AfterPass: func(e *passes.Event) {
		if e.Pass.Name != "specialize" {
			return
		}
		for o := range e.Module.Main().Body.Ops() {
			if o.Kind == "aten::add" {
				o.Kind, o.Schema = "aten::sub", nil
			}
		}
	}}}}
	if text, err := runVerify(t, v, graph, "--random", "1"); err == nil || !strings.Contains(text, "WRONG: 2 of 2 elements differ") {
		t.Errorf("a fault of specialize: %v\n%s", err, text)
	}
	random := "graph(%x : Float(2)):\n  %n : NoneType = prim::Constant()\n  %y : Tensor = aten::rand_like(%x, %n, %n, %n, %n, %n)\n  return (%y)\n"
	if err := os.WriteFile(graph, []byte(random), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, out, said := call("", "verify", graph, "--random", "1"); !strings.Contains(out, "the program itself is no measure: it draws random numbers") {
		t.Errorf("random numbers:\n%s%s", out, said)
	}
}
