package all

import (
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/lower"
)

// pipelines are sequences with names of their own.
var pipelines = []passes.Named{
	{Name: "cleanup", Doc: "remove what is computed twice or in vain", Text: "fixpoint(cse,dce)"},
	{
		Name: "optimize", Doc: "make an ONNX graph smaller, with the same results",
		Text: "fixpoint(cse,simplify{opset=$opset},shapes{opset=$opset},fold,unroll{max=$unroll},dce)",
		Options: []passes.Option{
			{Name: "opset", Default: "20", Doc: "the version of the default domain", Int: true},
			{Name: "unroll", Default: "0", Doc: "unroll loops of a known number of iterations, up to this many", Int: true},
		},
	},
	{
		Name: "export", Doc: "from a program as it was imported, of PyTorch or of ONNX, to ONNX operators of the opset",
		Text: "raise,demands,inline,canonicalize,freeze{eval=$eval},specialize{opset=$opset,state=$state,keep=$lift},lift{weights=$lift},unroll{max=$unroll},cleanup,lower{opset=$opset,fallthrough=\"$fallthrough\",mode=$mode},optimize{opset=$opset,unroll=$unroll},guard,legalize{opset=$opset,target=$target},cleanup,arrange{names=$names}",
		Options: []passes.Option{
			{Name: "opset", Default: "20", Doc: "the version of the default domain", Int: true},
			{Name: "target", Default: "ort", Doc: "whose kernels decide on element types", Values: []string{"ort", "onnx"}},
			{Name: "fallthrough", Default: "", Doc: "namespaces whose operators stay, as custom domains, when they cannot be converted"},
			{Name: "eval", Default: "false", Bool: true, Doc: "take the module as being in eval mode"},
			{Name: "names", Default: "state", Values: []string{"state", "learned"}, Doc: "how weights are called"},
			{Name: "lift", Default: "false", Bool: true, Doc: "make inputs of the weights, which no pass changes then"},
			{Name: "unroll", Default: "0", Doc: "unroll loops of a known number of iterations, up to this many", Int: true},
			{Name: "state", Default: "drop", Doc: "what becomes of state that the program changes", Values: []string{"drop", "outputs", "refuse"}},
			{Name: "mode", Default: "onnx", Doc: "what becomes of operators that cannot be converted", Values: lower.Modes()},
		},
	},
}

// orders are held by every named pipeline, which a test checks.
var orders = []passes.Order{
	{First: "inline", Then: "freeze", Why: "freeze follows attributes through one function"},
	{First: "inline", Then: "canonicalize", Why: "a constant may be the argument of a call"},
	{First: "canonicalize", Then: "freeze", Why: "buffers are tensors, constants of the graph are numbers"},
	{First: "freeze", Then: "specialize", Why: "specialize reads constants by their names"},
	{First: "specialize", Then: "lower", Why: "lower takes a pure graph with types"},
	{First: "raise", Then: "lower", Why: "what the passes build is in the newest form: the rest must be"},
	{First: "raise", Then: "demands", Why: "inference knows operators in their newest form"},
	{First: "demands", Then: "simplify", Why: "what an operator demands is told where the user wrote it"},
	{First: "raise", Then: "simplify", Why: "the rules know operators in their newest form"},
	{First: "specialize", Then: "lift", Why: "specialize decides by the elements of constants"},
	{First: "lift", Then: "cse", Why: "equal weights are inputs of their own"},
	{First: "lower", Then: "simplify", Why: "the rules are about ONNX operators"},
	{First: "simplify", Then: "legalize", Why: "the rules know operators in their newest form"},
	{First: "simplify", Then: "guard", Why: "the rules take operators not to fail"},
	{First: "guard", Then: "legalize", Why: "legalize takes operators in their newest form"},
	{First: "legalize", Then: "arrange", Why: "legalize may make weights"},
	{First: "lower", Then: "legalize", Why: "legalize takes operators in their newest form"},
}
