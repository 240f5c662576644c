package diag_test

import (
	"fmt"

	"github.com/aton-project/aton/ssa/diag"
)

// A list has all that is wrong, with the lines of the program.
func Example() {
	var locs diag.Table
	at := locs.Add(diag.Frame{File: "model.py", Line: 7})
	list := &diag.List{Table: &locs}
	list.Add(diag.Diagnostic{ID: "unsupported-op", Op: "aten::foo", Loc: at, Message: "the operator is not supported", Hint: "write a rule for it"})
	fmt.Println(list.Err())
	for _, b := range diag.Blockers(list.Err()) {
		fmt.Println(b.Count, b.Operator, b.File, b.Line)
	}
	// Output:
	// model.py:7: aten::foo: the operator is not supported; write a rule for it
	// 1 aten::foo model.py 7
}
