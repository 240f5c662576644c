package main

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
	"github.com/aton-project/aton/verify/device"
)

// modelBombs are ONNX models of a few nodes that would take all memory, or years, as they are run. graph makes %y from %x, whose type
// is x; the numbers in integers are 10^12. Running them ends with what is in says.
var modelBombs = []struct{ name, x, graph, says string }{
	{"10^12 iterations", "Float(2)", `
  %n : Long() = onnx::Constant[value={1000000000000}]()
  %c : Bool() = onnx::Constant[value={1}]()
  %y : Float(2) = onnx::Loop(%n, %c, %x)
    block0(%i : Long(), %k : Bool(), %a : Float(2)):
      %b : Float(2) = onnx::Sin(%a)
      -> (%k, %b)`, "the run takes more than 65536 operators"},
	{"loops 8 deep", "Float(2)", deepLoop(8), "the run takes more than 65536 operators"},
	{"a sequence of 10^12", "Float(2)", `
  %n : Long() = onnx::Constant[value={1000000000000}]()
  %c : Bool() = onnx::Constant[value={1}]()
  %e : Float(2)[] = onnx::SequenceEmpty[dtype=1]()
  %s : Float(2)[] = onnx::Loop(%n, %c, %e)
    block0(%i : Long(), %k : Bool(), %a : Float(2)[]):
      %b : Float(2)[] = onnx::SequenceInsert(%a, %x)
      -> (%k, %b)
  %0 : Long() = onnx::Constant[value={0}]()
  %y : Float(2) = onnx::SequenceAt(%s, %0)`, "the run takes more than 65536 operators"},
	{"a tensor that doubles", "Bool(2)", `
  %n : Long() = onnx::Constant[value={60}]()
  %c : Bool() = onnx::Constant[value={1}]()
  %y : Bool(N) = onnx::Loop(%n, %c, %x)
    block0(%i : Long(), %k : Bool(), %a : Bool(M)):
      %b : Bool(L) = onnx::Concat[axis=0](%a, %a)
      -> (%k, %b)`, "a result Bool(268435456) has more than 134217728 elements"},
	{"ones", "Long(1)", `
  %y : Float(N) = onnx::ConstantOfShape(%x)`, "a result Float(1000000000000) has more than"},
	{"ones that are constant", "Float(2)", `
  %n : Long(1) = onnx::Constant[value= 1000000000000 [ CPULongType{1} ]]()
  %o : Float(1000000000000) = onnx::ConstantOfShape(%n)
  %s : Float(1) = onnx::ReduceSum(%o)
  %y : Float(2) = onnx::Add(%x, %s)`, "a result Float(1000000000000) has more than"},
	{"a range", "Long()", `
  %0 : Long() = onnx::Constant[value={0}]()
  %1 : Long() = onnx::Constant[value={1}]()
  %y : Long(N) = onnx::Range(%0, %x, %1)`, "a result Long(1000000000000) has more than"},
	{"an expansion", "Long(1)", `
  %0 : Float(1) = onnx::Constant[value= 1 [ CPUFloatType{1} ]]()
  %y : Float(N) = onnx::Expand(%0, %x)`, "a result Float(1000000000000) has more than"},
	{"tiles", "Long(1)", `
  %0 : Float(1) = onnx::Constant[value= 1 [ CPUFloatType{1} ]]()
  %y : Float(N) = onnx::Tile(%0, %x)`, "a result Float(1000000000000) has more than"},
	{"padding", "Long(2)", `
  %0 : Float(1) = onnx::Constant[value= 1 [ CPUFloatType{1} ]]()
  %y : Float(N) = onnx::Pad(%0, %x)`, "a result Float(1000000000001) has more than"},
	{"one-hot", "Long()", `
  %0 : Long(1) = onnx::Constant[value= 1 [ CPULongType{1} ]]()
  %v : Float(2) = onnx::Constant[value= 0  1 [ CPUFloatType{2} ]]()
  %y : Float(1, N) = onnx::OneHot(%0, %x, %v)`, "a result Float(1, 1000000000000) has more than"},
	{"a resize", "Long(1)", `
  %0 : Float(1) = onnx::Constant[value= 1 [ CPUFloatType{1} ]]()
  %y : Float(N) = onnx::Resize(%0, _, _, %x)`, "a result Float(1000000000000) has more than"},
	{"an outer product", "Float(1000000, 1)", `
  %t : Float(1, 1000000) = onnx::Transpose(%x)
  %y : Float(1000000, 1000000) = onnx::MatMul(%x, %t)`, "a result Float(1000000, 1000000) has more than"},
}

