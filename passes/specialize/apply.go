package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// apply evaluates an op without blocks.
func (s *spec) apply(o *ssa.Op, args []value) []value {
	if o.Kind.Namespace() == "prim" {
		if rs, ok := s.chosen(o, args); ok {
			return rs
		}
		if rs, ok := s.prim(o, args); ok {
			return rs
		}
	}
	if rs, ok := s.chosen(o, args); ok {
		return rs
	}
	if rs, ok := s.query(o, args); ok {
		return rs
	}
	if rs, ok := s.container(o, args); ok {
		return rs
	}
	if o.Schema == nil || o.Schema.VarReturn { // prim::PythonOp has a schema that says nothing
		return s.opaque(o, args)
	}
	for i, a := range args {
		if m, ok := a.(*maybe); ok {
			_ = m
			s.fail("optional-data", "argument %q is None or not depending on data", o.Schema.Args[i].Name)
		}
	}
	s.check(o, args)
	if o.Schema.Mutates() {
		return s.inPlace(o, args)
	}
	if !tensorial(args) && !returnsTensor(o.Schema) {
		return s.scalar(o.Kind, o.Schema, args)
	}
	if o.Kind == "aten::as_strided" {
		return []value{s.asStrided(args)}
	}
	if o.Kind == "aten::squeeze" {
		if rs, ok := s.squeezed(o, args); ok {
			return rs
		}
	}
	if k := classify(o); k != notView {
		if rs := s.view(o, args, k); rs != nil {
			return rs
		}
	}
	if rs, ok := s.eachView(o, args); ok {
		return rs
	}
	vs := s.emit(o.Kind, o.Schema, s.operands(args)...)
	s.complete(o, vs)
	s.updateStatistics(o, args)
	rs := s.results(o, args, vs)
	s.mayShare(o, args, rs)
	return rs
}

// results makes program values of an op's results; a list result of known length comes as its elements.
func (s *spec) results(o *ssa.Op, args []value, vs []*ssa.Value) []value {
	if len(o.Results) == 1 {
		if lt, ok := o.Results[0].Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) != nil {
			if len(vs) == 1 {
				if _, dyn := vs[0].Type.(*ssa.ListType); dyn {
					return []value{&list{c: s.newCell(&listState{dyn: vs[0]}), elem: lt.Elem}}
				}
			}
			elems := make([]value, len(vs))
			for i, v := range vs {
				elems[i] = s.newLaid(v, s.resultStrides(o, args, v))
			}
			return []value{s.newList(lt.Elem, elems)}
		}
	}
	out := make([]value, len(vs))
	for i, v := range vs {
		if v.Tensor() != nil {
			out[i] = s.newLaid(v, s.resultStrides(o, args, v))
			continue
		}
		out[i] = s.wrap(v)
	}
	return out
}

// opaque emits an operator without a schema, for a fall-through or a user's symbolic function.
func (s *spec) opaque(o *ssa.Op, args []value) []value {
	types := make([]ssa.Type, len(o.Results))
	for i, r := range o.Results {
		types[i] = s.declaredType(r.Type)
	}
	n := s.cur.Append(o.Kind, s.loc, s.operands(args), types...)
	n.Attrs = o.Attrs
	vs := s.infer(n)
	s.complete(o, vs)
	for _, v := range vs {
		if t := v.Tensor(); t != nil && !t.Ranked {
			s.typeless = true
		}
	}
	return s.results(o, args, vs)
}

// complete fills in the types of results that inference knows little of: what it cannot say, the program may.
// Declared sizes are those of the inputs that the program was made with, and hold for these only.
func (s *spec) complete(o *ssa.Op, vs []*ssa.Value) {
	if len(vs) != len(o.Results) {
		return
	}
	for i, r := range o.Results {
		have, want := vs[i].Tensor(), r.Tensor()
		if have == nil || want == nil || have.Ranked && have.DType != tensor.Undefined {
			continue
		}
		t := *have
		if t.DType == tensor.Undefined {
			t.DType = want.DType
		}
		if !t.Ranked && want.Ranked {
			t.Ranked, t.Dims = true, ssa.AsTensor(s.declaredType(want)).Dims
		}
		vs[i].Type = &t
	}
}

