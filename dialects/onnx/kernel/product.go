package kernel

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa/tensor"
)

// product finds the kernels of matrix products.
func product(name string) kernel {
	switch name {
	case "MatMul":
		return func(c *call) []*tensor.Tensor { return one(c.matmul(c.t(0), c.t(1))) }
	case "Gemm":
		return evalGemm
	case "Einsum":
		return evalEinsum
	case "Det":
		return evalDet
	}
	return nil
}

// gemm is out = a (m x k) times b (k x n), row-major, accumulated in A.
func gemm[T number, A number](m, k, n int, a, b []T, out []T) {
	parallel(m, m*k*n, func(from, to int) {
		acc := make([]A, n)
		for i := from; i < to; i++ {
			clear(acc)
			for p, x := range a[i*k : (i+1)*k] {
				f := A(x)
				for j, y := range b[p*n : (p+1)*n] {
					acc[j] += f * A(y)
				}
			}
			row := out[i*n : (i+1)*n]
			for j, v := range acc {
				row[j] = T(v)
			}
		}
	})
}

func (c *call) matmul(a, b *tensor.Tensor) *tensor.Tensor {
	if a.DType != b.DType {
		c.fail("element types %v and %v", a.DType, b.DType)
	}
	switch a.DType {
	case tensor.Float32:
		return matmul[float32, float64](c, a, b)
	case tensor.Float64:
		return matmul[float64, float64](c, a, b)
	case tensor.Int32:
		return matmul[int32, int32](c, a, b)
	case tensor.Int64:
		return matmul[int64, int64](c, a, b)
	case tensor.Uint32:
		return matmul[uint32, uint32](c, a, b)
	case tensor.Uint64:
		return matmul[uint64, uint64](c, a, b)
	}
	c.fail("element type %v", a.DType)
	return nil
}

func matmul[T number, A number](c *call, a, b *tensor.Tensor) *tensor.Tensor {
	if len(a.Shape) == 0 || len(b.Shape) == 0 {
		c.fail("no product of rank 0")
	}
	sa, sb := a.Shape, b.Shape
	row, col := len(sa) == 1, len(sb) == 1
	if row {
		sa = append([]int64{1}, sa...)
	}
	if col {
		sb = append(slices.Clone(sb), 1)
	}
	m, k, n := sa[len(sa)-2], sa[len(sa)-1], sb[len(sb)-1]
	if sb[len(sb)-2] != k {
		c.fail("shapes %v and %v do not fit", a.Shape, b.Shape)
	}
	batch := broadcastShape(c, sa[:len(sa)-2], sb[:len(sb)-2])
	x, y := tensor.Data[T](a), tensor.Data[T](b)
	c.count(append(slices.Clone(batch), m, n))
	out := make([]T, prod(batch)*m*n)
	ta, tb := broadcastStrides(sa[:len(sa)-2], batch), broadcastStrides(sb[:len(sb)-2], batch)
	if len(sb) == 2 { // one matrix on the right: all rows at once
		gemm[T, A](int(prod(batch)*m), int(k), int(n), x, y, out)
	} else {
		positions(batch, func(i int, idx []int64) {
			pa, pb := int64(0), int64(0)
			for d, v := range idx {
				pa += v * ta[d]
				pb += v * tb[d]
			}
			gemm[T, A](int(m), int(k), int(n), x[pa*m*k:(pa+1)*m*k], y[pb*k*n:(pb+1)*k*n], out[int64(i)*m*n:int64(i+1)*m*n])
		})
	}
	if !row {
		batch = append(batch, m)
	}
	if !col {
		batch = append(batch, n)
	}
	return tensor.Of(a.DType, batch, out)
}

func evalGemm(c *call) []*tensor.Tensor {
	a, b := c.t(0), c.t(1)
	if len(a.Shape) != 2 || len(b.Shape) != 2 {
		c.fail("matrices of rank %d and %d", len(a.Shape), len(b.Shape))
	}
	if c.flag("transA") {
		a = transpose(a, []int{1, 0})
	}
	if c.flag("transB") {
		b = transpose(b, []int{1, 0})
	}
	y := c.matmul(a, b)
	alpha, beta := c.float("alpha"), c.float("beta")
	if y.DType.IsInt() {
		scale := *c
		scale.kind = "onnx::Mul"
		y = scale.arith(y, tensor.FromFloats(y.DType, []int64{}, []float64{alpha}))
		if t := c.t(2); t != nil {
			t = scale.arith(t, tensor.FromFloats(y.DType, []int64{}, []float64{beta}))
			scale.kind = "onnx::Add"
			y = scale.arith(y, expandTo(c, t, y.Shape))
		}
		return one(y)
	}
	if t := c.t(2); t != nil {
		return one(zipFloat(c, y, expandTo(c, t, y.Shape), func(p, q float64) float64 { return alpha*p + beta*q }))
	}
	if alpha != 1 {
		y = mapFloat(y, func(p float64) float64 { return alpha * p })
	}
	return one(y)
}

