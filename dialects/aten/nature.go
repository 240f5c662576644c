package aten

import (
	"strings"

	"github.com/aton-project/aton/ssa"
)

// Nature says how the elements of an operator's results depend on those of its operands. What holds for all operators of a nature
// follows from it and is written once: the batching rule of torch.vmap, what becomes of complex numbers and of quantization parameters, and
// in which order elements lie in memory. What an operator has of its own is a field of its [Def].
type Nature int

// The natures of operators.
const (
	// Unspecified is the nature of operators of which nothing follows.
	Unspecified Nature = iota
	// Pointwise operators compute each element of the result from the elements at its place of the operands, which broadcast
	// (TensorIterator). The result is laid out in memory as the operands are.
	Pointwise
	// Identity operators give the elements of self as they are.
	Identity
	// Transposes operators permute the dimensions of self.
	Transposes
	// Slices operators give a part of self: an index, or a range of indices, of one dimension.
	Slices
	// Splits operators give a list of parts of self along one dimension.
	Splits
	// Windows operators give elements of self along several dimensions at a time, or several times: diagonals, and windows that overlap.
	Windows
	// Reshapes operators give the elements of self, in the same order, in another shape.
	Reshapes
	// Expands operators repeat self along dimensions of size 1, and along new ones.
	Expands
	// Moves operators compose their result of elements of self, in new memory: each element of it is one of self, or a number that fills it up.
	Moves
	// Scatters operators replace elements of self by those of another tensor or by a number.
	Scatters
	// Joins operators compose their result of the elements of several tensors, which are members of their first argument.
	Joins
	// AlongDim operators compute a result of the same rank in which an element depends on those of self that differ from it in the index of the
	// dimension dim only.
	AlongDim
	// Reduces operators compute one element of the elements of self along the dimensions dim, or of all.
	Reduces
	// Multilinear operators are linear in each of their tensors. An argument bias is added to the result.
	Multilinear
	// Samples operators compute a result for each element of the first dimension of self by itself; a tensor without that dimension is one sample.
	Samples
	// CreatesLike operators make a tensor of one number, of which self gives the element type and may give the shape.
	CreatesLike
)

// builtin has the rows of all families, one definition an operator. It is filled when the program starts and not by an initializer, since
// lowerings, which the rows name, look rows up.
var builtin map[ssa.Kind][]Def

func init() {
	addPrims(families())
	n := 0
	for _, f := range families() {
		n += len(f)
	}
	builtin = make(map[ssa.Kind][]Def, n)
	for _, f := range families() {
		for k, d := range f {
			insert(builtin, k, *d)
		}
	}
	for k, list := range builtin {
		if d, to := &list[0], row(row(k).Alias); d.Alias != "" && d.Complex == nil && d.Grid == NatureGrid {
			d.Complex, d.Grid = to.Complex, to.Grid
		}
	}
}

var noRow Def

// row is the row of a built-in operator, an empty one if there is none.
func row(k ssa.Kind) *Def {
	if list := builtin[k]; len(list) > 0 {
		return &list[0]
	}
	return &noRow
}

// AliasOf is the operator of which a built-in one is another name; empty if it is none.
func AliasOf(k ssa.Kind) ssa.Kind { return row(k).Alias }

// NoGradient is the rule of operators whose results have no gradient.
const NoGradient = "0"

// GradientOf is the rule for the gradients of a built-in operator's operands; empty if there is none. One that is another name has that of the other one.
func GradientOf(k ssa.Kind) string {
	d := row(k)
	if d.Gradient == "" && d.Alias != "" {
		d = row(d.Alias)
	}
	return d.Gradient
}

// NatureOf is the nature of a built-in operator; one that writes its result into an operand has that of its functional form.
func NatureOf(k ssa.Kind) Nature { return functionalRow(k).Nature }

// IsItem reports operators that read the only element of a tensor as a number.
func IsItem(k ssa.Kind) bool { return row(k).Item }

// Kept is the number of the argument that an operator on a container puts into it, of which the schema says t(c -> *); -1 where there is none.
func Kept(s *ssa.Schema) int {
	if s == nil || len(s.Args) == 0 || !s.Args[0].Writes {
		return -1
	}
	for i := len(s.Args) - 1; i > 0; i-- {
		if s.Args[i].AliasAfter == "*" {
			return i
		}
	}
	return -1
}

// IdempotentInPlace reports whether an operator is the in-place form of one that gives its own result again.
func IdempotentInPlace(k ssa.Kind) bool {
	pure, writes := strings.CutSuffix(string(k), "_")
	return writes && row(ssa.Kind(pure)).Idempotent
}

// functionalRow is the row of a built-in operator, or of the functional form of one that writes its result into an operand.
func functionalRow(k ssa.Kind) *Def {
	d := row(k)
	if pure, writes := strings.CutSuffix(string(k), "_"); d == &noRow && writes {
		d = row(ssa.Kind(pure))
	}
	return d
}

// MovesElements reports operators whose results have no other elements than self has, and numbers that fill the result up.
func (n Nature) MovesElements() bool {
	switch n {
	case Identity, Transposes, Slices, Splits, Windows, Reshapes, Expands, Moves:
		return true
	}
	return false
}
