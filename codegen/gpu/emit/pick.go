package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// pickOf finds how the operators compute an element that are neither elementwise nor views: they pick by data, by place,
// or make elements from nothing.
func pickOf(name string) func(p *point) value {
	switch name {
	case "Gather":
		return gather
	case "GatherElements":
		return gatherElements
	case "GatherND":
		return gatherND
	case "ScatterElements":
		return scatterElements
	case "ScatterND":
		return scatterND
	case "Pad":
		return pad
	case "Trilu":
		return trilu
	case "EyeLike":
		return eyeLike
	case "OneHot":
		return oneHot
	case "Range":
		return rangeElement
	case "ConstantOfShape":
		return constantOfShape
	case "ReverseSequence":
		return reverseSequence
	case "BatchNormalization":
		return batchNorm
	case "LRN":
		return lrn
	case "Resize":
		return resize
	case "GridSample":
		return gridSample
	case "Concat":
		return concat
	case "Einsum":
		return einsum
	case "RotaryEmbedding":
		return rotary
	case "RoiAlign":
		return roiAlign
	case "MaxRoiPool":
		return maxRoiPool
	case "QuantizeLinear":
		return quantize
	case "DequantizeLinear":
		return dequantize
	case "HannWindow", "HammingWindow", "BlackmanWindow":
		return windowElement
	}
	return nil
}

// index reads an index from a tensor of them; negative ones count from the end. One that is out of range leads out of the
// buffer, where the simulator stops with the place.
func (p *point) index(i int, coords []index.Expr, n sym.Expr) index.Expr {
	b := p.b
	v := p.number(i)
	if v == nil {
		v = p.at(p.in(i), coords)
	}
	if v.Type == kir.I64 {
		v = b.Convert(kir.Narrow, v, kir.I32)
	}
	v = b.Select(b.Lt(v, b.I32(0)), b.Add(v, b.Size(n)), v)
	if n.Is(1) { // a coordinate of an axis of size 1 is 0 everywhere, but the index may be wrong
		p.space.Sizes = append(p.space.Sizes, sym.Const(2))
		p.dims = append(p.dims, v)
		return p.space.Dim(len(p.dims) - 1)
	}
	return p.dim(v, n)
}

// number is the only element of an operand that is known at the launch, as an i32, or nil.
func (p *point) number(i int) value {
	if s, ok := onnx.SymOf(p.in(i)); ok && len(s) == 1 {
		return p.b.Size(s[0])
	}
	return nil
}

func gather(p *point) value {
	x, ix := p.in(0), p.in(1)
	k := p.axis(p.int("axis"), rank(x))
	r := rank(ix)
	at := p.index(1, p.coords[k:k+r], shapeOf(x)[k])
	coords := append([]index.Expr(nil), p.coords[:k]...)
	coords = append(append(coords, at), p.coords[k+r:]...)
	return p.at(x, coords)
}

func gatherElements(p *point) value {
	x := p.in(0)
	k := p.axis(p.int("axis"), rank(x))
	coords := append([]index.Expr(nil), p.coords...)
	coords[k] = p.index(1, p.coords, shapeOf(x)[k])
	return p.at(x, coords)
}

func gatherND(p *point) value {
	x, ix := p.in(0), p.in(1)
	batch, r := int(p.int("batch_dims")), rank(ix)-1
	if r < 0 || batch > min(r, rank(x)) {
		refuse("the indices have too few dimensions")
	}
	m, ok := shapeOf(ix)[r].Int()
	if !ok {
		refuse("the number of coordinates depends on the run")
	}
	if m > int64(rank(x)-batch) {
		refuse("an index has more coordinates than the tensor has dimensions")
	}
	coords := append([]index.Expr(nil), p.coords[:batch]...)
	for j := range m {
		from := append(append([]index.Expr(nil), p.coords[:r]...), index.Int(j))
		coords = append(coords, p.index(1, from, shapeOf(x)[batch+int(j)]))
	}
	return p.at(x, append(coords, p.coords[r:]...))
}

// inside is 0 <= v < n.
func inside(b *kir.Builder, v, n value) value { return b.Compare(kir.ULt, v, n) }

