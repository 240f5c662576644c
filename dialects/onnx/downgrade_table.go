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
	"Clip":           {{11, clipAttrs}},
	"Cast":           {unsaid(24, "round_mode"), unsaid(19, "saturate")},
	"Dropout":        {{12, dropoutAttr}},

	// networks
	"Resize":             {{18, resizeAxes}, {13, resizeInputs}},
	"RoiAlign":           {{16, roiAlignMode}},
	"Softmax":            {{13, softmaxFlat}},
	"LogSoftmax":         {{13, softmaxFlat}},
	"Hardmax":            {{13, softmaxFlat}},
	"BatchNormalization": {without(14, "training_mode", ssa.Int(0))},
	"GridSample":         {{20, gridModes}},
	"DFT":                {{20, dftAxis}},
}
