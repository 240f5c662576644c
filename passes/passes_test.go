package passes_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/passtest"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// rename turns one relu into a neg, so that a fixpoint has something to do.
var rename = passes.Pass{
	Name: "rename", Doc: "turn the first relu into what the option says",
	Options: []passes.Option{{Name: "to", Default: "neg"}, {Name: "times", Default: "1", Int: true}, {Name: "quiet", Default: "false", Bool: true}, {Name: "how", Default: "fast", Values: []string{"fast", "slow"}}},
	Run: func(c *passes.Context) error {
		n := 0
		for o := range c.Module.Main().Body.Ops() {
			if o.Kind == "aten::relu" && n < c.IntOption("times") {
				o.Kind = ssa.Kind("aten::" + c.Option("to"))
				n++
				c.Changed("rename")
			}
		}
		return nil
	},
}

var (
	crash  = passes.Pass{Name: "crash", Doc: "panics", Run: func(*passes.Context) error { panic("boom") }}
	spoil  = passes.Pass{Name: "spoil", Doc: "leaves an invalid module", Run: func(c *passes.Context) error { c.Module.Main().Body.Params[0].Type = nil; return nil }}
	refuse = passes.Pass{Name: "refuse", Doc: "reports", Run: func(c *passes.Context) error {
		c.Report(diag.Diagnostic{ID: "no", Op: "aten::relu", Message: "is not liked"})
		return nil
	}}
	noRelu = passes.Predicate{Name: "NoRelu", Check: func(m *ssa.Module) error {
		for o := range m.Main().Body.AllOps() {
			if o.Kind == "aten::relu" {
				return errors.New("there is a relu")
			}
		}
		return nil
	}}
	needs = passes.Pass{Name: "needs", Doc: "requires", Requires: []passes.Predicate{noRelu}, Run: func(*passes.Context) error { return nil }}
	lies  = passes.Pass{Name: "lies", Doc: "ensures", Ensures: []passes.Predicate{noRelu}, Run: func(*passes.Context) error { return nil }}
)

var set = &passes.Set{
	Passes: []*passes.Pass{&rename, &crash, &spoil, &refuse, &needs, &lies},
	Named: []passes.Named{
		{Name: "twice", Text: "rename{to=$what},rename{to=$what}", Options: []passes.Option{{Name: "what", Default: "exp"}}},
		{Name: "circle", Text: "circle"},
	},
}

const relus = `graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::relu(%b)
  return (%c)
`

func parse(t *testing.T, text string) *ssa.Module {
	t.Helper()
	m, err := ssa.Parse(text, "test", passtest.Dialects()...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPipelines(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "relu relu relu",
		"rename":                             "neg relu relu",
		"rename, rename{to=exp}":             "neg exp relu",
		`rename{to="e\x78p",times=1}`:        "exp relu relu",
		`rename{to="exp", times=2, quiet}`:   "exp exp relu",
		"fixpoint(rename)":                   "neg neg neg",
		"fixpoint{max=2}(rename)":            "neg neg relu",
		"fixpoint(fixpoint(rename{to=exp}))": "exp exp exp",
		"twice{what=sin},rename":             "sin sin neg",
		"twice":                              "exp exp relu",
	} {
		p, err := set.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		m := parse(t, relus)
		if _, err := p.Run(m, nil); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var got []string
		for o := range m.Main().Body.Ops() {
			got = append(got, o.Kind.Name())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", text, got, want)
		}
		again, err := set.Parse(p.String())
		if err != nil || again.String() != p.String() {
			t.Errorf("%s: is spelled %s, which reads as %v, %v", text, p, again, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"renam":                    `unknown pass "renam", did you mean "rename"?`,
		"zzzzzz":                   `unknown pass "zzzzzz"`,
		"rename{too=neg}":          `rename has no option "too", did you mean "to"?`,
		"rename{times=x}":          `must be a whole number, not "x"`,
		"rename{quiet=1}":          "true or false",
		"rename{how=odd}":          "must be one of [fast slow]",
		"rename{to=a,to=b}":        "comes twice",
		"rename{to=a":              "'}' is missing",
		`rename{to="a}`:            "no closing",
		"rename,":                  "a pass is missing",
		"rename)":                  `unexpected ")"`,
		"fixpoint(rename":          "')' is missing",
		"fixpoint rename":          "'(' is missing",
		"fixpoint{n=2}(rename)":    "no option",
		"circle":                   "in a circle",
		"rename{=b}":               "the name of an option is missing",
		"rename crash":             "unexpected",
		"fixpoint(rename,fixpont)": `did you mean "fixpoint"?`,
	} {
		if _, err := set.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %s, got %v", text, want, err)
		}
	}
}

func TestUntil(t *testing.T) {
	p, err := set.Parse("rename,fixpoint(needs,lies),rename,refuse")
	if err != nil {
		t.Fatal(err)
	}
	for pass, want := range map[string]string{"needs": "rename,fixpoint(needs,lies)", "rename": "rename,fixpoint(needs,lies),rename", "crash": ""} {
		part, ok := p.Until(pass)
		if ok != (want != "") || ok && part.String() != want {
			t.Errorf("until %s: %s, %v", pass, part, ok)
		}
	}
	if got := strings.Join(p.Passes(), " "); got != "rename needs lies refuse" {
		t.Error(got)
	}
}

func TestObservers(t *testing.T) {
	var out bytes.Buffer
	var timing passes.Timing
	var stats passes.Stats
	p, err := set.Parse("rename,needs,fixpoint(rename{to=exp})")
	if err != nil {
		t.Fatal(err)
	}
	m := parse(t, relus)
	r := &passes.Runner{Observers: []passes.Observer{passes.PrintAfter(&out, "needs"), passes.PrintChanged(&out), timing.Observer(), stats.Observer()}}
	if _, err := p.Run(m, r); err != nil {
		t.Fatal(err)
	}
	timing.Report(&out)
	stats.Report(&out)
	for _, part := range []string{
		"# rename\n@@ line 1\n graph(%x : Tensor):\n-  %a : Tensor = aten::relu(%x)\n+  %a : Tensor = aten::neg(%x)\n",
		"# after needs\ngraph(",
		"3x  rename{to=exp}\n", "1x  needs\n",
		"       3  rename: rename\n",
	} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %q in\n%s", part, &out)
		}
	}
}

