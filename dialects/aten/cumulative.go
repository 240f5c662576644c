package aten

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// cumulative holds running sums, products and extremes, differences and
// integrals (ATen/native/ReduceOps.cpp, Integration.cpp).
var cumulative = Defs{
	"aten::cumsum":               {Doc: "running sum along dim", Gradient: "self: flip(cumsum(flip(grad, [dim]), dim), [dim])", Nature: AlongDim, Layout: RowMajor, Autocast: Float32OnCUDA, Complex: (*Lowering).complexParts, Lower: lowerCumsum},
	"aten::cumprod":              {Doc: "running product along dim", Nature: AlongDim, Layout: RowMajor, Autocast: Float32OnCUDA, Complex: one(complexCumprod), Lower: lowerCumprod},
	"aten::cummax":               {Doc: "running maximum along dim and where it was met last", Gradient: "self: scatter_add(zeros_like(self), dim, result1, grad)", Nature: AlongDim, Layout: RowMajor, LowerN: func(l *Lowering) []*ssa.Value { return l.runningExtreme("Max") }},
	"aten::cummin":               {Doc: "running minimum along dim and where it was met last", Gradient: "self: scatter_add(zeros_like(self), dim, result1, grad)", Nature: AlongDim, Layout: RowMajor, LowerN: func(l *Lowering) []*ssa.Value { return l.runningExtreme("Min") }},
	"aten::logcumsumexp":         {Doc: "log of the running sum of exp along dim", Nature: AlongDim, Layout: RowMajor, Lower: lowerLogcumsumexp},
	"aten::gradient":             {Doc: "central differences along dimensions, one-sided at the ends", LowerN: lowerGradient},
	"aten::diff":                 {Doc: "n-th difference of neighbours along dim", Nature: AlongDim, Complex: (*Lowering).complexParts, Lower: lowerDiff},
	"aten::trapezoid":            {Doc: "integral by trapezoids along dim", Nature: AlongDim, Complex: complexTrapezoid, Lower: func(l *Lowering) *ssa.Value { return l.trapezoid(false) }},
	"aten::trapz":                {Doc: "integral by trapezoids along dim", Nature: AlongDim, Complex: complexTrapezoid, Lower: func(l *Lowering) *ssa.Value { return l.trapezoid(false) }},
	"aten::cumulative_trapezoid": {Doc: "running integral by trapezoids along dim", Nature: AlongDim, Complex: complexTrapezoid, Lower: func(l *Lowering) *ssa.Value { return l.trapezoid(true) }},
}

func lowerCumsum(l *Lowering) *ssa.Value {
	x := l.accumulated(l.Tensor("self"))
	dim := l.Dim("dim", l.Rank(x))
	d := l.DType(x)
	if d.IsInt() && d != tensor.Int64 || d == tensor.Bool {
		x = l.Cast(x, tensor.Int64) // narrower sums wrap, so may be taken in int64
	}
	return l.Cast(l.cumsum(x, dim), d)
}

func (l *Lowering) cumsum(x *ssa.Value, dim int) *ssa.Value {
	if l.Rank(x) == 0 {
		return x
	}
	return l.CumSum(x, l.scalarInt(tensor.Int64, int64(dim)))
}

// scan is an inclusive scan of an associative f with a neutral element along
// dim. Steps that double the distance need the size; without it, every prefix
// is laid out and reduced with the ONNX operator op.
func (l *Lowering) scan(x *ssa.Value, dim int, neutral *ssa.Value, op string, f func(a, b *ssa.Value) *ssa.Value) *ssa.Value {
	if l.Rank(x) == 0 {
		return x
	}
	n, ok := l.Shape(x)[dim].Int()
	if !ok {
		last := l.unsqueeze(l.toLast(x, dim), -2)
		i := l.rangeTo(l.sizeValue(l.sizeOf(x, dim)))
		prefix := l.Where(l.GreaterOrEqual(l.unsqueeze(i, 1), i), last, neutral)
		y := l.reduce(op, prefix, []int64{-1}, false)
		return l.fromLast(y, dim)
	}
	pads := make([]int64, 2*l.Rank(x))
	for step := int64(1); step < n; step *= 2 {
		pads[dim] = step
		// negative padding at the end drops what moves out
		pads[l.Rank(x)+dim] = -step
		moved := l.Pad(x, l.i64(pads...), neutral, nil)
		x = f(moved, x)
	}
	return x
}

