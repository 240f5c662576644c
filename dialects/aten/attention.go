package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// attention holds scaled dot product attention (ATen/native/transformers).
var attention = Defs{
	"aten::scaled_dot_product_attention":                     {Doc: "softmax(q @ k.T * scale + mask) @ v", Batching: SameShape, Layout: AnyLayout, Autocast: LowerPrecision, Effects: drawsUnless("dropout_p"), Lower: func(l *Lowering) *ssa.Value { return l.sdpa("attn_mask").out }},
	"aten::_scaled_dot_product_attention_math":               {Doc: "attention and its weights", LowerN: func(l *Lowering) []*ssa.Value { a := l.sdpa("attn_mask"); return []*ssa.Value{a.out, a.weights()} }},
	"aten::_scaled_dot_product_flash_attention_for_cpu":      {Doc: "attention and the logarithms of the weights' sums", Layout: AnyLayout, LowerN: lowerFlash("attn_mask", 0)},
	"aten::_scaled_dot_product_flash_attention":              {Doc: "attention and the logarithms of the weights' sums", LowerN: lowerFlash("attn_mask", 7)},
	"aten::_scaled_dot_product_efficient_attention":          {Doc: "attention and the logarithms of the weights' sums", LowerN: lowerFlash("attn_bias", 2)},
	"aten::_scaled_dot_product_cudnn_attention":              {Doc: "attention and the logarithms of the weights' sums", LowerN: lowerFlash("attn_bias", 7)},
	"aten::_scaled_dot_product_fused_attention_overrideable": {Doc: "attention and the logarithms of the weights' sums", LowerN: lowerFlash("attn_bias", 7)},
	"aten::_native_multi_head_attention":                     {Doc: "multi-head attention of batch-first inputs with packed projections", LowerN: lowerNativeMHA},
	"aten::_transformer_encoder_layer_fwd":                   {Doc: "a transformer encoder layer on batch-first input", Lower: lowerEncoderLayer},
	"aten::_masked_softmax":                                  {Doc: "softmax over what a mask does not hide", Lower: lowerMaskedSoftmax},
	"aten::_nested_tensor_from_mask_left_aligned":            {Doc: "nothing that the mask keeps is behind what it hides", Lower: lowerLeftAligned},
	"aten::_nested_tensor_from_tensor_list":                  {Why: "ONNX has no nested tensors"},
}

// sdpaResult is an attention: its output, and the pieces that some overloads give as well.
type sdpaResult struct {
	l      *Lowering
	out    *ssa.Value
	probs  *ssa.Value
	scores *ssa.Value
	scale  *ssa.Value // of the products of queries and keys
}

func (a sdpaResult) weights() *ssa.Value { return a.probs }

func (l *Lowering) sdpa(maskName string) (res sdpaResult) {
	if l.HasArg("dropout_p") && l.Float("dropout_p") != 0 {
		l.Fail("attention with dropout; export the model in eval mode")
	}
	q, k, v := l.Tensor("query"), l.Tensor("key"), l.Tensor("value")
	d := l.DType(q)
	if !d.IsFloat() {
		l.Fail("attention of %v", d)
	}
	if d.Size() < 4 { // PyTorch's kernel accumulates in float32
		q, k, v = l.compute(q), l.compute(k), l.compute(v)
		half := d
		defer func() { res.out, res.probs = l.Cast(res.out, half), l.Cast(res.probs, half) }()
		d = tensor.Float32
	}
	r := l.Rank(q)
	if l.Bool("enable_gqa") {
		k, v = l.repeatHeads(k, q), l.repeatHeads(v, q)
	}
	mask := l.TensorOr(maskName)
	var scale *ssa.Value
	if l.IsNone("scale") {
		if e, ok := l.dimension(q, r-1).Int(); ok {
			scale = l.Like(q, 1/math.Sqrt(float64(e)))
		} else {
			scale = l.Reciprocal(l.Sqrt(l.Cast(l.sizeValue(l.sizeOf(q, r-1)), d)))
		}
	} else {
		scale = l.LikeNumber(q, l.Number("scale"))
	}
	scores := l.MatMul(l.Mul(q, scale), l.swapAxes(k, l.Rank(k)-1, l.Rank(k)-2))
	empty := false // a row may have nothing to attend to
	hidden := l.Like(q, math.Inf(-1))
	if constant := l.IsConst("is_causal"); !constant || l.Bool("is_causal") {
		// query i sees keys 0..i, counted from the start of both
		rows := l.unsqueeze(l.countTo(l.sizeOf(q, r-2)), 1)
		cols := l.unsqueeze(l.countTo(l.sizeOf(k, l.Rank(k)-2)), 0)
		later := l.Less(rows, cols)
		if !constant {
			later = l.And(later, l.Tensor("is_causal"))
		}
		scores = l.Where(later, hidden, scores)
	}
	if mask != nil {
		empty = true
		if l.DType(mask) == tensor.Bool {
			scores = l.Where(mask, scores, hidden)
		} else {
			scores = l.Add(scores, l.Cast(mask, d))
		}
	}
	p := l.Softmax(scores, onnx.Axis(-1))
	if empty {
		// PyTorch gives 0 where a row is hidden altogether (_safe_softmax).
		top := l.reduce("ReduceMax", scores, []int64{-1}, true)
		p = l.Where(l.Equal(top, hidden), l.Like(q, 0), p)
	}
	return sdpaResult{l, l.MatMul(p, v), p, scores, scale}
}

