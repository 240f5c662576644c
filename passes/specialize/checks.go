package specialize

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// check ends the path where PyTorch raises whatever the data are: a branch
// that cannot be taken to its end says nothing of the values behind it.
func (s *spec) check(o *ssa.Op, args []value) {
	if len(args) == 0 {
		return
	}
	self, ok := args[0].(*tensorRef)
	if !ok {
		return
	}
	switch o.Kind {
	case "aten::tril", "aten::tril_", "aten::triu", "aten::triu_":
		if t := s.read(self).Tensor(); t != nil && t.Ranked && len(t.Dims) < 2 {
			panic(raised{s.loc, "the input must have at least 2 dimensions"})
		}
	case "aten::diagonal":
		if t := s.read(self).Tensor(); t != nil && t.Ranked && len(t.Dims) < 2 {
			panic(raised{s.loc, "diagonal of a tensor with fewer than 2 dimensions"})
		}
	case "aten::select":
		t := s.read(self).Tensor()
		dim, ok := args[1].(ssa.Literal)
		if !ok || dim.Kind != ssa.IntLit || t == nil || !t.Ranked {
			return
		}
		if n := int64(len(t.Dims)); n == 0 || dim.Int() < -n || dim.Int() >= n {
			panic(raised{s.loc, "dimension out of range"})
		}
	case "aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_":
		if l, ok := args[1].(*list); ok && l.state().dyn == nil {
			s.checkIndices(s.read(self).Tensor(), l.state().elems)
		}
	}
}

// checkIndices is check for x[indices]: there are not more than dims, and masks have the sizes of theirs.
func (s *spec) checkIndices(x *ssa.TensorType, indices []value) {
	if x == nil || !x.Ranked {
		return
	}
	at := 0
	for _, i := range indices {
		t, ok := i.(*tensorRef)
		if !ok {
			if !isNone(i) {
				return
			}
			at++
			continue
		}
		it := s.read(t).Tensor()
		if it == nil || !it.Ranked {
			return
		}
		switch {
		case it.DType == tensor.Bool:
			for _, d := range it.Dims {
				if at < len(x.Dims) && d.IsConst() && x.Dims[at].IsConst() && !d.Equal(x.Dims[at]) {
					panic(raised{s.loc, "a mask has other sizes than the tensor that it indexes"})
				}
				at++
			}
		case it.DType.IsInt() && it.DType != tensor.Uint8:
			at++
		default: // a mask of bytes, or of no known type
			return
		}
	}
	if at > len(x.Dims) {
		panic(raised{s.loc, "too many indices for the tensor"})
	}
}
