package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// viewOf finds where the operand's element stands that a view shows at a point; nil for operators that are no views.
func viewOf(name string) func(p *point) []index.Expr {
	switch name {
	case "Identity":
		return func(p *point) []index.Expr { return p.coords }
	case "Dropout":
		return func(p *point) []index.Expr {
			if p.out > 0 || p.in(2) != nil {
				refuse("a mask, or training")
			}
			return p.coords
		}
	case "Reshape", "Flatten", "Squeeze", "Unsqueeze":
		return func(p *point) []index.Expr { return p.reshaped(shapeOf(p.in(0)), shapeOf(p.o.Results[0]), p.coords) }
	case "Transpose":
		return transposed
	case "Expand":
		return func(p *point) []index.Expr { return p.broadcast(p.in(0)) }
	case "Slice":
		return sliced
	case "Split":
		return splitted
	case "Tile":
		return func(p *point) []index.Expr {
			out := make([]index.Expr, len(p.coords))
			for i, n := range shapeOf(p.in(0)) {
				out[i] = p.space.Mod(p.coords[i], n)
			}
			return out
		}
	case "DepthToSpace", "SpaceToDepth":
		return depthSpace
	}
	return nil
}

// ReadsThrough reports an operator that is not computed element by element, but by kernels that find each element of its operands by an index, and thus read through views.
func ReadsThrough(k ssa.Kind) bool {
	switch Class(k) {
	case "gemm", "attention":
		return true
	}
	return AlongRows(k)
}

// AlongRows reports an operator that goes along rows, so that what it reads should be neighbours there: views that it reads through must keep rows.
func AlongRows(k ssa.Kind) bool {
	return Class(k) == "row" && (hasAttr(k, "axis") || hasAttr(k, "axes")) // the axes that make a row
}

func hasAttr(k ssa.Kind, name string) bool { return onnx.SchemaOf(k).Attr(name) != nil }

// KeepsRows reports a view in which neighbours along the last axis are neighbours in its operand, but for the ends of the operand's rows.
func KeepsRows(o *ssa.Op) bool {
	switch o.Kind {
	case "onnx::Transpose":
		return Pointwise(o)
	case "onnx::Expand", "onnx::Slice", "onnx::Split":
		return true
	}
	return KeepsOrder(o.Kind)
}

// reshaped are the coordinates in one shape of a point of another one with as many elements.
func (c *body) reshaped(from, to []sym.Expr, coords []index.Expr) []index.Expr {
	return c.space.Unravel(from, c.space.Linear(to, coords))
}

// permutation is the perm of a Transpose.
func (n node) permutation() []int {
	r := rank(n.in(0))
	perm := make([]int, r)
	for i := range perm {
		perm[i] = r - 1 - i
	}
	if n.has("perm") {
		for i, a := range n.ints("perm") {
			perm[i] = n.axis(a, r)
		}
	}
	return perm
}

func transposed(p *point) []index.Expr {
	out := make([]index.Expr, len(p.coords))
	for i, k := range p.permutation() {
		out[k] = p.coords[i]
	}
	return out
}

func sliced(p *point) []index.Expr {
	shape := shapeOf(p.in(0))
	starts := p.sizes(1)
	axes, steps := make([]int64, len(starts)), make([]int64, len(starts))
	for i := range starts {
		axes[i], steps[i] = int64(i), 1
	}
	if p.in(3) != nil {
		axes = p.consts(3)
	}
	if p.in(4) != nil {
		steps = p.consts(4)
	}
	out := append([]index.Expr(nil), p.coords...)
	zero := sym.Const(0)
	for i, start := range starts {
		k := p.axis(axes[i], len(shape))
		n := shape[k]
		from := start
		sign, known := start.Compare(zero)
		switch {
		case known && sign < 0:
			from = n.Add(start).Max(zero)
		case !start.AtLeast(zero): // it may count from the end
			b := p.b
			last := b.Size(n.Sub(sym.Const(1)))
			if steps[i] > 0 {
				last = b.Size(n)
			}
			at := b.Select(b.Lt(b.Size(start), b.I32(0)), b.Add(b.Size(start), b.Size(n)), b.Size(start))
			at = b.Select(b.Lt(at, b.I32(0)), b.I32(0), b.Select(b.Lt(last, at), last, at))
			out[k] = p.space.Add(p.space.Scale(out[k], sym.Const(steps[i])), p.dim(at, n.Add(sym.Const(1))))
			continue
		}
		if steps[i] < 0 {
			from = from.Minimum(n.Sub(sym.Const(1)))
		} else {
			from = from.Minimum(n)
		}
		out[k] = p.space.Add(p.space.Scale(out[k], sym.Const(steps[i])), index.Const(from))
	}
	return out
}

func splitted(p *point) []index.Expr {
	k := p.axis(p.int("axis"), len(p.coords))
	from := sym.Const(0)
	for _, r := range p.o.Results[:p.out] {
		from = from.Add(shapeOf(r)[k])
	}
	out := append([]index.Expr(nil), p.coords...)
	out[k] = p.space.Add(out[k], index.Const(from))
	return out
}

// depthSpace takes both operators as what they are: a Reshape to rank 6, a Transpose, and a Reshape back.
func depthSpace(p *point) []index.Expr {
	x, y := shapeOf(p.in(0)), shapeOf(p.o.Results[0])
	if len(x) != 4 {
		refuse("rank %d", len(x))
	}
	b := sym.Const(p.int("blocksize"))
	crd := p.str("mode") == "CRD"
	div := func(e sym.Expr) sym.Expr { return e.FloorDiv(b) }
	var inner []sym.Expr // the operand as rank 6
	var perm []int       // axis i of the transposed one is axis perm[i] of it
	if p.o.Kind.Name() == "SpaceToDepth" {
		inner = []sym.Expr{x[0], x[1], div(x[2]), b, div(x[3]), b}
		perm = []int{0, 3, 5, 1, 2, 4}
		if crd {
			perm = []int{0, 1, 3, 5, 2, 4}
		}
	} else if crd {
		inner = []sym.Expr{x[0], div(div(x[1])), b, b, x[2], x[3]}
		perm = []int{0, 1, 4, 2, 5, 3}
	} else {
		inner = []sym.Expr{x[0], b, b, div(div(x[1])), x[2], x[3]}
		perm = []int{0, 3, 4, 1, 5, 2}
	}
	turned := make([]sym.Expr, 6)
	for i, k := range perm {
		turned[i] = inner[k]
	}
	at := p.reshaped(turned, y, p.coords)
	back := make([]index.Expr, 6)
	for i, k := range perm {
		back[k] = at[i]
	}
	return p.reshaped(x, inner, back)
}
