package kernel

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa/tensor"
)

// convolution finds the kernels of convolutions and pools.
func convolution(name string) kernel {
	switch name {
	case "Conv":
		return evalConv
	case "ConvTranspose":
		return evalConvTranspose
	case "ConvInteger":
		return evalConvInteger
	case "QLinearConv":
		return evalQLinearConv
	case "DeformConv":
		return evalDeformConv
	case "MaxPool":
		return evalMaxPool
	case "AveragePool", "LpPool":
		return evalAveragePool
	case "MaxUnpool":
		return evalMaxUnpool
	case "Col2Im":
		return evalCol2Im
	}
	return nil
}

// windows is the geometry of a convolution or pool: sizes per spatial axis.
type windows struct {
	in, out, kernel, stride, dilation, before, after []int64
}

// windows reads the geometry from the attributes and computes the output sizes.
func (c *call) windows(in, kernel []int64) *windows {
	n := len(in)
	or := func(name string) []int64 {
		if v := c.ints(name); v != nil {
			if len(v) != n {
				c.fail("%s has %d elements for %d axes", name, len(v), n)
			}
			return v
		}
		v := make([]int64, n)
		for i := range v {
			v[i] = 1
		}
		return v
	}
	if len(kernel) != n {
		c.fail("a kernel of %d axes for %d", len(kernel), n)
	}
	w := &windows{in: in, kernel: kernel, stride: or("strides"), dilation: or("dilations"), before: make([]int64, n), after: make([]int64, n), out: make([]int64, n)}
	pads := c.ints("pads")
	if pads != nil && len(pads) != 2*n {
		c.fail("pads has %d elements for %d axes", len(pads), n)
	}
	auto := c.str("auto_pad")
	for i := range n {
		if w.stride[i] < 1 || w.dilation[i] < 1 || kernel[i] < 1 {
			c.fail("kernel, strides and dilations must be positive")
		}
		extent := (kernel[i]-1)*w.dilation[i] + 1
		switch auto {
		case "SAME_UPPER", "SAME_LOWER":
			w.out[i] = (in[i] + w.stride[i] - 1) / w.stride[i]
			all := max(0, (w.out[i]-1)*w.stride[i]+extent-in[i])
			w.before[i], w.after[i] = all/2, all-all/2
			if auto == "SAME_LOWER" {
				w.before[i], w.after[i] = w.after[i], w.before[i]
			}
			continue
		case "VALID":
		default:
			if pads != nil {
				w.before[i], w.after[i] = pads[i], pads[n+i]
			}
		}
		span := in[i] + w.before[i] + w.after[i] - extent
		w.out[i] = floorDiv(span, w.stride[i]) + 1
		if c.attr("ceil_mode").Int() != 0 {
			w.out[i] = floorDiv(span+w.stride[i]-1, w.stride[i]) + 1
			if (w.out[i]-1)*w.stride[i] >= in[i]+w.before[i] {
				w.out[i]-- // the last window would start in the padding
			}
		}
		if w.out[i] < 0 {
			c.fail("a kernel of %v is larger than the padded input %v", kernel, in)
		}
	}
	return w
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// taps calls f for the kernel positions of an output position that fall on the
// input: the position in the kernel and in the input, both row-major.
func (w *windows) taps(out []int64, f func(k, in int64)) {
	n := len(w.in)
	if n == 0 {
		f(0, 0)
		return
	}
	idx := make([]int64, n)
	for {
		p, q, inside := int64(0), int64(0), true
		for d := range n {
			at := out[d]*w.stride[d] - w.before[d] + idx[d]*w.dilation[d]
			if at < 0 || at >= w.in[d] {
				inside = false
				break
			}
			p, q = p*w.kernel[d]+idx[d], q*w.in[d]+at
		}
		if inside {
			f(p, q)
		}
		d := n - 1
		for ; d >= 0; d-- {
			if idx[d]++; idx[d] < w.kernel[d] {
				break
			}
			idx[d] = 0
		}
		if d < 0 {
			return
		}
	}
}

func (c *call) kernelShape(w *tensor.Tensor) []int64 {
	if c.has("kernel_shape") {
		k := c.ints("kernel_shape")
		if w != nil && !slices.Equal(k, w.Shape[2:]) {
			c.fail("kernel_shape %v does not fit the weight %v", k, w.Shape)
		}
		return k
	}
	if w == nil {
		c.fail("no kernel_shape")
	}
	return w.Shape[2:]
}

func evalConv(c *call) []*tensor.Tensor {
	x, w := c.t(0), c.t(1)
	switch x.DType {
	case tensor.Float32:
		return one(conv[float32, float64](c, x, w, c.t(2)))
	case tensor.Float64:
		return one(conv[float64, float64](c, x, w, c.t(2)))
	}
	c.fail("element type %v", x.DType)
	return nil
}

// conv gathers the taps of each output position into a column and multiplies.
func conv[T number, A number](c *call, x, w, bias *tensor.Tensor) *tensor.Tensor {
	if len(x.Shape) < 2 || len(w.Shape) != len(x.Shape) || x.DType != w.DType {
		c.fail("input %v, weight %v", x, w)
	}
	group := max(c.int("group"), 1)
	n, ch, m := x.Shape[0], x.Shape[1], w.Shape[0]
	per, outPer := w.Shape[1], m/group
	if per*group != ch || m%group != 0 {
		c.fail("%d channels do not fit a weight %v in %d groups", ch, w.Shape, group)
	}
	g := c.windows(x.Shape[2:], c.kernelShape(w))
	shape := append([]int64{n, m}, g.out...)
	c.count(shape)
	size, taps, inSize := prod(g.out), prod(g.kernel), prod(g.in)
	// at[p*taps+k] is the input position of tap k of output position p, -1 for padding.
	at := make([]int64, size*taps)
	for i := range at {
		at[i] = -1
	}
	positions(g.out, func(i int, idx []int64) {
		g.taps(idx, func(k, in int64) { at[int64(i)*taps+k] = in })
	})
	src, weight := tensor.Data[T](x), tensor.Data[T](w)
	var b []T
	if bias != nil {
		if b = tensor.Data[T](bias); int64(len(b)) != m {
			c.fail("%d biases for %d channels", len(b), m)
		}
	}
	out := make([]T, n*m*size)
	depth := per * taps
	for i := range n {
		for gr := range group {
			base := src[(i*ch+gr*per)*inSize:]
			parallel(int(size), int(size*depth*outPer), func(from, to int) {
				col := make([]A, depth)
				for p := from; p < to; p++ {
					ix := at[int64(p)*taps : int64(p+1)*taps]
					j := 0
					for ci := range per {
						plane := base[ci*inSize:]
						for _, q := range ix {
							if col[j] = 0; q >= 0 {
								col[j] = A(plane[q])
							}
							j++
						}
					}
					for o := range outPer {
						f := gr*outPer + o
						row := weight[f*depth : (f+1)*depth]
						acc := A(0)
						for j, v := range col {
							acc += v * A(row[j])
						}
						if b != nil {
							acc += A(b[f])
						}
						out[(i*m+f)*size+int64(p)] = T(acc)
					}
				}
			})
		}
	}
	return tensor.Of(x.DType, shape, out)
}

func evalConvTranspose(c *call) []*tensor.Tensor {
	x, w := c.t(0), c.t(1)
	if len(x.Shape) < 2 || len(w.Shape) != len(x.Shape) || w.Shape[0] != x.Shape[1] {
		c.fail("input %v, weight %v", x, w)
	}
	d := len(x.Shape) - 2
	group := max(c.int("group"), 1)
	kernel := c.kernelShape(w)
	in := x.Shape[2:]
	or := func(name string, def int64) []int64 {
		if v := c.ints(name); v != nil {
			if len(v) != d {
				c.fail("%s has %d elements for %d axes", name, len(v), d)
			}
			return v
		}
		v := make([]int64, d)
		for i := range v {
			v[i] = def
		}
		return v
	}
	stride, dilation, extra := or("strides", 1), or("dilations", 1), or("output_padding", 0)
	pads, auto := c.ints("pads"), c.str("auto_pad")
	before, size := make([]int64, d), make([]int64, d)
	want := c.ints("output_shape")
	for i := range d {
		full := stride[i]*(in[i]-1) + extra[i] + (kernel[i]-1)*dilation[i] + 1
		switch {
		case want != nil || auto == "SAME_UPPER" || auto == "SAME_LOWER":
			size[i] = in[i] * stride[i]
			if want != nil {
				size[i] = want[len(want)-d+i]
			}
			all := max(full-size[i], 0)
			if before[i] = all - all/2; auto == "SAME_UPPER" {
				before[i] = all / 2
			}
		case auto == "VALID" || pads == nil:
			size[i] = full
		default:
			before[i] = pads[i]
			size[i] = full - pads[i] - pads[d+i]
		}
	}
	n, ch, outPer := x.Shape[0], x.Shape[1], w.Shape[1]
	m, per := outPer*group, ch/group
	shape := append([]int64{n, m}, size...)
	c.count(shape)
	planeOut, planeIn, taps := prod(size), prod(in), prod(kernel)
	src, weight := x.Float64s(), w.Float64s()
	out := make([]float64, prod(shape))
	// Where input position p lands through tap k, -1 outside.
	at := make([]int64, planeIn*taps)
	positions(in, func(p int, idx []int64) {
		positions(kernel, func(k int, tap []int64) {
			q := int64(0)
			for i := range d {
				v := idx[i]*stride[i] - before[i] + tap[i]*dilation[i]
				if v < 0 || v >= size[i] {
					q = -1
					break
				}
				q = q*size[i] + v
			}
			at[int64(p)*taps+int64(k)] = q
		})
	})
	var b []float64
	if c.t(2) != nil {
		b = c.t(2).Float64s()
	}
	parallel(int(n*m), int(n*m*per*planeIn*taps), func(from, to int) {
		for f := int64(from); f < int64(to); f++ {
			i, o := f/m, f%m
			gr, oc := o/outPer, o%outPer
			plane := out[f*planeOut : (f+1)*planeOut]
			if b != nil {
				for q := range plane {
					plane[q] = b[o]
				}
			}
			for ci := range per {
				cin := gr*per + ci
				row := weight[(cin*outPer+oc)*taps : (cin*outPer+oc+1)*taps]
				for p := range planeIn {
					v := src[(i*ch+cin)*planeIn+p]
					for k, q := range at[p*taps : (p+1)*taps] {
						if q >= 0 {
							plane[q] += v * row[k]
						}
					}
				}
			}
		}
	})
	return one(tensor.FromFloats(x.DType, shape, out))
}

// evalMaxPool's indices are positions in the flattened input tensor.
func evalMaxPool(c *call) []*tensor.Tensor {
	x := c.t(0)
	if len(x.Shape) < 2 {
		c.fail("rank %d", len(x.Shape))
	}
	g := c.windows(x.Shape[2:], c.kernelShape(nil))
	planes, size, inSize := prod(x.Shape[:2]), prod(g.out), prod(g.in)
	shape := append(slices.Clone(x.Shape[:2]), g.out...)
	from := make([]int64, prod(shape))
	v := x.Float64s()
	colMajor := c.flag("storage_order")
	indices := make([]int64, len(from))
	parallel(int(planes), int(planes*size*prod(g.kernel)), func(lo, hi int) {
		for p := int64(lo); p < int64(hi); p++ {
			plane := v[p*inSize : (p+1)*inSize]
			positions(g.out, func(i int, idx []int64) {
				best := int64(-1)
				g.taps(idx, func(_, q int64) {
					if best < 0 || plane[q] > plane[best] || plane[q] != plane[q] && plane[best] == plane[best] {
						best = q
					}
				})
				o := p*size + int64(i)
				if from[o] = -1; best < 0 {
					indices[o] = -1
					return
				}
				from[o] = p*inSize + best
				indices[o] = from[o]
				if colMajor {
					indices[o] = p*inSize + columnMajor(g.in, best)
				}
			})
		}
	})
	y := take(x, shape, from)
	if slices.Contains(from, -1) { // a window covers only padding
		if !x.DType.IsFloat() {
			c.fail("a window covers only padding")
		}
		f := y.Float64s()
		for i, p := range from {
			if p < 0 {
				f[i] = math.Inf(-1)
			}
		}
		y = tensor.FromFloats(x.DType, shape, f)
	}
	return []*tensor.Tensor{y, tensor.Of(tensor.Int64, shape, indices)}
}

func columnMajor(shape []int64, p int64) int64 {
	out, scale := int64(0), prod(shape)
	for i := len(shape) - 1; i >= 0; i-- {
		scale /= shape[i]
		out += p % shape[i] * scale
		p /= shape[i]
	}
	return out
}

func evalAveragePool(c *call) []*tensor.Tensor {
	x := c.t(0)
	if len(x.Shape) < 2 {
		c.fail("rank %d", len(x.Shape))
	}
	g := c.windows(x.Shape[2:], c.kernelShape(nil))
	include := c.attr("count_include_pad").Int() != 0
	lp := c.kind == "onnx::LpPool"
	power := float64(c.attr("p").Int())
	planes, size, inSize := prod(x.Shape[:2]), prod(g.out), prod(g.in)
	shape := append(slices.Clone(x.Shape[:2]), g.out...)
	v, out := x.Float64s(), make([]float64, prod(shape))
	parallel(int(planes), int(planes*size*prod(g.kernel)), func(lo, hi int) {
		for p := int64(lo); p < int64(hi); p++ {
			plane := v[p*inSize : (p+1)*inSize]
			positions(g.out, func(i int, idx []int64) {
				sum, n := 0.0, 0.0
				g.taps(idx, func(_, q int64) {
					if lp {
						sum += math.Pow(math.Abs(plane[q]), power)
					} else {
						sum += plane[q]
					}
					n++
				})
				if include {
					// Padding counts, what lies beyond it (ceil_mode) does not.
					n = 1
					for d := range g.in {
						start := idx[d]*g.stride[d] - g.before[d]
						cells := int64(0)
						for k := range g.kernel[d] {
							if start+k*g.dilation[d] < g.in[d]+g.after[d] {
								cells++
							}
						}
						n *= float64(cells)
					}
				}
				o := p*size + int64(i)
				if lp {
					out[o] = math.Pow(sum, 1/power)
				} else {
					out[o] = sum / n
				}
			})
		}
	})
	return one(tensor.FromFloats(x.DType, shape, out))
}

func evalMaxUnpool(c *call) []*tensor.Tensor {
	x, ix := c.t(0), c.t(1).Int64s()
	kernel := c.ints("kernel_shape")
	d := len(x.Shape) - 2
	if d != len(kernel) || int64(len(ix)) != x.NumElements() {
		c.fail("input %v, %d indices, kernel %v", x.Shape, len(ix), kernel)
	}
	shape := slices.Clone(x.Shape)
	strides, pads := c.ints("strides"), c.ints("pads")
	for i := range d {
		s, p := int64(1), int64(0)
		if strides != nil {
			s = strides[i]
		}
		if pads != nil {
			p = pads[i] + pads[d+i]
		}
		shape[i+2] = (x.Shape[i+2]-1)*s + kernel[i] - p
	}
	natural := slices.Clone(shape)
	if c.t(2) != nil {
		shape = c.t(2).Int64s()
		if len(shape) != d+2 {
			c.fail("output_shape %v for rank %d", shape, d+2)
		}
	}
	c.count(shape)
	// Indices count in the pooled input's own shape, which a larger output shape does not change.
	at := make([]int64, prod(shape))
	for i := range at {
		at[i] = -1
	}
	for i, p := range ix {
		if p < 0 || p >= prod(natural) {
			c.fail("index %d is out of range", p)
		}
		q, scale, in := int64(0), int64(1), true
		for k := len(shape) - 1; k >= 0; k-- {
			v := p % natural[k]
			p /= natural[k]
			in = in && v < shape[k]
			q += v * scale
			scale *= shape[k]
		}
		if in {
			at[q] = int64(i)
		}
	}
	return one(take(x, shape, at))
}

func evalCol2Im(c *call) []*tensor.Tensor {
	x, image, block := c.t(0), c.t(1).Int64s(), c.t(2).Int64s()
	if len(x.Shape) != 3 || len(image) != len(block) {
		c.fail("input %v, image %v, block %v", x.Shape, image, block)
	}
	g := c.windows(image, block)
	taps, spots := prod(block), prod(g.out)
	if x.Shape[1]%taps != 0 || x.Shape[2] != spots {
		c.fail("input %v does not fit %d taps and %d positions", x.Shape, taps, spots)
	}
	n, ch, plane := x.Shape[0], x.Shape[1]/taps, prod(image)
	v, out := x.Float64s(), make([]float64, n*ch*plane)
	positions(g.out, func(p int, idx []int64) {
		g.taps(idx, func(k, in int64) {
			for f := range n * ch {
				out[f*plane+in] += v[(f*taps+k)*spots+int64(p)]
			}
		})
	})
	return one(cast(tensor.FromFloats(tensor.Float64, append([]int64{n, ch}, image...), out), x.DType))
}

// evalDeformConv is a convolution whose taps move by offsets and are read bilinearly.
func evalDeformConv(c *call) []*tensor.Tensor {
	x, w, off := c.t(0), c.t(1), c.t(2)
	if len(x.Shape) != 4 || len(w.Shape) != 4 || len(off.Shape) != 4 {
		c.fail("only two spatial axes are supported")
	}
	g := c.windows(x.Shape[2:], c.kernelShape(w))
	group, offGroup := max(c.int("group"), 1), max(c.int("offset_group"), 1)
	n, ch, m, per := x.Shape[0], x.Shape[1], w.Shape[0], w.Shape[1]
	ih, iw, oh, ow, kh, kw := g.in[0], g.in[1], g.out[0], g.out[1], g.kernel[0], g.kernel[1]
	if per*group != ch || m%group != 0 || ch%offGroup != 0 || off.Shape[1] != 2*offGroup*kh*kw || off.Shape[2] != oh || off.Shape[3] != ow {
		c.fail("input %v, weight %v, offset %v", x.Shape, w.Shape, off.Shape)
	}
	v, weight, o := x.Float64s(), w.Float64s(), off.Float64s()
	var mask, bias []float64
	if c.t(4) != nil {
		mask = c.t(4).Float64s()
	}
	if c.t(3) != nil {
		bias = c.t(3).Float64s()
	}
	out := make([]float64, n*m*oh*ow)
	read := func(plane []float64, y, x float64) float64 {
		y0, x0 := math.Floor(y), math.Floor(x)
		s := 0.0
		for dy := range 2 {
			for dx := range 2 {
				py, px := int64(y0)+int64(dy), int64(x0)+int64(dx)
				if py < 0 || py >= ih || px < 0 || px >= iw {
					continue
				}
				s += plane[py*iw+px] * (1 - math.Abs(y-float64(py))) * (1 - math.Abs(x-float64(px)))
			}
		}
		return s
	}
	for i := range n {
		for f := range m {
			gr := f / (m / group)
			for y := range oh {
				for xx := range ow {
					acc := 0.0
					for ci := range per {
						cin := gr*per + ci
						og := cin / (ch / offGroup)
						for ky := range kh {
							for kx := range kw {
								tap := og*kh*kw + ky*kw + kx
								spot := y*ow + xx
								py := float64(y*g.stride[0]-g.before[0]+ky*g.dilation[0]) + o[((i*offGroup*kh*kw+tap)*2)*oh*ow+spot]
								px := float64(xx*g.stride[1]-g.before[1]+kx*g.dilation[1]) + o[((i*offGroup*kh*kw+tap)*2+1)*oh*ow+spot]
								s := read(v[(i*ch+cin)*ih*iw:(i*ch+cin+1)*ih*iw], py, px) * weight[((f*per+ci)*kh+ky)*kw+kx]
								if mask != nil {
									s *= mask[(i*offGroup*kh*kw+tap)*oh*ow+spot]
								}
								acc += s
							}
						}
					}
					if bias != nil {
						acc += bias[f]
					}
					out[((i*m+f)*oh+y)*ow+xx] = acc
				}
			}
		}
	}
	return one(tensor.FromFloats(x.DType, []int64{n, m, oh, ow}, out))
}
