package onnx

import (
	"github.com/aton-project/aton/ssa"
)

// shapeRows holds the operators on shapes, places and creation.
func shapeRows() map[string]row {
	return map[string]row{
		"CenterCropPad":   {infer: inferCenterCropPad, traits: moves, down: []Step{express(18, centerCropPad)}, noGPU: noEmitter},
		"Compress":        {infer: inferCompress, traits: moves, noStep: nothingElse, noGPU: bySize},
		"Concat":          {infer: inferConcat, traits: moves, carries: allOperands, down: []Step{frontAxes(11, "axis")}, up: []Rise{was(4, "axis", ssa.Int(1))}},
		"Constant":        {infer: inferConstant, traits: moves, noGPU: beforeRun},
		"ConstantOfShape": {infer: inferConstantOfShape, limits: limitVector, traits: moves, down: []Step{express(9, constantOfShape)}},
		"DepthToSpace":    {infer: inferDepthSpace, traits: moves, down: []Step{{11, columnsFirst}}, other: depthToSpace},
		"Expand":          {infer: inferExpand, limits: limitShape, traits: moves, carries: operands(0), down: []Step{express(8, expand)}},
		"EyeLike":         {infer: inferLikeInput, traits: moves, down: []Step{express(9, eyeLike)}},
		"Flatten":         {infer: inferFlatten, traits: moves, carries: operands(0), down: []Step{frontAxes(11, "axis")}},
		"Gather":          {infer: inferGather, traits: moves, carries: operands(0), down: []Step{{11, frontIndices}, frontAxes(11, "axis")}},
		"GatherElements":  {infer: inferGatherElements, limits: limitGatherElements, traits: moves, carries: operands(0), down: []Step{express(11, gatherElements)}},
		"GatherND":        {infer: inferGatherND, traits: moves, carries: operands(0), down: []Step{{12, noBatch}, express(11, gatherND)}},
		"Identity":        {infer: inferIdentity, traits: moves, carries: operands(0)},
		"NonZero":         {infer: inferNonZero, traits: moves, noStep: nothingElse, noGPU: bySize},
		"OneHot":          {infer: inferOneHot, traits: moves, down: []Step{express(9, oneHot)}, other: oneHotFallback},
		"Pad": {
			infer:  inferPad,
			limits: (*infer).padLimits,
			traits: moves,
			down:   []Step{{19, padWrap}, {18, padAxes}, {11, padAttrs}},
			up:     []Rise{renamed(2, "paddings", "pads"), {11, padInputs}},
			other:  padByConcat,
		},
		"Range":           {infer: inferRange, down: []Step{express(11, rangeByNonZero)}, off: ofOperand(4)},
		"Reshape":         {infer: inferReshape, limits: limitShape, traits: moves, carries: operands(0), down: []Step{{14, reshapeZero}}, up: []Rise{input(5, 1, "shape")}},
		"ReverseSequence": {infer: inferUnary, traits: moves, noStep: nothingElse},
		"Scatter":         {infer: inferUnary, up: []Rise{toKind(11, "ScatterElements")}, noStep: superseded, noKernel: superseded, noGPU: superseded},
		"ScatterElements": {infer: inferUnary, limits: limitScatterElements, carries: withoutReduction, down: []Step{{18, scatterReductions}, {16, reductionIsNone}, {11, scatterElements}}},
		"ScatterND":       {infer: inferUnary, carries: withoutReduction, down: []Step{{18, scatterReductions}, {16, reductionIsNone}, express(11, scatterND)}},
		"Shape":           {infer: inferShape, traits: moves, down: []Step{{15, shapeRange}}, noGPU: beforeRun},
		"Size":            {infer: inferSize, traits: moves, noGPU: beforeRun},
		"Slice":           {infer: inferSlice, limits: limitSlice, traits: moves, carries: operands(0), down: []Step{{11, sliceForward}, {10, sliceAttrs}}, up: []Rise{{10, sliceInputs}}},
		"SpaceToDepth":    {infer: inferDepthSpace, traits: moves, other: spaceToDepth},
		"Split": {
			infer:   inferSplit,
			traits:  moves,
			carries: operands(0),
			down:    []Step{{18, splitNumOutputs}, {13, splitAttr}, frontAxes(11, "axis")},
			up:      []Rise{input(13, 1, "split"), {18, splitEqually}},
		},
		"Squeeze":       {infer: inferSqueeze, traits: moves, carries: operands(0), down: []Step{{13, axesAttr}, frontAxes(11, "axes")}, up: []Rise{input(13, 1, "axes")}},
		"TensorScatter": {infer: inferUnary, traits: moves, down: []Step{express(24, tensorScatter)}, noGPU: noEmitter},
		"Tile":          {infer: inferTile, limits: limitShape, traits: moves, carries: operands(0), up: []Rise{{6, tileAxis}}},
		"Transpose":     {infer: inferTranspose, traits: moves, carries: operands(0)},
		"Trilu":         {infer: inferUnary, traits: moves, down: []Step{express(14, trilu)}},
		"Unique":        {infer: inferUnique, noStep: nothingElse, noGPU: bySize},
		"Unsqueeze":     {infer: inferUnsqueeze, traits: moves, carries: operands(0), down: []Step{{13, axesAttr}, {11, frontUnsqueeze}}, up: []Rise{input(13, 1, "axes")}},
	}
}
