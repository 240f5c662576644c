package ssa

import "github.com/aton-project/aton/ssa/diag"

// Head inserts constants at the start of a block, in the order in which they are made, before all that is there. The zero
// value with a block is ready.
type Head struct {
	Block *Block
	last  *Op
}

// Insert adds an op of one result behind those that were inserted before it.
func (h *Head) Insert(kind Kind, loc diag.Loc, t Type) *Op {
	before := h.Block.First()
	if h.last != nil {
		before = h.last.Next()
	}
	h.last = h.Block.InsertBefore(before, kind, loc, nil, t)
	return h.last
}
