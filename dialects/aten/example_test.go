package aten_test

import (
	"fmt"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// An operator has a declaration for each overload, and a definition from an opset on.
func Example() {
	for _, s := range aten.Schemas("aten::relu") {
		fmt.Println(s)
	}
	table := aten.NewTable()
	d, ok := table.Lookup("aten::relu", 17)
	fmt.Println(ok, d.Nature == aten.Pointwise)
	// Output:
	// aten::relu(Tensor self) -> Tensor
	// aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
	// true true
}

// A definition of one's own replaces the built-in one from its opset on.
func ExampleTable_Register() {
	table := aten.NewTable()
	err := table.Register("aten::relu", aten.Def{
		Since: 13,
		Lower: func(l *aten.Lowering) *ssa.Value {
			x := l.Tensor("self")
			return l.Max(x, l.Like(x, 0))
		},
	})
	d, _ := table.Lookup("aten::relu", 17)
	fmt.Println(err, d.Since)
	d, _ = table.Lookup("aten::relu", 11)
	fmt.Println(d.Since)
	// Output:
	// <nil> 13
	// 7
}
