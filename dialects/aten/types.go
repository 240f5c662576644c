package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// TypeOf is the type of the only result of an op, for the operators whose row has a rule for it. It is the type of what
// Lower builds, without building it. ok is false where that takes the lowering: the rule does not cover the case, the
// lowering would fail, or its result is a constant or an integer vector, of which more is known than the type.
func (t *Table) TypeOf(o *ssa.Op, opset int) (typ *ssa.TensorType, ok bool) {
	if len(o.Results) != 1 || ssa.AsTensor(o.Results[0].Type) == nil || o.Schema == nil {
		return nil, false
	}
	d, found := t.Lookup(o.Kind, opset)
	if !found || d.Type == nil {
		return nil, false
	}
	variable := false // an operand, and with it the result, is no constant
	for i := range o.NumOperands() {
		v := o.Operand(i)
		if v == nil {
			continue
		}
		if isComplexValue(v) {
			return nil, false
		}
		if v.Tensor() != nil {
			variable = variable || onnx.ConstOf(v) == nil
		} else if _, list := ListElems(v); list && ssa.AsTensor(elemOf(v.Type)) != nil {
			variable = true
		}
	}
	if !variable {
		return nil, false
	}
	l := &Lowering{Node: o, Opset: opset, table: t, env: noValue}
	if Try(func() { typ = d.Type(l) }) != nil {
		return nil, false // the lowering fails too, and tells why
	}
	if typ == nil || !plain(typ.DType) || typ.DType.IsInt() && len(typ.Dims) <= 1 || empty(typ.Dims) {
		return nil, false
	}
	return typ, true
}

func noValue(*ssa.Value) (*ssa.Value, *Failure) { return nil, nil }

func elemOf(t ssa.Type) ssa.Type {
	if l, ok := t.(*ssa.ListType); ok {
		return l.Elem
	}
	return nil
}

// plain reports the element types that the rules are about.
func plain(d tensor.DType) bool {
	switch d {
	case tensor.Bool, tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64:
		return true
	}
	return false
}

func empty(dims []sym.Expr) bool {
	for _, d := range dims {
		if d.Is(0) {
			return true
		}
	}
	return false
}

// typed is the type of a tensor argument of known rank, nil if it is something else or has no elements.
func (l *Lowering) typed(name string) *ssa.TensorType {
	v := l.Arg(name)
	if v == nil {
		return nil
	}
	return plainTensor(v)
}

func plainTensor(v *ssa.Value) *ssa.TensorType {
	if t := v.Tensor(); t != nil && t.Ranked && plain(t.DType) && !empty(t.Dims) {
		return t
	}
	return nil
}

// Rules of whole families. Each gives nil for what it does not cover.

// likeSelf is the rule of operators whose result has the type of self.
func likeSelf(l *Lowering) *ssa.TensorType { return l.typed("self") }

// likeNumbers is likeSelf for operators that take no bools.
func likeNumbers(l *Lowering) *ssa.TensorType {
	if t := l.typed("self"); t != nil && t.DType != tensor.Bool {
		return t
	}
	return nil
}

// likeFloats is likeSelf for operators on floats.
func likeFloats(l *Lowering) *ssa.TensorType {
	if t := l.typed("self"); t != nil && t.DType.IsFloat() {
		return t
	}
	return nil
}

// asFloats is the rule of functions of one number: integers become float32.
func asFloats(l *Lowering) *ssa.TensorType {
	if t := l.typed("self"); t != nil {
		return t.WithDType(l.floatType("self"))
	}
	return nil
}

// operandDims is the shape of a tensor argument, none for a number that is a constant; nil for anything else.
func (l *Lowering) operandDims(name string) []sym.Expr {
	v := l.Arg(name)
	if v == nil {
		return nil
	}
	if v.Tensor() == nil {
		if lit, ok := LiteralOf(v); ok && lit.IsNumber() && lit.Kind != ssa.ComplexLit {
			return []sym.Expr{}
		}
		return nil
	}
	if t := plainTensor(v); t != nil && t.Dims != nil {
		return t.Dims
	} else if t != nil {
		return []sym.Expr{}
	}
	return nil
}

