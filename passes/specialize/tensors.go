package specialize

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// viewStep is one step from a base to a view of it.
type viewStep struct {
	kind   ssa.Kind
	schema *ssa.Schema
	args   []value // by schema; args[0] is the base and not looked at
	index  int     // for operators that give a list of views: which one
	n      int     // the length of that list, 0 for others
}

// read gives the current value of a tensor.
func (s *spec) read(t *tensorRef) *ssa.Value {
	st := t.state()
	ss := st.st.state()
	if ss.stale != "" {
		s.fail("alias", "%s", ss.stale)
	}
	if t.val != nil && t.base == ss.base && inScope(t.val, s.cur) {
		return t.val
	}
	v := ss.base
	for i := range st.chain {
		v = s.step(&st.chain[i], v)
	}
	t.base, t.val = ss.base, v
	return v
}

func inScope(v *ssa.Value, b *ssa.Block) bool {
	home := v.Block()
	return home != nil && home.Encloses(b)
}

// step derives the view of one step from a base value.
func (s *spec) step(st *viewStep, base *ssa.Value) *ssa.Value {
	operands := s.operands(st.args)
	operands[0] = base
	vs := s.emit(st.kind, st.schema, operands...)
	s.narrowed(&ssa.Op{Kind: st.kind, Schema: st.schema}, st.args, vs[0])
	if st.n > 0 {
		if len(vs) != st.n {
			s.fail("alias", "%s gives another number of views than before", st.kind)
		}
		return vs[st.index]
	}
	return vs[0]
}

func (s *spec) operands(args []value) []*ssa.Value {
	out := make([]*ssa.Value, len(args))
	for i, a := range args {
		if a == nil {
			continue
		}
		out[i] = s.materialize(a)
	}
	return out
}

// write replaces the content of a tensor, and so of the memory it views. v has
// the tensor's dtype and shape.
func (s *spec) write(t *tensorRef, v *ssa.Value) {
	st := t.state()
	ss := st.st.state()
	if ss.stale != "" {
		s.fail("alias", "%s", ss.stale)
	}
	if st.st.listed {
		s.fail("alias", "an element of a list whose length is only known at run time is written; use .clone() to make it independent")
	}
	w := s.writeBack(st, ss.base, v)
	keepShape(v, t.val)
	s.store(st.st, w)
	t.base, t.val = w, v
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
	s.m.SetMetadata("aton.assumes", "dynamic axes are not of size 1")
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
		seen := map[int64]bool{}
		for _, p := range places.Int64s() {
			overlap = overlap || seen[p]
			seen[p] = true
		}
	}
	if overlap && !s.sameForAll() {
		s.fail("view-write", "the tensor that is written has several elements in one place of memory; use .clone() before writing")
	}
	return s.emitName("aten::put", base, at, v)
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
func (s *spec) store(st *storage, v *ssa.Value) { s.storeAll(st, v, map[*storage]bool{}) }

