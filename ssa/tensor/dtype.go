// Package tensor holds element types and constant tensor data.
//
// A Tensor is a handle: element type, shape and strides over a Storage, which
// is usually a slice of a mapped file. Moving a Tensor never touches its bytes.
package tensor

import "fmt"

// DType is an element type. Its order is that of c10::ScalarType as far as
// TorchScript writes it in archives (see Code).
type DType uint8

// Element types. Undefined means "not known".
const (
	Undefined DType = iota
	Uint8
	Int8
	Int16
	Int32
	Int64
	Float16
	Float32
	Float64
	Complex32
	Complex64
	Complex128
	Bool
	QInt8
	QUint8
	QInt32
	BFloat16
	Float8E5M2
	Float8E4M3FN
	Float8E5M2FNUZ
	Float8E4M3FNUZ
	Uint16
	Uint32
	Uint64
	String

	// Elements of the types below are moved, cast and quantized (dialects/onnx/kernel), but for Float8E8M0, which only
	// passes through; nothing else computes with them. In memory each takes a byte, integers with their sign; see Bits.

	Uint4
	Int4
	Uint2
	Int2
	Float4E2M1
	Float8E8M0
	numDTypes
)

type dtypeInfo struct {
	torch string // as in printed graphs: Float
	spec  string // as in input specs: f32
	onnx  int    // TensorProto.DataType
	code  int    // c10::ScalarType
	size  int    // bytes an element
}

var dtypes = [numDTypes]dtypeInfo{
	Undefined:      {"Tensor", "?", 0, -1, 0},
	Uint8:          {"Byte", "u8", 2, 0, 1},
	Int8:           {"Char", "i8", 3, 1, 1},
	Int16:          {"Short", "i16", 5, 2, 2},
	Int32:          {"Int", "i32", 6, 3, 4},
	Int64:          {"Long", "i64", 7, 4, 8},
	Float16:        {"Half", "f16", 10, 5, 2},
	Float32:        {"Float", "f32", 1, 6, 4},
	Float64:        {"Double", "f64", 11, 7, 8},
	Complex32:      {"ComplexHalf", "c32", 0, 8, 4},
	Complex64:      {"ComplexFloat", "c64", 14, 9, 8},
	Complex128:     {"ComplexDouble", "c128", 15, 10, 16},
	Bool:           {"Bool", "bool", 9, 11, 1},
	QInt8:          {"QInt8", "qi8", 3, 12, 1},
	QUint8:         {"QUInt8", "qu8", 2, 13, 1},
	QInt32:         {"QInt32", "qi32", 6, 14, 4},
	BFloat16:       {"BFloat16", "bf16", 16, 15, 2},
	Float8E5M2:     {"Float8_e5m2", "f8e5m2", 19, 23, 1},
	Float8E4M3FN:   {"Float8_e4m3fn", "f8e4m3fn", 17, 24, 1},
	Float8E5M2FNUZ: {"Float8_e5m2fnuz", "f8e5m2fnuz", 20, 25, 1},
	Float8E4M3FNUZ: {"Float8_e4m3fnuz", "f8e4m3fnuz", 18, 26, 1},
	Uint16:         {"UInt16", "u16", 4, 27, 2},
	Uint32:         {"UInt32", "u32", 12, 28, 4},
	Uint64:         {"UInt64", "u64", 13, 29, 8},
	String:         {"String", "str", 8, -1, 0},
	Uint4:          {"UInt4", "u4", 21, -1, 1},
	Int4:           {"Int4", "i4", 22, -1, 1},
	Uint2:          {"UInt2", "u2", 25, -1, 1},
	Int2:           {"Int2", "i2", 26, -1, 1},
	Float4E2M1:     {"Float4_e2m1fn", "f4e2m1", 23, -1, 1},
	Float8E8M0:     {"Float8_e8m0fnu", "f8e8m0", 24, 44, 1},
}

