package specialize

import (
	"sort"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// outcome is what the evaluation of a block gave.
type outcome struct {
	results []value
	changes map[*cell]any // contents of cells at the end, undone outside
	raised  *raised
}

// under runs f as if the changes were in force.
func under(changes map[*cell]any, f func()) {
	saved := make(map[*cell]any, len(changes))
	for c, content := range changes {
		saved[c] = c.content
		c.content = content
	}
	defer func() {
		for c, content := range saved {
			c.content = content
		}
	}()
	f()
}

func contentIn(changes map[*cell]any, c *cell) any {
	if x, ok := changes[c]; ok {
		return x
	}
	return c.content
}

// branch evaluates a source block into a target block and undoes its changes.
func (s *spec) branch(src, dst *ssa.Block) (out outcome) {
	mark, cur, loc, op := len(s.journal), s.cur, s.loc, s.op
	s.cur = dst
	defer func() {
		s.cur = cur
		if r := recover(); r != nil {
			x, ok := r.(raised)
			if !ok {
				panic(r)
			}
			s.undo(mark)
			s.loc, s.op = loc, op
			out = outcome{raised: &x}
		}
	}()
	s.block(src)
	for _, v := range src.Returns() {
		out.results = append(out.results, s.get(v))
	}
	out.changes = s.undo(mark)
	return out
}

func (s *spec) ifOp(o *ssa.Op) {
	c := s.get(o.Operand(0))
	if l, ok := c.(ssa.Literal); ok {
		b := o.Blocks[0]
		if !l.Bool() {
			b = o.Blocks[1]
		}
		s.block(b)
		for i, r := range o.Results {
			s.put(r, s.get(b.Return(i)))
		}
		return
	}
	cond, ok := c.(*ssa.Value)
	if !ok {
		s.fail("unsupported-value", "the condition is not a bool")
	}
	start := s.cells
	n := s.cur.Append("prim::If", s.loc, []*ssa.Value{cond})
	b0, b1 := n.AddBlock(), n.AddBlock()
	out0 := s.branch(o.Blocks[0], b0)
	out1 := s.branch(o.Blocks[1], b1)
	if out0.raised != nil && out1.raised != nil {
		n.Erase()
		panic(*out0.raised)
	}
	if out0.raised != nil || out1.raised != nil {
		keep, why := 0, out1.raised
		if out0.raised != nil {
			keep, why = 1, out0.raised
		}
		s.warnf("dropped-assert", "a check on data is left out (%s)", why.message)
		s.only(o, n, keep, [2]outcome{out0, out1}[keep])
		return
	}
	m := &merger{s: s, n: n, blocks: [2]*ssa.Block{b0, b1}, changes: [2]map[*cell]any{out0.changes, out1.changes}, start: start, memo: map[[2]*ssa.Value]*ssa.Value{}}
	if empty, count, ok := emptyBranch(cond); ok && m.onlyRank([2]outcome{out0, out1}, empty, count) {
		if s.opts.nonEmpty {
			s.warnf("not-empty", "a tensor has another rank where it has no elements (%s is 0); the model is right for 1 and more", count)
			s.m.Assume("sizes that " + s.m.Locs.String(s.loc) + " compares with 0 are at least 1")
			s.only(o, n, 1-empty, [2]outcome{out0, out1}[1-empty])
			return
		}
		s.ranks++
	}
	results := make([]value, len(o.Results))
	for i := range o.Results {
		results[i] = m.merge(out0.results[i], out1.results[i])
	}
	cells := map[*cell]any{}
	for c := range out0.changes {
		cells[c] = nil
	}
	for c := range out1.changes {
		cells[c] = nil
	}
	for _, c := range ordered(cells) {
		if c.id <= start {
			cells[c] = m.mergeContent(contentIn(out0.changes, c), contentIn(out1.changes, c))
		}
	}
	for _, c := range ordered(cells) { // only now: merging reads what was before
		if c.id <= start {
			s.set(c, cells[c])
		}
	}
	b0.SetReturns(m.rets[0]...)
	b1.SetReturns(m.rets[1]...)
	for i, r := range o.Results {
		s.name(results[i], r.Name)
		s.put(r, results[i])
	}
	if len(n.Results) == 0 {
		n.Erase()
	}
}

// only puts one block in the place of the If n that was made for o.
func (s *spec) only(o, n *ssa.Op, keep int, out outcome) {
	s.cur.Splice(n, n.Blocks[keep])
	n.Erase()
	for _, c := range ordered(out.changes) {
		s.set(c, out.changes[c])
	}
	for i, r := range o.Results {
		s.put(r, out.results[i])
	}
}

func ordered(cells map[*cell]any) []*cell {
	out := make([]*cell, 0, len(cells))
	for c := range cells {
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].id < out[j].id })
	return out
}

