package ptx

import (
	"fmt"
	"math"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/tensor"
)

// immediate is a constant as text.
func immediate(v *kir.Node) operand {
	o := operand{c: classFor[v.Type], imm: true}
	sign := math.Float64bits(v.Float) >> 63
	nan := v.Float != v.Float // any NaN is the quiet one without a payload
	switch v.Type {
	case kir.I1:
		o.text = fmt.Sprint(v.Int & 1)
	case kir.I8:
		o.text = fmt.Sprint(v.Int & 255)
	case kir.F16:
		bits := uint64(0x7e00) | sign<<15
		if !nan {
			bits = uint64(tensor.FloatToHalf(v.Float))
		}
		o.text = fmt.Sprintf("0x%04X", bits)
	case kir.F32:
		bits := uint64(0x7fc00000) | sign<<31
		if !nan {
			bits = uint64(math.Float32bits(float32(v.Float)))
		}
		o.text = fmt.Sprintf("0f%08X", bits)
	case kir.F64:
		bits := uint64(0x7ff8000000000000) | sign<<63
		if !nan {
			bits = math.Float64bits(v.Float)
		}
		o.text = fmt.Sprintf("0d%016X", bits)
	default:
		o.text = fmt.Sprint(v.Int)
	}
	return o
}

func number(n int64) operand { return operand{text: fmt.Sprint(n)} }

// operation writes what computes a value, and gives its register.
func (p *printer) operation(v *kir.Node) operand {
	c := classFor[v.Type]
	switch v.Op {
	case kir.ThreadX:
		return p.op(c, "mov.u32", operand{text: "%tid.x"})
	case kir.BlockX, kir.BlockY, kir.BlockZ:
		return p.op(c, "mov.u32", operand{text: "%ctaid." + string('x'+rune(v.Op-kir.BlockX))})
	case kir.Shuffle:
		return p.op(c, "shfl.sync.bfly.b32", p.register(v.Args[0]), number(v.Int), number(31), number(-1))
	case kir.Select:
		return p.choose(v)
	case kir.SExt, kir.ZExt, kir.Narrow, kir.Widen, kir.Round, kir.SToF, kir.UToF, kir.FToS, kir.FToU:
		return p.convert(v)
	case kir.Bitcast:
		return p.bitcast(v)
	case kir.TF32:
		return p.compute(kir.TF32, kir.F32, c, p.register(v.Args[0]))
	case kir.Pack:
		lo, hi := p.register(v.Args[0]), p.register(v.Args[1])
		return p.op(c, "mov.b32", operand{text: list([]operand{lo, hi})})
	}
	if len(v.Args) == 0 {
		p.fail("no operation %s", v.Op)
		return operand{}
	}
	var x []operand
	for _, a := range v.Args {
		x = append(x, p.in(a))
	}
	switch t := v.Args[0].Type; {
	case t == kir.I8:
		return p.small(v.Op, x)
	case t == kir.I1 && (v.Op == kir.Eq || v.Op == kir.Ne):
		d := p.compute(kir.Xor, t, pred, p.held(x[0]), p.held(x[1]))
		if v.Op == kir.Eq {
			d = p.op(pred, "not.pred", d)
		}
		return d
	case t == kir.I1:
		return p.compute(v.Op, t, c, p.held(x[0]), p.held(x[1]))
	case t == kir.F16 && v.Op == kir.Abs:
		return p.compute(kir.And, kir.I16, c, x[0], operand{text: "0x7FFF"})
	case t == kir.F16 && p.viaFloat(v.Op): // rounding what is right in float leaves a right result
		for i := range x {
			x[i] = p.op(f32, "cvt.f32.f16", x[i])
		}
		return p.op(c, "cvt.rn.f16.f32", p.compute(v.Op, kir.F32, f32, x...))
	case v.Op == kir.Shl || v.Op == kir.LShr || v.Op == kir.AShr:
		return p.compute(v.Op, t, c, x[0], p.amount(x[1], t))
	default:
		return p.compute(v.Op, t, c, x...)
	}
}

// viaFloat reports an operation that half lacks.
func (p *printer) viaFloat(op kir.Op) bool {
	switch op {
	case kir.Div, kir.Sqrt, kir.Floor, kir.Ceil, kir.Trunc, kir.Rint:
		return true
	}
	return false
}

// amount is how far to shift, in 32 bits.
func (p *printer) amount(x operand, t kir.Type) operand {
	if x.imm || t == kir.I32 {
		return x
	}
	return p.op(b32, fmt.Sprintf("cvt.u32.u%d", max(8*t.Size(), 16)), x)
}

// signed is an i8 with its sign in the upper byte.
func (p *printer) signed(x operand) operand { return p.op(b16, "cvt.s16.s8", p.held(x)) }

// cut drops the upper byte.
func (p *printer) cut(x operand) operand { return p.compute(kir.And, kir.I16, b16, x, number(255)) }

