package form

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// JoinTypes is the type of a tensor that has one of two: size says what stands for the two sizes of an axis. It is nil if their dtypes are different ones;
// with one that is not known, that of the tensor is not known either.
func JoinTypes(a, b *ssa.TensorType, size func(axis int) sym.Expr) *ssa.TensorType {
	d := a.DType
	if d != b.DType {
		if d != tensor.Undefined && b.DType != tensor.Undefined {
			return nil
		}
		d = tensor.Undefined
	}
	if !a.Ranked || !b.Ranked || len(a.Dims) != len(b.Dims) {
		return ssa.Unranked(d)
	}
	dims := make([]sym.Expr, len(a.Dims))
	for i := range dims {
		dims[i] = size(i)
	}
	return ssa.Tensor(d, dims...)
}

// widenType makes the type of a tensor fit t too.
func (s *Space) widenType(f *Form, t *ssa.TensorType) bool {
	have := f.typ.(*ssa.TensorType)
	changed := false
	joined := JoinTypes(have, t, func(i int) sym.Expr {
		size, varies := have.Dims[i], true
		switch {
		case f.wide[i]:
			return size
		case !f.member:
			size, varies = s.Size(size, t.Dims[i])
		case size.Equal(t.Dims[i]) && !s.Module.MadeSince(t.Dims[i], s.Fresh):
			return size
		default:
			size = sym.Varying(i)
		}
		f.wide[i] = varies
		changed = changed || varies
		return size
	})
	switch {
	case joined == nil:
		s.Refuse(DTypes, have.DType, t.DType)
	case have.Ranked && !joined.Ranked:
		if s.Strict {
			s.Refuse(Ranks)
		}
		s.Unranked()
		f.wide, changed = nil, true
	}
	changed = changed || have.DType != joined.DType
	f.typ = joined
	return changed
}
