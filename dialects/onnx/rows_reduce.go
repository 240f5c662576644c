package onnx

// reduceRows holds the operators on reductions, sorting and products of matrices.
func reduceRows() map[string]row {
	return map[string]row{
		"ArgMax":          {class: Orders, infer: inferArgMax, down: []Step{{12, lastIndex}, frontAxes(11, "axis")}},
		"ArgMin":          {class: Orders, infer: inferArgMax, down: []Step{{12, lastIndex}, frontAxes(11, "axis")}},
		"CumProd":         {class: Ring, infer: inferUnary, down: []Step{express(26, cumProd)}},
		"CumSum":          {class: Ring, infer: inferUnary, down: []Step{express(11, cumSum)}},
		"Det":             {infer: inferDet, limits: limitDet, noStep: nothingElse},
		"Einsum":          {class: Ring, infer: inferEinsum, noStep: nothingElse},
		"Gemm":            {class: Ring, infer: inferGemm, down: []Step{{11, gemmBias}}, up: []Rise{dropped(7, "broadcast")}, other: gemmByMatMul},
		"MatMul":          {class: Ring, infer: inferMatMul, other: matMulByProducts},
		"MatMulInteger":   {infer: inferMatMul, noStep: nothingElse},
		"QLinearMatMul":   {infer: inferMatMul, noStep: nothingElse},
		"ReduceL1":        {infer: inferReduce, down: []Step{{18, reduceAxes}, frontAxes(11, "axes")}, up: []Rise{input(18, 1, "axes")}},
		"ReduceL2":        {infer: inferReduce, down: []Step{{18, reduceAxes}, frontAxes(11, "axes")}, up: []Rise{input(18, 1, "axes")}},
		"ReduceLogSum":    {infer: inferReduce, down: []Step{{18, reduceAxes}, frontAxes(11, "axes")}, up: []Rise{input(18, 1, "axes")}},
		"ReduceLogSumExp": {infer: inferReduce, down: []Step{{18, reduceAxes}, frontAxes(11, "axes")}, up: []Rise{input(18, 1, "axes")}},
		"ReduceMax":       {class: Orders, infer: inferReduce, down: []Step{{18, reduceAxes}, frontAxes(11, "axes")}, up: []Rise{input(18, 1, "axes")}},
		"ReduceMean":      {infer: inferReduce, down: []Step{{18, reduceAxes}, frontAxes(11, "axes")}, up: []Rise{input(18, 1, "axes")}},
		"ReduceMin":       {class: Orders, infer: inferReduce, down: []Step{{18, reduceAxes}, frontAxes(11, "axes")}, up: []Rise{input(18, 1, "axes")}},
		"ReduceProd":      {class: Ring, infer: inferReduce, down: []Step{{18, reduceAxes}, frontAxes(11, "axes")}, up: []Rise{input(18, 1, "axes")}},
		"ReduceSum":       {class: Ring, infer: inferReduce, down: []Step{{13, reduceAxes}, frontAxes(11, "axes")}, up: []Rise{input(13, 1, "axes")}},
		"ReduceSumSquare": {class: Ring, infer: inferReduce, down: []Step{{18, reduceAxes}, frontAxes(11, "axes")}, up: []Rise{input(18, 1, "axes")}},
		"TopK":            {class: Orders, infer: inferTopK, down: []Step{{11, topKLargest}, {10, topKAttr}}, up: []Rise{{10, topKInput}}},
	}
}
