package specialize

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/internal/python"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// queries are questions about values and the environment, and operators that the environment gives their meaning.
var queries map[ssa.Kind]handler

// tensorQueries are questions about a tensor, their first argument, that are answered at export where its type says so.
var tensorQueries map[ssa.Kind]handler

// tensorQuery is the handler of a question about a tensor, nil for other operators.
func tensorQuery(k ssa.Kind) handler {
	if aten.IsItem(k) {
		return itemOf
	}
	return tensorQueries[k]
}

func init() {
	queries = map[ssa.Kind]handler{
		"aten::is_scripting": constantly(py.Bool(true)),
		"prim::is_leaf":      constantly(py.Bool(true)),
		"aten::is_leaf":      constantly(py.Bool(true)),
		"aten::device":       device,
		"prim::device":       device,
		"aten::get_device":   constantly(py.Int(-1)),
		"prim::layout":       constantly(py.Int(0)),
		"aten::layout":       constantly(py.Int(0)),
		"prim::type":         constantly(py.String("cpu")),
		"prim::index":        constantly(py.String("cpu")),

		"aten::warn":                     dropped,
		"aten::set_grad_enabled":         dropped,
		"aten::manual_seed":              dropped,
		"aten::_log_api_usage_once":      dropped,
		"aten::_functional_assert_async": dropped,
		"aten::_assert_async":            assertAsync,

		"aten::_unwrap_optional": unwrapOptional,
		"aten::wait":             awaited,
		"prim::AutogradZero":     awaited,
		"aten::__is__":           isOp,
		"aten::__isnot__":        isOp,
		"aten::__not__": func(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
			return s.vals.scalar(o.Kind, o.Schema, args), true
		},
		"aten::broadcast_shapes":         func(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) { return s.lists.broadcastShapes(args) },
		"aten::_infer_size":              func(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) { return s.lists.broadcastShapes(args) },
		"aten::histogramdd":              func(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) { return s.histogramdd(o, args), true },
		"aten::_nested_tensor_from_mask": nestedFromMask,
		"aten::flatten":                  unflattenedOp,
		"aten::atleast_1d":               unflattenedOp,
		"aten::atleast_2d":               unflattenedOp,
		"aten::atleast_3d":               unflattenedOp,
	}
	// an exported model runs on one device, without gradients
	for _, k := range []ssa.Kind{"aten::is_grad_enabled", "aten::is_autocast_enabled", "aten::is_autocast_cpu_enabled", "prim::is_grad_enabled",
		"aten::is_nested", "prim::is_nested", "prim::requires_grad", "aten::requires_grad", "aten::retains_grad", "aten::_is_zerotensor",
		"prim::is_cuda", "prim::is_sparse", "prim::is_mkldnn", "prim::is_xpu", "prim::is_mps", "prim::is_vulkan",
		"prim::is_ipu", "prim::is_ort", "prim::is_meta", "prim::is_maia", "prim::is_mtia", "prim::is_hpu", "prim::is_sparse_csr",
		"aten::is_vulkan_available", "aten::is_conj", "aten::is_neg", "aten::is_inference", "prim::is_xla", "prim::is_nested_tensor", "aten::is_pinned"} {
		queries[k] = constantly(py.Bool(false))
	}

	tensorQueries = map[ssa.Kind]handler{
		"prim::dtype":             dtypeQuery(func(d tensor.DType) py.Value { return py.Int(int64(d.Code())) }),
		"aten::is_floating_point": dtypeQuery(func(d tensor.DType) py.Value { return py.Bool(d.IsFloat()) }),
		"prim::is_floating_point": dtypeQuery(func(d tensor.DType) py.Value { return py.Bool(d.IsFloat()) }),
		"aten::is_complex":        dtypeQuery(func(d tensor.DType) py.Value { return py.Bool(d.IsComplex()) }),
		"aten::is_signed":         dtypeQuery(func(d tensor.DType) py.Value { return py.Bool(d.IsSigned() || d.IsFloat() || d.IsComplex()) }),
		"aten::element_size":      dtypeQuery(func(d tensor.DType) py.Value { return py.Int(int64(d.Size())) }),
		"prim::itemsize":          dtypeQuery(func(d tensor.DType) py.Value { return py.Int(int64(d.Size())) }),
		"aten::itemsize":          dtypeQuery(func(d tensor.DType) py.Value { return py.Int(int64(d.Size())) }),
		"prim::is_quantized":      isQuantized,
		"aten::dim":               rankOf,
		"aten::ndimension":        rankOf,
		"prim::ndim":              rankOf,
		"aten::size":              sizesOf,
		"prim::shape":             sizesOf,
		"prim::size":              sizesOf,
		"aten::len":               tensorLen,
		"aten::numel":             numelOf,
		"aten::is_contiguous":     isContiguousOp,
		"aten::is_same_size":      isSameSize,
		"aten::stride":            strideOf,
		"aten::storage_offset":    storageOffset,
		"aten::Complex":           itemOf,
		"aten::is_nonzero":        itemOf,
	}
}

