package explore

import (
	"math"

	"github.com/aton-project/aton/ssa"
)

// cost estimates what an operator computes, in operations on elements, and the bytes of its operands and results. A multiplication
// and an addition count as two; sizes that are not known are those of the grapher, 1 where it has none. It is for comparing nodes
// with each other. -1 stands for what is not known: an operator with bodies, or a value without a shape.
func (g *grapher) cost(o *ssa.Op) (flops, bytes int64) {
	if len(o.Blocks) > 0 {
		return -1, -1
	}
	var in []int64 // elements
	for _, v := range o.Operands() {
		if v == nil {
			in = append(in, 0)
			continue
		}
		n, b := g.elements(v)
		if n < 0 {
			return -1, -1
		}
		in, bytes = append(in, n), add(bytes, b)
	}
	total := int64(0)
	for _, v := range o.Results {
		n, b := g.elements(v)
		if n < 0 {
			return -1, -1
		}
		bytes, total = add(bytes, b), add(total, n)
	}
	largest := int64(0)
	for _, n := range in {
		largest = max(largest, n)
	}
	switch o.Kind.Name() {
	case "Conv", "ConvInteger", "QLinearConv":
		weight := 1
		if o.Kind.Name() == "QLinearConv" {
			weight = 3
		}
		// each element of the result takes the weights of one output channel
		if len(in) <= weight {
			return -1, -1
		}
		channels := g.dim(o.Operand(weight), 0)
		if channels < 1 {
			return -1, bytes
		}
		flops = times(2, times(total, in[weight]/channels))
		if o.Kind.Name() == "Conv" && len(in) > 2 && in[2] > 0 {
			flops = add(flops, total)
		}
	case "ConvTranspose":
		channels := g.dim(o.Operand(1), 0)
		if len(in) < 2 || channels < 1 {
			return -1, bytes
		}
		flops = times(2, times(in[0], in[1]/channels))
	case "MatMul", "MatMulInteger", "Gemm":
		if len(in) < 2 {
			return -1, bytes
		}
		k := g.dim(o.Operand(0), -1)
		if o.Kind.Name() == "Gemm" && o.AttrInt("transA", 0) != 0 {
			k = g.dim(o.Operand(0), 0)
		}
		if k < 0 {
			return -1, bytes
		}
		flops = times(2, times(total, k))
		if len(in) > 2 && in[2] > 0 && o.Kind.Name() == "Gemm" {
			flops = add(flops, total)
		}
	case "LSTM", "GRU", "RNN":
		if len(in) < 3 {
			return -1, bytes
		}
		steps := times(g.dim(o.Operand(0), 0), g.dim(o.Operand(0), 1))
		if steps < 0 {
			return -1, bytes
		}
		flops = times(2, times(steps, add(in[1], in[2])))
	case "Einsum":
		return -1, bytes
	case "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose", "Concat", "Split", "Slice", "Gather", "GatherND", "GatherElements",
		"ScatterND", "ScatterElements", "Expand", "Tile", "Pad", "Shape", "Size", "Constant", "ConstantOfShape", "Cast", "CastLike", "DepthToSpace",
		"SpaceToDepth", "NonZero", "Compress", "OneHot", "EyeLike", "Range", "Dropout", "SequenceConstruct", "SequenceAt", "ConcatFromSequence":
	case "MaxPool", "AveragePool", "LpPool":
		window := int64(1)
		for _, k := range o.AttrInts("kernel_shape") {
			window = times(window, k)
		}
		flops = times(total, window)
	default: // one for each element that is taken or given
		flops = max(total, largest)
	}
	return flops, bytes
}

// elements is how many a value has, and their bytes; -1 where that is not known.
func (g *grapher) elements(v *ssa.Value) (n, bytes int64) {
	t := v.Tensor()
	if t == nil || !t.Ranked {
		return -1, -1
	}
	n = 1
	for i := range t.Dims {
		d := g.dim(v, i)
		if d < 0 {
			return -1, -1
		}
		n = times(n, d)
	}
	return n, times(n, int64(t.DType.Size()))
}

// dim is the size of an axis, which counts from the end when it is negative; -1 where it is not known.
func (g *grapher) dim(v *ssa.Value, axis int) int64 {
	if v == nil {
		return -1
	}
	t := v.Tensor()
	if t == nil || !t.Ranked {
		return -1
	}
	if axis < 0 {
		axis += len(t.Dims)
	}
	if axis < 0 || axis >= len(t.Dims) {
		return -1
	}
	env := map[string]int64{}
	t.Dims[axis].Symbols(func(name string) {
		env[name] = 1
		if n := g.sizes[name]; n > 0 {
			env[name] = n
		}
		g.g.Sizes[name] = env[name]
	})
	n, ok := t.Dims[axis].Eval(env)
	if !ok || n < 0 {
		return -1
	}
	return n
}

// times and add stop at the greatest number.
func times(a, b int64) int64 {
	switch {
	case a < 0 || b < 0:
		return -1
	case b > 0 && a > math.MaxInt64/b:
		return math.MaxInt64
	}
	return a * b
}

func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
