// Package onnx stands for the real one.
package onnx

import "github.com/aton-project/aton/ssa"

type Builder struct{}

func (*Builder) Op(name string, operands ...int) int           { return 0 }
func (*Builder) OpA(name string, attrs []int, more ...int) int { return 0 }

func (*Builder) Softmax(x int, attrs ...ssa.Attr) {}

func Axis(v int) ssa.Attr      { return ssa.Attr{} }
func KeepDims(v bool) ssa.Attr { return ssa.Attr{} }
