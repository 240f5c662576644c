package ssa

// Unused reports that nothing uses a result of the op. An op without results is unused.
func (o *Op) Unused() bool {
	for _, r := range o.Results {
		if r.HasUses() {
			return false
		}
	}
	return true
}

// EraseUnused erases the ops of a block, and of the blocks in it, that nothing uses and that may go, and what then has no
// use either. It goes once from the last op to the first.
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

// EraseChain erases an op that nothing uses and that may go, and then what it alone used.
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
