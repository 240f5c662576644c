package ssa_test

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
)

func parseType(t *testing.T, s string) ssa.Type {
	t.Helper()
	ty, err := ssa.ParseType(s)
	if err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return ty
}

// TestSubtype has TorchScript's relation: what may stand where another type is asked for.
func TestSubtype(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"int", "int", true},
		{"int", "float", false},
		{"int", "Scalar", true},
		{"float", "Scalar", true},
		{"Tensor", "Scalar", false},
		{"Float(2, 3)", "Tensor", true},
		{"NoneType", "int?", true},
		{"int", "int?", true},
		{"int?", "int?", true},
		{"int?", "int", false},
		{"int?", "Scalar?", true},
		{"Tensor?", "Tensor?", true},
		{"int[]", "int[]", true},
		{"int[]", "float[]", false},
		{"(int, Tensor)", "(int, Tensor)", true},
		{"(int, Float(2))", "(int, Tensor)", true},
		{"(int, float)", "(int, int)", false},
		{"(int)", "(int, int)", false},
		{"int", "(int, int)", false},
		{"Dict(str, int)", "Dict(str, int)", true},
		{"Dict(str, int)", "Dict(str, float)", false},
		{"__torch__.A", "__torch__.A", true},
		{"__torch__.A", "__torch__.B", false},
	} {
		if got := ssa.IsSubtype(parseType(t, c.a), parseType(t, c.b)); got != c.want {
			t.Errorf("%s may stand for %s: %v", c.a, c.b, got)
		}
	}
	for _, c := range []struct {
		a    string
		b    ssa.Type
		want bool
	}{
		{"int[]", ssa.AnyListType, true},
		{"(int, int)", ssa.AnyListType, false},
		{"(int, int)", ssa.AnyTupleType, true},
		{"int[]", ssa.AnyTupleType, false},
		{"__torch__.A", ssa.AnyClassType, true},
		{"int", ssa.AnyClassType, false},
		{"__torch__.A", ssa.AnyType, true},
	} {
		if got := ssa.IsSubtype(parseType(t, c.a), c.b); got != c.want {
			t.Errorf("%s may stand for %s: %v", c.a, c.b, got)
		}
	}
}

// TestUnify has the type that two branches of a program agree on; "" if there is none.
func TestUnify(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"int", "int", "int"},
		{"int", "str", ""},
		{"Float(2)", "Float(3)", "Tensor"},
		{"NoneType", "int", "int?"},
		{"int", "NoneType", "int?"},
		{"int?", "int", "int?"},
		{"int", "int?", "int?"},
		{"int?", "str", ""},
		{"str", "int?", ""},
		{"(int, NoneType)", "(int, str)", "(int, str?)"},
		{"(int, int)", "(int, str)", ""},
		{"(int, int)", "(int)", ""},
	} {
		u, ok := ssa.UnifyTypes(parseType(t, c.a), parseType(t, c.b))
		got := ""
		if ok {
			got = u.String()
		}
		if got != c.want {
			t.Errorf("%s and %s agree on %q, want %q", c.a, c.b, got, c.want)
		}
	}
}

// TestValues parses attribute values, prints them, and parses them again.
func TestValues(t *testing.T) {
	for _, c := range []struct{ typ, value, want string }{
		{"str", `"a\tb\rc\n\"d\"\\"`, ""},
		{"str", `"\a\b\f\v"`, ""},
		{"float", "1", ""},
		{"float", "1e-3", ""},
		{"int", "-5", ""},
		{"complex", "1.+2.j", ""},
		{"complex", "2.j", ""},
		{"bool", "1", ""},
		{"int[]", "[1, 2]", ""},
		{"float[]", "[1, 2.5]", ""},
		{"str[]", `["a", "b"]`, ""},
		{"int", "99999999999999999999", "out of range"},
		{"str", `"no end`, "without end"},
		{"int[]", strings.Repeat("[", 2000), "nested too deeply"},
		{"int", "", "expected"},
		{"Tensor", "{1 2}", "expected"},
		{"Float(99999999999999)", "{1}", "too large"},
		{"Tensor", "<no end", "expected >"},
		{"Float(3)", "  1  2 [ CPUFloatType{3} ]", "3"},
		{"Tensor", " 1 [ CPUNoType{1} ]", "unknown type"},
		{"Long(2)", " 1  2 [ CPULongType{2} ]", ""},
		{"Long()", "{7}", ""},
		{"Bool()", "{1}", ""},
	} {
		text := "graph():\n  %a : " + c.typ + " = prim::Constant[value=" + c.value + "]()\n  return (%a)\n"
		m, err := ssa.Parse(text, "t.ir")
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %.40s: %v, want %s", c.typ, c.value, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s: %v", c.typ, c.value, err)
			continue
		}
		once := ssa.Print(m)
		again, err := ssa.Parse(once, "t.ir")
		if err != nil {
			t.Errorf("%s %s: what is printed is not read: %v\n%s", c.typ, c.value, err, once)
			continue
		}
		if ssa.Print(again) != once {
			t.Errorf("%s %s: printed as\n%sand then as\n%s", c.typ, c.value, once, ssa.Print(again))
		}
	}
}
