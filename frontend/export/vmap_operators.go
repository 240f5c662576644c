package export

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// batchingRules are those that rows name.
var batchingRules = map[aten.Batching]func(b *batched) []*ssa.Value{
	aten.BatchesInFront:     trailing,
	aten.CountsDims:         alongDims,
	aten.AddsDim:            alongDimsAnd(1),
	aten.SameRank:           gathered,
	aten.SameShape:          whole,
	aten.BroadcastsAlong:    alongCommon,
	aten.MatrixProduct:      products,
	aten.AddedProduct:       added,
	aten.OuterProduct:       outer,
	aten.BatchesSamples:     samples,
	aten.GroupedConvolution: convolution,
	aten.FoldsImages:        paddedImages,
	aten.ScalesBehind:       normalized,
	aten.ReducesBehind:      loss,
	aten.PointwiseOrReduces: extremum,
	aten.ReadsOther:         likeOther,
}

// ownRules are the batching rules of single operators.
var ownRules = map[ssa.Kind]func(b *batched) []*ssa.Value{
	"aten::repeat":            repeated,
	"aten::einsum":            einsum,
	"aten::batch_norm":        inference,
	"aten::embedding":         embedding,
	"aten::pad":               padded,
	"aten::linear":            linear,
	"aten::index":             indexed,
	"aten::_prelu_kernel":     rectifiedKernel,
	"aten::broadcast_tensors": broadcast,
	"aten::copy_":             copied,
	"aten::fill":              filled,
	"aten::fill_":             filled,
	"aten::prelu":             rectified,
}

// repeated is repeat, which counts the dimensions of its tensor from the end.
func repeated(b *batched) []*ssa.Value {
	i := b.arg("repeats")
	b.operands[0] = b.align(b.operands[0], len(b.members(i)))
	return b.sized(i, b.repeat(1))
}

// extremum is max or min: of two tensors, of a tensor along a dimension, or of all its elements.
func extremum(b *batched) []*ssa.Value {
	if b.arg("other") >= 0 {
		return pointwise(b)
	}
	return reduction(b)
}

// likeOther makes of the first tensor what an operator without batch dimensions does by what it reads of the second: its shape or its element type.
func likeOther(b *batched) []*ssa.Value {
	x, other := b.operands[0], b.operands[1]
	if b.k == "aten::type_as" {
		b.operands[1] = b.full(other, b.rank(other))
		return b.same()
	}
	b.operands[0], b.operands[1] = b.align(x, b.rank(other)), b.full(other, b.rank(other))
	return b.same()
}

// filled is fill, which is a copy of its value where that is batched.
func filled(b *batched) []*ssa.Value {
	if len(b.im.levelsOf(b.operands[1])) == 0 {
		return b.same()
	}
	writes := b.schema.Args[0].Writes
	b.operands = append(b.operands, b.im.constant(ssa.Bool(false)))
	if b.k, b.schema = "aten::copy", aten.Schema("aten::copy", ""); writes {
		b.k, b.schema = "aten::copy_", aten.Schema("aten::copy_", "")
		return copied(b)
	}
	x := b.operands[0]
	b.operands[0], b.operands[1] = b.full(x, b.rank(x)), b.align(b.operands[1], b.rank(x))
	return b.same()
}

// copied is copy_, whose destination has the rank and the batch dimensions of all.
func copied(b *batched) []*ssa.Value {
	x, src := b.operands[0], b.operands[1]
	if !slices.Equal(b.at(x), b.levels) || b.rank(src) > b.rank(x) {
		b.refuse()
	}
	if len(b.at(src)) > 0 {
		b.operands[1] = b.align(src, b.rank(x))
	}
	return b.same()
}

