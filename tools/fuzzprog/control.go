package main

import (
	"fmt"
	"slices"
)

// assign gives existing names values of tensor variables of the scope.
func (g *generator) assign(names []string, kinds map[string]dtype) func() []*stmt {
	return func() []*stmt {
		var out []*stmt
		for _, n := range names {
			from := g.of(func(v any) bool { a, ok := v.(*array); return ok && (kinds == nil || a.kind == kinds[n]) })
			v := from[len(from)-1-g.rng.IntN(min(len(from), 5))]
			s := &stmt{lines: line(n + " = " + v), run: func(e *env) { e.vars[n] = e.vars[v] }}
			if g.try(s) {
				out = append(out, s)
			}
		}
		return out
	}
}

// branch is an If, with up to two results.
func (g *generator) branch() *stmt {
	cond, test := g.condition()
	if test == nil {
		return nil
	}
	var results []string
	for range g.rng.IntN(3) {
		results = append(results, g.name())
	}
	kinds := map[string]dtype{}
	for _, n := range results {
		kinds[n] = pick(g.rng, []dtype{f32, f32, i64})
	}
	then := g.block(g.rng.IntN(4), g.assign(results, kinds))
	other := g.block(g.rng.IntN(3), g.assign(results, kinds))
	s := &stmt{run: func(e *env) {
		if test(e) {
			runAll(then, e)
		} else {
			runAll(other, e)
		}
	}}
	s.blocks = []*[]*stmt{&then, &other}
	s.lines = func() []string {
		out := append([]string{"if " + cond + ":"}, indent(text(then))...)
		return append(append(out, "else:"), indent(text(other))...)
	}
	if !g.try(s) {
		return nil
	}
	g.names = append(g.names, results...)
	return s
}

// loop is a for, with up to two tensors that it carries.
func (g *generator) loop() *stmt {
	var before []*stmt
	var carried []string
	kinds := map[string]dtype{}
	names, envs := slices.Clone(g.names), g.envs
	undo := func() *stmt { g.names, g.envs = names, envs; return nil }
	for range g.rng.IntN(3) {
		v := g.tensor(nil)
		s := g.define(v, func(e *env) any { return e.vars[v] })
		if s == nil {
			return undo()
		}
		n := g.names[len(g.names)-1]
		before, carried = append(before, s), append(carried, n)
		kinds[n] = g.envs[0].arr(n).kind
	}
	trips, times := fmt.Sprint(g.rng.IntN(4)), 0
	fmt.Sscan(trips, &times)
	count := func(*env) int { return times }
	if ints := g.of(func(v any) bool { n, ok := v.(int); return ok && n < 6 }); len(ints) > 0 && g.rng.IntN(2) == 0 {
		n := pick(g.rng, ints)
		trips, count = n, func(e *env) int { return e.vars[n].(int) }
	}
	i := g.name()
	outer := g.envs
	g.envs = make([]*env, len(outer))
	for k, e := range outer {
		g.envs[k] = e.clone()
		g.envs[k].vars[i] = 0
	}
	g.names = append(g.names, i)
	body := g.block(1+g.rng.IntN(3), g.assign(carried, kinds))
	g.names, g.envs = g.names[:len(g.names)-1], outer
	s := &stmt{run: func(e *env) {
		n := count(e)
		if n > 6 {
			reject("too many iterations")
		}
		for k := range n {
			e.vars[i] = k
			runAll(body, e)
		}
	}}
	s.blocks = []*[]*stmt{&body}
	s.lines = func() []string {
		var out []string
		for _, b := range before {
			out = append(out, b.lines()...)
		}
		return append(append(out, "for "+i+" in range("+trips+"):"), indent(text(body))...)
	}
	if !g.try(s) {
		return undo()
	}
	whole := s.run
	s.run = func(e *env) { runAll(before, e); whole(e) }
	return s
}

// condition is a test of data, or of a number.
func (g *generator) condition() (string, func(*env) bool) {
	var test func(*env) bool
	cond := ""
	guarded(func() *stmt {
		if ints := g.ints(); len(ints) > 0 && g.rng.IntN(3) == 0 {
			n, k := pick(g.rng, ints), g.rng.IntN(4)
			cond, test = fmt.Sprintf("torch.gt(%s, %d)", n, k), func(e *env) bool { return e.vars[n].(int) > k }
			return nil
		}
		v, k := g.tensor(func(a *array) bool { return a.kind != bol }), g.rng.IntN(7)-3
		cond, test = fmt.Sprintf("bool(torch.gt(torch.sum(%s), %d))", v, k), func(e *env) bool { return sum(e.arr(v).values()) > float64(k) }
		return nil
	})
	return cond, test
}
