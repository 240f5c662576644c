// Package isa is the instruction set of PTX, as far as kernels use it: one table, in which a row has an instruction's mnemonic, its operands, what it
// computes, and what it counts as. Package ptx takes mnemonics from it, package sim runs what it says, package cost counts by it.
//
// Arithmetic is the device's: fma is rounded once, float32 NaN results are the canonical 0x7fffffff, min and max order -0 before +0 and prefer numbers to
// NaN, shifts clamp, conversions to integers saturate and turn NaN into 0. Operations run on 8 threads at a time where the processor has AVX2
// (vector_amd64.s), and in Go's loops elsewhere, with the same bits.
package isa

import (
	"strings"

	"github.com/aton-project/aton/codegen/gpu/kir"
)

// Type is a type of PTX.
type Type string

// Width is the size in bytes, 1 for a predicate, 0 if there is no such type.
func (t Type) Width() int {
	switch t {
	case "pred", "b8", "s8", "u8":
		return 1
	case "b16", "s16", "u16", "f16", "bf16":
		return 2
	case "b32", "s32", "u32", "f32":
		return 4
	case "b64", "s64", "u64", "f64":
		return 8
	}
	return 0
}

// IsFloat reports a type whose arithmetic is known: f16, f32 or f64.
func (t Type) IsFloat() bool { return t == "f16" || t == "f32" || t == "f64" }

// IsSigned reports a signed integer.
func (t Type) IsSigned() bool { return t != "" && t[0] == 's' }

// Class is what an instruction counts as.
type Class uint8

// The classes. Other is moves, selects, comparisons, conversions and branches.
const (
	Other Class = iota
	Integer
	Float
	Fma
	GlobalMemory
	SharedMemory
	Warp   // shuffles and votes
	Matrix // products of matrices by a warp
	Classes
)

var classNames = [Classes]string{"other", "integer", "float", "fma", "global", "shared", "warp", "matrix"}

// String is the name of the class.
func (c Class) String() string { return classNames[c] }

// Kind says how an instruction is executed.
type Kind uint8

// The kinds. A row of kind Compute has all that there is to know in Do; what others do to memory, to the flow of control and to other threads is package sim's.
const (
	Compute Kind = iota
	Move         // between registers, also in parts
	ToGeneric
	FromGeneric
	Load
	Store
	Atomic
	AsyncCopy
	AsyncCommit
	AsyncWait
	Branch
	Return
	Trap
	Barrier
	Shuffle
	Ballot
	MatrixProduct
	LoadMatrix
)

// Row is an instruction.
type Row struct {
	// Name is the mnemonic with its types, as "mad.wide.s32". A row of a kind that accesses memory is named without modifiers, which Mods lists.
	Name string
	Kind Kind
	// D are the bytes of the result's register, Args those of the operands.
	D    int
	Args []int
	Do   Do
	// Divide, if not nil, does the same by a last operand that is a constant of more than 1, of which Op.Imm is Reciprocal.
	Divide Do
	Class  Class
	Flops  int
	// Type is that of the operands; To, of a conversion, that of the result. Registers of conversions may be wider than their types.
	Type, To Type
	// Rough says that no document fixes the bits of the result.
	Rough bool
	// Mods are the modifiers that may follow the name and change nothing here, as hints for caches.
	Mods []string
	// Factors is the format of a product of matrices, Transposed says how matrices are read.
	Factors    kir.Format
	Transposed bool
}

// Find is the row of a mnemonic as it stands in a program, nil if it is not known.
func Find(name string) *Row {
	if r := table().byName[name]; r != nil {
		return r
	}
	base, _, _ := strings.Cut(name, ".")
	if r := table().byName[base]; r != nil && r.Mods != nil {
		return r
	}
	return nil
}

// Of is the row that computes an operation of kernels on operands of a type, nil if no single one does.
func Of(op kir.Op, t kir.Type) *Row { return table().byOp[operation{op, t}] }

// Rows are all rows, in the order of the table.
func Rows() []*Row { return table().rows }

type operation struct {
	op kir.Op
	t  kir.Type
}

type index struct {
	rows   []*Row
	byName map[string]*Row
	byOp   map[operation]*Row
}

// add enters a row, under other names too.
func (x *index) add(r *Row, others ...string) {
	x.rows = append(x.rows, r)
	for _, name := range append(others, r.Name) {
		if x.byName[name] != nil {
			panic("isa: two rows of " + name) // the table is at fault
		}
		x.byName[name] = r
	}
}

// kirType is the type of kernels that a type of PTX is printed for, None if there is none.
func kirType(t Type) kir.Type {
	switch t {
	case "pred":
		return kir.I1
	case "b16", "s16", "u16":
		return kir.I16
	case "b32", "s32", "u32":
		return kir.I32
	case "b64", "s64", "u64":
		return kir.I64
	case "f16":
		return kir.F16
	case "f32":
		return kir.F32
	case "f64":
		return kir.F64
	}
	return kir.None
}

// Product is the row of a product of matrices by a warp, of factors of a format.
func Product(f kir.Format) *Row {
	return first(func(r *Row) bool { return r.Kind == MatrixProduct && r.Factors == f })
}

// Matrices is the row that reads four matrices by a warp.
func Matrices(transposed bool) *Row {
	return first(func(r *Row) bool { return r.Kind == LoadMatrix && r.Transposed == transposed })
}

func first(is func(r *Row) bool) *Row {
	for _, r := range table().rows {
		if is(r) {
			return r
		}
	}
	return nil
}
