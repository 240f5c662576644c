package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Autocast says to which element type an operator converts its arguments in a region of torch.autocast (aten/src/ATen/autocast_mode.h).
// It is 0 for operators that compute in the type that they are given.
type Autocast uint8

// The conversions of torch.autocast, by device.
const (
	// LowerPrecision operators compute in the type of the region.
	LowerPrecision Autocast = 1 << iota
	// LowerPrecisionOnCPU operators do so on a CPU. Of recurrent layers these are the overloads without packed sequences.
	LowerPrecisionOnCPU
	// Float32OnCPU operators compute in float32 on a CPU.
	Float32OnCPU
	// Float32OnCUDA operators compute in float32 on a GPU.
	Float32OnCUDA
)

// AutocastOf is the element type to which a call converts its arguments in a region that asks for lower; it is Undefined where it converts none.
func AutocastOf(s *ssa.Schema, cuda bool, lower tensor.DType) tensor.DType {
	a := row(ssa.Kind(s.Name)).Autocast
	onCPU := !cuda && s.Arg("batch_sizes") < 0
	switch {
	case a&LowerPrecision != 0, onCPU && a&LowerPrecisionOnCPU != 0:
		return lower
	case !cuda && a&Float32OnCPU != 0, cuda && a&Float32OnCUDA != 0:
		return tensor.Float32
	}
	return tensor.Undefined
}
