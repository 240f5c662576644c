package plan

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/ssa"
)

// A launch takes time of its own, and one of few blocks leaves most of a GPU idle. So launches that do not need each other become one, whose first blocks do what those of the
// first launch do, and so on: products of one activation by several weights, normalizations of queries and of keys.

const (
	// joinReach is how many steps away the other launch may be, which bounds the work of looking for it.
	joinReach = 8
	// joinParts is how many parts a kernel has at most: its code is that of all of them.
	joinParts = 8
)

// join makes one launch of launches that are alike: first of those of one class, such as the products of one activation.
func (b *builder) join(block *ssa.Block, steps []*Step) []*Step {
	sameClass := func(l, m *emit.Launch) bool { return l.Class == m.Class && emit.Alike(l, m) }
	steps = b.gather(block, b.gather(block, steps, sameClass), emit.Alike)
	for _, s := range steps {
		if s.Parts != nil {
			b.joined(s)
		}
	}
	return steps
}

// gather puts each launch beside the last one before it that is like it. Either the launch moves to that one, if all that it reads is there by then, or that one moves to the launch, if
// nobody has read yet what it writes; but not where the temporaries would take more memory, as far as sizes are known. Steps that are no launches stay where they are, and nothing moves past them.
func (b *builder) gather(block *ssa.Block, steps []*Step, alike func(l, m *emit.Launch) bool) []*Step {
	l := b.livesOf(block, steps)
	out := slices.Clone(steps)   // nil where a step has moved away
	written := map[*Buffer]int{} // the step that has written a buffer
	read := map[*Buffer]bool{}   // some step has read it
	begin := 0                   // behind the last step that is no launch
	for at, s := range steps {
		if s.Launch == nil && s.Parts == nil {
			begin = at + 1
			continue
		}
		ready := begin
		for f := range s.buffers(false) {
			read[f] = true
			if i, ok := written[f]; ok {
				ready = max(ready, i+1)
			}
		}
		to := at
		for i := at - 1; i >= max(begin, at-joinReach); i-- {
			old := out[i]
			if old == nil || !b.joins(old, s, alike) {
				continue
			}
			if i >= ready && l.move(s, at, i) {
				to = i
			} else if !unread(old, read) || !l.move(old, i, at) {
				continue
			}
			out[i], out[at] = nil, nil
			s = &Step{Parts: append(old.parts(), s.parts()...)}
			out[to] = s
			break
		}
		for f := range s.buffers(true) {
			written[f] = to
		}
	}
	return slices.DeleteFunc(out, func(s *Step) bool { return s == nil })
}

// unread reports a step that has written nothing that another one has read.
func unread(s *Step, read map[*Buffer]bool) bool {
	for f := range s.buffers(true) {
		if read[f] {
			return false
		}
	}
	return true
}

// lives say how much memory the steps of a block need.
type lives struct {
	bytes map[*Buffer]int64
	last  map[*Buffer]int // the last step that needs the buffer
	live  []int64         // bytes that are needed in a step
	most  int64
}

func (b *builder) livesOf(block *ssa.Block, steps []*Step) *lives {
	l := &lives{map[*Buffer]int64{}, map[*Buffer]int{}, make([]int64, len(steps)+1), 0}
	use := func(f *Buffer, at int) {
		if f == nil || f.Kind == Weight || f.Kind == Input {
			return
		}
		if _, ok := l.last[f]; !ok {
			if n, ok := index.Prod(f.Value.Tensor().Dims).Eval(b.hint); ok {
				l.bytes[f] = n * int64(f.Value.DType().Size())
			}
			l.live[at] += l.bytes[f]
		}
		l.last[f] = at
	}
	for i, s := range steps {
		b.touched(s, func(f *Buffer) { use(f, i) })
	}
	for _, v := range block.Returns() {
		use(b.BufferOf(v), len(steps))
	}
	for f, end := range l.last { // so far there is what begins in each step
		if end < len(steps) {
			l.live[end+1] -= l.bytes[f]
		}
	}
	for i := range steps {
		l.live[i+1] += l.live[i]
	}
	l.most = slices.Max(l.live)
	return l
}

// move reports that a step can move to another place without more memory than the steps take anyway, and does so.
func (l *lives) move(s *Step, from, to int) bool {
	first := min(from, to)
	live := slices.Clone(l.live[first : max(from, to)+1])
	add := func(f *Buffer, begin, end int, sign int64) {
		for i := begin; i < end; i++ {
			live[i-first] += sign * l.bytes[f]
		}
	}
	for f := range s.buffers(true) {
		add(f, to, from, 1)
		add(f, from, to, -1)
	}
	for f := range s.buffers(false) {
		if end, ok := l.last[f]; ok {
			add(f, max(from, end)+1, to+1, 1)
		}
	}
	if slices.Max(live) > l.most {
		return false
	}
	copy(l.live[first:], live)
	for f := range s.buffers(false) {
		if end, ok := l.last[f]; ok {
			l.last[f] = max(end, to)
		}
	}
	return true
}

// parts are the steps of which a launch does the work: it alone, if it is not joined.
func (s *Step) parts() []*Step {
	if s.Parts == nil {
		return []*Step{s}
	}
	return s.Parts
}

// joins reports launches that may be parts of one. All parts of a launch are alike, so the first one stands for all.
func (b *builder) joins(s, t *Step, alike func(l, m *emit.Launch) bool) bool {
	x, y := s.parts(), t.parts()
	one := func(s *Step) bool { return len(b.launches[s.Op]) == 1 }
	return len(x)+len(y) <= joinParts && one(x[0]) && one(y[0]) && alike(x[0].Launch, y[0].Launch)
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

// buffers are those that the parts of a launch write, or those that they read.
func (s *Step) buffers(writes bool) func(yield func(*Buffer) bool) {
	return func(yield func(*Buffer) bool) {
		for _, part := range s.parts() {
			next := 0
			for _, p := range part.Launch.Kernel.Params {
				if p.Mem == nil {
					continue
				}
				f := part.Args[next]
				if next++; p.Mem.Writes == writes && !yield(f) {
					return
				}
			}
		}
	}
}
