package prove

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// theory says what floats are to the solver. Integers are always bit vectors that wrap around.
type theory int

const (
	// moved: floats are IEEE numbers, of which only comparisons, signs, choices and conversions mean something. Sums, products
	// and functions are any functions; the order of the operands of a sum or product does not matter.
	moved theory = iota
	// every: the kernels were run on every number that the variables may be.
	every
	// ieee: sums, products, quotients and roots are those of IEEE 754, rounded to nearest.
	ieee
	// reals: floats are real numbers, and every operator is its formula.
	reals
)

func (t theory) String() string {
	return [...]string{"terms", "every number", "IEEE 754", "real numbers, constants to six digits"}[t]
}

// encoder writes terms as SMT-LIB.
type encoder struct {
	theory theory
	out    strings.Builder
	name   map[*Term]string
	defs   map[string]string // the formulas of the terms, by their names
	parts  map[string]string // the names of parts of terms, by their formulas
	funcs  map[string]bool
	vars   []*Term
	err    error
}

func newEncoder(t theory) *encoder {
	return &encoder{theory: t, name: map[*Term]string{}, defs: map[string]string{}, parts: map[string]string{}, funcs: map[string]bool{}}
}

// unsaid stops the encoding of what the solver has no words for.
func (e *encoder) unsaid(format string, args ...any) string {
	if e.err == nil {
		e.err = cannot(format, args...)
	}
	return "false"
}

// format is the number of bits of exponent and of significand of a float type.
func format(d tensor.DType) (exponent, significand int, ok bool) {
	switch d {
	case tensor.Float16:
		return 5, 11, true
	case tensor.BFloat16:
		return 8, 8, true
	case tensor.Float32:
		return 8, 24, true
	case tensor.Float64:
		return 11, 53, true
	}
	return 0, 0, false
}

func (e *encoder) sort(d tensor.DType) string {
	if x, s, ok := format(d); ok {
		if e.theory == reals {
			return "Real"
		}
		return fmt.Sprintf("(_ FloatingPoint %d %d)", x, s)
	}
	switch {
	case d == tensor.Bool:
		return "Bool"
	case d.IsInt() && d.Size() > 0 && d.Bits() == 8*d.Size():
		return fmt.Sprintf("(_ BitVec %d)", d.Bits())
	}
	e.unsaid("elements of type %v", d)
	return "Bool"
}

// literal spells a constant.
func (e *encoder) literal(v *tensor.Tensor) string {
	d := v.DType
	if d == tensor.Bool {
		return strconv.FormatBool(v.Int64s()[0] != 0)
	}
	if x, s, ok := format(d); ok {
		f := v.Float64s()[0]
		if e.theory == reals {
			return e.real(f)
		}
		return fmt.Sprintf("((_ to_fp %d %d) %s)", x, s, bitsOf(v))
	}
	if d.IsInt() {
		e.sort(d)
		return bitsOf(v)
	}
	return e.unsaid("elements of type %v", d)
}

// bitsOf spells the bits of an element.
func bitsOf(v *tensor.Tensor) string {
	b := v.Clone().Bytes()
	var w [8]byte
	copy(w[:], b)
	return fmt.Sprintf("#x%0*x", 2*len(b), binary.LittleEndian.Uint64(w[:]))
}

// real spells a number to six digits: what is a constant of a float type stands for the number that it was rounded from.
func (e *encoder) real(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return e.unsaid("%v is no real number", f)
	}
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', 5, 64))
	s := r.Num().String() + ".0"
	if r.Sign() < 0 {
		s = "(- " + strings.TrimPrefix(s, "-") + ")"
	}
	if r.IsInt() {
		return s
	}
	return "(/ " + s + " " + r.Denom().String() + ".0)"
}

// maxFormula bounds the characters of a question to the solver.
const maxFormula = 1 << 22

