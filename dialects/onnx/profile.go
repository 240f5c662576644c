package onnx

import (
	"sort"
)

// Target is whose rules decide on element types.
type Target string

// Targets: the bare standard, and the kernels that onnxruntime has for CPUs.
const (
	Standard    Target = "onnx"
	OnnxRuntime Target = "ort"
)

// Newest is the newest opset that the target loads.
func (t Target) Newest() int {
	if t == OnnxRuntime {
		return ortNewest
	}
	return Newest
}

// kernelTypes says which element types the kernels of an operator take, for the
// versions of the operator from since to until (0: open).
type kernelTypes struct {
	op           string
	since, until int
	vars         []varTypes
}

type varTypes struct {
	name       string
	types, seq uint32 // as TypeSet.Tensor and TypeSet.Seq
}

// kernelsOf finds the kernels for a version of an operator. A kernel without
// an end serves no version but the one it is for: that is onnxruntime's rule.
func kernelsOf(s *OpSchema) []kernelTypes {
	i := sort.Search(len(ortKernels), func(i int) bool { return ortKernels[i].op >= s.Name })
	j := i
	for ; j < len(ortKernels) && ortKernels[j].op == s.Name; j++ {
		if k := &ortKernels[j]; k.since == s.Since || k.since < s.Since && k.until >= s.Since {
			return ortKernels[j : j+1]
		}
	}
	return nil
}

// HasKernel reports that the target can run this version of the operator: by a
// kernel, or because the standard defines it by other operators.
func (t Target) HasKernel(s *OpSchema) bool {
	if t == OnnxRuntime && s.Name == "Swish" {
		return false // its definition is of opset 24, and is not taken into models beyond
	}
	if t != OnnxRuntime || s.Domain != "onnx" || s.Function || s.Name == "Constant" {
		return true
	}
	return len(kernelsOf(s)) > 0
}

// Inlines says that the target replaces the operator by others, as the standard
// defines it, and does not know for which element types it has those.
func (t Target) Inlines(s *OpSchema) bool {
	return t == OnnxRuntime && s.Domain == "onnx" && s.Function && len(kernelsOf(s)) == 0
}

// Types is the set of element types, as a mask of TensorProto.DataType numbers,
// that the target takes for a parameter of a version of an operator.
func (t Target) Types(s *OpSchema, p *Param) uint32 {
	mask := p.Types.Tensor
	if t != OnnxRuntime || s.Domain != "onnx" {
		return mask
	}
	for _, k := range kernelsOf(s) {
		for _, v := range k.vars {
			if v.name == p.Var || v.name == p.Name {
				mask &= v.types
			}
		}
	}
	return mask
}

// Sequences is Types for sequences: the element types of the tensors in them.
func (t Target) Sequences(s *OpSchema, p *Param) uint32 {
	mask := p.Types.Seq
	if t != OnnxRuntime || s.Domain != "onnx" {
		return mask
	}
	for _, k := range kernelsOf(s) {
		for _, v := range k.vars {
			if v.name == p.Var || v.name == p.Name {
				mask &= v.seq
			}
		}
	}
	return mask
}
