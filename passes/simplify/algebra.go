package simplify

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// algebra holds neutral elements, operators applied twice, and constants in their canonical place.
func (s *simplifier) algebra() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "passes-on", Kinds: []ssa.Kind{"onnx::Identity", "onnx::Cast", "onnx::Reshape", "onnx::Expand", "onnx::Squeeze", "onnx::Unsqueeze", "onnx::Flatten", "onnx::Transpose",
			"onnx::Concat", "onnx::Slice"}, Apply: passesOn},
		{Name: "does-nothing", Kinds: []ssa.Kind{"onnx::Dropout", "onnx::Tile", "onnx::Pad", "onnx::Sum", "onnx::Max", "onnx::Min", "onnx::Mean", "onnx::Split",
			"onnx::AveragePool", "onnx::MaxPool"}, Apply: doesNothing},
		{Name: "constant-right", Kinds: []ssa.Kind{"onnx::Add", "onnx::Mul", "onnx::And", "onnx::Or", "onnx::Xor", "onnx::Equal", "onnx::BitwiseAnd", "onnx::BitwiseOr", "onnx::BitwiseXor"}, Apply: constantRight},
		{Name: "neutral-element", Kinds: []ssa.Kind{"onnx::Add", "onnx::Sub", "onnx::Mul", "onnx::Div", "onnx::Pow", "onnx::And", "onnx::Or", "onnx::Xor", "onnx::BitShift"}, Apply: neutral},
		{Name: "twice", Kinds: []ssa.Kind{"onnx::Relu", "onnx::Abs", "onnx::Ceil", "onnx::Floor", "onnx::Round", "onnx::Sign"}, Apply: twice},
		{Name: "integer-is-whole", Kinds: []ssa.Kind{"onnx::Abs", "onnx::Relu"}, Apply: notNegative},
		{Name: "merge-clips", Kinds: []ssa.Kind{"onnx::Clip", "onnx::Relu"}, Apply: mergeClips},
		{Name: "bounds-to-clip", Kinds: []ssa.Kind{"onnx::Max", "onnx::Min", "onnx::Clip", "onnx::Relu"}, Apply: boundsToClip, Rounds: true},
		{Name: "merge-extremes", Kinds: []ssa.Kind{"onnx::Max", "onnx::Min"}, Apply: s.mergeExtremes},
		{Name: "where-decided", Kinds: []ssa.Kind{"onnx::Where"}, Apply: whereDecided},
		{Name: "merge-integer-constants", Kinds: []ssa.Kind{"onnx::Add", "onnx::Mul", "onnx::Sub"}, Apply: mergeIntegers},
		{Name: "shrink-splat", Kinds: elementwise, Apply: shrinkSplat},
		{Name: "cast-of-negative", Kinds: []ssa.Kind{"onnx::Cast"}, Apply: castOfNegative},
		{Name: "cast-of-choice", Kinds: []ssa.Kind{"onnx::Cast"}, Apply: castOfChoice},
		{Name: "cast-of-fill", Kinds: []ssa.Kind{"onnx::Cast"}, Apply: castOfFill},
		{Name: "quantized-again", Kinds: []ssa.Kind{"onnx::QuantizeLinear"}, Apply: quantizedAgain},
		{Name: "cast-like-known", Kinds: []ssa.Kind{"onnx::CastLike"}, Apply: castLike},
		{Name: "broadcast-itself", Kinds: elementwise, Apply: broadcastItself},
	}
}

// elementwise operators broadcast their operands.
var elementwise = onnx.Broadcasting()

func passesOn(r *rewrite.Rewriter, o *ssa.Op) bool {
	if v := onnx.PassesOn(o); v != nil {
		r.Replace(o, v)
		return true
	}
	return false
}