// small writes an operation on i8, in 16 bits.
func (p *printer) small(op kir.Op, x []operand) operand {
	switch op {
	case kir.Eq, kir.Ne, kir.ULt, kir.ULe:
		return p.compute(op, kir.I16, pred, x...)
	case kir.Lt, kir.Le:
		return p.compute(op, kir.I16, pred, p.signed(x[0]), p.signed(x[1]))
	case kir.Div, kir.Rem:
		return p.cut(p.compute(op, kir.I16, b16, p.signed(x[0]), p.signed(x[1])))
	case kir.AShr:
		return p.cut(p.compute(op, kir.I16, b16, p.signed(x[0]), p.amount(x[1], kir.I8)))
	case kir.Shl:
		return p.cut(p.compute(op, kir.I16, b16, x[0], p.amount(x[1], kir.I8)))
	case kir.LShr:
		return p.compute(op, kir.I16, b16, x[0], p.amount(x[1], kir.I8))
	case kir.And, kir.Or, kir.Xor, kir.UDiv, kir.URem: // leave the upper byte zero
		return p.compute(op, kir.I16, b16, x...)
	}
	return p.cut(p.compute(op, kir.I16, b16, x...))
}

func (p *printer) choose(v *kir.Node) operand {
	c, t := p.register(v.Args[0]), v.Type
	x, y := p.in(v.Args[1]), p.in(v.Args[2])
	switch t {
	case kir.I1:
		yes := p.compute(kir.And, t, pred, c, p.held(x))
		no := p.compute(kir.And, t, pred, p.op(pred, "not.pred", c), p.held(y))
		return p.compute(kir.Or, t, pred, yes, no)
	case kir.I8, kir.F16: // their bits
		t = kir.I16
	}
	return p.compute(kir.Select, t, classFor[t], x, y, c)
}

// convert writes a conversion.
func (p *printer) convert(v *kir.Node) operand {
	from, to, c := v.Args[0].Type, v.Type, classFor[v.Type]
	n, m := 8*from.Size(), 8*to.Size()
	x := p.register(v.Args[0])
	sign := "u"
	if v.Op == kir.SExt || v.Op == kir.SToF || v.Op == kir.FToS {
		sign = "s"
	}
	switch {
	case from == kir.I1:
		return p.fromBool(v, x, sign == "s")
	case to == kir.I1 && v.Op == kir.Narrow:
		t := from
		if t == kir.I8 {
			t = kir.I16
		}
		return p.compute(kir.Ne, t, pred, p.compute(kir.And, t, classFor[t], x, number(1)), number(0))
	case to == kir.I1:
		p.fail("%s to i1", v.Op)
		return operand{}
	case v.Op == kir.Widen:
		return p.op(c, fmt.Sprintf("cvt.f%d.f%d", m, n), x)
	case v.Op == kir.Round:
		return p.op(c, fmt.Sprintf("cvt.rn.f%d.f%d", m, n), x)
	case from.IsFloat():
		d := p.op(c, fmt.Sprintf("cvt.rzi.%s%d.f%d", sign, max(m, 16), n), x)
		if to == kir.I8 {
			d = p.cut(d)
		}
		return d
	case to.IsFloat():
		return p.op(c, fmt.Sprintf("cvt.rn.f%d.%s%d", m, sign, n), x)
	case to == kir.I8:
		if n > 16 {
			x = p.op(b16, fmt.Sprintf("cvt.u16.u%d", n), x)
		}
		return p.cut(x)
	case m < n:
		return p.op(c, fmt.Sprintf("cvt.u%d.u%d", m, n), x)
	case n == 8 && sign == "u" && m == 16:
		return x
	case n == 8 && sign == "u":
		n = 16
	}
	return p.op(c, fmt.Sprintf("cvt.%s%d.%s%d", sign, m, sign, n), x)
}

// fromBool writes a conversion of a predicate, which is 0 or 1, with a sign 0 or -1.
func (p *printer) fromBool(v *kir.Node, x operand, signed bool) operand {
	one := number(1)
	if signed {
		one = number(-1)
	}
	switch {
	case v.Type.IsFloat():
		return p.op(classFor[v.Type], fmt.Sprintf("cvt.rn.f%d.s32", 8*v.Type.Size()), p.compute(kir.Select, kir.I32, b32, one, number(0), x))
	case v.Type == kir.I8 && signed:
		one = number(255)
	}
	t := v.Type
	if t == kir.I8 {
		t = kir.I16
	}
	return p.compute(kir.Select, t, classFor[t], one, number(0), x)
}

// bitcast gives a register of the other class; within one, values share a register.
func (p *printer) bitcast(v *kir.Node) operand {
	from, to := v.Args[0].Type, v.Type
	if from.Size() != to.Size() || from == kir.I1 || to == kir.I1 {
		p.fail("bitcast from %s to %s", from, to)
		return operand{}
	}
	x := p.in(v.Args[0])
	if x.c == classFor[to] && !x.imm {
		return x
	}
	return p.op(classFor[to], fmt.Sprintf("mov.b%d", max(8*to.Size(), 16)), x)
}
