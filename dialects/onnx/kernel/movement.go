package kernel

import (
	"slices"

	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa/tensor"
)

// movement finds kernels that move elements. Most results are views.
func movement(name string) kernel {
	switch name {
	case "Identity":
		return func(c *call) []*tensor.Tensor { return one(c.t(0)) }
	case "Constant":
		return func(c *call) []*tensor.Tensor {
			if t := c.attr("value").Tensor; t != nil {
				return one(t)
			}
			c.fail("no value")
			return nil
		}
	case "Shape":
		return evalShape
	case "Size":
		return func(c *call) []*tensor.Tensor { return one(tensor.ScalarInt(c.t(0).NumElements())) }
	case "Reshape":
		return evalReshape
	case "Flatten":
		return evalFlatten
	case "Squeeze":
		return evalSqueeze
	case "Unsqueeze":
		return evalUnsqueeze
	case "Transpose":
		return evalTranspose
	case "Concat":
		return func(c *call) []*tensor.Tensor { return one(Concat(c.in, c.int("axis"))) }
	case "Split":
		return evalSplit
	case "Slice":
		return evalSlice
	case "Gather":
		return evalGather
	case "GatherElements":
		return evalGatherElements
	case "GatherND":
		return evalGatherND
	case "Expand":
		return evalExpand
	case "Tile":
		return evalTile
	case "Pad":
		return evalPad
	case "ConstantOfShape":
		return evalConstantOfShape
	case "Where":
		return evalWhere
	case "Compress":
		return evalCompress
	case "NonZero":
		return evalNonZero
	case "ReverseSequence":
		return evalReverseSequence
	case "Trilu":
		return evalTrilu
	case "OneHot":
		return evalOneHot
	case "EyeLike":
		return evalEyeLike
	case "Range":
		return evalRange
	}
	return nil
}

func intsTensor(v []int64) *tensor.Tensor { return tensor.Ints(v...) }

func evalShape(c *call) []*tensor.Tensor {
	s := c.t(0).Shape
	r := int64(len(s))
	clampAxis := func(name string, def int64) int64 {
		a := def
		if c.has(name) {
			a = c.int(name)
		}
		if a < 0 {
			a += r
		}
		return min(max(a, 0), r)
	}
	from, to := clampAxis("start", 0), clampAxis("end", r)
	return one(intsTensor(s[from:max(from, to)]))
}

func evalReshape(c *call) []*tensor.Tensor {
	x := c.t(0)
	shape := c.t(1).Int64s()
	hole, n := -1, int64(1)
	for i, s := range shape {
		if s == 0 && !c.flag("allowzero") {
			if i >= len(x.Shape) {
				c.fail("0 in place %d of shape %v for rank %d", i, shape, len(x.Shape))
			}
			shape[i] = x.Shape[i]
		}
		if shape[i] == -1 {
			if hole >= 0 {
				c.fail("shape %v has more than one -1", shape)
			}
			hole = i
		} else {
			if shape[i] < 0 {
				c.fail("negative size in shape %v", shape)
			}
			n *= shape[i]
		}
	}
	if hole >= 0 {
		if n == 0 || x.NumElements()%n != 0 {
			c.fail("%d elements do not fit shape %v", x.NumElements(), shape)
		}
		shape[hole] = x.NumElements() / n
		n *= shape[hole]
	}
	if n != x.NumElements() {
		c.fail("%d elements do not fit shape %v", x.NumElements(), shape)
	}
	return one(reshape(x, shape))
}

// reshape is Tensor.Reshape, for strings too.
func reshape(t *tensor.Tensor, shape []int64) *tensor.Tensor {
	if t.DType == tensor.String {
		return tensor.Strings(shape, t.StringData())
	}
	return t.Reshape(shape)
}

func evalFlatten(c *call) []*tensor.Tensor {
	x, a := c.t(0), c.int("axis")
	if a < 0 {
		a += int64(len(x.Shape))
	}
	if a < 0 || a > int64(len(x.Shape)) {
		c.fail("axis %d is out of range for rank %d", a, len(x.Shape))
	}
	return one(reshape(x, []int64{prod(x.Shape[:a]), prod(x.Shape[a:])}))
}

func prod(s []int64) int64 {
	n := int64(1)
	for _, v := range s {
		n *= v
	}
	return n
}

