package python

import (
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// function is an operator of numbers: what it makes of constants, of a list of them, and of ints of which some are sizes. A field is nil where
// it has no meaning. Of one number the first of real, rounding and number that there is holds, of two numbers the first of two, order, bits,
// ints and reals.
type function struct {
	// real takes a number and gives a float.
	real func(x float64) float64
	// rounding gives an int where the schema says so, and a number of the kind of its argument where it says nothing.
	rounding func(x float64) float64
	// number takes an int, a bool or a float, and complexNumber a complex number. None is no result.
	number, complexNumber func(x ssa.Literal) ssa.Literal

	// equal is told whether two values are equal.
	equal func(eq bool) bool
	// order is given the sign of x - y.
	order func(sign int) bool
	// bits takes two ints. Of two bools it gives a bool, but for shifts.
	bits  func(x, y int64) int64
	shift bool
	// ints takes two ints, and reals two numbers, ints only where ints is nil.
	ints  func(x, y int64) (int64, error)
	reals func(x, y float64) float64
	// complexes takes two numbers of which one is complex.
	complexes func(x, y complex128) complex128
	// two takes any other two numbers. ret is the result type of the schema.
	two func(ret ssa.Type, x, y ssa.Literal) (ssa.Literal, error)
	// three takes three ints: TorchScript writes such operators for range().
	three func(x, y, z int64) (int64, error)

	// list takes a list or a tuple, and folds names the operator of two numbers that is applied to all elements.
	list  func(x ssa.Literal) ssa.Literal
	folds string

	sizes *onSizes
	// asks compares two expressions; ok is false where the answer differs between sizes.
	asks func(a, b sym.Expr) (answer, ok bool)
}

// onSizes computes on so many expressions; ok is false for sizes that it cannot speak of.
type onSizes struct {
	args int
	of   func(e []sym.Expr) (r sym.Expr, ok bool)
}

// functions are the operators of numbers, by their names without the namespace.
var functions = map[string]*function{
	"sqrt":  {real: math.Sqrt},
	"exp":   {real: math.Exp},
	"expm1": {real: math.Expm1},
	"log": {
		real:  math.Log,
		reals: func(x, base float64) float64 { return math.Log(x) / math.Log(base) },
	},
	"log2":          {real: math.Log2},
	"log10":         {real: math.Log10},
	"log1p":         {real: math.Log1p},
	"sin":           {real: math.Sin},
	"cos":           {real: math.Cos},
	"tan":           {real: math.Tan},
	"asin":          {real: math.Asin},
	"acos":          {real: math.Acos},
	"atan":          {real: math.Atan},
	"sinh":          {real: math.Sinh},
	"cosh":          {real: math.Cosh},
	"tanh":          {real: math.Tanh},
	"asinh":         {real: math.Asinh},
	"acosh":         {real: math.Acosh},
	"atanh":         {real: math.Atanh},
	"gamma":         {real: math.Gamma},
	"erf":           {real: math.Erf},
	"erfc":          {real: math.Erfc},
	"fabs":          {real: math.Abs},
	"lgamma":        {real: func(x float64) float64 { v, _ := math.Lgamma(x); return v }},
	"degrees":       {real: func(x float64) float64 { return x * 180 / math.Pi }},
	"radians":       {real: func(x float64) float64 { return x * math.Pi / 180 }},
	"Float":         {real: func(x float64) float64 { return x }},
	"FloatImplicit": {real: func(x float64) float64 { return x }},
	"ceil":          {rounding: math.Ceil},
	"floor":         {rounding: math.Floor},
	"trunc":         {rounding: math.Trunc},
	"round": {
		rounding: math.RoundToEven,
		reals: func(x, digits float64) float64 {
			p := math.Pow(10, digits)
			return math.RoundToEven(x*p) / p
		},
	},
	"Int": {
		number: toInt,
		sizes:  &onSizes{1, sameSize},
	},
	"IntImplicit": {
		number: toInt,
		sizes:  &onSizes{1, sameSize},
	},
	"Complex": {
		complexNumber: itself,
		number:        toComplex,
		two: func(_ ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
			return ssa.Complex(complex(x.Float(), y.Float())), nil
		},
	},
	"ComplexImplicit": {number: toComplex, complexNumber: itself},
	"Bool":            {number: func(x ssa.Literal) ssa.Literal { return ssa.Bool(x.Float() != 0) }, complexNumber: func(x ssa.Literal) ssa.Literal { return ssa.Bool(x.Complex() != 0) }},
	"ScalarImplicit": {
		complexNumber: itself,
		number:        itself,
		sizes:         &onSizes{1, sameSize},
	},
	"Scalar":  {number: itself},
	"item":    {number: itself},
	"__not__": {number: func(x ssa.Literal) ssa.Literal { return ssa.Bool(x.Float() == 0) }},
	"neg": {
		complexNumber: func(x ssa.Literal) ssa.Literal { return ssa.Complex(-x.Complex()) },
		number: func(x ssa.Literal) ssa.Literal {
			if integral(x) {
				return ssa.Int(-x.Int())
			}
			return ssa.Float(-x.Float())
		},
		sizes: &onSizes{1, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Neg(), true }},
	},
	"abs": {
		number: func(x ssa.Literal) ssa.Literal {
			if integral(x) {
				return ssa.Int(max(x.Int(), -x.Int()))
			}
			return ssa.Float(math.Abs(x.Float()))
		},
		sizes: &onSizes{1, func(e []sym.Expr) (sym.Expr, bool) { return e[0], e[0].Min() >= 0 }},
	},
	"bitwise_not": {
		number: func(x ssa.Literal) ssa.Literal {
			if x.Kind == ssa.BoolLit {
				return ssa.Bool(!x.Bool())
			}
			return ssa.Int(^x.Int())
		},
	},
	"factorial": {
		number: func(x ssa.Literal) ssa.Literal {
			if x.Int() < 0 || x.Int() >= undefinedFactorial {
				return ssa.None
			}
			n := int64(1)
			for i := int64(2); i <= x.Int(); i++ {
				n *= i
			}
			return ssa.Int(n)
		},
	},
	"isnan":    {number: func(x ssa.Literal) ssa.Literal { return ssa.Bool(math.IsNaN(x.Float())) }},
	"isinf":    {number: func(x ssa.Literal) ssa.Literal { return ssa.Bool(math.IsInf(x.Float(), 0)) }},
	"isfinite": {number: func(x ssa.Literal) ssa.Literal { return ssa.Bool(!math.IsInf(x.Float(), 0) && !math.IsNaN(x.Float())) }},
	"chr":      {number: func(x ssa.Literal) ssa.Literal { return ssa.Str(string(rune(x.Int()))) }},
	"hex":      {number: func(x ssa.Literal) ssa.Literal { return ssa.Str("0x" + strconv.FormatInt(x.Int(), 16)) }},
	"str":      {number: func(x ssa.Literal) ssa.Literal { return ssa.Str(Str(x)) }, list: func(x ssa.Literal) ssa.Literal { return ssa.Str(Str(x)) }},
	"__range_length": {
		number: func(x ssa.Literal) ssa.Literal { return ssa.Int(max(x.Int(), 0)) },
		three: func(lo, hi, step int64) (int64, error) {
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
		sizes: &onSizes{3, func(e []sym.Expr) (sym.Expr, bool) {
			step, ok := e[2].Int()
			if !ok || step < 1 {
				return sym.Expr{}, false
			}
			return e[1].Sub(e[0]).Add(sym.Const(step - 1)).FloorDiv(e[2]).Max(sym.Const(0)), true
		}},
	},
	"lt": {
		order: func(s int) bool { return s < 0 },
		asks: func(a, b sym.Expr) (bool, bool) {
			sign, ok := a.Compare(b)
			return ok && sign < 0, ok || a.AtLeast(b)
		},
	},
	"le": {
		order: func(s int) bool { return s <= 0 },
		asks: func(a, b sym.Expr) (bool, bool) {
			sign, ok := a.Compare(b)
			return !ok || sign <= 0, ok || b.AtLeast(a)
		},
	},
	"gt": {
		order: func(s int) bool { return s > 0 },
		asks: func(a, b sym.Expr) (bool, bool) {
			sign, ok := a.Compare(b)
			return ok && sign > 0, ok || b.AtLeast(a)
		},
	},
	"ge": {
		order: func(s int) bool { return s >= 0 },
		asks: func(a, b sym.Expr) (bool, bool) {
			sign, ok := a.Compare(b)
			return !ok || sign >= 0, ok || a.AtLeast(b)
		},
	},
	"__and__": {bits: func(x, y int64) int64 { return x & y }},
	"and":     {bits: func(x, y int64) int64 { return x & y }},
	"__or__":  {bits: func(x, y int64) int64 { return x | y }},
	"or":      {bits: func(x, y int64) int64 { return x | y }},
	"__xor__": {bits: func(x, y int64) int64 { return x ^ y }},
	"__lshift__": {
		bits:  func(x, y int64) int64 { return x << uint(y&63) },
		shift: true,
	},
	"__rshift__": {
		bits:  func(x, y int64) int64 { return x >> uint(y&63) },
		shift: true,
	},
	"add": {
		ints:      func(x, y int64) (int64, error) { return x + y, nil },
		reals:     func(x, y float64) float64 { return x + y },
		complexes: func(x, y complex128) complex128 { return x + y },
		sizes:     &onSizes{2, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Add(e[1]), true }},
	},
	"sub": {
		ints:      func(x, y int64) (int64, error) { return x - y, nil },
		reals:     func(x, y float64) float64 { return x - y },
		complexes: func(x, y complex128) complex128 { return x - y },
		sizes:     &onSizes{2, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Sub(e[1]), true }},
	},
	"mul": {
		ints:      func(x, y int64) (int64, error) { return x * y, nil },
		reals:     func(x, y float64) float64 { return x * y },
		complexes: func(x, y complex128) complex128 { return x * y },
		sizes:     &onSizes{2, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Mul(e[1]), true }},
	},
	"min": {
		folds: "min",
		ints:  func(x, y int64) (int64, error) { return min(x, y), nil },
		reals: least, // TorchScript compares: the second one, if one of them is not a number
		sizes: &onSizes{2, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Minimum(e[1]), true }},
	},
	"max": {
		folds: "max",
		ints:  func(x, y int64) (int64, error) { return max(x, y), nil },
		reals: greatest,
		sizes: &onSizes{2, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Max(e[1]), true }},
	},
	"floordiv": {
		ints: func(x, y int64) (int64, error) {
			if y == 0 {
				return 0, &Exception{"integer division or modulo by zero"}
			}
			return FloorDiv(x, y), nil
		},
		reals: func(x, y float64) float64 { return math.Floor(x / y) },
		sizes: &onSizes{2, func(e []sym.Expr) (sym.Expr, bool) {
			if e[1].Min() <= 0 {
				return sym.Expr{}, false
			}
			return e[0].FloorDiv(e[1]), true
		}},
	},
	"remainder": {
		ints: func(x, y int64) (int64, error) {
			if y == 0 {
				return 0, &Exception{"integer division or modulo by zero"}
			}
			return x - FloorDiv(x, y)*y, nil
		},
		reals: func(x, y float64) float64 { return math.Mod(y+math.Mod(x, y), y) },
		sizes: &onSizes{2, func(e []sym.Expr) (sym.Expr, bool) {
			if e[1].Min() <= 0 {
				return sym.Expr{}, false
			}
			return e[0].Mod(e[1]), true
		}},
	},
	"gcd": {
		ints: func(x, y int64) (int64, error) {
			return new(big.Int).GCD(nil, nil, big.NewInt(max(x, -x)), big.NewInt(max(y, -y))).Int64(), nil
		},
	},
	"atan2":    {reals: math.Atan2},
	"hypot":    {reals: math.Hypot},
	"fmod":     {reals: math.Mod},
	"copysign": {reals: math.Copysign},
	"div": {
		complexes: func(x, y complex128) complex128 { return x / y },
		two: func(_ ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
			if y.Float() == 0 {
				return ssa.None, &Exception{"division by zero"}
			}
			return ssa.Float(x.Float() / y.Float()), nil
		},
	},
	"ldexp": {
		two: func(_ ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
			return ssa.Float(math.Ldexp(x.Float(), int(y.Int()))), nil
		},
	},
	"pow": {
		two: func(ret ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
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
	},
	// of two dtypes, by the numbers that PyTorch has for them
	"promote_types": {
		two: func(_ ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
			d := aten.Promote(tensor.FromCode(int(x.Int())), tensor.FromCode(int(y.Int())))
			if d == tensor.Undefined {
				return ssa.None, ErrUnknown
			}
			return ssa.Int(int64(d.Code())), nil
		},
	},
	"__derive_index": {
		three: func(i, start, step int64) (int64, error) { return start + i*step, nil },
		sizes: &onSizes{3, func(e []sym.Expr) (sym.Expr, bool) { return e[1].Add(e[0].Mul(e[2])), true }},
	},
	"eq":  {asks: func(a, b sym.Expr) (bool, bool) { sign, ok := a.Compare(b); return sign == 0, ok }, equal: itIs},
	"ne":  {asks: func(a, b sym.Expr) (bool, bool) { sign, ok := a.Compare(b); return sign != 0, ok }, equal: itIsNot},
	"len": {list: func(x ssa.Literal) ssa.Literal { return ssa.Int(int64(len(x.Elems))) }},
	"any": {list: func(x ssa.Literal) ssa.Literal { return ssa.Bool(slices.ContainsFunc(x.Elems, ssa.Literal.Bool)) }},
	"all": {list: func(x ssa.Literal) ssa.Literal { return ssa.Bool(!slices.ContainsFunc(x.Elems, isFalse)) }},
	"sum": {folds: "add"},
}

func itIs(eq bool) bool    { return eq }
func itIsNot(eq bool) bool { return !eq }

func isFalse(x ssa.Literal) bool { return !x.Bool() }

func sameSize(e []sym.Expr) (sym.Expr, bool) { return e[0], true }

func itself(x ssa.Literal) ssa.Literal { return x }

// toInt is int(x), which cuts off the fraction.
func toInt(x ssa.Literal) ssa.Literal {
	if integral(x) {
		return ssa.Int(x.Int())
	}
	return ssa.Int(int64(x.Float()))
}

func toComplex(x ssa.Literal) ssa.Literal { return ssa.Complex(complex(x.Float(), 0)) }

// undefinedFactorial is the least number whose factorial has no value in PyTorch, which shifts by 64 bits to get there.
const undefinedFactorial = 66

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