// term gives the name of a term, which it defines.
func (e *encoder) term(t *Term) string {
	if n, ok := e.name[t]; ok {
		return n
	}
	if e.err != nil || e.out.Len() > maxFormula {
		return e.unsaid("the formula is too long")
	}
	var n string
	switch {
	case t.Value != nil:
		n = e.literal(t.Value)
	case t.Name != "":
		n = fmt.Sprintf("x%d", len(e.vars))
		e.vars = append(e.vars, t)
		if x, s, ok := format(t.DType); ok && e.theory != reals {
			fmt.Fprintf(&e.out, "(declare-const %s.bits (_ BitVec %d))\n(define-fun %s () %s ((_ to_fp %d %d) %s.bits))\n", n, x+s, n, e.sort(t.DType), x, s, n)
		} else {
			fmt.Fprintf(&e.out, "(declare-const %s %s)\n", n, e.sort(t.DType))
		}
	default:
		args := make([]string, len(t.Args))
		for i, a := range t.Args {
			args[i] = e.term(a)
		}
		text := e.call(t, args)
		n = fmt.Sprintf("t%d", len(e.name))
		e.defs[n] = text
		fmt.Fprintf(&e.out, "(define-fun %s () %s %s)\n", n, e.sort(t.DType), text)
	}
	e.name[t] = n
	return n
}

// part names a part of a term that its formula has more than once: written out each time, the greatest of n numbers takes 5 to the n characters.
func (e *encoder) part(d tensor.DType, text string) string {
	if n, ok := e.parts[text]; ok {
		return n
	}
	n := fmt.Sprintf("p%d", len(e.parts))
	e.parts[text], e.defs[n] = n, text
	fmt.Fprintf(&e.out, "(define-fun %s () %s %s)\n", n, e.sort(d), text)
	return n
}

// wanted lists the names by which the solver tells the values of the variables.
func (e *encoder) wanted() []string {
	var out []string
	for i, v := range e.vars {
		if _, _, ok := format(v.DType); ok && e.theory != reals {
			out = append(out, fmt.Sprintf("x%d.bits", i))
		} else {
			out = append(out, fmt.Sprintf("x%d", i))
		}
	}
	return out
}

// any is a function of which nothing is known but that equal operands give equal results.
func (e *encoder) any(t *Term, args []string) string {
	var name strings.Builder
	name.WriteString(t.Func)
	for _, a := range t.Attrs {
		name.WriteString(" " + a.Name + "=" + a.Value.String())
	}
	return e.function(name.String(), t.DType, t.Args, args)
}

func (e *encoder) function(name string, d tensor.DType, terms []*Term, args []string) string {
	var sorts []string
	for _, a := range terms {
		sorts = append(sorts, e.sort(a.DType))
	}
	full := "|" + strings.NewReplacer("|", "_", "\\", "_").Replace(fmt.Sprintf("%s %s %d", name, strings.Join(sorts, " "), d)) + "|"
	if !e.funcs[full] {
		e.funcs[full] = true
		fmt.Fprintf(&e.out, "(declare-fun %s (%s) %s)\n", full, strings.Join(sorts, " "), e.sort(d))
	}
	if len(args) == 0 {
		return full
	}
	return "(" + full + " " + strings.Join(args, " ") + ")"
}

func app(f string, args ...string) string { return "(" + f + " " + strings.Join(args, " ") + ")" }

// call is the meaning of an operator on elements.
func (e *encoder) call(t *Term, x []string) string {
	of := t.DType
	if len(t.Args) > 0 {
		of = t.Args[0].DType
		if t.Func == "Where" {
			return app("ite", x...)
		}
	}
	switch {
	case t.Func == "Cast":
		return e.cast(t, x[0])
	case of == tensor.Bool:
		return e.logic(t, x)
	case of.IsInt():
		return e.integer(t, x, of)
	case of.IsFloat() && e.theory == reals:
		return e.onReals(t, x)
	case of.IsFloat():
		return e.float(t, x, of)
	}
	return e.any(t, x)
}

func (e *encoder) logic(t *Term, x []string) string {
	switch t.Func {
	case "Not":
		return app("not", x...)
	case "And":
		return app("and", x...)
	case "Or":
		return app("or", x...)
	case "Xor":
		return app("xor", x...)
	case "Equal":
		return app("=", x...)
	case "of ReduceMax":
		if len(x) > 1 {
			return app("or", x...)
		}
		return x[0]
	case "of ReduceMin":
		if len(x) > 1 {
			return app("and", x...)
		}
		return x[0]
	}
	return e.any(t, x)
}

func attrInt(t *Term, name string) int64 {
	for _, a := range t.Attrs {
		if a.Name == name {
			return a.Value.Int()
		}
	}
	return 0
}