// repeatHeads repeats the heads (axis -3) of k as often as q has more of them.
func (l *Lowering) repeatHeads(k, q *ssa.Value) *ssa.Value {
	r := l.Rank(k)
	hk, hq := l.sizeOf(k, r-3), l.sizeOf(q, l.Rank(q)-3)
	if hk.Known && hq.Known && hk.Expr.Equal(hq.Expr) {
		return k
	}
	times := l.divSize(hq, hk)
	wide := l.unsqueeze(k, int64(r-2))
	shape := append(l.sizesOf(k, 0, r-2), times)
	shape = append(shape, l.sizesOf(k, r-2, r)...)
	wide = l.Expand(wide, l.sizeTensor(shape))
	out := append(l.sizesOf(k, 0, r-3), hq)
	return l.reshapeSizes(wide, append(out, l.sizesOf(k, r-2, r)...)...)
}

// lowerFlash gives the output, log-sum-exp, and placeholders for results that
// only the backward pass reads.
func lowerFlash(mask string, extra int) func(*Lowering) []*ssa.Value {
	return func(l *Lowering) []*ssa.Value {
		a := l.sdpa(mask)
		scores := a.scores
		if l.DType(scores).Size() < 4 {
			scores = l.Cast(scores, tensor.Float32)
		}
		lse := l.reduce("ReduceLogSumExp", scores, []int64{-1}, false)
		out := []*ssa.Value{a.out, lse}
		for i := range extra {
			if 2+i < len(l.Node.Results) && l.Node.Results[2+i].HasUses() {
				l.Fail("result %d exists for the backward pass only", 2+i)
			}
			out = append(out, l.scalarInt(tensor.Int64, 0))
		}
		return out
	}
}

// mhaArgs are the weights of multi-head attention with packed projections.
type mhaArgs struct {
	heads                    int64
	qkvW, qkvB, projW, projB *ssa.Value
	mask                     *ssa.Value
	maskType                 int64
	maskKnown                bool
}

// splitHeads makes (B, T, D) into (B, heads, T, D/heads).
func (l *Lowering) splitHeads(x *ssa.Value, heads int64) *ssa.Value {
	b, t, e := l.sizeOf(x, 0), l.sizeOf(x, 1), l.sizeOf(x, 2)
	x = l.reshapeSizes(x, b, t, ConstSize(heads), l.divSize(e, ConstSize(heads)))
	return l.transpose(x, 0, 2, 1, 3)
}

// nativeMHA is native_multi_head_attention_cpu: the output and the weights of each head.
func (l *Lowering) nativeMHA(q, k, v *ssa.Value, a mhaArgs) (out, probs *ssa.Value) {
	if l.Rank(q) != 3 {
		l.Fail("multi-head attention expects an input of rank 3, found %d", l.Rank(q))
	}
	D := l.static(q, 2)
	third := func(i int64) (w, b *ssa.Value) {
		return l.sliceC(a.qkvW, 0, i*D, (i+1)*D, 1), l.sliceC(a.qkvB, 0, i*D, (i+1)*D, 1)
	}
	var qkv [3]*ssa.Value
	if q == k && k == v {
		parts := l.Split(3, l.linear(q, a.qkvW, a.qkvB), l.i64(D, D, D), onnx.Axis(2))
		copy(qkv[:], parts)
	} else {
		for i, x := range []*ssa.Value{q, k, v} {
			w, b := third(int64(i))
			qkv[i] = l.linear(x, w, b)
		}
	}
	for i := range qkv {
		qkv[i] = l.splitHeads(qkv[i], a.heads)
	}
	query := l.scale(qkv[0], 1/math.Sqrt(float64(D/a.heads)))
	scores := l.MatMul(query, l.transpose(qkv[1], 0, 1, 3, 2))
	if a.mask != nil {
		a.mask = l.Cast(a.mask, tensor.Bool) // as PyTorch does: of floats, all that is not 0 hides
	}
	probs = l.maskedSoftmax(scores, a.mask, a.maskType, a.maskKnown)
	y := l.transpose(l.MatMul(probs, qkv[2]), 0, 2, 1, 3)
	y = l.reshapeSizes(y, l.sizeOf(q, 0), l.sizeOf(q, 1), ConstSize(D))
	return l.linear(y, a.projW, a.projB), probs
}

