package gputest

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/aton-project/aton/codegen/gpu/sim"
)

// bufs makes an argument of each slice.
func bufs(x ...any) []sim.Arg {
	var out []sim.Arg
	for _, v := range x {
		switch v := v.(type) {
		case []float32:
			out = append(out, buffer(v))
		case []float64:
			out = append(out, buffer(v))
		case []int64:
			out = append(out, buffer(v))
		case []int32:
			out = append(out, buffer(v))
		case []uint16:
			out = append(out, buffer(v))
		case []uint8:
			out = append(out, buffer(v))
		}
	}
	return out
}

func equal[T comparable](a sim.Arg, want []T) error {
	got := Values[T](a.Buffer, len(want))
	for i := range want {
		if got[i] != want[i] && (got[i] == got[i] || want[i] == want[i]) {
			return fmt.Errorf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
	return nil
}

func blocksOf(n int) [3]int { return [3]int{(n + 63) / 64} }

var specials32 = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -2.5, 3.5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	1e-45, -1e-40, 1.1754944e-38, 3.4e38, -3.4e38, 16777217, 1.0000001, 0.33333334, 2147483648, -2147483648, 255.5, 65504, 1e10, -7}

// pairs are all pairs of the values.
func pairs[T any](x []T) (a, b []T) {
	for _, u := range x {
		for _, v := range x {
			a, b = append(a, u), append(b, v)
		}
	}
	return a, b
}

// Float32Ops is every float operation on all pairs of special values; Go's own arithmetic is the reference.
func Float32Ops() Case {
	a, b := pairs(specials32)
	n := len(a)
	const outs = 12
	return Case{
		Name: "f32ops", Grid: blocksOf(n), Block: [3]int{64},
		Args: func() []sim.Arg {
			args := bufs(a, b)
			for range outs {
				args = append(args, buffer(make([]float32, n)))
			}
			return args
		},
		Verify: func(args []sim.Arg) error {
			fmin := func(a, b float64) float64 {
				switch {
				case a != a:
					return b
				case b != b:
					return a
				}
				return math.Min(a, b)
			}
			ops := []func(a, b float64) float64{
				func(a, b float64) float64 { return a + b }, func(a, b float64) float64 { return a - b },
				func(a, b float64) float64 { return a * b }, func(a, b float64) float64 { return a / b },
				nil, fmin, func(a, b float64) float64 { return -fmin(-a, -b) },
				func(a, _ float64) float64 { return math.Sqrt(a) }, func(a, _ float64) float64 { return math.Floor(a) },
				func(a, _ float64) float64 { return math.RoundToEven(a) }, func(a, _ float64) float64 { return math.Trunc(a) }, nil,
			}
			for k, op := range ops {
				if op == nil {
					continue
				}
				want := make([]float32, n)
				for i := range want {
					want[i] = float32(op(float64(a[i]), float64(b[i])))
				}
				if err := equal(args[2+k], want); err != nil {
					return fmt.Errorf("operation %d: %w", k, err)
				}
			}
			return nil
		},
	}
}

// Compare32 is all comparisons of floats, as bits of an integer.
func Compare32() Case {
	a, b := pairs(specials32)
	n := len(a)
	return Case{
		Name: "compare", Grid: blocksOf(n), Block: [3]int{64},
		Args: func() []sim.Arg { return bufs(a, b, make([]int32, n)) },
		Verify: func(args []sim.Arg) error {
			want := make([]int32, n)
			for i := range want {
				x, y := a[i], b[i]
				un := x != x || y != y
				for k, c := range []bool{x == y, x >= y, x > y, x <= y, x < y, x < y || x > y, !un,
					un || x == y, un || x >= y, un || x > y, un || x <= y, un || x < y, un || x != y, un} {
					if c {
						want[i] |= 1 << k
					}
				}
			}
			return equal(args[2], want)
		},
	}
}

// Float64Ops is arithmetic in float64, and conversions to and from it.
func Float64Ops() Case {
	var x []float64
	for _, v := range specials32 {
		x = append(x, float64(v)*1.0000000001)
	}
	a, b := pairs(x)
	n := len(a)
	return Case{
		Name: "f64ops", Grid: blocksOf(n), Block: [3]int{64},
		Args: func() []sim.Arg {
			return bufs(a, b, make([]float64, n), make([]float64, n), make([]float32, n), make([]int64, n), make([]float64, n))
		},
		Verify: func(args []sim.Arg) error {
			s, q, r, k := make([]float64, n), make([]float64, n), make([]float32, n), make([]int64, n)
			for i := range s {
				s[i] = float64(a[i]*b[i]) + a[i]
				q[i] = math.Sqrt(math.Abs(a[i])) / b[i]
				r[i] = float32(math.FMA(a[i], b[i], b[i]))
				if math.Abs(a[i]) < 1e18 {
					k[i] = int64(a[i])
				}
			}
			for _, err := range []error{equal(args[2], s), equal(args[3], q), equal(args[4], r), equal(args[5], k)} {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// HalfOps is arithmetic in half; the reference computes in float64 and rounds once.
func HalfOps() Case {
	bits := []uint16{0, 0x8000, 0x3c00, 0xbc00, 0x3555, 0x7bff, 0xfbff, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7c00, 0xfc00, 0x7e00, 0x4248, 0xc5a3, 0x2e66, 0x3bff}
	a, b := pairs(bits)
	n := len(a)
	return Case{
		Name: "halfops", Grid: blocksOf(n), Block: [3]int{64},
		Args: func() []sim.Arg {
			h := func() []uint16 { return make([]uint16, n) }
			return bufs(a, b, h(), h(), h(), h(), h(), make([]float32, n))
		},
		Verify: func(args []sim.Arg) error {
			for k, op := range []func(a, b float64) float64{
				func(a, b float64) float64 { return a + b }, func(a, b float64) float64 { return a * b }, func(a, b float64) float64 { return a / b }, nil,
				func(a, _ float64) float64 { return float64(float32(a) + float32(0.0001)) },
			} {
				got := Values[uint16](args[2+k].Buffer, n)
				for i := range got {
					if op == nil {
						continue
					}
					x := op(halfValue(a[i]), halfValue(b[i]))
					if g := halfValue(got[i]); !nearestHalf(g, got[i], x) {
						return fmt.Errorf("operation %d: element %d (%#x, %#x) is %g, of %g", k, i, a[i], b[i], g, x)
					}
				}
			}
			return nil
		},
	}
}

func halfValue(h uint16) float64 {
	s := 1.0
	if h&0x8000 != 0 {
		s = -1
	}
	e, m := int(h>>10&31), float64(h&1023)
	switch e {
	case 0:
		return s * m * 0x1p-24
	case 31:
		if m != 0 {
			return math.NaN()
		}
		return s * math.Inf(1)
	}
	return s * (1 + m/1024) * math.Pow(2, float64(e-15))
}

// nearestHalf says whether h is x rounded to the nearest half, ties to even.
func nearestHalf(v float64, h uint16, x float64) bool {
	switch {
	case x != x:
		return v != v
	case math.IsInf(x, 0):
		return v == x
	case math.IsInf(v, 0):
		return math.Abs(x) >= 65520 && (v > 0) == (x > 0)
	}
	if v == x {
		return true
	}
	even := h&1 == 0
	for _, o := range []uint16{h + 1, h - 1} { // the neighbours, as long as the sign stays
		if o&0x8000 != h&0x8000 {
			continue
		}
		w := halfValue(o)
		if math.IsInf(w, 0) {
			w = math.Copysign(65536, w)
		}
		if d, e := math.Abs(x-v), math.Abs(x-w); d > e || d == e && !even {
			return false
		}
	}
	return true
}

// Int64Ops is arithmetic of 64 and 32 bits, signed and not, with shifts.
func Int64Ops() Case {
	a, b := pairs([]int64{0, 1, -1, 2, 7, -7, 63, 1 << 31, -1 << 31, 1<<62 + 12345, math.MaxInt64, math.MinInt64, 1000003, -999})
	n := len(a)
	for i := range b {
		if b[i] == 0 || b[i] == -1 {
			b[i] = 3
		}
	}
	return Case{
		Name: "i64ops", Grid: blocksOf(n), Block: [3]int{64},
		Args: func() []sim.Arg {
			l := func() []int64 { return make([]int64, n) }
			return bufs(a, b, l(), l(), l(), l(), make([]int32, n), l())
		},
		Verify: func(args []sim.Arg) error {
			want := make([][]int64, 4)
			w32, w5 := make([]int32, n), make([]int64, n)
			for i := range a {
				x, y := a[i], b[i]
				s := uint(y & 63)
				want[0] = append(want[0], x*y+x)
				want[1] = append(want[1], x/y)
				want[2] = append(want[2], int64(uint64(x)%uint64(y)))
				want[3] = append(want[3], x>>s^x<<s)
				w32[i] = max(int32(x), -5) - int32(x)%10
				w5[i] = int64(uint64(x)>>s) | int64(int32(x))
			}
			for k := range want {
				if err := equal(args[2+k], want[k]); err != nil {
					return fmt.Errorf("operation %d: %w", k, err)
				}
			}
			if err := equal(args[6], w32); err != nil {
				return err
			}
			return equal(args[7], w5)
		},
	}
}

// BoolOps is logic on bool tensors, bytes of 0 and 1, and on their predicates; small integers too.
func BoolOps() Case {
	var a, b []uint8
	for i := range 256 {
		for _, j := range []int{0, 1, 2, 127, 128, 200, 255} {
			a, b = append(a, uint8(i)), append(b, uint8(j))
		}
	}
	n := len(a)
	return Case{
		Name: "boolops", Grid: blocksOf(n), Block: [3]int{64},
		Args: func() []sim.Arg {
			u := func() []uint8 { return make([]uint8, n) }
			return bufs(a, b, u(), u(), u(), make([]uint16, n), make([]float32, n), make([]int64, n))
		},
		Verify: func(args []sim.Arg) error {
			w0, w1, w2 := make([]uint8, n), make([]uint8, n), make([]uint8, n)
			w3, w4, w5 := make([]uint16, n), make([]float32, n), make([]int64, n)
			for i := range a {
				x, y := a[i], b[i]
				p, q := x != 0, int8(x) < int8(y)
				r := !(p && q)
				if r {
					w0[i] = 1
				}
				w1[i] = x*y - 3
				w2[i] = uint8(int8(y) / 7)
				if p == q {
					w2[i] = uint8(int8(x) >> 3)
				}
				w3[i] = uint16(int16(int8(x)) + int16(y))
				w4[i] = float32(x) + float32(int8(y))
				if pick := p && q || !p && r; pick {
					w5[i] = -1
				}
				w5[i] += int64(y & 1)
			}
			for _, err := range []error{equal(args[2], w0), equal(args[3], w1), equal(args[4], w2), equal(args[5], w3), equal(args[6], w4), equal(args[7], w5)} {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// Casts is conversions between float32 and the integers, and bfloat16 by its bits.
func Casts() Case {
	var x []float32
	for i := range 400 {
		x = append(x, float32(i-200)*0.37)
	}
	n := len(x)
	return Case{
		Name: "casts", Grid: blocksOf(n), Block: [3]int{64},
		Args: func() []sim.Arg {
			return bufs(x, make([]uint8, n), make([]uint16, n), make([]int32, n), make([]int64, n), make([]uint16, n), make([]float32, n), make([]int64, n))
		},
		Verify: func(args []sim.Arg) error {
			w0, w1, w2, w3, w5 := make([]uint8, n), make([]uint16, n), make([]int32, n), make([]int64, n), make([]float32, n)
			for i, v := range x {
				w0[i], w1[i], w2[i], w3[i] = uint8(int8(v)), uint16(int16(v)), int32(v), int64(v)
				u := math.Float32bits(v)
				w5[i] = math.Float32frombits((u + 0x7fff + u>>16&1) >> 16 << 16)
			}
			for _, err := range []error{equal(args[1], w0), equal(args[2], w1), equal(args[3], w2), equal(args[4], w3), equal(args[6], w5)} {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// Local reverses runs of eight through an array of each thread's own.
func Local() Case {
	x := Random(64*8, 9)
	return Case{
		Name: "local", Grid: [3]int{1}, Block: [3]int{64},
		Args: func() []sim.Arg { return bufs(x, make([]float32, len(x))) },
		Verify: func(args []sim.Arg) error {
			want := make([]float32, len(x))
			for i := range want {
				want[i] = x[i/8*8+7-i%8]
			}
			return equal(args[1], want)
		},
	}
}

// Histogram counts the low three bits with atomic additions, in shared memory and then in global memory.
func Histogram() Case {
	x := make([]int32, 1000)
	for i := range x {
		x[i] = int32(i*i*7 + i/3)
	}
	return Case{
		Name: "histogram", Grid: [3]int{4}, Block: [3]int{96},
		Args: func() []sim.Arg { return append(bufs(x, make([]int32, 8)), sim.I32(int32(len(x)))) },
		Verify: func(args []sim.Arg) error {
			want := make([]int32, 8)
			for _, v := range x {
				want[v&7]++
			}
			return equal(args[1], want)
		},
	}
}

// Diverge runs a loop of a different length in each thread (the Collatz steps), then votes and shuffles again.
func Diverge() Case {
	const n = 128
	return Case{
		Name: "diverge", Grid: [3]int{1}, Block: [3]int{n},
		Args: func() []sim.Arg { return bufs(make([]int32, n)) },
		Verify: func(args []sim.Arg) error {
			var k, want [n]int32
			for i := range k {
				for x := i + 1; x != 1; k[i]++ {
					if x%2 == 1 {
						x = 3*x + 1
					} else {
						x /= 2
					}
				}
			}
			for i := range want {
				w, l := i&^31, i&31
				var vote uint32
				for j := range 32 {
					if k[w+j] > 20 {
						vote |= 1 << j
					}
				}
				near, up := k[i], k[i]
				if l < 31 {
					near = k[i+1]
				}
				if l >= 2 {
					up = k[i-2]
				}
				want[i] = (near*1000 + up + k[w+5]*1000000) ^ int32(vote)
			}
			return equal(args[0], want[:])
		},
	}
}

// HalfVec doubles eight halves at a time, and sixteen bytes.
func HalfVec() Case {
	h := make([]uint16, 64*8)
	for i := range h {
		h[i] = uint16(0x3000 + 13*i)
	}
	return Case{
		Name: "halfvec", Grid: [3]int{1}, Block: [3]int{64},
		Args: func() []sim.Arg { return bufs(h, make([]uint16, len(h))) },
		Verify: func(args []sim.Arg) error {
			got := Values[uint16](args[1].Buffer, len(h))
			for i, v := range got {
				if halfValue(v) != 2*halfValue(h[i]) {
					return fmt.Errorf("element %d is %#x, twice %#x", i, v, h[i])
				}
			}
			return nil
		},
	}
}

// Dynamic reverses a block's elements through dynamic shared memory of 1 kB.
func Dynamic() Case {
	x := Random(256, 11)
	return Case{
		Name: "dynamic", Grid: [3]int{1}, Block: [3]int{256}, Shared: 1024,
		Args: func() []sim.Arg { return bufs(x, make([]float32, len(x))) },
		Verify: func(args []sim.Arg) error {
			want := make([]float32, len(x))
			for i := range want {
				want[i] = x[255-i]
			}
			return equal(args[1], want)
		},
	}
}

// Others is what neither aton nor llc 14 writes.
func Others() Case {
	x := append([]float32(nil), specials32...)
	x = append(x, make([]float32, 32-len(x))...)
	return Case{
		Name: "others", Grid: [3]int{1}, Block: [3]int{32},
		Args: func() []sim.Arg { return bufs(x, make([]float32, 4*32)) },
		Verify: func(args []sim.Arg) error {
			got := Values[uint32](args[1].Buffer, 4*32)
			for i, v := range x {
				greatest, least := max(v, 1), min(v, 1) // NaN, if v is
				for k, want := range []float32{1 / v, greatest, least} {
					if g := math.Float32frombits(got[4*i+1+k]); g != want && (g == g || want == want) {
						return fmt.Errorf("result %d of %g is %g, want %g", k, v, g, want)
					}
				}
				if want := bits.ReverseBytes32(math.Float32bits(v)); got[4*i] != want {
					return fmt.Errorf("bytes of %g are %x, want %x", v, got[4*i], want)
				}
			}
			return nil
		},
	}
}
