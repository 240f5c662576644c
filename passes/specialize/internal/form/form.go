// Package form has the forms of values that are not the same each time: in the iterations of a loop, or in one branch of an If only. A form says what
// of a value varies, as values of the target function, and how the value is put together again.
//
// Forms are a lattice. At the bottom is the value itself, which does not vary. Widen goes up in it, until a form fits all values that it is given; each
// value has a form of its own at first, so that a size becomes a symbol, and a list of known length one of run-time length, only where they have to.
package form

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

type kind int

const (
	fixed   kind = iota // the same value each time
	number              // an int, float or bool
	tens                // a tensor
	tuple               // a tuple, member by member
	list                // a list of known length, element by element
	dict                // a dict of known keys
	runTime             // a list of run-time length
	option              // None or a value
	viewed              // a view of memory from before: the numbers that say where it begins
	placed              // a list of run-time length of rows of a pool: their places
)

// Form is what a value, or the content of a cell, is each time.
type Form struct {
	kind  kind
	value any      // of fixed and viewed: what it is at first
	typ   ssa.Type // of a number or a tensor; of a tuple or a dict, its type in the program
	elems []*Form  // of the parts; of a list of run-time length, that of all its elements, if these are tensors
	elem  ssa.Type // of the elements of a list
	of    ssa.Type // the type of the elements of a run-time list in the program, if they are vectors in the place of lists
	keys  []ssa.Literal
	wide  []bool // the axes of a tensor whose sizes vary
	raw   bool   // the content of a cell instead of a value
	// view is the form of a view, and places the arguments in it that vary.
	view   *heap.View
	places []heap.Place
	loose  bool  // a tensor that is not known to be row-major each time
	spread bool  // a tensor of which several elements may be in one place of memory, as those of an expanded one
	pool   *Pool // of which the elements are rows
	member bool  // an element of a run-time list: sizes vary from element to element
}

// Of is the form of a value, or of the content of a cell, that does not vary.
func Of(x any) *Form { return &Form{kind: fixed, value: rawOf(x)} }

// Pool is memory with a row for each tensor of one type.
type Pool struct {
	Elem *ssa.TensorType
	Self *py.Tensor
}

// Storage is the memory of the pool.
func (p *Pool) Storage() *heap.Storage { return heap.ViewOf(p.Self).Storage }

// base stands for the content of the cell of a storage.
type base struct{ v *ssa.Value }

func rawOf(content any) any {
	if st, ok := content.(heap.State); ok {
		return base{st.Base}
	}
	return content
}

// Content makes the content of a cell of what Rebuild gives for it; old is what the cell has.
func Content(old, raw any) any {
	if r, ok := raw.(base); ok {
		st := old.(heap.State)
		st.Base = r.v
		return st
	}
	return raw
}

// same reports that two values, or contents of cells, are one.
func same(a, b any) bool {
	switch a := a.(type) {
	case base:
		b, ok := b.(base)
		return ok && a.v == b.v
	case *py.ListState:
		b, ok := b.(*py.ListState)
		if !ok || a.Dyn != b.Dyn || len(a.Elems) != len(b.Elems) {
			return false
		}
		for i := range a.Elems {
			if !sameNumber(a.Elems[i], b.Elems[i]) {
				return false
			}
		}
		return true
	case *heap.View, *py.DictState:
		return a == b
	}
	return sameNumber(py.AsValue(a), py.AsValue(b))
}

// sameNumber is py.Same, and true of a size that was computed anew.
func sameNumber(a, b py.Value) bool {
	if py.Same(a, b) {
		return true
	}
	x, ok0 := py.ExprOf(a)
	y, ok1 := py.ExprOf(b)
	return ok0 && ok1 && x.Equal(y) && !sym.Varies(x)
}

// ListContent is the content of a list, or x itself if it is one; nil for what is no list.
func ListContent(x any, changes journal.Changes) *py.ListState {
	switch x := x.(type) {
	case *py.ListState:
		return x
	case *py.List:
		return changes.Of(x.Cell).(*py.ListState)
	}
	return nil
}

// DictContent is ListContent for dicts.
func DictContent(x any, changes journal.Changes) *py.DictState {
	switch x := x.(type) {
	case *py.DictState:
		return x
	case *py.Dict:
		return changes.Of(x.Cell).(*py.DictState)
	}
	return nil
}

// Program is what forms need of the program and of the target function.
type Program interface {
	// Read is the value of a tensor, RowMajor reports that it lies so in memory, and Moved is a view with other arguments in some places.
	Read(t *py.Tensor) *ssa.Value
	RowMajor(t *py.Tensor, v *ssa.Value) bool
	// Overlaps reports that several elements of a tensor may be in one place of memory.
	Overlaps(t *py.Tensor, v *ssa.Value) bool
	Moved(v *heap.View, places []heap.Place, args []py.Value) *py.Tensor
	// Number is the value of a number.
	Number(x py.Value) *ssa.Value
	// Dummy is a value of a type, where nobody reads it.
	Dummy(t ssa.Type) *ssa.Value
	// ElemType is the type of the elements of a run-time list of st, nil if it has none, and Listed is that list. Vectors reports that elements
	// which have this type in the program are vectors in it.
	ElemType(st *py.ListState) ssa.Type
	Listed(st *py.ListState, elem ssa.Type) *ssa.Value
	Vectors(elem ssa.Type) bool
	// PoolOf is the pool of which all elements of a list are rows, Places are the places of these, and Rows is the list with such places.
	PoolOf(st *py.ListState, changes journal.Changes) *Pool
	Places(p *Pool, st *py.ListState) *ssa.Value
	Rows(p *Pool, places *ssa.Value) *py.ListState
	// CheckKeys fails if the keys of a dict are other ones each time.
	CheckKeys(st *py.DictState)
	// Unranked is told of a tensor that does not keep its rank, and Lost of a value of which something is not known.
	Unranked()
	Lost(v *ssa.Value)
	// Refuse ends the search for a form.
	Refuse(why string)
}

// Space is where the forms of one loop are looked for.
type Space struct {
	Program
	Heap   *heap.Heap
	Module *ssa.Module
	// Start is the last cell from before the loop: other ones are made in it. Symbols after Fresh may differ from iteration to iteration.
	Start, Fresh int
	// Strict refuses what an iteration by itself would not need: lists of run-time length, ranks that vary, None.
	Strict bool
	// Changes are what an iteration writes: what Widen is given is read under them.
	Changes journal.Changes
}
