package aten

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// byteWeights bounds the weights of an axis that a file has.
const byteWeights = 1 << 22

// resizeBytes resizes images of uint8, whose weights PyTorch rounds to integers of 16 bits (_compute_index_ranges_int16_weights in
// ATen/native/cpu/UpSampleKernel.cpp): columns first, rounded to bytes, then rows. All sums are exact in float64.
func (l *Lowering) resizeBytes(x *ssa.Value, axes []axisScale, mode resizeMode, corners bool) *ssa.Value {
	y := l.Cast(x, tensor.Float64)
	for i := len(axes) - 1; i >= 0; i-- {
		a := axes[i]
		in, known := a.in.Int()
		out, fixed := a.out.Int()
		switch {
		case !known || !fixed:
			l.Fail("interpolation of uint8 from or to a size that is not known")
		case in == out && a.given && a.factor != 1:
			l.Fail("interpolation of uint8 by a factor that leaves the size")
		case in == out:
			continue
		case in < 1 || out < 1 || in > byteWeights/out:
			l.Fail("interpolation of uint8 from %d to %d pixels", in, out)
		}
		ratio := float64(in) / float64(out)
		switch {
		case corners && out > 1:
			ratio = float64(in-1) / float64(out-1)
		case corners:
			ratio = 0
		case a.given && a.factor > 0:
			ratio = 1 / a.factor
		}
		w, bits := byteMatrix(in, out, ratio, mode, corners)
		y = l.alongAxis(y, l.Const(tensor.FromFloats(tensor.Float64, []int64{out, in}, w)), 2+i)
		one := math.Ldexp(1, bits)
		y = l.Floor(l.scale(l.offset(y, one/2), 1/one))
		y = l.Clip(y, l.Like(y, 0), l.Like(y, math.MaxUint8))
	}
	return l.exactInts(y, tensor.Uint8)
}

// byteMatrix are the weights of in pixels for each of out pixels, multiplied by two to the power of bits and rounded. Products are converted one by
// one: no processor may add to them what it has not rounded.
func byteMatrix(in, out int64, ratio float64, mode resizeMode, corners bool) (w []float64, bits int) {
	w = make([]float64, in*out)
	most := 0.0
	for i := range out {
		row := w[i*in : (i+1)*in]
		add := func(at int64, v float64) {
			at = min(max(at, 0), in-1)
			row[at] += v
			most = max(most, row[at])
		}
		switch mode {
		case resizeLinearAA, resizeCubicAA:
			half, filter := 1.0, triangle
			if mode == resizeCubicAA {
				half, filter = 2, func(x float64) float64 { return cubic(x, -0.5) }
			}
			inverse := 1.0
			if ratio >= 1 {
				half, inverse = float64(half*ratio), 1/ratio
			}
			center := float64(ratio * (float64(i) + 0.5))
			from, to := max(int64(center-half+0.5), 0), min(int64(center+half+0.5), in)
			total := 0.0
			for k := from; k < to; k++ {
				row[k] = filter(float64((float64(k) - center + 0.5) * inverse))
				total += row[k]
			}
			for k := from; k < to; k++ {
				if total != 0 {
					row[k] /= total
				}
				most = max(most, row[k])
			}
			continue
		}
		at := float64(ratio * float64(i))
		if !corners {
			at = float64(ratio*(float64(i)+0.5)) - 0.5
		}
		if mode == resizeLinear {
			at = max(at, 0)
		}
		low := min(int64(math.Floor(at)), in-1)
		part := min(max(at-float64(low), 0), 1)
		if mode == resizeLinear {
			add(low, 1-part)
			add(low+1, part)
			continue
		}
		for k, x := range [4]float64{part + 1, part, 1 - part, 2 - part} {
			add(low-1+int64(k), cubic(x, -0.75))
		}
	}
	for bits = 0; bits < 22 && int64(0.5+most*math.Ldexp(1, bits+1)) < 1<<15; bits++ {
	}
	for i, v := range w {
		w[i] = math.Trunc(v*math.Ldexp(1, bits) + math.Copysign(0.5, v))
	}
	return w, bits
}

func triangle(x float64) float64 { return max(1-math.Abs(x), 0) }

// cubic is the kernel of Keys' cubic convolution.
func cubic(x, a float64) float64 {
	switch x = math.Abs(x); {
	case x < 1:
		return float64(float64((float64((a+2)*x)-(a+3))*x)*x) + 1
	case x < 2:
		return float64((float64((float64((x-5)*x)+8)*x) - 4) * a)
	}
	return 0
}
