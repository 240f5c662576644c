package specialize

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/form"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
)

// merger joins what two branches gave into results of the If.
type merger struct {
	s       *walk
	n       *ssa.Op
	blocks  [2]*ssa.Block
	changes [2]journal.Changes
	rets    [2][]*ssa.Value
	start   int // cells with a greater id were made in a branch
	memo    map[[2]*ssa.Value]*ssa.Value
	reach   *reach // nil stands for all cells
	chooses bool   // while the values that an If of the program gives are merged
	// merged are the objects that pairs of objects became, and mergedCells the last ones of cells of such.
	merged      map[[2]py.Value]py.Value
	mergedCells map[*journal.Cell]*journal.Cell
	// held are the storages of merged tensors that may be memory which a branch made.
	held map[*heap.Storage][]*heap.Storage
	// shown are merged tensors, by their storage, and what they show of a branch.
	shown [][2]*heap.Storage
}

// join gives the values that the two branches give, and makes the writes of both.
func (m *merger) join(outs [2]outcome) []py.Value {
	s := m.s
	if empty, count, ok := emptyBranch(m.n.Operand(0)); ok && m.onlyRank(outs, empty, count) {
		if s.takes(notEmpty) {
			s.warnf("not-empty", "a tensor has another rank where it has no elements (%s is 0); the model is right for 1 and more", count)
			s.assumed = append(s.assumed, "sizes that "+s.m.Locs.String(s.loc)+" compares with 0 are at least 1")
			return s.only(m.n, 1-empty, outs[1-empty])
		}
		s.offer(notEmpty, s.op)
	}
	results := make([]py.Value, len(outs[0].results))
	m.chooses = m.reach == nil && s.op.Kind == "prim::If"
	for i := range results {
		results[i] = m.merge(outs[0].results[i], outs[1].results[i])
	}
	m.chooses = false
	cells := journal.Changes{}
	for _, changes := range m.changes {
		for c := range changes {
			if c.ID() <= m.start && (m.reach == nil || m.reach.has(c)) {
				cells[c] = nil
			}
		}
	}
	for _, c := range journal.Ordered(cells) {
		cells[c] = m.mergeContent(m.changes[0].Of(c), m.changes[1].Of(c))
	}
	for _, pair := range m.shown { // only now: a list that is one of two may have become one of run-time length
		s.heap.Inherit(pair[0], pair[1])
	}
	for _, c := range journal.Ordered(cells) { // only now: merging reads what was before
		s.heap.Set(c, cells[c])
	}
	for i, b := range m.blocks {
		b.SetReturns(m.rets[i]...)
	}
	if len(m.n.Results) == 0 {
		m.n.Erase()
	}
	return results
}

// in materializes a value at the end of branch i.
func (m *merger) in(i int, f func() *ssa.Value) (v *ssa.Value) {
	cur := m.s.build.cur
	m.s.build.cur = m.blocks[i]
	m.changes[i].Under(func() { v = f() })
	m.s.build.cur = cur
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
		joined := m.s.m.FreshSymbol("n", minInt)
		if len(v0.Sym) == 1 && len(v1.Sym) == 1 {
			if e, ok := m.size(v0.Sym[0], v1.Sym[0]); ok {
				joined = e
			}
		}
		r.Sym = []sym.Expr{joined}
	}
	m.memo[key] = r
	return r
}

// sided is the result that is v where the If takes branch i, and other else.
func (m *merger) sided(i int, v, other *ssa.Value, t ssa.Type) *ssa.Value {
	if i == 0 {
		return m.pair(v, other, t)
	}
	return m.pair(other, v, t)
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
	t := m.s.build.joinTensorsBy(t0, t1, m.size)
	r := m.pair(v0, v1, t)
	if t0.Ranked && t1.Ranked && !t.Ranked {
		why := fmt.Sprintf("a tensor has %d or %d dimensions depending on data, and an operator behind it needs their number", len(t0.Dims), len(t1.Dims))
		m.s.less("dynamic-rank", "%s", why)
		m.s.loses(r)
		if !m.s.takes(widen) {
			m.s.openRank(diag.Diagnostic{Op: "prim::If", Message: why})
			if m.s.opts.Opset < ifOfRanks {
				m.s.needRank(r)
			}
		}
	}
	return r
}

// ifOfRanks is the first opset with an If whose branches give tensors of several ranks.
const ifOfRanks = 11

