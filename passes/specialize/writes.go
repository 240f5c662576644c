package specialize

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/passes/specialize/internal/view"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// write replaces the content of a tensor, and so of the memory it views. v has
// the tensor's dtype and shape.
func (s *writes) write(t *py.Tensor, v *ssa.Value) {
	st := heap.ViewOf(t)
	ss := st.Storage.State()
	if ss.Stale != "" {
		s.fail("alias", "%s", ss.Stale)
	}
	if st.Storage.Overlaps {
		f := s.failure("alias", "the tensor that is written may have several elements in one place of memory, depending on data; use .clone() before writing")
		if f.losers = s.losersOf(ss.Base); len(f.losers) > 0 {
			switch o := f.losers[0]; o.Kind {
			case "prim::Loop":
				f.found.offer(peel, o)
			case "prim::If":
				f.found.offer(split, o)
			}
		}
		panic(f)
	}
	if st.Storage.Listed() {
		s.fail("alias", "%v", heap.ErrListed)
	}
	w := s.writeBack(st, ss.Base, v, aten.IdempotentInPlace(s.op.Kind))
	keepShape(w, ss.Base)
	keepShape(v, t.Val)
	assumed, err := s.heap.Write(s, st.Storage, w, func() string {
		return "this tensor may share memory with one that was written " + s.where() + "; use .clone() to make it independent"
	})
	for _, a := range assumed {
		if s.reaches(a.From.Cell) {
			s.needTwo(a.Axes)
		}
	}
	if err != nil {
		s.fail("alias", "%v", err)
	}
	t.Base, t.Val = w, v
}

// overlaps reports that several elements of a view, whose value is v, may be in one place of memory.
func overlaps(st *heap.View, v *ssa.Value) bool {
	t := v.Tensor()
	if st.Strides == nil || t == nil || len(st.Strides) != len(t.Dims) {
		return st.Storage.Overlaps || view.Spread(st.Chain) >= 0
	}
	for i, by := range st.Strides {
		if by.Is(0) && !t.Dims[i].Is(1) {
			return true
		}
	}
	return st.Storage.Overlaps
}

// writeBack gives the base after its view st was replaced by v. same says that elements of one place get the same value; if they may not,
// none may share a place.
func (s *writes) writeBack(st *heap.View, base, v *ssa.Value, same bool) *ssa.Value {
	chain := st.Chain
	bases := make([]*ssa.Value, len(chain)+1)
	bases[0] = base
	for i := range chain {
		if i+1 < len(chain) {
			bases[i+1] = s.vals.step(&chain[i], bases[i])
			s.needElements(&chain[i], bases[i], bases[i+1])
		} else {
			s.needElements(&chain[i], bases[i], v)
		}
	}
	w := v
	last := len(chain) - 1
	if k := view.Spread(chain); k >= 0 {
		w = s.writeByPlace(chain[k:], st.Strides, bases[k], w, same)
		last = k - 1
	}
	for i := last; i >= 0; i-- {
		w = s.invert(&chain[i], bases[i], w, same)
	}
	return w
}

// keepShape gives a value that replaces another one the sizes of that: writing changes none.
func keepShape(v, old *ssa.Value) {
	if v == nil || old == nil || v.Def() == nil || v.Def().Kind == "prim::Constant" {
		return
	}
	a, b := v.Tensor(), old.Tensor()
	if a != nil && b != nil && b.Ranked && a.DType == b.DType && (!a.Ranked || len(a.Dims) == len(b.Dims)) {
		v.Type = b
	}
}

// writeByPlace writes v through steps by the place in the base that each
// element of the view has. PyTorch refuses writes to elements that share a
// place where it notices; else the last one wins, which is only well defined if
// all of them write the same.
func (s *writes) writeByPlace(chain []heap.Step, strides []sym.Expr, base, v *ssa.Value, same bool) *ssa.Value {
	at := s.vals.emitName("aten::view_as", s.vals.emitName("aten::arange", s.vals.emitName("aten::numel", base)), base)
	for i := range chain {
		at = s.vals.step(&chain[i], at)
	}
	places := onnx.ConstOf(at)
	overlap := places == nil && chain[0].Kind == "aten::unfold" && !apartWindows(&chain[0])
	if t := v.Tensor(); places == nil && chain[0].Kind != "aten::unfold" {
		overlap = t == nil || len(strides) != len(t.Dims)
		for i := range strides {
			overlap = overlap || strides[i].Is(0) && !t.Dims[i].Is(1)
		}
	}
	if places != nil {
		overlap = repeats(places.Int64s())
	}
	if overlap && !same {
		s.fail("view-write", "the tensor that is written has several elements in one place of memory; use .clone() before writing")
	}
	return s.vals.emitName("aten::put", base, at, v)
}

