package eager

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa/tensor"
)

// inferSize replaces the -1 in a shape.
func inferSize(shape []int64, numel int64) ([]int64, error) {
	out := slices.Clone(shape)
	known, at := int64(1), -1
	for i, n := range out {
		switch {
		case n == -1 && at < 0:
			at = i
		case n < 0:
			return nil, raise("invalid shape dimension %d", n)
		case n > 0 && known > math.MaxInt64/n:
			return nil, raise("shape %v is invalid for input of size %d", shape, numel)
		default:
			known *= n
		}
	}
	if at >= 0 && known > 0 && numel%known == 0 {
		out[at] = numel / known
		return out, nil
	}
	if at >= 0 || known != numel {
		return nil, raise("shape '%v' is invalid for input of size %d", shape, numel)
	}
	return out, nil
}

// viewWith is a view with another shape; ok is false where only a copy has that shape.
func viewWith(x *Tensor, size []int64) (v *Tensor, ok bool, err error) {
	shape, err := inferSize(size, x.numel())
	if err != nil {
		return nil, false, err
	}
	strides, ok := reshapedStrides(x, shape)
	if !ok {
		return nil, false, nil
	}
	return x.view(x.offset, shape, strides), true, nil
}

func mustView(x *Tensor, size []int64) (*Tensor, error) {
	v, ok, err := viewWith(x, size)
	if err == nil && !ok {
		err = raise("view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead.")
	}
	return v, err
}

func (a arguments) viewed(x *Tensor, name string) (*Tensor, error) {
	size, err := a.ints(name)
	if err != nil {
		return nil, err
	}
	return mustView(x, size)
}

func reshape(x *Tensor, size []int64) (*Tensor, error) {
	v, ok, err := viewWith(x, size)
	if err != nil || ok {
		return v, err
	}
	shape, err := inferSize(size, x.numel())
	if err != nil {
		return nil, err
	}
	c := copied(x)
	c.shape, c.strides = shape, tensor.ContiguousStrides(shape)
	return c, nil
}

// copied is a row-major copy.
func copied(x *Tensor) *Tensor {
	c := Of(x.Tensor().Clone())
	c.mem.owned = true
	return c
}

func contiguous(x *Tensor) *Tensor {
	if x.isContiguous() {
		return x
	}
	return copied(x)
}

func viewAs(a arguments, x *Tensor) (Value, bool, error) {
	if a.has("dtype") {
		code, err := a.int("dtype", 0)
		if err != nil {
			return nil, true, err
		}
		d := tensor.FromCode(int(code))
		if d == tensor.Undefined || d.Opaque() || x.dtype.Opaque() || d.Size() != x.dtype.Size() {
			return nil, true, refuse("unsupported-args", "a view of %v as %v", x.dtype, d)
		}
		v := x.alias()
		v.dtype = d
		return v, true, nil
	}
	v, err := a.viewed(x, "size")
	return v, true, err
}

func flatten(a arguments, x *Tensor) (*Tensor, error) {
	if len(x.shape) == 0 {
		return reshape(x, []int64{1})
	}
	r := a.read()
	i := r.dim("start_dim", len(x.shape))
	end := r.int("end_dim", -1)
	j := r.wrap(end, len(x.shape))
	if r.err != nil {
		return nil, r.err
	}
	if i > j {
		return nil, raise("flatten() has invalid args: start_dim cannot come after end_dim")
	}
	if i == j {
		return x, nil
	}
	size := append(slices.Clone(x.shape[:i]), product(x.shape[i:j+1]))
	return reshape(x, append(size, x.shape[j+1:]...))
}

func unflatten(a arguments, x *Tensor) (*Tensor, error) {
	if len(x.shape) == 0 {
		return nil, raise("unflatten: tensor has no dimensions")
	}
	r := a.read()
	d := r.dim("dim", len(x.shape))
	sizes := r.ints("sizes")
	if r.err != nil {
		return nil, r.err
	}
	inner, err := inferSize(sizes, x.shape[d])
	if err != nil {
		return nil, err
	}
	size := append(slices.Clone(x.shape[:d]), inner...)
	return mustView(x, append(size, x.shape[d+1:]...))
}

func unsqueeze(a arguments, x *Tensor) (*Tensor, error) {
	d, err := a.dim("dim", len(x.shape)+1)
	if err != nil {
		return nil, err
	}
	stride := int64(1)
	if d < len(x.shape) {
		stride = x.shape[d] * x.strides[d]
	}
	return x.view(x.offset, slices.Insert(slices.Clone(x.shape), d, 1), slices.Insert(slices.Clone(x.strides), d, stride)), nil
}

