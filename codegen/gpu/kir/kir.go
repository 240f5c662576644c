// Package kir is the IR of kernels: straight-line code in structured loops and conditions, over scalars, global buffers
// and shared memory. Emitters build it with a Builder, package ptx prints it as PTX, and package llvm lowers it to LLVM IR,
// for comparison.
//
// A pure operation is made once per place where it can stand, and stands in the outermost block that has its operands:
// building does the common subexpressions and the loop invariants.
//
// # Text
//
// String prints a kernel, Parse reads what is printed and gives the same kernel. A line is an operation; # begins a comment.
//
//	kernel    = "kernel" name "threads=" number ["resident=" number] "{" {symbol} {param} {shared} {operation} "}"
//	symbol    = "symbol" name "min" number ["max" size] ["of" name {"," name}]
//	param     = "param" number ":" (memory type ("reads" | "writes") | "i32 =" size)
//	shared    = "shared" memory type "[" number "]"
//	operation = [value "="] (name[".type"]... [operand {"," operand}] | access | for | if)
//	access    = ("load" | "store") "." type ["x2" | "x4"] memory "[" operand "]" {"," operand}
//	for       = "for" value "=" operand "to" operand "step" operand ["carrying" carried {"," carried}] block
//	carried   = value ":" type "=" operand
//	if        = "if" operand ["giving" type {"," type}] block ["else" block]
//	block     = "{" {operation} ["give" operand {"," operand}] "}"
//	operand   = value | value "#" number | "$" number | constant
//
// A size is an expression over symbols, as package sym prints it. $n is parameter n, %v#n result n of an operation that gives several. An operation says the
// type that it computes in, a comparison and pack that of their operands, a conversion both: "ftos.i32.f32". So every operand has a type by where it
// stands, and a constant needs none. The others are
//
//	shuffle.TYPE operand ^ number        load.matrix[.transposed] memory[operand]       barrier
//	mma.FORMAT ten operands              copy.async.BYTES memory[operand] from memory[operand]
//	copy.commit                          copy.wait number
//
// A for runs its block as long as the counter, a signed number, is less than the second operand. The step is 1 or more, and the counter must not
// overflow. A load of i32 from memory of i8 reads words.
package kir

import (
	"github.com/aton-project/aton/ssa/sym"
)

// Type is the type of a value.
type Type uint8

// The types. I1 lives in registers only: bools in memory are I8.
const (
	None Type = iota
	I1
	I8
	I16
	I32
	I64
	F16
	F32
	F64
)

var typeNames = [...]string{"none", "i1", "i8", "i16", "i32", "i64", "f16", "f32", "f64"}

// String is the name of the type.
func (t Type) String() string { return typeNames[t] }

// IsFloat reports a floating-point type.
func (t Type) IsFloat() bool { return t >= F16 }

// Size is the size in bytes.
func (t Type) Size() int { return [...]int{0, 1, 1, 2, 4, 8, 2, 4, 8}[t] }

// Op is an operation.
type Op uint8

// The operations. Arithmetic on integers wraps; comparisons of floats are false for NaN, except Ne.
const (
	Const  Op = iota // Int or Float
	Scalar           // a parameter of the kernel
	Result           // result Int of Args[0]
	ThreadX
	BlockX
	BlockY
	BlockZ
	Add
	Sub
	Mul
	Div // of floats, and signed of integers
	Rem // signed
	UDiv
	URem
	And
	Or
	Xor
	Shl
	LShr
	AShr
	Eq
	Ne
	Lt // signed
	Le
	ULt
	ULe
	Select
	Fma
	Sqrt
	Floor
	Ceil
	Trunc
	Rint
	Abs
	SExt
	ZExt
	Narrow  // to an integer type of fewer bits
	Widen   // to a float type of more bits
	Round   // to a float type of fewer bits
	SToF    // signed integer to float
	UToF    // unsigned integer to float
	FToS    // float to signed integer, towards zero; the value must fit
	FToU    // float to unsigned integer, towards zero; the value must fit
	Bitcast // same size
	TF32    // the bits of a float32 that is rounded to tf32, to nearest, ties away from zero
	Pack    // two values of 16 bits to an I32, the first one lower

	// What follows has effects, or depends on them, and stays where it is built. Pack is the last one without: see Prune.

	Load       // Mem[Args[0] ... +Width-1]
	Store      // Mem[Args[0] ... ] = Args[1:]
	Barrier    // of all threads of the block
	Shuffle    // Args[0] of the lane whose number differs in the bits Int
	Mma        // a product of matrices by a warp, of numbers in the format Int: see Builder.Mma
	LoadMatrix // four of 8x8 numbers of 16 bits by a warp, transposed if Int is not 0: see Builder.LoadMatrix
	CopyAsync  // Int bytes from From[Args[1]] on to Mem[Args[0]] and on, some time: see Builder.CopyAsync
	CopyCommit // a group of the copies since the last one, of each thread for itself
	CopyWait   // until at most Int groups of the thread are not done
	For        // Args: from, to, step, initial values; Blocks[0]
	If         // Args[0]; Blocks
)