// rectified is prelu, whose weights lie along the second dimension.
func rectified(b *batched) []*ssa.Value {
	x, w := b.operands[0], b.operands[1]
	rank, at := b.rank(x), b.at(w)
	if b.rank(w) > 1 {
		b.refuse()
	}
	loose := ssa.Unranked(b.dtype(w))
	batch := len(at)
	if batch > 0 {
		w, batch = b.align(w, b.rank(w)), len(b.levels)
	}
	if b.rank(b.operands[1]) == 1 {
		switch {
		case rank == 0:
			w = b.emit("aten::squeeze", "dim", loose, w, b.int(int64(batch)))
		case rank == 1 && ssa.AsTensor(b.operands[1].Type).Dims[len(at)].Is(1), rank == 2:
		case rank == 1:
			b.refuse()
		default:
			for range rank - 2 {
				w = b.emit("aten::unsqueeze", "", loose, w, b.int(-1))
			}
			if batch > 0 {
				w = b.emit("aten::unsqueeze", "", loose, w, b.int(int64(batch)))
			}
		}
		if rank == 2 && batch > 0 {
			w = b.emit("aten::unsqueeze", "", loose, w, b.int(int64(batch)))
		}
	}
	return b.mark(b.emit("aten::_prelu_kernel", "", b.resultType(), b.full(x, rank), w))
}

// loss is an operator that is pointwise but for its last step, which sums up what the program sees or takes its mean.
func loss(b *batched) []*ssa.Value {
	i := b.arg("reduction")
	how := b.constant(i).Int()
	if how == 0 {
		return pointwise(b)
	}
	t := b.resultType()
	b.outputs, b.operands[i] = nil, b.int(0)
	y := pointwise(b)[0]
	y.Type = ssa.Unranked(ssa.AsTensor(t).DType)
	y = b.flat(y)
	k := ssa.Kind("aten::mean")
	overload, none := "dim", b.im.constant(ssa.None)
	if how == 2 {
		k, overload = "aten::sum", "dim_IntList"
	}
	return b.mark(b.emit(k, overload, t, y, b.ints(b.int(-1)), b.im.constant(ssa.Bool(false)), none))
}

// rectifiedKernel is _prelu_kernel, whose result has the shape of its first operand.
func rectifiedKernel(b *batched) []*ssa.Value {
	x := b.operands[0]
	b.operands[0] = b.full(x, b.rank(x))
	b.im.batching.levels[b.operands[0]] = b.levels
	return pointwise(b)
}

// broadcast gives the members of a list one shape.
func broadcast(b *batched) []*ssa.Value {
	vs, rank := b.members(0), 0
	for _, v := range vs {
		rank = max(rank, b.rank(v))
	}
	for i, v := range vs {
		vs[i] = b.full(v, rank)
	}
	b.operands[0] = b.im.list(b.sc, vs, ssa.AnyTensor)
	return b.same()
}

// outer is the product of a column and a row.
func outer(b *batched) []*ssa.Value {
	x, y := b.operands[0], b.operands[1]
	column := b.emit("aten::unsqueeze", "", ssa.Unranked(b.dtype(x)), b.align(x, 1), b.int(-1))
	row := b.emit("aten::unsqueeze", "", ssa.Unranked(b.dtype(y)), b.align(y, 1), b.int(-2))
	return b.mark(b.emit("aten::mul", "Tensor", b.resultType(), column, row))
}

// product is a matrix product: vectors become matrices, whose batch dimensions broadcast.
func (b *batched) product(x, y *ssa.Value, t ssa.Type) *ssa.Value {
	rx, ry := b.rank(x), b.rank(y)
	if rx == 0 || ry == 0 {
		b.refuse()
	}
	loose := ssa.Unranked(b.dtype(x))
	rank := max(rx, ry, 2)
	wide := func(v *ssa.Value, r int, d int64) *ssa.Value {
		if r > 1 {
			if len(b.at(v)) == 0 {
				return v
			}
			return b.align(v, rank)
		}
		// (B..., n) to (B..., 1..., n), then the other dimension of the matrix
		v = b.align(v, rank-1)
		return b.emit("aten::unsqueeze", "", loose, v, b.int(d))
	}
	x, y = wide(x, rx, -2), wide(y, ry, -1)
	if rx > 1 && ry > 1 {
		return b.emit("aten::matmul", "", t, x, y)
	}
	p := b.emit("aten::matmul", "", loose, x, y)
	if rx == 1 && ry == 1 {
		p = b.emit("aten::squeeze", "dim", loose, p, b.int(-1))
		return b.emit("aten::squeeze", "dim", t, p, b.int(-1))
	}
	d := int64(-1)
	if rx == 1 {
		d = -2
	}
	return b.emit("aten::squeeze", "dim", t, p, b.int(d))
}

