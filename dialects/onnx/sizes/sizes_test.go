package sizes

import (
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/google/go-cmp/cmp"
)

// Solve sorts demands into those that the names of the axes contradict and those that some sizes meet.
func TestSolve(t *testing.T) {
	n, m, k := sym.Symbol("N", 0), sym.Symbol("M", 0), func(v int64) sym.Expr { return sym.Const(v) }
	for _, test := range []struct {
		name      string
		demands   []Demand
		conflicts []string
		grants    []string
	}{
		{"a number", []Demand{{X: n, Y: k(4)}}, []string{"N must be 4 (axis 0 of input x)"}, nil},
		{"through arithmetic", []Demand{{X: n.Mul(k(3)), Y: k(12)}}, []string{"N must be 4 (axis 0 of input x)"}, nil},
		{"no whole number", []Demand{{X: n.Mul(k(3)), Y: k(13)}}, []string{"3*N must be 13, which no N gives"}, nil},
		{"two numbers", []Demand{{X: n, Y: k(4)}, {X: n, Y: k(5)}}, []string{"N must be 5 here and 4 at  (axis 0 of input x): no size is both"}, nil},
		{"two names", []Demand{{X: n, Y: m}}, []string{"M (axis 1 of input x) and N (axis 0 of input x) must be equal"}, nil},
		{"one name by another", []Demand{{X: n, Y: m.Mul(k(2))}}, []string{"N (axis 0 of input x) must be 2*M"}, nil},
		{"broadcast", []Demand{{X: n, Y: k(5), Broadcast: true}}, nil, []string{"N is 1 or 5"}},
		{"a common factor", []Demand{{X: n.Mul(m).Mul(k(16)), Y: n.Mul(k(80))}}, nil, []string{"M is 5"}},
		{"a multiple", []Demand{{X: n.Mod(k(8)), Y: k(0)}}, nil, []string{"N is a multiple of 8"}},
		{"what always holds", []Demand{{X: n.Add(k(1)), Y: k(1).Add(n)}}, nil, nil},
		{"a size that is computed from data", []Demand{{X: sym.Symbol("elsewhere", 0), Y: k(4)}}, nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			mod := ssa.NewModule(onnx.Dialect{})
			f := mod.NewFunc("main")
			f.Body.AddParam("x", ssa.Tensor(tensor.Float32, n, m))
			op := f.Body.Append("onnx::Relu", 0, []*ssa.Value{f.Body.Params[0]}, f.Body.Params[0].Type)
			s := New(f.Body.Params)
			for _, d := range test.demands {
				d.Op = op
				s.Require(d)
			}
			conflicts, grants := s.Solve(&mod.Locs)
			var gotC, gotG []string
			for _, c := range conflicts {
				gotC = append(gotC, c.Message)
			}
			for _, g := range grants {
				gotG = append(gotG, g.What)
			}
			if diff := cmp.Diff(test.conflicts, gotC); diff != "" {
				t.Errorf("conflicts:\n%s", diff)
			}
			if diff := cmp.Diff(test.grants, gotG); diff != "" {
				t.Errorf("grants:\n%s", diff)
			}
		})
	}
}
