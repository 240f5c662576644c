package onnx

import "github.com/aton-project/aton/ssa"

// gridModes restores the names that GridSample's modes had for images only.
func gridModes(d *Downgrade) {
	if x := d.in(0).Tensor(); x != nil && x.Ranked && len(x.Dims) != 4 {
		d.Fail(20, "sampling of anything but images")
	}
	switch d.Node.AttrStr("mode", "linear") {
	case "linear":
		d.Node.SetAttr("mode", ssa.Str("bilinear"))
	case "cubic":
		d.Node.SetAttr("mode", ssa.Str("bicubic"))
	}
}
