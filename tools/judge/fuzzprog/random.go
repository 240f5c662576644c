package main

import "math/rand/v2"

// random makes a program of which every statement was run, and judges it.
func (w *worker) random(rng *rand.Rand) (string, error) {
	w.doing.Store("generating")
	g := newGenerator(rng, &w.eager)
	g.program(4 + rng.IntN(14))
	return w.judge(g, []int{0, 0, 0, 9, 11, 13, 17, 18, 21, 23, 26}[rng.IntN(11)])
}
