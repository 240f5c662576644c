package facts

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// maxContent bounds the elements of the integer tensors that are followed.
const maxContent = 256

// move finds the elements of an op's results where it only moves those of integer operands: its kernel runs on numbers that
// stand for the elements.
func (w *walk) move(o *ssa.Op) {
	if len(o.Results) == 0 || o.NumOperands() == 0 || !integer(o.Results[0].DType()) || !w.wanted(o) {
		return
	}
	from := onnx.Carried(o)
	if from == nil || w.elements(o.Operand(0)) == nil {
		return
	}
	ins := make([]*tensor.Tensor, o.NumOperands())
	var pool []sym.Expr
	for _, i := range from {
		e := w.elements(o.Operand(i))
		if e == nil {
			return
		}
		shape, _ := o.Operand(i).Tensor().Static()
		ids := make([]int64, len(e))
		for k := range ids {
			ids[k] = int64(len(pool) + k)
		}
		pool = append(pool, e...)
		ins[i] = tensor.FromInts(tensor.Int64, shape, ids)
	}
	for i := range ins {
		if v := o.Operand(i); v != nil && ins[i] == nil {
			if ins[i] = w.constant(v); ins[i] == nil {
				return
			}
		}
	}
	outs, err := kernel.Eval(o.Kind, o.Attrs, ins, len(o.Results))
	if err != nil || len(outs) != len(o.Results) {
		return
	}
	for i, t := range outs {
		if t == nil || t.NumElements() > maxContent {
			continue
		}
		e := make([]sym.Expr, 0, t.NumElements())
		for _, id := range t.Int64s() {
			e = append(e, pool[id])
		}
		if v := o.Results[i]; len(t.Shape) > 1 {
			w.content[v] = e
		} else if v.Sym == nil {
			v.Sym = e
		}
	}
}

// wanted reports a result that is small and whose elements are not known.
func (w *walk) wanted(o *ssa.Op) bool {
	for _, v := range o.Results {
		t := v.Tensor()
		if t == nil {
			return false
		}
		shape, ok := t.Static()
		if !ok || count(shape) > maxContent {
			return false
		}
	}
	v := o.Results[0]
	return v.Sym == nil || v.Tensor().Rank() > 1
}

// elements gives those of an integer tensor of known shape, nil if they are not known.
func (w *walk) elements(v *ssa.Value) []sym.Expr {
	if v == nil || v.Tensor() == nil {
		return nil
	}
	shape, ok := v.Tensor().Static()
	if !ok {
		return nil
	}
	e, ok := w.content[v]
	if !ok {
		e, ok = onnx.SymOf(v)
	}
	if !ok {
		t := onnx.ConstOf(v)
		if t == nil || !t.HasData() || !integer(t.DType) || t.NumElements() > maxContent {
			return nil
		}
		e = ssa.Sizes(t.Int64s())
	}
	if int64(len(e)) != count(shape) {
		return nil
	}
	return e
}

// constant gives the value of an operand that is known at export.
func (w *walk) constant(v *ssa.Value) *tensor.Tensor {
	if t := onnx.ConstOf(v); t != nil && t.HasData() {
		return t
	}
	e := w.elements(v)
	if e == nil {
		return nil
	}
	ints := make([]int64, len(e))
	for i := range e {
		n, ok := e[i].Int()
		if !ok {
			return nil
		}
		ints[i] = n
	}
	shape, _ := v.Tensor().Static()
	return tensor.FromInts(v.DType(), shape, ints)
}

// count is the number of elements of a shape; beyond maxContent it may be any larger number.
func count(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		if n *= max(d, 0); n > maxContent {
			return maxContent + 1
		}
	}
	return n
}
