package specialize

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// value is what a TorchScript value is known to be:
//
//	ssa.Literal   a constant: number, string, None, dtype, device, enum, function, type
//	*ssa.Value    a number that depends on data or on symbolic shapes
//	*tensorRef    a tensor
//	*list         a list
//	*tuple        a tuple
//	*dict         a dict
//	*object       a module or another class instance
//	*maybe        None or a value, decided at run time
//	*choice       one of two constants that are not numbers, decided at run time
//	unset         prim::Uninitialized: never read, so any value will do
type value any

type unset struct{}

// cell is a place that the program can write to. Its content is immutable.
type cell struct {
	id      int // negative for what was there before the program ran: weights and attributes
	content any
}

type change struct {
	c   *cell
	old any
}

func (s *spec) newCell(content any) *cell {
	if s.before {
		s.stateCells++
		return &cell{id: -s.stateCells, content: content}
	}
	s.cells++
	return &cell{id: s.cells, content: content}
}

// asBefore runs f with cells that count as older than all blocks: the state of
// the module is filled in when it is first read, which may be in a branch.
func (s *spec) asBefore(f func()) {
	saved := s.before
	s.before = true
	defer func() { s.before = saved }()
	f()
}

// set writes a cell and remembers what it held, so that branches can be undone.
func (s *spec) set(c *cell, content any) {
	s.journal = append(s.journal, change{c, c.content})
	c.content = content
}

// undo takes back all writes since the journal had length mark and gives the
// last contents of the cells that were written, in the order of their ids.
func (s *spec) undo(mark int) map[*cell]any {
	last := map[*cell]any{}
	for i := len(s.journal) - 1; i >= mark; i-- {
		e := s.journal[i]
		if _, seen := last[e.c]; !seen {
			last[e.c] = e.c.content
		}
		e.c.content = e.old
	}
	s.journal = s.journal[:mark]
	return last
}

// tensorRef is one tensor object of the program: what Python's `is` compares.
type tensorRef struct {
	c *cell // *tensorState
	// base and val remember the last value read: val is the view of base.
	base, val *ssa.Value
	// element is set for what was taken out of a run-time list: the object that the list holds is another one.
	element bool
}

// tensorState is a view of a storage.
type tensorState struct {
	st      *storage
	chain   []viewStep
	strides []sym.Expr // in elements; nil if unknown
	// reshaped, if set, says why the shape is not known: it changed in place if this object is another one.
	reshaped string
}

// storage is memory that tensors share.
type storage struct {
	c *cell // storageState
	// strides are those of the memory itself, nil if they are not known.
	strides []sym.Expr
	// peers may or may not be the same memory: a write to one makes the others unreadable.
	peers []*storage
	// links tell of storages that are views of the same memory where a condition holds.
	links []*link
	// apart may be the same memory only if a dynamic axis has size 1.
	apart []*storage
	// origin says what kind of memory it is, for messages: "", "input", "parameter".
	origin string
	name   string
	// listed is set when a run-time list holds the tensor: as the list has a copy,
	// the memory must not be written. It is never reset, so that a loop which
	// writes before it appends is found when its body is gone through again.
	listed bool
}

// link says that from is the view of to where cond is side.
type link struct {
	from, to *storage
	cond     *ssa.Value
	side     bool
	view     *tensorState
}

type storageState struct {
	base *ssa.Value
	// stale is set when another storage that may be the same memory was written.
	stale string
}

type list struct {
	c    *cell // listState
	elem ssa.Type
}

// listState holds either elements, or a run-time list.
type listState struct {
	elems []value
	// dyn is a list of unknown length: of type Tensor[], int[], float[] or bool[].
	dyn *ssa.Value
	// parts is set if dyn holds views of a tensor.
	parts *parts
}

type tuple struct {
	elems []value
	typ   *ssa.TupleType
}

type dict struct {
	c   *cell // dictState
	typ ssa.Type
}

type dictState struct {
	keys []ssa.Literal
	vals []value
}

type object struct {
	class string
	path  string
	src   *ssa.Object
	attrs map[string]*cell // of value; filled on first access
}

// maybe is val when has is true, else None.
type maybe struct {
	has *ssa.Value
	val value
}

func (s *spec) newList(elem ssa.Type, elems []value) *list {
	return &list{c: s.newCell(&listState{elems: elems}), elem: elem}
}

func (l *list) state() *listState { return l.c.content.(*listState) }

func (d *dict) state() *dictState { return d.c.content.(*dictState) }

func (t *tensorRef) state() *tensorState { return t.c.content.(*tensorState) }

func (st *storage) state() storageState { return st.c.content.(storageState) }

// hold notes that a run-time list holds the elements.
func hold(elems ...value) {
	for _, e := range elems {
		if t, ok := e.(*tensorRef); ok {
			t.state().st.listed = true
		}
	}
}

// newStorage makes memory that holds v with these strides.
func (s *spec) newStorage(v *ssa.Value, strides []sym.Expr) *storage {
	return &storage{c: s.newCell(storageState{base: v}), strides: strides}
}

// newTensor makes a tensor object of memory of its own.
func (s *spec) newTensor(v *ssa.Value) *tensorRef {
	return s.newLaid(v, contiguous(v))
}

// newLaid makes a tensor object of memory of its own with these strides.
func (s *spec) newLaid(v *ssa.Value, strides []sym.Expr) *tensorRef {
	return s.newView(s.newStorage(v, strides), nil, strides, v, v)
}

// newView makes a tensor object that views a storage; val is its current value for base.
func (s *spec) newView(st *storage, chain []viewStep, strides []sym.Expr, base, val *ssa.Value) *tensorRef {
	return &tensorRef{c: s.newCell(&tensorState{st: st, chain: chain, strides: strides}), base: base, val: val}
}

// contiguous gives row-major strides of a value, nil if its rank is unknown.
func contiguous(v *ssa.Value) []sym.Expr {
	t := v.Tensor()
	if t == nil || !t.Ranked {
		return nil
	}
	out := make([]sym.Expr, len(t.Dims))
	n := sym.Const(1)
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = n
		n = n.Mul(t.Dims[i])
	}
	return out
}

func isNone(v value) bool {
	l, ok := v.(ssa.Literal)
	return ok && l.IsNone()
}

// same reports that two values are the same constant or the same object.
func same(a, b value) bool {
	la, ok := a.(ssa.Literal)
	if ok {
		lb, ok := b.(ssa.Literal)
		return ok && la.Equal(lb)
	}
	if _, ok := b.(ssa.Literal); ok {
		return false
	}
	if ta, ok := a.(*tuple); ok {
		tb, ok := b.(*tuple)
		if !ok || len(ta.elems) != len(tb.elems) {
			return false
		}
		for i := range ta.elems {
			if !same(ta.elems[i], tb.elems[i]) {
				return false
			}
		}
		return true
	}
	if va, ok := a.(*ssa.Value); ok {
		vb, ok := b.(*ssa.Value)
		return ok && va == vb
	}
	return a == b
}
