package sim

// Accesses is the kernel without what only computes the values that it stores: it makes the same accesses to global memory in a fraction of
// the time, and stores anything. What an address or a condition needs stays, also if it goes through memory.
func (k *Kernel) Accesses() *Kernel {
	s := &slicer{live: map[slot]bool{}, kept: map[*inst]bool{}}
	for i := range k.segs {
		if seg := &k.segs[i]; seg.term == termBranch {
			s.live[seg.cond] = true
		}
	}
	for s.again = true; s.again; {
		s.again = false
		for i := range k.segs {
			for j := range k.segs[i].insts {
				s.visit(&k.segs[i].insts[j])
			}
		}
	}
	out := *k
	out.segs = make([]segment, len(k.segs))
	for i, seg := range k.segs {
		if seg.term == termBarrier && !s.content[inner] {
			seg.term = termJump // nobody waits for anything
		}
		seg.insts = s.filter(seg.insts)
		out.segs[i] = seg
	}
	return &out
}

// reach is who can see memory.
type reach uint8

const (
	outer reach = iota // global memory
	inner              // of a block or a thread
)

func (in *inst) reach() reach {
	if in.space == shared || in.space == locals {
		return inner
	}
	return outer
}

// slicer finds the instructions that stay.
type slicer struct {
	live    map[slot]bool
	content [2]bool // what is in this memory is needed
	kept    map[*inst]bool
	again   bool
}

func (s *slicer) visit(in *inst) {
	if !s.kept[in] {
		if !s.needed(in) {
			return
		}
		s.kept[in], s.again = true, true
		in.operands(func(r *slot) {
			if in.dir != writes || r == &in.A || r == &in.guard { // what is stored may not matter
				s.need(*r)
			}
		})
	}
	switch in.dir {
	case reads, updates:
		if !s.content[in.reach()] && s.writesLive(in) {
			s.content[in.reach()], s.again = true, true
		}
	case writes:
		if s.content[in.reach()] {
			in.operands(func(r *slot) { s.need(*r) })
		}
	}
}

func (s *slicer) need(r slot) {
	if !s.live[r] {
		s.live[r], s.again = true, true
	}
}

func (s *slicer) needed(in *inst) bool {
	switch {
	case in.dir != noAccess && in.reach() == outer:
		return true
	case in.dir == writes || in.dir == updates || in.bare():
		return s.content[inner] || s.writesLive(in)
	}
	return s.writesLive(in)
}

// bare reports an instruction that is there for its effect on copies alone.
func (in *inst) bare() bool { return in.dir == noAccess && in.D == none && len(in.v) == 0 }

// writesLive reports that a result is needed.
func (s *slicer) writesLive(in *inst) bool {
	live := false
	in.results(func(r *slot) { live = live || s.live[*r] })
	return live
}

// filter gives what stays of a list. Of a copy to memory whose content nobody needs, the read is all that counts.
func (s *slicer) filter(insts []inst) []inst {
	var out []inst
	for i := range insts {
		if !s.kept[&insts[i]] {
			continue
		}
		in := insts[i]
		if in.copy && !s.content[inner] {
			in.run = func(*worker, *inst) {}
		}
		out = append(out, in)
	}
	return out
}