// broadcastArgs is the shape of arguments broadcast together.
func (l *Lowering) broadcastArgs(names ...string) ([]sym.Expr, bool) {
	out := []sym.Expr{}
	for _, n := range names {
		dims := l.operandDims(n)
		if dims == nil {
			return nil, false
		}
		var ok bool
		if out, ok = onnx.BroadcastDims(out, dims); !ok {
			return nil, false
		}
	}
	return out, true
}

// constAlpha reports that alpha, if there is one, does not change the shape of the result.
func (l *Lowering) constAlpha() bool {
	return !l.HasArg("alpha") || l.IsConst("alpha")
}

// ofPair is the rule of arithmetic on self and other.
func ofPair(l *Lowering) *ssa.TensorType {
	d := l.argType("self", "other")
	dims, ok := l.broadcastArgs("self", "other")
	if !ok || d == tensor.Bool || !l.constAlpha() {
		return nil
	}
	return ssa.Tensor(d, dims...)
}

// ofQuotient is the rule of the exact division.
func ofQuotient(l *Lowering) *ssa.TensorType {
	if l.Str("rounding_mode") != "" {
		return nil
	}
	dims, ok := l.broadcastArgs("self", "other")
	if !ok {
		return nil
	}
	return ssa.Tensor(l.floatType("self", "other"), dims...)
}

// ofComparison is the rule of comparisons.
func ofComparison(l *Lowering) *ssa.TensorType {
	dims, ok := l.broadcastArgs("self", "other")
	if !ok {
		return nil
	}
	return ssa.Tensor(tensor.Bool, dims...)
}

// ofFill is the rule of masked_fill: self broadcast with the mask.
func ofFill(l *Lowering) *ssa.TensorType {
	x := l.typed("self")
	mask := l.typed("mask")
	dims, ok := l.broadcastArgs("mask", "value", "self")
	if x == nil || !ok || mask == nil || !isMask(mask.DType) {
		return nil
	}
	return ssa.Tensor(x.DType, dims...)
}

// ofReduction is the rule of sums and means of floats over dim.
func ofReduction(l *Lowering) *ssa.TensorType {
	x := likeFloats(l)
	if x == nil || !l.IsNone("dtype") {
		return nil
	}
	keep := l.Bool("keepdim")
	gone := make([]bool, len(x.Dims))
	for _, d := range l.Dims("dim", len(x.Dims)) {
		if len(gone) == 0 || gone[d] {
			return nil
		}
		gone[d] = true
	}
	dims := []sym.Expr{}
	for i, d := range x.Dims {
		switch {
		case !gone[i]:
			dims = append(dims, d)
		case keep:
			dims = append(dims, sym.Const(1))
		}
	}
	return ssa.Tensor(x.DType, dims...)
}

// ofProduct is the rule of products of matrices, and of batches of them, of one type of floats.
func ofProduct(l *Lowering) *ssa.TensorType {
	x, y := l.typed("self"), l.typed("other")
	if x == nil || y == nil || x.DType != y.DType || !x.DType.IsFloat() || l.HasArg("out_dtype") {
		return nil
	}
	m, n := len(x.Dims), len(y.Dims)
	if m < 2 || n < 2 || !x.Dims[m-1].Equal(y.Dims[n-2]) {
		return nil
	}
	dims, ok := onnx.BroadcastDims(x.Dims[:m-2], y.Dims[:n-2])
	if !ok {
		return nil
	}
	return ssa.Tensor(x.DType, append(dims, x.Dims[m-2], y.Dims[n-1])...)
}

// withDims is the type of self with other sizes.
func withDims(t *ssa.TensorType, dims []sym.Expr) *ssa.TensorType {
	return ssa.Tensor(t.DType, dims...)
}

// ofSwap is the rule of operators that exchange two dimensions, which are arguments.
func ofSwap(a, b string) func(*Lowering) *ssa.TensorType {
	return func(l *Lowering) *ssa.TensorType {
		x := l.typed("self")
		if x == nil || len(x.Dims) == 0 {
			return nil
		}
		dims := append([]sym.Expr(nil), x.Dims...)
		i, j := l.Dim(a, len(dims)), l.Dim(b, len(dims))
		dims[i], dims[j] = dims[j], dims[i]
		return withDims(x, dims)
	}
}

