package specialize

import (
	"github.com/aton-project/aton/ssa"
)

func (s *spec) key(x value) ssa.Literal {
	l, ok := s.literalOf(x)
	if !ok {
		s.fail("dict-key", "a dict key that depends on data cannot be resolved")
	}
	return l
}

func (d *dictState) find(k ssa.Literal) int {
	for i := range d.keys {
		if eq, ok := literalEq(d.keys[i], k); ok && eq {
			return i
		}
	}
	return -1
}

func (d *dictState) with(k ssa.Literal, v value) *dictState {
	n := &dictState{keys: append([]ssa.Literal(nil), d.keys...), vals: append([]value(nil), d.vals...)}
	if i := n.find(k); i >= 0 {
		n.vals[i] = v
		return n
	}
	n.keys, n.vals = append(n.keys, k), append(n.vals, v)
	return n
}

func (d *dictState) without(i int) *dictState {
	n := &dictState{}
	for j := range d.keys {
		if j != i {
			n.keys, n.vals = append(n.keys, d.keys[j]), append(n.vals, d.vals[j])
		}
	}
	return n
}

func (s *spec) dictOp(o *ssa.Op, d *dict, args []value) ([]value, bool) {
	st := d.state()
	one := func(v value) ([]value, bool) { return []value{v}, true }
	elem := func(i int) ssa.Type { return memberType(d.typ, i) }
	switch o.Kind.Name() {
	case "len":
		return one(ssa.Int(int64(len(st.keys))))
	case "__getitem__":
		i := st.find(s.key(args[1]))
		if i < 0 {
			panic(raised{s.loc, "KeyError"})
		}
		return one(st.vals[i])
	case "__contains__":
		return one(ssa.Bool(st.find(s.key(args[1])) >= 0))
	case "get":
		if i := st.find(s.key(args[1])); i >= 0 {
			return one(st.vals[i])
		}
		if len(args) > 2 {
			return one(args[2])
		}
		return one(ssa.None)
	case "setdefault":
		k := s.key(args[1])
		if i := st.find(k); i >= 0 {
			return one(st.vals[i])
		}
		s.set(d.c, st.with(k, args[2]))
		return one(args[2])
	case "_set_item":
		s.set(d.c, st.with(s.key(args[1]), args[2]))
		return nil, true
	case "Delete":
		i := st.find(s.key(args[1]))
		if i < 0 {
			panic(raised{s.loc, "KeyError"})
		}
		s.set(d.c, st.without(i))
		return nil, true
	case "pop":
		i := st.find(s.key(args[1]))
		if i < 0 {
			if len(args) > 2 {
				return one(args[2])
			}
			panic(raised{s.loc, "KeyError"})
		}
		v := st.vals[i]
		s.set(d.c, st.without(i))
		return one(v)
	case "popitem":
		i := len(st.keys) - 1
		if i < 0 {
			panic(raised{s.loc, "the dict is empty"})
		}
		t := &tuple{elems: []value{st.keys[i], st.vals[i]}}
		s.set(d.c, st.without(i))
		return one(t)
	case "clear":
		s.set(d.c, &dictState{})
		return nil, true
	case "update":
		other, ok := args[1].(*dict)
		if !ok {
			return nil, false
		}
		n := st
		for i, k := range other.state().keys {
			n = n.with(k, other.state().vals[i])
		}
		s.set(d.c, n)
		return nil, true
	case "copy", "dict":
		return one(&dict{c: s.newCell(st), typ: d.typ})
	case "keys":
		return one(s.newList(elem(0), s.keyValues(st)))
	case "values":
		return one(s.newList(elem(1), append([]value(nil), st.vals...)))
	case "items":
		var es []value
		for i, k := range st.keys {
			es = append(es, &tuple{elems: []value{k, st.vals[i]}})
		}
		return one(s.newList(memberType(o.Results[0].Type, 0), es))
	}
	return nil, false
}

func (s *spec) keyValues(d *dictState) []value {
	out := make([]value, len(d.keys))
	for i, k := range d.keys {
		out[i] = k
	}
	return out
}

func firstList(args []value) (*list, bool) {
	if len(args) != 1 {
		return nil, false
	}
	l, ok := args[0].(*list)
	return l, ok
}

// dictOfPairs is dict([(key, value), ...]); of equal keys the last one counts, in the place of the first.
func (s *spec) dictOfPairs(l *list) (*dictState, bool) {
	st := l.state()
	if st.dyn != nil {
		return nil, false
	}
	d := &dictState{}
	for _, e := range st.elems {
		t, ok := e.(*tuple)
		if !ok || len(t.elems) != 2 {
			return nil, false
		}
		d = d.with(s.key(t.elems[0]), t.elems[1])
	}
	return d, true
}
