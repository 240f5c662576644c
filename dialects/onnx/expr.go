package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Expr is how an element of a result is computed: an expression over the elements of the operands at the same place.
// Its functions have the names of the operators of ONNX that compute them, and two more: Expm1, e^x - 1, and Fma, x*y + z,
// which may be rounded once or twice.
//
// Whoever can do arithmetic can evaluate one: the reference kernels on numbers, the emitters of kernels on values of a
// kernel, steps down on values of a graph.
type Expr struct {
	// Func is the function that Args are given to; empty for a leaf.
	Func string
	Args []*Expr
	// Attr names an attribute of floats that is the value of a leaf. With Is it is one of strings, which chooses
	// Args[0] where it is Is and Args[1] where it is not.
	Attr, Is string
	// Operand is the place of an operand from 1, 0 if the leaf is something else.
	Operand int
	// Number is the value of a leaf that is a constant.
	Number float64
}

// Arithmetic is what evaluates expressions to V.
type Arithmetic[V any] interface {
	// Number makes a constant of the type that is computed in.
	Number(v float64) V
	// Operand is the element of operand i, counted from 0.
	Operand(i int) V
	// Float and Text are attributes of the operator.
	Float(attr string) float64
	Text(attr string) string
	// Call computes a function.
	Call(name string, x ...V) V
}

// Eval computes an expression. Operands are evaluated from left to right, once each time that they occur.
func Eval[V any](e *Expr, a Arithmetic[V]) V {
	switch {
	case e.Is != "":
		if a.Text(e.Attr) == e.Is {
			return Eval(e.Args[0], a)
		}
		return Eval(e.Args[1], a)
	case e.Attr != "":
		return a.Number(a.Float(e.Attr))
	case e.Operand > 0:
		return a.Operand(e.Operand - 1)
	case e.Func == "":
		return a.Number(e.Number)
	}
	x := make([]V, len(e.Args))
	for i, arg := range e.Args {
		x[i] = Eval(arg, a)
	}
	return a.Call(e.Func, x...)
}

// Functions calls yield with the name of each function in the expression.
func (e *Expr) Functions(yield func(name string)) {
	if e.Func != "" {
		yield(e.Func)
	}
	for _, a := range e.Args {
		a.Functions(yield)
	}
}

// Short forms for the table.

func operand(i int) *Expr              { return &Expr{Operand: i + 1} }
func number(v float64) *Expr           { return &Expr{Number: v} }
func attribute(name string) *Expr      { return &Expr{Attr: name} }
func apply(f string, x ...*Expr) *Expr { return &Expr{Func: f, Args: x} }
func sum(a, b *Expr) *Expr             { return apply("Add", a, b) }
func times(a, b *Expr) *Expr           { return apply("Mul", a, b) }
func quotient(a, b *Expr) *Expr        { return apply("Div", a, b) }
func where(c, a, b *Expr) *Expr        { return apply("Where", c, a, b) }
func either(attr, is string, then, e *Expr) *Expr {
	return &Expr{Attr: attr, Is: is, Args: []*Expr{then, e}}
}

// graphMath evaluates expressions to values of the graph, in the type of the operands.
type graphMath struct {
	*Downgrade
	in []*ssa.Value
	// wide computes functions that have no kernel for float64 by others.
	wide bool
}

func (g graphMath) Number(v float64) *ssa.Value { return g.like(g.in[0], v) }
func (g graphMath) Operand(i int) *ssa.Value    { return g.in[i] }

func (g graphMath) Float(name string) float64 {
	def, _ := SchemaOf(g.Node.Kind).Attr(name).Value()
	return g.Node.AttrFloat(name, def.Float())
}

func (g graphMath) Text(name string) string {
	def, _ := SchemaOf(g.Node.Kind).Attr(name).Value()
	return g.Node.AttrStr(name, def.Str())
}

func (g graphMath) Call(name string, x ...*ssa.Value) *ssa.Value {
	switch name {
	case "Mul", "Div":
		if one, ok := ConstFloat(x[1]); ok && one == 1 && x[1].Tensor().Rank() == 0 {
			return x[0]
		}
	case "Expm1":
		return (&wideMath{g.Downgrade}).expm1(x[0])
	case "Fma":
		return g.Call("Add", g.Call("Mul", x[0], x[1]), x[2])
	case "Softplus":
		if g.wide {
			return (&wideMath{g.Downgrade}).softplus(x[0])
		}
	case "Erf":
		if g.wide {
			return (&wideMath{g.Downgrade}).erf(x[0])
		}
	}
	return g.Op(name, x...)
}

// expressed is the step that replaces an operator that did not exist by its expression, which is computed in float32 for
// halves.
func expressed(opset int) Step {
	return express(opset, func(d *Downgrade) *ssa.Value { return d.expressionOf(d.Node.Result(0).DType(), false) })
}

// byExpression computes an operator in float64 by its expression.
func byExpression(d *Downgrade, t tensor.DType) bool {
	return t == tensor.Float64 && byExpressionOfAny(d, t)
}

// byExpressionOfAny computes an operator by its expression, whatever the type: where the target cannot run it at all.
func byExpressionOfAny(d *Downgrade, t tensor.DType) bool {
	d.Replace(d.expressionOf(t, t == tensor.Float64))
	return true
}

// expressionOf builds the node's expression, with a result of type t.
func (d *Downgrade) expressionOf(t tensor.DType, wide bool) *ssa.Value {
	in := d.Node.Operands()
	for i, v := range in {
		in[i] = d.up(v)
	}
	return d.cast(Eval[*ssa.Value](rowOf(d.Node.Kind.Name()).expr, graphMath{d, in, wide}), t)
}
