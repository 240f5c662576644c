package export

import (
	"math"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// higherOrder builds a call that takes graphs or operators.
func (im *importer) higherOrder(sc *scope, n *node, name string) {
	switch name = strings.TrimSuffix(name, ".default"); name {
	case "cond", "while_loop", "scan", "map_impl", "map", "associative_scan":
		// up to 2.6 results are in a list where they are a tuple
		flat := *n
		flat.outputs = flatten(n.outputs)
		n = &flat
	}
	for i := range n.inputs {
		for _, a := range flatten([]argument{n.inputs[i].argument}) {
			if v := sc.vals[a.s]; a.isName() && v != nil {
				im.refuseBatched(sc, v)
			}
		}
	}
	switch name {
	case "cond":
		im.cond(sc, n)
	case "while_loop":
		im.whileLoop(sc, n)
	case "scan":
		im.scan(sc, n, true)
	case "map_impl", "map":
		im.scan(sc, n, false)
	case "associative_scan":
		im.associativeScan(sc, n)
	case "wrap_with_autocast":
		im.wrap(sc, n, im.autocastOf(sc, n))
	case "wrap_with_set_grad_enabled", "invoke_subgraph", "hints_wrapper", "strict_mode", "tag_activation_checkpoint", "wrap", "inductor_compiled_code":
		im.wrap(sc, n, sc.region)
	case "auto_functionalized", "auto_functionalized_v2":
		im.functionalized(sc, n, strings.HasPrefix(name, "auto_functionalized_v2"))
	case "with_effects":
		im.withEffects(sc, n)
	default:
		im.failNode(sc, "", "the higher-order operator %s is not supported", name)
	}
}

// positional gives an argument by position.
func (im *importer) positional(sc *scope, n *node, i int, t tag) *argument {
	if i >= len(n.inputs) {
		im.failNode(sc, "", "argument %d is missing", i)
	}
	a := &n.inputs[i].argument
	if t != tagNone && a.tag != t {
		im.failNode(sc, "", "argument %d is %v, not %v", i, a.tag, t)
	}
	return a
}

// operands gives the members of a list argument as values.
func (im *importer) operands(sc *scope, a *argument) []*ssa.Value {
	vs := make([]*ssa.Value, len(a.list))
	for i := range a.list {
		vs[i] = im.value(sc, &a.list[i], nil)
	}
	return vs
}

// boolOf makes a condition of a bool or a tensor.
func (im *importer) boolOf(sc *scope, b *ssa.Block, v *ssa.Value) *ssa.Value {
	if v.Type == ssa.BoolType {
		return v
	}
	if ssa.AsTensor(v.Type) == nil {
		im.failNode(sc, "", "a condition is %s", v.Type)
	}
	return im.emit(sc, b, "aten::Bool", "Tensor", ssa.BoolType, v)
}

// outputTypes are the types of the results of a call.
func (im *importer) outputTypes(sc *scope, n *node) []ssa.Type {
	types := make([]ssa.Type, len(n.outputs))
	for i := range types {
		types[i] = im.valueType(sc.g, &n.outputs[i])
	}
	return types
}

func (im *importer) cond(sc *scope, n *node) {
	c := im.boolOf(sc, sc.b, im.value(sc, im.positional(sc, n, 0, tagNone), ssa.BoolType))
	operands := im.operands(sc, im.positional(sc, n, 3, tagList))
	o := sc.b.Append("prim::If", sc.at, []*ssa.Value{c}, im.outputTypes(sc, n)...)
	for i := 1; i <= 2; i++ {
		g := im.positional(sc, n, i, tagGraph).graph
		b := o.AddBlock()
		rs := im.inline(sc, b, g, operands, sc.region)
		if len(rs) != len(o.Results) {
			im.failNode(sc, "", "a branch gives %d results for %d", len(rs), len(o.Results))
		}
		b.SetReturns(rs...)
	}
	im.bind(sc, n.outputs, o.Results)
}

func (im *importer) whileLoop(sc *scope, n *node) {
	test, body := im.positional(sc, n, 0, tagGraph).graph, im.positional(sc, n, 1, tagGraph).graph
	carried := im.operands(sc, im.positional(sc, n, 2, tagList))
	var captured []*ssa.Value
	if len(n.inputs) > 3 {
		captured = im.operands(sc, im.positional(sc, n, 3, tagList))
	}
	if len(carried) != len(n.outputs) {
		im.failNode(sc, "", "%d results for %d carried values", len(n.outputs), len(carried))
	}
	check := func(b *ssa.Block, state []*ssa.Value) *ssa.Value {
		rs := im.inline(sc, b, test, join(state, captured), sc.region)
		if len(rs) != 1 {
			im.failNode(sc, "", "the condition gives %d results", len(rs))
		}
		return im.boolOf(sc, b, rs[0])
	}
	// the carried values are the body's own: what it writes must not be seen outside
	operands := append([]*ssa.Value{im.constant(ssa.Int(math.MaxInt64)), check(sc.b, carried)}, carried...)
	o := sc.b.Append("prim::Loop", sc.at, operands, im.outputTypes(sc, n)...)
	b := o.AddBlock()
	b.AddParam(im.names.Unique("i"), ssa.IntType)
	state := make([]*ssa.Value, len(carried))
	for i, v := range carried {
		state[i] = b.AddParam("", loosely(v.Type))
	}
	next := im.inline(sc, b, body, join(state, captured), sc.region)
	if len(next) != len(carried) {
		im.failNode(sc, "", "the body gives %d results for %d carried values", len(next), len(carried))
	}
	b.SetReturns(append([]*ssa.Value{check(b, next)}, next...)...)
	im.bind(sc, n.outputs, o.Results)
}

func join(a, b []*ssa.Value) []*ssa.Value { return append(append([]*ssa.Value(nil), a...), b...) }

// loosely is the type of a value that may change its size.
func loosely(t ssa.Type) ssa.Type {
	if tt := ssa.AsTensor(t); tt != nil {
		return ssa.Unranked(tt.DType)
	}
	return t
}

// scan builds a loop over the first axis of the sequences:
// graph(carry..., slice..., captured...) -> carry..., y... ; the ys are stacked.
// map is a scan without carried values.
func (im *importer) scan(sc *scope, n *node, carries bool) {
	body := im.positional(sc, n, 0, tagGraph).graph
	at := 1
	var carried []*ssa.Value
	if carries {
		carried = im.operands(sc, im.positional(sc, n, at, tagList))
		at++
	}
	xs := im.operands(sc, im.positional(sc, n, at, tagList))
	at++
	axis, reverse := int64(0), false
	var captured []*ssa.Value
	for ; at < len(n.inputs); at++ { // up to 2.6 the axis and the direction come first
		switch a := &n.inputs[at].argument; a.tag {
		case tagInt:
			axis = a.n
		case tagBool:
			reverse = a.n != 0
		case tagList:
			captured = im.operands(sc, a)
		default:
			im.failNode(sc, "", "argument %d is %v", at, a.tag)
		}
	}
	if reverse {
		im.failNode(sc, "export again with PyTorch 2.7 or newer", "a scan that runs backwards")
	}
	if len(xs) == 0 || len(n.outputs) < len(carried) {
		im.failNode(sc, "", "a scan over nothing")
	}
	lists := make([]*ssa.Value, len(n.outputs)-len(carried))
	for i := range lists {
		lists[i] = im.list(sc, nil, ssa.AnyTensor)
	}
	dim := im.constant(ssa.Int(axis))
	loop := im.sweep(sc, carried, im.outputTypes(sc, n)[:len(carried)], xs, dim, 0, lists, func(b *ssa.Block, state, slices []*ssa.Value) (next, ys []*ssa.Value) {
		rs := im.body(sc, b, n, body, join(join(state, slices), captured), len(n.outputs))
		return rs[:len(carried)], rs[len(carried):]
	})
	results := append([]*ssa.Value(nil), loop.Results...)
	im.bind(sc, n.outputs, append(results, im.stacked(sc, n.outputs[len(carried):], lists, dim)...))
}

// associativeScan builds a loop over the first axis, which gives each element combined with all before it. PyTorch combines them in another order, which for an
// associative function differs by rounding alone:
// graph(left..., right..., captured...) -> combined...
func (im *importer) associativeScan(sc *scope, n *node) {
	combine := im.positional(sc, n, 0, tagGraph).graph
	xs := im.operands(sc, im.positional(sc, n, 1, tagList))
	var captured []*ssa.Value
	if len(n.inputs) > 2 {
		captured = im.operands(sc, im.positional(sc, n, 2, tagList))
	}
	if len(xs) == 0 || len(n.outputs) != len(xs) {
		im.failNode(sc, "", "%d results for %d tensors", len(n.outputs), len(xs))
	}
	dim := im.constant(ssa.Int(0))
	first, lists, types := make([]*ssa.Value, len(xs)), make([]*ssa.Value, len(xs)), make([]ssa.Type, len(xs))
	for i, x := range xs {
		types[i] = looseTensor(x)
		first[i] = im.emit(sc, sc.b, "aten::select", "int", types[i], x, dim, dim)
		lists[i] = im.list(sc, []*ssa.Value{first[i]}, ssa.AnyTensor)
	}
	im.sweep(sc, first, types, xs, dim, 1, lists, func(b *ssa.Block, state, slices []*ssa.Value) (next, ys []*ssa.Value) {
		rs := im.body(sc, b, n, combine, join(join(state, slices), captured), len(xs))
		return rs, rs
	})
	im.bind(sc, n.outputs, im.stacked(sc, n.outputs, lists, dim))
}

// sweep builds a loop over the slices of tensors along an axis, from one slice on. The body gives the next state and what is appended to the lists.
func (im *importer) sweep(sc *scope, state []*ssa.Value, types []ssa.Type, xs []*ssa.Value, dim *ssa.Value, from int64, lists []*ssa.Value,
	body func(b *ssa.Block, state, slices []*ssa.Value) (next, ys []*ssa.Value)) *ssa.Op {
	trips := im.emit(sc, sc.b, "aten::size", "int", ssa.IntType, xs[0], dim)
	if from > 0 {
		trips = im.emit(sc, sc.b, "aten::sub", "int", ssa.IntType, trips, im.constant(ssa.Int(from)))
	}
	yes := im.constant(ssa.Bool(true))
	loop := sc.b.Append("prim::Loop", sc.at, append([]*ssa.Value{trips, yes}, state...), types...)
	b := loop.AddBlock()
	i := b.AddParam(im.names.Unique("i"), ssa.IntType)
	carried, slices := make([]*ssa.Value, len(state)), make([]*ssa.Value, len(xs))
	for j, v := range state {
		carried[j] = b.AddParam("", loosely(v.Type))
	}
	if from > 0 {
		i = im.emit(sc, b, "aten::add", "int", ssa.IntType, i, im.constant(ssa.Int(from)))
	}
	for j, x := range xs {
		slices[j] = im.emit(sc, b, "aten::select", "int", looseTensor(x), x, dim, i)
	}
	next, ys := body(b, carried, slices)
	for j, y := range ys {
		if ssa.AsTensor(y.Type) == nil {
			im.failNode(sc, "", "the body gives %s, not a tensor", y.Type)
		}
		im.emit(sc, b, "aten::append", "t", &ssa.ListType{Elem: ssa.AnyTensor}, lists[j], y)
	}
	b.SetReturns(append([]*ssa.Value{yes}, next...)...)
	return loop
}

// looseTensor is the type of a part of a tensor: a region of autocast asks for the element type.
func looseTensor(x *ssa.Value) ssa.Type {
	if t := ssa.AsTensor(x.Type); t != nil {
		return ssa.Unranked(t.DType)
	}
	return ssa.AnyTensor
}

// body builds the graph of a loop's body in place.
func (im *importer) body(sc *scope, b *ssa.Block, n *node, g *graph, operands []*ssa.Value, want int) []*ssa.Value {
	rs := im.inline(sc, b, g, operands, sc.region)
	if len(rs) != want {
		im.failNode(sc, "", "the body gives %d results for %d", len(rs), want)
	}
	return rs
}

// stacked makes tensors of lists.
func (im *importer) stacked(sc *scope, outputs []argument, lists []*ssa.Value, dim *ssa.Value) []*ssa.Value {
	vs := make([]*ssa.Value, len(lists))
	for i, l := range lists {
		vs[i] = im.emit(sc, sc.b, "aten::stack", "", im.valueType(sc.g, &outputs[i]), l, dim)
	}
	return vs
}

// emit appends an operator with one result.
func (im *importer) emit(sc *scope, b *ssa.Block, k ssa.Kind, overload string, t ssa.Type, vs ...*ssa.Value) *ssa.Value {
	o := b.Append(k, sc.at, vs, t)
	if o.Schema = aten.Schema(k, overload); o.Schema == nil || len(o.Schema.Args) != len(vs) {
		im.failNode(sc, "", "there is no %s.%s of %d arguments", k, overload, len(vs))
	}
	return o.Results[0]
}

// wrap builds the graph of a region in place.
func (im *importer) wrap(sc *scope, n *node, region *autocast) {
	var g *graph
	var operands []*ssa.Value
	for i := range n.inputs {
		a := &n.inputs[i].argument
		switch {
		case a.tag == tagGraph && g == nil:
			g = a.graph
		case g == nil || a.tag == tagString || a.tag == tagDict || a.tag == tagBool && len(operands) == 0 && len(g.inputs) == 0:
			// options of the region
		case a.tag == tagList:
			operands = append(operands, im.operands(sc, a)...)
		default:
			operands = append(operands, im.value(sc, a, nil))
		}
	}
	if g == nil {
		im.failNode(sc, "", "the region has no graph")
	}
	im.bindAll(sc, n.outputs, im.inline(sc, sc.b, g, operands, region))
}

// flatten gives results with the members of lists among them in their places.
func flatten(outputs []argument) []argument {
	var flat []argument
	for i := range outputs {
		if outputs[i].tag == tagList {
			flat = append(flat, outputs[i].list...)
		} else {
			flat = append(flat, outputs[i])
		}
	}
	return flat
}

// bindAll is bind for results that are values of their own, in a list or not.
func (im *importer) bindAll(sc *scope, outputs []argument, results []*ssa.Value) {
	flat := flatten(outputs)
	if len(flat) != len(results) {
		im.failNode(sc, "", "%d results for %d", len(results), len(flat))
	}
	for i := range flat {
		if flat[i].isName() {
			im.define(sc, flat[i].s, results[i])
		}
	}
}

// operatorOf is the operator that a call is about.
func (im *importer) operatorOf(sc *scope, a *argument) (ssa.Kind, string) {
	s := a.s
	if !strings.HasPrefix(s, "torch.ops.") {
		s = "torch.ops." + s
	}
	k, overload, ok := target(s)
	if !ok {
		im.failNode(sc, "", "%.80q is no operator", a.s)
	}
	return k, overload
}

// withEffects drops the token: the order of operators is that of the graph.
func (im *importer) withEffects(sc *scope, n *node) {
	k, overload := im.operatorOf(sc, im.positional(sc, n, 1, tagOperator))
	if k == "aten::_print" {
		return
	}
	schema := im.opts.Table.Schema(k, overload)
	var args []*argument
	var names []string
	for i := 2; i < len(n.inputs); i++ {
		name := n.inputs[i].name
		if name == "" && schema != nil && i-2 < len(schema.Args) {
			name = schema.Args[i-2].Name
		}
		args, names = append(args, &n.inputs[i].argument), append(names, name)
	}
	outputs := n.outputs
	if len(outputs) > 0 {
		outputs = outputs[1:] // the token
	}
	im.bindResults(sc, outputs, im.operator(sc, k, overload, args, names, real(outputs)))
}

// real drops the None that stands for no result.
func real(outputs []argument) []argument {
	if len(outputs) == 1 && outputs[0].tag == tagNone {
		return nil
	}
	return outputs
}

func (im *importer) bindResults(sc *scope, outputs []argument, results []*ssa.Value) {
	im.bind(sc, real(outputs), results)
}

// functionalized builds the pure form of an operator that writes: it runs on
// copies of the tensors that it writes to, and the copies are results.
func (im *importer) functionalized(sc *scope, n *node, v2 bool) {
	k, overload := im.operatorOf(sc, im.positional(sc, n, 0, tagOperator))
	schema := im.opts.Table.Schema(k, overload)
	byName := map[string]*argument{}
	var args []*argument
	var names []string
	var bases *argument
	for i := 1; i < len(n.inputs); i++ {
		in := &n.inputs[i]
		switch {
		case in.name == "_all_bases":
			bases = &in.argument
		case strings.HasPrefix(in.name, "_"):
			byName[in.name] = &in.argument
		default:
			args, names = append(args, &in.argument), append(names, in.name)
		}
	}
	clone := func(v *ssa.Value) *ssa.Value {
		return im.emit(sc, sc.b, "aten::clone", "", v.Type, v, im.constant(ssa.None))
	}
	if schema == nil {
		im.opaqueWrite(sc, n, k, overload, args, names, bases)
		return
	}
	var written []*ssa.Value
	temp := func(v *ssa.Value) *argument { // a value as an argument
		name := " " + im.names.Unique("copy")
		sc.vals[name] = v
		return &argument{tag: tagTensor, s: name}
	}
	if v2 {
		if bases == nil {
			im.failNode(sc, "", "there are no bases")
		}
		for i := range bases.list {
			written = append(written, clone(im.value(sc, &bases.list[i], nil)))
		}
		for i := range schema.Args {
			f := &schema.Args[i]
			if !f.Writes {
				continue
			}
			if byName["_"+f.Name+"_size"] != nil || byName["_"+f.Name+"_slice_dim"] != nil || byName["_"+f.Name+"_length"] != nil {
				im.failNode(sc, "", "%s writes to a part of a tensor, which is not supported", k)
			}
			idx := byName["_"+f.Name+"_base_index"]
			if idx == nil || idx.tag == tagNone {
				continue
			}
			if idx.tag != tagInt || idx.n < 0 || idx.n >= int64(len(written)) {
				im.failNode(sc, "", "there is no base for %q", f.Name)
			}
			args, names = append(args, temp(written[idx.n])), append(names, f.Name)
		}
	} else {
		for i, name := range names {
			if j := schema.Arg(name); j >= 0 && schema.Args[j].Writes && args[i].tag == tagTensor {
				c := clone(im.value(sc, args[i], nil))
				written = append(written, c)
				args[i] = temp(c)
			}
		}
	}
	own := len(n.outputs) - len(written)
	if own < 0 {
		im.failNode(sc, "", "%d results for %d written tensors", len(n.outputs), len(written))
	}
	rs := im.operator(sc, k, overload, args, names, real(n.outputs[:own]))
	if outs := real(n.outputs[:own]); len(outs) > 0 {
		im.bind(sc, outs, rs)
	}
	im.bindAll(sc, n.outputs[own:], written)
}

// opaqueWrite keeps an undeclared operator in its pure form: the new values of
// what it writes to follow its results.
func (im *importer) opaqueWrite(sc *scope, n *node, k ssa.Kind, overload string, args []*argument, names []string, bases *argument) {
	if bases != nil {
		args, names = append(args, bases), append(names, "_all_bases")
	}
	outputs := n.outputs
	if len(outputs) > 0 && outputs[0].tag == tagNone {
		outputs = outputs[1:]
	}
	im.bind(sc, outputs, im.custom(sc, k, overload, args, names, outputs))
}

// autocast is a region in which operators convert their arguments.
type autocast struct {
	to   tensor.DType
	cuda bool
}

// autocastOf reads (device, dtype, enabled, cache, graph, operands...).
func (im *importer) autocastOf(sc *scope, n *node) *autocast {
	device := im.positional(sc, n, 0, tagString)
	enabled := im.positional(sc, n, 2, tagNone)
	if enabled.tag == tagBool && enabled.n == 0 {
		return nil
	}
	r := &autocast{cuda: strings.HasPrefix(device.s, "cuda")}
	switch d := im.positional(sc, n, 1, tagNone); {
	case d.tag == tagDType:
		r.to = dtypeOf(d.n)
	case r.cuda:
		r.to = tensor.Float16
	default:
		r.to = tensor.BFloat16
	}
	if r.to != tensor.Float16 && r.to != tensor.BFloat16 {
		im.failNode(sc, "", "autocast to %v", r.to)
	}
	return r
}

// cast converts the arguments as the region wants.
func (r *autocast) cast(im *importer, sc *scope, k ssa.Kind, operands []*ssa.Value, schema *ssa.Schema) {
	to := aten.AutocastOf(schema, r.cuda, r.to)
	if to == tensor.Undefined {
		return
	}
	for i, v := range operands {
		switch t := v.Type.(type) {
		case *ssa.TensorType:
			operands[i] = r.castTensor(im, sc, v, t, to)
		case *ssa.ListType:
			if d := v.Def(); ssa.AsTensor(t.Elem) != nil && d != nil && d.Kind == "prim::ListConstruct" {
				for j := range d.NumOperands() {
					e := d.Operand(j)
					if et := ssa.AsTensor(e.Type); et != nil {
						if c := r.castTensor(im, sc, e, et, to); c != e {
							c.Def().MoveBefore(d)
							d.SetOperand(j, c)
						}
					}
				}
			}
		}
	}
}

func (r *autocast) castTensor(im *importer, sc *scope, v *ssa.Value, t *ssa.TensorType, to tensor.DType) *ssa.Value {
	if t.DType == tensor.Undefined {
		im.failNode(sc, "", "the element type of an argument is not known, and autocast depends on it")
	}
	if !t.DType.IsFloat() || t.DType == tensor.Float64 {
		return v
	}
	no, none := im.constant(ssa.Bool(false)), im.constant(ssa.None)
	return im.emit(sc, sc.b, "aten::to", "dtype", t.WithDType(to), v, im.constant(ssa.Int(int64(to.Code()))), no, no, none)
}
