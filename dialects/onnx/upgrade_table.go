package onnx

import (
	"slices"

	"github.com/aton-project/aton/ssa"
)

// upgrades holds the steps up of each operator, oldest first: the other half of downgrades. An operator that is not here
// reads today as it always did. What only widened the element types needs no step.
var upgrades = withHints(map[string][]Rise{
	// reductions
	"ReduceSum":       {input(13, 1, "axes")},
	"ReduceMax":       {input(18, 1, "axes")},
	"ReduceMin":       {input(18, 1, "axes")},
	"ReduceMean":      {input(18, 1, "axes")},
	"ReduceProd":      {input(18, 1, "axes")},
	"ReduceL1":        {input(18, 1, "axes")},
	"ReduceL2":        {input(18, 1, "axes")},
	"ReduceLogSum":    {input(18, 1, "axes")},
	"ReduceLogSumExp": {input(18, 1, "axes")},
	"ReduceSumSquare": {input(18, 1, "axes")},
	"TopK":            {{10, topKInput}},

	// shapes
	"Squeeze":   {input(13, 1, "axes")},
	"Unsqueeze": {input(13, 1, "axes")},
	"Reshape":   {input(5, 1, "shape")},
	"Tile":      {{6, tileAxis}},
	"Concat":    {was(4, "axis", ssa.Int(1))},
	"Split":     {input(13, 1, "split"), {18, splitEqually}},
	"Slice":     {{10, sliceInputs}},
	"Pad":       {renamed(2, "paddings", "pads"), {11, padInputs}},
	"Scatter":   {toKind(11, "ScatterElements")},

	// elementwise
	"Add":     {{7, broadcastAt}},
	"Sub":     {{7, broadcastAt}},
	"Mul":     {{7, broadcastAt}},
	"Div":     {{7, broadcastAt}},
	"Pow":     {{7, broadcastAt}},
	"And":     {{7, broadcastAt}},
	"Or":      {{7, broadcastAt}},
	"Xor":     {{7, broadcastAt}},
	"Equal":   {{7, broadcastAt}},
	"Greater": {{7, broadcastAt}},
	"Less":    {{7, broadcastAt}},
	"PRelu":   {{7, slopePerChannel}},
	"Selu":    {was(6, "alpha", ssa.Float(1.6732)), was(6, "gamma", ssa.Float(1.0507))},
	"Cast":    {{6, castByName}},
	"Clip":    {{11, clipInputs}},
	"Dropout": {
		only(7, "is_test", 1, 0, "dropout in training (is_test=0) cannot be told since opset 7"),
		{10, dropoutMask},
		dropped(12, "ratio"), // it counts in training only, which these versions do not do
	},

	// networks
	"BatchNormalization": {
		only(7, "is_test", 1, 0, "statistics of the batch (is_test=0) cannot be told since opset 7"),
		only(9, "spatial", 1, 1, "statistics for each element (spatial=0) cannot be told since opset 9"),
		{14, normTraining},
	},
	"GroupNormalization": {{21, normChannels}},
	"Gemm":               {dropped(7, "broadcast")},
	"GRU":                {dropped(7, "output_sequence")},
	"LSTM":               {dropped(7, "output_sequence")},
	"RNN":                {dropped(7, "output_sequence")},
	"LpPool":             {wholeNumber(2, "p")},
	"GlobalLpPool":       {wholeNumber(2, "p")},
	"Upsample":           {{7, upsampleScales}, {9, scalesInput}, toKind(10, "Resize")},
	"Resize":             {{11, resizeCoordinates}, {13, resizeAbsent}},
	"RoiAlign":           {was(16, "coordinate_transformation_mode", ssa.Str("output_half_pixel"))},
	"Softmax":            {{13, flatSoftmax}},
	"LogSoftmax":         {{13, flatSoftmax}},
	"Hardmax":            {{13, flatSoftmax}},
	"GridSample":         {{20, linearModes}},
	"DFT":                {{20, dftAxisInput}},

	// control flow
	"Scan": {refused(9, "the batched Scan of opset 8 cannot be told since opset 9")},
})

// withHints adds the step that drops consumed_inputs, a hint of what may be overwritten, for the operators that had it.
func withHints(table map[string][]Rise) map[string][]Rise {
	const hint = "consumed_inputs"
	for i := range schemas[:len(schemas)-1] {
		s, next := &schemas[i], &schemas[i+1]
		if s.Domain != Namespace || s.Attr(hint) == nil || next.Name != s.Name {
			continue
		}
		steps, at := table[s.Name], 0
		for at < len(steps) && steps[at].Opset < next.Since {
			at++
		}
		table[s.Name] = slices.Insert(steps, at, dropped(next.Since, hint))
	}
	return table
}
