// Package bound says how far a result of a kernel may be from the interpreter's, by what the operator does, and measures
// how far it is.
//
//	operators                          tolerance
//	moves, integers, comparisons       0
//	Add, Mul, Sqrt, ... (one rounding) 0; half precision 0
//	functions                          the ulp that package approx is tested for, of the greatest value that occurs in them
//	sums, products, convolutions       4 eps sqrt(K) sum|a||b|, at least 2 ulp: a statistical bound for sums in another order
//	Fourier transforms                 the same in double, rounded once
//	attention                          what its scores may be off by, weighed: see attention
//	RotaryEmbedding                    4 eps (|x cos| + |y sin|)
//	softmax                            eps (8 + sqrt(n) + |ln y|) |y|
//	normalizations, recurrent layers   32 times what changing the data by eps does
//
// A result of half precision may be off by one ulp more: what is nearly between two numbers is rounded to either.
package bound

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Eps is the distance of 1 to the next number of a float type, 0 for others.
func Eps(d tensor.DType) float64 {
	switch d {
	case tensor.Float64:
		return 0x1p-52
	case tensor.Float32:
		return 0x1p-23
	case tensor.Float16:
		return 0x1p-10
	case tensor.BFloat16:
		return 0x1p-7
	}
	return 0
}

// smallest is the distance of numbers near 0.
func smallest(d tensor.DType) float64 {
	switch d {
	case tensor.Float64:
		return 0x1p-1074
	case tensor.Float16:
		return 0x1p-24
	case tensor.BFloat16:
		return 0x1p-133
	}
	return 0x1p-149
}

// ULP is the distance of the numbers of a type at x.
func ULP(d tensor.DType, x float64) float64 {
	x = math.Abs(x)
	if x == 0 || math.IsInf(x, 0) || x != x {
		return smallest(d)
	}
	_, e := math.Frexp(x)
	return max(math.Ldexp(Eps(d), e-1), smallest(d))
}

