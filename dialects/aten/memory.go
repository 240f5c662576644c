package aten

import (
	"strings"

	"github.com/aton-project/aton/ssa"
)

// View says what the first result of an operator shares with its first argument.
type View int

// The kinds of views.
const (
	// DeclaredView results are views if the declaration says that they are aliases of the first argument, and have memory of their own otherwise.
	DeclaredView View = iota
	// NoView results have memory of their own.
	NoView
	// AlwaysView results are views.
	AlwaysView
	// ViewIfStrides results are views if the strides of the argument allow it, and copies otherwise.
	ViewIfStrides
	// ViewIfUnchanged results are the argument itself if nothing changes, and copies otherwise.
	ViewIfUnchanged
	// MayBeView results may share memory with some operand: nothing says when.
	MayBeView
)

// ViewOf is what the result of an operator shares with its first argument; it is never [DeclaredView].
func ViewOf(k ssa.Kind, s *ssa.Schema) View {
	if v := row(k).View; v != DeclaredView {
		return v
	}
	if all := Schemas(k); s == nil && len(all) > 0 {
		s = all[0]
	}
	if SharesMemory(s) {
		return AlwaysView
	}
	return NoView
}

// SharesMemory reports that by its schema the first result of an operator shares memory with its first argument, a tensor that it does not write.
func SharesMemory(s *ssa.Schema) bool {
	if s == nil || len(s.Args) == 0 || len(s.Returns) == 0 {
		return false
	}
	a, r := s.Args[0], s.Returns[0]
	if ssa.AsTensor(a.Type) == nil || a.Alias == "" || a.Writes {
		return false
	}
	return r.Alias != "" && strings.Trim(r.Alias, "*") != "" || a.Alias == "a" && a.AliasAfter == "*"
}

// Layout says how the result of an operator lies in memory: x.t() + 1 is laid out as x.t() is, so that a reshape of it copies where one
// of x + 1 shares memory. The layouts are what PyTorch 2.15 does on a CPU with its own samples of operators, laid out in all orders.
type Layout int

// The layouts of results.
const (
	// NatureLayout is the layout that follows from the nature: [LikeOperands] for [Pointwise], [RowMajor] for [Reduces]. Other results are
	// row-major for row-major operands, and of unknown layout for others.
	NatureLayout Layout = iota
	// LikeOperands results are laid out as the operands are (TensorIterator).
	LikeOperands
	// RowMajor results are contiguous whatever the operands are.
	RowMajor
	// AnyLayout results need not be row-major for row-major operands.
	AnyLayout
)

// LayoutOf is the layout of the result of a built-in operator, or of one that writes its result into an operand.
func LayoutOf(k ssa.Kind, s *ssa.Schema) Layout {
	d := functionalRow(k)
	switch {
	case d.Layout != NatureLayout:
		return d.Layout
	case d.Nature == Pointwise, d.Nature == Reduces && s != nil && s.Arg("other") >= 0: // the maximum of two tensors
		return LikeOperands
	case d.Nature == Reduces:
		return RowMajor
	}
	return NatureLayout
}
