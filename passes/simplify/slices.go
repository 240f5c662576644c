package simplify

import (
	"slices"
	"sort"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// slices holds the rules on Slice, Split, Concat and Gather.
func (s *simplifier) slices() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "merge-slices", Kinds: []ssa.Kind{"onnx::Slice"}, Apply: mergeSlices},
		{Name: "slice-concat", Kinds: []ssa.Kind{"onnx::Slice"}, Apply: sliceConcat},
		{Name: "slices-to-split", Kinds: []ssa.Kind{"onnx::Slice"}, Apply: slicesToSplit},
		{Name: "flatten-concat", Kinds: []ssa.Kind{"onnx::Concat"}, Apply: flattenConcat},
		{Name: "concat-split", Kinds: []ssa.Kind{"onnx::Concat"}, Apply: concatSplit},
		{Name: "slice-then-split", Kinds: []ssa.Kind{"onnx::Split"}, Apply: sliceThenSplit},
		{Name: "split-concat", Kinds: []ssa.Kind{"onnx::Split"}, Apply: splitConcat},
		{Name: "rotate-by-gather", Kinds: []ssa.Kind{"onnx::Concat"}, Apply: rotateByGather},
		{Name: "gather-scalar-unsqueeze", Kinds: []ssa.Kind{"onnx::Unsqueeze"}, Apply: gatherUnsqueeze},
		{Name: "gather-one-squeeze", Kinds: []ssa.Kind{"onnx::Squeeze"}, Apply: gatherSqueeze},
		{Name: "scatter-all", Kinds: []ssa.Kind{"onnx::ScatterND"}, Apply: scatterAll},
		{Name: "gather-shape", Kinds: []ssa.Kind{"onnx::Gather", "onnx::Slice"}, Apply: s.gatherShape},
	}
}

// cut is what a Slice takes along an axis.
type cut struct {
	axis             int
	start, end, step int64
}

// cutsOf reads a Slice whose parameters are constants, sorted by axis.
func cutsOf(o *ssa.Op) ([]cut, bool) {
	n := rank(o.Operand(0))
	starts, ok1 := constInts(o.Operand(1))
	ends, ok2 := constInts(o.Operand(2))
	if n < 0 || !ok1 || !ok2 || len(starts) != len(ends) {
		return nil, false
	}
	axes, ok := sliceAxes(o, len(starts))
	if !ok {
		return nil, false
	}
	out := make([]cut, len(starts))
	for i := range out {
		a := axes[i]
		if a < 0 {
			a += int64(n)
		}
		out[i] = cut{int(a), starts[i], ends[i], stepOf(o, i)}
		if a < 0 || a >= int64(n) || out[i].step == 0 {
			return nil, false
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].axis < out[j].axis })
	return out, true
}

// sliceOperands makes the operands of a Slice.
func sliceOperands(r *rewrite.Rewriter, x *ssa.Value, cuts []cut) []*ssa.Value {
	var starts, ends, axes, steps []int64
	ones := true
	for _, c := range cuts {
		starts, ends, axes, steps = append(starts, c.start), append(ends, c.end), append(axes, int64(c.axis)), append(steps, c.step)
		ones = ones && c.step == 1
	}
	out := []*ssa.Value{x, ints(r, starts...), ints(r, ends...), ints(r, axes...)}
	if !ones {
		out = append(out, ints(r, steps...))
	}
	return out
}