// merger joins what two branches gave into results of the If.
type merger struct {
	s       *spec
	n       *ssa.Op
	blocks  [2]*ssa.Block
	changes [2]map[*cell]any
	rets    [2][]*ssa.Value
	start   int // cells with a greater id were made in a branch
	memo    map[[2]*ssa.Value]*ssa.Value
}

// in materializes a value at the end of branch i.
func (m *merger) in(i int, f func() *ssa.Value) (v *ssa.Value) {
	cur := m.s.cur
	m.s.cur = m.blocks[i]
	under(m.changes[i], func() { v = f() })
	m.s.cur = cur
	return v
}

func (m *merger) pair(v0, v1 *ssa.Value, t ssa.Type) *ssa.Value {
	key := [2]*ssa.Value{v0, v1}
	if r := m.memo[key]; r != nil {
		return r
	}
	m.rets[0], m.rets[1] = append(m.rets[0], v0), append(m.rets[1], v1)
	r := m.n.AddResult(t)
	if t == ssa.IntType {
		if len(v0.Sym) == 1 && len(v1.Sym) == 1 && v0.Sym[0].Equal(v1.Sym[0]) {
			r.Sym = v0.Sym
		} else {
			r.Sym = []sym.Expr{m.s.m.FreshSymbol("n", minInt)}
		}
	}
	m.memo[key] = r
	return r
}

// joinTensors is the type of a tensor that is one of two.
func (s *spec) joinTensors(a, b *ssa.TensorType) *ssa.TensorType {
	d := a.DType
	if a.DType != b.DType {
		if a.DType != tensor.Undefined && b.DType != tensor.Undefined {
			s.fail("dynamic-dtype", "a tensor is %v or %v depending on data; ONNX needs one type: convert with .to() in one of the branches", a.DType, b.DType)
		}
		d = tensor.Undefined
	}
	if !a.Ranked || !b.Ranked || len(a.Dims) != len(b.Dims) {
		return ssa.Unranked(d)
	}
	dims := make([]sym.Expr, len(a.Dims))
	for i := range dims {
		dims[i] = a.Dims[i]
		if !a.Dims[i].Equal(b.Dims[i]) {
			dims[i] = s.m.FreshSymbol("u", max(0, min(a.Dims[i].Min(), b.Dims[i].Min())))
		}
	}
	return ssa.Tensor(d, dims...)
}

func (m *merger) pairTensors(v0, v1 *ssa.Value) *ssa.Value {
	if v0 == v1 {
		return v0
	}
	t0, t1 := v0.Tensor(), v1.Tensor()
	if t0 == nil || t1 == nil {
		m.s.fail("unsupported-value", "a value is a tensor in one branch only")
	}
	if r := m.memo[[2]*ssa.Value{v0, v1}]; r != nil {
		return r
	}
	return m.pair(v0, v1, m.s.joinTensors(t0, t1))
}

