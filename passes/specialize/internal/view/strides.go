package view

import (
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// The functions of this file are the Strides of rows.

func same(c *Call) []sym.Expr { return c.Strides }

// transposed permutes the strides as the arguments say. Operators without arguments all exchange two dims, and are not told apart for more.
func transposed(c *Call) []sym.Expr {
	switch n := len(c.Strides); {
	case len(c.Args) == 1 && n < 2:
		return c.Strides
	case len(c.Args) == 1 && n == 2:
		return []sym.Expr{c.Strides[1], c.Strides[0]}
	case c.Schema.Arg("dims") >= 0:
		return permuted(c)
	case c.Schema.Arg("source") >= 0:
		return movedStrides(c)
	}
	return exchanged(c)
}

func exchanged(c *Call) []sym.Expr {
	a, b, ok := c.exchanged(len(c.Strides))
	if !ok {
		return nil
	}
	out := slices.Clone(c.Strides)
	out[a], out[b] = out[b], out[a]
	return out
}

func permuted(c *Call) []sym.Expr {
	l, ok := py.LiteralOf(c.Arg("dims"))
	p, isList := l.IntList()
	if !ok || !isList || len(p) != len(c.Strides) {
		return nil
	}
	out := make([]sym.Expr, len(p))
	for i, d := range p {
		w, ok := wrapDim(d, len(p))
		if !ok {
			return nil
		}
		out[i] = c.Strides[w]
	}
	return out
}

func movedStrides(c *Call) []sym.Expr {
	from, ok := py.LiteralOf(c.Args[1])
	to, ok2 := py.LiteralOf(c.Args[2])
	if !ok || !ok2 {
		return nil
	}
	return layout.Moved(c.Strides, py.IntsOf(from), py.IntsOf(to))
}

func without(strides []sym.Expr, d int) []sym.Expr {
	return slices.Delete(slices.Clone(strides), d, d+1)
}

func withoutDim(c *Call) []sym.Expr {
	if d, ok := c.dim("dim", len(c.Strides)); ok {
		return without(c.Strides, d)
	}
	return nil
}

func sliced(c *Call) []sym.Expr { return stepped(c, "dim", slices.Clone(c.Strides)) }

// unfolded has a dim for the place in the window behind the others.
func unfolded(c *Call) []sym.Expr {
	d, ok := c.dim("dimension", len(c.Strides))
	if !ok {
		return nil
	}
	return stepped(c, "dimension", append(slices.Clone(c.Strides), c.Strides[d]))
}

// stepped multiplies the stride of the dim that an argument names by the argument step.
func stepped(c *Call, dim string, out []sym.Expr) []sym.Expr {
	d, ok := c.dim(dim, len(c.Strides))
	step, ok2 := c.int("step")
	if !ok || !ok2 {
		return nil
	}
	out[d] = out[d].Mul(sym.Const(step))
	return out
}

// diagonalStrides has the diagonal as the last dim: a step along it is one along both dims.
func diagonalStrides(c *Call) []sym.Expr {
	a, ok := c.dim("dim1", len(c.Strides))
	b, ok2 := c.dim("dim2", len(c.Strides))
	if !ok || !ok2 || a == b {
		return nil
	}
	out := without(without(c.Strides, max(a, b)), min(a, b))
	return append(out, c.Strides[a].Add(c.Strides[b]))
}

func asStrided(c *Call) []sym.Expr {
	l, ok := py.LiteralOf(c.Args[2])
	st, isList := l.IntList()
	if !ok || !isList {
		return nil
	}
	return ssa.Sizes(st)
}

func unsqueezed(c *Call) []sym.Expr {
	d, ok := c.dim("dim", len(c.Strides)+1)
	if !ok {
		return nil
	}
	n := sym.Const(1)
	if d < len(c.Strides) {
		n = c.Strides[d].Mul(c.Self.Dims[d])
	}
	return slices.Insert(slices.Clone(c.Strides), d, n)
}

func squeezed(c *Call) []sym.Expr {
	if c.Out == nil || !c.Out.Ranked {
		return nil
	}
	if len(c.Out.Dims) == len(c.Strides) {
		return c.Strides
	}
	if d, ok := c.dim("dim", len(c.Strides)); ok && len(c.Out.Dims) == len(c.Strides)-1 {
		return without(c.Strides, d)
	}
	var out []sym.Expr
	for i, d := range c.Self.Dims {
		if !d.Is(1) {
			out = append(out, c.Strides[i])
		}
	}
	if len(out) != len(c.Out.Dims) {
		return nil
	}
	return out
}

func reshaped(c *Call) []sym.Expr {
	out, _ := c.Axes.Reshape(c.Strides, c.Self, c.Out)
	return out
}

// expanded has a stride of 0 along the dims that repeat.
func expanded(c *Call) []sym.Expr {
	if c.Out == nil || !c.Out.Ranked {
		return nil
	}
	lead := len(c.Out.Dims) - len(c.Strides)
	out := make([]sym.Expr, len(c.Out.Dims))
	for i := max(lead, 0); i < len(out); i++ {
		if c.Self.Dims[i-lead].Equal(c.Out.Dims[i]) {
			out[i] = c.Strides[i-lead]
		}
	}
	return out
}
