// Package llir reads the parts of LLVM IR that the simulator and the PTX printer take alike.
//
// What github.com/llir/llvm lacks for kernels, and should get: a table of the nvvm intrinsics with their types (Mma is the part that kernels use), and a
// type of bfloat16, which LLVM's intrinsics for tensor cores take as words.
package llir

import (
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

// Mma is what an intrinsic of the family llvm.nvvm.mma multiplies: the format of its factors as PTX names it, "f16" or "bf16", of the shape m16n8k16 with sums of
// float32.
func Mma(intrinsic string) (format string, ok bool) {
	switch intrinsic {
	case "llvm.nvvm.mma.m16n8k16.row.col.f32.f32":
		return "f16", true
	case "llvm.nvvm.mma.m16n8k16.row.col.bf16":
		return "bf16", true
	}
	return "", false
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