func (m *merger) merge(x, y value) value {
	s := m.s
	if same(x, y) {
		return x
	}
	if _, ok := x.(unset); ok {
		return m.only(1, y)
	}
	if _, ok := y.(unset); ok {
		return m.only(0, x)
	}
	if isNone(x) || isNone(y) {
		return m.optional(x, y)
	}
	if _, ok := x.(*maybe); ok {
		return m.optional(x, y)
	}
	if _, ok := y.(*maybe); ok {
		return m.optional(x, y)
	}
	if tx, ok := numberType(x); ok {
		ty, ok := numberType(y)
		if !ok {
			s.fail("unsupported-value", "a value is a number in one branch only")
		}
		v0 := m.in(0, func() *ssa.Value { return s.materialize(x) })
		v1 := m.in(1, func() *ssa.Value { return s.materialize(y) })
		if tx != ty {
			if tx == ssa.BoolType || ty == ssa.BoolType {
				s.fail("unsupported-value", "a value is %s or %s depending on data", tx, ty)
			}
			toFloat := func(v *ssa.Value, t ssa.Type) func() *ssa.Value {
				return func() *ssa.Value {
					if t == ssa.FloatType {
						return v
					}
					return s.emitName("aten::Float.Scalar", v)
				}
			}
			v0, v1, tx = m.in(0, toFloat(v0, tx)), m.in(1, toFloat(v1, ty)), ssa.FloatType
		}
		return m.pair(v0, v1, tx)
	}
	switch x := x.(type) {
	case *tensorRef:
		y, ok := y.(*tensorRef)
		if !ok {
			s.fail("unsupported-value", "a value is a tensor in one branch only")
		}
		if t := m.view(x, y); t != nil {
			s.twin(t.c, x.c)
			s.twin(t.c, y.c)
			return t
		}
		v0 := m.in(0, func() *ssa.Value { return s.read(x) })
		v1 := m.in(1, func() *ssa.Value { return s.read(y) })
		t := m.tensor(v0, v1, x.c, y.c)
		m.relate(t, 0, x)
		m.relate(t, 1, y)
		s.twin(t.c, x.c)
		s.twin(t.c, y.c)
		return t
	case *tuple:
		y, ok := y.(*tuple)
		if ok && len(x.elems) == len(y.elems) {
			elems := make([]value, len(x.elems))
			for i := range elems {
				elems[i] = m.merge(x.elems[i], y.elems[i])
			}
			return &tuple{elems: elems, typ: x.typ}
		}
	case *list:
		if y, ok := y.(*list); ok {
			c := m.mergeContent(contentIn(m.changes[0], x.c), contentIn(m.changes[1], y.c))
			elem := x.elem
			if len(c.(*listState).elems) == 0 {
				elem = y.elem
			}
			return &list{c: s.newCell(c), elem: elem}
		}
	case *dict:
		if y, ok := y.(*dict); ok {
			return &dict{c: s.newCell(m.mergeContent(contentIn(m.changes[0], x.c), contentIn(m.changes[1], y.c))), typ: x.typ}
		}
	case *object:
		if y, ok := y.(*object); ok && x.class == y.class && x.src == nil && y.src == nil {
			o := &object{class: x.class, attrs: map[string]*cell{}}
			names := make([]string, 0, len(x.attrs))
			for n := range x.attrs {
				names = append(names, n)
			}
			sort.Strings(names)
			for _, n := range names {
				if y.attrs[n] == nil {
					continue
				}
				o.attrs[n] = s.newCell(m.mergeContent(contentIn(m.changes[0], x.attrs[n]), contentIn(m.changes[1], y.attrs[n])))
			}
			return o
		}
	}
	if choosable(x) && choosable(y) {
		return &choice{cond: m.n.Operand(0), yes: m.lift(0, x), no: m.lift(1, y)}
	}
	s.fail("unsupported-value", "the two branches give values that have no common form in ONNX")
	return nil
}

// tensor is a tensor that is v0, with the state in c0, in one branch and v1 in the other.
func (m *merger) tensor(v0, v1 *ssa.Value, c0, c1 *cell) *tensorRef {
	s := m.s
	v := m.pairTensors(v0, v1)
	a, b := contentIn(m.changes[0], c0).(*tensorState).strides, contentIn(m.changes[1], c1).(*tensorState).strides
	same := a != nil && len(a) == len(b)
	for i := range a {
		same = same && a[i].Equal(b[i])
	}
	if same {
		return s.newLaid(v, a)
	}
	how0, _ := s.isContiguous(a, v0.Tensor())
	how1, _ := s.isContiguous(b, v1.Tensor())
	if how0 == shares && how1 == shares {
		return s.newTensor(v)
	}
	return s.newLaid(v, nil)
}

// relate records that the merged tensor t is x where the If takes branch i.
func (m *merger) relate(t *tensorRef, i int, x *tensorRef) {
	from := t.state().st
	state := contentIn(m.changes[i], x.c).(*tensorState)
	from.listed = from.listed || state.st.listed
	if to := state.st; to.c.id <= m.start {
		l := &link{from: from, to: to, cond: m.n.Operand(0), side: i == 0, view: state}
		from.links, to.links = append(from.links, l), append(to.links, l)
		return
	}
	// memory of the branch, which may itself be related to memory outside
	m.relateInner(t, i, state.st, state, nil)
}

