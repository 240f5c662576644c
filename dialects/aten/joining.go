package aten

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// joining holds operators that join tensors, repeat them, or reorder their elements.
var joining = Defs{
	"aten::cat":                    {Doc: "joins tensors along a dimension", Gradient: "tensors: split_with_sizes(grad, sizes(tensors, dim), dim)", Nature: Joins, Type: ofJoin, Lower: lowerCat},
	"aten::concat":                 {Doc: "cat", Nature: Joins, Alias: "aten::cat", Lower: lowerCat},
	"aten::concatenate":            {Doc: "cat", Nature: Joins, Alias: "aten::cat", Lower: lowerCat},
	"aten::stack":                  {Doc: "joins tensors along a new dimension", Gradient: "tensors: unbind(grad, dim)", Nature: Joins, Lower: lowerStack},
	"aten::_stack":                 {Doc: "stack", Nature: Joins, Lower: lowerStack},
	"aten::pad_sequence":           {Doc: "tensors of several lengths along a new dimension, filled up to the longest", Lower: lowerPadSequence},
	"aten::hstack":                 {Doc: "joins columns", Nature: Joins, Layout: RowMajor, Lower: lowerHstack},
	"aten::vstack":                 {Doc: "joins rows", Nature: Joins, Layout: RowMajor, Lower: lowerVstack},
	"aten::row_stack":              {Doc: "vstack", Nature: Joins, Alias: "aten::vstack", Lower: lowerVstack},
	"aten::dstack":                 {Doc: "joins along the third dimension", Nature: Joins, Layout: RowMajor, Lower: lowerDstack},
	"aten::column_stack":           {Doc: "joins vectors as columns", Nature: Joins, Layout: RowMajor, Lower: lowerColumnStack},
	"aten::block_diag":             {Doc: "matrices along the diagonal of a matrix of zeros", Nature: Joins, Lower: lowerBlockDiag},
	"aten::cartesian_prod":         {Doc: "all tuples of elements of vectors", Nature: Joins, View: MayBeView, Lower: lowerCartesianProd},
	"aten::combinations":           {Doc: "all combinations of r elements of a vector", Nature: Joins, Lower: lowerCombinations},
	"aten::meshgrid":               {Doc: "vectors spread over a common grid", Nature: Joins, View: MayBeView, Layout: AnyLayout, LowerN: lowerMeshgrid},
	"aten::broadcast_tensors":      {Doc: "tensors expanded to their common shape", Gradient: "tensors: unbroadcast(grads, tensors)", Nature: Joins, Layout: AnyLayout, LowerN: lowerBroadcastTensors},
	"aten::_chunk_cat":             {Doc: "chunks of tensors, filled up with zeros and flattened, side by side", Lower: lowerChunkCat},
	"aten::repeat":                 {Doc: "repeats the tensor along dimensions", Gradient: "self: reshape(index_add(zeros_like(reshape(self, [-1])), 0, reshape(repeat(reshape(arange(numel(self)), size(self)), repeats), [-1]), reshape(grad, [-1])), size(self))", Nature: Moves, Layout: RowMajor, Lower: func(l *Lowering) *ssa.Value { return l.repeat(l.Tensor("self"), l.sizes("repeats")) }},
	"aten::tile":                   {Doc: "repeat, with missing repeats 1", Gradient: "self: reshape(index_add(zeros_like(reshape(self, [-1])), 0, reshape(tile(reshape(arange(numel(self)), size(self)), dims), [-1]), reshape(grad, [-1])), size(self))", Nature: Moves, Layout: RowMajor, Lower: lowerTile},
	"aten::repeat_interleave":      {Doc: "repeats each element of a dimension", Nature: Moves, Layout: RowMajor, Lower: lowerRepeatInterleave},
	"aten::flip":                   {Doc: "reverses dimensions", Gradient: "self: flip(grad, dims)", Nature: Moves, Layout: LikeOperands, Lower: func(l *Lowering) *ssa.Value { return l.flip(l.Tensor("self"), l.Ints("dims")...) }},
	"aten::fliplr":                 {Doc: "reverses columns", Gradient: "self: fliplr(grad)", Nature: Moves, Lower: func(l *Lowering) *ssa.Value { return l.flip(l.Tensor("self"), 1) }},
	"aten::flipud":                 {Doc: "reverses rows", Gradient: "self: flipud(grad)", Nature: Moves, Lower: func(l *Lowering) *ssa.Value { return l.flip(l.Tensor("self"), 0) }},
	"aten::rot90":                  {Doc: "turns a plane by k quarter turns", Gradient: "self: rot90(grad, -k, dims)", Nature: Moves, Layout: AnyLayout, Lower: lowerRot90},
	"aten::roll":                   {Doc: "shifts elements, those that leave come in at the other side", Gradient: "self: roll(grad, negatives(shifts), dims)", Nature: Moves, Layout: RowMajor, Lower: lowerRoll},
	"aten::pixel_shuffle":          {Doc: "(C*r*r, H, W) to (C, H*r, W*r)", Gradient: "self: pixel_unshuffle(grad, upscale_factor)", Nature: Moves, Batching: BatchesInFront, Lower: lowerPixelShuffle},
	"aten::pixel_unshuffle":        {Doc: "(C, H*r, W*r) to (C*r*r, H, W)", Gradient: "self: pixel_shuffle(grad, downscale_factor)", Nature: Moves, Batching: BatchesInFront, Lower: lowerPixelUnshuffle},
	"aten::channel_shuffle":        {Doc: "interleaves groups of channels", Gradient: "self: channel_shuffle(grad, size(self, 1) // groups)", Nature: Moves, Lower: lowerChannelShuffle},
	"aten::flatten_dense_tensors":  {Doc: "all elements of several tensors in one dimension", Lower: lowerFlattenTensors},
	"aten::native_channel_shuffle": {Doc: "channel_shuffle", Nature: Moves, Lower: lowerChannelShuffle},
}