// merge gives the value that is x in one branch and y in the other.
func (m *merger) merge(x, y py.Value) py.Value {
	if py.Same(x, y) {
		return x
	}
	if _, ok := x.(py.Unset); ok {
		return m.only(1, y)
	}
	if _, ok := y.(py.Unset); ok {
		return m.only(0, x)
	}
	if isOptional(x) || isOptional(y) {
		return m.optional(x, y)
	}
	if _, ok := py.NumberType(x); ok {
		return m.numbers(x, y)
	}
	var z py.Value
	switch x := x.(type) {
	case *py.Tensor:
		y, ok := y.(*py.Tensor)
		if !ok {
			m.s.fail("unsupported-value", "a value is a tensor in one branch only")
		}
		return m.tensors(x, y)
	case *py.Tuple:
		z = m.tuples(x, y)
	case *py.List, *py.Dict, *py.Object:
		z = m.objects(x, y)
	}
	if z != nil {
		return z
	}
	if py.Choosable(x) && py.Choosable(y) {
		return &py.Choice{Cond: m.n.Operand(0), Yes: m.lift(0, x), No: m.lift(1, y)}
	}
	m.s.fail("unsupported-value", "the two branches give values that have no common form in ONNX")
	return nil
}

// numbers merges two numbers of one type.
func (m *merger) numbers(x, y py.Value) py.Value {
	s := m.s
	tx, _ := py.NumberType(x)
	ty, ok := py.NumberType(y)
	if !ok {
		s.fail("unsupported-value", "a value is a number in one branch only")
	}
	if c, ok := x.(py.Const); ok && c.Kind == ssa.IntLit && m.chooses {
		if _, ok := y.(py.Const); ok {
			s.offer(knowSizes, s.op)
			if s.knowsSizes() {
				s.fail("dynamic-axis", "which of two numbers this is depends on data")
			}
		}
	}
	v0 := m.in(0, func() *ssa.Value { return s.vals.materialize(x) })
	v1 := m.in(1, func() *ssa.Value { return s.vals.materialize(y) })
	if tx == ty {
		return py.Dyn(m.pair(v0, v1, tx))
	}
	// which type it is decides what isinstance says, and what it makes of tensors
	s.fail("unsupported-value", "a value is %s or %s depending on data", tx, ty)
	return nil
}

func (m *merger) tensors(x, y *py.Tensor) py.Value {
	s := m.s
	key := [2]py.Value{x, y}
	if t := m.merged[key]; t != nil { // two names of one tensor stay that
		return t
	}
	t := m.view(x, y)
	if t == nil {
		v0 := m.in(0, func() *ssa.Value { return s.vals.read(x) })
		v1 := m.in(1, func() *ssa.Value { return s.vals.read(y) })
		t = m.tensor(v0, v1, x.Cell, y.Cell)
		m.relate(t, 0, x)
		m.relate(t, 1, y)
	}
	s.heap.Twin(t.Cell, x.Cell)
	s.heap.Twin(t.Cell, y.Cell)
	m.merged[key] = t
	return t
}

// tuples merges two tuples of one length, nil for others.
func (m *merger) tuples(x *py.Tuple, other py.Value) py.Value {
	y, ok := other.(*py.Tuple)
	if !ok || len(x.Elems) != len(y.Elems) {
		return nil
	}
	elems := make([]py.Value, len(x.Elems))
	for i := range elems {
		elems[i] = m.merge(x.Elems[i], y.Elems[i])
	}
	return &py.Tuple{Elems: elems, Typ: x.Typ}
}

// objects merges two lists, two dicts or two objects of one class, nil for others.
// The object that it gives is another one than these, which are its twins if the
// program can still reach them: nothing may be written to it then.
func (m *merger) objects(x, y py.Value) py.Value {
	key := [2]py.Value{x, y}
	if z := m.merged[key]; z != nil {
		return z
	}
	var z py.Value
	switch x := x.(type) {
	case *py.List:
		if y, ok := y.(*py.List); ok {
			c := m.cell(x.Cell, y.Cell)
			elem := x.Elem
			if len(c.Content().(*py.ListState).Elems) == 0 {
				elem = y.Elem
			}
			z = &py.List{Cell: c, Elem: elem}
		}
	case *py.Dict:
		if y, ok := y.(*py.Dict); ok {
			z = &py.Dict{Cell: m.cell(x.Cell, y.Cell), Typ: x.Typ}
		}
	case *py.Object:
		if y, ok := y.(*py.Object); ok && x.Class == y.Class && x.Src == nil && y.Src == nil {
			o := &py.Object{Class: x.Class, Attrs: map[string]*journal.Cell{}}
			for _, n := range slices.Sorted(maps.Keys(x.Attrs)) {
				if y.Attrs[n] != nil {
					o.Attrs[n] = m.cell(x.Attrs[n], y.Attrs[n])
				}
			}
			z = o
		}
	}
	if z != nil {
		m.merged[key] = z
	}
	return z
}

