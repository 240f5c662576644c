package onnx

import (
	"fmt"
	"strings"
	"testing"
)

func told(e *Expr) string {
	switch {
	case e.Operand > 0:
		return fmt.Sprint("x", e.Operand)
	case e.Attr != "":
		return "$" + e.Attr
	case e.Func == "":
		return fmt.Sprintf("%.4g", e.Number)
	}
	var args []string
	for _, a := range e.Args {
		args = append(args, told(a))
	}
	return e.Func + "(" + strings.Join(args, ", ") + ")"
}

// TestFormulas has what is looked for in programs that spell an operator out: one line for each text that an attribute may have.
func TestFormulas(t *testing.T) {
	const above = "Sub(x1, ReduceMean(x1, $axis))"
	want := []string{
		"Gelu from 20 on, approximate=tanh: Mul(Mul(x1, 0.5), Add(Tanh(Mul(Add(x1, Mul(Mul(Mul(x1, x1), x1), 0.04471)), 0.7979)), 1))",
		"Gelu from 20 on, approximate=none: Mul(Mul(x1, 0.5), Add(Erf(Mul(x1, 0.7071)), 1))",
		"HardSigmoid from 1 on: Clip(Fma(x1, $alpha, $beta), 0, 1)",
		"HardSwish from 1 on: Mul(x1, Clip(Add(Div(x1, 6), 0.5), 0, 1))",
		"LayerNormalization from 17 on, a scale at 1, an offset at 2, in float64 too: Div(" + above + ", Sqrt(Add(ReduceMean(Mul(" + above + ", " + above + "), $axis), $epsilon)))",
		"Mish from 18 on: Mul(x1, Tanh(Softplus(x1)))",
		"RMSNormalization from 23 on, a scale at 1, in float64 too: Div(x1, Sqrt(Add(ReduceMean(Mul(x1, x1), $axis), $epsilon)))",
	}
	var got []string
	for _, f := range Formulas() {
		for _, w := range f.Ways {
			s := fmt.Sprintf("%s from %d on", f.Kind.Name(), f.Since)
			for _, a := range w.Texts {
				s += ", " + a.Name + "=" + a.Value.Str()
			}
			if f.Scale > 0 {
				s += fmt.Sprint(", a scale at ", f.Scale)
			}
			if f.Offset > 0 {
				s += fmt.Sprint(", an offset at ", f.Offset)
			}
			if f.Double {
				s += ", in float64 too"
			}
			got = append(got, s+": "+told(w.Expr))
		}
	}
	if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}

// TestNoFormula: a body is one formula only if it says the same of all types and ranks.
func TestNoFormula(t *testing.T) {
	for _, name := range []string{"GroupNormalization", "Clip", "Shrink", "Hardmax", "DepthToSpace"} {
		if f := (&Formula{}); f.readBody(bodies()[name]) {
			t.Errorf("%s is read as %s", name, told(f.Ways[0].Expr))
		}
	}
}
