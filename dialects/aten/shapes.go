package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// shapes holds questions about a tensor whose answer is not in its elements.
var shapes = Defs{
	"aten::size":               {Doc: "the shape, or the size of one dimension", Batching: CountsDims, Complex: ofRealPart, Lower: lowerSize},
	"aten::sym_size":           {Doc: "size", Alias: "aten::size", Complex: ofRealPart, Lower: lowerSize},
	"aten::_shape_as_tensor":   {Doc: "the shape as a tensor", Lower: func(l *Lowering) *ssa.Value { return l.shapeOf(l.Tensor("self")) }},
	"aten::broadcast_shapes":   {Doc: "the common shape of two shapes", Lower: lowerBroadcastShapes},
	"aten::numel":              {Doc: "the number of elements", Complex: ofRealPart, Lower: lowerNumel},
	"aten::sym_numel":          {Doc: "the number of elements", Alias: "aten::numel", Complex: ofRealPart, Lower: lowerNumel},
	"aten::dim":                {Doc: "the number of dimensions", Complex: ofRealPart, Lower: lowerDimCount},
	"aten::ndimension":         {Doc: "the number of dimensions", Lower: lowerDimCount},
	"aten::len":                {Doc: "the size of the first dimension; the length of a list", Complex: ofRealPart, Lower: lowerLen},
	"aten::stride":             {Doc: "the strides of a row-major tensor", Lower: lowerStride},
	"aten::sym_stride":         {Doc: "stride", Alias: "aten::stride", Lower: lowerStride},
	"aten::storage_offset":     {Doc: "the place of the first element in its storage", Lower: lowerStorageOffset},
	"aten::sym_storage_offset": {Doc: "storage_offset", Alias: "aten::storage_offset", Lower: lowerStorageOffset},
	"aten::element_size": {Doc: "the bytes of an element", Lower: func(l *Lowering) *ssa.Value {
		return l.scalarInt(tensor.Int64, int64(l.DType(l.Tensor("self")).Size()))
	}},
	"aten::is_floating_point":            answers(func(d tensor.DType) bool { return d.IsFloat() }),
	"aten::is_complex":                   answers(func(d tensor.DType) bool { return d.IsComplex() }),
	"aten::is_signed":                    answers(func(d tensor.DType) bool { return d.IsSigned() || d.IsFloat() || d.IsComplex() }),
	"aten::is_conj":                      answers(func(tensor.DType) bool { return false }),
	"aten::is_neg":                       answers(func(tensor.DType) bool { return false }),
	"aten::is_inference":                 answers(func(tensor.DType) bool { return false }),
	"aten::is_pinned":                    answers(func(tensor.DType) bool { return false }),
	"aten::is_distributed":               answers(func(tensor.DType) bool { return false }),
	"aten::is_same_size":                 {Doc: "whether the shapes are equal", Lower: lowerIsSameSize},
	"aten::is_contiguous":                {Doc: "whether the elements are stored in row-major order", Lower: lowerIsContiguous},
	"aten::sym_is_contiguous":            {Doc: "is_contiguous", Lower: lowerIsContiguous},
	"aten::is_non_overlapping_and_dense": {Doc: "whether the elements fill their storage", Lower: lowerIsContiguous},
}

// answers is a question about the element type alone.
func answers(f func(tensor.DType) bool) *Def {
	return &Def{TakesComplex: true, Doc: "a property of the element type", Lower: func(l *Lowering) *ssa.Value {
		return l.boolScalar(f(l.DType(l.Tensor("self"))))
	}}
}

func (l *Lowering) boolScalar(v bool) *ssa.Value {
	n := int64(0)
	if v {
		n = 1
	}
	return l.scalarInt(tensor.Bool, n)
}

func lowerSize(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if !l.HasArg("dim") {
		return l.shapeOf(x)
	}
	t := x.Tensor()
	if t == nil || !t.Ranked || !l.IsConst("dim") {
		return l.gather(l.shapeOf(x), l.sizeValue(l.sizeArg("dim")), 0)
	}
	if len(t.Dims) == 0 {
		l.Fail("a tensor of rank 0 has no size(dim)")
	}
	return l.sizeValue(l.sizeOf(x, l.Dim("dim", len(t.Dims))))
}

func lowerBroadcastShapes(l *Lowering) *ssa.Value {
	a, b := l.sizes("a"), l.sizes("b")
	for i := 1; i <= min(len(a), len(b)); i++ {
		m, ok := a[len(a)-i].Int()
		n, ok2 := b[len(b)-i].Int()
		if ok && ok2 && m != n && m != 1 && n != 1 {
			l.Fail("sizes %d and %d do not broadcast", m, n)
		}
	}
	return l.sizeTensor(l.broadcastSizes(a, b))
}

func lowerNumel(l *Lowering) *ssa.Value { return l.Size(l.Tensor("self")) }

func lowerDimCount(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if t := x.Tensor(); t != nil && t.Ranked {
		return l.scalarInt(tensor.Int64, int64(len(t.Dims)))
	}
	return l.Size(l.shapeOf(x))
}

func lowerLen(l *Lowering) *ssa.Value {
	if l.HasArg("a") {
		return lowerListLen(l)
	}
	x := l.Tensor("t")
	if l.Rank(x) == 0 {
		l.Fail("len of a tensor of rank 0")
	}
	return l.sizeValue(l.sizeOf(x, 0))
}

// lowerStride converts the strides of a tensor that is known to be row-major.
func lowerStride(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if !rowMajor(l.Arg("self"), maxTrace) {
		l.Fail("the strides of this tensor depend on how it was made")
	}
	dims := l.allSizes(x)
	strides := make([]Size, len(dims))
	step := ConstSize(1)
	for i := len(dims) - 1; i >= 0; i-- {
		strides[i] = step
		step = l.mulSize(step, l.greatestSize(dims[i], ConstSize(1)))
	}
	if l.HasArg("dim") {
		return l.sizeValue(strides[l.Dim("dim", len(dims))])
	}
	return l.sizeTensor(strides)
}

func lowerStorageOffset(l *Lowering) *ssa.Value {
	if !rowMajor(l.Arg("self"), maxTrace) {
		l.Fail("the storage offset of this tensor depends on how it was made")
	}
	return l.scalarInt(tensor.Int64, 0)
}

func lowerIsContiguous(l *Lowering) *ssa.Value {
	if !l.IsNone("memory_format") && l.Int("memory_format") != 0 || !rowMajor(l.Arg("self"), maxTrace) {
		l.Fail("whether this tensor is contiguous depends on how it was made")
	}
	return l.boolScalar(true)
}

func lowerIsSameSize(l *Lowering) *ssa.Value {
	x, y := l.Tensor("self"), l.Tensor("other")
	a, b := l.Shape(x), l.Shape(y)
	if len(a) != len(b) {
		return l.boolScalar(false)
	}
	equal := true
	for i := range a {
		if sign, ok := a[i].Compare(b[i]); ok && sign != 0 {
			return l.boolScalar(false)
		}
		equal = equal && a[i].Equal(b[i])
	}
	if equal {
		return l.boolScalar(true)
	}
	same := l.Cast(l.Equal(l.shapeOf(x), l.shapeOf(y)), tensor.Int64)
	return l.Cast(l.reduce("ReduceMin", same, []int64{0}, false), tensor.Bool)
}
