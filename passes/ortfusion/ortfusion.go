// Package ortfusion is the pass that fuses operators of the standard into operators of onnxruntime.
package ortfusion

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass introduces operators of the domain com.microsoft. It runs after all passes that know only operators of the standard. The
// resulting file runs only in onnxruntime.
var Pass = passes.Pass{
	Name:  "ort-fusion",
	Takes: []passes.State{passes.Newest},
	Ends:  []passes.State{passes.Standard},
	Doc:   "fuse operators of the standard into operators of the domain com.microsoft, which only onnxruntime has",
	Before: `
graph(%x : Float(N, 5, 4), %z : Float(N, 5, 4), %w : Float(4)):
  %s : Float(N, 5, 4) = onnx::Add(%x, %z)
  %y : Float(N, 5, 4) = onnx::RMSNormalization[axis=-1, epsilon=0.5](%s, %w)
  return (%y, %s)`,
	After: `
graph(%x : Float(N, 5, 4), %z : Float(N, 5, 4), %w : Float(4)):
  %y : Float(N, 5, 4), %0 : Float(N, 5, 1), %1 : Float(N, 5, 1), %s : Float(N, 5, 4) = com.microsoft::SkipSimplifiedLayerNormalization[epsilon=0.5](%x, %z, %w)
  return (%y, %s)`,
	Demo: "for=gpu",
	Options: []passes.Option{
		{Name: "for", Default: "none", Values: []string{"none", "cpu", "gpu"}, Doc: "where the file runs: cpu omits operators that are slower there than what they replace; none does nothing"},
	},
	Run: passes.EachFunc(run),
}

// rules returns the rules for a CPU or a GPU. On a CPU, onnxruntime 1.32 takes up to six times as long for a residual sum
// that is fused with its normalization as for the two operators (tools/measure/bench/fused.py).
func rules(f *ssa.Func, gpu bool) []rewrite.Rule {
	var out []rewrite.Rule
	if gpu {
		out = append(out, rewrite.Rule{Name: "skip-normalization", Kinds: []ssa.Kind{"onnx::RMSNormalization", "onnx::LayerNormalization"}, Apply: skipNormalization})
	}
	return append(out, []rewrite.Rule{
		{Name: "bias-gelu", Kinds: []ssa.Kind{"onnx::Gelu"}, Apply: biasGelu},
		{Name: "quick-gelu", Kinds: []ssa.Kind{"onnx::Mul"}, Apply: quickGelu},
		{Name: "product-of-blocks", Kinds: []ssa.Kind{"onnx::MatMul", "onnx::Gemm"}, Apply: (&blocks{f: f}).product},
	}...)
}

func run(c *passes.Context, f *ssa.Func) error {
	device := c.Option("for")
	if device == "none" {
		return nil
	}
	set, err := rewrite.Compile(rules(f, device == "gpu")...)
	if err != nil {
		panic(err) // a table of ours is wrong
	}
	for _, name := range rewrite.Run(f, set, onnx.RewriteConfig(0)).Applied {
		c.Changed(name)
	}
	return nil
}

// float32Of returns the type of a float32 tensor of known rank, and nil for other values.
func float32Of(v *ssa.Value) *ssa.TensorType {
	if v == nil {
		return nil
	}
	t := v.Tensor()
	if t == nil || t.DType != tensor.Float32 || !t.Ranked {
		return nil
	}
	return t
}

// isVector reports whether a value has as many elements as the last axis of another one.
func isVector(v *ssa.Value, of *ssa.TensorType) bool {
	t := float32Of(v)
	return t != nil && len(t.Dims) == 1 && t.Dims[0].Equal(of.Dims[len(of.Dims)-1])
}

// maxApart bounds the operators between a sum and its normalization.
const maxApart = 64

// usedBetween reports whether an op between two ops of a block uses a value, or whether this is unknown.
func usedBetween(v *ssa.Value, from, to *ssa.Op) bool {
	o := from.Next()
	for range maxApart {
		if o == to {
			return false
		}
		if o == nil || len(o.Blocks) > 0 {
			return true
		}
		for i := range o.NumOperands() {
			if o.Operand(i) == v {
				return true
			}
		}
		o = o.Next()
	}
	return true
}

