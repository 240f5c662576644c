package aten

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// numberOperators are those whose second operand PyTorch takes as a number. Their in-place forms and their aliases are
// not: PyTorch matches these schemas only.
var numberOperators = []ssa.Kind{"aten::add", "aten::sub", "aten::mul", "aten::div"}

// NumberOperand reports whether the second operand of o is a tensor constant of rank 0 that PyTorch's executors take as
// a number, and gives the constant and the number. The rule is that of CanonicalizeOps in
// torch/csrc/jit/passes/canonicalize_graph_fuser_ops.cpp.
func NumberOperand(o *ssa.Op) (def *ssa.Op, number ssa.Literal, ok bool) {
	if !slices.Contains(numberOperators, o.Kind) || o.NumOperands() < 2 || o.Schema != nil && o.Schema.Overload != "Tensor" {
		return nil, ssa.None, false
	}
	if o.Operand(0) == nil || o.Operand(0).Tensor() == nil {
		return nil, ssa.None, false
	}
	if def = constant(o.Operand(1)); def == nil {
		return nil, ssa.None, false
	}
	lit, _ := def.Attr("value")
	number, ok = item(lit)
	return def, number, ok
}

// constant returns the operator that defines v if it is a constant of the graph, nil otherwise. It looks through an If
// whose condition is a literal: PyTorch resolves it before it looks for numbers.
func constant(v *ssa.Value) *ssa.Op {
	for v != nil {
		d := v.Def()
		switch {
		case d == nil:
			return nil
		case d.Kind == prim.Constant:
			return d
		case d.Kind != prim.If:
			return nil
		}
		cond := d.Operand(0).Def()
		if cond == nil || cond.Kind != prim.Constant {
			return nil
		}
		lit, _ := cond.Attr("value")
		branch := d.Blocks[1]
		if lit.Bool() {
			branch = d.Blocks[0]
		}
		v = branch.Returns()[slices.Index(d.Results, v)]
	}
	return nil
}

// item returns the number that a tensor of rank 0 holds, as Tensor.item() does.
func item(l ssa.Literal) (ssa.Literal, bool) {
	t := l.Tensor
	if l.Kind != ssa.TensorLit || t == nil || len(t.Shape) != 0 || !t.HasData() {
		return ssa.None, false
	}
	switch {
	case t.DType.IsFloat():
		return ssa.Float(t.Float64s()[0]), true
	case t.DType == tensor.Bool:
		return ssa.Bool(t.Int64s()[0] != 0), true
	case t.DType.IsInt():
		return ssa.Int(t.Int64s()[0]), true
	case t.DType == tensor.Complex64:
		b := t.Bytes()
		re, im := math.Float32frombits(binary.LittleEndian.Uint32(b)), math.Float32frombits(binary.LittleEndian.Uint32(b[4:]))
		return ssa.Complex(complex(float64(re), float64(im))), true
	case t.DType == tensor.Complex128:
		b := t.Bytes()
		re, im := math.Float64frombits(binary.LittleEndian.Uint64(b)), math.Float64frombits(binary.LittleEndian.Uint64(b[8:]))
		return ssa.Complex(complex(re, im)), true
	}
	return ssa.None, false
}
