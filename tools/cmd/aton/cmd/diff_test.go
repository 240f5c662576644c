package cmd

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Models that differ in one element of one tensor are not equal, wherever it is: a weight, whatever its name, a constant of a graph, of a
// branch or of a function, an attribute of an object.
func TestDiffOfTensors(t *testing.T) {
	archives, err := filepath.Glob("../../../../testdata/fixtures/torch2.15/*.pt*")
	if err != nil || len(archives) == 0 {
		t.Fatal(archives, err)
	}
	texts := []string{
		"module {\n  opsets = {\"\" : 17}\n  state = [\"w.1\"]\n}\ngraph @g(%x.1 : Float(2), %c : Bool()):\n  %w.1 : Float(2) = onnx::Constant[value= 1  2 [ CPUFloatType{2} ]]()\n" +
			"  %k.2 : Float(2) = onnx::Constant[value= 3  4 [ CPUFloatType{2} ]]()\n  %0 : Float(2) = onnx::Constant[value= 5  6 [ CPUFloatType{2} ]]()\n  %a : Float(2) = onnx::Add(%x.1, %w.1)\n" +
			"  %b : Float(2) = onnx::Add(%a, %k.2)\n  %d : Float(2) = onnx::Add(%b, %0)\n  %y : Float(2) = onnx::If(%c)\n    block0():\n      %i : Float(2) = onnx::Constant[value= 7  8 [ CPUFloatType{2} ]]()\n" +
			"      -> (%i)\n    block1():\n      -> (%d)\n  return (%y)\n",
	}
	load := func(i int) *ssa.Module {
		t.Helper()
		var m *ssa.Module
		if i < len(texts) {
			m, err = aton.LoadBytes([]byte(texts[i]), "text.ir", aton.LoadOptions{})
		} else {
			m, err = aton.Load(archives[i-len(texts)], aton.LoadOptions{})
		}
		if err != nil {
			t.Fatal(i, err)
		}
		return m
	}
	tried := 0
	for i := range len(texts) + len(archives) {
		for n := 0; ; n++ {
			m := load(i)
			if d := compareModels(load(i), m); n == 0 && !d.Equal {
				t.Fatalf("model %d differs from itself: %+v", i, d)
			}
			if !changeTensor(m, n) {
				break
			}
			tried++
			if compareModels(load(i), m).Equal {
				t.Errorf("model %d: a change of tensor %d is not told", i, n)
			}
			if n == 40 {
				break
			}
		}
	}
	if tried < 60 {
		t.Errorf("%d tensors were changed", tried)
	}
}

// changeTensor changes an element of tensor n of a module.
func changeTensor(m *ssa.Module, n int) bool {
	changed := false
	try := func(l ssa.Literal, set func(ssa.Literal)) {
		if l.Kind != ssa.TensorLit || l.Tensor == nil || !l.Tensor.HasData() || l.Tensor.NumElements() == 0 {
			return
		}
		if n--; n == -1 {
			bytes := slices.Clone(l.Tensor.Bytes())
			bytes[len(bytes)-1] ^= 1
			set(ssa.TensorValue(tensor.New(l.Tensor.DType, l.Tensor.Shape, bytes)))
			changed = true
		}
	}
	for _, f := range m.Funcs {
		for o := range f.Body.AllOps() {
			for _, a := range slices.Clone(o.Attrs) {
				try(a.Value, func(l ssa.Literal) { o.SetAttr(a.Name, l) })
			}
		}
	}
	var walk func(o *ssa.Object)
	seen := map[*ssa.Object]bool{}
	walk = func(o *ssa.Object) {
		if o == nil || seen[o] {
			return
		}
		seen[o] = true
		for _, f := range slices.Clone(o.Fields) {
			walk(f.Value.Object)
			try(f.Value, func(l ssa.Literal) { o.Set(f.Name, l) })
		}
	}
	walk(m.Root)
	return changed
}

// The summary of an ONNX file has the names of the file, and its producer as it says it.
func TestOverviewNames(t *testing.T) {
	m, err := aton.LoadBytes([]byte("module {\n  opsets = {\"\" : 17}\n  state = [\"w.1\"]\n}\ngraph @g(%input.1 : Float(2)):\n  %w.1 : Float(2) = onnx::Constant[value= 1  2 [ CPUFloatType{2} ]]()\n  %y.3 : Float(2) = onnx::Add(%input.1, %w.1)\n  return (%y.3)\n"), "g.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if v := overviewOf(m); v.Inputs[0].Name != "input.1" || v.Outputs[0].Name != "y.3" || v.Weights != 1 || v.WeightBytes != 8 || v.Producer != "" {
		t.Errorf("%+v", v)
	}
}
