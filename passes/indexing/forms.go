package indexing

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// canonical reports a list of indices that has the form already.
func (l *legalizer) canonical(x *ssa.Value) bool {
	list, _ := aten.ListElems(l.arg("indices"))
	for _, v := range list {
		if known(v) == nil || v.DType() != tensor.Int64 || !notNegative(v) || !ssa.SameType(v.Type, list[0].Type) {
			return false
		}
	}
	return len(list) <= rank(x)
}

func (l *legalizer) index() *ssa.Value {
	x := l.ranked("self")
	if x == nil || l.at.Schema.Arg("indices") < 0 || l.at.Kind == "aten::index" && l.canonical(x) {
		return nil
	}
	es, ok := l.entries(x)
	if !ok {
		return nil
	}
	return l.read(x, es)
}

func (l *legalizer) indexPut() *ssa.Value {
	x, values := l.ranked("self"), l.ranked("values")
	if x == nil || values == nil || l.at.Kind == "aten::index_put" && l.canonical(x) {
		return nil
	}
	es, ok := l.entries(x)
	if !ok {
		return nil
	}
	return l.write(x, es, values, l.arg("accumulate"))
}

// shown are the positions that an operator on a window of one dimension shows: what it makes of all positions. whole says that
// these are all.
func (l *legalizer) shown(x *ssa.Value, kind string, args ...string) (e entry, whole, ok bool) {
	dim, ok := l.dim(x)
	if !ok || l.at.Schema.Arg(args[0]) < 0 {
		return entry{}, false, false
	}
	for _, a := range args {
		if v := l.arg(a); v != nil && v.Tensor() != nil { // a number that data decides
			return entry{}, false, false
		}
	}
	operands := make([]any, len(args))
	consts := make([]int64, len(args))
	all := true
	for i, a := range args {
		v := l.arg(a)
		if operands[i] = v; v == nil {
			operands[i] = nil
		}
		switch lit, ok := aten.LiteralOf(v); {
		case v == nil && a == "end":
			consts[i] = math.MaxInt64
		case v == nil && a == "step":
			consts[i] = 1
		case v == nil:
		case ok && lit.Kind == ssa.IntLit:
			consts[i] = lit.Int()
		default:
			all = false
		}
	}
	if kind == "aten::slice.Tensor" && all && consts[0] == 0 && consts[1] == math.MaxInt64 && consts[2] == 1 {
		return entry{}, true, true
	}
	n, static := x.Tensor().Dims[dim].Int()
	if static && all && n <= constantLimit {
		if at, ok := window(kind, n, consts); ok {
			shape := []int64{int64(len(at))}
			if kind == "aten::select.int" {
				shape = []int64{}
			}
			return entry{dim, l.constant(ssa.TensorValue(tensor.Of(tensor.Int64, shape, at)))}, false, true
		}
		return entry{}, false, false // it raises
	}
	v := l.op(kind, append([]any{l.op("aten::arange", l.size(x, dim), long), 0}, operands...)...)
	return entry{dim, v}, false, known(v) != nil
}

// window lists the positions of n that a window shows; ok is false where PyTorch raises.
func window(kind string, n int64, args []int64) (at []int64, ok bool) {
	fromStart := func(i int64) int64 {
		if i < 0 {
			i += n
		}
		return i
	}
	start, end, step := fromStart(args[0]), int64(0), int64(1)
	switch kind {
	case "aten::select.int":
		return []int64{start}, 0 <= start && start < n
	case "aten::narrow":
		if end = start + args[1]; start < 0 || args[1] < 0 || start > n || end > n {
			return nil, false
		}
	default:
		start, end, step = min(max(start, 0), n), min(max(fromStart(args[1]), 0), n), args[2]
		if step < 1 {
			return nil, false
		}
	}
	for i := start; i < end; i += step {
		at = append(at, i)
		if step > n {
			break
		}
	}
	return at, true
}

