package specialize

import (
	"maps"
	"slices"
	"strconv"

	"github.com/aton-project/aton/passes/specialize/internal/form"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
)

// sharing is what the values that a loop carries may share with each other and with what is outside, as far as one moment tells: before the
// first iteration, or behind any of them. An iteration begins with what either says, and the loop ends with it. Values go by where they are
// in what is carried, which all rounds have in common.
type sharing struct {
	outside listing[*heap.Storage] // memory from before the loop that a tensor may be
	pairs   map[[2]string]bool     // tensors that may be one memory made in the loop
	listed  map[string]bool        // tensors that a list of run-time length has a copy of
	// objects and same are outside and pairs for the objects themselves: lists, dicts, attributes, and tensors as Python's "is" tells them.
	objects listing[*journal.Cell]
	same    map[[2]string]bool
}

func newSharing() sharing {
	return sharing{newListing[*heap.Storage](), map[[2]string]bool{}, map[string]bool{}, newListing[*journal.Cell](), map[[2]string]bool{}}
}

// listing is what may be at each place, in the order in which it was found.
type listing[T comparable] struct {
	at    map[string][]T
	found map[item[T]]bool
}

type item[T comparable] struct {
	place string
	x     T
}

func newListing[T comparable]() listing[T] { return listing[T]{map[string][]T{}, map[item[T]]bool{}} }

// add notes that x may be at a place, and reports whether it is new there.
func (l listing[T]) add(place string, x T) bool {
	if l.found[item[T]{place, x}] {
		return false
	}
	l.found[item[T]{place, x}] = true
	l.at[place] = append(l.at[place], x)
	return true
}

// learn adds what the carried values and cells tell at one moment, and reports whether that is new. Each thing that may be at a place is a step of the budget: names of
// one object, rounds and loops in loops multiply them.
func (l *loopState) learn(sh sharing, values []py.Value, changes journal.Changes) (changed bool) {
	storages, cells := map[*heap.Storage][]string{}, map[*journal.Cell][]string{}
	// nothing is related here: what one member of a group may be, the others may be too
	type group struct{ outside, inside []*heap.Storage }
	groups, twins := map[*heap.Storage]*group{}, map[*journal.Cell][]*journal.Cell{}
	groupOf := func(st *heap.Storage) *group {
		if groups[st] == nil {
			g := &group{l.outside(st), heap.Inside(st, l.Start)}
			groups[st] = g
			for _, in := range g.inside {
				groups[in] = g
			}
		}
		return groups[st]
	}
	twinsOf := func(c *journal.Cell) []*journal.Cell {
		if twins[c] == nil {
			all := append(l.s.heap.Twins(c), c)
			for _, t := range all {
				twins[t] = all
			}
		}
		return twins[c]
	}
	l.parts(&visitor{
		changes: changes,
		tensor: func(place string, t *py.Tensor) {
			st := heap.ViewAt(t, changes).Storage
			if st.Listed() && !sh.listed[place] {
				sh.listed[place], changed = true, true
			}
			for _, o := range groupOf(st).outside {
				changed = sh.outside.add(place, o) || changed
			}
			for _, in := range groupOf(st).inside {
				l.s.step()
				changed = pair(sh.pairs, storages, in, place) || changed
			}
		},
		cell: func(place string, c *journal.Cell) {
			for _, o := range twinsOf(c) {
				l.s.step()
				if o.ID() <= l.Start {
					changed = sh.objects.add(place, o) || changed
				} else {
					changed = pair(sh.same, cells, o, place) || changed
				}
			}
		},
	}, values)
	return changed
}

// outside is the memory from before the loop that a storage may be. Two tensors may be one memory by way of a third one, as those that two
// branches leave.
func (l *loopState) outside(st *heap.Storage) []*heap.Storage {
	return slices.DeleteFunc(heap.Joined(heap.Outside(st, l.Start)), func(o *heap.Storage) bool { return o.Cell.ID() > l.Start })
}

// pair notes that x is at a place too, and reports whether a pair of places that have it is new.
func pair[T comparable](pairs map[[2]string]bool, places map[T][]string, x T, place string) (changed bool) {
	if n := len(places[x]); n > 0 && places[x][n-1] == place {
		return false
	}
	for _, other := range places[x] {
		if key := [2]string{other, place}; other != place && !pairs[key] {
			pairs[key], changed = true, true
		}
	}
	places[x] = append(places[x], place)
	return changed
}

// relate records what the values at hand and the carried cells may share: those that an iteration begins with, or the results.
// What was not made for this, after the cell numbered last, has its memory anyway.
// Each relation is a step of the budget.
func (l *loopState) relate(sh sharing, values []py.Value, last int) {
	storages, cells := map[string]*heap.Storage{}, map[string]*journal.Cell{}
	l.parts(&visitor{
		tensor: func(place string, t *py.Tensor) {
			if t.Cell.ID() <= last {
				return
			}
			st := heap.ViewOf(t).Storage
			storages[place] = st
			if sh.listed[place] {
				l.s.heap.Hold(t)
			}
			for _, o := range sh.outside.at[place] {
				l.s.step()
				if o != st {
					l.s.heap.Inherit(st, o)
					l.s.heap.Perhaps(st, o)
				}
			}
		},
		cell: func(place string, c *journal.Cell) {
			if c.ID() <= last {
				return
			}
			cells[place] = c
			for _, o := range sh.objects.at[place] {
				l.s.step()
				l.s.heap.Twin(c, o)
			}
		},
	}, values)
	for _, p := range ordered(sh.pairs) {
		if x, y := storages[p[0]], storages[p[1]]; x != nil && y != nil && x != y {
			l.s.heap.Together(x, y)
		}
	}
	for _, p := range ordered(sh.same) {
		if x, y := cells[p[0]], cells[p[1]]; x != nil && y != nil {
			l.s.heap.Twin(x, y)
		}
	}
}

func ordered(pairs map[[2]string]bool) [][2]string {
	return slices.SortedFunc(maps.Keys(pairs), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
}

func sortedAttrs(x *py.Object) []string { return slices.Sorted(maps.Keys(x.Attrs)) }

// parts visits the carried values, and what the carried cells hold.
func (l *loopState) parts(v *visitor, values []py.Value) {
	for k, x := range values {
		v.visit(x, strconv.Itoa(k))
	}
	for _, c := range l.cells {
		v.visit(v.changes.Of(c), "cell"+strconv.Itoa(c.ID()))
	}
}

// visitor is told of the tensors and the cells in a value, or in the content of a cell, and where they are.
type visitor struct {
	changes journal.Changes
	tensor  func(place string, t *py.Tensor)
	cell    func(place string, c *journal.Cell)
}

func (v *visitor) visit(x any, place string) {
	var elems []py.Value
	switch x := x.(type) {
	case *py.Tensor:
		v.tensor(place, x)
		v.cell(place, x.Cell)
	case *py.Tuple:
		elems = x.Elems
	case *py.List:
		v.cell(place, x.Cell)
		elems = form.ListContent(x, v.changes).Elems
	case *py.ListState:
		elems = x.Elems
	case *py.Dict:
		v.cell(place, x.Cell)
		elems = form.DictContent(x, v.changes).Vals
	case *py.DictState:
		elems = x.Vals
	case *py.Object:
		for _, name := range sortedAttrs(x) {
			v.cell(place+"."+name, x.Attrs[name])
		}
	case *py.Maybe: // what it may be is at the place of the Maybe, as it is where it is known to be something
		v.visit(x.Val, place)
	}
	for i, e := range elems {
		v.visit(e, place+"."+strconv.Itoa(i))
	}
}
