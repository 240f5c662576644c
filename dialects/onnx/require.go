package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Require receives a pair of sizes that an op of block b demands to be equal and that are not known to be: at least one
// is symbolic. With broadcast, one of them may also be 1.
type Require func(b *ssa.Block, x, y sym.Expr, broadcast bool)

// Same demands that two sizes are equal.
func (b *Builder) Same(x, y sym.Expr) { b.Require.pair(b.Block, x, y, false) }

func (r Require) pair(b *ssa.Block, x, y sym.Expr, broadcast bool) {
	if r == nil || x.IsConst() && y.IsConst() || x.Equal(y) || broadcast && (x.Is(1) || y.Is(1)) {
		return
	}
	r(b, x, y, broadcast)
}

// same is what an op demands of two sizes that are not both known.
func (c *infer) same(x, y sym.Expr) { c.require.pair(c.o.Block(), x, y, false) }
