package simplify

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// hards holds the rules that find HardSigmoid, which is alpha*x + beta between 0 and 1, and HardSwish, which is x * HardSigmoid(x) with
// alpha = 1/6 and beta = 1/2, in their parts.
func (s *simplifier) hards() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "hard-swish", Kinds: []ssa.Kind{"onnx::Mul", "onnx::Div"}, Apply: hardSwish, Rounds: true},
		{Name: "hard-sigmoid", Kinds: []ssa.Kind{"onnx::Mul", "onnx::Div", "onnx::Clip"}, Apply: hardSigmoid, Rounds: true},
	}
}

// clippedLine reads v as clip(slope*x + offset, lo, hi) with constants. What it is made of has no other use.
func clippedLine(v *ssa.Value) (x *ssa.Value, slope, offset, lo, hi float64, ok bool) {
	c := definedBy(v, "onnx::Clip")
	if c == nil || !c.Operand(0).HasOneUse() {
		return nil, 0, 0, 0, 0, false
	}
	lo, hi, ok = bounds(c)
	line := definedBy(c.Operand(0), "onnx::Add") // constants stand on the right
	if !ok || line == nil {
		return nil, 0, 0, 0, 0, false
	}
	offset, ok = scalarOf(line.Operand(1))
	slope, rest := factors(line.Operand(0), false)
	if !ok || len(rest) != 1 || !ssa.SameType(rest[0].Type, v.Type) {
		return nil, 0, 0, 0, 0, false
	}
	return rest[0], slope, offset, lo, hi, true
}

// hardSigmoid finds k * clip(a*x + b, 0, 1/k).
func hardSigmoid(r *rewrite.Rewriter, o *ssa.Op) bool {
	out := o.Result(0)
	k, v := 1.0, out
	if o.Kind != "onnx::Clip" {
		var rest []*ssa.Value
		if k, rest = factors(out, true); len(rest) != 1 || rest[0] == out || !rest[0].HasOneUse() {
			return false
		}
		v = rest[0]
	}
	x, slope, offset, lo, hi, ok := clippedLine(v)
	if !ok || k <= 0 || lo != 0 || !near(hi*k, 1) || out.DType() != tensor.Float32 {
		return false
	}
	y := build(r).HardSigmoid(x, onnx.Alpha(k*slope), onnx.Beta(k*offset))
	if !r.Fits(y, out) {
		return false
	}
	r.Replace(o, y)
	return true
}

// hardSwish finds x * clip(x + 3, 0, 6) / 6 and x * HardSigmoid(x).
func hardSwish(r *rewrite.Rewriter, o *ssa.Op) bool {
	out := o.Result(0)
	k, rest := factors(out, true)
	if len(rest) != 2 || out.DType() != tensor.Float32 {
		return false
	}
	for i, x := range rest {
		gate := rest[1-i]
		if !gate.HasOneUse() || gate == x {
			continue
		}
		if h := definedBy(gate, "onnx::HardSigmoid"); h != nil {
			if h.Operand(0) != x || k != 1 || !near(h.AttrFloat("alpha", 0.2), 1.0/6) || !near(h.AttrFloat("beta", 0.5), 0.5) {
				continue
			}
		} else if of, slope, offset, lo, hi, ok := clippedLine(gate); !ok || of != x || lo != 0 || !near(k*hi, 1) || !near(k*slope, 1.0/6) || !near(k*offset, 0.5) {
			continue
		}
		y := build(r).HardSwish(x)
		if !r.Fits(y, out) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}