// Tolerance gives, for each element of result i of an operator, how far it may be off. in are the operands, nil for absent
// ones; want is what the interpreter gave for them.
func Tolerance(kind ssa.Kind, attrs []ssa.Attr, in []*tensor.Tensor, i int, want *tensor.Tensor) (func(at int) float64, error) {
	d := want.DType
	exact := func(int) float64 { return 0 }
	if !d.IsFloat() || d.Opaque() {
		return exact, nil
	}
	eps := Eps(tensor.Float32) // of the type in which it is computed
	if d == tensor.Float64 {
		eps = Eps(d)
	}
	y := want.Float64s()
	half := func(at int) float64 { // the rounding of the result, if it is narrower
		if d == tensor.Float16 || d == tensor.BFloat16 {
			return ULP(d, y[at])
		}
		return 0
	}
	wide := tensor.Float32
	if d == tensor.Float64 {
		wide = d
	}
	name := kind.Name()
	if name == "ScatterElements" || name == "ScatterND" {
		switch reduction(attrs) {
		case "add":
			sums, err := magnitudes(kind, attrs, in, i, want)
			if err != nil {
				return nil, err
			}
			k := float64(max(in[1].NumElements(), 1))
			return func(at int) float64 { return max(4*eps*math.Sqrt(k)*sums[at], 2*ULP(wide, y[at])) + half(at) }, nil
		case "mul":
			k := float64(max(in[1].NumElements(), 1))
			return func(at int) float64 { return 2*k*ULP(wide, y[at]) + half(at) }, nil
		}
		return exact, nil
	}
	if onnx.ErrorOf(kind).Sensitive {
		change, err := sensitivity(kind, attrs, in, i, eps)
		if err != nil {
			return nil, err
		}
		return func(at int) float64 { return 32*change + 8*ULP(wide, y[at]) + half(at) }, nil
	}
	switch name {
	case "MatMul", "Gemm", "Einsum", "Conv", "ConvTranspose", "ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "GlobalAveragePool", "AveragePool", "LpPool", "CumSum":
		sums, err := magnitudes(kind, attrs, in, i, want)
		if err != nil {
			return nil, err
		}
		k := terms(name, in, want)
		if name == "Einsum" {
			k = summed(attrs, in)
		}
		return func(at int) float64 { return max(4*eps*math.Sqrt(k)*sums[at], 2*ULP(wide, y[at])) + half(at) }, nil
	case "Attention":
		if i > 0 {
			return exact, nil
		}
		off, err := attention(attrs, in, want, eps)
		if err != nil {
			return nil, err
		}
		return func(at int) float64 { return off[at] + 2*ULP(wide, y[at]) + half(at) }, nil
	case "RotaryEmbedding":
		sums, err := turned(attrs, in)
		if err != nil {
			return nil, err
		}
		return func(at int) float64 { return 4*eps*sums[at] + half(at) }, nil
	case "ReduceProd", "CumProd":
		k := terms(name, in, want)
		return func(at int) float64 { return 2*k*ULP(wide, y[at]) + half(at) }, nil
	case "ReduceLogSum", "ReduceLogSumExp":
		// the logarithm of a sum with a relative error
		k := terms(name, in, want)
		return func(at int) float64 {
			return eps*(8+math.Sqrt(k)) + 4*ULP(wide, y[at]) + half(at)
		}, nil
	case "Softmax", "LpNormalization":
		k := math.Sqrt(terms(name, in, want))
		return func(at int) float64 {
			a := math.Abs(y[at])
			return eps*(8+k+math.Abs(math.Log(max(a, 1e-300))))*a + 4*smallest(wide) + half(at)
		}, nil
	case "LogSoftmax":
		k := math.Sqrt(terms(name, in, want))
		return func(at int) float64 { return eps*(8+k) + 4*ULP(wide, y[at]) + half(at) }, nil
	}
	if name == "RandomNormal" || name == "RandomNormalLike" { // in double: a logarithm, a root and a cosine of some units, and what moves and scales them
		of := func(name string, def float64) float64 {
			for _, a := range attrs {
				if a.Name == name {
					return math.Abs(a.Value.Float())
				}
			}
			return def
		}
		off := 32*Eps(tensor.Float64)*of("scale", 1) + 2*Eps(tensor.Float64)*of("mean", 0)
		return func(at int) float64 { return off + ULP(d, y[at]) }, nil
	}
	if name == "DFT" || name == "STFT" {
		sums, k := spectrum(name, attrs, in, want)
		return func(at int) float64 { // in double
			off := 4 * Eps(tensor.Float64) * math.Sqrt(k) * sums[at]
			if d != tensor.Float64 {
				off += ULP(wide, y[at])
			}
			return off + half(at)
		}, nil
	}
	of := onnx.ErrorOf(kind) // in the type that it is computed in
	ulp := of.ULP
	if name == "Pow" && wide == tensor.Float32 {
		ulp = 2
	}
	if ulp == 0 {
		return exact, nil
	}
	top := 0.0
	if of.OfOperand {
		for _, t := range in {
			if t != nil && t.DType.IsFloat() {
				for _, v := range t.Float64s() {
					if v = math.Abs(v); v < math.Inf(1) {
						top = max(top, v)
					}
				}
			}
		}
		top = max(top, 1)
	}
	return func(at int) float64 { return ulp*ULP(wide, max(math.Abs(y[at]), top)) + half(at) }, nil
}

// Mma is how far a sum of k products by tensor cores may be from the exact one, if the products' magnitudes add up to sum. The PTX ISA leaves order and rounding
// open. Devices were found to take 4 to 16 products and the sum so far at a time, to align them with the greatest one, and to cut what is beyond 24
// bits, of the addends and of what they give (Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science
// 2021): of 4 products, 5 addends and a sum lose less than 2^-23 of the greatest each. It is not part of Tolerance, which holds for the simulator.
func Mma(k int64, sum float64) float64 {
	return 6 * float64((k+3)/4) * 0x1p-23 * sum
}

// TF32 is Tolerance where factors of float32 may be rounded to tf32: each normal number is off by at most 2^-11 of itself then, and a product
// of two by 2^-10 + 2^-22 of it.
func TF32(kind ssa.Kind, attrs []ssa.Attr, in []*tensor.Tensor, i int, want *tensor.Tensor) (func(at int) float64, error) {
	allowed, err := Tolerance(kind, attrs, in, i, want)
	if err != nil || want.DType != tensor.Float32 {
		return allowed, err
	}
	switch kind.Name() {
	case "MatMul", "Gemm", "Conv", "ConvTranspose":
		sums, err := magnitudes(kind, attrs, in, i, want)
		if err != nil {
			return nil, err
		}
		return func(at int) float64 { return allowed(at) + (0x1p-10+0x1p-22)*sums[at] }, nil
	}
	return allowed, nil
}

