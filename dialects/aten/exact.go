package aten

import (
	mathbits "math/bits"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Sums, products and powers of int64 wrap around in PyTorch. Runtimes reduce integers in float64, which holds those
// below 2^53 only, and saturate. The forms here use Add, Mul and MatMul, which are exact.

// exactBits is the number of bits that float64 holds of an integer.
const exactBits = 53

// sumOver is the sum of x over dims (all if nil), exact for integers.
func (l *Lowering) sumOver(x *ssa.Value, dims []int64, keep bool) *ssa.Value {
	if !l.inexact(x, dims) || bitsOf(x, 8)+l.countBits(x, dims) <= exactBits {
		return l.reduceOver("ReduceSum", x, dims, keep)
	}
	v, n := l.mergeLast(x, dims)
	var ones *ssa.Value
	if k, ok := n.Int(); ok && k <= maxFolded {
		ones = l.i64(slices.Repeat([]int64{1}, int(k))...)
	} else {
		ones = l.Expand(l.scalarInt(tensor.Int64, 1), l.sizeTensor([]Size{n}))
	}
	return l.unmerge(l.MatMul(v, ones), x, dims, keep)
}

// prodOver is the product of x over dims (all if nil), exact for integers: element by element in a loop, as no operator
// multiplies integers along an axis exactly.
func (l *Lowering) prodOver(x *ssa.Value, dims []int64, keep bool) *ssa.Value {
	if !l.inexact(x, dims) || bitsOf(x, 8) <= 1 {
		return l.reduceOver("ReduceProd", x, dims, keep)
	}
	v, n := l.mergeLast(x, dims)
	last := l.Rank(v) - 1
	element := func(i *ssa.Value) *ssa.Value { return l.gather(v, i, last) }
	if k, ok := n.Int(); ok && k <= 16 {
		y := element(l.scalarInt(tensor.Int64, 0))
		for i := int64(1); i < k; i++ {
			y = l.Mul(y, element(l.scalarInt(tensor.Int64, i)))
		}
		return l.unmerge(y, x, dims, keep)
	}
	one, end := l.scalarInt(tensor.Int64, 1), l.sizeValue(n)
	more := func(i *ssa.Value) *ssa.Value { return l.Less(i, end) }
	start := l.scalarInt(tensor.Int64, 0)
	ones := one
	if last > 0 {
		ones = l.Expand(one, l.sizeTensor(l.sizesOf(v, 0, last)))
	}
	vs := l.loop(more(start), []*ssa.Value{start, ones}, func(vs []*ssa.Value) (*ssa.Value, []*ssa.Value) {
		next := l.Add(vs[0], one)
		return more(next), []*ssa.Value{next, l.Mul(vs[1], element(vs[0]))}
	})
	return l.unmerge(vs[1], x, dims, keep)
}

// intPow is x to the power e, wrapped around as at::native::powi does: by squaring, until all exponents are used up. x and
// e are int64; negative exponents count as 0.
func (l *Lowering) intPow(x, e *ssa.Value) *ssa.Value {
	x, e = l.broadcast(x, e)
	zero, one, two := l.Like(e, 0), l.Like(e, 1), l.Like(e, 2)
	more := func(e *ssa.Value) *ssa.Value { return l.anyTrue(l.Greater(e, zero), nil, false) }
	ones := l.constLike(x, tensor.Int64, 1)
	vs := l.loop(more(e), []*ssa.Value{x, l.max(e, zero), ones}, func(vs []*ssa.Value) (*ssa.Value, []*ssa.Value) {
		base, left, result := vs[0], vs[1], vs[2]
		odd := l.Equal(l.Mod(left, two), one)
		left = l.Div(left, two)
		return more(left), []*ssa.Value{l.Mul(base, base), left, l.Where(odd, l.Mul(result, base), result)}
	})
	return vs[2]
}

// inexact reports that a reduction of x over dims is one that runtimes round.
func (l *Lowering) inexact(x *ssa.Value, dims []int64) bool {
	return l.DType(x) == tensor.Int64 && l.Rank(x) > 0 && !l.nothingIn(x, dims)
}

// countBits bounds the bits of the number of elements that a reduction takes together: no tensor has 2^31 of them where
// its size is not known.
func (l *Lowering) countBits(x *ssa.Value, dims []int64) int {
	n := int64(1)
	for i, e := range l.Shape(x) {
		if dims != nil && !slices.Contains(dims, int64(i)) {
			continue
		}
		k, ok := e.Int()
		if !ok || k > 1<<31/n {
			return 31
		}
		n *= k
	}
	return mathbits.Len64(uint64(n))
}

// bitsOf bounds the bits that the absolute values of an integer tensor need, looking at most depth operators back.
func bitsOf(v *ssa.Value, depth int) int {
	if t := onnx.ConstOf(v); t != nil && t.HasData() && t.NumElements() <= maxFolded && t.DType.IsInt() {
		most := 0
		for _, k := range t.Int64s() {
			most = max(most, mathbits.Len64(uint64(max(k, -k-1))))
		}
		return most
	}
	width := 8 * v.DType().Size()
	if v.DType() == tensor.Bool {
		width = 1
	}
	d := v.Def()
	if d == nil || depth == 0 {
		return width
	}
	of := func(i int) int { return bitsOf(d.Operand(i), depth-1) }
	switch d.Kind {
	case "onnx::Cast":
		if d.Operand(0).DType() == tensor.Bool || d.Operand(0).DType().IsInt() {
			width = min(width, of(0))
		}
	case "onnx::Gather", "onnx::Reshape", "onnx::Unsqueeze", "onnx::Squeeze", "onnx::Slice", "onnx::Expand", "onnx::Transpose":
		width = min(width, of(0))
	case "onnx::Where":
		width = min(width, max(of(1), of(2)))
	case "onnx::Mul":
		width = min(width, of(0)+of(1))
	case "onnx::Shape", "onnx::Size", "onnx::NonZero", "onnx::ArgMax", "onnx::ArgMin":
		width = min(width, 31)
	}
	return width
}

// mergeLast moves the axes dims (all if nil) behind the others and makes one of them; n is its size.
func (l *Lowering) mergeLast(x *ssa.Value, dims []int64) (v *ssa.Value, n Size) {
	r := l.Rank(x)
	if len(dims) == 0 {
		dims = axesFrom(0, r)
	}
	n = l.countOver(x, dims)
	var kept []Size
	var perm []int64
	for i := range r {
		if !slices.Contains(dims, int64(i)) {
			kept, perm = append(kept, l.sizeOf(x, i)), append(perm, int64(i))
		}
	}
	sorted := slices.Sorted(slices.Values(dims))
	if perm = append(perm, sorted...); !slices.IsSorted(perm) {
		x = l.transpose(x, perm...)
	}
	if len(dims) > 1 {
		x = l.reshapeSizes(x, append(kept, n)...)
	}
	return x, n
}

// unmerge gives the result of a reduction of x the axes of size 1 that keepdim asks for.
func (l *Lowering) unmerge(y, x *ssa.Value, dims []int64, keep bool) *ssa.Value {
	if !keep {
		return y
	}
	if len(dims) == 0 {
		dims = axesFrom(0, l.Rank(x))
	}
	return l.unsqueeze(y, slices.Sorted(slices.Values(dims))...)
}
