package emit

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// einsum adds up, for an element of the result, the products of the operands over all labels that the result has not. Lowering makes
// MatMul of most equations; what is left of them is small.
func einsum(p *point) value {
	b, d := p.b, dtype(p.in(0))
	e, ok := onnx.ParseEquation(p.str("equation"), p.o.NumOperands())
	if !ok || d == tensor.Bool {
		refuse("equation %q of elements of type %s", p.str("equation"), d)
	}
	const ellipsis = 1000 // from there on labels of the axes of an ellipsis, counted from the right
	spelled := func(labels []byte, axes int) (out []int) {
		for _, l := range labels {
			if l != onnx.EllipsisLabel {
				out = append(out, int(l))
				continue
			}
			for k := axes - len(labels) + 1; k > 0; k-- {
				out = append(out, ellipsis+k)
			}
		}
		return out
	}
	size, at := map[int]sym.Expr{}, map[int]index.Expr{}
	terms := make([][]int, len(e.Inputs))
	var summed []int
	output := spelled(e.Output, len(p.coords))
	for i, labels := range e.Inputs {
		shape := shapeOf(p.in(i))
		if terms[i] = spelled(labels, len(shape)); len(terms[i]) != len(shape) {
			refuse("equation %q for an operand of rank %d", p.str("equation"), len(shape))
		}
		for k, l := range terms[i] {
			have, seen := size[l]
			if !seen || have.Is(1) {
				size[l] = shape[k]
			} else if !shape[k].Is(1) && !shape[k].Equal(have) {
				refuse("whether sizes %s and %s of a label are the same depends on the run", have, shape[k])
			}
			if !seen && !slices.Contains(output, l) {
				summed = append(summed, l)
			}
		}
	}
	for i, l := range output {
		at[l] = p.coords[i]
	}
	var sizes []sym.Expr
	for _, l := range summed {
		sizes = append(sizes, size[l])
	}
	was := p.guarded
	p.guarded = true
	defer func() { p.guarded = was }()
	n, dims := len(p.space.Sizes), len(p.dims)
	t := regType(d)
	sum := b.For(b.I32(0), b.Size(index.Prod(sizes)), b.I32(1), []value{b.Num(t, 0)}, func(i value, c []value) []value {
		for k, x := range p.space.Unravel(sizes, p.dim(i, index.Prod(sizes))) {
			at[summed[k]] = x
		}
		product := b.Num(t, 1)
		for k, labels := range terms {
			coords := make([]index.Expr, len(labels))
			for a, l := range labels {
				if !shapeOf(p.in(k))[a].Is(1) {
					coords[a] = at[l]
				}
			}
			product = b.Mul(product, p.at(p.in(k), coords))
		}
		return []value{b.Add(c[0], product)}
	})[0]
	p.space.Sizes, p.dims = p.space.Sizes[:n], p.dims[:dims]
	return sum
}

// emitDet eliminates with partial pivoting, as the interpreter does: a thread has a matrix, in double.
func emitDet(w *writer) {
	x := w.in(0)
	shape := shapeOf(x)
	r := len(shape)
	if !dtype(x).IsFloat() || r < 2 {
		refuse("elements of type %s, rank %d", dtype(x), r)
	}
	n, rows := shape[r-1], index.Prod(shape[:r-2])
	area := n.Mul(n)
	work := scratch(tensor.Float64, rows, area)
	w.teams(rows, 1, func(t *team) {
		b := t.b
		m, size, one := t.mem(work, true), b.Size(n), b.I32(1)
		from := b.Mul(t.row, b.Size(area))
		place := func(i, j value) value { return b.Add(from, b.Add(b.Mul(i, size), j)) }
		b.For(b.I32(0), b.Size(area), one, nil, func(i value, _ []value) []value {
			t.space.Sizes, t.dims = t.space.Sizes[:1], t.dims[:1]
			coords := append(t.space.Unravel(shape[:r-2], t.space.Dim(0)), t.space.Unravel([]sym.Expr{n, n}, t.dim(i, area))...)
			b.Store(m, b.Add(from, i), convert(b, t.at(x, coords), dtype(x), tensor.Float64))
			return nil
		})
		magnitude := func(i, j value) value { return b.Unary(kir.Abs, b.Load(m, place(i, j))) }
		det := b.For(b.I32(0), size, one, []value{b.Float(kir.F64, 1)}, func(k value, c []value) []value {
			pivot := b.For(b.Add(k, one), size, one, []value{k}, func(i value, p []value) []value {
				return []value{b.Select(b.Lt(magnitude(p[0], k), magnitude(i, k)), i, p[0])}
			})[0]
			b.When(b.Compare(kir.Ne, pivot, k), func() {
				b.For(b.I32(0), size, one, nil, func(j value, _ []value) []value {
					u, v := b.Load(m, place(k, j)), b.Load(m, place(pivot, j))
					b.Store(m, place(k, j), v)
					b.Store(m, place(pivot, j), u)
					return nil
				})
			})
			head := b.Load(m, place(k, k))
			zero := b.Eq(head, b.Float(kir.F64, 0))
			b.When(b.Not(zero), func() {
				b.For(b.Add(k, one), size, one, nil, func(i value, _ []value) []value {
					f := b.Div(b.Load(m, place(i, k)), head)
					b.For(k, size, one, nil, func(j value, _ []value) []value {
						b.Store(m, place(i, j), b.Sub(b.Load(m, place(i, j)), b.Mul(f, b.Load(m, place(k, j)))))
						return nil
					})
					return nil
				})
			})
			sign := b.Select(b.Eq(pivot, k), c[0], b.Neg(c[0]))
			// once a pivot is 0, so is the determinant, whatever follows
			done := b.Eq(c[0], b.Float(kir.F64, 0))
			return []value{b.Select(b.Or(zero, done), b.Float(kir.F64, 0), b.Mul(sign, head))}
		})[0]
		t.store(w.o.Results[0], t.row, b.Convert(kir.Round, det, regType(dtype(x))))
	})
}
