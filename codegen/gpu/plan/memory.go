package plan

import "github.com/aton-project/aton/codegen/gpu/index"

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

// extents are the buffers in the arena, by their sizes in bytes, which are rounded up to Alignment; of[k] is the number of the k-th.
func (p *Plan) extents(sizes []int64) (es []extent, of []int) {
	for i, f := range p.Buffers {
		if f.Kind == Temp || f.Kind == Output {
			es = append(es, extent{size: (sizes[i] + Alignment - 1) / Alignment * Alignment, first: max(f.First, 0), last: max(f.Last, 0)}) // -1 where no step uses it
			of = append(of, i)
		}
	}
	return es, of
}

// LiveBytes is the lower bound of the arena, in bytes: the greatest sum over the steps of the rounded sizes of the temporaries and
// outputs that are needed in the step.
func (p *Plan) LiveBytes(sizes []int64) int64 {
	es, _ := p.extents(sizes)
	return liveBytes(es)
}

// Allocate places the temporaries and outputs in one arena of total bytes, at multiples of Alignment; those that are needed in the
// same step do not overlap. Buffers of other kinds have offset -1. The same sizes give the same offsets.
func (p *Plan) Allocate(sizes []int64) (offsets []int64, total int64) {
	es, of := p.extents(sizes)
	at, total := pack(es)
	offsets = make([]int64, len(p.Buffers))
	for i := range offsets {
		offsets[i] = -1
	}
	for k, i := range of {
		offsets[i] = at[k]
	}
	return offsets, total
}
