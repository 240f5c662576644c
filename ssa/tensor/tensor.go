package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// Storage is the memory behind tensors, little-endian. Tensors that share a
// Storage pointer share memory; identity is what keeps tied weights tied.
type Storage struct {
	// Strings holds the elements when the element type is String.
	Strings []string

	bytes    []byte // usually a slice of a mapped file
	computed *computed
}

// NewStorage is memory that b holds, which is kept, not copied.
func NewStorage(b []byte) *Storage { return &Storage{bytes: b} }

// SetBytes sets the bytes of a storage that was made before they were known.
func (s *Storage) SetBytes(b []byte) { s.bytes, s.computed = b, nil }

// Bytes is the memory. It must not be written.
func (s *Storage) Bytes() []byte {
	if s.computed != nil {
		return s.computed.get()
	}
	return s.bytes
}

// Len is the number of bytes.
func (s *Storage) Len() int64 {
	if s.computed != nil {
		return s.computed.size
	}
	return int64(len(s.bytes))
}

// Clone is a copy that may be written.
func (s *Storage) Clone() *Storage {
	return &Storage{bytes: slices.Clone(s.Bytes()), Strings: slices.Clone(s.Strings)}
}

// Tensor is an immutable view of a Storage. Offset and Strides count elements.
// The zero Storage pointer stands for data that is not at hand (an elided weight).
type Tensor struct {
	DType   DType
	Shape   []int64
	Strides []int64
	Offset  int64
	Storage *Storage
	// Quant is set for quantized element types.
	Quant *Quant
}

// Quant holds the parameters of a quantized tensor. Axis is -1 for per-tensor.
type Quant struct {
	Scales     []float64
	ZeroPoints []int64
	// RealZeroPoints are the zero points of a scheme whose zero points are no integers (per_channel_affine_float_qparams, of tables of embeddings).
	RealZeroPoints []float64
	Axis           int
}

// ContiguousStrides gives row-major strides for a shape.
func ContiguousStrides(shape []int64) []int64 {
	s := make([]int64, len(shape))
	n := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		if shape[i] > 1 {
			n *= shape[i]
		}
	}
	return s
}

// New wraps row-major little-endian bytes. The slice is kept, not copied.
func New(d DType, shape []int64, data []byte) *Tensor {
	return &Tensor{DType: d, Shape: shape, Strides: ContiguousStrides(shape), Storage: NewStorage(data)}
}

// Number is a Go type that can back tensor elements.
type Number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64 | ~complex64 | ~complex128
}

// Of wraps a slice of elements, which is kept, not copied, where the machine has the bytes of a number in the order of files. It
// panics if T has not d's size. Nobody may write to the slice afterwards.
func Of[T Number](d DType, shape []int64, data []T) *Tensor {
	var z T
	if int(unsafe.Sizeof(z)) != d.Size() {
		panic(fmt.Sprintf("tensor.Of: %T is not the element of %v", z, d))
	}
	return New(d, shape, asBytes(data))
}

func asBytes[T any](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), len(data)*int(unsafe.Sizeof(data[0])))
	if bigEndian {
		b = swapped(b, numberSize(data[0]))
	}
	return b
}

// bigEndian reports a machine whose numbers begin with the greatest byte. Those of a Storage begin with the least one.
var bigEndian = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// swapped copies numbers of size bytes, each with its bytes in the other order.
func swapped(b []byte, size int) []byte {
	out := append(make([]byte, 0, len(b)+8), b...)
	Swap(out, size)
	return out
}

// numberSize is the size of the numbers that an element is made of: a complex one has two.
func numberSize[T any](z T) int {
	switch any(z).(type) {
	case complex64, complex128:
		return int(unsafe.Sizeof(z)) / 2
	}
	return int(unsafe.Sizeof(z))
}

// Ints makes an int64 tensor of rank 1.
func Ints(v ...int64) *Tensor { return Of(Int64, []int64{int64(len(v))}, append([]int64(nil), v...)) }

// ScalarInt makes an int64 tensor of rank 0.
func ScalarInt(v int64) *Tensor { return Of(Int64, []int64{}, []int64{v}) }

// Full makes a tensor of one value in all places without storing it more than once.
// The value is converted to d as a C cast does.
func Full(d DType, shape []int64, v float64) *Tensor {
	return splat(d, shape, FromFloats(d, []int64{}, []float64{v}))
}

// FullInt is Full for an integer value, exact over all of int64.
func FullInt(d DType, shape []int64, v int64) *Tensor {
	return splat(d, shape, FromInts(d, []int64{}, []int64{v}))
}

func splat(d DType, shape []int64, one *Tensor) *Tensor {
	return &Tensor{DType: d, Shape: shape, Strides: make([]int64, len(shape)), Storage: one.Storage}
}

