package onnx

import (
	"github.com/aton-project/aton/ssa"
)

// shapeRows holds the operators on shapes, places and creation.
func shapeRows() map[string]row {
	return map[string]row{
		"CenterCropPad":   {class: Copies, infer: inferCenterCropPad, traits: moves, down: []Step{byBody(18)}},
		"Compress":        {class: Copies, infer: inferCompress, traits: moves, noStep: nothingElse},
		"Concat":          {class: Copies, infer: inferConcat, traits: moves, carries: allOperands, down: []Step{frontAxes(11, "axis")}, up: []Rise{was(4, "axis", ssa.Int(1))}},
		"Constant":        {infer: inferConstant, traits: moves, noGPU: beforeRun},
		"ConstantOfShape": {class: Copies, infer: inferConstantOfShape, limits: limitVector, traits: moves, down: []Step{express(9, constantOfShape)}},
		"DepthToSpace":    {class: Copies, infer: inferDepthSpace, traits: moves, down: []Step{bodyUnless(11, "mode", ssa.Str("DCR"))}, other: bodyOfAny},
		"Expand":          {class: Copies, infer: inferExpand, limits: limitShape, traits: moves, carries: operands(0), down: []Step{express(8, expand)}},
		"EyeLike":         {class: Copies, infer: inferLikeInput, traits: moves, down: []Step{express(9, eyeLike)}},
		"Flatten":         {class: Copies, infer: inferFlatten, traits: moves, carries: operands(0), down: []Step{frontAxes(11, "axis")}},
		"Gather":          {class: Copies, infer: inferGather, traits: moves, carries: operands(0), down: []Step{{11, frontIndices}, frontAxes(11, "axis")}},
		"GatherElements":  {class: Copies, infer: inferGatherElements, limits: limitGatherElements, traits: moves, carries: operands(0), down: []Step{express(11, gatherElements)}},
		"GatherND":        {class: Copies, infer: inferGatherND, traits: moves, carries: operands(0), down: []Step{{12, noBatch}, express(11, gatherND)}},
		"Identity":        {class: Copies, infer: inferIdentity, traits: moves, carries: operands(0)},
		"NonZero":         {class: Copies, infer: inferNonZero, traits: moves, noStep: nothingElse},
		"OneHot":          {class: Copies, infer: inferOneHot, traits: moves, down: []Step{express(9, oneHot)}, other: oneHotFallback},
		"Pad": {
			class: Copies, infer: inferPad,
			limits: (*infer).padLimits,
			traits: moves,
			down:   []Step{{19, padWrap}, {18, padAxes}, {11, padAttrs}},
			up:     []Rise{renamed(2, "paddings", "pads"), {11, padInputs}},
			other:  padByConcat,
		},
		"Range":           {class: Orders, infer: inferRange, down: []Step{byBody(11)}, off: ofOperand(4)},
		"Reshape":         {class: Copies, infer: inferReshape, limits: limitShape, traits: moves, carries: operands(0), down: []Step{{14, reshapeZero}}, up: []Rise{input(5, 1, "shape")}},
		"ReverseSequence": {class: Copies, infer: inferUnary, traits: moves, noStep: nothingElse},
		"Scatter":         {class: Copies, infer: inferUnary, up: []Rise{toKind(11, "ScatterElements")}, noStep: superseded, noKernel: superseded, noGPU: superseded},
		"ScatterElements": {class: byReduction, infer: inferUnary, limits: limitScatterElements, carries: withoutReduction, down: []Step{{18, scatterReductions}, {16, reductionIsNone}, {11, scatterElements}}},
		"ScatterND":       {class: byReduction, infer: inferUnary, carries: withoutReduction, down: []Step{{18, scatterReductions}, {16, reductionIsNone}, express(11, scatterND)}},
		"Shape":           {class: Copies, infer: inferShape, traits: moves, down: []Step{{15, shapeRange}}, noGPU: beforeRun},
		"Size":            {class: Copies, infer: inferSize, traits: moves, noGPU: beforeRun},
		"Slice":           {class: Copies, infer: inferSlice, limits: limitSlice, traits: moves, carries: operands(0), down: []Step{{11, sliceForward}, {10, sliceAttrs}}, up: []Rise{{10, sliceInputs}}},
		"SpaceToDepth":    {class: Copies, infer: inferDepthSpace, traits: moves, down: []Step{bodyUnless(28, "mode", ssa.Str("DCR"))}, other: bodyOfAny},
		"Split": {
			class: Copies, infer: inferSplit,
			traits:  moves,
			carries: operands(0),
			down:    []Step{{18, splitNumOutputs}, {13, splitAttr}, frontAxes(11, "axis")},
			up:      []Rise{input(13, 1, "split"), {18, splitEqually}},
		},
		"Squeeze":       {class: Copies, infer: inferSqueeze, traits: moves, carries: operands(0), down: []Step{{13, axesAttr}, frontAxes(11, "axes")}, up: []Rise{input(13, 1, "axes")}},
		"TensorScatter": {class: Copies, infer: inferUnary, traits: moves, down: []Step{byBody(24)}},
		"Tile":          {class: Copies, infer: inferTile, limits: limitShape, traits: moves, carries: operands(0), up: []Rise{{6, tileAxis}}},
		"Transpose":     {class: Copies, infer: inferTranspose, traits: moves, carries: operands(0)},
		"Trilu":         {class: Copies, infer: inferUnary, traits: moves, down: []Step{express(14, trilu)}},
		"Unique":        {class: Orders, infer: inferUnique, noStep: nothingElse},
		"Unsqueeze":     {class: Copies, infer: inferUnsqueeze, traits: moves, carries: operands(0), down: []Step{{13, axesAttr}, {11, frontUnsqueeze}}, up: []Rise{input(13, 1, "axes")}},
	}
}