// toLast moves an axis to the end.
func (l *Lowering) toLast(x *ssa.Value, dim int) *ssa.Value {
	r := l.Rank(x)
	if r == 0 || dim == r-1 {
		return x
	}
	perm := make([]int64, 0, r)
	for i := range r {
		if i != dim {
			perm = append(perm, int64(i))
		}
	}
	return l.transpose(x, append(perm, int64(dim))...)
}

// fromLast moves the last axis to the place dim.
func (l *Lowering) fromLast(x *ssa.Value, dim int) *ssa.Value {
	r := l.Rank(x)
	if r == 0 || dim == r-1 {
		return x
	}
	perm := make([]int64, 0, r)
	for i := range r {
		switch {
		case i < dim:
			perm = append(perm, int64(i))
		case i == dim:
			perm = append(perm, int64(r-1))
		default:
			perm = append(perm, int64(i-1))
		}
	}
	return l.transpose(x, perm...)
}

func lowerCumprod(l *Lowering) *ssa.Value {
	x := l.accumulated(l.Tensor("self"))
	dim := l.Dim("dim", l.Rank(x))
	d := l.DType(x)
	if d.IsInt() && d != tensor.Int64 || d == tensor.Bool {
		x = l.Cast(x, tensor.Int64)
	}
	if l.Rank(x) > 0 {
		return l.Cast(l.CumProd(x, l.scalarInt(tensor.Int64, int64(dim))), d)
	}
	return l.Cast(l.scan(x, dim, l.Like(x, 1), "ReduceProd", l.Mul), d)
}

// runningExtreme finds the indices as the running maximum of the places where an element equals the extreme so far.
func (l *Lowering) runningExtreme(op string) []*ssa.Value {
	x := l.Tensor("self")
	dim := l.Dim("dim", l.Rank(x))
	d := l.DType(x)
	if l.Rank(x) == 0 {
		return []*ssa.Value{x, l.Scalar(tensor.Int64, 0)}
	}
	w := x
	if d == tensor.Bool {
		w = l.Cast(x, tensor.Int32)
	}
	f, neutral := l.max, l.lowest(l.DType(w))
	if op == "Min" {
		f, neutral = l.min, l.highest(l.DType(w))
	}
	v := l.scan(w, dim, neutral, "Reduce"+op, f)
	hit := l.Equal(w, v)
	if d.IsFloat() {
		if _, ok := l.Shape(w)[dim].Int(); !ok {
			// reductions need not pass NaN on
			seen := l.cumsum(l.Cast(l.isNaN(w), tensor.Int32), dim)
			v = l.Where(l.Cast(seen, tensor.Bool), l.Like(w, math.NaN()), v)
		}
		hit = l.Or(hit, l.isNaN(w))
	}
	i := l.rangeTo(l.sizeValue(l.sizeOf(x, dim)))
	for range l.Rank(x) - 1 - dim {
		i = l.unsqueeze(i, -1)
	}
	places := l.Where(hit, i, l.scalarInt(tensor.Int64, 0))
	return []*ssa.Value{l.Cast(v, d), l.scan(places, dim, l.Scalar(tensor.Int64, 0), "ReduceMax", l.max)}
}

// lowest is the least number of a type.
func (l *Lowering) lowest(d tensor.DType) *ssa.Value {
	switch {
	case d.IsFloat():
		return l.Scalar(d, math.Inf(-1))
	case d.IsUnsigned() || d == tensor.Bool:
		return l.Scalar(d, 0)
	}
	return l.scalarInt(d, -1<<(8*d.Size()-1))
}

// highest is the greatest number of a type.
func (l *Lowering) highest(d tensor.DType) *ssa.Value {
	switch {
	case d.IsFloat():
		return l.Scalar(d, math.Inf(1))
	case d.IsUnsigned():
		return l.scalarInt(d, -1) // all bits
	}
	return l.scalarInt(d, math.MaxInt64>>(64-8*d.Size()))
}