// cell makes the cell of an object that is one of two.
func (m *merger) cell(x, y *journal.Cell) *journal.Cell {
	z := m.s.heap.New(m.mergeContent(m.changes[0].Of(x), m.changes[1].Of(y)))
	for _, c := range []*journal.Cell{x, y} {
		outside := func(t *journal.Cell) bool { return t.ID() <= m.start }
		if twins := m.s.heap.Twins(c); outside(c) || slices.ContainsFunc(twins, outside) {
			m.s.less("alias", "which of several objects a name means depends on data")
			m.s.oneOf[z] = m.s.op
			m.s.heap.Twin(z, c)
		} else if len(twins) > 0 {
			m.s.heap.Twin(z, c)
		}
		if other := m.mergedCells[c]; other != nil { // c is in two pairs
			m.s.heap.Twin(z, other)
		}
		m.mergedCells[c] = z
	}
	return z
}

// tensor is a tensor that is v0, with the state in c0, in one branch and v1 in the other.
func (m *merger) tensor(v0, v1 *ssa.Value, c0, c1 *journal.Cell) *py.Tensor {
	s := m.s
	v := m.pairTensors(v0, v1)
	a, b := m.changes[0].Of(c0).(*heap.View).Strides, m.changes[1].Of(c1).(*heap.View).Strides
	same := a != nil && len(a) == len(b)
	for i := range a {
		same = same && a[i].Equal(b[i])
	}
	if same {
		return s.heap.Laid(v, a)
	}
	how0 := s.views.axes.IsRowMajor(a, v0.Tensor())
	how1 := s.views.axes.IsRowMajor(b, v1.Tensor())
	if how0 == layout.Shares && how1 == layout.Shares {
		return s.heap.Tensor(v)
	}
	return s.heap.Laid(v, nil)
}

// relate records that the merged tensor t is x where the If takes branch i.
func (m *merger) relate(t *py.Tensor, i int, x *py.Tensor) {
	from := heap.ViewOf(t).Storage
	state := heap.ViewAt(x, m.changes[i])
	m.shown = append(m.shown, [2]*heap.Storage{from, state.Storage})
	if to := state.Storage; to.Cell.ID() <= m.start {
		l := &heap.Link{From: from, To: to, Cond: m.n.Operand(0), Side: i == 0, View: state}
		m.s.heap.Link(l)
		return
	}
	// memory of the branch, which may itself be related to memory outside, and may be what another merged tensor is
	for _, inner := range heap.Inside(state.Storage, m.start) {
		for _, other := range m.held[inner] {
			m.s.heap.Together(from, other)
		}
		m.held[inner] = append(m.held[inner], from)
	}
	m.relateInner(t, i, state.Storage, state, nil)
}

// only gives a value that branch i alone sets; the other one never reads it.
func (m *merger) only(i int, x py.Value) py.Value {
	s := m.s
	join := func(v *ssa.Value, other py.Value) *ssa.Value {
		o := m.in(1-i, func() *ssa.Value { return s.vals.materialize(other) })
		return m.sided(i, v, o, v.Type)
	}
	each := func(xs []py.Value) []py.Value {
		out := make([]py.Value, len(xs))
		for k, e := range xs {
			out[k] = m.only(i, e)
		}
		return out
	}
	switch x := x.(type) {
	case py.Dynamic:
		return py.Dyn(join(x.Value, s.vals.dummy(x, m.changes[i])))
	case *py.Tensor:
		v := m.in(i, func() *ssa.Value { return s.vals.read(x) })
		st := heap.ViewAt(x, m.changes[i])
		t := s.heap.Laid(join(v, s.vals.dummyTensor(v.Tensor())), st.Strides)
		m.relate(t, i, x)
		return t
	case *py.Tuple:
		return &py.Tuple{Elems: each(x.Elems), Typ: x.Typ}
	case *py.List:
		if st := m.changes[i].Of(x.Cell).(*py.ListState); st.Dyn == nil {
			return s.heap.List(x.Elem, each(st.Elems))
		}
		s.fail("unsupported-value", "a list of run-time length is set in one branch only")
	case *py.Dict:
		st := m.changes[i].Of(x.Cell).(*py.DictState)
		return &py.Dict{Cell: s.heap.New(&py.DictState{Keys: st.Keys, Vals: each(st.Vals)}), Typ: x.Typ}
	case *py.Maybe:
		return &py.Maybe{Has: join(x.Has, py.Bool(false)), Val: m.only(i, x.Val)}
	}
	return x
}