func evalSqueeze(c *call) []*tensor.Tensor {
	x := *c.t(0)
	drop := make([]bool, len(x.Shape))
	if c.t(1) != nil {
		for _, a := range c.t(1).Int64s() {
			k := c.axis(a, len(drop))
			if x.Shape[k] != 1 {
				c.fail("axis %d to squeeze is of size %d", a, x.Shape[k])
			}
			drop[k] = true
		}
	} else {
		for i, s := range x.Shape {
			drop[i] = s == 1
		}
	}
	shape, strides := []int64{}, []int64{}
	for i := range x.Shape {
		if !drop[i] {
			shape, strides = append(shape, x.Shape[i]), append(strides, x.Strides[i])
		}
	}
	x.Shape, x.Strides = shape, strides
	return one(&x)
}

func evalUnsqueeze(c *call) []*tensor.Tensor {
	x, axes := *c.t(0), c.t(1).Int64s()
	n := len(x.Shape) + len(axes)
	isNew := make([]bool, n)
	for _, a := range axes {
		k := c.axis(a, n)
		if isNew[k] {
			c.fail("axis %d occurs twice", a)
		}
		isNew[k] = true
	}
	shape, strides := make([]int64, n), make([]int64, n)
	at := 0
	for i := range shape {
		if isNew[i] {
			shape[i], strides[i] = 1, 1
		} else {
			shape[i], strides[i] = x.Shape[at], x.Strides[at]
			at++
		}
	}
	x.Shape, x.Strides = shape, strides
	return one(&x)
}

// transpose is a view with permuted axes.
func transpose(t *tensor.Tensor, perm []int) *tensor.Tensor {
	v := *t
	v.Shape, v.Strides = make([]int64, len(perm)), make([]int64, len(perm))
	for i, p := range perm {
		v.Shape[i], v.Strides[i] = t.Shape[p], t.Strides[p]
	}
	return &v
}

func evalTranspose(c *call) []*tensor.Tensor {
	x := c.t(0)
	perm := make([]int, len(x.Shape))
	for i := range perm {
		perm[i] = len(perm) - 1 - i
	}
	if c.has("perm") {
		p := c.ints("perm")
		seen := make([]bool, len(perm))
		for i, a := range p {
			if len(p) != len(perm) || a < 0 || int(a) >= len(perm) || seen[a] {
				c.fail("perm %v does not permute rank %d", p, len(perm))
			}
			perm[i], seen[a] = int(a), true
		}
	}
	return one(transpose(x, perm))
}

// Concat joins tensors along an axis. It panics on tensors that do not fit; Eval turns that into an error.
func Concat(ts []*tensor.Tensor, axis int64) *tensor.Tensor {
	first := ts[0]
	k := int(axis)
	if k < 0 {
		k += len(first.Shape)
	}
	if k < 0 || k >= len(first.Shape) {
		panic(failure("the axis is out of range"))
	}
	shape := slices.Clone(first.Shape)
	shape[k] = 0
	for _, t := range ts {
		if len(t.Shape) != len(shape) || t.DType != first.DType {
			panic(failure("inputs differ in rank or element type"))
		}
		for i, n := range t.Shape {
			if i != k && n != shape[i] {
				panic(failure("inputs differ in size"))
			}
		}
		shape[k] += t.Shape[k]
	}
	if first.DType == tensor.String {
		var parts [][]string
		for _, t := range ts {
			parts = append(parts, t.StringData())
		}
		return tensor.Strings(shape, interleave(parts, ts, k, 1))
	}
	var parts [][]byte
	for _, t := range ts {
		parts = append(parts, t.Bytes())
	}
	return tensor.New(first.DType, shape, interleave(parts, ts, k, int64(first.DType.Size())))
}

func interleave[T any](parts [][]T, ts []*tensor.Tensor, k int, size int64) []T {
	outer := prod(ts[0].Shape[:k])
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	out := make([]T, 0, n)
	for o := range outer {
		for i, p := range parts {
			run := prod(ts[i].Shape[k:]) * size
			if run > 0 {
				out = append(out, p[o*run:(o+1)*run]...)
			}
		}
	}
	return out
}

// cut is a view of a range of an axis.
func cut(t *tensor.Tensor, k int, from, n int64) *tensor.Tensor {
	v := *t
	v.Shape = slices.Clone(t.Shape)
	v.Shape[k] = n
	if n > 0 {
		v.Offset += from * t.Strides[k]
	}
	return &v
}

