package specialize

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/form"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pools. A loop may move tensors between the places of a list, write to one that it finds by an index, and let the list grow; which
// memory a place shows is known at run time only then. With decisions.pool, tensors of one type lie in one memory before such a loop: row i
// of the pool is tensor i. A name of a tensor is a view of the pool, so that it is a number at run time, and a list of tensors is a list of
// such numbers. Swaps, reverse, insert and pop move numbers, and a write goes to the row, which all names show. A tensor that is put into a
// list becomes a row of its own, behind the others.

// maxWanted bounds the types of tensors of which the program is tried again with a pool.
const maxWanted = 4

// poolOf is the pool of tensors of a type that can be used here, nil if there is none.
func (s *containers) poolOf(t *ssa.TensorType) *form.Pool {
	if t == nil {
		return nil
	}
	for _, p := range slices.Backward(s.pools) {
		if st := p.Storage().State(); ssa.SameType(p.Elem, t) && st.Stale == "" && inScope(st.Base, s.build.cur) {
			return p
		}
	}
	return nil
}

// newPool makes a pool of what rows holds, one beside the other.
func (s *containers) newPool(elem *ssa.TensorType, rows *ssa.Value) *form.Pool {
	st := s.heap.Storage(rows, layout.RowMajor(rows.Tensor()))
	st.Pool = true
	p := &form.Pool{Elem: elem, Self: s.heap.View(st, nil, st.Strides, rows, rows)}
	was := s.pools
	s.pools = append(slices.Clip(was), p)
	s.heap.Learn(func() { s.pools = was })
	return p
}

// placeFor is the place of x in a pool, into which x is moved if it can be; nil if not.
func (s *containers) placeFor(p *form.Pool, x py.Value) py.Value {
	if at := placeIn(p.Self, x, nil); at != nil {
		return at
	}
	t, ok := x.(*py.Tensor)
	if !ok || !s.movable(t, s.region) {
		return nil
	}
	v := s.vals.read(t)
	if have := v.Tensor(); !ssa.SameType(have, p.Elem) {
		return nil
	}
	rows := s.vals.read(p.Self)
	at := s.vals.size(p.Self, 0)
	one := s.vals.emitName("aten::unsqueeze", v, 0)
	longer := s.vals.emitName("aten::cat", s.heap.List(ssa.AnyTensor, []py.Value{s.heap.Tensor(rows), s.heap.Tensor(one)}), 0)
	dims := slices.Clone(p.Elem.Dims)
	longer.Type = ssa.Tensor(p.Elem.DType, slices.Insert(dims, 0, rows.Tensor().Dims[0].Add(sym.Const(1)))...)
	s.heap.Set(p.Storage().Cell, heap.State{Base: longer})
	p.Self.Base, p.Self.Val = longer, longer
	s.heap.Move(heap.ViewOf(t).Storage, heap.ViewOf(s.views.row(p.Self, at)))
	return at
}

// movable reports that a tensor is all of its memory, which was made after a cell and may not be that of another one. What is from before
// the branch or the iteration at hand cannot be moved in it.
func (s *containers) movable(t *py.Tensor, after int) bool {
	v := heap.ViewOf(t)
	if len(v.Chain) > 0 || v.Lost != "" || v.Storage.Pool || v.Storage.Cell.ID() <= after || !v.Storage.Movable() {
		return false
	}
	held := s.vals.read(t).Tensor()
	return held != nil && held.Ranked && held.DType != tensor.Undefined && s.views.axes.IsRowMajor(v.Strides, held) == layout.Shares
}

// pooled is the pool of which all elements of a list are rows. Where there is none, they are moved into one if they can be.
func (s *containers) pooled(es []py.Value) *form.Pool {
	if p := s.poolIn(&py.ListState{Elems: es}, nil); p != nil || s.decided.pool == noPools {
		return p
	}
	var rows []*py.Tensor
	for _, e := range es {
		t, ok := e.(*py.Tensor)
		if !ok || !s.movable(t, s.region) || !ssa.SameType(s.vals.read(t).Tensor(), s.vals.read(es[0].(*py.Tensor)).Tensor()) {
			return nil
		}
		if !slices.ContainsFunc(rows, func(r *py.Tensor) bool { return heap.ViewOf(r).Storage == heap.ViewOf(t).Storage }) {
			rows = append(rows, t)
		}
	}
	return s.poolOfRows(rows)
}

