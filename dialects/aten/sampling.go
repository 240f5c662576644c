package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// sampling holds reading at computed places, and sliding windows laid out as
// columns (ATen/native/{GridSampler,Im2Col,Col2Im}.cpp).
var sampling = Defs{
	"aten::grid_sampler":                  {Doc: "values at the places of a grid in [-1, 1]", Layout: RowMajor, Autocast: Float32OnCPU, Lower: lowerGridSample},
	"aten::grid_sampler_2d":               {Doc: "values at the places of a grid in [-1, 1]", Lower: lowerGridSample},
	"aten::grid_sampler_3d":               {Doc: "values at the places of a grid in [-1, 1]", Lower: lowerGridSample},
	"aten::_grid_sampler_2d_cpu_fallback": {Doc: "values at the places of a grid in [-1, 1]", Lower: lowerGridSample},
	"aten::affine_grid_generator":         {Doc: "the grid that affine maps give", Lower: lowerAffineGrid},
	"aten::im2col":                        {Doc: "sliding windows as columns", Gradient: "self: col2im(grad, [size(self, -2), size(self, -1)], kernel_size, dilation, padding, stride)", Nature: Moves, Lower: lowerIm2Col},
	"aten::col2im":                        {Doc: "sum of columns at the places of their windows", Gradient: "self: im2col(grad, kernel_size, dilation, padding, stride)", Complex: (*Lowering).complexParts, Lower: lowerCol2Im},
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
	// the numbers of GridSamplerInterpolation and GridSamplerPadding
	modes, paddings := [3]string{"linear", "nearest", "cubic"}, [3]string{"zeros", "border", "reflection"}
	return l.GridSample(x, grid, onnx.AlignCorners(corners), onnx.Mode(modes[mode]), onnx.PaddingMode(paddings[padding]))
}

func lowerAffineGrid(l *Lowering) *ssa.Value {
	theta, size, corners := l.Tensor("theta"), l.sizes("size"), l.Bool("align_corners")
	n := len(size) - 2
	if n != 2 && n != 3 {
		l.Fail("affine_grid_generator of size with %d entries", len(size))
	}
	return l.AffineGrid(theta, l.sizeTensor(size), onnx.AlignCorners(corners))
}

// columns reads the arguments of im2col and col2im.
func (l *Lowering) columnArgs() (kernel, dilation, pad, stride []int64) {
	read := func(name string, least int64) []int64 {
		v := l.intsN(name, 2)
		if len(v) != 2 || min(v[0], v[1]) < least {
			l.Fail("%s must be two numbers of %d or more", name, least)
		}
		return v
	}
	return read("kernel_size", 1), read("dilation", 1), read("padding", 0), read("stride", 1)
}

func lowerIm2Col(l *Lowering) *ssa.Value {
	kernel, dilation, pad, stride := l.columnArgs()
	x, lone := l.batched(l.Tensor("self"), 4)
	counts := make([]Size, 2)
	for i := range counts {
		counts[i] = l.windowCount(l.sizeOf(x, 2+i), kernel[i], stride[i], dilation[i], pad[i], pad[i], false)
	}
	N, C := l.sizeOf(x, 0), l.sizeOf(x, 1)
	cols := l.gatherWindows(l.padSpatial(x, pad, pad, nil), counts, kernel, stride, dilation)
	y := l.reshapeSizes(cols, N, l.mulSize(C, ConstSize(kernel[0]*kernel[1])), l.mulSize(counts[0], counts[1]))
	return l.unbatched(y, lone)
}

func lowerCol2Im(l *Lowering) *ssa.Value {
	kernel, dilation, pad, stride := l.columnArgs()
	x, lone := l.batched(l.Tensor("self"), 3)
	size := l.outputSize(2)
	if l.DType(x).IsFloat() {
		y := l.Col2Im(x, l.sizeTensor(size), l.i64(kernel...), onnx.Dilations(dilation...), onnx.Pads(pad[0], pad[1], pad[0], pad[1]), onnx.Strides(stride...))
		return l.unbatched(y, lone)
	}
	N := l.sizeOf(x, 0)
	C := l.divSize(l.sizeOf(x, 1), ConstSize(kernel[0]*kernel[1]))
	counts, full := make([]Size, 2), make([]Size, 2)
	for i := range counts {
		counts[i] = l.windowCount(size[i], kernel[i], stride[i], dilation[i], pad[i], pad[i], false)
		full[i] = l.addSize(size[i], ConstSize(2*pad[i]))
	}
	cols := l.reshapeSizes(x, N, C, ConstSize(kernel[0]), ConstSize(kernel[1]), counts[0], counts[1])
	y := l.scatterWindows(cols, full, counts, kernel, stride, dilation)
	if pad[0] != 0 || pad[1] != 0 {
		ends := l.sizeTensor([]Size{l.addSize(size[0], ConstSize(pad[0])), l.addSize(size[1], ConstSize(pad[1]))})
		y = l.Slice(y, l.i64(pad...), ends, l.i64(2, 3), nil)
	}
	return l.unbatched(y, lone)
}
