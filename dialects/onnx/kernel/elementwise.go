package kernel

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type float interface{ float32 | float64 }

type number interface{ integer | float }

// elementwise finds kernels that work element by element.
func elementwise(name string) kernel {
	switch name {
	case "Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Sum", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitShift":
		return evalArith
	case "Mean":
		return evalMean
	case "Pow":
		return evalPow
	case "And", "Or", "Xor":
		return evalLogic
	case "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual":
		return evalCompare
	case "Not":
		return func(c *call) []*tensor.Tensor {
			return one(mapTo(c.t(0), tensor.Bool, func(x uint8) uint8 { return x ^ 1 }))
		}
	case "BitwiseNot", "Abs", "Neg", "Sign", "Relu":
		return evalSimpleUnary
	case "IsNaN", "IsInf":
		return evalIs
	case "Clip":
		return evalClip
	case "Cast", "CastLike":
		return evalCast
	case "BitCast":
		return evalBitCast
	case "Dropout":
		return evalDropout
	case "Shrink":
		return evalShrink
	}
	if f := functions[name]; f != nil {
		return func(c *call) []*tensor.Tensor { return one(mapFloat(c.floating(0), f)) }
	}
	if e := onnx.ExprOf(onnx.Namespace + "::" + ssa.Kind(name)); e != nil {
		return func(c *call) []*tensor.Tensor { return one(c.evalExpr(e)) }
	}
	return nil
}

func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

func softplus(x float64) float64 {
	if x > 0 {
		return x + math.Log1p(math.Exp(-x))
	}
	return math.Log1p(math.Exp(x))
}

// functions of one float. Operators that are made of them have an expression in their row instead.
var functions = map[string]func(float64) float64{
	"Acos":       math.Acos,
	"Acosh":      math.Acosh,
	"Asin":       math.Asin,
	"Asinh":      math.Asinh,
	"Atan":       math.Atan,
	"Atanh":      math.Atanh,
	"Ceil":       math.Ceil,
	"Cos":        math.Cos,
	"Cosh":       math.Cosh,
	"Erf":        math.Erf,
	"Exp":        math.Exp,
	"Floor":      math.Floor,
	"Log":        math.Log,
	"Reciprocal": func(x float64) float64 { return 1 / x },
	"Round":      math.RoundToEven,
	"Sigmoid":    sigmoid,
	"Sin":        math.Sin,
	"Sinh":       math.Sinh,
	"Softplus":   softplus,
	"Sqrt":       math.Sqrt,
	"Tan":        math.Tan,
	"Tanh":       math.Tanh,
}

// clamp keeps NaN.
func clamp(x, lo, hi float64) float64 {
	switch {
	case x < lo:
		return lo
	case x > hi:
		return hi
	}
	return x
}

// mapFloat applies f to floats, in float64.
func mapFloat(t *tensor.Tensor, f func(float64) float64) *tensor.Tensor {
	if t.DType == tensor.Float64 {
		return mapTo(t, tensor.Float64, f)
	}
	if t.DType == tensor.Float32 {
		return mapTo(t, tensor.Float32, func(x float32) float32 { return float32(f(float64(x))) })
	}
	v := t.Float64s()
	for i, x := range v {
		v[i] = f(x)
	}
	return tensor.FromFloats(t.DType, t.Shape, v)
}

func mapTo[A, R tensor.Number](t *tensor.Tensor, d tensor.DType, f func(A) R) *tensor.Tensor {
	in := tensor.Data[A](t)
	out := make([]R, len(in))
	parallel(len(in), len(in), func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = f(in[i])
		}
	})
	return tensor.Of(d, t.Shape, out)
}

// broadcastShape combines shapes as NumPy does.
func broadcastShape(c *call, shapes ...[]int64) []int64 {
	out := []int64{}
	for _, s := range shapes {
		for len(out) < len(s) {
			out = append([]int64{1}, out...)
		}
		off := len(out) - len(s)
		for i, n := range s {
			switch o := out[off+i]; {
			case o == n || n == 1:
			case o == 1:
				out[off+i] = n
			default:
				c.fail("shapes %v cannot be broadcast together", shapes)
			}
		}
	}
	c.count(out)
	return out
}

// expand is a view of t with the shape, which t can be broadcast to.
func expand(t *tensor.Tensor, shape []int64) *tensor.Tensor {
	v := *t
	v.Shape = shape
	v.Strides = make([]int64, len(shape))
	off := len(shape) - len(t.Shape)
	for i, n := range t.Shape {
		if n != 1 {
			v.Strides[off+i] = t.Strides[i]
		}
	}
	return &v
}

