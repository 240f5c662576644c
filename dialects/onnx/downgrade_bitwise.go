package onnx

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// bitwise expresses the operators on the bits of integers, which came with opset 18, by arithmetic on int64: bit k of x
// is whether x mod 2^(k+1), which is not negative, is at least 2^k; the sign is the highest bit.
func bitwise(logic string) func(d *Downgrade) *ssa.Value {
	return func(d *Downgrade) *ssa.Value {
		t := d.in(0).DType()
		if !t.IsInt() {
			d.Fail(18, "bits of %s", t.Spec())
		}
		width := 8 * t.Size()
		a, b := d.bits(d.in(0), width), d.bits(d.in(1), width)
		weights := make([]int64, width)
		for k := range weights {
			weights[k] = 1 << k
		}
		if t.IsSigned() || width == 64 {
			weights[width-1] = math.MinInt64 >> (64 - width)
		}
		on := d.cast(d.Op(logic, a, b), tensor.Int64)
		add := func(weights []int64) *ssa.Value {
			return d.ReduceSum(d.Mul(on, d.ints(weights...)), d.ints(-1), KeepDims(false))
		}
		if width <= 32 {
			return d.cast(add(weights), t)
		}
		// runtimes add integers in float64, which is exact for each half
		low, high := make([]int64, width), make([]int64, width)
		for k, w := range weights {
			if k < 32 {
				low[k] = w
			} else {
				high[k] = w >> 32
			}
		}
		return d.cast(d.Add(add(low), d.Mul(add(high), d.long(1<<32))), t)
	}
}

// shiftUnsigned shifts signed integers as unsigned ones. The complement of a negative number is not negative, so its right shift fills
// in zeros, whose complements are copies of the sign. A negative distance is a large unsigned one, which leaves zeros.
func shiftUnsigned(d *Downgrade, t tensor.DType) bool {
	unsigned, ok := map[tensor.DType]tensor.DType{
		tensor.Int8: tensor.Uint8, tensor.Int16: tensor.Uint16, tensor.Int32: tensor.Uint32, tensor.Int64: tensor.Uint64,
	}[t]
	if !ok {
		return false
	}
	direction := d.Node.AttrStr("direction", "")
	shift := func(x *ssa.Value) *ssa.Value {
		return d.cast(d.BitShift(d.cast(x, unsigned), d.cast(d.in(1), unsigned), direction), t)
	}
	x := d.in(0)
	if direction == "LEFT" {
		d.Replace(shift(x))
		return true
	}
	below := d.Less(x, d.scalarInt(t, 0))
	complement := func(v *ssa.Value) *ssa.Value { return d.Where(below, d.Sub(d.scalarInt(t, -1), v), v) }
	d.Replace(complement(shift(complement(x))))
	return true
}

// bits unfolds integers along a new last axis, the lowest bit first, as bools.
func (d *Downgrade) bits(x *ssa.Value, width int) *ssa.Value {
	signed := x.DType().IsSigned() || width == 64 // an uint64 has the bits of the int64 that is as far modulo 2^64
	wide := d.Unsqueeze(d.cast(x, tensor.Int64), d.ints(-1))
	if signed {
		width--
	}
	at, above := make([]int64, 0, width), make([]int64, 0, width)
	for k := range width {
		if k == 62 { // 2^63 is no int64: below it, that is what is left without the sign
			break
		}
		at, above = append(at, 1<<k), append(above, 1<<(k+1))
	}
	out := d.Not(d.Less(d.Mod(wide, d.ints(above...)), d.ints(at...)))
	if !signed {
		return out
	}
	negative := d.Less(wide, d.long(0))
	if width == 63 { // bit 62 of x is that of x without the sign, -2^63
		rest := d.Where(negative, d.Add(wide, d.long(math.MinInt64)), wide)
		out = d.concat(-1, out, d.Not(d.Less(rest, d.long(1<<62))))
	}
	return d.concat(-1, out, negative)
}

// bitwiseNot is what is missing to the greatest number, or to -1.
func bitwiseNot(d *Downgrade) *ssa.Value {
	x := d.in(0)
	t := x.DType()
	switch {
	case t.IsSigned():
		return d.Sub(d.scalarInt(t, -1), x)
	case t.IsUnsigned():
		return d.Sub(d.scalarInt(t, int64(uint64(math.MaxUint64)>>(64-8*t.Size()))), x)
	}
	d.Fail(18, "bits of %s", t.Spec())
	return nil
}

// bitCast expresses BitCast, which came with opset 26, between integers of one size: those from the half of the range
// on are the negative ones.
func bitCast(d *Downgrade) *ssa.Value {
	x, to := d.in(0), tensor.FromONNX(int(d.Node.AttrInt("to", 0)))
	from := x.DType()
	if from == to {
		return d.Identity(x)
	}
	if !from.IsInt() || !to.IsInt() || from.Size() != to.Size() {
		d.Fail(26, "bits of %s as %s", from.Spec(), to.Spec())
	}
	if from.Size() == 8 { // equal modulo 2^64
		return d.cast(x, to)
	}
	wide := d.cast(x, tensor.Int64)
	half := int64(1) << (8*from.Size() - 1)
	if to.IsSigned() {
		wide = d.Where(d.Less(wide, d.long(half)), wide, d.Sub(wide, d.long(2*half)))
	} else {
		wide = d.Where(d.Less(wide, d.long(0)), d.Add(wide, d.long(2*half)), wide)
	}
	return d.cast(wide, to)
}
