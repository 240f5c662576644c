package specialize

import (
	"maps"
	"slices"
	"strconv"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
)

// sharing is what the tensors that a loop carries may share memory with, as the rounds find it: an iteration begins with what
// another one ended with. Tensors go by where they are in what is carried, which all rounds have in common.
type sharing struct {
	outside map[string][]*heap.Storage // memory from before the loop
	pairs   map[[2]string]bool         // others of the tensors
	// lists, dicts and objects likewise: which objects from before the loop one may be, and which of the carried ones may be one
	objects map[string][]*journal.Cell
	same    map[[2]string]bool
}

func newSharing() sharing {
	return sharing{map[string][]*heap.Storage{}, map[[2]string]bool{}, map[string][]*journal.Cell{}, map[[2]string]bool{}}
}

// learn adds what the end of an iteration tells, and reports whether that is new.
func (l *loopState) learn() (changed bool) {
	var places []string
	inside := map[*heap.Storage][]string{}
	l.carried(l.outs, l.changes, func(place string, t *py.Tensor) {
		st := l.changes.Of(t.Cell).(*heap.View).Storage
		places = append(places, place)
		for _, o := range heap.Outside(st, l.start) {
			if !slices.Contains(l.sharing.outside[place], o) {
				l.sharing.outside[place] = append(l.sharing.outside[place], o)
				changed = true
			}
		}
		for _, in := range heap.Inside(st, l.start) {
			for _, other := range inside[in] {
				if key := [2]string{other, place}; !l.sharing.pairs[key] {
					l.sharing.pairs[key] = true
					changed = true
				}
			}
			inside[in] = append(inside[in], place)
		}
	})
	return l.learnObjects() || changed
}

// learnObjects is learn for lists, dicts and objects.
func (l *loopState) learnObjects() (changed bool) {
	inside := map[*journal.Cell][]string{}
	l.carriedObjects(l.outs, l.changes, func(place string, c *journal.Cell) {
		for _, o := range append(l.s.heap.Twins(c), c) {
			if o.ID() <= l.start {
				if !slices.Contains(l.sharing.objects[place], o) {
					l.sharing.objects[place] = append(l.sharing.objects[place], o)
					changed = true
				}
				continue
			}
			for _, other := range inside[o] {
				if key := [2]string{other, place}; !l.sharing.same[key] {
					l.sharing.same[key] = true
					changed = true
				}
			}
			inside[o] = append(inside[o], place)
		}
	})
	return changed
}

// relateObjects is relateCarried for lists, dicts and objects.
func (l *loopState) relateObjects(values []py.Value, last int) {
	at := map[string]*journal.Cell{}
	l.carriedObjects(values, nil, func(place string, c *journal.Cell) {
		if c.ID() <= last {
			return
		}
		at[place] = c
		for _, o := range l.sharing.objects[place] {
			l.s.heap.Twin(c, o)
		}
	})
	for _, p := range slices.SortedFunc(maps.Keys(l.sharing.same), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		if x, y := at[p[0]], at[p[1]]; x != nil && y != nil {
			l.s.heap.Twin(x, y)
		}
	}
}

// relateCarried records what the tensors at hand may share memory with: those that an iteration begins with, or the results.
// Tensors that were not made for this have their memory anyway.
func (l *loopState) relateCarried(values []py.Value, last int) {
	at := map[string]*heap.Storage{}
	l.carried(values, nil, func(place string, t *py.Tensor) {
		if t.Cell.ID() <= last {
			return
		}
		st := heap.ViewOf(t).Storage
		at[place] = st
		for _, o := range l.sharing.outside[place] {
			if o != st {
				l.s.heap.Inherit(st, o)
				l.s.heap.Perhaps(st, o)
			}
		}
	})
	for _, p := range slices.SortedFunc(maps.Keys(l.sharing.pairs), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		if x, y := at[p[0]], at[p[1]]; x != nil && y != nil && x != y {
			l.s.heap.Together(x, y)
		}
	}
	l.relateObjects(values, last)
}

// carried visits the tensors among the carried values and in the carried cells.
func (l *loopState) carried(values []py.Value, changes journal.Changes, visit func(place string, t *py.Tensor)) {
	l.parts(&visitor{changes: changes, tensor: visit}, values)
}

// carriedObjects visits the cells of the lists, dicts and objects there.
func (l *loopState) carriedObjects(values []py.Value, changes journal.Changes, visit func(place string, c *journal.Cell)) {
	l.parts(&visitor{changes: changes, cell: visit}, values)
}

func (l *loopState) parts(v *visitor, values []py.Value) {
	for k, x := range values {
		v.visit(x, strconv.Itoa(k))
	}
	for _, c := range l.cells {
		v.visit(v.changes.Of(c), "cell"+strconv.Itoa(c.ID()))
	}
}

// visitor is told of the tensors and the cells in a value, or in the content of a cell, and where they are; either may be nil.
type visitor struct {
	changes journal.Changes
	tensor  func(place string, t *py.Tensor)
	cell    func(place string, c *journal.Cell)
}

func (v *visitor) visit(x any, place string) {
	cell := func(place string, c *journal.Cell) {
		if v.cell != nil {
			v.cell(place, c)
		}
	}
	var elems []py.Value
	switch x := x.(type) {
	case *py.Tensor:
		if v.tensor != nil {
			v.tensor(place, x)
		}
	case *py.Tuple:
		elems = x.Elems
	case *py.List:
		cell(place, x.Cell)
		elems = listContent(x, v.changes).Elems
	case *py.ListState:
		elems = x.Elems
	case *py.Dict:
		cell(place, x.Cell)
		elems = dictContent(x, v.changes).Vals
	case *py.DictState:
		elems = x.Vals
	case *py.Object:
		for _, name := range slices.Sorted(maps.Keys(x.Attrs)) {
			cell(place+"."+name, x.Attrs[name])
		}
	case *py.Maybe:
		elems = []py.Value{x.Val}
	}
	for i, e := range elems {
		v.visit(e, place+"."+strconv.Itoa(i))
	}
}