// Strings makes a tensor of strings.
func Strings(shape []int64, v []string) *Tensor {
	return &Tensor{DType: String, Shape: shape, Strides: ContiguousStrides(shape), Storage: &Storage{Strings: v}}
}

// NumElements is the product of the shape, 1 for rank 0.
func (t *Tensor) NumElements() int64 {
	n, zero := int64(1), false
	for _, s := range t.Shape {
		zero = zero || s == 0
		n = times(n, s)
	}
	if zero {
		return 0
	}
	return n
}

// NumBytes is the size of the row-major data; of one element repeated more often than an int64 counts, the greatest int64.
func (t *Tensor) NumBytes() int64 { return times(t.NumElements(), int64(t.DType.Size())) }

// times is the product of two counts, or the greatest int64.
func times(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64/b {
		return math.MaxInt64
	}
	return a * b
}

// HasData reports whether the elements are at hand.
func (t *Tensor) HasData() bool { return t.Storage != nil || t.NumElements() == 0 }

// IsSplat reports that one stored element stands for all.
func (t *Tensor) IsSplat() bool {
	if t.Storage == nil {
		return false
	}
	for i, s := range t.Strides {
		if s != 0 && t.Shape[i] > 1 {
			return false
		}
	}
	return true
}

// IsContiguous reports row-major order without gaps.
func (t *Tensor) IsContiguous() bool {
	n := int64(1)
	for i := len(t.Shape) - 1; i >= 0; i-- {
		if t.Shape[i] == 0 {
			return true
		}
		if t.Shape[i] != 1 {
			if t.Strides[i] != n {
				return false
			}
			n *= t.Shape[i]
		}
	}
	return true
}

// Check verifies that shape, strides and offset stay within the storage.
func (t *Tensor) Check() error {
	if t.Storage == nil {
		return nil
	}
	if len(t.Shape) != len(t.Strides) || len(t.Shape) > 64 {
		return fmt.Errorf("tensor of rank %d with %d strides", len(t.Shape), len(t.Strides))
	}
	last, n := t.Offset, int64(1)
	if t.Offset < 0 {
		return fmt.Errorf("negative storage offset %d", t.Offset)
	}
	for i, s := range t.Shape {
		if s < 0 || t.Strides[i] < 0 {
			return fmt.Errorf("negative size or stride in shape %v, strides %v", t.Shape, t.Strides)
		}
		if s == 0 {
			return nil
		}
		if s > math.MaxInt64/8/max(n, 1) || t.Strides[i] > (math.MaxInt64-last)/s {
			return fmt.Errorf("shape %v, strides %v overflow", t.Shape, t.Strides)
		}
		n *= s
		last += (s - 1) * t.Strides[i]
	}
	have := int64(len(t.Storage.Strings))
	if t.DType.Size() > 0 {
		have = t.Storage.Len() / int64(t.DType.Size())
	}
	if last >= have {
		return fmt.Errorf("shape %v, strides %v, offset %d need %d elements, the storage has %d", t.Shape, t.Strides, t.Offset, last+1, have)
	}
	return nil
}

// Bytes gives the elements in row-major order. Contiguous data is not copied.
func (t *Tensor) Bytes() []byte {
	size := int64(t.DType.Size())
	n := t.NumElements()
	if n == 0 {
		return nil
	}
	if c := t.Storage.computed; c != nil && c.elem == size && n*size < c.size && t.IsContiguous() && c.held() == nil {
		return c.make(t.Offset, n) // a part
	}
	src := t.Storage.Bytes()[t.Offset*size:]
	if t.IsContiguous() {
		return src[:n*size]
	}
	r := len(t.Shape) - 1
	length, stride := t.Shape[r], t.Strides[r]
	out := make([]byte, 0, n*size)
	rows := Tensor{Shape: t.Shape[:r], Strides: t.Strides[:r]}
	rows.walk(func(at int64) { out = appendRow(out, src, int(at*size), int(length), int(stride*size), int(size)) })
	return out
}

// appendRow appends n elements of src of a size in bytes, which lie stride bytes apart from the byte at on.
func appendRow(out, src []byte, at, n, stride, size int) []byte {
	if stride == size {
		return append(out, src[at:at+n*size]...)
	}
	for range n {
		switch size { // a copy of known length needs no call
		case 4:
			e := [4]byte(src[at:])
			out = append(out, e[:]...)
		case 8:
			e := [8]byte(src[at:])
			out = append(out, e[:]...)
		default:
			out = append(out, src[at:at+size]...)
		}
		at += stride
	}
	return out
}

