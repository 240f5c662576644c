package all

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/passes/passtest"
)

func TestDemos(t *testing.T) {
	for _, p := range Set.Passes {
		t.Run(p.Name, func(t *testing.T) { passtest.Check(t, p, Dialects()...) })
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{"fixpoint": true}
	for _, p := range Set.Passes {
		if seen[p.Name] {
			t.Errorf("%s comes twice", p.Name)
		}
		seen[p.Name] = true
	}
	for _, n := range Set.Named {
		if seen[n.Name] {
			t.Errorf("%s comes twice", n.Name)
		}
		seen[n.Name] = true
		if _, err := Set.Parse(n.Name); err != nil {
			t.Error(err)
		}
	}
}

// TestStates: a pipeline whose passes are in another order is refused, with the pass that is at the wrong place.
func TestStates(t *testing.T) {
	for text, want := range map[string]string{
		"freeze,inline":                    "freeze takes one function, which inline makes: put inline before freeze",
		"lower,specialize":                 "put specialize before lower",
		"specialize,cse,lift":              "put lift before cse",
		"simplify,raise":                   "put raise before simplify",
		"lower,guard,simplify":             "simplify takes operators that are taken not to fail, which guard ends: put simplify before guard",
		"lower,legalize,simplify":          "put simplify before legalize",
		"lower,contrib,replace":            "put replace before contrib",
		"lower,arrange,legalize":           "put legalize before arrange",
		"inline,fixpoint(freeze),simplify": "",
		"legalize":                         "",
		"export":                           "",
		"raise,legalize,raise,simplify":    "",
	} {
		_, err := Set.Parse(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
