package simplify

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// geluOpset is the first opset with Gelu.
const geluOpset = 20

// gelus holds the rule that finds Gelu in its parts, x/2 * (1 + erf(x/sqrt(2))) and x/2 * (1 + tanh(scale * (x + cube*x^3))),
// which round a last place otherwise.
func (s *simplifier) gelus() []rewrite.Rule {
	return s.from(geluOpset, []rewrite.Rule{
		{Name: "gelu", Kinds: []ssa.Kind{"onnx::Mul"}, Apply: gelu, Rounds: true},
	})
}

// maxFactors bounds the factors that are looked at.
const maxFactors = 4

// factors takes a product apart into a constant and what is no constant. Products that something else uses too stay whole.
func factors(v *ssa.Value, whole bool) (k float64, rest []*ssa.Value) {
	if c, ok := scalarOf(v); ok {
		return c, nil
	}
	d := v.Def()
	switch {
	case d == nil || !whole && !v.HasOneUse():
	case d.Kind == "onnx::Mul":
		a, x := factors(d.Operand(0), false)
		b, y := factors(d.Operand(1), false)
		if len(x)+len(y) <= maxFactors {
			return a * b, append(x, y...)
		}
	case d.Kind == "onnx::Div":
		if c, ok := scalarOf(d.Operand(1)); ok {
			a, x := factors(d.Operand(0), false)
			return a / c, x
		}
	case d.Kind == "onnx::Pow":
		if c, ok := onlyElement(d.Operand(1)); ok && c == 3 {
			x := d.Operand(0)
			return 1, []*ssa.Value{x, x, x}
		}
	}
	return 1, []*ssa.Value{v}
}

// near reports that a constant of float32 is meant to be a number.
func near(k, want float64) bool { return math.Abs(k-want) <= 1e-6*want }

func gelu(r *rewrite.Rewriter, o *ssa.Op) bool {
	out := o.Result(0)
	if t := out.Tensor(); t == nil || t.DType != tensor.Float32 {
		return false
	}
	k, fs := factors(out, true)
	if !near(k, 0.5) || len(fs) != 2 {
		return false
	}
	for i := range 2 {
		x, sum := fs[i], definedBy(fs[1-i], "onnx::Add")
		if sum == nil || !fs[1-i].HasOneUse() || !ssa.SameType(x.Type, out.Type) {
			continue
		}
		if one, ok := scalarOf(sum.Operand(1)); !ok || one != 1 {
			continue
		}
		d := sum.Operand(0).Def()
		if d == nil || !d.Result(0).HasOneUse() {
			continue
		}
		form := ""
		switch d.Kind {
		case "onnx::Erf":
			if k, fs := factors(d.Operand(0), false); near(k, math.Sqrt2/2) && len(fs) == 1 && fs[0] == x {
				form = "none"
			}
		case "onnx::Tanh":
			if isGeluTanh(d.Operand(0), x) {
				form = "tanh"
			}
		}
		if form == "" {
			continue
		}
		y := build(r).Gelu(x, onnx.Approximate(form))
		if !r.Fits(y, out) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}

// isGeluTanh reports that v is scale * (x + cube*x^3).
func isGeluTanh(v, x *ssa.Value) bool {
	k, fs := factors(v, false)
	if !near(k, formula.GeluScale) || len(fs) != 1 {
		return false
	}
	sum := definedBy(fs[0], "onnx::Add")
	if sum == nil || sum.Operand(0) != x && sum.Operand(1) != x {
		return false
	}
	k, fs = factors(other(sum, x), false)
	return near(k, formula.GeluCube) && len(fs) == 3 && fs[0] == x && fs[1] == x && fs[2] == x
}
