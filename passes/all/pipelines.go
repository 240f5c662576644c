package all

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/floattype"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/passes/ortfusion"
)

// pipelines are sequences with names of their own.
var pipelines = []passes.Named{
	{Name: "cleanup", Doc: "remove what is computed twice or in vain", Steps: []passes.Step{{Run: "fixpoint(cse,dce)", Why: "what is merged leaves operators that nothing uses"}}},
	{
		Name: "optimize", Doc: "make an ONNX graph smaller, with the same results",
		Steps: []passes.Step{{
			Run: "fixpoint(cse,simplify{opset=$opset},shapes{opset=$opset},fold-constants{weights=true},unroll{max=$unroll},dce)",
			Why: "each finds more to do in what the others leave; cse first, since rules ask whether a value has one use",
		}},
		Options: []passes.Option{
			{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the version of the default domain", Int: true, Least: 1, Most: onnx.Newest},
			{Name: "unroll", Default: "0", Doc: "unroll loops of a known number of iterations, up to this many", Int: true},
		},
	},
	{
		Name: "finish", Doc: "what is left to do to a converted module before it is written",
		Steps: []passes.Step{
			{Run: `check-converted{allow="$allow"}`, Why: "nothing of PyTorch gets into a file unnoticed"},
			{Run: `set-domain-versions{versions="$domains"}`, If: "domains", Why: "the operators of the file are known"},
			{Run: `rename{inputs="$inputs",outputs="$outputs",names="$renames"}`, If: "inputs,outputs,renames", Why: "no pass makes a name any more"},
			{Run: "drop-unused-inputs", If: "drop", Why: "names of inputs count those that are dropped"},
		},
		Options: []passes.Option{
			{Name: "allow", Doc: "namespaces whose operators may stay, separated by commas; * for all"},
			{Name: "domains", Doc: "versions of domains of custom operators, as DOMAIN=VERSION,..."},
			{Name: "inputs", Doc: "names of the inputs in order, and of the weights behind them"},
			{Name: "outputs", Doc: "names of the outputs in order"},
			{Name: "renames", Doc: "other names, as OLD=NEW,..."},
			{Name: "drop", Default: "false", Bool: true, Doc: "remove the inputs that nothing uses"},
		},
	},
	{
		Name: "raw", Doc: "from a program of PyTorch to a graph of its own operators that a file can hold",
		Steps: []passes.Step{
			{Run: "inline", Why: "one function is left"},
			{Run: "freeze{training=$training}", Why: "attributes of objects become constants"},
			{Run: "make-storable{opset=$opset}", Why: "types and attributes are those that a file can hold"},
		},
		Options: []passes.Option{
			{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the version of the default domain", Int: true},
			{Name: "training", Default: "preserve", Values: []string{"preserve", "eval", "train"}, Doc: "the mode that modules are taken to be in"},
		},
	},
	{
		Name: "export", Doc: "from a program as it was imported, of PyTorch or of ONNX, to ONNX operators of the opset",
		Steps: []passes.Step{
			{Run: "upgrade", Why: "an ONNX file of any opset is in the newest form from here on; a program of PyTorch passes"},
			{Run: "check-sizes", Why: "what the operators of an ONNX file need the dynamic axes to be is told where its author wrote it"},
			{Run: "inline", Why: "one function is left, with methods and their objects in it"},
			{Run: "canonicalize", Why: "constants of a trace are the numbers that they were in Python"},
			{Run: "freeze{training=$training}", Why: "attributes of objects become constants: what the program depends on is in the graph"},
			{Run: "differentiate", Why: "gradients that the program asks for are operators of the program: what is one tensor is still as it was written"},
			{Run: "specialize{opset=$opset,state=$state,keep=$lift}", Why: "Python runs: no mutation, no containers, a type for each value"},
			{Run: "lift{weights=$lift,integers=$integers}", Why: "weights become inputs, if asked for, before a pass computes with them"},
			{Run: "unroll{max=$unroll}", Why: "loops of a known number of iterations go, if asked for, while their bodies are small"},
			{Run: "cleanup", Why: "what is computed twice is lowered once"},
			{Run: "lower{opset=$opset,fallthrough=\"$fallthrough\",mode=$mode,training=$training,target=$target}", Why: "aten becomes ONNX, in the newest form"},
			{Run: "optimize{opset=$opset,unroll=$unroll}", Why: "the rules know the newest form"},
			{Run: "user-rules{opset=$opset}", Why: "what a user's rules make of ONNX operators stays as it is from here on"},
			{Run: "change-float-type{to=$floats,keep=\"$float32\",io=$float32-io}", If: "floats", Why: "the operators of the standard that compute are known, and fewer they will not be"},
			{Run: "guard", Why: "checks of sizes at run time come behind the rules, which would take them for computation"},
			{Run: "ort-fusion{for=$contrib}", Why: "operators of onnxruntime's own, if asked for, where no rule on the standard's looks any more"},
			{Run: "legalize{opset=$opset,target=$target}", Why: "the newest form becomes that of the opset, with types that the target has kernels for"},
			{Run: "cleanup", Why: "steps down build constants and casts many times"},
			{Run: "name-initializers{names=$names}", Why: "the order and the names of weights in the file: nothing makes a weight any more"},
		},
		Options: []passes.Option{
			{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the version of the default domain", Int: true, Least: 1, Most: onnx.Newest},
			{Name: "target", Default: "ort", Doc: "whose kernels decide on element types", Values: []string{"ort", "onnx"}},
			{Name: "contrib", Default: "none", Values: ortfusion.Pass.Options[0].Values, Doc: "use operators of onnxruntime's own, for a cpu or a gpu"},
			{Name: "fallthrough", Default: "", Doc: "namespaces whose operators stay, as custom domains, when they cannot be converted"},
			{Name: "training", Default: "preserve", Values: []string{"preserve", "eval", "train"}, Doc: "the mode that modules are taken to be in"},
			{Name: "names", Default: "state", Values: []string{"state", "learned"}, Doc: "how weights are called"},
			{Name: "lift", Default: "false", Bool: true, Doc: "make inputs of the weights, which no pass changes then"},
			{Name: "integers", Default: "false", Bool: true, Doc: "with lift, make inputs of the tensors of the state dict that hold integers or bools, too"},
			{Name: "unroll", Default: "0", Doc: "unroll loops of a known number of iterations, up to this many", Int: true},
			{Name: "state", Default: "drop", Doc: "what becomes of state that the program changes", Values: []string{"drop", "outputs", "refuse"}},
			{Name: "floats", Default: "f32", Values: floattype.Pass.Options[0].Values, Doc: "compute in this element type instead of float32"},
			{Name: "float32", Doc: "types of operators that stay in float32, separated by commas"},
			{Name: "float32-io", Default: "false", Bool: true, Doc: "inputs and outputs stay in float32"},
			{Name: "mode", Default: "onnx", Doc: "what becomes of operators that cannot be converted", Values: lower.Modes()},
		},
	},
}

// renamed are the former names of passes, which are accepted for one release.
var renamed = []passes.Renamed{
	{Was: "contrib", Is: "ort-fusion"},
	{Was: "replace", Is: "user-rules"},
	{Was: "arrange", Is: "name-initializers"},
	{Was: "demands", Is: "check-sizes"},
	{Was: "raise", Is: "upgrade"},
	{Was: "fold", Is: "fold-constants", Options: map[string]string{"weights": "true"}},
}
