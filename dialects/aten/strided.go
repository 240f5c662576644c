package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// strided holds operators that address storage or windows.
var strided = Defs{
	"aten::unfold":             {Doc: "windows of size elements, every step elements, as a last dimension", Gradient: "self: unfold_backward(grad, size(self), dimension, size, step)", Nature: Windows, Lower: lowerUnfold},
	"aten::unfold_copy":        {Doc: "unfold", Nature: Windows, Lower: lowerUnfold},
	"aten::as_strided":         {Doc: "elements of the storage by size, stride and offset", Layout: AnyLayout, Lower: lowerAsStrided},
	"aten::as_strided_copy":    {Doc: "as_strided", Lower: lowerAsStrided},
	"aten::as_strided_scatter": {Doc: "self with other elements where as_strided reads", Lower: lowerAsStridedScatter},
}

// maxTrace bounds how many operators back the layout of a tensor is followed.
const maxTrace = 64

// rowMajor reports that a value is known to be stored in row-major order, from
// the start of its storage: inputs, constants and what is computed from such.
// Operators keep the layout of their inputs, so one that permutes spoils all after it.
func rowMajor(v *ssa.Value, depth int) bool {
	d := v.Def()
	if d == nil || d.Kind == "prim::Constant" || d.Kind == "onnx::Constant" {
		return true
	}
	return takesPart(d) == nil && inOrder(v, depth)
}

// takesPart gives the operand of a view that leaves elements out, nil for other operators.
func takesPart(d *ssa.Op) *ssa.Value {
	nature := Slices
	if d.Kind == "prim::ListUnpack" {
		if d = d.Operand(0).Def(); d == nil {
			return nil
		}
		nature = Splits
	}
	if row(d.Kind).Nature != nature || ViewOf(d.Kind, d.Schema) != AlwaysView {
		return nil
	}
	return d.Operand(0)
}

// inOrder reports that the strides of a value are known to fall from the first dimension to the last.
func inOrder(v *ssa.Value, depth int) bool {
	d := v.Def()
	if d == nil || d.Kind == "prim::Constant" || d.Kind == "onnx::Constant" {
		return true
	}
	if depth == 0 {
		return false
	}
	if x := takesPart(d); x != nil {
		return inOrder(x, depth-1)
	}
	switch d.Kind {
	case "prim::If", "prim::Loop", "prim::ListUnpack":
		return false
	}
	if row(d.Kind).Layout == AnyLayout {
		return false
	}
	switch row(d.Kind).Nature {
	case Transposes, Expands, Windows:
		if ViewOf(d.Kind, d.Schema) == AlwaysView {
			return false
		}
	}
	if i := schemaArg(d, "memory_format"); i >= 0 {
		lit, ok := LiteralOf(d.Operand(i))
		switch {
		case !ok || lit.Kind == ssa.IntLit && lit.Int() > 1:
			return false
		case lit.Kind == ssa.IntLit && lit.Int() == 0: // contiguous
			return true
		}
	}
	for _, o := range d.Operands() {
		if o == nil {
			continue
		}
		if _, isList := o.Type.(*ssa.ListType); (isList || o.Tensor() != nil) && !inOrder(o, depth-1) {
			return false
		}
	}
	return true
}

func schemaArg(o *ssa.Op, name string) int {
	if o.Schema == nil {
		return -1
	}
	i := o.Schema.Arg(name)
	if i >= o.NumOperands() {
		return -1
	}
	return i
}

// storageOf follows views back to the tensor that owns the storage.
// moved reports that a view on the way starts somewhere else in it.
func storageOf(v *ssa.Value) (base *ssa.Value, moved bool) {
	for {
		d := v.Def()
		if d == nil || d.NumOperands() == 0 {
			return v, moved
		}
		if x := takesPart(d); x != nil {
			v, moved = x, true
			continue
		}
		switch row(d.Kind).Nature {
		case Identity, Transposes, Windows, Reshapes, Expands:
		default:
			if d.Kind != "aten::as_strided" {
				return v, moved
			}
		}
		if ViewOf(d.Kind, d.Schema) != AlwaysView {
			return v, moved
		}
		moved = moved || schemaArg(d, "offset") >= 0 || d.Kind == "aten::as_strided"
		v = d.Operand(0)
	}
}

