// Package cfg orders the basic blocks of a control flow graph.
package cfg

import "sort"

// Order is a reverse post order in which the blocks of a loop stand together and what follows it comes after
// them, so that running the lowest segment first brings threads together again where the source does.
// succ[0] is the entry; what is not reachable is left out.
func Order(succ [][]int32) []int32 {
	n := len(succ)
	// back edges of a first walk, and the loops they close
	state := make([]uint8, n)
	preds := make([][]int32, n)
	type edge struct{ from, to int32 }
	var backs []edge
	walk(n, func(s int32) []int32 { return succ[s] }, state, func(from, to int32, open bool) {
		preds[to] = append(preds[to], from)
		if open {
			backs = append(backs, edge{from, to})
		}
	}, nil)
	in := make([]map[int32]bool, 0, len(backs)) // members of each loop
	byHeader := map[int32]map[int32]bool{}
	for _, e := range backs {
		loop := byHeader[e.to]
		if loop == nil {
			loop = map[int32]bool{e.to: true}
			byHeader[e.to] = loop
			in = append(in, loop)
		}
		for stack := []int32{e.from}; len(stack) > 0; {
			s := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if loop[s] {
				continue
			}
			loop[s] = true
			stack = append(stack, preds[s]...)
		}
	}
	loops := make([][]int, n)
	for i, l := range in {
		for s := range l {
			loops[s] = append(loops[s], i)
		}
	}
	left := func(from, to int32) int {
		count := 0
		for _, l := range loops[from] {
			if !in[l][to] {
				count++
			}
		}
		return count
	}
	clear(state)
	var post []int32
	walk(n, func(s int32) []int32 {
		next := append([]int32(nil), succ[s]...)
		if len(next) == 2 {
			// the side that leaves more loops is finished first and so comes last
			next[0], next[1] = next[1], next[0]
			sort.SliceStable(next, func(i, j int) bool { return left(s, next[i]) > left(s, next[j]) })
		}
		return next
	}, state, nil, func(s int32) { post = append(post, s) })
	for i, j := 0, len(post)-1; i < j; i, j = i+1, j-1 {
		post[i], post[j] = post[j], post[i]
	}
	return post
}

// walk visits segments depth first from 0; on is called for each edge, open telling whether its target is still open.
func walk(n int, next func(int32) []int32, state []uint8, on func(from, to int32, open bool), done func(int32)) {
	if n == 0 {
		return
	}
	type frame struct {
		s    int32
		next []int32
	}
	stack := []frame{{0, next(0)}}
	state[0] = 1
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		if len(f.next) == 0 {
			state[f.s] = 2
			if done != nil {
				done(f.s)
			}
			stack = stack[:len(stack)-1]
			continue
		}
		to := f.next[0]
		f.next = f.next[1:]
		if on != nil {
			on(f.s, to, state[to] == 1)
		}
		if state[to] == 0 {
			state[to] = 1
			stack = append(stack, frame{to, next(to)})
		}
	}
}