func attrOf(t *Term, name string) ssa.Literal {
	for _, a := range t.Attrs {
		if a.Name == name {
			return a.Value
		}
	}
	return ssa.None
}

func bitVector(n int64, bits int) string {
	if n < 0 {
		return app("bvneg", fmt.Sprintf("(_ bv%d %d)", -n, bits))
	}
	return fmt.Sprintf("(_ bv%d %d)", n, bits)
}

// integer is arithmetic that wraps around; what is divided by 0 is 0, as the kernels have it.
func (e *encoder) integer(t *Term, x []string, d tensor.DType) string {
	if len(x) == 0 && t.Func != "Dot" && t.Func != "of ReduceSum" {
		return e.any(t, x)
	}
	bits, sign := d.Bits(), "u"
	if d.IsSigned() {
		sign = "s"
	}
	zero := bitVector(0, bits)
	less := "bv" + sign + "lt"
	switch t.Func {
	case "Add":
		return app("bvadd", x...)
	case "Sub":
		return app("bvsub", x...)
	case "Mul", "times":
		for i, a := range t.Args {
			if a.DType != d { // a factor of a float that is no integer is not made for integers
				return e.unsaid("a factor %s of integers", x[i])
			}
		}
		return fold("bvmul", x)
	case "Dot", "of ReduceSum":
		if len(x) == 0 {
			return zero
		}
		return fold("bvadd", x)
	case "of ReduceProd":
		return fold("bvmul", x)
	case "of ReduceMean":
		if len(x) == 1 {
			return x[0]
		}
	case "of ReduceMax", "of ReduceMin":
		acc := x[0]
		for _, y := range x[1:] {
			c := app(less, acc, y)
			if t.Func == "of ReduceMin" {
				c = app(less, y, acc)
			}
			acc = e.part(d, app("ite", c, y, acc))
		}
		return acc
	case "Div":
		return app("ite", app("=", x[1], zero), zero, app("bv"+sign+"div", x...))
	case "Mod":
		if v := t.Args[1].Value; v != nil && attrInt(t, "fmod") == 0 { // of a power of two the low bits are left
			if n := v.Int64s()[0]; n > 0 && n&(n-1) == 0 {
				return app("bvand", x[0], bitVector(n-1, bits))
			}
		}
		if attrInt(t, "fmod") != 0 {
			return app("ite", app("=", x[1], zero), zero, app("bv"+sign+"rem", x...))
		}
		mod := "bvurem"
		if sign == "s" {
			mod = "bvsmod"
		}
		return app("ite", app("=", x[1], zero), zero, app(mod, x...))
	case "Max":
		return app("ite", app(less, x[0], x[1]), x[1], x[0])
	case "Min":
		return app("ite", app(less, x[1], x[0]), x[1], x[0])
	case "BitwiseAnd":
		return app("bvand", x...)
	case "BitwiseOr":
		return app("bvor", x...)
	case "BitwiseXor":
		return app("bvxor", x...)
	case "BitwiseNot":
		return app("bvnot", x...)
	case "BitCast":
		if t.DType.IsInt() && t.DType.Bits() == bits {
			return x[0]
		}
	case "BitShift":
		if attrOf(t, "direction").Str() == "RIGHT" {
			if sign == "s" {
				return app("bvashr", x...)
			}
			return app("bvlshr", x...)
		}
		return app("bvshl", x...)
	case "Neg":
		return app("bvneg", x...)
	case "Abs":
		if sign == "u" {
			return x[0]
		}
		return app("ite", app(less, x[0], zero), app("bvneg", x[0]), x[0])
	case "Relu":
		return app("ite", app(less, x[0], zero), zero, x[0])
	case "Sign":
		return app("ite", app("=", x[0], zero), zero, app("ite", app(less, x[0], zero), bitVector(-1, bits), bitVector(1, bits)))
	case "Equal":
		return app("=", x...)
	case "Less":
		return app(less, x...)
	case "LessOrEqual":
		return app("bv"+sign+"le", x...)
	case "Greater":
		return app("bv"+sign+"gt", x...)
	case "GreaterOrEqual":
		return app("bv"+sign+"ge", x...)
	}
	return e.any(t, x)
}

func fold(f string, x []string) string {
	acc := x[0]
	for _, y := range x[1:] {
		acc = app(f, acc, y)
	}
	return acc
}

