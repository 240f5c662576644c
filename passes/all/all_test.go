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
		"freeze,inline":                     "freeze takes one function, which inline makes: put inline before freeze",
		"lower,specialize":                  "put specialize before lower",
		"specialize,cse,lift":               "put lift before cse",
		"simplify,upgrade":                  "put upgrade before simplify",
		"lower,guard,simplify":              "simplify takes operators that are taken not to fail, which guard ends: put simplify before guard",
		"lower,legalize,simplify":           "put simplify before legalize",
		"lower,ort-fusion,user-rules":       "put user-rules before ort-fusion",
		"lower,name-initializers,legalize":  "put legalize before name-initializers",
		"inline,fixpoint(freeze),simplify":  "",
		"legalize":                          "",
		"export":                            "",
		"upgrade,legalize,upgrade,simplify": "",
	} {
		_, err := Set.Parse(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
