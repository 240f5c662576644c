package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// vision holds torchvision's operators (torchvision/csrc/ops).
var vision = Defs{
	"torchvision::nms":           {Doc: "the boxes that no better one overlaps, best first", Lower: lowerNMS},
	"torchvision::roi_align":     {Doc: "bilinear samples averaged over the bins of regions", Lower: lowerRoiAlign},
	"torchvision::roi_pool":      {Doc: "maxima over the bins of regions; the second result serves the backward pass only", LowerN: lowerRoiPool},
	"torchvision::ps_roi_align":  {Doc: "roi_align where each bin reads channels of its own", LowerN: lowerPSRoiAlign},
	"torchvision::deform_conv2d": {Doc: "convolution that reads at displaced places", Lower: lowerDeformConv},
}

func lowerNMS(l *Lowering) *ssa.Value {
	l.NeedOpset(10, "nms")
	boxes, scores := l.Tensor("dets"), l.Tensor("scores")
	limit := l.sizeTensor([]Size{l.sizeOf(scores, 0)})
	picked := l.NonMaxSuppression(l.unsqueeze(l.Cast(boxes, tensor.Float32), 0), l.unsqueeze(l.Cast(scores, tensor.Float32), 0, 1),
		limit, l.Const(tensor.FromFloats(tensor.Float32, []int64{1}, []float64{l.Float("iou_threshold")})), nil)
	return l.gather(picked, l.scalarInt(tensor.Int64, 2), 1)
}

// roiAlign pools regions (K, 5) whose first column is the sample.
func (l *Lowering) roiAlign(x, rois *ssa.Value, aligned bool) *ssa.Value {
	mode := "output_half_pixel"
	if aligned {
		mode = "half_pixel"
	}
	sample := l.Cast(l.gather(rois, l.scalarInt(tensor.Int64, 0), 1), tensor.Int64)
	boxes, scale := l.sliceC(rois, 1, 1, 5, 1), 1.0
	if l.IsConst("spatial_scale") {
		scale = l.Float("spatial_scale")
	} else { // the kernel multiplies coordinates by it before all else
		boxes = l.Mul(boxes, l.as("spatial_scale", l.DType(boxes)))
	}
	return l.RoiAlign(x, boxes, sample, onnx.CoordinateTransformationMode(mode), onnx.OutputHeight(l.Int("pooled_height")), onnx.OutputWidth(l.Int("pooled_width")), onnx.SamplingRatio(max(l.Int("sampling_ratio"), 0)), onnx.SpatialScale(scale))
}

func lowerRoiAlign(l *Lowering) *ssa.Value {
	return l.roiAlign(l.Tensor("input"), l.Tensor("rois"), l.Bool("aligned"))
}

// unusedResult refuses a second result that only the backward pass has a use for.
func (l *Lowering) unusedResult() *ssa.Value {
	if len(l.Node.Results) > 1 && l.Node.Results[1].HasUses() {
		l.Fail("the second result of %s exists for the backward pass only", l.Node.Kind)
	}
	return l.emptyVector(tensor.Int32)
}

func lowerRoiPool(l *Lowering) []*ssa.Value {
	bins := []int64{l.Int("pooled_height"), l.Int("pooled_width")}
	y := l.MaxRoiPool(l.Tensor("input"), l.Tensor("rois"), bins, onnx.SpatialScale(l.Float("spatial_scale")))
	return []*ssa.Value{y, l.unusedResult()}
}

