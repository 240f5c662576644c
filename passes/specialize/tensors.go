package specialize

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
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
	if st.reshaped != "" {
		s.fail("alias", "%s", st.reshaped)
	}
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

// viewKind classes operators by what their result shares.
type viewKind int

// classify says whether the results of an operator share memory with its first argument. The schemas annotate most such
// operators, not those of the last two kinds.
func classify(o *ssa.Op) viewKind {
	switch o.Kind {
	case "aten::reshape", "aten::flatten", "aten::ravel", "aten::reshape_as":
		return mayView
	case "aten::contiguous", "aten::to", "aten::type_as", "aten::dropout", "aten::alpha_dropout", "aten::feature_dropout", "aten::feature_alpha_dropout",
		"aten::float", "aten::double", "aten::half", "aten::bfloat16", "aten::int", "aten::long", "aten::short", "aten::char", "aten::byte", "aten::bool",
		"aten::cpu", "aten::cuda", "aten::resolve_conj", "aten::resolve_neg", "aten::positive", "aten::requires_grad_",
		"aten::rename", "aten::refine_names", "aten::align_to", "aten::real":
		return sameView
	case "aten::_unsafe_view", "aten::lift_fresh", "aten::lift", "aten::atleast_1d", "aten::atleast_2d", "aten::atleast_3d":
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

// squeezed evaluates squeeze where a dynamic axis that is known to be 2 or more is among the ones to remove: it stays.
// Where the axis may be 1 at run time, the rank of the result depends on data: see squeezedMaybe.
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
			if e.Min() < 2 && !(s.opts.plural && s.plural(e)) {
				return nil, false
			}
			if e.Min() < 2 {
				s.needPlural(e)
			}
			dynamic = true
		}
	}
	if !dynamic {
		return nil, false
	}
	if len(ones) == 0 {
		return []value{s.viewOf("aten::detach", self)}, true
	}
	return []value{s.viewOf("aten::squeeze.dims", self, s.newList(ssa.IntType, ones))}, true
}

// needPlural notes that the symbols of a size must be 2 or more, which the pass guard has the model check.
func (s *spec) needPlural(e sym.Expr) {
	s.warnf("axis-of-one", "axis of size %s is squeezed, and operators behind it need the number of dimensions; the model fails at run time where it is 1", e)
	e.Symbols(func(name string) { s.m.AtLeast(name, 2) })
}

// squeezedMaybe leaves the rank of a squeeze open where a size that is known at run time only decides whether a dim goes.
func (s *spec) squeezedMaybe(kind ssa.Kind, args []value, self, v *ssa.Value) {
	t := self.Tensor()
	if kind != "aten::squeeze" || t == nil || !t.Ranked || v.DType() == tensor.Undefined {
		return
	}
	wanted := func(int64) bool { return true }
	if len(args) > 1 {
		l, ok := s.literalOf(args[1])
		if !ok {
			return
		}
		wanted = func(i int64) bool {
			for _, d := range intsOf(l) {
				if d == i || d+int64(len(t.Dims)) == i {
					return true
				}
			}
			return false
		}
	}
	for i, d := range t.Dims {
		if !d.IsConst() && d.Min() < 2 && wanted(int64(i)) {
			v.Type = ssa.Unranked(v.DType())
			s.openRanks = append(s.openRanks, diag.Diagnostic{ID: "dynamic-rank", Loc: s.loc, Op: string(kind),
				Message: fmt.Sprintf("axis %d, of size %s, goes if it is 1 at run time, so the number of dimensions depends on data, and an operator behind it needs that", i, d),
				Hint:    "name the axes to remove, such as squeeze(1), or give the axis a fixed size in --input"})
		}
	}
}

// view evaluates an operator whose results share memory with self.
func (s *spec) view(o *ssa.Op, args []value, kind viewKind) []value {
	self, ok := args[0].(*tensorRef)
	if !ok {
		return nil
	}
	st := self.state()
	if o.Kind == "aten::real" && s.read(self).DType().IsComplex() {
		kind = isView
	}
	if kind == sameView && s.unchanged(o, args, self) {
		return []value{self}
	}
	operands := s.operands(args)
	vs := s.emit(o.Kind, o.Schema, operands...)
	lt, isList := o.Results[0].Type.(*ssa.ListType)
	if kind == sameView {
		t := s.newLaid(vs[0], s.resultStrides(o, args, vs[0]))
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
	s.squeezedMaybe(o.Kind, args, operands[0], v)
	strides := s.viewStrides(o, args, st.strides, operands[0], v)
	if kind == mayView {
		same, how := s.reshapeStrides(st.strides, operands[0], v)
		if o.Kind == "aten::ravel" { // contiguous().view(-1): it copies where a reshape need not
			how, _ = s.isContiguous(st.strides, operands[0].Tensor())
		}
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
