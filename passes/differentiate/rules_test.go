package differentiate

import (
	"slices"
	"testing"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// TestRules: each row's rule can be read, names arguments of its operator, and calls operators that there are.
func TestRules(t *testing.T) {
	builtin := []string{"inverse", "negatives", "sizes", "unbroadcast"}
	found := 0
	for _, family := range aten.Families() {
		for _, k := range family {
			text := aten.GradientOf(k)
			if text == "" || text == aten.NoGradient {
				continue
			}
			found++
			u, err := ruleOf(text)
			if err != nil {
				t.Errorf("%s: %v", k, err)
				continue
			}
			args := map[string]bool{"grad": true, "grads": true}
			for _, name := range []string{"result", "result1", "result2"} {
				args[name] = true
			}
			for _, s := range aten.Schemas(k) {
				for i := range s.Args {
					args[s.Args[i].Name] = true
				}
			}
			for name := range u.guards {
				if !args[name] {
					t.Errorf("%s: no overload has the argument %q", k, name)
				}
			}
			for _, f := range u.formulas {
				if !args[f.operand] {
					t.Errorf("%s: no overload has the argument %q", k, f.operand)
				}
				for _, e := range f.choices {
					e.names(func(name string) {
						if !args[name] {
							t.Errorf("%s: no overload has the argument %q", k, name)
						}
					})
					e.calls(func(name string) {
						if !slices.Contains(builtin, name) && len(aten.Schemas(ssa.Kind("aten::"+name))) == 0 {
							t.Errorf("%s: there is no aten::%s", k, name)
						}
					})
				}
			}
		}
	}
	if found < 130 {
		t.Errorf("%d rules", found)
	}
}

// calls calls yield with each name of a function in the expression.
func (e *expr) calls(yield func(name string)) {
	if e.op == "call" {
		yield(e.name)
	}
	for _, a := range e.args {
		a.calls(yield)
	}
	for _, a := range e.named {
		a.calls(yield)
	}
}

func FuzzRule(f *testing.F) {
	f.Add("self: grad * (exponent * pow(self, exponent - 1)); other: -grad | grad / 2.5")
	f.Add("[p=2] self: masked_fill(grad, eq(result, 0), 0)")
	f.Add("a: dim(b) == 1 ? [x, -1] : y[2]")
	f.Fuzz(func(t *testing.T, text string) { _, _ = ruleOf(text) })
}
