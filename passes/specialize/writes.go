package specialize

import (
	"math"
	"sort"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// write replaces the content of a tensor, and so of the memory it views. v has
// the tensor's dtype and shape.
func (s *spec) write(t *tensorRef, v *ssa.Value) {
	st := t.state()
	ss := st.st.state()
	if ss.stale != "" {
		s.fail("alias", "%s", ss.stale)
	}
	if st.st.listed {
		s.failListed()
	}
	w := s.writeBack(st, ss.base, v)
	keepShape(v, t.val)
	s.store(st.st, w)
	t.base, t.val = w, v
}

func (s *spec) failListed() {
	s.fail("alias", "an element of a list whose length is only known at run time is written; use .clone() to make it independent")
}

// writeBack gives the base after its view st was replaced by v.
func (s *spec) writeBack(st *tensorState, base, v *ssa.Value) *ssa.Value {
	chain := st.chain
	bases := make([]*ssa.Value, len(chain)+1)
	bases[0] = base
	for i := range chain {
		if i+1 < len(chain) {
			bases[i+1] = s.step(&chain[i], bases[i])
		}
	}
	w := v
	last := len(chain) - 1
	if k := spread(chain); k >= 0 {
		w = s.writeByPlace(chain[k:], st.strides, bases[k], w)
		last = k - 1
	}
	for i := last; i >= 0; i-- {
		w = s.invert(&chain[i], bases[i], w)
	}
	keepShape(w, base)
	return w
}

// keepShape gives a value that replaces another one the sizes of that: writing changes none.
func keepShape(v, old *ssa.Value) {
	if v == nil || old == nil || v.Def() == nil || v.Def().Kind == "prim::Constant" {
		return
	}
	a, b := v.Tensor(), old.Tensor()
	if a != nil && b != nil && b.Ranked && a.DType == b.DType && (!a.Ranked || len(a.Dims) == len(b.Dims)) {
		v.Type = b
	}
}

// assume notes that the graph is right only for dynamic axes of size 2 and more:
// with size 1, a reshape or contiguous() that copies would share memory with a tensor that is written.
func (s *spec) assume() {
	s.warnf("axis-of-one", "a copy here would be a view if a dynamic axis had size 1, and what is written after it would show; the model is right for sizes of 2 and more")
	s.m.Assume("dynamic axes are not of size 1")
}

// spread finds the first step that can give one element of the base several places in the view, -1 if there is none.
func spread(chain []viewStep) int {
	for i := range chain {
		switch chain[i].kind {
		case "aten::unfold", "aten::expand", "aten::expand_as", "aten::broadcast_to":
			return i
		}
	}
	return -1
}

// writeByPlace writes v through steps by the place in the base that each
// element of the view has. PyTorch refuses writes to elements that share a
// place where it notices; else the last one wins, which is only well defined if
// all of them write the same.
func (s *spec) writeByPlace(chain []viewStep, strides []sym.Expr, base, v *ssa.Value) *ssa.Value {
	at := s.emitName("aten::view_as", s.emitName("aten::arange", s.emitName("aten::numel", base)), base)
	for i := range chain {
		at = s.step(&chain[i], at)
	}
	places := onnx.ConstOf(at)
	overlap := places == nil && chain[0].kind == "aten::unfold" && !s.apartWindows(&chain[0])
	if t := v.Tensor(); places == nil && chain[0].kind != "aten::unfold" {
		overlap = t == nil || len(strides) != len(t.Dims)
		for i := range strides {
			overlap = overlap || strides[i].Is(0) && !t.Dims[i].Is(1)
		}
	}
	if places != nil {
		overlap = repeats(places.Int64s())
	}
	if overlap && !s.sameForAll() {
		s.fail("view-write", "the tensor that is written has several elements in one place of memory; use .clone() before writing")
	}
	return s.emitName("aten::put", base, at, v)
}

func repeats(places []int64) bool {
	seen := map[int64]bool{}
	for _, p := range places {
		if seen[p] {
			return true
		}
		seen[p] = true
	}
	return false
}

// apartWindows reports that the windows of an unfold do not overlap.
func (s *spec) apartWindows(st *viewStep) bool {
	size, ok := s.literalOf(st.args[st.schema.Arg("size")])
	step, ok2 := s.literalOf(st.args[st.schema.Arg("step")])
	return ok && ok2 && step.Int() >= size.Int()
}

// sameForAll reports that the in-place operator at hand gives elements of one
// place the same value, however often it is applied.
func (s *spec) sameForAll() bool {
	switch s.op.Kind {
	case "aten::fill_", "aten::zero_", "aten::relu_", "aten::abs_", "aten::clamp_", "aten::clamp_min_", "aten::clamp_max_", "aten::floor_", "aten::ceil_",
		"aten::round_", "aten::trunc_", "aten::sign_", "aten::nan_to_num_", "aten::hardtanh_", "aten::relu6_":
		return true
	}
	return false
}

// store sets the value of a storage, and those of storages that are views of
// the same memory in one branch of an If.
func (s *spec) store(st *storage, v *ssa.Value) {
	if len(st.links)+len(st.peers)+len(st.apart) == 0 {
		ss := st.state()
		ss.base = v
		s.set(st.c, ss)
		return
	}
	s.storeAll(st, v)
}

// storeAll sets the value of a storage and goes along the links. For given
// conditions the active links join storages to trees: what is written at one
// goes up to those that it is a view of, and from there down to their views.
func (s *spec) storeAll(st *storage, v *ssa.Value) {
	ss := st.state()
	ss.base = v
	s.set(st.c, ss)
	reach := map[*storage]bool{st: true}
	// a storage is made after those that it may be a view of
	for at := st; at != nil; at = before(reach, at) {
		from := at.state().base
		for _, l := range at.links {
			if l.from != at || !s.linked(l, l.to) {
				continue
			}
			os := l.to.state()
			os.base = s.when(l.cond, l.side, os.base, func() *ssa.Value { return s.writeBack(l.view, os.base, from) })
			s.set(l.to.c, os)
			reach[l.to] = true
		}
	}
	for _, at := range byAge(reach) {
		s.storeDown(at, st, reach)
	}
	for _, at := range byAge(reach) {
		if at != st && at.listed {
			s.failListed()
		}
		for _, p := range at.apart {
			if p.state().stale == "" && !reach[p] {
				s.assume()
				break
			}
		}
		for _, p := range at.peers {
			if p == st {
				continue
			}
			ps := p.state() // where p was reached, it was only for some conditions
			if p.listed {
				s.failListed()
			}
			if ps.stale == "" {
				ps.stale = "this tensor may share memory with one that was written " + s.where() + "; use .clone() to make it independent"
				s.set(p.c, ps)
			}
		}
	}
}

// storeDown derives the storages anew that are views of one that was written.
func (s *spec) storeDown(at, written *storage, reach map[*storage]bool) {
	base := at.state().base
	for _, l := range at.links {
		if l.to != at || l.from == written || !s.linked(l, l.from) {
			continue
		}
		os := l.from.state()
		os.base = s.when(l.cond, l.side, os.base, func() *ssa.Value {
			w := base
			for i := range l.view.chain {
				w = s.step(&l.view.chain[i], w)
			}
			return w
		})
		s.set(l.from.c, os)
		reach[l.from] = true
		s.storeDown(l.from, written, reach)
	}
}

// linked reports that a link can be followed to its other end here.
func (s *spec) linked(l *link, other *storage) bool {
	os := other.state()
	return os.stale == "" && inScope(l.cond, s.cur) && inScope(os.base, s.cur)
}

// byAge lists storages from the oldest to the newest.
func byAge(set map[*storage]bool) []*storage {
	out := make([]*storage, 0, len(set))
	for st := range set {
		out = append(out, st)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].c.id < out[j].c.id })
	return out
}