func squeeze(a arguments, x *Tensor) (*Tensor, error) {
	may := make([]bool, len(x.shape))
	if a.has("dim") {
		dims, err := a.ints("dim")
		if err != nil {
			return nil, err
		}
		for _, d := range dims {
			i, err := wrapDim(d, len(x.shape))
			if err != nil {
				return nil, err
			}
			if i < len(may) {
				may[i] = true
			}
		}
	} else {
		for i := range may {
			may[i] = true
		}
	}
	v := x.view(x.offset, []int64{}, []int64{})
	for i, n := range x.shape {
		if n != 1 || !may[i] {
			v.shape, v.strides = append(v.shape, n), append(v.strides, x.strides[i])
		}
	}
	return v, nil
}

func atLeast(n int) viewOp {
	return func(a arguments, x *Tensor) (Value, bool, error) {
		if x == nil {
			return nil, false, nil
		}
		if len(x.shape) >= n {
			return x, true, nil
		}
		v := x.alias()
		switch {
		case len(x.shape) == 0:
			v.shape = slices.Repeat([]int64{1}, n)
		case n == 2:
			v.shape = []int64{1, x.shape[0]}
		case len(x.shape) == 1:
			v.shape = []int64{1, x.shape[0], 1}
		default:
			v.shape = []int64{x.shape[0], x.shape[1], 1}
		}
		v, err := reshape(x, v.shape)
		return v, true, err
	}
}

func expand(x *Tensor, size []int64) (*Tensor, error) {
	n, pad := len(size), len(size)-len(x.shape)
	if pad < 0 {
		return nil, raise("expand(%v, size=%v): the number of sizes provided (%d) must be greater or equal to the number of dimensions in the tensor (%d)", x, size, n, len(x.shape))
	}
	v := x.view(x.offset, make([]int64, n), make([]int64, n))
	for i := n - 1; i >= 0; i-- {
		have, stride := int64(1), int64(0)
		if i >= pad {
			have, stride = x.shape[i-pad], x.strides[i-pad]
		} else if i < n-1 {
			stride = v.shape[i+1] * v.strides[i+1]
		}
		want := size[i]
		switch {
		case want == -1 && i >= pad:
			want = have
		case want < 0:
			return nil, raise("The expanded size of the tensor (%d) isn't allowed in a leading, non-existing dimension %d", want, i)
		}
		if want != have {
			if have != 1 {
				return nil, raise("The expanded size of the tensor (%d) must match the existing size (%d) at non-singleton dimension %d.  Target sizes: %v.  Tensor sizes: %v", want, have, i, size, x.shape)
			}
			stride = 0
		}
		v.shape[i], v.strides[i] = want, stride
	}
	return v, nil
}

func (a arguments) expanded(x *Tensor, name string) (*Tensor, error) {
	size, err := a.ints(name)
	if err != nil {
		return nil, err
	}
	return expand(x, size)
}

// broadcast is the shape that tensors have together.
func broadcast(shapes ...[]int64) ([]int64, error) {
	n := 0
	for _, s := range shapes {
		n = max(n, len(s))
	}
	out := slices.Repeat([]int64{1}, n)
	for _, s := range shapes {
		pad := n - len(s)
		for i, d := range s {
			switch {
			case out[pad+i] == 1:
				out[pad+i] = d
			case d != 1 && d != out[pad+i]:
				return nil, raise("The size of tensor a (%d) must match the size of tensor b (%d) at non-singleton dimension %d", out[pad+i], d, pad+i)
			}
		}
	}
	return out, nil
}

// together gives views of tensors in the shape that they have together.
func together(ts []*Tensor) ([]*Tensor, error) {
	shapes := make([][]int64, len(ts))
	for i, t := range ts {
		shapes[i] = t.shape
	}
	shape, err := broadcast(shapes...)
	if err != nil {
		return nil, err
	}
	out := make([]*Tensor, len(ts))
	for i, t := range ts {
		if out[i], err = expand(t, shape); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// meshgrid gives views of vectors, each along an axis of its own.
func meshgrid(ts []*Tensor, indexing string) ([]*Tensor, error) {
	ts = slices.Clone(ts)
	swap := indexing == "xy" && len(ts) >= 2
	if swap {
		ts[0], ts[1] = ts[1], ts[0]
	}
	var shape []int64
	for _, t := range ts {
		if len(t.shape) > 1 {
			return nil, raise("torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: %v", t)
		}
		shape = append(shape, t.numel())
	}
	out := make([]*Tensor, len(ts))
	for i, t := range ts {
		size := slices.Repeat([]int64{1}, len(ts))
		size[i] = -1
		v, err := mustView(t, size)
		if err != nil {
			return nil, err
		}
		if out[i], err = expand(v, shape); err != nil {
			return nil, err
		}
	}
	if swap {
		out[0], out[1] = out[1], out[0]
	}
	return out, nil
}
