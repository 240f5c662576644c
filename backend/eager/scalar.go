package eager

import (
	"math"
	"math/big"
	"math/cmplx"

	"github.com/aton-project/aton/ssa"
)

// floats are the operators of one number that give a float.
var floats = map[string]func(float64) float64{
	"sqrt": math.Sqrt, "exp": math.Exp, "expm1": math.Expm1, "log": math.Log, "log2": math.Log2, "log10": math.Log10, "log1p": math.Log1p,
	"sin": math.Sin, "cos": math.Cos, "tan": math.Tan, "asin": math.Asin, "acos": math.Acos, "atan": math.Atan,
	"sinh": math.Sinh, "cosh": math.Cosh, "tanh": math.Tanh, "asinh": math.Asinh, "acosh": math.Acosh, "atanh": math.Atanh,
	"gamma": math.Gamma, "erf": math.Erf, "erfc": math.Erfc, "fabs": math.Abs,
	"lgamma":  func(x float64) float64 { v, _ := math.Lgamma(x); return v },
	"degrees": func(x float64) float64 { return x * 180 / math.Pi },
	"radians": func(x float64) float64 { return x * math.Pi / 180 },
}

// whole are the operators that round: to an int, if the schema says so.
var whole = map[string]func(float64) float64{"ceil": math.Ceil, "floor": math.Floor, "trunc": math.Trunc, "round": math.RoundToEven}

// floatPairs are the operators of two floats. TorchScript computes some of them otherwise than Python: it rounds the quotient down for //,
// takes C's fmod twice for %, and has the second operand win where min and max compare with NaN.
var floatPairs = map[string]func(a, b float64) float64{
	"add": func(a, b float64) float64 { return a + b }, "sub": func(a, b float64) float64 { return a - b }, "mul": func(a, b float64) float64 { return a * b },
	"div": func(a, b float64) float64 { return a / b }, "truediv": func(a, b float64) float64 { return a / b },
	"floordiv":  func(a, b float64) float64 { return math.Floor(a / b) },
	"remainder": func(a, b float64) float64 { return math.Mod(b+math.Mod(a, b), b) },
	"fmod":      math.Mod, "atan2": math.Atan2, "copysign": math.Copysign, "mathremainder": math.Remainder, "hypot": math.Hypot,
	"log": func(a, b float64) float64 { return math.Log(a) / math.Log(b) },
	"pow": math.Pow,
	"max": func(a, b float64) float64 {
		if a > b {
			return a
		}
		return b
	},
	"min": func(a, b float64) float64 {
		if a < b {
			return a
		}
		return b
	},
}

// intPairs are the operators of two ints that give an int.
var intPairs = map[string]func(a, b int64) (int64, error){
	"add": func(a, b int64) (int64, error) { return a + b, nil }, "sub": func(a, b int64) (int64, error) { return a - b, nil },
	"mul": func(a, b int64) (int64, error) { return a * b, nil },
	"min": func(a, b int64) (int64, error) { return min(a, b), nil }, "max": func(a, b int64) (int64, error) { return max(a, b), nil },
	"sym_min": func(a, b int64) (int64, error) { return min(a, b), nil }, "sym_max": func(a, b int64) (int64, error) { return max(a, b), nil },
	"floordiv": floorDiv,
	"remainder": func(a, b int64) (int64, error) {
		q, err := floorDiv(a, b)
		return a - q*b, err
	},
	"__round_to_zero_floordiv": func(a, b int64) (int64, error) {
		if b == 0 {
			return 0, raise("division by 0")
		}
		return a / b, nil
	},
	"gcd": func(a, b int64) (int64, error) {
		return new(big.Int).GCD(nil, nil, new(big.Int).Abs(big.NewInt(a)), new(big.Int).Abs(big.NewInt(b))).Int64(), nil
	},
	"__and__": func(a, b int64) (int64, error) { return a & b, nil }, "__or__": func(a, b int64) (int64, error) { return a | b, nil },
	"__xor__": func(a, b int64) (int64, error) { return a ^ b, nil },
	"__lshift__": func(a, b int64) (int64, error) {
		if b < 0 || b > 63 {
			return 0, refuse("unsupported-args", "a shift by %d bits", b)
		}
		return a << uint(b), nil
	},
	"__rshift__": func(a, b int64) (int64, error) {
		if b < 0 || b > 63 {
			return 0, refuse("unsupported-args", "a shift by %d bits", b)
		}
		return a >> uint(b), nil
	},
}

func floorDiv(a, b int64) (int64, error) {
	if b == 0 {
		return 0, raise("division by 0")
	}
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q, nil
}