// mergeSlices takes a part of a part at once. It is a gain if the first Slice goes in the end: all its users are Slices too.
func mergeSlices(r *rewrite.Rewriter, o *ssa.Op) bool {
	in := o.Operand(0).Def()
	if in == nil || in.Kind != "onnx::Slice" {
		return false
	}
	first, ok1 := cutsOf(in)
	second, ok2 := cutsOf(o)
	if !ok1 || !ok2 {
		return false
	}
	merged, ok := composeCuts(in.Operand(0).Tensor(), first, second)
	if !ok {
		return false
	}
	for u := range in.Result(0).Uses() {
		if u.Op() == nil || u.Op().Kind != "onnx::Slice" || u.Op().Operand(0) != in.Result(0) {
			return false
		}
		cuts, ok := cutsOf(u.Op())
		if !ok {
			return false
		}
		if _, ok := composeCuts(in.Operand(0).Tensor(), first, cuts); !ok {
			return false
		}
	}
	y := r.Create("onnx::Slice", sliceOperands(r, in.Operand(0), merged))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// sliceThenSplit cuts the whole once where each piece of a Split is cut in the same way, along other axes.
func sliceThenSplit(r *rewrite.Rewriter, o *ssa.Op) bool {
	if len(o.Results) < 2 {
		return false
	}
	var cuts []cut
	var pieces []*ssa.Op
	for i, v := range o.Results {
		var u *ssa.Op
		for use := range v.Uses() {
			if u != nil {
				return false
			}
			u = use.Op()
		}
		if u == nil || u.Kind != "onnx::Slice" || u.Operand(0) != v || u.Block() != o.Block() {
			return false
		}
		c, ok := cutsOf(u)
		if !ok || i > 0 && !slices.Equal(c, cuts) {
			return false
		}
		cuts, pieces = c, append(pieces, u)
	}
	along := o.AttrInt("axis", 0)
	if along < 0 {
		along += int64(rank(o.Operand(0)))
	}
	if slices.ContainsFunc(cuts, func(c cut) bool { return int64(c.axis) == along }) {
		return false
	}
	operands := o.Operands()
	operands[0] = r.Create("onnx::Slice", sliceOperands(r, o.Operand(0), cuts))
	parts := r.CreateN("onnx::Split", len(o.Results), operands, o.Attrs...)
	for i, u := range pieces {
		if !r.Fits(parts[i], u.Result(0)) {
			return false
		}
	}
	for i, u := range pieces {
		r.Replace(u, parts[i])
	}
	return true
}

func composeCuts(x *ssa.TensorType, first, second []cut) ([]cut, bool) {
	out := slices.Clone(first)
next:
	for _, b := range second {
		for i, a := range out {
			if a.axis != b.axis {
				continue
			}
			c, ok := compose(x, a, b)
			if !ok {
				return nil, false
			}
			out[i] = c
			continue next
		}
		out = append(out, b)
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].axis < out[j].axis })
	return out, true
}

// compose takes b of a along one axis of a known size.
func compose(x *ssa.TensorType, a, b cut) (cut, bool) {
	if n, known := x.Dims[a.axis].Int(); known {
		if a.step < 0 || b.step < 0 {
			return cut{}, false
		}
		from, to := formula.ClampSlice(a.start, a.end, a.step, n)
		size := max(0, (to-from+a.step-1)/a.step)
		f, t := formula.ClampSlice(b.start, b.end, b.step, size)
		count := max(0, (t-f+b.step-1)/b.step)
		if count == 0 {
			return cut{a.axis, 0, 0, 1}, true
		}
		step := a.step * b.step
		start := from + f*a.step
		return cut{a.axis, start, start + (count-1)*step + 1, step}, true
	}
	return cut{}, false
}