func evalSplit(c *call) []*tensor.Tensor {
	x := c.t(0)
	k := c.axis(c.int("axis"), len(x.Shape))
	var sizes []int64
	if c.t(1) != nil {
		sizes = c.t(1).Int64s()
	} else {
		n := int64(c.n)
		if c.has("num_outputs") {
			n = c.int("num_outputs")
		}
		if n < 1 || n > x.Shape[k]+1<<16 {
			c.fail("%d outputs", n)
		}
		piece, left := (x.Shape[k]+n-1)/n, x.Shape[k]
		for range n {
			sizes = append(sizes, min(piece, left))
			left -= min(piece, left)
		}
	}
	var out []*tensor.Tensor
	at := int64(0)
	for _, n := range sizes {
		if n < 0 || at+n > x.Shape[k] {
			c.fail("sizes %v do not fit an axis of %d", sizes, x.Shape[k])
		}
		out = append(out, cut(x, k, at, n))
		at += n
	}
	if at != x.Shape[k] {
		c.fail("sizes %v do not fit an axis of %d", sizes, x.Shape[k])
	}
	return out
}

// take gathers elements at row-major positions of t; position -1 gives zero.
func take(t *tensor.Tensor, shape []int64, at []int64) *tensor.Tensor {
	if t.DType == tensor.String {
		s, out := t.StringData(), make([]string, len(at))
		for i, p := range at {
			if p >= 0 {
				out[i] = s[p]
			}
		}
		return tensor.Strings(shape, out)
	}
	switch size := int64(t.DType.Size()); size {
	case 1:
		return picked[uint8](t, tensor.Uint8, shape, at)
	case 2:
		return picked[uint16](t, tensor.Uint16, shape, at)
	case 4:
		return picked[uint32](t, tensor.Uint32, shape, at)
	case 8:
		return picked[uint64](t, tensor.Uint64, shape, at)
	}
	return as(picked[complex128](as(t, tensor.Complex128), tensor.Complex128, shape, at), t.DType)
}

// as gives the same bytes another element type of the same size.
func as(t *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	v := *t
	v.DType = d
	return &v
}

// picked is take for elements of the size of d.
func picked[T tensor.Number](t *tensor.Tensor, d tensor.DType, shape, at []int64) *tensor.Tensor {
	src, out := tensor.Data[T](as(t, d)), make([]T, len(at))
	for i, p := range at {
		if p >= 0 {
			out[i] = src[p]
		}
	}
	return as(tensor.Of(d, shape, out), t.DType)
}

// positions calls f with the index of each element of a shape in row-major order.
func positions(shape []int64, f func(i int, idx []int64)) {
	n := prod(shape)
	idx := make([]int64, len(shape))
	for i := range n {
		f(int(i), idx)
		for k := len(idx) - 1; k >= 0; k-- {
			idx[k]++
			if idx[k] < shape[k] {
				break
			}
			idx[k] = 0
		}
	}
}

// flat is the row-major position of an index.
func flat(shape, idx []int64) int64 {
	p := int64(0)
	for i, n := range shape {
		p = p*n + idx[i]
	}
	return p
}

func evalSlice(c *call) []*tensor.Tensor {
	x := c.t(0)
	starts, ends := c.t(1).Int64s(), c.t(2).Int64s()
	axes, steps := make([]int64, len(starts)), make([]int64, len(starts))
	for i := range starts {
		axes[i], steps[i] = int64(i), 1
	}
	if c.t(3) != nil {
		axes = c.t(3).Int64s()
	}
	if c.t(4) != nil {
		steps = c.t(4).Int64s()
	}
	if len(ends) != len(starts) || len(axes) != len(starts) || len(steps) != len(starts) {
		c.fail("starts, ends, axes and steps differ in length")
	}
	for i, a := range axes {
		k := c.axis(a, len(x.Shape))
		if steps[i] == 0 {
			c.fail("step 0")
		}
		n := x.Shape[k]
		from, to := formula.ClampSlice(starts[i], ends[i], steps[i], n)
		if steps[i] > 0 {
			size := max(0, (to-from+steps[i]-1)/steps[i])
			v := cut(x, k, from, size)
			v.Strides = slices.Clone(v.Strides)
			v.Strides[k] *= steps[i]
			if size <= 1 {
				v.Strides[k] = 1
			}
			x = v
			continue
		}
		var picked []int64
		for p := from; p > to && p >= 0; p += steps[i] {
			picked = append(picked, p)
		}
		x = gatherAxis(x, k, picked, []int64{int64(len(picked))})
	}
	return one(x)
}

