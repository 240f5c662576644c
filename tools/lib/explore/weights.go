package explore

import (
	"math"

	"github.com/aton-project/aton/ssa/tensor"
)

const (
	sampled = 1 << 16 // elements of a tensor that its statistics are of, at most
	parts   = 32      // of a histogram
)

// weight adds a tensor of the file to the document.
func (r *recorder) weight(name string, t *tensor.Tensor) int {
	w := Weight{Name: name, DType: t.DType.Spec(), Shape: append([]int64{}, t.Shape...), Bytes: t.NumBytes(), Stats: statistics(t, 0)}
	r.doc.Weights = append(r.doc.Weights, w)
	return len(r.doc.Weights) - 1
}

// numeric reports elements that statistics can be made of.
func numeric(t *tensor.Tensor) bool {
	return t.HasData() && t.DType.HoldsNumbers() && !t.DType.IsComplex() && !t.DType.Opaque() && t.DType.Size() > 0
}

// head is the first elements of a contiguous tensor, and spread at most n of them at equal distances.
func head(t *tensor.Tensor, n int64) *tensor.Tensor {
	c := *t
	c.Shape, c.Strides = []int64{n}, []int64{1}
	return &c
}

func spread(t *tensor.Tensor, most int64) *tensor.Tensor {
	n := t.NumElements()
	if n <= most {
		return t
	}
	c := *t.Reshape([]int64{n})
	step := (n + most - 1) / most
	c.Shape, c.Strides = []int64{(n + step - 1) / step}, []int64{step * c.Strides[0]}
	return &c
}

// statistics describes a tensor of numbers, with its first elements; nil for others.
func statistics(t *tensor.Tensor, elements int64) *Stats {
	if !numeric(t) || t.NumElements() == 0 {
		return nil
	}
	xs := spread(t, sampled).Float64s()
	s := &Stats{Count: len(xs), Min: math.Inf(1), Max: math.Inf(-1)}
	n, sum := 0, 0.0
	for _, x := range xs {
		switch {
		case x != x:
			s.NaN++
		case math.IsInf(x, 0):
			s.Inf++
		default:
			s.Min, s.Max = min(s.Min, x), max(s.Max, x)
			sum += x
			n++
		}
	}
	if n == 0 {
		s.Min, s.Max = 0, 0 // JSON has no infinities
	} else if s.Mean = sum / float64(n); math.IsInf(s.Mean, 0) {
		s.Mean = 0
		for _, x := range xs {
			if x-x == 0 {
				s.Mean += x / float64(n)
			}
		}
	}
	if width := s.Max/parts - s.Min/parts; width > 0 {
		s.Histogram = make([]int, parts)
		for _, x := range xs {
			if x-x == 0 { // finite
				s.Histogram[max(0, min(parts-1, int(x/width-s.Min/width)))]++
			}
		}
	}
	if elements > 0 {
		s.First = first(t, elements)
	}
	return s
}
