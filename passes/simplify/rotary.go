package simplify

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/sym"
)

// rotary holds the rules that find RotaryEmbedding in its parts: x * cos + rotate_half(x) * sin, where the two halves of cos, and
// those of sin, are the same.
func (s *simplifier) rotary() []rewrite.Rule {
	return s.from(fusedOpset, []rewrite.Rule{
		{Name: "rotary-embedding", Kinds: []ssa.Kind{"onnx::Add"}, Apply: rotaryEmbedding, Rounds: true},
	})
}

// rotaryEmbedding finds it on [batch, heads, length, size], with angles for each place.
func rotaryEmbedding(r *rewrite.Rewriter, o *ssa.Op) bool {
	dims := dimsOf(o.Result(0), 4)
	if dims == nil {
		return false
	}
	for i := range 2 {
		plain, turned := definedBy(o.Operand(i), "onnx::Mul"), definedBy(o.Operand(1-i), "onnx::Mul")
		if plain == nil || turned == nil {
			return false
		}
		for j := range 2 {
			x := rotatedHalf(turned.Operand(j))
			if x == nil || plain.Operand(0) != x && plain.Operand(1) != x || !ssa.SameType(x.Type, o.Result(0).Type) {
				continue
			}
			cos, sin := angles(r, other(plain, x), x), angles(r, turned.Operand(1-j), x)
			if cos == nil || sin == nil {
				continue
			}
			y := build(r).RotaryEmbedding(x, cos, sin, nil)
			if !r.Fits(y, o.Result(0)) {
				return false
			}
			r.Replace(o, y)
			return true
		}
	}
	return false
}

// rotatedHalf finds x in Concat(-x2, x1) along the last axis, where x1 and x2 are its halves; nil if v is something else.
func rotatedHalf(v *ssa.Value) *ssa.Value {
	c := definedBy(v, "onnx::Concat")
	if c == nil || c.NumOperands() != 2 {
		return nil
	}
	n := rank(v)
	if a, ok := axisOf(c, "axis", 0, n); !ok || a != n-1 {
		return nil
	}
	neg := definedBy(c.Operand(0), "onnx::Neg")
	split := definedBy(c.Operand(1), "onnx::Split")
	if neg == nil || split == nil || len(split.Results) != 2 || split.Result(0) != c.Operand(1) || split.Result(1) != neg.Operand(0) {
		return nil
	}
	a, ok := axisOf(split, "axis", 0, n)
	first, second := dimsOf(split.Result(0), n), dimsOf(split.Result(1), n)
	if !ok || a != n-1 || first == nil || second == nil || !first[n-1].Equal(second[n-1]) {
		return nil
	}
	return split.Operand(0)
}

// angles makes [batch, length, pairs] of a factor of x, [batch, heads, length, size], that is the same for all heads and in both
// halves of the last axis; nil if it is not.
func angles(r *rewrite.Rewriter, v, x *ssa.Value) *ssa.Value {
	t := v.Tensor()
	xd := x.Tensor().Dims
	if t == nil || !t.Ranked || len(t.Dims) < 2 || len(t.Dims) > 4 || t.DType != x.DType() {
		return nil
	}
	dims := make([]sym.Expr, 4-len(t.Dims), 4)
	for i := range dims {
		dims[i] = sym.Const(1)
	}
	dims = append(dims, t.Dims...)
	if !dims[1].Is(1) || !dims[2].Equal(xd[2]) || !dims[3].Equal(xd[3]) || !dims[0].Is(1) && !dims[0].Equal(xd[0]) {
		return nil
	}
	v = half(r, v, maxChain*2)
	if v == nil {
		return nil
	}
	switch rank(v) {
	case 4:
		v = build(r).Squeeze(v, ints(r, 1))
	case 2:
		v = build(r).Unsqueeze(v, ints(r, 0))
	}
	if !dims[0].Equal(xd[0]) { // onnxruntime does not repeat them along the batch
		var batch *ssa.Value
		if n, ok := xd[0].Int(); ok {
			batch = ints(r, n)
		} else {
			batch = build(r).Shape(x, onnx.Start(0), onnx.End(1))
		}
		v = build(r).Expand(v, build(r).Concat(0, batch, ints(r, 1, 1)))
	}
	if d := v.Tensor(); d.Rank() != 3 || !d.Dims[0].Equal(xd[0]) || !d.Dims[1].Equal(xd[2]) {
		return nil
	}
	return v
}

// half gives the first half of the last axis of a value whose second half is the same, nil if that is not known.
func half(r *rewrite.Rewriter, v *ssa.Value, depth int) *ssa.Value {
	n := rank(v)
	if n < 1 || depth == 0 {
		return nil
	}
	if t := onnx.ConstOf(v); t != nil {
		size := t.Shape[n-1]
		if !t.HasData() || size%2 != 0 || t.NumElements() == 0 || t.NumElements() > 1<<22 {
			return nil
		}
		e := t.Float64s()
		for i := range e {
			if int64(i)%size < size/2 && e[i] != e[int64(i)+size/2] {
				return nil
			}
		}
		return build(r).Slice(v, ints(r, 0), ints(r, size/2), ints(r, int64(n-1)), ints(r, 1))
	}
	d := v.Def()
	if d == nil {
		return nil
	}
	operands := d.Operands()
	switch d.Kind {
	case "onnx::Concat":
		if a, ok := axisOf(d, "axis", 0, n); ok && a == n-1 && len(operands) == 2 && operands[0] == operands[1] {
			return operands[0]
		}
		return nil
	case "onnx::Cos", "onnx::Sin", "onnx::Cast":
		operands[0] = half(r, operands[0], depth-1)
	case "onnx::Mul":
		if k, ok := scalarOf(operands[1]); !ok || k != k {
			return nil
		}
		operands[0] = half(r, operands[0], depth-1)
	case "onnx::Gather":
		if a, ok := axisOf(d, "axis", 0, rank(operands[0])); !ok || a == rank(operands[0])-1 {
			return nil
		}
		operands[0] = half(r, operands[0], depth-1)
	case "onnx::Unsqueeze":
		axes, ok := constInts(operands[1])
		for _, a := range axes {
			if a == -1 || a == int64(n-1) {
				return nil
			}
		}
		if !ok {
			return nil
		}
		operands[0] = half(r, operands[0], depth-1)
	case "onnx::Reshape": // that only adds or drops axes of size 1
		in, out := operands[0].Tensor(), v.Tensor()
		if in == nil || !in.Ranked || !out.Ranked || len(in.Dims) == 0 || !in.Dims[len(in.Dims)-1].Equal(out.Dims[n-1]) || !sameButOnes(in.Dims, out.Dims) {
			return nil
		}
		operands[0] = half(r, operands[0], depth-1)
		if operands[0] == nil {
			return nil
		}
		dims := append([]sym.Expr(nil), out.Dims...)
		dims[n-1] = operands[0].Tensor().Dims[rank(operands[0])-1]
		to, zero, ok := target(operands[0].Tensor().Dims, dims, fusedOpset)
		if !ok || zero {
			return nil
		}
		operands[1] = ints(r, to...)
	default:
		return nil
	}
	if operands[0] == nil {
		return nil
	}
	return r.Create(d.Kind, operands, d.Attrs...)
}

// sameButOnes reports that two shapes are the same without their axes of size 1.
func sameButOnes(a, b []sym.Expr) bool {
	wide := func(dims []sym.Expr) (out []sym.Expr) {
		for _, d := range dims {
			if !d.Is(1) {
				out = append(out, d)
			}
		}
		return out
	}
	a, b = wide(a), wide(b)
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			return false
		}
	}
	return true
}
