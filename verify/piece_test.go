package verify

import (
	"fmt"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestSmallest looks for parts of a graph of which a predicate says that they are wrong. Each is a valid model, which computes what it
// did in its place.
func TestSmallest(t *testing.T) {
	m, err := ssa.Parse(`graph(%x : Float(N), %c : Bool()):
  %two : Float() = onnx::Constant[value={2}]()
  %a : Float(N) = onnx::Exp(%x)
  %b : Float(N) = onnx::Mul(%a, %two)
  %d : Float(N) = onnx::If(%c)
    block0():
      %e : Float(N) = onnx::Add(%b, %two)
      -> (%e)
    block1():
      %f : Float(N) = onnx::Sub(%b, %x)
      -> (%f)
  %g : Float(N) = onnx::Neg(%d)
  %h : Float(N) = onnx::Abs(%g)
  return (%h, %b)
`, "test", onnx.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	data := DataSet{Inputs: []Named{{"x", tensor.FromFloats(tensor.Float32, []int64{2}, []float64{0, 1})},
		{"c", tensor.FromInts(tensor.Bool, []int64{}, []int64{0})}}}
	v := Verifier{Tolerance: DefaultTolerance}
	values, err := v.values(m, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kinds   []ssa.Kind // a part is wrong if it has all of these
		want    []ssa.Kind // of the smallest; nil for none
		inputs  string
		outputs int
	}{
		{[]ssa.Kind{"onnx::Mul"}, []ssa.Kind{"onnx::Mul"}, "[a]", 1},
		{[]ssa.Kind{"onnx::If"}, []ssa.Kind{"onnx::If"}, "[c b x]", 1},
		{[]ssa.Kind{"onnx::Mul", "onnx::Neg"}, []ssa.Kind{"onnx::Mul", "onnx::If", "onnx::Neg"}, "[a c x]", 2},
		{[]ssa.Kind{"onnx::Exp", "onnx::Abs"}, []ssa.Kind{"onnx::Exp", "onnx::Mul", "onnx::If", "onnx::Neg", "onnx::Abs"}, "[x c]", 2},
		{[]ssa.Kind{"onnx::Tan"}, nil, "", 0},
	} {
		p := smallest(m, values, func(p *Piece) bool {
			if err := ssa.Verify(p.Module); err != nil {
				t.Fatalf("%v\n%s", err, ssa.Print(p.Module))
			}
			results, err := v.Verify(p.Module, p.Data)
			if err != nil {
				t.Fatalf("%v\n%s", err, ssa.Print(p.Module))
			}
			for _, r := range results {
				if r.Wrong != "" {
					t.Errorf("%s\n%s", r.Wrong, ssa.Print(p.Module))
				}
			}
			has := map[ssa.Kind]bool{}
			for o := range p.Module.Main().Body.Ops() {
				has[o.Kind] = true
			}
			for _, k := range c.kinds {
				if !has[k] {
					return false
				}
			}
			return true
		})
		if p == nil || c.want == nil {
			if (p == nil) != (c.want == nil) {
				t.Errorf("%v: found %v", c.kinds, p)
			}
			continue
		}
		var got []ssa.Kind
		for o := range p.Module.Main().Body.Ops() {
			if o.Kind != "onnx::Constant" {
				got = append(got, o.Kind)
			}
		}
		var inputs []string
		for _, in := range p.Data.Inputs {
			inputs = append(inputs, in.Name)
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) || fmt.Sprint(inputs) != c.inputs || len(p.Data.Outputs) != c.outputs || p.Nodes != len(got) {
			t.Errorf("%v: %v of %v with %d outputs", c.kinds, got, inputs, len(p.Data.Outputs))
		}
		if err := p.Write(t.TempDir()); err != nil {
			t.Errorf("%v: %v", c.kinds, err)
		}
	}
}