// declaredType is a type of the source program, with sizes only if they hold.
func (s *spec) declaredType(t ssa.Type) ssa.Type {
	tt, ok := t.(*ssa.TensorType)
	if !ok || !tt.Ranked || s.inputsAsDeclared() {
		return t
	}
	free := *tt
	free.Dims = make([]sym.Expr, len(tt.Dims))
	for i := range free.Dims {
		free.Dims[i] = s.m.FreshSymbol("u", 0)
	}
	return &free
}

// inputsAsDeclared reports that all inputs have the sizes that the program declares.
func (s *spec) inputsAsDeclared() bool {
	want := map[string]*ssa.TensorType{}
	for _, p := range s.src.Body.Params {
		want[argName(p.Name)] = p.Tensor()
	}
	for _, p := range s.out.Body.Params {
		have, declared := p.Tensor(), want[p.Name]
		if have == nil || declared == nil || have.Rank() != declared.Rank() || !have.Ranked {
			return false
		}
		for i := range have.Dims {
			if !have.Dims[i].Equal(declared.Dims[i]) {
				return false
			}
		}
	}
	return true
}

func returnsTensor(schema *ssa.Schema) bool {
	for _, r := range schema.Returns {
		t := r.Type
		if lt, ok := t.(*ssa.ListType); ok {
			t = lt.Elem
		}
		if ssa.AsTensor(t) != nil {
			return true
		}
	}
	return false
}

// tensorial reports that a tensor is among the values.
func tensorial(args []value) bool {
	for _, a := range args {
		switch a := a.(type) {
		case *tensorRef:
			return true
		case *list:
			st := a.state()
			if st.dyn != nil || tensorial(st.elems) {
				return true
			}
		case *tuple:
			if tensorial(a.elems) {
				return true
			}
		}
	}
	return false
}

