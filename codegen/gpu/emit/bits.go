package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/tensor"
)

// emitBitCast copies elements as they stand in memory: a conversion on the way would change NaN of half precision.
func emitBitCast(w *writer) {
	x, out := w.in(0), w.o.Results[0]
	from, to := memType(dtype(x)), memType(dtype(out))
	if from.Size() != to.Size() || dtype(out) == tensor.Bool {
		refuse("from %s to %s", dtype(x), dtype(out))
	}
	w.scattered(index.Prod(shapeOf(x)), func(c *body, i value) {
		b := c.b
		c.b.Store(c.mem(out, true), i, b.Convert(kir.Bitcast, b.Load(c.mem(x, false), i), to))
	})
}

// anyPower is an integer to the power of another one: by squaring for exponents from 0 on; a negative one leaves 1 and -1, nothing of
// greater numbers, and of 0 what an infinity becomes.
func (s *scalarPoint) anyPower(x []value) value {
	b := s.b
	num := func(v int64) value { return b.Int(kir.I64, v) }
	base, e := convert(b, x[0], s.d, tensor.Int64), convert(b, x[1], dtype(s.in(1)), tensor.Int64)
	negative := b.Lt(e, num(0))
	result := b.For(b.I32(0), b.I32(63), b.I32(1), []value{num(1), base, b.Select(negative, num(0), e)}, func(_ value, c []value) []value {
		odd := b.Compare(kir.Ne, b.And(c[2], num(1)), num(0))
		return []value{b.Select(odd, b.Mul(c[0], c[1]), c[0]), b.Mul(c[1], c[1]), b.Binary(kir.LShr, c[2], num(1))}
	})[0]
	least := int64(-1 << 31)
	if s.d == tensor.Int64 || s.d == tensor.Uint32 || s.d == tensor.Uint64 {
		least = -1 << 63
	}
	even := b.Eq(b.And(e, num(1)), num(0))
	sign := b.Select(even, num(1), num(-1))
	inverse := b.Select(b.Eq(base, num(0)), num(least), b.Select(b.Eq(base, num(1)), num(1), b.Select(b.Eq(base, num(-1)), sign, num(0))))
	return convert(b, b.Select(negative, inverse, result), tensor.Int64, s.d)
}
