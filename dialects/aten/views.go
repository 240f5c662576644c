package aten

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// views holds operators that show the elements of one tensor in another shape
// or order (ATen/native/TensorShape.cpp).
var views = Defs{
	"aten::view":                 {Doc: "the elements in another shape, or, for a dtype, their bits in another type", Gradient: "self: reshape(grad, size(self))", Nature: Reshapes, Complex: complexView, Type: ofReshape("size"), Lower: lowerView},
	"aten::view_copy":            {Doc: "view", Nature: Reshapes, Layout: RowMajor, Complex: complexView, Type: ofReshape("size"), Lower: lowerView},
	"aten::_reshape_from_tensor": {Doc: "the elements in the shape that a tensor holds", Lower: func(l *Lowering) *ssa.Value { return l.reshapeInto(l.Tensor("self"), l.sizes("shape")) }},
	"aten::reshape":              {Doc: "the elements in another shape", Gradient: "self: reshape(grad, size(self))", Nature: Reshapes, View: ViewIfStrides, Layout: RowMajor, Type: ofReshape("shape"), Lower: func(l *Lowering) *ssa.Value { return l.reshapeInto(l.Tensor("self"), l.sizes("shape")) }},
	"aten::_unsafe_view":         {Doc: "view", Nature: Reshapes, View: AlwaysView, Type: ofReshape("size"), Lower: lowerView},
	"aten::_reshape_copy":        {Doc: "view", Nature: Reshapes, Lower: lowerView},
	"aten::_reshape_alias":       {Doc: "view with given strides, which do not show", Nature: Reshapes, Lower: lowerView},
	"aten::view_as":              {Doc: "self in the shape of other", Gradient: "self: reshape(grad, size(self)); other: 0", Nature: Reshapes, Lower: lowerViewAs},
	"aten::reshape_as":           {Doc: "self in the shape of other", Gradient: "self: reshape(grad, size(self)); other: 0", Nature: Reshapes, View: ViewIfStrides, Layout: RowMajor, Lower: lowerViewAs},
	"aten::flatten":              {Doc: "merges the dimensions start_dim to end_dim", Gradient: "self: reshape(grad, size(self))", Nature: Reshapes, View: ViewIfStrides, Layout: RowMajor, Lower: lowerFlatten},
	"aten::ravel":                {Doc: "all elements in one dimension", Gradient: "self: reshape(grad, size(self))", Nature: Reshapes, View: ViewIfStrides, Lower: func(l *Lowering) *ssa.Value { return l.reshape(l.Tensor("self"), -1) }},
	"aten::unflatten":            {Doc: "splits a dimension into several", Gradient: "self: reshape(grad, size(self))", Nature: Reshapes, Lower: lowerUnflatten},

	"aten::squeeze":        {Doc: "removes dimensions of size 1", Gradient: "self: reshape(grad, size(self))", Nature: Reshapes, Lower: lowerSqueeze},
	"aten::squeeze_copy":   {Doc: "squeeze", Nature: Reshapes, Lower: lowerSqueeze},
	"aten::unsqueeze":      {Doc: "inserts a dimension of size 1", Gradient: "self: reshape(grad, size(self))", Nature: Reshapes, Batching: AddsDim, Type: ofUnsqueeze, Lower: lowerUnsqueeze},
	"aten::unsqueeze_copy": {Doc: "unsqueeze", Nature: Reshapes, Batching: AddsDim, Type: ofUnsqueeze, Lower: lowerUnsqueeze},
	"aten::atleast_1d":     {Doc: "at least one dimension", Nature: Reshapes, View: AlwaysView, LowerN: func(l *Lowering) []*ssa.Value { return l.atLeast(l.atLeast1) }},
	"aten::atleast_2d":     {Doc: "at least two dimensions", Nature: Reshapes, View: AlwaysView, LowerN: func(l *Lowering) []*ssa.Value { return l.atLeast(l.atLeast2) }},
	"aten::atleast_3d":     {Doc: "at least three dimensions", Nature: Reshapes, View: AlwaysView, LowerN: func(l *Lowering) []*ssa.Value { return l.atLeast(l.atLeast3) }},

	"aten::transpose":      {Doc: "exchanges two dimensions", Gradient: "self: transpose(grad, dim0, dim1)", Nature: Transposes, Type: ofSwap("dim0", "dim1"), Lower: lowerSwap("dim0", "dim1")},
	"aten::transpose_copy": {Doc: "transpose", Nature: Transposes, Type: ofSwap("dim0", "dim1"), Lower: lowerSwap("dim0", "dim1")},
	"aten::swapdims":       {Doc: "transpose", Gradient: "self: transpose(grad, dim0, dim1)", Nature: Transposes, Alias: "aten::transpose", Type: ofSwap("dim0", "dim1"), Lower: lowerSwap("dim0", "dim1")},
	"aten::swapaxes":       {Doc: "transpose", Gradient: "self: transpose(grad, axis0, axis1)", Nature: Transposes, Alias: "aten::transpose", Type: ofSwap("axis0", "axis1"), Lower: lowerSwap("axis0", "axis1")},
	"aten::t":              {Doc: "transpose of a matrix; lower ranks pass", Gradient: "self: t(grad)", Nature: Transposes, Lower: lowerT},
	"aten::t_copy":         {Doc: "t", Nature: Transposes, Lower: lowerT},
	"aten::numpy_T":        {Doc: "the dimensions in reverse order", Nature: Transposes, Lower: lowerReverseDims},
	"aten::mT":             {Doc: "exchanges the last two dimensions", Gradient: "self: transpose(grad, -2, -1)", Nature: Transposes, Batching: BatchesInFront, Lower: lowerMatrixT},
	"aten::mH":             {Doc: "mT of the conjugate", Nature: Transposes, Batching: BatchesInFront, Complex: one(complexAdjoint), Lower: lowerMatrixT},
	"aten::adjoint":        {Doc: "mT of the conjugate", Nature: Transposes, Batching: BatchesInFront, Complex: one(complexAdjoint), Lower: lowerMatrixT},
	"aten::matrix_H":       {Doc: "mT of the conjugate", Nature: Transposes, Complex: one(complexAdjoint), Lower: lowerMatrixT},
	"aten::permute":        {Doc: "the dimensions in a given order", Gradient: "self: permute(grad, inverse(dims))", Nature: Transposes, Type: ofPermutation, Lower: lowerPermute},
	"aten::permute_copy":   {Doc: "permute", Nature: Transposes, Type: ofPermutation, Lower: lowerPermute},
	"aten::movedim":        {Doc: "moves dimensions to other places", Gradient: "self: movedim(grad, destination, source)", Nature: Transposes, Lower: lowerMovedim},
	"aten::moveaxis":       {Doc: "movedim", Gradient: "self: moveaxis(grad, destination, source)", Nature: Transposes, Alias: "aten::movedim", Lower: lowerMovedim},

	"aten::select":      {Doc: "the part at one index of a dimension; an element of a list", Gradient: "self: select_scatter(zeros_like(self), grad, dim, index)", Nature: Slices, Type: ofSelect, Lower: lowerSelect},
	"aten::select_copy": {Doc: "select", Nature: Slices, Type: ofSelect, Lower: lowerSelect},
	"aten::slice":       {Doc: "start:end:step of a dimension, with Python's clamping; part of a list", Gradient: "self: slice_scatter(zeros_like(self), grad, dim, start, end, step)", Nature: Slices, Type: ofSlice, Lower: lowerSlice},
	"aten::slice_copy":  {Doc: "slice", Nature: Slices, Type: ofSlice, Lower: lowerSlice},
	"aten::narrow":      {Doc: "length elements of a dimension from start", Gradient: "self: slice_scatter(zeros_like(self), grad, dim, start, start + length, 1)", Nature: Slices, Type: ofNarrow, Lower: lowerNarrow},
	"aten::narrow_copy": {Doc: "narrow", Nature: Slices, Type: ofNarrow, Lower: lowerNarrow},

	"aten::expand":       {Doc: "broadcasts to a size, -1 keeps a dimension", Gradient: "self: sum_to_size(grad, size(self))", Nature: Expands, Lower: func(l *Lowering) *ssa.Value { return l.expandArg("size") }},
	"aten::expand_copy":  {Doc: "expand", Nature: Expands, Lower: func(l *Lowering) *ssa.Value { return l.expandArg("size") }},
	"aten::broadcast_to": {Doc: "expand", Gradient: "self: sum_to_size(grad, size(self))", Nature: Expands, Lower: func(l *Lowering) *ssa.Value { return l.expandArg("size") }},
	"aten::expand_as":    {Doc: "expand to the size of other", Gradient: "self: sum_to_size(grad, size(self)); other: 0", Nature: Expands, Batching: ReadsOther, Lower: lowerExpandAs},

	"aten::_conj_copy":     {Doc: "the complex conjugate; real numbers pass", Complex: one(complexConj), Lower: realOnly},
	"aten::_neg_view_copy": {Doc: "-self", Lower: lowerNeg},
}

