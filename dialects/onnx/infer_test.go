package onnx

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestRules insists that every operator of the default domain has a rule.
func TestRules(t *testing.T) {
	for _, name := range Names() {
		if SchemaOf(ssa.Kind("onnx::"+name)) != nil && !strings.Contains(name, "::") && rowOf(name).infer == nil {
			t.Errorf("%s has no inference rule", name)
		}
	}
}

type graph struct {
	*testing.T
	f *ssa.Func
}

func newGraph(t *testing.T) *graph {
	m := ssa.NewModule(Dialect{})
	return &graph{t, m.NewFunc("main")}
}

func (g *graph) input(d tensor.DType, dims ...string) *ssa.Value {
	e := make([]sym.Expr, len(dims))
	for i, s := range dims {
		var err error
		if e[i], err = sym.Parse(s); err != nil {
			g.Fatal(err)
		}
	}
	return g.f.Body.AddParam("", ssa.Tensor(d, e...))
}

func (g *graph) ints(v ...int64) *ssa.Value {
	o := g.f.Body.Append("onnx::Constant", 0, nil, ssa.AnyTensor)
	o.SetAttr("value", ssa.TensorValue(tensor.Ints(v...)))
	return g.inferred(o)
}

func (g *graph) inferred(o *ssa.Op) *ssa.Value {
	g.Helper()
	if err := Infer(o); err != nil {
		g.Error(err)
	}
	return o.Results[0]
}

func (g *graph) op(kind string, attrs []ssa.Attr, in ...*ssa.Value) *ssa.Value {
	g.Helper()
	o := g.f.Body.Append(ssa.Kind("onnx::"+kind), 0, in, ssa.AnyTensor)
	o.Attrs = attrs
	return g.inferred(o)
}

func (g *graph) want(v *ssa.Value, typ string) {
	g.Helper()
	if got := v.Type.String(); got != typ {
		g.Errorf("%s is %s, want %s", v.Def().Kind, got, typ)
	}
}

func attr(name string, v ssa.Literal) ssa.Attr { return ssa.Attr{Name: name, Value: v} }

// TestSymbolicShapes follows sizes through the arithmetic that exporters write.
func TestSymbolicShapes(t *testing.T) {
	g := newGraph(t)
	x := g.input(tensor.Float32, "N", "C", "H", "W")
	shape := g.op("Shape", nil, x)
	n := g.op("Gather", []ssa.Attr{Axis(0)}, shape, g.ints(0))
	flat := g.op("Concat", []ssa.Attr{Axis(0)}, n, g.ints(-1))
	g.want(g.op("Reshape", nil, x, flat), "Float(N, C*H*W)")
	hw := g.op("Slice", nil, shape, g.ints(2), g.ints(9223372036854775807), g.ints(0))
	double := g.op("Mul", nil, hw, g.ints(2))
	sizes := g.op("Concat", []ssa.Attr{Axis(0)}, g.op("Slice", nil, shape, g.ints(0), g.ints(2)), double)
	y := g.op("Resize", nil, x, nil, nil, sizes)
	g.want(y, "Float(N, C, 2*H, 2*W)")
	w := g.input(tensor.Float32, "8", "C", "3", "3")
	conv := g.op("Conv", []ssa.Attr{Pads(1, 1, 1, 1), Strides(2, 2)}, x, w)
	g.want(conv, "Float(N, 8, ((H + 1) // 2), ((W + 1) // 2))")
	g.want(g.op("Conv", []ssa.Attr{Pads(1, 1, 1, 1)}, x, w), "Float(N, 8, H, W)")
	half := g.op("Div", nil, double, g.ints(2))
	g.want(g.op("ConstantOfShape", nil, half), "Float(H, W)")
	g.want(g.op("Add", nil, x, g.input(tensor.Float32, "1", "W")), "Float(N, C, H, W)")
	g.want(g.op("Slice", nil, x, g.ints(1), g.ints(-1), g.ints(3)), "Float(N, C, H, max(0, W - 2))")
	total := g.op("ReduceProd", []ssa.Attr{KeepDims(false)}, hw)
	g.want(g.op("Range", nil, g.op("Sub", nil, total, total), total, g.op("Div", nil, g.ints(1), g.ints(1))), "Long(H*W)")
	g.want(g.op("Where", nil, g.op("Equal", nil, flat, g.ints(-1)), g.ints(1, 1), flat), "Long(2)")
	g.want(g.op("Expand", nil, g.input(tensor.Float32, "1"), g.op("Where", nil, g.op("Equal", nil, flat, g.ints(-1)), g.ints(1, 1), flat)), "Float(N, 1)")
	nz := g.op("NonZero", nil, x)
	before := nz.Type.String()
	g.inferred(nz.Def())
	g.want(nz, before)
}