func deepLoop(depth int) string {
	before, after := "\n  %n : Long() = onnx::Constant[value={10}]()\n  %c : Bool() = onnx::Constant[value={1}]()", ""
	in := "%x"
	for k := range depth {
		pad := strings.Repeat("    ", k)
		out := fmt.Sprintf("%%y%d", k)
		if k == 0 {
			out = "%y"
		}
		before += fmt.Sprintf("\n  %s%s : Float(2) = onnx::Loop(%%n, %%c, %s)\n  %s  block0(%%i%d : Long(), %%k%d : Bool(), %%a%d : Float(2)):", pad, out, in, pad, k, k, k)
		in = fmt.Sprintf("%%a%d", k)
		inner := fmt.Sprintf("%%y%d", k+1)
		after = fmt.Sprintf("\n  %s    -> (%%k%d, %s)", pad, k, inner) + after
	}
	pad := strings.Repeat("    ", depth)
	return before + fmt.Sprintf("\n  %s%%y%d : Float(2) = onnx::Sin(%s)", pad, depth, in) + after
}

// TestModelBombs reads the models from a file, converts them, and runs them in the interpreter and on the simulated device.
func TestModelBombs(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(maxMemory * 3 / 4))
	for _, b := range modelBombs {
		t.Run(b.name, func(t *testing.T) {
			began := time.Now()
			text := "graph(%x : " + b.x + "):" + b.graph + "\n  return (%y)\n"
			m := converted(t, []byte(text), "bomb.ir")
			var file bytes.Buffer
			if err := aton.ExportTo(&file, m, aton.ExportOptions{}); err != nil {
				t.Fatal(err)
			}
			m = converted(t, file.Bytes(), "bomb.onnx")
			set, err := verify.RandomData(m, verify.RandomOptions{})
			if err != nil {
				t.Fatal(err)
			}
			x := set.Inputs[0].Tensor
			if x.DType == tensor.Int64 {
				v := make([]int64, x.NumElements())
				v[len(v)-1] = 1000000000000
				x = tensor.FromInts(tensor.Int64, x.Shape, v)
				set.Inputs[0].Tensor = x
			}
			_, err = (&interp.Interpreter{MaxOps: 1 << 16}).Run(m, map[string]interp.Value{set.Inputs[0].Name: interp.Of(x)})
			if err == nil || !strings.Contains(err.Error(), b.says) {
				t.Errorf("the interpreter says %v instead of %q", err, b.says)
			}
			if !strings.Contains(b.says, "operators") { // a loop runs in the interpreter on a device too
				_, err = device.Verify(verify.Verifier{}, m, set, device.Options{Backend: &exec.Sim{Budget: 1 << 20}})
				if err == nil {
					t.Error("the simulator runs it")
				}
			}
			took, memory := time.Since(began), used()
			t.Logf("%.2f s, %d MB: %v", took.Seconds(), memory>>20, err)
			if took > time.Minute || memory > maxMemory {
				t.Errorf("it takes %v and %d bytes", took, memory)
			}
			debug.FreeOSMemory()
		})
	}
}

// converted loads a model and brings it to ONNX's dialect.
func converted(t *testing.T, file []byte, name string) *ssa.Module {
	t.Helper()
	m, err := aton.LoadBytes(file, name, aton.LoadOptions{})
	if err == nil {
		_, err = aton.Convert(m, aton.ConvertOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}
