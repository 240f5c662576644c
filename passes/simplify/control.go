package simplify

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
)

// control holds the rules on If and Loop. What branches and loops carry in vain is dead code, which the pass dce removes, and
// a loop that runs once at most is unrolled by the pass unroll.
func (s *simplifier) control() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "if-decided", Kinds: []ssa.Kind{"onnx::If"}, Apply: ifDecided},
		{Name: "if-same", Kinds: []ssa.Kind{"onnx::If"}, Apply: ifSame},
		{Name: "loop-invariant", Kinds: []ssa.Kind{"onnx::Loop"}, Apply: loopInvariant},
	}
}

// ifDecided puts the branch in the place of an If whose condition is constant.
func ifDecided(r *rewrite.Rewriter, o *ssa.Op) bool {
	b := o.Blocks[0]
	if !allAre(o.Operand(0), 1) {
		if b = o.Blocks[1]; !allAre(o.Operand(0), 0) {
			return false
		}
	}
	values := b.Returns()
	r.Inline(b)
	r.Replace(o, values...)
	return true
}

// ifSame takes a value for a result that is that value in both branches.
func ifSame(r *rewrite.Rewriter, o *ssa.Op) bool {
	done := false
	for i, v := range o.Results {
		a, b := o.Blocks[0].Return(i), o.Blocks[1].Return(i)
		if !v.HasUses() || a != b && !equalConstants(a, b) || !r.Fits(a, v) {
			continue
		}
		if a == b && !o.Blocks[0].Encloses(a.Block()) {
			r.ReplaceUses(v, a)
			done = true
		} else if a != b {
			r.ReplaceUses(v, constant(r, onnx.ConstOf(a)))
			done = true
		}
	}
	return done
}

func equalConstants(a, b *ssa.Value) bool {
	x, y := onnx.ConstOf(a), onnx.ConstOf(b)
	return x != nil && y != nil && ssa.TensorValue(x).Equal(ssa.TensorValue(y))
}

// loopInvariant takes the initial value for one that a Loop carries and never changes.
func loopInvariant(r *rewrite.Rewriter, o *ssa.Op) bool {
	b := o.Blocks[0]
	done := false
	for i := 2; i < o.NumOperands() && i < len(b.Params) && i-1 < b.NumReturns() && i-2 < len(o.Results); i++ {
		p, first, result := b.Params[i], o.Operand(i), o.Results[i-2]
		if b.Return(i-1) != p || first == nil || p.HasOneUse() && !result.HasUses() || !r.Fits(first, result) {
			continue
		}
		if result.HasUses() {
			r.ReplaceUses(result, first)
			done = true
		}
		var users []*ssa.Op
		for u := range p.Uses() {
			if u.Op() != nil { // the way around goes with dead code
				users = append(users, u.Op())
			}
		}
		for _, u := range users {
			vs := u.Operands()
			for k := range vs {
				if vs[k] == p {
					vs[k] = first
				}
			}
			r.SetOperands(u, vs...)
			done = true
		}
	}
	return done
}
