package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

const softened = `graph(%x : Float(N, 3, 4)):
  %1 : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %axes : int[] = prim::Constant[value=[1]]()
  %a : Tensor = aten::softmax(%x, %1, %none)
  %b : Tensor = aten::sum(%a, %axes, %true, %none)
  %lo : float = prim::Constant[value=0.25]()
  %c : Tensor = aten::clamp(%a, %lo, %none)
  %y : Tensor = aten::sub(%c, %b, %1)
  return (%y)
`

func readBack(t *testing.T, b []byte) *ssa.Module {
	t.Helper()
	m, err := aton.LoadBytes(b, "model.onnx", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// evaluated runs a file's own operators, at its own opset.
func evaluated(t *testing.T, b []byte) []float64 {
	t.Helper()
	v := make([]float64, 24)
	for i := range v {
		v[i] = float64(i*i%11) / 4
	}
	out := run(t, parsed(t, b), map[string]interp.Value{"x": interp.Of(tensor.FromFloats(tensor.Float32, []int64{2, 3, 4}, v))})
	return out[0].Tensor.Float64s()
}

// TestOpsets exports one module to several opsets, one after the other, and the files of each to each other: all are at
// the opset that was asked for and compute the same.
func TestOpsets(t *testing.T) {
	m, err := aton.LoadBytes([]byte(softened), "softened.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opsets := []int{20, 9, 28, 7, 13}
	var want []float64
	for _, n := range opsets {
		file := written(t, m, converting(aton.ConvertOptions{Opset: n}))
		if got := readBack(t, file).Opsets[""]; got != n {
			t.Errorf("asked for opset %d, the file is at %d", n, got)
		}
		if want == nil {
			want = evaluated(t, file)
		}
		for _, k := range opsets {
			again := written(t, readBack(t, file), converting(aton.ConvertOptions{Opset: k}))
			if got := readBack(t, again).Opsets[""]; got != k {
				t.Errorf("from opset %d asked for %d, the file is at %d", n, k, got)
			}
			for i, v := range evaluated(t, again) {
				if d := v - want[i]; d > 1e-6 || d < -1e-6 {
					t.Fatalf("from opset %d to %d: element %d is %g, not %g", n, k, i, v, want[i])
				}
			}
		}
	}
}

// TestDefaultOpset: an ONNX file keeps its opset unless another is asked for.
func TestDefaultOpset(t *testing.T) {
	m, err := aton.LoadBytes([]byte(softened), "softened.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := (aton.ConvertOptions{}).OpsetFor(m); n != aton.DefaultOpset {
		t.Errorf("a program goes to opset %d", n)
	}
	if n := (aton.ConvertOptions{}).OpsetFor(readBack(t, written(t, m, converting(aton.ConvertOptions{Opset: 13})))); n != 13 {
		t.Errorf("a file of opset 13 goes to %d", n)
	}
}

// TestHalfDone: what a conversion that failed leaves is not written.
func TestHalfDone(t *testing.T) {
	m, err := aton.LoadBytes([]byte("graph(%x : Float(2, 2)):\n  %y : Tensor = onnx::Det(%x)\n  return (%y)\n"), "det.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := aton.ExportTo(&b, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: 9}}); err == nil || !strings.Contains(err.Error(), "opset 11") {
		t.Fatalf("Det at opset 9: %v", err)
	}
	if err := aton.ExportTo(&b, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: 17}}); err == nil || !strings.Contains(err.Error(), "load it again") {
		t.Errorf("after that: %v", err)
	}
}

// TestCarriedThrough: what nothing computes with comes out as it went in: foreign operators with the version of their
// domain, elements of four bits, and what the file says of itself.
func TestCarriedThrough(t *testing.T) {
	m, err := aton.LoadBytes([]byte("graph(%x : Float(2, 3)):\n  %y : Float(2, 3) = my.ops::Twist[by=3](%x)\n  return (%y)\n"), "twist.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m.Opsets = map[string]int{"": 22, "my.ops": 4}
	m.File = ssa.FileInfo{Doc: "turns", Domain: "org.example", Version: 7, Graph: "twisting", GraphDoc: "by three"}
	m.SetMetadata("author", "somebody")
	f := m.Main()
	nibbles := tensor.New(tensor.Int4, []int64{3}, []byte{0xf9, 7, 0}) // -7, 7, 0
	o := f.Body.Append("onnx::Constant", 0, nil, ssa.TensorOf(nibbles))
	o.SetAttr("value", ssa.TensorValue(nibbles))
	o.Result(0).Name = "nibbles"
	z := f.Body.Append("onnx::Identity", 0, []*ssa.Value{o.Result(0)}, ssa.TensorOf(nibbles))
	f.Body.SetReturns(append(f.Body.Returns(), z.Result(0))...)
	// onnxruntime cannot copy four bits; the standard can
	write := func(m *ssa.Module, opset int) ([]byte, error) {
		var b bytes.Buffer
		err := aton.ExportTo(&b, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: opset, Target: "onnx"}})
		return b.Bytes(), err
	}
	file, err := write(m, 21)
	if err != nil {
		t.Fatal(err)
	}
	got := readBack(t, file)
	if fmt.Sprint(got.Opsets) != "map[:21 my.ops:4]" || fmt.Sprint(got.File) != fmt.Sprint(m.File) || got.GetMetadata("author") != "somebody" {
		t.Errorf("%v %+v %v", got.Opsets, got.File, got.Metadata)
	}
	text := ssa.Print(got)
	if !strings.Contains(text, "my.ops::Twist[by=3](%x)") {
		t.Errorf("the foreign operator is gone:\n%s", text)
	}
	for o := range got.Main().Body.AllOps() {
		if l, ok := o.Attr("value"); ok && !slices.Equal(l.Tensor.Int64s(), []int64{-7, 7, 0}) {
			t.Errorf("the elements are %v", l.Tensor.Int64s())
		}
	}
	if _, err := write(got, 17); err == nil || !strings.Contains(err.Error(), "opset 21") {
		t.Errorf("elements of four bits at opset 17: %v", err)
	}
}

