package onnx

import (
	"slices"

	"github.com/aton-project/aton/ssa"
)

// Domains are the dialects of domains besides the default one of which the effects of operators are known. Operators of other domains may do anything.
func Domains() []ssa.Dialect {
	return []ssa.Dialect{domain{"ai.onnx.ml", nil}, domain{"com.microsoft", pureMicrosoft}}
}

// domain is a dialect of operators whose effects alone are known.
type domain struct {
	name string
	pure map[string]bool // nil for all
}

func (d domain) Namespace() string { return d.name }

func (d domain) Info(o *ssa.Op) (ssa.OpInfo, bool) {
	if d.pure != nil && !d.pure[o.Kind.Name()] {
		return ssa.OpInfo{Effects: ssa.Unknown}, false
	}
	return ssa.OpInfo{Effects: ssa.Pure}, true
}

func (d domain) Verify(*ssa.Op) error { return nil }

// pureMicrosoft are operators of onnxruntime 1.32 (docs/ContribOperators.md there) that compute their results from their operands and do nothing else. Left
// out are those that draw random numbers, write to a cache that they are given, or run what another compiler made.
var pureMicrosoft = setOf(
	"Attention", "BeamSearch", "BiasAdd", "BiasGelu", "BiasSoftmax", "BiasSplitGelu", "BifurcationDetector", "CDist", "ComplexMul", "ComplexMulConj", "ConvTransposeWithDynamicPads",
	"CropAndResize", "DequantizeBFP", "DequantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "DynamicTimeWarping", "EmbedLayerNormalization", "ExpandDims",
	"FastGelu", "FusedConv", "FusedGemm", "FusedMatMul", "FusedMatMulActivation", "GatedRelativePositionBias", "GatherBlockQuantized", "GatherND", "Gelu", "GemmFastGelu", "GreedySearch",
	"GemmFloat8", "GemmaRotaryEmbedding", "GridSample", "GroupNorm", "GroupQueryAttention", "Inverse", "Irfft", "IsAllFinite", "LongformerAttention", "MatMulBnb4",
	"MatMulFpQ4", "MatMulInteger16", "MatMulIntegerToFloat", "MatMulNBits", "MaxpoolWithMask", "MoE", "MulInteger", "MultiHeadAttention", "MurmurHash3",
	"NGramRepeatBlock", "NhwcConv", "NhwcFusedConv", "NhwcMaxPool", "PackedAttention", "PackedMultiHeadAttention", "Pad", "QAttention", "QEmbedLayerNormalization",
	"QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearConv", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul", "QLinearReduceMean",
	"QLinearSigmoid", "QLinearSoftmax", "QLinearWhere", "QMoE", "QuantizeBFP", "QuantizeLinear", "QuickGelu", "Range", "ReduceSumInteger", "RelativePositionBias",
	"RemovePadding", "RestorePadding", "Rfft", "RotaryEmbedding", "SampleOp", "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
	"SparseToDenseMatMul", "Tokenizer", "TransposeMatMul", "Trilu", "UnfoldTensor", "Unique", "WhisperBeamSearch", "WordConvEmbedding",
)

// An operator of another domain may have graphs as attributes, such as the decoder of BeamSearch: they are its blocks. The attribute Graphs has their names, and
// for each of these one with the suffix GraphInputs and one with GraphOutputs have the names of the block's parameters and returns, which the runtime asks for.
const (
	Graphs       = "graphs"
	GraphInputs  = "_inputs"
	GraphOutputs = "_outputs"
)

// NamedGraph is a block of an operator of another domain, and the names that its parameters and returns have in the file.
type NamedGraph struct {
	Name            string
	Inputs, Outputs []string
}

// NamedGraphs are the graphs among the attributes of an operator of another domain, in the order of its blocks.
func NamedGraphs(o *ssa.Op) []NamedGraph {
	if o.Kind.Namespace() == Namespace || len(o.Blocks) == 0 {
		return nil
	}
	texts := func(name string) (out []string) {
		l, _ := o.Attr(name)
		for _, e := range l.Elems {
			out = append(out, e.Str())
		}
		return out
	}
	var out []NamedGraph
	for _, name := range texts(Graphs) {
		out = append(out, NamedGraph{name, texts(name + GraphInputs), texts(name + GraphOutputs)})
	}
	return out
}

// NamesGraphs reports an attribute that the IR has for graphs, and a file has not.
func NamesGraphs(graphs []NamedGraph, attr string) bool {
	return attr == Graphs || slices.ContainsFunc(graphs, func(g NamedGraph) bool {
		return attr == g.Name+GraphInputs || attr == g.Name+GraphOutputs
	})
}

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}

// FusedMatMulAxes has, for each axis of what com.microsoft::FusedMatMul multiplies, the axis of its operand of rank n, 2 or more: transBatchA moves the first
// axis of A to the place before the last one, then transA exchanges the last two; so for B.
func FusedMatMulAxes(n int, trans, batch bool) []int64 {
	axes := make([]int64, n)
	for i := range axes {
		axes[i] = int64(i)
	}
	if batch {
		copy(axes, axes[1:n-1])
		axes[n-2] = 0
	}
	if trans {
		axes[n-1], axes[n-2] = axes[n-2], axes[n-1]
	}
	return axes
}
