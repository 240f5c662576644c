package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// splits holds operators that give the parts of a tensor as a list. Where the
// number of parts is known the results are the parts; else the one result is an
// ONNX sequence.
var splits = Defs{
	"aten::split":                   {Doc: "parts of a given size, or of given sizes", Gradient: "self: cat(grads, dim)", Nature: Splits, LowerN: lowerSplit},
	"aten::split_copy":              {Doc: "split", Nature: Splits, LowerN: lowerSplit},
	"aten::unsafe_split":            {Doc: "split", Gradient: "self: cat(grads, dim)", Nature: Splits, LowerN: lowerSplit},
	"aten::split_with_sizes":        {Doc: "parts of given sizes", Gradient: "self: cat(grads, dim)", Nature: Splits, LowerN: lowerSplit},
	"aten::split_with_sizes_copy":   {Doc: "parts of given sizes", Nature: Splits, LowerN: lowerSplit},
	"aten::unsafe_split_with_sizes": {Doc: "parts of given sizes", Gradient: "self: cat(grads, dim)", Nature: Splits, LowerN: lowerSplit},
	"aten::chunk":                   {Doc: "at most so many parts of equal size, the last may be smaller", Gradient: "self: cat(grads, dim)", Nature: Splits, LowerN: lowerChunk},
	"aten::unsafe_chunk":            {Doc: "chunk", Gradient: "self: cat(grads, dim)", Nature: Splits, LowerN: lowerChunk},
	"aten::tensor_split":            {Doc: "parts at indices, or so many parts that differ by at most one", Nature: Splits, LowerN: func(l *Lowering) []*ssa.Value { return l.tensorSplit(l.Dim("dim", l.Rank(l.Tensor("self")))) }},
	"aten::hsplit":                  {Doc: "tensor_split of columns", Nature: Splits, LowerN: lowerHsplit},
	"aten::vsplit":                  {Doc: "tensor_split of rows", Nature: Splits, LowerN: func(l *Lowering) []*ssa.Value { return l.tensorSplit(0) }},
	"aten::dsplit":                  {Doc: "tensor_split of the third dimension", Nature: Splits, LowerN: func(l *Lowering) []*ssa.Value { return l.tensorSplit(2) }},
	"aten::unbind":                  {Doc: "the parts at each index of a dimension", Gradient: "self: stack(grads, dim)", Nature: Splits, LowerN: lowerUnbind},
	"aten::unbind_copy":             {Doc: "unbind", Nature: Splits, LowerN: lowerUnbind},
}

func lowerSplit(l *Lowering) []*ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	if rank == 0 {
		l.Fail("split needs a dimension, found rank 0")
	}
	dim := l.Dim("dim", rank)
	for _, name := range []string{"split_sizes", "split_size"} {
		v := l.Arg(name)
		if v == nil {
			continue
		}
		if _, isList := v.Type.(*ssa.ListType); isList {
			return l.splitSizes(x, dim, l.sizes(name))
		}
		return l.splitEvery(x, dim, l.sizeArg(name), 1)
	}
	l.Fail("this overload of split is not known")
	return nil
}

// splitEvery cuts a dimension into parts of one size; the last may be smaller. A dimension of size 0 has some empty parts.
func (l *Lowering) splitEvery(x *ssa.Value, dim int, size Size, empty int64) []*ssa.Value {
	d := l.Shape(x)[dim]
	n, static := d.Int()
	k, isConst := size.Int()
	switch {
	case isConst && k < 0:
		l.Fail("a split size must not be negative")
	case isConst && k == 0:
		if !static || n != 0 {
			l.Fail("a split size of 0 needs a dimension of size 0")
		}
		return []*ssa.Value{x}
	case isConst && static:
		if n <= k {
			return []*ssa.Value{x}
		}
		l.atMost((n+k-1)/k, maxParts, "parts")
		var sizes []Size
		for at := int64(0); at < n; at += k {
			sizes = append(sizes, ConstSize(min(k, n-at)))
		}
		return l.splitSizes(x, dim, sizes)
	case size.same(Size{Expr: d, Known: true}):
		return []*ssa.Value{x}
	}
	if size.Known && size.Expr.Min() >= 1 {
		if q, ok := d.Divide(size.Expr); ok {
			if parts, ok := q.Int(); ok {
				return l.splitSizes(x, dim, repeatSize(size, parts))
			}
		}
	}
	sequence := splitsToSequence(l.DType(x))
	if sequence && !mayBeZero(d) {
		return []*ssa.Value{l.splitToSequence(x, dim, l.sizeValue(size))}
	}
	total, by := l.sizeValue(l.sizeOf(x, dim)), l.sizeValue(size)
	zero, one := l.Const(tensor.ScalarInt(0)), l.Const(tensor.ScalarInt(1))
	if !size.Known || mayBeZero(size.Expr) {
		by = l.max(by, one)
	}
	count := l.Div(l.Sub(l.Add(total, by), one), by)
	if mayBeZero(d) {
		count = l.Where(l.Equal(total, zero), l.Const(tensor.ScalarInt(empty)), count)
	}
	if sequence { // by lengths: of an empty dimension and one length for all, ONNX makes no part
		starts := l.Mul(l.Range(zero, count, one), by)
		return []*ssa.Value{l.splitToSequence(x, dim, l.max(l.min(by, l.Sub(total, starts)), zero))}
	}
	return l.partList(x, dim, count, func(i *ssa.Value) *ssa.Value {
		at := l.Mul(i, by)
		return l.Slice(x, l.unsqueeze(at, 0), l.unsqueeze(l.Add(at, by), 0), l.i64(int64(dim)), nil)
	})
}

