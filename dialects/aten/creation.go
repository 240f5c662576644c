package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// creation holds the makers of tensors (ATen/native/TensorFactories.cpp).
var creation = Defs{
	"aten::zeros":             {Doc: "0 everywhere", Layout: RowMajor, Lower: filledWith(0)},
	"aten::ones":              {Doc: "1 everywhere", Layout: RowMajor, Lower: filledWith(1)},
	"aten::empty":             {Doc: "memory that nobody wrote, 0 here", Layout: RowMajor, Lower: filledWith(0)},
	"aten::empty_strided":     {Doc: "memory that nobody wrote, 0 here", Layout: AnyLayout, Lower: filledWith(0)},
	"aten::empty_permuted":    {Doc: "memory that nobody wrote, 0 here", Layout: AnyLayout, Lower: filledWith(0)},
	"aten::full":              {Doc: "fill_value everywhere", Layout: RowMajor, Lower: lowerFull},
	"aten::zeros_like":        {Doc: "0 in the shape of self", Gradient: NoGradient, Nature: CreatesLike, Layout: LikeOperands, Lower: filledLike(0)},
	"aten::ones_like":         {Doc: "1 in the shape of self", Gradient: NoGradient, Nature: CreatesLike, Layout: LikeOperands, Lower: filledLike(1)},
	"aten::empty_like":        {Doc: "memory that nobody wrote, 0 here", Gradient: NoGradient, Nature: CreatesLike, Layout: LikeOperands, Lower: filledLike(0)},
	"aten::full_like":         {Doc: "fill_value in the shape of self", Gradient: NoGradient, Nature: CreatesLike, Layout: LikeOperands, Lower: lowerFullLike},
	"aten::new_zeros":         {Doc: "0 in the type of self", Gradient: NoGradient, Nature: CreatesLike, Layout: RowMajor, Lower: filledWith(0)},
	"aten::new_ones":          {Doc: "1 in the type of self", Gradient: NoGradient, Nature: CreatesLike, Layout: RowMajor, Lower: filledWith(1)},
	"aten::new_empty":         {Doc: "memory that nobody wrote, 0 here", Gradient: NoGradient, Nature: CreatesLike, Layout: RowMajor, Lower: filledWith(0)},
	"aten::new_empty_strided": {Doc: "memory that nobody wrote, 0 here", Layout: AnyLayout, Lower: filledWith(0)},
	"aten::new_full":          {Doc: "fill_value in the type of self", Gradient: NoGradient, Nature: CreatesLike, Layout: RowMajor, Lower: lowerFull},
	"aten::scalar_tensor":     {Doc: "a number as a tensor of rank 0", Layout: RowMajor, Lower: lowerScalarTensor},
	"aten::tensor":            {Doc: "a tensor of numbers", Layout: RowMajor, Lower: lowerTensor},
	"aten::as_tensor":         {Doc: "a tensor of numbers, or a tensor itself", Lower: lowerTensor},
	"aten::arange":            {Doc: "numbers from start below end", Layout: RowMajor, Lower: lowerArange},
	"aten::range":             {Doc: "numbers from start to end, end included", Lower: lowerArange},
	"aten::_dim_arange":       {Doc: "0 up to the size of a dimension", Lower: lowerDimArange},
	"aten::linspace":          {Doc: "so many numbers from start to end, evenly", Layout: RowMajor, Lower: func(l *Lowering) *ssa.Value { return l.linspace(nil) }},
	"aten::logspace":          {Doc: "powers of base with even exponents", Layout: RowMajor, Lower: func(l *Lowering) *ssa.Value { base := l.NumberOr("base", 10); return l.linspace(&base) }},
	"aten::eye":               {Doc: "the identity matrix", Layout: RowMajor, Lower: lowerEye},
	"aten::tril_indices":      {Doc: "rows and columns of a lower triangle", Layout: RowMajor, Lower: func(l *Lowering) *ssa.Value { return l.triangle(true) }},
	"aten::triu_indices":      {Doc: "rows and columns of an upper triangle", Layout: RowMajor, Lower: func(l *Lowering) *ssa.Value { return l.triangle(false) }},
	"aten::vander":            {Doc: "powers of x in columns", Lower: lowerVander},
	"aten::hann_window":       {Doc: "raised cosine", Lower: windowOf(func(*Lowering) func(float64) float64 { return cosines(0.5, 0.5, 0) })},
	"aten::hamming_window": {Doc: "alpha - beta * cos", Lower: windowOf(func(l *Lowering) func(float64) float64 {
		return cosines(l.FloatOr("alpha", 0.54), l.FloatOr("beta", 0.46), 0)
	})},
	"aten::blackman_window": {Doc: "0.42 - 0.5 cos + 0.08 cos of twice the angle", Lower: windowOf(func(*Lowering) func(float64) float64 { return cosines(0.42, 0.5, 0.08) })},
	"aten::bartlett_window": {Doc: "triangle", Lower: windowOf(func(*Lowering) func(float64) float64 { return func(t float64) float64 { return 1 - math.Abs(2*t-1) } })},
	"aten::kaiser_window":   {Doc: "I0(beta * sqrt(1 - r^2)) / I0(beta)", Lower: windowOf(kaiser)},
}

