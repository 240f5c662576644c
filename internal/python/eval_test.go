package python

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

func list(elems ...ssa.Literal) ssa.Literal { return ssa.Literal{Kind: ssa.ListLit, Elems: elems} }

var i, f, b, str = ssa.Int, ssa.Float, ssa.Bool, ssa.Str

// What Python (or TorchScript, where a comment says so) gives.
func TestEval(t *testing.T) {
	for _, c := range []struct {
		op   string
		ret  ssa.Type
		args []ssa.Literal
		want ssa.Literal
	}{
		// ints stay ints, and an int and a float make a float
		{"add", ssa.IntType, []ssa.Literal{i(2), i(3)}, i(5)},
		{"add", ssa.NumberType, []ssa.Literal{i(2), f(0.5)}, f(2.5)},
		{"add", ssa.IntType, []ssa.Literal{b(true), i(1)}, i(2)},
		{"sub", ssa.IntType, []ssa.Literal{i(2), i(3)}, i(-1)},
		{"mul", ssa.FloatType, []ssa.Literal{f(0.5), f(4)}, f(2)},
		// // rounds down, and % has the sign of the divisor
		{"floordiv", ssa.IntType, []ssa.Literal{i(-7), i(2)}, i(-4)},
		{"floordiv", ssa.IntType, []ssa.Literal{i(7), i(-2)}, i(-4)},
		{"floordiv", ssa.FloatType, []ssa.Literal{f(-7.5), f(2)}, f(-4)},
		{"remainder", ssa.IntType, []ssa.Literal{i(-7), i(3)}, i(2)},
		{"remainder", ssa.IntType, []ssa.Literal{i(7), i(-3)}, i(-2)},
		{"remainder", ssa.FloatType, []ssa.Literal{f(-7), f(3)}, f(2)},
		{"fmod", ssa.FloatType, []ssa.Literal{f(-7), f(3)}, f(-1)},
		// of floats as TorchScript computes them, where Python takes the remainder off before it divides
		{"floordiv", ssa.FloatType, []ssa.Literal{f(1), f(0.1)}, f(10)},
		{"floordiv", ssa.FloatType, []ssa.Literal{f(1), f(math.Inf(1))}, f(0)},
		{"floordiv", ssa.FloatType, []ssa.Literal{f(-1), f(math.Inf(-1))}, f(0)},
		// the comparison decides where one of the two is not a number
		{"max", ssa.FloatType, []ssa.Literal{f(math.NaN()), f(1)}, f(1)},
		{"min", ssa.FloatType, []ssa.Literal{f(math.NaN()), f(1)}, f(1)},
		{"max", ssa.FloatType, []ssa.Literal{list(f(1), f(math.NaN()))}, f(1)},
		// / is a float always
		{"div", ssa.FloatType, []ssa.Literal{i(6), i(4)}, f(1.5)},
		{"pow", ssa.IntType, []ssa.Literal{i(-2), i(3)}, i(-8)},
		{"pow", ssa.FloatType, []ssa.Literal{i(2), i(-1)}, f(0.5)},
		{"gcd", ssa.IntType, []ssa.Literal{i(-12), i(18)}, i(6)},
		{"min", ssa.IntType, []ssa.Literal{i(2), i(-1)}, i(-1)},
		{"max", ssa.FloatType, []ssa.Literal{i(2), f(2.5)}, f(2.5)},
		{"log", ssa.FloatType, []ssa.Literal{f(8), f(2)}, f(3)},
		{"hypot", ssa.FloatType, []ssa.Literal{i(3), i(4)}, f(5)},
		{"copysign", ssa.FloatType, []ssa.Literal{f(3), f(math.Copysign(0, -1))}, f(-3)},
		{"ldexp", ssa.FloatType, []ssa.Literal{f(3), i(2)}, f(12)},
		// halves go to the even neighbour
		{"round", ssa.IntType, []ssa.Literal{f(2.5)}, i(2)},
		{"round", ssa.FloatType, []ssa.Literal{f(-3.5)}, f(-4)},
		{"round", ssa.FloatType, []ssa.Literal{f(2.675), i(1)}, f(2.7)},
		{"ceil", ssa.IntType, []ssa.Literal{f(-1.5)}, i(-1)},
		{"floor", ssa.NumberType, []ssa.Literal{f(-1.5)}, f(-2)},
		{"floor", ssa.NumberType, []ssa.Literal{i(3)}, i(3)},
		{"trunc", ssa.FloatType, []ssa.Literal{f(-1.5)}, f(-1)},
		{"Int", ssa.IntType, []ssa.Literal{f(-1.9)}, i(-1)},
		{"Int", ssa.IntType, []ssa.Literal{b(true)}, i(1)},
		{"Float", ssa.FloatType, []ssa.Literal{i(2)}, f(2)},
		{"Bool", ssa.BoolType, []ssa.Literal{f(0.1)}, b(true)},
		{"neg", ssa.IntType, []ssa.Literal{b(true)}, i(-1)},
		{"neg", ssa.FloatType, []ssa.Literal{f(2)}, f(-2)},
		{"abs", ssa.IntType, []ssa.Literal{i(-2)}, i(2)},
		{"abs", ssa.FloatType, []ssa.Literal{f(-2)}, f(2)},
		{"factorial", ssa.IntType, []ssa.Literal{i(5)}, i(120)},
		{"sqrt", ssa.FloatType, []ssa.Literal{i(16)}, f(4)},
		{"lgamma", ssa.FloatType, []ssa.Literal{f(1)}, f(0)},
		{"degrees", ssa.FloatType, []ssa.Literal{f(math.Pi)}, f(180)},
		{"radians", ssa.FloatType, []ssa.Literal{f(180)}, f(math.Pi)},
		{"isnan", ssa.BoolType, []ssa.Literal{f(math.NaN())}, b(true)},
		{"isinf", ssa.BoolType, []ssa.Literal{f(math.Inf(-1))}, b(true)},
		{"isfinite", ssa.BoolType, []ssa.Literal{f(math.Inf(1))}, b(false)},
		// and, or and xor of two bools are bools; shifts are not
		{"__and__", ssa.BoolType, []ssa.Literal{b(true), b(false)}, b(false)},
		{"__or__", ssa.IntType, []ssa.Literal{i(5), i(2)}, i(7)},
		{"__xor__", ssa.BoolType, []ssa.Literal{b(true), b(true)}, b(false)},
		{"__lshift__", ssa.IntType, []ssa.Literal{b(true), b(true)}, i(2)},
		{"__rshift__", ssa.IntType, []ssa.Literal{i(-8), i(1)}, i(-4)},
		{"bitwise_not", ssa.IntType, []ssa.Literal{i(5)}, i(-6)},
		{"bitwise_not", ssa.BoolType, []ssa.Literal{b(true)}, b(false)},
		{"__not__", ssa.BoolType, []ssa.Literal{i(0)}, b(true)},
		{"lt", ssa.BoolType, []ssa.Literal{i(1), f(1.5)}, b(true)},
		{"ge", ssa.BoolType, []ssa.Literal{i(1), i(1)}, b(true)},
		{"le", ssa.BoolType, []ssa.Literal{f(math.NaN()), f(1)}, b(false)},
		{"gt", ssa.BoolType, []ssa.Literal{i(1 << 60), i(1<<60 + 1)}, b(false)},
		{"eq", ssa.BoolType, []ssa.Literal{i(1), f(1)}, b(true)},
		{"ne", ssa.BoolType, []ssa.Literal{list(i(1), i(2)), list(i(1), i(3))}, b(true)},
		{"eq", ssa.BoolType, []ssa.Literal{ssa.None, i(0)}, b(false)},
		{"eq", ssa.BoolType, []ssa.Literal{ssa.Device("cpu"), ssa.Device("cuda:0")}, b(true)}, // a model runs on one device
		// complex
		{"mul", ssa.ComplexType, []ssa.Literal{ssa.Complex(1i), ssa.Complex(1i)}, ssa.Complex(-1)},
		{"add", ssa.ComplexType, []ssa.Literal{ssa.Complex(1i), f(2)}, ssa.Complex(2 + 1i)},
		{"sub", ssa.ComplexType, []ssa.Literal{ssa.Complex(1i), f(2)}, ssa.Complex(-2 + 1i)},
		{"div", ssa.ComplexType, []ssa.Literal{ssa.Complex(2i), f(2)}, ssa.Complex(1i)},
		{"neg", ssa.ComplexType, []ssa.Literal{ssa.Complex(2 + 1i)}, ssa.Complex(-2 - 1i)},
		{"Bool", ssa.BoolType, []ssa.Literal{ssa.Complex(1i)}, b(true)},
		{"ScalarImplicit", ssa.NumberType, []ssa.Literal{ssa.Complex(1i)}, ssa.Complex(1i)},
		{"Complex", ssa.ComplexType, []ssa.Literal{f(1), f(2)}, ssa.Complex(1 + 2i)},
		{"Complex", ssa.ComplexType, []ssa.Literal{f(1)}, ssa.Complex(1)},
		// range, as TorchScript writes it
		{"__range_length", ssa.IntType, []ssa.Literal{i(2), i(9), i(3)}, i(3)},
		{"__range_length", ssa.IntType, []ssa.Literal{i(9), i(2), i(-3)}, i(3)},
		{"__range_length", ssa.IntType, []ssa.Literal{i(9), i(2), i(3)}, i(0)},
		{"__range_length", ssa.IntType, []ssa.Literal{i(-3)}, i(0)},
		{"__derive_index", ssa.IntType, []ssa.Literal{i(2), i(5), i(-3)}, i(-1)},
		// lists
		{"len", ssa.IntType, []ssa.Literal{list(i(1), i(2))}, i(2)},
		{"any", ssa.BoolType, []ssa.Literal{list(b(false), b(true))}, b(true)},
		{"all", ssa.BoolType, []ssa.Literal{list()}, b(true)},
		{"all", ssa.BoolType, []ssa.Literal{list(b(true), b(false))}, b(false)},
		{"sum", ssa.IntType, []ssa.Literal{list(i(1), i(2), i(4))}, i(7)},
		{"max", ssa.FloatType, []ssa.Literal{list(f(1), f(2), f(-4))}, f(2)},
		// strings
		{"add", ssa.StrType, []ssa.Literal{str("ab"), str("c")}, str("abc")},
		{"mul", ssa.StrType, []ssa.Literal{str("ab"), i(2)}, str("abab")},
		{"mul", ssa.StrType, []ssa.Literal{str("ab"), i(-2)}, str("")},
		{"len", ssa.IntType, []ssa.Literal{str("é")}, i(2)}, // TorchScript counts bytes
		{"Int", ssa.IntType, []ssa.Literal{str(" 12 ")}, i(12)},
		{"Float", ssa.FloatType, []ssa.Literal{str("1e3")}, f(1000)},
		{"ord", ssa.IntType, []ssa.Literal{str("a")}, i(97)},
		{"chr", ssa.StrType, []ssa.Literal{i(97)}, str("a")},
		{"hex", ssa.StrType, []ssa.Literal{i(255)}, str("0xff")},
		{"lt", ssa.BoolType, []ssa.Literal{str("a"), str("b")}, b(true)},
		{"le", ssa.BoolType, []ssa.Literal{str("b"), str("b")}, b(true)},
		{"gt", ssa.BoolType, []ssa.Literal{str("a"), str("b")}, b(false)},
		{"ge", ssa.BoolType, []ssa.Literal{str("b"), str("a")}, b(true)},
		{"lower", ssa.StrType, []ssa.Literal{str("aB")}, str("ab")},
		{"upper", ssa.StrType, []ssa.Literal{str("aB")}, str("AB")},
		{"capitalize", ssa.StrType, []ssa.Literal{str("aBC")}, str("Abc")},
		{"capitalize", ssa.StrType, []ssa.Literal{str("")}, str("")},
		{"startswith", ssa.BoolType, []ssa.Literal{str("abc"), str("ab")}, b(true)},
		{"endswith", ssa.BoolType, []ssa.Literal{str("abc"), str("ab")}, b(false)},
		{"__contains__", ssa.BoolType, []ssa.Literal{str("abc"), str("bc")}, b(true)},
		{"find", ssa.IntType, []ssa.Literal{str("abc"), str("d")}, i(-1)},
		{"count", ssa.IntType, []ssa.Literal{str("aaa"), str("aa")}, i(1)},
		{"replace", ssa.StrType, []ssa.Literal{str("aXbX"), str("X"), str("-")}, str("a-b-")},
		{"strip", ssa.StrType, []ssa.Literal{str("  a\n")}, str("a")},
		{"lstrip", ssa.StrType, []ssa.Literal{str("xxax"), str("x")}, str("ax")},
		{"rstrip", ssa.StrType, []ssa.Literal{str("xax"), str("x")}, str("xa")},
		{"split", nil, []ssa.Literal{str(" a  b ")}, ssa.Strs("a", "b")},
		{"split", nil, []ssa.Literal{str("a,,b"), str(",")}, ssa.Strs("a", "", "b")},
		{"join", ssa.StrType, []ssa.Literal{str("-"), list(str("a"), str("b"))}, str("a-b")},
		{"isdigit", ssa.BoolType, []ssa.Literal{str("12a")}, b(false)},
		{"isnumeric", ssa.BoolType, []ssa.Literal{str("12")}, b(true)},
		{"isnumeric", ssa.BoolType, []ssa.Literal{str("-1")}, b(false)},
		{"isdecimal", ssa.BoolType, []ssa.Literal{str("")}, b(false)},
		{"isalpha", ssa.BoolType, []ssa.Literal{str("aB")}, b(true)},
		{"isalpha", ssa.BoolType, []ssa.Literal{str("a1")}, b(false)},
		{"isalnum", ssa.BoolType, []ssa.Literal{str("a1")}, b(true)},
		{"isalnum", ssa.BoolType, []ssa.Literal{str("a-")}, b(false)},
		{"isspace", ssa.BoolType, []ssa.Literal{str(" \t\n")}, b(true)},
		{"isspace", ssa.BoolType, []ssa.Literal{str(" a")}, b(false)},
		{"isupper", ssa.BoolType, []ssa.Literal{str("AB1")}, b(true)},
		{"isupper", ssa.BoolType, []ssa.Literal{str("12")}, b(false)},
		{"islower", ssa.BoolType, []ssa.Literal{str("aB")}, b(false)},
		{"find", ssa.IntType, []ssa.Literal{str("abab"), str("a"), i(1), i(-1)}, i(2)},
		{"find", ssa.IntType, []ssa.Literal{str("abab"), str("b"), i(2), i(3)}, i(-1)},
		{"find", ssa.IntType, []ssa.Literal{str(""), str(""), i(0), i(-1)}, i(-1)},
		{"rfind", ssa.IntType, []ssa.Literal{str("abab"), str("a"), i(0), i(-1)}, i(2)},
		{"rfind", ssa.IntType, []ssa.Literal{str("abab"), str("a"), i(-4), i(2)}, i(0)},
		{"__getitem__", ssa.StrType, []ssa.Literal{str("abc"), i(-1)}, str("c")},
		{"slice", ssa.StrType, []ssa.Literal{str("abcd"), i(1), i(-1), i(1)}, str("bc")},
		{"format", ssa.StrType, []ssa.Literal{str("{} of {}"), i(1), f(2)}, str("1 of 2.0")},
		{"percentFormat", ssa.StrType, []ssa.Literal{str("%d of %s"), i(1), str("x")}, str("1 of x")},
		{"str", ssa.StrType, []ssa.Literal{b(true)}, str("True")},
		{"str", ssa.StrType, []ssa.Literal{b(false)}, str("False")},
		{"str", ssa.StrType, []ssa.Literal{ssa.None}, str("None")},
		{"str", ssa.StrType, []ssa.Literal{ssa.Device("cpu")}, str("cpu")},
		{"str", ssa.StrType, []ssa.Literal{str("a")}, str("a")},
		{"str", ssa.StrType, []ssa.Literal{f(1e-5)}, str("1e-05")},
		{"str", ssa.StrType, []ssa.Literal{list(i(1), str("a"))}, str("[1, 'a']")},
		{"str", ssa.StrType, []ssa.Literal{{Kind: ssa.TupleLit, Elems: []ssa.Literal{i(1), f(2)}}}, str("(1, 2.0)")},
		// dtypes by their numbers
		{"promote_types", ssa.IntType, []ssa.Literal{i(int64(tensor.Int64.Code())), i(int64(tensor.Float16.Code()))}, i(int64(tensor.Float16.Code()))},
	} {
		got, err := Eval(c.op, c.ret, c.args...)
		if err != nil {
			t.Errorf("%s%v: %v", c.op, c.args, err)
		} else if !got.Equal(c.want) && got.String() != c.want.String() {
			t.Errorf("%s%v is %v, want %v", c.op, c.args, got, c.want)
		}
	}
}

