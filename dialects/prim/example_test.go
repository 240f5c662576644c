package prim_test

import (
	"fmt"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
)

// The dialect tells the effects of an operator, which decide what a pass may remove.
func Example() {
	m := ssa.NewModule(prim.Dialect{})
	body := m.NewFunc("main").Body
	for _, kind := range []ssa.Kind{"prim::Constant", "prim::Print"} {
		op := body.Append(kind, 0, nil)
		fmt.Println(kind, m.Effects(op) == ssa.Pure)
	}
	// Output:
	// prim::Constant true
	// prim::Print false
}