// promotedTensors gives the tensors of a list converted to their common type.
func (l *Lowering) promotedTensors(name string) []*ssa.Value {
	vs := l.Tensors(name)
	return l.promoteAll(vs)
}

func (l *Lowering) promoteAll(vs []*ssa.Value) []*ssa.Value {
	d := l.resultType(vs...)
	out := make([]*ssa.Value, len(vs))
	for i, v := range vs {
		out[i] = l.Cast(v, d)
	}
	return out
}

func lowerCat(l *Lowering) *ssa.Value {
	if l.isSequence("tensors") {
		return l.ConcatFromSequence(l.Tensor("tensors"), l.Int("dim"), onnx.NewAxis(false))
	}
	return l.cat(l.Tensors("tensors"), l.Int("dim"))
}

// cat joins along dim. Tensors of shape (0,) do not count, whatever the rank of the others.
func (l *Lowering) cat(vs []*ssa.Value, dim int64) *ssa.Value {
	if len(vs) == 0 {
		l.Fail("expects at least one tensor")
	}
	d := tensor.Undefined
	for _, v := range vs {
		d = Promote(d, l.DType(v))
	}
	var parts []*ssa.Value
	rank := -1
	for _, v := range vs {
		rank = max(rank, v.Tensor().Rank())
	}
	for _, v := range vs {
		// a vector among tensors of higher rank can only be empty
		if t := v.Tensor(); t.Rank() == 1 && (rank > 1 || t.Dims[0].Is(0)) {
			if n, known := t.Dims[0].Int(); known && n > 0 {
				l.Fail("tensors have %d dimensions and 1: all but empty vectors must have as many", rank)
			}
			continue
		}
		parts = append(parts, l.Cast(v, d))
	}
	if len(parts) == 0 {
		return l.Cast(vs[0], d)
	}
	if rank == 0 {
		l.Fail("tensors of rank 0 cannot be concatenated")
	}
	if rank > 0 {
		dim = int64(l.wrap(dim, rank))
	}
	return l.concatV(dim, parts...)
}

