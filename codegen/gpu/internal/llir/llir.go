// Package llir reads the parts of LLVM IR that the simulator and the PTX printer take alike.
package llir

import (
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