// typeArg is the dtype argument; if it is None, the type of self where the
// overload has it, else the default.
func (l *Lowering) typeArg(def tensor.DType) tensor.DType {
	if d := l.DTypeArg("dtype"); d != tensor.Undefined {
		return d
	}
	if l.HasArg("self") {
		return l.DType(l.Tensor("self"))
	}
	return def
}

func filledWith(v float64) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		return l.fill(l.sizeTensor(l.sizes("size")), l.typeArg(tensor.Float32), ssa.Float(v))
	}
}

func filledLike(v float64) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		return l.constLike(l.Tensor("self"), l.typeArg(tensor.Undefined), v)
	}
}

// numberType is the element type that a number has as a tensor of its own.
func (l *Lowering) numberType(name string) tensor.DType {
	v := l.must(name)
	if v.Tensor() != nil {
		return l.DType(l.Value(v))
	}
	return l.numberDType(v)
}

func lowerFull(l *Lowering) *ssa.Value {
	return l.full(l.sizeTensor(l.sizes("size")), l.typeArg(l.numberType("fill_value")), "fill_value")
}

func lowerFullLike(l *Lowering) *ssa.Value {
	return l.full(l.shapeOf(l.Tensor("self")), l.typeArg(tensor.Undefined), "fill_value")
}

func lowerScalarTensor(l *Lowering) *ssa.Value {
	d := l.DTypeArg("dtype")
	if d == tensor.Undefined {
		d = tensor.Float32
	}
	return l.Cast(l.Tensor("s"), d)
}

func lowerTensor(l *Lowering) *ssa.Value {
	name := "data"
	if l.HasArg("t") {
		name = "t"
	}
	src := l.must(name)
	x := l.nested(src)
	d := l.DTypeArg("dtype")
	if d == tensor.Undefined {
		d = l.DType(x)
		if d == tensor.Float64 && src.Tensor() == nil {
			d = tensor.Float32
		}
	}
	return l.Cast(x, d)
}

// nested makes a tensor of lists of numbers, of any depth.
func (l *Lowering) nested(v *ssa.Value) *ssa.Value {
	if lit, ok := LiteralOf(v); ok && lit.Kind == ssa.ListLit {
		if t := nestedLiteral(lit); t != nil {
			return l.Const(t)
		}
	}
	es, ok := ListElems(v)
	if !ok {
		return l.Value(v)
	}
	if len(es) == 0 {
		return l.Const(tensor.FromFloats(tensor.Float64, []int64{0}, nil))
	}
	parts := make([]*ssa.Value, len(es))
	d := tensor.Undefined
	for i, e := range es {
		parts[i] = l.nested(e)
		d = Promote(d, l.DType(parts[i]))
	}
	for i := range parts {
		parts[i] = l.unsqueeze(l.Cast(parts[i], d), 0)
	}
	return l.concatV(0, parts...)
}

