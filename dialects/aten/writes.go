package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// writes holds the functional forms of writes through views: self with the part
// that a view shows replaced by src.
var writes = Defs{
	"aten::select_scatter": {Doc: "self with the part at one index of a dimension replaced", Gradient: "self: select_scatter(grad, zeros_like(src), dim, index); src: select(grad, dim, index)", Nature: Scatters, Layout: LikeOperands, Type: ofSelectScatter, Lower: lowerSelectScatter},
	"aten::slice_scatter":  {Doc: "self with start:end:step of a dimension replaced", Gradient: "self: slice_scatter(grad, zeros_like(src), dim, start, end, step); src: slice(grad, dim, start, end, step)", Nature: Scatters, Layout: LikeOperands, Type: ofSliceScatter, Lower: lowerSliceScatter},
	"aten::select_backward": {Doc: "zeros with the part at one index replaced", Lower: func(l *Lowering) *ssa.Value {
		g := l.Tensor("grad_output")
		zeros := l.fill(l.sizeTensor(l.sizes("input_sizes")), l.DType(g), ssa.Int(0))
		return l.selectScatter(zeros, g, l.Dim("dim", l.Rank(zeros)), l.sizeArg("index"))
	}},
	"aten::slice_backward": {Doc: "zeros with a slice replaced", Lower: func(l *Lowering) *ssa.Value {
		g := l.Tensor("grad_output")
		zeros := l.fill(l.sizeTensor(l.sizes("input_sizes")), l.DType(g), ssa.Int(0))
		return l.sliceScatter(zeros, g, l.Dim("dim", l.Rank(zeros)), l.sizeArg("start"), l.sizeArg("end"), l.sizeArg("step"))
	}},
}

func lowerSelectScatter(l *Lowering) *ssa.Value {
	l.ownMemory()
	x := l.Tensor("self")
	src := l.Cast(l.Tensor("src"), l.DType(x))
	return l.selectScatter(x, src, l.Dim("dim", l.Rank(x)), l.sizeArg("index"))
}

// ownMemory refuses a tensor whose windows overlap: PyTorch's copy keeps the strides, so that one write shows
// in several places. What expand repeats is copied apart (clone_preserve_strides, aten/src/ATen/native/TensorShape.cpp).
func (l *Lowering) ownMemory() {
	if l.sharesMemory() {
		l.Fail("writes to a tensor that shows an element of memory in several places; use .clone() before")
	}
}

func (l *Lowering) sharesMemory() bool {
	d := l.Arg("self").Def()
	return d != nil && (d.Kind == "aten::unfold" || d.Kind == "aten::as_strided")
}

// maskLimit bounds the size of a dimension whose mask is stored as a constant.
const maskLimit = 1 << 16

func (l *Lowering) selectScatter(x, src *ssa.Value, dim int, index Size) *ssa.Value {
	rank := l.Rank(x)
	if rank == 0 {
		l.Fail("select_scatter needs a dimension, found rank 0")
	}
	if l.Rank(src) > rank-1 {
		src = l.dropLeadingOnes(src, rank-1)
	}
	n, static := l.Shape(x)[dim].Int()
	i, isConst := index.Int()
	if static && isConst {
		if i < -n || i >= n {
			l.Fail("index %d is out of range for dimension %d of size %d", i, dim, n)
		}
		if i < 0 {
			i += n
		}
		index = ConstSize(i)
	}
	if after := rank - 1 - dim; l.Rank(src) > after {
		src = l.unsqueeze(src, int64(l.Rank(src)-after))
	} else {
		src = l.expandTo(src, append([]Size{ConstSize(1)}, l.allSizes(x)[dim+1:]...))
	}
	if static && n == 1 {
		return l.expandTo(src, l.allSizes(x))
	}
	shape := make([]int64, rank-dim)
	for j := range shape {
		shape[j] = 1
	}
	var mask *ssa.Value
	switch {
	case static && isConst && n <= maskLimit:
		shape[0] = n
		mask = l.boolMask(shape, func(k int64) bool { return k == i })
	case dim == 0:
		sizes := l.allSizes(x)
		sizes[0] = ConstSize(1)
		return l.ScatterND(x, l.reshape(l.sizeValue(index), 1, 1), l.expandTo(src, sizes))
	default:
		shape[0] = -1
		at := l.wrapSize(index, l.sizeOf(x, dim))
		mask = l.reshape(l.Equal(l.countTo(l.sizeOf(x, dim)), l.sizeValue(at)), shape...)
	}
	return l.Where(mask, src, x)
}

func lowerSliceScatter(l *Lowering) *ssa.Value {
	l.ownMemory()
	x := l.Tensor("self")
	src := l.Cast(l.Tensor("src"), l.DType(x))
	return l.sliceScatter(x, src, l.Dim("dim", l.Rank(x)), l.sizeArgOr("start", 0), l.sizeArgOr("end", toEnd), l.sizeArgOr("step", 1))
}

func (l *Lowering) sliceScatter(x, src *ssa.Value, dim int, start, end, step Size) *ssa.Value {
	rank := l.Rank(x)
	if rank == 0 {
		l.Fail("slice_scatter needs a dimension, found rank 0")
	}
	k, ok := step.Int()
	if !ok || k < 1 {
		l.Fail("a slice step must be a positive constant")
	}
	n := l.sizeOf(x, dim)
	s, e := l.sliceBounds(start, end, n)
	count := l.greatestSize(l.subSize(e, s), ConstSize(0))
	if count.Known && count.Expr.NegativeOfNothing() {
		count.Value = l.Max(l.sizeValue(count), l.scalarInt(tensor.Int64, 0))
	}
	if k > 1 {
		count = l.divSize(l.addSize(count, ConstSize(k-1)), ConstSize(k))
	}
	sizes := l.allSizes(x)
	sizes[dim] = count
	src = l.expandTo(l.dropLeadingOnes(src, rank), sizes)
	if c, ok := count.Int(); ok && c == 0 {
		return x
	}
	if k == 1 {
		var parts []*ssa.Value
		if c, ok := s.Int(); !ok || c != 0 {
			parts = append(parts, l.sliceDim(x, dim, ConstSize(0), s, ConstSize(1)))
		}
		parts = append(parts, src)
		if !e.same(n) {
			parts = append(parts, l.sliceDim(x, dim, e, ConstSize(toEnd), ConstSize(1)))
		}
		return l.concatV(int64(dim), parts...)
	}
	// each place reads itself, or its element of src behind x
	var idx *ssa.Value
	if size, _ := n.Int(); allConst(s, e, n) && size <= maxMade {
		from, _ := s.Int()
		to, _ := e.Int()
		flat := make([]int64, size)
		for i := range flat {
			at := int64(i)
			flat[i] = at
			if at >= from && at < to && (at-from)%k == 0 {
				flat[i] = size + (at-from)/k
			}
		}
		idx = l.i64(flat...)
	} else {
		at := l.countTo(n)
		off := l.Sub(at, l.sizeValue(s))
		by := l.Const(tensor.ScalarInt(k))
		zero := l.Const(tensor.ScalarInt(0))
		outside := l.Or(l.Less(off, zero), l.Not(l.Less(at, l.sizeValue(e))))
		between := l.Not(l.Equal(l.Mod(off, by), zero))
		idx = l.Where(l.Or(outside, between), at, l.Add(l.Div(off, by), l.sizeValue(n)))
	}
	return l.gather(l.concatV(int64(dim), x, src), idx, dim)
}
