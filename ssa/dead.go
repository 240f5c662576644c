package ssa

// Unused reports whether no result of the op has a use. An op without results is unused.
func (o *Op) Unused() bool {
	for _, r := range o.Results {
		if r.HasUses() {
			return false
		}
	}
	return true
}

// EraseUnused erases the ops of a block and of nested blocks that are unused and may be erased, and those that become unused
// by that. It visits each op once, from the last to the first.
func EraseUnused(b *Block, may func(o *Op) bool) {
	for o := b.Last(); o != nil; {
		prev := o.Prev()
		if o.Unused() && may(o) {
			o.Erase()
		} else {
			for _, inner := range o.Blocks {
				EraseUnused(inner, may)
			}
		}
		o = prev
	}
}

// EraseBetween erases the unused ops that stand between two of a block, from the last to the first, as those that were built for o in vain. Before is nil for
// the block's beginning.
func EraseBetween(before, o *Op) {
	for p := o.Prev(); p != nil && p != before; {
		prev := p.Prev()
		if p.Unused() {
			p.Erase()
		}
		p = prev
	}
}

// EraseChain erases an op if it is unused and may be erased, and then the ops that only it used.
func EraseChain(o *Op, may func(o *Op) bool) {
	if o.Block() == nil || !o.Unused() || !may(o) {
		return
	}
	operands := o.Operands()
	o.Erase()
	for _, v := range operands {
		if v != nil && v.Def() != nil {
			EraseChain(v.Def(), may)
		}
	}
}