func lowerStack(l *Lowering) *ssa.Value {
	dim := l.Int("dim")
	if l.isSequence("tensors") {
		return l.ConcatFromSequence(l.Tensor("tensors"), dim, onnx.NewAxis(true))
	}
	vs := l.promotedTensors("tensors")
	if len(vs) == 0 {
		l.Fail("expects at least one tensor")
	}
	at := int64(l.wrap(dim, l.Rank(vs[0])+1))
	for i := range vs {
		vs[i] = l.unsqueeze(vs[i], at)
	}
	return l.concatV(at, vs...)
}

// padSequences is pad_sequence of a list whose length is known at run time only.
func (l *Lowering) padSequences(batchFirst, before bool) *ssa.Value {
	list := l.Tensor("sequences")
	t := ssa.AsTensor(list.Type.(*ssa.ListType).Elem)
	if t == nil || !t.Ranked || len(t.Dims) == 0 || t.DType == tensor.Undefined {
		l.Fail("the rank of the tensors in the list is not known, or is 0")
	}
	m := l.Block.Func().Module()
	count, most := m.FreshSymbol("len", 0), m.FreshSymbol("u", 0)
	length := func(x *ssa.Value) *ssa.Value { return l.Slice(l.shapeOf(x), l.i64(0), l.i64(1), nil, nil) }
	longest := l.reduce("ReduceMax", l.eachOf(list, ssa.Tensor(tensor.Int64, count, sym.Const(1)), length), []int64{0}, false)
	dims := []sym.Expr{count, most}
	for _, d := range t.Dims[1:] {
		if sym.Varies(d) {
			d = m.FreshSymbol("u", 0)
		}
		dims = append(dims, d)
	}
	y := l.eachOf(list, ssa.Tensor(t.DType, dims...), func(x *ssa.Value) *ssa.Value {
		rest := l.concatV(0, l.Sub(longest, length(x)), l.Slice(l.shapeOf(x), l.i64(1), l.i64(int64(len(t.Dims))), nil, nil))
		parts := []*ssa.Value{x, l.full(rest, t.DType, "padding_value")}
		if before {
			slices.Reverse(parts)
		}
		return l.concatV(0, parts...)
	})
	if batchFirst {
		return y
	}
	return l.swapAxes(y, 0, 1)
}

// eachOf stacks what f gives for the elements of a sequence, of type t.
func (l *Lowering) eachOf(list *ssa.Value, t ssa.Type, f func(x *ssa.Value) *ssa.Value) *ssa.Value {
	loop := l.Block.InsertBefore(l.Before, "onnx::Loop", l.Loc, []*ssa.Value{l.SequenceLength(list), l.boolScalar(true)}, t)
	body := loop.AddBlock()
	i := body.AddParam("", ssa.Tensor(tensor.Int64))
	c := body.AddParam("", ssa.Tensor(tensor.Bool))
	outer := l.Builder
	l.Block, l.Before = body, nil
	y := f(l.SequenceAt(list, i))
	l.Builder = outer
	body.SetReturns(c, y)
	return loop.Results[0]
}

// lowerPadSequence fills tensors up along their first dimension, in the type of
// the first one (ATen/native/PackedSequence.cpp).
func lowerPadSequence(l *Lowering) *ssa.Value {
	if l.isSequence("sequences") {
		return l.padSequences(l.Bool("batch_first"), l.HasArg("padding_side") && l.Str("padding_side") == "left")
	}
	vs := l.Tensors("sequences")
	if len(vs) == 0 {
		l.Fail("received an empty list of sequences")
	}
	batch, before := int64(1), false
	if l.Bool("batch_first") {
		batch = 0
	}
	if l.HasArg("padding_side") {
		before = l.Str("padding_side") == "left"
	}
	d, rank := l.DType(vs[0]), l.Rank(vs[0])
	if rank == 0 {
		l.Fail("sequences of rank 0")
	}
	longest := l.sizeOf(vs[0], 0)
	for _, v := range vs[1:] {
		longest = l.greatestSize(longest, l.sizeOf(v, 0))
	}
	for i, v := range vs {
		if l.Rank(v) != rank {
			l.Fail("sequences of several ranks")
		}
		v = l.Cast(v, d)
		if missing := l.subSize(longest, l.sizeOf(v, 0)); !missing.Known || !missing.Expr.Is(0) {
			rest := append([]Size{missing}, l.sizesOf(v, 1, rank)...)
			parts := []*ssa.Value{v, l.full(l.sizeTensor(rest), d, "padding_value")}
			if before {
				slices.Reverse(parts)
			}
			v = l.concatV(0, parts...)
		}
		vs[i] = l.unsqueeze(v, batch)
	}
	return l.concatV(batch, vs...)
}

