package kernel

import (
	"math"
	"slices"

	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa/tensor"
)

// sampling finds the kernels that read between pixels.
func sampling(name string) kernel {
	switch name {
	case "Resize":
		return evalResize
	case "GridSample":
		return evalGridSample
	case "RoiAlign":
		return evalRoiAlign
	case "MaxRoiPool":
		return evalMaxRoiPool
	}
	return nil
}

// filter says which input positions, with which weights, make an output
// position of a resized axis. outside marks one beyond the region of interest.
type filter struct {
	at      []int64
	weight  []float64
	outside bool
}

func evalResize(c *call) []*tensor.Tensor {
	x := c.t(0)
	r := len(x.Shape)
	axes := make([]int, 0, r)
	if c.has("axes") {
		for _, a := range c.ints("axes") {
			axes = append(axes, c.axis(a, r))
		}
	} else {
		for i := range r {
			axes = append(axes, i)
		}
	}
	shape := slices.Clone(x.Shape)
	scale := make([]float64, r)
	for i := range scale {
		scale[i] = 1
	}
	switch {
	case c.t(3) != nil && c.t(3).NumElements() > 0:
		want := c.t(3).Int64s()
		if len(want) != len(axes) {
			c.fail("%d sizes for %d axes", len(want), len(axes))
		}
		have := make([]int64, len(axes))
		for i, a := range axes {
			have[i] = x.Shape[a]
		}
		policy := c.str("keep_aspect_ratio_policy")
		if policy != "stretch" && policy != "" {
			s := float64(want[0]) / float64(have[0])
			for i := range have {
				if f := float64(want[i]) / float64(have[i]); policy == "not_larger" {
					s = min(s, f)
				} else {
					s = max(s, f)
				}
			}
			for i, n := range formula.KeepAspect(have, want, policy) {
				shape[axes[i]], scale[axes[i]] = n, s
			}
			break
		}
		for i, a := range axes {
			shape[a] = want[i]
			if have[i] > 0 {
				scale[a] = float64(want[i]) / float64(have[i])
			}
		}
	case c.t(2) != nil:
		s := c.t(2).Float64s()
		if len(s) != len(axes) {
			c.fail("%d scales for %d axes", len(s), len(axes))
		}
		for i, a := range axes {
			shape[a], scale[a] = formula.ScaledSize(x.Shape[a], s[i]), s[i]
		}
	default:
		c.fail("neither scales nor sizes")
	}
	c.count(shape)
	start, end := make([]float64, r), make([]float64, r)
	for a := range end {
		end[a] = 1 // an axis that the region does not name is all there
	}
	if c.t(1) != nil && c.t(1).NumElements() == int64(2*len(axes)) {
		roi := c.t(1).Float64s()
		for i, a := range axes {
			start[a], end[a] = roi[i], roi[len(axes)+i]
		}
	}
	v := x.Float64s()
	cur := slices.Clone(x.Shape)
	crop := c.str("coordinate_transformation_mode") == "tf_crop_and_resize"
	outside := make([][]bool, r)
	for a := range r {
		if shape[a] == cur[a] && scale[a] == 1 && !crop {
			continue
		}
		if cur[a] == 0 && prod(shape) > 0 {
			c.fail("axis %d is empty", a)
		}
		fs := make([]filter, shape[a])
		outside[a] = make([]bool, shape[a])
		for o := range fs {
			fs[o] = c.resizeFilter(int64(o), cur[a], shape[a], scale[a], start[a], end[a])
			outside[a][o] = fs[o].outside
		}
		v = applyFilters(v, cur, a, fs)
		cur[a] = shape[a]
	}
	if crop {
		fill := c.float("extrapolation_value")
		positions(shape, func(i int, idx []int64) {
			for a, p := range idx {
				if outside[a] != nil && outside[a][p] {
					v[i] = fill
				}
			}
		})
	}
	if !x.DType.IsFloat() {
		for i, f := range v { // as onnxruntime: round, then keep within the type
			lo, hi := limits(x.DType)
			if c.str("mode") != "nearest" {
				v[i] = clamp(math.RoundToEven(f), float64(lo), float64(hi))
			}
		}
	}
	return one(cast(tensor.FromFloats(tensor.Float64, shape, v), x.DType))
}