func intPow(a, b int64) (int64, error) {
	if b < 0 {
		return int64(math.Pow(float64(a), float64(b))), nil
	}
	r := int64(1)
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			r *= a
		}
		a *= a
	}
	return r, nil
}

// boolPairs are the operators of two bools that give a bool.
var boolPairs = map[string]func(a, b bool) bool{
	"__and__": func(a, b bool) bool { return a && b }, "__or__": func(a, b bool) bool { return a || b }, "__xor__": func(a, b bool) bool { return a != b },
	"and": func(a, b bool) bool { return a && b }, "or": func(a, b bool) bool { return a || b },
}

var complexPairs = map[string]func(a, b complex128) complex128{
	"add": func(a, b complex128) complex128 { return a + b }, "sub": func(a, b complex128) complex128 { return a - b },
	"mul": func(a, b complex128) complex128 { return a * b }, "div": func(a, b complex128) complex128 { return a / b }, "pow": cmplx.Pow,
}

// orders compare two numbers or strings, given the sign of a - b.
var orders = map[string]func(sign int) bool{
	"lt": func(s int) bool { return s < 0 }, "le": func(s int) bool { return s <= 0 }, "gt": func(s int) bool { return s > 0 }, "ge": func(s int) bool { return s >= 0 },
}

func isNumber(v Value) bool {
	switch v.(type) {
	case int64, float64, bool, complex128:
		return true
	}
	return false
}

func toFloat(v Value) float64 {
	f, _ := coerce(v, ssa.FloatType).(float64)
	return f
}

func toComplex(v Value) complex128 {
	if c, ok := v.(complex128); ok {
		return c
	}
	return complex(toFloat(v), 0)
}