// reduction is the attribute of that name.
func reduction(attrs []ssa.Attr) string {
	for _, a := range attrs {
		if a.Name == "reduction" {
			return a.Value.Str()
		}
	}
	return ""
}

// magnitudes evaluates the operator on the magnitudes of its operands: sum|a||b| for a product.
func magnitudes(kind ssa.Kind, attrs []ssa.Attr, in []*tensor.Tensor, i int, want *tensor.Tensor) ([]float64, error) {
	name := kind.Name()
	if name == "ReduceL1" || name == "ReduceL2" || name == "ReduceSumSquare" || name == "LpPool" {
		return absolutes(want), nil
	}
	args := make([]*tensor.Tensor, len(in))
	for k, t := range in {
		if args[k] = t; t != nil && t.DType.IsFloat() {
			args[k] = tensor.FromFloats(t.DType, t.Shape, absolutes(t))
		}
	}
	positive := append([]ssa.Attr(nil), attrs...)
	for k, a := range positive {
		if a.Name == "alpha" || a.Name == "beta" {
			positive[k].Value = ssa.Float(math.Abs(a.Value.Float()))
		}
	}
	out, err := kernel.Eval(kind, positive, args, i+1)
	if err != nil {
		return nil, err
	}
	return absolutes(out[i]), nil
}

// turned is |x cos| + |y sin| of each element of a RotaryEmbedding.
func turned(attrs []ssa.Attr, in []*tensor.Tensor) ([]float64, error) {
	var sums []float64
	for _, sign := range []float64{1, -1} { // one sum of a pair has both terms positive, the other one its difference
		args := append([]*tensor.Tensor(nil), in...)
		for i := range 3 {
			v := absolutes(in[i])
			for k := range v {
				if i == 2 {
					v[k] *= sign
				}
			}
			args[i] = tensor.FromFloats(tensor.Float32, in[i].Shape, v)
		}
		out, err := kernel.Eval("onnx::RotaryEmbedding", attrs, args, 1)
		if err != nil {
			return nil, err
		}
		v := absolutes(out[0])
		for k := range sums {
			v[k] = max(v[k], sums[k])
		}
		sums = v
	}
	return sums, nil
}

func absolutes(t *tensor.Tensor) []float64 {
	v := t.Float64s()
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = math.Abs(x)
	}
	return out
}

// terms is how many terms a sum has.
func terms(name string, in []*tensor.Tensor, want *tensor.Tensor) float64 {
	x := in[0]
	n := int64(1)
	switch name {
	case "MatMul", "Gemm":
		for _, s := range x.Shape { // at most; transA changes which axis it is
			n = max(n, s)
		}
		if name == "MatMul" {
			n = x.Shape[len(x.Shape)-1]
		}
	case "Conv", "ConvTranspose":
		for k, s := range in[1].Shape {
			if k > 0 || name == "ConvTranspose" {
				n *= s
			}
		}
	case "AveragePool", "LpPool":
		n = 64
	case "CumSum", "CumProd", "Softmax", "LogSoftmax", "LpNormalization":
		for _, s := range x.Shape {
			n = max(n, s)
		}
	default:
		if m := want.NumElements(); m > 0 {
			n = x.NumElements() / m
		}
	}
	return float64(max(n, 1))
}

// summed is how many terms the sums of an Einsum have: the sizes of the labels that its result has not.
func summed(attrs []ssa.Attr, in []*tensor.Tensor) float64 {
	n := 1.0
	for _, a := range attrs {
		e, ok := onnx.ParseEquation(a.Value.Str(), len(in))
		if a.Name != "equation" || !ok {
			continue
		}
		seen := map[byte]bool{}
		for i, labels := range e.Inputs {
			at := 0
			for _, l := range labels {
				if l == onnx.EllipsisLabel { // the result has its axes
					at += len(in[i].Shape) - len(labels) + 1
					continue
				}
				if !seen[l] && !slices.Contains(e.Output, l) {
					n *= float64(max(in[i].Shape[at], 1))
				}
				seen[l] = true
				at++
			}
		}
	}
	return n
}