// doesNothing removes operators that, with these operands, copy the first.
func doesNothing(r *rewrite.Rewriter, o *ssa.Op) bool {
	x := o.Operand(0)
	if x == nil || x.Tensor() == nil {
		return false
	}
	switch o.Kind {
	case "onnx::Dropout":
		for _, v := range o.Results[1:] {
			if v.HasUses() {
				return false
			}
		}
		if info, _ := (onnx.Dialect{}).Info(o); info.Effects != ssa.Pure {
			return false
		}
		vs := make([]*ssa.Value, len(o.Results))
		vs[0] = x
		r.Replace(o, vs...)
		return true
	case "onnx::Tile":
		if !allAre(o.Operand(1), 1) {
			return false
		}
	case "onnx::Pad":
		if !allAre(o.Operand(1), 0) {
			return false
		}
	case "onnx::AveragePool", "onnx::MaxPool": // windows of one element; an adaptive pooling to the size that there is
		k := o.AttrInts("kernel_shape")
		// the sum of a window starts at 0, and so a mean is never -0.0
		if o.Kind == "onnx::AveragePool" && !unsigned(x) {
			return false
		}
		if len(o.Results) != 1 || !x.DType().IsFloat() || k == nil || !allEqual(k, 1) || !allEqual(o.AttrInts("strides"), 1) || !allEqual(o.AttrInts("pads"), 0) {
			return false
		}
	case "onnx::Split":
		if len(o.Results) != 1 {
			return false
		}
	default: // of any number of operands
		if o.NumOperands() != 1 {
			return false
		}
	}
	r.Replace(o, x)
	return true
}

func constantRight(r *rewrite.Rewriter, o *ssa.Op) bool {
	a, b := o.Operand(0), o.Operand(1)
	if !isConst(a) || isConst(b) {
		return false
	}
	r.SetOperands(o, b, a)
	return true
}

// neutral removes x+0, x*1 and their like. x + 0.0 is not x for x = -0.0, but x + -0.0 and x - 0.0 are.
func neutral(r *rewrite.Rewriter, o *ssa.Op) bool {
	x, k := o.Operand(0), o.Operand(1)
	if x == nil || !isConst(k) || !r.Fits(x, o.Result(0)) {
		return false
	}
	zero := math.Copysign(0, -1)
	if x.DType().IsInt() || unsigned(x) {
		zero = 0
	}
	ok := false
	switch o.Kind {
	case "onnx::Add":
		ok = allAre(k, zero) || x.DType().IsFloat() && allAre(k, math.Copysign(0, -1))
	case "onnx::Sub", "onnx::BitShift":
		ok = allAre(k, 0)
	case "onnx::Mul", "onnx::Div", "onnx::Pow":
		ok = allAre(k, 1)
	case "onnx::And":
		ok = allAre(k, 1)
	case "onnx::Or", "onnx::Xor":
		ok = allAre(k, 0)
	}
	if ok {
		r.Replace(o, x)
	}
	return ok
}

// unsigned reports that no element of a float tensor can be -0.0.
func unsigned(v *ssa.Value) bool {
	d := v.Def()
	if d == nil {
		return false
	}
	switch d.Kind {
	case "onnx::Exp", "onnx::Sigmoid", "onnx::Softmax", "onnx::Abs":
		return true
	case "onnx::Cast":
		return !d.Operand(0).DType().IsFloat()
	}
	return false
}

// twice removes the second of two equal operators where that changes nothing.
func twice(r *rewrite.Rewriter, o *ssa.Op) bool {
	x := o.Operand(0)
	if x.Def() == nil || x.Def().Kind != o.Kind {
		return false
	}
	r.Replace(o, x)
	return true
}

// notNegative removes Abs and Relu of values that are not negative: sizes and unsigned integers.
func notNegative(r *rewrite.Rewriter, o *ssa.Op) bool {
	x := o.Operand(0)
	switch x.DType() {
	case tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64:
	default:
		s, ok := onnx.SymOf(x)
		if !ok {
			return false
		}
		for _, e := range s {
			if e.Min() < 0 {
				return false
			}
		}
	}
	r.Replace(o, x)
	return true
}

// maxExact bounds the integers that are compared as float64, which has all of them.
const maxExact = 1 << 53

// limited is the operand of a Clip, Relu, Max or Min to which limits apply.
func limited(o *ssa.Op) *ssa.Value {
	if (o.Kind == "onnx::Max" || o.Kind == "onnx::Min") && o.NumOperands() == 2 && isConst(o.Operand(0)) {
		return o.Operand(1)
	}
	return o.Operand(0)
}

// bounds gives the limits of a Clip or Relu; constants of one element. A Max or Min with such a constant has one limit, if its result is of the type of
// the other operand.
func bounds(o *ssa.Op) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(-1), math.Inf(1)
	least, most := o.Operand(1), o.Operand(2)
	switch o.Kind {
	case "onnx::Relu":
		return 0, hi, true
	case "onnx::Max", "onnx::Min":
		x := limited(o)
		if o.NumOperands() != 2 || isConst(x) || !ssa.SameType(x.Type, o.Result(0).Type) {
			return 0, 0, false
		}
		if least, most = other(o, x), nil; o.Kind == "onnx::Min" {
			least, most = nil, least
		}
	}
	for i, p := range [...]*float64{&lo, &hi} {
		v := [...]*ssa.Value{least, most}[i]
		if v == nil {
			continue
		}
		k, known := onlyElement(v)
		if !known || math.IsNaN(k) || v.DType().IsInt() && math.Abs(k) > maxExact {
			return 0, 0, false
		}
		*p = k
	}
	return lo, hi, lo <= hi
}