// expandTo broadcasts t to exactly the shape.
func expandTo(c *call, t *tensor.Tensor, shape []int64) *tensor.Tensor {
	if !slices.Equal(broadcastShape(c, t.Shape, shape), shape) {
		c.fail("shape %v does not fit %v", t.Shape, shape)
	}
	return expand(t, shape)
}

// evalEinsum contracts operands from left to right: each label that later
// operands and the output do not need is summed as soon as possible.
func evalEinsum(c *call) []*tensor.Tensor {
	e, ok := onnx.ParseEquation(c.str("equation"), len(c.in))
	if !ok {
		c.fail("equation %q does not fit %d operands", c.str("equation"), len(c.in))
	}
	// The axes of an ellipsis get labels of their own, counted from the right.
	wide := 0
	terms := make([][]int, len(e.Inputs))
	for i, labels := range e.Inputs {
		n := len(c.t(i).Shape) - len(labels)
		if slices.Contains(labels, onnx.EllipsisLabel) {
			n++
		}
		if n < 0 || n > 0 && !slices.Contains(labels, onnx.EllipsisLabel) {
			c.fail("equation %q does not fit operand %d of rank %d", c.str("equation"), i, len(c.t(i).Shape))
		}
		wide = max(wide, n)
		for _, l := range labels {
			if l != onnx.EllipsisLabel {
				terms[i] = append(terms[i], int(l))
				continue
			}
			for k := n; k > 0; k-- {
				terms[i] = append(terms[i], 1000+k)
			}
		}
	}
	var output []int
	for _, l := range e.Output {
		if l != onnx.EllipsisLabel {
			output = append(output, int(l))
			continue
		}
		for k := wide; k > 0; k-- {
			output = append(output, 1000+k)
		}
	}
	acc, labels := c.diagonal(c.t(0), terms[0])
	for i := 1; i < len(terms); i++ {
		t, l := c.diagonal(c.t(i), terms[i])
		keep := slices.Clone(output)
		for _, later := range terms[i+1:] {
			keep = append(keep, later...)
		}
		acc, labels = c.contract(acc, labels, t, l, keep)
	}
	unit := tensor.FromInts(acc.DType, []int64{}, []int64{1})
	acc, labels = c.contract(acc, labels, unit, nil, output)
	perm := make([]int, len(output))
	for i, l := range output {
		perm[i] = slices.Index(labels, l)
	}
	return one(transpose(acc, perm))
}

// diagonal takes the diagonal where a label occurs twice.
func (c *call) diagonal(t *tensor.Tensor, labels []int) (*tensor.Tensor, []int) {
	v := *t
	v.Shape, v.Strides = nil, nil
	var out []int
	for i, l := range labels {
		if k := slices.Index(out, l); k >= 0 {
			if v.Shape[k] != t.Shape[i] {
				c.fail("a repeated label is of size %d and %d", v.Shape[k], t.Shape[i])
			}
			v.Strides[k] += t.Strides[i]
			continue
		}
		out = append(out, l)
		v.Shape, v.Strides = append(v.Shape, t.Shape[i]), append(v.Strides, t.Strides[i])
	}
	if v.Shape == nil {
		v.Shape, v.Strides = []int64{}, []int64{}
	}
	return &v, out
}

