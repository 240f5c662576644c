package prove

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// defined replaces operators in a term by what they are made of, where the solver is weak on them or does not know them: remainders are made
// of the quotient or of the remainder with the sign of the dividend, Shrink of comparisons. The kernels compute the same, which a test compares.
func (ts *terms) defined(t *Term, done map[*Term]*Term) *Term {
	if t.Func == "" {
		return t
	}
	if d := done[t]; d != nil {
		return d
	}
	args := make([]*Term, len(t.Args))
	for i, a := range t.Args {
		args[i] = ts.defined(a, done)
	}
	out := ts.definition(t, args)
	if out == nil {
		out = ts.apply(t.Func, t.DType, t.Attrs, args...)
	}
	done[t] = out
	return out
}

// castTo are the attributes of a conversion.
func castTo(d tensor.DType) []ssa.Attr {
	return append(attrsOf("onnx::Cast", nil, "to"), ssa.Attr{Name: "to", Value: ssa.Int(int64(d.ONNX()))})
}

// number is a constant of an element type.
func (ts *terms) number(d tensor.DType, v float64) *Term {
	return ts.constant(tensor.FromFloats(d, []int64{}, []float64{v}))
}

func (ts *terms) definition(t *Term, x []*Term) *Term {
	d := t.DType
	to := func(d tensor.DType, x *Term) *Term {
		return ts.apply("Cast", d, castTo(d), x)
	}
	is := func(name string, a, b *Term) *Term { return ts.apply(name, tensor.Bool, nil, a, b) }
	choose := func(c, a, b *Term) *Term { return ts.apply("Where", a.DType, nil, c, a, b) }
	do := func(name string, a, b *Term) *Term { return ts.apply(name, a.DType, nil, a, b) }
	switch {
	case t.Func == "Mod" && d.IsInt() && d.Size() > 0 && x[1].Value == nil:
		a, b, zero := x[0], x[1], ts.zero(d)
		r := do("Sub", a, do("Mul", b, do("Div", a, b)))
		y := r
		if attrInt(t, "fmod") == 0 && d.IsSigned() {
			apart := ts.apply("Or", tensor.Bool, nil,
				ts.apply("And", tensor.Bool, nil, is("Less", r, zero), is("Greater", b, zero)),
				ts.apply("And", tensor.Bool, nil, is("Greater", r, zero), is("Less", b, zero)))
			y = do("Add", r, do("Mul", b, to(d, apart)))
		}
		return choose(is("Equal", b, zero), zero, y)
	case t.Func == "Mod" && d.IsFloat() && attrInt(t, "fmod") == 0:
		a, b := x[0], x[1]
		if d == tensor.Float16 || d == tensor.BFloat16 { // whose remainders are exact
			a, b = to(tensor.Float32, a), to(tensor.Float32, b)
		}
		zero := ts.zero(a.DType)
		r := ts.apply("Mod", a.DType, []ssa.Attr{{Name: "fmod", Value: ssa.Int(1)}}, a, b)
		below := is("Less", b, zero)
		none := choose(below, ts.number(a.DType, math.Copysign(0, -1)), zero)
		return to(d, choose(is("Equal", r, zero), none, choose(is("Xor", is("Less", r, zero), below), do("Add", r, b), r)))
	case t.Func == "Shrink" && (d.IsFloat() || d.IsInt()):
		bias, bound := attrOf(t, "bias").Float(), attrOf(t, "lambd").Float()
		v := x[0]
		switch {
		case d == tensor.Float16 || d == tensor.BFloat16:
			v = to(tensor.Float32, v)
		case d.IsInt():
			v = to(tensor.Float64, v)
		}
		y := choose(is("Greater", v, ts.number(v.DType, bound)), do("Sub", v, ts.number(v.DType, bias)), ts.zero(v.DType))
		return to(d, choose(is("Less", v, ts.number(v.DType, -bound)), do("Add", v, ts.number(v.DType, bias)), y))
	}
	return nil
}