// ofPermutation is the rule of permute.
func ofPermutation(l *Lowering) *ssa.TensorType {
	x := l.typed("self")
	if x == nil || !l.IsConst("dims") {
		return nil
	}
	order := l.Ints("dims")
	if len(order) != len(x.Dims) {
		return nil
	}
	dims := make([]sym.Expr, len(order))
	taken := make([]bool, len(order))
	for i, d := range order {
		k := l.wrap(d, len(order))
		if taken[k] {
			return nil
		}
		dims[i], taken[k] = x.Dims[k], true
	}
	return withDims(x, dims)
}

// ofUnsqueeze is the rule of unsqueeze.
func ofUnsqueeze(l *Lowering) *ssa.TensorType {
	x := l.typed("self")
	if x == nil {
		return nil
	}
	at := l.wrap(l.Int("dim"), len(x.Dims)+1)
	dims := append([]sym.Expr(nil), x.Dims[:at]...)
	return withDims(x, append(append(dims, sym.Const(1)), x.Dims[at:]...))
}

// dimArg is self, of at least one dimension, and the place of the one that the argument dim names.
func (l *Lowering) dimArg() (x *ssa.TensorType, dim int) {
	if x = l.typed("self"); x == nil || len(x.Dims) == 0 {
		return nil, 0
	}
	return x, l.Dim("dim", len(x.Dims))
}

// ofSelect is the rule of select at an index that is known.
func ofSelect(l *Lowering) *ssa.TensorType {
	x, dim := l.dimArg()
	if x == nil || !l.indexFits(x.Dims[dim]) {
		return nil
	}
	dims := append([]sym.Expr(nil), x.Dims[:dim]...)
	return withDims(x, append(dims, x.Dims[dim+1:]...))
}

// indexFits reports a constant index that lies in a dimension.
func (l *Lowering) indexFits(size sym.Expr) bool {
	n, static := size.Int()
	if !static || !l.IsConst("index") {
		return false
	}
	i := l.Int("index")
	return i >= -n && i < n
}

// taken is how many indices start:end:step takes of a dimension, all constants, as Python counts them; 0 if that is
// nothing or not known.
func (l *Lowering) taken(size sym.Expr) int64 {
	n, static := size.Int()
	if !static || !l.IsConst("start") || !l.IsConst("end") || !l.IsConst("step") {
		return 0
	}
	clamp := func(i int64) int64 {
		if i < 0 {
			i += n
		}
		return min(max(i, 0), n)
	}
	s, e, k := clamp(l.IntOr("start", 0)), clamp(l.IntOr("end", toEnd)), l.IntOr("step", 1)
	if k < 1 || e <= s {
		return 0
	}
	return (e-s-1)/k + 1
}

// ofSlice is the rule of slice with bounds that are known.
func ofSlice(l *Lowering) *ssa.TensorType {
	x, dim := l.dimArg()
	if x == nil {
		return nil
	}
	n := l.taken(x.Dims[dim])
	if n == 0 {
		return nil
	}
	return withDims(x, with(x.Dims, dim, sym.Const(n)))
}

func with(dims []sym.Expr, at int, size sym.Expr) []sym.Expr {
	out := append([]sym.Expr(nil), dims...)
	out[at] = size
	return out
}

// ofNarrow is the rule of narrow with bounds that are known.
func ofNarrow(l *Lowering) *ssa.TensorType {
	x, dim := l.dimArg()
	if x == nil || !l.IsConst("start") || !l.IsConst("length") {
		return nil
	}
	n, static := x.Dims[dim].Int()
	from, length := l.Int("start"), l.Int("length")
	if !static || from < 0 || length < 1 || length > n-from {
		return nil
	}
	return withDims(x, with(x.Dims, dim, sym.Const(length)))
}

