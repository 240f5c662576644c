package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// sampling holds reading at computed places, and sliding windows laid out as
// columns (ATen/native/{GridSampler,Im2Col,Col2Im}.cpp).
var sampling = Defs{
	"aten::grid_sampler":                  {Doc: "values at the places of a grid in [-1, 1]", Lower: lowerGridSample},
	"aten::grid_sampler_2d":               {Doc: "values at the places of a grid in [-1, 1]", Lower: lowerGridSample},
	"aten::grid_sampler_3d":               {Doc: "values at the places of a grid in [-1, 1]", Lower: lowerGridSample},
	"aten::_grid_sampler_2d_cpu_fallback": {Doc: "values at the places of a grid in [-1, 1]", Lower: lowerGridSample},
	"aten::affine_grid_generator":         {Doc: "the grid that affine maps give", Lower: lowerAffineGrid},
	"aten::im2col":                        {Doc: "sliding windows as columns", Lower: lowerIm2Col},
	"aten::col2im":                        {Doc: "sum of columns at the places of their windows", Lower: lowerCol2Im},
}

func lowerGridSample(l *Lowering) *ssa.Value {
	x, grid := l.Tensor("input"), l.Tensor("grid")
	mode, padding, corners := l.Int("interpolation_mode"), l.Int("padding_mode"), l.Bool("align_corners")
	r := l.Rank(x)
	if mode < 0 || mode > 2 || padding < 0 || padding > 2 || r < 4 || r > 5 {
		l.Fail("grid_sampler of rank %d with mode %d and padding %d", r, mode, padding)
	}
	if l.DType(grid) != l.DType(x) {
		l.Fail("the grid is %v, the input %v", grid.DType(), x.DType())
	}
	if l.Opset >= 20 && (r == 4 || mode != 2) || l.Opset >= 16 && r == 4 && l.DType(x) != tensor.Float64 {
		// the numbers of GridSamplerInterpolation and GridSamplerPadding
		modes, paddings := [3]string{"linear", "nearest", "cubic"}, [3]string{"zeros", "border", "reflection"}
		align := int64(0)
		if corners {
			align = 1
		}
		return l.OpA("GridSample", []ssa.Attr{
			intAttr("align_corners", align), attr("mode", ssa.Str(modes[mode])), attr("padding_mode", ssa.Str(paddings[padding])),
		}, x, grid)
	}
	d := l.DType(x)
	g := gridSampler{Lowering: l, x: l.compute(x), padding: padding, corners: corners}
	n := r - 2
	N, C := l.SizeOf(x, 0), l.SizeOf(x, 1)
	for i := range n {
		g.sizes = append(g.sizes, l.SizeOf(x, 2+i))
	}
	points := l.sizesOf(grid, 1, 1+n)
	P := l.sizeProduct(points...)
	g.flat = l.reshapeSizes(g.x, N, C, l.sizeProduct(g.sizes...))
	flatGrid := l.reshapeSizes(l.Cast(grid, l.DType(g.x)), N, P, ConstSize(int64(n)))
	g.wide = l.SizeTensor([]Size{N, C, P})
	coords := make([]*ssa.Value, n) // per axis of the input, (N, P)
	for i := range n {
		coords[i] = g.unnormalize(l.Gather(flatGrid, l.ScalarInt(tensor.Int64, int64(n-1-i)), 2), i)
	}
	var y *ssa.Value
	switch mode {
	case 0:
		y = g.linear(coords)
	case 1:
		for i := range coords {
			coords[i] = l.Op("Round", g.pad(coords[i], i))
		}
		y = g.read(coords)
	default:
		y = g.cubic(coords)
	}
	return l.Cast(l.reshapeSizes(y, append([]Size{N, C}, points...)...), d)
}

// gridSampler samples without ONNX's GridSample.
type gridSampler struct {
	*Lowering
	x, flat *ssa.Value // flat: (N, C, places)
	wide    *ssa.Value // the shape (N, C, points)
	sizes   []Size
	padding int64
	corners bool
}

func (g *gridSampler) size(axis int) *ssa.Value {
	return g.Cast(g.SizeValue(g.sizes[axis]), g.DType(g.x))
}
func (g *gridSampler) num(v float64) *ssa.Value { return g.Like(g.x, v) }

// unnormalize maps [-1, 1] to places: of the outer pixels' centres, or of their edges.
func (g *gridSampler) unnormalize(c *ssa.Value, axis int) *ssa.Value {
	one := g.num(1)
	if g.corners {
		return g.Mul(g.Mul(g.Add(c, one), g.num(0.5)), g.Sub(g.size(axis), one))
	}
	return g.Mul(g.Sub(g.Mul(g.Add(c, one), g.size(axis)), one), g.num(0.5))
}

