package specialize

import (
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// constant gives the value of a prim::Constant at the top of the function.
func (s *builder) constant(l ssa.Literal) *ssa.Value {
	key := ""
	if l.Kind != ssa.TensorLit {
		key = l.Type().String() + " " + l.String()
		if v := s.consts[key]; v != nil {
			return v
		}
	}
	before := s.out.Body.First()
	if s.lastCon != nil {
		before = s.lastCon.Next()
	}
	o := s.out.Body.InsertBefore(before, "prim::Constant", 0, nil, l.Type())
	if !l.IsNone() {
		o.SetAttr("value", l)
	}
	v := o.Results[0]
	switch l.Kind {
	case ssa.IntLit:
		v.Sym = []sym.Expr{sym.Const(l.Int())}
	case ssa.TensorLit:
		v.Sym = symOfTensor(l.Tensor)
	}
	s.lastCon = o
	if key != "" {
		s.consts[key] = v
	}
	return v
}

func symOfTensor(t *tensor.Tensor) []sym.Expr {
	if t.DType.IsInt() && len(t.Shape) <= 1 && t.NumElements() <= 64 && t.HasData() {
		return ssa.Sizes(t.Int64s())
	}
	return nil
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
		if !inScope(x.Value, s.build.cur) {
			s.fail("alias", "a view depends on a value that a branch or a loop made; use .clone()")
		}
		return x.Value
	case *py.Tensor:
		return s.read(x)
	case *py.List:
		st := x.State()
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
		s.fail("unsupported-value", "an object of class %s cannot be an operand", x.Class)
	}
	s.fail("internal", "%s have no form in the target function", py.Describe(x))
	return nil
}

func hasTensor(l ssa.Literal) bool {
	if l.Kind == ssa.TensorLit {
		return true
	}
	for _, e := range l.Elems {
		if hasTensor(e) {
			return true
		}
	}
	return false
}

func generalType(t ssa.Type) ssa.Type {
	if ssa.AsTensor(t) != nil {
		return ssa.AnyTensor
	}
	return t
}

func symsOf(vs []*ssa.Value) []sym.Expr {
	out := make([]sym.Expr, len(vs))
	for i, v := range vs {
		if len(v.Sym) != 1 {
			return nil
		}
		out[i] = v.Sym[0]
	}
	return out
}

// constTensor gives the data of a tensor that is known at export.
func (s *values) constTensor(x py.Value) *tensor.Tensor {
	t, ok := x.(*py.Tensor)
	if !ok {
		return nil
	}
	return onnx.ConstOf(s.read(t))
}

// emit adds a pure op with inferred result types and gives its results; what
// turns out to be constant is folded.
func (s *builder) emit(kind ssa.Kind, schema *ssa.Schema, operands ...*ssa.Value) []*ssa.Value {
	types := make([]ssa.Type, len(schema.Returns))
	for i := range types {
		types[i] = schema.Returns[i].Type
	}
	o := s.cur.Append(kind, s.loc, operands, types...)
	o.Schema = schema
	return s.infer(o)
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

// scratchOps is the number of inferences after which scratch memory is given back.
const scratchOps = 512

// foldElems is the number of elements up to which results are computed at export.
const foldElems = 1 << 14

func (s *builder) scratchBlock() *ssa.Block {
	if s.scratch == nil || s.nscr >= scratchOps {
		if s.scratch != nil {
			s.m.RemoveFunc(s.scratch)
		}
		s.scratch = s.m.NewFunc("scratch")
		s.nscr = 0
	}
	s.nscr++
	return s.scratch.Body
}

// infer finds the result types of o by lowering it into a scratch block. An
// operator that cannot be lowered keeps the types of its schema: the lower
// pass reports it.
func (s *builder) infer(o *ssa.Op) []*ssa.Value {
	for _, r := range o.Results {
		if _, ok := r.Type.(*ssa.VarType); ok && o.NumOperands() > 0 { // an element of a list
			if lt, ok := o.Operand(0).Type.(*ssa.ListType); ok {
				r.Type = generalType(lt.Elem)
			}
		}
	}
	b := s.scratchBlock()
	defer b.Clear()
	l := aten.NewLowering(s.opts.Table, s.opts.Opset, onnx.Builder{Eval: kernel.Eval, Block: b, Loc: o.Loc, FoldLimit: foldElems}, func(v *ssa.Value) *ssa.Value {
		return placeholder(b, v)
	})
	vs, err := l.Lower(o)
	if err != nil {
		if err.ID != "unknown-shape" && err.ID != "unknown-dtype" {
			s.causes = append(s.causes, diag.Diagnostic{ID: err.ID, Loc: o.Loc, Op: string(o.Kind), Message: err.Message, Hint: err.Hint, Opset: err.Opset})
		}
		s.rankNeeded = s.rankNeeded || err.ID == "unknown-shape" && len(s.openRanks) > 0
		return o.Results
	}
	if len(o.Results) == 1 {
		if lt, ok := o.Results[0].Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) != nil {
			return s.inferList(o, vs)
		}
	}
	if len(vs) != len(o.Results) {
		s.fail("internal", "the lowering gives %d results, the schema %d", len(vs), len(o.Results))
	}
	folded := make([]*ssa.Value, len(vs))
	all := s.foldable(o)
	for i, v := range vs {
		if v == nil {
			all = false
			continue
		}
		r := o.Results[i]
		r.Sym = v.Sym
		if ssa.AsTensor(r.Type) != nil {
			if t := v.Tensor(); t != nil {
				r.Type = t
			}
		}
		t := onnx.ConstOf(v)
		if t == nil || !t.HasData() || t.NumElements() > foldElems {
			all = false
			continue
		}
		if all {
			folded[i] = s.foldedConstant(r.Type, t)
			all = folded[i] != nil
		}
	}
	if all {
		o.Erase()
		return folded
	}
	return o.Results
}