// zip applies f to two tensors broadcast together.
func zip[A, B, R tensor.Number](c *call, a, b *tensor.Tensor, d tensor.DType, f func(A, B) R) *tensor.Tensor {
	shape := broadcastShape(c, a.Shape, b.Shape)
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	out := make([]R, n)
	if n == 0 {
		return tensor.Of(d, shape, out)
	}
	x, y := tensor.Data[A](a), tensor.Data[B](b)
	switch {
	case len(x) == len(out) && len(y) == len(out):
		parallel(len(out), len(out), func(from, to int) {
			for i := from; i < to; i++ {
				out[i] = f(x[i], y[i])
			}
		})
	case len(y) == 1:
		for i := range out {
			out[i] = f(x[i], y[0])
		}
	case len(x) == 1:
		for i := range out {
			out[i] = f(x[0], y[i])
		}
	default:
		sa, sb := broadcastStrides(a.Shape, shape), broadcastStrides(b.Shape, shape)
		r := len(shape) - 1
		inner := shape[r]
		da, db := sa[r], sb[r]
		idx := make([]int64, r)
		pa, pb, p := int64(0), int64(0), 0
		for {
			qa, qb := pa, pb
			for range inner {
				out[p] = f(x[qa], y[qb])
				qa += da
				qb += db
				p++
			}
			k := r - 1
			for ; k >= 0; k-- {
				idx[k]++
				pa += sa[k]
				pb += sb[k]
				if idx[k] < shape[k] {
					break
				}
				pa -= idx[k] * sa[k]
				pb -= idx[k] * sb[k]
				idx[k] = 0
			}
			if k < 0 {
				break
			}
		}
	}
	return tensor.Of(d, shape, out)
}

// broadcastStrides gives strides over row-major data of shape in for an index into shape out.
func broadcastStrides(in, out []int64) []int64 {
	s := make([]int64, len(out))
	n := int64(1)
	off := len(out) - len(in)
	for i := len(in) - 1; i >= 0; i-- {
		if in[i] != 1 {
			s[off+i] = n
		}
		n *= in[i]
	}
	return s
}

// zipFloat is zip for two floats of one type, computed in float64.
func zipFloat(c *call, a, b *tensor.Tensor, f func(x, y float64) float64) *tensor.Tensor {
	if a.DType != b.DType {
		c.fail("element types %v and %v", a.DType, b.DType)
	}
	switch a.DType {
	case tensor.Float32:
		return zip(c, a, b, a.DType, func(x, y float32) float32 { return float32(f(float64(x), float64(y))) })
	case tensor.Float64:
		return zip(c, a, b, a.DType, f)
	}
	c.fail("element type %v", a.DType)
	return nil
}

func arithInt[T integer](c *call, a, b *tensor.Tensor) *tensor.Tensor {
	var f func(x, y T) T
	fmod := c.kind == "onnx::Mod" && c.flag("fmod")
	right := c.kind == "onnx::BitShift" && c.str("direction") == "RIGHT"
	switch c.kind.Name() {
	case "Add", "Sum":
		f = func(x, y T) T { return x + y }
	case "Sub":
		f = func(x, y T) T { return x - y }
	case "Mul":
		f = func(x, y T) T { return x * y }
	case "Div":
		f = func(x, y T) T {
			if y == 0 {
				return 0
			}
			return x / y
		}
	case "Mod":
		f = func(x, y T) T {
			if y == 0 {
				return 0
			}
			r := x % y
			if !fmod && r != 0 && (r < 0) != (y < 0) {
				r += y
			}
			return r
		}
	case "Max":
		f = func(x, y T) T { return max(x, y) }
	case "Min":
		f = func(x, y T) T { return min(x, y) }
	case "BitwiseAnd":
		f = func(x, y T) T { return x & y }
	case "BitwiseOr":
		f = func(x, y T) T { return x | y }
	case "BitwiseXor":
		f = func(x, y T) T { return x ^ y }
	case "BitShift":
		f = func(x, y T) T {
			if right {
				return x >> uint64(y)
			}
			return x << uint64(y)
		}
	default:
		c.fail("element type %v", a.DType)
	}
	return zip(c, a, b, a.DType, f)
}

func arithFloat[T float](c *call, a, b *tensor.Tensor) *tensor.Tensor {
	var f func(x, y T) T
	switch c.kind.Name() {
	case "Add", "Sum":
		f = func(x, y T) T { return x + y }
	case "Sub":
		f = func(x, y T) T { return x - y }
	case "Mul":
		f = func(x, y T) T { return x * y }
	case "Div":
		f = func(x, y T) T { return x / y }
	case "Max":
		f = func(x, y T) T { return max(x, y) }
	case "Min":
		f = func(x, y T) T { return min(x, y) }
	case "Mod":
		fmod := c.flag("fmod")
		f = func(x, y T) T {
			r := math.Mod(float64(x), float64(y))
			switch {
			case fmod:
			case r == 0:
				r = math.Copysign(0, float64(y))
			case (r < 0) != (y < 0):
				r += float64(y)
			}
			return T(r)
		}
	default:
		c.fail("element type %v", a.DType)
	}
	return zip(c, a, b, a.DType, f)
}

