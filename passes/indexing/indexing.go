// Package indexing is the pass that brings reads and writes by indices to one form.
package indexing

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// New makes the pass for a table of operators; nil stands for the built-in ones.
//
// The form is aten::index to read and aten::index_put to write, where the indices are int64 tensors of one shape, none of them
// counts from the end, and they stand for the first dimensions of the tensor. A permute before brings the dimensions to the
// front, one behind brings the result into its place. A mask becomes the indices of its true elements; a slice, a select and a
// narrow become those of the elements that they show. Where a size is not known, the indices are the same slice of the positions
// 0, 1, ..., so that bounds are clamped as PyTorch does.
//
// An operator whose operands have unknown ranks stays as it is. So does a function that writes memory, since what it reads may
// be a view that is written: specialize makes such programs functional.
func New(table *aten.Table) passes.Pass {
	return passes.Pass{
		Name:  "legalize-indexing",
		Takes: []passes.State{passes.Functional},
		Doc:   "bring aten operators that read and write by indices, masks and slices to index and index_put on the first dimensions",
		Before: `
graph(%x : Float(4, 5)):
  %1 : int = prim::Constant[value=1]()
  %n : int = prim::Constant[value=-2]()
  %y : Float(4) = aten::select(%x, %1, %n)
  return (%y)`,
		After: `
graph(%x : Float(4, 5)):
  %0 : Long() = prim::Constant[value={3}]()
  %1 : int[] = prim::Constant[value=[1, 0]]()
  %2 : Float(5, 4) = aten::permute(%x, %1)
  %3 : Tensor[] = prim::ListConstruct(%0)
  %y : Float(4) = aten::index(%2, %3)
  return (%y)`,
		Options: []passes.Option{
			{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the ONNX opset that the operators are for", Int: true, Least: 1, Most: onnx.Newest},
		},
		Run: func(c *passes.Context) error {
			if onnx.DefaultOpset(c.Module) != 0 {
				return nil // converted already
			}
			if table == nil {
				table = aten.NewTable()
			}
			table.BindSchemas(c.Module) // graph text does not name overloads
			for _, f := range slices.Clone(c.Module.Funcs) {
				run(&legalizer{c: c, table: table, opset: c.IntOption("opset")}, f)
			}
			return nil
		},
	}
}

func run(l *legalizer, f *ssa.Func) {
	var ops []*ssa.Op
	for o := range f.Body.AllOps() {
		if l.c.Module.Effects(o)&(ssa.Writes|ssa.Unknown) != 0 {
			return
		}
		if o.Schema != nil && forms[o.Kind] != nil && len(o.Results) == 1 && o.NumOperands() == len(o.Schema.Args) {
			ops = append(ops, o)
		}
	}
	l.scratch = l.c.Module.NewFunc("scratch")
	defer l.c.Module.RemoveFunc(l.scratch)
	for _, o := range ops {
		l.at = o
		first := o.Prev()
		y := forms[o.Kind](l)
		if y == nil || y == o.Results[0] {
			l.undo(first)
			continue
		}
		r := o.Results[0]
		if y.Name == "" && r.Name != "" && y.Def() != nil {
			y.Name, r.Name = r.Name, ""
		}
		operands := o.Operands()
		r.ReplaceUses(y)
		o.Erase()
		for _, v := range operands {
			eraseUnused(v)
		}
		l.c.Changed(o.Kind.Name())
	}
}

// undo erases what was made for an operator that stays as it is.
func (l *legalizer) undo(first *ssa.Op) {
	for o := l.at.Prev(); o != nil && o != first; o = l.at.Prev() {
		o.Erase()
	}
}

// eraseUnused erases a constant or a list that nothing uses any more.
func eraseUnused(v *ssa.Value) {
	if v == nil || v.HasUses() || v.Def() == nil || v.Def().Block() == nil || len(v.Def().Results) != 1 {
		return
	}
	switch v.Def().Kind {
	case "prim::Constant", "prim::ListConstruct":
		operands := v.Def().Operands()
		v.Def().Erase()
		for _, w := range operands {
			eraseUnused(w)
		}
	}
}

// forms make the canonical form of an operator; nil where it stays as it is.
var forms = map[ssa.Kind]func(*legalizer) *ssa.Value{
	"aten::index":             (*legalizer).index,
	"aten::_unsafe_index":     (*legalizer).index,
	"aten::index_put":         (*legalizer).indexPut,
	"aten::_unsafe_index_put": (*legalizer).indexPut,
	"aten::_index_put_impl":   (*legalizer).indexPut,
	"aten::select":            func(l *legalizer) *ssa.Value { return l.window("aten::select.int", "index") },
	"aten::slice":             func(l *legalizer) *ssa.Value { return l.window("aten::slice.Tensor", "start", "end", "step") },
	"aten::narrow":            func(l *legalizer) *ssa.Value { return l.window("aten::narrow", "start", "length") },
	"aten::select_scatter":    func(l *legalizer) *ssa.Value { return l.scatterWindow("aten::select.int", "index") },
	"aten::slice_scatter":     func(l *legalizer) *ssa.Value { return l.scatterWindow("aten::slice.Tensor", "start", "end", "step") },
	"aten::index_select":      (*legalizer).indexSelect,
	"aten::index_copy":        func(l *legalizer) *ssa.Value { return l.along("source", false) },
	"aten::index_fill":        func(l *legalizer) *ssa.Value { return l.along("value", false) },
	"aten::index_add":         func(l *legalizer) *ssa.Value { return l.along("source", true) },
	"aten::gather":            (*legalizer).gather,
	"aten::take_along_dim":    (*legalizer).takeAlongDim,
	"aten::scatter":           func(l *legalizer) *ssa.Value { return l.scatter(false) },
	"aten::scatter_add":       func(l *legalizer) *ssa.Value { return l.scatter(true) },
	"aten::take":              (*legalizer).take,
	"aten::put":               (*legalizer).put,
	"aten::masked_select":     (*legalizer).maskedSelect,
}

// arg is an operand by the name of the schema, nil if it is absent or None.
func (l *legalizer) arg(name string) *ssa.Value {
	i := l.at.Schema.Arg(name)
	if i < 0 || i >= l.at.NumOperands() {
		return nil
	}
	v := l.at.Operand(i)
	if lit, ok := aten.LiteralOf(v); ok && lit.IsNone() {
		return nil
	}
	return v
}

// ranked is a tensor operand of known rank and element type, nil if it is none.
func (l *legalizer) ranked(name string) *ssa.Value { return known(l.arg(name)) }

func known(v *ssa.Value) *ssa.Value {
	if v == nil {
		return nil
	}
	if t := v.Tensor(); t == nil || !t.Ranked || t.DType == tensor.Undefined {
		return nil
	}
	return v
}

func rank(v *ssa.Value) int { return len(v.Tensor().Dims) }

// dim is a constant dimension of x.
func (l *legalizer) dim(x *ssa.Value) (int, bool) {
	d, ok := aten.ConstInt(l.arg("dim"))
	n := int64(rank(x))
	if d < 0 {
		d += n
	}
	return int(d), ok && 0 <= d && d < n
}

// entry is the index of one dimension.
type entry struct {
	dim int
	v   *ssa.Value
}

// entries reads a list of indices: masks become rows of indices. ok is false where the list is not understood.
func (l *legalizer) entries(x *ssa.Value) (es []entry, ok bool) {
	list, ok := aten.ListElems(l.arg("indices"))
	if !ok || len(list) == 0 {
		return nil, false
	}
	at := 0
	for _, v := range list {
		if lit, ok := aten.LiteralOf(v); ok && lit.IsNone() {
			at++
			continue
		}
		if known(v) == nil {
			return nil, false
		}
		rows := []*ssa.Value{v}
		switch v.DType() {
		case tensor.Uint8:
			v = l.op("aten::to.dtype", v, int64(tensor.Bool.Code()))
			fallthrough
		case tensor.Bool:
			if rank(v) == 0 {
				return nil, false // it stands for no dimension
			}
			if rows = l.emit("aten::nonzero_numpy", v); len(rows) != rank(v) || rows[0].Tensor() == nil {
				return nil, false
			}
		case tensor.Int64, tensor.Int32:
		default:
			return nil, false
		}
		for _, r := range rows {
			if at >= rank(x) {
				return nil, false
			}
			es = append(es, entry{at, l.fromStart(x, at, r)})
			at++
		}
	}
	return es, len(es) > 0
}

// fromStart gives indices of int64 that do not count from the end.
func (l *legalizer) fromStart(x *ssa.Value, dim int, v *ssa.Value) *ssa.Value {
	if v.DType() != tensor.Int64 {
		v = l.op("aten::to.dtype", v, long)
	}
	if lit, ok := aten.LiteralOf(v); ok && lit.Kind == ssa.TensorLit && lit.Tensor.HasData() {
		ints := lit.Tensor.Int64s()
		if !slices.ContainsFunc(ints, func(i int64) bool { return i < 0 }) {
			return v
		}
		if n, static := x.Tensor().Dims[dim].Int(); static {
			ints = slices.Clone(ints)
			for i := range ints {
				if ints[i] < 0 {
					ints[i] += n
				}
			}
			return l.constant(ssa.TensorValue(tensor.Of(tensor.Int64, lit.Tensor.Shape, ints)))
		}
	} else if notNegative(v) {
		return v
	}
	n := l.size(x, dim)
	return l.op("aten::where.self", l.op("aten::lt.Scalar", v, 0), l.op("aten::add.Scalar", v, n), v)
}

// notNegative reports indices that are known not to count from the end.
func notNegative(v *ssa.Value) bool { return knownFromStart(v, map[*ssa.Value]bool{}) }

// knownFromStart is notNegative; seen are those that were found not to: one that may be negative ends the search.
func knownFromStart(v *ssa.Value, seen map[*ssa.Value]bool) (is bool) {
	d := v.Def()
	if d == nil || seen[v] {
		return seen[v]
	}
	defer func() { seen[v] = is }()
	part := func() bool { return d.Operand(0) != nil && knownFromStart(d.Operand(0), seen) }
	switch aten.NatureOf(d.Kind) {
	case aten.Identity, aten.Transposes, aten.Slices, aten.Splits, aten.Windows, aten.Reshapes, aten.Expands, aten.Joins:
		return part()
	}
	if positionsAlone(v) {
		return len(d.Schema.Args) > 0 && d.Schema.Args[0].Name == "end"
	}
	switch d.Kind {
	case "aten::nonzero_numpy", "aten::nonzero":
		return true
	case "prim::ListUnpack":
		return part()
	case "aten::to": // in a narrow type a large index wraps
		t := v.Tensor()
		return t != nil && (t.DType == tensor.Int64 || t.DType == tensor.Int32) && part()
	case "prim::ListConstruct":
		return !slices.ContainsFunc(d.Operands(), func(v *ssa.Value) bool { return v == nil || !knownFromStart(v, seen) })
	case "aten::where":
		if less := d.Operand(0).Def(); less != nil && less.Kind == "aten::lt" && less.Operand(0) == d.Operand(2) {
			n, ok := aten.ConstInt(less.Operand(1))
			return ok && n == 0
		}
	case "prim::Constant":
		lit, ok := aten.LiteralOf(v)
		return ok && lit.Kind == ssa.TensorLit && lit.Tensor.HasData() && !slices.ContainsFunc(lit.Tensor.Int64s(), func(i int64) bool { return i < 0 })
	}
	return false
}

// oneShape broadcasts the indices to one shape.
func (l *legalizer) oneShape(es []entry) ([]*ssa.Value, bool) {
	vs := make([]*ssa.Value, len(es))
	same := true
	for i, e := range es {
		vs[i] = e.v
		same = same && ssa.SameType(e.v.Type, es[0].v.Type)
	}
	if same {
		return vs, true
	}
	out := l.emit("aten::broadcast_tensors", vs)
	return out, len(out) == len(vs) && known(out[0]) != nil
}

// plan is where indexed dimensions are, and where those of the indices go.
type plan struct {
	perm, back []int64 // of the tensor; nil if the dimensions come first
	// at is the place of the dimensions of the indices in the result.
	at int
}

func newPlan(rank int, es []entry) plan {
	var p plan
	next := true
	for i, e := range es {
		p.perm = append(p.perm, int64(e.dim))
		next = next && (i == 0 || e.dim == es[i-1].dim+1)
	}
	for d := range rank {
		if !slices.Contains(p.perm, int64(d)) {
			p.perm = append(p.perm, int64(d))
		}
	}
	if next {
		p.at = es[0].dim
	}
	if slices.IsSorted(p.perm) {
		p.perm = nil
		return p
	}
	p.back = make([]int64, rank)
	for i, d := range p.perm {
		p.back[d] = int64(i)
	}
	return p
}

// move is the permutation that takes a block of n dimensions from one place to another.
func move(rank, n, from, to int) []int64 {
	var block, rest []int64
	for d := range rank {
		if from <= d && d < from+n {
			block = append(block, int64(d))
		} else {
			rest = append(rest, int64(d))
		}
	}
	return slices.Insert(rest, to, block...)
}

// read reads x by indices.
func (l *legalizer) read(x *ssa.Value, es []entry) *ssa.Value {
	idx, ok := l.oneShape(es)
	if !ok {
		return nil
	}
	p := newPlan(rank(x), es)
	if p.perm != nil {
		x = l.op("aten::permute", x, p.perm)
	}
	y := l.op("aten::index.Tensor", x, idx)
	if p.at > 0 && known(y) != nil && rank(idx[0]) > 0 {
		y = l.op("aten::permute", y, move(rank(y), rank(idx[0]), 0, p.at))
	}
	return y
}

// write gives x with the elements at indices replaced, or added to.
func (l *legalizer) write(x *ssa.Value, es []entry, values *ssa.Value, accumulate any) *ssa.Value {
	idx, ok := l.oneShape(es)
	if !ok || values == nil {
		return nil
	}
	p := newPlan(rank(x), es)
	n := rank(idx[0])
	shown := rank(x) - len(es) + n // the rank of what a read gives
	if rank(values) > shown {
		return nil
	}
	if p.at > 0 && n > 0 && rank(values) > 0 {
		for rank(values) < shown {
			if values = known(l.op("aten::unsqueeze", values, 0)); values == nil {
				return nil
			}
		}
		values = l.op("aten::permute", values, move(shown, n, p.at, 0))
	}
	if p.perm != nil {
		x = l.op("aten::permute", x, p.perm)
	}
	y := l.op("aten::index_put", x, idx, values, accumulate)
	if p.back != nil {
		y = l.op("aten::permute", y, p.back)
	}
	return y
}
