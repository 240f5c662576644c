package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// parts says that a run-time list holds the views of a tensor that split, chunk
// or unbind give, in a number that is only known at run time.
type parts struct {
	op   *ssa.Op
	args []value
	self *tensorRef
	dim  int
	val  *ssa.Value // the tensor's value that the list was made of
}

// partsOf recognises the operators whose parts can be found by their index.
func (s *spec) partsOf(o *ssa.Op, args []value, self *tensorRef, val *ssa.Value) *parts {
	t := val.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) == 0 {
		return nil
	}
	switch o.Kind {
	case "aten::unbind", "aten::split", "aten::chunk":
	default:
		return nil
	}
	i := o.Schema.Arg("dim")
	l, ok := args[i].(ssa.Literal)
	if !ok {
		return nil
	}
	dim := l.Int()
	if dim < 0 {
		dim += int64(len(t.Dims))
	}
	if dim < 0 || dim >= int64(len(t.Dims)) {
		return nil
	}
	return &parts{op: o, args: s.freeze(args), self: self, dim: int(dim), val: val}
}

// part is element at of the list, as a view.
func (s *spec) part(p *parts, at value) value {
	dim := ssa.Int(int64(p.dim))
	if p.op.Kind == "aten::unbind" {
		return s.viewOf("aten::select.int", p.self, dim, at)
	}
	n := s.size(p.self, p.dim)
	size := p.args[1]
	if p.op.Kind == "aten::chunk" {
		// every chunk but the last has ceil(n / chunks) elements
		size = s.intOp("floordiv", s.intOp("add", n, s.intOp("sub", size, ssa.Int(1))), size)
	}
	l, ok := s.literalOf(at)
	if e, known := exprOf(at); !ok && (!known || e.Min() < 0) {
		return nil // it may be negative
	}
	if ok && l.Int() < 0 {
		count := s.intOp("floordiv", s.intOp("add", n, s.intOp("sub", size, ssa.Int(1))), size)
		at = s.intOp("add", count, at)
	}
	start := s.intOp("mul", at, size)
	return s.viewOf("aten::slice.Tensor", p.self, dim, start, s.intOp("add", start, size), ssa.Int(1))
}

// viewOf evaluates a view operator by its full name.
func (s *spec) viewOf(name string, self *tensorRef, rest ...value) value {
	schema := aten.SchemaByName(name)
	o := &ssa.Op{Kind: ssa.Kind(schema.Name), Schema: schema, Results: []*ssa.Value{{Type: ssa.AnyTensor}}}
	return s.view(o, append([]value{self}, rest...), isView)[0]
}

// constantParts does what chunk and split do, with attributes for arguments and a result for each part.
func (s *spec) constantParts(o *ssa.Op, args []value) []value {
	name, by := "aten::chunk", "chunks"
	if o.Kind == "prim::ConstantSplit" {
		name, by = "aten::split.Tensor", "split_size"
	}
	schema := aten.SchemaByName(name)
	parts := &ssa.ListType{Elem: ssa.AnyTensor}
	split := &ssa.Op{Kind: ssa.Kind(schema.Name), Schema: schema, Loc: o.Loc, Results: []*ssa.Value{{Type: parts}}}
	out := s.apply(split, []value{args[0], ssa.Int(o.AttrInt(by, 1)), ssa.Int(o.AttrInt("dim", 0))})
	if l, ok := out[0].(*list); ok && l.state().dyn == nil && len(l.state().elems) >= len(o.Results) {
		return l.state().elems[:len(o.Results)]
	}
	s.fail("dynamic-axis", "the number of parts depends on data")
	return nil
}

// eachView evaluates operators that give a view of each tensor of a list.
func (s *spec) eachView(o *ssa.Op, args []value) ([]value, bool) {
	switch o.Kind {
	case "aten::broadcast_tensors", "aten::atleast_1d", "aten::atleast_2d", "aten::atleast_3d":
	default:
		return nil, false
	}
	l, ok := args[0].(*list)
	if !ok || l.state().dyn != nil {
		return nil, false
	}
	var like value
	if o.Kind == "aten::broadcast_tensors" {
		vs := s.emit(o.Kind, o.Schema, s.operands(args)...)
		if len(vs) != len(l.state().elems) || len(vs) == 0 {
			return nil, false
		}
		like = s.newTensor(vs[0])
	}
	var out []value
	for _, e := range l.state().elems {
		t, ok := e.(*tensorRef)
		if !ok {
			return nil, false
		}
		if like != nil {
			out = append(out, s.viewOf("aten::expand_as", t, like))
			continue
		}
		one := &ssa.Op{Kind: o.Kind, Schema: aten.SchemaByName(string(o.Kind)), Results: []*ssa.Value{{Type: ssa.AnyTensor}}}
		out = append(out, s.apply(one, []value{t})...)
	}
	return []value{s.newList(l.elem, out)}, true
}

// mayShare notes that the results of operators that sometimes give a view may share memory with their operands.
func (s *spec) mayShare(o *ssa.Op, args, results []value) {
	switch o.Kind {
	case "aten::meshgrid", "aten::cartesian_prod", "aten::sum_to_size", "aten::chain_matmul", "aten::linalg_multi_dot":
	case "aten::einsum": // of one operand it is a permutation
		if l, ok := args[1].(*list); !ok || l.state().dyn != nil || len(l.state().elems) != 1 {
			return
		}
	default:
		return
	}
	var each func(xs []value, f func(*tensorRef))
	each = func(xs []value, f func(*tensorRef)) {
		for _, x := range xs {
			switch x := x.(type) {
			case *tensorRef:
				f(x)
			case *list:
				each(x.state().elems, f)
			}
		}
	}
	each(results, func(r *tensorRef) {
		each(args, func(a *tensorRef) { s.peer(r.state().st, a.state().st) })
	})
}

// dynOf is the run-time list of st, made anew if the tensor whose parts it holds was written.
func (s *spec) dynOf(st *listState) *ssa.Value {
	p := st.parts
	if p == nil {
		return st.dyn
	}
	cur := s.read(p.self)
	if cur != p.val {
		operands := s.operands(p.args)
		operands[0] = cur
		return s.emit(p.op.Kind, p.op.Schema, operands...)[0]
	}
	return st.dyn
}
