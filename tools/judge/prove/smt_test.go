package prove

import (
	"testing"

	"github.com/aton-project/aton/ssa/tensor"
)

// TestFormulaLength: a formula grows with the terms. The greatest of n numbers once took 5 to the n characters. Sums of nothing and of one number have
// formulas too.
func TestFormulaLength(t *testing.T) {
	for _, theory := range []theory{moved, every, ieee, reals} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Int64, tensor.Uint8} {
			for _, f := range []string{"of ReduceMax", "of ReduceMin", "of ReduceSum", "of ReduceProd", "Dot"} {
				length := func(n int64) int {
					ts := newTerms()
					e := newEncoder(theory)
					e.term(ts.apply(f, d, nil, ts.variables("x", d, []int64{n}).Elems...))
					return e.out.Len()
				}
				if f == "Dot" || f == "of ReduceSum" {
					length(0)
				}
				length(1)
				if few, many := length(10), length(40); many > 5*few {
					t.Errorf("%s of %v as %v: 10 elements take %d characters, 40 take %d", f, d, theory, few, many)
				}
			}
		}
	}
}
