package indexing

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// legalizer rewrites the operators of a function. What it makes stands before the operator at hand.
type legalizer struct {
	c       *passes.Context
	table   *aten.Table
	opset   int
	at      *ssa.Op
	scratch *ssa.Func
}

// constant makes a constant before the operator at hand.
func (l *legalizer) constant(lit ssa.Literal) *ssa.Value {
	t := lit.Type()
	if lit.Kind == ssa.TensorLit {
		t = ssa.TensorOf(lit.Tensor)
	}
	o := l.at.Block().InsertBefore(l.at, prim.Constant, l.at.Loc, nil, t)
	if !lit.IsNone() {
		o.SetAttr("value", lit)
	}
	v := o.Results[0]
	if lit.Kind == ssa.IntLit {
		v.Sym = []sym.Expr{sym.Const(lit.Int())}
	} else if s, ok := onnx.SymOf(v); ok {
		v.Sym = s
	}
	return v
}

// value is an operand: a value as it is, an int, a bool or a list of ints as a constant, nil as None, and tensors, of which some
// may be nil, as a list.
func (l *legalizer) value(a any) *ssa.Value {
	switch a := a.(type) {
	case *ssa.Value:
		return a
	case int:
		return l.constant(ssa.Int(int64(a)))
	case int64:
		return l.constant(ssa.Int(a))
	case bool:
		return l.constant(ssa.Bool(a))
	case []int64:
		return l.constant(ssa.Ints(a...))
	case []*ssa.Value:
		return l.at.Block().InsertBefore(l.at, "prim::ListConstruct", l.at.Loc, a, &ssa.ListType{Elem: ssa.AnyTensor}).Results[0]
	}
	return l.constant(ssa.None)
}

// emit makes an operator, named with its overload, and gives its results with their types. The elements of a list of tensors
// are given one by one.
func (l *legalizer) emit(name string, args ...any) []*ssa.Value {
	schema := aten.SchemaByName(name)
	operands := make([]*ssa.Value, len(schema.Args))
	for i, s := range schema.Args {
		switch {
		case i < len(args):
			operands[i] = l.value(args[i])
		case s.HasDefault:
			operands[i] = l.constant(s.Default)
		default:
			operands[i] = l.constant(ssa.None)
		}
	}
	types := make([]ssa.Type, len(schema.Returns))
	for i, r := range schema.Returns {
		types[i] = r.Type
	}
	o := l.at.Block().InsertBefore(l.at, ssa.Kind(schema.Name), l.at.Loc, operands, types...)
	o.Schema = schema
	if t, ok := l.table.TypeOf(o, l.opset); ok {
		o.Results[0].Type = t
		return o.Results
	}
	defer l.scratch.Body.Clear()
	vs, failure := l.table.Scratch(o, l.opset, onnx.Builder{Eval: kernel.Eval, Block: l.scratch.Body, Loc: o.Loc, FoldLimit: constantLimit})
	if failure != nil {
		return o.Results
	}
	if _, list := o.Results[0].Type.(*ssa.ListType); list {
		types := make([]ssa.Type, len(vs))
		for i, v := range vs {
			types[i] = v.Type
		}
		o = l.at.Block().InsertBefore(l.at, "prim::ListUnpack", l.at.Loc, o.Results, types...)
	}
	for i, v := range vs {
		if v == nil || i >= len(o.Results) {
			continue
		}
		r := o.Results[i]
		r.Sym = v.Sym
		if t := v.Tensor(); t != nil && r.Tensor() != nil {
			r.Type = t
		}
	}
	return o.Results
}

func (l *legalizer) op(name string, args ...any) *ssa.Value { return l.emit(name, args...)[0] }

// constantLimit bounds the elements of a list of indices that is a constant.
const constantLimit = 1 << 14

// long is PyTorch's code of int64.
var long = int64(tensor.Int64.Code())

// size is the size of a dimension, an int or a value.
func (l *legalizer) size(x *ssa.Value, dim int) any {
	if n, ok := x.Tensor().Dims[dim].Int(); ok {
		return n
	}
	return l.op("aten::size.int", x, dim)
}

// positions are the indices 0, 1, ... of a dimension.
func (l *legalizer) positions(x *ssa.Value, dim int) *ssa.Value {
	n := l.size(x, dim)
	if n, ok := n.(int64); ok && n <= constantLimit {
		return l.ints(arange(n))
	}
	return l.op("aten::arange", n, long)
}

func arange(n int64) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

// ints is a vector of known indices.
func (l *legalizer) ints(v []int64) *ssa.Value { return l.constant(ssa.TensorValue(tensor.Ints(v...))) }
