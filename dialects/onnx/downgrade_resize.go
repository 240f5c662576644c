package onnx

import (
	"slices"

	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// What Resize has learnt with opset 18, axis by axis and with sizes that may be computed at run time: one scale for all
// axes (keep_aspect_ratio_policy), and filters that grow wider as the scale falls below 1 (antialias).

// resizedAxis is an axis of a Resize: its sizes as int64 scalars, its scale as a float32 scalar.
type resizedAxis struct {
	axis           int
	in, out, scale *ssa.Value
}

// resizeAxes is the axes that scales and sizes speak of, from the front.
func (d *Downgrade) resizeAxes(rank int) []int64 {
	given := d.Node.AttrInts("axes")
	if given == nil {
		for i := range rank {
			given = append(given, int64(i))
		}
	}
	return d.axes(given, rank)
}

// keepsAspect settles the sizes of an aspect policy if they are known, and if
// each is its input's size times the one scale exactly. Otherwise the scale
// cannot be told by sizes.
func (d *Downgrade) keepsAspect(policy string) bool {
	want, ok := ConstInts(d.in(3))
	t := d.in(0).Tensor()
	if !ok || t == nil || !t.Ranked {
		return false
	}
	axes := d.resizeAxes(len(t.Dims))
	have := make([]int64, len(axes))
	for i, a := range axes {
		if have[i], ok = t.Dims[a].Int(); !ok || have[i] == 0 || len(want) != len(axes) {
			return false
		}
	}
	sizes := formula.KeepAspect(have, want, policy)
	for i, n := range sizes {
		if n*have[0] != sizes[0]*have[i] {
			return false
		}
	}
	d.Node.SetOperand(3, d.ints(sizes...))
	return true
}

// resizeByAxes builds a Resize from picked elements (nearest) or weighted sums (linear, cubic), one axis after the other. Where it
// cannot, the message says that what needs the opset.
func (d *Downgrade) resizeByAxes(opset int, what string) {
	x := d.in(0)
	rank, t, mode := d.rank(x, opset), x.DType(), d.Node.AttrStr("mode", "nearest")
	if mode != "nearest" && !t.IsFloat() {
		d.Fail(opset, "%s, for %s,", what, t.Spec())
	}
	switch m := d.Node.AttrStr("coordinate_transformation_mode", "half_pixel"); m {
	case "half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners":
	default:
		d.Fail(opset, "%s, with coordinates of %s,", what, m)
	}
	if mode != "nearest" {
		x = d.up(x)
	}
	for _, a := range d.resizedAxes(rank) {
		if s, ok := ConstFloat(a.scale); ok && s == 1 {
			continue
		}
		if mode == "nearest" {
			x = d.gather(x, d.nearestPlaces(a), int64(a.axis))
		} else {
			x = d.filtered(x, a, mode == "cubic")
		}
	}
	d.Replace(d.Identity(d.cast(x, t)))
}

// resizedAxes gives the sizes and the scale of each axis that is resized.
func (d *Downgrade) resizedAxes(rank int) []resizedAxis {
	f := tensor.Float32
	axes := d.resizeAxes(rank)
	as := make([]resizedAxis, len(axes))
	scales := make([]*ssa.Value, len(axes))
	for i, axis := range axes {
		a := resizedAxis{axis: int(axis), in: d.size(d.in(0), int(axis))}
		if sizes := d.in(3); sizes != nil {
			a.out = d.cast(d.gather(sizes, d.long(int64(i)), 0), tensor.Int64)
			a.scale = d.Div(d.cast(a.out, f), d.cast(a.in, f))
		} else {
			a.scale = d.gather(d.in(2), d.long(int64(i)), 0)
			a.out = d.cast(d.Mul(d.cast(a.in, f), a.scale), tensor.Int64)
		}
		as[i], scales[i] = a, a.scale
	}
	policy := d.Node.AttrStr("keep_aspect_ratio_policy", "stretch")
	if policy == "stretch" || d.in(3) == nil || len(as) == 0 {
		return as
	}
	scale := d.Op(map[string]string{"not_larger": "Min", "not_smaller": "Max"}[policy], scales...)
	for i := range as {
		exact := d.Mul(scale, d.cast(as[i].in, f))
		as[i].out = d.cast(d.Add(exact, d.like(exact, 0.5)), tensor.Int64)
		as[i].scale = scale
	}
	return as
}

// origins gives the place in the input of each element along an axis of the
// output, as a row of numbers of type t.
func (d *Downgrade) origins(a resizedAxis, t tensor.DType) *ssa.Value {
	num := func(v float64) *ssa.Value { return d.scalar(t, v) }
	at := d.cast(d.Range(d.long(0), a.out, d.long(1)), t)
	in, out, scale := d.cast(a.in, t), d.cast(a.out, t), d.cast(a.scale, t)
	half := func() *ssa.Value {
		return d.Sub(d.Div(d.Add(at, num(0.5)), scale), num(0.5))
	}
	switch m := d.Node.AttrStr("coordinate_transformation_mode", "half_pixel"); m {
	case "half_pixel":
		return half()
	case "pytorch_half_pixel":
		return d.Where(d.Greater(a.out, d.long(1)), half(), num(0))
	case "asymmetric":
		return d.Div(at, scale)
	case "align_corners":
		ends := d.Max(d.Sub(out, num(1)), num(1))
		return d.Div(d.Mul(at, d.Sub(in, num(1))), ends)
	default:
		panic("no form for coordinates of " + m) // a mistake here: resizeByAxes lets no others pass
	}
}

// nearestPlaces gives the element that each place along an axis takes.
func (d *Downgrade) nearestPlaces(a resizedAxis) *ssa.Value {
	x := d.origins(a, tensor.Float32)
	half := d.like(x, 0.5)
	switch d.Node.AttrStr("nearest_mode", "round_prefer_floor") {
	case "floor":
		x = d.Floor(x)
	case "ceil":
		x = d.Ceil(x)
	case "round_prefer_ceil":
		low := d.Floor(x) // x + 0.5 would round to the next number where x is just below the half
		x = d.Add(low, d.cast(d.GreaterOrEqual(d.Sub(x, low), half), tensor.Float32))
	default:
		x = d.Ceil(d.Sub(x, half))
	}
	return d.within(d.cast(x, tensor.Int64), a.in)
}

// within brings places into an axis of n elements.
func (d *Downgrade) within(at, n *ssa.Value) *ssa.Value {
	return d.Min(d.Max(at, d.long(0)), d.Sub(n, d.long(1)))
}

// filtered makes each place along an axis the weighted mean of the elements
// around its origin. The weights stand in a matrix [places, elements]; beyond
// the ends of the axis the last element is repeated as far as a filter reaches.
func (d *Downgrade) filtered(x *ssa.Value, a resizedAxis, cubic bool) *ssa.Value {
	t := x.DType()
	num := func(v float64) *ssa.Value { return d.scalar(t, v) }
	shrink, reach := num(1), 1.0
	if d.Node.AttrInt("antialias", 0) != 0 {
		shrink = d.Min(d.cast(a.scale, t), num(1))
	}
	if cubic {
		reach = 2
	}
	margin := d.long(0)
	if d.Node.AttrInt("exclude_outside", 0) == 0 { // origins lie within one element of the axis
		margin = d.Add(d.cast(d.Ceil(d.Div(num(reach), shrink)), tensor.Int64), d.long(1))
	}
	at := d.Range(d.Neg(margin), d.Add(a.in, margin), d.long(1))
	gap := d.Sub(d.cast(at, t), d.Unsqueeze(d.origins(a, t), d.ints(1)))
	dist := d.Abs(d.Mul(gap, shrink))
	weights := d.Max(d.Sub(num(1), dist), num(0))
	if cubic {
		weights = d.cubicWeights(dist, d.Node.AttrFloat("cubic_coeff_a", -0.75))
	}
	weights = d.Div(weights, d.ReduceSum(weights, d.ints(1), KeepDims(true)))

	// the axis changes places with the last one for the product
	perm := make([]int64, d.rank(x, 18))
	last := len(perm) - 1
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[a.axis], perm[last] = perm[last], perm[a.axis]
	swap := func(v *ssa.Value) *ssa.Value { return d.Transpose(v, Perm(perm...)) }
	picked := d.gather(x, d.within(at, a.in), int64(a.axis))
	return swap(d.MatMul(swap(picked), d.Transpose(weights, Perm(1, 0))))
}

// cubicWeights is the cubic convolution kernel with the coefficient a, at
// distances of at least 0 (R. Keys, Cubic Convolution Interpolation, 1981).
func (d *Downgrade) cubicWeights(dist *ssa.Value, a float64) *ssa.Value {
	horner := func(coefficients ...float64) *ssa.Value {
		var sum *ssa.Value
		for _, c := range coefficients {
			if sum == nil {
				sum = d.like(dist, c)
			} else {
				sum = d.Add(d.Mul(sum, dist), d.like(dist, c))
			}
		}
		return sum
	}
	near, far := horner(a+2, -(a+3), 0, 1), horner(a, -5*a, 8*a, -4*a)
	far = d.Where(d.Less(dist, d.like(dist, 2)), far, d.like(dist, 0))
	return d.Where(d.Less(dist, d.like(dist, 1)), near, far)
}

// resizeByScales is the step of Resize from opset 11: before, an element of the result came from its own place divided by the
// scale, nearest rounded up along axes that shrink and down along the others ([resizeCoordinates]), and there were no sizes.
// What says anything else is built from other operators.
func resizeByScales(d *Downgrade) {
	scales, ok := d.simpleScales()
	if ok && d.Opset < 10 && slices.ContainsFunc(ConstOf(scales).Float64s(), func(s float64) bool { return s < 1 }) {
		ok = false // Upsample does not shrink
	}
	if !ok {
		d.resizeByAxes(11, "resizing with other coordinates or rounding than those of opset 10")
		return
	}
	for _, name := range [...]string{"coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a", "exclude_outside", "extrapolation_value"} {
		d.Node.RemoveAttr(name)
	}
	d.Node.SetOperands(d.in(0), scales)
}

// simpleScales returns the scales of a Resize that opset 10 can tell.
func (d *Downgrade) simpleScales() (*ssa.Value, bool) {
	o := d.Node
	mode, at := o.AttrStr("mode", "nearest"), o.AttrStr("coordinate_transformation_mode", "half_pixel")
	t := ConstOf(d.in(2))
	if at != "asymmetric" || t == nil || !t.HasData() || t.NumElements() == 0 {
		return nil, false
	}
	grows, shrinks := true, true
	for _, s := range t.Float64s() {
		grows, shrinks = grows && s >= 1, shrinks && s <= 1
	}
	switch mode {
	case "linear":
		return d.in(2), true
	case "nearest":
		rounding := o.AttrStr("nearest_mode", "round_prefer_floor")
		return d.in(2), grows && rounding == "floor" || shrinks && rounding == "ceil"
	}
	return nil, false
}

// upsample is the step of Resize from opset 10, before which it was called Upsample.
func upsample(d *Downgrade) { d.Node.Kind = "onnx::Upsample" }

// upsampleScale is the step of Upsample from opset 9: scales were an attribute.
func upsampleScale(d *Downgrade) {
	d.Node.SetAttr("scales", ssa.Floats(ConstOf(d.in(1)).Float64s()...))
	d.Node.SetOperands(d.in(0))
}