// positionsAlone reports a window of positions 0, 1, ..., which is a list of indices itself.
func positionsAlone(x *ssa.Value) bool { return x.Def() != nil && x.Def().Kind == "aten::arange" }

func (l *legalizer) window(kind string, args ...string) *ssa.Value {
	x := l.ranked("self")
	if x == nil || positionsAlone(x) {
		return nil
	}
	e, whole, ok := l.shown(x, kind, args...)
	switch {
	case !ok:
		return nil
	case whole:
		return x
	}
	return l.read(x, []entry{e})
}

func (l *legalizer) scatterWindow(kind string, args ...string) *ssa.Value {
	x, src := l.ranked("self"), l.ranked("src")
	if x == nil || src == nil {
		return nil
	}
	e, whole, ok := l.shown(x, kind, args...)
	if !ok || whole {
		return nil
	}
	return l.write(x, []entry{e}, src, false)
}

// vector is the operand index as indices of a dimension, a vector.
func (l *legalizer) vector() *ssa.Value {
	v := l.ranked("index")
	if v == nil || rank(v) > 1 || !v.DType().IsInt() {
		return nil
	}
	if rank(v) == 0 {
		v = l.op("aten::reshape", v, []int64{1})
	}
	return v
}

func (l *legalizer) indexSelect() *ssa.Value {
	x := l.ranked("self")
	if x == nil || rank(x) == 0 {
		return nil
	}
	dim, ok := l.dim(x)
	v := l.vector()
	if !ok || v == nil {
		return nil
	}
	return l.read(x, []entry{{dim, l.fromStart(x, dim, v)}})
}

// along is index_copy, index_fill and index_add.
func (l *legalizer) along(values string, accumulate bool) *ssa.Value {
	x := l.ranked("self")
	if x == nil || rank(x) == 0 {
		return nil
	}
	if alpha := l.arg("alpha"); alpha != nil {
		if lit, ok := aten.LiteralOf(alpha); !ok || !lit.IsNumber() || lit.Kind == ssa.ComplexLit || lit.Float() != 1 {
			return nil
		}
	}
	dim, ok := l.dim(x)
	v := l.vector()
	src := l.filling(x, values)
	if !ok || v == nil || src == nil || values == "source" && rank(src) != rank(x) {
		return nil
	}
	return l.write(x, []entry{{dim, l.fromStart(x, dim, v)}}, src, accumulate)
}

// filling is a tensor operand, or a number as a tensor of the element type of x.
func (l *legalizer) filling(x *ssa.Value, name string) *ssa.Value {
	v := l.arg(name)
	if v == nil || v.Tensor() != nil {
		return known(v)
	}
	return known(l.op("aten::full", []int64{}, v, int64(x.DType().Code())))
}

// grid are the entries of an operator whose index has an element for each element that it reads or writes: a position for each
// dimension but dim.
func (l *legalizer) grid(index *ssa.Value, dim int, own *ssa.Value) []entry {
	es := make([]entry, rank(index))
	for d := range es {
		if es[d] = (entry{d, own}); d == dim {
			continue
		}
		shape := slices.Repeat([]int64{1}, rank(index))
		shape[d] = -1
		if es[d].v = known(l.op("aten::reshape", l.positions(index, d), shape)); es[d].v == nil {
			return nil
		}
	}
	return es
}

func (l *legalizer) gather() *ssa.Value {
	x, index := l.ranked("self"), l.ranked("index")
	if x == nil || index == nil || rank(x) == 0 || rank(index) != rank(x) {
		return nil
	}
	dim, ok := l.dim(x)
	if !ok {
		return nil
	}
	return l.readGrid(x, index, dim)
}

func (l *legalizer) readGrid(x, index *ssa.Value, dim int) *ssa.Value {
	es := l.grid(index, dim, l.fromStart(x, dim, index))
	if es == nil {
		return nil
	}
	return l.read(x, es)
}