func (g *gridSampler) clip(c *ssa.Value, axis int) *ssa.Value {
	return g.Op("Min", g.Op("Max", c, g.num(0)), g.Sub(g.size(axis), g.num(1)))
}

// pad moves places outside of the input to the border, or reflects them.
func (g *gridSampler) pad(c *ssa.Value, axis int) *ssa.Value {
	switch g.padding {
	case 1:
		return g.clip(c, axis)
	case 2:
		low, span := g.num(-0.5), g.size(axis)
		if g.corners {
			low, span = g.num(0), g.Sub(g.size(axis), g.num(1))
		}
		safe := g.Op("Max", span, g.num(0.5)) // a span of 0 reflects everything to 0
		in := g.Op("Abs", g.Sub(c, low))
		flips := g.Op("Floor", g.Div(in, safe))
		extra := g.Sub(in, g.Mul(flips, safe))
		odd := g.Op("Greater", g.Sub(flips, g.Mul(g.Op("Floor", g.Mul(flips, g.num(0.5))), g.num(2))), g.num(0.5))
		return g.clip(g.Add(g.Where(odd, g.Sub(safe, extra), extra), low), axis)
	}
	return c
}

// read gives the values at whole places, 0 outside of the input.
func (g *gridSampler) read(at []*ssa.Value) *ssa.Value {
	var index, inside *ssa.Value
	for i, c := range at {
		if g.padding == 0 {
			ok := g.Op("And", g.Op("Greater", c, g.num(-0.5)), g.Op("Less", c, g.Sub(g.size(i), g.num(0.5))))
			if inside == nil {
				inside = ok
			} else {
				inside = g.Op("And", inside, ok)
			}
		}
		k := g.Cast(g.clip(c, i), tensor.Int64)
		if index == nil {
			index = k
		} else {
			index = g.Add(g.Mul(index, g.SizeValue(g.sizes[i])), k)
		}
	}
	v := g.OpA("GatherElements", []ssa.Attr{intAttr("axis", 2)}, g.flat, g.Expand(g.Unsqueeze(index, 1), g.wide))
	if inside != nil {
		v = g.Where(g.Unsqueeze(inside, 1), v, g.num(0))
	}
	return v
}

func (g *gridSampler) linear(coords []*ssa.Value) *ssa.Value {
	n := len(coords)
	low, frac := make([]*ssa.Value, n), make([]*ssa.Value, n)
	for i := range coords {
		c := g.pad(coords[i], i)
		low[i] = g.Op("Floor", c)
		frac[i] = g.Sub(c, low[i])
	}
	var sum *ssa.Value
	for corner := range 1 << n {
		at := make([]*ssa.Value, n)
		var w *ssa.Value
		for i := range n {
			at[i] = low[i]
			f := g.Sub(g.num(1), frac[i])
			if corner>>i&1 == 1 {
				at[i], f = g.Add(low[i], g.num(1)), frac[i]
			}
			if w == nil {
				w = f
			} else {
				w = g.Mul(w, f)
			}
		}
		term := g.Mul(g.read(at), g.Unsqueeze(w, 1))
		if sum == nil {
			sum = term
		} else {
			sum = g.Add(sum, term)
		}
	}
	return sum
}

// cubic sums the neighbours along axis after axis; each place is padded on its own.
func (g *gridSampler) cubic(coords []*ssa.Value) *ssa.Value {
	n := len(coords)
	low, weights := make([]*ssa.Value, n), make([][4]*ssa.Value, n)
	for i, c := range coords {
		low[i] = g.Op("Floor", c)
		weights[i] = g.cubicWeights(g.Sub(c, low[i]), -0.75)
	}
	at := make([]*ssa.Value, n)
	var along func(axis int) *ssa.Value
	along = func(axis int) *ssa.Value {
		if axis == n {
			return g.read(at)
		}
		var sum *ssa.Value
		for i := range 4 {
			at[axis] = g.pad(g.Add(low[axis], g.num(float64(i-1))), axis)
			term := g.Mul(along(axis+1), g.Unsqueeze(weights[axis][i], 1))
			if sum == nil {
				sum = term
			} else {
				sum = g.Add(sum, term)
			}
		}
		return sum
	}
	return along(0)
}

