package specialize

import (
	"strings"

	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// listHandler evaluates an operator on a list of known length; es are its elements.
type listHandler func(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) (results []py.Value, done bool)

// dynHandler evaluates an operator on a run-time list; dyn is its value.
type dynHandler func(s *containers, l *py.List, dyn *ssa.Value, o *ssa.Op, args []py.Value) (results []py.Value, done bool)

// listOp is an operator of the namespace aten whose first argument is a list.
type listOp struct {
	// known evaluates it on a list of known length.
	known listHandler
	// dyn evaluates it on a list of run-time length, in pure form: one that changes the list gives the new list.
	dyn dynHandler
	// reads says that dyn takes nothing out of the list that outlives a write to the tensor whose parts the list holds.
	reads bool
	// moves says that it moves elements and does not look into them: on a list of rows it does the same with their places.
	moves bool
}

var listOps map[string]listOp

func init() {
	listOps = map[string]listOp{
		"len": {
			known: func(_ *containers, _ *py.List, es []py.Value, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
				return one(py.Int(int64(len(es))))
			},
			dyn: func(s *containers, _ *py.List, dyn *ssa.Value, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
				return one(s.vals.number(s.vals.emitName("aten::len.t", dyn)))
			},
			reads: true,
			moves: true,
		},
		"__getitem__": {
			known: func(s *containers, l *py.List, _ []py.Value, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
				return one(s.getItem(l, args[1]))
			},
			dyn: func(s *containers, l *py.List, _ *ssa.Value, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
				return one(s.getItem(l, args[1]))
			},
			reads: true,
			moves: true,
		},
		"append": {
			known: func(s *containers, l *py.List, _ []py.Value, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
				s.put(l, args[1])
				s.set(l.Cell, l.State().With(args[1]))
				return one(l)
			},
			dyn: func(s *containers, l *py.List, dyn *ssa.Value, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
				s.heap.Hold(args[1])
				s.setDyn(l, s.pureList("aten::append.t", dyn, args[1]))
				return one(l)
			},
			moves: true,
		},
		"insert": {
			known: insertItem,
			dyn: func(s *containers, l *py.List, dyn *ssa.Value, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
				s.heap.Hold(args[2])
				s.setDyn(l, s.pureList("aten::insert.t", dyn, args[1], args[2]))
				return nil, true
			},
			moves: true,
		},
		"pop": {
			known: popItem,
			dyn: func(s *containers, l *py.List, dyn *ssa.Value, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
				at := py.Value(py.Int(-1))
				if len(args) > 1 {
					at = args[1]
				}
				x := s.getItem(l, at)
				s.setDyn(l, s.pureList("aten::Delete.t", dyn, at))
				return one(x)
			},
			moves: true,
		},
		"remove": {known: findItem, dyn: noDynForm},
		"index":  {known: findItem, dyn: findNumber, reads: true},
		"count":  {known: findItem, dyn: findNumber, reads: true},
		"Delete": {
			known: deleteItem,
			dyn: func(s *containers, l *py.List, dyn *ssa.Value, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
				s.setDyn(l, s.pureList("aten::Delete.t", dyn, args[1]))
				return nil, true
			},
			moves: true,
		},
		"clear": {
			known: func(s *containers, l *py.List, _ []py.Value, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
				s.setList(l, nil)
				return nil, true
			},
			dyn: func(s *containers, l *py.List, _ *ssa.Value, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
				s.setList(l, nil)
				return nil, true
			},
		},
		"reverse": {
			known: reverseList,
			dyn: func(s *containers, l *py.List, dyn *ssa.Value, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
				s.setDyn(l, s.pureList("aten::reverse.t", dyn))
				return nil, true
			},
			moves: true,
		},
		"_set_item": {
			known: setItem,
			dyn: func(s *containers, l *py.List, dyn *ssa.Value, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
				s.heap.Hold(args[2])
				s.setDyn(l, s.pureList("aten::_set_item.t", dyn, args[1], args[2]))
				return one(l)
			},
			moves: true,
		},
		"copy": {known: copyList, dyn: copyDyn, reads: true, moves: true},
		"list": {known: copyList, dyn: copyDyn, reads: true, moves: true},
		"Size": {known: copyList, dyn: copyDyn, reads: true},
		"slice": {
			known: sliceList,
			dyn: func(s *containers, l *py.List, dyn *ssa.Value, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
				return one(s.newDyn(s.pureList("aten::slice.t", dyn, args[1:]...), l.Elem))
			},
			moves: true,
		},
		"add":          {known: joinLists, dyn: joinDyn, moves: true},
		"add_":         {known: joinLists, dyn: joinDyn, moves: true},
		"extend":       {known: joinLists, dyn: joinDyn, moves: true},
		"mul":          {known: repeatList, dyn: repeatDyn, moves: true},
		"mul_":         {known: repeatList, dyn: repeatDyn, moves: true},
		"eq":           {known: equalLists, dyn: equalVectors, reads: true},
		"ne":           {known: equalLists, dyn: equalVectors, reads: true},
		"__contains__": {known: containsItem, dyn: findNumber, reads: true},
		"sort": {
			known: sortList,
			dyn: func(s *containers, l *py.List, _ *ssa.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
				return s.sortNumbers(l, o, args)
			},
		},
		"sorted": {
			known: sortList,
			dyn: func(s *containers, l *py.List, _ *ssa.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
				return s.sortNumbers(l, o, args)
			},
			reads: true,
		},
		"any": {known: foldList},
		"all": {known: foldList},
		"sum": {known: foldList},
		"str": {
			known: func(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
				if e := exact(l); e != "" && strings.ContainsRune(e, sizeBegins) {
					return one(py.Unknown{Text: unknown, Exact: e})
				}
				return foldList(s, l, es, o, args)
			},
		},
		"min": {known: foldList},
		"max": {known: foldList},
		"tensor": {
			known: func(s *containers, _ *py.List, _ []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
				return s.tensorOf(o, args)
			},
			dyn: tensorOfMembers,
		},
		"as_tensor": {
			known: func(s *containers, _ *py.List, _ []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
				return s.tensorOf(o, args)
			},
		},
	}
}
