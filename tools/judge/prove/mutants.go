package prove

import (
	"fmt"
	"math/rand/v2"

	"github.com/aton-project/aton/ssa"
)

// Mutants counts wrong variants of rules: what a rule makes is changed in one place.
type Mutants struct {
	// Refuted counts those with a counterexample that the interpreter confirms, Same the changes that make another right rule, and Left
	// those that could not be decided, such as an epsilon that makes no difference beyond rounding.
	Refuted, Same, Left int
	Rules               map[string]int
}

// swaps are operators that a mutation takes for each other.
var swaps = map[ssa.Kind][]ssa.Kind{
	"onnx::Add": {"onnx::Sub", "onnx::Mul"}, "onnx::Sub": {"onnx::Add"}, "onnx::Mul": {"onnx::Add", "onnx::Div"}, "onnx::Div": {"onnx::Mul"},
	"onnx::Less": {"onnx::LessOrEqual", "onnx::Greater"}, "onnx::LessOrEqual": {"onnx::Less"}, "onnx::Greater": {"onnx::GreaterOrEqual"}, "onnx::GreaterOrEqual": {"onnx::Greater", "onnx::LessOrEqual"},
	"onnx::And": {"onnx::Or"}, "onnx::Or": {"onnx::And"}, "onnx::Max": {"onnx::Min"}, "onnx::Min": {"onnx::Max"},
	"onnx::Relu": {"onnx::Abs", "onnx::Neg"}, "onnx::Abs": {"onnx::Relu"}, "onnx::Neg": {"onnx::Abs"}, "onnx::Exp": {"onnx::Neg"},
	"onnx::ReduceSum": {"onnx::ReduceMax", "onnx::ReduceMean"}, "onnx::ReduceMax": {"onnx::ReduceMin"}, "onnx::ReduceMean": {"onnx::ReduceSum"},
	"onnx::Ceil": {"onnx::Floor"}, "onnx::Floor": {"onnx::Ceil", "onnx::Round"}, "onnx::Round": {"onnx::Floor"},
}

// mutate changes one operator of a copy of a function; nil if the change makes no graph.
func mutate(f *ssa.Func, r *rand.Rand) *ssa.Func {
	g := clone(f)
	var ops []*ssa.Op
	for o := range g.Body.AllOps() {
		ops = append(ops, o)
	}
	if len(ops) == 0 {
		return nil
	}
	o := ops[r.IntN(len(ops))]
	switch k := swaps[o.Kind]; {
	case len(k) > 0 && r.IntN(2) == 0:
		o.Kind = k[r.IntN(len(k))]
	case o.NumOperands() > 1 && r.IntN(2) == 0:
		i, j := r.IntN(o.NumOperands()), r.IntN(o.NumOperands())
		a, b := o.Operand(i), o.Operand(j)
		if a == b {
			return nil
		}
		o.SetOperand(i, b)
		o.SetOperand(j, a)
	default:
		before := o.String()
		if changeOp(o, r); o.String() == before {
			return nil
		}
	}
	if infer(g) != nil || ssa.Verify(g.Module()) != nil {
		return nil
	}
	for i, v := range g.Body.Returns() {
		if !ssa.SameType(v.Type, f.Body.Return(i).Type) {
			return nil // the driver of the rules refuses another type
		}
	}
	return g
}

// Mutate makes wrong variants of the rules that the session has proved, each rule in turn, until n are refuted.
func (s *Session) Mutate(n int, seed uint64) (Mutants, error) {
	out := Mutants{Rules: map[string]int{}}
	byRule := map[string][]Claim{}
	for _, c := range s.Kept {
		byRule[c.Rule] = append(byRule[c.Rule], c)
	}
	names := sortedKeys(byRule)
	if len(names) == 0 {
		return out, nil
	}
	r := rand.New(rand.NewPCG(seed, 5))
	done := map[string]bool{}
	for try := 0; out.Refuted < n && try < 50*n && (try == 0 || !s.late()); try++ {
		name := names[try%len(names)]
		c := byRule[name][r.IntN(len(byRule[name]))]
		after := mutate(c.After, r)
		key := fmt.Sprint(c.Before, after, c.Dims)
		if after == nil || done[key] || !runs(after, c.Dims) {
			continue
		}
		done[key] = true
		v, err := s.Prove(Claim{Rule: name, Before: c.Before, After: after, Dims: c.Dims, Rounds: c.Rounds, Assumes: c.Assumes, Limit: c.Limit})
		if err != nil {
			return out, err
		}
		switch v.Outcome {
		case Proved:
			out.Same++
		case Inexpressible:
		case Refuted:
			out.Refuted++
			out.Rules[name]++
		default:
			out.Left++
		}
	}
	return out, nil
}
