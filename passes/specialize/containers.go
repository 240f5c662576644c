package specialize

import (
	"math"
	"sort"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
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

// index resolves a list index; ok is false if it is only known at run time.
func (s *spec) index(x value, n int) (int, bool) {
	l, ok := s.literalOf(x)
	if !ok {
		return 0, false
	}
	i := l.Int()
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		panic(raised{s.loc, "list index out of range"})
	}
	return int(i), true
}

func (s *spec) getItem(l *list, at value) value {
	st := l.state()
	if st.dyn == nil {
		if i, ok := s.index(at, len(st.elems)); ok {
			return st.elems[i]
		}
		if len(st.elems) == 0 {
			panic(raised{s.loc, "list index out of range"})
		}
		// an element chosen at run time
		for _, e := range st.elems {
			switch e.(type) {
			case *tensorRef:
			case *ssa.Value, ssa.Literal:
				if _, ok := numberType(e); !ok {
					s.unroll("a list is indexed by a value that is only known at run time")
				}
			default:
				s.unroll("a list is indexed by a value that is only known at run time")
			}
		}
		if tensorial(st.elems) && s.inLoop() {
			s.unroll("a list of tensors is indexed by the loop variable")
		}
	}
	if st.parts != nil {
		if v := s.part(st.parts, at); v != nil {
			return v
		}
	}
	schema := aten.SchemaByName("aten::__getitem__.t")
	v := s.emit("aten::__getitem__", schema, s.materialize(l), s.materialize(at))[0]
	s.elementType(v, l)
	x := s.number2(v)
	hold(x)
	return x
}

func numberType(x value) (ssa.Type, bool) {
	switch x := x.(type) {
	case ssa.Literal:
		if x.IsNumber() {
			return x.Type(), true
		}
	case *ssa.Value:
		if b, ok := x.Type.(ssa.Basic); ok {
			return b, b == ssa.IntType || b == ssa.FloatType || b == ssa.BoolType
		}
	}
	return nil, false
}

// elementType replaces a schema's type variable by the list's element type.
func (s *spec) elementType(v *ssa.Value, l *list) {
	if _, ok := v.Type.(*ssa.VarType); !ok {
		return
	}
	switch {
	case l.elem != nil && l.elem != ssa.AnyType:
		v.Type = l.elem
	case l.state().dyn != nil:
		if lt, ok := l.state().dyn.Type.(*ssa.ListType); ok {
			v.Type = lt.Elem
		}
	default:
		if t, ok := numberType(l.state().elems[0]); ok {
			v.Type = t
		} else {
			v.Type = ssa.AnyTensor
		}
	}
}

func (s *spec) number2(v *ssa.Value) value {
	if v.Type == ssa.IntType {
		return s.number(v)
	}
	return s.wrap(v)
}

// inLoop reports that the current block is in the body of a loop that is kept.
func (s *spec) inLoop() bool {
	for b := s.cur; b != nil && b.Owner() != nil; b = b.Owner().Block() {
		if b.Owner().Kind == "prim::Loop" {
			return true
		}
	}
	return false
}

