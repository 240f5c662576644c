package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// asStrided evaluates as_strided, which sees the memory of a tensor and not the
// tensor: it becomes a view of the storage, by the places of its elements.
func (s *spec) asStrided(args []value) *tensorRef {
	self := asTensor(s, args[0])
	st := self.state()
	root := st.st
	base := root.state().base
	if how, _ := s.isContiguous(root.strides, base.Tensor()); how != shares {
		s.fail("view", "as_strided of memory that is not known to be row-major; use .contiguous() before")
	}
	size, ok := s.literalOf(args[1])
	stride, ok2 := s.literalOf(args[2])
	if !ok || !ok2 {
		return s.dynamicStrided(args, root, base, st, !startsWith(st.chain))
	}
	offset := int64(0)
	if l, ok := s.literalOf(args[3]); !ok {
		s.fail("dynamic-axis", "as_strided with an offset that depends on a dynamic axis")
	} else if !l.IsNone() {
		offset = l.Int()
	} else if len(st.chain) > 0 {
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
	sizes, strides := intsOf(size), intsOf(stride)
	n := int64(1)
	for _, d := range sizes {
		n *= max(d, 0)
	}
	if len(sizes) != len(strides) || n > foldElems {
		s.fail("view", "as_strided of %d elements, or of sizes and strides that do not match", n)
	}
	places := make([]int64, n)
	for i := range places {
		rest, at := int64(i), offset
		for d := len(sizes) - 1; d >= 0; d-- {
			at += rest % sizes[d] * strides[d]
			rest /= sizes[d]
		}
		places[i] = at
	}
	if total, ok := base.Tensor().Static(); ok {
		have := int64(1)
		for _, d := range total {
			have *= d
		}
		for _, p := range places {
			if p < 0 || p >= have {
				panic(raised{s.loc, "as_strided goes out of bounds of the storage"})
			}
		}
	}
	at := s.constant(ssa.TensorValue(tensor.FromInts(tensor.Int64, sizes, places)))
	v := s.emitName("aten::take", base, at)
	step := viewStep{kind: "aten::take", schema: aten.SchemaByName("aten::take"), args: []value{nil, at}}
	return s.newView(root, []viewStep{step}, ssa.Sizes(strides), base, v)
}

// startsWith reports views whose first element is the first one of their base.
func startsWith(chain []viewStep) bool {
	for _, st := range chain {
		switch st.kind {
		case "aten::view", "aten::reshape", "aten::_unsafe_view", "aten::view_as", "aten::flatten", "aten::unflatten", "aten::squeeze", "aten::unsqueeze",
			"aten::transpose", "aten::permute", "aten::t", "aten::movedim", "aten::swapaxes", "aten::swapdims", "aten::expand", "aten::expand_as", "aten::broadcast_to", "aten::real", "aten::detach", "aten::alias":
		default:
			return false
		}
	}
	return true
}

// dynamicStrided is asStrided where sizes or strides are computed at run time: the places are offset + sum of i_k * stride_k.
func (s *spec) dynamicStrided(args []value, root *storage, base *ssa.Value, self *tensorState, part bool) *tensorRef {
	sizes, ok := args[1].(*list)
	strides, ok2 := args[2].(*list)
	if !ok || !ok2 || sizes.state().dyn != nil || strides.state().dyn != nil {
		s.fail("dynamic-axis", "as_strided with sizes or strides that are only known at run time")
	}
	offset := int64(0)
	if l, ok := s.literalOf(args[3]); !ok {
		s.fail("dynamic-axis", "as_strided with an offset that depends on a dynamic axis")
	} else if !l.IsNone() {
		offset = l.Int()
	} else if part {
		e, known := s.firstPlace(self)
		if offset, ok = e.Int(); !known || !ok {
			s.fail("view", "as_strided of a part of a tensor, with sizes that depend on a dynamic axis; give a storage_offset")
		}
	}
	n, by := sizes.state().elems, strides.state().elems
	if len(n) != len(by) {
		s.fail("view", "as_strided with %d sizes and %d strides", len(n), len(by))
	}
	at := s.constant(ssa.TensorValue(tensor.ScalarInt(offset)))
	for i := range n {
		row := s.emitName("aten::mul.Tensor", s.emitName("aten::arange", s.materialize(n[i])), s.materialize(by[i]))
		at = s.emitName("aten::add.Tensor", s.emitName("aten::unsqueeze", at, ssa.Int(-1)), row)
	}
	v := s.emitName("aten::take", base, at)
	step := viewStep{kind: "aten::take", schema: aten.SchemaByName("aten::take"), args: []value{nil, at}}
	return s.newView(root, []viewStep{step}, nil, base, v)
}
