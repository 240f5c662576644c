package export

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// A torch.vmap that is open in the program leaves calls that add and remove batch dimensions, and between them operators on
// tensors that do not show those. They are built with the batch dimensions in front, in the order of the levels; the sizes that
// the file states are those behind them.

const vmapHint = "save ep.run_decompositions({}), which resolves it"

// batching is what is known of the open levels of torch.vmap.
type batching struct {
	sizes  []*ssa.Value           // of the levels that are open, the first is level 1
	levels map[*ssa.Value][]int64 // of a value that is batched, rising
	dims   map[int64]sym.Expr     // the size of a level
}

// vmapFunction builds one of the functions of torch._functorch.predispatch.
func (im *importer) vmapFunction(sc *scope, n *node, name string) {
	bt := &im.batching
	integer := func(i int) int64 { return im.positional(sc, n, i, tagInt).n }
	switch name {
	case "lazy_load_decompositions":
	case "_vmap_increment_nesting":
		bt.sizes = append(bt.sizes, im.value(sc, im.positional(sc, n, 0, tagNone), ssa.IntType))
	case "_vmap_decrement_nesting":
		if len(bt.sizes) == 0 {
			im.failNode(sc, vmapHint, "no torch.vmap is open")
		}
		bt.sizes = bt.sizes[:len(bt.sizes)-1]
	case "_add_batch_dim":
		x, dim, level := im.value(sc, im.positional(sc, n, 0, tagTensor), nil), integer(1), integer(2)
		b := &batched{im: im, sc: sc}
		at, rank := bt.levels[x], int64(b.rank(x))
		if dim < 0 {
			dim += rank
		}
		if dim < 0 || dim >= rank || level != int64(len(bt.sizes)) || slices.Contains(at, level) {
			im.failNode(sc, vmapHint, "dimension %d of a tensor of rank %d becomes level %d", dim, rank, level)
		}
		k := int64(len(at))
		t := ssa.AsTensor(x.Type)
		dims := slices.Clone(t.Dims)
		size := dims[k+dim]
		dims = slices.Insert(slices.Delete(dims, int(k+dim), int(k+dim)+1), int(k), size)
		if bt.levels == nil {
			bt.levels, bt.dims = map[*ssa.Value][]int64{}, map[int64]sym.Expr{}
		}
		bt.dims[level] = size
		y := b.emit("aten::movedim", "int", ssa.Tensor(t.DType, dims...), x, b.int(k+dim), b.int(k))
		bt.levels[y] = append(slices.Clone(at), level)
		im.bind(sc, n.outputs, []*ssa.Value{y})
	case "_remove_batch_dim":
		x, level, dim := im.value(sc, im.positional(sc, n, 0, tagTensor), nil), integer(1), integer(3)
		size := im.value(sc, im.positional(sc, n, 2, tagNone), ssa.IntType)
		b := &batched{im: im, sc: sc}
		at, rank := bt.levels[x], int64(b.rank(x))
		if dim < 0 {
			dim += rank + 1
		}
		if dim < 0 || dim > rank || len(n.outputs) != 1 {
			im.failNode(sc, vmapHint, "level %d becomes dimension %d of a tensor of rank %d", level, dim, rank)
		}
		left := slices.DeleteFunc(slices.Clone(at), func(l int64) bool { return l == level })
		k := int64(len(left))
		t := b.physical(im.valueType(sc.g, &n.outputs[0]), left)
		var y *ssa.Value
		if i := slices.Index(at, level); i >= 0 {
			y = b.emit("aten::movedim", "int", t, x, b.int(int64(i)), b.int(k+dim))
		} else {
			one := b.emit("aten::unsqueeze", "", ssa.Unranked(b.dtype(x)), x, b.int(k+dim))
			sizes := make([]*ssa.Value, k+rank+1)
			for i := range sizes {
				sizes[i] = b.int(-1)
			}
			sizes[k+dim] = size
			y = b.emit("aten::expand", "", t, one, b.ints(sizes...), im.constant(ssa.Bool(false)))
		}
		if len(left) > 0 {
			bt.levels[y] = left
		}
		im.bind(sc, n.outputs, []*ssa.Value{y})
	default:
		im.failNode(sc, vmapHint, "a torch.vmap is open, and this function has no batching rule")
	}
}