func TestFailures(t *testing.T) {
	for text, want := range map[string]string{
		"rename,crash":  "internal error in pass crash: panic: boom",
		"rename,spoil":  "internal error in pass spoil: the module is invalid after it",
		"rename,needs":  "internal error in pass needs: it requires NoRelu: there is a relu",
		"rename,lies":   "internal error in pass lies: it ensures NoRelu: there is a relu",
		"refuse,needs":  "aten::relu: is not liked",
		"refuse,rename": "aten::relu: is not liked",
	} {
		for _, reload := range []bool{false, true} {
			p, err := set.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "aton-repro.ir")
			r := &passes.Runner{VerifyEach: true, Repro: file}
			if reload {
				r.Reload = func() (*ssa.Module, error) { return parse(t, relus), nil }
			}
			_, err = p.Run(parse(t, relus), r)
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: want %s, got %v", text, want, err)
				continue
			}
			var f *passes.Failure
			repro, readErr := os.ReadFile(file)
			if errors.As(err, &f) != (readErr == nil) {
				t.Errorf("%s: %v, but the reproducer: %v", text, err, readErr)
			}
			if f == nil {
				continue
			}
			wantRun := "# RUN: aton-opt %s --verify-each --passes='" + f.Pass + "'\n"
			if !strings.HasPrefix(string(repro), wantRun) || !strings.Contains(string(repro), "%a : Tensor = aten::neg(%x)") {
				t.Errorf("%s: the reproducer is\n%s", text, repro)
			}
			parse(t, string(repro))
		}
	}
}

func TestDiff(t *testing.T) {
	split := func(s string) []string { return slices.Collect(strings.SplitSeq(s, "")) }
	for _, c := range []struct{ a, b, want string }{
		{"abc", "abc", ""},
		{"abcdefgh", "abcXefgh", "@@ line 3\n c\n-d\n+X\n e\n"},
		{"ab", "aXb", "@@ line 1\n a\n+X\n b\n"},
		{"", "a", "@@ line 1\n+a\n"},
		{"a1b2c3d4e", "a1b9c3d4X", "@@ line 3\n b\n-2\n+9\n c\n@@ line 8\n 4\n-e\n+X\n"},
	} {
		if got := passes.Diff(split(c.a), split(c.b), 1); got != c.want {
			t.Errorf("%s, %s: got\n%s", c.a, c.b, got)
		}
	}
}

func ExampleSet_Parse() {
	_, err := set.Parse("renmae")
	fmt.Println(err)
	// Output: pipeline "renmae": unknown pass "renmae", did you mean "rename"?
}