func realOnly(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if l.DType(x).IsComplex() {
		l.Fail("ONNX has no arithmetic on complex numbers")
	}
	return x
}

func lowerView(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if !l.HasArg("dtype") {
		return l.reshapeInto(x, l.sizes("size"))
	}
	from, to := l.DType(x), l.DTypeArg("dtype")
	switch {
	case from == to:
		return x
	case RealOf(to) == from && to.IsComplex(): // each two along the last axis
		return l.Aten("aten::view_as_complex", l.Aten("aten::unflatten.int", x, -1, []int64{-1, 2}))
	case from.IsComplex() || to.IsComplex():
		l.Fail("the bits of %v as %v, which ONNX cannot express", from, to)
	}
	if t := onnx.ConstOf(x); t != nil && t.HasData() {
		if y := bitsAs(t, to); y != nil {
			return l.Const(y)
		}
	}
	switch have, want := from.Size(), to.Size(); {
	case have == 0 || want == 0 || l.Rank(x) == 0 && have != want:
		l.Fail("the bits of %v as %v", from, to)
	case have > want:
		return l.cutBits(x, to)
	case have < want:
		return l.joinBits(x, to)
	}
	return l.sameBits(x, to)
}

// sameBits reads elements as those of a type of the same size.
func (l *Lowering) sameBits(x *ssa.Value, to tensor.DType) *ssa.Value {
	from := l.DType(x)
	if to.IsInt() && (from.IsInt() || from == tensor.Bool) {
		return l.Cast(x, to) // two's complement: the bits stay
	}
	l.NeedOpset(26, "the bits of one element type as another")
	return l.BitCast(x, to)
}

