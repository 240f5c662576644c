package interp

import (
	"math"
	"testing"
)

// The examples that come with the paper.
func TestPhilox(t *testing.T) {
	const ones = math.MaxUint32
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.counter, c.key); got != c.want {
			t.Errorf("philox(%x, %x) = %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

// Moments of what is drawn, each within 5 standard errors.
func TestMoments(t *testing.T) {
	const n = 100000
	s := source{id: 7}
	var sum, square, fourth, flat, flat2 float64
	for i := range n {
		z, u := s.normal(i), s.uniform(i, 24)
		sum += z
		square += z * z
		fourth += z * z * z * z
		flat += u
		flat2 += u * u
		if u < 0 || u >= 1 {
			t.Fatalf("%v is no fraction", u)
		}
	}
	for _, c := range []struct {
		name              string
		got, want, spread float64
	}{
		{"mean", sum, 0, 1},
		{"variance", square, 1, math.Sqrt2},
		{"fourth moment", fourth, 3, math.Sqrt(96)},
		{"uniform mean", flat, 0.5, math.Sqrt(1.0 / 12)},
		{"uniform second moment", flat2, 1.0 / 3, math.Sqrt(4.0 / 45)},
	} {
		if got := c.got / n; math.Abs(got-c.want) > 5*c.spread/math.Sqrt(n) {
			t.Errorf("%s is %v, want %v", c.name, got, c.want)
		}
	}
}
