package main

import (
	"fmt"
	"slices"
	"strings"
)

// viewing is a view of a tensor.
func (g *generator) viewing() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		v := g.tensor(nil)
		a := g.envs[0].arr(v)
		n := max(a.rank(), 1)
		d, d2 := r.IntN(2*n)-n, r.IntN(2*n)-n
		size := 1
		if a.rank() > 0 {
			size = a.shape[a.axis(d)]
		}
		of := func(f func(e *env, a *array) *array) func(*env) any {
			return func(e *env) any { return f(e, e.arr(v)) }
		}
		switch r.IntN(16) {
		case 0, 1:
			k, at := g.index(-size, max(size-1, 0))
			return g.define(fmt.Sprintf("torch.select(%s, %d, %s)", v, d, k), of(func(e *env, a *array) *array { return a.pick(d, at(e)) }))
		case 2, 3, 4:
			from, lo := g.index(-size, size)
			to, hi := g.index(-size, size)
			step := 1 + r.IntN(6)/5
			return g.define(fmt.Sprintf("torch.slice(%s, %d, %s, %s, %d)", v, d, from, to, step), of(func(e *env, a *array) *array { return a.slice(d, lo(e), hi(e), step) }))
		case 5:
			return g.define(fmt.Sprintf("torch.transpose(%s, %d, %d)", v, d, d2), of(func(_ *env, a *array) *array { return a.transpose(d, d2) }))
		case 6:
			return g.define(fmt.Sprintf("torch.unsqueeze(%s, %d)", v, d), of(func(_ *env, a *array) *array { return a.unsqueeze(d) }))
		case 7:
			return g.define(fmt.Sprintf("torch.squeeze(%s, %d)", v, d), of(func(_ *env, a *array) *array { return a.squeeze([]int{a.axis(d)}) }))
		case 8:
			return g.define(fmt.Sprintf("torch.%s(%s, [-1])", pick(r, []string{"view", "reshape"}), v), of(func(_ *env, a *array) *array { return a.reshape([]int{-1}) }))
		case 9:
			k := 1 + r.IntN(4)
			shape := pick(r, [][]int{{k, -1}, {-1, k}, {1, -1}})
			return g.define(fmt.Sprintf("torch.%s(%s, [%d, %d])", pick(r, []string{"view", "reshape"}), v, shape[0], shape[1]), of(func(_ *env, a *array) *array { return a.reshape(shape) }))
		case 10:
			order := r.Perm(a.rank())
			return g.define(fmt.Sprintf("torch.permute(%s, %s)", v, ints(order)), of(func(_ *env, a *array) *array {
				if a.rank() != len(order) {
					reject("another rank")
				}
				return a.permute(order)
			}))
		case 11:
			shape := append([]int{2}, slices.Repeat([]int{-1}, a.rank())...)
			if r.IntN(2) == 0 && a.rank() > 0 {
				shape = shape[1:]
				if k := a.axis(d); a.shape[k] == 1 {
					shape[k] = 2
				}
			}
			return g.define(fmt.Sprintf("torch.expand(%s, %s)", v, ints(shape)), of(func(_ *env, a *array) *array { return a.expand(shape) }))
		case 12:
			return g.define(fmt.Sprintf("torch.diagonal(%s)", v), of(func(_ *env, a *array) *array { return a.diagonal() }))
		case 13:
			return g.define(fmt.Sprintf("torch.contiguous(%s)", v), of(func(_ *env, a *array) *array { return a.inOrder() }))
		case 14:
			k := r.IntN(max(size, 1))
			return g.define(fmt.Sprintf("torch.narrow(%s, %d, %d, 1)", v, d, k), of(func(_ *env, a *array) *array {
				if d := a.sized(d); k >= a.shape[d] {
					reject("no index %d", k)
				}
				return a.slice(d, k, k+1, 1)
			}))
		default:
			return g.define(fmt.Sprintf("torch.detach(%s)", v), of(func(_ *env, a *array) *array { return a.view(a.shape, a.strides, a.offset) }))
		}
	})
}

func ints(v []int) string {
	return "[" + strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]") + "]"
}
