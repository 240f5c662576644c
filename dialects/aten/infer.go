package aten

import (
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Scratch lowers an op into the block of b and gives its results there. They have the types and the symbolic values that the
// results of the op have, and are constants where its operands are and b folds. Tensors among the operands stand for
// themselves; the caller clears the block.
func (t *Table) Scratch(o *ssa.Op, opset int, b onnx.Builder) ([]*ssa.Value, *Failure) {
	block := b.Block
	return NewLowering(t, opset, b, func(v *ssa.Value) (*ssa.Value, *Failure) { return placeholder(block, v), nil }).Lower(o)
}

// placeholder stands for a source value in scratch code: tensors for
// themselves, numbers as rank 0 tensors, lists of numbers as rank 1 tensors.
func placeholder(b *ssa.Block, v *ssa.Value) *ssa.Value {
	if v.Tensor() != nil {
		return v
	}
	var t ssa.Type
	switch vt := v.Type.(type) {
	case ssa.Basic:
		d := dtypeOfNumber(vt)
		if d == tensor.Undefined {
			return nil
		}
		t = ssa.Tensor(d)
	case *ssa.ListType:
		d := tensor.Undefined
		if elem, basic := vt.Elem.(ssa.Basic); basic && elem != ssa.NumberType {
			d = dtypeOfNumber(elem)
		}
		switch {
		case ssa.AsTensor(vt.Elem) != nil:
			t = vt
		case d == tensor.Undefined:
			return nil
		case v.Sym != nil:
			t = ssa.Tensor(d, sym.Const(int64(len(v.Sym))))
		default:
			t = ssa.Tensor(d, b.Func().Module().FreshSymbol("len", 0))
		}
	default:
		return nil
	}
	o := b.InsertBefore(b.First(), "prim::Placeholder", 0, nil, t)
	o.Results[0].Sym = v.Sym
	return o.Results[0]
}

// dtypeOfNumber is the element type of the tensor that a number is in ONNX, Undefined for what is no number.
func dtypeOfNumber(t ssa.Basic) tensor.DType {
	switch t {
	case ssa.IntType:
		return tensor.Int64
	case ssa.FloatType, ssa.NumberType:
		return tensor.Float64
	case ssa.BoolType:
		return tensor.Bool
	}
	return tensor.Undefined
}

// LiteralAs is the literal of a type that holds the elements of a tensor: the tensor, a number or a list of numbers.
func LiteralAs(t ssa.Type, c *tensor.Tensor) (ssa.Literal, bool) {
	if ssa.AsTensor(t) != nil {
		return ssa.TensorValue(c), true
	}
	if lt, ok := t.(*ssa.ListType); ok {
		switch {
		case lt.Elem == ssa.IntType && c.DType.IsInt():
			return ssa.Ints(c.Int64s()...), true
		case lt.Elem == ssa.FloatType && c.DType.IsFloat():
			return ssa.Floats(c.Float64s()...), true
		}
		return ssa.None, false
	}
	if c.NumElements() != 1 || c.DType.IsComplex() || c.DType == tensor.String {
		return ssa.None, false
	}
	switch {
	case t == ssa.IntType || t == ssa.NumberType && c.DType.IsInt():
		return ssa.Int(c.Int64s()[0]), true
	case t == ssa.FloatType || t == ssa.NumberType && c.DType.IsFloat():
		return ssa.Float(c.Float64s()[0]), true
	case t == ssa.BoolType || t == ssa.NumberType && c.DType == tensor.Bool:
		return ssa.Bool(c.Int64s()[0] != 0), true
	}
	return ssa.None, false
}

// ResizesInPlace reports an operator that gives a tensor other sizes, or other memory, in place: resize_ and its like, and the
// forms in place of operators that give views.
func ResizesInPlace(k ssa.Kind) bool {
	switch k {
	case "aten::resize_", "aten::resize_as_", "aten::_resize_output_", "aten::set_", "aten::set_data", "aten::resize_as_sparse_":
		return true
	}
	base, inPlace := strings.CutSuffix(string(k), "_")
	if !inPlace {
		return false
	}
	for _, s := range Schemas(ssa.Kind(base)) {
		if len(s.Args) > 0 && len(s.Returns) > 0 && s.Args[0].Alias != "" && !s.Args[0].Writes && s.Args[0].Alias == s.Returns[0].Alias {
			return true
		}
	}
	return false
}