// joinSequence joins the tensors of a list of unknown length. at gives, for the
// rank of the elements, where they are joined, whether along a new dimension, and
// the axes of size 1 that the result gets.
func (l *Lowering) joinSequence(at func(rank int) (axis int64, stack bool, ones []int64)) *ssa.Value {
	list := l.Tensor("tensors")
	lt, _ := list.Type.(*ssa.ListType)
	var t *ssa.TensorType
	if lt != nil {
		t = ssa.AsTensor(lt.Elem)
	}
	if t == nil || !t.Ranked {
		l.Fail("the rank of the tensors in the list is not known")
	}
	axis, stack, ones := at(len(t.Dims))
	y := l.ConcatFromSequence(list, axis, onnx.NewAxis(stack))
	return l.unsqueeze(y, ones...)
}

// stackAs joins tensors that f gives enough dimensions.
func (l *Lowering) stackAs(f func(*ssa.Value) *ssa.Value, dim int64) *ssa.Value {
	vs := l.promotedTensors("tensors")
	for i := range vs {
		vs[i] = f(vs[i])
	}
	return l.cat(vs, dim)
}

func lowerVstack(l *Lowering) *ssa.Value {
	if l.isSequence("tensors") {
		return l.joinSequence(func(rank int) (int64, bool, []int64) {
			if rank == 0 {
				return 0, true, []int64{1}
			}
			return 0, rank == 1, nil
		})
	}
	return l.stackAs(l.atLeast2, 0)
}

func lowerDstack(l *Lowering) *ssa.Value {
	if l.isSequence("tensors") {
		return l.joinSequence(func(rank int) (int64, bool, []int64) {
			switch rank {
			case 0:
				return 0, true, []int64{0, 1}
			case 1:
				return 1, true, []int64{0}
			}
			return 2, rank == 2, nil
		})
	}
	return l.stackAs(l.atLeast3, 2)
}

func lowerHstack(l *Lowering) *ssa.Value {
	if l.isSequence("tensors") {
		return l.joinSequence(func(rank int) (int64, bool, []int64) { return int64(min(max(rank-1, 0), 1)), rank == 0, nil })
	}
	vs := l.promotedTensors("tensors")
	if len(vs) == 0 {
		l.Fail("expects at least one tensor")
	}
	for i := range vs {
		vs[i] = l.atLeast1(vs[i])
	}
	if l.Rank(vs[0]) == 1 {
		return l.cat(vs, 0)
	}
	return l.cat(vs, 1)
}

func lowerColumnStack(l *Lowering) *ssa.Value {
	if l.isSequence("tensors") {
		return l.joinSequence(func(rank int) (int64, bool, []int64) {
			if rank == 0 {
				return 0, true, []int64{0}
			}
			return 1, rank == 1, nil
		})
	}
	return l.stackAs(func(x *ssa.Value) *ssa.Value {
		switch l.Rank(x) {
		case 0:
			return l.unsqueeze(x, 0, 1)
		case 1:
			return l.unsqueeze(x, 1)
		}
		return x
	}, 1)
}

