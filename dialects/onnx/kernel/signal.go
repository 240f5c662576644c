package kernel

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa/tensor"
)

// signal finds the kernels of signal processing.
func signal(name string) kernel {
	switch name {
	case "DFT":
		return evalDFT
	case "STFT":
		return evalSTFT
	case "MelWeightMatrix":
		return evalMel
	}
	return nil
}

// root is exp(2 pi i j / n), each part rounded about once: by the angle in the first octant, which is exact but for one division.
func root(j, n int) complex128 {
	eighths := 8 * j // of the n that an eighth of the circle has
	below, left, high := eighths > 4*n, false, false
	if below {
		eighths = 8*n - eighths
	}
	if left = eighths > 2*n; left {
		eighths = 4*n - eighths
	}
	if high = eighths > n; high {
		eighths = 2*n - eighths
	}
	sin, cos := math.Sincos(math.Pi / 4 * float64(eighths) / float64(n))
	if high {
		sin, cos = cos, sin
	}
	if left {
		cos = -cos
	}
	if below {
		sin = -sin
	}
	return complex(cos, sin)
}

// dft computes n terms of the transform of in by definition.
func dft(in []complex128, n int, inverse bool) []complex128 {
	out := make([]complex128, n)
	size := len(in)
	table := make([]complex128, size)
	for i := range table {
		table[i] = root(i, size)
		if !inverse {
			table[i] = complex(real(table[i]), -imag(table[i]))
		}
	}
	for k := range out {
		acc := complex128(0)
		for t, x := range in {
			acc += x * table[k*t%size]
		}
		if inverse {
			acc /= complex(float64(size), 0)
		}
		out[k] = acc
	}
	return out
}

func evalDFT(c *call) []*tensor.Tensor {
	x := c.t(0)
	r := len(x.Shape)
	k := c.axis(c.scalar(2, -2), r)
	if r < 2 || k == r-1 {
		c.fail("axis %d of rank %d", k, r)
	}
	width := x.Shape[r-1]
	inverse, onesided := c.flag("inverse"), c.flag("onesided")
	n := c.scalar(1, x.Shape[k])
	if inverse && onesided && c.t(1) == nil {
		n = 2 * (x.Shape[k] - 1)
	}
	c.count([]int64{n})
	have, terms := x.Shape[k], n
	outWidth := int64(2)
	if onesided && !inverse {
		terms = n/2 + 1
	}
	if onesided && inverse {
		outWidth = 1
	}
	v := x.Float64s()
	inner := prod(x.Shape[k+1 : r-1])
	outer := prod(x.Shape[:k])
	shape := slices.Clone(x.Shape)
	shape[k], shape[r-1] = terms, outWidth
	out := make([]float64, prod(shape))
	parallel(int(outer*inner), int(outer*inner*n*n), func(from, to int) {
		line := make([]complex128, n)
		for l := int64(from); l < int64(to); l++ {
			o, i := l/inner, l%inner
			clear(line)
			for t := range min(n, have) {
				p := ((o*have+t)*inner + i) * width
				if line[t] = complex(v[p], 0); width == 2 {
					line[t] = complex(v[p], v[p+1])
				}
			}
			if onesided && inverse { // the other half mirrors the first
				for t := int64(1); t < n; t++ {
					if n-t < have && t >= n/2+1 {
						line[t] = complex(real(line[n-t]), -imag(line[n-t]))
					}
				}
			}
			for t, z := range dft(line, int(terms), inverse) {
				p := ((o*terms+int64(t))*inner + i) * outWidth
				if out[p] = real(z); outWidth == 2 {
					out[p+1] = imag(z)
				}
			}
		}
	})
	return one(tensor.FromFloats(x.DType, shape, out))
}

func evalSTFT(c *call) []*tensor.Tensor {
	x := c.t(0)
	step := c.scalar(1, 1)
	width := int64(1)
	if len(x.Shape) == 3 {
		width = x.Shape[2]
	}
	if len(x.Shape) < 2 || step < 1 {
		c.fail("signal %v, step %d", x.Shape, step)
	}
	frame := x.Shape[1]
	if c.t(2) != nil {
		frame = c.t(2).NumElements()
	}
	frame = c.scalar(3, frame)
	if frame < 1 || frame > x.Shape[1] {
		c.fail("frames of %d in a signal of %d", frame, x.Shape[1])
	}
	window := make([]float64, frame)
	for i := range window {
		window[i] = 1
	}
	if c.t(2) != nil {
		window = c.t(2).Float64s()
	}
	terms := frame
	if c.flag("onesided") {
		terms = frame/2 + 1
	}
	frames := (x.Shape[1]-frame)/step + 1
	v := x.Float64s()
	shape := []int64{x.Shape[0], frames, terms, 2}
	out := make([]float64, prod(shape))
	line := make([]complex128, frame)
	for b := range x.Shape[0] {
		for f := range frames {
			for t := range frame {
				p := (b*x.Shape[1] + f*step + t) * width
				if line[t] = complex(v[p]*window[t], 0); width == 2 {
					line[t] = complex(v[p]*window[t], v[p+1]*window[t])
				}
			}
			for t, z := range dft(line, int(terms), false) {
				p := ((b*frames+f)*terms + int64(t)) * 2
				out[p], out[p+1] = real(z), imag(z)
			}
		}
	}
	return one(tensor.FromFloats(x.DType, shape, out))
}

func evalMel(c *call) []*tensor.Tensor {
	bins, length, rate := c.scalar(0, 0), c.scalar(1, 0), c.scalar(2, 0)
	low, high := c.fscalar(3, 0), c.fscalar(4, 0)
	rows := length/2 + 1
	c.count([]int64{rows, bins + 2})
	mel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	lo, hi := mel(low), mel(high)
	stepSize := (hi - lo) / float64(bins+2)
	edges := make([]int64, bins+2)
	for i := range edges {
		f := 700 * (math.Pow(10, (float64(i)*stepSize+lo)/2595) - 1)
		edges[i] = int64(math.Floor(float64(length+1) * f / float64(rate)))
	}
	out := make([]float64, rows*bins)
	for i := range bins {
		a, b, e := edges[i], edges[i+1], edges[i+2]
		if b == a {
			out[b*bins+i] = 1
		} else {
			for j := a; j <= b; j++ {
				out[j*bins+i] = float64(j-a) / float64(b-a)
			}
		}
		if e != b {
			for j := b; j < e; j++ {
				out[j*bins+i] = float64(e-j) / float64(e-b)
			}
		}
	}
	return one(cast(tensor.FromFloats(tensor.Float64, []int64{rows, bins}, out), c.dtype("output_datatype", tensor.Float32)))
}
