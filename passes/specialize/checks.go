package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// check ends the path where PyTorch raises whatever the data are: a branch
// that cannot be taken to its end says nothing of the values behind it.
func (s *walk) check(o *ssa.Op, args []py.Value) {
	if len(args) == 0 {
		return
	}
	self, ok := args[0].(*py.Tensor)
	if !ok {
		return
	}
	switch o.Kind {
	case "aten::tril", "aten::tril_", "aten::triu", "aten::triu_":
		if t := s.vals.read(self).Tensor(); t != nil && t.Ranked && len(t.Dims) < 2 {
			panic(s.raised("the input must have at least 2 dimensions"))
		}
	case "aten::diagonal":
		if t := s.vals.read(self).Tensor(); t != nil && t.Ranked && len(t.Dims) < 2 {
			panic(s.raised("diagonal of a tensor with fewer than 2 dimensions"))
		}
	case "aten::select":
		t := s.vals.read(self).Tensor()
		dim, ok := args[1].(py.Const)
		if !ok || dim.Kind != ssa.IntLit || t == nil || !t.Ranked {
			return
		}
		if n := int64(len(t.Dims)); n == 0 || dim.Int() < -n || dim.Int() >= n {
			panic(s.raised("dimension out of range"))
		}
	case "aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_":
		if l, ok := args[1].(*py.List); ok && !l.State().AtRunTime() {
			s.checkIndices(s.vals.read(self).Tensor(), l.State().Elems)
		}
	}
}

// checkIndices is check for x[indices]: there are not more than dims, and masks have the sizes of theirs.
func (s *walk) checkIndices(x *ssa.TensorType, indices []py.Value) {
	if x == nil || !x.Ranked {
		return
	}
	at := 0
	for _, i := range indices {
		t, ok := i.(*py.Tensor)
		if !ok {
			if !py.IsNone(i) {
				return
			}
			at++
			continue
		}
		it := s.vals.read(t).Tensor()
		if it == nil || !it.Ranked {
			return
		}
		switch {
		case it.DType == tensor.Bool:
			for _, d := range it.Dims {
				if at < len(x.Dims) && d.IsConst() && x.Dims[at].IsConst() && !d.Equal(x.Dims[at]) {
					panic(s.raised("a mask has other sizes than the tensor that it indexes"))
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
		panic(s.raised("too many indices for the tensor"))
	}
}