func applyFilters(v []float64, shape []int64, a int, fs []filter) []float64 {
	outer, n, inner := prod(shape[:a]), shape[a], prod(shape[a+1:])
	out := make([]float64, outer*int64(len(fs))*inner)
	for o := range outer {
		for p, f := range fs {
			dst := out[(o*int64(len(fs))+int64(p))*inner:][:inner]
			for k, at := range f.at {
				w := f.weight[k]
				src := v[(o*n+at)*inner:][:inner]
				if w == 1 && len(f.at) == 1 {
					copy(dst, src)
					continue
				}
				for i, s := range src {
					dst[i] += w * s
				}
			}
		}
	}
	return out
}

func (c *call) resizeFilter(o, in, out int64, scale, start, end float64) filter {
	x := float64(o)
	outside := false
	switch c.str("coordinate_transformation_mode") {
	case "align_corners":
		if out == 1 {
			x = 0
		} else {
			x = x * float64(in-1) / float64(out-1)
		}
	case "asymmetric":
		x /= scale
	case "pytorch_half_pixel":
		if out == 1 {
			x = 0
		} else {
			x = (x+0.5)/scale - 0.5
		}
	case "tf_half_pixel_for_nn":
		x = (x + 0.5) / scale
	case "half_pixel_symmetric":
		adjust := float64(out) / (scale * float64(in))
		x = float64(in)/2*(1-adjust) + (x+0.5)/scale - 0.5
	case "tf_crop_and_resize":
		if out > 1 {
			x = start*float64(in-1) + x*(end-start)*float64(in-1)/float64(out-1)
		} else {
			x = 0.5 * (start + end) * float64(in-1)
		}
		outside = x < 0 || x > float64(in-1)
	default:
		x = (x+0.5)/scale - 0.5
	}
	mode := c.str("mode")
	if mode == "nearest" || mode == "" {
		// The nearest element is not a continuous function of the place, which is a float32 in onnxruntime.
		switch c.str("coordinate_transformation_mode") {
		case "asymmetric":
			x = float64(float32(o) / float32(scale))
		case "half_pixel", "":
			x = float64((float32(o)+0.5)/float32(scale) - 0.5)
		}
		var p float64
		switch c.str("nearest_mode") {
		case "floor":
			p = math.Floor(x)
		case "ceil":
			p = math.Ceil(x)
		case "round_prefer_ceil":
			p = math.Floor(x + 0.5)
		default:
			p = math.Ceil(x - 0.5)
		}
		return filter{[]int64{int64(clamp(p, 0, float64(in-1)))}, []float64{1}, outside}
	}
	// The taps lie around x; ratio is in (0, 1].
	base := math.Ceil(x) - 1
	ratio := x - base
	shrink := 1.0
	if c.flag("antialias") {
		shrink = min(scale, 1)
	}
	reach, kernel := 1.0, func(d float64) float64 { return max(0, 1-math.Abs(d)) }
	if mode == "cubic" {
		a := c.float("cubic_coeff_a")
		reach, kernel = 2, func(d float64) float64 { return cubic(math.Abs(d), a) }
	}
	first := int64(math.Floor(-reach/shrink)) + 1
	f := filter{outside: outside}
	sum := 0.0
	for k := first; k <= 1-first; k++ {
		w := kernel((float64(k) - ratio) * shrink)
		p := int64(base) + k
		if p < 0 || p >= in {
			if c.flag("exclude_outside") {
				continue
			}
			p = min(max(p, 0), in-1)
		}
		f.at, f.weight = append(f.at, p), append(f.weight, w)
		sum += w
	}
	for i := range f.weight {
		f.weight[i] /= sum
	}
	return f
}

// cubic is the cubic convolution kernel at distance d >= 0.
func cubic(d, a float64) float64 {
	switch {
	case d <= 1:
		return ((a+2)*d-(a+3))*d*d + 1
	case d < 2:
		return ((a*d-5*a)*d+8*a)*d - 4*a
	}
	return 0
}

