package isa

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// Vectors says that the processor has what vector_amd64.s needs.
var Vectors = cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasF16C

//go:noescape
func vAddF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSubF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vMulF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vDivF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vMaxF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vMinF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vFmaF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vRintF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vFloorF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vCeilF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vTruncF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSqrtF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vNegF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vAbsF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vAddI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSubI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vMulI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vAndI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vOrI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vXorI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vShlI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vLshrI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vAshrI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSminI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSmaxI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUminI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUmaxI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vMadI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vOeqF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vOneF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vOltF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vOleF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vOgtF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vOgeF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vOrdF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUnoF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUeqF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUneF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUltF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUleF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUgtF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUgeF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vEqI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vNeI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSltI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSleI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUltI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUleI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSgtI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSgeI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUgtI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vUgeI32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vAndI8(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vOrI8(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vXorI8(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSelect32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vSelect64(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vAddI64(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vAddImm(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vMulWideS32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vMadWideS32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vS32ToS64(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vU32ToU64(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vU64ToU32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vU8ToU32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vU16ToU32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vU32ToU16(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vS32ToF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vF32ToS32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vF16ToF32(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

//go:noescape
func vF32ToF16(d, base unsafe.Pointer, a, b, c, n int, imm uint64)

// Load32 reads an element of 4 bytes for each of n threads, whose addresses are at addr, from mem + address + delta to d. It ends before the first thread
// whose offset is not aligned or exceeds limit, and returns how many it served.
//
//go:noescape
func Load32(d, addr, mem unsafe.Pointer, n int, delta, limit uint64) int

// Store32 writes the elements at s, as Load32 reads them.
//
//go:noescape
func Store32(s, addr, mem unsafe.Pointer, n int, delta, limit uint64) int

// Load32x4 is Load32 for four elements side by side, to four places.
//
//go:noescape
func Load32x4(d *[4]unsafe.Pointer, addr, mem unsafe.Pointer, n int, delta, limit uint64) int

// Store32x4 writes four elements side by side.
//
//go:noescape
func Store32x4(d *[4]unsafe.Pointer, addr, mem unsafe.Pointer, n int, delta, limit uint64) int

var lanesOf = map[string]vector{
	"add f32":   {vAddF32, 4, 4, 4, 0},
	"sub f32":   {vSubF32, 4, 4, 4, 0},
	"mul f32":   {vMulF32, 4, 4, 4, 0},
	"div f32":   {vDivF32, 4, 4, 4, 0},
	"max f32":   {vMaxF32, 4, 4, 4, 0},
	"min f32":   {vMinF32, 4, 4, 4, 0},
	"fma f32":   {vFmaF32, 4, 4, 4, 4},
	"rint f32":  {vRintF32, 4, 4, 0, 0},
	"floor f32": {vFloorF32, 4, 4, 0, 0},
	"ceil f32":  {vCeilF32, 4, 4, 0, 0},
	"trunc f32": {vTruncF32, 4, 4, 0, 0},
	"sqrt f32":  {vSqrtF32, 4, 4, 0, 0},
	"neg f32":   {vNegF32, 4, 4, 0, 0},
	"abs f32":   {vAbsF32, 4, 4, 0, 0},
	"add i32":   {vAddI32, 4, 4, 4, 0},
	"sub i32":   {vSubI32, 4, 4, 4, 0},
	"mul i32":   {vMulI32, 4, 4, 4, 0},
	"and i32":   {vAndI32, 4, 4, 4, 0},
	"or i32":    {vOrI32, 4, 4, 4, 0},
	"xor i32":   {vXorI32, 4, 4, 4, 0},
	"shl i32":   {vShlI32, 4, 4, 4, 0},
	"lshr i32":  {vLshrI32, 4, 4, 4, 0},
	"ashr i32":  {vAshrI32, 4, 4, 4, 0},
	"smin i32":  {vSminI32, 4, 4, 4, 0},
	"smax i32":  {vSmaxI32, 4, 4, 4, 0},
	"umin i32":  {vUminI32, 4, 4, 4, 0},
	"umax i32":  {vUmaxI32, 4, 4, 4, 0},
	"mad i32":   {vMadI32, 4, 4, 4, 4},
	"oeq f32":   {vOeqF32, 1, 4, 4, 0},
	"one f32":   {vOneF32, 1, 4, 4, 0},
	"olt f32":   {vOltF32, 1, 4, 4, 0},
	"ole f32":   {vOleF32, 1, 4, 4, 0},
	"ogt f32":   {vOgtF32, 1, 4, 4, 0},
	"oge f32":   {vOgeF32, 1, 4, 4, 0},
	"ord f32":   {vOrdF32, 1, 4, 4, 0},
	"uno f32":   {vUnoF32, 1, 4, 4, 0},
	"ueq f32":   {vUeqF32, 1, 4, 4, 0},
	"une f32":   {vUneF32, 1, 4, 4, 0},
	"ult f32":   {vUltF32, 1, 4, 4, 0},
	"ule f32":   {vUleF32, 1, 4, 4, 0},
	"ugt f32":   {vUgtF32, 1, 4, 4, 0},
	"uge f32":   {vUgeF32, 1, 4, 4, 0},
	"eq i32":    {vEqI32, 1, 4, 4, 0},
	"ne i32":    {vNeI32, 1, 4, 4, 0},
	"slt i32":   {vSltI32, 1, 4, 4, 0},
	"sle i32":   {vSleI32, 1, 4, 4, 0},
	"ult i32":   {vUltI32, 1, 4, 4, 0},
	"ule i32":   {vUleI32, 1, 4, 4, 0},
	"sgt i32":   {vSgtI32, 1, 4, 4, 0},
	"sge i32":   {vSgeI32, 1, 4, 4, 0},
	"ugt i32":   {vUgtI32, 1, 4, 4, 0},
	"uge i32":   {vUgeI32, 1, 4, 4, 0},
	"and i8":    {vAndI8, 1, 1, 1, 0},
	"or i8":     {vOrI8, 1, 1, 1, 0},
	"xor i8":    {vXorI8, 1, 1, 1, 0},
	"select 4":  {vSelect32, 4, 4, 4, 1},
	"select 8":  {vSelect64, 8, 8, 8, 1},
	"add i64":   {vAddI64, 8, 8, 8, 0},
	"addimm":    {vAddImm, 8, 8, 0, 0},
	"mulwide":   {vMulWideS32, 8, 4, 4, 0},
	"madwide":   {vMadWideS32, 8, 4, 4, 8},
	"s32 s64":   {vS32ToS64, 8, 4, 0, 0},
	"u32 u64":   {vU32ToU64, 8, 4, 0, 0},
	"u64 u32":   {vU64ToU32, 4, 8, 0, 0},
	"u8 u32":    {vU8ToU32, 4, 1, 0, 0},
	"u16 u32":   {vU16ToU32, 4, 2, 0, 0},
	"u32 u16":   {vU32ToU16, 2, 4, 0, 0},
	"s32 f32":   {vS32ToF32, 4, 4, 0, 0},
	"f32 s32":   {vF32ToS32, 4, 4, 0, 0},
	"f16 f32":   {vF16ToF32, 4, 2, 0, 0},
	"f32 f16":   {vF32ToF16, 2, 4, 0, 0},
}