// pieces gives the known sizes of values along an axis.
func pieces(vs []*ssa.Value, axis int) ([]int64, bool) {
	out := make([]int64, len(vs))
	for i, v := range vs {
		t := v.Tensor()
		if t == nil || t.Rank() <= axis {
			return nil, false
		}
		n, ok := t.Dims[axis].Int()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// sliceConcat takes the operand of a Concat that a Slice cuts out again.
func sliceConcat(r *rewrite.Rewriter, o *ssa.Op) bool {
	in := o.Operand(0).Def()
	if in == nil || in.Kind != "onnx::Concat" {
		return false
	}
	cuts, ok := cutsOf(o)
	axis, okA := axisOf(in, "axis", 0, rank(in.Result(0)))
	if !ok || !okA || len(cuts) != 1 || cuts[0].axis != axis || cuts[0].step != 1 {
		return false
	}
	sizes, ok := pieces(in.Operands(), axis)
	if !ok {
		return false
	}
	total := int64(0)
	for _, n := range sizes {
		total += n
	}
	from, to := formula.ClampSlice(cuts[0].start, cuts[0].end, 1, total)
	at := int64(0)
	for i, n := range sizes {
		if from == at && to == at+n && n > 0 && r.Fits(in.Operand(i), o.Result(0)) {
			r.Replace(o, in.Operand(i))
			return true
		}
		at += n
	}
	return false
}

// slicesToSplit makes one Split of Slices that cover an axis without gap and overlap.
func slicesToSplit(r *rewrite.Rewriter, o *ssa.Op) bool {
	x := o.Operand(0)
	cuts, ok := cutsOf(o)
	if !ok || len(cuts) != 1 || cuts[0].step != 1 || x.HasOneUse() || isConst(x) {
		return false
	}
	axis := cuts[0].axis
	n, known := x.Tensor().Dims[axis].Int()
	if !known {
		return false
	}
	type part struct {
		from, to int64
		op       *ssa.Op
	}
	var parts []part
	for u := range x.Uses() {
		p := u.Op()
		if p == nil || p.Kind != "onnx::Slice" || p.Operand(0) != x || p.Block() != o.Block() {
			continue
		}
		c, ok := cutsOf(p)
		if !ok || len(c) != 1 || c[0].axis != axis || c[0].step != 1 {
			continue
		}
		from, to := formula.ClampSlice(c[0].start, c[0].end, 1, n)
		if from < to {
			parts = append(parts, part{from, to, p})
		}
		if len(parts) > 256 {
			return false
		}
	}
	sort.SliceStable(parts, func(i, j int) bool { return parts[i].from < parts[j].from })
	at := int64(0)
	sizes := make([]int64, len(parts))
	for i, p := range parts {
		if p.from != at {
			return false
		}
		at = p.to
		sizes[i] = p.to - p.from
	}
	if at != n || len(parts) < 2 {
		return false
	}
	// behind x, so that it comes before all of them
	before := o.Block().First()
	if x.Def() != nil && x.Def().Block() == o.Block() {
		before = x.Def().Next()
	}
	k := ints(r, sizes...)
	vs := r.CreateN("onnx::Split", len(sizes), []*ssa.Value{x, k}, onnx.Axis(axis))
	for i, p := range parts {
		if !r.Fits(vs[i], p.op.Result(0)) {
			return false
		}
	}
	r.Hoist(k.Def(), before)
	r.Hoist(vs[0].Def(), before)
	for i, p := range parts {
		r.Replace(p.op, vs[i])
	}
	return true
}

// flattenConcat takes over the operands of Concats along the same axis, and leaves out empty ones. The last one of a chain takes
// those of all at once: a chain is as long as the program.
func flattenConcat(r *rewrite.Rewriter, o *ssa.Op) bool {
	n := rank(o.Result(0))
	axis, ok := axisOf(o, "axis", 0, n)
	if !ok {
		return false
	}
	joins := func(v *ssa.Value) bool { // as an operand of a Concat along the axis
		d := v.Def()
		if d == nil || d.Kind != "onnx::Concat" || !v.HasOneUse() {
			return false
		}
		a, ok := axisOf(d, "axis", 0, n)
		return ok && a == axis
	}
	if y := o.Result(0); joins(y) {
		for u := range y.Uses() {
			if user := u.Op(); user != nil && user.Kind == "onnx::Concat" && rank(user.Result(0)) == n {
				if a, ok := axisOf(user, "axis", 0, n); ok && a == axis {
					return false
				}
			}
		}
	}
	var operands []*ssa.Value
	changed := false
	left := reversed(o.Operands()) // the next one is the last
	for len(left) > 0 {
		v := left[len(left)-1]
		left = left[:len(left)-1]
		if v != nil && joins(v) {
			left, changed = append(left, reversed(v.Def().Operands())...), true
			continue
		}
		if t := v.Tensor(); t != nil && t.Rank() == n && t.Dims[axis].Is(0) && o.NumOperands() > 1 {
			changed = true
			continue
		}
		operands = append(operands, v)
	}
	if !changed || len(operands) == 0 {
		return false
	}
	y := r.Create("onnx::Concat", operands, onnx.Axis(axis))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

func reversed(vs []*ssa.Value) []*ssa.Value {
	out := slices.Clone(vs)
	slices.Reverse(out)
	return out
}

// concatSplit finds that a Concat puts together what a Split took apart.
func concatSplit(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := o.Operand(0).Def()
	if d == nil || d.Kind != "onnx::Split" || len(d.Results) != o.NumOperands() {
		return false
	}
	n := rank(o.Result(0))
	a, ok1 := axisOf(o, "axis", 0, n)
	b, ok2 := axisOf(d, "axis", 0, n)
	if !ok1 || !ok2 || a != b || !slices.Equal(d.Results, o.Operands()) || !r.Fits(d.Operand(0), o.Result(0)) {
		return false
	}
	r.Replace(o, d.Operand(0))
	return true
}

// rotateByGather puts the pieces of a Split together in another order by one Gather: a roll.
func rotateByGather(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := o.Operand(0).Def()
	if d == nil || d.Kind != "onnx::Split" || len(d.Results) != o.NumOperands() || rank(o.Result(0)) == 1 {
		return false
	}
	a, ok1 := axisOf(o, "axis", 0, rank(o.Result(0)))
	b, ok2 := axisOf(d, "axis", 0, rank(d.Operand(0)))
	if !ok1 || !ok2 || a != b {
		return false
	}
	sizes, ok := pieces(d.Results, a)
	if !ok {
		return false
	}
	from, total := map[*ssa.Value]int64{}, int64(0)
	for i, v := range d.Results {
		from[v] = total
		total += sizes[i]
	}
	if total > maxLook {
		return false
	}
	var order []int64
	for _, v := range o.Operands() {
		at, ok := from[v]
		if !ok || !v.HasOneUse() {
			return false
		}
		n, _ := v.Tensor().Dims[a].Int()
		for k := range n {
			order = append(order, at+k)
		}
	}
	y := build(r).Gather(d.Operand(0), ints(r, order...), onnx.Axis(a))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// splitConcat finds that a Split takes apart what a Concat put together.
func splitConcat(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := o.Operand(0).Def()
	if d == nil || d.Kind != "onnx::Concat" || len(o.Results) != d.NumOperands() {
		return false
	}
	n := rank(o.Operand(0))
	a, ok1 := axisOf(o, "axis", 0, n)
	b, ok2 := axisOf(d, "axis", 0, n)
	if !ok1 || !ok2 || a != b {
		return false
	}
	sizes, ok1 := pieces(d.Operands(), a)
	back, ok2 := pieces(o.Results, a)
	if !ok1 || !ok2 || !slices.Equal(sizes, back) {
		return false
	}
	for i, v := range d.Operands() {
		if !r.Fits(v, o.Result(i)) {
			return false
		}
	}
	r.Replace(o, d.Operands()...)
	return true
}

// gatherUnsqueeze gathers by an index of rank 1 instead of restoring the axis that an index of rank 0 took.
func gatherUnsqueeze(r *rewrite.Rewriter, o *ssa.Op) bool {
	g := o.Operand(0).Def()
	if g == nil || g.Kind != "onnx::Gather" || !g.Result(0).HasOneUse() || rank(g.Operand(1)) != 0 || !isConst(g.Operand(1)) {
		return false
	}
	n := rank(g.Operand(0))
	axis, ok := axisOf(g, "axis", 0, n)
	u, okU := constOne(o.Operand(1))
	if u < 0 {
		u += int64(n)
	}
	if !ok || !okU || int(u) != axis {
		return false
	}
	index := onnx.ConstOf(g.Operand(1)).Reshape([]int64{1})
	y := build(r).Gather(g.Operand(0), constant(r, index), onnx.Axis(axis))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// gatherSqueeze gathers by an index of rank 0 instead of removing the axis of an index of rank 1, or of a Slice of one element.
func gatherSqueeze(r *rewrite.Rewriter, o *ssa.Op) bool {
	g := o.Operand(0).Def()
	if g == nil || !g.Result(0).HasOneUse() || g.Kind != "onnx::Gather" && g.Kind != "onnx::Slice" {
		return false
	}
	n := rank(g.Operand(0))
	a, okA := constOne(o.Operand(1))
	if a < 0 {
		a += int64(n)
	}
	if !okA || n < 0 {
		return false
	}
	var index *ssa.Value
	if g.Kind == "onnx::Gather" {
		axis, ok := axisOf(g, "axis", 0, n)
		k, okK := constOne(g.Operand(1))
		if !ok || !okK || rank(g.Operand(1)) != 1 || int(a) != axis {
			return false
		}
		index = constant(r, tensor.ScalarInt(k))
	} else {
		cuts, ok := cutsOf(g)
		if !ok || len(cuts) != 1 || cuts[0].axis != int(a) || cuts[0].step < 1 {
			return false
		}
		k := cuts[0].start
		if size, known := g.Operand(0).Tensor().Dims[a].Int(); known {
			k, _ = formula.ClampSlice(k, cuts[0].end, 1, size)
		} else if k < 0 && k != -1 || k >= 0 && cuts[0].end != k+1 || k == -1 && cuts[0].end != maxInt64 {
			return false
		}
		index = constant(r, tensor.ScalarInt(k))
	}
	y := build(r).Gather(g.Operand(0), index, onnx.Axis(a))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// gatherShape takes neighbouring sizes out of a shape by Shape itself, which has start and end from opset 15 on.
func (s *simplifier) gatherShape(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := o.Operand(0).Def()
	if s.opset < 15 || d == nil || d.Kind != "onnx::Shape" {
		return false
	}
	n := rank(d.Operand(0))
	if n < 0 || rank(o.Result(0)) != 1 {
		return false
	}
	clamp := func(a int64) int64 {
		if a < 0 {
			a += int64(n)
		}
		return min(max(a, 0), int64(n))
	}
	from, to := clamp(d.AttrInt("start", 0)), clamp(d.AttrInt("end", int64(n)))
	size := max(to-from, 0)
	if o.Kind == "onnx::Slice" {
		cuts, ok := cutsOf(o)
		if !ok || len(cuts) != 1 || cuts[0].step != 1 {
			return false
		}
		a, b := formula.ClampSlice(cuts[0].start, cuts[0].end, 1, size)
		from, to = from+a, from+max(a, b)
	} else {
		at, ok := constInts(o.Operand(1))
		if !ok || len(at) == 0 {
			return false
		}
		for i, k := range at {
			if k < 0 {
				k += size
			}
			if k < 0 || k >= size || i > 0 && k != at[0]+int64(i) {
				return false
			}
			at[i] = k
		}
		from, to = from+at[0], from+at[0]+int64(len(at))
	}
	y := build(r).Shape(d.Operand(0), onnx.Start(from), onnx.End(to))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// scatterAll takes the updates for what they are written into, if they are written to all rows in their order.
func scatterAll(r *rewrite.Rewriter, o *ssa.Op) bool {
	x, index, updates := o.Operand(0), o.Operand(1), o.Operand(2)
	t := x.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) == 0 || o.AttrStr("reduction", "none") != "none" || !ssa.SameType(x.Type, updates.Type) || !r.Fits(updates, o.Result(0)) || !countsUp(index, t.Dims[0]) {
		return false
	}
	r.Replace(o, updates)
	return true
}

// countsUp reports indices 0, 1, 2, ... up to a size, in a column.
func countsUp(v *ssa.Value, size sym.Expr) bool {
	t := v.Tensor()
	if t == nil || t.Rank() != 2 || !t.Dims[1].Is(1) {
		return false
	}
	if c, ok := constInts(v); ok {
		for i, e := range c {
			if e != int64(i) {
				return false
			}
		}
		return size.Is(int64(len(c)))
	}
	d := v.Def()
	if d == nil || !isReshape(d) {
		return false
	}
	count := definedBy(d.Operand(0), "onnx::Range")
	if count == nil || !allAre(count.Operand(0), 0) || !allAre(count.Operand(2), 1) {
		return false
	}
	limit, ok := onnx.SymOf(count.Operand(1))
	return ok && len(limit) == 1 && limit[0].Equal(size)
}