// before is the newest storage of a set that is older than at, nil if there is none.
func before(set map[*storage]bool, at *storage) *storage {
	var best *storage
	for st := range set {
		if st.c.id < at.c.id && (best == nil || st.c.id > best.c.id) {
			best = st
		}
	}
	return best
}

// when emits an If that gives f() where cond is side, else v.
func (s *spec) when(cond *ssa.Value, side bool, v *ssa.Value, f func() *ssa.Value) *ssa.Value {
	n := s.cur.Append("prim::If", s.loc, []*ssa.Value{cond}, v.Type)
	blocks := [2]*ssa.Block{n.AddBlock(), n.AddBlock()}
	i := 1
	if side {
		i = 0
	}
	cur := s.cur
	s.cur = blocks[i]
	blocks[i].SetReturns(f())
	s.cur = cur
	blocks[1-i].SetReturns(v)
	return n.Results[0]
}

// invert gives the base after its view of one step was replaced by v.
func (s *spec) invert(st *viewStep, base, v *ssa.Value) *ssa.Value {
	a := st.args
	arg := func(name string) value {
		if i := st.schema.Arg(name); i >= 0 {
			return a[i]
		}
		return ssa.None
	}
	switch st.kind.Name() {
	case "detach", "alias", "_reshape_alias", "lift_fresh", "data":
		return v
	case "select":
		return s.emitName("aten::select_scatter", base, v, arg("dim"), arg("index"))
	case "slice":
		return s.emitName("aten::slice_scatter", base, v, arg("dim"), arg("start"), arg("end"), arg("step"))
	case "narrow":
		if start, ok := arg("start").(*tensorRef); ok {
			_ = start
			break
		}
		end := s.intOp("add", arg("start"), arg("length"))
		if from, ok := arg("start").(ssa.Literal); ok && from.Int() < 0 {
			if e, ok := end.(ssa.Literal); ok && e.Int() == 0 {
				end = ssa.Int(math.MaxInt64) // the last elements
			}
		}
		return s.emitName("aten::slice_scatter", base, v, arg("dim"), arg("start"), end, 1)
	case "diagonal":
		return s.emitName("aten::diagonal_scatter", base, v, arg("offset"), arg("dim1"), arg("dim2"))
	case "take": // as_strided by places
		if places := onnx.ConstOf(a[1].(*ssa.Value)); places != nil && repeats(places.Int64s()) && !s.sameForAll() {
			break
		}
		return s.emitName("aten::put", base, a[1], v)
	case "transpose", "swapaxes", "swapdims":
		d0, d1 := arg("dim0"), arg("dim1")
		if isNone(d0) {
			d0, d1 = arg("axis0"), arg("axis1")
		}
		return s.emitName("aten::transpose.int", v, d0, d1)
	case "t", "numpy_T", "mT", "adjoint", "matrix_H", "mH":
		return s.emit(st.kind, st.schema, v)[0]
	case "permute":
		dims, ok := s.literalOf(arg("dims"))
		if !ok {
			break
		}
		perm, _ := dims.IntList()
		inv := make([]int64, len(perm))
		for i, p := range perm {
			if p < 0 {
				p += int64(len(perm))
			}
			inv[p] = int64(i)
		}
		return s.emitName("aten::permute", v, inv)
	case "movedim", "moveaxis":
		return s.emit(st.kind, st.schema, v, s.materialize(a[2]), s.materialize(a[1]))[0]
	case "unsqueeze", "squeeze", "view", "reshape", "view_as", "flatten", "unflatten", "_unsafe_view", "ravel", "atleast_1d", "atleast_2d", "atleast_3d", "contiguous":
		if st.kind == "aten::view" && st.schema.Overload == "dtype" {
			break
		}
		return s.emitName("aten::view_as", v, base)
	case "chunk", "split", "split_with_sizes", "tensor_split", "hsplit", "vsplit", "dsplit", "unsafe_chunk", "unsafe_split", "unbind":
		operands := s.operands(a)
		operands[0] = base
		parts := append([]*ssa.Value(nil), s.emit(st.kind, st.schema, operands...)...)
		parts[st.index] = v
		elems := make([]value, len(parts))
		for i, p := range parts {
			elems[i] = p
		}
		var dim value = arg("dim")
		switch st.kind.Name() {
		case "vsplit":
			dim = ssa.Int(0)
		case "dsplit":
			dim = ssa.Int(2)
		case "hsplit":
			dim = ssa.Int(1)
			if t := base.Tensor(); t != nil && t.Rank() == 1 {
				dim = ssa.Int(0)
			}
		}
		l := s.newList(ssa.AnyTensor, elems)
		if st.kind == "aten::unbind" {
			return s.emitName("aten::stack", l, dim)
		}
		return s.emitName("aten::cat", l, dim)
	}
	s.fail("view-write", "a write through %s cannot be resolved; use .clone() before writing", st.kind)
	return nil
}

// intOp computes with ints that may be symbolic.
func (s *spec) intOp(name string, a, b value) value {
	schema := aten.SchemaByName("aten::" + name + ".int")
	return s.scalar(ssa.Kind("aten::"+name), schema, []value{a, b})[0]
}

// where names the line at hand in a message on something later.
func (s *spec) where() string {
	if at := s.m.Locs.String(s.loc); at != "" {
		return "at " + at
	}
	return "before"
}
