package kernel

import (
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/tensor"
)

func evalCast(c *call) []*tensor.Tensor {
	d := c.dtype("to", tensor.Undefined)
	if c.kind == "onnx::CastLike" {
		d = c.t(1).DType
	}
	if d == tensor.Undefined {
		c.fail("no element type to cast to")
	}
	x := c.t(0)
	if isFloat8(d) && d != tensor.Float4E2M1 && !c.flag("saturate") && x.DType != d {
		return one(mapFloat8(x, d, false))
	}
	return one(cast(x, d))
}

func evalBitCast(c *call) []*tensor.Tensor {
	d, x := c.dtype("to", tensor.Undefined), c.t(0)
	if d.Size() != x.DType.Size() || d.Size() == 0 {
		c.fail("from %v to %v", x.DType, d)
	}
	y := *x
	y.DType = d
	return one(&y)
}

// cast converts elements as onnxruntime's Cast does: floats are truncated
// towards zero, integers wrap, everything but 0 is true.
func cast(t *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	if t.DType == d {
		return t
	}
	if t.IsSplat() && len(t.Shape) > 0 && t.NumElements() > 1 && t.DType != tensor.String {
		one := *t
		one.Shape, one.Strides = []int64{}, []int64{}
		r := *cast(&one, d)
		r.Shape, r.Strides = t.Shape, make([]int64, len(t.Shape))
		return &r
	}
	switch {
	case t.DType == tensor.String:
		return fromStrings(t, d)
	case d == tensor.String:
		return toStrings(t)
	case t.DType.IsComplex() || d.IsComplex():
		panic(failure("complex numbers are not supported"))
	case isFloat8(t.DType):
		return cast(tensor.FromFloats(tensor.Float32, t.Shape, decodeFloat8(t)), d)
	case isFloat8(d):
		return mapFloat8(t, d, true)
	case d == tensor.Int4 || d == tensor.Uint4 || d == tensor.Int2 || d == tensor.Uint2:
		return narrow(t, d)
	}
	if t.DType.IsFloat() {
		if d.IsFloat() || d == tensor.Bool {
			return tensor.FromFloats(d, t.Shape, t.Float64s())
		}
		v := t.Float64s()
		out := make([]int64, len(v))
		for i, x := range v {
			out[i] = truncate(x, d)
		}
		return tensor.FromInts(d, t.Shape, out)
	}
	if d.IsFloat() {
		if t.DType == tensor.Uint64 {
			return tensor.FromFloats(d, t.Shape, t.Float64s())
		}
		if d == tensor.Float32 { // one rounding, not two
			v := t.Int64s()
			out := make([]float32, len(v))
			for i, x := range v {
				out[i] = float32(x)
			}
			return tensor.Of(d, t.Shape, out)
		}
		return tensor.FromInts(d, t.Shape, t.Int64s())
	}
	return tensor.FromInts(d, t.Shape, t.Int64s())
}

// narrow keeps the low bits of integers.
func narrow(t *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	v := cast(t, tensor.Int32).Int64s()
	out := make([]byte, len(v))
	shift := 8 - d.Bits()
	for i, x := range v {
		if out[i] = byte(x) << shift >> shift; d == tensor.Int4 || d == tensor.Int2 {
			out[i] = byte(int8(x<<shift) >> shift)
		}
	}
	return tensor.New(d, t.Shape, out)
}

// truncate converts a float to an integer type as x86 processors do: what does
// not fit gives the least int32 or int64, of which narrow types keep the low bits.
func truncate(x float64, d tensor.DType) int64 {
	switch d {
	case tensor.Int64, tensor.Uint32:
		if !(x >= -(1<<63) && x < 1<<63) {
			return math.MinInt64
		}
		return int64(x)
	case tensor.Uint64:
		if x >= 1<<63 && x < 1<<64 {
			return int64(uint64(x-(1<<63)) + 1<<63)
		}
		if !(x >= -(1<<63) && x < 1<<63) {
			return math.MinInt64
		}
		return int64(x)
	}
	if !(x > -(1<<31)-1 && x < 1<<31) {
		return math.MinInt32
	}
	return int64(int32(x))
}

func fromStrings(t *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	s := t.StringData()
	if d.IsFloat() {
		out := make([]float64, len(s))
		for i, x := range s {
			v, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
			if err != nil && !math.IsInf(v, 0) {
				panic(failure("string " + strconv.Quote(x) + " is not a number"))
			}
			out[i] = v
		}
		return tensor.FromFloats(d, t.Shape, out)
	}
	out := make([]int64, len(s))
	for i, x := range s {
		v, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
		if err != nil {
			panic(failure("string " + strconv.Quote(x) + " is not an integer"))
		}
		out[i] = v
	}
	return tensor.FromInts(d, t.Shape, out)
}