// mayBeZero reports that a size may be 0. Axes of inputs are at least 1 only because nobody has said more of them.
func mayBeZero(d sym.Expr) bool {
	return d.Subst(func(name string) (sym.Expr, bool) { return sym.Symbol(name, 0), sym.Least(d, name) == 1 }).Min() < 1
}

// splitToSequence cuts a dimension into parts of one length (a scalar), or of a length each.
func (l *Lowering) splitToSequence(x *ssa.Value, dim int, lengths *ssa.Value) *ssa.Value {
	return l.SplitToSequence(x, lengths, onnx.Axis(dim), onnx.KeepDims(true))
}

// splitsToSequence reports the element types of onnxruntime's SplitToSequence;
// others are cut part by part, as casts would have to go through the sequence.
func splitsToSequence(d tensor.DType) bool {
	switch d {
	case tensor.Bool, tensor.Float16, tensor.Float32, tensor.Float64, tensor.Int32, tensor.Int64:
		return true
	}
	return false
}

// partList makes a list of count parts of x, whose sizes along dim are not known.
func (l *Lowering) partList(x *ssa.Value, dim int, count *ssa.Value, part func(i *ssa.Value) *ssa.Value) []*ssa.Value {
	list := l.SequenceEmpty(onnx.Dtype(l.DType(x)))
	dims := append([]sym.Expr(nil), l.Shape(x)...)
	dims[dim] = l.fresh("part")
	list.Type = &ssa.ListType{Elem: ssa.Tensor(l.DType(x), dims...)}
	return []*ssa.Value{l.listLoop(list, count, part)}
}

func repeatSize(s Size, n int64) []Size {
	out := make([]Size, n)
	for i := range out {
		out[i] = s
	}
	return out
}

// splitSizes cuts a dimension into parts of given sizes.
func (l *Lowering) splitSizes(x *ssa.Value, dim int, sizes []Size) []*ssa.Value {
	switch len(sizes) {
	case 0:
		return nil
	case 1:
		return []*ssa.Value{x}
	}
	return l.Split(len(sizes), x, l.sizeTensor(sizes), onnx.Axis(dim))
}

func lowerChunk(l *Lowering) []*ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	if rank == 0 {
		l.Fail("chunk needs a dimension, found rank 0")
	}
	dim, k := l.Dim("dim", rank), l.Int("chunks")
	if k < 1 {
		l.Fail("the number of chunks must be positive")
	}
	l.atMost(k, maxParts, "parts")
	d := l.Shape(x)[dim]
	if n, ok := d.Int(); ok {
		if n == 0 {
			return l.splitSizes(x, dim, repeatSize(ConstSize(0), k))
		}
		return l.splitEvery(x, dim, ConstSize((n+k-1)/k), k)
	}
	if k == 1 {
		return []*ssa.Value{x}
	}
	n := l.sizeOf(x, dim)
	if _, ok := d.Divide(ConstSize(k).Expr); ok {
		return l.splitSizes(x, dim, repeatSize(l.divSize(n, ConstSize(k)), k))
	}
	return l.splitEvery(x, dim, l.divSize(l.addSize(n, ConstSize(k-1)), ConstSize(k)), k)
}

func lowerHsplit(l *Lowering) []*ssa.Value {
	if l.Rank(l.Tensor("self")) == 1 {
		return l.tensorSplit(0)
	}
	return l.tensorSplit(1)
}

