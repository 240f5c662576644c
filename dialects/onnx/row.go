package onnx

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// row is all that the compiler knows of an operator besides the schemas: one row an operator, in the table of its family
// (elementwiseRows, shapeRows ...). A test insists that every operator of the newest opset has one and that whatever is
// missing from it has a reason.
type row struct {
	// infer sets the types of the results, and what is known of small integer tensors.
	infer func(c *infer)
	// limits checks what the operator demands of its operands besides what infer needs.
	limits func(c *infer)
	traits trait
	// class says in which other types the operator computes the same.
	class Class
	// carries are the operands whose elements become those of the results unchanged; nil for operators that compute.
	carries func(o *ssa.Op) []int
	// weighs are the axes of the first operand, of a rank, along which the operator has a number for each element: weights, or a window over channels.
	weighs func(o *ssa.Op, rank int) []int
	// expr computes an element from those of the operands at the same place. The kernel, the kernel of a GPU, steps down
	// (expressed) and other (byExpression) are made of it.
	expr *Expr
	// spelled is the first opset for which the operator is looked for in programs that spell it out (Formulas); 0: it is not.
	spelled int
	// down are the steps to older encodings, newest first. An operator without steps has had one encoding since it exists.
	down []Step
	// up are the steps from older encodings, oldest first. What only widened the element types needs none.
	up []Rise
	// other is another way to compute, for elements of a type that the target has no kernel for: see [TypeFallback].
	other func(d *Downgrade, t tensor.DType) bool
	// named is the number of leading outputs that a file must name even where nothing uses them; nil stands for 0.
	named func(o *ssa.Op) int
	// off is how far a GPU may be off: see [Error].
	off Error
	// noStep, noKernel and noGPU say why there is nothing that expresses the operator before it came, no reference kernel
	// (package kernel), no kernel for GPUs (package emit).
	noStep, noKernel, noGPU string
}

// Reasons that several operators share.
const (
	nothingElse   = "nobody has expressed it by operators of older opsets"
	noSuchType    = "older opsets have no sequences or optionals"
	inInterpreter = "the interpreter runs it itself: it works on graphs, sequences or optionals"
	drawn         = "the interpreter draws the numbers itself: they are no function of the operands"
	ofText        = "strings are the runtime's affair"
	superseded    = "its step up makes another operator of it"
	byHost        = "the host runs what is no arithmetic on tensors of numbers"
	beforeRun     = "the plan knows the result before the run"
)

// trait is what an operator does besides computing.
type trait uint8

const (
	// pointwise operators compute an element of the result from the element of operand 0 at the same place.
	pointwise trait = 1 << iota
	// broadcasts is set for operators of several operands that are broadcast together, element by element.
	broadcasts
	// moves is set for operators whose kernels take elements as they are, of whatever type, or round them themselves.
	moves
	// random operators give other results at each run.
	random
	// early operators are such that onnxruntime runs in files of opsets before the one that they came with, as in that one.
	early
)

// Error is how far the result of a kernel for GPUs may be off, in units of the last place of the type that it is computed
// in; 0 is exact. With OfOperand they are units of the greatest operand or 1, if that is more: what is subtracted from
// each other is of that size.
type Error struct {
	ULP       float64
	OfOperand bool
	// Sensitive is set for recurrences and normalizations: a result may be off by as much as it changes when the operands do in their last place.
	Sensitive bool
}

func ofResult(ulp float64) Error  { return Error{ULP: ulp} }
func ofOperand(ulp float64) Error { return Error{ULP: ulp, OfOperand: true} }

var sensitive = Error{Sensitive: true}

// rows is the table of the default domain. An initializer would refer to itself: steps build operators, which infers them.
var rows map[string]*row

func init() {
	rows = map[string]*row{}
	for _, family := range [...]map[string]row{elementwiseRows(), shapeRows(), reduceRows(), nnRows(), controlRows(), otherRows()} {
		for name, r := range family {
			if rows[name] != nil {
				panic(fmt.Sprintf("two rows for %s", name)) // before anything is read
			}
			rows[name] = &r
		}
	}
	dropHints()
}

var noRow row

// rowOf is the row of an operator of the default domain, an empty one if there is none.
func rowOf(name string) *row {
	if r := rows[name]; r != nil {
		return r
	}
	return &noRow
}

// traitsOf are the traits of an operator, none for those of other domains.
func traitsOf(k ssa.Kind) trait {
	if k.Namespace() != Namespace {
		return 0
	}
	return rowOf(k.Name()).traits
}