func TestEvalRaises(t *testing.T) {
	for _, c := range []struct {
		op   string
		args []ssa.Literal
	}{
		{"floordiv", []ssa.Literal{i(1), i(0)}},
		{"remainder", []ssa.Literal{i(1), i(0)}},
		{"div", []ssa.Literal{f(1), f(0)}},
		{"__range_length", []ssa.Literal{i(1), i(2), i(0)}},
		{"__getitem__", []ssa.Literal{str("ab"), i(2)}},
		{"__getitem__", []ssa.Literal{str("ab"), i(-3)}},
	} {
		var raises *Exception
		if l, err := Eval(c.op, ssa.AnyType, c.args...); !errors.As(err, &raises) || raises.Error() == "" {
			t.Errorf("%s%v gives %v and %v, want an exception", c.op, c.args, l, err)
		}
	}
}

// What has no meaning on constants is left to others: never a guess.
func TestEvalUnknown(t *testing.T) {
	enum := ssa.Literal{Kind: ssa.EnumLit}
	for _, c := range []struct {
		op   string
		args []ssa.Literal
	}{
		{"relu", []ssa.Literal{f(1)}},
		{"relu", []ssa.Literal{f(1), f(2)}},
		{"relu", []ssa.Literal{f(1), f(2), f(3)}},
		{"relu", []ssa.Literal{ssa.Complex(1)}},
		{"min", []ssa.Literal{list()}},
		{"sum", []ssa.Literal{list(str("a"), str("b"))}},
		{"sort", []ssa.Literal{list(i(1))}},
		{"add", []ssa.Literal{ssa.None, i(1)}},
		{"lt", []ssa.Literal{ssa.Complex(1), i(1)}},
		{"pow", []ssa.Literal{i(2), i(64)}},
		{"eq", []ssa.Literal{str("a"), i(1)}},
		{"str", []ssa.Literal{enum}},
		{"neg", []ssa.Literal{ssa.Device("cpu")}},
		{"Int", []ssa.Literal{str("x")}},
		{"Float", []ssa.Literal{str("x")}},
		{"ord", []ssa.Literal{str("")}},
		{"join", []ssa.Literal{str("x")}},
		{"slice", []ssa.Literal{str("abc"), i(0), i(2), i(2)}},
		{"promote_types", []ssa.Literal{i(-7), i(-7)}},
	} {
		ret := ssa.Type(ssa.IntType)
		if l, err := Eval(c.op, ret, c.args...); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s%v gives %v and %v, want ErrUnknown", c.op, c.args, l, err)
		}
	}
}