// foldable keeps random operators from being folded, and weights that are to stay what they are.
func (s *builder) foldable(o *ssa.Op) bool {
	if s.m.Effects(o)&(ssa.Random|ssa.Unknown) != 0 {
		return false
	}
	if !s.opts.KeepWeights {
		return true
	}
	for _, v := range o.Operands() {
		if v != nil && v.Name != "" && v.DType().IsFloat() && v.Def() != nil && v.Def().Kind == prim.Constant {
			return false
		}
	}
	return true
}

func (s *builder) foldedConstant(t ssa.Type, c *tensor.Tensor) *ssa.Value {
	if ssa.AsTensor(t) != nil {
		return s.constant(ssa.TensorValue(c))
	}
	if l, ok := scalarLiteral(t, c); ok {
		return s.constant(l)
	}
	return nil
}

func scalarLiteral(t ssa.Type, c *tensor.Tensor) (ssa.Literal, bool) {
	if lt, ok := t.(*ssa.ListType); ok {
		switch {
		case lt.Elem == ssa.IntType && c.DType.IsInt():
			return ssa.Ints(c.Int64s()...), true
		case lt.Elem == ssa.FloatType && c.DType.IsFloat():
			return ssa.Floats(c.Float64s()...), true
		}
		return ssa.None, false
	}
	if c.NumElements() != 1 || c.DType.IsComplex() || c.DType == tensor.String {
		return ssa.None, false
	}
	switch {
	case t == ssa.IntType || t == ssa.NumberType && c.DType.IsInt():
		return ssa.Int(c.Int64s()[0]), true
	case t == ssa.FloatType || t == ssa.NumberType && c.DType.IsFloat():
		return ssa.Float(c.Float64s()[0]), true
	case t == ssa.BoolType || t == ssa.NumberType && c.DType == tensor.Bool:
		return ssa.Bool(c.Int64s()[0] != 0), true
	}
	return ssa.None, false
}

// inferList splits a result list of known length into values of their own.
func (s *builder) inferList(o *ssa.Op, vs []*ssa.Value) []*ssa.Value {
	if len(vs) == 1 {
		if _, ok := vs[0].Type.(*ssa.ListType); ok {
			o.Results[0].Type = vs[0].Type
			return o.Results // a sequence: its length is not known
		}
	}
	types := make([]ssa.Type, len(vs))
	for i, v := range vs {
		types[i] = v.Type
	}
	u := s.cur.Append("prim::ListUnpack", o.Loc, []*ssa.Value{o.Results[0]}, types...)
	for i, v := range vs {
		u.Results[i].Sym = v.Sym
	}
	return u.Results
}

// placeholder stands for a source value in scratch code: tensors for
// themselves, numbers as rank 0 tensors, lists of numbers as rank 1 tensors.
func placeholder(b *ssa.Block, v *ssa.Value) *ssa.Value {
	if v.Tensor() != nil {
		return v
	}
	var t ssa.Type
	switch vt := v.Type.(type) {
	case ssa.Basic:
		switch vt {
		case ssa.IntType:
			t = ssa.Tensor(tensor.Int64)
		case ssa.FloatType, ssa.NumberType:
			t = ssa.Tensor(tensor.Float64)
		case ssa.BoolType:
			t = ssa.Tensor(tensor.Bool)
		default:
			return nil
		}
	case *ssa.ListType:
		d := map[ssa.Type]tensor.DType{ssa.IntType: tensor.Int64, ssa.FloatType: tensor.Float64, ssa.BoolType: tensor.Bool}[basicOf(vt.Elem)]
		switch {
		case ssa.AsTensor(vt.Elem) != nil:
			t = vt
		case d == tensor.Undefined:
			return nil
		case v.Sym != nil:
			t = ssa.Tensor(d, sym.Const(int64(len(v.Sym))))
		default:
			t = ssa.Tensor(d, b.Func().Module().FreshSymbol("len", 0))
		}
	default:
		return nil
	}
	o := b.InsertBefore(b.First(), "prim::Placeholder", 0, nil, t)
	o.Results[0].Sym = v.Sym
	return o.Results[0]
}

