package specialize

import (
	"cmp"
	"fmt"
	"slices"

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
	from := s.storageOffset(args[3], st)
	size, ok := py.LiteralOf(args[1])
	stride, ok2 := py.LiteralOf(args[2])
	start, ok3 := py.LiteralOf(from)
	if !ok || !ok2 || !ok3 {
		return s.dynamicStrided(root, base, args[1], args[2], from)
	}
	offset := start.Int()
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
	p := places{n: ints(sizes), by: ints(strides)}
	if n > foldElems {
		at = s.grid(py.Int(offset), p.n, p.by)
		p.spacing = spacingOf(p.n, p.by)
	} else {
		all := make([]int64, int(n))
		for i := range all {
			rest, at := int64(i), offset
			for d := len(sizes) - 1; d >= 0; d-- {
				at += rest % sizes[d] * strides[d]
				rest /= sizes[d]
			}
			all[i] = at
		}
		at = s.build.constant(ssa.TensorValue(tensor.FromInts(tensor.Int64, sizes, all)))
		if p.spacing = apart; repeats(all) {
			p.spacing = coincide
		}
	}
	s.strided[at] = p
	return s.take(root, base, at, ssa.Sizes(strides))
}

// places are the places offset + sum of i_k * by_k of a view over all i_k below n_k.
type places struct {
	n, by   []py.Value
	spacing spacing
}

// spacing says whether several indices of a view have one place.
type spacing int

const (
	mayCoincide spacing = iota // for some sizes they have, or that is not known
	coincide
	apart
)

// writable gives the places of a view at that is written. If several indices have one, they are beyond every tensor: there PyTorch writes once for each of them, and
// a scatter once.
func (s *views) writable(at *ssa.Value, p places) *ssa.Value {
	collisions := func(order []int) py.Value { // of axes that are not as far apart as those of smaller strides together reach
		reach, all := py.Value(py.Int(1)), py.Value(py.Int(0))
		for _, i := range order {
			more := s.vals.intOp("sub", p.n[i], py.Int(1))
			close := s.vals.scalar("aten::lt", aten.SchemaByName("aten::lt.int"), []py.Value{p.by[i], reach})[0]
			is := s.vals.scalar("aten::Int", aten.SchemaByName("aten::Int.bool"), []py.Value{close})[0]
			all = s.vals.intOp("add", all, s.vals.intOp("mul", is, more))
			reach = s.vals.intOp("add", reach, s.vals.intOp("mul", p.by[i], more))
		}
		return all
	}
	up := make([]int, len(p.n))
	for i := range up {
		up[i] = i
	}
	down := slices.Clone(up)
	slices.Reverse(down)
	both := s.vals.intOp("mul", collisions(down), collisions(up)) // in one of the orders all are apart
	return s.vals.emitName("aten::add.Tensor", at, s.vals.materialize(s.vals.intOp("mul", both, py.Int(outside))))
}

// spacingOf is the spacing of the places sum of i_k * by_k over all i_k below n_k. They are apart where each stride is beyond all places that the smaller
// ones reach together; of others with known sizes and strides it is taken that they are not.
func spacingOf(n, by []py.Value) spacing {
	sizes, ok := py.Exprs(n)
	strides, ok2 := py.Exprs(by)
	if !ok || !ok2 {
		return mayCoincide
	}
	order := make([]int, 0, len(n)) // of the axes, from the one of the smallest stride
	known := true
	for i := range n {
		size, fixed := sizes[i].Int()
		if fixed && size == 1 {
			continue
		}
		_, also := strides[i].Int()
		known = known && fixed && also
		order = append(order, i)
	}
	slices.Reverse(order) // as most programs have them
	slices.SortStableFunc(order, func(i, j int) int {
		a, fixed := strides[i].Int()
		b, also := strides[j].Int()
		if !fixed || !also {
			return 0
		}
		return cmp.Compare(a, b)
	})
	reach := sym.Const(1)
	for _, i := range order {
		if !strides[i].AtLeast(reach) {
			if known {
				return coincide
			}
			return mayCoincide
		}
		reach = reach.Add(strides[i].Mul(sizes[i].Sub(sym.Const(1))))
	}
	return apart
}

// ints are integers as values of the program.
func ints(of []int64) []py.Value {
	out := make([]py.Value, len(of))
	for i, n := range of {
		out[i] = py.Of(ssa.Int(n))
	}
	return out
}

// storageOffset is the place of the first element: the argument, or where self begins.
func (s *views) storageOffset(arg py.Value, self *heap.View) py.Value {
	if !py.IsNone(arg) {
		return arg
	}
	if view.BeginsAtBase(self.Chain) {
		return py.Int(0)
	}
	if at := s.places(self); len(at) > 0 {
		return py.Int(at[0])
	}
	e, ok := s.firstPlace(self)
	if !ok {
		s.fail("view", "as_strided of a part of a tensor whose place in memory is not known; give a storage_offset")
	}
	n, ok := s.computed(e, self.Storage.State().Base)
	if !ok {
		s.fail("view", "as_strided of a part of a tensor whose place in memory hangs on a dynamic axis; give a storage_offset")
	}
	return n
}