// float is arithmetic of IEEE 754. Sums and the like are that in the theory ieee alone.
func (e *encoder) float(t *Term, x []string, d tensor.DType) string {
	exp, sig, ok := format(d)
	if !ok {
		return e.any(t, x)
	}
	zero := fmt.Sprintf("(_ +zero %d %d)", exp, sig)
	one := fmt.Sprintf("((_ to_fp %d %d) RNE 1.0)", exp, sig)
	extreme := func(less string, x ...string) string {
		// of zeros of both signs the greater is +0
		pick := app("ite", app("fp.isNegative", x[0]), x[1], x[0])
		if less == "fp.gt" {
			pick = app("ite", app("fp.isNegative", x[0]), x[0], x[1])
		}
		return app("ite", app("or", app("fp.isNaN", x[0]), app("fp.isNaN", x[1])), fmt.Sprintf("(_ NaN %d %d)", exp, sig),
			app("ite", app(less, x[0], x[1]), x[1], app("ite", app(less, x[1], x[0]), x[0], pick)))
	}
	switch t.Func {
	case "Neg":
		return app("fp.neg", x...)
	case "Abs":
		return app("fp.abs", x...)
	case "Relu":
		return app("ite", app("fp.lt", x[0], zero), zero, x[0])
	case "Sign":
		return app("ite", app("fp.gt", x[0], zero), one, app("ite", app("fp.lt", x[0], zero), app("fp.neg", one), x[0]))
	case "Ceil":
		return app("fp.roundToIntegral", "RTP", x[0])
	case "Floor":
		return app("fp.roundToIntegral", "RTN", x[0])
	case "Round":
		return app("fp.roundToIntegral", "RNE", x[0])
	case "Max":
		return extreme("fp.lt", x...)
	case "Min":
		return extreme("fp.gt", x...)
	case "Equal":
		return app("fp.eq", x...)
	case "Less":
		return app("fp.lt", x...)
	case "LessOrEqual":
		return app("fp.leq", x...)
	case "Greater":
		return app("fp.gt", x...)
	case "GreaterOrEqual":
		return app("fp.geq", x...)
	case "IsNaN":
		return app("fp.isNaN", x...)
	case "IsInf":
		neg, pos := attrInt(t, "detect_negative") != 0, attrInt(t, "detect_positive") != 0
		c := app("fp.isInfinite", x...)
		switch {
		case neg && pos:
			return c
		case neg:
			return app("and", c, app("fp.isNegative", x...))
		case pos:
			return app("and", c, app("fp.isPositive", x...))
		}
		return "false"
	case "Pow":
		if v := t.Args[1].Value; v != nil && v.Float64s()[0] == 1 {
			return x[0]
		}
	case "of ReduceMax", "of ReduceMin":
		if len(x) > 0 && d != tensor.Bool {
			less := "fp.lt"
			if t.Func == "of ReduceMin" {
				less = "fp.gt"
			}
			acc := x[0]
			for _, y := range x[1:] {
				acc = e.part(d, extreme(less, acc, y))
			}
			return acc
		}
	}
	if t.Func == "of ReduceProd" && len(x) == 1 {
		return x[0]
	}
	if len(x) == 1 && (t.Func == "Dot" && t.Args[0].DType == d && t.Args[0].Func != "times" || t.Func == "of ReduceSum" || t.Func == "of ReduceMean") { // a sum starts at 0
		return app("ite", app("fp.isZero", x[0]), zero, x[0])
	}
	switch t.Func {
	case "Mul": // by a sign
		for i := range t.Args {
			if s, y := x[i], x[1-i]; t.Args[i].Func == "Sign" {
				nan := fmt.Sprintf("(_ NaN %d %d)", exp, sig)
				return app("ite", app("fp.gt", s, zero), y, app("ite", app("fp.lt", s, zero), app("fp.neg", y), app("ite", app("or", app("fp.isNaN", s), app("fp.isNaN", y)), nan, e.any(t, x))))
			}
		}
	case "Mod": // with the sign of the dividend: it is less than the divisor
		y := e.any(t, x)
		fmt.Fprintf(&e.out, "(assert (or (fp.isNaN %s) (fp.lt (fp.abs %s) (fp.abs %s))))\n", y, y, x[1])
		return y
	case "Add": // of a number and a greater one: the sign is that of the greater
		for i, a := range t.Args {
			if a.Func == "Mod" {
				y := e.any(t, x)
				fmt.Fprintf(&e.out, "(assert (=> (or (fp.isNaN %s) (fp.isNaN %s)) (fp.isNaN %s)))\n", x[0], x[1], y)
				fmt.Fprintf(&e.out, "(assert (=> (fp.lt (fp.abs %s) (fp.abs %s)) (and (not (fp.isZero %s)) (not (fp.isNaN %s)) (= (fp.isNegative %s) (fp.isNegative %s)))))\n", x[i], x[1-i], y, y, y, x[1-i])
				return y
			}
		}
	}
	if e.theory == ieee {
		switch t.Func {
		case "Sub":
			return app("fp.add", "RNE", x[0], app("fp.neg", x[1]))
		case "Add", "Mul", "Div":
			return app("fp."+strings.ToLower(t.Func), "RNE", x[0], x[1])
		case "Sqrt":
			return app("fp.sqrt", "RNE", x[0])
		case "Reciprocal":
			return app("fp.div", "RNE", one, x[0])
		}
	}
	if never := neverNegativeZero[t.Func]; never {
		y := e.any(t, x)
		fmt.Fprintf(&e.out, "(assert (not (= %s (_ -zero %d %d))))\n", y, exp, sig)
		return y
	}
	return e.any(t, x)
}

