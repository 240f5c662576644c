package rewrite

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
)

// TestZeroConfig runs rules without a Config: results of the root keep their types, others have a type that says nothing.
func TestZeroConfig(t *testing.T) {
	m, err := ssa.Parse(`graph(%x : Float(2, 3)):
  %k : Float(2, 3) = t::Constant()
  %a : Float(2, 3) = t::mul(%x, %k)
  %y : Float(2, 3) = t::mul(%a, %x)
  return (%y)
`, "test", toy{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := Compile(Rule{Name: "scale", From: "%y = t::mul(%x, %k!)", To: "%s = t::prepare(%k)\n%y = t::scale(%x, %s)"})
	if err != nil {
		t.Fatal(err)
	}
	if res := Run(m.Main(), set, Config{}); len(res.Applied) != 1 {
		t.Errorf("applied: %v", res.Applied)
	}
	if err := ssa.Verify(m); err != nil {
		t.Fatal(err)
	}
	got := ssa.Print(m)
	for _, want := range []string{": Tensor = t::prepare(%k)", ": Float(2, 3) = t::scale(%x, "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// TestMarks insists that * and ! are refused where they mean nothing, with the place.
func TestMarks(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"%a* = t::relu(%x)\n%y = t::relu(%a)", "%y = %x", `From:1:3: "%a* = t::relu(%x)": * stands behind an operand`},
		{"%a = t::relu(%x)\n  %y! = t::relu(%a)", "%y = %x", `From:2:5: "%y! = t::relu(%a)": ! stands behind an operand`},
		{"%y = t::add(%x, %z*)", "%y = %x", "From:1:19: * stands behind a value that an earlier line defines; none defines %z"},
		{"%y = t::relu(%x)", "\n %y = t::neg(%x*)", "To:2:16: * and ! say what From matches"},
		{"%y = t::relu(%x)", "%y = %x!", "To:1:8: * and ! say what From matches"},
		{"%y = t::relu(%x**)", "%y = %x", `From:1:14: "%y = t::relu(%x**)": "%x**" is no operand`},
		{"%y = t::relu(%*x)", "%y = %x", `"%*x" is no operand`},
		{"y = t::relu(%x)", "%y = %x", `From:1:1: "y = t::relu(%x)": "y" is no value`},
	} {
		_, err := Compile(Rule{Name: "r", From: c.from, To: c.to})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("From %q, To %q: %v; want %s", c.from, c.to, err, c.want)
		}
	}
	if _, err := Compile(Rule{Name: "r", From: "%a = t::relu(%x)\n%y = t::add(%a*, %k!)", To: "%y = t::neg(%x)"}); err != nil {
		t.Error(err)
	}
}