// mergeClips merges Clip and Relu with a Clip or Relu before it. NaN goes through both.
func mergeClips(r *rewrite.Rewriter, o *ssa.Op) bool {
	in := o.Operand(0).Def()
	if in == nil || in.Kind != "onnx::Clip" && in.Kind != "onnx::Relu" || in.Kind == "onnx::Relu" && o.Kind == "onnx::Relu" {
		return false
	}
	return clip(r, o, in)
}

// boundsToClip merges two limits of which one at least is a Max or a Min. Which zero comes out for a zero at a limit of 0 is left open by the
// standard, and differs between Max and Clip in onnxruntime.
func boundsToClip(r *rewrite.Rewriter, o *ssa.Op) bool {
	if o.NumOperands() == 0 || o.Operand(0) == nil {
		return false
	}
	in := limited(o).Def()
	extreme := func(o *ssa.Op) bool { return o.Kind == "onnx::Max" || o.Kind == "onnx::Min" }
	if in == nil || !extreme(in) && !(extreme(o) && (in.Kind == "onnx::Clip" || in.Kind == "onnx::Relu")) {
		return false
	}
	return clip(r, o, in)
}

// clip puts one Clip in the place of two operators with limits.
func clip(r *rewrite.Rewriter, o, in *ssa.Op) bool {
	d := o.Result(0).DType()
	lo1, hi1, ok1 := bounds(in)
	lo2, hi2, ok2 := bounds(o)
	lo, hi := min(max(lo1, lo2), hi2), max(min(hi1, hi2), lo2)
	if !ok1 || !ok2 || !d.IsFloat() && !d.IsInt() {
		return false
	}
	if lo == 0 && hi == 0 { // which zero comes out is not what one Clip says of it
		return false
	}
	if lo == lo1 && hi == hi1 { // the second does nothing
		r.Replace(o, limited(o))
		return true
	}
	if !limited(o).HasOneUse() {
		return false
	}
	operands := []*ssa.Value{limited(in), nil, nil}
	for i, k := range [...]float64{1: lo, 2: hi} {
		switch {
		case i == 0 || math.IsInf(k, 0) && (i == 1) == (k < 0): // no limit
		case d.IsInt():
			operands[i] = constant(r, tensor.FromInts(d, []int64{}, []int64{int64(k)}))
		default:
			operands[i] = constant(r, tensor.FromFloats(d, []int64{}, []float64{k}))
		}
	}
	y := r.Create("onnx::Clip", operands)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// mergeExtremes makes one Max of a Max of Maxes, in the order of their operands, and one Min likewise. Opset 7 does not broadcast them.
func (s *simplifier) mergeExtremes(r *rewrite.Rewriter, o *ssa.Op) bool {
	if s.opset != 0 && s.opset < 8 {
		return false
	}
	for i := range o.NumOperands() {
		d := definedBy(o.Operand(i), o.Kind)
		if d == nil || !d.Result(0).HasOneUse() || d.Block() != o.Block() {
			continue
		}
		operands := slices.Concat(o.Operands()[:i], d.Operands(), o.Operands()[i+1:])
		y := r.Create(o.Kind, operands)
		if !r.Fits(y, o.Result(0)) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}

// whereDecided takes the branch of a Where with a constant condition.
func whereDecided(r *rewrite.Rewriter, o *ssa.Op) bool {
	x := o.Operand(1)
	if !allAre(o.Operand(0), 1) {
		if x = o.Operand(2); !allAre(o.Operand(0), 0) {
			return false
		}
	}
	if !r.Fits(x, o.Result(0)) {
		shape, ok := o.Result(0).Tensor().Static()
		if !ok {
			return false
		}
		if x = build(r).Expand(x, ints(r, shape...)); !r.Fits(x, o.Result(0)) {
			return false
		}
	}
	r.Replace(o, x)
	return true
}

// mergeIntegers computes (x + a) + b as x + (a + b), and products likewise: exact for integers, which wrap around.
func mergeIntegers(r *rewrite.Rewriter, o *ssa.Op) bool {
	x, b := o.Operand(0), o.Operand(1)
	if !o.Result(0).DType().IsInt() || !isConst(b) || x.Def() == nil || !x.HasOneUse() {
		return false
	}
	in := x.Def()
	if in.Kind != o.Kind && (in.Kind != "onnx::Add" || o.Kind != "onnx::Sub") && (in.Kind != "onnx::Sub" || o.Kind != "onnx::Add") || !isConst(in.Operand(1)) {
		return false
	}
	a := in.Operand(1)
	if onnx.ConstOf(a).NumElements() > maxLook || onnx.ConstOf(b).NumElements() > maxLook {
		return false
	}
	kind := in.Kind
	merge := ssa.Kind("onnx::Add")
	switch {
	case o.Kind == "onnx::Mul":
		merge = "onnx::Mul"
	case in.Kind != o.Kind:
		merge = "onnx::Sub"
	}
	k, ok := evaluate(r, merge, a, b)
	if !ok {
		return false
	}
	y := r.Create(kind, []*ssa.Value{in.Operand(0), k})
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// castLike casts to the element type that the other operand is known to have.
func castLike(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := o.Operand(1).DType()
	if d.ONNX() == 0 {
		return false
	}
	y := build(r).Cast(o.Operand(0), d, o.Attrs...) // saturate, round_mode
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// shrinkSplat stores a constant of equal elements as one element where broadcasting does the rest.
func shrinkSplat(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i := range o.NumOperands() {
		t := onnx.ConstOf(o.Operand(i))
		if t == nil || !t.HasData() || t.NumElements() < 2 || !splat(t) {
			continue
		}
		one := *t
		one.Shape, one.Strides = []int64{}, []int64{}
		operands := o.Operands()
		operands[i] = constant(r, one.Clone())
		y := r.Create(o.Kind, operands, o.Attrs...)
		if r.Fits(y, o.Result(0)) {
			r.Replace(o, y)
			return true
		}
	}
	return false
}

// splat reports equal elements; large constants are not looked through.
func splat(t *tensor.Tensor) bool {
	if t.IsSplat() {
		return t.DType != tensor.String
	}
	n := t.DType.Size()
	if t.NumElements() > maxLook || n == 0 {
		return false
	}
	b := t.Bytes()
	for i := n; i+n <= len(b); i += n {
		if string(b[i:i+n]) != string(b[:n]) {
			return false
		}
	}
	return true
}

// broadcastItself removes an Expand, or an Unsqueeze of leading axes, before an operator that broadcasts anyway.
func broadcastItself(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i := range o.NumOperands() {
		v := o.Operand(i)
		if v == nil || v.Def() == nil {
			continue
		}
		d := v.Def()
		switch d.Kind {
		case "onnx::Expand":
		case "onnx::Unsqueeze", "onnx::Reshape":
			if !addsLeadingOnes(d) || !othersBroadcast(v) {
				continue
			}
		default:
			continue
		}
		operands := o.Operands()
		operands[i] = d.Operand(0)
		if rank(d.Operand(0)) < 0 {
			continue
		}
		y := r.Create(o.Kind, operands, o.Attrs...)
		if r.Fits(y, o.Result(0)) && ssa.SameType(y.Type, o.Result(0).Type) {
			r.Replace(o, y)
			return true
		}
	}
	return false
}

// maxBroadcasts bounds the users that are looked at.
const maxBroadcasts = 64

// othersBroadcast reports that all users of v have another operand of its rank: a change of shape would be needed for none. Otherwise it
// stays for all, so that they have the same operand: Gelu in its parts is not found in x and a view of x.
func othersBroadcast(v *ssa.Value) bool {
	n := 0
	for u := range v.Uses() {
		if n++; n > maxBroadcasts || u.Op() == nil || !slices.Contains(elementwise, u.Op().Kind) {
			return false
		}
		if !slices.ContainsFunc(u.Op().Operands(), func(w *ssa.Value) bool { return w != v && rank(w) >= rank(v) }) {
			return false
		}
	}
	return true
}

// addsLeadingOnes reports a change of shape that only puts axes of size 1 before the others.
func addsLeadingOnes(o *ssa.Op) bool {
	in, out := o.Operand(0).Tensor(), o.Result(0).Tensor()
	if in == nil || out == nil || !in.Ranked || !out.Ranked || len(out.Dims) <= len(in.Dims) {
		return false
	}
	k := len(out.Dims) - len(in.Dims)
	for i, d := range out.Dims {
		if i < k && !d.Is(1) || i >= k && !d.Equal(in.Dims[i-k]) {
			return false
		}
	}
	return true
}

// castOfNegative negates behind a cast to floats, where what was negated is cast to the same type too: rounding takes no side.
func castOfNegative(r *rewrite.Rewriter, o *ssa.Op) bool {
	neg := definedBy(o.Operand(0), "onnx::Neg")
	d := o.Result(0).DType()
	if neg == nil || !neg.Result(0).HasOneUse() || !neg.Result(0).DType().IsFloat() || d != tensor.Float32 && d != tensor.Float64 && !isHalf(d) {
		return false
	}
	for u := range neg.Operand(0).Uses() {
		if c := u.Op(); c == nil || c.Kind != "onnx::Cast" || c.Result(0).DType() != d || c.Block() != o.Block() {
			continue
		}
		y := r.Create(neg.Kind, []*ssa.Value{r.Create(o.Kind, []*ssa.Value{neg.Operand(0)}, o.Attrs...)})
		if !r.Fits(y, o.Result(0)) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}

// castOfChoice chooses between two numbers of the type of floats that the choice is cast to.
func castOfChoice(r *rewrite.Rewriter, o *ssa.Op) bool {
	choice, d := definedBy(o.Operand(0), "onnx::Where"), o.Result(0).DType()
	if choice == nil || !choice.Result(0).HasOneUse() {
		return false
	}
	operands := choice.Operands()
	for i := 1; i <= 2; i++ {
		k, ok := scalarOf(operands[i])
		if !ok || d != tensor.Float32 && d != tensor.Float64 && !isHalf(d) {
			return false
		}
		operands[i] = constant(r, tensor.FromFloats(d, onnx.ConstOf(operands[i]).Shape, []float64{k}))
	}
	y := r.Create(choice.Kind, operands)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// castOfFill fills with an element of the type that what is filled is cast to.
func castOfFill(r *rewrite.Rewriter, o *ssa.Op) bool {
	fill := definedBy(o.Operand(0), "onnx::ConstantOfShape")
	if fill == nil {
		return false
	}
	value := tensor.Full(tensor.Float32, []int64{1}, 0)
	if l, ok := fill.Attr("value"); ok {
		if value = l.Tensor; value == nil || !value.HasData() || value.NumElements() != 1 {
			return false
		}
	}
	out, err := kernel.Eval(o.Kind, o.Attrs, []*tensor.Tensor{value}, 1)
	if err != nil {
		return false
	}
	y := r.Create(fill.Kind, []*ssa.Value{fill.Operand(0)}, onnx.Value(out[0]))
	if y.DType() != o.Result(0).DType() {
		return false
	}
	y.Type = o.Result(0).Type // the same target gives sizes of the same names
	r.Replace(o, y)
	return true
}

// quantizedAgain finds the integers that a QuantizeLinear gives in what its operand was dequantized from, with the same scale and zero point: (q - z)*s/s is off by
// a few parts in 2^24, and an integer of 16 bits needs less than one in 2^17.
func quantizedAgain(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := definedBy(o.Operand(0), "onnx::DequantizeLinear")
	if d == nil || o.NumOperands() != 3 || d.NumOperands() != 3 {
		return false
	}
	q, of := d.Operand(0), o.Result(0).DType()
	scale, again := onnx.ConstOf(o.Operand(1)), onnx.ConstOf(d.Operand(1))
	zero, zeroAgain := onnx.ConstOf(o.Operand(2)), onnx.ConstOf(d.Operand(2))
	for _, t := range []*tensor.Tensor{scale, again, zero, zeroAgain} {
		if t == nil || !t.HasData() || t.NumElements() != 1 {
			return false
		}
	}
	whole := of == tensor.Uint8 || of == tensor.Int8 || of == tensor.Uint16 || of == tensor.Int16
	s := scale.Float64s()[0]
	if !whole || q.DType() != of || scale.DType != tensor.Float32 || again.DType != tensor.Float32 || s != again.Float64s()[0] || s < 1e-30 || s > 1e30 ||
		zero.Int64s()[0] != zeroAgain.Int64s()[0] || !r.Fits(q, o.Result(0)) {
		return false
	}
	r.Replace(o, q)
	return true
}