// signedInts are the signed integers by their size.
var signedInts = map[int]tensor.DType{1: tensor.Int8, 2: tensor.Int16, 4: tensor.Int32, 8: tensor.Int64}

// cutBits reads each element as several of a smaller type, the lowest bits first.
func (l *Lowering) cutBits(x *ssa.Value, to tensor.DType) *ssa.Value {
	size, n := to.Size(), l.DType(x).Size()/to.Size()
	x = l.sameBits(x, signedInts[size*n])
	parts := make([]*ssa.Value, n)
	for k := range parts {
		part := x
		if k > 0 {
			part = l.Aten("aten::__rshift__.Scalar", x, 8*size*k)
		}
		parts[k] = l.unsqueeze(l.Cast(part, signedInts[size]), -1)
	}
	r := l.Rank(x)
	return l.sameBits(l.flattenDims(l.concatV(-1, parts...), r-1, r), to)
}

// joinBits reads each few elements along the last axis as one of a larger type.
func (l *Lowering) joinBits(x *ssa.Value, to tensor.DType) *ssa.Value {
	size := l.DType(x).Size()
	n := to.Size() / size
	x = l.sameBits(x, signedInts[size])
	x = l.Cast(l.Aten("aten::unflatten.int", x, -1, []int64{-1, int64(n)}), tensor.Int64)
	r := l.Rank(x)
	var sum *ssa.Value
	for k := range n {
		part := l.gather(x, l.scalarInt(tensor.Int64, int64(k)), r-1)
		if k < n-1 { // only the highest one has the sign
			part = l.Where(l.isNegative(part), l.Add(part, l.scalarInt(tensor.Int64, 1<<(8*size))), part)
		}
		part = l.Mul(part, l.scalarInt(tensor.Int64, 1<<(8*size*k)))
		if sum != nil {
			part = l.Add(sum, part)
		}
		sum = part
	}
	return l.sameBits(l.exactInts(sum, signedInts[to.Size()]), to)
}

// bitsAs reads the bits of a tensor as another type, whose elements are as many along the last axis as fit there. It is nil
// where they do not.
func bitsAs(t *tensor.Tensor, to tensor.DType) *tensor.Tensor {
	have, want, r := int64(t.DType.Size()), int64(to.Size()), len(t.Shape)
	shape := slices.Clone(t.Shape)
	switch {
	case have == 0 || want == 0:
		return nil
	case have != want:
		if r == 0 || shape[r-1]*have%want != 0 {
			return nil
		}
		shape[r-1] = shape[r-1] * have / want
	}
	return tensor.New(to, shape, t.Bytes())
}

