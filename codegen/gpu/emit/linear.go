package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/approx"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// emitLinearAttention goes along the tokens with a state for each head, a thread for each of its columns: S = decay S + k (v - S k),
// y = scale q S. The state is in double, as the interpreter's is.
func emitLinearAttention(w *writer) {
	w.wants(3, 3, 3, 4, 3, 3)
	q, k, v := w.in(0), w.in(1), w.in(2)
	y, last := w.o.Results[0], w.o.Results[1]
	heads, groups := w.int("q_num_heads"), w.int("kv_num_heads")
	if heads < 1 || groups < 1 || heads%groups != 0 {
		refuse("%d and %d heads", heads, groups)
	}
	part := func(e sym.Expr) sym.Expr {
		n, ok := e.Divide(sym.Const(groups))
		if !ok {
			refuse("%s numbers in %d heads", e, groups)
		}
		return n
	}
	dk, dv := part(shapeOf(k)[2]), part(shapeOf(v)[2])
	batch, tokens := shapeOf(q)[0], shapeOf(q)[1]
	rule := w.str("update_rule")
	gated, delta := rule == "gated" || rule == "gated_delta", rule == "delta" || rule == "gated_delta"
	var decayWidth sym.Expr
	if w.in(4) != nil {
		decayWidth = part(shapeOf(w.in(4))[2])
	}
	state := scratch(tensor.Float64, batch, sym.Const(groups), dk, dv)
	columns := []sym.Expr{batch, sym.Const(groups), dv}
	w.scattered(index.Prod(columns), func(c *body, _ value) {
		b := c.b
		at := c.space.Unravel(columns, c.space.Dim(0))
		number, head, column := at[0], at[1], at[2]
		s := c.mem(state, true)
		num := func(x float64) value { return b.Float(kir.F64, x) }
		sizes, dims := len(c.space.Sizes), len(c.dims)
		wide := func(i int, coords ...index.Expr) value {
			return convert(b, c.at(w.in(i), coords), dtype(w.in(i)), tensor.Float64)
		}
		place := func(d value) value { // of element d of the column
			return c.lower(c.space.Linear(shapeOf(state), []index.Expr{number, head, c.dim(d, dk), column}))
		}
		// rows goes through the column
		rows := func(carried []value, f func(d index.Expr, at value, x []value) []value) []value {
			return b.For(b.I32(0), b.Size(dk), b.I32(1), carried, func(d value, x []value) []value {
				out := f(c.dim(d, dk), place(d), x)
				c.space.Sizes, c.dims = c.space.Sizes[:sizes+1], c.dims[:dims+1] // the token stays
				return out
			})
		}
		of := func(width sym.Expr, d index.Expr) index.Expr { return c.space.Add(c.space.Scale(head, width), d) }
		was := c.guarded
		c.guarded = true
		c.dim(b.I32(0), tokens)
		rows(nil, func(d index.Expr, at value, _ []value) []value {
			first := num(0)
			if w.in(3) != nil {
				first = wide(3, number, head, d, column)
			}
			b.Store(s, at, first)
			return nil
		})
		c.space.Sizes, c.dims = c.space.Sizes[:sizes], c.dims[:dims]
		scale := num(w.float("scale"))
		if w.float("scale") == 0 {
			scale = b.Div(num(1), b.Unary(kir.Sqrt, b.Convert(kir.SToF, b.Size(dk), kir.F64)))
		}
		b.For(b.I32(0), b.Size(tokens), b.I32(1), nil, func(token value, _ []value) []value {
			t := c.dim(token, tokens)
			if gated && w.in(4) != nil {
				rows(nil, func(d index.Expr, at value, _ []value) []value {
					g := wide(4, number, t, of(decayWidth, c.space.Mod(d, decayWidth)))
					b.Store(s, at, b.Mul(b.Load(s, at), approx.Exp(b, g)))
					return nil
				})
			}
			value_ := wide(2, number, t, of(dv, column))
			if delta {
				seen := rows([]value{num(0)}, func(d index.Expr, at value, x []value) []value {
					return []value{b.Fma(b.Load(s, at), wide(1, number, t, of(dk, d)), x[0])}
				})[0]
				value_ = b.Sub(value_, seen)
				if w.in(5) != nil {
					width := shapeOf(w.in(5))[2]
					value_ = b.Mul(wide(5, number, t, c.space.Mod(head, width)), value_)
				}
			}
			rows(nil, func(d index.Expr, at value, _ []value) []value {
				b.Store(s, at, b.Fma(wide(1, number, t, of(dk, d)), value_, b.Load(s, at)))
				return nil
			})
			for g := range heads / groups {
				head := c.space.Add(c.space.Scale(head, sym.Const(heads/groups)), index.Int(g))
				sum := rows([]value{num(0)}, func(d index.Expr, at value, x []value) []value {
					query := wide(0, number, t, c.space.Add(c.space.Scale(head, dk), d))
					return []value{b.Fma(query, b.Load(s, at), x[0])}
				})[0]
				to := []index.Expr{number, t, c.space.Add(c.space.Scale(head, dv), column)}
				c.store(y, c.lower(c.space.Linear(shapeOf(y), to)), single(b, b.Mul(sum, scale), dtype(y)))
			}
			c.space.Sizes, c.dims = c.space.Sizes[:sizes], c.dims[:dims]
			return nil
		})
		if last.HasUses() {
			c.dim(b.I32(0), tokens)
			rows(nil, func(d index.Expr, at value, _ []value) []value {
				to := c.lower(c.space.Linear(shapeOf(last), []index.Expr{number, head, d, column}))
				c.store(last, to, single(b, b.Load(s, at), dtype(last)))
				return nil
			})
		}
		c.space.Sizes, c.dims = c.space.Sizes[:sizes], c.dims[:dims]
		c.guarded = was
	})
}