func (s *spec) prim(o *ssa.Op, args []value) ([]value, bool) {
	one := func(v value) ([]value, bool) { return []value{v}, true }
	switch o.Kind {
	case "prim::Constant":
		l, ok := o.Attr("value")
		if !ok {
			if n, ok := o.Attr("name"); ok {
				l = ssa.FuncName(n.Str())
			}
		}
		if l.Kind == ssa.TensorLit {
			fresh := s.weights[l.Tensor] == nil
			v := s.fromLiteral(l, o.Results[0].Type)
			t := v.(*tensorRef)
			if fresh && o.Results[0].Name != "" && t.val.Name == "" {
				n := o.Results[0].Name
				if !s.names[n] {
					s.names = addName(s.names, n)
					t.val.Name = n
				}
				t.state().st.name = n
				if d := t.val.Def(); d.Loc == 0 {
					d.Loc = o.Loc
				}
			}
			return one(v)
		}
		return one(s.fromLiteral(l, o.Results[0].Type))
	case "prim::ListConstruct":
		lt, _ := o.Results[0].Type.(*ssa.ListType)
		elem := ssa.Type(ssa.AnyType)
		if lt != nil {
			elem = lt.Elem
		}
		return one(s.newList(elem, args))
	case "prim::TupleConstruct":
		tt, _ := o.Results[0].Type.(*ssa.TupleType)
		return one(&tuple{elems: args, typ: tt})
	case "prim::DictConstruct":
		d := &dictState{}
		for i := 0; i+1 < len(args); i += 2 {
			d = d.with(s.key(args[i]), args[i+1])
		}
		return one(&dict{c: s.newCell(d), typ: o.Results[0].Type})
	case "prim::ListUnpack", "prim::TupleUnpack":
		if m, ok := args[0].(*maybe); ok {
			args[0] = m.val
		}
		switch x := args[0].(type) {
		case *tuple:
			return x.elems, true
		case *list:
			st := x.state()
			if st.dyn == nil {
				if len(st.elems) != len(o.Results) {
					panic(raised{s.loc, "wrong number of values to unpack"})
				}
				return st.elems, true
			}
			out := make([]value, len(o.Results))
			for i := range out {
				out[i] = s.getItem(x, ssa.Int(int64(i)))
			}
			return out, true
		}
		s.fail("unsupported-value", "cannot unpack")
	case "prim::ConstantChunk", "prim::ConstantSplit":
		return s.constantParts(o, args), true
	case "prim::TupleIndex":
		t, ok := args[0].(*tuple)
		l, ok2 := args[1].(ssa.Literal)
		if !ok || !ok2 {
			s.fail("unsupported-value", "a tuple index must be constant")
		}
		i := l.Int()
		if i < 0 {
			i += int64(len(t.elems))
		}
		if i < 0 || i >= int64(len(t.elems)) {
			panic(raised{s.loc, "tuple index out of range"})
		}
		return one(t.elems[i])
	case "prim::TupleSlice":
		t := args[0].(*tuple)
		lo, hi, _ := sliceBounds(int64(len(t.elems)), o.AttrInt("beg", 0), o.AttrInt("end", int64(len(t.elems))))
		return one(&tuple{elems: t.elems[lo:hi]})
	case "prim::GetAttr":
		x, ok := args[0].(*object)
		if !ok {
			s.fail("attribute", "GetAttr on something that is not an object")
		}
		v := s.attr(x, o.AttrStr("name", "")).content
		if v == nil {
			s.fail("attribute", "attribute %q is read before it is set", o.AttrStr("name", ""))
		}
		return one(v)
	case "prim::SetAttr":
		x, ok := args[0].(*object)
		if !ok {
			s.fail("attribute", "SetAttr on something that is not an object")
		}
		name := o.AttrStr("name", "")
		if x.src == nil && x.attrs[name] == nil {
			x.attrs[name] = s.newCell(nil)
		}
		if x.src != nil {
			c := s.attr(x, name)
			s.noteState(joinPath(x.path, name), func(*spec) value { return c.content })
		}
		s.set(s.attr(x, name), args[1])
		return nil, true
	case "prim::CreateObject":
		c, _ := o.Results[0].Type.(*ssa.ClassType)
		x := &object{attrs: map[string]*cell{}}
		if c != nil {
			x.class = c.Name
		}
		return one(x)
	case "prim::RaiseException":
		msg := "an exception"
		if l, ok := args[0].(ssa.Literal); ok && l.Kind == ssa.StrLit {
			msg = l.Str()
		}
		panic(raised{s.loc, msg})
	case "prim::Print":
		return nil, true
	case "prim::Uninitialized":
		return one(unset{})
	case "prim::unchecked_cast", "prim::unchecked_unwrap_optional":
		if m, ok := args[0].(*maybe); ok {
			return one(m.val)
		}
		return one(args[0])
	case "prim::isinstance":
		var types []ssa.Type
		if l, ok := o.Attr("types"); ok {
			for _, e := range l.Elems {
				types = append(types, e.Elem)
			}
		}
		for _, t := range types {
			if s.instance(args[0], t, o.Operand(0).Type) {
				return one(ssa.Bool(true))
			}
		}
		return one(ssa.Bool(false))
	case "prim::Enter", "prim::Exit":
		if len(o.Results) == 0 {
			return nil, true
		}
		return one(args[0])
	case "prim::EnumName":
		l := args[0].(ssa.Literal)
		n := l.Str()
		for i := len(n) - 1; i >= 0; i-- {
			if n[i] == '.' {
				n = n[i+1:]
				break
			}
		}
		return one(ssa.Str(n))
	case "prim::EnumValue":
		l := args[0].(ssa.Literal)
		return one(s.fromLiteral(l.Elems[0], o.Results[0].Type))
	case "prim::tolist":
		return one(s.toList(args[0], o.Results[0].Type))
	case "prim::data":
		if t, ok := args[0].(*tensorRef); ok {
			return one(s.newView(t.state().st, t.state().chain, t.state().strides, t.base, t.val))
		}
	case "prim::NumToTensor":
		if l, ok := args[0].(ssa.Literal); ok {
			return one(s.newTensor(s.constant(ssa.TensorValue(numberTensor(l)))))
		}
	case "prim::min", "prim::max", "prim::abs":
		if !tensorial(args) {
			if len(args) == 1 && o.Kind != "prim::abs" {
				if l, ok := args[0].(*list); ok && l.state().dyn == nil && len(l.state().elems) > 0 {
					best := l.state().elems[0]
					two := aten.SchemaByName(string(o.Kind) + ".int")
					for _, e := range l.state().elems[1:] {
						best = s.scalar(o.Kind, two, []value{best, e})[0]
					}
					return one(best)
				}
			}
			return s.scalar(o.Kind, o.Schema, args), true
		}
	case "prim::rangelist":
		if l, ok := args[0].(ssa.Literal); ok {
			var es []value
			for i := range l.Int() {
				es = append(es, ssa.Int(i))
			}
			return one(s.newList(ssa.IntType, es))
		}
	case "prim::CallFunction":
		l, ok := args[0].(ssa.Literal)
		if !ok || l.Kind != ssa.FuncLit {
			s.fail("unsupported-value", "the function that is called is not known")
		}
		return one(s.call(l.Str(), args[1:]))
	case "prim::CallMethod":
		x, ok := args[0].(*object)
		if !ok {
			s.fail("unsupported-value", "a method of a value that is no object")
		}
		return one(s.call(x.class+"."+o.AttrStr("name", ""), args))
	}
	return nil, false
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// numberTensor is prim::NumToTensor: an int is Long, a float Double, a bool Bool.
func numberTensor(l ssa.Literal) *tensor.Tensor {
	switch l.Kind {
	case ssa.FloatLit:
		return tensor.FromFloats(tensor.Float64, []int64{}, []float64{l.Float()})
	case ssa.BoolLit:
		return tensor.FromInts(tensor.Bool, []int64{}, []int64{l.Int()})
	case ssa.ComplexLit:
		return tensor.Of(tensor.Complex128, []int64{}, []complex128{l.Complex()})
	}
	return tensor.ScalarInt(l.Int())
}

// instance decides isinstance(x, t); declared is the static type of x.
func (s *spec) instance(x value, t, declared ssa.Type) bool {
	switch x := x.(type) {
	case ssa.Literal:
		if x.IsNone() {
			return t == ssa.NoneType
		}
		switch tt := t.(type) {
		case ssa.Basic:
			return x.Type() == tt || tt == ssa.NumberType && x.IsNumber()
		case *ssa.EnumType, *ssa.ClassType:
			return x.Type().String() == t.String() || x.Kind == ssa.EnumLit
		}
	case *ssa.Value:
		return x.Type == t
	case *tensorRef:
		return ssa.AsTensor(t) != nil
	case *list:
		if lt, ok := t.(*ssa.ListType); ok {
			if x.elem == nil || x.elem == ssa.AnyType {
				return ssa.SameType(declared, t)
			}
			return ssa.SameType(generalType(x.elem), lt.Elem)
		}
		return t == ssa.AnyListType
	case *tuple:
		if tt, ok := t.(*ssa.TupleType); ok {
			if x.typ != nil && x.typ.Name != "" || tt.Name != "" {
				return x.typ != nil && x.typ.Name == tt.Name
			}
			if len(tt.Elems) != len(x.elems) {
				return false
			}
			for i, e := range x.elems {
				if !s.instance(e, tt.Elems[i], ssa.AnyType) {
					return false
				}
			}
			return true
		}
		return t == ssa.AnyTupleType
	case *dict:
		if dt, ok := t.(*ssa.DictType); ok {
			xt, ok := x.typ.(*ssa.DictType)
			return !ok || ssa.SameType(xt, dt)
		}
	case *object:
		return t.String() == x.class
	case *maybe:
		s.fail("optional-data", "isinstance depends on data")
	}
	return false
}

// query answers questions about tensors and the environment that are known at export.
func (s *spec) query(o *ssa.Op, args []value) ([]value, bool) {
	one := func(v value) ([]value, bool) { return []value{v}, true }
	var t *tensorRef
	if len(args) > 0 {
		t, _ = args[0].(*tensorRef)
	}
	typ := func() *ssa.TensorType { return s.read(t).Tensor() }
	switch o.Kind {
	case "aten::is_grad_enabled", "aten::is_autocast_enabled", "aten::is_autocast_cpu_enabled", "prim::is_grad_enabled", "aten::is_nested", "prim::is_nested",
		"prim::requires_grad", "prim::is_cuda", "prim::is_sparse", "prim::is_mkldnn", "prim::is_quantized", "prim::is_xpu", "prim::is_mps", "prim::is_vulkan",
		"prim::is_ipu", "prim::is_ort", "prim::is_meta", "prim::is_maia", "prim::is_mtia", "prim::is_hpu", "prim::is_sparse_csr", "aten::is_vulkan_available", "aten::is_conj", "aten::is_neg", "aten::is_inference",
		"prim::is_xla", "prim::is_nested_tensor", "aten::is_pinned":
		return one(ssa.Bool(false))
	case "aten::requires_grad", "aten::retains_grad", "aten::_is_zerotensor":
		return one(ssa.Bool(false))
	case "aten::is_scripting", "prim::is_leaf", "aten::is_leaf":
		return one(ssa.Bool(true))
	case "aten::device", "prim::device", "aten::get_device":
		if o.Kind == "aten::get_device" {
			return one(ssa.Int(-1))
		}
		if l, ok := args[0].(ssa.Literal); ok && l.Kind == ssa.StrLit {
			return one(ssa.Device(l.Str()))
		}
		return one(ssa.Device("cpu"))
	case "prim::layout", "aten::layout":
		return one(ssa.Int(0))
	case "prim::type", "prim::index":
		return one(ssa.Str("cpu"))
	case "aten::warn", "aten::set_grad_enabled", "aten::manual_seed", "aten::_assert_async", "aten::_log_api_usage_once", "aten::_functional_assert_async":
		if o.Kind == "aten::_assert_async" {
			s.warnf("dropped-assert", "an assertion on data is left out")
		}
		if len(o.Results) == 0 {
			return nil, true
		}
		rs := make([]value, len(o.Results))
		for i := range rs {
			rs[i] = ssa.None
		}
		return rs, true
	case "aten::_unwrap_optional":
		if m, ok := args[0].(*maybe); ok {
			return one(m.val)
		}
		if isNone(args[0]) {
			panic(raised{s.loc, "unwrapping None"})
		}
		return one(args[0])
	case "aten::flatten", "aten::atleast_1d", "aten::atleast_2d", "aten::atleast_3d":
		if t != nil && s.unflattened(o, args, s.read(t).Tensor()) {
			return one(t) // the very same tensor
		}
	case "aten::histogramdd":
		return s.histogramdd(o, args), true
	case "aten::wait", "prim::AutogradZero":
		if len(args) == 1 {
			return one(args[0])
		}
	case "aten::__is__", "aten::__isnot__":
		is, known := s.is(args[0], args[1])
		want := o.Kind == "aten::__is__"
		if known {
			return one(ssa.Bool(is == want))
		}
		m, _ := args[0].(*maybe)
		if m == nil {
			m, _ = args[1].(*maybe)
		}
		if want {
			return one(s.emitName("aten::__not__", m.has))
		}
		return one(m.has)
	case "aten::__not__":
		return s.scalar(o.Kind, o.Schema, args), true
	case "aten::broadcast_shapes", "aten::_infer_size":
		return s.broadcastShapes(args)
	}
	if t == nil {
		return nil, false
	}
	dtype := func() tensor.DType {
		d := s.read(t).DType()
		if d == tensor.Undefined {
			s.fail("unknown-dtype", "the dtype of its operand is not known")
		}
		return d
	}
	switch o.Kind {
	case "prim::dtype":
		return one(ssa.Int(int64(dtype().Code())))
	case "aten::is_floating_point", "prim::is_floating_point":
		return one(ssa.Bool(dtype().IsFloat()))
	case "aten::is_complex":
		return one(ssa.Bool(dtype().IsComplex()))
	case "aten::is_signed":
		d := dtype()
		return one(ssa.Bool(d.IsSigned() || d.IsFloat() || d.IsComplex()))
	case "aten::element_size", "prim::itemsize", "aten::itemsize":
		return one(ssa.Int(int64(dtype().Size())))
	case "aten::dim", "aten::ndimension", "prim::ndim":
		if tt := typ(); tt != nil && tt.Ranked {
			return one(ssa.Int(int64(len(tt.Dims))))
		}
		s.fail("unknown-shape", "the rank of its operand is not known; give the inputs' shapes, such as --input 'x:f32[N,3]'")
	case "aten::size", "prim::shape", "aten::sym_size", "prim::size":
		tt := typ()
		if tt == nil || !tt.Ranked {
			return nil, false
		}
		if len(args) == 1 {
			elems := make([]value, len(tt.Dims))
			for i := range elems {
				elems[i] = s.size(t, i)
			}
			return one(s.newList(ssa.IntType, elems))
		}
		l, ok := args[1].(ssa.Literal)
		if !ok {
			return nil, false
		}
		d := l.Int()
		if d < 0 {
			d += int64(len(tt.Dims))
		}
		if d < 0 || d >= int64(len(tt.Dims)) {
			panic(raised{s.loc, "dimension out of range"})
		}
		return one(s.size(t, int(d)))
	case "aten::len":
		if tt := typ(); tt != nil && tt.Ranked && len(tt.Dims) > 0 {
			return one(s.size(t, 0))
		}
	case "aten::numel", "aten::sym_numel":
		if tt := typ(); tt != nil && tt.Ranked {
			n := value(ssa.Int(1))
			for i := range tt.Dims {
				n = s.intOp("mul", n, s.size(t, i))
			}
			return one(n)
		}
	case "aten::is_contiguous":
		st := t.state().strides
		if len(args) > 1 {
			if l, ok := args[1].(ssa.Literal); ok && !l.IsNone() && l.Int() != 0 {
				return one(ssa.Bool(false))
			}
		}
		if c := contiguous(s.read(t)); st != nil && len(c) == len(st) {
			all := true
			for i := range c {
				all = all && (c[i].Equal(st[i]) || typ().Dims[i].Is(1))
			}
			return one(ssa.Bool(all))
		}
	case "aten::is_same_size":
		if u, ok := args[1].(*tensorRef); ok {
			a, b := typ(), s.read(u).Tensor()
			if a != nil && b != nil && a.Ranked && b.Ranked {
				if len(a.Dims) != len(b.Dims) {
					return one(ssa.Bool(false))
				}
				if sameDims(a, b) {
					return one(ssa.Bool(true))
				}
			}
		}
	case "aten::stride", "aten::sym_stride":
		if st := t.state().strides; st != nil {
			ints := make([]value, len(st))
			for i, e := range st {
				n, ok := e.Int()
				if !ok {
					s.fail("dynamic-axis", "the stride of dimension %d depends on a dynamic axis", i)
				}
				ints[i] = ssa.Int(n)
			}
			if len(args) == 2 {
				if l, ok := args[1].(ssa.Literal); ok {
					d := l.Int()
					if d < 0 {
						d += int64(len(ints))
					}
					return one(ints[d])
				}
			}
			return one(s.newList(ssa.IntType, ints))
		}
	case "aten::storage_offset":
		if len(t.state().chain) == 0 {
			return one(ssa.Int(0))
		}
	case "aten::item", "aten::Int", "aten::Float", "aten::Bool", "aten::IntImplicit", "aten::FloatImplicit", "aten::ScalarImplicit", "aten::Complex", "aten::_local_scalar_dense", "aten::is_nonzero":
		if c := s.constTensor(t); c != nil && c.NumElements() == 1 && c.HasData() && !c.DType.IsComplex() {
			var l ssa.Literal
			switch {
			case c.DType == tensor.Bool:
				l = ssa.Bool(c.Int64s()[0] != 0)
			case c.DType.IsInt():
				l = ssa.Int(c.Int64s()[0])
			default:
				l = ssa.Float(c.Float64s()[0])
			}
			name := o.Kind.Name()
			if name == "item" || name == "_local_scalar_dense" {
				return one(l)
			}
			if name == "is_nonzero" {
				name = "Bool"
			}
			if f, ok := s.foldUnary(name, o.Results[0].Type, l); ok {
				return one(f)
			}
		}
		// what it is at run time the dtype decides
		v := s.read(t)
		if o.Kind == "aten::item" || o.Kind == "aten::ScalarImplicit" || o.Kind == "aten::_local_scalar_dense" {
			name := "aten::Float.Tensor"
			switch d := dtype(); {
			case d == tensor.Bool:
				name = "aten::Bool.Tensor"
			case d.IsInt():
				name = "aten::Int.Tensor"
			}
			return one(s.number(s.emitName(name, v)))
		}
		return one(s.number(s.emit(o.Kind, o.Schema, v)[0]))
	}
	return nil, false
}

// unflattened reports that flatten or atleast_nd has nothing to do.
func (s *spec) unflattened(o *ssa.Op, args []value, t *ssa.TensorType) bool {
	if t == nil || !t.Ranked {
		return false
	}
	rank := int64(len(t.Dims))
	switch o.Kind {
	case "aten::atleast_1d":
		return rank >= 1
	case "aten::atleast_2d":
		return rank >= 2
	case "aten::atleast_3d":
		return rank >= 3
	}
	if o.Schema == nil || o.Schema.Arg("start_dim") != 1 || len(args) < 3 {
		return false
	}
	a, ok := s.literalOf(args[1])
	b, ok2 := s.literalOf(args[2])
	if !ok || !ok2 || rank == 0 {
		return false
	}
	wrap := func(d int64) int64 {
		if d < 0 {
			return d + rank
		}
		return d
	}
	return wrap(a.Int()) == wrap(b.Int())
}

// number gives an emitted int a symbol of its own, so that equal ones compare equal.
func (s *spec) number(v *ssa.Value) value {
	if v.Type == ssa.IntType && v.Sym == nil {
		v.Sym = []sym.Expr{s.m.FreshSymbol("n", minInt)}
	}
	return s.wrap(v)
}

// size is one size of a tensor.
func (s *spec) size(t *tensorRef, i int) value {
	v := s.read(t)
	e := v.Tensor().Dims[i]
	if n, ok := e.Int(); ok {
		return ssa.Int(n)
	}
	r := s.emitName("aten::size.int", v, i)
	r.Sym = []sym.Expr{e}
	return r
}

// is decides `a is b`; known is false if it depends on data.
func (s *spec) is(a, b value) (is, known bool) {
	if m, ok := a.(*maybe); ok && isNone(b) {
		_ = m
		return false, false
	}
	if m, ok := b.(*maybe); ok && isNone(a) {
		_ = m
		return false, false
	}
	if isNone(a) || isNone(b) {
		return isNone(a) && isNone(b), true
	}
	if la, ok := a.(ssa.Literal); ok {
		if lb, ok := b.(ssa.Literal); ok {
			eq, ok := literalEq(la, lb)
			return eq && ok, true
		}
	}
	return same(a, b), true
}

// maxCalls bounds the depth of calls.
const maxCalls = 200

// call evaluates a function of the module on the given arguments.
func (s *spec) call(name string, args []value) value {
	f := s.m.Func(name)
	if f == nil {
		s.fail("missing-function", "%s is not in the model", name)
	}
	if len(args) != len(f.Body.Params) || f.Body.NumReturns() != 1 {
		s.fail("internal", "%s is called with %d arguments", name, len(args))
	}
	if s.calls++; s.calls > maxCalls {
		s.fail("recursion", "calls are nested too deeply at %s", name)
	}
	env := s.env
	s.env = make([]value, f.NumValues())
	for i, p := range f.Body.Params {
		s.put(p, args[i])
	}
	s.block(f.Body)
	r := s.get(f.Body.Return(0))
	s.env = env
	s.calls--
	return r
}
