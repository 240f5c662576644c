package simplify

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// reshapes holds the rules on operators that change the shape and keep the order of elements.
func (s *simplifier) reshapes() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "merge-reshapes", Kinds: []ssa.Kind{"onnx::Reshape", "onnx::Squeeze", "onnx::Unsqueeze", "onnx::Flatten", "onnx::Transpose"}, Apply: s.mergeReshapes},
		{Name: "product-between-reshapes", Kinds: []ssa.Kind{"onnx::Reshape", "onnx::Squeeze", "onnx::Unsqueeze"}, Apply: productBetween, Rounds: true},
		{Name: "product-of-vector", Kinds: []ssa.Kind{"onnx::Reshape", "onnx::Squeeze", "onnx::Unsqueeze"}, Apply: productOfVector, Rounds: true},
		{Name: "product-broadcasts", Kinds: []ssa.Kind{"onnx::MatMul"}, Apply: productBroadcasts},
		{Name: "constant-target", Kinds: []ssa.Kind{"onnx::Reshape"}, Apply: s.constantTarget},
		{Name: "constant-expand", Kinds: []ssa.Kind{"onnx::Expand"}, Apply: constantExpand},
		{Name: "constant-slice", Kinds: []ssa.Kind{"onnx::Slice"}, Apply: constantSlice},
		{Name: "constant-split", Kinds: []ssa.Kind{"onnx::Split"}, Apply: s.equalSplit},
	}
}

// reshapes reports an op that only changes the shape of operand 0.
func isReshape(o *ssa.Op) bool {
	switch o.Kind {
	case "onnx::Reshape", "onnx::Squeeze", "onnx::Unsqueeze", "onnx::Flatten":
		return true
	case "onnx::Transpose":
		// axes of size 1 may stand anywhere
		x := o.Operand(0).Tensor()
		if x == nil || !x.Ranked {
			return false
		}
		last := int64(-1)
		for _, p := range permOf(o, len(x.Dims)) {
			if x.Dims[p].Is(1) {
				continue
			}
			if p < last {
				return false
			}
			last = p
		}
		return true
	}
	return false
}

// mergeReshapes makes one Reshape of two changes of shape, or none if the first shape comes back.
func (s *simplifier) mergeReshapes(r *rewrite.Rewriter, o *ssa.Op) bool {
	if !isReshape(o) || o.Operand(0).Def() == nil {
		return false
	}
	in := o.Operand(0).Def()
	if !isReshape(in) {
		return false
	}
	x, out := in.Operand(0), o.Result(0)
	if xt := x.Tensor(); xt != nil && xt.Ranked && ssa.SameType(x.Type, out.Type) {
		r.Replace(o, x)
		return true
	}
	// otherwise it is a gain if the first one goes in the end
	for u := range in.Result(0).Uses() {
		if u.Op() == nil || !isReshape(u.Op()) || u.Op().Operand(0) != in.Result(0) {
			return false
		}
	}
	if y := s.reshapeTo(r, x, out); y != nil {
		r.Replace(o, y)
		return true
	}
	if o.Kind != "onnx::Reshape" {
		return false
	}
	// a computed target serves as well, unless it copies sizes from its input
	target, ok := onnx.SymOf(o.Operand(1))
	if !ok {
		return false
	}
	if o.AttrInt("allowzero", 0) == 0 {
		for _, e := range target {
			if e.Min() < 1 && !e.Is(-1) {
				return false
			}
		}
	}
	y := build(r).Reshape(x, o.Operand(1), o.Attrs...)
	if !r.Fits(y, out) {
		return false
	}
	r.Replace(o, y)
	return true
}

// reshapeTo makes the Reshape of x to the type of like by a constant target, nil if there is none.
func (s *simplifier) reshapeTo(r *rewrite.Rewriter, x, like *ssa.Value) *ssa.Value {
	in, out := x.Tensor(), like.Tensor()
	if in == nil || out == nil || !in.Ranked || !out.Ranked {
		return nil
	}
	t, zero, ok := target(in.Dims, out.Dims, s.opset)
	if !ok {
		return nil
	}
	var attrs []ssa.Attr
	if zero {
		attrs = []ssa.Attr{onnx.AllowZero(true)}
	}
	y := build(r).Reshape(x, ints(r, t...), attrs...)
	if !ssa.SameType(y.Type, like.Type) {
		return nil
	}
	return y
}

