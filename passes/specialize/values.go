package specialize

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/internal/python"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// values turns values of the program into values of the target function, and back.
type values struct {
	*context
	build  *builder
	heap   *heap.Heap
	module *module
}

// materialize gives a value of the target function for x.
func (s *values) materialize(x py.Value) *ssa.Value {
	switch x := x.(type) {
	case py.Const:
		if x.Kind == ssa.ObjectLit || x.Kind == ssa.FuncLit || x.Kind == ssa.TypeLit {
			s.fail("unsupported-value", "a value of type %s cannot be computed in ONNX", x.Type())
		}
		return s.build.constant(x.Literal)
	case py.Dynamic:
		if c, ok := s.refineSize(x).(py.Const); ok {
			return s.build.constant(c.Literal)
		}
		if !inScope(x.Value, s.build.cur) {
			s.fail("alias", "a view depends on a value that a branch or a loop made; use .clone()")
		}
		return x.Value
	case *py.Tensor:
		return s.read(x)
	case *py.List:
		st := x.State()
		if st.Columns != nil {
			s.noDynamic(st)
		}
		if st.Dyn != nil {
			return s.dynOf(st)
		}
		if l, ok := py.LiteralOf(x); ok && l.Kind == ssa.ListLit && !hasTensor(l) {
			return s.build.constant(l)
		}
		vs := make([]*ssa.Value, len(st.Elems))
		for i, e := range st.Elems {
			vs[i] = s.materialize(e)
		}
		elem := x.Elem
		if len(vs) > 0 && (elem == nil || ssa.AsTensor(elem) == nil) {
			elem = generalType(vs[0].Type)
			for i, e := range st.Elems {
				if py.IsNone(e) && vs[i].Type == ssa.NoneType && ssa.AsTensor(elem) == nil && i+1 < len(vs) {
					elem = generalType(vs[i+1].Type)
				}
			}
		}
		if elem == nil {
			elem = ssa.AnyTensor
		}
		if ssa.AsTensor(elem) != nil && slices.ContainsFunc(vs, func(v *ssa.Value) bool { return v.Type == ssa.NoneType }) {
			elem = &ssa.OptionalType{Elem: elem} // such as the indices of x[:, i]
		}
		o := s.build.cur.Append("prim::ListConstruct", s.loc, vs, &ssa.ListType{Elem: elem})
		if elem == ssa.IntType {
			o.Results[0].Sym = symsOf(vs)
		}
		return o.Results[0]
	case *py.Tuple:
		vs := make([]*ssa.Value, len(x.Elems))
		tt := &ssa.TupleType{}
		for i, e := range x.Elems {
			vs[i] = s.materialize(e)
			tt.Elems = append(tt.Elems, generalType(vs[i].Type))
		}
		return s.build.cur.Append("prim::TupleConstruct", s.loc, vs, tt).Results[0]
	case *py.Maybe:
		s.undecided(x, "whether this value is None depends on data")
	case *py.Dict:
		s.fail("unsupported-value", "a dict cannot be an operand in ONNX")
	case *py.Object:
		if strings.HasPrefix(x.Class, packedClasses) {
			return s.module.packed(x)
		}
		if strings.HasPrefix(x.Class, prepackedClasses) {
			return s.module.prepacked(x)
		}
		if x.Class == cellParamsClass {
			return s.module.cellParams(x)
		}
		s.fail("unsupported-value", "an object of class %s cannot be an operand", x.Class)
	case py.Unknown:
		s.failText()
	}
	s.fail("internal", "%s have no form in the target function", py.Describe(x))
	return nil
}

// constTensor gives the data of a tensor that is known at export.
func (s *values) constTensor(x py.Value) *tensor.Tensor {
	t, ok := x.(*py.Tensor)
	if !ok {
		return nil
	}
	return onnx.ConstOf(s.read(t))
}