func lowerUnfold(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	dim := l.Dim("dimension", l.Rank(x))
	if !l.IsConst("size") || !l.IsConst("step") {
		if l.Rank(x) == 0 {
			l.Fail("windows in a number, whose size is a number of the run")
		}
		return l.windows(x, dim, l.sizeArg("size"), l.sizeArg("step"))
	}
	size, step := l.Int("size"), l.Int("step")
	if size < 0 || step < 1 {
		l.Fail("expects a size that is not negative and a positive step")
	}
	if l.Rank(x) == 0 {
		return l.sliceDim(l.unsqueeze(x, 0), 0, ConstSize(0), ConstSize(size), ConstSize(1))
	}
	rank := l.Rank(x)
	var idx *ssa.Value
	if n, ok := l.Shape(x)[dim].Int(); ok {
		if size > n {
			l.Fail("windows of %d elements in a dimension of size %d", size, n)
		}
		count := (n-size)/step + 1
		l.atMost(satMul(count, size), maxMade, "indices")
		flat := make([]int64, 0, count*size)
		for w := range count {
			for i := range size {
				flat = append(flat, w*step+i)
			}
		}
		idx = l.Const(tensor.Of(tensor.Int64, []int64{count, size}, flat))
	} else {
		return l.windows(x, dim, ConstSize(size), ConstSize(step))
	}
	return l.moveDims(l.gather(x, idx, dim), []int64{int64(dim + 1)}, []int64{int64(rank)})
}

// windows is unfold where the number of windows, or the elements of one, are not known.
func (l *Lowering) windows(x *ssa.Value, dim int, size, step Size) *ssa.Value {
	l.NeedOpset(11, "unfold of a dynamic axis")
	end := l.subSize(l.sizeOf(x, dim), l.subSize(size, ConstSize(1)))
	starts := l.Range(l.Const(tensor.ScalarInt(0)), l.sizeValue(end), l.sizeValue(step))
	idx := l.Add(l.unsqueeze(starts, 1), l.unsqueeze(l.countTo(size), 0))
	return l.moveDims(l.gather(x, idx, dim), []int64{int64(dim + 1)}, []int64{int64(l.Rank(x))})
}

// stridedSource finds the storage that as_strided reads, flat, and the index of each element in it.
func (l *Lowering) stridedSource() (base, idx *ssa.Value, sizes []Size) {
	src, moved := storageOf(l.Arg("self"))
	if moved && l.IsNone("storage_offset") {
		l.Fail("as_strided of a part of a tensor needs a storage_offset")
	}
	if !rowMajor(src, maxTrace) {
		l.Fail("as_strided of a tensor whose layout depends on how it was made")
	}
	if isComplexValue(src) != isComplexValue(l.Arg("self")) {
		l.Fail("as_strided of a complex view of real numbers")
	}
	base = l.Value(src)
	sizes = l.sizes("size")
	strides := l.sizes("stride")
	if len(sizes) != len(strides) {
		l.Fail("%d sizes and %d strides", len(sizes), len(strides))
	}
	return base, l.stridedIndex(sizes, strides, l.sizeArgOr("storage_offset", 0)), sizes
}

// stridedIndex is offset + sum of i_k * stride_k over a grid of the given sizes.
func (l *Lowering) stridedIndex(sizes, strides []Size, offset Size) *ssa.Value {
	if allConst(append(append([]Size{offset}, sizes...), strides...)...) {
		shape := make([]int64, len(sizes))
		o, _ := offset.Int()
		flat := []int64{o}
		made := int64(1)
		for _, size := range sizes {
			n, _ := size.Int()
			if n < 0 {
				l.Fail("an axis of size %d", n)
			}
			made = satMul(made, n)
		}
		l.atMost(made, maxMade, "indices")
		for i := range sizes {
			n, _ := sizes[i].Int()
			by, _ := strides[i].Int()
			shape[i] = n
			next := make([]int64, 0, int64(len(flat))*n)
			for _, at := range flat {
				for k := range n {
					next = append(next, at+k*by)
				}
			}
			flat = next
		}
		return l.Const(tensor.Of(tensor.Int64, shape, flat))
	}
	idx := l.sizeValue(offset)
	for i := range sizes {
		at := l.Mul(l.countTo(sizes[i]), l.sizeValue(strides[i]))
		idx = l.Add(l.unsqueeze(idx, int64(l.Rank(idx))), at)
	}
	return idx
}

func lowerAsStrided(l *Lowering) *ssa.Value {
	base, idx, _ := l.stridedSource()
	return l.gather(l.reshape(base, -1), idx, 0)
}

func lowerAsStridedScatter(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if src, _ := storageOf(l.Arg("self")); src != l.Arg("self") {
		l.Fail("as_strided_scatter into a view")
	}
	_, idx, sizes := l.stridedSource()
	src := l.Cast(l.Tensor("src"), l.DType(x))
	flat := l.reshape(x, -1)
	out := l.scatter(flat, l.reshape(idx, -1), l.reshape(l.expandTo(src, sizes), -1), 0, "")
	return l.reshapeLike(out, x)
}