func (c *call) arith(a, b *tensor.Tensor) *tensor.Tensor {
	if a.DType != b.DType {
		c.fail("element types %v and %v", a.DType, b.DType)
	}
	switch a.DType {
	case tensor.Float32:
		return arithFloat[float32](c, a, b)
	case tensor.Float64:
		return arithFloat[float64](c, a, b)
	case tensor.Int8:
		return arithInt[int8](c, a, b)
	case tensor.Int16:
		return arithInt[int16](c, a, b)
	case tensor.Int32:
		return arithInt[int32](c, a, b)
	case tensor.Int64:
		return arithInt[int64](c, a, b)
	case tensor.Uint8:
		return arithInt[uint8](c, a, b)
	case tensor.Uint16:
		return arithInt[uint16](c, a, b)
	case tensor.Uint32:
		return arithInt[uint32](c, a, b)
	case tensor.Uint64:
		return arithInt[uint64](c, a, b)
	}
	c.fail("element type %v", a.DType)
	return nil
}

func evalArith(c *call) []*tensor.Tensor {
	acc := c.t(0)
	for i := 1; i < len(c.in); i++ {
		acc = c.arith(acc, c.t(i))
	}
	return one(acc)
}

func evalMean(c *call) []*tensor.Tensor {
	acc := c.t(0)
	for i := 1; i < len(c.in); i++ {
		acc = zipFloat(c, acc, c.t(i), func(x, y float64) float64 { return x + y })
	}
	n := float64(len(c.in))
	return one(mapFloat(acc, func(x float64) float64 { return x / n }))
}

func evalPow(c *call) []*tensor.Tensor {
	a, b := c.t(0), c.t(1)
	if a.DType.IsInt() && b.DType.IsInt() {
		x := tensor.FromInts(tensor.Int64, a.Shape, a.Int64s())
		y := tensor.FromInts(tensor.Int64, b.Shape, b.Int64s())
		r := zip(c, x, y, tensor.Int64, func(x, y int64) int64 {
			if y < 0 {
				return truncate(math.Pow(float64(x), float64(y)), a.DType)
			}
			p := int64(1)
			for ; y > 0; y >>= 1 {
				if y&1 == 1 {
					p *= x
				}
				x *= x
			}
			return p
		})
		return one(cast(r, a.DType))
	}
	x := tensor.FromFloats(tensor.Float64, a.Shape, a.Float64s())
	y := tensor.FromFloats(tensor.Float64, b.Shape, b.Float64s())
	return one(cast(zip(c, x, y, tensor.Float64, math.Pow), a.DType))
}