// poolOfRows moves tensors of one type, which have memory of their own, into a new pool.
func (s *containers) poolOfRows(rows []*py.Tensor) *form.Pool {
	xs := make([]py.Value, len(rows))
	for i, r := range rows {
		xs[i] = r
	}
	elem := s.vals.read(rows[0]).Tensor()
	p := s.newPool(elem, s.vals.emitName("aten::stack", s.heap.List(ssa.AnyTensor, xs), 0))
	for i, r := range rows {
		s.heap.Move(heap.ViewOf(r).Storage, heap.ViewOf(s.views.row(p.Self, py.Int(int64(i)))))
	}
	return p
}

// stay moves a tensor that an iteration makes into the pool of which the loop began with a row in its place.
func (s *walk) stay(inits, outs []py.Value) {
	if s.decided.pool == noPools {
		return
	}
	for i, x := range inits {
		t, ok := outs[i].(*py.Tensor)
		if !ok || !s.lists.movable(t, s.region) {
			continue
		}
		for _, p := range s.pools {
			if placeIn(p.Self, x, nil) != nil {
				s.lists.placeFor(p, t)
				break
			}
		}
	}
}

// put is called for what a loop puts into a list from outside of it: it becomes a row of a pool, if it can be.
func (s *containers) put(l *py.List, xs ...py.Value) {
	if s.decided.pool == noPools || !s.build.inLoop() || l.Cell.ID() > s.region {
		return
	}
	for _, x := range xs {
		t, ok := x.(*py.Tensor)
		if !ok || !s.movable(t, 0) {
			continue
		}
		held := s.vals.read(t).Tensor()
		if p := s.poolOf(held); p != nil && s.placeFor(p, t) != nil {
			continue
		}
		same := func(w *ssa.TensorType) bool { return ssa.SameType(w, held) }
		if !slices.ContainsFunc(s.wanted, same) && !slices.ContainsFunc(s.decided.wanted, same) {
			s.wanted = append(slices.Clip(s.wanted), held)
		}
	}
}

// placedOp evaluates an operator on a list of rows as that on the list of their places.
func (s *containers) placedOp(o *ssa.Op, l *py.List, args []py.Value) ([]py.Value, bool) {
	name := o.Kind.Name()
	p := s.poolIn(l.State(), nil)
	if p == nil || l.State().Dyn == nil || !listOps[name].moves {
		return nil, false
	}
	ints := &py.List{Cell: s.heap.New(s.vals.places(p.Self, l.State())), Elem: ssa.IntType}
	moved := append([]py.Value{ints}, args[1:]...)
	for i, x := range args[1:] {
		switch x := x.(type) {
		case *py.Tensor:
			if moved[i+1] = s.placeFor(p, x); moved[i+1] == nil {
				return nil, false
			}
		case *py.List:
			other := x.State()
			if q := s.poolIn(other, nil); q != nil && q != p || q == nil && other.AtRunTime() {
				return nil, false
			}
			for _, e := range other.Elems {
				if s.placeFor(p, e) == nil {
					return nil, false
				}
			}
			moved[i+1] = &py.List{Cell: s.heap.New(s.vals.places(p.Self, other)), Elem: ssa.IntType}
		}
	}
	before := ints.State()
	rs, done := listOps[name].dyn(s, ints, before.Dyn, o, moved)
	if !done {
		return nil, false
	}
	if after := ints.State(); after != before {
		s.set(l.Cell, s.vals.placed(p.Self, after.Dyn))
	}
	for i, r := range rs {
		switch {
		case r == py.Value(ints):
			rs[i] = l
		case name == "pop" || name == "__getitem__":
			t := s.views.row(p.Self, r)
			t.Element = true
			rs[i] = t
		case name != "len":
			rs[i] = &py.List{Cell: s.heap.New(s.vals.placed(p.Self, r.(*py.List).State().Dyn)), Elem: l.Elem}
		}
	}
	return rs, true
}

// putBy moves tensors into pools that a branch or an inner loop puts into lists: within it they are from outside.
func (s *walk) putBy(b *ssa.Block) {
	if s.decided.pool == noPools || !s.build.inLoop() {
		return
	}
	for o := range b.AllOps() {
		kept := aten.Kept(o.Schema)
		if kept < 0 {
			continue
		}
		v := o.Operand(kept)
		if _, inside := within(v, b); inside || s.env[v.ID] == nil {
			continue
		}
		if t, ok := s.get(v).(*py.Tensor); ok && s.lists.movable(t, s.region) {
			if p := s.lists.poolOf(s.vals.read(t).Tensor()); p != nil {
				s.lists.placeFor(p, t)
			}
		}
	}
}