// nestedLiteral makes a tensor of a constant list, nil if it is ragged or holds no numbers.
func nestedLiteral(lit ssa.Literal) *tensor.Tensor {
	var shape []int64
	for e := lit; e.Kind == ssa.ListLit || e.Kind == ssa.TupleLit; e = e.Elems[0] {
		shape = append(shape, int64(len(e.Elems)))
		if len(e.Elems) == 0 {
			break
		}
	}
	kind := ssa.BoolLit
	var floats []float64
	var ints []int64
	var walk func(e ssa.Literal, depth int) bool
	walk = func(e ssa.Literal, depth int) bool {
		if depth < len(shape) {
			if e.Kind != ssa.ListLit && e.Kind != ssa.TupleLit || int64(len(e.Elems)) != shape[depth] {
				return false
			}
			for _, s := range e.Elems {
				if !walk(s, depth+1) {
					return false
				}
			}
			return true
		}
		switch {
		case e.Kind == ssa.FloatLit:
			kind = ssa.FloatLit
		case e.Kind == ssa.IntLit && kind == ssa.BoolLit:
			kind = ssa.IntLit
		case e.Kind != ssa.IntLit && e.Kind != ssa.BoolLit:
			return false
		}
		floats, ints = append(floats, e.Float()), append(ints, e.Int())
		return true
	}
	if !walk(lit, 0) {
		return nil
	}
	if len(floats) == 0 {
		switch lit.Elem {
		case ssa.IntType:
			return tensor.FromInts(tensor.Int64, shape, nil)
		case ssa.BoolType:
			return tensor.FromInts(tensor.Bool, shape, nil)
		}
		return tensor.FromFloats(tensor.Float64, shape, nil)
	}
	switch kind {
	case ssa.BoolLit:
		return tensor.FromInts(tensor.Bool, shape, ints)
	case ssa.IntLit:
		return tensor.FromInts(tensor.Int64, shape, ints)
	}
	return tensor.FromFloats(tensor.Float64, shape, floats)
}

// maxFolded bounds the constants that creation computes instead of leaving them to the runtime.
const maxFolded = 1 << 16

func lowerArange(l *Lowering) *ssa.Value {
	inclusive := l.Node.Kind == "aten::range"
	d := l.DTypeArg("dtype")
	if d == tensor.Undefined {
		d = tensor.Int64
		for _, n := range []string{"start", "end", "step"} {
			if l.HasArg(n) && l.numberType(n).IsFloat() {
				d = tensor.Float32
			}
		}
		if inclusive {
			d = tensor.Float32
		}
	}
	start, step := l.Scalar(tensor.Int64, 0), l.Scalar(tensor.Int64, 1)
	end := l.Tensor("end")
	if l.HasArg("start") {
		start = l.Tensor("start")
	}
	if l.HasArg("step") {
		step = l.Tensor("step")
	}
	s, ok1 := number(start)
	e, ok2 := number(end)
	k, ok3 := number(step)
	if ok3 && k == 0 {
		l.Fail("arange with step 0")
	}
	if ok1 && ok2 && ok3 {
		n := math.Ceil((e - s) / k)
		if inclusive {
			n = math.Floor((e-s)/k) + 1
		}
		if !inclusive && d == tensor.Int64 && max(math.Abs(s), math.Abs(e)) >= 1<<53 && n >= 0 && n <= maxFolded {
			return l.Const(intProgression(onnx.ConstOf(start).Int64s()[0], onnx.ConstOf(end).Int64s()[0], onnx.ConstOf(step).Int64s()[0]))
		}
		if n < 0 || math.IsNaN(n) {
			l.Fail("arange from %v to %v by %v: the bounds do not fit the step", s, e, k)
		}
		if n <= maxFolded {
			return l.Const(progression(d, s, k, int(n)))
		}
	}
	if !inclusive && d.IsInt() && l.DType(start).IsInt() && l.DType(end).IsInt() && l.DType(step).IsInt() {
		if ok3 && k < 0 && !(ok2 && e >= 0) {
			// onnxruntime merges Range into Gather as a Slice, where a negative limit counts from the end
			n := l.Range(l.Scalar(tensor.Int64, 0), l.Div(l.Sub(l.Cast(start, tensor.Int64), l.Cast(l.offset(end, k+1), tensor.Int64)), l.scalarInt(tensor.Int64, int64(-k))), l.Scalar(tensor.Int64, 1))
			return l.Cast(l.Add(l.Cast(start, tensor.Int64), l.Mul(n, l.scalarInt(tensor.Int64, int64(k)))), d)
		}
		return l.Cast(l.Range(l.Cast(start, tensor.Int64), l.Cast(end, tensor.Int64), l.Cast(step, tensor.Int64)), d)
	}
	f := tensor.Float64
	count := l.Div(l.Sub(l.Cast(end, f), l.Cast(start, f)), l.Cast(step, f))
	if inclusive {
		count = l.offset(l.Floor(count), 1)
	} else {
		count = l.Ceil(count)
	}
	i := l.Range(l.Scalar(tensor.Int64, 0), l.Cast(count, tensor.Int64), l.Scalar(tensor.Int64, 1))
	if d.IsInt() { // their count is that of the floats, start and step are truncated (ATen/native/RangeFactories.cpp)
		f = tensor.Int64
	}
	return l.Cast(l.Add(l.Cast(start, f), l.Mul(l.Cast(i, f), l.Cast(step, f))), d)
}