func lowerLogcumsumexp(l *Lowering) *ssa.Value {
	x := l.FloatArg("self")
	dim := l.Dim("dim", l.Rank(x))
	return l.scan(x, dim, l.Like(x, math.Inf(-1)), "ReduceLogSumExp", func(a, b *ssa.Value) *ssa.Value { return l.logaddexp(a, b, 1) })
}

func lowerDiff(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if l.Rank(x) == 0 {
		l.Fail("diff of a tensor of rank 0")
	}
	dim := l.Dim("dim", l.Rank(x))
	n := l.IntOr("n", 1)
	if n == 0 {
		return x
	}
	var parts []*ssa.Value
	d := l.DType(x)
	for _, name := range []string{"prepend", "self", "append"} {
		if v := l.TensorOr(name); v != nil {
			parts = append(parts, v)
			d = Promote(d, l.DType(v))
		}
	}
	for i := range parts {
		parts[i] = l.Cast(parts[i], d)
	}
	return l.diff(l.concatV(int64(dim), parts...), dim, n)
}

// diff is the n-th difference of neighbours; of bool, whether they differ.
func (l *Lowering) diff(x *ssa.Value, dim int, n int64) *ssa.Value {
	for range n {
		if s, ok := l.dimension(x, dim).Int(); ok && s == 0 {
			return x
		}
		next, prev := l.sliceC(x, dim, 1, math.MaxInt64, 1), l.sliceC(x, dim, 0, -1, 1)
		if l.DType(x) == tensor.Bool {
			x = l.Xor(next, prev)
		} else {
			x = l.Sub(next, prev)
		}
	}
	return x
}

// trapezoid adds and multiplies in the operands' own type, where integers may
// wrap as in ATen, and halves the sum.
func (l *Lowering) trapezoid(running bool) *ssa.Value {
	y := l.Tensor("y")
	rank := l.Rank(y)
	dim := l.Dim("dim", rank)
	if rank == 0 {
		l.Fail("integration of a tensor of rank 0")
	}
	x := l.TensorOr("x")
	d := l.DType(y)
	if x != nil {
		d = Promote(d, l.DType(x))
	}
	result := d
	if !d.IsFloat() {
		result = tensor.Float32
	}
	if l.Shape(y)[dim].Is(0) {
		y = l.Cast(y, result)
		if running {
			return y
		}
		return l.reduce("ReduceSum", y, []int64{int64(dim)}, false)
	}
	if x == nil {
		return l.evenTrapezoid(y, dim, result, running)
	}
	y, x = l.Cast(y, d), l.Cast(x, d)
	var dx *ssa.Value
	xr := l.Rank(x)
	switch {
	case xr == 1 && rank != 1:
		dx = l.diff(x, 0, 1)
		for range rank - 1 - dim {
			dx = l.unsqueeze(dx, -1)
		}
	case dim-rank+xr < 0:
		l.Fail("x has fewer dimensions than y")
	case xr >= rank:
		dx = l.diff(x, l.Dim("dim", xr), 1)
	default:
		dx = l.diff(x, dim-rank+xr, 1)
	}
	sum := l.Add(l.sliceC(y, dim, 1, math.MaxInt64, 1), l.sliceC(y, dim, 0, -1, 1))
	area := l.accumulated(l.Mul(sum, dx))
	dim += l.Rank(area) - rank
	if running {
		area = l.cumsum(area, dim)
	} else {
		area = l.reduce("ReduceSum", area, []int64{int64(dim)}, false)
	}
	return l.scale(l.Cast(area, result), 0.5)
}

// evenTrapezoid has one distance for all.
func (l *Lowering) evenTrapezoid(y *ssa.Value, dim int, result tensor.DType, running bool) *ssa.Value {
	dx := l.NumberOr("dx", 1)
	if running {
		sum := l.Add(l.sliceC(y, dim, 1, math.MaxInt64, 1), l.sliceC(y, dim, 0, -1, 1))
		return l.cumsum(l.byNumber(l.Cast(sum, result), l.linearNumber(dx, 0.5, 0)), dim)
	}
	ends := l.Cast(l.Add(l.sliceC(y, dim, 0, 1, 1), l.sliceC(y, dim, -1, math.MaxInt64, 1)), result)
	all := l.Cast(l.reduce("ReduceSum", l.accumulated(y), []int64{int64(dim)}, false), result)
	return l.byNumber(l.Sub(all, l.scale(l.squeeze(ends, int64(dim)), 0.5)), dx)
}