// Every name stands for an operator of TorchScript, or is an older spelling that graphs may still have.
func TestNames(t *testing.T) {
	older := []string{"Scalar", "and", "or"}
	for _, name := range Names() {
		if aten.Schemas(ssa.Kind("aten::"+name)) == nil && !slices.Contains(older, name) && name != "promote_types" && name != "item" {
			t.Errorf("there is no aten::%s", name)
		}
	}
}

func TestLess(t *testing.T) {
	sorted := []ssa.Literal{list(i(1), i(2)), list(i(1), i(2), i(0)), list(i(2))}
	for k := range sorted[1:] {
		if !Less(sorted[k], sorted[k+1]) || Less(sorted[k+1], sorted[k]) {
			t.Errorf("%v and %v are not in order", sorted[k], sorted[k+1])
		}
	}
	if !Less(str("a"), str("b")) || !Less(i(1), f(1.5)) || Less(i(2), i(1)) || Less(str("a"), i(1)) {
		t.Error("the order of strings and numbers")
	}
}

// What is infinite beside a number, and what is not a number, stays what PyTorch makes of it.
func TestRemainderOfInfinity(t *testing.T) {
	for _, x := range [][2]float64{{1, math.Inf(1)}, {-1, math.Inf(1)}, {1, math.Inf(-1)}, {math.Inf(1), 2}} {
		l, err := Eval("remainder", ssa.FloatType, ssa.Float(x[0]), ssa.Float(x[1]))
		if err != nil || !math.IsNaN(l.Float()) {
			t.Errorf("%g %% %g is %v, %v", x[0], x[1], l, err)
		}
	}
	if l, err := Eval("max", ssa.FloatType, ssa.Float(1), ssa.Float(math.NaN())); err != nil || !math.IsNaN(l.Float()) {
		t.Errorf("max(1.0, nan) is %v, %v", l, err)
	}
}