func lowerAffineGrid(l *Lowering) *ssa.Value {
	theta, size, corners := l.Tensor("theta"), l.Sizes("size"), l.Bool("align_corners")
	n := len(size) - 2
	if n != 2 && n != 3 {
		l.Fail("affine_grid_generator of size with %d entries", len(size))
	}
	d := l.DType(theta)
	if l.Opset >= 20 {
		align := int64(0)
		if corners {
			align = 1
		}
		return l.OpA("AffineGrid", []ssa.Attr{intAttr("align_corners", align)}, theta, l.SizeTensor(size))
	}
	shape := l.SizeTensor(size[2:])
	var columns []*ssa.Value // x, y, (z), 1, each of the grid's shape
	for i := n - 1; i >= 0; i-- {
		s := size[2+i]
		at, count := l.Cast(l.countTo(s), d), l.Cast(l.SizeValue(s), d)
		one := l.Scalar(d, 1)
		var c *ssa.Value
		if corners {
			span := l.Op("Max", l.Sub(count, one), one)
			c = l.Sub(l.Div(l.Mul(at, l.Scalar(d, 2)), span), l.Where(l.Op("Greater", count, one), one, l.Scalar(d, 0)))
		} else {
			c = l.Sub(l.Div(l.Add(l.Mul(at, l.Scalar(d, 2)), one), count), one)
		}
		c = l.Unsqueeze(c, axesFrom(1, n-1-i)...)
		columns = append(columns, l.Unsqueeze(l.Expand(c, shape), int64(n)))
	}
	columns = append(columns, l.Unsqueeze(l.Expand(l.Scalar(d, 1), shape), int64(n)))
	points := l.sizeProduct(size[2:]...)
	base := l.reshapeSizes(l.ConcatV(int64(n), columns...), points, ConstSize(int64(n+1)))
	grid := l.Op("MatMul", base, l.Transpose(theta, 0, 2, 1)) // (N, points, n)
	out := append([]Size{l.SizeOf(theta, 0)}, size[2:]...)
	return l.reshapeSizes(grid, append(out, ConstSize(int64(n)))...)
}

// columns reads the arguments of im2col and col2im.
func (l *Lowering) columnArgs() (kernel, dilation, pad, stride []int64) {
	return l.IntsN("kernel_size", 2), l.IntsN("dilation", 2), l.IntsN("padding", 2), l.IntsN("stride", 2)
}

func lowerIm2Col(l *Lowering) *ssa.Value {
	kernel, dilation, pad, stride := l.columnArgs()
	x, lone := l.batched(l.Tensor("self"), 4)
	counts := make([]Size, 2)
	for i := range counts {
		counts[i] = l.windowCount(l.SizeOf(x, 2+i), kernel[i], stride[i], dilation[i], pad[i], pad[i], false)
	}
	N, C := l.SizeOf(x, 0), l.SizeOf(x, 1)
	cols := l.gatherWindows(l.padSpatial(x, pad, pad, nil), counts, kernel, stride, dilation)
	y := l.reshapeSizes(cols, N, l.MulSize(C, ConstSize(kernel[0]*kernel[1])), l.MulSize(counts[0], counts[1]))
	return l.unbatched(y, lone)
}

func lowerCol2Im(l *Lowering) *ssa.Value {
	kernel, dilation, pad, stride := l.columnArgs()
	x, lone := l.batched(l.Tensor("self"), 3)
	size := l.outputSize(2)
	d := l.DType(x)
	if l.Opset >= 18 && d.IsFloat() {
		y := l.OpA("Col2Im", []ssa.Attr{
			attr("dilations", ssa.Ints(dilation...)), attr("pads", ssa.Ints(pad[0], pad[1], pad[0], pad[1])), attr("strides", ssa.Ints(stride...)),
		}, x, l.SizeTensor(size), l.I64(kernel...))
		return l.unbatched(y, lone)
	}
	N := l.SizeOf(x, 0)
	C := l.DivSize(l.SizeOf(x, 1), ConstSize(kernel[0]*kernel[1]))
	counts, full := make([]Size, 2), make([]Size, 2)
	for i := range counts {
		counts[i] = l.windowCount(size[i], kernel[i], stride[i], dilation[i], pad[i], pad[i], false)
		full[i] = l.AddSize(size[i], ConstSize(2*pad[i]))
	}
	cols := l.reshapeSizes(x, N, C, ConstSize(kernel[0]), ConstSize(kernel[1]), counts[0], counts[1])
	y := l.scatterWindows(cols, full, counts, kernel, stride, dilation)
	if pad[0] != 0 || pad[1] != 0 {
		ends := l.SizeTensor([]Size{l.AddSize(size[0], ConstSize(pad[0])), l.AddSize(size[1], ConstSize(pad[1]))})
		y = l.Op("Slice", y, l.I64(pad...), ends, l.I64(2, 3))
	}
	return l.unbatched(y, lone)
}
