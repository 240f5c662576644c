package aten

import (
	"fmt"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Helpers of operators that slide windows over the trailing (spatial) axes.

// sizesOf are the sizes of dimensions from..to-1.
func (l *Lowering) sizesOf(x *ssa.Value, from, to int) []Size {
	out := make([]Size, 0, max(to-from, 0))
	for i := from; i < to; i++ {
		out = append(out, l.sizeOf(x, i))
	}
	return out
}

// reshapeSizes changes the shape. One size that is not known costs nothing: it becomes -1.
func (l *Lowering) reshapeSizes(x *ssa.Value, sizes ...Size) *ssa.Value {
	unknown, at, zero := 0, -1, false
	shape := make([]int64, len(sizes))
	for i, s := range sizes {
		n, ok := s.Int()
		if !ok {
			unknown++
			at = i
			n = -1
		}
		shape[i] = n
		zero = zero || n == 0
	}
	if unknown == 0 || unknown == 1 && !zero && at >= 0 {
		return l.reshape(x, shape...)
	}
	return l.reshapeTo(x, l.sizeTensor(sizes))
}

// sizeProduct multiplies sizes.
func (l *Lowering) sizeProduct(ss ...Size) Size {
	p := ConstSize(1)
	for _, s := range ss {
		p = l.mulSize(p, s)
	}
	return p
}

// countTo is the rank 1 int64 tensor 0, 1, ..., n-1: a constant unless it would be a large one.
func (l *Lowering) countTo(n Size) *ssa.Value {
	if k, ok := n.Int(); ok && k <= maxMade {
		v := make([]int64, max(k, 0))
		for i := range v {
			v[i] = int64(i)
		}
		return l.i64(v...)
	}
	return l.Range(l.scalarInt(tensor.Int64, 0), l.sizeValue(n), l.scalarInt(tensor.Int64, 1))
}

// batched gives x a leading batch axis if its rank is one less than rank.
func (l *Lowering) batched(x *ssa.Value, rank int) (*ssa.Value, bool) {
	switch l.Rank(x) {
	case rank:
		return x, false
	case rank - 1:
		return l.unsqueeze(x, 0), true
	}
	panic(&Failure{ID: "invalid-args", Message: fmt.Sprintf("the input has %d dimensions instead of %d or %d", l.Rank(x), rank-1, rank), Hint: "correct the shape in --input"})
}

// unbatched undoes batched.
func (l *Lowering) unbatched(x *ssa.Value, was bool) *ssa.Value {
	if was {
		return l.squeeze(x, 0)
	}
	return x
}

// repeatInt is n times v.
func repeatInt(v int64, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

// constSizes makes sizes of known numbers.
func constSizes(v []int64) []Size {
	out := make([]Size, len(v))
	for i, n := range v {
		out[i] = ConstSize(n)
	}
	return out
}

// windowCount is the number of windows along an axis: (in + pads - dilation*(k-1) - 1) / stride + 1.
func (l *Lowering) windowCount(in Size, k, stride, dilation, padBegin, padEnd int64, ceil bool) Size {
	span := padBegin + padEnd - dilation*(k-1) - 1
	if ceil {
		span += stride - 1
	}
	if size, ok := in.Int(); ok && size+span < 0 {
		panic(&Failure{ID: "invalid-args", Message: fmt.Sprintf("no window of %d fits into a size of %d", dilation*(k-1)+1, size+padBegin+padEnd), Hint: "give a larger size in --input"})
	}
	n := l.addSize(l.divSize(l.addSize(in, ConstSize(span)), ConstSize(stride)), ConstSize(1))
	if !ceil {
		return n
	}
	// The last window must start inside the input or the padding before it.
	if v, ok := n.Int(); ok {
		if inN, ok := in.Int(); ok {
			if (v-1)*stride >= inN+padBegin {
				v--
			}
			return ConstSize(v)
		}
	}
	if stride == 1 {
		return n
	}
	last := l.addSize(l.divSize(l.addSize(in, ConstSize(padBegin-1)), ConstSize(stride)), ConstSize(1))
	return l.minSize(n, last)
}

// minSize is the lesser of two sizes.
func (l *Lowering) minSize(a, b Size) Size { return l.sizeOp("Min", sym.Expr.Minimum, a, b) }

// maxSize is the greater of two sizes.
func (l *Lowering) maxSize(a, b Size) Size { return l.sizeOp("Max", sym.Expr.Max, a, b) }

// windowIndex is the index table [k, n] of windows: w*dilation + i*stride for window i, place w.
func (l *Lowering) windowIndex(n Size, k, stride, dilation int64) *ssa.Value {
	l.atMost(k, maxMade, "places of a window")
	place := make([]int64, max(k, 0))
	for i := range place {
		place[i] = int64(i) * dilation
	}
	start := l.countTo(n)
	if stride != 1 {
		start = l.Mul(start, l.scalarInt(tensor.Int64, stride))
	}
	return l.Add(l.Const(tensor.FromInts(tensor.Int64, []int64{k, 1}, place)), l.unsqueeze(start, 0))
}

// padSpatial pads the axes from 2 on with a constant.
func (l *Lowering) padSpatial(x *ssa.Value, begin, end []int64, value *ssa.Value) *ssa.Value {
	any := false
	for i := range begin {
		any = any || begin[i] != 0 || end[i] != 0
	}
	if !any {
		return x
	}
	pads := append(append([]int64{0, 0}, begin...), 0, 0)
	pads = append(pads, end...)
	return l.Pad(x, l.i64(pads...), value, nil)
}

// gatherWindows turns padded (N, C, d1, ..., dn) into (N, C, k1, ..., kn, o1, ..., on).
func (l *Lowering) gatherWindows(x *ssa.Value, counts []Size, kernel, stride, dilation []int64) *ssa.Value {
	n := len(kernel)
	for i := range kernel {
		x = l.gather(x, l.windowIndex(counts[i], kernel[i], stride[i], dilation[i]), 2+2*i)
	}
	if n == 1 {
		return x
	}
	perm := []int64{0, 1}
	for i := range kernel {
		perm = append(perm, int64(2+2*i))
	}
	for i := range kernel {
		perm = append(perm, int64(3+2*i))
	}
	return l.transpose(x, perm...)
}

// scatterWindows is the adjoint of gatherWindows: it adds windows
// (N, C, k1, ..., kn, o1, ..., on) into a zero tensor (N, C, size...).
func (l *Lowering) scatterWindows(cols *ssa.Value, size []Size, counts []Size, kernel, stride, dilation []int64) *ssa.Value {
	n := len(kernel)
	if !l.scatterReduces(scatterAdds) && l.DType(cols).IsFloat() {
		return l.foldWindows(cols, size, counts, kernel, stride, dilation)
	}
	var flat *ssa.Value // index into the plane, of shape (k1, ..., kn, o1, ..., on)
	for i := range kernel {
		idx := l.windowIndex(counts[i], kernel[i], stride[i], dilation[i])
		var axes []int64
		for j := range 2 * n {
			if j != i && j != n+i {
				axes = append(axes, int64(j))
			}
		}
		idx = l.unsqueeze(idx, axes...)
		if flat == nil {
			flat = idx
		} else {
			flat = l.Add(l.Mul(flat, l.sizeValue(size[i])), idx)
		}
	}
	N, C := l.sizeOf(cols, 0), l.sizeOf(cols, 1)
	index := l.reshape(flat, -1, 1)
	perm := make([]int64, 2*n+2)
	for i := range 2 * n {
		perm[i] = int64(i + 2)
	}
	perm[2*n], perm[2*n+1] = 0, 1
	updates := l.transpose(cols, perm...)
	places := l.sizeProduct(append(constSizes(kernel), counts...)...)
	updates = l.reshapeSizes(updates, places, N, C)
	zeros := l.fill(l.sizeTensor([]Size{l.sizeProduct(size...), N, C}), l.DType(cols), ssa.Int(0))
	l.NeedOpset(16, "adding up overlapping windows")
	sum := l.ScatterND(zeros, index, updates, onnx.Reduction("add"))
	return l.reshapeSizes(l.transpose(sum, 1, 2, 0), append([]Size{N, C}, size...)...)
}

// foldWindows is scatterWindows without ScatterND's addition: the adjoint of a
// convolution whose kernels pick one place each.
func (l *Lowering) foldWindows(cols *ssa.Value, size []Size, counts []Size, kernel, stride, dilation []int64) *ssa.Value {
	n := len(kernel)
	N, C := l.sizeOf(cols, 0), l.sizeOf(cols, 1)
	places := int64(1)
	for _, k := range kernel {
		places *= k
	}
	d := l.DType(cols)
	if d == tensor.Float64 {
		l.NeedOpset(16, "adding up overlapping windows of float64")
	}
	pick := make([]float64, places*places)
	for i := range places {
		pick[i*places+i] = 1
	}
	w := l.Const(tensor.FromFloats(d, append([]int64{places, 1}, kernel...), pick))
	x := l.reshapeSizes(cols, append([]Size{l.mulSize(N, C), ConstSize(places)}, counts...)...)
	y := l.conv(convArgs{x: x, w: w, stride: stride, dilation: dilation, padBegin: repeatInt(0, n), padEnd: repeatInt(0, n), outPads: repeatInt(0, n), groups: ConstSize(1), transposed: true})
	pads := constSizes(repeatInt(0, 2*(n+2)))
	for i, s := range size {
		pads[n+4+i] = l.subSize(s, l.sizeOf(y, 2+i)) // places behind the last window
	}
	if !allSizes(pads, 0) {
		y = l.Pad(y, l.sizeTensor(pads), l.Like(y, 0), nil)
	}
	return l.reshapeSizes(y, append([]Size{N, C}, size...)...)
}
