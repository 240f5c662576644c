package onnx

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// poolAxis is how a pool or a convolution walks along one axis.
type poolAxis struct {
	axis             int
	in, out          int64 // sizes
	kernel           int64
	stride, dilation int64
	pad              int64 // before the first element
	padEnd           int64 // behind the last, as the attribute says
}

// windows reads the attributes of a pool; the sizes must be known, or may be
// unknown, which is -1.
func (d *Downgrade) windows(opset int, unknown bool) []poolAxis {
	x, y := d.in(0), d.Node.Result(0).Tensor()
	rank := d.rank(x, opset)
	if a := d.Node.AttrStr("auto_pad", "NOTSET"); a != "NOTSET" && a != "VALID" {
		d.Fail(opset, "pads that depend on sizes")
	}
	at := func(name string, i int, def int64) int64 {
		if l := d.Node.AttrInts(name); i < len(l) {
			return l[i]
		}
		return def
	}
	n := rank - 2
	ws := make([]poolAxis, n)
	for i := range ws {
		w := poolAxis{axis: i + 2, kernel: at("kernel_shape", i, 1), stride: at("strides", i, 1), dilation: at("dilations", i, 1), pad: at("pads", i, 0), padEnd: at("pads", i+n, 0)}
		var ok1, ok2 bool
		w.in, ok1 = x.Tensor().Dims[i+2].Int()
		if y != nil && y.Ranked && len(y.Dims) == rank {
			w.out, ok2 = y.Dims[i+2].Int()
		}
		if !ok1 || !ok2 {
			w.in, w.out = -1, -1
		}
		if w.in < 0 && !unknown {
			d.Fail(opset, "a pool over axes of unknown size")
		}
		ws[i] = w
	}
	return ws
}

// poolCeil: sizes were rounded down, without dilation.
func poolCeil(d *Downgrade) {
	ceil := d.Node.AttrInt("ceil_mode", 0) != 0
	dilated := false
	for _, k := range d.Node.AttrInts("dilations") {
		dilated = dilated || k != 1
	}
	include := d.Node.Kind == "onnx::AveragePool" && d.Node.AttrInt("count_include_pad", 0) != 0
	if dilated || ceil && include {
		d.poolByGather(10)
		return
	}
	if !ceil {
		d.Node.RemoveAttr("dilations")
		d.Node.RemoveAttr("ceil_mode")
		return
	}
	// further pads at the end make room for the last window
	ws := d.windows(10, d.Node.Kind == "onnx::MaxPool")
	pads := make([]int64, 2*len(ws))
	for i, w := range ws {
		if w.in < 0 {
			d.poolByGather(10)
			return
		}
		pads[i] = w.pad
		pads[i+len(ws)] = max(w.padEnd, (w.out-1)*w.stride+w.kernel-w.in-w.pad)
		if pads[i+len(ws)] >= w.kernel {
			d.poolByGather(10)
			return
		}
	}
	d.Node.RemoveAttr("dilations")
	d.Node.RemoveAttr("ceil_mode")
	d.Node.SetAttr("pads", ssa.Ints(pads...))
}

// places are the positions of the elements of all windows along an axis of
// unknown size, by window element and window; what is outside is at the size.
func (d *Downgrade) places(w poolAxis, ceil bool) *ssa.Value {
	n := d.size(d.in(0), w.axis)
	room := d.Add(n, d.long(w.pad+w.padEnd-w.dilation*(w.kernel-1)-1))
	if ceil {
		room = d.Add(room, d.long(w.stride-1))
	}
	out := d.Add(d.Div(room, d.long(w.stride)), d.long(1))
	if ceil { // the last window begins in the input or the pads before it
		start := d.Mul(d.Sub(out, d.long(1)), d.long(w.stride))
		beyond := d.Not(d.Less(start, d.Add(n, d.long(w.pad))))
		out = d.Sub(out, d.cast(beyond, tensor.Int64))
	}
	first := d.Mul(d.Range(d.long(0), out, d.long(1)), d.long(w.stride))
	step := make([]int64, w.kernel)
	for k := range step {
		step[k] = int64(k)*w.dilation - w.pad
	}
	at := d.Add(d.Unsqueeze(first, d.ints(0)), d.Const(tensor.Of(tensor.Int64, []int64{w.kernel, 1}, step)))
	outside := d.Or(d.Less(at, d.long(0)), d.Not(d.Less(at, n)))
	return d.Where(outside, n, at)
}