func lowerBlockDiag(l *Lowering) *ssa.Value {
	vs := l.promotedTensors("tensors")
	total := ConstSize(0)
	for i := range vs {
		vs[i] = l.atLeast2(vs[i])
		if l.Rank(vs[i]) != 2 {
			l.Fail("expects tensors of at most 2 dimensions")
		}
		total = l.addSize(total, l.sizeOf(vs[i], 1))
	}
	if len(vs) == 0 {
		l.Fail("expects at least one tensor")
	}
	left := ConstSize(0)
	rows := make([]*ssa.Value, len(vs))
	for i, v := range vs {
		n := l.sizeOf(v, 1)
		right := l.subSize(l.subSize(total, left), n)
		rows[i] = l.padZeros(v, 1, left, right)
		left = l.addSize(left, n)
	}
	return l.concatV(0, rows...)
}

func lowerCartesianProd(l *Lowering) *ssa.Value {
	vs := l.Tensors("tensors")
	if len(vs) == 1 {
		return vs[0]
	}
	grid := l.gridOf(l.promoteAll(vs))
	for i := range grid {
		grid[i] = l.unsqueeze(l.reshape(grid[i], -1), 1)
	}
	return l.concatV(1, grid...)
}

// gridOf spreads vectors over the grid of their sizes, in "ij" order.
func (l *Lowering) gridOf(vs []*ssa.Value) []*ssa.Value {
	sizes := make([]Size, len(vs))
	for i, v := range vs {
		switch l.Rank(v) {
		case 0:
			sizes[i] = ConstSize(1)
		case 1:
			sizes[i] = l.sizeOf(v, 0)
		default:
			l.Fail("expects vectors, found %d dimensions", l.Rank(v))
		}
	}
	out := make([]*ssa.Value, len(vs))
	for i, v := range vs {
		shape := make([]Size, len(vs))
		for j := range shape {
			shape[j] = ConstSize(1)
		}
		shape[i] = sizes[i]
		if _, ok := sizes[i].Int(); !ok {
			shape[i] = ConstSize(-1)
		}
		out[i] = l.expandTo(l.reshapeInto(v, shape), sizes)
	}
	return out
}

func lowerMeshgrid(l *Lowering) []*ssa.Value {
	vs := l.Tensors("tensors")
	swap := len(vs) >= 2 && l.Str("indexing") == "xy"
	if swap {
		vs[0], vs[1] = vs[1], vs[0]
	}
	grid := l.gridOf(vs)
	if swap {
		grid[0], grid[1] = grid[1], grid[0]
	}
	return grid
}

func lowerBroadcastTensors(l *Lowering) []*ssa.Value {
	vs := l.Tensors("tensors")
	shapes := make([][]Size, len(vs))
	for i, v := range vs {
		shapes[i] = l.allSizes(v)
	}
	to := l.broadcastSizes(shapes...)
	for i := range vs {
		vs[i] = l.expandTo(vs[i], to)
	}
	return vs
}

func lowerCombinations(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	r, again := int(l.Int("r")), l.Bool("with_replacement")
	if l.Rank(x) != 1 {
		l.Fail("expects a vector")
	}
	if r < 0 {
		l.Fail("r must not be negative")
	}
	if r == 0 {
		return l.Const(tensor.New(l.DType(x), []int64{0}, nil))
	}
	l.atMost(int64(r), maxParts, "elements of a combination")
	n, ok := l.Shape(x)[0].Int()
	if ok {
		tuples := float64(1) // an upper bound
		for i := range r {
			tuples *= (float64(n) + float64(i)) / float64(i+1)
		}
		l.atMost(int64(math.Min(tuples*float64(r), math.MaxInt64/2)), maxMade, "indices")
		flat := []int64{}
		pick := make([]int64, 0, r)
		var walk func(from int64)
		walk = func(from int64) {
			if len(pick) == r {
				flat = append(flat, pick...)
				return
			}
			for i := from; i < n; i++ {
				pick = append(pick, i)
				next := i + 1
				if again {
					next = i
				}
				walk(next)
				pick = pick[:len(pick)-1]
			}
		}
		walk(0)
		return l.gather(x, l.Const(tensor.Of(tensor.Int64, []int64{int64(len(flat) / r), int64(r)}, flat)), 0)
	}
	// ascending index tuples are where each index is less than the next
	op := "Less"
	if again {
		op = "LessOrEqual"
	}
	idx := l.countTo(l.sizeOf(x, 0))
	grid := make([]*ssa.Value, r)
	for i := range grid {
		grid[i] = idx
	}
	grid = l.gridOf(grid)
	if r == 1 {
		return l.unsqueeze(x, 1)
	}
	mask := l.Op(op, grid[0], grid[1])
	for i := 1; i+1 < r; i++ {
		mask = l.And(mask, l.Op(op, grid[i], grid[i+1]))
	}
	return l.gather(x, l.transpose(l.NonZero(mask), 1, 0), 0)
}

