package onnx

import "github.com/aton-project/aton/ssa"

// gridModes restores the names that GridSample's modes had for images only,
// and expresses the sampling of anything else.
func gridModes(d *Downgrade) {
	if x := d.in(0).Tensor(); x != nil && x.Ranked && len(x.Dims) != 4 {
		d.Replace(gridSample(d))
		return
	}
	switch d.Node.AttrStr("mode", "linear") {
	case "linear":
		d.Node.SetAttr("mode", ssa.Str("bilinear"))
	case "cubic":
		d.Node.SetAttr("mode", ssa.Str("bicubic"))
	}
}

// dftAxis makes an attribute of DFT's axis.
func dftAxis(d *Downgrade) {
	axis := int64(-2)
	if d.in(2) != nil {
		v, ok := ConstInts(d.in(2))
		if !ok || len(v) != 1 {
			d.Fail(20, "a transform along a computed axis")
		}
		axis = v[0]
	}
	if axis < 0 { // opset 17 counts from the front
		axis += int64(d.rank(d.in(0), 20))
	}
	d.Node.SetAttr("axis", ssa.Int(axis))
	d.dropOperands(2)
}
