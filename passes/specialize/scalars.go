package specialize

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// scalar evaluates an operator on numbers, strings and constants: at export if
// they are known, symbolically for ints, else by emitting it.
func (s *spec) scalar(kind ssa.Kind, schema *ssa.Schema, args []value) []value {
	if kind == "aten::divmod" && schema != nil {
		var out []value
		for _, k := range []ssa.Kind{"aten::floordiv", "aten::remainder"} {
			out = append(out, s.scalar(k, aten.SchemaByName(string(k)+"."+schema.Overload), args)...)
		}
		return out
	}
	lits := make([]ssa.Literal, len(args))
	all := true
	for i, a := range args {
		l, ok := s.literalOf(a)
		lits[i] = l
		all = all && ok
	}
	ret := ssa.Type(ssa.AnyType)
	if schema != nil && len(schema.Returns) == 1 {
		ret = schema.Returns[0].Type
	}
	if all {
		if l, ok := s.foldScalar(kind.Name(), ret, lits); ok {
			return []value{s.fromLiteral(l, ret)}
		}
		if schema == nil || ret == ssa.StrType {
			s.fail("unsupported-op", "cannot be computed at export on these constants")
		}
	}
	expr, known := s.symbolic(kind.Name(), args)
	if known {
		if b, ok := expr.(bool); ok {
			return []value{ssa.Bool(b)}
		}
		if e, ok := expr.(sym.Expr); ok {
			if n, ok := e.Int(); ok {
				return []value{ssa.Int(n)}
			}
		}
	}
	for _, a := range args {
		switch a.(type) {
		case *maybe, *dict, *object:
			s.fail("unsupported-op", "cannot be computed on data")
		}
	}
	for _, l := range lits {
		if l.Kind == ssa.StrLit {
			s.fail("string-data", "a string that depends on data cannot be computed in ONNX")
		}
	}
	if schema == nil {
		s.fail("unsupported-op", "the operator has no schema")
	}
	vs := s.emit(kind, schema, s.operands(args)...)
	out := make([]value, len(vs))
	for i, v := range vs {
		if e, ok := expr.(sym.Expr); ok && known && v.Type == ssa.IntType {
			v.Sym = []sym.Expr{e}
		} else if v.Type == ssa.IntType && v.Sym == nil {
			v.Sym = []sym.Expr{s.m.FreshSymbol("n", minInt)}
		}
		out[i] = s.wrap(v)
	}
	return out
}

// exprOf is the symbolic value of an int.
func exprOf(x value) (sym.Expr, bool) {
	switch x := x.(type) {
	case ssa.Literal:
		if x.Kind == ssa.IntLit || x.Kind == ssa.BoolLit {
			return sym.Const(x.Int()), true
		}
	case *ssa.Value:
		if x.Type == ssa.IntType && len(x.Sym) == 1 {
			return x.Sym[0], true
		}
	}
	return sym.Expr{}, false
}

// symbolic computes on symbolic ints: a sym.Expr, or a bool for comparisons that hold for all sizes.
func (s *spec) symbolic(name string, args []value) (any, bool) {
	es := make([]sym.Expr, len(args))
	for i, a := range args {
		e, ok := exprOf(a)
		if !ok {
			return nil, false
		}
		es[i] = e
	}
	switch len(es) {
	case 1:
		switch name {
		case "neg":
			return es[0].Neg(), true
		case "Int", "IntImplicit", "ScalarImplicit", "abs":
			if name != "abs" || es[0].Min() >= 0 {
				return es[0], true
			}
		case "Bool":
			if es[0].Min() > 0 {
				return true, true
			}
		}
	case 2:
		a, b := es[0], es[1]
		sign, known := a.Compare(b)
		switch name {
		case "add":
			return a.Add(b), true
		case "sub":
			return a.Sub(b), true
		case "mul":
			return a.Mul(b), true
		case "floordiv":
			if b.Min() > 0 {
				return a.FloorDiv(b), true
			}
		case "remainder":
			if b.Min() > 0 {
				return a.Mod(b), true
			}
		case "min":
			return a.Minimum(b), true
		case "max":
			return a.Max(b), true
		case "eq":
			if known {
				return sign == 0, true
			}
		case "ne":
			if known {
				return sign != 0, true
			}
		case "lt":
			if known {
				return sign < 0, true
			}
			if a.AtLeast(b) {
				return false, true
			}
		case "le":
			if known {
				return sign <= 0, true
			}
			if b.AtLeast(a) {
				return true, true
			}
		case "gt":
			if known {
				return sign > 0, true
			}
			if b.AtLeast(a) {
				return false, true
			}
		case "ge":
			if known {
				return sign >= 0, true
			}
			if a.AtLeast(b) {
				return true, true
			}
		}
	case 3:
		switch name {
		case "__range_length":
			if es[2].Is(1) {
				return es[1].Sub(es[0]).Max(sym.Const(0)), true
			}
		case "__derive_index":
			return es[1].Add(es[0].Mul(es[2])), true
		}
	}
	return nil, false
}