func (l *legalizer) takeAlongDim() *ssa.Value {
	x, index := l.ranked("self"), l.ranked("indices")
	if x == nil || index == nil {
		return nil
	}
	if l.arg("dim") == nil {
		x, index = l.op("aten::reshape", x, []int64{-1}), l.op("aten::reshape", index, []int64{-1})
		return l.readGrid(x, index, 0)
	}
	dim, ok := l.dim(x)
	if !ok || rank(x) != rank(index) {
		return nil
	}
	for d, n := range index.Tensor().Dims { // they would be broadcast
		if d != dim && !n.Equal(x.Tensor().Dims[d]) {
			return nil
		}
	}
	return l.readGrid(x, index, dim)
}

func (l *legalizer) scatter(accumulate bool) *ssa.Value {
	x, index := l.ranked("self"), l.ranked("index")
	if x == nil || index == nil || rank(x) == 0 || rank(index) != rank(x) || l.at.Schema.Arg("reduce") >= 0 {
		return nil
	}
	dim, ok := l.dim(x)
	name := "src"
	if l.at.Schema.Arg("value") >= 0 {
		name = "value"
	}
	src := l.filling(x, name)
	if !ok || src == nil || name == "src" && !sameSizes(src.Tensor().Dims, index.Tensor().Dims) {
		return nil
	}
	es := l.grid(index, dim, l.fromStart(x, dim, index))
	if es == nil {
		return nil
	}
	return l.write(x, es, src, accumulate)
}

func sameSizes(a, b []sym.Expr) bool { return slices.EqualFunc(a, b, sym.Expr.Equal) }

func (l *legalizer) take() *ssa.Value {
	x, index := l.ranked("self"), l.ranked("index")
	if x == nil || index == nil {
		return nil
	}
	x = l.op("aten::reshape", x, []int64{-1})
	return l.read(x, []entry{{0, l.fromStart(x, 0, index)}})
}

func (l *legalizer) put() *ssa.Value {
	x, index, src := l.ranked("self"), l.ranked("index"), l.ranked("source")
	if x == nil || index == nil || src == nil {
		return nil
	}
	shape := []any{}
	for d := range rank(x) {
		shape = append(shape, l.size(x, d))
	}
	flat := l.op("aten::reshape", x, []int64{-1})
	index, src = l.op("aten::reshape", index, []int64{-1}), l.op("aten::reshape", src, []int64{-1})
	y := l.write(flat, []entry{{0, l.fromStart(flat, 0, index)}}, src, l.arg("accumulate"))
	if y == nil {
		return nil
	}
	return l.op("aten::reshape", y, l.sizes(shape))
}

// sizes is a list of ints and values.
func (l *legalizer) sizes(ss []any) *ssa.Value {
	vs := make([]*ssa.Value, len(ss))
	for i, s := range ss {
		vs[i] = l.value(s)
	}
	return l.at.Block().InsertBefore(l.at, "prim::ListConstruct", l.at.Loc, vs, &ssa.ListType{Elem: ssa.IntType}).Results[0]
}

func (l *legalizer) maskedSelect() *ssa.Value {
	x, mask := l.ranked("self"), l.ranked("mask")
	if x == nil || mask == nil || mask.DType() != tensor.Bool {
		return nil
	}
	if !sameSizes(x.Tensor().Dims, mask.Tensor().Dims) {
		both := l.emit("aten::broadcast_tensors", []*ssa.Value{x, mask})
		if len(both) != 2 || known(both[0]) == nil || known(both[1]) == nil {
			return nil
		}
		x, mask = both[0], both[1]
	}
	if rank(mask) == 0 {
		return nil
	}
	rows := l.emit("aten::nonzero_numpy", mask)
	if len(rows) != rank(x) || known(rows[0]) == nil {
		return nil
	}
	es := make([]entry, len(rows))
	for i, r := range rows {
		es[i] = entry{i, r}
	}
	return l.read(x, es)
}
