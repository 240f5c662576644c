package onnx

// controlRows holds the operators on control flow, sequences and optionals.
func controlRows() map[string]row {
	return map[string]row{
		"ConcatFromSequence": {infer: inferConcatFromSequence, noStep: noSuchType, noKernel: inInterpreter},
		"If":                 {infer: inferIf, down: []Step{{11, sameRanks}}, noKernel: inInterpreter},
		"Loop":               {infer: inferLoop, down: []Step{{11, loopCarries}}, noKernel: inInterpreter},
		"Optional":           {infer: inferOptional, noStep: noSuchType, noKernel: inInterpreter},
		"OptionalGetElement": {infer: inferGetElement, noStep: noSuchType, noKernel: inInterpreter},
		"OptionalHasElement": {infer: inferHasElement, down: []Step{{18, hasElement}}, noStep: noSuchType, noKernel: inInterpreter},
		"Scan": {
			infer:    inferScan,
			down:     []Step{{9, scanBatched}},
			up:       []Rise{{9, scanOfBatch}},
			noStep:   "before 9 a Scan took a batch",
			noKernel: inInterpreter,
		},
		"SequenceAt":        {infer: inferSequenceAt, noStep: noSuchType, noKernel: inInterpreter},
		"SequenceConstruct": {infer: inferSequenceConstruct, noStep: noSuchType, noKernel: inInterpreter},
		"SequenceEmpty":     {infer: inferSequenceEmpty, noStep: noSuchType, noKernel: inInterpreter},
		"SequenceErase":     {infer: inferSequenceErase, noStep: noSuchType, noKernel: inInterpreter},
		"SequenceInsert":    {infer: inferSequenceInsert, noStep: noSuchType, noKernel: inInterpreter},
		"SequenceLength":    {infer: inferSequenceLength, noStep: noSuchType, noKernel: inInterpreter},
		"SequenceMap":       {infer: inferSequenceMap, noStep: noSuchType, noKernel: inInterpreter},
		"SplitToSequence":   {infer: inferSplitToSequence, noStep: noSuchType, noKernel: inInterpreter},
	}
}
