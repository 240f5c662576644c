package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/approx"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/internal/random"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Symbols that the executor gives values: the two words of the seed, and how often the operator of a launch has drawn before. No axis
// is called that.
const (
	SeedLow  = "$seed.low"
	SeedHigh = "$seed.high"
	Drawn    = "$drawn"
)

// Draws reports an operator that may draw random numbers.
func Draws(k ssa.Kind) bool {
	switch k {
	case "onnx::RandomUniform", "onnx::RandomUniformLike", "onnx::RandomNormal", "onnx::RandomNormalLike", "onnx::Bernoulli", "onnx::Multinomial", "onnx::Dropout":
		return true
	}
	return false
}

// words are the four random words of element i, as the interpreter draws them: Philox 4x32 with 10 rounds.
func (c *body) words(o *ssa.Op, i value) [4]value {
	b := c.b
	word := func(v uint32) value { return b.I32(int64(int32(v))) }
	given := func(name string) value { return b.Size(sym.Symbol(name, math.MinInt32)) }
	id := random.Stream(o)
	counter := [4]value{i, given(Drawn), word(uint32(id)), word(uint32(id >> 32))}
	key := [2]value{b.Xor(given(SeedLow), word(random.Seed(o))), given(SeedHigh)}
	multiply := func(x value, by uint32) (hi, lo value) {
		wide := b.Mul(b.Convert(kir.ZExt, x, kir.I64), b.Int(kir.I64, int64(by)))
		return b.Convert(kir.Narrow, b.Binary(kir.LShr, wide, b.Int(kir.I64, 32)), kir.I32), b.Convert(kir.Narrow, wide, kir.I32)
	}
	for range 10 {
		hi0, lo0 := multiply(counter[0], 0xd2511f53)
		hi1, lo1 := multiply(counter[2], 0xcd9e8d57)
		counter = [4]value{b.Xor(b.Xor(hi1, counter[1]), key[0]), lo1, b.Xor(b.Xor(hi0, counter[3]), key[1]), lo0}
		key = [2]value{b.Add(key[0], word(0x9e3779b9)), b.Add(key[1], word(0xbb67ae85))}
	}
	return counter
}

// fraction is a number from 0 to below 1 of that many binary digits, of two random words.
func (c *body) fraction(hi, lo value, digits int) value {
	b := c.b
	all := b.Or(b.Binary(kir.Shl, b.Convert(kir.ZExt, hi, kir.I64), b.Int(kir.I64, 32)), b.Convert(kir.ZExt, lo, kir.I64))
	whole := b.Binary(kir.LShr, all, b.Int(kir.I64, int64(64-digits)))
	return b.Mul(b.Convert(kir.SToF, whole, kir.F64), b.Float(kir.F64, math.Ldexp(1, -digits)))
}

func (c *body) uniform(o *ssa.Op, i value, digits int) value {
	w := c.words(o, i)
	return c.fraction(w[0], w[1], digits)
}

// fractionDigits are as many binary digits as all numbers of a type below 1 have.
func fractionDigits(d tensor.DType) int {
	switch d {
	case tensor.Float64:
		return 53
	case tensor.Float16:
		return 11
	case tensor.BFloat16:
		return 8
	}
	return 24
}

// emitRandom draws each element by its number. In a kernel of its own: what it gets depends on how often the operator has drawn.
func emitRandom(w *writer) {
	out := w.o.Results[0]
	d, name := dtype(out), w.o.Kind.Name()
	if !d.IsFloat() && name != "Bernoulli" {
		refuse("elements of type %s", d)
	}
	w.elementwise(out, shapeOf(out), nil, func(c *body, coords []index.Expr) value {
		b := c.b
		num := func(v float64) value { return b.Float(kir.F64, v) }
		given := func(name string, def float64) value { // as the interpreter has it: not rounded to float32
			return num(w.o.AttrFloat(name, def))
		}
		i := c.dims[0]
		switch name {
		case "Bernoulli":
			p := convert(b, c.at(w.in(0), coords), dtype(w.in(0)), tensor.Float64)
			return convert(b, b.Lt(c.uniform(w.o, i, 53), p), tensor.Bool, d)
		case "RandomNormal", "RandomNormalLike":
			s := c.words(w.o, i)
			u, v := c.fraction(s[0], s[1], 53), c.fraction(s[2], s[3], 53)
			r := b.Unary(kir.Sqrt, b.Mul(num(-2), approx.Log(b, b.Sub(num(1), u))))
			z := b.Mul(r, approx.Cos(b, b.Mul(num(2*math.Pi), v)))
			return convert(b, b.Add(given("mean", 0), b.Mul(given("scale", 1), z)), tensor.Float64, d)
		}
		lo := given("low", 0)
		return convert(b, b.Add(lo, b.Mul(b.Sub(given("high", 1), lo), c.uniform(w.o, i, fractionDigits(d)))), tensor.Float64, d)
	})
}

