package eager

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Operators that the dialect aten has no ONNX form for, or one of their parts only.

// hashTensor is the exclusive or of the bits of the elements along dimensions, as float64 or int64 (aten/src/ATen/native/ReduceOps.cpp).
func hashTensor(k *machine, a arguments) (Value, bool, error) {
	x, ok := a.vals[0].(*Tensor)
	mode, err := a.int("mode", 0)
	if !ok || err != nil || mode != 0 || !x.dtype.HoldsNumbers() || x.dtype.IsComplex() || a.has("out") {
		return nil, false, err
	}
	dims, err := a.ints("dim")
	if err != nil {
		return nil, true, err
	}
	if len(dims) == 0 && x.numel() == 0 {
		return nil, true, raise("hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
	}
	gone := make([]bool, len(x.shape))
	for i := range gone {
		gone[i] = len(dims) == 0
	}
	for _, d := range dims {
		i, err := wrapDim(d, len(x.shape))
		if err != nil {
			return nil, true, err
		}
		if i < len(gone) {
			gone[i] = true
		}
	}
	keep, _ := a.value("keepdim").(bool)
	shape, strides := []int64{}, make([]int64, len(x.shape))
	n := int64(1)
	for i := len(x.shape) - 1; i >= 0; i-- {
		if !gone[i] {
			strides[i] = n
			n *= x.shape[i]
		}
	}
	for i, size := range x.shape {
		switch {
		case !gone[i]:
			shape = append(shape, size)
		case keep:
			shape = append(shape, 1)
		}
	}
	t := x.Tensor()
	if !t.HasData() {
		return nil, true, refuse("unsupported-value", "the elements of an operand are not there")
	}
	bits := make([]uint64, x.numel())
	if t.DType.IsFloat() {
		for i, v := range t.Float64s() {
			bits[i] = math.Float64bits(v)
		}
	} else {
		for i, v := range t.Int64s() {
			bits[i] = uint64(v)
		}
	}
	out := make([]uint64, n)
	i := 0
	(&Tensor{shape: x.shape, strides: strides}).each(func(at int64) {
		out[at] ^= bits[i]
		i++
	})
	return Of(tensor.Of(tensor.Uint64, shape, out)), true, nil
}

// histogramdd gives the counts and the edges of the bins, which are operators of their own.
func histogramdd(k *machine, a arguments) (Value, bool, error) {
	x, ok := a.vals[0].(*Tensor)
	if !ok || len(x.shape) == 0 {
		return nil, false, nil
	}
	bins := a.value("bins")
	counts := ssa.Kind("aten::_histogramdd_from_bin_cts")
	edges, given := bins.(*List)
	switch {
	case given && len(edges.Elems) > 0 && slices.ContainsFunc(edges.Elems, func(e Value) bool { _, t := e.(*Tensor); return t }):
		counts = "aten::_histogramdd_from_bin_tensors"
	case isInt(bins): // the same number for each coordinate
		if err := k.allow(x.shape[len(x.shape)-1]); err != nil {
			return nil, true, err
		}
		bins = &List{Elem: ssa.IntType, Elems: slices.Repeat([]Value{bins}, int(x.shape[len(x.shape)-1]))}
	}
	part := func(kind ssa.Kind) (Value, error) {
		schemas := aten.Schemas(kind)
		if len(schemas) == 0 {
			return nil, refuse("unsupported-op", "there is no operator %s", kind)
		}
		args := make([]Value, len(schemas[0].Args))
		for i, arg := range schemas[0].Args {
			if args[i] = a.value(arg.Name); arg.Name == "bins" {
				args[i] = bins
			}
		}
		rs, err := k.call(kind, schemas[0], nil, args)
		if err != nil {
			return nil, err
		}
		return rs[0], nil
	}
	hist, err := part(counts)
	if err != nil {
		return nil, true, err
	}
	if counts == "aten::_histogramdd_from_bin_tensors" {
		return &Tuple{Elems: []Value{hist, edges}}, true, nil
	}
	all, err := part("aten::_histogramdd_bin_edges")
	return &Tuple{Elems: []Value{hist, all}}, true, err
}
