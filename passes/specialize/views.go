package specialize

import (
	"fmt"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/passes/specialize/internal/view"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// squeezed evaluates squeeze where a dynamic axis that is known to be 2 or more is among the ones to remove: it stays.
// Where the axis may be 1 at run time, the rank of the result depends on data: see squeezedMaybe.
func (s *views) squeeze(o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	self, ok := args[0].(*py.Tensor)
	if !ok {
		return nil, false
	}
	t := s.vals.read(self).Tensor()
	if t == nil || !t.Ranked {
		return nil, false
	}
	rank := int64(len(t.Dims))
	var dims []int64
	if len(args) == 1 {
		for i := range rank {
			dims = append(dims, i)
		}
	} else {
		l, ok := py.LiteralOf(args[1])
		if !ok {
			return nil, false
		}
		dims = py.IntsOf(l)
	}
	var ones []py.Value
	dynamic := false
	for _, d := range dims {
		if d < 0 {
			d += rank
		}
		if d < 0 || d >= rank {
			return nil, false
		}
		switch e := t.Dims[d]; {
		case e.Is(1):
			ones = append(ones, py.Int(d))
		case !e.IsConst():
			if name, lone := e.Name(); lone && s.m.Recorded[name] == 1 {
				s.fail("dynamic-axis", "the trace was made with %s = 1, and squeeze drops the axis: what is behind holds for that size only; write 1 for %s in --input", name, name)
			}
			one := e.Min() < 2 && !s.known.differ(e, sym.Const(1))
			if one && !(s.axes.Plural(e) && s.takes(atLeastTwo)) {
				if s.knowsSizes() && len(args) > 1 {
					s.splitAtOne(self, int(d), e)
				}
				return nil, false
			}
			if one {
				s.needPlural(e)
			}
			dynamic = true
		}
	}
	if !dynamic {
		return nil, false
	}
	if len(ones) == 0 {
		return []py.Value{s.viewOf("aten::detach", self)}, true
	}
	return []py.Value{s.viewOf("aten::squeeze.dims", self, s.heap.List(ssa.IntType, ones))}, true
}

// splitAtOne has what follows evaluated once for an axis of size 1, and once for other ones.
func (s *views) splitAtOne(self *py.Tensor, axis int, size sym.Expr) {
	schema := aten.SchemaByName("aten::eq.int")
	why := s.failure("dynamic-rank", "axis %d, of size %s, goes if it is 1 at run time, so the number of dimensions depends on data", axis, size)
	panic(needSplit{why: why, ask: func() *ssa.Value {
		return s.vals.materialize(s.vals.scalar("aten::eq", schema, []py.Value{s.vals.size(self, axis), py.Int(1)})[0])
	}})
}

// squeezedMaybe leaves the rank of a squeeze open where a size that is known at run time only decides whether a dim goes.
func (s *views) squeezedMaybe(kind ssa.Kind, args []py.Value, self, v *ssa.Value) {
	t := self.Tensor()
	if kind != "aten::squeeze" || t == nil || !t.Ranked || v.DType() == tensor.Undefined {
		return
	}
	wanted := func(int64) bool { return true }
	if len(args) > 1 {
		l, ok := py.LiteralOf(args[1])
		if !ok {
			return
		}
		wanted = func(i int64) bool {
			for _, d := range py.IntsOf(l) {
				if d == i || d+int64(len(t.Dims)) == i {
					return true
				}
			}
			return false
		}
	}
	for i, d := range t.Dims {
		if !d.IsConst() && d.Min() < 2 && wanted(int64(i)) {
			v.Type = ssa.Unranked(v.DType())
			s.offer(atLeastTwo, s.op)
			s.loses(v)
			s.openRank(diag.Diagnostic{Op: string(kind),
				Message: fmt.Sprintf("axis %d, of size %s, goes if it is 1 at run time, so the number of dimensions depends on data, and an operator behind it needs that", i, d),
				Hint:    "name the axes to remove, such as squeeze(1), or give the axis a fixed size in --input"})
		}
	}
}

// view evaluates an operator whose results share memory with self.
func (s *views) view(o *ssa.Op, args []py.Value, class aten.View) []py.Value {
	self, ok := args[0].(*py.Tensor)
	if !ok {
		return nil
	}
	st := heap.ViewOf(self)
	if o.Kind == "aten::real" && s.vals.read(self).DType().IsComplex() {
		class = aten.AlwaysView
	}
	if class == aten.ViewIfUnchanged && s.unchanged(o, args, self) {
		return []py.Value{self}
	}
	operands := s.vals.operands(args)
	vs := s.build.emit(o.Kind, o.Schema, operands...)
	lt, isList := o.Results[0].Type.(*ssa.ListType)
	if class == aten.ViewIfUnchanged {
		t := s.heap.Laid(vs[0], s.resultStrides(o, args, vs[0]))
		how := layout.Copies
		shares := func(in []sym.Expr, t, _ *ssa.TensorType) layout.Sharing {
			return s.contiguous(argument(o, args, "memory_format"), in, t)
		}
		if o.Kind == "aten::contiguous" {
			how = shares(st.Strides, operands[0].Tensor(), nil)
		} else if vs[0].DType() == tensor.Undefined || operands[0].DType() == tensor.Undefined {
			how = layout.Unknown
		}
		s.relate(t, self, operands[0], vs[0], how, shares)
		return []py.Value{t}
	}
	if isList {
		if len(vs) == 1 && vs[0].Type != nil {
			if _, dyn := vs[0].Type.(*ssa.ListType); dyn {
				ls := &py.ListState{Dyn: vs[0], Parts: s.partsOf(o, args, self, operands[0])}
				if ls.Parts == nil {
					s.heap.Hold(self)
				}
				return []py.Value{&py.List{Cell: s.heap.New(ls), Elem: lt.Elem}}
			}
		}
		elems := make([]py.Value, len(vs))
		for i, v := range vs {
			step := heap.Step{Kind: o.Kind, Schema: o.Schema, Args: s.vals.freeze(args), Index: i, N: len(vs)}
			elems[i] = s.heap.View(st.Storage, st.Then(step), s.strides(step, st.Strides, operands[0], v), st.Storage.State().Base, v)
		}
		return []py.Value{s.heap.List(lt.Elem, elems)}
	}
	v := vs[0]
	narrowed(o, args, v)
	s.squeezedMaybe(o.Kind, args, operands[0], v)
	step := heap.Step{Kind: o.Kind, Schema: o.Schema, Args: s.vals.freeze(args)}
	strides := s.strides(step, st.Strides, operands[0], v)
	if class == aten.ViewIfStrides {
		same, _ := s.axes.Reshape(st.Strides, operands[0].Tensor(), v.Tensor())
		shares := s.reshaped
		if o.Kind == "aten::ravel" { // contiguous().view(-1): it copies where a reshape need not
			shares = s.rowMajor
		}
		if how := shares(st.Strides, operands[0].Tensor(), v.Tensor()); how != layout.Shares {
			t := s.heap.Tensor(v)
			s.relate(t, self, operands[0], v, how, shares)
			return []py.Value{t}
		}
		strides = same
	}
	return []py.Value{s.heap.View(st.Storage, st.Then(step), strides, st.Storage.State().Base, v)}
}

// argument is an argument by its name in the schema, None if the call leaves it out.
func argument(o *ssa.Op, args []py.Value, name string) py.Value {
	if i := o.Schema.Arg(name); i >= 0 && i < len(args) {
		return args[i]
	}
	return py.None
}

// rowMajor says whether contiguous() of a tensor of type t shares its memory.
func (s *views) rowMajor(in []sym.Expr, t, _ *ssa.TensorType) layout.Sharing {
	return s.axes.IsRowMajor(in, t)
}

// reshaped says whether a reshape of t to ot shares its memory.
func (s *views) reshaped(in []sym.Expr, t, ot *ssa.TensorType) layout.Sharing {
	_, how := s.axes.Reshape(in, t, ot)
	return how
}

// relate records what is not known of the memory of a copy t of self; how is what shares says.
func (s *views) relate(t, self *py.Tensor, from, to *ssa.Value, how layout.Sharing, shares func(in []sym.Expr, t, ot *ssa.TensorType) layout.Sharing) {
	st := heap.ViewOf(self)
	var axes []string
	if how == layout.Assumed {
		axes = s.axes.Plurals(st.Strides, from.Tensor(), to.Tensor(), shares)
	}
	s.heap.Relate(heap.ViewOf(t).Storage, st.Storage, how, axes)
}

// unchanged reports that an operator such as to() gives self itself.
func (s *views) unchanged(o *ssa.Op, args []py.Value, self *py.Tensor) bool {
	arg := func(name string) py.Value { return argument(o, args, name) }
	litBool := func(name string) bool {
		l, ok := arg(name).(py.Const)
		return ok && l.Kind == ssa.BoolLit && l.Bool()
	}
	cur := s.vals.read(self)
	d := cur.DType()
	has := func(name string) bool { return o.Schema.Arg(name) >= 0 }
	switch {
	case has("train"):
		l, ok := arg("train").(py.Const)
		return ok && !l.Bool()
	case has("copy"):
		if litBool("copy") {
			return false
		}
		if f := formatOf(arg("memory_format")); f == channelsLastFormat || f == unknownFormat {
			return false
		}
		if has("other") {
			break
		}
		l, ok := arg("dtype").(py.Const)
		if !ok {
			return false
		}
		if l.IsNone() {
			return true
		}
		return d != tensor.Undefined && tensor.FromCode(int(l.Int())) == d
	case has("memory_format"):
		return s.contiguous(arg("memory_format"), heap.ViewOf(self).Strides, cur.Tensor()) == layout.Shares
	}
	if has("other") {
		other, ok := arg("other").(*py.Tensor)
		return ok && d != tensor.Undefined && s.vals.read(other).DType() == d
	}
	to := view.Of(o.Kind).To
	return to == tensor.Undefined || d == to
}

// strides gives the strides of a view of self, nil if they are not known.
func (s *views) strides(step heap.Step, in []sym.Expr, self, out *ssa.Value) []sym.Expr {
	return view.Strides(&view.Call{Step: &step, Strides: in, Self: self.Tensor(), Out: out.Tensor(), Axes: s.axes})
}

// results makes program values of an op's results; a list result of known length comes as its elements.
func (s *views) results(o *ssa.Op, args []py.Value, vs []*ssa.Value) []py.Value {
	if len(o.Results) == 1 {
		if lt, ok := o.Results[0].Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) != nil {
			if len(vs) == 1 {
				if _, dyn := vs[0].Type.(*ssa.ListType); dyn {
					return []py.Value{&py.List{Cell: s.heap.New(&py.ListState{Dyn: vs[0]}), Elem: lt.Elem}}
				}
			}
			elems := make([]py.Value, len(vs))
			for i, v := range vs {
				elems[i] = s.heap.Laid(v, s.resultStrides(o, args, v))
			}
			return []py.Value{s.heap.List(lt.Elem, elems)}
		}
	}
	out := make([]py.Value, len(vs))
	for i, v := range vs {
		if v.Tensor() != nil {
			out[i] = s.heap.Laid(v, s.resultStrides(o, args, v))
			continue
		}
		out[i] = s.vals.wrap(v)
	}
	return out
}

// movedTo is a view of the form of st with other numbers in some places.
func (s *views) movedTo(st *heap.View, places []heap.Place, args []py.Value) *py.Tensor {
	chain := append([]heap.Step(nil), st.Chain...)
	for i, p := range places {
		old := chain[p.Step].Args
		chain[p.Step].Args = append([]py.Value(nil), old...)
		chain[p.Step].Args[p.Arg] = args[i]
	}
	return s.heap.View(st.Storage, chain, st.Strides, nil, nil)
}

// staysAt reports that the arguments of a view's steps, but for those in places, are there in a block.
func staysAt(st *heap.View, places []heap.Place, b *ssa.Block) bool {
	moves := map[heap.Place]bool{}
	for _, p := range places {
		moves[p] = true
	}
	for i := range st.Chain {
		for k, arg := range st.Chain[i].Args {
			v, ok := arg.(py.Dynamic)
			if l, isList := arg.(*py.List); isList {
				for _, e := range l.State().Elems {
					if v, ok := e.(py.Dynamic); ok && !inScope(v.Value, b) {
						return false
					}
				}
			}
			if ok && !moves[heap.Place{Step: i, Arg: k}] && !inScope(v.Value, b) {
				return false
			}
		}
	}
	return true
}