// emitMultinomial draws classes by their logarithmic weights.
func emitMultinomial(w *writer) {
	x, out := w.in(0), w.o.Results[0]
	if w.wants(2); !dtype(x).IsFloat() {
		refuse("elements of type %s", dtype(x))
	}
	n := shapeOf(x)[1]
	w.elementwise(out, shapeOf(out), nil, func(c *body, coords []index.Expr) value {
		b := c.b
		zero := b.Float(kir.F64, 0)
		at := c.dims[0]
		was := c.guarded
		c.guarded = true
		sizes, dims := len(c.space.Sizes), len(c.dims)
		classes := func(carried []value, f func(i, p value, v []value) []value) []value {
			return b.For(b.I32(0), b.Size(n), b.I32(1), carried, func(i value, v []value) []value {
				p := convert(b, c.at(x, []index.Expr{coords[0], c.dim(i, n)}), dtype(x), tensor.Float64)
				c.space.Sizes, c.dims = c.space.Sizes[:sizes], c.dims[:dims]
				return f(i, p, v)
			})
		}
		top := classes([]value{b.Float(kir.F64, math.Inf(-1))}, func(_, p value, v []value) []value {
			return []value{b.Select(b.IsNaN(p), p, b.Select(b.Lt(v[0], p), p, v[0]))}
		})[0]
		total := classes([]value{zero}, func(_, p value, v []value) []value {
			return []value{b.Add(v[0], approx.Exp(b, b.Sub(p, top)))}
		})[0]
		begin := b.Mul(c.uniform(w.o, at, 53), total)
		// the first class at which nothing is left, or the last one
		pick := classes([]value{begin, b.I32(0), b.Int(kir.I1, 0)}, func(i, p value, v []value) []value {
			left := b.Sub(v[0], approx.Exp(b, b.Sub(p, top)))
			return []value{b.Select(v[2], v[0], left), b.Select(v[2], v[1], i), b.Or(b.Lt(left, zero), v[2])}
		})[1]
		c.guarded = was
		return convert(b, pick, tensor.Int32, dtype(out))
	})
}

// emitDropout draws what is kept, in training; else it passes on what it gets.
func emitDropout(w *writer) {
	x := w.in(0)
	if !dtype(x).IsFloat() {
		refuse("elements of type %s", dtype(x))
	}
	training := w.in(2) != nil
	if t := onnx.ConstOf(w.in(2)); t != nil && t.HasData() && t.NumElements() == 1 {
		training = t.Int64s()[0] != 0
	}
	for i, out := range w.o.Results {
		if !out.HasUses() && len(w.o.Results) > 1 {
			continue
		}
		w.elementwise(out, shapeOf(out), nil, func(c *body, coords []index.Expr) value {
			b := c.b
			if !training {
				if i == 1 {
					return b.Int(kir.I1, 1)
				}
				return c.at(x, coords)
			}
			scalar := func(i int) value { return c.at(w.in(i), make([]index.Expr, rank(w.in(i)))) }
			ratio := b.Float(kir.F64, 0.5)
			if w.in(1) != nil {
				ratio = convert(b, scalar(1), dtype(w.in(1)), tensor.Float64)
			}
			draws := b.And(scalar(2), b.Compare(kir.Ne, ratio, b.Float(kir.F64, 0)))
			kept := b.Not(b.And(b.Lt(c.uniform(w.o, c.dims[0], 53), ratio), draws))
			if i == 1 {
				return kept
			}
			v := c.at(x, coords)
			d := dtype(x)
			scaled := convert(b, b.Div(convert(b, v, d, tensor.Float64), b.Sub(b.Float(kir.F64, 1), ratio)), tensor.Float64, d)
			return b.Select(draws, b.Select(kept, scaled, b.Num(regType(d), 0)), v)
		})
	}
}
