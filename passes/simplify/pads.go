package simplify

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// padIntoWindow lets a convolution or pooling pad by itself. A MaxPool pads with
// the least value, an AveragePool that counts its padding and a Conv with 0, a ConvInteger with its zero point.
func padIntoWindow(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := o.Operand(0).Def()
	if d == nil || d.Kind != "onnx::Pad" || !o.Operand(0).HasOneUse() || d.AttrStr("mode", "constant") != "constant" || !padsByNumbers(o) || len(o.Results) != 1 {
		return false
	}
	n := rank(d.Operand(0))
	if n < 3 {
		return false
	}
	value, known := 0.0, true
	if v := d.Operand(2); v != nil {
		value, known = onlyElement(v)
	}
	pads, ok := constInts(d.Operand(1))
	if !known || !ok {
		return false
	}
	axes := make([]int64, n)
	for i := range axes {
		axes[i] = int64(i)
	}
	if d.Operand(3) != nil {
		if axes, ok = constInts(d.Operand(3)); !ok {
			return false
		}
	}
	k := n - 2
	old := o.AttrInts("pads")
	if old == nil {
		old = make([]int64, 2*k)
	}
	if len(pads) != 2*len(axes) || len(old) != 2*k {
		return false
	}
	merged := append([]int64(nil), old...)
	nothing := true
	for i, a := range axes {
		if a < 0 {
			a += int64(n)
		}
		for side, p := range [...]int64{pads[i], pads[i+len(axes)]} {
			if p < 0 || p > 0 && a < 2 || a >= int64(n) {
				return false
			}
			if a >= 2 {
				merged[int(a)-2+side*k] += p
			}
		}
	}
	for _, p := range old {
		nothing = nothing && p == 0
	}
	kernel := o.AttrInts("kernel_shape")
	switch o.Kind {
	case "onnx::Conv":
		if value != 0 {
			return false
		}
	case "onnx::ConvInteger":
		zero := 0.0
		if v := o.Operand(2); v != nil {
			if zero, known = onlyElement(v); !known {
				return false
			}
		}
		if value != zero {
			return false
		}
	case "onnx::AveragePool":
		if value != 0 || o.AttrInt("ceil_mode", 0) != 0 || !nothing && o.AttrInt("count_include_pad", 0) == 0 || !inside(merged, kernel) {
			return false
		}
	case "onnx::MaxPool":
		// padding that is never the maximum: a window of padding alone is ruled out
		if !math.IsInf(value, -1) || o.AttrInt("ceil_mode", 0) != 0 || !inside(merged, kernel) || o.AttrInts("dilations") != nil && !allEqual(o.AttrInts("dilations"), 1) {
			return false
		}
	}
	var attrs []ssa.Attr
	for _, a := range o.Attrs {
		if a.Name != "pads" && a.Name != "auto_pad" && a.Name != "count_include_pad" {
			attrs = append(attrs, a)
		}
	}
	attrs = append(attrs, onnx.Pads(merged...))
	if o.Kind == "onnx::AveragePool" {
		attrs = append(attrs, onnx.CountIncludePad(true))
	}
	operands := o.Operands()
	operands[0] = d.Operand(0)
	y := r.Create(o.Kind, operands, attrs...)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// padsByNumbers reports a window that is padded by its attribute pads, or not at all.
func padsByNumbers(o *ssa.Op) bool {
	how := o.AttrStr("auto_pad", "NOTSET")
	return how == "NOTSET" || how == "VALID" && o.AttrInts("pads") == nil
}

// onlyElement is the element of a constant that has one.
func onlyElement(v *ssa.Value) (float64, bool) {
	t := onnx.ConstOf(v)
	if t == nil || !t.HasData() || t.NumElements() != 1 || t.DType == tensor.String || t.DType.IsComplex() {
		return 0, false
	}
	return t.Float64s()[0], true
}

// inside reports pads that are smaller than the window, as runtimes demand.
func inside(pads, kernel []int64) bool {
	if len(pads) != 2*len(kernel) {
		return false
	}
	for i, p := range pads {
		if p >= kernel[i%len(kernel)] {
			return false
		}
	}
	return true
}

func allEqual(v []int64, k int64) bool {
	for _, x := range v {
		if x != k {
			return false
		}
	}
	return true
}