// String gives the name that PyTorch prints in graphs, such as Float or Long.
func (d DType) String() string {
	if int(d) < len(dtypes) {
		return dtypes[d].torch
	}
	return fmt.Sprintf("DType(%d)", uint8(d))
}

// Spec gives the name used in input specs, such as f32.
func (d DType) Spec() string { return dtypes[d].spec }

// Size is the size of an element in bytes, 0 for Undefined and String.
func (d DType) Size() int { return dtypes[d].size }

// Bits is the size of an element in bits where tensors are packed, as in ONNX files: 8*Size but for the types of 4 and
// 2 bits.
func (d DType) Bits() int {
	switch d {
	case Uint4, Int4, Float4E2M1:
		return 4
	case Uint2, Int2:
		return 2
	}
	return 8 * d.Size()
}

// Opaque reports a type whose elements text does not spell: those of 8 bits and less that are no integers of C.
func (d DType) Opaque() bool {
	switch d {
	case Float8E5M2, Float8E4M3FN, Float8E5M2FNUZ, Float8E4M3FNUZ, Float8E8M0, Float4E2M1, Uint4, Int4, Uint2, Int2:
		return true
	}
	return false
}

// ONNX is the TensorProto.DataType number, 0 where ONNX has none.
func (d DType) ONNX() int { return dtypes[d].onnx }

// Code is the number that TorchScript uses for the type (c10::ScalarType), -1 for none.
func (d DType) Code() int { return dtypes[d].code }

// IsFloat reports a real floating-point type.
func (d DType) IsFloat() bool {
	switch d {
	case Float16, Float32, Float64, BFloat16, Float8E5M2, Float8E4M3FN, Float8E5M2FNUZ, Float8E4M3FNUZ:
		return true
	}
	return false
}

// IsComplex reports a complex type.
func (d DType) IsComplex() bool { return d == Complex32 || d == Complex64 || d == Complex128 }

// HoldsNumbers reports a type that FromInts and FromFloats make: not strings, 8-bit floats and halves of complex numbers.
func (d DType) HoldsNumbers() bool {
	return d.IsInt() || d.IsQuantized() || d == Bool || d.IsFloat() && d.Size() > 1 || d == Complex64 || d == Complex128
}

// IsInt reports an integer type; bool is not one.
func (d DType) IsInt() bool { return d.IsSigned() || d.IsUnsigned() }

// IsSigned reports a signed integer type.
func (d DType) IsSigned() bool { return d == Int8 || d == Int16 || d == Int32 || d == Int64 }

// IsUnsigned reports an unsigned integer type.
func (d DType) IsUnsigned() bool {
	return d == Uint8 || d == Uint16 || d == Uint32 || d == Uint64
}

// IsQuantized reports one of PyTorch's quantized types.
func (d DType) IsQuantized() bool { return d == QInt8 || d == QUint8 || d == QInt32 }

// FromTorch finds a type by PyTorch's printed name, Undefined if there is none.
func FromTorch(name string) DType { return find(func(i dtypeInfo) bool { return i.torch == name }) }

// FromSpec finds a type by its name in input specs, Undefined if there is none.
func FromSpec(name string) DType { return find(func(i dtypeInfo) bool { return i.spec == name }) }

// FromONNX finds a type by TensorProto.DataType, Undefined if there is none.
func FromONNX(n int) DType {
	if n == 0 {
		return Undefined
	}
	return find(func(i dtypeInfo) bool { return i.onnx == n })
}

// FromCode finds a type by c10::ScalarType, Undefined if there is none.
func FromCode(n int) DType {
	if n < 0 {
		return Undefined
	}
	return find(func(i dtypeInfo) bool { return i.code == n })
}

func find(match func(dtypeInfo) bool) DType {
	for d := DType(1); d < numDTypes; d++ {
		if match(dtypes[d]) {
			return d
		}
	}
	return Undefined
}
