package interp

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

func constant(b *ssa.Block, t *tensor.Tensor) *ssa.Value {
	o := b.Append("onnx::Constant", 0, nil, ssa.TensorOf(t))
	o.SetAttr("value", ssa.TensorValue(t))
	return o.Results[0]
}

// doubling doubles x while a loop runs n times, and keeps what it had each time.
func doubling() *ssa.Module {
	m := ssa.NewModule(onnx.Dialect{})
	f := m.NewFunc("main")
	x, n := f.Body.AddParam("x", ssa.Unranked(tensor.Int64)), f.Body.AddParam("n", ssa.Tensor(tensor.Int64))
	loop := f.Body.Append("onnx::Loop", 0, []*ssa.Value{n, nil, x}, ssa.AnyTensor, ssa.AnyTensor)
	b := loop.AddBlock()
	b.AddParam("i", ssa.AnyTensor)
	cond, v := b.AddParam("c", ssa.AnyTensor), b.AddParam("v", ssa.AnyTensor)
	twice := b.Append("onnx::Add", 0, []*ssa.Value{v, v}, ssa.AnyTensor)
	b.SetReturns(cond, twice.Results[0], v)
	f.Body.SetReturns(loop.Results...)
	return m
}

func TestLoop(t *testing.T) {
	out, err := Run(doubling(), map[string]Value{"x": Of(tensor.Ints(1, 3)), "n": Of(tensor.ScalarInt(3))})
	if err != nil {
		t.Fatal(err)
	}
	if got := out[0].Tensor.Int64s(); !slices.Equal(got, []int64{8, 24}) {
		t.Errorf("carried value %v", got)
	}
	if got := out[1].Tensor; !slices.Equal(got.Shape, []int64{3, 2}) || !slices.Equal(got.Int64s(), []int64{1, 3, 2, 6, 4, 12}) {
		t.Errorf("scan output %v %v", got, got.Int64s())
	}
}

func TestObserve(t *testing.T) {
	var kinds []string
	stop := errors.New("enough")
	in := &Interpreter{Observe: func(o *ssa.Op, _, out []Value) error {
		kinds = append(kinds, o.Kind.Name())
		if out[0].Tensor != nil && out[0].Tensor.Int64s()[0] == 4 {
			return stop
		}
		return nil
	}}
	_, err := in.Run(doubling(), map[string]Value{"x": Of(tensor.Ints(1)), "n": Of(tensor.ScalarInt(9))})
	if !errors.Is(err, stop) || strings.Join(kinds, " ") != "Add Add" {
		t.Errorf("%v after %v", err, kinds)
	}
}

func TestErrors(t *testing.T) {
	if _, err := Run(doubling(), map[string]Value{"x": Of(tensor.Ints(1))}); err == nil || !strings.Contains(err.Error(), `"n" is missing`) {
		t.Errorf("a missing input gives %v", err)
	}
	in := &Interpreter{MaxTrips: 5}
	if _, err := in.Run(doubling(), map[string]Value{"x": Of(tensor.Ints(1)), "n": Of(tensor.ScalarInt(9))}); err == nil {
		t.Error("an endless loop is not stopped")
	}
	if _, err := Run(ssa.NewModule(), nil); err == nil {
		t.Error("an empty module runs")
	}
}

// TestOldEncodings runs ops as older opsets write them.
func TestOldEncodings(t *testing.T) {
	x := tensor.Of(tensor.Float32, []int64{1, 2, 2}, []float32{0, 0, 0, 0})
	for _, c := range []struct {
		opset int
		kind  ssa.Kind
		attrs []ssa.Attr
		in    []*tensor.Tensor
		shape []int64
		first float64
	}{
		{9, "onnx::Squeeze", []ssa.Attr{{Name: "axes", Value: ssa.Ints(0)}}, []*tensor.Tensor{x}, []int64{2, 2}, 0},
		{9, "onnx::Softmax", nil, []*tensor.Tensor{x}, []int64{1, 2, 2}, 0.25},
		{13, "onnx::Softmax", nil, []*tensor.Tensor{x}, []int64{1, 2, 2}, 0.5},
		{9, "onnx::Clip", []ssa.Attr{{Name: "min", Value: ssa.Float(3)}}, []*tensor.Tensor{x}, []int64{1, 2, 2}, 3},
		{9, "onnx::Slice", []ssa.Attr{{Name: "starts", Value: ssa.Ints(1)}, {Name: "ends", Value: ssa.Ints(2)}, {Name: "axes", Value: ssa.Ints(2)}}, []*tensor.Tensor{x}, []int64{1, 2, 1}, 0},
		{10, "onnx::Pad", []ssa.Attr{{Name: "pads", Value: ssa.Ints(1, 0, 0, 0, 0, 0)}, {Name: "value", Value: ssa.Float(7)}}, []*tensor.Tensor{x}, []int64{2, 2, 2}, 7},
		{9, "onnx::Upsample", []ssa.Attr{{Name: "mode", Value: ssa.Str("nearest")}}, []*tensor.Tensor{x, tensor.Of(tensor.Float32, []int64{3}, []float32{1, 2, 3})}, []int64{1, 4, 6}, 0},
	} {
		m := ssa.NewModule(onnx.Dialect{})
		m.Opsets = map[string]int{"": c.opset}
		f := m.NewFunc("main")
		var in []*ssa.Value
		for _, t := range c.in {
			in = append(in, constant(f.Body, t))
		}
		o := f.Body.Append(c.kind, 0, in, ssa.AnyTensor)
		o.Attrs = c.attrs
		f.Body.SetReturns(o.Results...)
		out, err := Run(m, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := out[0].Tensor; !slices.Equal(got.Shape, c.shape) || got.Float64s()[0] != c.first {
			t.Errorf("%s-%d gives %v %v", c.kind, c.opset, got, got.Float64s())
		}
	}
}

// A loop that would run for hours ends with an error.
func TestMaxOps(t *testing.T) {
	m := ssa.NewModule(onnx.Dialect{})
	f := m.NewFunc("main")
	x := f.Body.AddParam("x", ssa.Tensor(tensor.Int64))
	n := f.Body.Append("onnx::Constant", 0, nil, ssa.Tensor(tensor.Int64))
	n.SetAttr("value", ssa.TensorValue(tensor.ScalarInt(1_000_000_000_000)))
	loop := f.Body.Append("onnx::Loop", 0, []*ssa.Value{n.Result(0), nil, x}, x.Type)
	b := loop.AddBlock()
	b.AddParam("i", ssa.Tensor(tensor.Int64))
	c, s := b.AddParam("c", ssa.Tensor(tensor.Bool)), b.AddParam("s", x.Type)
	b.SetReturns(c, b.Append("onnx::Add", 0, []*ssa.Value{s, s}, x.Type).Result(0))
	f.Body.SetReturns(loop.Result(0))
	in := Interpreter{MaxOps: 1000, MaxTrips: math.MaxInt64}
	_, err := in.RunFunc(f, []Value{Of(tensor.ScalarInt(1))})
	if err == nil || !strings.Contains(err.Error(), "the run takes more than 1000 operators") {
		t.Errorf("error %v", err)
	}
}