// poolDilated: an average had no dilation.
func poolDilated(d *Downgrade) {
	for _, k := range d.Node.AttrInts("dilations") {
		if k != 1 {
			d.poolByGather(19)
			return
		}
	}
	d.Node.RemoveAttr("dilations")
}

// poolByGather picks the elements of all windows by position, and reduces them.
func (d *Downgrade) poolByGather(opset int) {
	if d.used(1) {
		d.Fail(opset, "the positions of a maximum in such windows")
	}
	x := d.in(0)
	t := x.DType()
	isMax := d.Node.Kind == "onnx::MaxPool"
	ws := d.windows(opset, isMax)
	fill := 0.0
	if isMax {
		if !t.IsFloat() {
			d.Fail(opset, "windows of integers")
		}
		fill = math.Inf(-1)
	}
	rank := len(ws) + 2
	counts := tensor.FromFloats(tensor.Float64, []int64{}, []float64{1})
	value := counts.Float64s()
	var reduce, shape []int64
	for i, w := range ws {
		axis := int64(2 + 2*i)
		at := make([]int64, 0, w.kernel*max(w.out, 0))
		n := make([]float64, max(w.out, 0))
		for k := range w.kernel {
			for o := range max(w.out, 0) {
				p := o*w.stride + k*w.dilation - w.pad
				if p < 0 || p >= w.in {
					if d.Node.AttrInt("count_include_pad", 0) != 0 && p < w.in+w.padEnd {
						n[o]++
					}
					p = w.in // the fill
				} else {
					n[o]++
				}
				at = append(at, p)
			}
		}
		// the fill stands behind the last element
		dims := make([]*ssa.Value, 0, rank)
		for a := range x.Tensor().Dims {
			if int64(a) == axis {
				dims = append(dims, d.ints(1))
			} else {
				dims = append(dims, d.sizes1(x, a, a+1))
			}
		}
		x = d.concat(axis, x, d.Expand(d.scalar(t, fill), d.concat(0, dims...)))
		var places *ssa.Value
		if w.in < 0 {
			places = d.places(w, d.Node.AttrInt("ceil_mode", 0) != 0)
		} else {
			places = d.Const(tensor.Of(tensor.Int64, []int64{w.kernel, w.out}, at))
		}
		x = d.gather(x, places, axis)
		reduce = append(reduce, axis)
		shape = append(shape, w.out)
		next := make([]float64, 0, len(value)*len(n))
		for _, v := range value {
			for _, c := range n {
				next = append(next, v*c)
			}
		}
		value = next
	}
	op := "ReduceSum"
	if isMax {
		op = "ReduceMax"
	}
	y := d.OpA(op, []ssa.Attr{KeepDims(false)}, x, d.ints(reduce...))
	if !isMax {
		y = d.Div(y, d.Const(tensor.FromFloats(t, shape, value)))
	}
	d.Replace(y)
}

func averagePoolFallback(d *Downgrade, _ tensor.DType) bool {
	d.poolByGather(0)
	return true
}

// maxPoolFallback takes the maxima of windows that are picked by position, for float64: at opset 7 onnxruntime has a kernel for float32 alone.
func maxPoolFallback(d *Downgrade, t tensor.DType) bool {
	if t != tensor.Float64 {
		return false
	}
	d.poolByGather(8)
	return true
}

// poolPlaces: the positions of the maxima were not given.
func poolPlaces(d *Downgrade) {
	if d.used(1) {
		d.Fail(8, "the positions of the maxima")
	}
	for len(d.Node.Results) > 1 {
		d.Node.RemoveResult(1)
	}
	d.Node.RemoveAttr("storage_order")
}