// ofSelectScatter is the rule of select_scatter with an index that is known and a source that fits.
func ofSelectScatter(l *Lowering) *ssa.TensorType {
	x, dim := l.dimArg()
	if x == nil || l.sharesMemory() || !l.indexFits(x.Dims[dim]) {
		return nil
	}
	part := append([]sym.Expr(nil), x.Dims[:dim]...)
	if !l.fits("src", append(part, x.Dims[dim+1:]...)) {
		return nil
	}
	return x
}

// ofSliceScatter is the rule of slice_scatter with bounds that are known and a source that fits.
func ofSliceScatter(l *Lowering) *ssa.TensorType {
	x, dim := l.dimArg()
	if x == nil || l.sharesMemory() {
		return nil
	}
	n := l.taken(x.Dims[dim])
	if n == 0 || !l.fits("src", with(x.Dims, dim, sym.Const(n))) {
		return nil
	}
	return x
}

// fits reports a tensor argument of exactly these sizes.
func (l *Lowering) fits(name string, dims []sym.Expr) bool {
	t := l.typed(name)
	if t == nil || len(t.Dims) != len(dims) {
		return false
	}
	for i, d := range dims {
		if !t.Dims[i].Equal(d) {
			return false
		}
	}
	return true
}

// ofIndexSelect is the rule of index_select with a vector of indices.
func ofIndexSelect(l *Lowering) *ssa.TensorType {
	x, dim := l.dimArg()
	i := l.typed("index")
	if x == nil || i == nil || len(i.Dims) != 1 || i.DType != tensor.Int64 {
		return nil
	}
	return withDims(x, with(x.Dims, dim, i.Dims[0]))
}

// ofJoin is the rule of cat of tensors of one type that differ in one dimension.
func ofJoin(l *Lowering) *ssa.TensorType {
	vs, ok := ListElems(l.must("tensors"))
	if !ok || len(vs) == 0 {
		return nil
	}
	first := plainTensor(vs[0])
	if first == nil || len(first.Dims) == 0 {
		return nil
	}
	dim := l.Dim("dim", len(first.Dims))
	dims := append([]sym.Expr(nil), first.Dims...)
	for _, v := range vs[1:] {
		t := plainTensor(v)
		if t == nil || t.DType != first.DType || len(t.Dims) != len(dims) {
			return nil
		}
		for i, d := range t.Dims {
			if i != dim && !d.Equal(dims[i]) {
				return nil
			}
		}
		dims[dim] = dims[dim].Add(t.Dims[dim])
	}
	return withDims(first, dims)
}

// ofReshape is the rule of operators that show the elements in another shape, of which all sizes are known.
func ofReshape(name string) func(*Lowering) *ssa.TensorType {
	return func(l *Lowering) *ssa.TensorType {
		x := l.typed("self")
		if x == nil || !l.HasArg(name) {
			return nil
		}
		dims := knownSizes(l.must(name))
		numel, all := sym.Const(1), sym.Const(1)
		for _, d := range x.Dims {
			numel = numel.Mul(d)
		}
		open := 0 // sizes that Reshape must find itself
		for i, d := range dims {
			n, isConst := d.Int()
			switch {
			case isConst && n < 1, !isConst && d.Min() < 1 && !(i < len(x.Dims) && d.Equal(x.Dims[i])):
				return nil
			case !isConst && !(i < len(x.Dims) && d.Equal(x.Dims[i])):
				open++
			}
			all = all.Mul(d)
		}
		if dims == nil || open > 1 || !all.Equal(numel) {
			return nil
		}
		return withDims(x, dims)
	}
}

// knownSizes are the elements of a list of ints, nil if one of them is not known, not even as an expression.
func knownSizes(v *ssa.Value) []sym.Expr {
	es, ok := ListElems(v)
	if !ok {
		lit, ok := LiteralOf(v)
		if ints, isList := lit.IntList(); ok && isList {
			return ssa.Sizes(ints)
		}
		return nil
	}
	out := make([]sym.Expr, len(es))
	for i, e := range es {
		if n, ok := ConstInt(e); ok {
			out[i] = sym.Const(n)
		} else if e != nil && e.Type == ssa.IntType && len(e.Sym) == 1 {
			out[i] = e.Sym[0]
		} else {
			return nil
		}
	}
	return out
}
