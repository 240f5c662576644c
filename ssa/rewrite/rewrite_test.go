package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// toy says that everything is pure.
type toy struct{}

func (toy) Namespace() string               { return "t" }
func (toy) Info(*ssa.Op) (ssa.OpInfo, bool) { return ssa.OpInfo{}, true }
func (toy) Verify(*ssa.Op) error            { return nil }

func config() Config {
	return Config{
		Create: func(before *ssa.Op, loc diag.Loc, kind ssa.Kind, results int, operands []*ssa.Value, attrs []ssa.Attr) ([]*ssa.Value, error) {
			if kind == "t::impossible" {
				return nil, fmt.Errorf("impossible")
			}
			types := make([]ssa.Type, results)
			for i := range types {
				types[i] = ssa.AnyTensor
			}
			o := before.Block().InsertBefore(before, kind, loc, operands, types...)
			o.Attrs = attrs
			return o.Results, nil
		},
		IsConst: func(v *ssa.Value) bool { return v.Def() != nil && v.Def().Kind == "t::Constant" },
	}
}

func run(t *testing.T, text string, rules ...Rule) (string, Result) {
	t.Helper()
	m, err := ssa.Parse(text, "test", toy{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := Compile(rules...)
	if err != nil {
		t.Fatal(err)
	}
	res := Run(m.Main(), set, config())
	if err := ssa.Verify(m); err != nil {
		t.Fatal(err)
	}
	return ssa.Print(m), res
}

func TestTable(t *testing.T) {
	fuse := Rule{
		Name: "fuse",
		From: `%a = t::mul(%x, %k!)
		       %y = t::add[alpha=$n, *](%a, %z)`,
		To: `%y = t::fma[n=$n, *](%x, %k, %z)`,
	}
	got, res := run(t, `
graph(%x : Tensor, %z : Tensor):
  %k : Tensor = t::Constant()
  %a : Tensor = t::mul(%x, %k)
  %y : Tensor = t::add[alpha=2, beta=3](%a, %z)
  %b : Tensor = t::mul(%y, %z)
  %c : Tensor = t::add(%b, %z)
  %d : Tensor = t::mul(%c, %k)
  %e : Tensor = t::add(%d, %z)
  return (%e, %d)`, fuse)
	// the second product is by no constant, the third has another user
	want := "%y : Tensor = t::fma[beta=3, n=2](%x, %k, %z)"
	if !strings.Contains(got, want) || strings.Count(got, "fma") != 1 || len(res.Applied) != 1 {
		t.Errorf("got %v\n%s", res.Applied, got)
	}
}

func TestSameValueAndAbsent(t *testing.T) {
	r := Rule{Name: "same", From: "%y = t::where(%c, %a, %a, _)", To: "%y = %a"}
	got, _ := run(t, `
graph(%c : Tensor, %a : Tensor, %b : Tensor):
  %x : Tensor = t::where(%c, %a, %a)
  %y : Tensor = t::where(%c, %a, %b)
  %z : Tensor = t::where(%c, %b, %b, %a)
  return (%x, %y, %z)`, r)
	if !strings.Contains(got, "return (%a, %y, %z)") {
		t.Error(got)
	}
}

// A change makes ops before and behind it fit: the driver comes back to them.
func TestWorklist(t *testing.T) {
	pair := Rule{Name: "pair", From: "%a = t::neg(%x)\n%y = t::neg(%a*)", To: "%y = %x"}
	got, res := run(t, `
graph(%x : Tensor):
  %a : Tensor = t::neg(%x)
  %b : Tensor = t::neg(%a)
  %c : Tensor = t::neg(%b)
  %d : Tensor = t::neg(%c)
  %e : Tensor = t::f(%d)
  return (%e)`, pair)
	if !strings.Contains(got, "t::f(%x)") || strings.Contains(got, "neg") {
		t.Error(got)
	}
	if len(res.Grew) != 0 {
		t.Error(res.Grew)
	}
}

func TestAbandoned(t *testing.T) {
	text := `
graph(%x : Tensor):
  %a : Tensor = t::f(%x)
  return (%a)`
	got, res := run(t, text, Rule{Name: "no", From: "%y = t::f(%x)", To: "%a = t::g(%x)\n%y = t::impossible(%a)"})
	if strings.Contains(got, "t::g") || len(res.Applied) != 0 {
		t.Error(got)
	}
}

func TestGrew(t *testing.T) {
	_, res := run(t, `
graph(%x : Tensor):
  %a : Tensor = t::f(%x)
  return (%a)`, Rule{Name: "grow", From: "%y = t::f(%x)", To: "%a = t::g(%x)\n%y = t::h(%a)"})
	if len(res.Grew) != 1 {
		t.Error("a rule that makes two ops of one is not told")
	}
}

func TestCycle(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(fmt.Sprint(r), "there, back") {
			t.Errorf("got %v", r)
		}
	}()
	run(t, `
graph(%x : Tensor):
  %a : Tensor = t::f(%x)
  return (%a)`,
		Rule{Name: "there", From: "%y = t::f(%x)", To: "%y = t::g(%x)"},
		Rule{Name: "back", From: "%y = t::g(%x)", To: "%y = t::f(%x)"})
}

func TestCompileErrors(t *testing.T) {
	for _, r := range []Rule{
		{From: "%y = t::f(%x)", To: "%y = %x"},
		{Name: "a", From: "%y = t::f(%x", To: "%y = %x"},
		{Name: "a", From: "%y = t::f(%x)", To: "%y = %z"},
		{Name: "a", From: "%y = t::f(%x)", To: "%z = t::g(%x)"},
		{Name: "a", From: "%y = t::f[k=?](%x)", To: "%y = %x"},
		{Name: "a", From: "", To: "%y = %x"},
		{Name: "a", From: "%y = t::f(%x)", To: "%y = %x", Apply: func(*Rewriter, *ssa.Op) bool { return false }},
	} {
		if _, err := Compile(r); err == nil {
			t.Errorf("%+v is accepted", r)
		}
	}
}
