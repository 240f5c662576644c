package onnx

// otherRows holds the operators on random numbers, quantization, signals, detection, losses and text.
func otherRows() map[string]row {
	return map[string]row{
		"Bernoulli":                 {infer: inferLikeInput, traits: random, down: []Step{byBody(15)}, noKernel: drawn},
		"BlackmanWindow":            {infer: inferWindow, down: []Step{byBody(17)}, off: ofOperand(2)},
		"DFT":                       {infer: inferDFT, down: []Step{{20, dftAxis}}, up: []Rise{{20, dftAxisInput}}, noStep: nothingElse},
		"DynamicQuantizeLinear":     {infer: inferDynamicQuantize, down: []Step{byBody(11)}},
		"HammingWindow":             {infer: inferWindow, down: []Step{byBody(17)}, off: ofOperand(2)},
		"HannWindow":                {infer: inferWindow, down: []Step{byBody(17)}, off: ofOperand(2)},
		"ImageDecoder":              {infer: inferImage, noStep: nothingElse, noKernel: "decoding pictures is not arithmetic", noGPU: byHost},
		"MelWeightMatrix":           {infer: inferMel, noStep: nothingElse, noGPU: "constant operands make a constant of it; of others the host finds the rows, which rounding decides"},
		"Multinomial":               {infer: inferMultinomial, traits: random, other: multinomial, noKernel: drawn},
		"NegativeLogLikelihoodLoss": {infer: inferLoss, limits: (*infer).lossLimits, down: []Step{byBody(12)}},
		"NonMaxSuppression":         {infer: inferNonMax, noStep: nothingElse},
		"QuantizeLinear":            {infer: inferQuantize, traits: moves, noStep: nothingElse},
		"RandomNormal":              {infer: inferRandom, traits: random, other: randomNormal, noKernel: drawn},
		"RandomNormalLike":          {infer: inferLikeInput, traits: random, other: randomNormal, noKernel: drawn},
		"RandomUniform":             {infer: inferRandom, traits: random, other: randomUniform, noKernel: drawn},
		"RandomUniformLike":         {infer: inferLikeInput, traits: random, other: randomUniform, noKernel: drawn},
		"RegexFullMatch":            {infer: inferIs, noStep: nothingElse, noKernel: ofText, noGPU: byHost},
		"STFT":                      {infer: inferSTFT, noStep: nothingElse},
		"SoftmaxCrossEntropyLoss":   {infer: inferLoss, down: []Step{byBody(12)}},
		"StringConcat":              {infer: inferStringConcat, noStep: nothingElse, noKernel: ofText, noGPU: byHost},
		"StringNormalizer":          {infer: inferStringNormalizer, noStep: nothingElse, noKernel: ofText, noGPU: byHost},
		"StringSplit":               {infer: inferStringSplit, noStep: nothingElse, noKernel: ofText, noGPU: byHost},
		"TfIdfVectorizer":           {infer: inferTfIdf, noStep: nothingElse, noKernel: ofText, noGPU: byHost},
	}
}