var opNames = [...]string{"const", "scalar", "result", "thread.x", "block.x", "block.y", "block.z", "add", "sub", "mul", "div", "rem", "udiv", "urem", "and", "or", "xor",
	"shl", "lshr", "ashr", "eq", "ne", "lt", "le", "ult", "ule", "select", "fma", "sqrt", "floor", "ceil", "trunc", "rint", "abs", "sext", "zext", "narrow", "widen", "round",
	"stof", "utof", "ftos", "ftou", "bitcast", "tf32", "pack", "load", "store", "barrier", "shuffle", "mma", "load.matrix", "copy.async", "copy.commit", "copy.wait", "for", "if"}

// String is the name of the operation.
func (o Op) String() string { return opNames[o] }

// Format is how the factors of an Mma are encoded.
type Format int64

// The formats.
const (
	Half     Format = iota // IEEE 754 binary16
	BFloat16               // the upper half of binary32
	Tensor32               // tf32: binary32 of which the last 13 bits do not count
	S8                     // int8
	S8U8                   // int8 by uint8
	U8S8                   // uint8 by int8
	U8                     // uint8
)

// String are the names that PTX has for the formats of the left and the right factor.
func (f Format) String() string {
	return [...]string{"f16.f16", "bf16.bf16", "tf32.tf32", "s8.s8", "s8.u8", "u8.s8", "u8.u8"}[f]
}

// PerWord is how many numbers a word of 32 bits has.
func (f Format) PerWord() int64 {
	switch {
	case f >= S8:
		return 4
	case f == Tensor32:
		return 1
	}
	return 2
}

// Sum is the type of the sums: I32 for integers, whose sums wrap, else F32.
func (f Format) Sum() Type {
	if f >= S8 {
		return I32
	}
	return F32
}

// Node is an operation and the value that it gives.
type Node struct {
	Op    Op
	Type  Type
	Args  []*Node
	Int   int64 // of Const, Result, Shuffle, Mma, LoadMatrix, CopyAsync, CopyWait; the number of a Scalar
	Float float64
	Mem   *Mem
	From  *Mem // what a CopyAsync reads
	Width int  // elements of a Load or Store, 1, 2 or 4
	Words bool // of a Load of bytes: what is read are Width words of 4 bytes
	// Blocks are the body of a For, whose first parameter is the counter, or the two sides of an If.
	Blocks []*Block

	block *Block // where it stands; nil for constants and scalars
}

// Value is a node that stands for what it gives.
type Value = *Node

// Block is a list of operations with parameters and results.
type Block struct {
	Nodes   []*Node
	Params  []*Node
	Results []*Node

	parent *Block
	depth  int
	known  map[key]*Node
}

// Mem is memory: a buffer that is a parameter, or shared memory of the block of threads.
type Mem struct {
	Name   string
	Elem   Type
	Shared bool
	Len    int // elements of shared memory
	// Writes says that the kernel stores to the buffer.
	Writes bool
	// Param is the number of the parameter of a buffer.
	Param int
}

// Param is a parameter: a buffer, or an i32 that the launch computes from Size.
type Param struct {
	Mem  *Mem
	Size sym.Expr
	node *Node
}

// Kernel is a function that a grid of blocks of threads runs.
type Kernel struct {
	Name    string
	Threads int // in a block
	// Resident is how many blocks an SM must have room for, which bounds the registers of a thread; 0 leaves that to the assembler.
	Resident int
	Params   []*Param
	Shared   []*Mem
	Body     *Block
}

// Factors is the format of what tensor cores multiply in a kernel, all of which is of one; nil if there is none.
func (k *Kernel) Factors() *Format { return k.Body.factors() }

func (b *Block) factors() *Format {
	for _, v := range b.Nodes {
		if v.Op == Mma {
			f := Format(v.Int)
			return &f
		}
		for _, in := range v.Blocks {
			if f := in.factors(); f != nil {
				return f
			}
		}
	}
	return nil
}

type key struct {
	op      Op
	t       Type
	n       int64
	a, b, c *Node
	m       *Mem
}
