package interp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestKernels runs an operator of a custom domain by a function of its own, in a loop too, and tells what is wrong with one.
func TestKernels(t *testing.T) {
	m, err := ssa.Parse(`graph(%x : Float(2)):
  %n : Long() = onnx::Constant[value={2}]()
  %c : Bool() = onnx::Constant[value={1}]()
  %y : Float(2) = onnx::Loop(%n, %c, %x)
    block0(%i : Long(), %d : Bool(), %a : Float(2)):
      %b : Float(2), %unused : Float(2) = my.domain::Scale[by=3.0](%a)
      -> (%d, %b)
  return (%y)
`, "test", onnx.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	scale := func(o *ssa.Op, in []interp.Value) ([]interp.Value, error) {
		by, _ := o.Attr("by")
		v := in[0].Tensor.Float64s()
		for i := range v {
			v[i] *= by.Float()
		}
		out := interp.Of(tensor.FromFloats(tensor.Float32, in[0].Tensor.Shape, v))
		return []interp.Value{out, out}, nil
	}
	x := map[string]interp.Value{"x": interp.Of(tensor.FromFloats(tensor.Float32, []int64{2}, []float64{1, 2}))}
	for _, c := range []struct {
		name   string
		kernel interp.Kernel
		want   string // an error; empty for none
	}{
		{"right", scale, ""},
		{"missing", nil, "my.domain::Scale: the operator is not ONNX's own, and no kernel is given for it"},
		{"failing", func(*ssa.Op, []interp.Value) ([]interp.Value, error) { return nil, errors.New("no such scale") }, "my.domain::Scale: no such scale"},
		{"one result", func(o *ssa.Op, in []interp.Value) ([]interp.Value, error) { return in, nil }, "its kernel gives 1 results of 2"},
	} {
		in := interp.Interpreter{Kernels: map[ssa.Kind]interp.Kernel{"my.domain::Scale": c.kernel}}
		out, err := in.Run(m, x)
		switch {
		case c.want == "" && (err != nil || out[0].Tensor.Float64s()[1] != 18):
			t.Errorf("%s: %v, %v", c.name, out, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v; want %s", c.name, err, c.want)
		}
	}
}
