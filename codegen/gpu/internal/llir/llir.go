// Package llir reads the parts of LLVM IR that the simulator and the PTX printer take alike.
//
// What github.com/llir/llvm lacks for kernels, and should get: a table of the nvvm intrinsics with their types (Mma is the part that kernels use), and a
// type of bfloat16, which LLVM's intrinsics for tensor cores take as words.
package llir

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
)

// VectorIndex is a constant index into a vector of n elements.
func VectorIndex(index value.Value, n int) (int, bool) {
	c, ok := index.(*constant.Int)
	if !ok || !c.X.IsInt64() || c.X.Int64() < 0 || c.X.Int64() >= int64(n) {
		return 0, false
	}
	return int(c.X.Int64()), true
}

// Indices are the operands of a constant getelementptr.
func Indices(c *constant.ExprGetElementPtr) []value.Value {
	out := make([]value.Value, len(c.Indices))
	for i, x := range c.Indices {
		out[i] = x
		if in, ok := x.(*constant.Index); ok {
			out[i] = in.Constant
		}
	}
	return out
}

// Elem is the type that an index leads to from an array or vector; nil for other types.
func Elem(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.ArrayType:
		return t.ElemType
	case *types.VectorType:
		return t.ElemType
	}
	return nil
}

// TF32 is the intrinsic that rounds a float to tf32, and TF32Instruction that of PTX.
const (
	TF32            = "llvm.nvvm.f2tf32.rna"
	TF32Instruction = "cvt.rna.tf32.f32"
)

// MmaKind is a product of matrices by a warp: of the shape m16n8k<K>, by rows of the left factor and columns of the right one.
type MmaKind struct {
	Intrinsic string
	// A and B are the formats of the factors as PTX names them.
	A, B string
	// PerWord is how many numbers of a factor a word of 32 bits has.
	PerWord int
}

// mmas are the kinds that kernels use, with LLVM's names of them.
var mmas = []*MmaKind{
	{"llvm.nvvm.mma.m16n8k16.row.col.f32.f32", "f16", "f16", 2},
	{"llvm.nvvm.mma.m16n8k16.row.col.bf16", "bf16", "bf16", 2},
	{"llvm.nvvm.mma.m16n8k8.row.col.tf32", "tf32", "tf32", 1},
	{"llvm.nvvm.mma.m16n8k32.row.col.s8", "s8", "s8", 4},
	{"llvm.nvvm.mma.m16n8k32.row.col.s8.u8", "s8", "u8", 4},
	{"llvm.nvvm.mma.m16n8k32.row.col.u8.s8", "u8", "s8", 4},
	{"llvm.nvvm.mma.m16n8k32.row.col.u8", "u8", "u8", 4},
}

func mma(is func(k *MmaKind) bool) *MmaKind {
	for _, k := range mmas {
		if is(k) {
			return k
		}
	}
	return nil
}

// Mma is the kind that an intrinsic computes, nil if it is none.
func Mma(intrinsic string) *MmaKind {
	return mma(func(k *MmaKind) bool { return k.Intrinsic == intrinsic })
}

// MmaOf is the kind of factors of these formats, as "u8.s8"; nil if there is none.
func MmaOf(formats string) *MmaKind {
	return mma(func(k *MmaKind) bool { return k.A+"."+k.B == formats })
}

// MmaInstruction is the kind of an instruction of PTX, nil if it is none.
func MmaInstruction(name string) *MmaKind {
	return mma(func(k *MmaKind) bool { return k.Instruction() == name })
}

// Integer reports products of integers, whose sums are s32 and wrap; those of others are f32.
func (k *MmaKind) Integer() bool { return k.PerWord == 4 }

// K is how many products an element sums.
func (k *MmaKind) K() int { return 8 * k.PerWord }

// Instruction is the name that PTX has.
func (k *MmaKind) Instruction() string {
	sum := "f32"
	if k.Integer() {
		sum = "s32"
	}
	return fmt.Sprintf("mma.sync.aligned.m16n8k%d.row.col.%s.%s.%s.%s", k.K(), sum, k.A, k.B, sum)
}

// MmaOperands are the operands of an Mma: 4 words of the left factor, 2 of the right one, 4 sums.
const MmaOperands = 10

// LoadedMatrices reports an intrinsic that reads four matrices of 8x8 numbers of 16 bits from shared memory, and whether it transposes them.
func LoadedMatrices(intrinsic string) (transposed, ok bool) {
	switch intrinsic {
	case "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3i16":
		return false, true
	case "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3i16":
		return true, true
	}
	return false, false
}

// The copies from global to shared memory that a thread does not wait for: what makes a group of them, and what waits for groups.
const (
	CopyCommit = "llvm.nvvm.cp.async.commit.group"
	CopyWait   = "llvm.nvvm.cp.async.wait.group"
)

// Copied is what an intrinsic of the family llvm.nvvm.cp.async copies, in bytes, by way of a cache that is "ca" or "cg".
func Copied(intrinsic string) (cache string, bytes int, ok bool) {
	rest, ok := strings.CutPrefix(intrinsic, "llvm.nvvm.cp.async.")
	cache, size, both := strings.Cut(rest, ".shared.global.")
	n, err := strconv.Atoi(size)
	return cache, n, ok && both && err == nil && CopyFits(cache, n)
}

// CopyFits reports that PTX has copies of so many bytes by way of a cache.
func CopyFits(cache string, bytes int) bool {
	return bytes == 16 && cache == "cg" || (bytes == 4 || bytes == 8 || bytes == 16) && cache == "ca"
}

// Pair reports a vector of two halves, which is a word of an Mma.
func Pair(t types.Type) bool {
	v, ok := t.(*types.VectorType)
	return ok && v.Len == 2 && v.ElemType.Equal(types.Half)
}