// integral is the int that an int or a bool is.
func integral(v Value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// scalar computes an operator on numbers; done is false where it is none of these.
func scalar(name string, ret ssa.Type, args []Value) (v Value, done bool, err error) {
	for _, a := range args {
		if !isNumber(a) {
			return nil, false, nil
		}
	}
	switch len(args) {
	case 1:
		return unary(name, ret, args[0])
	case 2:
		return binary(name, ret, args[0], args[1])
	case 3:
		lo, ok := args[0].(int64)
		hi, ok2 := args[1].(int64)
		step, ok3 := args[2].(int64)
		if !ok || !ok2 || !ok3 {
			return nil, false, nil
		}
		switch name {
		case "__range_length":
			switch {
			case step == 0:
				return nil, true, raise("range() arg 3 must not be zero")
			case step > 0 && lo < hi:
				return 1 + (hi-1-lo)/step, true, nil
			case step < 0 && lo > hi:
				return 1 + (lo-1-hi)/(-step), true, nil
			}
			return int64(0), true, nil
		case "__derive_index":
			return hi + lo*step, true, nil
		}
	}
	return nil, false, nil
}

func unary(name string, ret ssa.Type, a Value) (Value, bool, error) {
	if c, ok := a.(complex128); ok {
		switch name {
		case "neg":
			return -c, true, nil
		case "abs":
			return cmplx.Abs(c), true, nil
		case "angle":
			return cmplx.Phase(c), true, nil
		case "real":
			return real(c), true, nil
		case "imag":
			return imag(c), true, nil
		case "Complex", "ComplexImplicit", "ScalarImplicit", "Scalar":
			return c, true, nil
		case "Bool":
			return c != 0, true, nil
		case "sqrt":
			return cmplx.Sqrt(c), true, nil
		case "exp":
			return cmplx.Exp(c), true, nil
		case "log":
			return cmplx.Log(c), true, nil
		}
		return nil, false, nil
	}
	i, isInt := integral(a)
	x := toFloat(a)
	if f := floats[name]; f != nil {
		return f(x), true, nil
	}
	if f := whole[name]; f != nil {
		if isInt && (ret == ssa.IntType || ret == ssa.NumberType) {
			return i, true, nil
		}
		if ret == ssa.IntType {
			return int64(f(x)), true, nil
		}
		return f(x), true, nil
	}
	switch name {
	case "Int", "IntImplicit":
		if isInt {
			return i, true, nil
		}
		return int64(x), true, nil
	case "Float", "FloatImplicit", "sym_float":
		return x, true, nil
	case "sym_int":
		if isInt {
			return i, true, nil
		}
		return int64(x), true, nil
	case "Complex", "ComplexImplicit":
		return complex(x, 0), true, nil
	case "Bool":
		return x != 0, true, nil
	case "ScalarImplicit", "Scalar", "item", "real", "conj":
		return a, true, nil
	case "imag":
		return 0.0, true, nil
	case "__not__", "sym_not":
		return x == 0, true, nil
	case "neg":
		if isInt {
			return -i, true, nil
		}
		return -x, true, nil
	case "abs":
		if isInt {
			return max(i, -i), true, nil
		}
		return math.Abs(x), true, nil
	case "bitwise_not":
		if b, ok := a.(bool); ok {
			return !b, true, nil
		}
		return ^i, true, nil
	case "factorial":
		if i < 0 {
			return nil, true, raise("factorial() not defined for negative values")
		}
		if i >= 66 { // PyTorch shifts by 64 bits to get there
			return nil, true, refuse("unsupported-args", "the factorial of %d has no value in PyTorch", i)
		}
		n := int64(1)
		for k := int64(2); k <= i; k++ {
			n *= k
		}
		return n, true, nil
	case "isnan":
		return math.IsNaN(x), true, nil
	case "isinf":
		return math.IsInf(x, 0), true, nil
	case "isfinite":
		return !math.IsInf(x, 0) && !math.IsNaN(x), true, nil
	case "chr":
		if i < 0 || i > 255 {
			return nil, true, raise("chr() arg not in range(256)")
		}
		return string([]byte{byte(i)}), true, nil
	case "__range_length":
		return max(i, 0), true, nil
	case "angle":
		if x < 0 {
			return math.Pi, true, nil
		}
		return 0.0, true, nil
	}
	return nil, false, nil
}

func binary(name string, ret ssa.Type, a, b Value) (Value, bool, error) {
	_, ac := a.(complex128)
	_, bc := b.(complex128)
	switch name {
	case "eq", "ne":
		eq := ac || bc
		if eq {
			eq = toComplex(a) == toComplex(b)
		} else {
			eq = numbersEqual(a, b)
		}
		return eq == (name == "eq"), true, nil
	case "Complex":
		return complex(toFloat(a), toFloat(b)), true, nil
	case "polar":
		return cmplx.Rect(toFloat(a), toFloat(b)), true, nil
	case "ldexp":
		n, _ := integral(b)
		return math.Ldexp(toFloat(a), int(max(min(n, 1<<20), -(1<<20)))), true, nil
	}
	if ac || bc {
		if f := complexPairs[name]; f != nil {
			return f(toComplex(a), toComplex(b)), true, nil
		}
		return nil, false, nil
	}
	i, ai := integral(a)
	j, bi := integral(b)
	ints := ai && bi
	if f := orders[name]; f != nil {
		x, y := toFloat(a), toFloat(b)
		switch {
		case ints:
			return f(compare(i, j)), true, nil
		case math.IsNaN(x) || math.IsNaN(y):
			return false, true, nil
		}
		return f(compare(x, y)), true, nil
	}
	p, ab := a.(bool)
	q, bb := b.(bool)
	if f := boolPairs[name]; f != nil && ab && bb {
		return f(p, q), true, nil
	}
	if name == "pow" {
		switch {
		case ints && ret == ssa.IntType:
			n, err := intPow(i, j)
			return n, true, err
		case toFloat(a) == 0 && toFloat(b) < 0:
			return nil, true, raise("0.0 cannot be raised to a negative power")
		}
	}
	if f := intPairs[name]; f != nil && ints {
		n, err := f(i, j)
		return n, true, err
	}
	if f := floatPairs[name]; f != nil {
		return f(toFloat(a), toFloat(b)), true, nil
	}
	return nil, false, nil
}

// numbersEqual compares ints exactly, and everything else as floats.
func numbersEqual(a, b Value) bool {
	i, ai := integral(a)
	j, bi := integral(b)
	if ai && bi {
		return i == j
	}
	return toFloat(a) == toFloat(b)
}

func compare[T int64 | float64 | string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// several computes the operators on numbers that give two.
func several(name string, args []Value) ([]Value, bool, error) {
	for _, a := range args {
		if !isNumber(a) {
			return nil, false, nil
		}
	}
	switch {
	case name == "frexp" && len(args) == 1:
		f, e := math.Frexp(toFloat(args[0]))
		return []Value{f, int64(e)}, true, nil
	case name == "modf" && len(args) == 1:
		w, f := math.Modf(toFloat(args[0]))
		return []Value{f, w}, true, nil
	case name == "divmod" && len(args) == 2:
		i, ai := integral(args[0])
		j, bi := integral(args[1])
		if ai && bi {
			q, err := floorDiv(i, j)
			return []Value{q, i - q*j}, true, err
		}
		a, b := toFloat(args[0]), toFloat(args[1])
		if b == 0 {
			return nil, true, raise("float divmod()")
		}
		rem := math.Mod(a, b)
		if rem != 0 && (b < 0) != (rem < 0) {
			rem += b
		}
		return []Value{(a - rem) / b, rem}, true, nil
	}
	return nil, false, nil
}