// when computes f where cond holds, else gives other.
func (c *body) when(cond, other value, f func() value) value {
	was := c.guarded
	c.guarded = true
	v := c.b.If(cond, func() []value { return []value{f()} }, func() []value { return []value{other} })
	c.guarded = was
	return v[0]
}

func pad(p *point) value {
	b, x := p.b, p.in(0)
	shape, r := shapeOf(x), rank(x)
	pads := p.sizes(1)
	axes := make([]int64, r)
	for i := range axes {
		axes[i] = int64(i)
	}
	if p.in(3) != nil {
		axes = p.consts(3)
	}
	mode := p.str("mode")
	coords := append([]index.Expr(nil), p.coords...)
	ok := b.Int(kir.I1, 1)
	for i, a := range axes {
		k := p.axis(a, r)
		if pads[i].Is(0) && pads[i+len(axes)].Is(0) {
			continue
		}
		n := b.Size(shape[k])
		at := b.Sub(p.lower(p.coords[k]), b.Size(pads[i]))
		switch mode {
		case "edge":
			last := b.Sub(n, b.I32(1))
			at = b.Select(b.Lt(at, b.I32(0)), b.I32(0), b.Select(b.Lt(last, at), last, at))
		case "reflect":
			// back and forth with the period 2(n-1), of one element to the only one
			period := b.Size(shape[k].Sub(sym.Const(1)).Mul(sym.Const(2)).Max(sym.Const(1)))
			at = b.Binary(kir.Rem, at, period)
			at = b.Select(b.Lt(at, b.I32(0)), b.Add(at, period), at)
			at = b.Select(b.Lt(at, n), at, b.Sub(period, at))
		case "wrap":
			at = b.Binary(kir.Rem, at, n)
			at = b.Select(b.Lt(at, b.I32(0)), b.Add(at, n), at)
		default:
			ok = b.And(inside(b, at, n), ok)
		}
		coords[k] = p.dim(at, shape[k])
		if shape[k].Is(1) {
			coords[k] = index.Expr{}
		}
	}
	var other value
	if t := regType(dtype(x)); p.in(2) != nil {
		other = p.at(p.in(2), make([]index.Expr, rank(p.in(2))))
	} else if t.IsFloat() {
		other = b.Float(t, 0)
	} else {
		other = b.Int(t, 0)
	}
	return p.when(ok, other, func() value { return p.at(x, coords) })
}

func trilu(p *point) value {
	b, r := p.b, len(p.coords)
	k := b.I32(0)
	if p.in(1) != nil {
		k = b.Size(p.sizes(1)[0])
	}
	row, col := p.lower(p.coords[r-2]), p.lower(p.coords[r-1])
	keep := b.Compare(kir.Le, b.Add(row, k), col)
	if p.int("upper") == 0 {
		keep = b.Compare(kir.Le, col, b.Add(row, k))
	}
	return b.Select(keep, p.at(p.in(0), p.coords), b.Num(regType(dtype(p.in(0))), 0))
}

func eyeLike(p *point) value {
	b := p.b
	d := dtype(p.o.Results[0])
	on := b.Eq(b.Add(p.lower(p.coords[0]), b.I32(p.int("k"))), p.lower(p.coords[1]))
	return convert(b, on, tensor.Bool, d)
}

func oneHot(p *point) value {
	b, ix := p.b, p.in(0)
	k := p.axis(p.int("axis"), rank(ix)+1)
	rest := append(append([]index.Expr(nil), p.coords[:k]...), p.coords[k+1:]...)
	v := convert(b, p.at(ix, rest), dtype(ix), tensor.Int64)
	depth := shapeOf(p.o.Results[0])[k]
	v = b.Select(b.Lt(v, b.Int(kir.I64, 0)), b.Add(v, b.Convert(kir.SExt, b.Size(depth), kir.I64)), v)
	on := b.Eq(v, b.Convert(kir.SExt, p.lower(p.coords[k]), kir.I64))
	return b.Select(on, p.at(p.in(2), []index.Expr{index.Int(1)}), p.at(p.in(2), []index.Expr{index.Int(0)}))
}

