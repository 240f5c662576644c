package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// dictHandler evaluates an operator on a dict; st is what the dict holds.
type dictHandler func(s *containers, d *py.Dict, st *py.DictState, o *ssa.Op, args []py.Value) (results []py.Value, done bool)

// dictOps are operators of the namespace aten whose first argument is a dict.
var dictOps = map[string]dictHandler{
	"len": func(_ *containers, _ *py.Dict, st *py.DictState, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
		return one(py.Int(int64(len(st.Keys))))
	},
	"__getitem__": func(s *containers, _ *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		return one(st.Vals[s.mustFind(st, args[1])])
	},
	"__contains__": func(s *containers, _ *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		return one(py.Bool(st.Find(s.key(args[1])) >= 0))
	},
	"get": func(s *containers, _ *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		if i := st.Find(s.key(args[1])); i >= 0 {
			return one(st.Vals[i])
		}
		if len(args) > 2 {
			return one(args[2])
		}
		return one(py.None)
	},
	"setdefault": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		k := s.key(args[1])
		if i := st.Find(k); i >= 0 {
			return one(st.Vals[i])
		}
		s.set(d.Cell, st.With(k, args[2]))
		return one(args[2])
	},
	"_set_item": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		s.set(d.Cell, st.With(s.key(args[1]), args[2]))
		return nil, true
	},
	"Delete": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		s.set(d.Cell, st.Without(s.mustFind(st, args[1])))
		return nil, true
	},
	"pop": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		if len(args) > 2 && st.Find(s.key(args[1])) < 0 {
			return one(args[2])
		}
		i := s.mustFind(st, args[1])
		s.set(d.Cell, st.Without(i))
		return one(st.Vals[i])
	},
	"popitem": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
		i := len(st.Keys) - 1
		if i < 0 {
			panic(s.raised("the dict is empty"))
		}
		s.set(d.Cell, st.Without(i))
		return one(&py.Tuple{Elems: []py.Value{py.Of(st.Keys[i]), st.Vals[i]}})
	},
	"clear": func(s *containers, d *py.Dict, _ *py.DictState, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
		s.set(d.Cell, &py.DictState{})
		return nil, true
	},
	"update": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		other, ok := args[1].(*py.Dict)
		if !ok {
			return nil, false
		}
		for i, k := range other.State().Keys {
			st = st.With(k, other.State().Vals[i])
		}
		s.set(d.Cell, st)
		return nil, true
	},
	"copy": copyDict,
	"dict": copyDict,
	"keys": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
		return one(s.heap.List(py.MemberType(d.Typ, 0), st.KeyValues()))
	},
	"values": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
		return one(s.heap.List(py.MemberType(d.Typ, 1), copied(st.Vals)))
	},
	"items": func(s *containers, _ *py.Dict, st *py.DictState, o *ssa.Op, _ []py.Value) ([]py.Value, bool) {
		var es []py.Value
		for i, k := range st.Keys {
			es = append(es, &py.Tuple{Elems: []py.Value{py.Of(k), st.Vals[i]}})
		}
		return one(s.heap.List(py.MemberType(o.Results[0].Type, 0), es))
	},
}

func copyDict(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
	return one(&py.Dict{Cell: s.heap.New(st), Typ: d.Typ})
}

// dictOp evaluates an operator on a dict.
func (s *containers) dictOp(o *ssa.Op, d *py.Dict, args []py.Value) ([]py.Value, bool) {
	if h := dictOps[o.Kind.Name()]; h != nil {
		return h(s, d, d.State(), o, args)
	}
	return nil, false
}

func (s *containers) key(x py.Value) ssa.Literal {
	l, ok := py.LiteralOf(x)
	if !ok {
		s.fail("dict-key", "a dict key that depends on data cannot be resolved")
	}
	return l
}

// mustFind is the index of a key; the program raises if it is not there.
func (s *containers) mustFind(st *py.DictState, key py.Value) int {
	i := st.Find(s.key(key))
	if i < 0 {
		panic(s.raised("KeyError"))
	}
	return i
}

func firstList(args []py.Value) (*py.List, bool) {
	if len(args) != 1 {
		return nil, false
	}
	l, ok := args[0].(*py.List)
	return l, ok
}

// dictOfPairs is dict([(key, value), ...]); of equal keys the last one counts, in the place of the first.
func (s *containers) dictOfPairs(l *py.List) (*py.DictState, bool) {
	st := l.State()
	if st.Dyn != nil {
		return nil, false
	}
	d := &py.DictState{}
	for _, e := range st.Elems {
		t, ok := e.(*py.Tuple)
		if !ok || len(t.Elems) != 2 {
			return nil, false
		}
		d = d.With(s.key(t.Elems[0]), t.Elems[1])
	}
	return d, true
}