func products(b *batched) []*ssa.Value {
	if b.arg("out_dtype") >= 0 {
		b.refuse()
	}
	return b.mark(b.product(b.operands[0], b.operands[1], b.resultType()))
}

func linear(b *batched) []*ssa.Value {
	if len(b.at(b.operands[1])) == 0 && len(b.at(b.operands[2])) == 0 {
		return b.same()
	}
	x, w, bias := b.operands[0], b.operands[1], b.operands[2]
	if b.rank(w) != 2 || b.rank(x) == 0 {
		b.refuse()
	}
	wt := b.emit("aten::transpose", "int", b.physical(transposed(w, len(b.at(w))), b.at(w)), w, b.int(-2), b.int(-1))
	if at := b.at(w); len(at) > 0 {
		b.im.batching.levels[wt] = at
	}
	t := b.resultType()
	p := b.product(x, wt, t)
	if !isNone(bias) {
		if len(b.at(bias)) > 0 {
			bias = b.align(bias, b.rank(x))
		}
		p = b.emit("aten::add", "Tensor", t, p, bias, b.int(1))
	}
	return b.mark(p)
}

// transposed is the type of a matrix without the first k dimensions, its last two exchanged.
func transposed(v *ssa.Value, k int) ssa.Type {
	t := ssa.AsTensor(v.Type)
	d := slices.Clone(t.Dims[k:])
	n := len(d)
	d[n-1], d[n-2] = d[n-2], d[n-1]
	return ssa.Tensor(t.DType, d...)
}

// indexed is x[i, j, ...]: a batch dimension of x has an index of its own where an index is batched too.
func indexed(b *batched) []*ssa.Value {
	x, at := b.operands[0], b.at(b.operands[0])
	indices := b.members(1)
	lead := 0
	for lead < len(indices) && isNone(indices[lead]) {
		lead++
	}
	rank, gap, plain := 0, false, len(b.im.levelsOf(b.operands[1])) == 0
	for _, v := range indices[lead:] {
		if isNone(v) {
			gap = true
			continue
		}
		if gap {
			b.refuse() // the dimensions of the indices would go to the front
		}
		if b.dtype(v) == tensor.Bool {
			b.refuse()
		}
		rank = max(rank, b.rank(v))
	}
	b.schema = aten.Schema("aten::index", "Tensor") // which takes None
	none := b.im.constant(ssa.None)
	var all []*ssa.Value
	if plain {
		for range at {
			all = append(all, none)
		}
		all = append(all, indices...)
	} else {
		if lead > 0 {
			b.refuse()
		}
		for i, l := range b.levels {
			if !slices.Contains(at, l) {
				continue
			}
			count := b.emit("aten::arange", "", ssa.Unranked(tensor.Int64), b.im.batching.sizes[l-1], b.int(int64(tensor.Int64.Code())), none, none, none)
			shape := make([]*ssa.Value, len(b.levels)+rank-i)
			for j := range shape {
				shape[j] = b.int(1)
			}
			shape[0] = b.int(-1)
			all = append(all, b.emit("aten::reshape", "", ssa.Unranked(tensor.Int64), count, b.ints(shape...)))
		}
		for _, v := range indices {
			if !isNone(v) && len(b.at(v)) > 0 {
				v = b.align(v, rank)
			}
			all = append(all, v)
		}
	}
	b.operands[0] = x
	b.operands[1] = b.im.list(b.sc, all, &ssa.OptionalType{Elem: ssa.AnyTensor})
	return b.same()
}