func lowerViewAs(l *Lowering) *ssa.Value {
	x, other := l.Tensor("self"), l.Tensor("other")
	t := other.Tensor()
	if t == nil || !t.Ranked {
		return l.reshapeTo(x, l.shapeOf(other))
	}
	sizes := make([]Size, len(t.Dims))
	for i, d := range t.Dims {
		sizes[i] = Size{Expr: d, Known: true}
	}
	y := l.reshapeLazy(x, sizes, func(i int) Size { return l.sizeOf(other, i) })
	if d := y.Def(); d != nil && d.Kind == "onnx::Reshape" && onnx.ConstOf(d.Operand(1)) == nil {
		d.SetAttr("allowzero", ssa.Int(1)) // sizes of inputs that are taken to be 1 and more may be 0
	}
	return y
}

func lowerFlatten(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if l.IsConst("start_dim") && l.Int("start_dim") == 0 && l.Int("end_dim") == -1 {
		return l.reshape(x, -1)
	}
	rank := l.Rank(x)
	start, end := l.Dim("start_dim", rank), l.Dim("end_dim", rank)
	if start > end {
		l.Fail("start_dim comes after end_dim")
	}
	return l.flattenDims(x, start, end)
}

func lowerUnflatten(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	dim := l.Dim("dim", rank)
	parts := l.sizes("sizes")
	var sizes []Size
	at := func(i int) int { return i }
	for i, d := range l.Shape(x) {
		if i == dim {
			// -1 is resolved within the dimension, so that another -1 is not needed for a dynamic one
			rest, known, minus := sym.Const(1), true, -1
			for j, p := range parts {
				if p.Known && p.Expr.Is(-1) {
					minus = j
					continue
				}
				known = known && p.Known
				rest = rest.Mul(p.Expr)
			}
			if minus >= 0 && known && !rest.Is(0) {
				if q, ok := d.Divide(rest); ok {
					parts = append([]Size(nil), parts...)
					parts[minus] = Size{Expr: q, Known: true}
				}
			}
			sizes = append(sizes, parts...)
			continue
		}
		sizes = append(sizes, Size{Expr: d, Known: true})
	}
	return l.reshapeLazy(x, sizes, func(i int) Size {
		switch {
		case i < dim:
			return l.sizeOf(x, at(i))
		case i >= dim+len(parts):
			return l.sizeOf(x, i-len(parts)+1)
		}
		// an inferred part: the size of the dimension over the others
		rest := ConstSize(1)
		for j, p := range parts {
			if j != i-dim {
				rest = l.mulSize(rest, p)
			}
		}
		return l.divSize(l.sizeOf(x, dim), rest)
	})
}

func lowerSqueeze(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if t := x.Tensor(); t != nil && !t.Ranked && !l.HasArg("dim") {
		return l.Squeeze(x, nil)
	}
	rank := l.Rank(x)
	dims := l.Shape(x)
	wanted := make([]bool, rank)
	if l.HasArg("dim") {
		for _, d := range l.Ints("dim") {
			if d := l.wrap(d, rank); d < rank {
				wanted[d] = true
			}
		}
	} else {
		for i := range wanted {
			wanted[i] = true
		}
	}
	var ones []int64
	unknown := false
	for i, d := range dims {
		switch {
		case !wanted[i]:
		case d.Is(1):
			ones = append(ones, int64(i))
		case !d.IsConst() && d.Min() < 2:
			unknown = true
		}
	}
	if !unknown {
		return l.squeeze(x, ones...)
	}
	// whether a dynamic dimension goes, and so the rank, depends on its size at run time
	var y *ssa.Value
	if l.HasArg("dim") {
		shape := l.shapeOf(x)
		keep := l.Not(l.Equal(shape, l.i64(1)))
		fixed := l.boolMask([]int64{int64(rank)}, func(i int64) bool { return !wanted[i] })
		y = l.reshapeTo(x, l.Compress(shape, l.Or(keep, fixed), onnx.Axis(0)))
	} else {
		y = l.Squeeze(x, nil)
	}
	y.Type = ssa.Unranked(l.DType(x))
	return y
}

func lowerUnsqueeze(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	d := l.Int("dim")
	if t := x.Tensor(); t != nil && !t.Ranked && d >= 0 {
		return l.unsqueeze(x, d)
	}
	return l.unsqueeze(x, int64(l.wrap(d, l.Rank(x)+1)))
}

