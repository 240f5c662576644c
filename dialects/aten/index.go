package aten

import (
	"fmt"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// indexing holds reads and writes by tensors of indices and by masks, with the
// rules of ATen/native/TensorAdvancedIndexing.cpp: masks stand for the indices
// of their true elements, indices broadcast together, and their dimensions take
// the place of the indexed ones, or the front if a slice lies between these.
var indexing = Defs{
	"aten::index":                               {Doc: "reads elements by tensors of indices and masks", Gradient: "self: index_put(zeros_like(self), indices, grad, True)", Nature: Moves, Lower: lowerIndex},
	"aten::_unsafe_index":                       {Doc: "index without bounds checks", Lower: lowerIndex},
	"aten::index_put":                           {Doc: "self with elements replaced or added to, by tensors of indices and masks", Gradient: "self: accumulate ? grad : index_put(grad, indices, zeros_like(values), False); values: sum_to_size(index(grad, indices), size(values))", Nature: Scatters, Layout: LikeOperands, Lower: lowerIndexPut},
	"aten::_index_put_impl":                     {Doc: "index_put", Lower: lowerIndexPut},
	"aten::_unsafe_index_put":                   {Doc: "index_put without bounds checks", Lower: lowerIndexPut},
	"aten::_unsafe_masked_index":                {Doc: "index where mask holds, else fill", Lower: lowerMaskedIndex},
	"aten::_unsafe_masked_index_put_accumulate": {Doc: "adds values where mask holds", Lower: lowerMaskedIndexPut},
}

// indexPlan is what the index list of index and index_put means.
type indexPlan struct {
	// dims are the indexed dims of self in ascending order, and idx their
	// indices, int64 or int32, wrapped by ONNX where negative.
	dims []int
	idx  []*ssa.Value
	// front tells that the dims of the indices come first in the result.
	front bool
}

// indexEntry is one place of the index list: a tensor of indices, or a mask over one or more dims.
type indexEntry struct {
	at   int // the first dim it stands for
	v    *ssa.Value
	mask bool
}

func (e indexEntry) span(l *Lowering) int {
	if e.mask {
		return l.Rank(e.v)
	}
	return 1
}

// indexEntries reads the index list. Masks of uint8 become bool.
func (l *Lowering) indexEntries(x *ssa.Value, list []*ssa.Value) []indexEntry {
	var out []indexEntry
	at := 0
	for _, v := range list {
		if v == nil {
			at++
			continue
		}
		e := indexEntry{at: at, v: v}
		switch l.DType(v) {
		case tensor.Bool:
			e.mask = true
		case tensor.Uint8:
			e.mask, e.v = true, l.Cast(v, tensor.Bool)
		case tensor.Int64, tensor.Int32:
		default:
			panic(&Failure{ID: "unsupported-args", Message: fmt.Sprintf("tensors used as indices must be integers or bools, found %v", l.DType(v)),
				Hint: "give the input integers in --input, such as 'i:i64[N]', or convert the tensor in the program"})
		}
		at += e.span(l)
		out = append(out, e)
	}
	if rank := l.Rank(x); at > rank {
		l.Fail("%d indices for a tensor of rank %d", at, rank)
	}
	return out
}

// scalarMasks gives masks of rank 0, which stand for no dim, a dim of size 1 to stand for, and lists these dims.
func (l *Lowering) scalarMasks(x *ssa.Value, list []*ssa.Value) (*ssa.Value, []*ssa.Value, []int64) {
	var ones []int64
	list = append([]*ssa.Value(nil), list...)
	at := 0
	for i, v := range list {
		if v == nil || l.DType(v) != tensor.Bool && l.DType(v) != tensor.Uint8 {
			at++
			continue
		}
		rank := l.Rank(v)
		if rank == 0 {
			x, list[i] = l.unsqueeze(x, int64(at)), l.unsqueeze(v, 0)
			ones = append(ones, int64(at))
			rank = 1
		}
		at += rank
	}
	return x, list, ones
}

// plan expands masks to the indices of their true elements.
func (l *Lowering) plan(entries []indexEntry) indexPlan {
	var p indexPlan
	for _, e := range entries {
		if !e.mask {
			p.dims = append(p.dims, e.at)
			p.idx = append(p.idx, e.v)
			continue
		}
		for i, row := range l.nonzeroRows(e.v) {
			p.dims = append(p.dims, e.at+i)
			p.idx = append(p.idx, row)
		}
	}
	for i := 1; i < len(p.dims); i++ {
		p.front = p.front || p.dims[i] != p.dims[i-1]+1
	}
	return p
}

// nonzeroRows gives the indices of the true elements, a vector for each dim.
func (l *Lowering) nonzeroRows(mask *ssa.Value) []*ssa.Value {
	nz := l.NonZero(mask)
	rank := l.Rank(mask)
	if rank == 1 {
		return []*ssa.Value{l.squeeze(nz, 0)}
	}
	rows := make([]*ssa.Value, rank)
	for i := range rows {
		rows[i] = l.gather(nz, l.Const(tensor.ScalarInt(int64(i))), 0)
	}
	return rows
}

func lowerIndex(l *Lowering) *ssa.Value {
	if l.HasArg("el") {
		l.Fail("the place of an element in a list depends on data")
	}
	x, list, _ := l.scalarMasks(l.Tensor("self"), l.Tensors("indices"))
	return l.index(x, l.indexEntries(x, list))
}

func (l *Lowering) index(x *ssa.Value, entries []indexEntry) *ssa.Value {
	switch len(entries) {
	case 0:
		return x
	case 1:
		e := entries[0]
		if e.mask {
			return l.compress(x, e.v, e.at)
		}
		return l.gatherWrapped(x, e.v, e.at)
	}
	return l.gatherPlan(x, l.plan(entries))
}

// gatherWrapped is Gather by indices that may be negative.
func (l *Lowering) gatherWrapped(x, idx *ssa.Value, dim int) *ssa.Value {
	return l.gather(x, l.plainRange(idx), dim)
}

// plainRange rebuilds a range with bounds that may be negative from its mirror
// image: onnxruntime makes a Slice of a Gather by a Range, and a negative bound of
// a Slice counts from the end.
func (l *Lowering) plainRange(idx *ssa.Value) *ssa.Value {
	d := idx.Def()
	if d == nil || d.Kind != "onnx::Range" {
		return idx
	}
	negative := false
	for i := range 3 {
		s := d.Operand(i).Sym
		negative = negative || len(s) != 1 || s[0].Min() < 0
	}
	if !negative {
		return idx
	}
	neg := func(v *ssa.Value) *ssa.Value { return l.Neg(v) }
	return neg(l.Range(neg(d.Operand(0)), neg(d.Operand(1)), neg(d.Operand(2))))
}

// wrapIndices adds n to negative int64 indices.
func (l *Lowering) wrapIndices(idx *ssa.Value, n Size) *ssa.Value {
	if c, ok := constInts(idx); ok {
		size, static := n.Int()
		neg := false
		out := make([]int64, len(c))
		for i, v := range c {
			out[i] = v
			if v < 0 {
				neg = true
				out[i] += size
			}
		}
		switch {
		case !neg:
			return idx
		case static:
			shape, _ := idx.Tensor().Static()
			return l.Const(tensor.Of(tensor.Int64, shape, out))
		}
	}
	zero := l.Const(tensor.ScalarInt(0))
	return l.Where(l.Less(idx, zero), l.Add(idx, l.sizeValue(n)), idx)
}

// compress keeps the parts of x whose mask holds, in one dim at the mask's first.
func (l *Lowering) compress(x, mask *ssa.Value, at int) *ssa.Value {
	span, rank := l.Rank(mask), l.Rank(x)
	if span == rank {
		if span > 1 {
			mask = l.reshape(mask, -1)
		}
		if rank == 1 {
			return l.Compress(x, mask, onnx.Axis(0))
		}
		return l.Compress(x, mask)
	}
	if span > 1 {
		x, mask = l.flattenDims(x, at, at+span-1), l.reshape(mask, -1)
	}
	return l.Compress(x, mask, onnx.Axis(at))
}

// broadcastIndices gives the indices one shape, as int64.
func (l *Lowering) broadcastIndices(idx []*ssa.Value) (out []*ssa.Value, sizes []Size) {
	shapes := make([][]Size, len(idx))
	for i, v := range idx {
		shapes[i] = l.allSizes(v)
	}
	sizes = l.broadcastSizes(shapes...)
	out = make([]*ssa.Value, len(idx))
	for i, v := range idx {
		out[i] = l.Cast(l.expandTo(v, sizes), tensor.Int64)
	}
	return out, sizes
}

// toFront gives the permutation that puts dims first, and its inverse; nil if they are.
func toFront(rank int, dims []int) (perm, back []int64) {
	used := make([]bool, rank)
	same := true
	for i, d := range dims {
		same = same && i == d
		used[d] = true
		perm = append(perm, int64(d))
	}
	if same {
		return nil, nil
	}
	for d := range rank {
		if !used[d] {
			perm = append(perm, int64(d))
		}
	}
	back = make([]int64, rank)
	for i, p := range perm {
		back[p] = int64(i)
	}
	return perm, back
}

// blockPerm moves a block of n dims from the front to position at, or back.
func blockPerm(rank, n, at int, back bool) []int64 {
	perm := make([]int64, 0, rank)
	if back {
		// at.. first, then the rest
		for i := range n {
			perm = append(perm, int64(at+i))
		}
		for i := range rank {
			if i < at || i >= at+n {
				perm = append(perm, int64(i))
			}
		}
		return perm
	}
	for i := range at {
		perm = append(perm, int64(n+i))
	}
	for i := range n {
		perm = append(perm, int64(i))
	}
	for i := n + at; i < rank; i++ {
		perm = append(perm, int64(i))
	}
	return perm
}

// gatherPlan reads by several index tensors.
func (l *Lowering) gatherPlan(x *ssa.Value, p indexPlan) *ssa.Value {
	if axes, ok := l.allInOrder(x, p); ok {
		return l.unsqueeze(x, axes...)
	}
	rank := l.Rank(x)
	idx, sizes := l.broadcastIndices(p.idx)
	constant := true
	for _, v := range idx {
		_, ok := constInts(v)
		constant = constant && ok
	}
	for _, d := range p.dims {
		_, ok := l.Shape(x)[d].Int()
		constant = constant && ok
	}
	if !p.front && constant {
		// one index into the merged dims
		first, last := p.dims[0], p.dims[len(p.dims)-1]
		return l.gather(l.flattenDims(x, first, last), l.linearIndex(x, p.dims, idx), first)
	}
	perm, _ := toFront(rank, p.dims)
	if perm != nil {
		x = l.transpose(x, perm...)
	}
	y := l.GatherND(x, l.stackLast(idx))
	if !p.front && p.dims[0] > 0 {
		y = l.transpose(y, blockPerm(l.Rank(y), len(sizes), p.dims[0], false)...)
	}
	return y
}

// allInOrder reports whether each index counts all of its dim along an axis of its own, in the order of the dims, and gives the
// axes of size 1 that the result has beside them: a model that asks for mask[batch, key] of every batch and every key reads the
// mask as it is.
func (l *Lowering) allInOrder(x *ssa.Value, p indexPlan) (axes []int64, ok bool) {
	rank, next := 0, 0
	for _, v := range p.idx {
		rank = max(rank, l.Rank(v))
	}
	for i, v := range p.idx {
		n := l.Shape(x)[p.dims[i]]
		own := -1
		for axis, size := range l.Shape(v) {
			if size.Is(1) {
				continue
			}
			if own >= 0 || !size.Equal(n) {
				return nil, false
			}
			own = axis + rank - l.Rank(v)
		}
		if own < next || !counts(v, n) {
			return nil, false
		}
		for ; next < own; next++ {
			axes = append(axes, int64(p.dims[0]+next))
		}
		next++
	}
	for ; next < rank; next++ {
		axes = append(axes, int64(p.dims[0]+next))
	}
	return axes, !p.front
}

// counts reports whether the elements of v are 0 to n-1 in their order.
func counts(v *ssa.Value, n sym.Expr) bool {
	same := func(o *ssa.Op) bool {
		if o.Kind == "onnx::Add" {
			c, ok := constInts(o.Operand(1))
			return ok && len(c) == 1 && c[0] == 0
		}
		return o.Kind == "onnx::Reshape" || o.Kind == "onnx::Unsqueeze"
	}
	d := v.Def()
	for d != nil && same(d) {
		d = d.Operand(0).Def()
	}
	if d == nil || d.Kind != "onnx::Range" {
		return false
	}
	for i, want := range []sym.Expr{sym.Const(0), n, sym.Const(1)} {
		if s := d.Operand(i).Sym; len(s) != 1 || !s[0].Equal(want) {
			return false
		}
	}
	return true
}

// linearIndex merges indices of adjacent dims to one, row-major, all wrapped.
func (l *Lowering) linearIndex(x *ssa.Value, dims []int, idx []*ssa.Value) *ssa.Value {
	var at *ssa.Value
	for i, v := range idx {
		n := l.sizeOf(x, dims[i])
		v = l.wrapIndices(v, n)
		if at == nil {
			at = v
			continue
		}
		at = l.Add(l.Mul(at, l.sizeValue(n)), v)
	}
	return at
}

// stackLast joins index tensors along a new last dim.
func (l *Lowering) stackLast(idx []*ssa.Value) *ssa.Value {
	rank := int64(l.Rank(idx[0]))
	parts := make([]*ssa.Value, len(idx))
	for i, v := range idx {
		parts[i] = l.unsqueeze(v, rank)
	}
	return l.concatV(rank, parts...)
}

func lowerIndexPut(l *Lowering) *ssa.Value {
	x, list, ones := l.scalarMasks(l.Tensor("self"), l.Tensors("indices"))
	values := l.Cast(l.Tensor("values"), l.DType(x))
	return l.squeeze(l.indexPut(x, l.indexEntries(x, list), values, l.Bool("accumulate")), ones...)
}

func (l *Lowering) indexPut(x *ssa.Value, entries []indexEntry, values *ssa.Value, accumulate bool) *ssa.Value {
	rank := l.Rank(x)
	if len(entries) == 0 {
		values = l.expandTo(values, l.allSizes(x))
		if accumulate {
			return l.addTo(x, values)
		}
		return values
	}
	if len(entries) == 1 && entries[0].mask {
		if y := l.maskPut(x, entries[0], values, accumulate); y != nil {
			return y
		}
	}
	p := l.plan(entries)
	idx, sizes := l.broadcastIndices(p.idx)
	// the shape that a read by these indices has
	dims := l.allSizes(x)
	var rest []Size
	indexed := map[int]bool{}
	for _, d := range p.dims {
		indexed[d] = true
	}
	for i, d := range dims {
		if !indexed[i] {
			rest = append(rest, d)
		}
	}
	at := 0
	if !p.front {
		at = p.dims[0]
	}
	shape := append(append(append([]Size(nil), rest[:at]...), sizes...), rest[at:]...)
	values = l.expandTo(l.dropLeadingOnes(values, len(shape)), shape)
	if at > 0 {
		values = l.transpose(values, blockPerm(len(shape), len(sizes), at, true)...)
	}
	perm, back := toFront(rank, p.dims)
	if perm != nil {
		x = l.transpose(x, perm...)
	}
	var y *ssa.Value
	if accumulate {
		y = l.scatterNDAdd(x, l.stackLast(idx), values)
	} else {
		y = l.scatterND(x, l.stackLast(idx), values)
	}
	if back != nil {
		y = l.transpose(y, back...)
	}
	return y
}

// dropLeadingOnes removes surplus leading dims of size 1.
func (l *Lowering) dropLeadingOnes(v *ssa.Value, rank int) *ssa.Value {
	var axes []int64
	for i := range l.Rank(v) - rank {
		if !l.Shape(v)[i].Is(1) {
			l.Fail("values of rank %d do not fit into %d dimensions", l.Rank(v), rank)
		}
		axes = append(axes, int64(i))
	}
	return l.squeeze(v, axes...)
}

// addTo adds; for bools that is or.
func (l *Lowering) addTo(x, v *ssa.Value) *ssa.Value {
	if l.DType(x) == tensor.Bool {
		return l.Or(x, v)
	}
	return l.Add(x, v)
}

// maskPut writes one value for all true elements, nil if values differ by element.
func (l *Lowering) maskPut(x *ssa.Value, e indexEntry, values *ssa.Value, accumulate bool) *ssa.Value {
	rank, span := l.Rank(x), l.Rank(e.v)
	rest := rank - e.at - span
	vr := l.Rank(values)
	if vr > e.at+1+rest {
		return nil
	}
	if vr > rest {
		// the dim that counts the true elements
		if !l.Shape(values)[vr-rest-1].Is(1) {
			return nil
		}
		if vr > rest+1 {
			var axes []int64
			for i := range span - 1 {
				axes = append(axes, int64(vr-rest+i))
			}
			values = l.unsqueeze(values, axes...)
		} else {
			values = l.squeeze(values, 0)
		}
	}
	mask := e.v
	var axes []int64
	for i := range rest {
		axes = append(axes, int64(span+i))
	}
	mask = l.unsqueeze(mask, axes...)
	if accumulate {
		values = l.addTo(x, values)
	}
	return l.Where(mask, values, x)
}

func (l *Lowering) clampIndices(x *ssa.Value, list []*ssa.Value) []*ssa.Value {
	out := make([]*ssa.Value, len(list))
	for i, v := range list {
		if v == nil {
			continue
		}
		last := l.sizeValue(l.subSize(l.sizeOf(x, i), ConstSize(1)))
		v = l.Cast(v, tensor.Int64)
		out[i] = l.Max(l.Min(v, last), l.Const(tensor.ScalarInt(0)))
	}
	return out
}

func lowerMaskedIndex(l *Lowering) *ssa.Value {
	x, mask := l.Tensor("self"), l.Tensor("mask")
	fill := l.as("fill", l.DType(x))
	if _, ok := dimsOf(l.Shape(x)); ok && anyZero(l.Shape(x)) {
		l.Fail("reads a tensor without elements")
	}
	y := l.index(x, l.indexEntries(x, l.clampIndices(x, l.Tensors("indices"))))
	return l.Where(l.Cast(mask, tensor.Bool), y, fill)
}

func lowerMaskedIndexPut(l *Lowering) *ssa.Value {
	x, mask := l.Tensor("self"), l.Tensor("mask")
	values := l.Cast(l.Tensor("values"), l.DType(x))
	if anyZero(l.Shape(x)) {
		return x
	}
	values = l.Where(l.Cast(mask, tensor.Bool), values, l.Like(x, 0))
	return l.indexPut(x, l.indexEntries(x, l.clampIndices(x, l.Tensors("indices"))), values, true)
}