// optional joins None or maybes with values.
func (m *merger) optional(x, y py.Value) py.Value {
	s := m.s
	s.less("optional-data", "a value is None in one branch of an If only")
	h0, v0 := s.vals.halves(x)
	h1, v1 := s.vals.halves(y)
	if v0 == nil {
		v0 = s.vals.dummy(v1, m.changes[1])
	}
	if v1 == nil {
		v1 = s.vals.dummy(v0, m.changes[0])
	}
	has := m.pair(h0, h1, ssa.BoolType)
	s.loses(has)
	return &py.Maybe{Has: has, Val: m.merge(v0, v1)}
}

// pool is the pool of which the elements of both lists are rows, nil if there is none.
func (m *merger) pool(a, b *py.ListState) *form.Pool {
	return form.CommonPool(m.s.poolIn, a, b, m.changes[0], m.changes[1], m.start)
}

func (m *merger) mergeContent(a, b any) any {
	s := m.s
	switch a := a.(type) {
	case heap.State:
		b := b.(heap.State)
		v := a.Base
		if a.Base != b.Base {
			v = m.pairTensors(a.Base, b.Base)
		}
		stale := a.Stale
		if stale == "" {
			stale = b.Stale
		}
		return heap.State{Base: v, Stale: stale}
	case *heap.View:
		b := b.(*heap.View)
		if a == b {
			return a
		}
		tmp0, tmp1 := &py.Tensor{Cell: journal.Loose(a)}, &py.Tensor{Cell: journal.Loose(b)}
		v0 := m.in(0, func() *ssa.Value { return s.vals.read(tmp0) })
		v1 := m.in(1, func() *ssa.Value { return s.vals.read(tmp1) })
		t := m.tensor(v0, v1, tmp0.Cell, tmp1.Cell)
		m.relate(t, 0, tmp0)
		m.relate(t, 1, tmp1)
		return heap.ViewOf(t)
	case *py.ListState:
		b := b.(*py.ListState)
		if a == b {
			return a
		}
		if a.Dyn == nil && b.Dyn == nil && len(a.Elems) == len(b.Elems) {
			elems := make([]py.Value, len(a.Elems))
			for i := range elems {
				elems[i] = m.merge(a.Elems[i], b.Elems[i])
			}
			return &py.ListState{Elems: elems}
		}
		if p := m.pool(a, b); p != nil {
			v0 := m.in(0, func() *ssa.Value { return s.vals.placesValue(p.Self, a) })
			v1 := m.in(1, func() *ssa.Value { return s.vals.placesValue(p.Self, b) })
			return s.vals.placed(p.Self, m.pair(v0, v1, placesType))
		}
		v0 := m.in(0, func() *ssa.Value { return s.vals.dynamic(a, b) })
		v1 := m.in(1, func() *ssa.Value { return s.vals.dynamic(b, a) })
		t := v0.Type
		if a, b := ssa.AsTensor(t.(*ssa.ListType).Elem), ssa.AsTensor(v1.Type.(*ssa.ListType).Elem); a != nil && b != nil {
			t = &ssa.ListType{Elem: s.build.joinElems(a, b)}
		}
		return &py.ListState{Dyn: m.pair(v0, v1, t)}
	case *py.DictState:
		b := b.(*py.DictState)
		if a == b {
			return a
		}
		if len(a.Keys) == len(b.Keys) {
			d := &py.DictState{Keys: a.Keys}
			for i, k := range a.Keys {
				if !b.Keys[i].Equal(k) {
					s.fail("dynamic-container", "the keys of a dict, or their order, depend on data")
				}
				d.Vals = append(d.Vals, m.merge(a.Vals[i], b.Vals[i]))
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
	return m.merge(py.AsValue(a), py.AsValue(b))
}

// lift makes an alternative of branch i one that can be asked for behind the If.
func (m *merger) lift(i int, x py.Value) py.Value {
	c, ok := x.(*py.Choice)
	if !ok || inScope(c.Cond, m.s.build.cur) {
		return x
	}
	cond := m.sided(i, c.Cond, m.s.build.constant(ssa.Bool(false)), ssa.BoolType)
	return &py.Choice{Cond: cond, Yes: m.lift(i, c.Yes), No: m.lift(i, c.No)}
}

// relateInner records what the merged tensor t has to do with memory outside of
// the If, where it is the view state of at, memory that branch i made. That may be a view of
// memory outside under conditions of the branch: when lists those on the way.
func (m *merger) relateInner(t *py.Tensor, i int, at *heap.Storage, state *heap.View, when []*heap.Link) {
	s, from := m.s, heap.ViewOf(t).Storage
	related := map[*heap.Storage]bool{} // peers of peers are the same ones again
	for _, p := range at.Peers() {
		for _, q := range heap.Outside(p, m.start) {
			s.step()
			if !related[q] {
				related[q] = true
				s.heap.Peer(from, q)
			}
		}
	}
	for _, l := range at.Links() {
		if l.From != at {
			continue
		}
		s.heap.Inherit(from, l.To)
		way := append(when[:len(when):len(when)], l)
		chain := slices.Concat(l.View.Chain, state.Chain)
		view := &heap.View{Storage: l.To, Chain: chain, Strides: state.Strides}
		switch {
		case l.To.Cell.ID() > m.start:
			m.relateInner(t, i, l.To, view, way)
		case !staysAt(view, nil, s.build.cur) || !allInScope(way, m.blocks[i]):
			s.heap.Peer(from, l.To)
		default:
			n := &heap.Link{From: from, To: l.To, Cond: m.holds(i, way), Side: true, View: view}
			s.heap.Link(n)
		}
	}
}

func allInScope(links []*heap.Link, b *ssa.Block) bool {
	for _, l := range links {
		if !inScope(l.Cond, b) {
			return false
		}
	}
	return true
}

// holds is a result of the If: that it takes branch i, and the links are active there.
func (m *merger) holds(i int, links []*heap.Link) *ssa.Value {
	s := m.s
	yes := m.in(i, func() *ssa.Value {
		var all *ssa.Value
		for _, l := range links {
			c := l.Cond
			if !l.Side {
				c = s.vals.emitName("aten::__not__", c)
			}
			if all == nil {
				all = c
			} else {
				all = s.vals.emitName("aten::__and__.bool", all, c)
			}
		}
		return all
	})
	return m.sided(i, yes, s.build.constant(ssa.Bool(false)), ssa.BoolType)
}

// view makes the tensor that is x or y, two views of one storage, if they take the same steps.
func (m *merger) view(x, y *py.Tensor) *py.Tensor {
	a, b := heap.ViewAt(x, m.changes[0]), heap.ViewAt(y, m.changes[1])
	if a.Storage.Cell.ID() > m.start {
		return nil
	}
	places, ok := heap.Alike(a, b)
	if !ok {
		return nil
	}
	if !staysAt(a, places, m.s.build.cur) {
		return nil
	}
	var args []py.Value
	for _, p := range places {
		args = append(args, m.merge(a.Chain[p.Step].Args[p.Arg], b.Chain[p.Step].Args[p.Arg]))
	}
	return m.s.views.movedTo(a, places, args)
}

// size is what an If gives for a size that is a in one block and b in the other, where one expression stands for both. Programs pad what
// has no suitable size: if pad > 0: x = F.pad(x, (0, pad)), or if n % 8 != 0: x = F.pad(x, (0, 8 - n % 8)). Without
// padding, the padded size is the size.
func (m *merger) size(a, b sym.Expr) (sym.Expr, bool) {
	if a.Equal(b) {
		return a, true
	}
	if m.s.knowsSizes() {
		for side, e := range []sym.Expr{b, a} { // where a branch has one size only, the other branch says it all
			if k := m.s.known.of(facts{}.with(m.n.Operand(0), side == 0)); k.in(a).Equal(k.in(b)) {
				return e, true
			}
		}
	}
	block, zeros := zeroIn(m.n.Operand(0))
	none, some := b, a
	if block == 0 {
		none, some = a, b
	}
	more := some.Sub(none)
	for _, n := range zeros {
		if more.Multiple(n) {
			return some, true
		}
		// more is c - n, where n is from 1 to c - 1: that is -n modulo c, which is 0 for 0 as well
		if c, ok := more.Add(n).Int(); ok && c > 0 && sym.Const(c-1).AtLeast(n) {
			return none.Add(n.Neg().Mod(sym.Const(c))), true
		}
	}
	return a, false
}

// onlyRank reports that a tensor without elements in the first outcome, for n = 0, has another rank in the second one.
func (m *merger) onlyRank(outs [2]outcome, empty int, n sym.Expr) bool {
	typeIn := func(i, k int) *ssa.TensorType {
		if t, ok := outs[i].results[k].(*py.Tensor); ok {
			return m.in(i, func() *ssa.Value { return m.s.vals.read(t) }).Tensor()
		}
		return nil
	}
	for k := range outs[0].results {
		a, b := typeIn(empty, k), typeIn(1-empty, k)
		if a == nil || b == nil || !a.Ranked || !b.Ranked || len(a.Dims) == len(b.Dims) {
			continue
		}
		for _, d := range a.Dims {
			if d.Equal(n) {
				return true
			}
		}
	}
	return false
}