// computed gives a stride or place that is made of the sizes of base, where an axis of size 0 counts as one of 1; ok is false if it is made of
// others.
func (s *views) computed(e sym.Expr, base *ssa.Value) (n py.Value, ok bool) {
	for i, stride := range layout.RowMajor(base.Tensor()) {
		if times, ok := e.Divide(stride); ok && times.IsConst() {
			k, _ := times.Int()
			return s.vals.intOp("mul", s.vals.sizesBehind(base, i), py.Int(k)), true
		}
	}
	ok = true
	op := func(name string, x, y py.Value) py.Value {
		fn, known := map[string]string{"+": "add", "*": "mul", "//": "floordiv", "%": "remainder"}[name]
		if !known {
			ok = false
			return x
		}
		return s.vals.intOp(fn, x, y)
	}
	symbol := func(name string) py.Value {
		for i, d := range base.Tensor().Dims {
			if is, single := d.Name(); single && is == name {
				return s.vals.atLeastOne(s.vals.sizeOf(base, i))
			}
		}
		ok = false
		return py.Int(0)
	}
	n, closed := sym.Evaluate(e, func(n int64) py.Value { return py.Int(n) }, symbol, op)
	return n, ok && closed
}

// grid is offset + sum of i_k * by_k over all i_k below n_k, computed at run time.
func (s *views) grid(offset py.Value, n, by []py.Value) *ssa.Value {
	start, known := py.LiteralOf(offset)
	first := int64(0)
	if known {
		first = start.Int()
	}
	at := s.build.constant(ssa.TensorValue(tensor.ScalarInt(first)))
	for i := range n {
		row := s.vals.emitName("aten::mul.Tensor", s.vals.emitName("aten::arange", s.vals.materialize(n[i])), s.vals.materialize(by[i]))
		at = s.vals.emitName("aten::add.Tensor", s.vals.emitName("aten::unsqueeze", at, ssa.Int(-1)), row)
	}
	if known {
		return at
	}
	return s.vals.emitName("aten::add.Tensor", at, s.vals.materialize(offset))
}

// take is the view of the elements at these places of a storage.
func (s *views) take(root *heap.Storage, base, at *ssa.Value, strides []sym.Expr) *py.Tensor {
	v := s.vals.emitName("aten::take", base, at)
	step := heap.Step{Kind: "aten::take", Schema: aten.SchemaByName("aten::take"), Args: []py.Value{nil, py.Dyn(at)}}
	return s.heap.View(root, []heap.Step{step}, strides, base, v)
}

// dynamicStrided is asStrided where sizes, strides or the offset are computed at run time: the places are offset + sum of i_k * stride_k.
func (s *views) dynamicStrided(root *heap.Storage, base *ssa.Value, size, stride, offset py.Value) *py.Tensor {
	sizes, ok := size.(*py.List)
	strides, ok2 := stride.(*py.List)
	if !ok || !ok2 || sizes.State().AtRunTime() || strides.State().AtRunTime() {
		s.fail("dynamic-axis", "as_strided with sizes or strides that are only known at run time")
	}
	n, by := sizes.State().Elems, strides.State().Elems
	if len(n) != len(by) {
		s.fail("view", "as_strided with %d sizes and %d strides", len(n), len(by))
	}
	from := make([]py.Value, len(by))
	for i := range by {
		from[i] = s.inBounds(by[i])
	}
	at := s.grid(s.inBounds(offset), n, from)
	s.strided[at] = places{n, by, spacingOf(n, by)}
	return s.take(root, base, at, nil)
}

// outside is an index that no tensor has.
const outside = 1 << 40

// inBounds returns n, or an index beyond every tensor if n is negative at run time: PyTorch raises then, and an index below 0 would count from the end. An
// axis of size 1 does not notice.
func (s *views) inBounds(n py.Value) py.Value {
	if es, ok := py.Exprs([]py.Value{n}); ok && es[0].Min() >= 0 {
		return n
	}
	negative := s.vals.scalar("aten::lt", aten.SchemaByName("aten::lt.int"), []py.Value{n, py.Int(0)})[0]
	if l, ok := py.LiteralOf(negative); ok && !l.Bool() {
		return n
	}
	is := s.vals.scalar("aten::Int", aten.SchemaByName("aten::Int.bool"), []py.Value{negative})[0]
	return s.vals.intOp("add", n, s.vals.intOp("mul", is, py.Int(outside)))
}
