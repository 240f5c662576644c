package sim

// results calls f for the slots that an instruction writes, operands for those that it reads.
func (in *inst) results(f func(s *slot)) {
	if in.D != none {
		f(&in.D)
	}
	if in.dir == updates && in.C != none {
		f(&in.C)
	}
	for i := range in.v[:in.outs] {
		if in.v[i] != none {
			f(&in.v[i])
		}
	}
}

func (in *inst) operands(f func(s *slot)) {
	for _, s := range []*slot{&in.A, &in.B, &in.C, &in.guard} {
		if *s != none && (s != &in.C || in.dir != updates) {
			f(s)
		}
	}
	for i := range in.v[in.outs:] {
		f(&in.v[int(in.outs)+i])
	}
}

// maxDefined bounds the bits of the sets that defined makes.
const maxDefined = 1 << 25

// defined reports that no register is read before it is written, whichever way a thread goes. The segments stand in reverse post order.
func (b *builder) defined(fixed map[slot]bool) bool {
	number := map[slot]int{}
	for i := range b.k.segs {
		for j := range b.k.segs[i].insts {
			b.k.segs[i].insts[j].results(func(s *slot) {
				if _, ok := number[*s]; !ok {
					number[*s] = len(number)
				}
			})
		}
	}
	words := len(number)/64 + 1
	if len(b.k.segs)*words*64 > maxDefined {
		return false
	}
	entry := make([][]uint64, len(b.k.segs)) // what each segment may rely on; nil for all
	entry[0] = make([]uint64, words)
	for again := true; again; {
		again = false
		for i := range b.k.segs {
			seg := &b.k.segs[i]
			now := append([]uint64(nil), entry[i]...) // what comes before it in the order includes a predecessor
			for j := range seg.insts {
				if in := &seg.insts[j]; in.guard == none {
					in.results(func(s *slot) { now[number[*s]/64] |= 1 << (number[*s] % 64) })
				}
			}
			for _, to := range seg.successors() {
				if entry[to] == nil {
					entry[to], again = append([]uint64(nil), now...), true
					continue
				}
				for w, x := range now {
					if y := entry[to][w] & x; y != entry[to][w] {
						entry[to][w], again = y, true
					}
				}
			}
		}
	}
	ok := true
	for i := range b.k.segs {
		seg, now := &b.k.segs[i], entry[i]
		read := func(s *slot) {
			n, written := number[*s]
			ok = ok && (fixed[*s] || written && now[n/64]>>(n%64)&1 != 0)
		}
		for j := range seg.insts {
			in := &seg.insts[j]
			in.operands(read)
			if in.guard == none {
				in.results(func(s *slot) { now[number[*s]/64] |= 1 << (number[*s] % 64) })
			}
		}
		if seg.term == termBranch {
			read(&seg.cond)
		}
	}
	return ok
}

// settle finds out whether registers must start as zero. If not, copies of what a whole block has, as constants and parameters, to registers that nothing
// else writes are left out.
func (b *builder) settle() {
	fixed := map[slot]bool{}
	for _, c := range b.k.consts {
		fixed[c.s] = true
	}
	for _, p := range b.k.params {
		fixed[p.s] = true
	}
	for _, dims := range b.k.sregs {
		for _, s := range dims {
			if s != none {
				fixed[s] = true
			}
		}
	}
	if b.k.clear = !b.defined(fixed); b.k.clear {
		return
	}
	writes := map[slot]int{}
	for i := range b.k.segs {
		for j := range b.k.segs[i].insts {
			b.k.segs[i].insts[j].results(func(s *slot) { writes[*s]++ })
		}
	}
	source := map[slot]slot{}
	for i := range b.k.segs {
		seg := &b.k.segs[i]
		kept := seg.insts[:0]
		for _, in := range seg.insts {
			if in.move && in.guard == none && fixed[in.A] && writes[in.D] == 1 {
				source[in.D] = in.A
			} else {
				kept = append(kept, in)
			}
		}
		seg.insts = kept
	}
	replace := func(s *slot) {
		if from, ok := source[*s]; ok {
			*s = from
		}
	}
	for i := range b.k.segs {
		seg := &b.k.segs[i]
		for j := range seg.insts {
			seg.insts[j].operands(replace)
		}
		replace(&seg.cond)
	}
}
