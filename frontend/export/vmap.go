package export

import (
	"slices"

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
	if rule := ownRules[k]; rule != nil {
		return rule(b), true
	}
	if rule := batchingRules[aten.BatchingOf(k)]; rule != nil {
		return rule(b), true
	}
	nature := aten.NatureOf(k)
	rule := natureRules[nature]
	if rule == nil || nature != aten.Pointwise && schema.Mutates() {
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

func (b *batched) int(n int64) *ssa.Value { return b.im.constant(ssa.Int(n)) }

func (b *batched) ints(vs ...*ssa.Value) *ssa.Value { return b.im.list(b.sc, vs, ssa.IntType) }

func (b *batched) at(v *ssa.Value) []int64 { return b.im.batching.levels[v] }

func (b *batched) arg(name string) int { return b.schema.Arg(name) }

func (b *batched) dtype(v *ssa.Value) tensor.DType { return ssa.AsTensor(v.Type).DType }

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

// constant is the argument i, which the program knows.
func (b *batched) constant(i int) ssa.Literal {
	d := b.operands[i].Def()
	if d == nil || d.Kind != "prim::Constant" {
		b.refuse()
	}
	lit, ok := d.Attr("value")
	if !ok {
		return ssa.None
	}
	return lit
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

// isInts reports ints: one or a list of them, which may be None.
func isInts(t ssa.Type) bool {
	if o, ok := t.(*ssa.OptionalType); ok {
		t = o.Elem
	}
	if l, ok := t.(*ssa.ListType); ok {
		t = l.Elem
	}
	return t == ssa.IntType
}

// onlySelf refuses where another tensor than the first is batched.
func (b *batched) onlySelf() {
	for _, v := range b.operands[1:] {
		if len(b.im.levelsOf(v)) > 0 {
			b.refuse()
		}
	}
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

// flat makes one dimension of all that the program sees.
func (b *batched) flat(x *ssa.Value) *ssa.Value {
	return b.emit("aten::reshape", "", ssa.Unranked(b.dtype(x)), x, b.ints(append(b.batchSizes(), b.int(-1))...))
}

func (b *batched) repeat(n int64) []*ssa.Value {
	vs := make([]*ssa.Value, len(b.levels))
	for i := range vs {
		vs[i] = b.int(n)
	}
	return vs
}

// dims counts the arguments that name dimensions from the end, where batch dimensions do not move them.
func (b *batched) dims(rank int) {
	found := false
	for i := range b.schema.Args {
		switch b.schema.Args[i].Name {
		case "dim", "dim0", "dim1", "dim2", "dims", "axis0", "axis1", "dimension", "start_dim", "end_dim", "source", "destination":
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
		if len(ds) == 0 { // all of them, but an empty list says so to those that reduce only
			t, optional := b.schema.Args[i].Type.(*ssa.OptionalType)
			if optional && t.Elem == ssa.IntType || rank == 0 || !isNone(v) && aten.NatureOf(b.k) != aten.Reduces {
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
