package sym_test

import (
	"fmt"

	"github.com/aton-project/aton/ssa/sym"
)

// Sizes are expressions over named axes, in one form for all that are equal.
func Example() {
	n, m := sym.Symbol("N", 0), sym.Symbol("M", 0)
	a := n.Add(m).Mul(sym.Const(2))
	b := m.Mul(sym.Const(2)).Add(n).Add(n)
	fmt.Println(a, a.Equal(b))
	fmt.Println(a.Eval(map[string]int64{"N": 3, "M": 4}))
	// Output:
	// 2*M + 2*N true
	// 14 true
}
