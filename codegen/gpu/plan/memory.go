package plan

import (
	"sort"

	"github.com/aton-project/aton/codegen/gpu/index"
)

// Alignment is that of every buffer in the arena, in bytes.
const Alignment = 256

// BufferSizes are the sizes of the buffers in bytes, for values of the symbols, 0 for those that have no place of their own; ok is
// false if one is missing.
func (p *Plan) BufferSizes(env map[string]int64) (sizes []int64, ok bool) {
	sizes = make([]int64, len(p.Buffers))
	for i, f := range p.Buffers {
		if f.Kind == Local {
			continue
		}
		t := f.Value.Tensor()
		n, known := index.Prod(t.Dims).Eval(env)
		if !known {
			return nil, false
		}
		sizes[i] = n * int64(t.DType.Size())
	}
	return sizes, true
}

// Allocate places the temporaries and outputs in one arena: the largest first, each at the lowest place that is free as
// long as it lives. Buffers of other kinds have offset -1.
func (p *Plan) Allocate(sizes []int64) (offsets []int64, total int64) {
	offsets = make([]int64, len(p.Buffers))
	var order []int
	for i, f := range p.Buffers {
		offsets[i] = -1
		if f.Kind == Temp || f.Kind == Output {
			order = append(order, i)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return sizes[order[a]] > sizes[order[b]] })
	round := func(n int64) int64 { return (n + Alignment - 1) / Alignment * Alignment }
	var placed []int // by offset
	for _, i := range order {
		f := p.Buffers[i]
		at, n := int64(0), round(sizes[i])
		for _, j := range placed {
			g := p.Buffers[j]
			if g.Last < f.First || f.Last < g.First {
				continue
			}
			if at+n <= offsets[j] {
				break
			}
			at = max(at, offsets[j]+round(sizes[j]))
		}
		offsets[i] = at
		total = max(total, at+n)
		k := sort.Search(len(placed), func(k int) bool { return offsets[placed[k]] > at })
		placed = append(placed, 0)
		copy(placed[k+1:], placed[k:])
		placed[k] = i
	}
	return offsets, total
}