func repeats(places []int64) bool {
	seen := map[int64]bool{}
	for _, p := range places {
		if seen[p] {
			return true
		}
		seen[p] = true
	}
	return false
}

// apartWindows reports that the windows of an unfold do not overlap.
func apartWindows(st *heap.Step) bool {
	size, ok := py.LiteralOf(st.Args[st.Schema.Arg("size")])
	step, ok2 := py.LiteralOf(st.Args[st.Schema.Arg("step")])
	return ok && ok2 && step.Int() >= size.Int()
}

// Derive implements heap.Graph.
func (s *writes) Derive(st *heap.Step, base *ssa.Value) *ssa.Value { return s.vals.step(st, base) }

// Replace implements heap.Graph. It is called for one case of several, in which v has the shape of the view though its own type
// may say less, or be that of v in all cases. v may have been written in part: elements of one place differ then, whatever the operator at hand is.
func (s *writes) Replace(view *heap.View, base, v *ssa.Value) *ssa.Value {
	if shown := view.Derive(s, base); !sameSizes(shown, v) {
		v = s.vals.emitName("aten::view_as", v, shown)
		keepShape(v, shown)
	}
	w := s.writeBack(view, base, v, false)
	if w != v {
		keepShape(w, base)
	}
	return w
}

// sameSizes reports two values that are known to have one shape.
func sameSizes(a, b *ssa.Value) bool {
	x, y := a.Tensor(), b.Tensor()
	return x != nil && y != nil && x.Ranked && y.Ranked && slices.EqualFunc(x.Dims, y.Dims, sym.Expr.Equal)
}

// When implements heap.Graph.
func (s *writes) When(cond *ssa.Value, side bool, v *ssa.Value, f func() *ssa.Value) *ssa.Value {
	return s.build.when(cond, side, v, f)
}

// Reaches implements heap.Graph.
func (s *writes) Reaches(v *ssa.Value) bool { return inScope(v, s.build.cur) }

// invert gives the base after its view of one step was replaced by v.
func (s *writes) invert(st *heap.Step, base, v *ssa.Value, same bool) *ssa.Value {
	if at, ok := st.Args[len(st.Args)-1].(py.Dynamic); ok && st.Kind == "aten::take" {
		if p, strided := s.views.strided[at.Value]; strided && !same {
			switch p.spacing {
			case coincide:
				s.failWrite(st)
			case mayCoincide:
				checked := *st
				checked.Args = slices.Clone(st.Args)
				checked.Args[len(checked.Args)-1] = py.Dyn(s.views.writable(at.Value, p))
				st = &checked
			}
		}
	}
	inverse := view.Of(st.Kind).Inverse
	if inverse == nil {
		s.failWrite(st)
	}
	w := inverse(graph{s.vals}, st, base, v)
	if w == nil {
		s.failWrite(st)
	}
	return w
}

func (s *writes) failWrite(st *heap.Step) {
	s.fail("view-write", "a write through %s cannot be resolved; use .clone() before writing", st.Kind)
}

// graph is the target program as the inverses of views see it.
type graph struct{ vals *values }

func (g graph) Emit(name string, args ...any) *ssa.Value { return g.vals.emitName(name, args...) }

func (g graph) EmitOp(kind ssa.Kind, schema *ssa.Schema, operands ...*ssa.Value) []*ssa.Value {
	return g.vals.build.emit(kind, schema, operands...)
}

func (g graph) Operands(args []py.Value) []*ssa.Value { return g.vals.operands(args) }

func (g graph) IntOp(name string, a, b py.Value) py.Value { return g.vals.intOp(name, a, b) }

func (g graph) Tensors(elems []*ssa.Value) py.Value {
	out := make([]py.Value, len(elems))
	for i, e := range elems {
		out[i] = py.Dyn(e)
	}
	return g.vals.heap.List(ssa.AnyTensor, out)
}