// divmod of two floats takes the remainder off first; that of an int and a float divides in float32, and rounds down.
func TestDivmod(t *testing.T) {
	for _, c := range []struct {
		x, y ssa.Literal
		q, r float64
	}{
		{ssa.Float(7.5), ssa.Float(2), 3, 1.5},
		{ssa.Float(-7.5), ssa.Float(2), -4, 0.5},
		{ssa.Float(1), ssa.Float(math.Inf(-1)), math.NaN(), math.Inf(-1)},
		{ssa.Int(1), ssa.Float(0.1), 10, 1 - 10*float64(float32(0.1))},
		{ssa.Float(1e10), ssa.Int(3), 3333333248, 256},
	} {
		q, r := Divmod(c.x, c.y)
		if q != c.q && !(math.IsNaN(q) && math.IsNaN(c.q)) || r != c.r {
			t.Errorf("divmod(%v, %v) is %v, %v, not %v, %v", c.x, c.y, q, r, c.q, c.r)
		}
	}
}

// A string that would take the memory of a machine is not made.
func TestTooLarge(t *testing.T) {
	long := ssa.Str(strings.Repeat("a", 1<<20))
	for name, args := range map[string][]ssa.Literal{
		"mul":     {ssa.Str("a"), ssa.Int(1 << 40)},
		"replace": {long, ssa.Str("a"), ssa.Str(strings.Repeat("b", 1<<10))},
	} {
		if _, err := Eval(name, ssa.StrType, args...); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestLargeInts: ints are compared as ints. As floats, the numbers next to 2^53 are one.
func TestLargeInts(t *testing.T) {
	x, y := ssa.Int(1<<53), ssa.Int(1<<53+1)
	for name, want := range map[string]bool{"lt": true, "le": true, "gt": false, "ge": false, "eq": false, "ne": true} {
		if got, err := Eval(name, ssa.BoolType, x, y); err != nil || got.Bool() != want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestFactorial: the factorial wraps around. PyTorch has none of negative numbers and of 66 and more, and no loop takes years to find one.
func TestFactorial(t *testing.T) {
	for n, want := range map[int64]int64{0: 1, 5: 120, 20: 2432902008176640000, 21: -4249290049419214848} {
		if got, err := Eval("factorial", ssa.IntType, ssa.Int(n)); err != nil || got.Int() != want {
			t.Errorf("%d: %v, %v", n, got, err)
		}
	}
	for _, n := range []int64{-1, 66, math.MaxInt64} {
		if got, err := Eval("factorial", ssa.IntType, ssa.Int(n)); err == nil {
			t.Errorf("%d: %v", n, got)
		}
	}
}