// maskedSoftmax is the softmax along the last axis of scores (B, H, T, S) of
// what the mask does not hide. Masks of kind 0 are (T, S), of kind 1 (B, S).
// A row that is hidden altogether gives NaN, as PyTorch's kernel does.
func (l *Lowering) maskedSoftmax(scores, mask *ssa.Value, kind int64, known bool) *ssa.Value {
	softmax := func(x *ssa.Value) *ssa.Value { return l.Softmax(x, onnx.Axis(-1)) }
	if mask == nil {
		return softmax(scores)
	}
	if l.Rank(mask) == 2 && l.Rank(scores) == 4 {
		switch {
		case !known:
			l.Fail("a mask without mask_type")
		case kind == 1:
			mask = l.unsqueeze(mask, 1, 2)
		}
	}
	if l.DType(mask) != tensor.Bool {
		l.Fail("a mask of %v", l.DType(mask))
	}
	return softmax(l.Where(mask, l.Like(scores, math.Inf(-1)), scores))
}

func lowerMaskedSoftmax(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	r := l.Rank(x)
	if !l.IsNone("dim") && l.Dim("dim", r) != r-1 {
		l.Fail("_masked_softmax along another axis than the last")
	}
	return l.maskedSoftmax(x, l.Tensor("mask"), l.IntOr("mask_type", 2), !l.IsNone("mask_type"))
}

func lowerLeftAligned(l *Lowering) *ssa.Value {
	mask := l.Cast(l.Tensor("mask"), tensor.Bool)
	if l.Rank(mask) != 2 {
		l.Fail("the mask of a nested tensor has rank 2, found %d", l.Rank(mask))
	}
	before, behind := l.sliceC(mask, 1, 0, -1, 1), l.sliceC(mask, 1, 1, math.MaxInt64, 1)
	return l.allTrue(l.Or(before, l.Not(behind)), nil, false)
}

func lowerNativeMHA(l *Lowering) []*ssa.Value {
	a := mhaArgs{
		heads: l.Int("num_head"), qkvW: l.Tensor("qkv_weight"), qkvB: l.Tensor("qkv_bias"),
		projW: l.Tensor("proj_weight"), projB: l.Tensor("proj_bias"),
		mask: l.TensorOr("mask"), maskType: l.IntOr("mask_type", 2), maskKnown: !l.IsNone("mask_type"),
	}
	out, probs := l.nativeMHA(l.Tensor("query"), l.Tensor("key"), l.Tensor("value"), a)
	if !l.Bool("need_weights") {
		return []*ssa.Value{out, l.emptyVector(l.DType(out))}
	}
	if l.Bool("average_attn_weights") {
		probs = l.reduce("ReduceMean", probs, []int64{1}, false)
	}
	return []*ssa.Value{out, probs}
}

func lowerEncoderLayer(l *Lowering) *ssa.Value {
	x := l.Tensor("src")
	a := mhaArgs{
		heads: l.Int("num_heads"), qkvW: l.Tensor("qkv_weight"), qkvB: l.Tensor("qkv_bias"),
		projW: l.Tensor("proj_weight"), projB: l.Tensor("proj_bias"),
		mask: l.TensorOr("mask"), maskType: l.IntOr("mask_type", 2), maskKnown: !l.IsNone("mask_type"),
	}
	eps, first := l.Number("eps"), l.Bool("norm_first")
	norm := func(v *ssa.Value, n string) *ssa.Value {
		return l.layerNorm(v, l.Tensor("norm_weight_"+n), l.Tensor("norm_bias_"+n), 1, eps)
	}
	h := x
	if first {
		h = norm(h, "1")
	}
	h, _ = l.nativeMHA(h, h, h, a)
	h = l.Add(h, x)
	if !first {
		h = norm(h, "1")
	}
	rest := h
	if first {
		h = norm(h, "2")
	}
	h = l.linear(h, l.Tensor("ffn_weight_1"), l.Tensor("ffn_bias_1"))
	if l.Bool("use_gelu") {
		h = l.Aten("aten::gelu", h)
	} else {
		h = l.Relu(h)
	}
	h = l.Add(l.linear(h, l.Tensor("ffn_weight_2"), l.Tensor("ffn_bias_2")), rest)
	if !first {
		h = norm(h, "2")
	}
	return h
}