// repeat repeats along each of the last dimensions; more repeats than dimensions add dimensions in front.
func (l *Lowering) repeat(x *ssa.Value, times []Size) *ssa.Value {
	rank := l.Rank(x)
	if len(times) < rank {
		l.Fail("%d repeats for rank %d", len(times), rank)
	}
	var axes []int64
	for i := range len(times) - rank {
		axes = append(axes, int64(i))
	}
	x = l.unsqueeze(x, axes...)
	for _, t := range times {
		if n, ok := t.Int(); !ok || n != 1 {
			return l.Tile(x, l.sizeTensor(times))
		}
	}
	return x
}

func lowerTile(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	times := l.sizes("dims")
	for len(times) < l.Rank(x) {
		times = append([]Size{ConstSize(1)}, times...)
	}
	return l.repeat(x, times)
}

func lowerRepeatInterleave(l *Lowering) *ssa.Value {
	if !l.HasArg("self") {
		repeats := l.Tensor("repeats")
		if d := l.DType(repeats); d != tensor.Int32 && d != tensor.Int64 {
			l.Fail("repeat_interleave with repeats of %v: they are int32 or int64", d)
		}
		return l.Cast(l.interleaveIndex(repeats), l.DType(repeats))
	}
	x := l.Tensor("self")
	dim := 0
	if l.IsNone("dim") {
		x = l.reshape(x, -1)
	} else {
		x = l.atLeast1(x)
		dim = l.Dim("dim", l.Rank(x))
	}
	var one Size
	if t := l.Arg("repeats").Tensor(); t == nil {
		one = l.sizeArg("repeats")
	} else {
		times := l.Tensor("repeats")
		if l.Rank(times) == 1 && !l.Shape(times)[0].Is(1) {
			if l.Rank(times) == 1 && l.Shape(x)[dim].IsConst() && l.Shape(times)[0].IsConst() && !l.Shape(x)[dim].Equal(l.Shape(times)[0]) {
				l.Fail("repeats must have one entry for each index of dimension %d", dim)
			}
			if _, ok := constInts(times); !ok { // one that is known at run time only is for each index
				times = l.expandTo(times, []Size{l.sizeOf(x, dim)})
			}
			return l.gather(x, l.interleaveIndex(times), dim)
		}
		one = Size{Value: l.Cast(l.reshape(times), tensor.Int64)}
		if c, ok := constInts(times); ok {
			one = ConstSize(c[0])
		}
	}
	// each element becomes a row of copies, and the rows are joined
	rank := l.Rank(x)
	spread := l.unsqueeze(x, int64(dim+1))
	times := repeatSize(ConstSize(1), int64(rank+1))
	times[dim+1] = one
	return l.flattenDims(l.Tile(spread, l.sizeTensor(times)), dim, dim+1)
}