func evalLogic(c *call) []*tensor.Tensor {
	for i := range 2 {
		if c.t(i).DType != tensor.Bool {
			c.fail("element type %v", c.t(i).DType)
		}
	}
	f := func(x, y uint8) uint8 { return x & y }
	switch c.kind.Name() {
	case "Or":
		f = func(x, y uint8) uint8 { return x | y }
	case "Xor":
		f = func(x, y uint8) uint8 { return x ^ y }
	}
	return one(zip(c, c.t(0), c.t(1), tensor.Bool, f))
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func compare[T number](c *call) *tensor.Tensor {
	var f func(x, y T) uint8
	switch c.kind.Name() {
	case "Equal":
		f = func(x, y T) uint8 { return bit(x == y) }
	case "Greater":
		f = func(x, y T) uint8 { return bit(x > y) }
	case "Less":
		f = func(x, y T) uint8 { return bit(x < y) }
	case "GreaterOrEqual":
		f = func(x, y T) uint8 { return bit(x >= y) }
	default:
		f = func(x, y T) uint8 { return bit(x <= y) }
	}
	return zip(c, c.t(0), c.t(1), tensor.Bool, f)
}

func evalCompare(c *call) []*tensor.Tensor {
	if a, b := c.t(0).DType, c.t(1).DType; a != b {
		c.fail("element types %v and %v", a, b)
	}
	switch c.t(0).DType {
	case tensor.Float32:
		return one(compare[float32](c))
	case tensor.Float64:
		return one(compare[float64](c))
	case tensor.Int8:
		return one(compare[int8](c))
	case tensor.Int16:
		return one(compare[int16](c))
	case tensor.Int32:
		return one(compare[int32](c))
	case tensor.Int64:
		return one(compare[int64](c))
	case tensor.Uint8, tensor.Bool:
		return one(compare[uint8](c))
	case tensor.Uint16:
		return one(compare[uint16](c))
	case tensor.Uint32:
		return one(compare[uint32](c))
	case tensor.Uint64:
		return one(compare[uint64](c))
	case tensor.String:
		shape := broadcastShape(c, c.t(0).Shape, c.t(1).Shape)
		a, b := expand(c.t(0), shape).StringData(), expand(c.t(1), shape).StringData()
		out := make([]uint8, len(a))
		for i := range a {
			out[i] = bit(a[i] == b[i])
		}
		return one(tensor.Of(tensor.Bool, shape, out))
	}
	c.fail("element type %v", c.t(0).DType)
	return nil
}

func simpleInt[T integer](c *call) *tensor.Tensor {
	f := func(x T) T { return ^x }
	switch c.kind.Name() {
	case "Abs":
		f = func(x T) T {
			if x < 0 {
				return -x
			}
			return x
		}
	case "Neg":
		f = func(x T) T { return -x }
	case "Sign":
		f = func(x T) T {
			switch {
			case x > 0:
				return 1
			case x < 0:
				return T(0) - 1
			}
			return 0
		}
	case "Relu":
		f = func(x T) T { return max(x, 0) }
	}
	return mapTo(c.t(0), c.t(0).DType, f)
}

func evalSimpleUnary(c *call) []*tensor.Tensor {
	x := c.t(0)
	switch x.DType {
	case tensor.Int8:
		return one(simpleInt[int8](c))
	case tensor.Int16:
		return one(simpleInt[int16](c))
	case tensor.Int32:
		return one(simpleInt[int32](c))
	case tensor.Int64:
		return one(simpleInt[int64](c))
	case tensor.Uint8:
		return one(simpleInt[uint8](c))
	case tensor.Uint16:
		return one(simpleInt[uint16](c))
	case tensor.Uint32:
		return one(simpleInt[uint32](c))
	case tensor.Uint64:
		return one(simpleInt[uint64](c))
	case tensor.Float32, tensor.Float64:
	default:
		c.fail("element type %v", x.DType)
	}
	switch c.kind.Name() {
	case "Abs":
		return one(mapFloat(x, math.Abs))
	case "Neg":
		return one(mapFloat(x, func(x float64) float64 { return -x }))
	case "Sign":
		return one(mapFloat(x, func(x float64) float64 {
			switch {
			case x > 0:
				return 1
			case x < 0:
				return -1
			}
			return x // keeps NaN and the sign of zero
		}))
	case "Relu":
		return one(mapFloat(x, func(x float64) float64 {
			if x < 0 {
				return 0
			}
			return x
		}))
	}
	c.fail("element type %v", x.DType)
	return nil
}

func evalIs(c *call) []*tensor.Tensor {
	x := c.t(0)
	if isFloat8(x.DType) {
		x = cast(x, tensor.Float32)
	}
	neg, pos := true, true
	if c.kind == "onnx::IsInf" {
		neg, pos = c.flag("detect_negative"), c.flag("detect_positive")
	}
	v := x.Float64s()
	out := make([]uint8, len(v))
	for i, f := range v {
		if c.kind == "onnx::IsNaN" {
			out[i] = bit(f != f)
		} else {
			out[i] = bit(neg && math.IsInf(f, -1) || pos && math.IsInf(f, 1))
		}
	}
	return one(tensor.Of(tensor.Bool, x.Shape, out))
}

// evalClip takes min for what is less and then max for what is greater, as the operator's function has it: with min > max every element
// is max, and a zero keeps its sign where a bound is a zero of the other one.
func evalClip(c *call) []*tensor.Tensor {
	x := c.t(0)
	for i, beyond := range [...]ssa.Kind{1: "onnx::Less", 2: "onnx::Greater"} {
		b := c.t(i)
		if i == 0 || b == nil {
			continue
		}
		if b.NumElements() != 1 {
			c.fail("a bound has %d elements", b.NumElements())
		}
		b = b.Reshape([]int64{})
		step := *c
		step.kind, step.in = beyond, []*tensor.Tensor{x, b}
		step.in = []*tensor.Tensor{evalCompare(&step)[0], b, x}
		x = evalWhere(&step)[0]
	}
	return one(x)
}

func evalDropout(c *call) []*tensor.Tensor {
	if t := c.t(2); t != nil && c.scalar(2, 0) != 0 && c.fscalar(1, 0.5) != 0 {
		c.fail("training mode is random")
	}
	return []*tensor.Tensor{c.t(0), tensor.FullInt(tensor.Bool, c.t(0).Shape, 1)}
}

func evalShrink(c *call) []*tensor.Tensor {
	x, bias, lambda := c.t(0), c.float("bias"), c.float("lambd")
	v := x.Float64s()
	for i, f := range v {
		switch {
		case f < -lambda:
			v[i] = f + bias
		case f > lambda:
			v[i] = f - bias
		default: // of NaN too, as the standard has it
			v[i] = 0
		}
	}
	return one(cast(tensor.FromFloats(tensor.Float64, x.Shape, v), x.DType))
}
