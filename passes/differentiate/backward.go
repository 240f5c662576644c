package differentiate

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

const (
	backward     ssa.Kind = "aten::backward"
	gradOf       ssa.Kind = "prim::grad" // the attribute grad of a tensor
	requiresGrad ssa.Kind = "aten::requires_grad_"
)

// readings replaces x.grad, as it is read: the sum of what the calls of backward before give.
type readings struct {
	calls  []*ssa.Op                 // of backward
	leaves []*ssa.Value              // the tensors of which the attribute is read
	seen   map[*ssa.Value]*ssa.Value // gradients that were read, by their tensors
	found  map[leafOf]*ssa.Value     // what a call adds to the attribute of a tensor, nil for nothing
	failed map[*ssa.Op]*diag.Diagnostic
}

// place is where the user's program reads the attribute. PyTorch saves no place of that: it is the call of backward before then.
func (rs *readings) place(m *ssa.Module, o *ssa.Op) diag.Loc {
	file := m.Locs.Frame(o.Loc).File
	if m.Sources == nil || !slices.ContainsFunc(m.Sources(), func(s diag.Source) bool { return s.Saved && s.File == file }) {
		return o.Loc
	}
	line, _ := wayTo(o)
	for _, call := range slices.Backward(rs.calls) {
		if slices.Contains(line, call) {
			return call.Loc
		}
	}
	return o.Loc
}

// leafOf is a tensor and a call of backward.
type leafOf struct {
	call *ssa.Op
	leaf *ssa.Value
}

// read notes that o reads the attribute of a tensor.
func (rs *readings) read(o *ssa.Op) {
	if x := tensorOf(o.Operand(0)); !slices.Contains(rs.leaves, x) {
		rs.leaves = append(rs.leaves, x)
	}
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
	start := asksFor(line, x)
	if start < 0 || !isLeaf(x, line[:max(start, 0)]) {
		r.fail("x.grad is converted only if x is an input, is detached, or is computed from such tensors alone, and requires_grad_() was called for it before; use torch.autograd.grad")
	}
	if isHeld(x, line, start) {
		r.fail("a list, a tuple, a branch or a loop has the tensor before requires_grad_() is called for it, and is read behind that; use torch.autograd.grad")
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
		if g := rs.adds(call, x); g != nil && sum == nil {
			sum = g
		} else if g != nil {
			sum = r.op("add", sum, g)
		}
	}
	if sum == nil {
		r.fail("the attribute grad of a tensor is None here: no call of backward() before depends on the tensor")
	}
	rs.seen[x] = sum
	return sum
}

// asksFor is the place in a line where requires_grad_() is called for a tensor, -1 if there is none.
func asksFor(line way, x *ssa.Value) int {
	return slices.IndexFunc(line, func(p *ssa.Op) bool {
		yes, ok := ssa.Literal{}, false
		if p.Kind == requiresGrad && tensorOf(p.Result(0)) == x {
			yes, ok = aten.LiteralOf(p.Operand(1))
		}
		return ok && yes.Bool()
	})
}

// isHeld reports a tensor that operators in front of a place give on as it is, to some behind it. These would be left out: the tensor itself is followed.
func isHeld(x *ssa.Value, line way, start int) bool {
	held := map[*ssa.Value]bool{x: true}
	for _, p := range line[:start] {
		hold(p, held)
	}
	delete(held, x)
	return slices.ContainsFunc(line[start:], func(p *ssa.Op) bool { return reads(p, held) })
}

// hold marks the results of an operator that may be a marked value, or have it as an element.
func hold(o *ssa.Op, held map[*ssa.Value]bool) {
	some := (o.Kind.Namespace() == "prim" || o.Kind == "aten::__getitem__") && slices.ContainsFunc(o.Operands(), func(v *ssa.Value) bool { return held[v] })
	for _, b := range o.Blocks {
		for _, v := range b.Params {
			held[v] = some
		}
		for p := range b.Ops() {
			hold(p, held)
		}
		some = some || slices.ContainsFunc(b.Returns(), func(v *ssa.Value) bool { return held[v] })
	}
	for _, v := range o.Results {
		if some && differentiable(v.Type) {
			held[v] = true
		}
	}
}

// adds is the gradient by x that a call of backward adds to x.grad, in front of the call; nil if it adds none. All tensors that are read behind the call are
// differentiated by at once.
func (rs *readings) adds(call *ssa.Op, x *ssa.Value) *ssa.Value {
	if g, known := rs.found[leafOf{call, x}]; known {
		return g
	}
	if d := rs.failed[call]; d != nil {
		panic(d)
	}
	line, _ := wayTo(call)
	from := asksFor(line, x)
	by := []*ssa.Value{x}
	if len(rs.found) == 0 || !slices.ContainsFunc(rs.leaves, func(v *ssa.Value) bool { _, known := rs.found[leafOf{call, v}]; return known }) {
		from, by = together(line, rs.leaves, x)
	}
	defer func() {
		p := recover()
		if d, ok := p.(*diag.Diagnostic); ok {
			rs.failed[call] = d
		}
		if p != nil {
			panic(p)
		}
	}()
	for i, g := range backwardBy(call, line[from:], by) {
		rs.found[leafOf{call, by[i]}] = g
	}
	return rs.found[leafOf{call, x}]
}

// together are x and the leaves that can be followed with it along a line, and the place where that begins: no operator from there on reads one before
// requires_grad_() is called for it.
func together(line way, leaves []*ssa.Value, x *ssa.Value) (from int, by []*ssa.Value) {
	first := map[*ssa.Value]int{} // the first reader of a tensor
	for i, p := range line {
		if p.Kind == requiresGrad {
			continue
		}
		for v := range readBy(p) {
			if _, known := first[v]; !known {
				first[v] = i
			}
		}
	}
	fits := func(v *ssa.Value) bool {
		start := asksFor(line, v)
		read, isRead := first[v]
		return start >= 0 && (!isRead || read > start)
	}
	from = asksFor(line, x)
	if !fits(x) {
		return from, []*ssa.Value{x}
	}
	for _, v := range leaves {
		if fits(v) {
			from, by = min(from, asksFor(line, v)), append(by, v)
		}
	}
	return from, by
}

// backwardBy builds the gradients by tensors that a call of backward adds to their attributes. The tensors are followed along a line.
func backwardBy(call *ssa.Op, line way, by []*ssa.Value) []*ssa.Value {
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
	again, ok := aten.LiteralOf(call.Operand(3))
	grads := inner.gradientsBy(line, of, given, by)
	for i, g := range grads {
		if g == nil {
			continue
		}
		grads[i] = inner.op("clone", inner.like(g, by[i])) // x.grad has memory of its own
		if ok && !again.Bool() {
			grads[i] = inner.op("detach", grads[i])
		}
	}
	return grads
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
		if p.Kind != requiresGrad {
			continue
		}
		if yes, ok := aten.LiteralOf(p.Operand(1)); !ok || yes.Bool() {
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
		case d.Kind.Namespace() != "aten" && d.Kind != prim.ListConstruct && d.Kind != prim.TupleConstruct:
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
