package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/passes/specialize/internal/view"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// partSizes say, for the operators whose parts can be found by their index, how many elements of the dimension a part has: of n, by
// the argument that says so, which unbind does not have.
var partSizes = map[ssa.Kind]func(s *views, n, by py.Value) py.Value{
	"aten::unbind": nil, // an index, not a range
	"aten::split":  func(_ *views, _, by py.Value) py.Value { return by },
	"aten::chunk": func(s *views, n, by py.Value) py.Value { // every chunk but the last has ceil(n / chunks) elements
		return s.vals.intOp("floordiv", s.vals.intOp("add", n, s.vals.intOp("sub", by, py.Int(1))), by)
	},
}

// partsOf recognises the operators of partSizes.
func (s *views) partsOf(o *ssa.Op, args []py.Value, self *py.Tensor, val *ssa.Value) *py.Parts {
	t := val.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) == 0 {
		return nil
	}
	if _, is := partSizes[o.Kind]; !is {
		return nil
	}
	i := o.Schema.Arg("dim")
	l, ok := args[i].(py.Const)
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
	return &py.Parts{Op: o, Args: s.vals.freeze(args), Self: self, Dim: int(dim), Val: val}
}

// part is element at of the list, as a view.
func (s *views) part(p *py.Parts, at py.Value) py.Value {
	if p.Places != nil {
		place := s.vals.build.emit("aten::__getitem__", aten.SchemaByName("aten::__getitem__.t"), p.Places, s.vals.materialize(at))[0]
		return s.row(p.Self, s.vals.number(place))
	}
	dim := ssa.Int(int64(p.Dim))
	sizeOf := partSizes[p.Op.Kind]
	if sizeOf == nil {
		return s.viewOf("aten::select.int", p.Self, py.Of(dim), at)
	}
	n := s.vals.size(p.Self, p.Dim)
	size := sizeOf(s, n, p.Args[1])
	l, ok := py.LiteralOf(at)
	if e, known := py.ExprOf(at); !ok && (!known || e.Min() < 0) {
		return nil // it may be negative
	}
	if ok && l.Int() < 0 {
		by := size
		if e, known := py.ExprOf(size); !known || s.open(e).Min() < 1 { // parts of nothing
			v := s.vals.emitName("prim::max.int", size, 1)
			v.Sym = []sym.Expr{s.m.FreshSymbol("n", 1)}
			by = py.Dyn(v)
		}
		count := s.vals.intOp("floordiv", s.vals.intOp("add", n, s.vals.intOp("sub", by, py.Int(1))), by)
		at = s.vals.intOp("add", count, at)
	}
	start := s.vals.intOp("mul", at, size)
	return s.viewOf("aten::slice.Tensor", p.Self, py.Of(dim), start, s.vals.intOp("add", start, size), py.Int(1))
}

// viewOf evaluates a view operator by its full name.
func (s *views) viewOf(name string, self *py.Tensor, rest ...py.Value) py.Value {
	schema := aten.SchemaByName(name)
	o := &ssa.Op{Kind: ssa.Kind(schema.Name), Schema: schema, Results: []*ssa.Value{{Type: ssa.AnyTensor}}}
	return s.view(o, append([]py.Value{self}, rest...), aten.AlwaysView)[0]
}

// eachView evaluates operators that give a view of each tensor of a list.
func (s *views) eachView(o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	switch o.Kind {
	case "aten::broadcast_tensors", "aten::atleast_1d", "aten::atleast_2d", "aten::atleast_3d":
	default:
		return nil, false
	}
	l, ok := args[0].(*py.List)
	if !ok || l.State().AtRunTime() {
		return nil, false
	}
	var like py.Value
	if o.Kind == "aten::broadcast_tensors" {
		vs := s.build.emit(o.Kind, o.Schema, s.vals.operands(args)...)
		if len(vs) != len(l.State().Elems) || len(vs) == 0 {
			return nil, false
		}
		like = s.heap.Tensor(vs[0])
	}
	var out []py.Value
	for _, e := range l.State().Elems {
		t, ok := e.(*py.Tensor)
		if !ok {
			return nil, false
		}
		if like != nil {
			out = append(out, s.viewOf("aten::expand_as", t, like))
			continue
		}
		one := &ssa.Op{Kind: o.Kind, Schema: aten.SchemaByName(string(o.Kind)), Results: []*ssa.Value{{Type: ssa.AnyTensor}}}
		if unflattened(one, []py.Value{t}, s.vals.read(t).Tensor()) {
			out = append(out, t)
			continue
		}
		out = append(out, s.view(one, []py.Value{t}, aten.AlwaysView)...)
	}
	return []py.Value{s.heap.List(l.Elem, out)}, true
}

// mayShare notes that the results of operators that sometimes give a view may share memory with their operands.
func (s *views) mayShare(o *ssa.Op, args, results []py.Value) {
	if view.ClassOf(o.Kind, o.Schema) != aten.MayBeView {
		return
	}
	if o.Kind == "aten::einsum" && (len(args) < 2 || len(py.ElemsOf(args[1])) != 1) { // of one operand it is a permutation
		return
	}
	var each func(xs []py.Value, f func(*py.Tensor))
	each = func(xs []py.Value, f func(*py.Tensor)) {
		for _, x := range xs {
			switch x := x.(type) {
			case *py.Tensor:
				f(x)
			case *py.List:
				each(x.State().Elems, f)
			}
		}
	}
	each(results, func(r *py.Tensor) {
		each(args, func(a *py.Tensor) { s.heap.Peer(heap.ViewOf(r).Storage, heap.ViewOf(a).Storage) })
	})
}