func rangeElement(p *point) value {
	b, d := p.b, dtype(p.in(0))
	t := regType(d)
	i := p.lower(p.coords[0])
	operand := func(k int) value {
		if d.IsInt() {
			if v, ok := onnx.SymOf(p.in(k)); ok {
				return b.Convert(kir.SExt, b.Size(v[0]), t)
			}
		}
		return p.at(p.in(k), make([]index.Expr, rank(p.in(k))))
	}
	start, step := operand(0), operand(2)
	if t.IsFloat() { // each element from the start, in double: rounded once
		wide := func(v value) value { return b.Convert(kir.Widen, v, kir.F64) }
		v := b.Add(wide(start), b.Mul(b.Convert(kir.SToF, i, kir.F64), wide(step)))
		return b.Convert(kir.Round, v, t)
	}
	return b.Add(start, b.Mul(b.Convert(kir.SExt, i, t), step))
}

func constantOfShape(p *point) value {
	if t := p.attr("value").Tensor; t != nil {
		if t.NumElements() != 1 {
			refuse("a value of %d elements", t.NumElements())
		}
		return literal(p.b, t)
	}
	return p.b.Num(regType(dtype(p.o.Results[0])), 0)
}

func reverseSequence(p *point) value {
	b, x := p.b, p.in(0)
	batch, time := p.axis(p.int("batch_axis"), rank(x)), p.axis(p.int("time_axis"), rank(x))
	n := b.Convert(kir.Narrow, p.at(p.in(1), []index.Expr{p.coords[batch]}), kir.I32)
	t := p.lower(p.coords[time])
	coords := append([]index.Expr(nil), p.coords...)
	coords[time] = p.dim(b.Select(b.Lt(t, n), b.Sub(b.Sub(n, b.I32(1)), t), t), shapeOf(x)[time])
	return p.at(x, coords)
}

// batchNorm is the inference form: (x - mean) / sqrt(var + epsilon) * scale + bias.
func batchNorm(p *point) value {
	if p.int("training_mode") != 0 || p.out > 0 {
		refuse("training")
	}
	b, t := p.b, regType(dtype(p.in(0)))
	ch := []index.Expr{{}}
	if len(p.coords) > 1 {
		ch[0] = p.coords[1]
	}
	at := func(i int) value { return widenTo(b, p.at(p.in(i), ch), t) }
	scale := b.Div(at(1), b.Unary(kir.Sqrt, b.Add(at(4), b.Float(t, p.float("epsilon")))))
	return b.Fma(b.Sub(p.at(p.in(0), p.coords), at(3)), scale, at(2))
}

// widenTo brings statistics to the type of the data.
func widenTo(b *kir.Builder, v value, t kir.Type) value {
	if v.Type == kir.F32 && t == kir.F64 {
		return b.Convert(kir.Widen, v, t)
	}
	if v.Type != t {
		refuse("operands of types %s and %s", v.Type, t)
	}
	return v
}

// lrn sums the squares of the neighbouring channels.
func lrn(p *point) value {
	b, x := p.b, p.in(0)
	t := regType(dtype(x))
	if !dtype(x).IsFloat() {
		refuse("elements of type %s", dtype(x))
	}
	size := p.int("size")
	channels := b.Size(shapeOf(x)[1])
	ch := p.lower(p.coords[1])
	sum := b.Float(t, 0)
	for d := -((size - 1) / 2); d <= size/2; d++ {
		at := b.Add(ch, b.I32(d))
		v := p.when(inside(b, at, channels), b.Float(t, 0), func() value {
			coords := append([]index.Expr(nil), p.coords...)
			coords[1] = p.dim(at, shapeOf(x)[1])
			return p.at(x, coords)
		})
		sum = b.Fma(v, v, sum)
	}
	scale := b.Fma(sum, b.Float(t, p.float("alpha")/float64(size)), b.Float(t, p.float("bias")))
	power := &scalarPoint{p, dtype(x), t}
	return b.Div(p.at(x, p.coords), power.power([]value{scale, b.Float(t, p.float("beta"))}))
}