// gathered is an operator on tensors of the same rank that do not broadcast.
func gathered(b *batched) []*ssa.Value {
	rank := b.rank(b.operands[0])
	for i, v := range b.operands {
		if ssa.AsTensor(v.Type) == nil {
			continue
		}
		if b.rank(v) != rank {
			b.refuse()
		}
		b.operands[i] = b.full(v, rank)
	}
	b.dims(rank)
	return b.same()
}

// alongCommon is alongDims of tensors that broadcast.
func alongCommon(b *batched) []*ssa.Value {
	b.dims(b.toCommonRank(b.align))
	return b.same()
}

// convolution has a group for each element of a batch where the weights are batched too.
func convolution(b *batched) []*ssa.Value {
	w, bias, groups := b.operands[1], b.operands[2], b.arg("groups")
	if len(b.at(w)) == 0 && len(b.at(bias)) == 0 {
		return samples(b)
	}
	x, rank := b.operands[0], b.rank(w)
	n := b.constant(groups).Int()
	if b.rank(x) != rank || len(b.levels) != 1 {
		b.refuse()
	}
	// (B, N, C, ...) to (N, B*C, ...), and of the weights (B, O, C, ...) to (B*O, C, ...)
	x = b.emit("aten::movedim", "int", ssa.Unranked(b.dtype(x)), b.full(x, rank), b.int(0), b.int(1))
	b.operands[0] = b.emit("aten::flatten", "using_ints", ssa.Unranked(b.dtype(x)), x, b.int(1), b.int(2))
	b.operands[1] = b.fold(w, false)
	if !isNone(bias) {
		b.operands[2] = b.fold(bias, false)
	}
	size := b.batchSizes()[0]
	if n != 1 {
		size = b.im.emit(b.sc, b.sc.b, "aten::mul", "int", ssa.IntType, size, b.int(n))
	}
	b.operands[groups] = size
	y := b.appended()[0]
	y = b.emit("aten::unflatten", "int", ssa.Unranked(b.dtype(y)), y, b.int(1), b.ints(append(b.batchSizes(), b.int(-1))...))
	return b.mark(b.emit("aten::movedim", "int", b.resultType(), y, b.int(1), b.int(0)))
}

// embedding looks up rows of a table; of a batch of tables, each in its own.
func embedding(b *batched) []*ssa.Value {
	if len(b.at(b.operands[0])) == 0 {
		return b.same()
	}
	b.k, b.schema = "aten::index", aten.Schema("aten::index", "Tensor")
	b.operands = []*ssa.Value{b.operands[0], b.im.list(b.sc, b.operands[1:2], &ssa.OptionalType{Elem: ssa.AnyTensor})}
	return indexed(b)
}

// added is beta*c + alpha*(x @ y).
func added(b *batched) []*ssa.Value {
	c, beta, alpha := b.operands[0], b.operands[b.arg("beta")], b.operands[b.arg("alpha")]
	t := b.resultType()
	p := b.mark(b.product(b.operands[1], b.operands[2], t))[0]
	if len(b.at(c)) > 0 {
		c = b.align(c, b.rank(p))
	}
	p = b.emit("aten::mul", "Scalar", t, p, alpha)
	c = b.emit("aten::mul", "Scalar", ssa.Unranked(b.dtype(c)), c, beta)
	return b.mark(b.emit("aten::add", "Tensor", t, p, c, b.int(1)))
}

// einsum has a letter more for each level.
func einsum(b *batched) []*ssa.Value {
	lit := b.constant(0)
	in, out, explicit := strings.Cut(strings.ReplaceAll(lit.Str(), " ", ""), "->")
	terms, vs := strings.Split(in, ","), b.members(1)
	if !explicit || len(terms) != len(vs) {
		b.refuse()
	}
	letters := map[int64]string{}
	next := 'A'
	for _, l := range b.levels {
		for strings.ContainsRune(lit.Str(), next) {
			next++
		}
		if next > 'Z' {
			b.refuse()
		}
		letters[l] = string(next)
		next++
	}
	spell := func(at []int64) (s string) {
		for _, l := range at {
			s += letters[l]
		}
		return s
	}
	for i, v := range vs {
		terms[i] = spell(b.at(v)) + terms[i]
	}
	b.operands[0] = b.im.constant(ssa.Str(strings.Join(terms, ",") + "->" + spell(b.levels) + out))
	return b.same()
}

