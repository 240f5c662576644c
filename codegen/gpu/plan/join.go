package plan

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/emit"
)

// A launch takes time of its own, and one of few blocks leaves most of a GPU idle. So launches that do not need each other become one, whose first blocks do what those of the
// first launch do, and so on: products of one activation by several weights, normalizations of queries and of keys.

// What is joined: a launch moves before at most as many others, so that what it computes does not wait in memory for long; and a kernel has so many parts at most, as its code is that of all of them.
const (
	joinReach = 8
	joinParts = 8
)

// join puts each launch beside the last one before it that is like it, if all that it reads is there by then. Steps that are no launches stay where they are, and nothing moves
// past them.
func (b *builder) join(steps []*Step) []*Step {
	var out []*Step
	written := map[*Buffer]int{} // the step that has written a buffer
	begin := 0                   // behind the last step that is no launch
	for _, s := range steps {
		if s.Launch == nil {
			out = append(out, s)
			begin = len(out)
			continue
		}
		first := begin
		for f := range s.buffers(false) {
			if i, ok := written[f]; ok {
				first = max(first, i+1)
			}
		}
		at := len(out)
		for i := len(out) - 1; i >= max(first, len(out)-joinReach); i-- {
			if b.joins(out[i], s) {
				at = i
				break
			}
		}
		if at == len(out) {
			out = append(out, s)
		} else if old := out[at]; old.Parts == nil {
			out[at] = &Step{Parts: []*Step{old, s}}
		} else {
			old.Parts = append(old.Parts, s)
		}
		for f := range s.buffers(true) {
			written[f] = at
		}
	}
	for _, s := range out {
		if s.Parts != nil {
			b.joined(s)
		}
	}
	return out
}

// joins reports a launch that may become a part of a step.
func (b *builder) joins(s, part *Step) bool {
	parts := s.Parts
	if parts == nil {
		parts = []*Step{s}
	}
	one := func(s *Step) bool { return len(b.launches[s.Op]) == 1 }
	return len(parts) < joinParts && one(parts[0]) && one(part) && emit.Alike(parts[0].Launch, part.Launch)
}

// joined makes the launch of a step of its parts.
func (b *builder) joined(s *Step) {
	var launches []*emit.Launch
	for _, part := range s.Parts {
		launches = append(launches, part.Launch)
		for _, o := range part.Ops {
			if !slices.Contains(s.Ops, o) { // an operator that several ones read through
				s.Ops = append(s.Ops, o)
			}
		}
	}
	s.Op, s.First = s.Parts[0].Op, true
	s.Launch = emit.Join(launches)
	s.Kernel = b.kernel(s.Launch)
	for _, v := range s.Launch.Buffers {
		s.Args = append(s.Args, b.buffer(v))
	}
}

// buffers are those that a launch writes, or those that it reads.
func (s *Step) buffers(writes bool) func(yield func(*Buffer) bool) {
	return func(yield func(*Buffer) bool) {
		next := 0
		for _, p := range s.Launch.Kernel.Params {
			if p.Mem == nil {
				continue
			}
			f := s.Args[next]
			if next++; p.Mem.Writes == writes && !yield(f) {
				return
			}
		}
	}
}
