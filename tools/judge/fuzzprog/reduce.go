package main

import "slices"

// reduce drops what it can of a program while it stays as it is by some test.
func (g *generator) reduce(still func() bool) {
	for again, rounds := true, 0; again && rounds < 5; rounds++ {
		again = false
		for i := len(g.outputs) - 1; i >= 0 && len(g.outputs) > 1; i-- {
			was := g.outputs
			if g.outputs = slices.Delete(slices.Clone(was), i, i+1); !still() {
				g.outputs = was
			}
		}
		var drop func(list *[]*stmt)
		drop = func(list *[]*stmt) {
			for i := len(*list) - 1; i >= 0; i-- {
				was := *list
				if *list = slices.Delete(slices.Clone(was), i, i+1); still() {
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
}
