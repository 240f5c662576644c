package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/rewrite"
)

// RewriteConfig makes rewrite rules create operators as a Builder does: their types are inferred, and what has constant
// operands is computed if it has at most foldLimit elements. A rule whose operators do not fit their operands is
// abandoned. Constants, for "!" in patterns, are those with data.
func RewriteConfig(foldLimit int64) rewrite.Config {
	return rewrite.Config{
		Create: func(before *ssa.Op, loc diag.Loc, kind ssa.Kind, results int, operands []*ssa.Value, attrs []ssa.Attr) (vs []*ssa.Value, err error) {
			err = Build(func() {
				b := Builder{Block: before.Block(), Before: before, Loc: loc, FoldLimit: foldLimit}
				vs = b.Create(kind, results, operands, attrs...)
			})
			return vs, err
		},
		IsConst: func(v *ssa.Value) bool {
			t := ConstOf(v)
			return t != nil && t.HasData()
		},
		Try: Build,
	}
}
