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
	if !ok {
		return nil // it may be negative
	}
	if l.Int() < 0 {
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
