package onnx

import "github.com/aton-project/aton/ssa"

// Class says in which other element types an operator computes the same.
type Class uint8

const (
	// RealNumbers are the elements; halves are computed in float32, as PyTorch does.
	RealNumbers Class = iota
	// Copies gives elements of its operands; any type that holds them will do.
	Copies
	// Orders compares or picks elements; any type that holds them will do.
	Orders
	// Ring makes sums and products; integers wrap around, so wider ones will do.
	Ring
	// Quotients of a wider type are right, wrapped ones are not.
	Quotients
	// byReduction is what the attribute reduction of a scatter says.
	byReduction
)

// ClassOf gives the class of an operator; RealNumbers for one without a row.
func ClassOf(o *ssa.Op) Class {
	r := rows[o.Kind.Name()]
	if r == nil || o.Kind.Namespace() != Namespace {
		return RealNumbers
	}
	if r.class != byReduction {
		return r.class
	}
	switch o.AttrStr("reduction", "none") {
	case "none":
		return Copies
	case "add", "mul":
		return Ring
	}
	return Orders
}
