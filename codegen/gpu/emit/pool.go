package emit

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/approx"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// pooled starts a kernel with a thread for each window.
func (w *writer) pooled(f func(t *team, g *window, coords []index.Expr)) {
	x, out := w.in(0), shapeOf(w.o.Results[0])
	sx := shapeOf(x)
	kernel := w.ints("kernel_shape")
	if len(kernel) != len(sx)-2 {
		refuse("a kernel of %d axes", len(kernel))
	}
	g := w.window(sx[2:], out[2:], kernel)
	w.teams(index.Prod(out), 1, func(t *team) { f(t, g, t.space.Unravel(out, t.space.Dim(0))) })
}

// taps goes through the places of a window and carries values; f is called for those on the input.
func (t *team) taps(g *window, coords []index.Expr, carried []value, f func(at []index.Expr, c []value) []value) []value {
	b := t.b
	sizes := make([]sym.Expr, len(g.kernel))
	for i, k := range g.kernel {
		sizes[i] = sym.Const(k)
	}
	base := len(t.dims)
	return b.For(b.I32(0), b.Size(index.Prod(sizes)), b.I32(1), carried, func(i value, c []value) []value {
		t.space.Sizes, t.dims = t.space.Sizes[:base], t.dims[:base]
		tap := t.space.Unravel(sizes, t.dim(i, index.Prod(sizes)))
		if index.Prod(sizes).Is(1) {
			tap = make([]index.Expr, len(sizes))
		}
		at := append([]index.Expr(nil), coords[:2]...)
		all := b.Int(kir.I1, 1)
		for k := range g.in {
			p, ok := g.place(t.body, k, coords[2+k], tap[k])
			all = b.And(all, ok)
			at = append(at, t.clamped(p, ok, g.in[k]))
		}
		return b.If(all, func() []value { return f(at, c) }, func() []value { return c })
	})
}

// emitMaxPool finds the greatest element of each window, NaN before any number, and where it stands in the operand.
func emitMaxPool(w *writer) {
	x := w.in(0)
	d := dtype(x)
	columns := w.int("storage_order") != 0
	if d == tensor.Bool || d == tensor.Uint64 {
		refuse("elements of type %s", d)
	}
	places := w.result(1)
	if places != nil && !places.HasUses() {
		places = nil
	}
	w.pooled(func(t *team, g *window, coords []index.Expr) {
		b := t.b
		s := &scalarPoint{&point{body: t.body, node: w.node}, d, regType(d)}
		best := t.taps(g, coords, []value{least(b, s.t, d), b.I32(-1)}, func(at []index.Expr, c []value) []value {
			v := t.at(x, at)
			wins := b.Or(b.Lt(c[1], b.I32(0)), s.less(c[0], v))
			if s.t.IsFloat() {
				wins = b.Or(wins, b.And(b.IsNaN(v), b.Not(b.IsNaN(c[0]))))
			}
			shape := shapeOf(x)
			if columns { // of a plane, the first axis runs fastest
				shape, at = slices.Clone(shape), slices.Clone(at)
				slices.Reverse(shape[2:])
				slices.Reverse(at[2:])
			}
			return []value{b.Select(wins, v, c[0]), b.Select(wins, t.lower(t.space.Linear(shape, at)), c[1])}
		})
		t.store(w.o.Results[0], t.row, best[0])
		if places != nil {
			t.store(places, t.row, b.Convert(kir.SExt, best[1], kir.I64))
		}
	})
}

// emitAveragePool sums each window, or the powers of its elements.
func emitAveragePool(w *writer) {
	x := w.in(0)
	if !dtype(x).IsFloat() {
		refuse("elements of type %s", dtype(x))
	}
	lp, power := w.o.Kind.Name() == "LpPool", w.int("p")
	if lp && power < 1 {
		refuse("p = %d", power)
	}
	padded := w.int("count_include_pad") != 0
	w.pooled(func(t *team, g *window, coords []index.Expr) {
		b, rt := t.b, regType(dtype(x))
		sum := t.taps(g, coords, []value{b.Float(rt, 0), b.I32(0)}, func(at []index.Expr, c []value) []value {
			v := t.at(x, at)
			switch {
			case lp && power == 2:
				v = b.Mul(v, v)
			case lp:
				v = b.Unary(kir.Abs, v)
				for a, n := v, power-1; n > 0; n >>= 1 { // v^power
					if n&1 == 1 {
						v = b.Mul(v, a)
					}
					a = b.Mul(a, a)
				}
			}
			return []value{b.Add(c[0], v), b.Add(c[1], b.I32(1))}
		})
		y := sum[0]
		if lp {
			if power == 2 {
				y = b.Unary(kir.Sqrt, y)
			} else if power > 2 {
				y = convert(b, approx.Pow(b, convert(b, y, inRegisters(rt), tensor.Float64), b.Float(kir.F64, 1/float64(power))), tensor.Float64, inRegisters(rt))
			}
			t.store(w.o.Results[0], t.row, y)
			return
		}
		n := sum[1]
		if padded {
			// padding counts, what lies beyond it does not
			n = b.I32(1)
			for i := range g.in {
				start := b.Sub(t.lower(t.space.Scale(coords[2+i], sym.Const(g.stride[i]))), b.Size(g.before[i]))
				room := b.Sub(b.Size(g.in[i].Add(g.after[i])), start)
				cells := b.UDiv(b.Add(room, b.I32(g.dilation[i]-1)), b.I32(g.dilation[i]))
				k := b.I32(g.kernel[i])
				n = b.Mul(n, b.Select(b.Lt(cells, k), cells, k))
			}
		}
		t.store(w.o.Results[0], t.row, b.Div(y, b.Convert(kir.SToF, n, rt)))
	})
}

// inRegisters is the float type whose elements are computed in that type.
func inRegisters(t kir.Type) tensor.DType {
	if t == kir.F64 {
		return tensor.Float64
	}
	return tensor.Float32
}
