// Package differentiate is the pass that writes the gradients that a program asks for into the program.
package differentiate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

const grad ssa.Kind = "aten::grad"

// arity is how many operands and results the operators have that the pass reads by their places.
var arity = map[ssa.Kind]struct{ operands, results int }{grad: {6, 1}, backward: {4, 0}, gradOf: {1, 1}, requiresGrad: {2, 1}}

// Kinds are the operators that the pass removes.
func Kinds() []ssa.Kind { return []ssa.Kind{grad, backward, gradOf} }

// Pass replaces torch.autograd.grad, and x.grad after backward(), by the operators that compute the gradients: reverse mode, from the outputs back to the inputs, by the rules in
// the rows of package aten (tools/autograd/derivatives.yaml of PyTorch has the same for all of its operators).
//
// It runs on the program as it was written, where two tensors are one only if the program says so: a copy or a detached tensor has a gradient of its
// own. What it writes are operators of PyTorch that read sizes as they run, so that specialize resolves them as it does the rest of the program. A
// branch is differentiated as a branch, which computes again what its gradient needs. Refused are loops, writes and torch.no_grad on the way, and operators
// without a rule.
//
// A rule is "operand: formula", with ";" between operands. "a | b" takes the first formula whose names the overload has. "[ord=2]" in front limits the rule to
// calls in which the argument has that value. A formula may name the arguments, grad and result (result0, grads, ... of several), and call operators of PyTorch.
var Pass = passes.Pass{
	Name:  "differentiate",
	Takes: []passes.State{passes.Frozen},
	Doc:   "write the gradients that a program asks for into the program",
	Before: `
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %0 : int = prim::Constant[value=0]()
  %y : Tensor = aten::exp(%x)
  %s : Tensor = aten::sum(%y, %none)
  %of : Tensor[] = prim::ListConstruct(%s)
  %by : Tensor[] = prim::ListConstruct(%x)
  %all : Tensor?[] = aten::grad(%of, %by, %none, %none, %no, %no)
  %g : Tensor? = aten::__getitem__(%all, %0)
  return (%g)`,
	After: `
graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %0 : int = prim::Constant[value=0]()
  %y : Tensor = aten::exp(%x)
  %s : Tensor = aten::sum(%y, %none)
  %of : Tensor[] = prim::ListConstruct(%s)
  %by : Tensor[] = prim::ListConstruct(%x)
  %1 : int[] = prim::ListConstruct()
  %2 : Tensor = aten::reshape(%s, %1)
  %3 : NoneType = prim::Constant()
  %4 : Tensor = aten::ones_like(%2, %3, %3, %3, %3, %3)
  %5 : int[] = aten::size(%s)
  %6 : Tensor = aten::reshape(%4, %5)
  %7 : int[] = aten::size(%y)
  %8 : bool = prim::Constant[value=0]()
  %9 : Tensor = aten::expand(%6, %7, %8)
  %10 : Tensor = aten::mul(%9, %y)
  %11 : str = prim::Constant[value="a gradient through complex numbers cannot be converted"]()
  %12 : bool = aten::is_complex(%10)
  %13 : Tensor = prim::If(%12)
    block0():
       = prim::RaiseException(%11, %3)
      -> (%10)
    block1():
      %14 : Tensor = aten::type_as(%10, %x)
      -> (%14)
  %15 : Tensor?[] = prim::ListConstruct(%13)
  %g : Tensor? = aten::__getitem__(%15, %0)
  return (%g)`,
	Run: passes.EachFunc(run),
}

func run(c *passes.Context, f *ssa.Func) error {
	var asked []*ssa.Op
	read := readings{seen: map[*ssa.Value]*ssa.Value{}, found: map[leafOf]*ssa.Value{}, failed: map[*ssa.Op]*diag.Diagnostic{}}
	for o := range f.Body.AllOps() {
		if n, is := arity[o.Kind]; is && (o.NumOperands() != n.operands || len(o.Results) != n.results || slices.Contains(o.Operands(), nil)) {
			c.Report(diag.Diagnostic{ID: "invalid-args", Loc: o.Loc, Op: string(o.Kind), Message: fmt.Sprintf("the number of operands is %d and that of results %d; they must be %d and %d", o.NumOperands(), len(o.Results), n.operands, n.results)})
			return c.Diags.Err()
		}
		switch o.Kind {
		case grad, gradOf:
			if asked = append(asked, o); o.Kind == gradOf {
				read.read(o)
			}
		case backward:
			read.calls = append(read.calls, o)
		}
	}
	if len(asked)+len(read.calls) == 0 {
		return nil
	}
	aten.BindSchemas(c.Module) // graph text does not name overloads
	for o := range f.Body.AllOps() {
		switch {
		case o.Kind == "prim::CreateObject" && strings.Contains(o.Result(0).Type.String(), "torch.autograd.grad_mode"), o.Kind == "aten::set_grad_enabled":
			c.Report(diag.Diagnostic{ID: "gradient", Loc: o.Loc, Op: string(grad), Message: "a program that switches gradients off in one part and asks for gradients in another cannot be converted", Hint: "use detach() for what has no gradient"})
			return c.Diags.Err()
		}
	}
	reported := map[*diag.Diagnostic]bool{}
	for _, o := range asked { // in the order of the program: a gradient may be part of the way of the next one
		r := &reverser{at: o, block: o.Block(), loc: o.Loc, asks: o.Kind}
		v, failure := r.result(o, &read)
		if failure != nil {
			if !reported[failure] {
				if o.Kind == gradOf && failure.Loc == o.Loc {
					failure.Loc = read.place(c.Module, o)
				}
				c.Report(*failure)
			}
			reported[failure] = true
			continue
		}
		o.Replace(v)
		c.Changed("gradient")
	}
	for _, o := range read.calls { // nothing is left that reads what it sets
		o.Erase()
		c.Changed("gradient")
	}
	return c.Diags.Err()
}

