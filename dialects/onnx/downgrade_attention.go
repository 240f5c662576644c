package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// attentionWindow and attentionPadding express what opsets 25 and 24 added, when it is used.
func attentionWindow(d *Downgrade) {
	if d.Node.AttrInt("left_window_size", -1) >= 0 || d.Node.AttrInt("right_window_size", -1) >= 0 {
		d.Replace(d.bodyOf(23)...)
	}
}

func attentionPadding(d *Downgrade) {
	if d.in(6) != nil {
		d.Replace(d.bodyOf(23)...)
	}
}

func dimOf(v *ssa.Value, axis int) sym.Expr { return v.Tensor().Dims[axis] }
