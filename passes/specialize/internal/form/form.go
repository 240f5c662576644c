// Package form has the forms of values that are not the same each time: in the iterations of a loop, or in one branch of an If only. A form says what
// of a value varies, as values of the target function, and how the value is put together again.
//
// Forms are a lattice. At the bottom is the value itself, which does not vary. Widen goes up in it, until a form fits all values that it is given; each
// value has a form of its own at first, so that a size becomes a symbol, and a list of known length one of run-time length, only where they have to.
// A loop widens until nothing changes. An If has two values only, which Join joins once.
//
// Two things hold of an If alone, as only two ends meet there: its condition tells which of two strings a value is, and a form knows the two objects
// that it stands for (Made), so that the walk can say under which condition the new object is the one or the other.
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
	choice              // one of two strings and the like, which the condition of the If tells
	object              // an object of one class, attribute by attribute
	again               // the object that another form stands for
	columns             // a list of run-time length of tuples, or of what may be None, column by column
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
	wide  []bool   // the axes of a tensor whose sizes vary
	class string   // of an object
	names []string // of its attributes
	shape bool     // the content of the cell of a tensor
	raw   bool     // the content of a cell instead of a value
	// view is the form of a view, and places the arguments in it that vary.
	view    *heap.View
	places  []heap.Place
	strides []sym.Expr // of a tensor that has them at both ends of an If
	loose   bool       // a tensor that is not known to be row-major each time
	spread  bool       // a tensor of which several elements may be in one place of memory, as those of an expanded one
	pool    *Pool      // of which the elements are rows
	member  bool       // an element of a run-time list: sizes vary from element to element
	cols    py.Spread  // the columns of a list of run-time length
	// ends are what the value is at the two ends of an If, and made is what Rebuild made of it.
	ends [2]any
	made any
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

// shaped stands for the content of the cell of a tensor.
type shaped struct{ *py.Tensor }

func rawOf(content any) any {
	switch x := content.(type) {
	case heap.State:
		return base{x.Base}
	case *heap.View:
		return shaped{&py.Tensor{Cell: journal.Loose(x)}}
	}
	return content
}

// Content makes the content of a cell of what Rebuild gives for it; old is what the cell has.
func Content(old, raw any) any {
	switch r := raw.(type) {
	case base:
		st := old.(heap.State)
		st.Base = r.v
		return st
	case shaped:
		return r.Cell.Content()
	}
	return raw
}

// absent reports that there is no value at a moment. An attribute that one branch sets is read behind that branch only, as a variable is.
func (s *Space) absent(x any) bool {
	_, ok := x.(py.Unset)
	return ok || x == nil && s.If != nil
}

// same reports that two values, or contents of cells, are one.
func (s *Space) same(a, b any) bool {
	switch a := a.(type) {
	case base:
		b, ok := b.(base)
		return ok && a.v == b.v
	case shaped:
		b, ok := b.(shaped)
		return ok && a.Cell.Content() == b.Cell.Content()
	case *py.ListState:
		b, ok := b.(*py.ListState)
		if !ok || a.Dyn != b.Dyn || a.Columns != b.Columns || len(a.Elems) != len(b.Elems) {
			return false
		}
		for i := range a.Elems {
			if !s.sameValue(a.Elems[i], b.Elems[i]) {
				return false
			}
		}
		return true
	case *py.DictState:
		return a == b
	}
	return s.sameValue(py.AsValue(a), py.AsValue(b))
}

