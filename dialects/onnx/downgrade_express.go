package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// rangeByNonZero expresses Range, which came with opset 11, by the places of
// so many ones, scaled and shifted.
func rangeByNonZero(d *Downgrade) *ssa.Value {
	start, limit, delta := d.in(0), d.in(1), d.in(2)
	if d.Opset < 9 {
		d.Fail(9, "a range over a size that is not known")
	}
	f := tensor.Float64
	count := d.cast(d.Op("Ceil", d.Op("Div", d.cast(d.Op("Sub", limit, start), f), d.cast(delta, f))), tensor.Int64)
	zero := d.scalarInt(tensor.Int64, 0)
	count = d.Op("Where", d.Op("Less", count, zero), zero, count)
	one := ssa.Attr{Name: "value", Value: ssa.TensorValue(tensor.Ints(1))}
	ones := d.OpA("ConstantOfShape", []ssa.Attr{one}, d.Op("Unsqueeze", count, d.ints(0)))
	at := d.Op("Squeeze", d.Op("NonZero", ones), d.ints(0))
	return d.Op("Add", start, d.Op("Mul", d.cast(at, start.DType()), delta))
}
