package prove

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/aten/rules"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
)

// User proves the rules of files that are about operators of ONNX, each alone, on the small instances of its pattern. A rule whose
// results differ is tried on real numbers as well: Needed of its result has the counterexample to equal results.
func (s *Session) User(set *rules.Set) ([]*Result, error) {
	var out []*Result
	for i, rule := range set.Rules() {
		r := s.result(rule.Name)
		out = append(out, r)
		if !rule.ONNX {
			r.Claims[Inexpressible]++
			r.Whys["it is about operators that are not of ONNX, whose meaning is the rule"]++
			continue
		}
		table := aten.NewTable()
		if err := set.Only(i).Register(table); err != nil {
			return nil, err
		}
		pass, err := all.New(table).Parse("user-rules")
		if err != nil {
			return nil, err
		}
		s.rounds[rule.Name] = true
		for f := range instancesOf(rule.From) {
			g, changed := clone(f), false
			watch := passes.Observer{AfterPass: func(e *passes.Event) { changed = changed || len(e.Counts) > 0 }}
			if _, err := pass.Run(g.Module(), &passes.Runner{Observers: []passes.Observer{watch}}); err != nil || !changed {
				continue
			}
			if err := s.claim(Claim{Rule: rule.Name, Before: f, After: g}); err != nil {
				return nil, err
			}
		}
		if len(r.Claims) == 0 {
			r.Claims[Inexpressible]++
			r.Whys["no small graph matches it"]++
		}
	}
	return out, nil
}
