package onnx

import "github.com/aton-project/aton/ssa"

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
	"Attention", "BiasAdd", "BiasGelu", "BiasSoftmax", "BiasSplitGelu", "BifurcationDetector", "CDist", "ComplexMul", "ComplexMulConj", "ConvTransposeWithDynamicPads",
	"CropAndResize", "DequantizeBFP", "DequantizeLinear", "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "DynamicTimeWarping", "EmbedLayerNormalization", "ExpandDims",
	"FastGelu", "FusedConv", "FusedGemm", "FusedMatMul", "FusedMatMulActivation", "GatedRelativePositionBias", "GatherBlockQuantized", "GatherND", "Gelu", "GemmFastGelu",
	"GemmFloat8", "GemmaRotaryEmbedding", "GridSample", "GroupNorm", "GroupQueryAttention", "Inverse", "Irfft", "IsAllFinite", "LongformerAttention", "MatMulBnb4",
	"MatMulFpQ4", "MatMulInteger16", "MatMulIntegerToFloat", "MatMulNBits", "MaxpoolWithMask", "MoE", "MulInteger", "MultiHeadAttention", "MurmurHash3",
	"NGramRepeatBlock", "NhwcConv", "NhwcFusedConv", "NhwcMaxPool", "PackedAttention", "PackedMultiHeadAttention", "Pad", "QAttention", "QEmbedLayerNormalization",
	"QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat", "QLinearConv", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul", "QLinearReduceMean",
	"QLinearSigmoid", "QLinearSoftmax", "QLinearWhere", "QMoE", "QuantizeBFP", "QuantizeLinear", "QuickGelu", "Range", "ReduceSumInteger", "RelativePositionBias",
	"RemovePadding", "RestorePadding", "Rfft", "RotaryEmbedding", "SampleOp", "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization",
	"SparseToDenseMatMul", "Tokenizer", "TransposeMatMul", "Trilu", "UnfoldTensor", "Unique", "WordConvEmbedding",
)

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return set
}
