// Package passtest helps to test passes from text.
package passtest

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// Toy is a dialect whose operators are what the tests say they are: a name with a trailing underscore writes, others are
// as in Effects, and the rest is pure.
type Toy struct {
	NS      string
	Effects map[string]ssa.Effect
}

// Namespace is the dialect's.
func (t Toy) Namespace() string { return t.NS }

// Info describes an op.
func (t Toy) Info(o *ssa.Op) (ssa.OpInfo, bool) {
	name := o.Kind.Name()
	if e, ok := t.Effects[name]; ok {
		return ssa.OpInfo{Effects: e}, true
	}
	if strings.HasSuffix(name, "_") {
		return ssa.OpInfo{Effects: ssa.Writes}, true
	}
	return ssa.OpInfo{}, true
}

// Verify accepts everything.
func (t Toy) Verify(*ssa.Op) error { return nil }

// Dialects are toy forms of aten, prim and onnx, for tests of what all dialects share.
func Dialects() []ssa.Dialect {
	return []ssa.Dialect{
		Toy{"aten", map[string]ssa.Effect{"rand": ssa.Random, "unknown": ssa.Unknown, "append": ssa.Writes}},
		Toy{"prim", map[string]ssa.Effect{
			"Print": ssa.Raises, "RaiseException": ssa.Raises, "SetAttr": ssa.Writes,
			"GetAttr": ssa.Reads, "ListConstruct": ssa.Fresh,
		}},
		Toy{"onnx", map[string]ssa.Effect{"RandomNormal": ssa.Random}},
	}
}

// Run parses the text, runs the pipeline with every check on, the one that text loses nothing among them, and gives the text that comes out. The second run of the
// pipeline must change nothing when stable is set.
func Run(t *testing.T, set *passes.Set, pipeline, text string, stable bool, dialects ...ssa.Dialect) string {
	t.Helper()
	m, err := ssa.Parse(text, "test", dialects...)
	if err != nil {
		t.Fatal(err)
	}
	p, err := set.Parse(pipeline)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(m, &passes.Runner{VerifyEach: true, VerifyRoundtrip: true}); err != nil {
		t.Fatal(err)
	}
	once := ssa.Print(m)
	if stable {
		if _, err := p.Run(m, &passes.Runner{VerifyEach: true, VerifyRoundtrip: true}); err != nil {
			t.Fatal(err)
		}
		if twice := ssa.Print(m); twice != once {
			t.Errorf("the second run of %s changes something:\n%s", pipeline, passes.Diff(strings.Split(once, "\n"), strings.Split(twice, "\n"), 2))
		}
	}
	return once
}

// Check demands that the pass turns Before into After, with the options of its Demo.
func Check(t *testing.T, pass *passes.Pass, dialects ...ssa.Dialect) {
	t.Helper()
	if pass.Doc == "" || pass.Before == "" || pass.After == "" {
		t.Errorf("%s: Doc, Before and After belong to every pass", pass.Name)
		return
	}
	pipeline := pass.Name
	if pass.Demo != "" {
		pipeline += "{" + pass.Demo + "}"
	}
	got := Run(t, &passes.Set{Passes: []*passes.Pass{pass}}, pipeline, pass.Before, false, dialects...)
	want := Normal(t, pass.After, dialects...)
	if got != want {
		t.Errorf("%s: Before does not become After (-got +want):\n%s", pass.Name, passes.Diff(strings.Split(got, "\n"), strings.Split(want, "\n"), 3))
	}
}

// Normal prints the text as the printer does.
func Normal(t *testing.T, text string, dialects ...ssa.Dialect) string {
	t.Helper()
	m, err := ssa.Parse(text, "test", dialects...)
	if err != nil {
		t.Fatal(err)
	}
	return ssa.Print(m)
}