// whole gives all tensors all batch dimensions, and the same rank.
func whole(b *batched) []*ssa.Value {
	b.toCommonRank(b.full)
	return b.same()
}

// inference is a batch_norm by stored statistics, (x - mean) / sqrt(var + eps) * weight + bias where these are batched too. In training each
// element of the batch would have statistics of its own.
func inference(b *batched) []*ssa.Value {
	if b.constant(b.arg("training")).Bool() {
		b.refuse()
	}
	x, t := b.operands[0], b.resultType()
	batched, rank := false, b.rank(x)
	for _, v := range b.operands[1:5] {
		batched = batched || len(b.at(v)) > 0
	}
	if !batched {
		return folded(0)(b)
	}
	if rank < 2 || isNone(b.operands[3]) || isNone(b.operands[4]) {
		b.refuse()
	}
	loose := ssa.Unranked(b.dtype(x))
	channels := func(v *ssa.Value) *ssa.Value { // (B..., C) to (B..., 1, C, 1, ...)
		v = b.align(v, 1)
		v = b.emit("aten::unsqueeze", "", loose, v, b.int(int64(len(b.levels))))
		for range rank - 2 {
			v = b.emit("aten::unsqueeze", "", loose, v, b.int(-1))
		}
		return v
	}
	one := b.int(1)
	root := b.emit("aten::rsqrt", "", loose, b.emit("aten::add", "Scalar", loose, channels(b.operands[4]), b.operands[b.arg("eps")], one))
	y := b.emit("aten::sub", "Tensor", loose, b.align(x, rank), channels(b.operands[3]), one)
	y = b.emit("aten::mul", "Tensor", t, y, root)
	if w := b.operands[1]; !isNone(w) {
		y = b.emit("aten::mul", "Tensor", t, y, channels(w))
	}
	if c := b.operands[2]; !isNone(c) {
		y = b.emit("aten::add", "Tensor", t, y, channels(c), one)
	}
	return b.mark(y)
}

// paddedImages is a padding of images, of as many spatial dimensions as the list has pairs.
func paddedImages(b *batched) []*ssa.Value { return folded(len(b.members(1))/2 + 2)(b) }

// normalized is a layer_norm or rms_norm, whose batched weight and bias come behind it.
func normalized(b *batched) []*ssa.Value {
	rank, t := b.rank(b.operands[0]), b.resultType()
	b.operands[0] = b.align(b.operands[0], rank)
	weight, bias := b.arg("weight"), b.arg("bias")
	if len(b.at(b.operands[weight])) == 0 && (bias < 0 || len(b.at(b.operands[bias])) == 0) {
		return b.same()
	}
	after := [2]*ssa.Value{}
	for i, a := range [2]int{weight, bias} {
		if a < 0 || isNone(b.operands[a]) {
			continue
		}
		if after[i] = b.operands[a]; len(b.at(after[i])) > 0 {
			after[i] = b.align(after[i], rank)
		}
		b.operands[a] = b.im.constant(ssa.None)
	}
	y := b.emit(b.k, "", t, b.operands...)
	if after[0] != nil {
		y = b.emit("aten::mul", "Tensor", t, y, after[0])
	}
	if after[1] != nil {
		y = b.emit("aten::add", "Tensor", t, y, after[1], b.int(1))
	}
	return b.mark(y)
}

// padded is pad: by a constant it takes any rank, in the other modes it is of images.
func padded(b *batched) []*ssa.Value {
	if b.constant(b.arg("mode")).Str() != "constant" {
		return paddedImages(b)
	}
	return trailing(b)
}