// Steps lists the steps of an operator, newest first. An operator that did not
// exist has a step at the opset in which it appeared, if it can be expressed by others.
func Steps(name string) []Step { return rowOf(name).down }

// TypeFallback finds another way to compute an operator on elements of a type
// for which it has no kernel. It builds that, replaces the op and reports
// true; false if it does not serve the type. Nil: there is no such way.
func TypeFallback(name string) func(d *Downgrade, t tensor.DType) bool { return rowOf(name).other }

// Pointwise reports an operator that computes each element of its result from the element of operand 0 at the same place.
func Pointwise(k ssa.Kind) bool { return traitsOf(k)&pointwise != 0 }

// Moves reports an operator whose kernel takes elements as they are: no type of them needs a wider one to compute in.
func Moves(k ssa.Kind) bool { return traitsOf(k)&moves != 0 }

// Broadcasting lists the operators of several operands that are broadcast together, element by element, sorted.
func Broadcasting() []ssa.Kind {
	var out []ssa.Kind
	for name, r := range rows {
		if r.traits&broadcasts != 0 {
			out = append(out, ssa.Kind(Namespace+"::"+name))
		}
	}
	slices.Sort(out)
	return out
}

// Carried lists the operands whose elements become those of the op's results unchanged; nil for operators that compute.
func Carried(o *ssa.Op) []int {
	if o.Kind.Namespace() != Namespace {
		return nil
	}
	if f := rowOf(o.Kind.Name()).carries; f != nil {
		return f(o)
	}
	return nil
}

// Weighed lists the axes of the op's first operand, counted from the front, along which the op has a number for each element: other operands are for their sizes.
func Weighed(o *ssa.Op, rank int) []int {
	if o.Kind.Namespace() != Namespace {
		return nil
	}
	if f := rowOf(o.Kind.Name()).weighs; f != nil {
		return f(o, rank)
	}
	return nil
}

// alongChannels and alongFeatures weigh one axis, fromAxis those from the attribute axis on.
func alongChannels(*ssa.Op, int) []int { return []int{1} }
func alongFeatures(*ssa.Op, int) []int { return []int{2} }

func fromAxis(o *ssa.Op, rank int) (axes []int) {
	first := int(o.AttrInt("axis", -1))
	if first < 0 {
		first += rank
	}
	for a := max(first, 0); a < rank; a++ {
		axes = append(axes, a)
	}
	return axes
}

// ErrorOf is how far a GPU's result of the operator may be off. Sums and products, whose error depends on
// what they add up, have none here.
func ErrorOf(k ssa.Kind) Error { return rowOf(k.Name()).off }

// ExprOf is how an operator computes an element from those of its operands at the same place; nil for operators that are
// not made of others in this way.
func ExprOf(k ssa.Kind) *Expr {
	if k.Namespace() != Namespace {
		return nil
	}
	return rowOf(k.Name()).expr
}

// Gap is a reason why a part of an operator's row is missing; empty where there is none.
type Gap struct{ Step, Kernel, GPU string }

// Gaps tells what the row of an operator leaves out, and why.
func Gaps(k ssa.Kind) Gap {
	r := rowOf(k.Name())
	return Gap{r.noStep, r.noKernel, r.noGPU}
}

// operands makes the list of those that are carried.
func operands(places ...int) func(*ssa.Op) []int { return func(*ssa.Op) []int { return places } }

func allOperands(o *ssa.Op) []int {
	all := make([]int, o.NumOperands())
	for i := range all {
		all[i] = i
	}
	return all
}

// withoutReduction: data and updates are carried where nothing is added up.
func withoutReduction(o *ssa.Op) []int {
	if o.AttrStr("reduction", "none") == "none" {
		return []int{0, 2}
	}
	return nil
}

// dropHints adds the step up that drops consumed_inputs, a hint of what may be overwritten, for the operators that had it.
func dropHints() {
	const hint = "consumed_inputs"
	for i := range schemas[:len(schemas)-1] {
		s, next := &schemas[i], &schemas[i+1]
		if s.Domain != Namespace || s.Attr(hint) == nil || next.Name != s.Name {
			continue
		}
		r, at := rowOf(s.Name), 0
		for at < len(r.up) && r.up[at].Opset < next.Since {
			at++
		}
		r.up = slices.Insert(r.up, at, dropped(next.Since, hint))
	}
}