func asFloat(l ssa.Literal) float64 { return l.Float() }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func pyMod(a, b float64) float64 {
	r := math.Mod(a, b)
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

// foldScalar computes an operator on constants; ret is the type of its result.
func (s *spec) foldScalar(name string, ret ssa.Type, a []ssa.Literal) (ssa.Literal, bool) {
	for i := range a {
		if a[i].Kind == ssa.EnumLit && name != "eq" && name != "ne" {
			return ssa.None, false
		}
	}
	switch len(a) {
	case 1:
		return s.foldUnary(name, ret, a[0])
	case 2:
		if l, ok := foldBinary(s, name, ret, a[0], a[1]); ok {
			return l, true
		}
	case 3:
		if a[0].Kind == ssa.IntLit && a[1].Kind == ssa.IntLit && a[2].Kind == ssa.IntLit {
			lo, hi, step := a[0].Int(), a[1].Int(), a[2].Int()
			switch name {
			case "__range_length":
				switch {
				case step == 0:
					panic(raised{s.loc, "range() arg 3 must not be zero"})
				case step > 0 && lo < hi:
					return ssa.Int(1 + (hi-1-lo)/step), true
				case step < 0 && lo > hi:
					return ssa.Int(1 + (lo-1-hi)/-step), true
				}
				return ssa.Int(0), true
			case "__derive_index":
				return ssa.Int(hi + lo*step), true
			}
		}
	}
	return foldString(s, name, a)
}

func (s *spec) foldUnary(name string, ret ssa.Type, x ssa.Literal) (ssa.Literal, bool) {
	if x.Kind == ssa.StrLit {
		return foldString(s, name, []ssa.Literal{x})
	}
	if x.Kind == ssa.ListLit || x.Kind == ssa.TupleLit {
		return foldList(name, ret, x)
	}
	if x.Kind == ssa.DeviceLit || x.IsNone() {
		if name == "str" {
			if x.IsNone() {
				return ssa.Str("None"), true
			}
			return ssa.Str(x.Str()), true
		}
		return ssa.None, false
	}
	if !x.IsNumber() {
		return ssa.None, false
	}
	isInt := x.Kind == ssa.IntLit || x.Kind == ssa.BoolLit
	f := asFloat(x)
	toRet := func(v float64) (ssa.Literal, bool) {
		if ret == ssa.IntType || ret == ssa.NumberType && isInt {
			return ssa.Int(int64(v)), true
		}
		return ssa.Float(v), true
	}
	if x.Kind == ssa.ComplexLit {
		switch name {
		case "ScalarImplicit", "Complex", "ComplexImplicit":
			return x, true
		case "neg":
			return ssa.Complex(-x.Complex()), true
		case "Bool":
			return ssa.Bool(x.Complex() != 0), true
		}
		return ssa.None, false
	}
	switch name {
	case "Int", "IntImplicit":
		if isInt {
			return ssa.Int(x.Int()), true
		}
		return ssa.Int(int64(f)), true
	case "Float", "FloatImplicit":
		return ssa.Float(f), true
	case "Complex", "ComplexImplicit":
		return ssa.Complex(complex(f, 0)), true
	case "Bool":
		return ssa.Bool(f != 0), true
	case "ScalarImplicit", "Scalar", "item":
		return x, true
	case "__not__":
		return ssa.Bool(f == 0), true
	case "neg":
		if isInt {
			return ssa.Int(-x.Int()), true
		}
		return ssa.Float(-f), true
	case "abs":
		if isInt {
			return ssa.Int(max(x.Int(), -x.Int())), true
		}
		return ssa.Float(math.Abs(f)), true
	case "bitwise_not":
		if x.Kind == ssa.BoolLit {
			return ssa.Bool(!x.Bool()), true
		}
		return ssa.Int(^x.Int()), true
	case "ceil":
		return toRet(math.Ceil(f))
	case "floor":
		return toRet(math.Floor(f))
	case "trunc":
		return toRet(math.Trunc(f))
	case "round":
		return toRet(math.RoundToEven(f))
	case "sqrt":
		return ssa.Float(math.Sqrt(f)), true
	case "exp":
		return ssa.Float(math.Exp(f)), true
	case "expm1":
		return ssa.Float(math.Expm1(f)), true
	case "log":
		return ssa.Float(math.Log(f)), true
	case "log2":
		return ssa.Float(math.Log2(f)), true
	case "log10":
		return ssa.Float(math.Log10(f)), true
	case "log1p":
		return ssa.Float(math.Log1p(f)), true
	case "sin":
		return ssa.Float(math.Sin(f)), true
	case "cos":
		return ssa.Float(math.Cos(f)), true
	case "tan":
		return ssa.Float(math.Tan(f)), true
	case "asin":
		return ssa.Float(math.Asin(f)), true
	case "acos":
		return ssa.Float(math.Acos(f)), true
	case "atan":
		return ssa.Float(math.Atan(f)), true
	case "sinh":
		return ssa.Float(math.Sinh(f)), true
	case "cosh":
		return ssa.Float(math.Cosh(f)), true
	case "tanh":
		return ssa.Float(math.Tanh(f)), true
	case "asinh":
		return ssa.Float(math.Asinh(f)), true
	case "acosh":
		return ssa.Float(math.Acosh(f)), true
	case "atanh":
		return ssa.Float(math.Atanh(f)), true
	case "gamma":
		return ssa.Float(math.Gamma(f)), true
	case "lgamma":
		v, _ := math.Lgamma(f)
		return ssa.Float(v), true
	case "erf":
		return ssa.Float(math.Erf(f)), true
	case "erfc":
		return ssa.Float(math.Erfc(f)), true
	case "degrees":
		return ssa.Float(f * 180 / math.Pi), true
	case "radians":
		return ssa.Float(f * math.Pi / 180), true
	case "fabs":
		return ssa.Float(math.Abs(f)), true
	case "factorial":
		n := int64(1)
		for i := int64(2); i <= x.Int(); i++ {
			n *= i
		}
		return ssa.Int(n), true
	case "isnan":
		return ssa.Bool(f != f), true
	case "isinf":
		return ssa.Bool(math.IsInf(f, 0)), true
	case "isfinite":
		return ssa.Bool(!math.IsInf(f, 0) && f == f), true
	case "chr":
		return ssa.Str(string(rune(x.Int()))), true
	case "hex":
		return ssa.Str("0x" + strconv.FormatInt(x.Int(), 16)), true
	case "str":
		return ssa.Str(pyStr(x)), true
	case "hash":
		return ssa.None, false
	case "__range_length":
		return ssa.Int(max(x.Int(), 0)), true
	}
	return ssa.None, false
}

func foldBinary(s *spec, name string, ret ssa.Type, x, y ssa.Literal) (ssa.Literal, bool) {
	switch name {
	case "eq", "ne":
		if eq, ok := literalEq(x, y); ok {
			return ssa.Bool(eq == (name == "eq")), true
		}
		return ssa.None, false
	}
	if x.Kind == ssa.StrLit || y.Kind == ssa.StrLit || !x.IsNumber() || !y.IsNumber() {
		return ssa.None, false
	}
	if x.Kind == ssa.ComplexLit || y.Kind == ssa.ComplexLit {
		a, b := x.Complex(), y.Complex()
		switch name {
		case "add":
			return ssa.Complex(a + b), true
		case "sub":
			return ssa.Complex(a - b), true
		case "mul":
			return ssa.Complex(a * b), true
		case "div":
			return ssa.Complex(a / b), true
		}
		return ssa.None, false
	}
	if name == "promote_types" {
		d := aten.Promote(tensor.FromCode(int(x.Int())), tensor.FromCode(int(y.Int())))
		return ssa.Int(int64(d.Code())), d != tensor.Undefined
	}
	ints := (x.Kind == ssa.IntLit || x.Kind == ssa.BoolLit) && (y.Kind == ssa.IntLit || y.Kind == ssa.BoolLit)
	bools := x.Kind == ssa.BoolLit && y.Kind == ssa.BoolLit
	i, j := x.Int(), y.Int()
	a, b := asFloat(x), asFloat(y)
	switch name {
	case "Complex":
		return ssa.Complex(complex(a, b)), true
	case "lt", "le", "gt", "ge":
		if ints {
			return ssa.Bool(map[string]bool{"lt": i < j, "le": i <= j, "gt": i > j, "ge": i >= j}[name]), true
		}
		return ssa.Bool(map[string]bool{"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[name]), true
	case "__and__", "and":
		if bools {
			return ssa.Bool(i&j != 0), true
		}
		return ssa.Int(i & j), ints
	case "__or__", "or":
		if bools {
			return ssa.Bool(i|j != 0), true
		}
		return ssa.Int(i | j), ints
	case "__xor__":
		if bools {
			return ssa.Bool(i != j), true
		}
		return ssa.Int(i ^ j), ints
	case "__lshift__":
		return ssa.Int(i << uint(j&63)), ints
	case "__rshift__":
		return ssa.Int(i >> uint(j&63)), ints
	case "div":
		if b == 0 {
			panic(raised{s.loc, "division by zero"})
		}
		return ssa.Float(a / b), true
	case "atan2":
		return ssa.Float(math.Atan2(a, b)), true
	case "hypot":
		return ssa.Float(math.Hypot(a, b)), true
	case "log":
		return ssa.Float(math.Log(a) / math.Log(b)), true
	case "fmod":
		return ssa.Float(math.Mod(a, b)), true
	case "copysign":
		return ssa.Float(math.Copysign(a, b)), true
	case "ldexp":
		return ssa.Float(math.Ldexp(a, int(j))), true
	case "gcd":
		return ssa.Int(new(big.Int).GCD(nil, nil, big.NewInt(max(i, -i)), big.NewInt(max(j, -j))).Int64()), ints
	case "pow":
		if ints && ret == ssa.IntType {
			r := int64(1)
			for range j {
				r *= i
			}
			return ssa.Int(r), j >= 0 && j < 64
		}
		return ssa.Float(math.Pow(a, b)), true
	case "round":
		p := math.Pow(10, b)
		return ssa.Float(math.RoundToEven(a*p) / p), true
	}
	if ints {
		switch name {
		case "add":
			return ssa.Int(i + j), true
		case "sub":
			return ssa.Int(i - j), true
		case "mul":
			return ssa.Int(i * j), true
		case "min":
			return ssa.Int(min(i, j)), true
		case "max":
			return ssa.Int(max(i, j)), true
		case "floordiv", "remainder":
			if j == 0 {
				panic(raised{s.loc, "integer division or modulo by zero"})
			}
			q := floorDiv(i, j)
			if name == "floordiv" {
				return ssa.Int(q), true
			}
			return ssa.Int(i - q*j), true
		}
		return ssa.None, false
	}
	switch name {
	case "add":
		return ssa.Float(a + b), true
	case "sub":
		return ssa.Float(a - b), true
	case "mul":
		return ssa.Float(a * b), true
	case "min":
		return ssa.Float(math.Min(a, b)), true
	case "max":
		return ssa.Float(math.Max(a, b)), true
	case "floordiv":
		return ssa.Float(math.Floor(a / b)), true
	case "remainder":
		return ssa.Float(pyMod(a, b)), true
	}
	return ssa.None, false
}

// literalEq compares as Python does; ok is false for what it cannot compare.
func literalEq(x, y ssa.Literal) (eq, ok bool) {
	switch {
	case x.IsNumber() && y.IsNumber():
		if x.Kind == ssa.ComplexLit || y.Kind == ssa.ComplexLit {
			return x.Complex() == y.Complex(), true
		}
		if x.Kind == ssa.FloatLit || y.Kind == ssa.FloatLit {
			return x.Float() == y.Float(), true
		}
		return x.Int() == y.Int(), true
	case x.IsNone() || y.IsNone():
		return x.IsNone() && y.IsNone(), true
	case x.Kind == ssa.EnumLit && y.Kind == ssa.EnumLit:
		return x.Str() == y.Str(), true
	case x.Kind == ssa.DeviceLit && y.Kind == ssa.DeviceLit:
		return true, true // every device is the one the model runs on
	case x.Kind == ssa.StrLit && y.Kind == ssa.StrLit:
		return x.Str() == y.Str(), true
	case (x.Kind == ssa.ListLit || x.Kind == ssa.TupleLit) && y.Kind == x.Kind:
		if len(x.Elems) != len(y.Elems) {
			return false, true
		}
		for i := range x.Elems {
			if eq, ok := literalEq(x.Elems[i], y.Elems[i]); !ok || !eq {
				return eq, ok
			}
		}
		return true, true
	}
	return false, false
}

func foldList(name string, ret ssa.Type, x ssa.Literal) (ssa.Literal, bool) {
	es := x.Elems
	switch name {
	case "len":
		return ssa.Int(int64(len(es))), true
	case "any", "all":
		r := name == "all"
		for _, e := range es {
			if e.Bool() != r {
				r = !r
				break
			}
		}
		return ssa.Bool(r), true
	case "min", "max", "sum":
		if len(es) == 0 {
			return ssa.None, false
		}
		best := es[0]
		for _, e := range es[1:] {
			l, ok := foldBinary(nil, map[string]string{"min": "min", "max": "max", "sum": "add"}[name], ret, best, e)
			if !ok {
				return ssa.None, false
			}
			best = l
		}
		return best, true
	case "str":
		return ssa.Str(pyStr(x)), true
	}
	return ssa.None, false
}

// pyStr prints a constant as Python's str does.
func pyStr(l ssa.Literal) string {
	switch l.Kind {
	case ssa.StrLit, ssa.DeviceLit:
		return l.Str()
	case ssa.BoolLit:
		if l.Bool() {
			return "True"
		}
		return "False"
	case ssa.FloatLit:
		f := l.Float()
		if f == math.Trunc(f) && math.Abs(f) < 1e16 {
			return strconv.FormatFloat(f, 'f', 1, 64)
		}
		return strconv.FormatFloat(f, 'g', -1, 64)
	case ssa.ListLit, ssa.TupleLit:
		parts := make([]string, len(l.Elems))
		for i, e := range l.Elems {
			parts[i] = pyStr(e)
			if e.Kind == ssa.StrLit {
				parts[i] = "'" + parts[i] + "'"
			}
		}
		if l.Kind == ssa.TupleLit {
			return "(" + strings.Join(parts, ", ") + ")"
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case ssa.EnumLit:
		return l.Str()
	}
	return l.String()
}

// foldString computes string operators on constants.
func foldString(s *spec, name string, a []ssa.Literal) (ssa.Literal, bool) {
	if len(a) == 0 || a[0].Kind != ssa.StrLit {
		return ssa.None, false
	}
	x := a[0].Str()
	str := func(i int) string {
		if i < len(a) && a[i].Kind == ssa.StrLit {
			return a[i].Str()
		}
		return ""
	}
	num := func(i int, def int64) int64 {
		if i < len(a) && a[i].Kind == ssa.IntLit {
			return a[i].Int()
		}
		return def
	}
	switch name {
	case "add":
		return ssa.Str(x + str(1)), true
	case "mul":
		return ssa.Str(strings.Repeat(x, int(max(num(1, 0), 0)))), true
	case "len":
		return ssa.Int(int64(len(x))), true
	case "Int":
		n, err := strconv.ParseInt(strings.TrimSpace(x), 10, 64)
		return ssa.Int(n), err == nil
	case "Float":
		f, err := strconv.ParseFloat(strings.TrimSpace(x), 64)
		return ssa.Float(f), err == nil
	case "str":
		return a[0], true
	case "ord":
		for _, r := range x {
			return ssa.Int(int64(r)), true
		}
	case "lt", "gt", "le", "ge":
		c := strings.Compare(x, str(1))
		return ssa.Bool(map[string]bool{"lt": c < 0, "le": c <= 0, "gt": c > 0, "ge": c >= 0}[name]), true
	case "lower":
		return ssa.Str(strings.ToLower(x)), true
	case "upper":
		return ssa.Str(strings.ToUpper(x)), true
	case "capitalize":
		if x == "" {
			return a[0], true
		}
		return ssa.Str(strings.ToUpper(x[:1]) + strings.ToLower(x[1:])), true
	case "startswith":
		return ssa.Bool(strings.HasPrefix(x, str(1))), true
	case "endswith":
		return ssa.Bool(strings.HasSuffix(x, str(1))), true
	case "__contains__":
		return ssa.Bool(strings.Contains(x, str(1))), true
	case "find":
		return ssa.Int(int64(strings.Index(x, str(1)))), true
	case "count":
		return ssa.Int(int64(strings.Count(x, str(1)))), true
	case "replace":
		return ssa.Str(strings.ReplaceAll(x, str(1), str(2))), true
	case "strip", "lstrip", "rstrip":
		set := str(1)
		if set == "" {
			set = " \n\t\f\v\r"
		}
		switch name {
		case "lstrip":
			return ssa.Str(strings.TrimLeft(x, set)), true
		case "rstrip":
			return ssa.Str(strings.TrimRight(x, set)), true
		}
		return ssa.Str(strings.Trim(x, set)), true
	case "split":
		var parts []string
		if str(1) == "" {
			parts = strings.Fields(x)
		} else {
			parts = strings.Split(x, str(1))
		}
		return ssa.Strs(parts...), true
	case "join":
		if len(a) == 2 {
			var parts []string
			for _, e := range a[1].Elems {
				parts = append(parts, e.Str())
			}
			return ssa.Str(strings.Join(parts, x)), true
		}
	case "isdigit":
		return ssa.Bool(x != "" && strings.Trim(x, "0123456789") == ""), true
	case "__getitem__":
		i := num(1, 0)
		if i < 0 {
			i += int64(len(x))
		}
		if i < 0 || i >= int64(len(x)) {
			panic(raised{s.loc, "string index out of range"})
		}
		return ssa.Str(x[i : i+1]), true
	case "slice":
		lo, hi, ok := sliceBounds(int64(len(x)), num(1, 0), num(2, math.MaxInt64))
		if ok && num(3, 1) == 1 {
			return ssa.Str(x[lo:hi]), true
		}
	case "format":
		out := x
		for _, e := range a[1:] {
			i := strings.Index(out, "{}")
			if i < 0 {
				break
			}
			out = out[:i] + pyStr(e) + out[i+2:]
		}
		return ssa.Str(out), true
	case "percentFormat":
		out := x
		for _, e := range a[1:] {
			i := strings.IndexByte(out, '%')
			if i < 0 || i+1 >= len(out) {
				break
			}
			out = out[:i] + pyStr(e) + out[i+2:]
		}
		return ssa.Str(out), true
	}
	return ssa.None, false
}

// sliceBounds clamps Python slice bounds of step 1.
func sliceBounds(n, lo, hi int64) (int64, int64, bool) {
	if lo < 0 {
		lo = max(lo+n, 0)
	}
	if hi < 0 {
		hi = max(hi+n, 0)
	}
	lo, hi = min(lo, n), min(hi, n)
	return lo, max(lo, hi), true
}
