package rules_test

import (
	"fmt"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/aten/rules"
)

// The rules of a text are registered in a table of operators, which aton.ConvertOptions takes.
func Example() {
	set, err := rules.Parse(rules.Source{Name: "my.rules", Text: `
domain my.domain 2

declare mylib::norm(Tensor x, *, float eps=1e-05) -> Tensor

rule norm
  from
    %y = mylib::norm(%x, eps=$e)
  to
    %y : %x = my.domain::Norm[epsilon=$e](%x)
`})
	if err != nil {
		fmt.Println(err)
		return
	}
	table := aten.NewTable()
	if err := set.Register(table); err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range set.Rules() {
		fmt.Println(r.Name, r.Place)
	}
	fmt.Println(set.Domains, table.Schema("mylib::norm", ""))
	// Output:
	// norm my.rules:6:1
	// map[my.domain:2] mylib::norm(Tensor x, *, float eps=1e-05) -> Tensor
}
