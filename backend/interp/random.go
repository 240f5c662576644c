package interp

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/aton-project/aton/internal/random"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Random numbers are drawn by counter: what an element gets depends on the seed, on the operator, on how often the operator has drawn
// before and on the number of the element, and on nothing else. So all elements can be drawn at once, and a device draws the same.

// philox is Philox 4x32 with 10 rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011): four words
// for a counter and a key.
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		hi0, lo0 := bits.Mul32(0xd2511f53, counter[0])
		hi1, lo1 := bits.Mul32(0xcd9e8d57, counter[2])
		counter = [4]uint32{hi1 ^ counter[1] ^ key[0], lo1, hi0 ^ counter[3] ^ key[1], lo0}
		key[0] += 0x9e3779b9
		key[1] += 0xbb67ae85
	}
	return counter
}

// source draws for one run of an operator.
type source struct {
	key  [2]uint32
	id   uint64
	turn uint32
}

// source is the next one of an operator.
func (r *run) source(o *ssa.Op) source {
	if r.outer != nil {
		return r.outer.source(r.copied)
	}
	turn := r.drawn[o]
	r.drawn[o]++
	return source{[2]uint32{uint32(r.Seed) ^ random.Seed(o), uint32(r.Seed >> 32)}, random.Stream(o), uint32(turn)}
}

// words are the four random words of element i.
func (s source) words(i int) [4]uint32 {
	return philox([4]uint32{uint32(i), s.turn, uint32(s.id), uint32(s.id >> 32)}, s.key)
}

// fraction is a number from 0 to below 1 of that many binary digits.
func fraction(hi, lo uint32, digits int) float64 {
	return float64((uint64(hi)<<32|uint64(lo))>>(64-digits)) * math.Ldexp(1, -digits)
}

// uniform is a number from 0 to below 1 for element i.
func (s source) uniform(i, digits int) float64 {
	w := s.words(i)
	return fraction(w[0], w[1], digits)
}

// normal is a standard normal number for element i: sqrt(-2 log(1 - u)) cos(2 pi v) (Box and Muller, 1958).
func (s source) normal(i int) float64 {
	w := s.words(i)
	u, v := fraction(w[0], w[1], 53), fraction(w[2], w[3], 53)
	return math.Sqrt(-2*math.Log(1-u)) * math.Cos(2*math.Pi*v)
}

// digits are as many binary digits as all numbers of a type below 1 have: none of them is rounded up to 1.
func digits(d tensor.DType) int {
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

// runRandom draws numbers: reproducible for a seed, but not those of other runtimes.
func runRandom(r *run, o *ssa.Op, in []Value) ([]Value, error) {
	name := o.Kind.Name()
	d := tensor.Float32
	shape := o.AttrInts("shape")
	var x *tensor.Tensor
	if len(in) > 0 {
		if x = in[0].Tensor; x == nil {
			return nil, fmt.Errorf("needs a tensor")
		}
		d, shape = x.DType, x.Shape
	}
	if name == "Multinomial" {
		d = tensor.Int32
	}
	if n := o.AttrInt("dtype", 0); n != 0 {
		d = tensor.FromONNX(int(n))
	}
	if d == tensor.Undefined {
		return nil, fmt.Errorf("unknown element type")
	}
	s := r.source(o)
	if name == "Multinomial" {
		return s.multinomial(o, x, d)
	}
	n := int64(1)
	for _, size := range shape {
		if size < 0 || size > 0 && n > 1<<31/size {
			return nil, fmt.Errorf("impossible shape %v", shape)
		}
		n *= size
	}
	out := make([]float64, n)
	var p []float64
	if name == "Bernoulli" {
		p = x.Float64s()
	}
	lo, hi := o.AttrFloat("low", 0), o.AttrFloat("high", 1)
	mean, scale := o.AttrFloat("mean", 0), o.AttrFloat("scale", 1)
	for i := range out {
		switch name {
		case "Bernoulli":
			if s.uniform(i, 53) < p[i] {
				out[i] = 1
			}
		case "RandomNormal", "RandomNormalLike":
			out[i] = mean + float64(scale*s.normal(i)) // rounded each: never fused
		default:
			out[i] = lo + float64((hi-lo)*s.uniform(i, digits(d)))
		}
	}
	return []Value{Of(tensor.FromFloats(d, shape, out))}, nil
}

func (s source) multinomial(o *ssa.Op, x *tensor.Tensor, d tensor.DType) ([]Value, error) {
	if len(x.Shape) != 2 || x.Shape[1] == 0 {
		return nil, fmt.Errorf("input %v", x)
	}
	k, n := o.AttrInt("sample_size", 1), x.Shape[1]
	if k < 0 || k > 1<<24 {
		return nil, fmt.Errorf("sample_size %d", k)
	}
	v := x.Float64s()
	var out []int64
	for b := range x.Shape[0] {
		row := v[b*n : (b+1)*n]
		total, top := 0.0, slices.Max(row)
		for _, p := range row {
			total += math.Exp(p - top)
		}
		for range k {
			at, pick := s.uniform(len(out), 53)*total, int64(0)
			for i, p := range row {
				pick = int64(i)
				if at -= math.Exp(p - top); at < 0 {
					break
				}
			}
			out = append(out, pick)
		}
	}
	return []Value{Of(tensor.FromInts(d, []int64{x.Shape[0], k}, out))}, nil
}

func runDropout(r *run, o *ssa.Op, in []Value) ([]Value, error) {
	if len(in) == 0 || in[0].Tensor == nil {
		return nil, fmt.Errorf("needs a tensor")
	}
	x := in[0].Tensor
	ratio, training := 0.5, false
	if len(in) > 1 && in[1].Tensor != nil && in[1].Tensor.NumElements() == 1 {
		ratio = in[1].Tensor.Float64s()[0]
	}
	if len(in) > 2 && in[2].Tensor != nil {
		var err error
		if training, err = truth(in[2]); err != nil {
			return nil, err
		}
	}
	s := r.source(o)
	if !training || ratio == 0 {
		return []Value{in[0], Of(tensor.FullInt(tensor.Bool, x.Shape, 1))}, nil
	}
	v := x.Float64s()
	mask := make([]int64, len(v))
	for i := range v {
		if s.uniform(i, 53) < ratio {
			v[i] = 0
		} else {
			v[i] /= 1 - ratio
			mask[i] = 1
		}
	}
	return []Value{Of(tensor.FromFloats(x.DType, x.Shape, v)), Of(tensor.FromInts(tensor.Bool, x.Shape, mask))}, nil
}
