package onnx

import (
	"math"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// dropped is the step that removes attributes that change nothing: hints of old runtimes, and what outputs say now.
func dropped(opset int, names ...string) Rise {
	return Rise{opset, func(u *Upgrade) {
		for _, n := range names {
			u.Node.RemoveAttr(n)
		}
	}}
}

// only is the step that removes an attribute of which just one value can be told in newer versions; def is what the
// older version takes when it is not there.
func only(opset int, name string, value, def int64, why string) Rise {
	return Rise{opset, func(u *Upgrade) {
		n := def
		if l, ok := u.take(name); ok {
			n = l.Int()
		}
		if n != value {
			u.Fail("%s", why)
		}
	}}
}

// was is the step that writes out the default that an attribute had before.
func was(opset int, name string, value ssa.Literal) Rise {
	return Rise{opset, func(u *Upgrade) { u.set(name, value) }}
}

// renamed is the step that calls an attribute something else.
func renamed(opset int, from, to string) Rise {
	return Rise{opset, func(u *Upgrade) {
		if l, ok := u.take(from); ok {
			u.set(to, l)
		}
	}}
}

// input is the step that makes an operand of a list attribute.
func input(opset, i int, name string) Rise {
	return Rise{opset, func(u *Upgrade) { u.ints(i, name) }}
}

// scanOfBatch is the step of Scan to opset 9. Before, every state and input had a batch as its first axis, and the sequences lay
// along the second: a Scan over the batch, without states, runs the Scan of a sequence.
func scanOfBatch(u *Upgrade) {
	o := u.Node
	k, _ := u.take("num_scan_inputs")
	directions, directed := u.take("directions")
	states := o.NumOperands() - 1 - int(k.Int())
	switch {
	case o.Operand(0) != nil:
		u.Fail("a Scan of opset 8 that takes lengths of sequences has no equivalent since opset 9")
	case states < 0 || k.Int() < 1 || len(o.Blocks) != 1:
		u.Fail("the body does not fit the inputs")
	}
	body := o.Blocks[0]
	_, outs := u.Scan(nil, o.Operands()[1:], false, func(_, samples []*ssa.Value) (next, outs []*ssa.Value) {
		types := make([]ssa.Type, len(o.Results))
		for i := range types {
			types[i] = ssa.AnyTensor
		}
		one := u.Block.Append(o.Kind, o.Loc, samples, types...)
		one.SetAttr("num_scan_inputs", k)
		if directed {
			one.SetAttr("scan_input_directions", directions)
		}
		b := one.AddBlock()
		for _, p := range body.Params {
			p.ReplaceUses(b.AddParam(p.Name, p.Type))
		}
		for inner := body.First(); inner != nil; inner = body.First() {
			inner.MoveToEnd(b)
		}
		b.SetReturns(body.Returns()...)
		body.SetReturns()
		if err := Infer(one); err != nil {
			u.Fail("%v", err)
		}
		return nil, one.Results
	})
	replaceOp(o, outs)
}

// wholeNumber is the step of an attribute that was a float and is an integer.
func wholeNumber(opset int, name string) Rise {
	return Rise{opset, func(u *Upgrade) {
		l, ok := u.take(name)
		if !ok {
			return
		}
		if f := l.Float(); f != float64(int64(f)) {
			u.Fail("%s is %g, and can only be a whole number since opset %d", name, f, opset)
		}
		u.set(name, ssa.Int(int64(l.Float())))
	}}
}

// broadcastAt is the step of elementwise operators to opset 7, in which shapes line up at the end. Before, an attribute
// allowed broadcasting, and axis said where the second shape begins in the first.
func broadcastAt(u *Upgrade) {
	broadcast, _ := u.take("broadcast")
	axis, placed := u.take("axis")
	a, b := u.in(0), u.in(1)
	if broadcast.Kind != ssa.IntLit || broadcast.Int() == 0 || !placed {
		return // equal shapes, or shapes that line up at the end
	}
	n, m, at := u.rank(a, "axis counts in it"), u.rank(b, "axis counts in it"), axis.Int()
	if at < 0 {
		at += int64(n)
	}
	if at < 0 || at+int64(m) > int64(n) {
		u.Fail("a shape of %d sizes does not fit at axis %d of %d", m, at, n)
	}
	if behind := n - m - int(at); behind > 0 {
		axes := make([]int64, behind)
		for i := range axes {
			axes[i] = int64(m + i)
		}
		u.operand(1, u.Unsqueeze(b, u.Const(tensor.Ints(axes...))))
	}
}

// slopePerChannel is the step of PRelu to opset 7: a slope for each channel had one axis, and lines up at the end now.
func slopePerChannel(u *Upgrade) {
	x, slope := u.in(0), u.in(1)
	if u.rank(slope, "it says whether there is a slope for each channel") != 1 {
		return
	}
	if n, ok := slope.Tensor().Dims[0].Int(); ok && n == 1 {
		return
	}
	axes := []int64{}
	for i := 1; i < u.rank(x, "the slopes go along its axis 1")-1; i++ {
		axes = append(axes, int64(i))
	}
	if len(axes) > 0 {
		u.operand(1, u.Unsqueeze(slope, u.Const(tensor.Ints(axes...))))
	}
}

// castByName is the step of Cast to opset 6, which names types by numbers.
func castByName(u *Upgrade) {
	numbers := map[string]int64{
		"FLOAT": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "STRING": 8, "BOOL": 9,
		"FLOAT16": 10, "DOUBLE": 11, "UINT32": 12, "UINT64": 13,
	}
	l, _ := u.take("to")
	n, ok := numbers[strings.ToUpper(l.Str())]
	if !ok {
		u.Fail("there is no element type %q", l.Str())
	}
	u.set("to", ssa.Int(n))
}

// tileAxis is the step of Tile to opset 6: one axis was repeated.
func tileAxis(u *Upgrade) {
	tiles, ok := ConstInts(u.in(1))
	axis, also := ConstInts(u.in(2))
	if !ok || !also || len(tiles) != 1 || len(axis) != 1 {
		u.Fail("tiles and axis must be constant numbers")
	}
	rank := u.rank(u.in(0), "there is a number of repetitions for each axis")
	repeats := make([]int64, rank)
	for i := range repeats {
		repeats[i] = 1
	}
	at := axis[0]
	if at < 0 {
		at += int64(rank)
	}
	if at < 0 || at >= int64(rank) {
		u.Fail("axis %d is out of range for rank %d", axis[0], rank)
	}
	repeats[at] = tiles[0]
	u.Node.SetOperands(u.in(0), u.Const(tensor.Ints(repeats...)))
}

// splitEqually is the step of Split to opset 18, which must be told that the parts are equal.
func splitEqually(u *Upgrade) {
	if u.in(1) == nil {
		u.set("num_outputs", ssa.Int(int64(len(u.Node.Results))))
	}
}

// sliceInputs is the step of Slice to opset 10.
func sliceInputs(u *Upgrade) {
	u.ints(1, "starts")
	u.ints(2, "ends")
	u.ints(3, "axes")
}

// topKInput is the step of TopK to opset 10.
func topKInput(u *Upgrade) {
	if l, ok := u.take("k"); ok {
		u.operand(1, u.Const(tensor.Ints(l.Int())))
	}
}

// clipInputs is the step of Clip to opset 11.
func clipInputs(u *Upgrade) {
	u.float(1, "min")
	u.float(2, "max")
}

// padInputs is the step of Pad to opset 11.
func padInputs(u *Upgrade) {
	u.ints(1, "pads")
	u.float(2, "value")
}

// dropoutMask is the step of Dropout to opset 10, whose mask is of bools. Before, it was of the input's type.
func dropoutMask(u *Upgrade) {
	if len(u.Node.Results) < 2 {
		return
	}
	if !u.Node.Results[1].HasUses() {
		u.Node.RemoveResult(1)
		return
	}
	x := u.in(0)
	if x.DType() == tensor.Undefined {
		u.Fail("the element type of its input must be known: the mask has it")
	}
	out := u.Create(u.Node.Kind, 2, []*ssa.Value{x})
	mask := u.Cast(out[1], x.DType())
	u.Replace(out[0], mask)
}

// dftAxisInput is the step of DFT to opset 20.
func dftAxisInput(u *Upgrade) {
	axis := int64(1)
	if l, ok := u.take("axis"); ok {
		axis = l.Int()
	}
	u.operand(2, u.Const(tensor.ScalarInt(axis)))
}

// flatSoftmax is the step of Softmax and its like to opset 13, which work along one axis. Before, they took all axes
// from this one on as one.
func flatSoftmax(u *Upgrade) {
	x, axis := u.in(0), int64(1)
	if l, ok := u.take("axis"); ok {
		axis = l.Int()
	}
	if t := x.Tensor(); t != nil && t.Ranked && len(t.Dims) > 0 && (axis == -1 || axis == int64(len(t.Dims))-1) {
		u.set("axis", ssa.Int(-1))
		return
	}
	flat := u.Flatten(x, Axis(axis))
	y := u.OpA(u.Node.Kind.Name(), []ssa.Attr{Axis(1)}, flat)
	u.Replace(u.Reshape(y, u.Shape(x)))
}

// normElements is the step of BatchNormalization to opset 9. Before, it could have statistics for each element of a sample (spatial=0), which is
// arithmetic since.
func normElements(u *Upgrade) {
	if l, ok := u.take("spatial"); !ok || l.Int() == 1 {
		return
	}
	u.dropResults(1, "the outputs of training with statistics for each element (spatial=0) cannot be told since opset 9")
	x := u.in(0)
	t := x.DType()
	eps := u.Const(tensor.FromFloats(t, []int64{}, []float64{u.Node.AttrFloat("epsilon", 1e-5)}))
	y := u.Div(u.Sub(x, u.in(3)), u.Sqrt(u.Add(u.in(4), eps)))
	u.Replace(u.Add(u.Mul(y, u.in(1)), u.in(2)))
}

// normTraining is the step of BatchNormalization to opset 14. The outputs of training were others.
func normTraining(u *Upgrade) {
	u.dropResults(1, "the outputs of training cannot be told since opset 14")
}

// linearModes is the step of GridSample to opset 20, which names modes as Resize does.
func linearModes(u *Upgrade) {
	mode, ok := u.take("mode")
	switch s := mode.Str(); {
	case !ok:
	case s == "bicubic":
		u.set("mode", ssa.Str("cubic"))
	case s == "bilinear":
		u.set("mode", ssa.Str("linear"))
	default:
		u.set("mode", mode)
	}
}

// normChannels is the step of GroupNormalization to opset 21: scale and bias have an element for each channel. Before,
// they had one for each group, which all channels of the group share.
func normChannels(u *Upgrade) {
	x := u.in(0)
	groups := u.Node.AttrInt("num_groups", 1)
	if groups < 1 {
		u.Fail("there are %d groups", groups)
	}
	var each *ssa.Value // channels of a group
	if t := x.Tensor(); t != nil && t.Ranked && len(t.Dims) > 1 && t.Dims[1].IsConst() {
		n, _ := t.Dims[1].Int()
		each = u.Const(tensor.Ints(n / groups))
	} else {
		channels := u.Shape(x, Start(1), End(2))
		each = u.Div(channels, u.Const(tensor.Ints(groups)))
	}
	size := u.Concat(0, u.Const(tensor.Ints(groups)), each)
	for i := 1; i < 3; i++ {
		wide := u.Expand(u.Unsqueeze(u.in(i), u.Const(tensor.Ints(1))), size)
		u.operand(i, u.Reshape(wide, u.Const(tensor.Ints(-1))))
	}
}

// upsampleScales is the step of Upsample to opset 7: height and width had attributes of their own.
func upsampleScales(u *Upgrade) {
	h, _ := u.take("height_scale")
	w, _ := u.take("width_scale")
	u.set("scales", ssa.Floats(1, 1, h.Float(), w.Float()))
}

// scalesInput is the step of Upsample to opset 9.
func scalesInput(u *Upgrade) {
	l, ok := u.take("scales")
	if !ok {
		return
	}
	v, _ := l.FloatList()
	u.operand(1, u.Const(tensor.FromFloats(tensor.Float32, []int64{int64(len(v))}, v)))
}

// toKind is the step of an operator that goes by another name since.
func toKind(opset int, name string) Rise {
	return Rise{opset, func(u *Upgrade) { u.Node.Kind = ssa.Kind(Namespace + "::" + name) }}
}

// resizeCoordinates is the step of Resize to opset 11. Before, scales followed the data and a coordinate of the input was one
// of the output divided by the scale. The standard left open which element nearest takes; onnxruntime rounds up along axes
// that shrink and down along the others. Only one rounding can be told since, so that shrinking is a Resize of its own.
func resizeCoordinates(u *Upgrade) {
	mode, ok := u.take("mode")
	u.set("coordinate_transformation_mode", ssa.Str("asymmetric"))
	if ok && mode.Str() != "nearest" {
		u.set("mode", ssa.Str("linear")) // Upsample called it bilinear before opset 7
		u.Node.SetOperands(u.in(0), nil, u.in(1))
		return
	}
	x, scales := u.in(0), u.in(1)
	grows, shrinks := true, true
	one := func() *ssa.Value { return u.Const(tensor.FromFloats(tensor.Float32, []int64{}, []float64{1})) }
	up := func() *ssa.Value { return u.Max(scales, one()) }
	down := func() *ssa.Value { return u.Min(scales, one()) }
	if t := ConstOf(scales); t != nil && t.HasData() {
		v := t.Float64s()
		shrinks = slices.ContainsFunc(v, func(s float64) bool { return s < 1 })
		grows = !shrinks || slices.ContainsFunc(v, func(s float64) bool { return s > 1 })
		bounded := func(bound func(x, y float64) float64) func() *ssa.Value {
			return func() *ssa.Value {
				w := slices.Clone(v)
				for i := range w {
					w[i] = bound(w[i], 1)
				}
				return u.Const(tensor.FromFloats(tensor.Float32, []int64{int64(len(w))}, w))
			}
		}
		up, down = bounded(math.Max), bounded(math.Min)
	}
	rounding := "floor"
	switch {
	case grows && shrinks:
		x = u.Resize(x, nil, up(), nil, CoordinateTransformationMode("asymmetric"), Mode("nearest"), NearestMode("floor"))
		scales, rounding = down(), "ceil"
	case shrinks:
		rounding = "ceil"
	}
	u.set("nearest_mode", ssa.Str(rounding))
	u.set("mode", ssa.Str("nearest"))
	u.Node.SetOperands(x, nil, scales)
}

// resizeAbsent is the step of Resize to opset 13. Before, inputs could not be left out: roi counts in one mode only,
// and scales is empty when there are sizes.
func resizeAbsent(u *Upgrade) {
	vs := u.Node.Operands()
	if u.Node.AttrStr("coordinate_transformation_mode", "half_pixel") != "tf_crop_and_resize" && len(vs) > 1 {
		vs[1] = nil
	}
	if len(vs) > 3 && vs[3] != nil {
		vs[2] = nil
	}
	u.Node.SetOperands(vs...)
}