func evalGridSample(c *call) []*tensor.Tensor {
	x, grid := c.t(0), c.t(1)
	d := len(x.Shape) - 2
	if d < 1 || len(grid.Shape) != d+2 || grid.Shape[d+1] != int64(d) || grid.Shape[0] != x.Shape[0] {
		c.fail("input %v, grid %v", x.Shape, grid.Shape)
	}
	n, ch, in := x.Shape[0], x.Shape[1], x.Shape[2:]
	spots, plane := prod(grid.Shape[1:d+1]), prod(in)
	shape := append([]int64{n, ch}, grid.Shape[1:d+1]...)
	align, mode, padding := c.flag("align_corners"), c.str("mode"), c.str("padding_mode")
	v, g := x.Float64s(), grid.Float64s()
	out := make([]float64, n*ch*spots)
	parallel(int(n*spots), int(n*spots*ch)*16, func(from, to int) {
		pos := make([]float64, d)
		for s := int64(from); s < int64(to); s++ {
			b := s / spots
			for k := range d {
				t := g[s*int64(d)+int64(d-1-k)] // x comes first in the grid
				l := float64(in[k])
				if align {
					pos[k] = (t + 1) / 2 * (l - 1)
				} else {
					pos[k] = ((t+1)*l - 1) / 2
				}
				if mode != "cubic" && mode != "bicubic" {
					pos[k] = padCoordinate(pos[k], l, padding, align)
				}
			}
			at, weight := gridTaps(pos, in, mode, padding, align)
			for f := range ch {
				acc := 0.0
				for i, p := range at {
					acc += weight[i] * v[(b*ch+f)*plane+p]
				}
				out[(b*ch+f)*spots+s%spots] = acc
			}
		}
	})
	return one(cast(tensor.FromFloats(tensor.Float64, shape, out), x.DType))
}

// padCoordinate brings a coordinate into the image as the padding mode says.
func padCoordinate(p, l float64, padding string, align bool) float64 {
	if p != p {
		return -1
	}
	switch padding {
	case "border":
		return clamp(p, 0, l-1)
	case "reflection":
		lo, hi := -0.5, l-0.5
		if align {
			lo, hi = 0, l-1
		}
		span := hi - lo
		if span <= 0 {
			return 0
		}
		q := math.Mod(math.Abs(p-lo), 2*span)
		if q > span {
			q = 2*span - q
		}
		return clamp(q+lo, 0, l-1)
	}
	return clamp(p, -2, l+2) // far outside is all the same: zero
}

// gridTaps gives positions in a plane and their weights.
func gridTaps(pos []float64, in []int64, mode, padding string, align bool) (at []int64, weight []float64) {
	at, weight = []int64{0}, []float64{1}
	for k, p := range pos {
		var taps []int64
		var w []float64
		l := in[k]
		switch mode {
		case "nearest":
			taps, w = []int64{int64(math.RoundToEven(p))}, []float64{1}
		case "cubic", "bicubic":
			base := math.Floor(p)
			for i := -1.0; i <= 2; i++ {
				q := base + i
				if padding != "zeros" && padding != "" {
					q = padCoordinate(q, float64(l), padding, align)
				}
				taps, w = append(taps, int64(clamp(q, -1, float64(l)))), append(w, cubic(math.Abs(p-base-i), -0.75))
			}
		default:
			base := math.Floor(p)
			taps, w = []int64{int64(base), int64(base) + 1}, []float64{1 - (p - base), p - base}
		}
		var nextAt []int64
		var next []float64
		for i := range at {
			for j, t := range taps {
				if t < 0 || t >= l || w[j] == 0 {
					continue
				}
				nextAt, next = append(nextAt, at[i]*l+t), append(next, weight[i]*w[j])
			}
		}
		at, weight = nextAt, next
	}
	return at, weight
}