// target finds constants that Reshape turns dims in into dims out with: sizes,
// 0 for a size that stays in its place, one -1. A -1 divides by the other sizes, so
// none of them may be 0 at run time.
func target(in, out []sym.Expr, opset int) (t []int64, allowZero, ok bool) {
	t = make([]int64, len(out))
	var unknown []int // places of sizes that are no constants
	zeros := 0        // sizes that are 0
	copies := true    // all zeros and unknown sizes stay in their places
	for i, d := range out {
		n, known := d.Int()
		if known {
			t[i] = n
		}
		if known && n != 0 {
			continue
		}
		if known {
			zeros++
		} else {
			unknown = append(unknown, i)
		}
		copies = copies && i < len(in) && in[i].Equal(d)
	}
	switch {
	case len(unknown) == 0 && (zeros == 0 || copies):
		return t, false, true
	case len(unknown) == 0:
		return t, true, opset >= 14
	case zeros > 0:
		return t, false, copies
	case len(unknown) == 1:
		t[unknown[0]] = -1
		return t, false, true
	case copies:
		return t, false, true
	}
	hole := -1
	for _, i := range unknown {
		switch {
		case i < len(in) && in[i].Equal(out[i]):
			if out[i].Min() < 1 {
				return nil, false, false
			}
		case hole >= 0:
			return nil, false, false
		default:
			hole = i
			t[i] = -1
		}
	}
	return t, false, true
}

// constantTarget replaces the computed target of a Reshape by a constant.
func (s *simplifier) constantTarget(r *rewrite.Rewriter, o *ssa.Op) bool {
	if isConst(o.Operand(1)) {
		return false
	}
	y := s.reshapeTo(r, o.Operand(0), o.Result(0))
	if y == nil {
		return false
	}
	r.Replace(o, y)
	return true
}

// constantExpand replaces the computed target of an Expand by a constant: 1 leaves a size as it is.
func constantExpand(r *rewrite.Rewriter, o *ssa.Op) bool {
	in, out := o.Operand(0).Tensor(), o.Result(0).Tensor()
	if isConst(o.Operand(1)) || in == nil || out == nil || !in.Ranked || !out.Ranked {
		return false
	}
	shape := make([]int64, len(out.Dims))
	k := len(out.Dims) - len(in.Dims)
	for i, d := range out.Dims {
		n, known := d.Int()
		switch {
		case i >= k && d.Equal(in.Dims[i-k]):
			shape[i] = 1
		case known:
			shape[i] = n
		default:
			return false
		}
	}
	y := build(r).Expand(o.Operand(0), ints(r, shape...))
	if !ssa.SameType(y.Type, o.Result(0).Type) {
		return false
	}
	r.Replace(o, y)
	return true
}

const maxInt64 = 1<<63 - 1