// neverNegativeZero are functions whose result is not -0: their kernels compute positive numbers and round them.
var neverNegativeZero = map[string]bool{"Exp": true, "Sigmoid": true, "Softplus": true, "of Softmax": true}

// cast converts as the kernel does: what does not fit an integer type gives the least int32 or int64, of which narrow types
// keep the low bits.
func (e *encoder) cast(t *Term, x string) string {
	from, to := t.Args[0].DType, t.DType
	ef, sf, fromFloat := format(from)
	et, st, toFloat := format(to)
	switch {
	case e.theory == reals && (fromFloat || toFloat):
		if fromFloat && toFloat {
			return x
		}
		if to == tensor.Bool {
			return app("not", app("=", x, "0.0"))
		}
		if from == tensor.Bool {
			return app("ite", x, "1.0", "0.0")
		}
		return e.any(t, []string{x})
	case fromFloat && toFloat:
		return fmt.Sprintf("((_ to_fp %d %d) RNE %s)", et, st, x)
	case fromFloat && to == tensor.Bool:
		return app("not", app("fp.isZero", x))
	case fromFloat && to.IsInt() && to.Bits() == 8*to.Size():
		wide := 32
		switch to {
		case tensor.Int64, tensor.Uint32:
			wide = 64
		case tensor.Uint64:
			return e.any(t, []string{x})
		}
		if ef < 8 { // all numbers of a half fit
			wide = max(wide, 32)
		}
		// whole numbers from -2^(wide-1) to 2^(wide-1)-1 fit
		limit := fmt.Sprintf("((_ to_fp 11 53) RNE %s.0)", new(big.Int).Lsh(big.NewInt(1), uint(wide-1)))
		y := x
		if from != tensor.Float64 {
			y = fmt.Sprintf("((_ to_fp 11 53) RNE %s)", x)
		}
		w := app("fp.roundToIntegral", "RTZ", y)
		fits := app("and", app("fp.geq", w, app("fp.neg", limit)), app("fp.lt", w, limit))
		least := fmt.Sprintf("#x%0*x", wide/4, uint64(1)<<(wide-1))
		n := app("ite", fits, fmt.Sprintf("((_ fp.to_sbv %d) RTZ %s)", wide, y), least)
		_ = sf
		return e.resize(n, wide, true, to.Bits())
	case from == tensor.Bool && toFloat:
		return app("ite", x, fmt.Sprintf("((_ to_fp %d %d) RNE 1.0)", et, st), fmt.Sprintf("(_ +zero %d %d)", et, st))
	case from == tensor.Bool && to.IsInt():
		e.sort(to)
		return app("ite", x, bitVector(1, to.Bits()), bitVector(0, to.Bits()))
	case from.IsInt() && to == tensor.Bool:
		e.sort(from)
		return app("not", app("=", x, bitVector(0, from.Bits())))
	case from.IsInt() && toFloat && from.Size()*8 == from.Bits():
		if from.Bits() == 64 && to.Size() < 4 { // in two roundings
			return e.any(t, []string{x})
		}
		if from.IsSigned() {
			return fmt.Sprintf("((_ to_fp %d %d) RNE %s)", et, st, x)
		}
		return fmt.Sprintf("((_ to_fp_unsigned %d %d) RNE %s)", et, st, x)
	case from.IsInt() && to.IsInt() && from.Size()*8 == from.Bits() && to.Size()*8 == to.Bits():
		return e.resize(x, from.Bits(), from.IsSigned(), to.Bits())
	}
	return e.any(t, []string{x})
}

