package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Products of integers of 8 bits less their zero points, in int32, which wraps. Tensor cores multiply them as they are:
//
//	sum (a-za) (b-zb) = sum ab - za sum b - zb sum a + k za zb
//
// and also give the sums of rows and columns, as products by ones. Other kernels subtract where they read.

// eight gives the format of factors of 8 bits.
func eight(x, y *ssa.Value) *kir.Format {
	f, ok := map[[2]tensor.DType]kir.Format{{tensor.Int8, tensor.Int8}: kir.S8, {tensor.Int8, tensor.Uint8}: kir.S8U8,
		{tensor.Uint8, tensor.Int8}: kir.U8S8, {tensor.Uint8, tensor.Uint8}: kir.U8}[[2]tensor.DType{dtype(x), dtype(y)}]
	if !ok {
		refuse("elements of type %s by %s", dtype(x), dtype(y))
	}
	return &f
}

// zeroPoint reads the zero point z of an operand at coordinates, of which that of axis k does not count: one for all, one for each row or column, or one for
// each of all other axes. It is nil if there is none, or only zeros.
func zeroPoint(z, operand *ssa.Value, k int, coords func(c *body) []index.Expr) func(c *body) value {
	if z == nil || isZero(z) {
		return nil
	}
	zs, shape := shapeOf(z), shapeOf(operand)
	along := 0 // the axis of the operand that the first one of z is
	switch {
	case index.Prod(zs).Is(1):
	case len(zs) == 1 && len(shape) >= 2:
		if along = len(shape) - 2; k == along {
			along++
		}
	case len(zs) != len(shape) || !zs[k].Is(1):
		refuse("zero points of shape %v for an operand of shape %v", zs, shape)
	}
	for i, n := range zs {
		if !n.Is(1) && !n.Equal(shape[along+i]) {
			refuse("zero points of shape %v for an operand of shape %v", zs, shape)
		}
	}
	return func(c *body) value {
		at := make([]index.Expr, len(zs))
		for i, n := range zs {
			if !n.Is(1) {
				at[i] = coords(c)[along+i]
			}
		}
		return c.at(z, at)
	}
}

// isZero reports a constant of zeros.
func isZero(v *ssa.Value) bool {
	t := onnx.ConstOf(v)
	if t == nil || !t.HasData() {
		return false
	}
	for _, x := range t.Int64s() {
		if x != 0 {
			return false
		}
	}
	return true
}

// emitMatMulInteger multiplies matrices of integers of 8 bits.
func emitMatMulInteger(w *writer) {
	x, y := w.in(0), w.in(1)
	p, left, right := w.matMul(x, y)
	p.t, p.factors = kir.I32, eight(x, y)
	p.zeroA = zeroPoint(w.in(2), x, rank(x)-1, func(c *body) []index.Expr { return left(c, index.Expr{}) })
	p.zeroB = zeroPoint(w.in(3), y, max(rank(y)-2, 0), func(c *body) []index.Expr { return right(c, index.Expr{}) })
	w.product(p)
}

// emitConvInteger convolves integers of 8 bits. Beyond the edges stands the zero point of the input.
func emitConvInteger(w *writer) {
	x, weight := w.in(0), w.in(1)
	p, channel := w.conv(x, weight, nil)
	p.t, p.factors = kir.I32, eight(weight, x)
	one := func(z *ssa.Value) bool { return index.Prod(shapeOf(z)).Is(1) }
	if z := w.in(2); z != nil && !one(z) {
		refuse("zero points of shape %v for the input", shapeOf(z))
	}
	p.zeroB = zeroPoint(w.in(2), x, 0, nil)
	switch z := w.in(3); {
	case z == nil || one(z):
		p.zeroA = zeroPoint(z, weight, 1, nil)
	case rank(z) != 1 || !shapeOf(z)[0].Equal(shapeOf(weight)[0]):
		refuse("zero points of shape %v for weights of shape %v", shapeOf(z), shapeOf(weight))
	default:
		p.zeroA = func(c *body) value { return c.at(z, []index.Expr{channel(c)}) }
	}
	w.product(p)
}

// centre subtracts the zero points where the elements are read.
func (p *product) centre() {
	less := func(load, zero func(c *body) value) func(c *body) value {
		if zero == nil {
			return load
		}
		return func(c *body) value { return c.b.Sub(load(c), zero(c)) }
	}
	p.a, p.b = less(p.a, p.zeroA), less(p.b, p.zeroB)
}

// correct makes a sum of products of elements that of elements less their zero points; rows and columns are the sums of the elements, where they are needed.
func (p *product) correct(c *body, sum, row, column value) value {
	b := c.b
	var za, zb value
	if p.zeroA != nil {
		za = p.zeroA(c)
		sum = b.Sub(sum, b.Mul(za, column))
	}
	if p.zeroB != nil {
		zb = p.zeroB(c)
		sum = b.Sub(sum, b.Mul(zb, row))
	}
	if za != nil && zb != nil {
		sum = b.Add(sum, b.Mul(b.Size(p.k), b.Mul(za, zb)))
	}
	return sum
}

// octets joins four numbers of 8 bits, the first one lowest. Those that were read as a word are it.
func octets(b *kir.Builder, v []value) value {
	word := func(x value) (w value, shift int64) { // of what is a part of one
		if (x.Op != kir.SExt && x.Op != kir.ZExt) || x.Args[0].Op != kir.Narrow || x.Args[0].Type != kir.I8 {
			return nil, 0
		}
		switch w = x.Args[0].Args[0]; {
		case w.Op == kir.LShr && w.Args[1].Op == kir.Const:
			return w.Args[0], w.Args[1].Int
		}
		return w, 0
	}
	whole, _ := word(v[0])
	for i, x := range v {
		if w, shift := word(x); w != whole || shift != int64(8*i) {
			whole = nil
		}
	}
	if whole != nil {
		return whole
	}
	sum := value(nil)
	for i, x := range v {
		part := b.And(x, b.I32(0xff))
		if w, shift := word(x); w != nil {
			part = b.And(b.Binary(kir.LShr, w, b.I32(shift)), b.I32(0xff))
		}
		if i == 0 {
			sum = part
		} else {
			sum = b.Or(sum, b.Binary(kir.Shl, part, b.I32(int64(8*i))))
		}
	}
	return sum
}
