package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Symbols that the executor gives values where it copies parts of a tensor: where one begins along its axis, and how long it is.
const (
	PartBegin = "$part.begin"
	PartSize  = "$part.size"
)

// Part copies a part of a tensor out of it, or into it: what lies from PartBegin on along an axis, PartSize long. The memory of the part
// is that of the scratch value that comes back with the launch.
func Part(all *ssa.Value, axis int, into bool) (Launch, *ssa.Value) {
	w := &writer{class: "loop"}
	dims := append([]sym.Expr(nil), shapeOf(all)...)
	dims[axis] = sym.Symbol(PartSize, 0)
	begin := index.Const(sym.Symbol(PartBegin, 0))
	part := scratch(dtype(all), dims...)
	moved := func(s *index.Space, coords []index.Expr) []index.Expr {
		at := append([]index.Expr(nil), coords...)
		at[axis] = s.Add(at[axis], begin)
		return at
	}
	if into {
		w.elementwise(all, dims, func(s *index.Space, coords []index.Expr) index.Expr { return s.Linear(shapeOf(all), moved(s, coords)) },
			func(c *body, coords []index.Expr) kir.Value { return c.at(part, coords) })
	} else {
		w.elementwise(part, dims, nil, func(c *body, coords []index.Expr) kir.Value { return c.at(all, moved(&c.space, coords)) })
	}
	return w.out[0], part
}

// HoldsElements gives nil if buffers can hold the elements of a sequence, whatever their shapes are.
func HoldsElements(v *ssa.Value) error {
	l, ok := v.Type.(*ssa.ListType)
	if !ok {
		return Holds(v)
	}
	t := ssa.AsTensor(l.Elem)
	if t == nil {
		return Holds(v)
	}
	probe := &ssa.Value{Type: ssa.Tensor(t.DType)}
	if t.DType == tensor.Undefined || t.DType == tensor.String {
		return Holds(v)
	}
	return Holds(probe)
}