func evalRoiAlign(c *call) []*tensor.Tensor {
	x, rois, batch := c.t(0), c.t(1).Float64s(), c.t(2).Int64s()
	if len(x.Shape) != 4 || len(rois) != 4*len(batch) {
		c.fail("input %v, %d regions", x.Shape, len(batch))
	}
	ch, h, w := x.Shape[1], x.Shape[2], x.Shape[3]
	oh, ow, ratio, scale := c.int("output_height"), c.int("output_width"), c.int("sampling_ratio"), c.float("spatial_scale")
	half := c.str("coordinate_transformation_mode") == "half_pixel"
	useMax := c.str("mode") == "max"
	v := x.Float64s()
	out := make([]float64, int64(len(batch))*ch*oh*ow)
	for r, b := range batch {
		if b < 0 || b >= x.Shape[0] {
			c.fail("batch index %d", b)
		}
		for _, corner := range rois[r*4 : r*4+4] {
			if math.IsNaN(corner) || math.IsInf(corner, 0) {
				c.fail("a region with a corner at %v", corner)
			}
		}
		off := 0.0
		if half {
			off = 0.5
		}
		x0, y0 := rois[r*4]*scale-off, rois[r*4+1]*scale-off
		rw, rh := rois[r*4+2]*scale-off-x0, rois[r*4+3]*scale-off-y0
		if !half {
			rw, rh = max(rw, 1), max(rh, 1)
		}
		bh, bw := rh/float64(oh), rw/float64(ow)
		gh, gw := ratio, ratio
		if ratio <= 0 {
			gh, gw = int64(math.Ceil(rh/float64(oh))), int64(math.Ceil(rw/float64(ow)))
		}
		for f := range ch {
			plane := v[(b*ch+f)*h*w : (b*ch+f+1)*h*w]
			for py := range oh {
				for px := range ow {
					acc := 0.0
					first := true
					for iy := range gh {
						yy := y0 + float64(py)*bh + (float64(iy)+0.5)*bh/float64(gh)
						for ix := range gw {
							xx := x0 + float64(px)*bw + (float64(ix)+0.5)*bw/float64(gw)
							s, top := bilinear(plane, h, w, yy, xx)
							if useMax {
								if first || top > acc {
									acc = top
								}
								first = false
							} else {
								acc += s
							}
						}
					}
					if !useMax {
						acc /= float64(max(gh*gw, 1))
					}
					out[((int64(r)*ch+f)*oh+py)*ow+px] = acc
				}
			}
		}
	}
	return one(tensor.FromFloats(x.DType, []int64{int64(len(batch)), ch, oh, ow}, out))
}

// bilinear reads a plane between pixels: the weighted sum, and the largest weighted pixel.
func bilinear(plane []float64, h, w int64, y, x float64) (sum, top float64) {
	if y < -1 || y > float64(h) || x < -1 || x > float64(w) {
		return 0, 0
	}
	y, x = max(y, 0), max(x, 0)
	y0, x0 := int64(y), int64(x)
	y1, x1 := y0+1, x0+1
	if y0 >= h-1 {
		y0, y1 = h-1, h-1
		y = float64(y0)
	}
	if x0 >= w-1 {
		x0, x1 = w-1, w-1
		x = float64(x0)
	}
	ly, lx := y-float64(y0), x-float64(x0)
	p := [4]float64{(1 - ly) * (1 - lx) * plane[y0*w+x0], (1 - ly) * lx * plane[y0*w+x1], ly * (1 - lx) * plane[y1*w+x0], ly * lx * plane[y1*w+x1]}
	return p[0] + p[1] + p[2] + p[3], max(p[0], p[1], p[2], p[3])
}

func evalMaxRoiPool(c *call) []*tensor.Tensor {
	x, rois := c.t(0), c.t(1)
	size := c.ints("pooled_shape")
	if len(x.Shape) != 4 || len(rois.Shape) != 2 || rois.Shape[1] != 5 || len(size) != 2 {
		c.fail("input %v, regions %v", x.Shape, rois.Shape)
	}
	n, ch, h, w := rois.Shape[0], x.Shape[1], x.Shape[2], x.Shape[3]
	v, r, scale := x.Float64s(), rois.Float64s(), c.float("spatial_scale")
	out := make([]float64, 0, n*ch*size[0]*size[1])
	for i := range n {
		b := int64(r[i*5])
		x0, y0 := math.Round(r[i*5+1]*scale), math.Round(r[i*5+2]*scale)
		rw, rh := max(math.Round(r[i*5+3]*scale)-x0+1, 1), max(math.Round(r[i*5+4]*scale)-y0+1, 1)
		for f := range ch {
			plane := v[(b*ch+f)*h*w : (b*ch+f+1)*h*w]
			for py := range size[0] {
				for px := range size[1] {
					bh, bw := rh/float64(size[0]), rw/float64(size[1])
					ya, yb := int64(clamp(math.Floor(float64(py)*bh)+y0, 0, float64(h))), int64(clamp(math.Ceil(float64(py+1)*bh)+y0, 0, float64(h)))
					xa, xb := int64(clamp(math.Floor(float64(px)*bw)+x0, 0, float64(w))), int64(clamp(math.Ceil(float64(px+1)*bw)+x0, 0, float64(w)))
					best, any := 0.0, false
					for y := ya; y < yb; y++ {
						for xx := xa; xx < xb; xx++ {
							if p := plane[y*w+xx]; !any || p > best {
								best, any = p, true
							}
						}
					}
					out = append(out, best)
				}
			}
		}
	}
	return one(tensor.FromFloats(x.DType, []int64{n, ch, size[0], size[1]}, out))
}