// only gives a value that branch i alone sets; the other one never reads it.
func (m *merger) only(i int, x value) value {
	s := m.s
	join := func(v *ssa.Value, other value) *ssa.Value {
		o := m.in(1-i, func() *ssa.Value { return s.materialize(other) })
		if i == 0 {
			return m.pair(v, o, v.Type)
		}
		return m.pair(o, v, v.Type)
	}
	each := func(xs []value) []value {
		out := make([]value, len(xs))
		for k, e := range xs {
			out[k] = m.only(i, e)
		}
		return out
	}
	switch x := x.(type) {
	case *ssa.Value:
		return join(x, s.dummy(x, m.changes[i]))
	case *tensorRef:
		v := m.in(i, func() *ssa.Value { return s.read(x) })
		st := contentIn(m.changes[i], x.c).(*tensorState)
		t := s.newLaid(join(v, s.dummyTensor(v.Tensor())), st.strides)
		m.relate(t, i, x)
		return t
	case *tuple:
		return &tuple{elems: each(x.elems), typ: x.typ}
	case *list:
		if st := contentIn(m.changes[i], x.c).(*listState); st.dyn == nil {
			return s.newList(x.elem, each(st.elems))
		}
		s.fail("unsupported-value", "a list of run-time length is set in one branch only")
	case *dict:
		st := contentIn(m.changes[i], x.c).(*dictState)
		return &dict{c: s.newCell(&dictState{keys: st.keys, vals: each(st.vals)}), typ: x.typ}
	case *maybe:
		return &maybe{has: join(x.has, ssa.Bool(false)), val: m.only(i, x.val)}
	}
	return x
}

// optional joins None or maybes with values.
func (m *merger) optional(x, y value) value {
	s := m.s
	split := func(v value) (has *ssa.Value, val value) {
		if mb, ok := v.(*maybe); ok {
			return mb.has, mb.val
		}
		if isNone(v) {
			return s.constant(ssa.Bool(false)), nil
		}
		return s.constant(ssa.Bool(true)), v
	}
	h0, v0 := split(x)
	h1, v1 := split(y)
	if v0 == nil {
		v0 = s.dummy(v1, m.changes[1])
	}
	if v1 == nil {
		v1 = s.dummy(v0, m.changes[0])
	}
	return &maybe{has: m.pair(h0, h1, ssa.BoolType), val: m.merge(v0, v1)}
}

// dummy makes a value of the form of v that stands where None is.
func (s *spec) dummy(v value, changes map[*cell]any) value {
	switch v := v.(type) {
	case *tensorRef:
		var t *ssa.TensorType
		under(changes, func() {
			if v.val != nil {
				t = v.val.Tensor()
			} else {
				t = s.read(v).Tensor()
			}
		})
		return s.dummyTensor(t)
	case *tuple:
		t := &tuple{typ: v.typ}
		for _, e := range v.elems {
			t.elems = append(t.elems, s.dummy(e, changes))
		}
		return t
	}
	switch t, _ := numberType(v); t {
	case ssa.IntType:
		return ssa.Int(0)
	case ssa.FloatType:
		return ssa.Float(0)
	case ssa.BoolType:
		return ssa.Bool(false)
	}
	s.fail("optional-data", "whether this value is None depends on data")
	return nil
}

// dummyTensor is a constant of a tensor's type, of size 1 where sizes are not known.
func (s *spec) dummyTensor(t *ssa.TensorType) *tensorRef {
	if t == nil || t.DType == tensor.Undefined || t.DType.Size() == 0 || t.DType.IsComplex() {
		s.fail("optional-data", "whether this tensor is None depends on data, and its type is not known")
	}
	shape := make([]int64, len(t.Dims))
	for i, d := range t.Dims {
		shape[i] = 1
		if n, ok := d.Int(); ok {
			shape[i] = n
		}
	}
	v := s.constant(ssa.TensorValue(tensor.Full(t.DType, shape, 0)))
	if _, static := t.Static(); !static {
		v = s.expanded(v, t.Dims)
	}
	return s.newTensor(v)
}

// expanded is the constant v in a shape of sizes of the inputs, computed at the head of the program; v itself where other
// sizes are among dims. Before opset 11 onnxruntime insists on the sizes even of a value that nobody reads.
func (s *spec) expanded(v *ssa.Value, dims []sym.Expr) *ssa.Value {
	cur, last := s.cur, s.out.Body.Last()
	s.cur = s.out.Body
	defer func() { s.cur = cur }()
	sizes := make([]*ssa.Value, len(dims))
	for i, d := range dims {
		if n, ok := d.Int(); ok {
			sizes[i] = s.constant(ssa.Int(n))
		} else if sizes[i] = s.inputSize(d); sizes[i] == nil {
			return v
		}
	}
	list := s.cur.Append("prim::ListConstruct", s.loc, sizes, &ssa.ListType{Elem: ssa.IntType})
	v = s.emitName("aten::expand", v, list.Result(0), false)
	head := s.lastCon.Next()
	for o := last.Next(); o != nil && last != s.lastCon; {
		next := o.Next()
		o.MoveBefore(head)
		o = next
	}
	return v
}

