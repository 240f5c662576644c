package main

import (
	"fmt"

	"github.com/aton-project/aton/ssa/tensor"
)

// integer is a number that is computed from shapes or data.
func (g *generator) integer() *stmt {
	r := g.rng
	if ints := g.ints(); len(ints) > 0 && r.IntN(2) == 0 {
		return g.define("torch.%s(%s, %d)", pick(r, []string{"add", "sub", "mul", "floordiv"}), pick(r, ints), 1+r.IntN(3))
	}
	v := g.tensor(nil)
	t := g.tensorOf(v)
	switch {
	case len(t.Shape) == 0 && t.DType == tensor.Int64:
		return g.define("int(%s)", v)
	case len(t.Shape) == 0:
		return g.define("torch.dim(%s)", v)
	}
	return g.define("torch.size(%s, %d)", v, r.IntN(len(t.Shape)))
}

// operand is another tensor, or a number that fits an element type.
func (g *generator) operand(kind tensor.DType) string {
	r := g.rng
	switch k := r.IntN(10); {
	case k < 4:
		return g.tensor(func(t *tensor.Tensor) bool { return isNumber(t) && (kind == tensor.Float32 || t.DType == kind) })
	case k < 6 && len(g.ints()) > 0:
		return pick(r, g.ints())
	case k < 7 && kind == tensor.Float32:
		return fmt.Sprint(pick(r, []float64{0.5, -1.5, 0.25}))
	}
	return fmt.Sprint(r.IntN(7) - 3)
}

var (
	arithmetics = []string{"add", "sub", "mul"}
	comparisons = []string{"gt", "lt", "eq", "ge", "ne"}
)

// elementwise is a function of an element, with its other arguments.
type elementwise struct{ name, more string }

var elementwises = []elementwise{{"neg", ""}, {"abs", ""}, {"relu", ""}, {"clamp", ", -1, 2"}, {"floor", ""}, {"remainder", ", 3"}}

// computing is an operator that makes a new tensor.
func (g *generator) computing() *stmt {
	r := g.rng
	v := g.tensor(nil)
	t := g.tensorOf(v)
	n := max(len(t.Shape), 1)
	d := r.IntN(2*n) - n
	if isBool(t) {
		switch r.IntN(6) {
		case 0:
			return g.define("torch.logical_not(%s)", v)
		case 1:
			return g.define("torch.logical_and(%s, %s)", v, g.tensor(isBool))
		case 2:
			return g.define("torch.any(%s)", v)
		case 3:
			return g.define("torch.sum(%s)", v)
		case 4:
			return g.define("torch.to(%s, 6)", v)
		}
		return g.define("torch.where(%s, %s, %s)", v, g.tensor(isNumber), g.tensor(isNumber))
	}
	switch r.IntN(19) {
	case 0, 1, 2:
		return g.define("torch.%s(%s, %s)", pick(r, arithmetics), v, g.operand(t.DType))
	case 3, 4:
		return g.define("torch.%s(%s, %s)", pick(r, comparisons), v, g.operand(t.DType))
	case 5, 6:
		op := pick(r, elementwises)
		return g.define("torch.%s(%s%s)", op.name, v, op.more)
	case 7:
		return g.define("torch.sum(%s, [%d], %s)", v, d, pick(r, []string{"True", "False"}))
	case 8:
		return g.define("torch.sum(%s)", v)
	case 9:
		return g.define("torch.%s(%s, [%d])", pick(r, []string{"amax", "amin"}), v, d)
	case 10:
		return g.define("torch.cumsum(%s, %d)", v, d)
	case 11:
		return g.define("torch.clone(%s)", v)
	case 12:
		w := g.tensor(func(o *tensor.Tensor) bool { return len(o.Shape) == len(t.Shape) })
		return g.define("torch.%s([%s, %s], %d)", pick(r, []string{"cat", "stack"}), v, w, d)
	case 13:
		return g.define("torch.to(%s, %d)", v, pick(r, []int{6, 4, 11}))
	case 14:
		return g.define("torch.index_select(%s, %d, i)", v, d)
	case 15:
		return g.define("torch.flip(%s, [%d])", v, d)
	case 16:
		w := g.tensor(func(o *tensor.Tensor) bool { return len(o.Shape) == 2 })
		if w == "" {
			return nil
		}
		return g.define("torch.matmul(%s, %s)", v, w)
	case 17:
		w := g.tensor(func(o *tensor.Tensor) bool { return o.DType == t.DType })
		return g.define("torch.%s(%s, %s)", pick(r, []string{"maximum", "minimum"}), v, w)
	}
	return g.define("torch.%s(%s)", pick(r, []string{"tril", "triu"}), v)
}
