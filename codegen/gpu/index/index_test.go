package index

import (
	"math/rand/v2"
	"testing"

	"github.com/aton-project/aton/ssa/sym"
)

func sizes(ns ...int64) []sym.Expr {
	out := make([]sym.Expr, len(ns))
	for i, n := range ns {
		out[i] = sym.Const(n)
	}
	return out
}

// What simplification must find: in-order access stays visible through views, with sizes known and symbolic.
func TestSimplify(t *testing.T) {
	n := sym.Symbol("N", 1)
	flat := Of(sym.Const(24))
	symbolic := Of(n.Mul(sym.Const(12)))
	for _, c := range []struct {
		name string
		got  Expr
		want string
	}{
		{"unravelled and linear again", flat.Linear(sizes(2, 3, 4), flat.Unravel(sizes(2, 3, 4), flat.Dim(0))), "d0"},
		{"with a symbol", symbolic.Linear([]sym.Expr{n, sym.Const(3), sym.Const(4)}, symbolic.Unravel([]sym.Expr{n, sym.Const(3), sym.Const(4)}, symbolic.Dim(0))), "d0"},
		{"reshape to another shape", flat.Linear(sizes(6, 4), flat.Unravel(sizes(6, 4), flat.Linear(sizes(2, 12), flat.Unravel(sizes(2, 12), flat.Dim(0))))), "d0"},
		{"column of rows", flat.Mod(flat.Dim(0), sym.Const(4)), "(d0) % 4"},
		{"multiple", flat.Div(flat.Scale(flat.Dim(0), sym.Const(8)), sym.Const(4)), "2*d0"},
		{"within", Of(sizes(3, 4)...).Div(Of(sizes(3, 4)...).Linear(sizes(3, 4), Of(sizes(3, 4)...).Dims()), sym.Const(4)), "d0"},
		{"an axis of size 1", Of(sizes(1, 4)...).Dim(0), "0"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// Random chains of views, simplified, against the same computed point by point.
func TestViewsAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 400 {
		shape := []int64{int64(1 + r.IntN(4)), int64(1 + r.IntN(4)), int64(1 + r.IntN(4))}
		s := Of(sizes(shape...)...)
		at := s.Linear(s.Sizes, s.Dims())
		first := shape
		plain := func(p []int64) int64 { return (p[0]*first[1]+p[1])*first[2] + p[2] }
		for range 1 + r.IntN(4) {
			old, oldPlain, oldShape := at, plain, shape
			switch r.IntN(3) {
			case 0: // permute
				perm := r.Perm(3)
				shape = []int64{oldShape[perm[0]], oldShape[perm[1]], oldShape[perm[2]]}
				s = Of(sizes(shape...)...)
				coords := make([]Expr, 3)
				for i, p := range perm {
					coords[p] = s.Dim(i)
				}
				at = s.Subst(old, coords)
				plain = func(p []int64) int64 {
					q := make([]int64, 3)
					for i, k := range perm {
						q[k] = p[i]
					}
					return oldPlain(q)
				}
			case 1: // reverse or skip along an axis
				k := r.IntN(3)
				shape = append([]int64(nil), oldShape...)
				start, step := oldShape[k]-1, int64(-1)
				if r.IntN(2) == 0 {
					start, step = 0, 2
					shape[k] = (oldShape[k] + 1) / 2
				}
				s = Of(sizes(shape...)...)
				coords := s.Dims()
				coords[k] = s.Add(s.Scale(coords[k], sym.Const(step)), Int(start))
				at = s.Subst(old, coords)
				plain = func(p []int64) int64 {
					q := append([]int64(nil), p...)
					q[k] = start + step*q[k]
					return oldPlain(q)
				}
			case 2: // reshape
				n := oldShape[0] * oldShape[1] * oldShape[2]
				shape = []int64{1, 1, n}
				for i := range 2 {
					for f := int64(4); f > 1; f-- {
						if shape[2]%f == 0 && r.IntN(2) == 0 {
							shape[i], shape[2] = f, shape[2]/f
							break
						}
					}
				}
				s = Of(sizes(shape...)...)
				at = s.Subst(old, s.Unravel(sizes(oldShape...), s.Linear(s.Sizes, s.Dims())))
				now := shape
				plain = func(p []int64) int64 {
					l := (p[0]*now[1]+p[1])*now[2] + p[2]
					return oldPlain([]int64{l / (oldShape[1] * oldShape[2]), l / oldShape[2] % oldShape[1], l % oldShape[2]})
				}
			}
		}
		for i := range shape[0] {
			for j := range shape[1] {
				for k := range shape[2] {
					p := []int64{i, j, k}
					got, ok := at.Eval(p, nil)
					if want := plain(p); !ok || got != want {
						t.Fatalf("%s at %v of %v: %d, want %d", at, p, shape, got, want)
					}
				}
			}
		}
	}
}