func (s *spec) storeAll(st *storage, v *ssa.Value, seen map[*storage]bool) {
	seen[st] = true
	ss := st.state()
	ss.base = v
	s.set(st.c, ss)
	for _, p := range st.apart {
		if p.state().stale == "" {
			s.assume()
			break
		}
	}
	for _, l := range st.links {
		other := l.to
		if other == st {
			other = l.from
		}
		os := other.state()
		if seen[other] || os.stale != "" || !inScope(l.cond, s.cur) || !inScope(os.base, s.cur) {
			continue
		}
		w := s.when(l.cond, l.side, os.base, func() *ssa.Value {
			if other == l.to {
				return s.writeBack(l.view, os.base, v)
			}
			w := v
			for i := range l.view.chain {
				w = s.step(&l.view.chain[i], w)
			}
			return w
		})
		s.storeAll(other, w, seen)
	}
	for _, p := range st.peers {
		ps := p.state()
		if ps.stale == "" && !seen[p] {
			ps.stale = "this tensor may share memory with one that was written at " + s.m.Locs.String(s.loc) + "; use .clone() to make it independent"
			s.set(p.c, ps)
		}
	}
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
		return s.emitName("aten::slice_scatter", base, v, arg("dim"), arg("start"), end, 1)
	case "diagonal":
		return s.emitName("aten::diagonal_scatter", base, v, arg("offset"), arg("dim1"), arg("dim2"))
	case "as_strided":
		return s.emitName("aten::as_strided_scatter", base, v, arg("size"), arg("stride"), arg("storage_offset"))
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

// viewKind classes operators by what their result shares.
type viewKind int

const (
	notView  viewKind = iota
	isView            // always shares memory with self
	mayView           // shares memory if the strides allow it, else copies
	sameView          // gives self itself when nothing changes, else a copy
)

// views lists the operators whose results share memory with their first
// argument; the schemas annotate most of them, not the last two kinds.
func classify(o *ssa.Op) viewKind {
	switch o.Kind {
	case "aten::reshape", "aten::flatten", "aten::ravel", "aten::reshape_as":
		return mayView
	case "aten::contiguous", "aten::to", "aten::type_as", "aten::dropout", "aten::alpha_dropout", "aten::feature_dropout", "aten::feature_alpha_dropout",
		"aten::float", "aten::double", "aten::half", "aten::bfloat16", "aten::int", "aten::long", "aten::short", "aten::char", "aten::byte", "aten::bool",
		"aten::cpu", "aten::cuda", "aten::resolve_conj", "aten::resolve_neg", "aten::_to_copy_alias", "aten::positive", "aten::requires_grad_",
		"aten::rename", "aten::refine_names", "aten::align_to":
		return sameView
	case "aten::meshgrid", "aten::broadcast_tensors":
		return mayView
	case "aten::_unsafe_view", "aten::lift_fresh", "aten::lift":
		return isView
	case "aten::unsafe_chunk", "aten::unsafe_split", "aten::unsafe_split_with_sizes":
		return notView
	}
	s := o.Schema
	if s == nil || len(s.Args) == 0 || len(s.Returns) == 0 {
		return notView
	}
	a, r := s.Args[0], s.Returns[0]
	if a.Alias != "" && !a.Writes && r.Alias != "" && strings.Trim(r.Alias, "*") != "" || a.Alias == "a" && a.AliasAfter == "*" && !a.Writes {
		if ssa.AsTensor(a.Type) != nil {
			return isView
		}
	}
	return notView
}

// squeezed evaluates squeeze where a dynamic axis is among the ones to remove:
// such an axis stays, which is right for all sizes but 1.
func (s *spec) squeezed(o *ssa.Op, args []value) ([]value, bool) {
	self, ok := args[0].(*tensorRef)
	if !ok {
		return nil, false
	}
	t := s.read(self).Tensor()
	if t == nil || !t.Ranked {
		return nil, false
	}
	rank := int64(len(t.Dims))
	var dims []int64
	if len(args) == 1 {
		for i := range rank {
			dims = append(dims, i)
		}
	} else {
		l, ok := s.literalOf(args[1])
		if !ok {
			return nil, false
		}
		dims = intsOf(l)
	}
	var ones []value
	dynamic := false
	for _, d := range dims {
		if d < 0 {
			d += rank
		}
		if d < 0 || d >= rank {
			return nil, false
		}
		switch e := t.Dims[d]; {
		case e.Is(1):
			ones = append(ones, ssa.Int(d))
		case !e.IsConst():
			if !s.declared(e) {
				return nil, false
			}
			dynamic = true
		}
	}
	if !dynamic {
		return nil, false
	}
	s.warnf("axis-of-one", "a dynamic axis is squeezed; it stays, which is right for sizes of 2 and more")
	s.m.SetMetadata("aton.assumes", "dynamic axes are not of size 1")
	if len(ones) == 0 {
		return []value{s.viewOf("aten::detach", self)}, true
	}
	return []value{s.viewOf("aten::squeeze.dims", self, s.newList(ssa.IntType, ones))}, true
}

// view evaluates an operator whose results share memory with self.
func (s *spec) view(o *ssa.Op, args []value, kind viewKind) []value {
	self, ok := args[0].(*tensorRef)
	if !ok {
		return nil
	}
	st := self.state()
	if kind == sameView && s.unchanged(o, args, self) {
		return []value{self}
	}
	operands := s.operands(args)
	vs := s.emit(o.Kind, o.Schema, operands...)
	lt, isList := o.Results[0].Type.(*ssa.ListType)
	if kind == sameView {
		t := s.newTensor(vs[0])
		how := copies
		if o.Kind == "aten::contiguous" {
			how, _ = s.isContiguous(st.strides, operands[0].Tensor())
		} else if vs[0].DType() == tensor.Undefined || operands[0].DType() == tensor.Undefined {
			how = unknown
		}
		s.relate(t.state().st, st.st, how)
		return []value{t}
	}
	if isList {
		if len(vs) == 1 && vs[0].Type != nil {
			if _, dyn := vs[0].Type.(*ssa.ListType); dyn {
				ls := &listState{dyn: vs[0], parts: s.partsOf(o, args, self, operands[0])}
				return []value{&list{c: s.newCell(ls), elem: lt.Elem}}
			}
		}
		elems := make([]value, len(vs))
		for i, v := range vs {
			step := viewStep{kind: o.Kind, schema: o.Schema, args: s.freeze(args), index: i, n: len(vs)}
			chain := append(st.chain[:len(st.chain):len(st.chain)], step)
			elems[i] = s.newView(st.st, chain, s.viewStrides(o, args, st.strides, operands[0], v), st.st.state().base, v)
		}
		return []value{s.newList(lt.Elem, elems)}
	}
	v := vs[0]
	s.narrowed(o, args, v)
	strides := s.viewStrides(o, args, st.strides, operands[0], v)
	if kind == mayView {
		same, how := s.reshapeStrides(st.strides, operands[0], v)
		if how != shares {
			t := s.newTensor(v)
			s.relate(t.state().st, st.st, how)
			return []value{t}
		}
		strides = same
	}
	step := viewStep{kind: o.Kind, schema: o.Schema, args: s.freeze(args)}
	chain := append(st.chain[:len(st.chain):len(st.chain)], step)
	return []value{s.newView(st.st, chain, strides, st.st.state().base, v)}
}

// freeze keeps the arguments of a view as they are now: the program may change
// lists, and tensors that only lend their shape, later.
func (s *spec) freeze(args []value) []value {
	out := append([]value(nil), args...)
	out[0] = nil // the base changes
	for i, a := range out {
		switch a := a.(type) {
		case *list:
			out[i] = &list{c: s.newCell(a.c.content), elem: a.elem}
		case *tensorRef:
			out[i] = s.read(a)
		}
	}
	return out
}

// narrowed gives the result of narrow the length that was asked for: PyTorch
// raises if there are fewer elements.
func (s *spec) narrowed(o *ssa.Op, args []value, v *ssa.Value) {
	if o.Kind != "aten::narrow" {
		return
	}
	dim, ok := s.literalOf(args[1])
	n, ok2 := s.literalOf(args[3])
	t := v.Tensor()
	if !ok || !ok2 || t == nil || !t.Ranked || v.Def() == nil || v.Def().Kind == "prim::Constant" {
		return
	}
	d := dim.Int()
	if d < 0 {
		d += int64(len(t.Dims))
	}
	if d >= 0 && d < int64(len(t.Dims)) {
		dims := append([]sym.Expr(nil), t.Dims...)
		dims[d] = sym.Const(n.Int())
		v.Type = ssa.Tensor(t.DType, dims...)
	}
}

// relate records what is not known of two storages.
func (s *spec) relate(a, b *storage, how sharing) {
	switch how {
	case unknown:
		s.peer(a, b)
	case assumed:
		a.apart, b.apart = append(a.apart, b), append(b.apart, a)
	}
}

// peer records that two storages may be the same memory.
func (s *spec) peer(a, b *storage) {
	link := func(x, y *storage) {
		for _, p := range x.peers {
			if p == y {
				return
			}
		}
		if x != y {
			x.peers = append(x.peers, y)
			y.peers = append(y.peers, x)
		}
	}
	// what may be a may be what a may be, too
	for _, p := range append([]*storage(nil), a.peers...) {
		link(p, b)
	}
	for _, p := range append([]*storage(nil), b.peers...) {
		link(p, a)
	}
	link(a, b)
}

// unchanged reports that an operator such as to() gives self itself.
func (s *spec) unchanged(o *ssa.Op, args []value, self *tensorRef) bool {
	arg := func(name string) value {
		if i := o.Schema.Arg(name); i >= 0 && i < len(args) {
			return args[i]
		}
		return ssa.None
	}
	litBool := func(name string) bool {
		l, ok := arg(name).(ssa.Literal)
		return ok && l.Kind == ssa.BoolLit && l.Bool()
	}
	cur := s.read(self)
	d := cur.DType()
	want := tensor.Undefined
	switch o.Kind {
	case "aten::dropout", "aten::alpha_dropout", "aten::feature_dropout", "aten::feature_alpha_dropout":
		l, ok := arg("train").(ssa.Literal)
		if ok && !l.Bool() {
			return true
		}
		p, ok := arg("p").(ssa.Literal)
		return ok && p.Float() == 0 && false
	case "aten::to":
		if litBool("copy") {
			return false
		}
		if mf, ok := arg("memory_format").(ssa.Literal); ok && !mf.IsNone() && mf.Int() != 1 && mf.Int() != 0 {
			return false
		}
		if o.Schema.Overload == "other" {
			other, ok := arg("other").(*tensorRef)
			if !ok {
				return false
			}
			return d != tensor.Undefined && s.read(other).DType() == d
		}
		l, ok := arg("dtype").(ssa.Literal)
		if !ok {
			return false
		}
		if l.IsNone() {
			return true
		}
		return d != tensor.Undefined && tensor.FromCode(int(l.Int())) == d
	case "aten::type_as":
		other, ok := arg("other").(*tensorRef)
		return ok && d != tensor.Undefined && s.read(other).DType() == d
	case "aten::contiguous":
		how, _ := s.isContiguous(self.state().strides, cur.Tensor())
		return how == shares
	case "aten::float":
		want = tensor.Float32
	case "aten::double":
		want = tensor.Float64
	case "aten::half":
		want = tensor.Float16
	case "aten::bfloat16":
		want = tensor.BFloat16
	case "aten::int":
		want = tensor.Int32
	case "aten::long":
		want = tensor.Int64
	case "aten::short":
		want = tensor.Int16
	case "aten::char":
		want = tensor.Int8
	case "aten::byte":
		want = tensor.Uint8
	case "aten::bool":
		want = tensor.Bool
	default: // cpu, cuda, resolve_conj, positive, ...
		return true
	}
	return d == want
}

// viewStrides gives the strides of a view, nil if they are not known.
func (s *spec) viewStrides(o *ssa.Op, args []value, in []sym.Expr, self, out *ssa.Value) []sym.Expr {
	t := self.Tensor()
	if in == nil || t == nil || !t.Ranked || len(in) != len(t.Dims) {
		return nil
	}
	arg := func(name string) (int64, bool) {
		if i := o.Schema.Arg(name); i >= 0 {
			if l, ok := args[i].(ssa.Literal); ok && l.Kind == ssa.IntLit {
				return l.Int(), true
			}
		}
		return 0, false
	}
	wrap := func(d int64, n int) int {
		if d < 0 {
			d += int64(n)
		}
		if d < 0 || d >= int64(n) {
			return -1
		}
		return int(d)
	}
	without := func(d int) []sym.Expr {
		return append(append(make([]sym.Expr, 0, len(in)), in[:d]...), in[d+1:]...)
	}
	switch o.Kind.Name() {
	case "detach", "alias", "lift_fresh", "narrow", "chunk", "split", "split_with_sizes", "tensor_split", "hsplit", "vsplit", "dsplit":
		return in
	case "select", "unbind":
		dim, ok := arg("dim")
		if d := wrap(dim, len(in)); ok && d >= 0 {
			return without(d)
		}
	case "slice":
		dim, ok := arg("dim")
		step, ok2 := arg("step")
		if d := wrap(dim, len(in)); ok && ok2 && d >= 0 {
			c := append([]sym.Expr(nil), in...)
			c[d] = c[d].Mul(sym.Const(step))
			return c
		}
	case "transpose", "swapdims", "swapaxes":
		d0, ok := arg("dim0")
		d1, ok2 := arg("dim1")
		if !ok {
			d0, ok = arg("axis0")
			d1, ok2 = arg("axis1")
		}
		a, b := wrap(d0, len(in)), wrap(d1, len(in))
		if ok && ok2 && a >= 0 && b >= 0 {
			c := append([]sym.Expr(nil), in...)
			c[a], c[b] = c[b], c[a]
			return c
		}
	case "t", "numpy_T", "mT", "adjoint":
		if len(in) == 2 {
			return []sym.Expr{in[1], in[0]}
		}
		if len(in) < 2 {
			return in
		}
	case "permute":
		if l, ok := s.literalOf(args[1]); ok {
			if p, ok := l.IntList(); ok && len(p) == len(in) {
				c := make([]sym.Expr, len(in))
				for i, d := range p {
					w := wrap(d, len(in))
					if w < 0 {
						return nil
					}
					c[i] = in[w]
				}
				return c
			}
		}
	case "movedim", "moveaxis":
		from, ok := s.literalOf(args[1])
		to, ok2 := s.literalOf(args[2])
		if ok && ok2 {
			return moved(in, intsOf(from), intsOf(to))
		}
	case "diagonal":
		d1, ok := arg("dim1")
		d2, ok2 := arg("dim2")
		a, b := wrap(d1, len(in)), wrap(d2, len(in))
		if ok && ok2 && a >= 0 && b >= 0 && a != b {
			var c []sym.Expr
			for i, e := range in {
				if i != a && i != b {
					c = append(c, e)
				}
			}
			return append(c, in[a].Add(in[b]))
		}
	case "unfold":
		dim, ok := arg("dimension")
		step, ok2 := arg("step")
		if d := wrap(dim, len(in)); ok && ok2 && d >= 0 {
			c := append(append([]sym.Expr(nil), in...), in[d])
			c[d] = c[d].Mul(sym.Const(step))
			return c
		}
	case "as_strided":
		if l, ok := s.literalOf(args[2]); ok {
			if st, ok := l.IntList(); ok {
				return ssa.Sizes(st)
			}
		}
	case "unsqueeze":
		dim, ok := arg("dim")
		if d := wrap(dim, len(in)+1); ok && d >= 0 {
			n := sym.Const(1)
			if d < len(in) {
				n = in[d].Mul(t.Dims[d])
			}
			return append(append(append([]sym.Expr(nil), in[:d]...), n), in[d:]...)
		}
	case "squeeze":
		ot := out.Tensor()
		if ot == nil || !ot.Ranked {
			return nil
		}
		if len(ot.Dims) == len(in) {
			return in
		}
		if dim, ok := arg("dim"); ok && len(ot.Dims) == len(in)-1 {
			if d := wrap(dim, len(in)); d >= 0 {
				return without(d)
			}
		}
		var c []sym.Expr
		for i, d := range t.Dims {
			if !d.Is(1) {
				c = append(c, in[i])
			}
		}
		if len(c) == len(ot.Dims) {
			return c
		}
	case "view", "view_as", "unflatten", "_unsafe_view", "_reshape_alias":
		c, _ := s.reshapeStrides(in, self, out)
		return c
	case "expand", "expand_as", "broadcast_to":
		ot := out.Tensor()
		if ot == nil || !ot.Ranked {
			return nil
		}
		lead := len(ot.Dims) - len(in)
		c := make([]sym.Expr, len(ot.Dims))
		for i := lead; i < len(c); i++ {
			if t.Dims[i-lead].Equal(ot.Dims[i]) {
				c[i] = in[i-lead]
			}
		}
		return c
	}
	return nil
}

func intsOf(l ssa.Literal) []int64 {
	if l.Kind == ssa.IntLit {
		return []int64{l.Int()}
	}
	v, _ := l.IntList()
	return v
}

// moved permutes as movedim does: the dims from go to the places to, the others keep their order.
func moved(in []sym.Expr, from, to []int64) []sym.Expr {
	n := int64(len(in))
	out := make([]sym.Expr, n)
	filled, taken := make([]bool, n), make([]bool, n)
	for i := range from {
		f, t := from[i], to[i]
		if f < 0 {
			f += n
		}
		if t < 0 {
			t += n
		}
		if f < 0 || f >= n || t < 0 || t >= n {
			return nil
		}
		out[t], filled[t], taken[f] = in[f], true, true
	}
	k := 0
	for i := range in {
		if taken[i] {
			continue
		}
		for filled[k] {
			k++
		}
		out[k], filled[k] = in[i], true
	}
	return out
}

// sharing says whether a result is a view.
type sharing int

const (
	copies  sharing = iota // memory of its own
	shares                 // a view
	unknown                // not known at export
	assumed                // memory of its own, unless a dynamic axis has size 1
)

// reshapeStrides gives the strides of a reshape that shares memory, as
// ATen/TensorUtils.cpp (computeStride) has it. Sizes that are not the same
// expression count as different; if that decides, the answer is assumed.
func (s *spec) reshapeStrides(in []sym.Expr, self, out *ssa.Value) ([]sym.Expr, sharing) {
	t, ot := self.Tensor(), out.Tensor()
	if in == nil || t == nil || ot == nil || !t.Ranked || !ot.Ranked || len(in) != len(t.Dims) {
		return nil, unknown
	}
	if ssa.SameType(t, ot) || len(t.Dims) == 1 && len(ot.Dims) == 1 {
		return in, shares
	}
	if same, _ := s.isContiguous(in, t); same == shares || len(t.Dims) == 0 {
		return contiguous(out), shares
	}
	for _, d := range t.Dims {
		if d.Is(0) {
			return contiguous(out), shares
		}
	}
	certain := true // no decision hung on a symbolic size
	guess := false  // one hung on how symbolic sizes divide, where any size may do
	differ := func(a, b sym.Expr) bool {
		if a.Equal(b) {
			return false
		}
		certain = certain && a.IsConst() && b.IsConst()
		return true
	}
	fresh := false
	for _, dims := range [][]sym.Expr{t.Dims, ot.Dims, in} {
		for _, d := range dims {
			fresh = fresh || !s.declared(d)
		}
	}
	no := func() ([]sym.Expr, sharing) {
		switch {
		case certain:
			return nil, copies
		case fresh || guess && len(ot.Dims) > 1:
			return nil, unknown
		}
		return nil, assumed
	}
	res := make([]sym.Expr, len(ot.Dims))
	d := len(ot.Dims) - 1
	chunk := in[len(in)-1]
	tnum, vnum := sym.Const(1), sym.Const(1)
	for i := len(t.Dims) - 1; i >= 0; i-- {
		tnum = tnum.Mul(t.Dims[i])
		if i > 0 && (t.Dims[i-1].Is(1) || !differ(in[i-1], tnum.Mul(chunk))) {
			continue
		}
		for d >= 0 && (!vnum.Equal(tnum) || ot.Dims[d].Is(1)) {
			if n, ok := vnum.Int(); ok {
				if m, ok := tnum.Int(); ok && n > m {
					return no()
				}
			}
			if !vnum.IsConst() || !tnum.IsConst() || !ot.Dims[d].IsConst() {
				certain, guess = false, true
			}
			res[d] = vnum.Mul(chunk)
			vnum = vnum.Mul(ot.Dims[d])
			d--
		}
		if !vnum.Equal(tnum) {
			return no()
		}
		if i > 0 {
			chunk = in[i-1]
			tnum, vnum = sym.Const(1), sym.Const(1)
		}
	}
	if d != -1 {
		return no()
	}
	return res, shares
}

// isContiguous says whether strides are row-major: shares if they are.
func (s *spec) isContiguous(in []sym.Expr, t *ssa.TensorType) (sharing, bool) {
	if in == nil || t == nil || !t.Ranked || len(in) != len(t.Dims) {
		return unknown, false
	}
	result := shares
	n := sym.Const(1)
	for i := len(in) - 1; i >= 0; i-- {
		if !t.Dims[i].Is(1) && !n.Equal(in[i]) {
			switch {
			case n.IsConst() && in[i].IsConst() && t.Dims[i].IsConst():
				if result != unknown {
					result = copies
				}
			case s.declared(n) && s.declared(in[i]) && s.declared(t.Dims[i]):
				if result == shares {
					result = assumed
				}
			default:
				result = unknown
			}
		}
		n = n.Mul(t.Dims[i])
	}
	return result, true
}

// declared reports that only sizes that the user declared are in e.
func (s *spec) declared(e sym.Expr) bool {
	ok := true
	e.Symbols(func(name string) { ok = ok && s.axes[name] })
	return ok
}

// inPlace evaluates an operator that writes to its arguments.
func (s *spec) inPlace(o *ssa.Op, args []value) []value {
	schema := o.Schema
	name := strings.TrimPrefix(o.Kind.Name(), "")
	ns := o.Kind.Namespace()
	if out := schema.Arg("out"); out >= 0 && schema.Args[out].Writes {
		return s.outVariant(o, args)
	}
	if rs, ok := s.functionalTwin(o, args); ok {
		return rs
	}
	self, ok := args[0].(*tensorRef)
	if !ok {
		s.fail("mutation", "the operator writes to something that is not a tensor")
	}
	// metadata only: the tensor object becomes another view
	switch name {
	case "unsqueeze_", "squeeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "as_strided_":
		return s.viewInPlace(o, args, self)
	case "detach_", "requires_grad_", "rename_":
		return []value{self}
	case "set_", "resize_", "resize_as_", "_resize_output_":
		if name == "resize_" {
			if l, ok := args[1].(*list); ok {
				cur := s.read(self).Tensor()
				if lit, ok := s.literalOf(l); ok && cur != nil {
					want, _ := lit.IntList()
					if have, ok := cur.Static(); ok && fmt.Sprint(have) == fmt.Sprint(want) {
						return []value{self}
					}
				}
			}
		}
		s.fail("mutation", "%s changes a tensor's memory in place, which has no pure form", name)
	}
	if !strings.HasSuffix(name, "fill_") { // those read their value once, before they write
		for _, a := range args[1:] {
			if other, ok := a.(*tensorRef); ok {
				s.refuseOverlap(self, other)
			}
		}
	}
	cur := s.read(self)
	var v *ssa.Value
	switch name {
	case "copy_":
		v = s.read(asTensor(s, args[1]))
		v = s.castLike(v, cur)
	case "zero_":
		v = s.emitName("aten::zeros_like", cur)
	default:
		base := strings.TrimSuffix(name, "_")
		switch base {
		case "_index_put_impl":
			base = "index_put"
		case "normal": // aten::normal is another function
			base = "normal_functional"
		case "__iand_", "__ior_", "__ixor_", "__ilshift_", "__irshift_":
			base = "__" + strings.TrimPrefix(base, "__i") + "_"
		}
		fs := s.functional(ns+"::"+base, schema)
		if fs == nil {
			s.fail("mutation", "the in-place operator has no pure twin %s::%s", ns, base)
		}
		operands := s.operands(args)
		if len(operands) > len(fs.Args) {
			operands = operands[:len(fs.Args)]
		}
		for len(operands) < len(fs.Args) {
			a := fs.Args[len(operands)]
			if !a.HasDefault {
				s.fail("mutation", "%s takes an argument %q that %s lacks", fs.FullName(), a.Name, schema.FullName())
			}
			operands = append(operands, s.constant(a.Default))
		}
		v = s.emit(ssa.Kind(fs.Name), fs, operands...)[0]
		v = s.castLike(v, cur)
	}
	if !fitsInto(v.Tensor(), cur.Tensor()) {
		panic(raised{s.loc, "the result does not fit the tensor that is written"})
	}
	if t, c := v.Tensor(), cur.Tensor(); t != nil && c != nil && !ssa.SameType(t, c) && (!t.Ranked || !c.Ranked || !sameDims(t, c)) {
		v = s.emitName("aten::expand_as", v, cur)
	}
	s.noteMutation(self)
	s.write(self, v)
	return []value{self}
}

// maxPlaces is the number of elements up to which overlap is looked into.
const maxPlaces = 1 << 12

// refuseOverlap fails when an operator reads, through another view, some of the
// elements that it writes: its result would hang on the order in which it goes.
func (s *spec) refuseOverlap(self, other *tensorRef) {
	a, b := self.state(), other.state()
	if self == other || a.st != b.st || len(a.chain) == 0 && len(b.chain) == 0 {
		return
	}
	p, q := s.places(a), s.places(b)
	if p == nil || q == nil {
		return
	}
	same := len(p) == len(q)
	written := map[int64]bool{}
	for i, x := range p {
		written[x] = true
		same = same && q[i] == x
	}
	if same || len(q) == 1 && s.op.Kind == "aten::copy_" {
		return // the one element that is read is written with itself
	}
	for _, x := range q {
		if written[x] {
			s.fail("overlap", "the operator reads elements of memory that it writes, through another view; use .clone() for what it reads")
		}
	}
}

// places gives where in the storage the elements of a view are, nil if it is not known.
func (s *spec) places(st *tensorState) []int64 {
	shape, ok := staticShape(st.st.state().base)
	if !ok {
		return nil
	}
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	if n > maxPlaces {
		return nil
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(i)
	}
	at := s.constant(ssa.TensorValue(tensor.FromInts(tensor.Int64, shape, v)))
	for i := range st.chain {
		at = s.step(&st.chain[i], at)
	}
	if c := onnx.ConstOf(at); c != nil {
		return c.Int64s()
	}
	return nil
}

func staticShape(v *ssa.Value) ([]int64, bool) {
	if t := v.Tensor(); t != nil {
		return t.Static()
	}
	return nil, false
}

// fitsInto reports that a tensor of type t may be broadcast to c, as far as is known.
func fitsInto(t, c *ssa.TensorType) bool {
	if t == nil || c == nil || !t.Ranked || !c.Ranked {
		return true
	}
	if len(t.Dims) > len(c.Dims) {
		return false
	}
	for i := range t.Dims {
		a, ok := t.Dims[len(t.Dims)-1-i].Int()
		b, ok2 := c.Dims[len(c.Dims)-1-i].Int()
		if ok && ok2 && a != b && a != 1 {
			return false
		}
	}
	return true
}

func asTensor(s *spec, x value) *tensorRef {
	if t, ok := x.(*tensorRef); ok {
		return t
	}
	s.fail("mutation", "expected a tensor")
	return nil
}

func sameDims(a, b *ssa.TensorType) bool {
	if len(a.Dims) != len(b.Dims) {
		return false
	}
	for i := range a.Dims {
		if !a.Dims[i].Equal(b.Dims[i]) {
			return false
		}
	}
	return true
}

func (s *spec) noteMutation(t *tensorRef) {
	st := t.state().st
	if st.origin == "parameter" && st.name != "" {
		s.warnf("state", "%s is changed by the model; the ONNX model does not keep the change from run to run", st.name)
	}
}

// castLike converts v to the dtype of like.
func (s *spec) castLike(v, like *ssa.Value) *ssa.Value {
	d := like.DType()
	if d == tensor.Undefined || v.DType() == d {
		return v
	}
	return s.emitName("aten::to.dtype", v, ssa.Int(int64(d.Code())), false, false, nil)
}

// functional finds the pure overload that takes the arguments of an in-place one.
func (s *spec) functional(name string, in *ssa.Schema) *ssa.Schema {
	var same *ssa.Schema
	for _, f := range aten.Schemas(ssa.Kind(name)) {
		if f.Mutates() {
			continue
		}
		if f.Overload == in.Overload && fits(f, in) {
			return f
		}
		if same == nil && fits(f, in) {
			same = f
		}
	}
	return same
}

// fits reports that a call of in's arguments is one of f.
func fits(f, in *ssa.Schema) bool {
	n := len(in.Args)
	if n > len(f.Args) {
		return false
	}
	for i := range f.Args {
		if i >= n {
			if !f.Args[i].HasDefault {
				return false
			}
			continue
		}
		if f.Args[i].Name != in.Args[i].Name && i > 0 {
			return false
		}
	}
	return true
}

// viewInPlace changes what a tensor object views.
func (s *spec) viewInPlace(o *ssa.Op, args []value, self *tensorRef) []value {
	name := "aten::" + strings.TrimSuffix(o.Kind.Name(), "_")
	fs := s.functional(name, o.Schema)
	if fs == nil {
		s.fail("mutation", "no pure twin %s", name)
	}
	if name == "aten::squeeze" {
		if rs, ok := s.squeezed(o, args); ok {
			next := rs[0].(*tensorRef)
			s.set(self.c, next.c.content)
			self.base, self.val = next.base, next.val
			return []value{self}
		}
	}
	st := self.state()
	operands := s.operands(args)
	v := s.emit(ssa.Kind(name), fs, operands...)[0]
	step := viewStep{kind: ssa.Kind(name), schema: fs, args: s.freeze(args)}
	fake := &ssa.Op{Kind: ssa.Kind(name), Schema: fs}
	next := &tensorState{st: st.st, chain: append(st.chain[:len(st.chain):len(st.chain)], step), strides: s.viewStrides(fake, args, st.strides, operands[0], v)}
	s.set(self.c, next)
	self.base, self.val = st.st.state().base, v
	return []value{self}
}

// outVariant evaluates op(..., out=t).
func (s *spec) outVariant(o *ssa.Op, args []value) []value {
	var outs []int
	for i := range o.Schema.Args {
		if o.Schema.Args[i].Writes {
			outs = append(outs, i)
		}
	}
	var fs *ssa.Schema
	for _, f := range aten.Schemas(o.Kind) {
		if f.Mutates() || len(f.Args) != len(o.Schema.Args)-len(outs) || len(f.Returns) != len(outs) {
			continue
		}
		ok := true
		for i := range f.Args {
			ok = ok && f.Args[i].Name == o.Schema.Args[i].Name && f.Args[i].Type.String() == o.Schema.Args[i].Type.String()
		}
		if ok {
			fs = f
			break
		}
	}
	if fs == nil {
		s.fail("mutation", "%s has no pure twin", o.Schema.FullName())
	}
	vs := s.emit(o.Kind, fs, s.operands(args[:len(fs.Args)])...)
	var rs []value
	for k, i := range outs {
		t := asTensor(s, args[i])
		cur := s.read(t)
		v := s.castLike(vs[k], cur)
		a, b := v.Tensor(), cur.Tensor()
		if a != nil && b != nil && a.Ranked && b.Ranked && sameDims(a, b) {
			s.write(t, v)
		} else if len(t.state().chain) == 0 {
			// out= resizes a tensor of another size: it gets new memory
			st := s.newStorage(v)
			s.set(t.c, &tensorState{st: st, strides: contiguous(v)})
			t.base, t.val = v, v
		} else {
			s.fail("mutation", "out= resizes a view")
		}
		rs = append(rs, t)
	}
	return rs
}
