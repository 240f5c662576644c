package main

import (
	"fmt"
	"math"
	"slices"
)

// integer is a number that is computed from shapes or data.
func (g *generator) integer() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		if ints := g.ints(); len(ints) > 0 && r.IntN(2) == 0 {
			n, k := pick(r, ints), 1+r.IntN(3)
			switch r.IntN(4) {
			case 0:
				return g.define(fmt.Sprintf("torch.add(%s, %d)", n, k), func(e *env) any { return small(e.vars[n].(int) + k) })
			case 1:
				return g.define(fmt.Sprintf("torch.sub(%s, %d)", n, k), func(e *env) any { return small(e.vars[n].(int) - k) })
			case 2:
				return g.define(fmt.Sprintf("torch.mul(%s, %d)", n, k), func(e *env) any { return small(e.vars[n].(int) * k) })
			}
			return g.define(fmt.Sprintf("torch.floordiv(%s, %d)", n, k), func(e *env) any {
				return int(math.Floor(float64(e.vars[n].(int)) / float64(k)))
			})
		}
		v := g.tensor(nil)
		a := g.envs[0].arr(v)
		switch {
		case a.rank() == 0 && a.kind == i64:
			return g.define("int("+v+")", func(e *env) any { return int(e.arr(v).values()[0]) })
		case a.rank() == 0:
			return g.define("torch.dim("+v+")", func(e *env) any { return e.arr(v).rank() })
		}
		d := r.IntN(a.rank())
		return g.define(fmt.Sprintf("torch.size(%s, %d)", v, d), func(e *env) any {
			if d >= e.arr(v).rank() {
				reject("no axis")
			}
			return e.arr(v).shape[d]
		})
	})
}

func small(n int) int {
	if n > 100 || n < -100 {
		reject("%d is too large", n)
	}
	return n
}

// operand is another tensor, or a number that fits an element type.
func (g *generator) operand(kind dtype) (string, func(*env) *array) {
	r := g.rng
	switch k := r.IntN(10); {
	case k < 4:
		v := g.tensor(func(b *array) bool { return b.kind != bol && (kind == f32 || b.kind == kind) })
		return v, func(e *env) *array { return e.arr(v) }
	case k < 6 && len(g.ints()) > 0:
		n := pick(r, g.ints())
		return n, func(e *env) *array { return number(i64, float64(e.vars[n].(int))) }
	case k < 7 && kind == f32:
		c := pick(r, []float64{0.5, -1.5, 0.25})
		return fmt.Sprint(c), func(*env) *array { return number(f32, c) }
	}
	c := r.IntN(7) - 3
	return fmt.Sprint(c), func(*env) *array { return number(i64, float64(c)) }
}

type arithmetic struct {
	name string
	f    func(x, y float64) float64
}

var arithmetics = []arithmetic{
	{"add", func(x, y float64) float64 { return x + y }},
	{"sub", func(x, y float64) float64 { return x - y }},
	{"mul", func(x, y float64) float64 { return x * y }},
}

