package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

func sameDims(a, b *ssa.TensorType) bool {
	if len(a.Dims) != len(b.Dims) {
		return false
	}
	for i := range a.Dims {
		if !a.Dims[i].Equal(b.Dims[i]) {
			return false
		}
	}
	return true
}

func staticShape(v *ssa.Value) ([]int64, bool) {
	if t := v.Tensor(); t != nil {
		return t.Static()
	}
	return nil, false
}

func generalType(t ssa.Type) ssa.Type {
	if ssa.AsTensor(t) != nil {
		return ssa.AnyTensor
	}
	return t
}

func hasTensor(l ssa.Literal) bool {
	if l.Kind == ssa.TensorLit {
		return true
	}
	for _, e := range l.Elems {
		if hasTensor(e) {
			return true
		}
	}
	return false
}

func symsOf(vs []*ssa.Value) []sym.Expr {
	out := make([]sym.Expr, len(vs))
	for i, v := range vs {
		if len(v.Sym) != 1 {
			return nil
		}
		out[i] = v.Sym[0]
	}
	return out
}

func returnsTensor(schema *ssa.Schema) bool {
	for _, r := range schema.Returns {
		t := r.Type
		if lt, ok := t.(*ssa.ListType); ok {
			t = lt.Elem
		}
		if ssa.AsTensor(t) != nil {
			return true
		}
	}
	return false
}

func one(v py.Value) ([]py.Value, bool) { return []py.Value{v}, true }
