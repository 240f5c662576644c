package aten

import "github.com/aton-project/aton/ssa"

// lowerInterpolate is what torch.nn.functional.interpolate does.
func lowerInterpolate(l *Lowering) *ssa.Value {
	x := l.Tensor("input")
	n := l.Rank(x) - 2
	if n < 1 || n > 3 {
		l.Fail("interpolation of rank %d", n+2)
	}
	axes := make([]axisScale, n)
	for i := range axes {
		axes[i].in = l.sizeOf(x, 2+i)
	}
	switch {
	case !l.IsNone("size"):
		sizes := l.sizes("size")
		for i := range axes {
			axes[i].out = sizes[min(i, len(sizes)-1)]
		}
	case !l.IsNone("scale_factor"):
		factors := l.Floats("scale_factor")
		for i := range axes {
			f := factors[min(i, len(factors)-1)]
			axes[i].out = l.scaledSize(axes[i].in, f)
			if !l.Bool("recompute_scale_factor") {
				axes[i].given, axes[i].factor = true, f
			}
		}
	default:
		l.Fail("neither size nor scale_factor is given")
	}
	corners := l.Bool("align_corners")
	mode, ok := map[string]resizeMode{
		"nearest": resizeNearest, "nearest-exact": resizeNearestExact, "linear": resizeLinear, "bilinear": resizeLinear,
		"trilinear": resizeLinear, "bicubic": resizeCubic,
	}[l.Str("mode")]
	switch {
	case l.Str("mode") == "area":
		out := make([]int64, n)
		for i, a := range axes {
			if out[i], ok = a.out.Int(); !ok {
				l.Fail("mode area to a size that is not known")
			}
		}
		return l.Aten(map[int]string{1: "aten::adaptive_avg_pool1d", 2: "aten::adaptive_avg_pool2d", 3: "aten::adaptive_avg_pool3d"}[n], x, out)
	case !ok:
		l.Fail("interpolation mode %q", l.Str("mode"))
	case l.Bool("antialias") && mode == resizeLinear:
		mode = resizeLinearAA
	case l.Bool("antialias") && mode == resizeCubic:
		mode = resizeCubicAA
	}
	return l.resize(x, axes, mode, corners)
}