// lowerGradient is at::gradient: spacing is one number, one for each dimension, or coordinates for each.
func lowerGradient(l *Lowering) []*ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	if !l.DType(x).IsFloat() {
		x = l.Cast(x, tensor.Float32)
	}
	dims := l.Dims("dim", rank)
	coordinates := make([]*ssa.Value, len(dims))
	steps := make([]float64, len(dims))
	for i := range steps {
		steps[i] = 1
	}
	if !l.IsNone("spacing") {
		if l.Arg("spacing").Tensor() == nil && l.IsConst("spacing") {
			s := l.Floats("spacing")
			for i := range steps {
				steps[i] = s[min(i, len(s)-1)]
			}
		} else {
			vs := l.Tensors("spacing")
			if len(vs) != len(dims) {
				l.Fail("gradient over %d dimensions with %d coordinates", len(dims), len(vs))
			}
			coordinates = vs
		}
	}
	out := make([]*ssa.Value, len(dims))
	for i, d := range dims {
		out[i] = l.gradientAlong(x, int(d), coordinates[i], steps[i], l.IntOr("edge_order", 1))
	}
	return out
}

func (l *Lowering) gradientAlong(x *ssa.Value, dim int, at *ssa.Value, step float64, order int64) *ssa.Value {
	cut := func(v *ssa.Value, axis int, from, to int64) *ssa.Value { return l.sliceC(v, axis, from, to, 1) }
	const end = math.MaxInt64
	if at == nil {
		inner := l.scale(l.Sub(cut(x, dim, 2, end), cut(x, dim, 0, -2)), 1/(2*step))
		var first, last *ssa.Value
		if order == 1 {
			first = l.scale(l.Sub(cut(x, dim, 1, 2), cut(x, dim, 0, 1)), 1/step)
			last = l.scale(l.Sub(cut(x, dim, -1, end), cut(x, dim, -2, -1)), 1/step)
		} else {
			three := func(a, b, c *ssa.Value, sign float64) *ssa.Value {
				v := l.Sub(l.Sub(l.scale(b, 2), l.scale(a, 1.5)), l.scale(c, 0.5))
				return l.scale(v, sign/step)
			}
			first = three(cut(x, dim, 0, 1), cut(x, dim, 1, 2), cut(x, dim, 2, 3), 1)
			last = three(cut(x, dim, -1, end), cut(x, dim, -2, -1), cut(x, dim, -3, -2), -1)
		}
		return l.concatV(int64(dim), first, inner, last)
	}
	h := l.diff(l.Cast(at, l.DType(x)), 0, 1)
	lift := func(v *ssa.Value) *ssa.Value {
		for range l.Rank(x) - 1 - dim {
			v = l.unsqueeze(v, -1)
		}
		return v
	}
	slope := l.Div(l.diff(x, dim, 1), lift(h))
	left, right := lift(cut(h, 0, 0, -1)), lift(cut(h, 0, 1, end))
	// the slopes of both sides, weighted by the other side's step
	inner := l.Div(l.Add(l.Mul(cut(slope, dim, 0, -1), right), l.Mul(cut(slope, dim, 1, end), left)), l.Add(left, right))
	if order == 1 {
		return l.concatV(int64(dim), cut(slope, dim, 0, 1), inner, cut(slope, dim, -1, end))
	}
	// the parabola through three points: the slope at the end goes on as it changes
	edge := func(outer, next, h1, h2 *ssa.Value) *ssa.Value {
		return l.Add(outer, l.Div(l.Mul(l.Sub(outer, next), h1), l.Add(h1, h2)))
	}
	first := edge(cut(slope, dim, 0, 1), cut(slope, dim, 1, 2), lift(cut(h, 0, 0, 1)), lift(cut(h, 0, 1, 2)))
	last := edge(cut(slope, dim, -1, end), cut(slope, dim, -2, -1), lift(cut(h, 0, -1, end)), lift(cut(h, 0, -2, -1)))
	return l.concatV(int64(dim), first, inner, last)
}
