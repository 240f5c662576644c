package prove

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/passes/simplify"
	"github.com/aton-project/aton/ssa"
)

func TestScratch(t *testing.T) {
	s := NewSession(simplify.Rules())
	s.Variants = 8
	defer s.Close()
	files, _ := filepath.Glob("../../lit-tests/passes/simplify/" + os.Getenv("F") + "*.ir")
	if os.Getenv("F") == "p" {
		files = nil
		for _, rule := range simplify.Rules() {
			if rule.From == "" {
				continue
			}
			n := 0
			began := time.Now()
			for f := range instances(rule.From) {
				n++
				if err := s.graph(f, "simplify"); err != nil {
					t.Fatal(err)
				}
			}
			t.Log(rule.Name, n, time.Since(began))
		}
	}
	for _, file := range files {
		text, _ := os.ReadFile(file)
		m, err := ssa.Parse(string(text), "x", all.Dialects()...)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, f := range m.Funcs {
			for _, run := range runLine.FindAllSubmatch(text, -1) {
				if err := s.Graphs(f, string(run[1])); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Log(file, time.Since(began), s.Solver.Questions, s.Solver.Spent)
	}
	for _, r := range s.Sorted() {
		if len(r.Claims) == 0 {
			continue
		}
		t.Log("RULE", r.Rule, r.Outcome(), r.Claims, r.Theories, r.Time)
		for w, n := range r.Whys {
			t.Logf("   %s why %d %.220s", r.Rule, n, w)
		}
		for _, c := range r.Refuted {
			t.Logf("   %s CEX %v %s %s\n%s\n%s", r.Rule, c.Claim.Dims, c.Verdict.Why, c.Verdict.Counterexample(), c.Claim.Before, c.Claim.After)
		}
	}
}
