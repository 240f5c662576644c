package ssa_test

import (
	"fmt"
	"os"

	"github.com/aton-project/aton/ssa"
)

// Graph text becomes a module; the users of a value are at hand; what is printed can be read again.
func Example() {
	m, err := ssa.Parse(`graph(%x : Float(2, 3)):
  %a : Float(2, 3) = aten::relu(%x)
  %b : Float(2, 3) = aten::relu(%x)
  %y : Float(2, 3) = aten::mul(%a, %b)
  return (%y)
`, "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	ops := m.Main().Body
	first, second := ops.First(), ops.First().Next()
	second.Result(0).ReplaceUses(first.Result(0))
	second.Erase()
	for u := range first.Result(0).Uses() {
		fmt.Println("used by", u.Op().Kind)
	}
	if err := ssa.Verify(m); err != nil {
		fmt.Println(err)
	}
	_ = ssa.Fprint(os.Stdout, m, ssa.PrintOptions{NoLocs: true})
	// Output:
	// used by aten::mul
	// used by aten::mul
	// graph(%x : Float(2, 3)):
	//   %a : Float(2, 3) = aten::relu(%x)
	//   %y : Float(2, 3) = aten::mul(%a, %a)
	//   return (%y)
}

// Verify says what is wrong with a module, with the place.
func ExampleVerify() {
	m, err := ssa.Parse(`graph(%x : Float(2)):
  %y : Float(2) = aten::relu(%x)
  return (%y)
`, "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	y := m.Main().Body.First()
	y.SetOperands(y.Result(0))
	fmt.Println(ssa.Verify(m))
	// Output:
	// aten::relu: operand %y is not defined here [invariant 1]
}

// Parse says where a text is wrong.
func ExampleParse() {
	_, err := ssa.Parse("graph(%x : Float(2)):\n  %y : Float(2) = aten::relu(%z)\n  return (%y)\n", "model.ir")
	fmt.Println(err)
	// Output:
	// model.ir:2:32: %z is not defined here: put in the line that defines it, before this one
}
