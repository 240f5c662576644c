package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Arithmetic on sizes and bounds that may be known only at run time.

// toEnd as the end of a slice means all that is left.
const toEnd = math.MaxInt64

// allSizes gives all sizes of a value of known rank.
func (l *Lowering) allSizes(x *ssa.Value) []Size {
	out := make([]Size, l.Rank(x))
	for i := range out {
		out[i] = l.sizeOf(x, i)
	}
	return out
}

// sizeArg is an int argument that may be computed at run time.
func (l *Lowering) sizeArg(name string) Size {
	if lit, ok := LiteralOf(l.Arg(name)); ok && lit.Kind == ssa.TensorLit {
		return ConstSize(l.Int(name))
	}
	ss := l.sizes(name)
	if len(ss) != 1 {
		l.Fail("argument %q must be an int", name)
	}
	return ss[0]
}

// sizeArgOr is SizeArg, def if the argument is None or the overload lacks it.
func (l *Lowering) sizeArgOr(name string, def int64) Size {
	if l.IsNone(name) {
		return ConstSize(def)
	}
	return l.sizeArg(name)
}

// sizeVec is a size as a rank 1 tensor of one element.
func (l *Lowering) sizeVec(s Size) *ssa.Value { return l.sizeTensor([]Size{s}) }

// leastSize is the lesser of two sizes.
func (l *Lowering) leastSize(a, b Size) Size { return l.sizeOp("Min", sym.Expr.Minimum, a, b) }

// greatestSize is the greater of two sizes.
func (l *Lowering) greatestSize(a, b Size) Size { return l.sizeOp("Max", sym.Expr.Max, a, b) }

// least is a lower bound of a size.
func (s Size) least() int64 {
	if !s.Known {
		return math.MinInt64
	}
	return s.Expr.Min()
}

// same reports that two sizes are known to be equal.
func (s Size) same(t Size) bool { return s.Known && t.Known && s.Expr.Equal(t.Expr) }

// wrapSize adds n to an index that is negative.
func (l *Lowering) wrapSize(i, n Size) Size {
	if i.least() >= 0 {
		return i
	}
	if c, ok := i.Int(); ok {
		return l.addSize(ConstSize(c), n)
	}
	v := l.sizeValue(i)
	return Size{Value: l.Where(l.Less(v, l.Const(tensor.ScalarInt(0))), l.Add(v, l.sizeValue(n)), v)}
}

// sliceBounds gives the bounds of x[start:end] over n elements as PyTorch
// clamps them: 0 <= start <= end <= n.
func (l *Lowering) sliceBounds(start, end, n Size) (s, e Size) {
	clamp := func(v Size) Size { return l.leastSize(l.greatestSize(l.wrapSize(v, n), ConstSize(0)), n) }
	s = clamp(start)
	if c, ok := end.Int(); ok && c == toEnd {
		return s, n
	}
	return s, l.greatestSize(clamp(end), s)
}

// boolMask makes a constant mask.
func (l *Lowering) boolMask(shape []int64, at func(i int64) bool) *ssa.Value {
	n := int64(1)
	for _, s := range shape {
		n = satMul(n, s)
	}
	l.count(n)
	bits := make([]uint8, n)
	for i := range bits {
		if at(int64(i)) {
			bits[i] = 1
		}
	}
	return l.Const(tensor.Of(tensor.Bool, shape, bits))
}

// fresh makes a symbol for a size of which nothing is known.
func (l *Lowering) fresh(name string) sym.Expr { return l.Block.Func().Module().FreshSymbol(name, 0) }

// constInts gives the elements of a small constant integer tensor.
func constInts(v *ssa.Value) ([]int64, bool) {
	t := onnx.ConstOf(v)
	if t == nil || !t.HasData() || !t.DType.IsInt() {
		return nil, false
	}
	return t.Int64s(), true
}

