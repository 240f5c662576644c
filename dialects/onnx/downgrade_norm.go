package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Operators that the standard defines by others, for opsets before them. Halves
// are computed in float32, as PyTorch does.

// up is x in a type to compute in.
func (d *Downgrade) up(x *ssa.Value) *ssa.Value {
	if x == nil {
		return nil
	}
	if t := x.DType(); t == tensor.Float16 || t == tensor.BFloat16 {
		return d.cast(x, tensor.Float32)
	}
	return x
}

// half makes an expression of one operand that is computed in float32 for halves.
func half(opset int, f func(d *Downgrade, x *ssa.Value) *ssa.Value) Step {
	return express(opset, func(d *Downgrade) *ssa.Value {
		return d.cast(f(d, d.up(d.in(0))), d.in(0).DType())
	})
}

func hardSwish(d *Downgrade, x *ssa.Value) *ssa.Value {
	return d.Mul(x, d.HardSigmoid(x, Alpha(1.0/6), Beta(0.5)))
}

// celu is Elu, stretched: alpha*(exp(x/alpha) - 1) for negative x.
func celu(d *Downgrade, x *ssa.Value) *ssa.Value {
	a := d.Node.AttrFloat("alpha", 1)
	if a == 1 {
		return d.Elu(x)
	}
	return d.Mul(d.Elu(d.Div(x, d.like(x, a))), d.like(x, a))
}

// throughDouble computes an operator that did not exist by what float64 needs
// where there is no kernel.
func throughDouble(d *Downgrade) {
	t := d.in(0).DType()
	f := TypeFallback(d.Node.Kind.Name())
	if f == nil || !t.IsFloat() {
		d.Fail(9, "the operator")
	}
	if t == tensor.Float64 {
		if !f(d, t) {
			d.Fail(9, "the operator")
		}
		return
	}
	vs := d.Node.Operands()
	for i, v := range vs {
		if v != nil {
			vs[i] = d.cast(v, tensor.Float64)
		}
	}
	// an op in float64 with its cast as the only user, which the fallback serves
	r := d.Block.InsertBefore(d.Before, d.Node.Kind, d.Loc, vs, d.Node.Result(0).Tensor().WithDType(tensor.Float64))
	r.Attrs = d.Node.Attrs
	back := d.Block.InsertBefore(d.Before, "onnx::Cast", d.Loc, []*ssa.Value{r.Result(0)}, d.Node.Result(0).Type)
	back.SetAttr("to", ssa.Int(int64(t.ONNX())))
	e := *d
	e.Node, e.Before = r, r
	if !f(&e, tensor.Float64) {
		d.Fail(9, "the operator")
	}
	d.Replace(back.Result(0))
}

// eyeLike is a constant where the sizes are.
func eyeLike(d *Downgrade) *ssa.Value {
	shape := d.sizes(d.in(0), 9)
	k := d.Node.AttrInt("k", 0)
	v := make([]int64, shape[0]*shape[1])
	for i := range shape[0] {
		if j := i + k; j >= 0 && j < shape[1] {
			v[i*shape[1]+j] = 1
		}
	}
	return d.Const(tensor.FromInts(d.Node.Result(0).DType(), shape, v))
}

// trilu keeps a triangle, by a mask.
func trilu(d *Downgrade) *ssa.Value {
	x := d.in(0)
	r := d.rank(x, 14)
	k := d.long(0)
	if d.in(1) != nil {
		k = d.reshape(d.in(1))
	}
	rows := d.Unsqueeze(d.Range(d.long(0), d.size(x, r-2), d.long(1)), d.ints(1))
	cols := d.Range(d.long(0), d.size(x, r-1), d.long(1))
	edge := d.Add(rows, k)
	drop := d.Less(cols, edge)
	if d.Node.AttrInt("upper", 1) == 0 {
		drop = d.Greater(cols, edge)
	}
	zero := d.Const(tensor.FromInts(x.DType(), []int64{}, []int64{0}))
	return d.Where(drop, zero, x)
}

// oneHot compares the indices with the places along the new axis.
func oneHot(d *Downgrade) *ssa.Value {
	at, depth, values := d.in(0), d.in(1), d.in(2)
	rank := int64(d.rank(at, 9))
	n, ok := ConstInts(depth)
	if f, isFloat := ConstFloat(depth); !ok && isFloat {
		n, ok = []int64{int64(f)}, true
	}
	if !ok {
		d.Fail(9, "a depth that is computed at run time")
	}
	axis := d.Node.AttrInt("axis", -1)
	if axis < 0 {
		axis += rank + 1
	}
	at = d.cast(at, tensor.Int64)
	at = d.fromFront(at, d.long(n[0]))
	places := make([]int64, n[0])
	for i := range places {
		places[i] = int64(i)
	}
	shape := []int64{n[0]}
	for range rank - axis {
		shape = append(shape, 1)
	}
	hot := d.Equal(d.Unsqueeze(at, d.ints(axis)), d.Const(tensor.Of(tensor.Int64, shape, places)))
	return d.Where(hot, d.gather(values, d.long(1), 0), d.gather(values, d.long(0), 0))
}

