package simplify

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
)

// moves holds the rules on Transpose.
func (s *simplifier) moves() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "sink-transpose", Kinds: []ssa.Kind{"onnx::Transpose"}, Apply: sinkTranspose},
		{Name: "join-transposes", Kinds: elementwise, Apply: joinTransposes},
		{Name: "squeeze-transposed", Kinds: []ssa.Kind{"onnx::Squeeze"}, Apply: squeezeTransposed},
		{Name: "gather-transposed", Kinds: []ssa.Kind{"onnx::Gather"}, Apply: gatherTransposed},
		{Name: "reduce-transposed", Kinds: reductions, Apply: reduceTransposed},
	}
}

var reductions = []ssa.Kind{"onnx::ReduceMean", "onnx::ReduceSum", "onnx::ReduceMax", "onnx::ReduceMin", "onnx::ReduceProd", "onnx::ReduceL1", "onnx::ReduceL2", "onnx::ReduceLogSum", "onnx::ReduceLogSumExp", "onnx::ReduceSumSquare"}

// scalarWith reports a binary elementwise op one of whose operands is a single element, and gives the place of the other.
func scalarWith(o *ssa.Op) (int, bool) {
	switch o.Kind {
	case "onnx::Add", "onnx::Sub", "onnx::Mul", "onnx::Div", "onnx::Pow":
	default:
		return 0, false
	}
	for i := range 2 {
		if t := o.Operand(1 - i).Tensor(); t != nil && t.Rank() == 0 {
			return i, true
		}
	}
	return 0, false
}

