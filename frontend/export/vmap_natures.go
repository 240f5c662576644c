package export

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// natureRules are the batching rules that follow from the nature of an operator. [batchingRules] and [ownRules] go before.
var natureRules = map[aten.Nature]func(b *batched) []*ssa.Value{
	aten.Pointwise:   pointwise,
	aten.Identity:    trailing,
	aten.Transposes:  transposes,
	aten.Slices:      alongDims,
	aten.Splits:      alongDims,
	aten.Windows:     alongDims,
	aten.Reshapes:    reshapes,
	aten.Expands:     expands,
	aten.Moves:       alongDims,
	aten.Joins:       joined,
	aten.AlongDim:    alongDims,
	aten.Reduces:     reduction,
	aten.Samples:     samples,
	aten.CreatesLike: created,
}

// pointwise aligns the ranks, and broadcasting does the rest.
func pointwise(b *batched) []*ssa.Value {
	if len(b.schema.Returns) == 0 || slices.ContainsFunc(b.schema.Returns, func(r ssa.SchemaArg) bool { return ssa.AsTensor(r.Type) == nil }) {
		b.refuse() // where(condition) gives places, as many as hold
	}
	// A tensor of rank 0 does not widen the element type of others. With batch dimensions it would: where the program states a
	// type that is not so wide, it is converted to theirs.
	rank, promoted := 0, tensor.Undefined
	var tensors []int
	for i, v := range b.operands {
		if ssa.AsTensor(v.Type) == nil {
			if len(b.im.levelsOf(v)) > 0 {
				b.refuse()
			}
			continue
		}
		tensors = append(tensors, i)
		r := b.rank(v)
		if r > 0 && !b.isMask(i) {
			promoted = aten.Promote(promoted, b.dtype(v))
		}
		rank = max(rank, r)
	}
	for _, i := range tensors {
		v := b.operands[i]
		if b.schema.Args[i].Writes && (!slices.Equal(b.at(v), b.levels) || b.rank(v) != rank) {
			b.refuse()
		}
		scalar := b.rank(v) == 0 && !b.isMask(i)
		if len(b.at(v)) == 0 && !(scalar && rank == 0) {
			continue
		}
		d := b.dtype(v)
		v = b.align(v, rank)
		if scalar && b.narrow(aten.Promote(promoted, d)) && promoted != tensor.Undefined && promoted != d && promoted.IsFloat() == d.IsFloat() && promoted.IsInt() == d.IsInt() && promoted.IsComplex() == d.IsComplex() {
			no := b.im.constant(ssa.Bool(false))
			v = b.emit("aten::to", "dtype", ssa.Unranked(promoted), v, b.int(int64(promoted.Code())), no, no, b.im.constant(ssa.None))
		}
		b.operands[i] = v
	}
	return b.same()
}

// narrow reports that the first result is of another type than the given one, and no bool, of whose operands it says nothing.
func (b *batched) narrow(wide tensor.DType) bool {
	if len(b.outputs) == 0 || b.outputs[0].tag != tagTensor {
		return true
	}
	t := ssa.AsTensor(b.im.tensorType(b.sc.g, b.outputs[0].s))
	return t == nil || t.DType != wide && t.DType != tensor.Bool
}

// isMask reports an argument that chooses between others, whose element type counts for nothing.
func (b *batched) isMask(i int) bool {
	return b.schema.Args[i].Name == "condition" || b.schema.Args[i].Name == "mask"
}

// alongDims counts the dimensions from the end.
func alongDims(b *batched) []*ssa.Value { return alongDimsAnd(0)(b) }

// alongDimsAnd is alongDims of operators whose result has more dimensions, which their arguments count.
func alongDimsAnd(more int) func(b *batched) []*ssa.Value {
	return func(b *batched) []*ssa.Value {
		b.onlySelf()
		b.dims(b.rank(b.operands[0]) + more)
		return b.same()
	}
}

// reduction is alongDims; without dimensions it is over all that the program sees, made one.
func reduction(b *batched) []*ssa.Value {
	b.onlySelf()
	d := b.arg("dim")
	if d >= 0 && (!isNone(b.operands[d]) || isOptionalList(b.schema.Args[d].Type)) {
		return alongDims(b)
	}
	if i := b.arg("keepdim"); i >= 0 && !b.constant(i).Equal(ssa.Bool(false)) {
		b.refuse() // it keeps as many dimensions as the program sees
	}
	x := b.operands[0]
	schema := b.alongOne()
	operands := make([]*ssa.Value, len(schema.Args))
	for i := range schema.Args {
		a := &schema.Args[i]
		switch j := b.arg(a.Name); {
		case i == 0:
			operands[i] = b.flat(x)
		case a.Name == "dim":
			operands[i] = b.im.value(b.sc, &argument{tag: tagInt, n: -1}, a.Type)
		case j >= 0:
			operands[i] = b.operands[j]
		default:
			operands[i] = b.im.defaultOf(b.sc, a)
		}
	}
	n := len(b.schema.Returns)
	b.schema, b.operands = schema, operands
	return b.same()[:n]
}

