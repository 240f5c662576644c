package main

import (
	"fmt"
	"slices"
	"strings"
)

// viewing is a view of a tensor.
func (g *generator) viewing() *stmt {
	r := g.rng
	v := g.tensor(nil)
	shape := g.tensorOf(v).Shape
	n := max(len(shape), 1)
	d, d2 := r.IntN(2*n)-n, r.IntN(2*n)-n
	size := 1
	if len(shape) > 0 {
		size = int(shape[(d+n)%n])
	}
	switch r.IntN(16) {
	case 0, 1:
		return g.define("torch.select(%s, %d, %s)", v, d, g.index(-size, max(size-1, 0)))
	case 2, 3, 4:
		return g.define("torch.slice(%s, %d, %s, %s, %d)", v, d, g.index(-size, size), g.index(-size, size), 1+r.IntN(6)/5)
	case 5:
		return g.define("torch.transpose(%s, %d, %d)", v, d, d2)
	case 6:
		return g.define("torch.unsqueeze(%s, %d)", v, d)
	case 7:
		return g.define("torch.squeeze(%s, %d)", v, d)
	case 8:
		return g.define("torch.%s(%s, [-1])", pick(r, []string{"view", "reshape"}), v)
	case 9:
		k := 1 + r.IntN(4)
		to := pick(r, [][]int{{k, -1}, {-1, k}, {1, -1}})
		return g.define("torch.%s(%s, %s)", pick(r, []string{"view", "reshape"}), v, list(to))
	case 10:
		return g.define("torch.permute(%s, %s)", v, list(r.Perm(len(shape))))
	case 11:
		to := append([]int{2}, slices.Repeat([]int{-1}, len(shape))...)
		if r.IntN(2) == 0 && len(shape) > 0 {
			to = to[1:]
			if k := (d + n) % n; shape[k] == 1 {
				to[k] = 2
			}
		}
		return g.define("torch.expand(%s, %s)", v, list(to))
	case 12:
		return g.define("torch.diagonal(%s)", v)
	case 13:
		return g.define("torch.contiguous(%s)", v)
	case 14:
		return g.define("torch.narrow(%s, %d, %d, 1)", v, d, r.IntN(max(size, 1)))
	}
	return g.define("torch.detach(%s)", v)
}

func list(v []int) string {
	return "[" + strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]") + "]"
}