func basicOf(t ssa.Type) ssa.Type {
	if b, ok := t.(ssa.Basic); ok {
		return b
	}
	return ssa.NoneType
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

// fromLiteral makes a program value of a constant; containers become mutable.
func (s *module) fromLiteral(l ssa.Literal, t ssa.Type) py.Value {
	switch l.Kind {
	case ssa.TensorLit:
		if r := s.weights[l.Tensor]; r != nil {
			return r
		}
		var r *py.Tensor
		s.heap.AsBefore(func() { r = s.heap.Laid(s.build.constant(l), ssa.Sizes(l.Tensor.Strides)) })
		heap.ViewOf(r).Storage.Origin = "parameter"
		s.weights[l.Tensor] = r
		s.shareMemory(l.Tensor, heap.ViewOf(r).Storage)
		return r
	case ssa.ListLit:
		elem := l.Elem
		if lt, ok := t.(*ssa.ListType); ok {
			elem = lt.Elem
		}
		elems := make([]py.Value, len(l.Elems))
		for i, e := range l.Elems {
			elems[i] = s.fromLiteral(e, elem)
		}
		return s.heap.List(elem, elems)
	case ssa.TupleLit:
		tt, _ := t.(*ssa.TupleType)
		elems := make([]py.Value, len(l.Elems))
		for i, e := range l.Elems {
			elems[i] = s.fromLiteral(e, py.MemberType(t, i))
		}
		return &py.Tuple{Elems: elems, Typ: tt}
	case ssa.DictLit:
		d := &py.DictState{}
		for i := 0; i+1 < len(l.Elems); i += 2 {
			d.Keys = append(d.Keys, l.Elems[i])
			d.Vals = append(d.Vals, s.fromLiteral(l.Elems[i+1], py.MemberType(t, 1)))
		}
		return &py.Dict{Cell: s.heap.New(d), Typ: t}
	case ssa.ObjectLit:
		return s.object(l.Object)
	}
	return py.Of(l)
}

// shareMemory links weights whose elements overlap in the file: what is written
// to one would be seen through the other.
func (s *module) shareMemory(t *tensor.Tensor, st *heap.Storage) {
	if t.Storage == nil {
		return
	}
	if s.shared == nil {
		s.shared = map[*tensor.Storage][]overlap{}
	}
	size := int64(max(t.DType.Size(), 1))
	o := overlap{st: st, from: t.Offset * size, to: (t.Offset + 1) * size}
	for i, n := range t.Shape {
		if n == 0 {
			return
		}
		o.to += (n - 1) * t.Strides[i] * size
	}
	for _, p := range s.shared[t.Storage] {
		if p.from < o.to && o.from < p.to {
			s.heap.Peer(p.st, st)
		}
	}
	s.shared[t.Storage] = append(s.shared[t.Storage], o)
}

// overlap is the range of bytes that a weight may have in a storage of the file.
type overlap struct {
	st       *heap.Storage
	from, to int64
}

// object is the one program object for a module object.
func (s *module) object(o *ssa.Object) *py.Object {
	x := s.objects[o]
	if x == nil {
		x = &py.Object{Class: o.Class, Path: o.Path, Src: o, Attrs: map[string]*journal.Cell{}}
		s.objects[o] = x
	}
	return x
}

// attr is the cell of an attribute.
func (s *module) attr(o *py.Object, name string) *journal.Cell {
	if c := o.Attrs[name]; c != nil {
		return c
	}
	if o.Src == nil {
		c := s.heap.New(nil)
		o.Attrs[name] = c
		return c
	}
	s.heap.AsBefore(func() { o.Attrs[name] = s.stateAttr(o, name) })
	return o.Attrs[name]
}

// stateAttr is the cell of an attribute that the module has in its file.
func (s *module) stateAttr(o *py.Object, name string) *journal.Cell {
	l, ok := o.Src.Get(name)
	if !ok {
		s.fail("attribute", "an object of class %s has no attribute %q", o.Class, name)
	}
	v := s.fromLiteral(l, nil)
	if t, ok := v.(*py.Tensor); ok && t.Val.Name == "" && t.Val.Def() != nil {
		t.Val.Name = joinPath(o.Path, name)
		heap.ViewOf(t).Storage.Name = t.Val.Name
	}
	return s.heap.New(v)
}
