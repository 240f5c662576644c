// Package heap has the memory of a program: storages, the tensors that view
// them, and what is known of storages that may share memory.
//
// A tensor object is a cell that holds a View: a storage, and the chain of steps
// from it to the view. The value of a storage is replaced when any view of it is
// written (see Write). Views are derived anew when they are read, so that a write
// shows through all of them.
//
// What two storages have to do with each other may depend on data. A Link says
// that one is a view of the other where a condition holds, and a write goes along
// it under that condition. Peers may or may not be the same memory; nothing says
// when, so a write to one makes the others unreadable.
//
// The heap knows nothing of the walk over the program. What a step of a view
// computes, a Graph says.
package heap

import (
	"cmp"
	"maps"
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Heap makes lists, storages and tensors, and records what is known of them.
type Heap struct {
	journal.Journal
	// Step, if set, is called for each relation that is looked at: names of one object multiply them.
	Step func()
	// twins are tensors, lists, dicts and attributes that are the same object in some case.
	twins map[*journal.Cell][]*journal.Cell
	// copied stands for the copies of lists that run-time lists hold.
	copied *journal.Cell
}

// Step is one step from a base to a view of it.
type Step struct {
	Kind   ssa.Kind
	Schema *ssa.Schema
	Args   []py.Value // by schema; Args[0] is the base and not looked at
	Index  int        // for operators that give a list of views: which one
	N      int        // the length of that list, 0 for others
}

// Arg is an argument by its name, None if the operator has none of that name.
func (st *Step) Arg(name string) py.Value {
	if i := st.Schema.Arg(name); i >= 0 && i < len(st.Args) {
		return st.Args[i]
	}
	return py.None
}

// View is what a tensor object is at one time.
type View struct {
	Storage *Storage
	Chain   []Step
	Strides []sym.Expr // in elements; nil if unknown
	// Lost, if set, says why the shape is not known: it changed in place if this object is another one.
	Lost string
}

// Storage is memory that tensors share.
type Storage struct {
	Cell *journal.Cell // of State
	// Strides are those of the memory itself, nil if they are not known.
	Strides []sym.Expr
	// Origin says what kind of memory it is, for messages: "", "input", "parameter", or "state" for an input that the program keeps.
	Origin string
	Name   string
	// Pool says that the memory is a pool, of which tensors are parts.
	Pool bool
	// Overlaps says that several elements of a tensor that has this as memory of its own may be one: it may be an expanded one, in another iteration or branch.
	Overlaps bool

	peers []*Storage // may or may not be the same memory
	apart []Apart
	links []*Link
	// listed is set when a run-time list holds the tensor: as the list has a copy,
	// the memory must not be written. A Rewind keeps it, so that a loop which
	// writes before it appends is found when its body is gone through again.
	listed bool
}

// Apart says that another storage is the same memory only if one of some dynamic axes has size 1.
type Apart struct {
	From *Storage
	Axes []string
}

// State is what a storage holds.
type State struct {
	Base *ssa.Value
	// Stale says why Base is not known: another storage that may be the same memory was written.
	Stale string
	// In, if set, is the part of a pool that the memory is from here on: see Move. Base is not that of the memory then.
	In *View
}

// Link says that From is the view View of To where Cond is Side.
type Link struct {
	From, To *Storage
	Cond     *ssa.Value
	Side     bool
	View     *View
}

// State is what the storage holds now.
func (st *Storage) State() State { return st.Cell.Content().(State) }

// ViewOf is what a tensor is at present.
func ViewOf(t *py.Tensor) *View { return ViewAt(t, nil) }

// ViewAt is what a tensor is at the end of a path.
func ViewAt(t *py.Tensor, changes journal.Changes) *View {
	v := changes.Of(t.Cell).(*View)
	in := changes.Of(v.Storage.Cell).(State).In
	if in == nil {
		return v
	}
	if len(v.Chain) == 0 && v.Lost == "" {
		return in
	}
	return &View{Storage: in.Storage, Chain: slices.Concat(in.Chain, v.Chain), Strides: v.Strides, Lost: v.Lost}
}

// Movable reports that Move can make the memory a part of another one.
func (st *Storage) Movable() bool {
	s := st.State()
	return st.Origin == "" && len(st.peers)+len(st.apart)+len(st.links) == 0 && !st.listed && s.Stale == "" && s.In == nil
}

// Move makes the memory a part of another one, which holds its content by now: every tensor that views it views that part.
func (h *Heap) Move(st *Storage, in *View) {
	s := st.State()
	s.In = in
	h.Set(st.Cell, s)
}

// List makes a list of known length.
func (h *Heap) List(elem ssa.Type, elems []py.Value) *py.List {
	return &py.List{Cell: h.New(&py.ListState{Elems: elems}), Elem: elem}
}

// Storage makes memory that holds v with these strides.
func (h *Heap) Storage(v *ssa.Value, strides []sym.Expr) *Storage {
	return &Storage{Cell: h.New(State{Base: v}), Strides: strides}
}

// Tensor makes a tensor object of row-major memory of its own.
func (h *Heap) Tensor(v *ssa.Value) *py.Tensor { return h.Laid(v, layout.RowMajor(v.Tensor())) }

// Laid makes a tensor object of memory of its own with these strides.
func (h *Heap) Laid(v *ssa.Value, strides []sym.Expr) *py.Tensor {
	return h.View(h.Storage(v, strides), nil, strides, v, v)
}

// View makes a tensor object that views a storage; val is its current value for base.
func (h *Heap) View(st *Storage, chain []Step, strides []sym.Expr, base, val *ssa.Value) *py.Tensor {
	return &py.Tensor{Cell: h.New(&View{Storage: st, Chain: chain, Strides: strides}), Base: base, Val: val}
}

// Then is the chain with one more step. The first chain that goes on from another one takes the place behind it, if there is
// one, so that a long chain is not copied for each step; a place without a kind is free.
func (v *View) Then(step Step) []Step {
	n := len(v.Chain)
	if n < cap(v.Chain) {
		if longer := v.Chain[:n+1]; longer[n].Kind == "" {
			longer[n] = step
			return longer
		}
	}
	longer := make([]Step, n+1, 2*n+1)
	copy(longer, v.Chain)
	longer[n] = step
	return longer
}

// Hold notes that a run-time list holds the elements, and reports whether that is new of one of them.
func (h *Heap) Hold(elems ...py.Value) (changed bool) {
	for _, e := range elems {
		if t, ok := e.(*py.Tensor); ok {
			changed = h.list(ViewOf(t).Storage) || changed
		}
	}
	return changed
}

func (h *Heap) list(st *Storage) bool {
	if st.listed {
		return false
	}
	st.listed = true
	h.Learn(func() { st.listed = false })
	return true
}

// Listed reports that a run-time list holds the memory.
func (st *Storage) Listed() bool { return st.listed }

// Inherit makes to listed if from is: to may be the memory of from.
func (h *Heap) Inherit(to, from *Storage) {
	if from.listed {
		h.list(to)
	}
}

// Links are those at either end of which the storage is.
func (st *Storage) Links() []*Link { return st.links }

// Link records a link.
func (h *Heap) Link(l *Link) {
	from, to := l.From.links, l.To.links
	l.From.links, l.To.links = append(from[:len(from):len(from)], l), append(to[:len(to):len(to)], l)
	h.Learn(func() { l.From.links, l.To.links = from, to })
}

// Peers are the storages that may be the same memory.
func (st *Storage) Peers() []*Storage { return st.peers }

// Peer records that two storages may be the same memory. What may be one of them may be the other too.
func (h *Heap) Peer(a, b *Storage) {
	for _, p := range slices.Clone(a.peers) {
		h.pair(p, b)
	}
	for _, p := range slices.Clone(b.peers) {
		h.pair(p, a)
	}
	h.pair(a, b)
}

// Perhaps records that st may be the memory of another storage, or of one of its peers. What st may be besides is not that at the
// same time: two storages that st may be are no peers for it.
func (h *Heap) Perhaps(st, other *Storage) {
	for _, p := range slices.Clone(other.peers) {
		h.pair(st, p)
	}
	h.pair(st, other)
}

// Together records that two storages may be the same memory, which is none that is known by another name: their peers are
// not concerned.
func (h *Heap) Together(a, b *Storage) { h.pair(a, b) }

func (h *Heap) pair(a, b *Storage) {
	if h.Step != nil {
		h.Step()
	}
	if a == b || related(a, b, a.peers, b.peers) {
		return
	}
	a.peers, b.peers = append(a.peers, b), append(b.peers, a)
	h.Learn(func() { a.peers, b.peers = a.peers[:len(a.peers)-1], b.peers[:len(b.peers)-1] })
}

// related reports whether b is among those of a, and so a among those of b: the shorter list is searched.
func related[T comparable](a, b T, ofA, ofB []T) bool {
	if len(ofA) <= len(ofB) {
		return slices.Contains(ofA, b)
	}
	return slices.Contains(ofB, a)
}

// Relate records what is not known of two storages. Where they are assumed to be apart, axes are those that have to be 2 or more.
func (h *Heap) Relate(a, b *Storage, how layout.Sharing, axes []string) {
	switch how {
	case layout.Unknown:
		h.Peer(a, b)
	case layout.Assumed:
		a.apart, b.apart = append(a.apart, Apart{b, axes}), append(b.apart, Apart{a, axes})
		h.Learn(func() { a.apart, b.apart = a.apart[:len(a.apart)-1], b.apart[:len(b.apart)-1] })
	}
}

// Outside lists the storages not newer than the cell numbered last that st is, or may be in some case.
func Outside(st *Storage, last int) []*Storage {
	out, _ := around(st, last)
	return out
}

// Joined lists the storages of a list, and those that a link joins to one of them in some case.
func Joined(sts []*Storage) []*Storage {
	out, seen := slices.Clone(sts), map[*Storage]bool{}
	for _, st := range sts {
		seen[st] = true
	}
	for i := 0; i < len(out); i++ {
		for _, l := range out[i].links {
			for _, other := range [...]*Storage{l.From, l.To} {
				if !seen[other] {
					seen[other] = true
					out = append(out, other)
				}
			}
		}
	}
	return out
}

// Inside lists the newer ones: st itself if it is one, and those that it may be without going by way of an older one.
func Inside(st *Storage, last int) []*Storage {
	_, in := around(st, last)
	return in
}

func around(st *Storage, last int) (out, in []*Storage) {
	seen := map[*Storage]bool{}
	var visit func(st *Storage)
	visit = func(st *Storage) {
		if seen[st] {
			return
		}
		seen[st] = true
		if st.Cell.ID() <= last {
			out = append(out, st)
			return
		}
		in = append(in, st)
		for _, p := range st.peers {
			visit(p)
		}
		for _, l := range st.links {
			visit(l.From)
			visit(l.To)
		}
	}
	visit(st)
	return out, in
}

// Twin records that two objects are one in some case, as v is x in `v = x if c else y`:
// what changes one of them in place may change the other.
func (h *Heap) Twin(a, b *journal.Cell) {
	if a == b || related(a, b, h.twins[a], h.twins[b]) {
		return
	}
	if h.twins == nil {
		h.twins = map[*journal.Cell][]*journal.Cell{}
	}
	was, wasB := h.twins[a], h.twins[b]
	h.twins[a], h.twins[b] = append(was, b), append(wasB, a)
	h.Learn(func() { h.twins[a], h.twins[b] = was, wasB })
}

// Copied records that a run-time list holds a copy of the list in c, which would not show what is written to c, and reports whether
// that is new.
func (h *Heap) Copied(c *journal.Cell) bool {
	if h.copied == nil {
		h.copied = &journal.Cell{}
	}
	if slices.Contains(h.twins[c], h.copied) {
		return false
	}
	h.Twin(c, h.copied)
	return true
}

// IsCopied reports that a run-time list holds a copy of one of the cells.
func (h *Heap) IsCopied(cs []*journal.Cell) bool {
	return h.copied != nil && slices.Contains(cs, h.copied)
}

// Twins gives the cells that may be the one of another object, and those that may be theirs.
func (h *Heap) Twins(c *journal.Cell) []*journal.Cell {
	seen := map[*journal.Cell]bool{c: true}
	all := []*journal.Cell{c}
	for i := 0; i < len(all); i++ {
		for _, t := range h.twins[all[i]] {
			if !seen[t] {
				seen[t] = true
				all = append(all, t)
			}
		}
	}
	return all[1:]
}

// HasTwins reports that a cell may be the one of another object: what is written to it may show there.
func (h *Heap) HasTwins(c *journal.Cell) bool { return len(h.twins[c]) > 0 }

// Reshape makes a tensor object another view of its memory, in place. Those that may be the same object cannot
// be read any more, for the reason why.
func (h *Heap) Reshape(c *journal.Cell, view *View, why string) {
	h.Set(c, view)
	seen := map[*journal.Cell]bool{c: true}
	var visit func(c *journal.Cell)
	visit = func(c *journal.Cell) {
		for _, t := range h.twins[c] {
			if seen[t] {
				continue
			}
			seen[t] = true
			if v, ok := t.Content().(*View); ok {
				lost := *v
				lost.Lost = why
				h.Set(t, &lost)
			}
			visit(t)
		}
	}
	visit(c)
}

// byAge lists storages from the oldest to the newest.
func byAge(set map[*Storage]bool) []*Storage {
	return slices.SortedFunc(maps.Keys(set), func(a, b *Storage) int { return cmp.Compare(a.Cell.ID(), b.Cell.ID()) })
}
