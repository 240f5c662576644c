package aten

// refused are operators that no opset can express, and names that are no
// operators of a program.
var refused = Defs{
	"aten::_standard_gamma":       {Effects: draws, Why: "it draws until a draw is accepted: a number of steps that is random itself"},
	"aten::_sample_dirichlet":     {Effects: draws, Why: "it draws until a draw is accepted: a number of steps that is random itself"},
	"aten::getitem":               {Why: "a name inside of PyTorch's exporter: programs have aten::__getitem__"},
	"aten::get_pool_ceil_padding": {Why: "a function of torch.onnx, no operator"},
	"onnx::Placeholder":           {Why: "a mark inside of torch.onnx's passes, no operator"},
	"prim::PythonOp":              {Why: "a Python function that was not compiled; give a rule for it (--rules, as python::NAME), register a symbolic function, or export with --fallthrough prim"},
}
