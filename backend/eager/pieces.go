package eager

import "slices"

func unbind(a arguments, x *Tensor) ([]*Tensor, error) {
	if len(x.shape) == 0 {
		return nil, raise("Dimension specified as 0 but tensor has no dimensions")
	}
	d, err := a.dim("dim", len(x.shape))
	if err != nil {
		return nil, err
	}
	if err := a.k.allow(x.shape[d]); err != nil {
		return nil, err
	}
	out := make([]*Tensor, x.shape[d])
	for i := range out {
		if out[i], err = selected(x, d, int64(i)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// pieces cuts a tensor at the ends of its pieces along an axis.
func pieces(x *Tensor, d int, sizes []int64) []*Tensor {
	out := make([]*Tensor, len(sizes))
	at := int64(0)
	for i, n := range sizes {
		out[i] = narrowed(x, d, at, n)
		at += n
	}
	return out
}

func (a arguments) evenly(x *Tensor, d int, size int64) ([]*Tensor, error) {
	n := x.shape[d]
	if size < 0 || size == 0 && n != 0 {
		return nil, raise("split_size can only be 0 if dimension size is 0, but got dimension size of %d", n)
	}
	if n == 0 || size == 0 {
		return []*Tensor{x.alias()}, nil
	}
	count := (n-1)/size + 1
	if err := a.k.allow(count); err != nil {
		return nil, err
	}
	sizes := slices.Repeat([]int64{min(size, n)}, int(count))
	sizes[count-1] = n - (count-1)*size
	return pieces(x, d, sizes), nil
}

func split(a arguments, x *Tensor) ([]*Tensor, error) {
	if len(x.shape) == 0 {
		return nil, raise("split expects at least a 1-dimensional tensor")
	}
	d, err := a.dim("dim", len(x.shape))
	if err != nil {
		return nil, err
	}
	by := a.value("split_size")
	if by == nil {
		by = a.value("split_sizes")
	}
	if n, even := by.(int64); even {
		return a.evenly(x, d, n)
	}
	sizes, err := asInts(by)
	if err != nil {
		return nil, err
	}
	sum := int64(0)
	for _, n := range sizes {
		if n < 0 || n > x.shape[d]-sum {
			return nil, raise("split_with_sizes expects split_sizes to sum exactly to %d (input tensor's size at dimension %d), but got split_sizes=%v", x.shape[d], d, sizes)
		}
		sum += n
	}
	if sum != x.shape[d] {
		return nil, raise("split_with_sizes expects split_sizes to sum exactly to %d (input tensor's size at dimension %d), but got split_sizes=%v", x.shape[d], d, sizes)
	}
	return pieces(x, d, sizes), nil
}

func chunk(a arguments, x *Tensor) ([]*Tensor, error) {
	if len(x.shape) == 0 {
		return nil, raise("chunk expects at least a 1-dimensional tensor")
	}
	r := a.read()
	d := r.dim("dim", len(x.shape))
	n := r.int("chunks", 1)
	if r.err != nil {
		return nil, r.err
	}
	if n <= 0 {
		return nil, raise("chunk expects `chunks` to be greater than 0, got: %d", n)
	}
	size := (x.shape[d] + n - 1) / n
	if size == 0 { // chunks of nothing are as many as were asked for
		if err := a.k.allow(n); err != nil {
			return nil, err
		}
		return pieces(x, d, make([]int64, n)), nil
	}
	return a.evenly(x, d, size)
}

func tensorSplit(a arguments, x *Tensor) ([]*Tensor, error) {
	if len(x.shape) == 0 {
		return nil, raise("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
	}
	d, err := a.dim("dim", len(x.shape))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"sections", "indices", "tensor_indices_or_sections", "indices_or_sections"} {
		v := a.value(name)
		if v == nil {
			continue
		}
		if t, isTensor := v.(*Tensor); isTensor && len(t.shape) == 0 {
			if v, err = number(t); err != nil {
				return nil, err
			}
		}
		return a.sections(x, d, v)
	}
	return nil, refuse("unsupported-args", "says nothing of the parts")
}

// sections splits as tensor_split does: by a number of parts, or at indices.
func (a arguments) sections(x *Tensor, d int, by Value) ([]*Tensor, error) {
	size := x.shape[d]
	if n, even := by.(int64); even {
		if n <= 0 {
			return nil, raise("number of sections must be larger than 0, got %d", n)
		}
		if err := a.k.allow(n); err != nil {
			return nil, err
		}
		sizes := make([]int64, n)
		for i := range sizes {
			sizes[i] = size / n
			if int64(i) < size%n {
				sizes[i]++
			}
		}
		return pieces(x, d, sizes), nil
	}
	at, err := asInts(by)
	if err != nil {
		return nil, err
	}
	var out []*Tensor
	from := int64(0)
	for _, end := range append(slices.Clone(at), size) {
		lo, hi := bounds(size, from, end)
		out = append(out, narrowed(x, d, lo, hi-lo))
		from = end
	}
	return out, nil
}

func axisSplit(a arguments, x *Tensor) ([]*Tensor, error) {
	name := a.schema.Name
	d, least := map[string]int{"aten::hsplit": 1, "aten::vsplit": 0, "aten::dsplit": 2}[name], map[string]int{"aten::hsplit": 1, "aten::vsplit": 2, "aten::dsplit": 3}[name]
	if len(x.shape) < least {
		return nil, raise("%s requires a tensor with at least %d dimensions, but got a tensor with %d dimensions!", name, least, len(x.shape))
	}
	if len(x.shape) == 1 {
		d = 0
	}
	by := a.value("sections")
	if by == nil {
		by = a.value("indices")
	}
	if n, even := by.(int64); even && (n <= 0 || x.shape[d]%n != 0) {
		return nil, raise("%s attempted to split along dimension %d, but the size of the dimension %d is not divisible by the split_size %d!", name, d, x.shape[d], n)
	}
	return a.sections(x, d, by)
}
