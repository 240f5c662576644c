package e2e

import (
	"bytes"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/ssa"
)

// squeezed needs N to be 2 or more: the sum needs the number of dimensions that squeeze leaves.
const squeezed = `graph(%x : Float(N, 5)):
  %dim : int = prim::Constant[value=-1]()
  %dims : int[] = prim::ListConstruct(%dim)
  %no : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::squeeze(%x)
  %z : Tensor = aten::sum(%y, %dims, %no, %none)
  return (%z)
`

// A model that checks its sizes has one check, however often it is converted, and the metadata of a file adds none.
func TestGuardOnce(t *testing.T) {
	m, err := aton.LoadBytes([]byte(squeezed), "squeezed.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checks := func(m *ssa.Module) (n int) {
		for o := range m.Main().Body.AllOps() {
			if o.Kind == "onnx::Expand" {
				n++
			}
		}
		return n
	}
	var file bytes.Buffer
	for _, opset := range []int{17, 13} {
		file.Reset()
		if err := aton.ExportTo(&file, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: opset}}); err != nil {
			t.Fatal(err)
		}
		if n := checks(m); n != 1 || m.GetMetadata(ssa.LimitsKey) != "N>=2" {
			t.Errorf("opset %d: %d checks, metadata %q", opset, n, m.GetMetadata(ssa.LimitsKey))
		}
	}
	again, err := aton.LoadBytes(file.Bytes(), "squeezed.onnx", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	again.SetMetadata(ssa.LimitsKey, "what somebody else wrote")
	if err := aton.ExportTo(&file, again, aton.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := checks(again); n != 1 {
		t.Errorf("read again: %d checks", n)
	}
}
