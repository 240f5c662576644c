package all

import (
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
		p, err := Set.Parse(n.Name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, err := range p.CheckOrder(Set.Orders) {
			t.Errorf("%s: %v", n.Name, err)
		}
	}
	for _, o := range Set.Orders {
		if Set.Pass(o.First) == nil || Set.Pass(o.Then) == nil || o.Why == "" {
			t.Errorf("%+v: both are passes, and there is a reason", o)
		}
	}
}
