package rules

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
)

// corpus are the files of rules in the repository: those of the text tests, and the blocks of the pages.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../../lit-tests/rules/*.rules")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	out := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[f] = string(text)
	}
	page, err := os.ReadFile("../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(page), "```rules\n")
	for _, part := range parts[1:] {
		text, _, _ := strings.Cut(part, "```")
		out["docs/rules.md: "+strings.SplitN(text, "\n", 2)[0]] = text
	}
	return out
}

// programs call the operators that the rules of the corpus are for.
var programs = []string{`graph(%x : Float(N, 8), %y : Float(N, 8)):
  %e : float = prim::Constant[value=0.5]()
  %n : int = prim::Constant[value=2]()
  %t : str = prim::Constant[value="tanh"]()
  %a : Tensor = mylib::norm(%x, %e)
  %g : Tensor = aten::gelu(%a, %t)
  %r : Tensor = aten::relu(%g)
  %b : Tensor, %c : Tensor = mylib::split(%r, %n)
  %d : Tensor, %f : Tensor = mylib::split_at(%x, %n)
  %l : Tensor[] = prim::ListConstruct(%b, %y, %d)
  %j : Tensor = mylib::join(%l, %e)
  %p : Tensor[] = mylib::pieces(%j)
  %h : Tensor, %i : Tensor = prim::ListUnpack(%p)
  %k : Tensor = mylib::pack(%i)
  %m : Tensor = mylib::packed_linear(%h, %k)
  return (%m, %c, %f)
`, `graph(%x : Tensor, %y : Long(3)):
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = mylib::outer(%y, %y, %none)
  %c : Tensor = mylib::outer(%y, %b, %a)
  return (%a, %b, %c)
`}

// tryOn converts the programs as far as that goes; only a panic is wrong.
func tryOn(t *testing.T, table *aten.Table) {
	for _, text := range programs {
		m, err := ssa.Parse(text, "program", all.Dialects()...)
		if err != nil {
			t.Fatal(err)
		}
		table.BindSchemas(m)
		p, err := all.New(table).Parse("specialize,lower,dce")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Run(m, &passes.Runner{}); err != nil {
			var failure *passes.Failure
			if errors.As(err, &failure) {
				t.Fatalf("%v\n%s", err, failure.Stack)
			}
			continue
		}
		if err := ssa.Verify(m); err != nil {
			t.Fatalf("%v\n%s", err, ssa.Print(m))
		}
	}
}

// FuzzParse reads any text: it is accepted, the same twice, or refused with a place for each error. What is accepted is tried on
// programs.
func FuzzParse(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text)
		for _, part := range strings.Split(text, "\nrule ") {
			f.Add("rule " + part)
		}
	}
	f.Add("rule a\nfrom\n%y = aten::relu(%x)\nto\n%y : %x[%x.0*2, $n, ?, %x...] = a::b[c=[1, 2.5], d=\"#\"](%x, const(1, f32), _)")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := Parse(Source{"fuzz", text})
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if !strings.HasPrefix(line, "fuzz:") {
					t.Errorf("an error without a place: %q", line)
				}
			}
			return
		}
		table := aten.NewTable()
		if err := set.Register(table); err != nil {
			t.Fatalf("what was read cannot be registered: %v", err)
		}
		tryOn(t, table)
		again, err := Parse(Source{"fuzz", text})
		if err != nil || len(again.rules) != len(set.rules) {
			t.Errorf("the second reading differs: %v", err)
		}
	})
}