// ps_roi_align: bin (i, j) of channel c reads channel (c*height + i)*width + j.
func lowerPSRoiAlign(l *Lowering) []*ssa.Value {
	x := l.Tensor("input")
	height, width := l.Int("pooled_height"), l.Int("pooled_width")
	if height < 1 || width < 1 {
		l.Fail("bins of %d x %d", height, width)
	}
	bins := satMul(height, width)
	l.atMost(satMul(bins, bins), maxMade, "bins")
	all := l.roiAlign(x, l.Tensor("rois"), true) // (K, C, height, width)
	C := l.divSize(l.sizeOf(x, 1), ConstSize(bins))
	K := l.sizeOf(all, 0)
	flat := l.reshapeSizes(all, K, C, ConstSize(bins*bins))
	diagonal := make([]int64, bins)
	for i := range diagonal {
		diagonal[i] = int64(i) * (bins + 1)
	}
	y := l.gather(flat, l.i64(diagonal...), 2)
	return []*ssa.Value{l.reshapeSizes(y, K, C, ConstSize(height), ConstSize(width)), l.unusedResult()}
}

func lowerDeformConv(l *Lowering) *ssa.Value {
	x, w, offset, bias := l.Tensor("input"), l.Tensor("weight"), l.Tensor("offset"), l.Tensor("bias")
	pair := func(name string) (int64, int64) { return l.Int(name + "_h"), l.Int(name + "_w") }
	sh, sw := pair("stride")
	ph, pw := pair("pad")
	dh, dw := pair("dilation")
	groups, offsets := l.sizeArg("groups"), l.sizeArg("offset_groups")
	var mask *ssa.Value
	if l.Bool("use_mask") {
		mask = l.Tensor("mask")
	}
	window := []ssa.Attr{
		onnx.Dilations(dh, dw), onnx.KernelShape(l.static(w, 2), l.static(w, 3)), onnx.Pads(ph, pw, ph, pw), onnx.Strides(sh, sw),
	}
	group, ok := groups.Int()
	offsetGroup, ok2 := offsets.Int()
	if !ok || !ok2 {
		return l.deformConvByProduct(window, groups, offsets, mask)
	}
	return l.DeformConv(x, w, offset, bias, mask, append(window, onnx.Group(group), onnx.OffsetGroup(offsetGroup))...)
}

// deformConvByProduct is for numbers of groups that are known at run time only: each channel is an image, whose displaced places become
// channels, and a product with the weights adds them up.
func (l *Lowering) deformConvByProduct(window []ssa.Attr, groups, offsets Size, mask *ssa.Value) *ssa.Value {
	x, w, offset, bias := l.Tensor("input"), l.Tensor("weight"), l.Tensor("offset"), l.Tensor("bias")
	kh, kw := l.static(w, 2), l.static(w, 3)
	taps := kh * kw
	N, C, oh, ow := l.sizeOf(x, 0), l.sizeOf(x, 1), l.sizeOf(offset, 2), l.sizeOf(offset, 3)
	images := l.mulSize(N, C)
	ofEach := func(v *ssa.Value, channels int64) *ssa.Value { // what a group of channels shares
		per := l.divSize(C, offsets)
		v = l.reshapeSizes(v, N, offsets, ConstSize(1), ConstSize(channels), oh, ow)
		v = l.expandTo(v, []Size{N, offsets, per, ConstSize(channels), oh, ow})
		return l.reshapeSizes(v, images, ConstSize(channels), oh, ow)
	}
	if mask != nil {
		mask = ofEach(mask, taps)
	}
	one := l.reshape(l.eye(l.DType(x), ConstSize(taps), ConstSize(taps)), taps, 1, kh, kw)
	columns := l.DeformConv(l.reshapeSizes(x, images, ConstSize(1), l.sizeOf(x, 2), l.sizeOf(x, 3)), one, ofEach(offset, 2*taps), nil, mask, window...)
	O, inner := l.sizeOf(w, 0), l.mulSize(l.sizeOf(w, 1), ConstSize(taps))
	columns = l.reshapeSizes(columns, N, groups, inner, l.mulSize(oh, ow))
	y := l.MatMul(l.reshapeSizes(w, groups, l.divSize(O, groups), inner), columns)
	return l.Add(l.reshapeSizes(y, N, O, oh, ow), l.unsqueeze(bias, 1, 2))
}