func device(_ *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if len(args) > 0 {
		if l, ok := args[0].(py.Const); ok && l.Kind == ssa.StrLit {
			return one(py.Device(l.Str()))
		}
	}
	return one(py.Device("cpu"))
}

// dropped evaluates what has no effect in a model: its results are None.
func dropped(_ *walk, o *ssa.Op, _ []py.Value) ([]py.Value, bool) {
	rs := make([]py.Value, len(o.Results))
	for i := range rs {
		rs[i] = py.None
	}
	return rs, true
}

func assertAsync(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	s.warnf("dropped-assert", "an assertion on data is left out")
	return dropped(s, o, args)
}

func unwrapOptional(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if m, ok := args[0].(*py.Maybe); ok {
		return one(m.Val)
	}
	if py.IsNone(args[0]) {
		panic(s.raised("unwrapping None"))
	}
	return one(args[0])
}

// awaited is the value of a future, which is its only argument.
func awaited(_ *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	return args, len(args) == 1
}

func isOp(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	want := o.Kind == "aten::__is__"
	m, ok := args[0].(*py.Maybe)
	if !ok || !py.IsNone(args[1]) {
		m, ok = args[1].(*py.Maybe)
		ok = ok && py.IsNone(args[0])
	}
	switch {
	case !ok:
		same := isSame(args[0], args[1])
		if !same {
			s.refuseUnlike(args[0], args[1])
		}
		if c, isConst := args[0].(py.Const); same && isConst && (c.Kind == ssa.EnumLit || c.Kind == ssa.StrLit) {
			s.fail("unsupported-value", "whether two equal constants of type %s are one object, as `is` asks, is not known; compare them with ==", c.Type())
		}
		return one(py.Bool(same == want))
	case want:
		return one(py.Dyn(s.vals.emitName("aten::__not__", m.Has)))
	}
	return one(py.Dyn(m.Has))
}

// refuseUnlike fails where two tensors that have two values here may be one object.
func (s *walk) refuseUnlike(a, b py.Value) {
	x, ok := a.(*py.Tensor)
	y, ok2 := b.(*py.Tensor)
	if ok && ok2 && heap.ViewOf(x).Storage == heap.ViewOf(y).Storage && (heap.ViewOf(x).Storage.Pool || x.Element || y.Element) {
		s.fail("alias", "whether two tensors are one object, as `is` asks, depends on data")
	}
}

// isSame decides `a is b`, of which neither is a Maybe if the other is None.
func isSame(a, b py.Value) bool {
	if py.IsNone(a) || py.IsNone(b) {
		return py.IsNone(a) && py.IsNone(b)
	}
	if la, ok := a.(py.Const); ok {
		if lb, ok := b.(py.Const); ok {
			eq, ok := python.Equal(la.Literal, lb.Literal)
			return eq && ok
		}
	}
	return py.Same(a, b)
}