// single brings a double to where elements of a type are computed; halves are rounded by way of float32, as the interpreter does.
func single(b *kir.Builder, v value, d tensor.DType) value {
	if d == tensor.Float64 {
		return v
	}
	return b.Convert(kir.Round, v, kir.F32)
}

// maxRoiPool is the greatest element of a cell of a region, whose edges are rounded to whole pixels.
func maxRoiPool(p *point) value {
	p.wants(4, 2)
	b, x, rois := p.b, p.in(0), p.in(1)
	size := p.ints("pooled_shape")
	if !dtype(x).IsFloat() || len(size) != 2 {
		refuse("elements of type %s, cells %v", dtype(x), size)
	}
	num := func(v float64) value { return b.Float(kir.F64, v) }
	float := func(v value) value { return b.Convert(kir.SToF, v, kir.F64) }
	round := func(v value) value { // halves away from zero
		whole := b.Unary(kir.Trunc, v)
		away := b.Compare(kir.Le, num(0.5), b.Unary(kir.Abs, b.Sub(v, whole)))
		return b.Add(whole, b.Select(away, b.Select(b.Lt(v, num(0)), num(-1), num(1)), num(0)))
	}
	edge := func(k int64) value {
		v := convert(b, p.at(rois, []index.Expr{p.coords[0], index.Int(k)}), dtype(rois), tensor.Float64)
		if k == 0 {
			return v
		}
		return round(b.Mul(v, num(p.float("spatial_scale"))))
	}
	type span struct{ from, to value }
	var cells []span // y, x
	for k := range 2 {
		start := edge(int64(2 - k))
		extent := b.Add(b.Sub(edge(int64(4-k)), start), num(1))
		extent = b.Select(b.Lt(extent, num(1)), num(1), extent)
		cell := b.Div(extent, num(float64(size[k])))
		n := float(b.Size(shapeOf(x)[2+k]))
		limit := func(v value) value {
			v = b.Select(b.Lt(v, num(0)), num(0), b.Select(b.Lt(n, v), n, v))
			return b.Convert(kir.FToS, b.Select(b.IsNaN(v), num(0), v), kir.I32)
		}
		at := float(p.lower(p.coords[2+k]))
		cells = append(cells, span{limit(b.Add(b.Unary(kir.Floor, b.Mul(at, cell)), start)), limit(b.Add(b.Unary(kir.Ceil, b.Mul(b.Add(at, num(1)), cell)), start))})
	}
	batch := edge(0)
	number := p.dim(b.Convert(kir.FToS, b.Select(b.Lt(b.Unary(kir.Abs, batch), num(math.MaxInt32)), batch, num(-1)), kir.I32), shapeOf(x)[0])
	if shapeOf(x)[0].Is(1) { // the only image, but the number may be wrong
		p.space.Sizes[len(p.space.Sizes)-1] = sym.Const(2)
		number = p.space.Dim(len(p.dims) - 1)
	}
	was := p.guarded
	p.guarded = true
	defer func() { p.guarded = was }()
	sizes, dims := len(p.space.Sizes), len(p.dims)
	zero := b.Float(regType(dtype(x)), 0)
	best := b.For(cells[0].from, cells[0].to, b.I32(1), []value{zero, b.Int(kir.I1, 0)}, func(i value, c []value) []value {
		return b.For(cells[1].from, cells[1].to, b.I32(1), c, func(j value, c []value) []value {
			v := p.at(x, []index.Expr{number, p.coords[1], p.dim(i, shapeOf(x)[2]), p.dim(j, shapeOf(x)[3])})
			p.space.Sizes, p.dims = p.space.Sizes[:sizes], p.dims[:dims]
			return []value{b.Select(b.Or(b.Not(c[1]), b.Lt(c[0], v)), v, c[0]), b.Int(kir.I1, 1)}
		})
	})[0]
	return best
}
