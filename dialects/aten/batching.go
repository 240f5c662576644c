package aten

import "github.com/aton-project/aton/ssa"

// Batching is how torch.vmap calls an operator once for a whole batch. Package export has the rules.
type Batching int

// The batching rules that do not follow from a [Nature].
const (
	// NatureBatching follows from the nature.
	NatureBatching Batching = iota
	// BatchesInFront is of operators that take any dimensions in front of those that they read.
	BatchesInFront
	// CountsDims is of operators that count dimensions, which they then do from the end.
	CountsDims
	// AddsDim is CountsDims of a result that has one dimension more than self.
	AddsDim
	// SameRank is of operators on tensors of one rank that do not broadcast.
	SameRank
	// SameShape is of operators that want all batch dimensions in each tensor.
	SameShape
	// BroadcastsAlong is CountsDims of several tensors that broadcast.
	BroadcastsAlong
	// MatrixProduct, AddedProduct and OuterProduct are written as the product of matrices, its sum with a tensor, and the product of a column and a row.
	MatrixProduct
	AddedProduct
	OuterProduct
	// BatchesSamples makes the batch one with the samples of a transposed convolution, and GroupedConvolution has a group for each weight of a batch.
	BatchesSamples
	GroupedConvolution
	// FoldsImages makes the batch one with the samples of images that are padded.
	FoldsImages
	// ScalesBehind is of normalizations, whose batched weight and bias are applied behind them.
	ScalesBehind
	// ReducesBehind is of losses, which are pointwise but for a last sum or mean.
	ReducesBehind
	// PointwiseOrReduces is of operators that compare two tensors, or the elements of one.
	PointwiseOrReduces
	// ReadsOther is of operators that read the shape or the element type of a second tensor.
	ReadsOther
)

// BatchingOf is the batching rule of a built-in operator.
func BatchingOf(k ssa.Kind) Batching { return row(k).Batching }
