package aten

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// grouped holds products of matrices whose rows are in groups, each with a matrix of its own, as mixtures of experts
// have them: offs[g] is the number of rows of the groups up to g (ATen/native/GroupedMMUtils.h; transformers/integrations/moe.py).
var grouped = Defs{
	"aten::_grouped_mm":                 {Doc: "products of groups of rows, each with a matrix of its own", Lower: lowerGroupedMM},
	"transformers::grouped_mm_fallback": {Doc: "products of groups of rows, each with a matrix of its own", Lower: lowerGroupedFallback},
}

// maxGroups is the number of groups up to which each has operators of its own. Beyond it the matrices are gathered, one for each row.
const maxGroups = 1 << 10

func lowerGroupedMM(l *Lowering) *ssa.Value {
	a, b := l.Tensor("self"), l.Tensor("mat2")
	if !l.IsNone("bias") {
		l.Fail("a bias, which PyTorch does not take here either")
	}
	y := l.groupedMM(a, b, l.TensorOr("offs"))
	if d := l.DTypeArg("out_dtype"); d != tensor.Undefined {
		y = l.Cast(y, d)
	}
	return y
}

func lowerGroupedFallback(l *Lowering) *ssa.Value {
	return l.groupedRows(l.Tensor("input"), l.Tensor("weight"), l.Tensor("offs"))
}

// groupedMM is the product whose groups are parts of an axis of one of the matrices, of both, or of none.
func (l *Lowering) groupedMM(a, b, offs *ssa.Value) *ssa.Value {
	switch {
	case l.Rank(a) == 3 && l.Rank(b) == 3:
		return l.intMatMul(a, b)
	case offs == nil:
		l.Fail("needs offs where an operand is a matrix; PyTorch raises here")
	case l.Rank(a) == 2 && l.Rank(b) == 3:
		return l.groupedRows(a, b, offs)
	case l.Rank(a) == 3 && l.Rank(b) == 2: // columns in groups: the rows of the transposed product
		return l.swapAxes(l.groupedRows(l.swapAxes(b, 0, 1), l.swapAxes(a, 1, 2), offs), 0, 1)
	case l.Rank(a) == 2 && l.Rank(b) == 2: // the axis that is summed over: of each group, what it adds
		group := l.groupOf(offs, l.sizeOf(a, 1))
		in := l.Equal(l.unsqueeze(group, 0), l.unsqueeze(l.rangeTo(l.sizeValue(l.sizeOf(offs, 0))), 1)) // (G, K)
		return l.intMatMul(l.Where(l.unsqueeze(in, 1), l.unsqueeze(a, 0), l.Like(a, 0)), b)
	}
	l.Fail("operands of ranks %d and %d; PyTorch raises here", l.Rank(a), l.Rank(b))
	return nil
}

// groupedRows multiplies groups of the rows of x (S, K) by matrices w (G, K, N). Rows behind the last group are zeros, as the fallback
// has them; PyTorch's kernel leaves them as they are.
//
// Each group is a product of its own, so that a runtime does the work of the rows that there are and reads no matrix of a group
// without rows. Nothing is copied: a part of a constant is a constant.
func (l *Lowering) groupedRows(x, w, offs *ssa.Value) *ssa.Value {
	l.sameDType(x, w)
	if l.Rank(offs) != 1 || !l.DType(offs).IsInt() {
		l.Fail("offs must be a vector of integers")
	}
	groups, known := l.dimension(w, 0).Int()
	n, sized := l.dimension(w, 2).Int()
	if !known || !sized || groups > maxGroups || groups < 1 || l.Opset < 13 || !l.DType(x).IsFloat() {
		return l.gatheredRows(x, w, offs)
	}
	ends := l.concatV(0, l.Cast(offs, tensor.Int64), l.sizeVec(l.sizeOf(x, 0)))
	counts := l.Sub(ends, l.concatV(0, l.i64(0), l.Cast(offs, tensor.Int64)))
	parts := l.Split(int(groups)+1, x, counts, onnx.Axis(0))
	// a matrix that is stored transposed is multiplied as it is
	stored := false
	if t := w.Def(); t != nil && t.Kind == "onnx::Transpose" && slices.Equal(t.AttrInts("perm"), []int64{0, 2, 1}) {
		w, stored = t.Operand(0), true
	}
	matrices := l.Split(int(groups), w, l.Const(tensor.Ints(slices.Repeat([]int64{1}, int(groups))...)), onnx.Axis(0))
	var products []*ssa.Value
	for g, m := range matrices {
		if m = l.squeeze(m, 0); stored {
			products = append(products, l.Gemm(parts[g], m, nil, onnx.TransB(true)))
		} else {
			products = append(products, l.MatMul(parts[g], m))
		}
	}
	rest := l.concatV(0, l.sliceC(counts, 0, groups, groups+1, 1), l.i64(n))
	y := l.concatV(0, append(products, l.Expand(l.Like(x, 0), rest))...)
	y.Type = ssa.Tensor(l.DType(x), l.dimension(x, 0), sym.Const(n)) // the parts of x together
	return y
}

// gatheredRows is groupedRows with a matrix for each row.
func (l *Lowering) gatheredRows(x, w, offs *ssa.Value) *ssa.Value {
	group := l.groupOf(offs, l.sizeOf(x, 0))
	last := l.sizeOf(offs, 0)
	inside := l.Less(group, l.sizeVec(last))
	m := l.gather(w, l.Where(inside, group, l.i64(0)), 0)
	y := l.squeeze(l.intMatMul(l.unsqueeze(x, 1), m), 1)
	return l.Where(l.unsqueeze(inside, 1), y, l.Like(x, 0))
}

// groupOf is the group of each of n places, a vector; behind the last group it is the number of groups.
func (l *Lowering) groupOf(offs *ssa.Value, n Size) *ssa.Value {
	ended := l.LessOrEqual(l.unsqueeze(l.Cast(offs, tensor.Int64), 0), l.unsqueeze(l.rangeTo(l.sizeValue(n)), 1)) // (n, G)
	return l.reduce("ReduceSum", l.Cast(ended, tensor.Int64), []int64{1}, false)
}
