package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// diagonals holds operators on the diagonals of matrices.
var diagonals = Defs{
	"aten::diagonal":         {Doc: "the diagonal of two dimensions, as the last one", Gradient: "self: diagonal_backward(grad, size(self), offset, dim1, dim2)", Nature: Windows, Lower: func(l *Lowering) *ssa.Value { return l.diagonalArgs("self") }},
	"aten::diagonal_copy":    {Doc: "diagonal", Nature: Windows, Lower: func(l *Lowering) *ssa.Value { return l.diagonalArgs("self") }},
	"aten::linalg_diagonal":  {Doc: "diagonal of the last two dimensions", Nature: Windows, Lower: func(l *Lowering) *ssa.Value { return l.diagonalArgs("A") }},
	"aten::diag":             {Doc: "the diagonal of a matrix, or a matrix with a given diagonal", Nature: Moves, Layout: RowMajor, Lower: lowerDiag},
	"aten::diag_embed":       {Doc: "matrices with given diagonals, else zeros", Gradient: "self: diagonal(grad, offset, dim1, dim2)", Nature: Moves, Batching: AddsDim, Layout: RowMajor, Lower: lowerDiagEmbed},
	"aten::diagflat":         {Doc: "a matrix with all elements on its diagonal", Nature: Moves, Lower: lowerDiagflat},
	"aten::diagonal_scatter": {Doc: "self with another diagonal", Gradient: "self: diagonal_scatter(grad, zeros_like(src), offset, dim1, dim2); src: diagonal(grad, offset, dim1, dim2)", Nature: Scatters, Layout: LikeOperands, Lower: lowerDiagonalScatter},
	"aten::tril":             {Doc: "the lower triangle, else zeros", Gradient: "self: tril(grad, diagonal)", Nature: Moves, Batching: BatchesInFront, Layout: RowMajor, Lower: func(l *Lowering) *ssa.Value { return l.triangleOf(false) }},
	"aten::triu":             {Doc: "the upper triangle, else zeros", Gradient: "self: triu(grad, diagonal)", Nature: Moves, Batching: BatchesInFront, Layout: RowMajor, Lower: func(l *Lowering) *ssa.Value { return l.triangleOf(true) }},
}

func (l *Lowering) diagonalArgs(name string) *ssa.Value {
	x := l.Tensor(name)
	rank := l.Rank(x)
	return l.diagonal(x, l.sizeArg("offset"), l.Dim("dim1", rank), l.Dim("dim2", rank))
}

// diagonal takes elements [..., k, k+offset, ...] of two dims and puts them last.
func (l *Lowering) diagonal(x *ssa.Value, offset Size, dim1, dim2 int) *ssa.Value {
	rank := l.Rank(x)
	if rank < 2 || dim1 == dim2 {
		l.Fail("expects two different dimensions")
	}
	x = l.moveDims(x, []int64{int64(dim1), int64(dim2)}, []int64{-2, -1})
	rows, cols := l.sizeOf(x, rank-2), l.sizeOf(x, rank-1)
	n := l.diagonalLength(rows, cols, offset)
	step := l.addSize(cols, ConstSize(1))
	start := offset
	switch k, ok := offset.Int(); {
	case !ok:
		right, down := l.sides(offset)
		start = l.addSize(right, l.mulSize(down, cols))
	case k < 0:
		start = l.mulSize(ConstSize(-k), cols)
	}
	end := l.addSize(start, l.mulSize(n, step))
	flat := l.flattenDims(x, rank-2, rank-1)
	if c, ok := n.Int(); ok && c == 0 {
		return l.sliceDim(flat, rank-2, ConstSize(0), ConstSize(0), ConstSize(1))
	}
	if allConst(rows, cols, offset) {
		// the last stride would reach over the end, which slicing allows
		return l.sliceDim(flat, rank-2, start, end, step)
	}
	return l.Slice(flat, l.sizeVec(start), l.sizeVec(end), l.i64(int64(rank-2)), l.sizeVec(step))
}

// allConst reports that all sizes are known.
func allConst(ss ...Size) bool {
	for _, s := range ss {
		if _, ok := s.Int(); !ok {
			return false
		}
	}
	return true
}

// sides is how far a diagonal lies to the right of the main one, and how far below it.
func (l *Lowering) sides(offset Size) (right, down Size) {
	zero := ConstSize(0)
	return l.greatestSize(offset, zero), l.greatestSize(l.subSize(zero, offset), zero)
}

// diagonalLength is the number of elements on a diagonal.
func (l *Lowering) diagonalLength(rows, cols, offset Size) Size {
	switch k, ok := offset.Int(); {
	case !ok:
		right, down := l.sides(offset)
		rows, cols = l.subSize(rows, down), l.subSize(cols, right)
	case k >= 0:
		cols = l.subSize(cols, offset)
	default:
		rows = l.addSize(rows, offset)
	}
	return l.greatestSize(l.leastSize(rows, cols), ConstSize(0))
}

