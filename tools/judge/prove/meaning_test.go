package prove

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// What the solver is told of an operator is what its kernel computes: on random numbers, with odd ones among them, no other result
// satisfies the formula.
func TestMeaning(t *testing.T) {
	p := solver(t)
	unary := strings.Fields("Neg Abs Relu Sign Ceil Floor Round Sqrt Reciprocal IsNaN IsInf Not BitwiseNot")
	binary := strings.Fields("Add Sub Mul Div Max Min Mod BitwiseAnd BitwiseOr BitwiseXor BitShift And Or Xor Equal Less LessOrEqual Greater GreaterOrEqual")
	r := rand.New(rand.NewPCG(1, 1))
	compared, unsaid := map[string]int{}, map[string]int{}
	try := func(name string, d, result tensor.DType, attrs []ssa.Attr, n int) {
		kind := ssa.Kind("onnx::" + name)
		for round := range 8 {
			ts := newTerms()
			var script strings.Builder
			in, args := make([]*tensor.Tensor, n), make([]*Term, n)
			for i := range args {
				in[i] = randomTensor(r, d, []int64{}, []float64{3, 100}[round%2], round > 3)
				args[i] = ts.variable(fmt.Sprint("in", i), d)
			}
			want, err := kernel.Eval(kind, attrs, in, 1)
			if err != nil {
				return // not an operator of this type
			}
			if result == tensor.Undefined {
				result = want[0].DType
			}
			e := newEncoder(ieee)
			got := e.term(ts.apply(name, result, attrsOf(kind, attrs), args...))
			literal := e.literal(want[0])
			if e.err != nil {
				return
			}
			script.WriteString(e.out.String())
			for i, v := range args {
				fmt.Fprintf(&script, "(assert (= %s %s))\n", e.term(v), e.literal(in[i]))
			}
			fmt.Fprintf(&script, "(assert (not (= %s %s)))", got, literal)
			if strings.Contains(script.String(), "(declare-fun") { // any function
				unsaid[name]++
				return
			}
			answer, _, err := p.Solver.Ask(script.String(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if answer == Sat {
				var text []string
				for _, x := range in {
					text = append(text, spell(x))
				}
				t.Errorf("%s(%s) is %s, which the formula is not", name, strings.Join(text, ", "), spell(want[0]))
				return
			}
			if answer == Unsat {
				compared[name]++
			}
		}
	}
	for _, d := range instanceTypes {
		for _, name := range unary {
			try(name, d, tensor.Undefined, nil, 1)
		}
		for _, name := range binary {
			var attrs []ssa.Attr
			if name == "BitShift" {
				attrs = []ssa.Attr{{Name: "direction", Value: ssa.Str("RIGHT")}}
			}
			try(name, d, tensor.Undefined, attrs, 2)
		}
		for _, to := range instanceTypes {
			if to != d {
				try("Cast", d, to, []ssa.Attr{{Name: "to", Value: ssa.Int(int64(to.ONNX()))}}, 1)
			}
		}
	}
	t.Log(compared, unsaid)
	for _, name := range append(unary, append(binary, "Cast")...) {
		if compared[name] == 0 {
			t.Errorf("%s was not compared", name)
		}
	}
}
