package specialize

import (
	"math"
	"slices"
	"sort"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/internal/python"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// listOp evaluates an operator on a list.
func (s *containers) listOp(o *ssa.Op, l *py.List, args []py.Value) ([]py.Value, bool) {
	st := l.State()
	if st.AtRunTime() {
		return s.dynListOp(o, l, args)
	}
	if op := listOps[o.Kind.Name()]; op.known != nil {
		return op.known(s, l, st.Elems, o, args)
	}
	return nil, false
}

func copied(es []py.Value) []py.Value { return append([]py.Value(nil), es...) }

func without(es []py.Value, i int) []py.Value { return append(copied(es)[:i:i], es[i+1:]...) }

func (s *containers) setList(l *py.List, elems []py.Value) {
	s.set(l.Cell, &py.ListState{Elems: elems})
}

// atRunTime evaluates an operator whose arguments are known at run time only: the list is one of run-time length then.
func (s *containers) atRunTime(l *py.List, o *ssa.Op, args []py.Value, why string) ([]py.Value, bool) {
	if s.build.inLoop() && s.mode == unrolling {
		s.unroll("%s that is only known at run time", why)
	}
	s.makeDynamic(l)
	return s.dynListOp(o, l, args)
}

func insertItem(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	at, ok := py.LiteralOf(args[1])
	if !ok {
		return s.atRunTime(l, o, args, "insert at a place")
	}
	i := at.Int()
	if i < 0 {
		i += int64(len(es))
	}
	i = min(max(i, 0), int64(len(es)))
	s.put(l, args[2])
	s.setList(l, append(append(copied(es)[:i:i], args[2]), es[i:]...))
	return nil, true
}

func popItem(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if len(es) == 0 {
		panic(s.raised("pop from empty list"))
	}
	at := py.Value(py.Int(-1))
	if len(args) > 1 {
		at = args[1]
	}
	i, ok := s.index(at, len(es))
	if !ok {
		return s.atRunTime(l, o, args, "pop at a place")
	}
	s.setList(l, without(es, i))
	return one(es[i])
}

// findItem evaluates index, count and remove.
func findItem(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	n := int64(0)
	for i, e := range es {
		r, ok := s.equalElems([]py.Value{e}, []py.Value{args[1]})
		lit, isLit := r.(py.Const)
		if !ok || !isLit {
			if o.Kind != "aten::remove" && s.vector(l) != nil {
				return findNumber(s, l, nil, o, args)
			}
			s.fail("dynamic-container", "the contents of the list are only known at run time")
		}
		if !lit.Bool() {
			continue
		}
		switch o.Kind {
		case "aten::index":
			return one(py.Int(int64(i)))
		case "aten::remove":
			s.setList(l, without(es, i))
			return nil, true
		}
		n++
	}
	if o.Kind == "aten::count" {
		return one(py.Int(n))
	}
	panic(s.raised("the value is not in the list"))
}

func deleteItem(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	i, ok := s.index(args[1], len(es))
	if !ok {
		return s.atRunTime(l, o, args, "del of a place")
	}
	s.setList(l, without(es, i))
	return nil, true
}

func reverseList(s *containers, l *py.List, es []py.Value, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
	n := copied(es)
	slices.Reverse(n)
	s.setList(l, n)
	return nil, true
}

func setItem(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	i, ok := s.index(args[1], len(es))
	s.put(l, args[2])
	if !ok && memberList(l.Elem) { // no list is one of two
		return s.atRunTime(l, o, args, "a write to a place")
	}
	if !ok {
		return one(s.setAny(l, es, args[1], args[2]))
	}
	n := copied(es)
	n[i] = args[2]
	s.setList(l, n)
	return one(l)
}

// maxChosen is the greatest length of a list of which each element is asked whether it is the one at a place that is known at run time.
const maxChosen = 64

// setAny is l[at] = x for a place that is known at run time only: each element is x or what it was.
func (s *containers) setAny(l *py.List, es []py.Value, at, x py.Value) *py.List {
	if s.build.inLoop() && s.mode == unrolling || len(es) > maxChosen {
		s.unroll("a list is written at a place that is only known at run time")
	}
	s.warnf("dropped-assert", "that the list has such a place is not checked")
	is := func(i int) py.Value { return s.vals.intOp("eq", at, py.Int(int64(i))) }
	p := s.pooled(append(copied(es), x))
	n := make([]py.Value, len(es))
	for i, e := range es {
		here := s.vals.scalar("aten::__or__", aten.SchemaByName("aten::__or__.bool"), []py.Value{is(i), is(i - len(es))})[0]
		if c, known := py.LiteralOf(here); known {
			if n[i] = e; c.Bool() {
				n[i] = x
			}
			continue
		}
		if p != nil {
			n[i] = s.views.row(p.Self, s.vals.choose(s.vals.materialize(here), placeIn(p.Self, x, nil), placeIn(p.Self, e, nil)))
			continue
		}
		n[i] = s.vals.choose(s.vals.materialize(here), x, e)
	}
	s.setList(l, n)
	return l
}

func copyList(s *containers, l *py.List, es []py.Value, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
	return one(s.heap.List(l.Elem, copied(es)))
}

func sliceList(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	bounds := [3]int64{0, math.MaxInt64, 1} // start, end and step where they are not given
	for i := range bounds {
		if i+1 < len(args) {
			n, ok := py.IntOf(args[i+1], bounds[i])
			if !ok {
				return s.atRunTime(&py.List{Cell: s.heap.New(l.State()), Elem: l.Elem}, o, args, "a slice of a list by a bound")
			}
			bounds[i] = n
		}
	}
	return one(s.heap.List(l.Elem, py.Slice(es, bounds[0], bounds[1], bounds[2])))
}

// joinLists evaluates l + other, l += other and l.extend(other).
func joinLists(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	other, ok := args[1].(*py.List)
	if !ok {
		return nil, false
	}
	if other.State().AtRunTime() {
		if len(es) == 0 { // the elements are those of the other list
			switch o.Kind {
			case "aten::add":
				return copyDyn(s, other, nil, o, nil)
			case "aten::extend":
				s.set(l.Cell, other.State())
				return nil, true
			}
			s.set(l.Cell, other.State())
			return one(l)
		}
		s.makeDynamic(l)
		return s.dynListOp(o, l, args)
	}
	more := other.State().Elems
	if o.Kind != "aten::add" {
		s.put(l, more...)
	}
	if o.Kind == "aten::extend" || o.Kind == "aten::add_" { // no new list, of which who called us would know
		s.takeElems(int64(len(more)), elemBytes)
	}
	n := append(append(make([]py.Value, 0, len(es)+len(more)), es...), more...)
	switch o.Kind {
	case "aten::extend":
		s.setList(l, n)
		return nil, true
	case "aten::add_":
		s.setList(l, n)
		return one(l)
	}
	elem := l.Elem
	if len(es) == 0 {
		elem = other.Elem
	}
	return one(s.heap.List(elem, n))
}

func repeatList(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	k, ok := py.LiteralOf(args[1])
	if !ok {
		return s.repeatAtRunTime(l, o, args[1])
	}
	times := max(k.Int(), 0)
	if len(es) > 0 {
		s.takeElems(times, elemBytes*int64(len(es)))
	}
	n := slices.Repeat(es, int(times*int64(min(len(es), 1))))
	if o.Kind == "aten::mul_" {
		s.setList(l, n)
		return one(l)
	}
	return one(s.heap.List(l.Elem, n))
}

// repeatAtRunTime is l * k where the length of l or k is known at run time only.
func (s *containers) repeatAtRunTime(l *py.List, o *ssa.Op, k py.Value) ([]py.Value, bool) {
	if _, known := py.LiteralOf(k); !known && s.build.inLoop() && s.mode == unrolling {
		s.unroll("a list is repeated a number of times that is only known at run time")
	}
	times := s.vals.scalar("prim::max", aten.SchemaByName("prim::max.int"), []py.Value{k, py.Int(0)})
	var list *py.List
	if v := s.vector(l); v != nil && !memberList(l.Elem) {
		v = s.vals.emitName("aten::repeat", v, s.heap.List(ssa.IntType, times))
		elem := numberTypeOf(v.DType())
		list = s.newDyn(s.build.cur.Append("prim::tolist", s.loc, []*ssa.Value{v}, &ssa.ListType{Elem: elem}).Result(0), elem)
	} else {
		if !l.State().AtRunTime() && len(l.State().Elems) == 0 {
			list = s.heap.List(l.Elem, nil)
		} else {
			list = s.newDyn(s.vals.repeated(s.vals.dynamic(l.State(), nil), s.vals.materialize(times[0])), l.Elem)
		}
	}
	if o.Kind == "aten::mul_" {
		s.set(l.Cell, list.State())
		return one(l)
	}
	return one(list)
}

// repeated is a run-time list that is joined to itself, times as often in all.
func (s *values) repeated(list, times *ssa.Value) *ssa.Value {
	cur, schema := s.build.cur, aten.SchemaByName("aten::add.t")
	yes := s.build.constant(ssa.Bool(true))
	none := cur.Append("prim::ListConstruct", s.loc, nil, list.Type).Result(0)
	n := cur.Append("prim::Loop", s.loc, []*ssa.Value{times, yes, none}, list.Type)
	b := n.AddBlock()
	b.AddParam("", ssa.IntType)
	joined := b.Append(ssa.Kind(schema.Name), s.loc, []*ssa.Value{b.AddParam("", list.Type), list}, list.Type)
	joined.Schema = schema
	b.SetReturns(yes, joined.Result(0))
	return n.Result(0)
}

func equalLists(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	other, ok := args[1].(*py.List)
	if !ok {
		return nil, false
	}
	if other.State().AtRunTime() {
		return equalVectors(s, l, nil, o, args)
	}
	r, ok := s.equalElems(es, other.State().Elems)
	if !ok {
		return nil, false
	}
	return one(s.negateIf(r, o.Kind == "aten::ne"))
}

// equalElems compares two lists of numbers or strings.
func (s *containers) equalElems(a, b []py.Value) (py.Value, bool) {
	if len(a) != len(b) {
		return py.Bool(false), true
	}
	all := py.Value(py.Bool(true))
	for i := range a {
		if py.Tensorial(a[i:i+1]) || py.Tensorial(b[i:i+1]) {
			return nil, false
		}
		r, ok := s.equalNumbers(a[i], b[i])
		if !ok {
			return nil, false
		}
		if l, ok := r.(py.Const); ok {
			if !l.Bool() {
				return l, true
			}
			continue
		}
		if l, ok := all.(py.Const); ok && l.Bool() {
			all = r
		} else {
			all = s.vals.scalar("aten::__and__", aten.SchemaByName("aten::__and__.bool"), []py.Value{all, r})[0]
		}
	}
	return all, true
}

func (s *containers) equalNumbers(a, b py.Value) (py.Value, bool) {
	la, ok := py.LiteralOf(a)
	lb, ok2 := py.LiteralOf(b)
	if ok && ok2 {
		eq, ok := python.Equal(la, lb)
		return py.Bool(eq), ok
	}
	return s.vals.intOp("eq", a, b), true
}

func containsItem(s *containers, _ *py.List, es []py.Value, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	found := py.Value(py.Bool(false))
	for _, e := range es {
		r, ok := s.equalElems([]py.Value{e}, []py.Value{args[1]})
		if !ok {
			s.fail("dynamic-container", "membership in a list of tensors depends on data")
		}
		if lit, ok := r.(py.Const); ok {
			if lit.Bool() {
				return one(lit)
			}
			continue
		}
		if lit, ok := found.(py.Const); ok && !lit.Bool() {
			found = r
		} else {
			found = s.vals.scalar("aten::__or__", aten.SchemaByName("aten::__or__.bool"), []py.Value{found, r})[0]
		}
	}
	return one(found)
}

// extremeList is the lesser or the greater of two lists of numbers, as Python orders them: by the first pair of elements that differ, then by length.
// It is one of the two, the second one where they are equal.
func (s *containers) extremeList(a, b *py.List, greater bool) *py.List {
	if a.State().AtRunTime() || b.State().AtRunTime() {
		s.fail("dynamic-container", "which of two lists is the lesser one depends on data, and so does the length of one of them")
	}
	x, y := a.State().Elems, b.State().Elems
	takes := py.Value(py.Bool(len(x) < len(y)))
	if greater {
		takes = py.Bool(len(x) > len(y))
	}
	logic := func(name string, p, q py.Value) py.Value {
		return s.vals.scalar(ssa.Kind(name), aten.SchemaByName(name+".bool"), []py.Value{p, q})[0]
	}
	for i := min(len(x), len(y)) - 1; i >= 0; i-- {
		less, than := x[i], y[i]
		if greater {
			less, than = than, less
		}
		schema := aten.SchemaByName("aten::lt.int")
		switch t, _ := py.NumberType(x[i]); t {
		case ssa.FloatType:
			schema = aten.SchemaByName("aten::lt.float")
		case ssa.BoolType:
			asInt := aten.SchemaByName("aten::Int.bool")
			less, than = s.vals.scalar("aten::Int", asInt, []py.Value{less})[0], s.vals.scalar("aten::Int", asInt, []py.Value{than})[0]
		}
		precedes := s.vals.scalar("aten::lt", schema, []py.Value{less, than})[0]
		follows := s.vals.scalar("aten::lt", schema, []py.Value{than, less})[0]
		differs := logic("aten::__or__", precedes, follows)
		if schema.Overload == "float" { // what is not a number equals nothing, and is neither less nor greater
			differs = s.vals.scalar("aten::ne", aten.SchemaByName("aten::ne.float"), []py.Value{less, than})[0]
		}
		same := s.vals.scalar("aten::__not__", aten.SchemaByName("aten::__not__"), []py.Value{differs})[0]
		takes = logic("aten::__or__", precedes, logic("aten::__and__", same, takes))
	}
	if c, known := py.LiteralOf(takes); known {
		if c.Bool() {
			return a
		}
		return b
	}
	if len(x) != len(y) {
		s.fail("dynamic-container", "which of two lists of unlike lengths is the lesser one depends on data")
	}
	cond := s.vals.materialize(takes)
	es := make([]py.Value, len(x))
	for i := range es {
		es[i] = s.vals.choose(cond, x[i], y[i])
	}
	l := s.heap.List(a.Elem, es)
	s.heap.Twin(l.Cell, a.Cell)
	s.heap.Twin(l.Cell, b.Cell)
	return l
}

// vector is a list of numbers as a vector, nil for other lists.
func (s *containers) vector(l *py.List) *ssa.Value {
	if t, ok := s.vals.member(&py.List{Cell: s.heap.New(l.State()), Elem: l.Elem}).(*py.Tensor); ok {
		return s.vals.read(t)
	}
	return nil
}

// sortNumbers is sorted(l), or l.sort(), of numbers that are known at run time only.
func (s *containers) sortNumbers(l *py.List, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	v := s.vector(l)
	if v == nil {
		s.fail("dynamic-container", "a list that depends on data can be sorted if it is of numbers")
	}
	down := py.Value(py.Bool(false))
	if len(args) > 1 {
		down = args[1]
	}
	schema := aten.SchemaByName("aten::sort")
	v = s.build.emit("aten::sort", schema, v, s.build.constant(ssa.Int(-1)), s.vals.materialize(down))[0]
	sorted := s.toList(s.heap.Tensor(v), &ssa.ListType{Elem: numberTypeOf(v.DType())}).(*py.List)
	if o.Kind == "aten::sorted" {
		return one(sorted)
	}
	s.set(l.Cell, sorted.State())
	return nil, true
}

// findNumber evaluates l.count(x), l.index(x) and x in l, of numbers in a list of run-time length.
func findNumber(s *containers, l *py.List, _ *ssa.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	v := s.vector(l)
	if v == nil {
		return noDynForm(s, l, nil, o, args)
	}
	is := s.vals.emitName("aten::eq.Scalar", v, args[1])
	switch o.Kind {
	case "aten::count":
		return one(s.vals.number(s.vals.emitName("aten::Int.Tensor", s.vals.emitName("aten::sum", is))))
	case "aten::index":
		s.warnf("dropped-assert", "that the value is in the list is not checked")
		first := s.vals.emitName("aten::argmax", s.vals.emitName("aten::to.dtype", is, ssa.Int(int64(tensor.Int32.Code()))))
		return one(s.vals.number(s.vals.emitName("aten::Int.Tensor", first)))
	}
	return one(s.vals.wrap(s.vals.emitName("aten::Bool.Tensor", s.vals.emitName("aten::any", is))))
}

// equalVectors evaluates l == other and l != other, where the length of one of them is known at run time only.
func equalVectors(s *containers, l *py.List, _ *ssa.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	other, ok := args[1].(*py.List)
	if !ok {
		return nil, false
	}
	a, b := s.vector(l), s.vector(other)
	if a == nil || b == nil {
		return noDynForm(s, l, nil, o, args)
	}
	return one(s.negateIf(s.vals.wrap(s.vals.emitName("aten::equal", a, b)), o.Kind == "aten::ne"))
}

func sortList(s *containers, l *py.List, es []py.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	lit, ok := py.LiteralOf(l)
	if !ok {
		return s.sortNumbers(l, o, args)
	}
	order := make([]int, len(es))
	for i := range order {
		order[i] = i
	}
	reverse := false
	if len(args) > 1 {
		if r, ok := py.LiteralOf(args[1]); ok {
			reverse = r.Bool()
		}
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := lit.Elems[order[i]], lit.Elems[order[j]]
		if reverse {
			a, b = b, a
		}
		return python.Less(a, b)
	})
	n := make([]py.Value, len(es))
	for i, j := range order {
		n[i] = es[j]
	}
	if o.Kind == "aten::sorted" {
		return one(s.heap.List(l.Elem, n))
	}
	s.setList(l, n)
	return nil, true
}

// foldList evaluates what makes one number or string of a list.
func foldList(s *containers, l *py.List, es []py.Value, o *ssa.Op, _ []py.Value) ([]py.Value, bool) {
	if py.Tensorial(es) {
		return nil, false
	}
	if lit, ok := py.LiteralOf(l); ok {
		r, ok := s.fold(o.Kind.Name(), o.Results[0].Type, lit)
		return []py.Value{py.Of(r)}, ok
	}
	if o.Kind != "aten::sum" {
		return nil, false
	}
	sum := py.Value(py.Int(0))
	for _, e := range es {
		sum = s.vals.scalar("aten::add", aten.SchemaByName("aten::add.int"), []py.Value{sum, e})[0]
	}
	return one(sum)
}
