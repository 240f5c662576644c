package differentiate

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

const (
	backward     ssa.Kind = "aten::backward"
	gradOf       ssa.Kind = "prim::grad" // the attribute grad of a tensor
	requiresGrad ssa.Kind = "aten::requires_grad_"
)

// readings replaces x.grad, as it is read: the sum of what the calls of backward before give.
type readings struct {
	calls []*ssa.Op                 // of backward
	seen  map[*ssa.Value]*ssa.Value // gradients that were read, by their tensors
}

// value builds the gradient that o reads.
func (rs *readings) value(r *reverser, o *ssa.Op) *ssa.Value {
	x := tensorOf(o.Operand(0))
	line, loop := wayTo(o)
	if loop != nil {
		r.fail("the attribute grad of a tensor is read in a loop; use torch.autograd.grad")
	}
	if g := rs.seen[x]; g != nil && slices.Contains(line, g.Def()) {
		return g // the same tensor
	} else if g != nil {
		r.fail("the attribute grad of a tensor is read in a branch, and again behind it; read it once, or use torch.autograd.grad")
	}
	start := slices.IndexFunc(line, func(p *ssa.Op) bool {
		yes, ok := ssa.Literal{}, false
		if p.Kind == requiresGrad && tensorOf(p.Result(0)) == x {
			yes, ok = aten.LiteralOf(p.Operand(1))
		}
		return ok && yes.Bool()
	})
	if start < 0 || !isLeaf(x, line[:max(start, 0)]) {
		r.fail("x.grad is converted only if x is an input, is detached, or is computed from such tensors alone, and requires_grad_() was called for it before; use torch.autograd.grad")
	}
	for p := range o.Block().Func().Body.AllOps() {
		if p.Kind != requiresGrad || tensorOf(p.Result(0)) != x || slices.Contains(line[:start], p) {
			continue
		}
		if yes, ok := aten.LiteralOf(p.Operand(1)); !ok || !yes.Bool() {
			r.fail("requires_grad_() is called again for the tensor, with False or with a value that the run decides; use torch.autograd.grad")
		}
	}
	var sum *ssa.Value
	for _, call := range rs.calls {
		if at := slices.Index(line, call); at >= 0 && at < start {
			continue
		} else if at < 0 {
			r.fail("backward() is called in a branch or loop, or again after the attribute grad was read; use torch.autograd.grad")
		}
		if g := r.backward(call, x, line[start]); g != nil && sum == nil {
			sum = g
		} else if g != nil {
			sum = r.op("add", sum, g)
		}
	}
	if sum == nil {
		r.fail("the attribute grad of a tensor is None here: no call of backward() before depends on the tensor")
	}
	if rs.seen == nil {
		rs.seen = map[*ssa.Value]*ssa.Value{}
	}
	rs.seen[x] = sum
	return sum
}

// backward builds the gradient by x that a call of backward adds to x.grad, in front of the call; nil if it adds none. The tensor is followed from the
// operator start on.
func (r *reverser) backward(call *ssa.Op, x *ssa.Value, start *ssa.Op) *ssa.Value {
	inner := &reverser{at: call, block: call.Block(), loc: call.Loc, asks: backward}
	of, isList := aten.ListElems(call.Operand(0))
	given, hasGiven := aten.ListElems(call.Operand(1))
	if !isList {
		of = []*ssa.Value{call.Operand(0)}
		if lit, ok := aten.LiteralOf(call.Operand(1)); !ok || !lit.IsNone() {
			given, hasGiven = []*ssa.Value{call.Operand(1)}, true
		}
	} else if lit, ok := aten.LiteralOf(call.Operand(1)); !hasGiven && !(ok && lit.IsNone()) {
		inner.fail("grad_tensors of backward must be None or written as a list")
	}
	if hasGiven && len(given) != len(of) {
		inner.fail("grad_tensors of backward must have a tensor for each output")
	}
	line, _ := wayTo(call)
	line = line[slices.Index(line, start):]
	g := inner.gradientsBy(line, of, given, []*ssa.Value{x})[0]
	if g == nil {
		return nil
	}
	g = inner.op("clone", inner.like(g, x)) // x.grad has memory of its own
	if again, ok := aten.LiteralOf(call.Operand(3)); ok && !again.Bool() {
		g = inner.op("detach", g)
	}
	return g
}

// tensorOf is the tensor that requires_grad_ gives back.
func tensorOf(v *ssa.Value) *ssa.Value {
	for v.Def() != nil && v.Def().Kind == requiresGrad {
		v = v.Def().Operand(0)
	}
	return v
}

// isLeaf reports that a tensor has no gradient to hand on, whatever the weights are: it is an input, detached, or made of such, none of which asked for
// a gradient in the operators before.
func isLeaf(v *ssa.Value, before []*ssa.Op) bool {
	asked, seen := map[*ssa.Value]bool{}, map[*ssa.Value]bool{} // seen are leaves: one that is none ends the search
	for _, p := range before {
		if p.Kind == requiresGrad {
			asked[tensorOf(p.Result(0))] = true
		}
	}
	var is func(v *ssa.Value) bool
	is = func(v *ssa.Value) bool {
		d := v.Def()
		switch {
		case seen[v]:
			return true
		case asked[v]:
			return false
		case d == nil:
			return v.Block().Owner() == nil
		case d.Kind == "aten::detach":
			return true
		case d.Kind.Namespace() != "aten":
			return false
		}
		for _, o := range d.Operands() {
			if differentiable(o.Type) && !is(tensorOf(o)) {
				return false
			}
		}
		seen[v] = true
		return true
	}
	return is(v)
}
