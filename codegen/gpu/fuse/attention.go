package fuse

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// attends finds an attention as graphs before opset 23 have it: o multiplies the Softmax of products of queries and keys, or of what follows from these
// element by element, by values. It gives the operators that the kernel of o computes then, and nothing if o is no such product. All
// operands are batches of matrices, as those of heads are; free gives the group of a value that may be computed elsewhere, or nil.
func (g *group) attends(o *ssa.Op, free func(*ssa.Value) *group) (inner []*ssa.Op) {
	if o.Kind != "onnx::MatMul" || !batches(o) {
		return nil
	}
	type part struct {
		v *ssa.Value
		p *group
	}
	var parts []part
	// only gives the group of a value that has no more uses than those that the attention has for it.
	only := func(v *ssa.Value, uses int) *group {
		if p := free(v); p != nil && v.NumUses() == uses && len(v.Def().Results) == 1 {
			parts = append(parts, part{v, p})
			return p
		}
		return nil
	}
	weights := o.Operand(0)
	p := only(weights, 1)
	if p != nil && p.Root.Kind == "onnx::Cast" && len(p.Inlined) == 0 && p.Hero == nil {
		weights = p.Root.Operand(0)
		p = only(weights, 1)
	}
	found := &emit.Scores{}
	ofWeights, ofScores := 1, 1
	if p != nil && p.Root.Kind == "onnx::Where" && (p.Hero == nil || p.Inlined[p.Root.Operand(0)]) && allAre(p.Root.Operand(1), 0) {
		choice := p.Root
		weights, found.Zeros = choice.Operand(2), true
		cond := choice.Operand(0)
		switch {
		case p.Hero == nil && isNaN(cond, weights):
			found.NaNs, ofWeights = true, 2
			if !p.Inlined[cond] && only(cond, 1) == nil {
				return nil
			}
		case hiddenRows(cond, weights):
			ofScores = 2
			if p.Inlined[cond] { // with its reduction, as it goes along rows
				if p.Hero != cond.Def().Operand(0).Def() {
					return nil
				}
			} else if p := only(cond, 1); p == nil || p.Hero == nil && only(cond.Def().Operand(0), 1) == nil {
				return nil
			}
		default:
			return nil
		}
		p = only(weights, ofWeights)
	}
	if p == nil || p.Root.Kind != "onnx::Softmax" {
		return nil
	}
	softmax := p.Root
	scores := only(softmax.Operand(0), ofScores)
	if axis := softmax.AttrInt("axis", -1); scores == nil || axis != -1 && axis != int64(weights.Tensor().Rank()-1) {
		return nil
	}
	product := scores.Hero
	if product == nil {
		product = scores.Root
	}
	if product.Kind != "onnx::MatMul" || !batches(product) || scores.Scores != nil || !SameDims(product.Results[0], softmax.Operand(0)) {
		return nil
	}
	for i, v := range product.Operands() {
		for scores.Inlined[v] && emit.IsView(v.Def().Kind) { // what it reads through is there already
			v = v.Def().Operand(0)
		}
		if p := free(v); p == nil || p.Hero != nil || p.Scores != nil || !cheap(p, i == 0) || only(v, 1) == nil {
			continue
		}
		g.Inlined[v] = true
	}
	ops, reads := g.ops, len(g.reads)
	for _, x := range parts {
		ops += x.p.ops
		reads += len(x.p.reads)
	}
	if ops > maxOps || reads > maxOperands {
		g.Inlined = map[*ssa.Value]bool{}
		return nil
	}
	if scores.Root != product {
		g.Inlined[softmax.Operand(0)] = true
	}
	found.Product, found.Softmax = product, softmax
	g.Scores = found
	for _, x := range parts {
		g.include(x.v, x.p)
		inner = append(inner, x.p.Root)
		if x.p.Hero != nil {
			found.Ops = append(found.Ops, x.p.Hero)
		}
	}
	found.Ops = append(found.Ops, inner...)
	for _, x := range parts { // read by each other
		delete(g.reads, x.v)
	}
	return inner
}

// isNaN reports a value that tells where the weights are NaN.
func isNaN(cond, weights *ssa.Value) bool {
	return cond.Def() != nil && cond.Def().Kind == "onnx::IsNaN" && cond.Def().Operand(0) == weights
}

// hiddenRows reports a value that tells the rows of scores, of which weights are the Softmax, that are minus infinity throughout.
func hiddenRows(cond, weights *ssa.Value) bool {
	if cond.Def() == nil || cond.Def().Kind != "onnx::Equal" || !allAre(cond.Def().Operand(1), math.Inf(-1)) || weights.Def() == nil {
		return false
	}
	top := cond.Def().Operand(0).Def()
	if top == nil || top.Kind != "onnx::ReduceMax" || top.AttrInt("keepdims", 1) == 0 || top.Operand(0) != weights.Def().Operand(0) || top.Operand(1) == nil {
		return false
	}
	axes, ok := onnx.ConstInts(top.Operand(1))
	return ok && len(axes) == 1 && (axes[0] == -1 || axes[0] == int64(weights.Tensor().Rank()-1))
}

// allAre reports a constant all of whose elements are x.
func allAre(v *ssa.Value, x float64) bool {
	t := onnx.ConstOf(v)
	if t == nil || !t.HasData() || t.NumElements() == 0 {
		return false
	}
	for _, y := range t.Float64s() {
		if x != y {
			return false
		}
	}
	return true
}

// batches reports a product both operands of which are batches of matrices.
func batches(o *ssa.Op) bool {
	for _, v := range o.Operands() {
		if t := v.Tensor(); t == nil || !t.Ranked || t.Rank() < 3 {
			return false
		}
	}
	return true
}

// cheap reports a group that the kernel of an attention may compute where it reads queries, each of which it reads once, or keys, which it reads for
// each tile of queries.
func cheap(p *group, query bool) bool {
	light := func(k ssa.Kind) bool {
		switch k {
		case "onnx::Add", "onnx::Sub", "onnx::Mul", "onnx::Div", "onnx::Cast":
			return true
		}
		return emit.IsView(k) || query && (emit.InPlace(k) || k == "onnx::Concat")
	}
	for v := range p.Inlined {
		if !light(v.Def().Kind) {
			return false
		}
	}
	return light(p.Root.Kind)
}