// sinkTranspose merges two Transposes that have only operators between them that treat all elements alike.
func sinkTranspose(r *rewrite.Rewriter, o *ssa.Op) bool {
	x := o.Operand(0)
	n := rank(x)
	if n < 0 {
		return false
	}
	var chain []*ssa.Op
	var at []int // operand that the chain goes through
	for v := x; ; {
		d := v.Def()
		if d == nil || len(chain) > 16 || d.Block() != o.Block() {
			return false
		}
		if d.Kind == "onnx::Transpose" {
			if len(chain) == 0 {
				return false // merge-transposes
			}
			break
		}
		if !v.HasOneUse() || len(d.Results) != 1 {
			return false
		}
		i := 0
		if !onnx.Pointwise(d.Kind) {
			var ok bool
			if i, ok = scalarWith(d); !ok {
				return false
			}
		}
		chain, at = append(chain, d), append(at, i)
		v = d.Operand(i)
		if rank(v) != n {
			return false
		}
	}
	last := len(chain) - 1
	inner := chain[last].Operand(at[last]).Def()
	p, q := permOf(inner, n), permOf(o, n)
	merged := make([]int64, n)
	for i := range merged {
		merged[i] = p[q[i]]
	}
	// with the inner one used elsewhere, only a pair that cancels is a gain
	if !inner.Result(0).HasOneUse() && !isIdentity(merged) {
		return false
	}
	y := inner.Operand(0)
	for i := last; i >= 0; i-- {
		operands := chain[i].Operands()
		operands[at[i]] = y
		y = r.Create(chain[i].Kind, operands, chain[i].Attrs...)
	}
	if !isIdentity(merged) {
		y = build(r).Transpose(y, onnx.Perm(merged...))
	}
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

func permOf(o *ssa.Op, n int) []int64 {
	l, _ := o.Attr("perm")
	return permutation(l, n)
}

func isIdentity(p []int64) bool {
	for i, v := range p {
		if int64(i) != v {
			return false
		}
	}
	return true
}

// joinTransposes makes f(Transpose(a), Transpose(b)) the Transpose of f(a, b): one op less.
func joinTransposes(r *rewrite.Rewriter, o *ssa.Op) bool {
	if o.Kind == "onnx::Where" || o.NumOperands() != 2 {
		return false
	}
	a, b := o.Operand(0).Def(), o.Operand(1).Def()
	if a == nil || b == nil || a == b || a.Kind != "onnx::Transpose" || b.Kind != "onnx::Transpose" || !a.Result(0).HasOneUse() || !b.Result(0).HasOneUse() {
		return false
	}
	n := rank(a.Operand(0))
	if n < 0 || rank(b.Operand(0)) != n {
		return false
	}
	p := permOf(a, n)
	if !slices.Equal(p, permOf(b, n)) {
		return false
	}
	y := r.Create(o.Kind, []*ssa.Value{a.Operand(0), b.Operand(0)}, o.Attrs...)
	y = build(r).Transpose(y, onnx.Perm(p...))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// reduceTransposed reduces what a Transpose got, where the axes that remain keep their order.
func reduceTransposed(r *rewrite.Rewriter, o *ssa.Op) bool {
	t := o.Operand(0).Def()
	if t == nil || t.Kind != "onnx::Transpose" || !t.Result(0).HasOneUse() {
		return false
	}
	n := rank(t.Operand(0))
	axes, ok := constInts(o.Operand(1))
	if n < 0 || !ok || len(axes) == 0 {
		return false
	}
	p := permOf(t, n)
	gone := make([]bool, n)
	moved := make([]int64, len(axes))
	for i, a := range axes {
		if a < 0 {
			a += int64(n)
		}
		if a < 0 || a >= int64(n) {
			return false
		}
		gone[a], moved[i] = true, p[a]
	}
	if o.AttrInt("keepdims", 1) != 0 {
		for i := range p { // axes of size 1 take no part, but their places do
			if int64(i) != p[i] && !(gone[i] && gone[p[i]]) {
				return false
			}
		}
	} else {
		last := int64(-1)
		for i := range p {
			if !gone[i] {
				if p[i] < last {
					return false
				}
				last = p[i]
			}
		}
	}
	slices.Sort(moved)
	y := r.Create(o.Kind, []*ssa.Value{t.Operand(0), ints(r, moved...)}, o.Attrs...)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// constOne gives the only element of an integer constant.
func constOne(v *ssa.Value) (int64, bool) {
	k, ok := constInts(v)
	if !ok || len(k) != 1 {
		return 0, false
	}
	return k[0], true
}

// axisOf is an axis attribute as a place from the front.
func axisOf(o *ssa.Op, name string, def int64, rank int) (int, bool) {
	a := o.AttrInt(name, def)
	if a < 0 {
		a += int64(rank)
	}
	return int(a), rank >= 0 && a >= 0 && a < int64(rank)
}

// squeezeTransposed squeezes before a Transpose what a change of shape before that can take in.
func squeezeTransposed(r *rewrite.Rewriter, o *ssa.Op) bool {
	t := o.Operand(0).Def()
	axes, ok := constInts(o.Operand(1))
	if t == nil || t.Kind != "onnx::Transpose" || !t.Result(0).HasOneUse() || !ok {
		return false
	}
	x := t.Operand(0)
	n := rank(x)
	if n < 0 || x.Def() == nil || !isReshape(x.Def()) || !x.HasOneUse() {
		return false
	}
	p := permOf(t, n)
	gone := make([]bool, n) // axes of x
	moved := make([]int64, len(axes))
	for i, a := range axes {
		if a < 0 {
			a += int64(n)
		}
		if a < 0 || a >= int64(n) || gone[p[a]] {
			return false
		}
		gone[p[a]], moved[i] = true, p[a]
	}
	place := make([]int64, n) // of the axes that stay
	k := int64(0)
	for i := range place {
		if place[i] = k; !gone[i] {
			k++
		}
	}
	var perm []int64
	for _, a := range p {
		if !gone[a] {
			perm = append(perm, place[a])
		}
	}
	slices.Sort(moved)
	y := build(r).Squeeze(x, ints(r, moved...))
	y = build(r).Transpose(y, onnx.Perm(perm...))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// gatherTransposed takes one place of an axis before the Transpose, where the other axes keep their order.
func gatherTransposed(r *rewrite.Rewriter, o *ssa.Op) bool {
	t := o.Operand(0).Def()
	if t == nil || t.Kind != "onnx::Transpose" || rank(o.Operand(1)) != 0 {
		return false
	}
	x := t.Operand(0)
	n := rank(x)
	a, ok := axisOf(o, "axis", 0, n)
	if !ok {
		return false
	}
	last := int64(-1)
	p := permOf(t, n)
	for i, q := range p {
		if i == a {
			continue
		}
		if q < last {
			return false
		}
		last = q
	}
	y := build(r).Gather(x, o.Operand(1), onnx.Axis(p[a]))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}