// emitName is emit for an overload by its full name, such as aten::select_scatter.
// Operands are values of the target function, or Go constants.
func (s *values) emitName(name string, args ...any) *ssa.Value {
	schema := aten.SchemaByName(name)
	if schema == nil {
		s.fail("internal", "no schema %s", name)
	}
	operands := make([]*ssa.Value, len(schema.Args))
	for i := range schema.Args {
		var a any
		if i < len(args) {
			a = args[i]
		} else if schema.Args[i].HasDefault {
			a = schema.Args[i].Default
		}
		switch a := a.(type) {
		case *ssa.Value:
			operands[i] = a
		case nil:
			operands[i] = s.build.constant(ssa.None)
		case ssa.Literal:
			operands[i] = s.build.constant(a)
		case int:
			operands[i] = s.build.constant(ssa.Int(int64(a)))
		case int64:
			operands[i] = s.build.constant(ssa.Int(a))
		case bool:
			operands[i] = s.build.constant(ssa.Bool(a))
		case []int64:
			operands[i] = s.build.constant(ssa.Ints(a...))
		case py.Value:
			operands[i] = s.materialize(a)
		}
	}
	return s.build.emit(ssa.Kind(schema.Name), schema, operands...)[0]
}

// wrap makes a program value of a target value.
func (s *values) wrap(v *ssa.Value) py.Value {
	if d := v.Def(); d != nil && d.Kind == "prim::Constant" {
		lit, _ := d.Attr("value")
		if lit.Kind != ssa.TensorLit {
			return s.module.fromLiteral(lit, v.Type)
		}
	}
	if v.Tensor() != nil {
		return s.heap.Tensor(v)
	}
	switch t := v.Type.(type) {
	case *ssa.ListType:
		if t.Elem == ssa.IntType && v.Sym != nil {
			elems := make([]py.Value, len(v.Sym))
			for i := range elems {
				elems[i] = s.wrap(s.emitName("aten::__getitem__.t", v, i))
			}
			return s.heap.List(ssa.IntType, elems)
		}
		return &py.List{Cell: s.heap.New(&py.ListState{Dyn: v}), Elem: t.Elem}
	}
	if v.Type == ssa.IntType && len(v.Sym) == 1 {
		if n, ok := v.Sym[0].Int(); ok {
			return py.Int(n)
		}
	}
	return py.Dyn(v)
}

// read gives the current value of a tensor.
func (s *values) read(t *py.Tensor) *ssa.Value {
	st := heap.ViewOf(t)
	ss := st.Storage.State()
	if st.Lost != "" {
		s.fail("alias", "%s", st.Lost)
	}
	if ss.Stale != "" {
		s.fail("alias", "%s", ss.Stale)
	}
	if t.Val != nil && t.Base == ss.Base && inScope(t.Val, s.build.cur) {
		return s.refined(t.Val)
	}
	v := s.refined(ss.Base)
	for i := range st.Chain {
		v = s.step(&st.Chain[i], v)
	}
	t.Base, t.Val = ss.Base, v
	return s.refined(v)
}

// step derives the view of one step from a base value.
func (s *values) step(st *heap.Step, base *ssa.Value) *ssa.Value {
	operands := s.operands(st.Args)
	operands[0] = base
	vs := s.build.emit(st.Kind, st.Schema, operands...)
	narrowed(&ssa.Op{Kind: st.Kind, Schema: st.Schema}, st.Args, vs[0])
	if st.N > 0 {
		if len(vs) != st.N {
			s.fail("alias", "%s gives another number of views than before", st.Kind)
		}
		return vs[st.Index]
	}
	return vs[0]
}

func (s *values) operands(args []py.Value) []*ssa.Value {
	out := make([]*ssa.Value, len(args))
	for i, a := range args {
		if a == nil {
			continue
		}
		out[i] = s.materialize(a)
	}
	return out
}

// freeze keeps the arguments of a view as they are now: the program may change
// lists, and tensors that only lend their shape, later.
func (s *values) freeze(args []py.Value) []py.Value {
	out := append([]py.Value(nil), args...)
	out[0] = nil // the base changes
	for i, a := range out {
		switch a := a.(type) {
		case *py.List:
			out[i] = &py.List{Cell: s.heap.New(a.Cell.Content()), Elem: a.Elem}
		case *py.Tensor:
			out[i] = py.Dyn(s.read(a))
		}
	}
	return out
}