// pool moves tensors that a loop reads into pools, before the loop.
func (s *walk) pool(l *sourceLoop) {
	if s.build.inLoop() {
		s.putBy(l.body)
		return
	}
	if s.decided.pool == noPools {
		return
	}
	type group struct {
		elem      *ssa.TensorType
		rows      []*py.Tensor
		contained bool
	}
	var groups []*group
	seen := map[any]bool{}
	var visit func(x py.Value, contained bool)
	each := func(xs []py.Value) {
		for _, x := range xs {
			visit(x, true)
		}
	}
	visit = func(x py.Value, contained bool) {
		switch x := x.(type) {
		case *py.Tensor:
			st := heap.ViewOf(x).Storage
			if !contained && s.decided.pool == containedOnly || seen[st] || !s.lists.movable(x, s.region) {
				return
			}
			seen[st] = true
			held := s.vals.read(x).Tensor()
			i := slices.IndexFunc(groups, func(g *group) bool { return ssa.SameType(g.elem, held) })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &group{elem: held})
			}
			groups[i].rows = append(groups[i].rows, x)
			groups[i].contained = groups[i].contained || contained
		case *py.Tuple:
			each(x.Elems)
		case *py.List:
			if !seen[x.Cell] {
				seen[x.Cell] = true
				each(x.State().Elems)
			}
		case *py.Dict:
			if !seen[x.Cell] {
				seen[x.Cell] = true
				each(x.State().Vals)
			}
		case *py.Object:
			for _, f := range sortedAttrs(x) {
				if c := x.Attrs[f]; c.ID() > 0 && !seen[c] {
					seen[c] = true
					visit(py.AsValue(c.Content()), true)
				}
			}
		}
	}
	for _, x := range s.readBy(l) { // containers first: what they hold counts as contained
		if _, ok := x.(*py.Tensor); !ok {
			visit(x, true)
		}
	}
	for _, x := range s.readBy(l) {
		if _, ok := x.(*py.Tensor); ok {
			visit(x, false)
		}
	}
	for _, w := range s.decided.wanted {
		i := slices.IndexFunc(groups, func(g *group) bool { return ssa.SameType(g.elem, w) })
		if i < 0 {
			i = len(groups)
			groups = append(groups, &group{elem: w})
		}
		groups[i].contained = true
	}
	for _, g := range groups {
		if len(g.rows) == 0 {
			if s.lists.poolOf(g.elem) == nil {
				s.emptyPool(g.elem)
			}
			continue
		}
		if !g.contained && len(g.rows) < 2 {
			continue
		}
		s.lists.poolOfRows(g.rows)
	}
}

// emptyPool makes a pool without rows, if the sizes of tensors of this type are those of inputs.
func (s *walk) emptyPool(elem *ssa.TensorType) {
	dims := slices.Insert(slices.Clone(elem.Dims), 0, sym.Const(0))
	shape, sizes := make([]int64, len(dims)), make([]py.Value, len(dims))
	for i, d := range dims {
		if n, ok := d.Int(); ok {
			shape[i], sizes[i] = n, py.Int(n)
		} else if n := s.vals.inputSize(d); n != nil {
			shape[i], sizes[i] = 1, py.Dyn(n)
		} else {
			return
		}
	}
	rows := s.build.constant(ssa.TensorValue(tensor.Full(elem.DType, shape, 0)))
	if _, static := elem.Static(); !static {
		rows = s.vals.emitName("aten::expand", rows, s.heap.List(ssa.IntType, sizes), false)
	}
	if ssa.SameType(rows.Tensor(), ssa.Tensor(elem.DType, dims...)) {
		s.lists.newPool(elem, rows)
	}
}

// readBy are the values that a loop begins with, and those from outside that its body reads, in the order of the program.
func (s *walk) readBy(l *sourceLoop) []py.Value {
	out := slices.Clone(l.inits)
	used := reads(l.body.First())
	for _, v := range l.body.Returns() {
		used[v] = true
	}
	var outside []*ssa.Value
	for v := range used {
		if _, inside := within(v, l.body); !inside && s.env[v.ID] != nil {
			outside = append(outside, v)
		}
	}
	slices.SortFunc(outside, func(a, b *ssa.Value) int { return a.ID - b.ID })
	for _, v := range outside {
		out = append(out, s.get(v))
	}
	return out
}