// gatherAxis picks positions of an axis, which is replaced by axes of the given shape.
func gatherAxis(t *tensor.Tensor, k int, picked []int64, shape []int64) *tensor.Tensor {
	out := append(slices.Clone(t.Shape[:k]), shape...)
	out = append(out, t.Shape[k+1:]...)
	outer, n, inner := prod(t.Shape[:k]), t.Shape[k], prod(t.Shape[k+1:])
	if t.DType == tensor.String {
		return tensor.Strings(out, gatherRows(t.StringData(), outer, n, inner, picked))
	}
	return tensor.New(t.DType, out, gatherRows(t.Bytes(), outer, n, inner*int64(t.DType.Size()), picked))
}

func gatherRows[T any](src []T, outer, n, inner int64, picked []int64) []T {
	out := make([]T, 0, outer*int64(len(picked))*inner)
	if inner == 0 {
		return out
	}
	for o := range outer {
		for _, p := range picked {
			at := (o*n + p) * inner
			out = append(out, src[at:at+inner]...)
		}
	}
	return out
}

// indices reads an index tensor with negative ones counted from the end of an axis of size n.
func (c *call) indices(t *tensor.Tensor, n int64) []int64 {
	v := t.Int64s()
	for i, p := range v {
		if p < 0 {
			p += n
		}
		if p < 0 || p >= n {
			c.fail("index %d is out of range for size %d", v[i], n)
		}
		v[i] = p
	}
	return v
}

func evalGather(c *call) []*tensor.Tensor {
	x, ix := c.t(0), c.t(1)
	k := c.axis(c.int("axis"), len(x.Shape))
	if len(ix.Shape) == 0 && x.DType != tensor.String {
		v := *cut(x, k, c.indices(ix, x.Shape[k])[0], 1)
		v.Shape, v.Strides = slices.Delete(slices.Clone(v.Shape), k, k+1), slices.Delete(slices.Clone(v.Strides), k, k+1)
		return one(&v)
	}
	c.count(append(slices.Clone(ix.Shape), prod(x.Shape[:k])*prod(x.Shape[k+1:])))
	return one(gatherAxis(x, k, c.indices(ix, x.Shape[k]), ix.Shape))
}

func evalGatherElements(c *call) []*tensor.Tensor {
	x, ix := c.t(0), c.t(1)
	k := c.axis(c.int("axis"), len(x.Shape))
	if len(ix.Shape) != len(x.Shape) {
		c.fail("data of rank %d, indices of rank %d", len(x.Shape), len(ix.Shape))
	}
	for i, n := range ix.Shape {
		if i != k && n > x.Shape[i] {
			c.fail("data %v, indices %v", x.Shape, ix.Shape)
		}
	}
	v := c.indices(ix, x.Shape[k])
	at := make([]int64, len(v))
	src := make([]int64, len(x.Shape))
	positions(ix.Shape, func(i int, idx []int64) {
		copy(src, idx)
		src[k] = v[i]
		at[i] = flat(x.Shape, src)
	})
	return one(take(x, ix.Shape, at))
}

func evalGatherND(c *call) []*tensor.Tensor {
	x, ix, b := c.t(0), c.t(1), int(c.int("batch_dims"))
	r := len(ix.Shape) - 1
	if r < 0 || b < 0 || b > r || b+int(ix.Shape[r]) > len(x.Shape) || !slices.Equal(x.Shape[:b], ix.Shape[:b]) {
		c.fail("data %v, indices %v, batch_dims %d", x.Shape, ix.Shape, b)
	}
	m := int(ix.Shape[r])
	shape := append(slices.Clone(ix.Shape[:r]), x.Shape[b+m:]...)
	block := prod(x.Shape[b+m:])
	v := ix.Int64s()
	n := prod(ix.Shape[:r])
	perBatch := prod(ix.Shape[b:r])
	at := make([]int64, 0, n*block)
	for i := range n {
		p := int64(0)
		if perBatch > 0 {
			p = i / perBatch
		}
		for j := range m {
			q := v[i*int64(m)+int64(j)]
			if q < 0 {
				q += x.Shape[b+j]
			}
			if q < 0 || q >= x.Shape[b+j] {
				c.fail("index %d is out of range for size %d", q, x.Shape[b+j])
			}
			p = p*x.Shape[b+j] + q
		}
		for e := range block {
			at = append(at, p*block+e)
		}
	}
	return one(take(x, shape, at))
}

func evalExpand(c *call) []*tensor.Tensor {
	x := c.t(0)
	shape := c.t(1).Int64s()
	c.count(shape)
	out := broadcastShape(c, x.Shape, shape)
	return one(expand(x, out))
}

