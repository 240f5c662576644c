// Package eager runs a program as frontends import it: a TorchScript archive, a program of torch.export, or graph text. It has
// PyTorch's semantics and needs no PyTorch.
//
// It is the judge of the passes, so it shares no code with them. These rules hold:
//
//   - A tensor is memory with an offset, sizes and strides. Views are arithmetic on these, and what is written through one
//     view is seen through all others. Results of operators have the strides that PyTorch gives them, since these decide what
//     is a view later on.
//   - Numbers, strings, lists, dicts, tuples and objects are TorchScript's: lists, dicts and objects have an identity and can
//     be changed, floats are computed as TorchScript computes them where Python differs.
//   - An operator that only computes is lowered to ONNX alone, for operands of known types and sizes, and the result runs in
//     backend/interp. So the evaluator knows how operators are combined, and dialects/aten what each of them computes. A few
//     that ONNX cannot express are computed here (formless.go).
//   - An operator that writes computes its pure form, and copies the result to where it writes.
//   - What is not known is an error at the user's line, never a guess. A program may take the steps and elements that
//     ssa.Module.Allow grants.
package eager
