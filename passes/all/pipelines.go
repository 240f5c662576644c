package all

import "github.com/aton-project/aton/passes"

// pipelines are sequences with names of their own.
var pipelines = []passes.Named{
	{Name: "cleanup", Doc: "remove what is computed twice or in vain", Text: "fixpoint(cse,dce)"},
	{
		Name: "export", Doc: "from a program as it was imported to ONNX operators of the opset",
		Text: "cleanup",
		Options: []passes.Option{
			{Name: "opset", Default: "18", Doc: "the version of the default domain", Int: true},
			{Name: "target", Default: "ort", Doc: "whose kernels decide on element types", Values: []string{"ort", "onnx"}},
		},
	},
}

// orders are held by every named pipeline, which a test checks.
var orders = []passes.Order{}
