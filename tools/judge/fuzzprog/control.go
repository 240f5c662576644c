package main

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/ssa/tensor"
)

// assign gives existing names values of tensor variables of the scope.
func (g *generator) assign(names []string, kinds map[string]tensor.DType) func() []*stmt {
	return func() []*stmt {
		var out []*stmt
		for _, n := range names {
			from := g.tensors(func(t *tensor.Tensor) bool { return t.DType == kinds[n] })
			if len(from) == 0 {
				continue
			}
			v := from[len(from)-1-g.rng.IntN(min(len(from), 5))]
			if s := (&stmt{lines: line(n + " = " + v), sets: []string{n}}); g.try(s) {
				out = append(out, s)
			}
		}
		return out
	}
}

// branch is an If, with up to two results.
func (g *generator) branch() *stmt {
	cond := g.condition()
	var results []string
	for range g.rng.IntN(3) {
		results = append(results, g.name())
	}
	kinds := map[string]tensor.DType{}
	for _, n := range results {
		kinds[n] = pick(g.rng, []tensor.DType{tensor.Float32, tensor.Float32, tensor.Int64})
	}
	then := g.block(g.rng.IntN(4), g.assign(results, kinds))
	other := g.block(g.rng.IntN(3), g.assign(results, kinds))
	s := &stmt{sets: results, blocks: []*[]*stmt{&then, &other}}
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
	kinds := map[string]tensor.DType{}
	names, envs := slices.Clone(g.names), g.envs
	undo := func() *stmt { g.names, g.envs = names, envs; return nil }
	for range g.rng.IntN(3) {
		s := g.define("%s", g.tensor(nil))
		if s == nil {
			return undo()
		}
		n := s.sets[0]
		before, carried = append(before, s), append(carried, n)
		kinds[n] = g.tensorOf(n).DType
	}
	trips := fmt.Sprint(g.rng.IntN(4))
	small := slices.DeleteFunc(g.ints(), func(n string) bool {
		return slices.ContainsFunc(g.envs, func(e env) bool { k, ok := e[n].(int64); return !ok || k > maxTrips })
	})
	if len(small) > 0 && g.rng.IntN(2) == 0 {
		trips = pick(g.rng, small)
	}
	i := g.name()
	outer := g.envs
	g.envs = make([]env, len(outer))
	for k, e := range outer {
		g.envs[k] = e.copy()
		g.envs[k][i] = eager.Value(int64(0))
	}
	g.names = append(g.names, i)
	body := g.block(1+g.rng.IntN(3), g.assign(carried, kinds))
	g.names, g.envs = g.names[:len(g.names)-1], outer
	s := &stmt{sets: carried, blocks: []*[]*stmt{&body}}
	s.lines = func() []string {
		return append([]string{"for " + i + " in range(" + trips + "):"}, indent(text(body))...)
	}
	if !g.try(s) {
		return undo()
	}
	own := s.lines
	s.lines = func() []string {
		var out []string
		for _, b := range before {
			out = append(out, b.lines()...)
		}
		return append(out, own()...)
	}
	return s
}

// condition is a test of data, or of a number.
func (g *generator) condition() string {
	if ints := g.ints(); len(ints) > 0 && g.rng.IntN(3) == 0 {
		return fmt.Sprintf("torch.gt(%s, %d)", pick(g.rng, ints), g.rng.IntN(4))
	}
	return fmt.Sprintf("bool(torch.gt(torch.sum(%s), %d))", g.tensor(isNumber), g.rng.IntN(7)-3)
}
