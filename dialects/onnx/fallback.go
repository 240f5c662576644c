package onnx

import "github.com/aton-project/aton/ssa/tensor"

// TypeFallback finds another way to compute an operator on elements of a type
// for which it has no kernel. It builds that, replaces the op and reports
// true; false if it does not serve the type. Nil: there is no such way.
func TypeFallback(name string) func(d *Downgrade, t tensor.DType) bool { return typeFallbacks[name] }

var typeFallbacks = float64Fallbacks()