// spectrum gives sum|a||b| for each element of a DFT or STFT, and the number of terms: no root of one is greater than 1, so it is the
// sum of the magnitudes of a line.
func spectrum(name string, attrs []ssa.Attr, in []*tensor.Tensor, want *tensor.Tensor) (sums []float64, terms float64) {
	x := absolutes(in[0])
	scalar := func(i int, def int64) int64 {
		if i < len(in) && in[i] != nil {
			return in[i].Int64s()[0]
		}
		return def
	}
	sums = make([]float64, want.NumElements())
	shape := in[0].Shape
	if name == "STFT" {
		step, frame := scalar(1, 1), (want.Shape[2]-1)*2+1 // at most
		window := []float64(nil)
		if len(in) > 2 && in[2] != nil {
			window = absolutes(in[2])
			frame = int64(len(window))
		}
		frame = min(scalar(3, frame), shape[1])
		width := in[0].NumElements() / max(shape[0]*shape[1], 1)
		for i := range sums {
			at := coords(want.Shape, i)
			for t := range frame {
				for part := range width {
					v := x[(at[0]*shape[1]+at[1]*step+t)*width+part]
					if window != nil {
						v *= window[t]
					}
					sums[i] += v
				}
			}
		}
		return sums, float64(frame)
	}
	r := len(shape)
	k := int(scalar(2, -2))
	if k < 0 {
		k += r
	}
	factor, n := 2.0, scalar(1, max(shape[k], 2*(shape[k]-1))) // half of a line may stand for all of it
	for _, a := range attrs {
		if a.Name == "inverse" && a.Value.Int() != 0 {
			factor /= float64(max(scalar(1, shape[k]), 1))
		}
	}
	inner := int64(1)
	for _, s := range shape[k+1 : r-1] {
		inner *= s
	}
	width, outer := shape[r-1], int64(1)
	for _, s := range shape[:k] {
		outer *= s
	}
	lines := make([]float64, outer*inner)
	for i, v := range x {
		at := int64(i) / width
		lines[at/(shape[k]*inner)*inner+at%inner] += v
	}
	for i := range sums {
		at := int64(i) / want.Shape[r-1]
		sums[i] = factor * lines[at/(want.Shape[k]*inner)*inner+at%inner]
	}
	return sums, float64(n)
}

// sensitivity is how much the result changes when the operands change by eps, the greatest change of all elements.
func sensitivity(kind ssa.Kind, attrs []ssa.Attr, in []*tensor.Tensor, i int, eps float64) (float64, error) {
	wide := tensor.Float64
	if s := onnx.SchemaOf(kind); s != nil && s.Input(0) != nil && !s.Input(0).Types.HasTensor(wide) {
		wide = tensor.Float32
	}
	args := make([]*tensor.Tensor, len(in))
	for k, t := range in {
		if args[k] = t; t == nil || !t.DType.IsFloat() {
			continue
		}
		v := t.Float64s()
		for j := range v { // up and down in no pattern that a mean follows
			sign := 1.0
			if (j*7+j/3)%5 < 2 {
				sign = -1
			}
			v[j] *= 1 + sign*eps
		}
		args[k] = tensor.FromFloats(wide, t.Shape, v)
	}
	out, err := kernel.Eval(kind, attrs, args, i+1)
	if err != nil {
		return 0, err
	}
	base := make([]*tensor.Tensor, len(in))
	for k, t := range in {
		if base[k] = t; t != nil && t.DType.IsFloat() {
			base[k] = tensor.FromFloats(wide, t.Shape, t.Float64s())
		}
	}
	same, err := kernel.Eval(kind, attrs, base, i+1)
	if err != nil {
		return 0, err
	}
	change := 0.0
	p, q := out[i].Float64s(), same[i].Float64s()
	for j := range p {
		if c := math.Abs(p[j] - q[j]); c < math.Inf(1) {
			change = max(change, c)
		}
	}
	return change, nil
}