// batched is an operator with a batched operand.
type batched struct {
	im       *importer
	sc       *scope
	k        ssa.Kind
	schema   *ssa.Schema
	operands []*ssa.Value
	outputs  []argument
	levels   []int64 // of all operands
}

// levelsOf gives the levels of a value or of the members of a list.
func (im *importer) levelsOf(v *ssa.Value) []int64 {
	if at := im.batching.levels[v]; at != nil {
		return at
	}
	var all []int64
	if d := v.Def(); d != nil && d.Kind == "prim::ListConstruct" {
		for i := range d.NumOperands() {
			all = append(all, im.batching.levels[d.Operand(i)]...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// batchedOperator builds an operator by its batching rule where an operand is batched.
func (im *importer) batchedOperator(sc *scope, k ssa.Kind, schema *ssa.Schema, operands []*ssa.Value, outputs []argument) ([]*ssa.Value, bool) {
	if len(im.batching.levels) == 0 {
		return nil, false
	}
	b := &batched{im: im, sc: sc, k: k, schema: schema, operands: slices.Clone(operands), outputs: outputs}
	for _, v := range operands {
		b.levels = append(b.levels, im.levelsOf(v)...)
	}
	if len(b.levels) == 0 {
		return nil, false
	}
	slices.Sort(b.levels)
	b.levels = slices.Compact(b.levels)
	if sc.region != nil {
		im.failNode(sc, vmapHint, "autocast inside torch.vmap")
	}
	rule := batchingRules[string(k)]
	switch {
	case rule != nil:
	case aten.NatureOf(k) == aten.Pointwise:
		rule = pointwise
	default:
		b.refuse()
	}
	return rule(b), true
}

func (b *batched) refuse() {
	b.im.failNode(b.sc, vmapHint, "it is called inside torch.vmap, and has no batching rule for these arguments")
}

// refuseBatched ends the reading where a call takes a batched value that it does not know of.
func (im *importer) refuseBatched(sc *scope, vs ...*ssa.Value) {
	for _, v := range vs {
		if len(im.batching.levels) > 0 && len(im.levelsOf(v)) > 0 {
			(&batched{im: im, sc: sc}).refuse()
		}
	}
}

func (b *batched) int(n int64) *ssa.Value           { return b.im.constant(ssa.Int(n)) }
func (b *batched) ints(vs ...*ssa.Value) *ssa.Value { return b.im.list(b.sc, vs, ssa.IntType) }
func (b *batched) at(v *ssa.Value) []int64          { return b.im.batching.levels[v] }
func (b *batched) arg(name string) int              { return b.schema.Arg(name) }
func (b *batched) dtype(v *ssa.Value) tensor.DType  { return ssa.AsTensor(v.Type).DType }

// rank is that which the program sees.
func (b *batched) rank(v *ssa.Value) int {
	t := ssa.AsTensor(v.Type)
	if t == nil || !t.Ranked {
		b.im.failNode(b.sc, vmapHint, "the rank of an operand inside torch.vmap is not known")
	}
	return len(t.Dims) - len(b.at(v))
}

// physical puts the batch dimensions in front of a type.
func (b *batched) physical(t ssa.Type, levels []int64) ssa.Type {
	tt := ssa.AsTensor(t)
	if tt == nil || !tt.Ranked {
		return t
	}
	var dims []sym.Expr
	for _, l := range levels {
		dims = append(dims, b.im.batching.dims[l])
	}
	return ssa.Tensor(tt.DType, append(dims, tt.Dims...)...)
}

// emit appends an operator with one result.
func (b *batched) emit(k ssa.Kind, overload string, t ssa.Type, vs ...*ssa.Value) *ssa.Value {
	return b.im.emit(b.sc, b.sc.b, k, overload, t, vs...)
}

// resultType is the type of the first result.
func (b *batched) resultType() ssa.Type {
	if len(b.outputs) == 0 || b.outputs[0].tag != tagTensor {
		b.refuse()
	}
	return b.physical(b.im.tensorType(b.sc.g, b.outputs[0].s), b.levels)
}

// same is the operator itself on the operands as they are now; its results have all levels.
func (b *batched) same() []*ssa.Value {
	types := make([]ssa.Type, len(b.schema.Returns))
	for i := range types {
		types[i] = b.schema.Returns[i].Type
		if ssa.AsTensor(types[i]) != nil && i < len(b.outputs) && b.outputs[i].tag == tagTensor {
			types[i] = b.physical(b.im.tensorType(b.sc.g, b.outputs[i].s), b.levels)
		}
	}
	o := b.sc.b.Append(b.k, b.sc.at, b.operands, types...)
	o.Schema = b.schema
	return b.mark(o.Results...)
}

func (b *batched) mark(vs ...*ssa.Value) []*ssa.Value {
	for _, v := range vs {
		if isNumber(v.Type) { // a size that the program sees
			continue
		}
		b.im.batching.levels[v] = b.levels
	}
	return vs
}

// align gives a tensor a dimension for each level, of size 1 where it lacks it, and the rank behind them.
func (b *batched) align(v *ssa.Value, rank int) *ssa.Value {
	at, r := b.at(v), b.rank(v)
	add := func(i int) { v = b.emit("aten::unsqueeze", "", ssa.Unranked(b.dtype(v)), v, b.int(int64(i))) }
	for range rank - r {
		add(len(at))
	}
	for i, l := range b.levels {
		if !slices.Contains(at, l) {
			add(i)
		}
	}
	return v
}

// full is align with the sizes of all levels.
func (b *batched) full(v *ssa.Value, rank int) *ssa.Value {
	if slices.Equal(b.at(v), b.levels) && b.rank(v) == rank {
		return v
	}
	sizes := b.batchSizes()
	for range rank {
		sizes = append(sizes, b.int(-1))
	}
	v = b.align(v, rank)
	return b.emit("aten::expand", "", ssa.Unranked(b.dtype(v)), v, b.ints(sizes...), b.im.constant(ssa.Bool(false)))
}

func (b *batched) batchSizes() []*ssa.Value {
	var sizes []*ssa.Value
	for _, l := range b.levels {
		if l > int64(len(b.im.batching.sizes)) {
			b.im.failNode(b.sc, vmapHint, "level %d of torch.vmap is closed", l)
		}
		sizes = append(sizes, b.im.batching.sizes[l-1])
	}
	return sizes
}

// members gives the elements of the list argument i.
func (b *batched) members(i int) []*ssa.Value {
	d := b.operands[i].Def()
	if d == nil || d.Kind != "prim::ListConstruct" {
		b.refuse()
	}
	var vs []*ssa.Value
	for j := range d.NumOperands() {
		vs = append(vs, d.Operand(j))
	}
	return vs
}

// fromEnd counts a dimension from the end, where batch dimensions do not move it.
func (b *batched) fromEnd(v *ssa.Value, rank int) *ssa.Value {
	d := v.Def()
	if d == nil || d.Kind != "prim::Constant" || v.Type != ssa.IntType || rank == 0 {
		b.refuse()
	}
	lit, _ := d.Attr("value")
	n := lit.Int()
	if n >= 0 {
		n -= int64(rank)
	}
	if n < -int64(rank) || n >= 0 {
		b.refuse()
	}
	return b.int(n)
}

func isNone(v *ssa.Value) bool { return v.Type == ssa.NoneType }

func isOptionalList(t ssa.Type) bool {
	o, ok := t.(*ssa.OptionalType)
	if !ok {
		return false
	}
	_, ok = o.Elem.(*ssa.ListType)
	return ok
}

// onlySelf refuses where another tensor than the first is batched.
func (b *batched) onlySelf() {
	for _, v := range b.operands[1:] {
		if len(b.im.levelsOf(v)) > 0 {
			b.refuse()
		}
	}
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

// extremum is max or min: of two tensors, of a tensor along a dimension, or of all its elements.
func extremum(b *batched) []*ssa.Value {
	if b.arg("other") >= 0 {
		return pointwise(b)
	}
	return reduction("")(b)
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
	d := b.operands[i].Def()
	if d == nil || d.Kind != "prim::Constant" {
		b.refuse()
	}
	lit, _ := d.Attr("value")
	if lit.Int() == 0 {
		return pointwise(b)
	}
	t := b.resultType()
	b.outputs, b.operands[i] = nil, b.int(0)
	y := pointwise(b)[0]
	y.Type = ssa.Unranked(ssa.AsTensor(t).DType)
	y = b.flat(y)
	k := ssa.Kind("aten::mean")
	overload, none := "dim", b.im.constant(ssa.None)
	if lit.Int() == 2 {
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

// alongDims counts the dimensions from the end; more is 1 where the operator adds one.
func alongDims(more int) func(b *batched) []*ssa.Value {
	return func(b *batched) []*ssa.Value {
		b.onlySelf()
		rank := b.rank(b.operands[0])
		b.dims(rank + more)
		return b.same()
	}
}

func (b *batched) dims(rank int) {
	found := false
	for i := range b.schema.Args {
		switch b.schema.Args[i].Name {
		case "dim", "dim0", "dim1", "dims", "start_dim", "end_dim", "source", "destination":
		default:
			continue
		}
		found = true
		v := b.operands[i]
		if _, list := v.Type.(*ssa.ListType); !list && !isNone(v) {
			b.operands[i] = b.fromEnd(v, rank)
			continue
		}
		var ds []*ssa.Value
		if !isNone(v) {
			for _, d := range b.members(i) {
				ds = append(ds, b.fromEnd(d, rank))
			}
		}
		if len(ds) == 0 { // all of them, where the operator reduces
			if t, opt := b.schema.Args[i].Type.(*ssa.OptionalType); opt && t.Elem == ssa.IntType || rank == 0 || b.k == "aten::flip" || b.k == "aten::roll" || b.k == "aten::squeeze" {
				b.refuse()
			}
			for d := range rank {
				ds = append(ds, b.int(int64(d-rank)))
			}
		}
		b.operands[i] = b.ints(ds...)
	}
	if !found {
		b.refuse()
	}
}

// reduction is alongDims; without dimensions it is over all that the program sees, made one.
func reduction(overload string) func(b *batched) []*ssa.Value {
	return func(b *batched) []*ssa.Value {
		b.onlySelf()
		d := b.arg("dim")
		if d >= 0 && (!isNone(b.operands[d]) || isOptionalList(b.schema.Args[d].Type)) {
			return alongDims(0)(b)
		}
		x := b.operands[0]
		if one, ok := extremes[b.k]; ok && len(b.operands) == 1 {
			return b.mark(b.emit(one, "", b.resultType(), b.flat(x), b.ints(b.int(-1)), b.im.constant(ssa.Bool(false))))
		}
		if overload == "" || d >= 0 {
			b.refuse()
		}
		flat := b.flat(x)
		schema := aten.Schema(b.k, overload)
		operands := make([]*ssa.Value, len(schema.Args))
		for i := range schema.Args {
			a := &schema.Args[i]
			switch j := b.arg(a.Name); {
			case i == 0:
				operands[i] = flat
			case a.Name == "dim":
				operands[i] = b.im.value(b.sc, &argument{tag: tagInt, n: -1}, a.Type)
			case j >= 0:
				operands[i] = b.operands[j]
			default:
				operands[i] = b.im.defaultOf(b.sc, a)
			}
		}
		return b.mark(b.emit(b.k, overload, b.resultType(), operands...))
	}
}

// extremes are the forms along a dimension of the extremes of all elements.
var extremes = map[ssa.Kind]ssa.Kind{"aten::max": "aten::amax", "aten::min": "aten::amin"}

// flat makes one dimension of all that the program sees.
func (b *batched) flat(x *ssa.Value) *ssa.Value {
	return b.emit("aten::reshape", "", ssa.Unranked(b.dtype(x)), x, b.ints(append(b.batchSizes(), b.int(-1))...))
}

// sized prepends to the list of sizes what keeps the batch dimensions.
func sized(name string, keep func(b *batched) []*ssa.Value, ranked bool) func(b *batched) []*ssa.Value {
	return func(b *batched) []*ssa.Value {
		b.onlySelf()
		i := b.arg(name)
		if i < 0 {
			b.refuse()
		}
		sizes := b.members(i)
		if ranked {
			b.operands[0] = b.align(b.operands[0], len(sizes))
		}
		b.operands[i] = b.ints(append(keep(b), sizes...)...)
		return b.same()
	}
}

func (b *batched) repeat(n int64) []*ssa.Value {
	vs := make([]*ssa.Value, len(b.levels))
	for i := range vs {
		vs[i] = b.int(n)
	}
	return vs
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
func joined(more int) func(b *batched) []*ssa.Value {
	return func(b *batched) []*ssa.Value {
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
		b.operands[0] = b.im.list(b.sc, vs, ssa.AnyTensor)
		b.dims(rank + more)
		return b.same()
	}
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

// toCommonRank replaces each tensor among the operands by to of it and the greatest rank of all, which it returns.
func (b *batched) toCommonRank(to func(v *ssa.Value, rank int) *ssa.Value) (rank int) {
	for _, v := range b.operands {
		if ssa.AsTensor(v.Type) != nil {
			rank = max(rank, b.rank(v))
		}
	}
	for i, v := range b.operands {
		if ssa.AsTensor(v.Type) != nil {
			b.operands[i] = to(v, rank)
		}
	}
	return rank
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

// fold makes the batch dimensions one with the first dimension behind them, or alone if there are no samples.
func (b *batched) fold(v *ssa.Value, alone bool) *ssa.Value {
	k, rank := len(b.levels), b.rank(v)
	v = b.full(v, rank)
	last := k
	if alone {
		last--
	}
	return b.emit("aten::flatten", "using_ints", ssa.Unranked(b.dtype(v)), v, b.int(0), b.int(int64(last)))
}

// unfold takes the batch dimensions out of the first dimension of results.
func (b *batched) unfold(vs []*ssa.Value, alone bool) []*ssa.Value {
	for i, v := range vs {
		sizes := b.batchSizes()
		if !alone {
			sizes = append(sizes, b.int(-1))
		}
		t := ssa.Type(ssa.Unranked(b.dtype(v)))
		if i < len(b.outputs) && b.outputs[i].tag == tagTensor {
			t = b.physical(b.im.tensorType(b.sc.g, b.outputs[i].s), b.levels)
		}
		vs[i] = b.emit("aten::unflatten", "int", t, v, b.int(0), b.ints(sizes...))
	}
	return b.mark(vs...)
}

// appended is the operator on the operands as they are now, whose results nothing is said of but their element types.
func (b *batched) appended() []*ssa.Value {
	types := make([]ssa.Type, len(b.schema.Returns))
	for i := range types {
		if ssa.AsTensor(b.schema.Returns[i].Type) == nil || i >= len(b.outputs) || b.outputs[i].tag != tagTensor {
			b.refuse()
		}
		types[i] = ssa.Unranked(ssa.AsTensor(b.im.tensorType(b.sc.g, b.outputs[i].s)).DType)
	}
	o := b.sc.b.Append(b.k, b.sc.at, b.operands, types...)
	o.Schema = b.schema
	return slices.Clone(o.Results)
}

// convolution has a group for each element of a batch where the weights are batched too.
func convolution(rank int) func(b *batched) []*ssa.Value {
	return func(b *batched) []*ssa.Value {
		w, bias, groups := b.operands[1], b.operands[2], b.arg("groups")
		if len(b.at(w)) == 0 && len(b.at(bias)) == 0 {
			return folded(rank)(b)
		}
		x := b.operands[0]
		d := b.operands[groups].Def()
		if b.rank(x) != rank || d == nil || d.Kind != "prim::Constant" || len(b.levels) != 1 {
			b.refuse()
		}
		lit, _ := d.Attr("value")
		// (B, N, C, ...) to (N, B*C, ...), and of the weights (B, O, C, ...) to (B*O, C, ...)
		x = b.emit("aten::movedim", "int", ssa.Unranked(b.dtype(x)), b.full(x, rank), b.int(0), b.int(1))
		b.operands[0] = b.emit("aten::flatten", "using_ints", ssa.Unranked(b.dtype(x)), x, b.int(1), b.int(2))
		b.operands[1] = b.fold(w, false)
		if !isNone(bias) {
			b.operands[2] = b.fold(bias, false)
		}
		size := b.batchSizes()[0]
		if n := lit.Int(); n != 1 {
			size = b.im.emit(b.sc, b.sc.b, "aten::mul", "int", ssa.IntType, size, b.int(n))
		}
		b.operands[groups] = size
		y := b.appended()[0]
		y = b.emit("aten::unflatten", "int", ssa.Unranked(b.dtype(y)), y, b.int(1), b.ints(append(b.batchSizes(), b.int(-1))...))
		return b.mark(b.emit("aten::movedim", "int", b.resultType(), y, b.int(1), b.int(0)))
	}
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
	d := b.operands[0].Def()
	if d == nil || d.Kind != "prim::Constant" {
		b.refuse()
	}
	lit, _ := d.Attr("value")
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
	d := b.operands[b.arg("training")].Def()
	if d == nil || d.Kind != "prim::Constant" {
		b.refuse()
	}
	if lit, _ := d.Attr("value"); lit.Bool() {
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

// padded is pad by a constant, which takes any rank.
func padded(b *batched) []*ssa.Value {
	d := b.operands[b.arg("mode")].Def()
	if d == nil || d.Kind != "prim::Constant" {
		b.refuse()
	}
	if lit, _ := d.Attr("value"); lit.Str() != "constant" {
		b.refuse()
	}
	return trailing(b)
}

// trailing are operators that keep to the last dimensions of their first tensor, or to none.
func trailing(b *batched) []*ssa.Value {
	b.onlySelf()
	return b.same()
}

// batchingRules are those of operators whose nature gives none.
var batchingRules = map[string]func(b *batched) []*ssa.Value{}

func init() {
	set := func(rule func(b *batched) []*ssa.Value, names string) {
		for name := range strings.FieldsSeq(names) {
			batchingRules["aten::"+name] = rule
		}
	}
	set(alongDims(0), `softmax log_softmax cumsum cumprod cummax cummin logcumsumexp diff trapezoid trapz select slice narrow transpose swapaxes flip unbind split split_with_sizes chunk movedim sort argsort topk
		flatten unflatten logsumexp size glu roll index_select repeat_interleave`)
	set(alongDims(1), "unsqueeze")
	set(reduction("dim_IntList"), "sum")
	set(reduction("dim"), "mean any all")
	set(reduction("dim_int"), "prod")
	set(reduction(""), "amax amin argmax argmin var std linalg_vector_norm squeeze")
	set(sized("shape", (*batched).batchSizes, false), "reshape")
	set(sized("size", (*batched).batchSizes, false), "view _unsafe_view new_ones new_zeros new_full new_empty")
	set(sized("size", func(b *batched) []*ssa.Value { return b.repeat(-1) }, true), "expand")
	set(sized("repeats", func(b *batched) []*ssa.Value { return b.repeat(1) }, true), "repeat")
	set(permuted, "permute")
	set(joined(0), "cat concat")
	set(joined(1), "stack")
	set(products, "matmul mm bmm mv dot")
	set(added, "addmm baddbmm addmv")
	set(einsum, "einsum")
	for n, d := range []string{"1d", "2d", "3d"} {
		set(convolution(n+3), "conv"+d)
		set(folded(n+3), "conv_transpose"+d+" max_pool"+d+" max_pool"+d+"_with_indices avg_pool"+d+" adaptive_avg_pool"+d+" adaptive_max_pool"+d)
	}
	set(inference, "batch_norm")
	set(folded(0), "group_norm instance_norm upsample_nearest2d upsample_bilinear2d upsample_bicubic2d")
	set(embedding, "embedding")
	set(whole, "scaled_dot_product_attention cdist")
	set(padded, "pad")
	set(linear, "linear")
	set(indexed, "index")
	set(gathered, "gather take_along_dim scatter scatter_add")
	set(alongCommon, "cosine_similarity cross linalg_cross")
	set(rectifiedKernel, "_prelu_kernel")
	set(broadcast, "broadcast_tensors")
	set(normalized, "layer_norm rms_norm")
	set(extremum, "max min")
	set(likeOther, "expand_as type_as")
	set(copied, "copy_")
	set(filled, "fill fill_")
	set(rectified, "prelu")
	set(outer, "outer ger")
	set(loss, `mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss kl_div poisson_nll_loss hinge_embedding_loss binary_cross_entropy
		binary_cross_entropy_with_logits`)
	set(trailing, "triu tril one_hot pixel_shuffle pixel_unshuffle clone contiguous detach alias to zeros_like ones_like full_like dropout real conj conj_physical resolve_conj resolve_neg isin bucketize mvlgamma frexp")
}
