package specialize

import (
	"fmt"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/passes/specialize/internal/view"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// asStrided evaluates as_strided, which sees the memory of a tensor and not the
// tensor: it becomes a view of the storage, by the places of its elements.
func (s *views) asStrided(args []py.Value) *py.Tensor {
	self := s.vals.tensor(args[0])
	st := heap.ViewOf(self)
	root := st.Storage
	if root.Pool {
		s.fail("alias", "as_strided of an element of a list that a loop changes; use .clone() before")
	}
	base := root.State().Base
	if how := s.axes.IsRowMajor(root.Strides, base.Tensor()); how != layout.Shares {
		s.fail("view", "as_strided of memory that is not known to be row-major; use .contiguous() before")
	}
	if s.vals.read(self).DType().IsComplex() != base.DType().IsComplex() {
		s.fail("view", "as_strided of a complex view of real numbers, whose places are other ones; use .clone() before")
	}
	size, ok := py.LiteralOf(args[1])
	stride, ok2 := py.LiteralOf(args[2])
	if !ok || !ok2 {
		return s.dynamicStrided(args, root, base, st, !view.BeginsAtBase(st.Chain))
	}
	offset := int64(0)
	if l, ok := py.LiteralOf(args[3]); !ok {
		s.fail("dynamic-axis", "as_strided with an offset that depends on a dynamic axis")
	} else if !l.IsNone() {
		offset = l.Int()
	} else if len(st.Chain) > 0 {
		if at := s.places(st); len(at) > 0 {
			offset = at[0]
		} else if e, ok := s.firstPlace(st); !ok {
			s.fail("view", "as_strided of a part of a tensor whose place in memory is not known; give a storage_offset")
		} else if n, ok := e.Int(); ok {
			offset = n
		} else {
			s.fail("view", "as_strided of a part of a tensor whose place in memory hangs on a dynamic axis; give a storage_offset")
		}
	}
	sizes, strides := py.IntsOf(size), py.IntsOf(stride)
	if len(sizes) != len(strides) {
		s.fail("view", "as_strided with %d sizes and %d strides", len(sizes), len(strides))
	}
	n, first, last := 1.0, float64(offset), float64(offset) // float64 is beyond what int64 holds
	for d, size := range sizes {
		if size < 0 {
			panic(s.raised(fmt.Sprintf("as_strided with a size of %d", size)))
		}
		n *= float64(size)
		reach := float64(size-1) * float64(strides[d])
		first, last = first+min(reach, 0), last+max(reach, 0)
	}
	if total, ok := base.Tensor().Static(); ok && n > 0 {
		have := 1.0
		for _, d := range total {
			have *= float64(d)
		}
		if first < 0 || last >= have {
			panic(s.raised("as_strided goes out of bounds of the storage"))
		}
	}
	var at *ssa.Value
	if n > foldElems {
		at = s.grid(offset, ints(sizes), ints(strides))
	} else {
		places := make([]int64, int(n))
		for i := range places {
			rest, at := int64(i), offset
			for d := len(sizes) - 1; d >= 0; d-- {
				at += rest % sizes[d] * strides[d]
				rest /= sizes[d]
			}
			places[i] = at
		}
		at = s.build.constant(ssa.TensorValue(tensor.FromInts(tensor.Int64, sizes, places)))
	}
	return s.take(root, base, at, ssa.Sizes(strides))
}

// ints are integers as values of the program.
func ints(of []int64) []py.Value {
	out := make([]py.Value, len(of))
	for i, n := range of {
		out[i] = py.Of(ssa.Int(n))
	}
	return out
}

// grid is offset + sum of i_k * by_k over all i_k below n_k, computed at run time.
func (s *views) grid(offset int64, n, by []py.Value) *ssa.Value {
	at := s.build.constant(ssa.TensorValue(tensor.ScalarInt(offset)))
	for i := range n {
		row := s.vals.emitName("aten::mul.Tensor", s.vals.emitName("aten::arange", s.vals.materialize(n[i])), s.vals.materialize(by[i]))
		at = s.vals.emitName("aten::add.Tensor", s.vals.emitName("aten::unsqueeze", at, ssa.Int(-1)), row)
	}
	return at
}

// take is the view of the elements at these places of a storage.
func (s *views) take(root *heap.Storage, base, at *ssa.Value, strides []sym.Expr) *py.Tensor {
	v := s.vals.emitName("aten::take", base, at)
	step := heap.Step{Kind: "aten::take", Schema: aten.SchemaByName("aten::take"), Args: []py.Value{nil, py.Dyn(at)}}
	return s.heap.View(root, []heap.Step{step}, strides, base, v)
}

// dynamicStrided is asStrided where sizes or strides are computed at run time: the places are offset + sum of i_k * stride_k.
func (s *views) dynamicStrided(args []py.Value, root *heap.Storage, base *ssa.Value, self *heap.View, part bool) *py.Tensor {
	sizes, ok := args[1].(*py.List)
	strides, ok2 := args[2].(*py.List)
	if !ok || !ok2 || sizes.State().Dyn != nil || strides.State().Dyn != nil {
		s.fail("dynamic-axis", "as_strided with sizes or strides that are only known at run time")
	}
	offset := int64(0)
	if l, ok := py.LiteralOf(args[3]); !ok {
		s.fail("dynamic-axis", "as_strided with an offset that depends on a dynamic axis")
	} else if !l.IsNone() {
		offset = l.Int()
	} else if part {
		e, known := s.firstPlace(self)
		if offset, ok = e.Int(); !known || !ok {
			s.fail("view", "as_strided of a part of a tensor, with sizes that depend on a dynamic axis; give a storage_offset")
		}
	}
	n, by := sizes.State().Elems, strides.State().Elems
	if len(n) != len(by) {
		s.fail("view", "as_strided with %d sizes and %d strides", len(n), len(by))
	}
	return s.take(root, base, s.grid(offset, n, by), nil)
}