// resize keeps the low bits of an integer, or extends it.
func (e *encoder) resize(x string, from int, signed bool, to int) string {
	switch {
	case to < from:
		return fmt.Sprintf("((_ extract %d 0) %s)", to-1, x)
	case to == from:
		return x
	case signed:
		return fmt.Sprintf("((_ sign_extend %d) %s)", to-from, x)
	}
	return fmt.Sprintf("((_ zero_extend %d) %s)", to-from, x)
}

// onReals is the formula of an operator on real numbers.
func (e *encoder) onReals(t *Term, x []string) string {
	sum := func(x []string) string {
		switch len(x) {
		case 0:
			return "0.0"
		case 1:
			return x[0]
		}
		return app("+", x...)
	}
	n := func(k int) string { return e.real(float64(k)) }
	call := func(name string, x string) string { return e.realCall(name, x) }
	squares := func(x []string) []string {
		out := make([]string, len(x))
		for i, y := range x {
			out[i] = app("*", y, y)
		}
		return out
	}
	if len(x) == 0 && t.Func != "Dot" && t.Func != "of ReduceSum" {
		return e.any(t, x)
	}
	if t.Func == "Div" && t.Args[1].Value != nil && t.Args[1].Value.Float64s()[0] != 0 {
		return app("*", x[0], e.real(1/t.Args[1].Value.Float64s()[0]))
	}
	switch t.Func {
	case "Dot", "of ReduceSum", "accumulated Add":
		return sum(x)
	case "times", "of ReduceProd", "accumulated Mul":
		if len(x) == 1 {
			return x[0]
		}
		return app("*", x...)
	case "of ReduceMean":
		return app("/", sum(x), n(len(x)))
	case "of ReduceSumSquare":
		return sum(squares(x))
	case "of ReduceL2":
		return call("Sqrt", sum(squares(x)))
	case "of ReduceMax", "of ReduceMin":
		acc := x[0]
		for _, y := range x[1:] {
			op := "<"
			if t.Func == "of ReduceMin" {
				op = ">"
			}
			acc = e.part(t.DType, app("ite", app(op, acc, y), y, acc))
		}
		return acc
	case "BatchNormalization.":
		eps := e.real(float64(float32(t.Attrs[0].Value.Float())))
		return app("+", app("/", app("*", app("-", x[0], x[3]), x[1]), call("Sqrt", app("+", x[4], eps))), x[2])
	case "of RMSNormalization":
		eps := e.real(float64(float32(attrOf(t, "epsilon").Float())))
		mean := e.part(t.DType, app("/", sum(squares(x[3:])), n(len(x)-3)))
		return app("*", app("/", x[0], call("Sqrt", app("+", mean, eps))), x[1])
	case "of LayerNormalization":
		eps := e.real(float64(float32(attrOf(t, "epsilon").Float())))
		mean := e.part(t.DType, app("/", sum(x[3:]), n(len(x)-3)))
		var dev []string
		for _, y := range x[3:] {
			dev = append(dev, app("-", y, mean))
		}
		variance := e.part(t.DType, app("/", sum(squares(dev)), n(len(x)-3)))
		return app("+", app("*", app("/", app("-", x[0], mean), call("Sqrt", app("+", variance, eps))), x[1]), x[2])
	case "of MeanVarianceNormalization": // which adds 1e-9 to the deviation
		mean := e.part(t.DType, app("/", sum(x[1:]), n(len(x)-1)))
		var dev []string
		for _, y := range x[1:] {
			dev = append(dev, app("-", y, mean))
		}
		variance := e.part(t.DType, app("/", sum(squares(dev)), n(len(x)-1)))
		return app("/", app("-", x[0], mean), app("+", call("Sqrt", variance), e.real(1e-9)))
	case "of Softmax", "of LogSoftmax":
		var parts []string
		for _, y := range x[1:] {
			parts = append(parts, call("Exp", y))
		}
		share := app("/", call("Exp", x[0]), e.part(t.DType, sum(parts)))
		if t.Func == "of LogSoftmax" {
			return call("Log", share)
		}
		return share
	case "Pow":
		if v := t.Args[1].Value; v != nil {
			switch v.Float64s()[0] {
			case 1:
				return x[0]
			case 2:
				return app("*", x[0], x[0])
			case 0.5:
				return call("Sqrt", x[0])
			case -0.5:
				return app("/", "1.0", call("Sqrt", x[0]))
			case 3:
				return app("*", x[0], x[0], x[0])
			}
		}
	}
	if f := e.realOf(t.Func, x); f != "" {
		return f
	}
	if ex := onnx.ExprOf("onnx::" + ssa.Kind(t.Func)); ex != nil {
		return onnx.Eval[string](ex, realMath{e, t, x})
	}
	if len(x) == 1 && len(t.Attrs) == 0 && !strings.Contains(t.Func, "(") && t.DType.IsFloat() {
		return e.realCall(t.Func, x[0])
	}
	return e.any(t, x)
}

