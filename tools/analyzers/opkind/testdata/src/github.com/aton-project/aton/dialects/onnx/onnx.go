// Package onnx stands for the real one.
package onnx

type Builder struct{}

func (*Builder) Op(name string, operands ...int) int           { return 0 }
func (*Builder) OpA(name string, attrs []int, more ...int) int { return 0 }