// sameValue is py.Same, and true of a size that an iteration computes anew: the one from before the loop is still there.
func (s *Space) sameValue(a, b py.Value) bool {
	if py.Same(a, b) {
		return true
	}
	x, ok0 := py.ExprOf(a)
	y, ok1 := py.ExprOf(b)
	return s.If == nil && ok0 && ok1 && x.Equal(y) && !sym.Varies(x)
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
	// At runs f as at one of the two moments of which values are: before the loop and behind an iteration, or the ends of the two branches.
	At(moment int, f func())
	// Read is the value of a tensor, RowMajor reports that it lies so in memory, and Moved is a view with other arguments in some places.
	Read(t *py.Tensor) *ssa.Value
	RowMajor(t *py.Tensor, v *ssa.Value) bool
	// Overlaps reports that several elements of a tensor may be in one place of memory.
	Overlaps(t *py.Tensor, v *ssa.Value) bool
	Moved(v *heap.View, places []heap.Place, args []py.Value) *py.Tensor
	// Size is what stands for two sizes. It varies if it is a symbol of its own.
	Size(a, b sym.Expr) (size sym.Expr, varies bool)
	// Number is the value of a number.
	Number(x py.Value) *ssa.Value
	// Numbers is told of two numbers of which one form is made.
	Numbers(x, y py.Value)
	// Dummy is a value of a type, where nobody reads it.
	Dummy(t ssa.Type) *ssa.Value
	// ElemType is the type of the elements of a run-time list of st, nil if it has none, and Listed is that list. Vectors reports that elements
	// which have this type in the program are vectors in it.
	ElemType(st *py.ListState) ssa.Type
	Listed(st *py.ListState, elem ssa.Type) *ssa.Value
	Vectors(elem ssa.Type) bool
	// Column is column i of a list that has such columns, or could have.
	Column(st *py.ListState, cols py.Spread, i int) *py.ListState
	// PoolOf is the pool of which all elements of a list are rows, Places are the places of these, and Rows is the list with such places.
	PoolOf(st *py.ListState, changes journal.Changes) *Pool
	Places(p *Pool, st *py.ListState) *ssa.Value
	Rows(p *Pool, places *ssa.Value) *py.ListState
	// CheckKeys fails if the keys of a dict are other ones each time.
	CheckKeys(st *py.DictState)
	// Unranked is told of a tensor that does not keep its rank, and Lost of a value of which something is not known.
	Unranked()
	Lost(v *ssa.Value)
	// Made is told of an object that stands for two, and of these; py.Unset is in the place of one that there is not.
	Made(x any, ends [2]any)
	// Refuse ends the search for a form. The types are those that differ.
	Refuse(why Clash, types ...any)
}

// Clash is why values have no form.
type Clash int

const (
	NoForm       Clash = iota // of a value that has none in ONNX
	NotTensor                 // what is a tensor is something else, too
	NotNumber                 // likewise
	NotTuple                  // likewise, or a tuple of another length
	NotList                   // likewise
	NotDict                   // likewise
	DTypes                    // of tensors
	NumberTypes               // a number has two types
	Ranks                     // of tensors, where none may vary
	Lengths                   // of lists, where none may vary
	Keys                      // a dict has other keys
	KeyOrder                  // a dict has them in another order
	Strings                   // a string varies
	NoneOrValue               // where nothing may be None at times only
	NoneOrList                // None, or what no value stands for where it is None
	UnsetOrList               // a list of run-time length that is not always there
	Elements                  // those of a list of run-time length have several forms
	NoneAlone                 // all that is known of a list of run-time length are elements that are None
	ShapeInPlace              // the shape of a tensor is changed
	Attribute                 // an attribute is not always there
)

// Space is where the forms of one loop or If are looked for.
type Space struct {
	Program
	Heap   *heap.Heap
	Module *ssa.Module
	// If is the If whose two ends are joined, nil for a loop.
	If *ssa.Op
	// Start is the last cell from before the loop or If: other ones are made in it. Symbols after Fresh may differ from iteration to iteration.
	Start, Fresh int
	// Strict refuses what an iteration by itself would not need: lists of run-time length, ranks that vary, None.
	Strict bool
	// Awaits is set where the form of a list has to wait for a round that tells what its elements are: forms that nothing changes do not fit then.
	Awaits bool
	// Changes are what was written until the two moments: nothing, and what an iteration writes, or what the branches write.
	Changes [2]journal.Changes
	// joined are the forms of pairs of objects of an If.
	joined map[[2]any]*Form
}