// scalar evaluates an operator on numbers, strings and constants: at export if
// they are known, symbolically for ints, else by emitting it.
func (s *values) scalar(kind ssa.Kind, schema *ssa.Schema, args []py.Value) []py.Value {
	if kind == "aten::divmod" && schema != nil && schema.Overload != "int" {
		return s.divmod(schema, args)
	}
	if kind == "aten::divmod" && schema != nil {
		var out []py.Value
		for _, k := range []ssa.Kind{"aten::floordiv", "aten::remainder"} {
			out = append(out, s.scalar(k, aten.SchemaByName(string(k)+"."+schema.Overload), args)...)
		}
		return out
	}
	lits := make([]ssa.Literal, len(args))
	all := true
	for i, a := range args {
		l, ok := py.LiteralOf(a)
		lits[i] = l
		all = all && ok
	}
	ret := ssa.Type(ssa.AnyType)
	if schema != nil && len(schema.Returns) == 1 {
		ret = schema.Returns[0].Type
	}
	if all {
		if l, ok := s.fold(kind.Name(), ret, lits...); ok {
			return []py.Value{s.module.fromLiteral(l, ret)}
		}
		if schema == nil || ret == ssa.StrType {
			s.fail("unsupported-op", "cannot be computed at export from these constants")
		}
	}
	expr, known := sym.Expr{}, false
	if es, ok := py.Exprs(args); ok {
		var answer, isBool bool
		if expr, answer, isBool, known = s.symbolic(kind.Name(), es); known && isBool {
			return []py.Value{py.Bool(answer)}
		}
		if n, ok := expr.Int(); ok && known {
			return []py.Value{py.Int(n)}
		}
	}
	for _, a := range args {
		switch a.(type) {
		case *py.Maybe, *py.Dict, *py.Object:
			s.fail("unsupported-op", "cannot be computed from a value that depends on data")
		}
	}
	if ret == ssa.StrType {
		text := py.Unknown{Text: unknown}
		if kind == "aten::str" {
			text.Exact = exact(args[0])
		}
		return []py.Value{text}
	}
	for _, l := range lits {
		if l.Kind == ssa.StrLit && len(lits) == len(args) {
			s.fail("unsupported-op", "not computed on strings; compute it in the module's __init__, and keep the result as an attribute")
		} else if l.Kind == ssa.StrLit {
			s.failText()
		}
	}
	if schema == nil {
		s.fail("unsupported-op", "the operator has no schema")
	}
	vs := s.build.emit(kind, schema, s.operands(args)...)
	out := make([]py.Value, len(vs))
	for i, v := range vs {
		if known && v.Type == ssa.IntType {
			v.Sym = []sym.Expr{expr}
		} else if v.Type == ssa.IntType && v.Sym == nil {
			v.Sym = []sym.Expr{s.m.FreshSymbol("n", minInt)}
		}
		out[i] = s.wrap(v)
	}
	return out
}

// divmod evaluates divmod of two numbers of which one is a float.
func (s *values) divmod(schema *ssa.Schema, args []py.Value) []py.Value {
	x, ok := py.LiteralOf(args[0])
	y, ok2 := py.LiteralOf(args[1])
	if ok2 && y.Float() == 0 {
		panic(s.raised("integer division or modulo by zero"))
	}
	if ok && ok2 {
		q, r := python.Divmod(x, y)
		return []py.Value{py.Float(q), py.Float(r)}
	}
	var out []py.Value
	for _, v := range s.build.emit("aten::divmod", schema, s.operands(args)...) {
		out = append(out, s.wrap(v))
	}
	return out
}

func (s *values) number2(v *ssa.Value) py.Value {
	if v.Type == ssa.IntType {
		return s.number(v)
	}
	return s.wrap(v)
}