// contract multiplies two labelled tensors and sums the labels that keep lacks:
// a batched matrix product over (shared kept, a's own, summed, b's own) labels.
func (c *call) contract(a *tensor.Tensor, la []int, b *tensor.Tensor, lb []int, keep []int) (*tensor.Tensor, []int) {
	size := map[int]int64{}
	for _, in := range [...]struct {
		t *tensor.Tensor
		l []int
	}{{a, la}, {b, lb}} {
		for i, l := range in.l {
			if n, seen := size[l]; !seen || n == 1 {
				size[l] = in.t.Shape[i]
			} else if in.t.Shape[i] != n && in.t.Shape[i] != 1 {
				c.fail("a label is of size %d and %d", n, in.t.Shape[i])
			}
		}
	}
	// Labels of one operand alone that are not kept are summed at once.
	a, la = c.sumOut(a, la, func(l int) bool { return !slices.Contains(lb, l) && !slices.Contains(keep, l) })
	b, lb = c.sumOut(b, lb, func(l int) bool { return !slices.Contains(la, l) && !slices.Contains(keep, l) })
	var batch, ownA, ownB, summed []int
	for _, l := range la {
		switch {
		case !slices.Contains(lb, l):
			ownA = append(ownA, l)
		case slices.Contains(keep, l):
			batch = append(batch, l)
		default:
			summed = append(summed, l)
		}
	}
	for _, l := range lb {
		if !slices.Contains(la, l) {
			ownB = append(ownB, l)
		}
	}
	arrange := func(t *tensor.Tensor, have []int, groups ...[]int) *tensor.Tensor {
		v := *t
		v.Shape, v.Strides = nil, nil
		flat := []int64{}
		for _, g := range groups {
			n := int64(1)
			for _, l := range g {
				k := slices.Index(have, l)
				stride := t.Strides[k]
				if t.Shape[k] == 1 {
					stride = 0
				}
				v.Shape, v.Strides = append(v.Shape, size[l]), append(v.Strides, stride)
				n *= size[l]
			}
			flat = append(flat, n)
		}
		if v.Shape == nil {
			v.Shape, v.Strides = []int64{}, []int64{}
		}
		return v.Clone().Reshape(flat)
	}
	y := c.matmul(arrange(a, la, batch, ownA, summed), arrange(b, lb, batch, summed, ownB))
	labels := slices.Concat(batch, ownA, ownB)
	shape := make([]int64, len(labels))
	for i, l := range labels {
		shape[i] = size[l]
	}
	return y.Reshape(shape), labels
}

func (c *call) sumOut(t *tensor.Tensor, labels []int, drop func(int) bool) (*tensor.Tensor, []int) {
	flags := make([]bool, len(labels))
	var rest []int
	any := false
	for i, l := range labels {
		if flags[i] = drop(l); flags[i] {
			any = true
		} else {
			rest = append(rest, l)
		}
	}
	if !any {
		return t, labels
	}
	view, rows, n := folded(t, flags)
	shape := view.Shape[:len(rest)]
	if t.DType.IsFloat() {
		return tensor.FromFloats(t.DType, shape, reduceRows(view.Float64s(), rows, n, total[float64])), rest
	}
	return tensor.FromInts(t.DType, shape, reduceRows(view.Int64s(), rows, n, total[int64])), rest
}

func total[T int64 | float64](row []T) T {
	s := T(0)
	for _, x := range row {
		s += x
	}
	return s
}

func evalDet(c *call) []*tensor.Tensor {
	x := c.t(0)
	r := len(x.Shape)
	if r < 2 || x.Shape[r-1] != x.Shape[r-2] {
		c.fail("shape %v is no square", x.Shape)
	}
	n := int(x.Shape[r-1])
	v := x.Float64s()
	out := make([]float64, prod(x.Shape[:r-2]))
	for b := range out {
		out[b] = det(v[b*n*n:(b+1)*n*n], n)
	}
	return one(tensor.FromFloats(x.DType, x.Shape[:r-2], out))
}

// det eliminates with partial pivoting, in place.
func det(m []float64, n int) float64 {
	d := 1.0
	for k := range n {
		p := k
		for i := k + 1; i < n; i++ {
			if abs(m[i*n+k]) > abs(m[p*n+k]) {
				p = i
			}
		}
		if m[p*n+k] == 0 {
			return 0
		}
		if p != k {
			d = -d
			for j := range n {
				m[k*n+j], m[p*n+j] = m[p*n+j], m[k*n+j]
			}
		}
		d *= m[k*n+k]
		for i := k + 1; i < n; i++ {
			f := m[i*n+k] / m[k*n+k]
			for j := k; j < n; j++ {
				m[i*n+j] -= f * m[k*n+j]
			}
		}
	}
	return d
}

func abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}