// atLeast applies f to a tensor or to each of a list.
func (l *Lowering) atLeast(f func(*ssa.Value) *ssa.Value) []*ssa.Value {
	if !l.HasArg("tensors") {
		return []*ssa.Value{f(l.Tensor("self"))}
	}
	vs := l.Tensors("tensors")
	for i := range vs {
		vs[i] = f(vs[i])
	}
	return vs
}

func (l *Lowering) atLeast1(x *ssa.Value) *ssa.Value {
	if l.Rank(x) == 0 {
		return l.unsqueeze(x, 0)
	}
	return x
}

func (l *Lowering) atLeast2(x *ssa.Value) *ssa.Value {
	switch l.Rank(x) {
	case 0:
		return l.unsqueeze(x, 0, 1)
	case 1:
		return l.unsqueeze(x, 0)
	}
	return x
}

func (l *Lowering) atLeast3(x *ssa.Value) *ssa.Value {
	switch l.Rank(x) {
	case 0:
		return l.unsqueeze(x, 0, 1, 2)
	case 1:
		return l.unsqueeze(x, 0, 2)
	case 2:
		return l.unsqueeze(x, 2)
	}
	return x
}

func lowerSwap(a, b string) func(l *Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		x := l.Tensor("self")
		rank := l.Rank(x)
		i, j := l.Dim(a, rank), l.Dim(b, rank)
		if i == j {
			return x
		}
		return l.swapAxes(x, i, j)
	}
}

func lowerT(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	switch rank := l.Rank(x); {
	case rank > 2:
		l.Fail("expects at most 2 dimensions, found %d", rank)
	case rank < 2:
		return x
	}
	return l.swapAxes(x, 0, 1)
}

func lowerReverseDims(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	if rank < 2 {
		return x
	}
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(rank - 1 - i)
	}
	return l.transpose(x, perm...)
}

func lowerMatrixT(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	if l.DType(x).IsComplex() {
		l.Fail("ONNX has no arithmetic on complex numbers")
	}
	switch rank {
	case 0:
		return x
	case 1:
		l.Fail("expects a matrix, found 1 dimension")
	}
	return l.swapAxes(x, rank-2, rank-1)
}

func lowerPermute(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	if !l.IsConst("dims") {
		return l.permuteBy(x, l.sizes("dims"))
	}
	dims := l.Ints("dims")
	if len(dims) != rank {
		l.Fail("%d dims for a tensor of rank %d", len(dims), rank)
	}
	if rank < 2 {
		return x
	}
	perm := make([]int64, rank)
	for i, d := range dims {
		perm[i] = int64(l.wrap(d, rank))
	}
	return l.transpose(x, perm...)
}

// permuteBy permutes by an order that is known at run time: each element is read by its place in x.
func (l *Lowering) permuteBy(x *ssa.Value, order []Size) *ssa.Value {
	dims := l.allSizes(x)
	if len(order) != len(dims) {
		l.Fail("%d dims for a tensor of rank %d", len(order), len(dims))
	}
	strides := make([]Size, len(dims))
	step := ConstSize(1)
	for i := len(dims) - 1; i >= 0; i-- {
		strides[i] = step
		step = l.mulSize(step, dims[i])
	}
	perm := l.sizeTensor(order)
	sizes, steps := l.gather(l.sizeTensor(dims), perm, 0), l.gather(l.sizeTensor(strides), perm, 0)
	part := func(v *ssa.Value, i int) Size {
		return Size{Value: l.gather(v, l.Const(tensor.ScalarInt(int64(i))), 0)}
	}
	for i := range dims {
		dims[i], strides[i] = part(sizes, i), part(steps, i)
	}
	return l.gather(l.reshape(x, -1), l.stridedIndex(dims, strides, ConstSize(0)), 0)
}

func lowerMovedim(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	return l.moveDims(x, l.Ints("source"), l.Ints("destination"))
}

// moveDims moves dims to other places; the rest keep their order.
func (l *Lowering) moveDims(x *ssa.Value, from, to []int64) *ssa.Value {
	rank := l.Rank(x)
	if len(from) != len(to) {
		l.Fail("source and destination must have the same length")
	}
	if rank < 2 {
		return x
	}
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = -1
	}
	taken := make([]bool, rank)
	for i := range from {
		f, t := l.wrap(from[i], rank), l.wrap(to[i], rank)
		if taken[f] || perm[t] >= 0 {
			l.Fail("a dimension is named twice")
		}
		perm[t], taken[f] = int64(f), true
	}
	next := 0
	for i := range perm {
		if perm[i] >= 0 {
			continue
		}
		for taken[next] {
			next++
		}
		perm[i] = int64(next)
		next++
	}
	return l.transpose(x, perm...)
}