func evalTile(c *call) []*tensor.Tensor {
	x, reps := c.t(0), c.t(1).Int64s()
	if len(reps) != len(x.Shape) {
		c.fail("%d repeats for rank %d", len(reps), len(x.Shape))
	}
	shape := make([]int64, len(reps))
	for i, r := range reps {
		if r < 0 {
			c.fail("negative repeat in %v", reps)
		}
		shape[i] = x.Shape[i] * r
	}
	c.count(shape)
	at := make([]int64, prod(shape))
	src := make([]int64, len(shape))
	positions(shape, func(i int, idx []int64) {
		for k := range idx {
			src[k] = idx[k] % x.Shape[k]
		}
		at[i] = flat(x.Shape, src)
	})
	return one(take(x, shape, at))
}

func evalPad(c *call) []*tensor.Tensor {
	x, pads, mode := c.t(0), c.t(1).Int64s(), c.str("mode")
	r := len(x.Shape)
	before, after := make([]int64, r), make([]int64, r)
	axes := make([]int64, r)
	for i := range axes {
		axes[i] = int64(i)
	}
	if c.t(3) != nil {
		axes = c.t(3).Int64s()
	}
	if len(pads) != 2*len(axes) {
		c.fail("%d pads for %d axes", len(pads), len(axes))
	}
	shape := slices.Clone(x.Shape)
	for i, a := range axes {
		k := c.axis(a, r)
		before[k], after[k] = pads[i], pads[i+len(axes)]
		shape[k] += pads[i] + pads[i+len(axes)]
	}
	c.count(shape)
	at := make([]int64, prod(shape))
	src := make([]int64, r)
	positions(shape, func(i int, idx []int64) {
		outside := false
		for k := range idx {
			p, n := idx[k]-before[k], x.Shape[k]
			if p < 0 || p >= n {
				switch mode {
				case "edge":
					p = min(max(p, 0), n-1)
				case "reflect":
					p = reflect(p, n)
				case "wrap":
					if n > 0 {
						p = (p%n + n) % n
					}
				default:
					outside = true
				}
				if n == 0 {
					outside = true
				}
			}
			src[k] = p
		}
		if at[i] = -1; !outside {
			at[i] = flat(x.Shape, src)
		}
	})
	value := c.t(2)
	if mode != "constant" && mode != "" || value == nil {
		if x.DType == tensor.String || !slices.Contains(at, -1) {
			return one(take(x, shape, at))
		}
		value = nil
	}
	if value == nil {
		return one(take(x, shape, at))
	}
	if value.NumElements() != 1 || value.DType != x.DType {
		c.fail("the padding value is %v", value)
	}
	// The value joins the data as one more element.
	n := x.NumElements()
	for i, p := range at {
		if p < 0 {
			at[i] = n
		}
	}
	return one(take(Concat([]*tensor.Tensor{reshape(x, []int64{n}), reshape(value, []int64{1})}, 0), shape, at))
}

// reflect folds a position outside of 0..n-1 back without repeating the edge.
func reflect(p, n int64) int64 {
	if n <= 1 {
		return 0
	}
	period := 2 * (n - 1)
	p = (p%period + period) % period
	if p >= n {
		p = period - p
	}
	return p
}

func evalConstantOfShape(c *call) []*tensor.Tensor {
	shape := c.t(0).Int64s()
	c.count(shape)
	v := c.attr("value").Tensor
	if v == nil {
		return one(tensor.Full(tensor.Float32, shape, 0))
	}
	if v.NumElements() != 1 {
		c.fail("the value has %d elements", v.NumElements())
	}
	return one(expand(v.Reshape([]int64{}), shape))
}

func evalWhere(c *call) []*tensor.Tensor {
	cond, x, y := c.t(0), c.t(1), c.t(2)
	if x.DType != y.DType || cond.DType != tensor.Bool {
		c.fail("element types %v, %v and %v", cond.DType, x.DType, y.DType)
	}
	shape := broadcastShape(c, cond.Shape, x.Shape, y.Shape)
	m := tensor.Data[uint8](expand(cond, shape))
	if x.DType == tensor.String {
		a, b := expand(x, shape).StringData(), expand(y, shape).StringData()
		for i := range a {
			if m[i] == 0 {
				a[i] = b[i]
			}
		}
		return one(tensor.Strings(shape, a))
	}
	a, b := expand(x, shape).Bytes(), expand(y, shape).Bytes()
	size := x.DType.Size()
	out := slices.Clone(b)
	for i := 0; i < len(m); {
		if m[i] == 0 {
			i++
			continue
		}
		first := i
		for i < len(m) && m[i] != 0 {
			i++
		}
		copy(out[first*size:i*size], a[first*size:])
	}
	return one(tensor.New(x.DType, shape, out))
}
