package onnx

// otherRows holds the operators on random numbers, quantization, signals, detection, losses and text.
func otherRows() map[string]row {
	return map[string]row{
		"Bernoulli":                 {infer: inferLikeInput, traits: random, down: []Step{express(15, bernoulli)}, noKernel: drawn},
		"BlackmanWindow":            {infer: inferWindow, noStep: nothingElse, off: ofOperand(2)},
		"DFT":                       {infer: inferDFT, down: []Step{{20, dftAxis}}, up: []Rise{{20, dftAxisInput}}, noStep: nothingElse},
		"DynamicQuantizeLinear":     {infer: inferDynamicQuantize, noStep: nothingElse},
		"HammingWindow":             {infer: inferWindow, noStep: nothingElse, off: ofOperand(2)},
		"HannWindow":                {infer: inferWindow, noStep: nothingElse, off: ofOperand(2)},
		"ImageDecoder":              {infer: inferImage, noStep: nothingElse, noKernel: "decoding pictures is not arithmetic", noGPU: byHost},
		"MelWeightMatrix":           {infer: inferMel, noStep: nothingElse, noGPU: "constant operands make a constant of it; of others the host finds the rows, which rounding decides"},
		"Multinomial":               {infer: inferMultinomial, traits: random, other: multinomial, noKernel: drawn},
		"NegativeLogLikelihoodLoss": {infer: inferLoss, limits: (*infer).lossLimits, noStep: nothingElse},
		"NonMaxSuppression":         {infer: inferNonMax, noStep: nothingElse},
		"QuantizeLinear":            {infer: inferQuantize, traits: moves, noStep: nothingElse},
		"RandomNormal":              {infer: inferRandom, traits: random, other: randomNormal, noKernel: drawn},
		"RandomNormalLike":          {infer: inferLikeInput, traits: random, other: randomNormal, noKernel: drawn},
		"RandomUniform":             {infer: inferRandom, traits: random, other: randomUniform, noKernel: drawn},
		"RandomUniformLike":         {infer: inferLikeInput, traits: random, other: randomUniform, noKernel: drawn},
		"RegexFullMatch":            {infer: inferIs, noStep: nothingElse, noKernel: ofText, noGPU: byHost},
		"STFT":                      {infer: inferSTFT, noStep: nothingElse},
		"SoftmaxCrossEntropyLoss":   {infer: inferLoss, noStep: nothingElse},
		"StringConcat":              {infer: inferStringConcat, noStep: nothingElse, noKernel: ofText, noGPU: byHost},
		"StringNormalizer":          {infer: inferStringNormalizer, noStep: nothingElse, noKernel: ofText, noGPU: byHost},
		"StringSplit":               {infer: inferStringSplit, noStep: nothingElse, noKernel: ofText, noGPU: byHost},
		"TfIdfVectorizer":           {infer: inferTfIdf, noStep: nothingElse, noKernel: ofText, noGPU: byHost},
	}
}