// choose gives the value that is a where cond is true, else b.
func (s *values) choose(cond *ssa.Value, a, b py.Value) py.Value {
	if py.Same(a, b) {
		return a
	}
	if py.Choosable(a) && py.Choosable(b) {
		return &py.Choice{Cond: cond, Yes: a, No: b}
	}
	if x, ok := a.(*py.Tensor); ok {
		if y, ok := b.(*py.Tensor); ok {
			return s.chooseTensor(cond, x, y)
		}
	}
	if x, ok := a.(*py.Tuple); ok {
		if y, ok := b.(*py.Tuple); ok && len(x.Elems) == len(y.Elems) {
			elems := make([]py.Value, len(x.Elems))
			for i := range elems {
				elems[i] = s.choose(cond, x.Elems[i], y.Elems[i])
			}
			return &py.Tuple{Elems: elems, Typ: x.Typ}
		}
	}
	if py.IsOptional(a) || py.IsOptional(b) {
		hasA, va := s.halves(a)
		hasB, vb := s.halves(b)
		if va == nil {
			va = vb
		}
		if vb == nil {
			vb = va
		}
		return &py.Maybe{Has: s.oneOf(cond, hasA, hasB, ssa.BoolType), Val: s.choose(cond, va, vb)}
	}
	ta, ok := py.NumberType(a)
	tb, ok2 := py.NumberType(b)
	if !ok || !ok2 || ta != tb {
		s.fail("unsupported-value", "a value is one of two that have no common form in ONNX")
	}
	return s.number(s.oneOf(cond, s.materialize(a), s.materialize(b), ta))
}

// oneOf is a where cond is true, else b, of a type that both have.
func (s *values) oneOf(cond, a, b *ssa.Value, t ssa.Type) *ssa.Value {
	n := s.build.cur.Append("prim::If", s.loc, []*ssa.Value{cond}, t)
	n.AddBlock().SetReturns(a)
	n.AddBlock().SetReturns(b)
	return n.Results[0]
}

// chooseTensor is choose for tensors, whose memory is read only from here on.
func (s *values) chooseTensor(cond *ssa.Value, a, b *py.Tensor) *py.Tensor {
	va, vb := s.read(a), s.read(b)
	ta, tb := va.Tensor(), vb.Tensor()
	if ta == nil || tb == nil {
		s.fail("unsupported-value", "a value is a tensor in one branch only")
	}
	joined := s.build.joinTensors(ta, tb, func(_ int, a, b sym.Expr) sym.Expr {
		size, _ := s.build.size(a, b)
		return size
	})
	t := s.heap.Laid(s.oneOf(cond, va, vb, joined), nil)
	t.Element = true
	s.heap.Hold(a, b, t)
	return t
}

// dynamic makes a list a run-time list. Its elements are of type elem if they do not tell.
func (s *values) dynamic(a *py.ListState, elem ssa.Type) *ssa.Value {
	if a.Dyn != nil {
		return s.heldOf(a)
	}
	if a.Columns != nil {
		s.noDynamic(a)
	}
	s.heap.Hold(a.Elems...)
	if t := s.dynElem(a); t != nil {
		elem = t
	}
	if elem == nil {
		s.fail("dynamic-container", "the element type of a list whose length depends on data is not known")
	}
	vs := make([]*ssa.Value, len(a.Elems))
	for i, e := range a.Elems {
		if _, ok := e.(py.Unset); ok {
			e = s.dummyOf(elem)
		}
		vs[i] = s.materialize(s.member(e))
	}
	return s.build.cur.Append("prim::ListConstruct", s.loc, vs, &ssa.ListType{Elem: elem}).Results[0]
}

// dynElem is the element type of a run-time list, nil for an empty one: a tensor type or a number.
func (s *values) dynElem(a *py.ListState) ssa.Type {
	if a.Dyn != nil {
		return a.Dyn.Type.(*ssa.ListType).Elem
	}
	if a.Columns != nil {
		s.noDynamic(a)
	}
	var t ssa.Type
	for _, e := range a.Elems {
		var et ssa.Type
		switch e := e.(type) {
		case py.Unset:
			continue
		case *py.Tensor:
			et = s.read(e).Tensor()
		case *py.List, *py.Tuple:
			m, ok := s.member(e).(*py.Tensor)
			if !ok {
				s.fail("dynamic-container", "a list of %s cannot have a length that depends on data in ONNX", py.Describe(e))
			}
			et = s.read(m).Tensor()
		default:
			n, ok := py.NumberType(e)
			if !ok {
				s.fail("dynamic-container", "a list of %s cannot have a length that depends on data in ONNX", py.Describe(e))
			}
			et = n
		}
		a, b := ssa.AsTensor(t), ssa.AsTensor(et)
		switch {
		case t == nil:
			t = et
		case a != nil && b != nil && !ssa.SameType(a, b):
			t = s.build.joinElems(a, b)
		}
	}
	return t
}