// Difference is how far a tensor is from what is expected.
type Difference struct {
	Elements int `json:"elements"`
	// MaxAbs, MaxRel and MaxULP are the greatest differences of finite elements: absolute, relative to what is expected, in
	// units of the last place.
	MaxAbs float64 `json:"max_abs"`
	MaxRel float64 `json:"max_rel"`
	MaxULP float64 `json:"max_ulp"`
	// At is where the greatest absolute difference is, as coordinates.
	At []int64 `json:"at,omitempty"`
	// NaN counts elements of which only one side is NaN, or that are infinities of different kinds.
	NaN int `json:"nan,omitempty"`
	// Beyond counts the elements that are further off than they may be, and First is the first one.
	Beyond int     `json:"beyond,omitempty"`
	First  []int64 `json:"first,omitempty"`
	Got    string  `json:"got,omitempty"`
	Want   string  `json:"want,omitempty"`
	// Shape says that types or shapes differ; nothing else is set then.
	Shape string `json:"shape,omitempty"`
}

// Bad reports a difference that is greater than allowed.
func (d *Difference) Bad() bool { return d.Beyond > 0 || d.Shape != "" }

// String tells the difference in a line.
func (d *Difference) String() string {
	if d.Shape != "" {
		return d.Shape
	}
	s := fmt.Sprintf("max abs %.3g, rel %.3g, ulp %.3g", d.MaxAbs, d.MaxRel, d.MaxULP)
	if d.MaxAbs > 0 {
		s += fmt.Sprintf(" at %v", d.At)
	}
	if d.NaN > 0 {
		s += fmt.Sprintf(", %d NaN or infinities differ", d.NaN)
	}
	if d.Beyond > 0 {
		s += fmt.Sprintf(", %d of %d elements beyond the bound, the first at %v: %v, expected %v", d.Beyond, d.Elements, d.First, d.Got, d.Want)
	}
	return s
}

// Measure compares element by element. allowed may be nil for 0.
func Measure(got, want *tensor.Tensor, allowed func(at int) float64) *Difference {
	d := &Difference{Elements: int(want.NumElements())}
	if got.DType != want.DType || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		d.Shape = fmt.Sprintf("is %v, expected %v", got, want)
		return d
	}
	beyond := func(i int, g, w string) {
		if d.Beyond == 0 {
			d.First, d.Got, d.Want = coords(want.Shape, i), g, w
		}
		d.Beyond++
	}
	if want.DType.Opaque() { // by their bits
		as := func(t *tensor.Tensor) *tensor.Tensor { return tensor.New(tensor.Uint8, t.Shape, t.Bytes()) }
		got, want = as(got), as(want)
	}
	if !want.DType.IsFloat() {
		g, w := got.Int64s(), want.Int64s()
		for i := range w {
			if g[i] == w[i] {
				continue
			}
			diff := math.Abs(float64(g[i]) - float64(w[i]))
			if diff >= d.MaxAbs {
				d.MaxAbs, d.At = diff, coords(want.Shape, i)
			}
			beyond(i, strconv.FormatInt(g[i], 10), strconv.FormatInt(w[i], 10))
		}
		d.MaxULP = d.MaxAbs
		return d
	}
	g, w := got.Float64s(), want.Float64s()
	for i := range w {
		x, y := g[i], w[i]
		if x == y || x != x && y != y {
			continue
		}
		diff := math.Abs(x - y)
		limit := 0.0
		if allowed != nil {
			limit = allowed(i)
		}
		if diff != diff || math.IsInf(diff, 0) {
			// the greatest number and infinity are neighbours
			if top := greatest(want.DType); limit > 0 && (math.IsInf(x, 0) && math.Abs(y) >= top*(1-4*Eps(want.DType)) || math.IsInf(y, 0) && math.Abs(x) >= top*(1-4*Eps(want.DType))) && x*y > 0 {
				continue
			}
			d.NaN++
			beyond(i, written(x), written(y))
			continue
		}
		if diff > d.MaxAbs {
			d.MaxAbs, d.At = diff, coords(want.Shape, i)
		}
		if y != 0 {
			d.MaxRel = max(d.MaxRel, diff/math.Abs(y))
		}
		d.MaxULP = max(d.MaxULP, diff/ULP(want.DType, y))
		if diff > limit {
			beyond(i, written(x), written(y))
		}
	}
	return d
}

func greatest(d tensor.DType) float64 {
	switch d {
	case tensor.Float16:
		return 65504
	case tensor.Float64:
		return math.MaxFloat64
	}
	return math.MaxFloat32
}

// written is x as text: JSON has no infinities.
func written(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func coords(shape []int64, i int) []int64 {
	out := make([]int64, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		out[k] = int64(i) % shape[k]
		i /= int(shape[k])
	}
	return out
}