// unflattenedOp gives the very same tensor where flatten or atleast_nd has nothing to do.
func unflattenedOp(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t, ok := args[0].(*py.Tensor)
	if !ok || !unflattened(o, args, s.vals.read(t).Tensor()) {
		return nil, false
	}
	return one(t)
}

// unflattened reports that flatten or atleast_nd has nothing to do.
func unflattened(o *ssa.Op, args []py.Value, t *ssa.TensorType) bool {
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
	a, ok := py.LiteralOf(args[1])
	b, ok2 := py.LiteralOf(args[2])
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

// typeOf is the type of a tensor argument, nil where its rank is not known.
func typeOf(s *walk, x py.Value) *ssa.TensorType {
	if t, ok := x.(*py.Tensor); ok {
		if tt := s.vals.read(t).Tensor(); tt != nil && tt.Ranked {
			return tt
		}
	}
	return nil
}

// dtypeQuery is a question that the dtype answers.
func dtypeQuery(answer func(tensor.DType) py.Value) handler {
	return func(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) { return one(answer(dtypeOf(s, args[0]))) }
}

func isQuantized(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	return one(py.Bool(aten.Quantized(s.vals.read(args[0].(*py.Tensor)))))
}

func dtypeOf(s *walk, x py.Value) tensor.DType {
	d := s.vals.read(x.(*py.Tensor)).DType()
	if d == tensor.Undefined {
		s.fail("unknown-dtype", "the dtype of its operand is not known")
	}
	return d
}

func rankOf(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t := typeOf(s, args[0])
	if t == nil {
		s.fail("unknown-shape", "the rank of its operand is not known")
	}
	return one(py.Int(int64(len(t.Dims))))
}

func sizesOf(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t := typeOf(s, args[0])
	if t == nil {
		return nil, false
	}
	self := args[0].(*py.Tensor)
	if len(args) == 1 {
		elems := make([]py.Value, len(t.Dims))
		for i := range elems {
			elems[i] = s.vals.size(self, i)
		}
		return one(s.heap.List(ssa.IntType, elems))
	}
	l, ok := args[1].(py.Const)
	if !ok {
		return nil, false
	}
	d, err := py.Index(l.Int(), len(t.Dims))
	if err != nil {
		panic(s.raised("dimension out of range"))
	}
	return one(s.vals.size(self, d))
}

func tensorLen(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t := typeOf(s, args[0])
	if t == nil || len(t.Dims) == 0 {
		return nil, false
	}
	return one(s.vals.size(args[0].(*py.Tensor), 0))
}

func numelOf(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t := typeOf(s, args[0])
	if t == nil {
		return nil, false
	}
	n := py.Value(py.Int(1))
	for i := range t.Dims {
		n = s.vals.intOp("mul", n, s.vals.size(args[0].(*py.Tensor), i))
	}
	return one(n)
}

func isContiguousOp(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if len(args) > 1 {
		if l, ok := args[1].(py.Const); ok && !l.IsNone() && l.Int() != 0 {
			return one(py.Bool(false))
		}
	}
	self := args[0].(*py.Tensor)
	t, st := s.vals.read(self).Tensor(), heap.ViewOf(self).Strides
	c := layout.RowMajor(t)
	if st == nil || len(c) != len(st) {
		return nil, false
	}
	all := true
	for i := range c {
		all = all && (c[i].Equal(st[i]) || t.Dims[i].Is(1))
	}
	return one(py.Bool(all))
}

func isSameSize(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	a, b := typeOf(s, args[0]), typeOf(s, args[1])
	switch {
	case a == nil || b == nil:
		return nil, false
	case len(a.Dims) != len(b.Dims):
		return one(py.Bool(false))
	case sameDims(a, b):
		return one(py.Bool(true))
	}
	return nil, false
}

// strideOf gives strides that are known; of a row-major tensor, those that its sizes make at run time too.
func strideOf(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	self := args[0].(*py.Tensor)
	st := heap.ViewOf(self).Strides
	if st == nil {
		return nil, false
	}
	dim := -1
	if len(args) == 2 {
		l, ok := args[1].(py.Const)
		if !ok {
			return nil, false
		}
		d, err := py.Index(l.Int(), len(st))
		if err != nil {
			panic(s.raised("dimension out of range"))
		}
		dim = d
	}
	c := layout.RowMajor(typeOf(s, args[0]))
	stride := func(i int) py.Value {
		if n, ok := st[i].Int(); ok {
			return py.Int(n)
		}
		if len(c) != len(st) || !c[i].Equal(st[i]) {
			if n, ok := s.views.computed(st[i], heap.ViewOf(self).Storage.State().Base); ok {
				return n
			}
			s.fail("dynamic-axis", "the stride of dimension %d depends on a dynamic axis", i)
		}
		return s.vals.sizesBehind(s.vals.read(self), i)
	}
	if dim >= 0 {
		return one(stride(dim))
	}
	ints := make([]py.Value, len(st))
	for i := range ints {
		ints[i] = stride(i)
	}
	return one(s.heap.List(ssa.IntType, ints))
}

// storageOffset is where a view begins in its memory.
func storageOffset(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t := args[0].(*py.Tensor)
	st := heap.ViewOf(t)
	if len(st.Chain) == 0 {
		return one(py.Int(0))
	}
	base, root := st.Storage.State().Base, st.Storage
	if !root.Pool && s.views.axes.IsRowMajor(root.Strides, base.Tensor()) == layout.Shares && s.vals.read(t).DType().IsComplex() == base.DType().IsComplex() {
		if at := s.views.places(st); len(at) > 0 {
			return one(py.Int(at[0]))
		}
		if e, ok := s.views.firstPlace(st); ok {
			if n, ok := s.views.computed(e, base); ok {
				return one(n)
			}
		}
	}
	if slices.ContainsFunc(st.Chain, func(step heap.Step) bool { return step.Kind == "aten::take" }) { // of as_strided: the operator looks like a copy
		s.fail("view", "where this view begins in memory is not known at export")
	}
	return nil, false // the lowering knows views that begin where their bases do
}

// itemOf turns a tensor of one element into a number: at export if it is a constant.
func itemOf(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t := args[0].(*py.Tensor)
	asIs := o.Schema == nil || o.Schema.Returns[0].Type == ssa.NumberType // a text may have operands that no declaration takes
	if c := s.vals.constTensor(t); c != nil && c.NumElements() == 1 && c.HasData() && !c.DType.IsComplex() {
		l := numberOf(c)
		if asIs {
			return one(py.Of(l))
		}
		name := o.Kind.Name()
		if name == "is_nonzero" {
			name = "Bool"
		}
		if f, ok := s.fold(name, o.Results[0].Type, l); ok {
			return one(py.Of(f))
		}
	}
	v := s.vals.read(t)
	if !asIs {
		return one(s.vals.number(s.build.emit(o.Kind, o.Schema, v)[0]))
	}
	name := "aten::Float.Tensor" // what it is at run time the dtype decides
	switch d := dtypeOf(s, t); {
	case d == tensor.Bool:
		name = "aten::Bool.Tensor"
	case d.IsInt():
		name = "aten::Int.Tensor"
	}
	return one(s.vals.number(s.vals.emitName(name, v)))
}

// numberOf is the only element of a tensor.
func numberOf(c *tensor.Tensor) ssa.Literal {
	switch {
	case c.DType == tensor.Bool:
		return ssa.Bool(c.Int64s()[0] != 0)
	case c.DType.IsInt():
		return ssa.Int(c.Int64s()[0])
	}
	return ssa.Float(c.Float64s()[0])
}