// container evaluates operators on lists, dicts, tuples and strings.
func (s *spec) container(o *ssa.Op, args []value) ([]value, bool) {
	if o.Kind == "aten::dict" && len(args) == 0 {
		return []value{&dict{c: s.newCell(&dictState{}), typ: o.Results[0].Type}}, true
	}
	if l, ok := firstList(args); ok && o.Kind == "aten::dict" {
		if d, ok := s.dictOfPairs(l); ok {
			return []value{&dict{c: s.newCell(d), typ: o.Results[0].Type}}, true
		}
	}
	if o.Kind.Namespace() != "aten" || len(args) == 0 {
		return nil, false
	}
	switch x := args[0].(type) {
	case *list:
		return s.listOp(o, x, args)
	case *dict:
		return s.dictOp(o, x, args)
	case *tuple:
		switch o.Kind {
		case "aten::len":
			return []value{ssa.Int(int64(len(x.elems)))}, true
		case "aten::__getitem__":
			if i, ok := s.index(args[1], len(x.elems)); ok {
				return []value{x.elems[i]}, true
			}
		case "aten::list":
			return []value{s.newList(memberType(o.Results[0].Type, 0), x.elems)}, true
		case "aten::eq", "aten::ne":
			if r, ok := s.equalElems(x.elems, elemsOf(args[1])); ok {
				return []value{s.negateIf(r, o.Kind == "aten::ne")}, true
			}
		case "aten::add":
			if y, ok := args[1].(*tuple); ok {
				return []value{&tuple{elems: append(append([]value(nil), x.elems...), y.elems...)}}, true
			}
		}
	case ssa.Literal:
		switch {
		case x.Kind == ssa.StrLit && o.Kind == "aten::list":
			var es []value
			for _, r := range x.Str() {
				es = append(es, ssa.Str(string(r)))
			}
			return []value{s.newList(ssa.StrType, es)}, true
		case x.Kind == ssa.StrLit && (o.Kind == "aten::format" || o.Kind == "aten::percentFormat"):
			for _, a := range args {
				if _, ok := s.literalOf(a); !ok {
					// text for a message about data: nothing in the graph can use it
					return []value{ssa.Str("")}, true
				}
			}
		case x.Kind == ssa.StrLit && o.Kind == "aten::join":
			if l, ok := s.literalOf(args[1]); ok {
				if r, ok := foldString(s, "join", []ssa.Literal{x, l}); ok {
					return []value{r}, true
				}
			}
		case x.IsNumber() && (o.Kind == "aten::tensor" || o.Kind == "aten::scalar_tensor" && x.Kind != ssa.ComplexLit):
			return s.tensorOf(o, args)
		}
	}
	if o.Kind == "aten::str" {
		if _, ok := s.literalOf(args[0]); !ok {
			return []value{ssa.Str("")}, true
		}
	}
	return nil, false
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

func (s *spec) negateIf(v value, neg bool) value {
	if !neg {
		return v
	}
	if l, ok := v.(ssa.Literal); ok {
		return ssa.Bool(!l.Bool())
	}
	return s.wrap(s.emitName("aten::__not__", v.(*ssa.Value)))
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
	case "extend":
		other, ok := args[1].(*list)
		if !ok {
			return nil, false
		}
		if other.state().dyn != nil {
			s.makeDynamic(l)
			return s.dynListOp(o, l, args)
		}
		s.setList(l, append(copied(), other.state().elems...))
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
	case "add", "add_":
		other, ok := args[1].(*list)
		if !ok {
			return nil, false
		}
		if other.state().dyn != nil {
			s.makeDynamic(l)
			return s.dynListOp(o, l, args)
		}
		n := append(copied(), other.state().elems...)
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

// makeDynamic turns a list into one whose length is known at run time only.
func (s *spec) makeDynamic(l *list) {
	if l.state().dyn != nil {
		return
	}
	if st := l.state(); len(st.elems) > 0 && ssa.AsTensor(s.dynElem(st)) != nil {
		s.set(l.c, &listState{dyn: s.dynamic(st, nil)})
		return
	}
	s.set(l.c, &listState{dyn: s.materialize(l)})
}

// dynListOp works on a list of unknown length in pure form: an op that changes
// the list gives the new list.
func (s *spec) dynListOp(o *ssa.Op, l *list, args []value) ([]value, bool) {
	dyn := s.dynOf(l.state())
	one := func(v value) ([]value, bool) { return []value{v}, true }
	lt := dyn.Type
	pure := func(name string, rest ...value) *ssa.Value {
		schema := aten.SchemaByName(name)
		operands := []*ssa.Value{dyn}
		for _, r := range rest {
			operands = append(operands, s.materialize(r))
		}
		n := s.cur.Append(ssa.Kind(schema.Name), s.loc, operands, lt)
		n.Schema = schema
		vs := s.infer(n)
		if t, ok := lt.(*ssa.ListType); ok && ssa.AsTensor(t.Elem) != nil && len(rest) > 0 {
			if x, ok := rest[len(rest)-1].(*tensorRef); ok { // a list takes in what is put into it
				a, b := ssa.AsTensor(t.Elem), s.read(x).Tensor()
				if !ssa.SameType(a, b) && a.DType == b.DType {
					lt = &ssa.ListType{Elem: s.joinTensors(a, b)}
				}
			}
		}
		vs[0].Type = lt
		return vs[0]
	}
	name := o.Kind.Name()
	switch name {
	case "append":
		hold(args[1])
		s.set(l.c, &listState{dyn: pure("aten::append.t", args[1])})
		return one(l)
	case "insert":
		hold(args[2])
		s.set(l.c, &listState{dyn: pure("aten::insert.t", args[1], args[2])})
		return nil, true
	case "extend", "add_", "add":
		other, ok := args[1].(*list)
		if !ok {
			s.fail("dynamic-container", "a list of run-time length is joined with something that is not a list")
		}
		if w := other.state().dyn; w != nil {
			if a, ok := lt.(*ssa.ListType); ok && ssa.AsTensor(a.Elem) != nil {
				if b, ok := w.Type.(*ssa.ListType); ok && ssa.AsTensor(b.Elem) != nil {
					lt = &ssa.ListType{Elem: s.joinTensors(ssa.AsTensor(a.Elem), ssa.AsTensor(b.Elem))}
				}
			}
			dyn = pure("aten::add.t", other)
		}
		hold(other.state().elems...)
		for _, e := range other.state().elems {
			dyn = pure("aten::append.t", e)
			lt = dyn.Type
		}
		if name == "add" {
			return one(&list{c: s.newCell(&listState{dyn: dyn}), elem: l.elem})
		}
		s.set(l.c, &listState{dyn: dyn})
		if name == "extend" {
			return nil, true
		}
		return one(l)
	case "_set_item":
		hold(args[2])
		s.set(l.c, &listState{dyn: pure("aten::_set_item.t", args[1], args[2])})
		return one(l)
	case "pop":
		at := value(ssa.Int(-1))
		if len(args) > 1 {
			at = args[1]
		}
		x := s.getItem(l, at)
		s.set(l.c, &listState{dyn: pure("aten::Delete.t", at)})
		return one(x)
	case "Delete":
		s.set(l.c, &listState{dyn: pure("aten::Delete.t", args[1])})
		return nil, true
	case "clear":
		s.setList(l, nil)
		return nil, true
	case "copy", "list":
		return one(&list{c: s.newCell(&listState{dyn: dyn}), elem: l.elem})
	case "slice":
		return one(&list{c: s.newCell(&listState{dyn: pure("aten::slice.t", args[1:]...)}), elem: l.elem})
	case "__getitem__":
		return one(s.getItem(l, args[1]))
	case "len":
		v := s.emitName("aten::len.t", dyn)
		return one(s.number(v))
	case "reverse":
		s.set(l.c, &listState{dyn: pure("aten::reverse.t")})
		return nil, true
	case "sort", "remove", "index", "count":
		s.fail("dynamic-container", "%s on a list whose length is only known at run time has no ONNX form", name)
	}
	return nil, false
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

// tensorOf evaluates aten::tensor and its kin on constants.
func (s *spec) tensorOf(o *ssa.Op, args []value) ([]value, bool) {
	l, ok := s.literalOf(args[0])
	if !ok {
		return nil, false
	}
	d := tensor.Undefined
	if i := o.Schema.Arg("dtype"); i >= 0 {
		dl, ok := args[i].(ssa.Literal)
		if !ok {
			return nil, false
		}
		if !dl.IsNone() {
			d = tensor.FromCode(int(dl.Int()))
		}
	}
	var shape []int64
	for x := l; x.Kind == ssa.ListLit; {
		shape = append(shape, int64(len(x.Elems)))
		if len(x.Elems) == 0 {
			break
		}
		x = x.Elems[0]
	}
	var flat []ssa.Literal
	kind := ssa.IntLit
	if lt, ok := leafType(l, o.Operand(0).Type).(ssa.Basic); ok {
		switch lt {
		case ssa.BoolType:
			kind = ssa.BoolLit
		case ssa.FloatType, ssa.NumberType, ssa.AnyType:
			kind = ssa.FloatLit
		}
	}
	ragged := false
	var walk func(x ssa.Literal, depth int)
	walk = func(x ssa.Literal, depth int) {
		if x.Kind == ssa.ListLit || x.Kind == ssa.TupleLit {
			if depth >= len(shape) || int64(len(x.Elems)) != shape[depth] {
				ragged = true
				return
			}
			for _, e := range x.Elems {
				walk(e, depth+1)
			}
			return
		}
		if !x.IsNumber() || x.Kind == ssa.ComplexLit {
			ragged = true
			return
		}
		flat = append(flat, x)
	}
	walk(l, 0)
	if ragged {
		return nil, false
	}
	for i, x := range flat {
		if i == 0 {
			kind = x.Kind
		} else if x.Kind == ssa.FloatLit {
			kind = ssa.FloatLit
		}
	}
	if d == tensor.Undefined {
		switch kind {
		case ssa.BoolLit:
			d = tensor.Bool
		case ssa.IntLit:
			d = tensor.Int64
		default:
			d = tensor.Float32
		}
		if o.Kind == "aten::scalar_tensor" {
			d = tensor.Float32
		}
	}
	if d.IsComplex() || d.Size() == 0 {
		return nil, false
	}
	if shape == nil {
		shape = []int64{}
	}
	var t *tensor.Tensor
	if kind == ssa.FloatLit {
		v := make([]float64, len(flat))
		for i, x := range flat {
			v[i] = x.Float()
		}
		t = tensor.FromFloats(d, shape, v)
	} else {
		v := make([]int64, len(flat))
		for i, x := range flat {
			v[i] = x.Int()
		}
		t = tensor.FromInts(d, shape, v)
	}
	return []value{s.newTensor(s.constant(ssa.TensorValue(t)))}, true
}

func leafType(l ssa.Literal, t ssa.Type) ssa.Type {
	for {
		lt, ok := t.(*ssa.ListType)
		if !ok {
			return t
		}
		t = lt.Elem
	}
}

// toList is Tensor.tolist() for a known shape.
func (s *spec) toList(x value, t ssa.Type) value {
	ref, ok := x.(*tensorRef)
	if !ok {
		return x
	}
	lt, ok := t.(*ssa.ListType)
	if !ok {
		name := "aten::Float.Tensor"
		switch t {
		case ssa.IntType:
			name = "aten::Int.Tensor"
		case ssa.BoolType:
			name = "aten::Bool.Tensor"
		}
		fake := aten.SchemaByName(name)
		return s.number(s.emit(ssa.Kind(strings.TrimSuffix(name, ".Tensor")), fake, s.read(ref))[0])
	}
	tt := s.read(ref).Tensor()
	if tt == nil || !tt.Ranked || len(tt.Dims) == 0 {
		s.fail("dynamic-container", "tolist() needs a known shape")
	}
	n, ok := tt.Dims[0].Int()
	if !ok {
		s.fail("dynamic-container", "tolist() of an axis of size %s: the length must be known at export", tt.Dims[0])
	}
	elems := make([]value, n)
	for i := range elems {
		e := s.newTensor(s.emitName("aten::select.int", s.read(ref), 0, i))
		elems[i] = s.toList(e, lt.Elem)
	}
	return s.newList(lt.Elem, elems)
}
