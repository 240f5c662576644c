package specialize

import (
	"math"
	"sort"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

func elemsOf(x value) []value {
	switch x := x.(type) {
	case *tuple:
		return x.elems
	case *list:
		if st := x.state(); st.dyn == nil {
			return st.elems
		}
	}
	return nil
}

// equalElems compares two lists of numbers or strings.
func (s *spec) equalElems(a, b []value) (value, bool) {
	if len(a) != len(b) {
		return ssa.Bool(false), true
	}
	all := value(ssa.Bool(true))
	for i := range a {
		if tensorial(a[i:i+1]) || tensorial(b[i:i+1]) {
			return nil, false
		}
		var r value
		if la, ok := s.literalOf(a[i]); ok {
			if lb, ok := s.literalOf(b[i]); ok {
				eq, ok := literalEq(la, lb)
				if !ok {
					return nil, false
				}
				r = ssa.Bool(eq)
			}
		}
		if r == nil {
			r = s.scalar("aten::eq", aten.SchemaByName("aten::eq.int"), []value{a[i], b[i]})[0]
		}
		if l, ok := r.(ssa.Literal); ok {
			if !l.Bool() {
				return l, true
			}
			continue
		}
		if l, ok := all.(ssa.Literal); ok && l.Bool() {
			all = r
		} else {
			all = s.scalar("aten::__and__", aten.SchemaByName("aten::__and__.bool"), []value{all, r})[0]
		}
	}
	return all, true
}

func (s *spec) setList(l *list, elems []value) { s.set(l.c, &listState{elems: elems}) }

func (s *spec) listOp(o *ssa.Op, l *list, args []value) ([]value, bool) {
	st := l.state()
	one := func(v value) ([]value, bool) { return []value{v}, true }
	if st.dyn != nil {
		return s.dynListOp(o, l, args)
	}
	es := st.elems
	name := o.Kind.Name()
	copied := func() []value { return append([]value(nil), es...) }
	switch name {
	case "len":
		return one(ssa.Int(int64(len(es))))
	case "__getitem__":
		return one(s.getItem(l, args[1]))
	case "append":
		s.setList(l, append(copied(), args[1]))
		return one(l)
	case "insert":
		at, ok := s.literalOf(args[1])
		if !ok {
			s.unroll("insert at a place that is only known at run time")
		}
		i := at.Int()
		if i < 0 {
			i += int64(len(es))
		}
		i = min(max(i, 0), int64(len(es)))
		n := append(copied()[:i:i], args[2])
		s.setList(l, append(n, es[i:]...))
		return nil, true
	case "pop":
		if len(es) == 0 {
			panic(raised{s.loc, "pop from empty list"})
		}
		at := value(ssa.Int(-1))
		if len(args) > 1 {
			at = args[1]
		}
		i, ok := s.index(at, len(es))
		if !ok {
			s.unroll("pop at a place that is only known at run time")
		}
		s.setList(l, append(copied()[:i:i], es[i+1:]...))
		return one(es[i])
	case "remove", "index", "count":
		n := 0
		for i, e := range es {
			r, ok := s.equalElems([]value{e}, []value{args[1]})
			lit, isLit := r.(ssa.Literal)
			if !ok || !isLit {
				s.fail("dynamic-container", "the contents of the list are only known at run time")
			}
			if !lit.Bool() {
				continue
			}
			n++
			switch name {
			case "index":
				return one(ssa.Int(int64(i)))
			case "remove":
				s.setList(l, append(copied()[:i:i], es[i+1:]...))
				return nil, true
			}
		}
		if name == "count" {
			return one(ssa.Int(int64(n)))
		}
		panic(raised{s.loc, "the value is not in the list"})
	case "Delete":
		if i, ok := s.index(args[1], len(es)); ok {
			s.setList(l, append(copied()[:i:i], es[i+1:]...))
			return nil, true
		}
	case "clear":
		s.setList(l, nil)
		return nil, true
	case "reverse":
		n := copied()
		for i, j := 0, len(n)-1; i < j; i, j = i+1, j-1 {
			n[i], n[j] = n[j], n[i]
		}
		s.setList(l, n)
		return nil, true
	case "_set_item":
		i, ok := s.index(args[1], len(es))
		if !ok {
			s.unroll("a list is written at a place that is only known at run time")
		}
		n := copied()
		n[i] = args[2]
		s.setList(l, n)
		return one(l)
	case "copy", "list":
		return one(s.newList(l.elem, copied()))
	case "slice":
		lo, ok1 := s.literalOr(args, 1, 0)
		hi, ok2 := s.literalOr(args, 2, math.MaxInt64)
		step, ok3 := s.literalOr(args, 3, 1)
		if !ok1 || !ok2 || !ok3 {
			s.unroll("a list is sliced by bounds that are only known at run time")
		}
		return one(s.newList(l.elem, sliceElems(es, lo, hi, step)))
	case "add", "add_", "extend":
		other, ok := args[1].(*list)
		if !ok {
			return nil, false
		}
		if other.state().dyn != nil {
			s.makeDynamic(l)
			return s.dynListOp(o, l, args)
		}
		n := append(copied(), other.state().elems...)
		if name == "extend" {
			s.setList(l, n)
			return nil, true
		}
		if name == "add_" {
			s.setList(l, n)
			return one(l)
		}
		elem := l.elem
		if len(es) == 0 {
			elem = other.elem
		}
		return one(s.newList(elem, n))
	case "mul", "mul_":
		k, ok := s.literalOf(args[1])
		if !ok {
			s.unroll("a list is repeated a number of times that is only known at run time")
		}
		var n []value
		for range max(k.Int(), 0) {
			n = append(n, es...)
		}
		if name == "mul_" {
			s.setList(l, n)
			return one(l)
		}
		return one(s.newList(l.elem, n))
	case "eq", "ne":
		if other, ok := args[1].(*list); ok && other.state().dyn == nil {
			if r, ok := s.equalElems(es, other.state().elems); ok {
				return one(s.negateIf(r, name == "ne"))
			}
		}
		return nil, false
	case "__contains__":
		found := value(ssa.Bool(false))
		for _, e := range es {
			r, ok := s.equalElems([]value{e}, []value{args[1]})
			if !ok {
				s.fail("dynamic-container", "membership in a list of tensors depends on data")
			}
			if lit, ok := r.(ssa.Literal); ok {
				if lit.Bool() {
					return one(lit)
				}
				continue
			}
			if lit, ok := found.(ssa.Literal); ok && !lit.Bool() {
				found = r
			} else {
				found = s.scalar("aten::__or__", aten.SchemaByName("aten::__or__.bool"), []value{found, r})[0]
			}
		}
		return one(found)
	case "sort", "sorted":
		lit, ok := s.literalOf(l)
		if !ok {
			s.fail("dynamic-container", "a list that depends on data cannot be sorted at export")
		}
		n := copied()
		idx := make([]int, len(n))
		for i := range idx {
			idx[i] = i
		}
		rev := false
		if len(args) > 1 {
			if r, ok := s.literalOf(args[1]); ok {
				rev = r.Bool()
			}
		}
		sort.SliceStable(idx, func(i, j int) bool {
			a, b := lit.Elems[idx[i]], lit.Elems[idx[j]]
			if rev {
				a, b = b, a
			}
			return literalLess(a, b)
		})
		for i, j := range idx {
			n[i] = es[j]
		}
		if name == "sorted" {
			return one(s.newList(l.elem, n))
		}
		s.setList(l, n)
		return nil, true
	case "any", "all", "sum", "str", "min", "max":
		if tensorial(es) {
			return nil, false
		}
		if lit, ok := s.literalOf(l); ok {
			if r, ok := foldList(name, o.Results[0].Type, lit); ok {
				return one(r)
			}
			return nil, false
		}
		if name == "sum" {
			sum := value(ssa.Int(0))
			for _, e := range es {
				sum = s.scalar("aten::add", aten.SchemaByName("aten::add.int"), []value{sum, e})[0]
			}
			return one(sum)
		}
		return nil, false
	case "tensor", "as_tensor":
		return s.tensorOf(o, args)
	case "join":
		return nil, false
	}
	return nil, false
}

func (s *spec) literalOr(args []value, i int, def int64) (int64, bool) {
	if i >= len(args) {
		return def, true
	}
	l, ok := s.literalOf(args[i])
	if !ok {
		return 0, false
	}
	if l.IsNone() {
		return def, true
	}
	return l.Int(), true
}

func sliceElems(es []value, lo, hi, step int64) []value {
	n := int64(len(es))
	var out []value
	if step > 0 {
		lo, hi, _ = sliceBounds(n, lo, hi)
		for i := lo; i < hi; i += step {
			out = append(out, es[i])
		}
		return out
	}
	if step == 0 {
		return nil
	}
	if lo == 0 && hi == math.MaxInt64 { // [::-k] as TorchScript writes it
		lo, hi = n-1, -1
	} else {
		if lo < 0 {
			lo += n
		}
		if hi < 0 {
			hi += n
		}
		lo = min(lo, n-1)
	}
	for i := lo; i > hi && i >= 0; i += step {
		out = append(out, es[i])
	}
	return out
}

func literalLess(a, b ssa.Literal) bool {
	switch {
	case a.Kind == ssa.StrLit && b.Kind == ssa.StrLit:
		return a.Str() < b.Str()
	case a.IsNumber() && b.IsNumber():
		if a.Kind == ssa.IntLit && b.Kind == ssa.IntLit {
			return a.Int() < b.Int()
		}
		return a.Float() < b.Float()
	case len(a.Elems) > 0 && len(b.Elems) > 0:
		for i := range min(len(a.Elems), len(b.Elems)) {
			if literalLess(a.Elems[i], b.Elems[i]) {
				return true
			}
			if literalLess(b.Elems[i], a.Elems[i]) {
				return false
			}
		}
		return len(a.Elems) < len(b.Elems)
	}
	return false
}
