package view

import (
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// The functions of this file are the Places of rows: how many elements behind
// the first one of its base the first element of a view is.

func begins(*Call) (sym.Expr, bool) { return sym.Const(0), true }

// known is an argument that is a known int, none where it is None or not there.
func (c *Call) known(name string, none int64) (int64, bool) {
	l, ok := py.LiteralOf(c.Arg(name))
	if ok && l.IsNone() {
		return none, true
	}
	return l.Int(), ok && l.Kind == ssa.IntLit
}

// along gives the dim that an operator goes along, and its size.
func (c *Call) along() (d int, size sym.Expr, ok bool) {
	dim, ok := c.known("dim", 0)
	if !ok || c.Self == nil || len(c.Strides) != len(c.Self.Dims) {
		return 0, size, false
	}
	d, ok = wrapDim(dim, len(c.Self.Dims))
	if !ok {
		return 0, size, false
	}
	return d, c.Self.Dims[d], true
}

// behind gives the place of the element that is n behind the first one along the operator's dim.
func (c *Call) behind(n sym.Expr) (sym.Expr, bool) {
	if n.Is(0) {
		return n, true
	}
	d, _, ok := c.along()
	if !ok {
		return n, false
	}
	return n.Mul(c.Strides[d]), true
}

// partPlace is of operators that begin at an index along a dim.
func partPlace(arg string) func(c *Call) (sym.Expr, bool) {
	return func(c *Call) (sym.Expr, bool) {
		_, size, ok := c.along()
		from, ok2 := c.known(arg, 0)
		if !ok || !ok2 {
			return size, false
		}
		if c.Kind == "aten::slice" && size.Min() < max(from, -from) { // it would begin elsewhere, where the others raise
			return size, false
		}
		if from < 0 {
			return c.behind(size.Add(sym.Const(from)))
		}
		return c.behind(sym.Const(from))
	}
}

func unbindPlace(c *Call) (sym.Expr, bool) { return c.behind(sym.Const(int64(c.Index))) }

func splitPlace(c *Call) (sym.Expr, bool) {
	per, ok := c.known("split_size", 0)
	if !ok || c.Schema.Overload != "Tensor" {
		return sym.Expr{}, false
	}
	return c.behind(sym.Const(per * int64(c.Index)))
}

func sizesPlace(c *Call) (sym.Expr, bool) {
	l, ok := py.LiteralOf(c.Arg("split_sizes"))
	sizes, isList := l.IntList()
	if !ok || !isList || c.Index > len(sizes) {
		return sym.Expr{}, false
	}
	sum := int64(0)
	for _, k := range sizes[:c.Index] {
		sum += k
	}
	return c.behind(sym.Const(sum))
}

func chunkPlace(c *Call) (sym.Expr, bool) {
	if c.Index == 0 {
		return sym.Const(0), true
	}
	_, size, ok := c.along()
	chunks, ok2 := c.known("chunks", 1)
	n, ok3 := size.Int()
	if !ok || !ok2 || !ok3 || chunks <= 0 {
		return size, false
	}
	return c.behind(sym.Const((n + chunks - 1) / chunks * int64(c.Index)))
}

// diagonalPlace knows the main diagonal only.
func diagonalPlace(c *Call) (sym.Expr, bool) {
	off, ok := c.known("offset", 0)
	return sym.Const(0), ok && off == 0
}