// dimsOf makes sizes of dims that are all known.
func dimsOf(dims []sym.Expr) ([]int64, bool) {
	out := make([]int64, len(dims))
	for i, d := range dims {
		n, ok := d.Int()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// broadcastSize is the common size of two dimensions.
func (l *Lowering) broadcastSize(a, b Size) Size {
	switch {
	case a.same(b):
		return a
	case a.Known && a.Expr.Is(1):
		return b
	case b.Known && b.Expr.Is(1):
		return a
	}
	// A known size other than 1 wins.
	if _, ok := a.Int(); ok {
		return a
	}
	if _, ok := b.Int(); ok {
		return b
	}
	va, vb := l.sizeValue(a), l.sizeValue(b)
	s := Size{Value: l.Where(l.Equal(va, l.Const(tensor.ScalarInt(1))), vb, va)}
	if a.Known && b.Known {
		s.Expr, s.Known = a.Expr.Broadcast(b.Expr), true
	}
	return s
}

// broadcastSizes is the shape of several shapes broadcast together.
func (l *Lowering) broadcastSizes(shapes ...[]Size) []Size {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	out := make([]Size, rank)
	for i := range out {
		out[i] = ConstSize(1)
		for _, s := range shapes {
			if j := i - (rank - len(s)); j >= 0 {
				out[i] = l.broadcastSize(out[i], s[j])
			}
		}
	}
	return out
}

// expandTo broadcasts to the given sizes; nothing is built where x has them.
func (l *Lowering) expandTo(x *ssa.Value, sizes []Size) *ssa.Value {
	dims := l.Shape(x)
	shift := len(sizes) - len(dims)
	if shift < 0 {
		l.Fail("cannot expand rank %d to rank %d", len(dims), len(sizes))
	}
	to := make([]Size, len(sizes))
	changes := shift > 0
	for i, s := range sizes {
		to[i] = s
		if i < shift {
			continue
		}
		d := dims[i-shift]
		if s.Known && s.Expr.Equal(d) {
			// Expand broadcasts both ways, so 1 keeps a size
			if _, ok := s.Int(); !ok {
				to[i] = ConstSize(1)
			}
			continue
		}
		if n, known := s.Int(); known && n == 1 {
			if m, known := d.Int(); known { // ONNX would keep the size
				l.Fail("dimension %d has size %d, and cannot be expanded to 1", i, m)
			}
		}
		changes = true
	}
	if !changes {
		return x
	}
	y := l.Expand(x, l.sizeTensor(to))
	if y == x { // sizes that cannot be told apart here, but that x has where the program is valid
		return x
	}
	// PyTorch expands to exactly these sizes, where ONNX would broadcast both ways
	if t := y.Tensor(); t != nil && t.Rank() == len(sizes) {
		exact := append([]sym.Expr(nil), t.Dims...)
		for i, s := range sizes {
			if s.Known {
				exact[i] = s.Expr
			}
		}
		y.Type = ssa.Tensor(t.DType, exact...)
	}
	return y
}

// reshapeInto changes the shape; one size may be -1.
func (l *Lowering) reshapeInto(x *ssa.Value, sizes []Size) *ssa.Value {
	return l.reshapeLazy(x, sizes, func(i int) Size { return sizes[i] })
}

// reshapeLazy is ReshapeSizes; value computes size i where the shape cannot be
// written without it, so sizes may lack their values.
func (l *Lowering) reshapeLazy(x *ssa.Value, sizes []Size, value func(i int) Size) *ssa.Value {
	t := x.Tensor()
	if t == nil || !t.Ranked {
		return l.reshapeTo(x, l.reshapeValues(sizes, value))
	}
	numel := sym.Const(1)
	for _, d := range t.Dims {
		numel = numel.Mul(d)
	}
	sizes = append([]Size(nil), sizes...)
	minus, others, allKnown := -1, sym.Const(1), true
	for i, s := range sizes {
		switch {
		case s.Known && s.Expr.Is(-1):
			minus = i
		case s.Known:
			others = others.Mul(s.Expr)
		default:
			allKnown = false
		}
	}
	asked := minus // the user asked to infer this one
	if minus >= 0 && allKnown {
		if q, ok := numel.Divide(others); ok && !others.Is(0) {
			sizes[minus] = Size{Expr: q, Known: true}
		}
	}
	codes := make([]int64, len(sizes))
	inferred, least := -1, int64(1)
	for i, s := range sizes {
		n, isConst := s.Int()
		switch {
		case isConst && n == 0:
			return l.emptyReshape(x, sizes, value)
		case isConst && n > 0:
			codes[i] = n
		case s.Known && i < len(t.Dims) && s.Expr.Equal(t.Dims[i]):
			codes[i] = 0 // copied from the input
			least = min(least, s.Expr.Min())
		case inferred < 0:
			inferred, codes[i] = i, -1
		default:
			return l.reshapeTo(x, l.reshapeValues(sizes, value))
		}
	}
	if inferred >= 0 && inferred != asked {
		// -1 stands for the size only if nothing else can be 0 and the product is known to fit
		p, known := sym.Const(1), true
		for _, s := range sizes {
			known = known && s.Known
			p = p.Mul(s.Expr)
		}
		if least < 1 || !known || !p.Equal(numel) {
			return l.reshapeTo(x, l.reshapeValues(sizes, value))
		}
	}
	return l.Reshape(x, l.i64(codes...))
}

func (l *Lowering) reshapeValues(sizes []Size, value func(i int) Size) *ssa.Value {
	ss := make([]Size, len(sizes))
	for i, s := range sizes {
		ss[i] = s
		if _, ok := s.Int(); !ok && s.Value == nil {
			ss[i] = value(i)
		}
	}
	return l.sizeTensor(ss)
}

// emptyReshape is a reshape to a shape that holds a 0.
func (l *Lowering) emptyReshape(x *ssa.Value, sizes []Size, value func(i int) Size) *ssa.Value {
	shape := make([]int64, len(sizes))
	for i, s := range sizes {
		n, ok := s.Int()
		if !ok || n < 0 {
			return l.reshapeTo(x, l.reshapeValues(sizes, value))
		}
		shape[i] = n
	}
	return l.Const(tensor.New(l.DType(x), shape, nil))
}

// flattenDims merges the dims from start to end, inclusive.
func (l *Lowering) flattenDims(x *ssa.Value, start, end int) *ssa.Value {
	dims := l.Shape(x)
	if len(dims) == 0 {
		return l.reshape(x, 1)
	}
	if start >= end {
		return x
	}
	if start == 1 && end == len(dims)-1 {
		if _, ok := dimsOf(dims[1:]); !ok {
			return l.Flatten(x, onnx.Axis(1))
		}
	}
	if start == 0 && end == len(dims)-1 {
		return l.reshape(x, -1)
	}
	var sizes []Size
	merged := sym.Const(1)
	for i, d := range dims {
		if i < start || i > end {
			sizes = append(sizes, Size{Expr: d, Known: true})
			continue
		}
		merged = merged.Mul(d)
		if i == end {
			sizes = append(sizes, Size{Expr: merged, Known: true})
		}
	}
	return l.reshapeLazy(x, sizes, func(i int) Size {
		switch {
		case i < start:
			return l.sizeOf(x, i)
		case i > start:
			return l.sizeOf(x, i+end-start)
		}
		p := ConstSize(1)
		for j := start; j <= end; j++ {
			p = l.mulSize(p, l.sizeOf(x, j))
		}
		return p
	})
}