// alongOne is the overload of a reduction that takes a dimension, and no argument besides that is not given.
func (b *batched) alongOne() *ssa.Schema {
	for _, s := range aten.Schemas(b.k) {
		ok := !s.Mutates() && s.Arg("dim") > 0 && len(s.Returns) >= len(b.schema.Returns)
		for i, a := range s.Args {
			switch {
			case a.Name == "dim":
				ok = ok && (isInts(a.Type) || a.Type == ssa.IntType)
			case i > 0:
				ok = ok && (a.HasDefault || b.arg(a.Name) >= 0)
			}
		}
		if ok {
			return s
		}
	}
	b.refuse()
	return nil
}

// sized prepends to the list of sizes what keeps the batch dimensions.
func (b *batched) sized(i int, keep []*ssa.Value) []*ssa.Value {
	b.onlySelf()
	b.operands[i] = b.ints(append(keep, b.members(i)...)...)
	return b.same()
}

// sizes is the place of the argument that has the sizes of the result, -1 if there is none.
func (b *batched) sizes() int { return max(b.arg("size"), b.arg("shape")) }

// reshapes is an operator that takes all sizes, or dimensions; of others the program states the result, whose elements have the same order.
func reshapes(b *batched) []*ssa.Value {
	if i := b.sizes(); i >= 0 {
		return b.sized(i, b.batchSizes())
	}
	for _, a := range b.schema.Args[1:] {
		if isInts(a.Type) && a.Name != "dtype" {
			return alongDims(b)
		}
	}
	b.onlySelf()
	t := b.resultType()
	stated, x := ssa.AsTensor(t), b.operands[0]
	if !stated.Ranked || stated.DType != b.dtype(x) {
		b.refuse()
	}
	sizes, open := b.batchSizes(), 0
	for _, d := range stated.Dims[len(b.levels):] {
		n, known := d.Int()
		if !known {
			n = -1
			open++
		}
		sizes = append(sizes, b.int(n))
	}
	if open > 1 {
		b.refuse()
	}
	return b.mark(b.emit("aten::reshape", "", t, x, b.ints(sizes...)))
}

// expands keeps the batch dimensions as they are.
func expands(b *batched) []*ssa.Value {
	i := b.sizes()
	if i < 0 {
		b.refuse()
	}
	b.operands[0] = b.align(b.operands[0], len(b.members(i)))
	return b.sized(i, b.repeat(-1))
}

// created is a tensor of the batch dimensions and of the sizes, or of the shape of the first one.
func created(b *batched) []*ssa.Value {
	if i := b.sizes(); i >= 0 {
		return b.sized(i, b.batchSizes())
	}
	return trailing(b)
}

// samples folds the batch dimensions into the dimension of the samples. That stands before the dimension of the channels and the spatial ones, whose number is
// that of an argument's elements.
func samples(b *batched) []*ssa.Value {
	for _, a := range b.schema.Args {
		if a.Size > 0 {
			return folded(a.Size + 2)(b)
		}
	}
	return folded(0)(b)
}

// transposes permutes the dimensions that the program sees, in the order of an argument or in reverse order.
func transposes(b *batched) []*ssa.Value {
	switch {
	case b.arg("dims") >= 0:
		return permuted(b)
	case len(b.schema.Args) > 1:
		return alongDims(b)
	}
	b.onlySelf()
	var ds []*ssa.Value
	for i := range b.levels {
		ds = append(ds, b.int(int64(i)))
	}
	for i := range b.rank(b.operands[0]) {
		ds = append(ds, b.int(int64(-i-1)))
	}
	return b.mark(b.emit("aten::permute", "", b.resultType(), b.operands[0], b.ints(ds...)))
}

func permuted(b *batched) []*ssa.Value {
	var ds []*ssa.Value
	for i := range b.levels {
		ds = append(ds, b.int(int64(i)))
	}
	i, rank := b.arg("dims"), b.rank(b.operands[0])
	for _, d := range b.members(i) {
		ds = append(ds, b.fromEnd(d, rank))
	}
	b.operands[i] = b.ints(ds...)
	return b.same()
}

// joined gives all members of the list all batch dimensions.
func joined(b *batched) []*ssa.Value {
	vs := b.members(0)
	if len(vs) == 0 {
		b.refuse()
	}
	rank := b.rank(vs[0])
	for i, v := range vs {
		if b.rank(v) != rank {
			b.refuse()
		}
		vs[i] = b.full(v, rank)
	}
	result := ssa.AsTensor(b.resultType())
	if !result.Ranked {
		b.refuse()
	}
	b.operands[0] = b.im.list(b.sc, vs, ssa.AnyTensor)
	b.dims(max(rank, len(result.Dims)-len(b.levels))) // a new dimension counts
	return b.same()
}

// folded is an operator on a batch of samples: the batch dimensions become one with that of the samples, and come out of the results' again. Only
// the first tensor is batched; samples is the rank that it has with the dimension of the samples, 0 for any.
func folded(samples int) func(b *batched) []*ssa.Value {
	return func(b *batched) []*ssa.Value {
		b.onlySelf()
		rank := b.rank(b.operands[0])
		if rank == 0 || samples != 0 && rank != samples && rank != samples-1 {
			b.refuse()
		}
		b.operands[0] = b.fold(b.operands[0], samples != 0 && rank == samples-1)
		return b.unfold(b.appended(), samples != 0 && rank == samples-1)
	}
}

// trailing are operators that keep to the last dimensions of their first tensor, or to none.
func trailing(b *batched) []*ssa.Value {
	b.onlySelf()
	return b.same()
}