// progression is n numbers from start by step. Integer types take start and step truncated, as ATen does.
func progression(d tensor.DType, start, step float64, n int) *tensor.Tensor {
	v := make([]float64, n)
	if !d.IsFloat() {
		start, step = math.Trunc(start), math.Trunc(step)
	}
	for i := range v {
		v[i] = start + float64(i)*step
	}
	return tensor.FromFloats(d, []int64{int64(n)}, v)
}

// intProgression is the int64 numbers from start below end (above it for a negative step), also where float64 does not hold them.
func intProgression(start, end, step int64) *tensor.Tensor {
	span, by := uint64(end)-uint64(start), uint64(step)
	if step < 0 {
		span, by = -span, -by
	}
	v := make([]int64, (span+by-1)/by)
	for i := range v {
		v[i] = start + int64(i)*step
	}
	return tensor.Ints(v...)
}

func lowerDimArange(l *Lowering) *ssa.Value {
	x := l.Tensor("like")
	return l.rangeTo(l.sizeValue(l.sizeOf(x, l.Dim("dim", l.Rank(x)))))
}

// rangeTo is 0, 1 ... n-1 for an int64 n of rank 0.
func (l *Lowering) rangeTo(n *ssa.Value) *ssa.Value {
	if k, ok := number(n); ok && k <= maxFolded {
		return l.Const(progression(tensor.Int64, 0, 1, int(max(k, 0))))
	}
	return l.Range(l.Scalar(tensor.Int64, 0), n, l.Scalar(tensor.Int64, 1))
}

// linspace counts from both ends, as ATen does, so both are exact. base 0 stands for linspace itself.
func (l *Lowering) linspace(base *Number) *ssa.Value {
	d := l.DTypeArg("dtype")
	if d == tensor.Undefined {
		d = tensor.Float32
	}
	steps := l.sizes("steps")[0]
	n, fixed := steps.Int()
	if n < 0 {
		l.Fail("a negative number of steps")
	}
	l.atMost(n, maxMade, "numbers")
	start, end := l.Tensor("start"), l.Tensor("end")
	if l.Rank(start) > 0 || l.Rank(end) > 0 {
		l.Fail("start and end must have rank 0")
	}
	s, ok := number(start)
	e, ok2 := number(end)
	if !fixed || !ok || !ok2 || base != nil && !known(*base) {
		return l.linspaceOf(steps, start, end, base, d)
	}
	if !d.IsFloat() {
		s, e = math.Trunc(s), math.Trunc(e)
	}
	v := make([]float64, n)
	step := (e - s) / math.Max(float64(n-1), 1)
	if d == tensor.Float32 {
		step = float64(float32(e-s) / float32(math.Max(float64(n-1), 1)))
	}
	for i := range v {
		from, by, k := s, step, float64(i)
		if int64(i) >= n/2 && n > 1 {
			from, by, k = e, -step, float64(n-1-int64(i))
		}
		if d.IsFloat() {
			v[i] = from + by*k
		} else {
			v[i] = math.FMA(by, k, from) // what is just below an integer is truncated to the one below it
		}
		if base != nil {
			v[i] = math.Pow(base.k, v[i])
		}
	}
	return l.Const(tensor.FromFloats(d, []int64{n}, v))
}

// linspaceOf is linspace for bounds or a number of steps that are computed at run time.
func (l *Lowering) linspaceOf(steps Size, start, end *ssa.Value, base *Number, d tensor.DType) *ssa.Value {
	f := tensor.Float64
	n := l.sizeValue(steps)
	one, two := l.Scalar(tensor.Int64, 1), l.Scalar(tensor.Int64, 2)
	i := l.rangeTo(n)
	last := l.Sub(n, one)
	if !d.IsFloat() {
		start, end = l.Cast(start, d), l.Cast(end, d)
	}
	start, end = l.Cast(start, f), l.Cast(end, f)
	step := l.Div(l.Sub(end, start), l.Cast(l.max(last, one), f))
	if d == tensor.Float32 {
		step = l.Cast(l.Cast(step, d), f)
	}
	v := l.byMultiple(l.Add, start, step, l.Cast(i, f), d)
	if k, ok := steps.Int(); !ok || k > 1 { // one step is at the start
		fromEnd := l.byMultiple(l.Sub, end, step, l.Cast(l.Sub(last, i), f), d)
		v = l.Where(l.Less(i, l.max(l.Div(n, two), one)), v, fromEnd)
	}
	if base != nil {
		v = l.Pow(l.LikeNumber(v, *base), v)
	}
	return l.Cast(v, d)
}

