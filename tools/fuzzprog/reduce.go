package main

import "slices"

// reduce drops what it can of a program while it stays as it is by some test.
func (g *generator) reduce(still func() bool) {
	for again, rounds := true, 0; again && rounds < 5; rounds++ {
		again = false
		for i := len(g.outputs) - 1; i >= 0 && len(g.outputs) > 1; i-- {
			was := g.outputs
			g.outputs = slices.Delete(slices.Clone(was), i, i+1)
			if !g.evaluate() || !still() {
				g.outputs = was
			}
		}
		var drop func(list *[]*stmt)
		drop = func(list *[]*stmt) {
			for i := len(*list) - 1; i >= 0; i-- {
				was := *list
				*list = slices.Delete(slices.Clone(was), i, i+1)
				if g.evaluate() && still() {
					again = true
					continue
				}
				*list = was
				for _, b := range was[i].blocks {
					drop(b)
				}
			}
		}
		drop(&g.body)
	}
	g.evaluate()
}

// evaluate runs the whole program; false if it is not valid.
func (g *generator) evaluate() (ok bool) {
	defer func() {
		if recover() != nil { // a variable that nothing gives a value is one that has another type
			ok = false
		}
	}()
	for k := range g.envs {
		e := &env{vars: map[string]any{}}
		for _, in := range g.inputs {
			e.vars[in.name] = in.values[k]
		}
		g.envs[k] = e.clone()
		runAll(g.body, g.envs[k])
		for _, o := range g.outputs {
			g.envs[k].arr(o)
		}
	}
	return true
}