func oneHotFallback(d *Downgrade, _ tensor.DType) bool {
	d.Replace(oneHot(d))
	return true
}

// constantOfShape repeats the element; before Expand only to known sizes.
func constantOfShape(d *Downgrade) *ssa.Value {
	v := tensor.FromFloats(tensor.Float32, []int64{1}, []float64{0})
	if l, ok := d.Node.Attr("value"); ok && l.Tensor != nil {
		v = l.Tensor
	}
	if shape, ok := ConstInts(d.in(0)); ok {
		one := v.Reshape([]int64{})
		return d.Const(&tensor.Tensor{DType: one.DType, Shape: shape, Strides: make([]int64, len(shape)), Offset: one.Offset, Storage: one.Storage})
	}
	return d.Expand(d.Const(v), d.in(0))
}

// expand repeats along the axes of size 1.
func expand(d *Downgrade) *ssa.Value {
	x := d.in(0)
	out := d.Node.Result(0).Tensor()
	t := x.Tensor()
	if t == nil || !t.Ranked || out == nil || !out.Ranked {
		d.Fail(8, "broadcasting to an unknown rank")
	}
	if n := len(out.Dims) - len(t.Dims); n > 0 {
		axes := make([]int64, n)
		for i := range axes {
			axes[i] = int64(i)
		}
		x = d.Unsqueeze(x, d.ints(axes...))
		t = x.Tensor()
	}
	m, known := d.in(1).Tensor().Dims[0].Int()
	lead := int64(len(out.Dims)) - m // axes that the shape lacks
	parts := make([]*ssa.Value, len(out.Dims))
	for i, e := range out.Dims {
		n, ok := e.Int()
		switch {
		case t.Dims[i].Equal(e), known && int64(i) < lead:
			parts[i] = d.ints(1)
		case t.Dims[i].Is(1) && ok:
			parts[i] = d.ints(n)
		case !known:
			d.Fail(8, "broadcasting to an unknown rank")
		case t.Dims[i].Is(1):
			parts[i] = d.gather(d.in(1), d.ints(int64(i)-lead), 0)
		default: // the input's size is 1 or what is asked, or 1 is asked
			want := d.gather(d.in(1), d.ints(int64(i)-lead), 0)
			have := d.Unsqueeze(d.size(x, i), d.ints(0))
			// want/have, but 1 where 1 is asked
			one := d.Equal(want, d.ints(1))
			parts[i] = d.Add(d.Div(want, have), d.cast(d.And(one, d.Not(d.Equal(have, d.ints(1)))), tensor.Int64))
		}
	}
	if len(parts) == 0 {
		return x
	}
	return d.Tile(x, d.concat(0, parts...))
}

// wholeSum is the sum of integers along an axis, wrapped around. Runtimes add integers in float64, so the halves of int64
// are summed apart: each is below 2^32, which is exact for 2^21 of them.
func (d *Downgrade) wholeSum(x *ssa.Value, axis int64) *ssa.Value {
	sum := func(v *ssa.Value) *ssa.Value {
		return d.ReduceSum(v, d.ints(axis), KeepDims(false))
	}
	if x.DType() != tensor.Int64 {
		return sum(x)
	}
	half := d.scalarInt(tensor.Int64, 1<<32)
	high := d.Div(x, half)
	low := d.Sub(x, d.Mul(high, half))
	return d.Add(d.Mul(sum(high), half), sum(low))
}

// matMulByProducts multiplies and adds, for elements that MatMul did not take.
func matMulByProducts(d *Downgrade, t tensor.DType) bool {
	a, b := d.in(0), d.in(1)
	ra, rb := d.rank(a, 9), d.rank(b, 9)
	if !t.IsInt() || ra == 0 || rb == 0 {
		return false
	}
	if ra == 1 {
		a = d.Unsqueeze(a, d.ints(0))
	}
	if rb == 1 {
		b = d.Unsqueeze(b, d.ints(1))
	}
	ra, rb = max(ra, 2), max(rb, 2)
	p := d.Mul(d.Unsqueeze(a, d.ints(int64(ra))), d.Unsqueeze(b, d.ints(int64(rb-2))))
	r := int64(max(ra, rb) + 1)
	y := d.wholeSum(p, r-2)
	var drop []int64
	if d.rank(d.in(0), 9) == 1 {
		drop = append(drop, r-3)
	}
	if d.rank(d.in(1), 9) == 1 {
		drop = append(drop, r-2)
	}
	if drop != nil {
		y = d.Squeeze(y, d.ints(drop...))
	}
	d.Replace(y)
	return true
}