func (l *Lowering) tensorSplit(dim int) []*ssa.Value {
	x := l.Tensor("self")
	if dim >= l.Rank(x) {
		l.Fail("needs at least %d dimensions, found %d", dim+1, l.Rank(x))
	}
	for _, name := range []string{"sections", "indices", "tensor_indices_or_sections"} {
		v := l.Arg(name)
		if v == nil {
			continue
		}
		t := v.Tensor()
		if name == "sections" || t != nil && t.Rank() == 0 {
			if !l.IsConst(name) {
				return l.splitSectionsDynamic(x, dim, l.sizeArg(name))
			}
			return l.splitSections(x, dim, l.Int(name))
		}
		if t != nil && t.Ranked && !t.Dims[0].IsConst() {
			return l.splitAtIndices(x, dim, l.Tensor(name))
		}
		cuts := l.sizes(name)
		out := make([]*ssa.Value, len(cuts)+1)
		at := ConstSize(0)
		for i := range out {
			end := ConstSize(toEnd)
			if i < len(cuts) {
				end = cuts[i]
			}
			out[i] = l.sliceDim(x, dim, at, end, ConstSize(1))
			at = end
		}
		return out
	}
	l.Fail("this overload of tensor_split is not known")
	return nil
}

// splitSections cuts a dimension of n into k parts, of which the first n % k are longer by one.
func (l *Lowering) splitSections(x *ssa.Value, dim int, k int64) []*ssa.Value {
	if k < 1 {
		l.Fail("the number of sections must be positive")
	}
	l.atMost(k, maxParts, "parts")
	if n, ok := l.Shape(x)[dim].Int(); ok {
		sizes := make([]Size, k)
		for i := range sizes {
			s := n / k
			if int64(i) < n%k {
				s++
			}
			sizes[i] = ConstSize(s)
		}
		return l.splitSizes(x, dim, sizes)
	}
	// part i has (n + k - 1 - i) // k elements
	n := l.sizeOf(x, dim)
	sizes := make([]Size, k)
	for i := range sizes {
		sizes[i] = l.divSize(l.addSize(n, ConstSize(k-1-int64(i))), ConstSize(k))
	}
	return l.splitSizes(x, dim, sizes)
}

// splitSectionsDynamic is splitSections into a number of parts that is known at run time.
func (l *Lowering) splitSectionsDynamic(x *ssa.Value, dim int, k Size) []*ssa.Value {
	by := l.sizeValue(k)
	last := l.Sub(l.Add(l.sizeValue(l.sizeOf(x, dim)), by), l.Const(tensor.ScalarInt(1)))
	sizes := l.Div(l.Sub(last, l.countTo(k)), by)
	if !splitsToSequence(l.DType(x)) {
		ends := l.CumSum(sizes, l.Const(tensor.ScalarInt(0)))
		starts := l.Sub(ends, sizes)
		return l.partList(x, dim, by, func(i *ssa.Value) *ssa.Value {
			at := l.unsqueeze(i, 0)
			return l.Slice(x, l.gather(starts, at, 0), l.gather(ends, at, 0), l.i64(int64(dim)), nil)
		})
	}
	return []*ssa.Value{l.SplitToSequence(x, sizes, onnx.Axis(dim), onnx.KeepDims(true))}
}

// splitAtIndices cuts at indices whose number is known at run time.
func (l *Lowering) splitAtIndices(x *ssa.Value, dim int, cuts *ssa.Value) []*ssa.Value {
	starts, ends := l.concatV(0, l.i64(0), cuts), l.concatV(0, cuts, l.i64(toEnd))
	return l.partList(x, dim, l.Size(starts), func(i *ssa.Value) *ssa.Value {
		at := l.unsqueeze(i, 0)
		return l.Slice(x, l.gather(starts, at, 0), l.gather(ends, at, 0), l.i64(int64(dim)), nil)
	})
}

func lowerUnbind(l *Lowering) []*ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	if rank == 0 {
		l.Fail("unbind needs a dimension, found rank 0")
	}
	dim := l.Dim("dim", rank)
	n, ok := l.Shape(x)[dim].Int()
	if !ok && !splitsToSequence(l.DType(x)) {
		list := l.SequenceEmpty(onnx.Dtype(l.DType(x)))
		dims := append(append([]sym.Expr(nil), l.Shape(x)[:dim]...), l.Shape(x)[dim+1:]...)
		list.Type = &ssa.ListType{Elem: ssa.Tensor(l.DType(x), dims...)}
		return []*ssa.Value{l.listLoop(list, l.sizeValue(l.sizeOf(x, dim)), func(i *ssa.Value) *ssa.Value { return l.gather(x, i, dim) })}
	}
	if !ok {
		return []*ssa.Value{l.SplitToSequence(x, nil, onnx.Axis(dim), onnx.KeepDims(false))}
	}
	l.atMost(n, maxParts, "parts")
	out := make([]*ssa.Value, n)
	for i := range out {
		out[i] = l.gather(x, l.Const(tensor.ScalarInt(int64(i))), dim)
	}
	return out
}
