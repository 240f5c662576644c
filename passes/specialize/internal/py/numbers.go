package py

import (
	"cmp"
	"math"
	"math/big"
	"strconv"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// floatFunctions take one number and give a float.
var floatFunctions = map[string]func(float64) float64{
	"sqrt": math.Sqrt, "exp": math.Exp, "expm1": math.Expm1,
	"log": math.Log, "log2": math.Log2, "log10": math.Log10, "log1p": math.Log1p,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
	"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh,
	"gamma": math.Gamma, "erf": math.Erf, "erfc": math.Erfc, "fabs": math.Abs,
	"lgamma":  func(x float64) float64 { v, _ := math.Lgamma(x); return v },
	"degrees": func(x float64) float64 { return x * 180 / math.Pi },
	"radians": func(x float64) float64 { return x * math.Pi / 180 },
	"Float":   func(x float64) float64 { return x }, "FloatImplicit": func(x float64) float64 { return x },
}

// roundings give an int where the schema says so, and a number of the kind of
// their argument where it says nothing. Python rounds halves to even.
var roundings = map[string]func(float64) float64{"ceil": math.Ceil, "floor": math.Floor, "trunc": math.Trunc, "round": math.RoundToEven}

// unaries are the other operators of one number.
var unaries = map[string]func(ssa.Literal) ssa.Literal{
	"Int": toInt, "IntImplicit": toInt,
	"Complex": toComplex, "ComplexImplicit": toComplex,
	"Bool":           func(x ssa.Literal) ssa.Literal { return ssa.Bool(x.Float() != 0) },
	"ScalarImplicit": itself, "Scalar": itself, "item": itself,
	"__not__": func(x ssa.Literal) ssa.Literal { return ssa.Bool(x.Float() == 0) },
	"neg": func(x ssa.Literal) ssa.Literal {
		if integral(x) {
			return ssa.Int(-x.Int())
		}
		return ssa.Float(-x.Float())
	},
	"abs": func(x ssa.Literal) ssa.Literal {
		if integral(x) {
			return ssa.Int(max(x.Int(), -x.Int()))
		}
		return ssa.Float(math.Abs(x.Float()))
	},
	"bitwise_not": func(x ssa.Literal) ssa.Literal {
		if x.Kind == ssa.BoolLit {
			return ssa.Bool(!x.Bool())
		}
		return ssa.Int(^x.Int())
	},
	"factorial": func(x ssa.Literal) ssa.Literal {
		n := int64(1)
		for i := int64(2); i <= x.Int(); i++ {
			n *= i
		}
		return ssa.Int(n)
	},
	"isnan":          func(x ssa.Literal) ssa.Literal { return ssa.Bool(math.IsNaN(x.Float())) },
	"isinf":          func(x ssa.Literal) ssa.Literal { return ssa.Bool(math.IsInf(x.Float(), 0)) },
	"isfinite":       func(x ssa.Literal) ssa.Literal { return ssa.Bool(!math.IsInf(x.Float(), 0) && !math.IsNaN(x.Float())) },
	"chr":            func(x ssa.Literal) ssa.Literal { return ssa.Str(string(rune(x.Int()))) },
	"hex":            func(x ssa.Literal) ssa.Literal { return ssa.Str("0x" + strconv.FormatInt(x.Int(), 16)) },
	"str":            func(x ssa.Literal) ssa.Literal { return ssa.Str(Str(x)) },
	"__range_length": func(x ssa.Literal) ssa.Literal { return ssa.Int(max(x.Int(), 0)) },
}

func itself(x ssa.Literal) ssa.Literal { return x }

// toInt is int(x), which cuts off the fraction.
func toInt(x ssa.Literal) ssa.Literal {
	if integral(x) {
		return ssa.Int(x.Int())
	}
	return ssa.Int(int64(x.Float()))
}

func toComplex(x ssa.Literal) ssa.Literal { return ssa.Complex(complex(x.Float(), 0)) }

// orders compare, given the sign of x - y.
var orders = map[string]func(sign int) bool{
	"lt": func(s int) bool { return s < 0 }, "le": func(s int) bool { return s <= 0 },
	"gt": func(s int) bool { return s > 0 }, "ge": func(s int) bool { return s >= 0 },
}

func order[T cmp.Ordered](x, y T) int { return cmp.Compare(x, y) }

// bits work on the bits of ints; of two bools they give a bool, but for shifts.
var bits = map[string]func(x, y int64) int64{
	"__and__": func(x, y int64) int64 { return x & y }, "and": func(x, y int64) int64 { return x & y },
	"__or__": func(x, y int64) int64 { return x | y }, "or": func(x, y int64) int64 { return x | y },
	"__xor__":    func(x, y int64) int64 { return x ^ y },
	"__lshift__": func(x, y int64) int64 { return x << uint(y&63) },
	"__rshift__": func(x, y int64) int64 { return x >> uint(y&63) },
}

var shifts = map[string]bool{"__lshift__": true, "__rshift__": true}

// intFunctions are of two ints and give one.
var intFunctions = map[string]func(x, y int64) (int64, error){
	"add": func(x, y int64) (int64, error) { return x + y, nil },
	"sub": func(x, y int64) (int64, error) { return x - y, nil },
	"mul": func(x, y int64) (int64, error) { return x * y, nil },
	"min": func(x, y int64) (int64, error) { return min(x, y), nil },
	"max": func(x, y int64) (int64, error) { return max(x, y), nil },
	"floordiv": func(x, y int64) (int64, error) {
		if y == 0 {
			return 0, &Exception{"integer division or modulo by zero"}
		}
		return FloorDiv(x, y), nil
	},
	"remainder": func(x, y int64) (int64, error) {
		if y == 0 {
			return 0, &Exception{"integer division or modulo by zero"}
		}
		return x - FloorDiv(x, y)*y, nil
	},
	"gcd": func(x, y int64) (int64, error) {
		return new(big.Int).GCD(nil, nil, big.NewInt(max(x, -x)), big.NewInt(max(y, -y))).Int64(), nil
	},
}

// pairFunctions are of two numbers and give a float. Where intFunctions has the name too, it takes the ints.
var pairFunctions = map[string]func(x, y float64) float64{
	"add":       func(x, y float64) float64 { return x + y },
	"sub":       func(x, y float64) float64 { return x - y },
	"mul":       func(x, y float64) float64 { return x * y },
	"min":       least, // TorchScript compares: the second one, if one of them is not a number
	"max":       greatest,
	"floordiv":  func(x, y float64) float64 { return math.Floor(x / y) },
	"remainder": func(x, y float64) float64 { return math.Mod(y+math.Mod(x, y), y) },
	"atan2":     math.Atan2,
	"hypot":     math.Hypot,
	"fmod":      math.Mod,
	"copysign":  math.Copysign,
	"log":       func(x, base float64) float64 { return math.Log(x) / math.Log(base) },
	"round": func(x, digits float64) float64 {
		p := math.Pow(10, digits)
		return math.RoundToEven(x*p) / p
	},
}

var complexFunctions = map[string]func(x, y complex128) complex128{
	"add": func(x, y complex128) complex128 { return x + y },
	"sub": func(x, y complex128) complex128 { return x - y },
	"mul": func(x, y complex128) complex128 { return x * y },
	"div": func(x, y complex128) complex128 { return x / y },
}

// binaries are the operators of two numbers that fit none of the tables above.
var binaries = map[string]func(ret ssa.Type, x, y ssa.Literal) (ssa.Literal, error){
	"Complex": func(_ ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
		return ssa.Complex(complex(x.Float(), y.Float())), nil
	},
	"div": func(_ ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
		if y.Float() == 0 {
			return ssa.None, &Exception{"division by zero"}
		}
		return ssa.Float(x.Float() / y.Float()), nil
	},
	"ldexp": func(_ ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
		return ssa.Float(math.Ldexp(x.Float(), int(y.Int()))), nil
	},
	"pow": func(ret ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
		if !integral(x) || !integral(y) || ret != ssa.IntType {
			return ssa.Float(math.Pow(x.Float(), y.Float())), nil
		}
		if y.Int() < 0 || y.Int() >= 64 {
			return ssa.None, ErrUnknown
		}
		n := int64(1)
		for range y.Int() {
			n *= x.Int()
		}
		return ssa.Int(n), nil
	},
	// of two dtypes, by the numbers that PyTorch has for them
	"promote_types": func(_ ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
		d := aten.Promote(tensor.FromCode(int(x.Int())), tensor.FromCode(int(y.Int())))
		if d == tensor.Undefined {
			return ssa.None, ErrUnknown
		}
		return ssa.Int(int64(d.Code())), nil
	},
}

// ternaries are operators of three ints: those that TorchScript writes for range().
var ternaries = map[string]func(x, y, z int64) (int64, error){
	"__range_length": func(lo, hi, step int64) (int64, error) {
		switch {
		case step == 0:
			return 0, &Exception{"range() arg 3 must not be zero"}
		case step > 0 && lo < hi:
			return 1 + (hi-1-lo)/step, nil
		case step < 0 && lo > hi:
			return 1 + (lo-1-hi)/-step, nil
		}
		return 0, nil
	},
	"__derive_index": func(i, start, step int64) (int64, error) { return start + i*step, nil },
}

func ternary(name string, a []ssa.Literal) (ssa.Literal, error) {
	f := ternaries[name]
	if f == nil || a[0].Kind != ssa.IntLit || a[1].Kind != ssa.IntLit || a[2].Kind != ssa.IntLit {
		return ssa.None, ErrUnknown
	}
	n, err := f(a[0].Int(), a[1].Int(), a[2].Int())
	return ssa.Int(n), err
}

// FloorDiv is Python's x // y of ints: rounded towards minus infinity. y is not 0.
func FloorDiv(x, y int64) int64 {
	q := x / y
	if x%y != 0 && (x < 0) != (y < 0) {
		q--
	}
	return q
}

func least(x, y float64) float64 {
	if x < y {
		return x
	}
	return y
}

func greatest(x, y float64) float64 {
	if x > y {
		return x
	}
	return y
}

// Divmod is divmod(x, y) of two numbers of which one is a float, and y is not 0. If the other one is an int, PyTorch divides in float32.
func Divmod(x, y ssa.Literal) (quotient, remainder float64) {
	a, b := x.Float(), y.Float()
	if integral(x) != integral(y) {
		p, q := float32(a), float32(b)
		whole := math.Floor(float64(p / q))
		return whole, float64(p) - whole*float64(q)
	}
	r := math.Mod(a, b)
	if r != 0 && (a < 0) != (b < 0) {
		r += b
	}
	return (a - r) / b, r
}

// Equal compares two constants as == does; ok is false for what it cannot compare.
func Equal(x, y ssa.Literal) (eq, ok bool) {
	switch {
	case x.IsNumber() && y.IsNumber():
		switch {
		case x.Kind == ssa.ComplexLit || y.Kind == ssa.ComplexLit:
			return x.Complex() == y.Complex(), true
		case x.Kind == ssa.FloatLit || y.Kind == ssa.FloatLit:
			return x.Float() == y.Float(), true
		}
		return x.Int() == y.Int(), true
	case x.IsNone() || y.IsNone():
		return x.IsNone() && y.IsNone(), true
	case x.Kind == ssa.DeviceLit && y.Kind == ssa.DeviceLit:
		return true, true // every device is the one the model runs on
	case x.Kind == y.Kind && (x.Kind == ssa.EnumLit || x.Kind == ssa.StrLit):
		return x.Str() == y.Str(), true
	case x.Kind == y.Kind && (x.Kind == ssa.ListLit || x.Kind == ssa.TupleLit):
		if len(x.Elems) != len(y.Elems) {
			return false, true
		}
		for i := range x.Elems {
			if eq, ok := Equal(x.Elems[i], y.Elems[i]); !ok || !eq {
				return eq, ok
			}
		}
		return true, true
	}
	return false, false
}

// Less orders two constants as sort does: numbers, strings, and lists or tuples of them element by element.
func Less(a, b ssa.Literal) bool {
	switch {
	case a.Kind == ssa.StrLit && b.Kind == ssa.StrLit:
		return a.Str() < b.Str()
	case a.Kind == ssa.IntLit && b.Kind == ssa.IntLit:
		return a.Int() < b.Int()
	case a.IsNumber() && b.IsNumber():
		return a.Float() < b.Float()
	case len(a.Elems) > 0 && len(b.Elems) > 0:
		for i := range min(len(a.Elems), len(b.Elems)) {
			if Less(a.Elems[i], b.Elems[i]) {
				return true
			}
			if Less(b.Elems[i], a.Elems[i]) {
				return false
			}
		}
		return len(a.Elems) < len(b.Elems)
	}
	return false
}