func lowerDiag(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	offset := l.sizeArg("diagonal")
	switch l.Rank(x) {
	case 1:
		return l.diagEmbed(x, offset, 0, 1)
	case 2:
		return l.diagonal(x, offset, 0, 1)
	}
	l.Fail("expects 1 or 2 dimensions, found %d", l.Rank(x))
	return nil
}

func lowerDiagEmbed(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	return l.diagEmbed(x, l.sizeArg("offset"), l.Dim("dim1", rank+1), l.Dim("dim2", rank+1))
}

func lowerDiagflat(l *Lowering) *ssa.Value {
	return l.diagEmbed(l.reshape(l.Tensor("self"), -1), l.sizeArg("offset"), 0, 1)
}

// diagonalMask marks the elements [k, k+offset] of a rows by cols matrix.
func (l *Lowering) diagonalMask(rows, cols, offset Size) *ssa.Value {
	k, static := offset.Int()
	if r, ok := rows.Int(); ok {
		if c, ok := cols.Int(); ok && static && satMul(r, c) <= maxFolded {
			return l.boolMask([]int64{r, c}, func(i int64) bool { return i/c+k == i%c })
		}
	}
	at := l.countTo(rows)
	if !static || k != 0 {
		at = l.Add(at, l.sizeValue(offset))
	}
	return l.Equal(l.unsqueeze(at, 1), l.unsqueeze(l.countTo(cols), 0))
}

// diagEmbed puts the last dim on a diagonal of two new dims.
func (l *Lowering) diagEmbed(x *ssa.Value, offset Size, dim1, dim2 int) *ssa.Value {
	rank := l.Rank(x)
	if rank == 0 || dim1 == dim2 {
		l.Fail("expects at least one dimension, and two different new ones")
	}
	right, down := l.sides(offset)
	far := l.addSize(right, down)
	n := l.sizeOf(x, rank-1)
	m := l.addSize(n, far)
	if k, ok := far.Int(); !ok || k > 0 {
		x = l.padZeros(x, rank-1, ConstSize(0), far)
	}
	mask := l.diagonalMask(m, m, offset)
	// row k holds the element for offset >= 0, column k below the main diagonal
	var elements *ssa.Value
	if k, ok := offset.Int(); !ok {
		below := l.Less(l.sizeValue(offset), l.Const(tensor.ScalarInt(0)))
		elements = l.Where(below, l.unsqueeze(x, int64(rank-1)), l.unsqueeze(x, int64(rank)))
	} else if k < 0 {
		elements = l.unsqueeze(x, int64(rank-1))
	} else {
		elements = l.unsqueeze(x, int64(rank))
	}
	y := l.Where(mask, elements, l.Like(x, 0))
	return l.moveDims(y, []int64{-2, -1}, []int64{int64(dim1), int64(dim2)})
}

func lowerDiagonalScatter(l *Lowering) *ssa.Value {
	l.ownMemory()
	x := l.Tensor("self")
	return l.diagonalScatter(x, l.Cast(l.Tensor("src"), l.DType(x)))
}

// diagonalScatter is x with the diagonal that the arguments name replaced by src.
func (l *Lowering) diagonalScatter(x, src *ssa.Value) *ssa.Value {
	rank := l.Rank(x)
	dim1, dim2 := l.Dim("dim1", rank), l.Dim("dim2", rank)
	offset := l.Int("offset")
	if rank < 2 || dim1 == dim2 {
		l.Fail("expects two different dimensions")
	}
	y := l.moveDims(x, []int64{int64(dim1), int64(dim2)}, []int64{-2, -1})
	rows, cols := l.sizeOf(y, rank-2), l.sizeOf(y, rank-1)
	n := l.diagonalLength(rows, cols, ConstSize(offset))
	along, at := rows, int64(-1)
	if offset < 0 {
		along, at = cols, -2
	}
	r := l.Rank(src)
	length, _ := n.Int()
	switch {
	case r == 0:
	case length == 1, l.Shape(src)[r-1].Is(1): // the mask alone says where it goes, also if an axis is empty
		src = l.unsqueeze(src, int64(r))
	default:
		src = l.padZeros(src, r-1, ConstSize(0), l.subSize(along, n))
		src = l.unsqueeze(src, at+int64(r+1))
	}
	y = l.Where(l.diagonalMask(rows, cols, ConstSize(offset)), src, y)
	return l.moveDims(y, []int64{-2, -1}, []int64{int64(dim1), int64(dim2)})
}

// triangleOf keeps the elements on one side of a diagonal.
func (l *Lowering) triangleOf(upper bool) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	if rank < 2 {
		l.Fail("expects at least 2 dimensions, found %d", rank)
	}
	k := l.sizeArg("diagonal")
	var by *ssa.Value
	if n, ok := k.Int(); !ok || n != 0 {
		by = l.sizeValue(k)
	}
	return l.Trilu(x, by, onnx.Upper(upper))
}