// constantSlice replaces computed ends that are the whole size by the largest int64.
func constantSlice(r *rewrite.Rewriter, o *ssa.Op) bool {
	x := o.Operand(0).Tensor()
	ends, ok := onnx.SymOf(o.Operand(2))
	if isConst(o.Operand(2)) || !ok || x == nil || !x.Ranked || o.Operand(2).DType() != tensor.Int64 {
		return false
	}
	axes, okA := sliceAxes(o, len(ends))
	if !okA {
		return false
	}
	fixed := make([]int64, len(ends))
	for i, e := range ends {
		a := axes[i]
		if a < 0 {
			a += int64(len(x.Dims))
		}
		n, known := e.Int()
		switch {
		case known:
			fixed[i] = n
		case a >= 0 && a < int64(len(x.Dims)) && e.Equal(x.Dims[a]) && stepOf(o, i) > 0:
			fixed[i] = maxInt64
		default:
			return false
		}
	}
	operands := o.Operands()
	operands[2] = ints(r, fixed...)
	y := r.Create("onnx::Slice", operands)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// sliceAxes gives the axes of a Slice of n bounds.
func sliceAxes(o *ssa.Op, n int) ([]int64, bool) {
	if o.Operand(3) == nil {
		axes := make([]int64, n)
		for i := range axes {
			axes[i] = int64(i)
		}
		return axes, true
	}
	axes, ok := constInts(o.Operand(3))
	return axes, ok && len(axes) == n
}

// stepOf is step i of a Slice, 0 if it is not constant.
func stepOf(o *ssa.Op, i int) int64 {
	if o.Operand(4) == nil {
		return 1
	}
	if steps, ok := constInts(o.Operand(4)); ok && i < len(steps) {
		return steps[i]
	}
	return 0
}

// equalSplit replaces the computed sizes of a Split that are all equal by their number.
func (s *simplifier) equalSplit(r *rewrite.Rewriter, o *ssa.Op) bool {
	x := o.Operand(0).Tensor()
	if o.Operand(1) == nil || isConst(o.Operand(1)) || x == nil || !x.Ranked || s.opset < 18 {
		return false
	}
	sizes, ok := onnx.SymOf(o.Operand(1))
	a, okA := axisOf(o, "axis", 0, len(x.Dims))
	if !ok || !okA || len(sizes) == 0 {
		return false
	}
	for _, e := range sizes {
		if !e.Equal(sizes[0]) {
			return false
		}
	}
	if !x.Dims[a].Equal(sizes[0].Mul(sym.Const(int64(len(sizes))))) {
		return false
	}
	vs := r.CreateN("onnx::Split", len(o.Results), []*ssa.Value{o.Operand(0)}, onnx.Axis(a), onnx.NumOutputs(int64(len(sizes))))
	for i, v := range vs {
		if !r.Fits(v, o.Result(i)) {
			return false
		}
	}
	r.Replace(o, vs...)
	return true
}

// productBetween multiplies what there was before changes of shape, if MatMul broadcasts it to the shape that comes out in the end: axes of size 1 in
// front make no difference, nor does the shape of rows that one matrix is multiplied with.
func productBetween(r *rewrite.Rewriter, o *ssa.Op) bool {
	p := definedBy(o.Operand(0), "onnx::MatMul")
	if p == nil || !isReshape(o) || !p.Result(0).HasOneUse() || p.Block() != o.Block() {
		return false
	}
	a, b := before(p.Operand(0)), before(p.Operand(1))
	at, bt, out := a.Tensor(), b.Tensor(), o.Result(0).Tensor()
	if a == p.Operand(0) || !ranked(at) || !ranked(bt) || !ranked(out) || len(at.Dims) < 2 || len(bt.Dims) < 2 || len(out.Dims) < 2 || rank(p.Operand(0)) < 2 || rank(p.Operand(1)) < 2 {
		return false // a Reshape goes, none comes
	}
	from, to := p.Operand(0).Tensor(), p.Operand(1).Tensor()
	matrix := func(t *ssa.TensorType) bool { return len(withoutLeading(t.Dims)) == 2 }
	last := func(t *ssa.TensorType) sym.Expr { return t.Dims[len(t.Dims)-1] }
	rows := matrix(bt) && matrix(to) && last(at).Equal(last(from))
	if !equalDims(withoutLeading(bt.Dims), withoutLeading(to.Dims)) || !rows && !equalDims(withoutLeading(at.Dims), withoutLeading(from.Dims)) {
		return false
	}
	if !rows && !equalDims(withoutLeading(out.Dims), withoutLeading(p.Result(0).Tensor().Dims)) {
		return false
	}
	y := r.Create(p.Kind, []*ssa.Value{a, b})
	if !ssa.SameType(y.Type, o.Result(0).Type) {
		return false
	}
	r.Replace(o, y)
	return true
}

// productOfVector lets MatMul take a vector as it is, which a change of shape made a matrix of one column or row, where another one takes that axis
// away behind the product.
func productOfVector(r *rewrite.Rewriter, o *ssa.Op) bool {
	p := definedBy(o.Operand(0), "onnx::MatMul")
	if p == nil || !isReshape(o) || !p.Result(0).HasOneUse() || p.Block() != o.Block() || rank(p.Operand(0)) < 2 || rank(p.Operand(1)) < 2 {
		return false
	}
	for i := range 2 {
		v := before(p.Operand(i))
		t, matrix := v.Tensor(), p.Operand(i).Tensor()
		if !ranked(t) || len(t.Dims) != 1 {
			continue
		}
		if dims := withoutLeading(matrix.Dims); len(dims) != 2 || !dims[1-i].Equal(t.Dims[0]) || !dims[i].Is(1) {
			continue
		}
		operands := p.Operands()
		operands[i] = v
		y := r.Create(p.Kind, operands)
		if !ssa.SameType(y.Type, o.Result(0).Type) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}

// productBroadcasts removes a change of shape that puts axes of size 1 in front of an operand, if the other operand has as many axes.
func productBroadcasts(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i := range 2 {
		v := o.Operand(i)
		d := v.Def()
		if d == nil || !isReshape(d) || !addsLeadingOnes(d) || rank(d.Operand(0)) < 2 || rank(o.Operand(1-i)) < rank(v) {
			continue
		}
		operands := o.Operands()
		operands[i] = d.Operand(0)
		y := r.Create(o.Kind, operands)
		if !ssa.SameType(y.Type, o.Result(0).Type) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}

// before is the value whose shape a change of shape that nothing else uses changes, or v itself.
func before(v *ssa.Value) *ssa.Value {
	if d := v.Def(); d != nil && isReshape(d) && d.Kind != "onnx::Transpose" && v.HasOneUse() {
		return d.Operand(0)
	}
	return v
}

func ranked(t *ssa.TensorType) bool { return t != nil && t.Ranked }

// withoutLeading leaves out axes of size 1 in front of the last two.
func withoutLeading(dims []sym.Expr) []sym.Expr {
	for len(dims) > 2 && dims[0].Is(1) {
		dims = dims[1:]
	}
	return dims
}

func equalDims(a, b []sym.Expr) bool {
	return slices.EqualFunc(a, b, func(x, y sym.Expr) bool { return x.Equal(y) })
}