func lowerSelect(l *Lowering) *ssa.Value {
	if l.HasArg("list") {
		return lowerListGet(l)
	}
	x := l.Tensor("self")
	rank := l.Rank(x)
	if rank == 0 {
		l.Fail("select needs a dimension, found rank 0")
	}
	return l.selectAt(x, l.Dim("dim", rank), l.sizeArg("index"))
}

// selectAt takes the part at one index and drops the dimension.
func (l *Lowering) selectAt(x *ssa.Value, dim int, index Size) *ssa.Value {
	i, isConst := index.Int()
	if !isConst {
		return l.gather(x, l.sizeValue(index), dim)
	}
	n, static := l.Shape(x)[dim].Int()
	if static {
		if i < -n || i >= n {
			l.Fail("index %d is out of range for dimension %d of size %d", i, dim, n)
		}
		if i < 0 {
			i += n
		}
	}
	return l.gather(x, l.Const(tensor.ScalarInt(i)), dim)
}

func lowerSlice(l *Lowering) *ssa.Value {
	if l.HasArg("l") {
		return lowerListSlice(l)
	}
	x := l.Tensor("self")
	rank := l.Rank(x)
	if rank == 0 {
		l.Fail("slice needs a dimension, found rank 0")
	}
	dim := l.Dim("dim", rank)
	return l.sliceDim(x, dim, l.sizeArgOr("start", 0), l.sizeArgOr("end", toEnd), l.sizeArgOr("step", 1))
}

// sliceDim slices one dimension; bounds are wrapped and clamped as PyTorch and ONNX both do.
func (l *Lowering) sliceDim(x *ssa.Value, dim int, start, end, step Size) *ssa.Value {
	s, sConst := start.Int()
	e, eConst := end.Int()
	k, kConst := step.Int()
	if kConst && k < 1 {
		l.Fail("a slice step must be positive")
	}
	n, static := l.Shape(x)[dim].Int()
	if sConst && eConst && static && s < 0 && s >= -n {
		s += n
	}
	if eConst && e > n && static {
		e = toEnd
	}
	if sConst && eConst && kConst {
		if s == 0 && e == toEnd && k == 1 {
			return x
		}
		return l.sliceC(x, dim, s, e, k)
	}
	return l.Slice(x, l.sizeVec(start), l.sizeVec(end), l.i64(int64(dim)), l.sizeVec(step))
}

func lowerNarrow(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	if rank == 0 {
		l.Fail("narrow needs a dimension, found rank 0")
	}
	return l.narrow(x, l.Dim("dim", rank), l.sizeArg("start"), l.sizeArg("length"))
}

// narrow takes length elements from start, which may be negative.
func (l *Lowering) narrow(x *ssa.Value, dim int, start, length Size) *ssa.Value {
	if n, ok := length.Int(); ok && n < 0 {
		l.Fail("a length of %d", n)
	}
	if _, ok := start.Int(); !ok || start.least() < 0 {
		start = l.wrapSize(start, l.sizeOf(x, dim))
	}
	return l.sliceDim(x, dim, start, l.addSize(start, length), ConstSize(1))
}

func (l *Lowering) expandArg(name string) *ssa.Value {
	return l.expandKeep(l.Tensor("self"), l.sizes(name))
}

// expandKeep expands; a size of -1 keeps the dimension.
func (l *Lowering) expandKeep(x *ssa.Value, sizes []Size) *ssa.Value {
	dims := l.Shape(x)
	shift := len(sizes) - len(dims)
	if shift < 0 {
		l.Fail("expands rank %d to %d sizes", len(dims), len(sizes))
	}
	out := append([]Size(nil), sizes...)
	for i, s := range sizes {
		if n, ok := s.Int(); ok && n == -1 {
			if i < shift {
				l.Fail("-1 for a new dimension")
			}
			out[i] = Size{Expr: dims[i-shift], Known: true}
		}
	}
	return l.expandTo(x, out)
}

func lowerExpandAs(l *Lowering) *ssa.Value {
	x, other := l.Tensor("self"), l.Tensor("other")
	if t := other.Tensor(); t == nil || !t.Ranked {
		return l.Expand(x, l.shapeOf(other))
	}
	return l.expandTo(x, l.allSizes(other))
}