// intOp computes with ints that may be symbolic.
func (s *values) intOp(name string, a, b py.Value) py.Value {
	schema := aten.SchemaByName("aten::" + name + ".int")
	return s.scalar(ssa.Kind("aten::"+name), schema, []py.Value{a, b})[0]
}

// atLeastOne is 1 for 0.
func (s *values) atLeastOne(n py.Value) py.Value {
	return s.scalar("prim::max", aten.SchemaByName("prim::max.int"), []py.Value{n, py.Int(1)})[0]
}

// sizesBehind is the product of the sizes behind an axis, the stride of the axis in row-major memory: an axis of size 0 counts as one of 1.
func (s *values) sizesBehind(v *ssa.Value, axis int) py.Value {
	n := py.Value(py.Int(1))
	for k := axis + 1; k < len(v.Tensor().Dims); k++ {
		n = s.intOp("mul", n, s.atLeastOne(s.sizeOf(v, k)))
	}
	return n
}

func (s *values) tensor(x py.Value) *py.Tensor {
	if t, ok := x.(*py.Tensor); ok {
		return t
	}
	s.fail("mutation", "expected a tensor")
	return nil
}

// castLike converts v to the dtype of like.
func (s *values) castLike(v, like *ssa.Value) *ssa.Value {
	d := like.DType()
	if d == tensor.Undefined || v.DType() == d {
		return v
	}
	return s.emitName("aten::to.dtype", v, ssa.Int(int64(d.Code())), false, false, nil)
}

// number gives an emitted int a symbol of its own, so that equal ones compare equal.
func (s *values) number(v *ssa.Value) py.Value {
	if v.Type == ssa.IntType && v.Sym == nil {
		v.Sym = []sym.Expr{s.m.FreshSymbol("n", minInt)}
	}
	return s.wrap(v)
}

// size is one size of a tensor.
func (s *values) size(t *py.Tensor, i int) py.Value { return s.sizeOf(s.read(t), i) }

// sizeOf is one size of what a tensor has at the moment.
func (s *values) sizeOf(v *ssa.Value, i int) py.Value {
	held := v.Tensor()
	if !held.Ranked { // something of unknown rank was written to it
		s.fail("unknown-shape", "the rank of its operand is not known")
	}
	e := held.Dims[i]
	if n, ok := e.Int(); ok {
		s.build.needSize(v, i, n)
		return py.Int(n)
	}
	r := s.emitName("aten::size.int", v, i)
	r.Sym = []sym.Expr{e}
	return py.Dyn(r)
}

// narrowed gives the result of narrow the length that was asked for: PyTorch
// raises if there are fewer elements.
func narrowed(o *ssa.Op, args []py.Value, v *ssa.Value) {
	if o.Kind != "aten::narrow" {
		return
	}
	dim, ok := py.LiteralOf(args[1])
	n, ok2 := py.LiteralOf(args[3])
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

// halves are whether v is something, and what it is then; nil for None.
func (s *values) halves(v py.Value) (has *ssa.Value, val py.Value) {
	if mb, ok := v.(*py.Maybe); ok {
		return mb.Has, mb.Val
	}
	if py.IsNone(v) {
		return s.build.constant(ssa.Bool(false)), nil
	}
	return s.build.constant(ssa.Bool(true)), v
}

// hold is called for what keeps the list st and does not follow later writes to the tensor whose parts it holds.
func (s *values) hold(st *py.ListState) {
	if st.Parts != nil {
		s.heap.Hold(st.Parts.Self)
	}
}

// heldOf is dynOf for what keeps the list.
func (s *values) heldOf(st *py.ListState) *ssa.Value {
	s.hold(st)
	return s.dynOf(st)
}

// dynOf is the run-time list of st, made anew if the tensor whose parts it holds was written.
func (s *values) dynOf(st *py.ListState) *ssa.Value {
	p := st.Parts
	if p == nil {
		return st.Dyn
	}
	cur := s.read(p.Self)
	if p.Places != nil && (cur != p.Val || !inScope(st.Dyn, s.build.cur)) {
		return s.unplaced(p, cur)
	}
	if cur != p.Val {
		operands := s.operands(p.Args)
		operands[0] = cur
		return s.build.emit(p.Op.Kind, p.Op.Schema, operands...)[0]
	}
	return st.Dyn
}

const minInt = -1 << 63