// interleaveIndex gives index i so many times as repeats[i] says.
func (l *Lowering) interleaveIndex(times *ssa.Value) *ssa.Value {
	if c, ok := constInts(times); ok {
		idx := []int64{}
		for i, n := range c {
			for range n {
				idx = append(idx, int64(i))
			}
		}
		return l.i64(idx...)
	}
	l.NeedOpset(11, "repeat_interleave by a tensor")
	// position p belongs to the index after all those whose copies end at or before p
	ends := l.CumSum(l.Cast(times, tensor.Int64), l.Const(tensor.ScalarInt(0)))
	total := l.reduce("ReduceSum", l.Cast(times, tensor.Int64), nil, false)
	at := l.Range(l.Const(tensor.ScalarInt(0)), total, l.Const(tensor.ScalarInt(1)))
	done := l.Not(l.Less(l.unsqueeze(at, 1), l.unsqueeze(ends, 0)))
	return l.reduce("ReduceSum", l.Cast(done, tensor.Int64), []int64{1}, false)
}

// flip reverses dims.
func (l *Lowering) flip(x *ssa.Value, dims ...int64) *ssa.Value {
	rank := l.Rank(x)
	var axes, starts, ends, steps []int64
	for _, d := range dims {
		a := int64(l.wrap(d, rank))
		if rank == 0 {
			return x
		}
		axes, starts, ends, steps = append(axes, a), append(starts, -1), append(ends, -toEnd-1), append(steps, -1)
	}
	if len(axes) == 0 {
		return x
	}
	return l.Slice(x, l.i64(starts...), l.i64(ends...), l.i64(axes...), l.i64(steps...))
}

func lowerRot90(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	dims := l.Ints("dims")
	if len(dims) != 2 {
		l.Fail("expects two dimensions")
	}
	a, b := l.wrap(dims[0], rank), l.wrap(dims[1], rank)
	if a == b {
		l.Fail("expects two different dimensions")
	}
	switch ((l.Int("k") % 4) + 4) % 4 {
	case 1:
		return l.swapAxes(l.flip(x, int64(b)), a, b)
	case 2:
		return l.flip(x, int64(a), int64(b))
	case 3:
		return l.swapAxes(l.flip(x, int64(a)), a, b)
	}
	return x
}

func lowerRoll(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	shifts, dims := l.sizes("shifts"), l.Ints("dims")
	if len(dims) == 0 {
		if len(shifts) != 1 {
			l.Fail("one shift for the flattened tensor, found %d", len(shifts))
		}
		if l.Rank(x) < 2 {
			return l.rollDim(x, 0, shifts[0])
		}
		flat := l.rollDim(l.reshape(x, -1), 0, shifts[0])
		return l.reshapeLike(flat, x)
	}
	if len(shifts) != len(dims) {
		l.Fail("%d shifts for %d dimensions", len(shifts), len(dims))
	}
	for i, d := range dims {
		x = l.rollDim(x, l.wrap(d, l.Rank(x)), shifts[i])
	}
	return x
}

// reshapeLike gives x the shape of y.
func (l *Lowering) reshapeLike(x, y *ssa.Value) *ssa.Value {
	dims := l.Shape(y)
	sizes := make([]Size, len(dims))
	for i, d := range dims {
		sizes[i] = Size{Expr: d, Known: true}
	}
	return l.reshapeLazy(x, sizes, func(i int) Size { return l.sizeOf(y, i) })
}

func (l *Lowering) rollDim(x *ssa.Value, dim int, shift Size) *ssa.Value {
	if l.Rank(x) == 0 {
		return x
	}
	n := l.sizeOf(x, dim)
	var cut Size // the result starts with the elements from here on
	c, isConst := shift.Int()
	size, static := n.Int()
	switch {
	case static && size == 0, isConst && c == 0:
		return x
	case static && isConst:
		cut = ConstSize((((-c) % size) + size) % size)
	default:
		// dimension sizes of 0 must not divide
		by := l.sizeValue(l.greatestSize(n, ConstSize(1)))
		cut = Size{Value: l.Mod(l.Neg(l.sizeValue(shift)), by)}
	}
	if k, ok := cut.Int(); ok && k == 0 {
		return x
	}
	one := ConstSize(1)
	tail := l.sliceDim(x, dim, cut, ConstSize(toEnd), one)
	return l.concatV(int64(dim), tail, l.sliceDim(x, dim, ConstSize(0), cut, one))
}

