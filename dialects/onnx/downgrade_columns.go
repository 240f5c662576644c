package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// col2Im expresses Col2Im, which came with opset 18: the columns are added up
// at the places of their windows in the padded image, whose pads are cut off
// then. Sizes of image and block may be computed at run time.
func col2Im(d *Downgrade) *ssa.Value {
	x, image, block := d.in(0), d.in(1), d.in(2)
	if d.rank(x, 18) != 3 || d.rank(image, 18) != 1 {
		d.Fail(0, "its input is no batch of columns")
	}
	size, ok := dimOf(image, 0).Int()
	if !ok {
		d.Fail(18, "an image of unknown rank")
	}
	r := int(size)
	at := func(name string, i int, def int64) int64 {
		if l := d.Node.AttrInts(name); i < len(l) {
			return l[i]
		}
		return def
	}
	if d.Opset < 16 {
		return d.columnsByConv(r, at)
	}
	long := func(v *ssa.Value) *ssa.Value { return d.Unsqueeze(v, d.ints(0)) }
	var index *ssa.Value // places in the padded image: [block..., windows...]
	plane, full := d.long(1), make([]*ssa.Value, r)
	var starts, ends, axes []*ssa.Value
	padded := false
	for i := range r {
		before, after, stride, dilation := at("pads", i, 0), at("pads", i+r, 0), at("strides", i, 1), at("dilations", i, 1)
		n, taps := d.gather(image, d.long(int64(i)), 0), d.gather(block, d.long(int64(i)), 0)
		whole := d.Add(n, d.long(before+after))
		reach := d.Add(d.Mul(d.Sub(taps, d.long(1)), d.long(dilation)), d.long(1))
		windows := d.Add(d.Div(d.Sub(whole, reach), d.long(stride)), d.long(1))
		steps := func(n *ssa.Value, by int64) *ssa.Value {
			return d.Mul(d.Range(d.long(0), n, d.long(1)), d.long(by))
		}
		places := d.Add(d.Unsqueeze(steps(taps, dilation), d.ints(1)), steps(windows, stride))
		var others []int64
		for a := range 2 * r {
			if a%r != i {
				others = append(others, int64(a))
			}
		}
		places = d.Unsqueeze(places, d.ints(others...))
		if index == nil {
			index = places
		} else {
			index = d.Add(d.Mul(index, whole), places)
		}
		plane = d.Mul(plane, whole)
		full[i] = long(whole)
		starts, ends, axes = append(starts, d.ints(before)), append(ends, long(d.Add(n, d.long(before)))), append(axes, d.ints(int64(i+2)))
		padded = padded || before != 0 || after != 0
	}
	index = d.reshape(index, 1, -1)
	columns := d.Reshape(x, d.concat(0, d.ints(-1), long(d.Size(index))))
	rows := long(d.size(columns, 0))
	zeros := d.Expand(d.like(x, 0), d.concat(0, rows, long(plane)))
	add := []ssa.Attr{Axis(1), {Name: "reduction", Value: ssa.Str("add")}}
	y := d.ScatterElements(zeros, d.Expand(index, d.Shape(columns)), columns, add...)
	y = d.Reshape(y, d.concat(0, append([]*ssa.Value{long(d.size(x, 0)), d.ints(-1)}, full...)...))
	if padded {
		y = d.Slice(y, d.concat(0, starts...), d.concat(0, ends...), d.concat(0, axes...), nil)
	}
	return y
}

// columnsOfAny is Col2Im for other types than that of the kernel.
func columnsOfAny(d *Downgrade, _ tensor.DType) bool {
	d.Replace(col2Im(d))
	return true
}

// columnsByConv expresses Col2Im before opset 16, where scatters do not add up: a transposed convolution adds each column
// at the place of its window, with a kernel that picks it. Sizes of image and block must be known. attr gives an entry of an
// attribute, or what is implied.
func (d *Downgrade) columnsByConv(r int, attr func(name string, i int, def int64) int64) *ssa.Value {
	x := d.in(0)
	image, ok := ConstInts(d.in(1))
	block, known := ConstInts(d.in(2))
	if !ok || !known {
		d.Fail(16, "adding up columns of a size that is computed at run time")
	}
	if x.DType() == tensor.Float64 { // no runtime has the convolution
		d.Fail(16, "adding up columns of float64")
	}
	taps := int64(1)
	for _, n := range block {
		taps *= n
	}
	pick := make([]float64, taps*taps)
	for i := range taps {
		pick[i*taps+i] = 1
	}
	windows := make([]int64, r)
	var pads, ends, strides, dilations, more []int64
	for i := range r {
		before, after, stride, dilation := attr("pads", i, 0), attr("pads", i+r, 0), attr("strides", i, 1), attr("dilations", i, 1)
		reach := (block[i]-1)*dilation + 1
		whole := image[i] + before + after
		windows[i] = (whole-reach)/stride + 1
		pads, ends, strides, dilations = append(pads, before), append(ends, after), append(strides, stride), append(dilations, dilation)
		more = append(more, whole-reach-(windows[i]-1)*stride) // places behind the last window
	}
	kernel := d.Const(tensor.FromFloats(x.DType(), append([]int64{taps, 1}, block...), pick))
	y := d.ConvTranspose(d.reshape(x, append([]int64{-1, taps}, windows...)...), kernel, nil, Pads(append(pads, ends...)...), Strides(strides...), Dilations(dilations...), OutputPadding(more...))
	return d.Reshape(y, d.concat(0, d.sizes1(x, 0, 1), d.ints(append([]int64{-1}, image...)...)))
}