// TestErrors lists programs that cannot run.
func TestErrors(t *testing.T) {
	g := newGraph(t)
	x := g.input(tensor.Float32, "2", "3")
	for _, c := range []struct {
		kind  string
		attrs []ssa.Attr
		in    []*ssa.Value
	}{
		{"Add", nil, []*ssa.Value{x, g.input(tensor.Float32, "2")}},
		{"MatMul", nil, []*ssa.Value{x, x}},
		{"Reshape", nil, []*ssa.Value{x, g.ints(4, -1)}},
		{"Reshape", nil, []*ssa.Value{x, g.ints(5)}},
		{"Transpose", []ssa.Attr{Perm(0, 0)}, []*ssa.Value{x}},
		{"Concat", []ssa.Attr{Axis(2)}, []*ssa.Value{x, x}},
		{"Einsum", []ssa.Attr{attr("equation", ssa.Str("ij,jk"))}, []*ssa.Value{x}},
		{"Squeeze", nil, []*ssa.Value{x, g.ints(0)}},
		{"Add", nil, []*ssa.Value{x, nil}},
		{"Nonsense", nil, []*ssa.Value{x}},
	} {
		o := g.f.Body.Append(ssa.Kind("onnx::"+c.kind), 0, c.in, ssa.AnyTensor)
		o.Attrs = c.attrs
		if err := Infer(o); err == nil {
			t.Errorf("%s gives %v, want an error", c.kind, o.Results[0].Type)
		}
	}
}

// TestLoop checks that sizes that grow in a loop become symbols, and others stay.
func TestLoop(t *testing.T) {
	g := newGraph(t)
	x, y := g.input(tensor.Float32, "N", "3"), g.input(tensor.Float32, "2", "3")
	trips := g.op("Squeeze", nil, g.op("Shape", []ssa.Attr{End(1)}, x))
	o := g.f.Body.Append("onnx::Loop", 0, []*ssa.Value{trips, nil, x}, ssa.AnyTensor, ssa.AnyTensor)
	b := o.AddBlock()
	b.AddParam("i", ssa.AnyTensor)
	cond := b.AddParam("c", ssa.AnyTensor)
	v := b.AddParam("v", ssa.AnyTensor)
	cat := b.Append("onnx::Concat", 0, []*ssa.Value{v, y}, ssa.AnyTensor)
	cat.SetAttr("axis", ssa.Int(0))
	b.SetReturns(cond, cat.Results[0], y)
	g.inferred(o)
	if got := o.Results[0].Tensor(); got.Rank() != 2 || got.Dims[0].IsConst() || got.Dims[0].String() == "N" || !got.Dims[1].Is(3) {
		t.Errorf("carried value: %v", got)
	}
	if got := o.Results[1].Type.String(); got != "Float(N, 2, 3)" {
		t.Errorf("scan output: %v", got)
	}
	first := o.Results[0].Type
	g.inferred(o)
	if !ssa.SameType(first, o.Results[0].Type) {
		t.Errorf("inferred again: %v, was %v", o.Results[0].Type, first)
	}
}
