package main

import (
	"fmt"
	"slices"
)

// writing is a statement that writes to a tensor.
func (g *generator) writing() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		v := g.tensor(func(a *array) bool { return a.kind != bol })
		if v == "i" {
			return nil
		}
		a := g.envs[0].arr(v)
		n := max(a.rank(), 1)
		d := r.IntN(2*n) - n
		kind := a.kind
		switch r.IntN(14) {
		case 0, 1, 2:
			op := pick(r, arithmetics)
			t, value := g.operand(kind)
			return g.effect(fmt.Sprintf("torch.%s_(%s, %s)", op.name, v, t), func(e *env) {
				a, b := e.arr(v), value(e)
				out := binary(a, b, promote(a.kind, b.kind), op.f)
				if out.kind != a.kind || !slices.Equal(out.shape, a.shape) {
					reject("the result does not fit")
				}
				a.write(out.values(), b)
			})
		case 3, 4:
			op := pick(r, elementwises)
			return g.effect(fmt.Sprintf("torch.%s_(%s%s)", op.name, v, op.more), func(e *env) {
				a := e.arr(v)
				a.write(unary(a, op.f).values())
			})
		case 5:
			k := r.IntN(7) - 3
			return g.effect(fmt.Sprintf("torch.fill_(%s, %d)", v, k), func(e *env) {
				a := e.arr(v)
				a.write(unary(a, func(float64) float64 { return float64(k) }).values())
			})
		case 6:
			return g.effect(fmt.Sprintf("torch.zero_(%s)", v), func(e *env) {
				a := e.arr(v)
				a.write(make([]float64, product(a.shape)))
			})
		case 7, 8:
			w := g.tensor(nil)
			return g.effect(fmt.Sprintf("torch.copy_(%s, %s)", v, w), func(e *env) {
				a, b := e.arr(v), e.arr(w)
				a.write(as(a.kind, b.expand(a.shape).values()), b)
			})
		case 9:
			m, k := g.tensor(func(a *array) bool { return a.kind == bol }), r.IntN(5)-2
			return g.effect(fmt.Sprintf("torch.masked_fill_(%s, %s, %d)", v, m, k), func(e *env) {
				a, c := e.arr(v), e.arr(m)
				out, mask := a.values(), c.expand(a.shape).values()
				for i := range out {
					if mask[i] != 0 {
						out[i] = float64(k)
					}
				}
				a.write(out)
			})
		case 10:
			return g.effect(fmt.Sprintf("torch.cumsum_(%s, %d)", v, d), func(e *env) {
				a := e.arr(v)
				a.write(scan(a, d, a.kind, running).values())
			})
		case 11:
			k := r.IntN(5) - 2
			return g.effect(fmt.Sprintf("torch.index_fill_(%s, %d, i, %d)", v, d, k), func(e *env) {
				a := e.arr(v)
				dim := a.sized(d)
				at := indices(e.arr("i"), a.shape[dim])
				a.write(scan(a, dim, a.kind, func(l []float64) []float64 {
					for _, p := range at {
						l[p] = float64(k)
					}
					return l
				}).values())
			})
		case 12:
			k := r.IntN(5) - 2
			return g.effect(fmt.Sprintf("torch.index_put_(%s, annotate(List[Optional[Tensor]], [torch.gt(%s, 0)]), torch.tensor(%d, dtype=%d))", v, v, k, map[dtype]int{f32: 6, i64: 4}[kind]), func(e *env) {
				a := e.arr(v)
				a.write(unary(a, func(x float64) float64 {
					if x > 0 {
						return float64(k)
					}
					return x
				}).values())
			})
		default:
			return g.effect(fmt.Sprintf("torch.tril_(%s)", v), func(e *env) {
				a := e.arr(v)
				a.write(triangle(a, true).values())
			})
		}
	})
}
