package specialize

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// The numbers of elements up to which overlap is looked into: of a tensor, and of all together. Beyond, nothing is said of it.
const (
	maxPlaces    = 1 << 16
	maxAllPlaces = 1 << 22
)

// refuseOverlap fails when an operator reads, through another view, elements that it writes: its result would hang on the order in
// which it goes. Where sizes are not known it is looked into for some, and elements that are read before they are written do no harm.
func (s *writes) refuseOverlap(self, other *py.Tensor) {
	a, b := heap.ViewOf(self), heap.ViewOf(other)
	if self == other || a.Storage != b.Storage || len(a.Chain) == 0 && len(b.Chain) == 0 {
		return
	}
	if _, rows := heap.Alike(a, b); rows && a.Storage.Pool && len(a.Chain) == 1 {
		return // they are one row, or two
	}
	refuse := func() {
		s.fail("overlap", "the operator reads elements of memory that it writes, through another view; use .clone() for what it reads")
	}
	if _, ok := staticShape(a.Storage.State().Base); !ok {
		if aten.LayoutOf(s.op.Kind, s.op.Schema) == aten.LikeOperands || s.op.Kind == "aten::copy_" {
			for _, least := range []int64{2, 3} {
				if s.readsWritten(a, b, least) {
					refuse()
				}
			}
		}
		return
	}
	p, q := onnx.ConstOf(s.views.placesOf(a, nil)), onnx.ConstOf(s.views.placesOf(b, nil))
	if p == nil || q == nil {
		return
	}
	if slices.Equal(p.Int64s(), q.Int64s()) || q.NumElements() == 1 && s.op.Kind == "aten::copy_" {
		return // the one element that is read is written with itself
	}
	written := placesIn(p)
	for _, x := range q.Int64s() {
		if written[x] {
			refuse()
		}
	}
}

// readsWritten reports that an elementwise operator that writes a and reads b reads elements that it has written before, where sizes
// that are not known are at least so large. It goes in the order of memory, as PyTorch's iterator does.
func (s *writes) readsWritten(a, b *heap.View, least int64) (yes bool) {
	defer func() {
		switch r := recover().(type) {
		case nil, raised, *failure, needUnroll, needSplit: // the views do not have these sizes: nothing is said of them
		default:
			panic(r)
		}
	}()
	block, last := s.build.cur, s.build.cur.Last()
	defer func() { s.build.eraseAfter(block, last) }()
	env := &sample{least: least, of: map[string]int64{}}
	at, from := s.views.placesOf(a, env), s.views.placesOf(b, env)
	p := onnx.ConstOf(at)
	if p == nil || from == nil {
		return false
	}
	q := onnx.ConstOf(s.vals.emitName("aten::expand_as", from, at))
	if q == nil || q.NumElements() != p.NumElements() {
		return false
	}
	written, reads := placesIn(p), q.Int64s()
	for i, x := range p.Int64s() {
		if reads[i] < x && written[reads[i]] {
			return true
		}
	}
	return false
}

func placesIn(t *tensor.Tensor) map[int64]bool {
	out := make(map[int64]bool, t.NumElements())
	for _, x := range t.Int64s() {
		out[x] = true
	}
	return out
}

// sample gives sizes that are not known some that they can have.
type sample struct {
	least int64
	of    map[string]int64 // by symbol
}

func (e *sample) eval(x sym.Expr) (int64, bool) {
	x.Symbols(func(name string) {
		if _, ok := e.of[name]; !ok {
			e.of[name] = max(e.least, sym.Least(x, name))
		}
	})
	return x.Eval(e.of)
}

// value is x with numbers in the place of sizes.
func (s *views) value(x py.Value, e *sample) py.Value {
	switch x := x.(type) {
	case py.Dynamic:
		if expr, ok := py.ExprOf(x); ok {
			if n, ok := e.eval(expr); ok {
				return py.Int(n)
			}
		}
	case *py.List:
		st := x.State()
		if st.AtRunTime() {
			return x
		}
		elems := make([]py.Value, len(st.Elems))
		for i, y := range st.Elems {
			elems[i] = s.value(y, e)
		}
		return s.heap.List(x.Elem, elems)
	}
	return x
}

// places gives where in the storage the elements of a view are, nil if it is not known.
func (s *views) places(st *heap.View) []int64 {
	if c := onnx.ConstOf(s.placesOf(st, nil)); c != nil {
		return c.Int64s()
	}
	return nil
}

// placesOf is a tensor of the shape of a view that has where in the storage its elements are, nil if there are too many to look, or
// if its sizes are not known and nothing gives them a sample. It is a constant, if all that the view hangs on is.
func (s *views) placesOf(st *heap.View, e *sample) *ssa.Value {
	t := st.Storage.State().Base.Tensor()
	if t == nil || !t.Ranked {
		return nil
	}
	shape, n := make([]int64, len(t.Dims)), int64(1)
	for i, d := range t.Dims {
		size, ok := d.Int()
		if !ok && e != nil {
			size, ok = e.eval(d)
		}
		if !ok || size < 0 {
			return nil
		}
		shape[i] = size
		if n *= min(size, maxPlaces+1); n > maxPlaces {
			return nil
		}
	}
	if s.spent.places += n; s.spent.places > maxAllPlaces {
		return nil
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(i)
	}
	at := s.build.constant(ssa.TensorValue(tensor.FromInts(tensor.Int64, shape, v)))
	for _, step := range st.Chain {
		if e != nil {
			args := make([]py.Value, len(step.Args))
			for k, x := range step.Args {
				args[k] = s.value(x, e)
			}
			step.Args = args
		}
		at = s.vals.step(&step, at)
	}
	return at
}