// inputSize gives a size as a number, nil if no input has it.
func (s *spec) inputSize(d sym.Expr) *ssa.Value {
	for _, p := range s.out.Body.Params {
		t := p.Tensor()
		if t == nil || !t.Ranked {
			continue
		}
		for i, e := range t.Dims {
			if e.Equal(d) {
				v := s.emitName("aten::size.int", p, i)
				v.Sym = []sym.Expr{d}
				return v
			}
		}
	}
	return nil
}

func (m *merger) mergeContent(a, b any) any {
	s := m.s
	switch a := a.(type) {
	case storageState:
		b := b.(storageState)
		v := a.base
		if a.base != b.base {
			v = m.pairTensors(a.base, b.base)
		}
		stale := a.stale
		if stale == "" {
			stale = b.stale
		}
		return storageState{base: v, stale: stale}
	case *tensorState:
		b := b.(*tensorState)
		if a == b {
			return a
		}
		tmp0, tmp1 := &tensorRef{c: &cell{content: a}}, &tensorRef{c: &cell{content: b}}
		v0 := m.in(0, func() *ssa.Value { return s.read(tmp0) })
		v1 := m.in(1, func() *ssa.Value { return s.read(tmp1) })
		t := m.tensor(v0, v1, tmp0.c, tmp1.c)
		m.relate(t, 0, tmp0)
		m.relate(t, 1, tmp1)
		return t.state()
	case *listState:
		b := b.(*listState)
		if a == b {
			return a
		}
		if a.dyn == nil && b.dyn == nil && len(a.elems) == len(b.elems) {
			elems := make([]value, len(a.elems))
			for i := range elems {
				elems[i] = m.merge(a.elems[i], b.elems[i])
			}
			return &listState{elems: elems}
		}
		v0 := m.in(0, func() *ssa.Value { return s.dynamic(a, b) })
		v1 := m.in(1, func() *ssa.Value { return s.dynamic(b, a) })
		return &listState{dyn: m.pair(v0, v1, v0.Type)}
	case *dictState:
		b := b.(*dictState)
		if a == b {
			return a
		}
		if len(a.keys) == len(b.keys) {
			d := &dictState{keys: a.keys}
			for i, k := range a.keys {
				j := b.find(k)
				if j < 0 {
					s.fail("dynamic-container", "the keys of a dict depend on data")
				}
				d.vals = append(d.vals, m.merge(a.vals[i], b.vals[j]))
			}
			return d
		}
		s.fail("dynamic-container", "the keys of a dict depend on data")
	case nil:
		return b
	}
	if b == nil {
		return a
	}
	return m.merge(a, b)
}

// dynamic makes a list a run-time list; other is a list of the same element type, if a is empty.
func (s *spec) dynamic(a, other *listState) *ssa.Value {
	if a.dyn != nil {
		return s.dynOf(a)
	}
	hold(a.elems...)
	elem := s.dynElem(a)
	if elem == nil && other != nil {
		elem = s.dynElem(other)
	}
	if elem == nil {
		s.fail("dynamic-container", "the element type of a list whose length depends on data is not known")
	}
	vs := make([]*ssa.Value, len(a.elems))
	for i, e := range a.elems {
		vs[i] = s.materialize(e)
	}
	return s.cur.Append("prim::ListConstruct", s.loc, vs, &ssa.ListType{Elem: elem}).Results[0]
}

// dynElem is the element type of a run-time list, nil for an empty one: a tensor type or a number.
func (s *spec) dynElem(a *listState) ssa.Type {
	if a.dyn != nil {
		return a.dyn.Type.(*ssa.ListType).Elem
	}
	var t ssa.Type
	for _, e := range a.elems {
		var et ssa.Type
		switch e := e.(type) {
		case *tensorRef:
			et = s.read(e).Tensor()
		default:
			n, ok := numberType(e)
			if !ok {
				s.fail("dynamic-container", "a list of %T cannot have a length that depends on data in ONNX", e)
			}
			et = n
		}
		a, b := ssa.AsTensor(t), ssa.AsTensor(et)
		switch {
		case t == nil:
			t = et
		case a != nil && b != nil && !ssa.SameType(a, b):
			t = s.joinTensors(a, b)
		}
	}
	return t
}
