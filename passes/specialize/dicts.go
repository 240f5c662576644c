package specialize

import (
	"strings"

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
		return one(py.Bool(s.find(st, args[1]) >= 0))
	},
	"get": func(s *containers, _ *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		if i := s.find(st, args[1]); i >= 0 {
			return one(st.Vals[i])
		}
		if len(args) > 2 {
			return one(args[2])
		}
		return one(py.None)
	},
	"setdefault": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		if i := s.find(st, args[1]); i >= 0 {
			return one(st.Vals[i])
		}
		s.set(d.Cell, st.With(s.key(args[1]), args[2]))
		return one(args[2])
	},
	"_set_item": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		s.find(st, args[1])
		s.set(d.Cell, st.With(s.key(args[1]), args[2]))
		return nil, true
	},
	"Delete": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		s.set(d.Cell, st.Without(s.mustFind(st, args[1])))
		return nil, true
	},
	"pop": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
		if len(args) > 2 && s.find(st, args[1]) < 0 {
			return one(args[2])
		}
		i := s.mustFind(st, args[1])
		s.set(d.Cell, st.Without(i))
		return one(st.Vals[i])
	},
	"popitem": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
		s.constantKeys(st)
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
		s.constantKeys(st)
		s.constantKeys(other.State())
		for i, k := range other.State().Keys {
			st = st.With(k, other.State().Vals[i])
		}
		s.set(d.Cell, st)
		return nil, true
	},
	"copy": copyDict,
	"dict": copyDict,
	"keys": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
		s.constantKeys(st)
		return one(s.heap.List(py.MemberType(d.Typ, 0), st.KeyValues()))
	},
	"values": func(s *containers, d *py.Dict, st *py.DictState, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
		return one(s.heap.List(py.MemberType(d.Typ, 1), copied(st.Vals)))
	},
	"items": func(s *containers, _ *py.Dict, st *py.DictState, o *ssa.Op, _ []py.Value) ([]py.Value, bool) {
		s.constantKeys(st)
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

// key is a key of a dict as a constant. One that is made of sizes is a text of its own.
func (s *containers) key(x py.Value) ssa.Literal {
	l, ok := py.LiteralOf(x)
	if ok {
		return l
	}
	e := exact(x)
	if e == "" {
		s.fail("dict-key", "a dict key that depends on data cannot be resolved")
	}
	return ssa.Str(py.SizeKey + e)
}

// find is the index of a key, -1 if it is not there. Whether a key of sizes is another one has to be known.
func (s *containers) find(st *py.DictState, key py.Value) int {
	k := s.key(key)
	i := st.Find(k)
	if i >= 0 || !py.IsSizeKey(k) && !st.HasSizeKeys() {
		return i
	}
	for _, other := range st.Keys {
		if (py.IsSizeKey(k) || py.IsSizeKey(other)) && !differ(k, other) {
			s.fail("dict-key", "whether two keys of a dict are one depends on sizes")
		}
	}
	return -1
}

// differ reports that two keys, one of which is made of sizes, are not equal: where they are first unlike, neither has a size, or one has
// a size and the other one what no number begins with.
func differ(a, b ssa.Literal) bool {
	if a.Kind != ssa.StrLit || b.Kind != ssa.StrLit {
		return false
	}
	x, y := strings.TrimPrefix(a.Str(), py.SizeKey), strings.TrimPrefix(b.Str(), py.SizeKey)
	i := 0
	for i < len(x) && i < len(y) && x[i] == y[i] && x[i] != sizeBegins {
		i++
	}
	if i == len(x) || i == len(y) {
		return len(x) != len(y)
	}
	number := func(c byte) bool { return c == '-' || c >= '0' && c <= '9' }
	switch p, q := x[i], y[i]; {
	case p == sizeBegins && q == sizeBegins:
		return false
	case p == sizeBegins:
		return !number(q)
	case q == sizeBegins:
		return !number(p)
	}
	return true
}

// constantKeys fails where a key is made of sizes, as a value that the program reads.
func (s *context) constantKeys(st *py.DictState) {
	if st.HasSizeKeys() {
		s.fail("dict-key", "the keys of a dict depend on sizes")
	}
}

// mustFind is the index of a key; the program raises if it is not there.
func (s *containers) mustFind(st *py.DictState, key py.Value) int {
	i := s.find(st, key)
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
	if st.AtRunTime() {
		return nil, false
	}
	d := &py.DictState{}
	for _, e := range st.Elems {
		t, ok := e.(*py.Tuple)
		if !ok || len(t.Elems) != 2 {
			return nil, false
		}
		s.find(d, t.Elems[0])
		d = d.With(s.key(t.Elems[0]), t.Elems[1])
	}
	return d, true
}