func toStrings(t *tensor.Tensor) *tensor.Tensor {
	var out []string
	switch {
	case t.DType.IsFloat():
		digits := 8
		if t.DType == tensor.Float64 {
			digits = 17
		}
		for _, v := range t.Float64s() {
			s := strconv.FormatFloat(v, 'g', digits, 64)
			switch {
			case math.IsNaN(v):
				s = "NaN"
			case math.IsInf(v, 1):
				s = "INF"
			case math.IsInf(v, -1):
				s = "-INF"
			}
			out = append(out, s)
		}
	default:
		for _, v := range t.Int64s() {
			out = append(out, strconv.FormatInt(v, 10))
		}
	}
	return tensor.Strings(t.Shape, out)
}

// isFloat8 reports a float of 8 bits or less that has a sign.
func isFloat8(d tensor.DType) bool {
	switch d {
	case tensor.Float8E4M3FN, tensor.Float8E4M3FNUZ, tensor.Float8E5M2, tensor.Float8E5M2FNUZ, tensor.Float4E2M1:
		return true
	}
	return false
}

// float8 describes an 8-bit float: bits of the fraction, exponent bias, and
// whether it lacks negative zero and keeps NaN in its place.
func float8(d tensor.DType) (mantissa uint, bias int, fnuz bool) {
	switch d {
	case tensor.Float8E4M3FN:
		return 3, 7, false
	case tensor.Float8E4M3FNUZ:
		return 3, 8, true
	case tensor.Float8E5M2:
		return 2, 15, false
	case tensor.Float4E2M1:
		return 1, 1, false
	}
	return 2, 16, true
}

// signBit is the bit of the sign.
func signBit(d tensor.DType) byte {
	if d == tensor.Float4E2M1 {
		return 8
	}
	return 0x80
}

// value8 decodes one 8-bit float.
func value8(d tensor.DType, b byte) float64 {
	m, bias, fnuz := float8(d)
	if fnuz && b == 0x80 {
		return math.NaN()
	}
	e, f := int(b&(signBit(d)-1))>>m, int(b)&(1<<m-1)
	var v float64
	switch {
	case d == tensor.Float8E4M3FN && b&0x7f == 0x7f:
		return math.NaN()
	case d == tensor.Float8E5M2 && e == 31:
		if f != 0 {
			return math.NaN()
		}
		v = math.Inf(1)
	case e == 0:
		v = math.Ldexp(float64(f), 1-bias-int(m))
	default:
		v = math.Ldexp(float64(f+1<<m), e-bias-int(m))
	}
	if b&signBit(d) != 0 {
		return -v
	}
	return v
}

func decodeFloat8(t *tensor.Tensor) []float64 {
	var table [256]float64
	for i := range table {
		table[i] = value8(t.DType, byte(i))
	}
	out := make([]float64, 0, t.NumElements())
	for _, b := range tensor.Data[uint8](t) {
		out = append(out, table[b])
	}
	return out
}

// mapFloat8 rounds to an 8-bit float, or one of 4 bits, ties to even. What is too large becomes
// the largest number if saturate is set or there is nothing else, else infinity or NaN.
func mapFloat8(t *tensor.Tensor, d tensor.DType, saturate bool) *tensor.Tensor {
	var v []float64
	if isFloat8(t.DType) {
		v = decodeFloat8(t)
	} else {
		v = cast(t, tensor.Float32).Float64s()
	}
	_, _, fnuz := float8(d)
	var codes []float64 // finite non-negative values in order of their codes
	for b := range int(signBit(d)) {
		x := value8(d, byte(b))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			break
		}
		codes = append(codes, x)
	}
	top := len(codes) - 1
	overflow := byte(0x7f)
	switch {
	case fnuz:
		overflow = 0x80
	case d == tensor.Float8E5M2:
		overflow = 0x7c
	}
	out := make([]byte, len(v))
	for i, x := range v {
		a, sign := math.Abs(x), byte(0)
		if math.Signbit(x) {
			sign = signBit(d)
		}
		if x != x {
			switch {
			case d == tensor.Float4E2M1: // has none: -0, as in ml_dtypes
				out[i] = 8
			case fnuz:
				out[i] = 0x80
			case d == tensor.Float8E5M2:
				out[i] = 0x7e | sign
			default:
				out[i] = 0x7f | sign
			}
			continue
		}
		// The step beyond the largest value decides what rounds up to overflow.
		limit := codes[top] + (codes[top]-codes[top-1])/2
		even := top%2 == 0
		if a > limit || a == limit && !even || math.IsInf(a, 0) {
			switch {
			case saturate || d == tensor.Float4E2M1:
				out[i] = byte(top) | sign
			case fnuz:
				out[i] = 0x80
			default:
				out[i] = overflow | sign
			}
			continue
		}
		k := sort.SearchFloat64s(codes, a)
		if k > top {
			k = top
		}
		if k > 0 && codes[k] != a {
			low, high := a-codes[k-1], codes[k]-a
			if a <= codes[k] && (low < high || low == high && (k-1)%2 == 0) {
				k--
			}
		}
		if k == 0 && fnuz {
			sign = 0
		}
		out[i] = byte(k) | sign
	}
	return tensor.New(d, t.Shape, out)
}