// walk calls f with the element position, relative to Offset, of each element in row-major order.
func (t *Tensor) walk(f func(at int64)) {
	r := len(t.Shape)
	if r == 0 {
		f(0)
		return
	}
	idx := make([]int64, r)
	at := int64(0)
	for {
		f(at)
		d := r - 1
		for ; d >= 0; d-- {
			idx[d]++
			at += t.Strides[d]
			if idx[d] < t.Shape[d] {
				break
			}
			at -= idx[d] * t.Strides[d]
			idx[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

// Data gives the elements as a Go slice of the matching type in row-major
// order, without a copy where the data is contiguous and aligned. The caller
// must not write to it. It panics if T has not the size of t's elements.
func Data[T Number](t *Tensor) []T {
	var z T
	if int(unsafe.Sizeof(z)) != t.DType.Size() {
		panic(fmt.Sprintf("tensor.Data: %T is not the element of %v", z, t.DType))
	}
	b := t.Bytes()
	if len(b) == 0 {
		return nil
	}
	if bigEndian {
		b = swapped(b, numberSize(z))
	}
	if uintptr(unsafe.Pointer(&b[0]))%unsafe.Alignof(z) != 0 {
		b = append(make([]byte, 0, len(b)+8), b...)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(z)))
}

// StringData gives the elements of a String tensor in row-major order.
func (t *Tensor) StringData() []string {
	out := make([]string, 0, t.NumElements())
	if t.NumElements() > 0 {
		t.walk(func(at int64) { out = append(out, t.Storage.Strings[t.Offset+at]) })
	}
	return out
}

// Clone copies the elements into storage of its own, row-major.
func (t *Tensor) Clone() *Tensor {
	c := *t
	c.Offset, c.Strides = 0, ContiguousStrides(t.Shape)
	if t.DType == String {
		c.Storage = &Storage{Strings: t.StringData()}
	} else {
		c.Storage = NewStorage(append([]byte(nil), t.Bytes()...))
	}
	return &c
}

// Reshape gives a view with another shape of as many elements; strided data is made row-major first.
func (t *Tensor) Reshape(shape []int64) *Tensor {
	c := *t
	c.Shape = shape
	switch {
	case t.IsSplat():
		c.Strides = make([]int64, len(shape))
	case t.IsContiguous():
		c.Strides = ContiguousStrides(shape)
	default:
		c = *t.Clone()
		c.Shape, c.Strides = shape, ContiguousStrides(shape)
	}
	return &c
}

// Float64s converts the elements of any real type to float64.
func (t *Tensor) Float64s() []float64 {
	out := make([]float64, 0, t.NumElements())
	switch t.DType {
	case Float64:
		return append(out, Data[float64](t)...)
	case Float32:
		for _, v := range Data[float32](t) {
			out = append(out, float64(v))
		}
	case Float16:
		for _, v := range Data[uint16](t) {
			out = append(out, float64(HalfToFloat(v)))
		}
	case BFloat16:
		for _, v := range Data[uint16](t) {
			out = append(out, float64(BFloatToFloat(v)))
		}
	case Uint64:
		for _, v := range Data[uint64](t) {
			out = append(out, float64(v))
		}
	default:
		for _, v := range t.Int64s() {
			out = append(out, float64(v))
		}
	}
	return out
}

// Int64s converts the elements of any real type to int64; floats are truncated. It panics for other types.
func (t *Tensor) Int64s() []int64 {
	out := make([]int64, 0, t.NumElements())
	switch t.DType {
	case Int64, Uint64:
		return append(out, Data[int64](t)...)
	case Int32, QInt32:
		return widen[int32](out, t)
	case Int16:
		return widen[int16](out, t)
	case Int8, QInt8, Int4, Int2:
		return widen[int8](out, t)
	case Uint8, Bool, QUint8, Uint4, Uint2:
		return widen[uint8](out, t)
	case Uint16:
		return widen[uint16](out, t)
	case Uint32:
		return widen[uint32](out, t)
	case Float16, BFloat16, Float32, Float64:
		for _, v := range t.Float64s() {
			out = append(out, int64(v))
		}
		return out
	}
	panic(fmt.Sprintf("tensor: %v elements are not integers", t.DType))
}

func widen[T int8 | int16 | int32 | uint8 | uint16 | uint32](out []int64, t *Tensor) []int64 {
	for _, v := range Data[T](t) {
		out = append(out, int64(v))
	}
	return out
}

// FromFloats makes a tensor of type d from float64 values, rounding to nearest
// for floats and truncating for integers. It makes the types that HoldsNumbers reports, and
// panics for others.
func FromFloats(d DType, shape []int64, v []float64) *Tensor {
	switch d {
	case Float64:
		return Of(d, shape, v)
	case Float32:
		return convert(d, shape, v, func(x float64) float32 { return float32(x) })
	case Float16:
		return convert(d, shape, v, func(x float64) uint16 { return FloatToHalf(x) })
	case BFloat16:
		return convert(d, shape, v, func(x float64) uint16 { return FloatToBFloat(x) })
	case Complex64:
		return convert(d, shape, v, func(x float64) complex64 { return complex(float32(x), 0) })
	case Complex128:
		return convert(d, shape, v, func(x float64) complex128 { return complex(x, 0) })
	case Bool:
		return convert(d, shape, v, func(x float64) uint8 { return b2u(x != 0) })
	}
	if d.Opaque() {
		panic(fmt.Sprintf("tensor: no elements of %v are made of numbers", d))
	}
	ints := make([]int64, len(v))
	for i, x := range v {
		ints[i] = int64(x)
	}
	return FromInts(d, shape, ints)
}

// FromInts makes a tensor of type d from int64 values; narrower integers wrap. It panics for a type of which HoldsNumbers is false.
func FromInts(d DType, shape []int64, v []int64) *Tensor {
	switch d {
	case Int64:
		return Of(d, shape, v)
	case Uint64:
		return convert(d, shape, v, func(x int64) uint64 { return uint64(x) })
	case Int32, QInt32:
		return convert(d, shape, v, func(x int64) int32 { return int32(x) })
	case Int16:
		return convert(d, shape, v, func(x int64) int16 { return int16(x) })
	case Int8, QInt8:
		return convert(d, shape, v, func(x int64) int8 { return int8(x) })
	case Uint8, QUint8:
		return convert(d, shape, v, func(x int64) uint8 { return uint8(x) })
	case Uint16:
		return convert(d, shape, v, func(x int64) uint16 { return uint16(x) })
	case Uint32:
		return convert(d, shape, v, func(x int64) uint32 { return uint32(x) })
	case Bool:
		return convert(d, shape, v, func(x int64) uint8 { return b2u(x != 0) })
	}
	if !d.HoldsNumbers() {
		panic(fmt.Sprintf("tensor: no numbers become %v elements", d))
	}
	f := make([]float64, len(v))
	for i, x := range v {
		f[i] = float64(x)
	}
	return FromFloats(d, shape, f)
}

func convert[S, D Number](d DType, shape []int64, v []S, f func(S) D) *Tensor {
	out := make([]D, len(v))
	for i, x := range v {
		out[i] = f(x)
	}
	return Of(d, shape, out)
}

func b2u(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// HalfToFloat widens an IEEE 754 binary16.
func HalfToFloat(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp, frac := uint32(h>>10&31), uint32(h&1023)
	switch {
	case exp == 31:
		return math.Float32frombits(sign | 0x7f800000 | frac<<13)
	case exp != 0:
		return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
	}
	f := float32(frac) / (1 << 24)
	if sign != 0 {
		return -f
	}
	return f
}

// FloatToHalf rounds to the nearest binary16, ties to even, in one step from float64.
func FloatToHalf(x float64) uint16 {
	sign := uint16(math.Float64bits(x) >> 48 & 0x8000)
	a := math.Abs(x)
	switch {
	case a != a:
		return sign | 0x7e00
	case a >= 65520:
		return sign | 0x7c00
	case a < 6.103515625e-05:
		return sign | uint16(math.RoundToEven(a*(1<<24)))
	}
	frac, exp := math.Frexp(a) // a = frac * 2^exp, frac in [0.5, 1)
	m := uint16(math.RoundToEven(frac * 2048))
	return sign | (uint16(exp+14)<<10 + (m - 1024))
}

// BFloatToFloat widens a bfloat16.
func BFloatToFloat(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// FloatToBFloat rounds to the nearest bfloat16, ties to even.
func FloatToBFloat(x float64) uint16 {
	f := float32(x)
	bits := math.Float32bits(f)
	if f != f {
		return uint16(bits>>16) | 0x40
	}
	// Rounding through float32 could round twice; correct with the exact remainder.
	low := bits & 0xffff
	up := low > 0x8000 || low == 0x8000 && bits>>16&1 == 1
	if low == 0x8000 && float64(f) != x {
		up = math.Abs(x) > math.Abs(float64(f))
	}
	if up {
		return uint16(bits>>16) + 1
	}
	return uint16(bits >> 16)
}

// Swap reverses the bytes of each group of size bytes, in place: big-endian data becomes little-endian.
func Swap(b []byte, size int) {
	switch size {
	case 2:
		for i := 0; i+2 <= len(b); i += 2 {
			binary.LittleEndian.PutUint16(b[i:], binary.BigEndian.Uint16(b[i:]))
		}
	case 4:
		for i := 0; i+4 <= len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
		}
	case 8:
		for i := 0; i+8 <= len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], binary.BigEndian.Uint64(b[i:]))
		}
	}
}

// String gives element type and shape, such as Float(2, 3).
func (t *Tensor) String() string {
	s := t.DType.String() + "("
	for i, d := range t.Shape {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprint(d)
	}
	return s + ")"
}
