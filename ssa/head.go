package ssa

import "github.com/aton-project/aton/ssa/diag"

// Head inserts constants at the start of a block, in the order in which they are made, before all other ops. Only the block
// needs to be set.
type Head struct {
	Block *Block
	last  *Op
}

// Insert adds an op with one result after those that were inserted earlier.
func (h *Head) Insert(kind Kind, loc diag.Loc, t Type) *Op {
	before := h.Block.First()
	if h.last != nil {
		before = h.last.Next()
	}
	h.last = h.Block.InsertBefore(before, kind, loc, nil, t)
	return h.last
}