// TestMaps: maps from numbers or strings to numbers, which classifiers give and vectorizers take, come out as they went in, at any opset.
func TestMaps(t *testing.T) {
	for _, c := range []struct{ text, in, out string }{
		{`graph(%x : Float(N, 3)):
  %p : Float(N, 3) = onnx::Softmax[axis=1](%x)
  %z : Dict(str, Float())[] = ai.onnx.ml::ZipMap[classlabels_strings=["a", "b", "c"]](%p)
  return (%z)
`, "Float(N, 3)", "Dict(str, Float())[]"},
		{`graph(%x : Float(N, 2)):
  %z : Dict(int, Float())[] = ai.onnx.ml::ZipMap[classlabels_int64s=[1, 2]](%x)
  return (%z)
`, "Float(N, 2)", "Dict(int, Float())[]"},
		{`graph(%x : Dict(str, Float())):
  %y : Float(1, 2) = ai.onnx.ml::DictVectorizer[string_vocabulary=["a", "b"]](%x)
  return (%y)
`, "Dict(str, Float())", "Float(1, 2)"},
	} {
		m, err := aton.LoadBytes([]byte("module {\n  opsets = {\"\" : 13, \"ai.onnx.ml\" : 1}\n}\n"+c.text), "map.ir", aton.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, opset := range []int{13, 20} {
			m = readBack(t, written(t, m, converting(aton.ConvertOptions{Opset: opset})))
			body := m.Main().Body
			if in, out := body.Params[0].Type.String(), body.Returns()[0].Type.String(); in != c.in || out != c.out {
				t.Errorf("at opset %d the file has %s -> %s, not %s -> %s", opset, in, out, c.in, c.out)
			}
		}
	}
	_, err := aton.LoadBytes([]byte("graph(%x : Dict(str, Float())):\n  %z : Dict(str, Float()) = onnx::Identity(%x)\n  return (%z)\n"), "map.ir", aton.LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), "cannot be of type Dict(str, Float())") {
		t.Errorf("Identity of a map: %v", err)
	}
}