// way is a straight line of operators that are all evaluated before a place of the program, in order.
type way []*ssa.Op

// wayTo is what is evaluated before an operator, in its block and in those around it. A block of a loop ends it: what is outside is evaluated once, and the block often.
func wayTo(o *ssa.Op) (w way, inLoop *ssa.Op) {
	var blocks []way
	for at := o; at != nil; at = at.Block().Owner() {
		if at.Kind == prim.Loop {
			inLoop = at
			break
		}
		var line way
		for p := range at.Block().Ops() {
			if p == at {
				break
			}
			line = append(line, p)
		}
		blocks = append(blocks, line)
	}
	slices.Reverse(blocks)
	return slices.Concat(blocks...), inLoop
}

// result builds what an operator that asks for gradients returns, in front of it.
func (r *reverser) result(o *ssa.Op, read *readings) (v *ssa.Value, failure *diag.Diagnostic) {
	defer func() {
		if p := recover(); p != nil {
			d, ok := p.(*diag.Diagnostic)
			if !ok {
				panic(p)
			}
			failure = d
		}
	}()
	if o.Kind == gradOf {
		return read.value(r, o), nil
	}
	list := o.Block().InsertBefore(o, prim.ListConstruct, o.Loc, r.gradients(o), o.Result(0).Type)
	return list.Result(0), nil
}

// gradients builds the elements of what aten::grad returns.
func (r *reverser) gradients(o *ssa.Op) (out []*ssa.Value) {
	of, ok1 := aten.ListElems(o.Operand(0))
	by, ok2 := aten.ListElems(o.Operand(1))
	if !ok1 || !ok2 {
		r.fail("the tensors of torch.autograd.grad must be written as lists in its call")
	}
	given, ok := aten.ListElems(o.Operand(2))
	if lit, isConst := aten.LiteralOf(o.Operand(2)); !ok && !(isConst && lit.IsNone()) || ok && len(given) != len(of) {
		r.fail("grad_outputs must be None or a list with a tensor for each output")
	}
	unused, ok := aten.LiteralOf(o.Operand(5))
	if !ok {
		r.fail("allow_unused must be known at export")
	}
	line, loop := wayTo(o)
	for _, v := range by {
		if loop != nil && !inside(v, loop) {
			r.fail("a gradient that is asked for in a loop, by a tensor from outside of the loop, cannot be converted")
		}
	}
	for i, g := range r.gradientsBy(line, of, given, by) {
		v := by[i]
		switch {
		case g != nil:
			g = r.like(g, v)
		case unused.Bool():
			g = r.constant(ssa.Literal{})
		default:
			r.fail("the outputs do not depend on tensor %d of those that torch.autograd.grad differentiates by; PyTorch raises, or gives None with allow_unused=True", i)
		}
		out = append(out, g)
	}
	return out
}

// gradientsBy builds the gradients of outputs of a line by tensors, nil for one that no output depends on. Those of the outputs are given, or 1.
func (r *reverser) gradientsBy(line way, of, given, by []*ssa.Value) []*ssa.Value {
	active := map[*ssa.Value]bool{}
	for _, v := range by {
		active[v] = true
	}
	seeds := map[*ssa.Value]*ssa.Value{}
	for i, v := range of {
		isNone := given == nil
		if given != nil {
			lit, isConst := aten.LiteralOf(given[i])
			isNone = isConst && lit.IsNone()
		}
		if isNone {
			r.add(seeds, v, r.one(v))
			continue
		}
		r.add(seeds, v, r.like(r.op("sum_to_size", given[i], r.op("size", v)), v)) // a script takes one that the output can be expanded to
	}
	follow(line, active)
	r.back(line, active, seeds)
	out := make([]*ssa.Value, len(by))
	for i, v := range by {
		out[i] = seeds[v]
	}
	return out
}

// inside reports whether a value is defined in a block of an operator.
func inside(v *ssa.Value, o *ssa.Op) bool {
	return slices.ContainsFunc(o.Blocks, func(b *ssa.Block) bool { return b.Encloses(v.Block()) })
}

// one is the gradient of an output by itself, which has one element.
func (r *reverser) one(v *ssa.Value) *ssa.Value {
	scalar := r.op("reshape", v, r.list())
	return r.op("reshape", r.op("ones_like", scalar), r.op("size", v))
}

func (r *reverser) fail(format string, args ...any) {
	panic(&diag.Diagnostic{ID: "gradient", Loc: r.loc, Op: string(r.asks), Message: fmt.Sprintf(format, args...)})
}