// skipNormalization fuses a residual sum and the normalization after it into one operator, which returns both.
func skipNormalization(r *rewrite.Rewriter, o *ssa.Op) bool {
	sum := o.Operand(0).Def()
	t := float32Of(o.Operand(0))
	if sum == nil || sum.Kind != "onnx::Add" || sum.Block() != o.Block() || t == nil || len(t.Dims) != 3 || len(o.Results) != 1 {
		return false
	}
	if a := o.AttrInt("axis", -1); a != -1 && a != 2 {
		return false
	}
	if !ssa.SameType(sum.Operand(0).Type, t) || !ssa.SameType(sum.Operand(1).Type, t) || !isVector(o.Operand(1), t) || usedBetween(sum.Result(0), sum, o) {
		return false
	}
	kind := ssa.Kind("com.microsoft::SkipSimplifiedLayerNormalization")
	operands := []*ssa.Value{sum.Operand(0), sum.Operand(1), o.Operand(1)}
	if o.Kind == "onnx::LayerNormalization" {
		kind = "com.microsoft::SkipLayerNormalization"
		if bias := o.Operand(2); bias != nil {
			if !isVector(bias, t) {
				return false
			}
			operands = append(operands, bias)
		}
	}
	attrs := []ssa.Attr{{Name: "epsilon", Value: ssa.Float(o.AttrFloat("epsilon", 1e-5))}}
	vs := r.CreateN(kind, 4, operands, attrs...)
	stat := ssa.Tensor(tensor.Float32, t.Dims[0], t.Dims[1], sym.Const(1))
	vs[0].Type, vs[1].Type, vs[2].Type, vs[3].Type = o.Result(0).Type, stat, stat, sum.Result(0).Type
	r.Replace(sum, vs[3])
	r.Replace(o, vs[0])
	return true
}

// single replaces an operator by one with a single result.
func single(r *rewrite.Rewriter, o *ssa.Op, kind ssa.Kind, operands []*ssa.Value, attrs ...ssa.Attr) bool {
	y := r.Create(kind, operands, attrs...)
	y.Type = o.Result(0).Type
	r.Replace(o, y)
	return true
}

// biasGelu fuses the sum of a product and its bias with the Gelu after it.
func biasGelu(r *rewrite.Rewriter, o *ssa.Op) bool {
	sum := o.Operand(0).Def()
	if sum == nil || sum.Kind != "onnx::Add" || !sum.Result(0).HasOneUse() || o.AttrStr("approximate", "none") != "none" {
		return false
	}
	t := float32Of(sum.Operand(0))
	if t == nil || len(t.Dims) == 0 || !isVector(sum.Operand(1), t) || !ssa.SameType(t, o.Result(0).Type) {
		return false
	}
	return single(r, o, "com.microsoft::BiasGelu", sum.Operands())
}

// quickGelu fuses x * sigmoid(alpha * x).
func quickGelu(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i := range 2 {
		x, gate := o.Operand(i), o.Operand(1-i)
		if gate.Def() == nil || gate.Def().Kind != "onnx::Sigmoid" || !gate.HasOneUse() || float32Of(x) == nil || !ssa.SameType(x.Type, o.Result(0).Type) {
			continue
		}
		alpha, in := 1.0, gate.Def().Operand(0)
		if in != x {
			scale := in.Def()
			if scale == nil || scale.Kind != "onnx::Mul" || scale.Operand(0) != x || !in.HasOneUse() {
				continue
			}
			k := onnx.ConstOf(scale.Operand(1))
			if k == nil || !k.HasData() || k.NumElements() != 1 {
				continue
			}
			alpha = k.Float64s()[0]
		}
		return single(r, o, "com.microsoft::QuickGelu", []*ssa.Value{x}, ssa.Attr{Name: "alpha", Value: ssa.Float(alpha)})
	}
	return false
}
