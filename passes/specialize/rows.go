package specialize

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/form"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// row is the tensor at a place of a pool.
func (s *views) row(self *py.Tensor, at py.Value) *py.Tensor {
	return s.viewOf("aten::select.int", self, py.Int(0), at).(*py.Tensor)
}

// placeIn is where in a pool the tensor x is at the end of a path, nil if it is no row of it.
func placeIn(self *py.Tensor, x py.Value, changes journal.Changes) py.Value {
	t, ok := x.(*py.Tensor)
	if !ok {
		return nil
	}
	v := heap.ViewAt(t, changes)
	if v.Storage != heap.ViewOf(self).Storage || len(v.Chain) != 1 || v.Chain[0].Kind != "aten::select" || v.Lost != "" {
		return nil
	}
	return v.Chain[0].Arg("index")
}

// poolIn is the pool of which all elements of a list are rows at the end of a path, nil if there is none.
func (s *context) poolIn(st *py.ListState, changes journal.Changes) *form.Pool {
	for _, p := range s.pools {
		if st.Dyn != nil && st.Parts != nil && st.Parts.Places != nil && st.Parts.Self == p.Self {
			return p
		}
		if st.Dyn == nil && len(st.Elems) > 0 && !slices.ContainsFunc(st.Elems, func(e py.Value) bool { return placeIn(p.Self, e, changes) == nil }) {
			return p
		}
	}
	return nil
}

// places are the numbers of a list of rows of a pool, as a list.
func (s *values) places(self *py.Tensor, st *py.ListState) *py.ListState {
	if st.Dyn != nil {
		return &py.ListState{Dyn: st.Parts.Places}
	}
	out := &py.ListState{}
	for _, e := range st.Elems {
		out.Elems = append(out.Elems, placeIn(self, e, nil))
	}
	return out
}

// placesValue is places as a run-time list.
func (s *values) placesValue(self *py.Tensor, st *py.ListState) *ssa.Value {
	return s.dynamic(s.places(self, st), ssa.IntType)
}

// placed is a list of run-time length of rows of a pool.
func (s *values) placed(self *py.Tensor, places *ssa.Value) *py.ListState {
	p := &py.Parts{Self: self, Places: places, Val: heap.ViewOf(self).Storage.State().Base}
	return &py.ListState{Dyn: s.unplaced(p, p.Val), Parts: p}
}

// unplaced is a list of rows as a run-time list of tensors.
func (s *values) unplaced(p *py.Parts, rows *ssa.Value) *ssa.Value {
	places := &py.List{Cell: s.heap.New(&py.ListState{Dyn: p.Places}), Elem: ssa.IntType}
	at := s.member(places).(*py.Tensor)
	v := s.emitName("aten::index_select", rows, 0, s.read(at))
	schema := aten.SchemaByName("aten::unbind.int")
	vs := s.build.emit("aten::unbind", schema, v, s.build.constant(ssa.Int(0)))
	if len(vs) == 1 {
		if _, isList := vs[0].Type.(*ssa.ListType); isList {
			return vs[0]
		}
	}
	return s.build.cur.Append("prim::ListConstruct", s.loc, vs, &ssa.ListType{Elem: ssa.Tensor(v.DType(), v.Tensor().Dims[1:]...)}).Result(0) // their number is known
}
