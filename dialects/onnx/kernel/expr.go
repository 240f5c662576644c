package kernel

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa/tensor"
)

// point computes an element from those of at most two operands at the same place. Conditions are 1 and 0.
type point func(x, y float64) float64

// floating is input i, which must have floats.
func (c *call) floating(i int) *tensor.Tensor {
	x := c.t(i)
	if !x.DType.IsFloat() {
		c.fail("element type %v", x.DType)
	}
	return x
}

// evalExpr computes an operator by the expression of its row, in float64.
func (c *call) evalExpr(e *onnx.Expr) *tensor.Tensor {
	x, f := c.floating(0), onnx.Eval[point](e, numbers{c})
	if c.t(1) == nil {
		return mapFloat(x, func(x float64) float64 { return f(x, 0) })
	}
	return zipFloat(c, x, c.t(1), f)
}

// numbers evaluates expressions to functions of the operands.
type numbers struct{ c *call }

func (n numbers) Number(v float64) point { return func(_, _ float64) float64 { return v } }

func (n numbers) Operand(i int) point {
	if i == 0 {
		return func(x, _ float64) float64 { return x }
	}
	return func(_, y float64) float64 { return y }
}

func (n numbers) Float(name string) float64 { return n.c.float(name) }
func (n numbers) Text(name string) string   { return n.c.str(name) }

func (n numbers) Call(name string, in ...point) point {
	a := in[0]
	if f := functions[name]; f != nil {
		return func(x, y float64) float64 { return f(a(x, y)) }
	}
	if len(in) == 2 {
		b := in[1]
		switch name {
		case "Add":
			return func(x, y float64) float64 { return a(x, y) + b(x, y) }
		case "Mul":
			return func(x, y float64) float64 { return a(x, y) * b(x, y) }
		case "Div":
			return func(x, y float64) float64 { return a(x, y) / b(x, y) }
		case "Less":
			return func(x, y float64) float64 { return oneIf(a(x, y) < b(x, y)) }
		case "Greater":
			return func(x, y float64) float64 { return oneIf(a(x, y) > b(x, y)) }
		case "Or":
			return func(x, y float64) float64 { return max(a(x, y), b(x, y)) } // of conditions
		}
	}
	if len(in) == 3 {
		b, c := in[1], in[2]
		switch name {
		case "Fma":
			return func(x, y float64) float64 { return a(x, y)*b(x, y) + c(x, y) }
		case "Clip":
			return func(x, y float64) float64 { return clamp(a(x, y), b(x, y), c(x, y)) }
		case "Where":
			return func(x, y float64) float64 {
				if a(x, y) != 0 {
					return b(x, y)
				}
				return c(x, y)
			}
		}
	}
	switch name {
	case "Abs":
		return func(x, y float64) float64 { return math.Abs(a(x, y)) }
	case "Expm1":
		return func(x, y float64) float64 { return math.Expm1(a(x, y)) }
	case "IsNaN":
		return func(x, y float64) float64 { v := a(x, y); return oneIf(v != v) }
	}
	n.c.fail("no number for the function %s", name)
	return nil
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