var comparisons = []arithmetic{
	{"gt", func(x, y float64) float64 { return truth(x > y) }},
	{"lt", func(x, y float64) float64 { return truth(x < y) }},
	{"eq", func(x, y float64) float64 { return truth(x == y) }},
	{"ge", func(x, y float64) float64 { return truth(x >= y) }},
	{"ne", func(x, y float64) float64 { return truth(x != y) }},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

type elementwise struct {
	name, more string
	f          func(float64) float64
}

var elementwises = []elementwise{
	{"neg", "", func(x float64) float64 { return -x }},
	{"abs", "", math.Abs},
	{"relu", "", func(x float64) float64 { return max(x, 0) }},
	{"clamp", ", -1, 2", func(x float64) float64 { return min(max(x, -1), 2) }},
	{"floor", "", math.Floor},
	{"remainder", ", 3", func(x float64) float64 { return x - 3*math.Floor(x/3) }},
}

func running(l []float64) []float64 {
	for i := 1; i < len(l); i++ {
		l[i] += l[i-1]
	}
	return l
}

// computing is an operator that makes a new tensor.
func (g *generator) computing() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		v := g.tensor(nil)
		a := g.envs[0].arr(v)
		n := max(a.rank(), 1)
		d := r.IntN(2*n) - n
		if a.kind == bol {
			m := g.tensor(func(a *array) bool { return a.kind == bol })
			switch r.IntN(6) {
			case 0:
				return g.define(fmt.Sprintf("torch.logical_not(%s)", v), func(e *env) any { return unary(e.arr(v), func(x float64) float64 { return 1 - x }) })
			case 1:
				return g.define(fmt.Sprintf("torch.logical_and(%s, %s)", v, m), func(e *env) any {
					return binary(e.arr(v), e.arr(m), bol, func(x, y float64) float64 { return x * y })
				})
			case 2:
				return g.define(fmt.Sprintf("torch.any(%s)", v), func(e *env) any { return number(bol, truth(slices.Contains(e.arr(v).values(), 1))) })
			case 3:
				return g.define(fmt.Sprintf("torch.sum(%s)", v), func(e *env) any { return number(i64, sum(e.arr(v).values())) })
			case 4:
				return g.define(fmt.Sprintf("torch.to(%s, %d)", v, 6), func(e *env) any { return e.arr(v).to(f32) })
			}
			x := g.tensor(func(a *array) bool { return a.kind != bol })
			y := g.tensor(func(b *array) bool { return b.kind != bol })
			return g.define(fmt.Sprintf("torch.where(%s, %s, %s)", v, x, y), func(e *env) any { return choose(e.arr(v), e.arr(x), e.arr(y)) })
		}
		switch r.IntN(19) {
		case 0, 1, 2:
			op := pick(r, arithmetics)
			t, value := g.operand(a.kind)
			return g.define(fmt.Sprintf("torch.%s(%s, %s)", op.name, v, t), func(e *env) any {
				a, b := e.arr(v), value(e)
				return binary(a, b, promote(a.kind, b.kind), op.f)
			})
		case 3, 4:
			op := pick(r, comparisons)
			t, value := g.operand(a.kind)
			return g.define(fmt.Sprintf("torch.%s(%s, %s)", op.name, v, t), func(e *env) any { return binary(e.arr(v), value(e), bol, op.f) })
		case 5, 6:
			op := pick(r, elementwises)
			return g.define(fmt.Sprintf("torch.%s(%s%s)", op.name, v, op.more), func(e *env) any { return unary(e.arr(v), op.f) })
		case 7:
			keep := r.IntN(2) == 0
			return g.define(fmt.Sprintf("torch.sum(%s, [%d], %s)", v, d, python(keep)), func(e *env) any { return reduce(e.arr(v), d, keep, e.arr(v).kind, sum) })
		case 8:
			return g.define(fmt.Sprintf("torch.sum(%s)", v), func(e *env) any { return number(e.arr(v).kind, sum(e.arr(v).values())) })
		case 9:
			name, f := "amax", extreme(math.Max)
			if r.IntN(2) == 0 {
				name, f = "amin", extreme(math.Min)
			}
			return g.define(fmt.Sprintf("torch.%s(%s, [%d])", name, v, d), func(e *env) any { return reduce(e.arr(v), d, false, e.arr(v).kind, f) })
		case 10:
			return g.define(fmt.Sprintf("torch.cumsum(%s, %d)", v, d), func(e *env) any { return scan(e.arr(v), d, e.arr(v).kind, running) })
		case 11:
			return g.define(fmt.Sprintf("torch.clone(%s)", v), func(e *env) any { return fresh(e.arr(v).kind, e.arr(v).shape, e.arr(v).values(), e.arr(v)) })
		case 12:
			w := g.tensor(func(b *array) bool { return b.rank() == a.rank() })
			join, f := "cat", cat
			if r.IntN(2) == 0 {
				join, f = "stack", stack
			}
			return g.define(fmt.Sprintf("torch.%s([%s, %s], %d)", join, v, w, d), func(e *env) any { return f([]*array{e.arr(v), e.arr(w)}, d) })
		case 13:
			kind := pick(r, []dtype{f32, i64, bol})
			return g.define(fmt.Sprintf("torch.to(%s, %d)", v, map[dtype]int{f32: 6, i64: 4, bol: 11}[kind]), func(e *env) any { return e.arr(v).to(kind) })
		case 14:
			return g.define(fmt.Sprintf("torch.index_select(%s, %d, i)", v, d), func(e *env) any { return indexSelect(e.arr(v), d, e.arr("i")) })
		case 15:
			return g.define(fmt.Sprintf("torch.flip(%s, [%d])", v, d), func(e *env) any {
				e.arr(v).sized(d)
				return scan(e.arr(v), d, e.arr(v).kind, func(l []float64) []float64 { slices.Reverse(l); return l })
			})
		case 16:
			w := g.tensor(func(b *array) bool { return b.rank() == 2 })
			return g.define(fmt.Sprintf("torch.matmul(%s, %s)", v, w), func(e *env) any { return matmul(e.arr(v), e.arr(w)) })
		case 17:
			w := g.tensor(func(b *array) bool { return b.kind == a.kind })
			name, f := "maximum", math.Max
			if r.IntN(2) == 0 {
				name, f = "minimum", math.Min
			}
			return g.define(fmt.Sprintf("torch.%s(%s, %s)", name, v, w), func(e *env) any { return binary(e.arr(v), e.arr(w), e.arr(v).kind, f) })
		default:
			lower := r.IntN(2) == 0
			name := "triu"
			if lower {
				name = "tril"
			}
			return g.define(fmt.Sprintf("torch.%s(%s)", name, v), func(e *env) any { return triangle(e.arr(v), lower) })
		}
	})
}

func python(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