func lowerPixelShuffle(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	r := l.Int("upscale_factor")
	if rank < 3 || r < 1 {
		l.Fail("expects at least 3 dimensions and a positive factor")
	}
	if rank == 4 && (l.DType(x) == tensor.Float32 || l.DType(x) == tensor.Float64) {
		return l.DepthToSpace(x, r, onnx.Mode("CRD"))
	}
	dims := l.allSizes(x)
	lead := rank - 3
	c, h, w, by := dims[lead], dims[lead+1], dims[lead+2], ConstSize(r)
	small := l.divSize(c, ConstSize(r*r))
	sizes := append(append([]Size(nil), dims[:lead]...), small, by, by, h, w)
	y := l.reshapeInto(x, sizes)
	y = l.transpose(y, tailPerm(lead, 0, 3, 1, 4, 2)...)
	return l.reshapeInto(y, append(append([]Size(nil), dims[:lead]...), small, l.mulSize(h, by), l.mulSize(w, by)))
}

func lowerPixelUnshuffle(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	r := l.Int("downscale_factor")
	if rank < 3 || r < 1 {
		l.Fail("expects at least 3 dimensions and a positive factor")
	}
	dims := l.allSizes(x)
	lead := rank - 3
	c, by := dims[lead], ConstSize(r)
	h, w := l.divSize(dims[lead+1], by), l.divSize(dims[lead+2], by)
	y := l.reshapeInto(x, append(append([]Size(nil), dims[:lead]...), c, h, by, w, by))
	y = l.transpose(y, tailPerm(lead, 0, 2, 4, 1, 3)...)
	return l.reshapeInto(y, append(append([]Size(nil), dims[:lead]...), l.mulSize(c, ConstSize(r*r)), h, w))
}

// tailPerm keeps the first dims and permutes those after them.
func tailPerm(lead int, tail ...int64) []int64 {
	perm := make([]int64, 0, lead+len(tail))
	for i := range lead {
		perm = append(perm, int64(i))
	}
	for _, p := range tail {
		perm = append(perm, int64(lead)+p)
	}
	return perm
}

func lowerChannelShuffle(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	g := l.Int("groups")
	if rank < 3 || g < 1 {
		l.Fail("expects at least 3 dimensions and a positive number of groups")
	}
	if g == 1 {
		return x
	}
	dims := l.allSizes(x)
	per := l.divSize(dims[1], ConstSize(g))
	y := l.reshapeInto(x, append([]Size{dims[0], ConstSize(g), per}, dims[2:]...))
	return l.reshapeLike(l.swapAxes(y, 1, 2), x)
}

func lowerFlattenTensors(l *Lowering) *ssa.Value {
	vs := l.Tensors("tensors")
	for i := range vs {
		vs[i] = l.reshape(vs[i], -1)
	}
	return l.cat(vs, 0)
}

func lowerChunkCat(l *Lowering) *ssa.Value {
	vs := l.promotedTensors("tensors")
	k := l.Int("num_chunks")
	if k < 1 || len(vs) == 0 {
		l.Fail("expects tensors and a positive number of chunks")
	}
	dim := l.Dim("dim", l.Rank(vs[0]))
	for i, v := range vs {
		if dim >= l.Rank(v) {
			l.Fail("dimension %d is out of range for rank %d", dim, l.Rank(v))
		}
		n := l.sizeOf(v, dim)
		per := l.divSize(l.addSize(n, ConstSize(k-1)), ConstSize(k))
		v = l.padZeros(v, dim, ConstSize(0), l.subSize(l.mulSize(per, ConstSize(k)), n))
		vs[i] = l.reshapeInto(v, append(l.allSizes(v)[:dim:dim], ConstSize(k), ConstSize(-1)))
	}
	return l.cat(vs, int64(dim+1))
}