// realOf is a function that has a formula, or "".
func (e *encoder) realOf(name string, x []string) string {
	switch name {
	case "Add":
		return app("+", x...)
	case "Sub":
		return app("-", x...)
	case "Mul":
		return app("*", x...)
	case "Div":
		return app("/", x...)
	case "Neg":
		return app("-", x[0])
	case "Reciprocal":
		return app("/", "1.0", x[0])
	case "Abs":
		return app("ite", app("<", x[0], "0.0"), app("-", x[0]), x[0])
	case "Sign":
		return app("ite", app("<", x[0], "0.0"), "(- 1.0)", app("ite", app("<", "0.0", x[0]), "1.0", "0.0"))
	case "Floor":
		return app("to_real", app("to_int", x[0]))
	case "Ceil":
		return app("-", app("to_real", app("to_int", app("-", x[0]))))
	case "Round": // to the even one of two that are as near
		f := e.realOf("Floor", x)
		part := app("-", x[0], f)
		odd := app("not", app("=", f, app("*", "2.0", app("to_real", app("to_int", app("/", f, "2.0"))))))
		up := app("or", app(">", part, "0.5"), app("and", app("=", part, "0.5"), odd))
		return app("ite", up, app("+", f, "1.0"), f)
	case "Cosh":
		return app("*", app("+", e.realCall("Exp", x[0]), e.realCall("Exp", app("-", x[0]))), "0.5")
	case "Sinh":
		return app("*", app("-", e.realCall("Exp", x[0]), e.realCall("Exp", app("-", x[0]))), "0.5")
	case "Acosh":
		return e.realCall("Log", app("+", x[0], app("*", e.realCall("Sqrt", app("-", x[0], "1.0")), e.realCall("Sqrt", app("+", x[0], "1.0")))))
	case "Asinh":
		return app("*", e.realOf("Sign", x), e.realCall("Log", app("+", e.realOf("Abs", x), e.realCall("Sqrt", app("+", app("*", x[0], x[0]), "1.0")))))
	case "Atanh":
		abs := e.realOf("Abs", x)
		return app("*", e.realOf("Sign", x), "0.5", e.realCall("Log", app("/", app("+", "1.0", abs), app("-", "1.0", abs))))
	case "Relu":
		return app("ite", app("<", x[0], "0.0"), "0.0", x[0])
	case "Max":
		return app("ite", app("<", x[0], x[1]), x[1], x[0])
	case "Min":
		return app("ite", app("<", x[1], x[0]), x[1], x[0])
	case "Clip":
		return app("ite", app("<", x[0], x[1]), x[1], app("ite", app(">", x[0], x[2]), x[2], x[0]))
	case "Fma":
		return app("+", app("*", x[0], x[1]), x[2])
	case "Where":
		return app("ite", x...)
	case "Equal":
		return app("=", x...)
	case "Less":
		return app("<", x...)
	case "LessOrEqual":
		return app("<=", x...)
	case "Greater":
		return app(">", x...)
	case "GreaterOrEqual":
		return app(">=", x...)
	case "Or":
		return app("or", x...)
	case "IsNaN", "IsInf":
		return "false"
	case "Expm1":
		return app("-", e.realCall("Exp", x[0]), "1.0")
	case "Sigmoid":
		return app("/", "1.0", app("+", "1.0", e.realCall("Exp", app("-", x[0]))))
	}
	return ""
}

