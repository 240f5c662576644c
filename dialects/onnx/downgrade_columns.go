package onnx

import "github.com/aton-project/aton/ssa"

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
	if d.Opset < 16 {
		d.Fail(16, "adding up columns")
	}
	r := int(size)
	at := func(name string, i int, def int64) int64 {
		if l := d.Node.AttrInts(name); i < len(l) {
			return l[i]
		}
		return def
	}
	long := func(v *ssa.Value) *ssa.Value { return d.Op("Unsqueeze", v, d.ints(0)) }
	var index *ssa.Value // places in the padded image: [block..., windows...]
	plane, full := d.long(1), make([]*ssa.Value, r)
	var starts, ends, axes []*ssa.Value
	padded := false
	for i := range r {
		before, after, stride, dilation := at("pads", i, 0), at("pads", i+r, 0), at("strides", i, 1), at("dilations", i, 1)
		n, taps := d.gather(image, d.long(int64(i)), 0), d.gather(block, d.long(int64(i)), 0)
		whole := d.Op("Add", n, d.long(before+after))
		reach := d.Op("Add", d.Op("Mul", d.Op("Sub", taps, d.long(1)), d.long(dilation)), d.long(1))
		windows := d.Op("Add", d.Op("Div", d.Op("Sub", whole, reach), d.long(stride)), d.long(1))
		steps := func(n *ssa.Value, by int64) *ssa.Value {
			return d.Op("Mul", d.Op("Range", d.long(0), n, d.long(1)), d.long(by))
		}
		places := d.Op("Add", d.Op("Unsqueeze", steps(taps, dilation), d.ints(1)), steps(windows, stride))
		var others []int64
		for a := range 2 * r {
			if a%r != i {
				others = append(others, int64(a))
			}
		}
		places = d.Op("Unsqueeze", places, d.ints(others...))
		if index == nil {
			index = places
		} else {
			index = d.Op("Add", d.Op("Mul", index, whole), places)
		}
		plane = d.Op("Mul", plane, whole)
		full[i] = long(whole)
		starts, ends, axes = append(starts, d.ints(before)), append(ends, long(d.Op("Add", n, d.long(before)))), append(axes, d.ints(int64(i+2)))
		padded = padded || before != 0 || after != 0
	}
	index = d.reshape(index, 1, -1)
	columns := d.Op("Reshape", x, d.concat(0, d.ints(-1), long(d.Op("Size", index))))
	rows := long(d.size(columns, 0))
	zeros := d.Op("Expand", d.like(x, 0), d.concat(0, rows, long(plane)))
	add := []ssa.Attr{intAttr("axis", 1), {Name: "reduction", Value: ssa.Str("add")}}
	y := d.OpA("ScatterElements", add, zeros, d.Op("Expand", index, d.Op("Shape", columns)), columns)
	y = d.Op("Reshape", y, d.concat(0, append([]*ssa.Value{long(d.size(x, 0)), d.ints(-1)}, full...)...))
	if padded {
		y = d.Op("Slice", y, d.concat(0, starts...), d.concat(0, ends...), d.concat(0, axes...))
	}
	return y
}
