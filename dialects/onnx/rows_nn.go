package onnx

import (
	"github.com/aton-project/aton/ssa"
)

// nnRows holds the operators on layers of networks.
func nnRows() map[string]row {
	return map[string]row{
		"AffineGrid":  {infer: inferAffineGrid, down: []Step{byBody(20)}},
		"Attention":   {infer: inferAttention, named: namedAttention, limits: limitAttention, down: []Step{{25, attentionWindow}, {24, attentionPadding}, byBody(23)}},
		"AveragePool": {infer: inferPool, down: []Step{{19, poolDilated}, {10, poolCeil}}, other: averagePoolFallback},
		"BatchNormalization": {
			named:  namedBatchNormalization,
			infer:  inferBatchNorm,
			weighs: alongChannels,
			limits: (*infer).batchNormLimits,
			down:   []Step{bodyUnless(14, "training_mode", ssa.Int(0))},
			up: []Rise{
				only(7, "is_test", 1, 0, "statistics of the batch (is_test=0) cannot be told since opset 7"),
				{9, normElements},
				{14, normTraining},
			},
			off: ofOperand(4),
		},
		"CausalConvWithState": {infer: inferCausalConv, down: []Step{byBody(27)}},
		"Col2Im":              {infer: inferCol2Im, down: []Step{express(18, col2Im)}, other: columnsOfAny},
		"Conv":                {infer: inferConv, weighs: alongChannels},
		"ConvInteger":         {infer: inferConv, weighs: alongChannels, noStep: nothingElse},
		"ConvTranspose":       {infer: inferConvTranspose, weighs: alongChannels, limits: limitConvTranspose},
		"DeformConv":          {infer: inferConv, weighs: alongChannels, down: []Step{express(19, deformConv)}},
		"Dropout": {
			infer:  inferDropout,
			traits: moves,
			down:   []Step{{12, dropoutAttr}},
			up: []Rise{
				only(7, "is_test", 1, 0, "dropout in training (is_test=0) cannot be told since opset 7"),
				{10, dropoutMask},
				dropped(12, "ratio"), // it counts in training only, which these versions do not do
			},
			other: dropoutByMask,
		},
		"GRU":                       {infer: inferRNN, weighs: alongFeatures, up: []Rise{dropped(7, "output_sequence")}, other: recurrentByScan, off: sensitive},
		"GlobalAveragePool":         {infer: inferGlobalPool, other: bodyOfAny},
		"GlobalLpPool":              {infer: inferGlobalPool, up: []Rise{wholeNumber(2, "p")}, other: bodyOfAny},
		"GlobalMaxPool":             {class: Orders, infer: inferGlobalPool, other: bodyOfAny},
		"GridSample":                {infer: inferGridSample, down: []Step{{20, gridModes}, express(16, gridSample)}, other: gridSampleOfAny, up: []Rise{{20, linearModes}}},
		"GroupNormalization":        {infer: inferUnary, weighs: alongChannels, down: []Step{byBody(21)}, up: []Rise{{21, normChannels}}, off: sensitive},
		"Hardmax":                   {class: Orders, infer: inferUnary, limits: limitAxis, down: []Step{{13, softmaxFlat}}, up: []Rise{{13, flatSoftmax}}, other: bodyOfAny},
		"InstanceNormalization":     {infer: inferUnary, weighs: alongChannels, other: bodyOfAny, off: sensitive},
		"LRN":                       {infer: inferUnary, weighs: alongChannels, off: ofOperand(4)},
		"LSTM":                      {infer: inferRNN, weighs: alongFeatures, up: []Rise{dropped(7, "output_sequence")}, other: recurrentByScan, off: sensitive},
		"LayerNormalization":        {infer: inferLayerNorm, weighs: fromAxis, traits: early, spelled: 17, down: []Step{byBody(17)}, off: sensitive},
		"LinearAttention":           {infer: inferLinearAttention, limits: (*infer).linearAttentionLimits, down: []Step{{27, linearAttention}}, off: sensitive},
		"LogSoftmax":                {infer: inferUnary, limits: limitAxis, down: []Step{{13, softmaxFlat}}, up: []Rise{{13, flatSoftmax}}},
		"LpNormalization":           {infer: inferUnary, limits: limitAxis},
		"LpPool":                    {infer: inferPool, down: []Step{without(18, "ceil_mode", ssa.Int(0)), without(18, "dilations", ssa.Ints(1))}, up: []Rise{wholeNumber(2, "p")}},
		"MaxPool":                   {class: Orders, infer: inferPool, down: []Step{{10, poolCeil}, {8, poolPlaces}}, other: maxPoolFallback},
		"MaxRoiPool":                {infer: inferRoi, other: maxRoiPool},
		"MaxUnpool":                 {class: Copies, infer: inferMaxUnpool, noStep: nothingElse},
		"MeanVarianceNormalization": {infer: inferUnary, down: []Step{byBody(9)}, other: bodyOfAny, off: sensitive},
		"QLinearConv":               {infer: inferConv, weighs: alongChannels, noStep: nothingElse},
		"RMSNormalization":          {infer: inferRMSNorm, weighs: fromAxis, traits: early, spelled: 23, limits: limitAxis, down: []Step{byBody(23)}, off: sensitive},
		"RNN":                       {infer: inferRNN, weighs: alongFeatures, up: []Rise{dropped(7, "output_sequence")}, other: recurrentByScan, off: sensitive},
		"Resize": {
			infer:  inferResize,
			limits: (*infer).resizeLimits,
			down:   []Step{{18, resizeAxes}, {13, resizeInputs}, {11, resizeByScales}, {10, upsample}, {9, upsampleScale}},
			up:     []Rise{{11, resizeCoordinates}, {13, resizeAbsent}},
			off:    ofOperand(16),
		},
		"RoiAlign":        {class: Orders, infer: inferRoi, down: []Step{{16, roiAlignMode}, {10, roiAlignBefore}}, up: []Rise{was(16, "coordinate_transformation_mode", ssa.Str("output_half_pixel"))}, other: roiAlign},
		"RotaryEmbedding": {infer: inferUnary, down: []Step{byBody(23)}},
		"Softmax":         {infer: inferUnary, limits: limitAxis, down: []Step{{13, softmaxFlat}}, up: []Rise{{13, flatSoftmax}}},
		"Upsample":        {infer: inferResize, up: []Rise{{7, upsampleScales}, {9, scalesInput}, toKind(10, "Resize")}, noKernel: superseded, noGPU: superseded},
	}
}

// namedBatchNormalization has a runtime tell training by the three outputs.
func namedBatchNormalization(o *ssa.Op) int {
	if o.AttrInt("training_mode", 0) != 0 {
		return 3
	}
	return 0
}

// namedAttention has an Attention that takes past keys and values return the present ones, which onnxruntime asks for.
func namedAttention(o *ssa.Op) int {
	if o.Operand(4) != nil || o.Operand(5) != nil {
		return 3
	}
	return 0
}