// ofConstants are the functions that are computed where their operand is a constant.
var ofConstants = map[string]func(float64) float64{"Sqrt": math.Sqrt, "Exp": math.Exp, "Log": math.Log, "Erf": math.Erf, "Tanh": math.Tanh}

// realCall is a function of one real number. A root is the number whose square is the operand.
func (e *encoder) realCall(name, x string) string {
	if f := ofConstants[name]; f != nil {
		n := newNormalizer(e.defs)
		if c, ok := n.of(x).constant(); ok && !n.fail {
			if y := f(c); !math.IsNaN(y) && !math.IsInf(y, 0) {
				return e.real(y)
			}
		}
	}
	if !e.funcs[name] {
		e.funcs[name] = true
		fmt.Fprintf(&e.out, "(declare-fun real.%s (Real) Real)\n", name)
	}
	y := app("real."+name, x)
	if key := name + x; !e.funcs[key] {
		e.funcs[key] = true
		switch name {
		case "Sqrt":
			fmt.Fprintf(&e.out, "(assert (=> (>= %s 0.0) (and (>= %s 0.0) (= (* %s %s) %s))))\n", x, y, y, y, x)
		case "Exp":
			fmt.Fprintf(&e.out, "(assert (> %s 0.0))\n", y)
		}
	}
	return y
}

// realMath evaluates the expressions of rows to formulas.
type realMath struct {
	e *encoder
	t *Term
	x []string
}

func (m realMath) Number(v float64) string { return m.e.real(v) }
func (m realMath) Operand(i int) string    { return m.x[i] }
func (m realMath) Float(name string) float64 {
	return float64(float32(attrOf(m.t, name).Float()))
}
func (m realMath) Text(name string) string { return attrOf(m.t, name).Str() }
func (m realMath) Call(name string, x ...string) string {
	if f := m.e.realOf(name, x); f != "" {
		return f
	}
	if len(x) == 1 {
		return m.e.realCall(name, x[0])
	}
	return m.e.unsaid("no formula for %s", name)
}

// element reads a value of the solver as an element of a type.
func element(text string, d tensor.DType) (*tensor.Tensor, bool) {
	scalar := []int64{}
	switch {
	case text == "true" || text == "false":
		return tensor.FromInts(d, scalar, []int64{map[string]int64{"true": 1}[text]}), true
	case strings.HasPrefix(text, "#"):
		base := 16
		if text[1] == 'b' {
			base = 2
		}
		n, err := strconv.ParseUint(text[2:], base, 64)
		if err != nil {
			return nil, false
		}
		var w [8]byte
		binary.LittleEndian.PutUint64(w[:], n)
		return tensor.New(d, scalar, slices.Clone(w[:d.Size()])), true
	}
	f, ok := rational(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text))
	if !ok || !d.IsFloat() {
		return nil, false
	}
	return tensor.FromFloats(d, scalar, []float64{f}), true
}

// rational reads a number of the solver: 1.0, (- 1.0), (/ 1.0 3.0).
func rational(text string) (float64, bool) {
	words := strings.Fields(text)
	var parse func() (float64, bool)
	parse = func() (float64, bool) {
		if len(words) == 0 {
			return 0, false
		}
		w := words[0]
		words = words[1:]
		if w != "(" {
			f, err := strconv.ParseFloat(strings.TrimSuffix(w, "?"), 64)
			return f, err == nil
		}
		if len(words) == 0 {
			return 0, false
		}
		op := words[0]
		words = words[1:]
		a, ok := parse()
		if !ok {
			return 0, false
		}
		switch op {
		case "-":
			a = -a
		case "/":
			b, ok := parse()
			if !ok {
				return 0, false
			}
			a /= b
		default:
			return 0, false
		}
		if len(words) == 0 || words[0] != ")" {
			return 0, false
		}
		words = words[1:]
		return a, true
	}
	return parse()
}
