package onnx

import "github.com/aton-project/aton/ssa"

// downgrades holds the steps of each operator, newest first. An operator that
// is not here has had one encoding only since it exists, and is not expressed
// by others where it does not.
var downgrades = map[string][]Step{
	// reductions
	"ReduceSum":       {{13, reduceAxes}, frontAxes(11, "axes")},
	"ReduceMax":       {{18, reduceAxes}, frontAxes(11, "axes")},
	"ReduceMin":       {{18, reduceAxes}, frontAxes(11, "axes")},
	"ReduceMean":      {{18, reduceAxes}, frontAxes(11, "axes")},
	"ReduceProd":      {{18, reduceAxes}, frontAxes(11, "axes")},
	"ReduceL1":        {{18, reduceAxes}, frontAxes(11, "axes")},
	"ReduceL2":        {{18, reduceAxes}, frontAxes(11, "axes")},
	"ReduceLogSum":    {{18, reduceAxes}, frontAxes(11, "axes")},
	"ReduceLogSumExp": {{18, reduceAxes}, frontAxes(11, "axes")},
	"ReduceSumSquare": {{18, reduceAxes}, frontAxes(11, "axes")},
	"ArgMax":          {{12, lastIndex}, frontAxes(11, "axis")},
	"ArgMin":          {{12, lastIndex}, frontAxes(11, "axis")},
	"TopK":            {{11, topKLargest}, {10, topKAttr}},

	// shapes
	"Squeeze":   {{13, axesAttr}, frontAxes(11, "axes")},
	"Unsqueeze": {{13, axesAttr}, {11, frontUnsqueeze}},
	"Reshape":   {{14, reshapeZero}},
	"Flatten":   {frontAxes(11, "axis")},
	"Shape":     {{15, shapeRange}},
	"Split":     {{18, splitNumOutputs}, {13, splitAttr}, frontAxes(11, "axis")},
	"Slice":     {{11, sliceForward}, {10, sliceAttrs}},
	"Concat":    {frontAxes(11, "axis")},
	"Gather":    {{11, frontIndices}, frontAxes(11, "axis")},
	"Pad":       {{19, padWrap}, {18, padAxes}, {11, padAttrs}},
	"Range":     {express(11, rangeByNonZero)},

	"GatherElements":  {express(11, gatherElements)},
	"GatherND":        {{12, noBatch}, express(11, gatherND)},
	"ScatterElements": {{18, scatterReductions}, {16, reductionIsNone}, {11, scatterElements}},
	"ScatterND":       {{18, scatterReductions}, {16, reductionIsNone}, express(11, scatterND)},
	"CenterCropPad":   {express(18, centerCropPad)},
	"CumSum":          {express(11, cumSum)},
	"CumProd":         {express(26, cumProd)},

	// elementwise
	"Where":          {express(9, whereOld)},
	"Pow":            {{12, powTypes}},
	"IsNaN":          {express(9, isNaN)},
	"IsInf":          {express(10, isInf)},
	"Round":          {express(11, roundByFloor)},
	"Sign":           {express(9, signByOrder)},
	"Mod":            {express(10, modByDiv)},
	"GreaterOrEqual": {express(12, orEqual("Greater", "Less"))},
	"LessOrEqual":    {express(12, orEqual("Less", "Greater"))},
	"CastLike":       {express(15, castLike)},
	"Max":            {{8, sameShapes}},
	"Min":            {{8, sameShapes}},
	"Clip":           {{11, clipAttrs}},
	"Cast":           {unsaid(24, "round_mode"), unsaid(19, "saturate")},
	"Dropout":        {{12, dropoutAttr}},

	// functions of one element
	"Gelu":            {half(20, gelu)},
	"HardSwish":       {half(14, hardSwish)},
	"Mish":            {half(18, mish)},
	"Swish":           {half(24, swish)},
	"Celu":            {half(12, celu)},
	"Shrink":          {half(9, shrink)},
	"ThresholdedRelu": {half(10, thresholdedRelu)},
	"Erf":             {{9, throughDouble}},
	"Sinh":            {{9, throughDouble}},
	"Cosh":            {{9, throughDouble}},
	"Asinh":           {{9, throughDouble}},
	"Acosh":           {{9, throughDouble}},
	"Atanh":           {{9, throughDouble}},

	// creation
	"EyeLike":         {express(9, eyeLike)},
	"OneHot":          {express(9, oneHot)},
	"ConstantOfShape": {express(9, constantOfShape)},
	"Expand":          {express(8, expand)},
	"Trilu":           {express(14, trilu)},
	"Bernoulli":       {express(15, bernoulli)},

	// control flow
	"OptionalHasElement": {{18, hasElement}},
	"If":                 {{11, sameRanks}},
	"Loop":               {{11, loopCarries}},
	"Scan":               {{9, scanBatched}},

	// bits
	"BitwiseAnd": {express(18, bitwise("And"))},
	"BitwiseOr":  {express(18, bitwise("Or"))},
	"BitwiseXor": {express(18, bitwise("Xor"))},
	"BitwiseNot": {express(18, bitwiseNot)},
	"BitCast":    {express(26, bitCast)},

	// networks
	"RotaryEmbedding":           {express(23, rotaryEmbedding)},
	"AffineGrid":                {express(20, affineGrid)},
	"TensorScatter":             {express(24, tensorScatter)},
	"Attention":                 {{25, attentionWindow}, {24, attentionPadding}, {23, attention}},
	"LayerNormalization":        {{17, layerNormalization}},
	"GroupNormalization":        {express(21, groupNormalization)},
	"RMSNormalization":          {express(23, rmsNormalization)},
	"MeanVarianceNormalization": {express(9, meanVarianceNormalization)},
	"MaxPool":                   {{10, poolCeil}, {8, poolPlaces}},
	"AveragePool":               {{19, poolDilated}, {10, poolCeil}},
	"LpPool":                    {without(18, "ceil_mode", ssa.Int(0)), without(18, "dilations", ssa.Ints(1))},
	"Resize":                    {{18, resizeAxes}, {13, resizeInputs}},
	"RoiAlign":                  {{16, roiAlignMode}},
	"Gemm":                      {{11, gemmBias}},
	"Softmax":                   {{13, softmaxFlat}},
	"LogSoftmax":                {{13, softmaxFlat}},
	"Hardmax":                   {{13, softmaxFlat}},
	"BatchNormalization":        {without(14, "training_mode", ssa.Int(0))},
	"GridSample":                {{20, gridModes}, express(16, gridSample)},
	"Col2Im":                    {express(18, col2Im)},
	"DeformConv":                {express(19, deformConv)},
	"DFT":                       {{20, dftAxis}},
}