// byMultiple adds step * k in float64, or subtracts it. Before the result is truncated to an integer it is rounded once, as that of ATen's fused
// multiplication and addition is: the products of k and the leading bits of step, and of k and the others, are exact.
func (l *Lowering) byMultiple(add func(a, b *ssa.Value) *ssa.Value, from, step, k *ssa.Value, d tensor.DType) *ssa.Value {
	if d.IsFloat() {
		return add(from, l.Mul(step, k))
	}
	leading := l.Cast(l.Cast(step, tensor.Float32), tensor.Float64)
	return add(add(from, l.Mul(leading, k)), l.Mul(l.Sub(step, leading), k))
}

func boolToInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func lowerEye(l *Lowering) *ssa.Value {
	d := l.typeArg(tensor.Float32)
	n := l.sizes("n")
	m := n
	if l.HasArg("m") {
		m = l.sizes("m")
	}
	r, ok := n[0].Int()
	c, ok2 := m[0].Int()
	if ok && ok2 && r >= 0 && c >= 0 && satMul(r, c) <= maxFolded {
		v := make([]int64, r*c)
		for i := range min(r, c) {
			v[i*c+i] = 1
		}
		return l.Const(tensor.FromInts(d, []int64{r, c}, v))
	}
	i, j := l.rangeTo(l.sizeValue(n[0])), l.rangeTo(l.sizeValue(m[0]))
	return l.Cast(l.Equal(l.unsqueeze(i, 1), j), d)
}

// triangle lists the positions of a triangle row by row.
func (l *Lowering) triangle(lower bool) *ssa.Value {
	rows, cols, offset := l.Int("row"), l.Int("col"), l.IntOr("offset", 0)
	d := l.DTypeArg("dtype")
	if d == tensor.Undefined {
		d = tensor.Int64
	}
	if rows < 0 || cols < 0 || rows > maxFolded || cols > maxFolded || rows*cols > 1<<24 {
		l.Fail("the triangle of a %d x %d matrix", rows, cols)
	}
	var r, c []int64
	for i := range rows {
		for j := range cols {
			if lower && j-i <= offset || !lower && j-i >= offset {
				r, c = append(r, i), append(c, j)
			}
		}
	}
	return l.Const(tensor.FromInts(d, []int64{2, int64(len(r))}, append(r, c...)))
}

func lowerVander(l *Lowering) *ssa.Value {
	x := l.Tensor("x")
	var n *ssa.Value
	if l.IsNone("N") {
		n = l.sizeValue(l.sizeOf(x, 0))
	} else {
		n = l.Tensor("N")
	}
	if d := l.DType(x); !d.IsFloat() {
		x = l.Cast(x, tensor.Int64)
	}
	e := l.rangeTo(n)
	if !l.Bool("increasing") {
		e = l.Sub(l.Sub(n, l.Like(n, 1)), e)
	}
	return l.Pow(l.unsqueeze(x, 1), l.Cast(e, l.DType(x)))
}

// windowOf makes a window function; f gives its value at a place in [0, 1].
func windowOf(f func(*Lowering) func(float64) float64) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		d := l.DTypeArg("dtype")
		if d == tensor.Undefined {
			d = tensor.Float32
		}
		n := l.Int("window_length")
		if n < 0 || n > 1<<24 {
			l.Fail("a window of length %d", n)
		}
		last := float64(n - 1)
		if !l.HasArg("periodic") || l.Bool("periodic") {
			last = float64(n)
		}
		at := f(l)
		v := make([]float64, n)
		for i := range v {
			v[i] = 1
			if n > 1 {
				v[i] = at(float64(i) / last)
			}
		}
		return l.Const(tensor.FromFloats(d, []int64{n}, v))
	}
}

func cosines(a, b, c float64) func(float64) float64 {
	return func(t float64) float64 { return a - b*math.Cos(2*math.Pi*t) + c*math.Cos(4*math.Pi*t) }
}

func kaiser(l *Lowering) func(float64) float64 {
	beta := l.FloatOr("beta", 12)
	return func(t float64) float64 {
		r := 2*t - 1
		return besselI0(beta*math.Sqrt(math.Max(0, 1-r*r))) / besselI0(beta)
	}
}

// besselI0 is the power series of the modified Bessel function of order 0.
func besselI0(x float64) float64 {
	sum, term := 1.0, 1.0
	for k := 1.0; k < 1000 && term > sum*1e-17; k++ {
		term *= x * x / (4 * k * k)
		sum += term
	}
	return sum
}
