// Package freeze is the pass that turns the attributes of modules into constants.
package freeze

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass freezes attributes.
//
// The attributes of objects in an archive become constants; a weight has its
// path as its name, as in a state dict. An attribute that the code assigns or
// changes in place is state: it stays a prim::GetAttr of a constant object,
// since only a later pass knows which code is live. Graph text has no objects;
// there, tensors become inputs of the graph.
var Pass = passes.Pass{
	Name:  "freeze",
	Takes: []passes.State{passes.OneFunction, passes.Numbers},
	Makes: []passes.State{passes.Frozen},
	Doc:   "turn the attributes of modules into constants, or into inputs if their values are unknown",
	Before: `
graph(%self : __torch__.M,
      %x : Tensor):
  %fc : __torch__.N = prim::GetAttr[name="fc"](%self)
  %w : Tensor = prim::GetAttr[name="weight"](%fc)
  %b : Tensor = prim::GetAttr[name="bias"](%fc)
  %y : Tensor = aten::linear(%x, %w, %b)
  return (%y)`,
	After: `
graph(%x : Tensor,
      %fc.weight : Tensor,
      %fc.bias : Tensor):
  %y : Tensor = aten::linear(%x, %fc.weight, %fc.bias)
  return (%y)`,
	Options: []passes.Option{{Name: "training", Default: "preserve", Values: []string{"preserve", "eval", "train"},
		Doc: "the mode of all modules; preserve keeps the mode in which each was saved"}},
	Run: func(c *passes.Context) error {
		run(c.Module, c.Diags, modes[c.Option("training")], c.Changed)
		return nil
	},
}

// Mode says in which mode modules are converted.
type Mode uint8

// The modes: each module in the one that it was saved in, all in eval mode, all in training.
const (
	Preserve Mode = iota
	Eval
	Train
)

var modes = map[string]Mode{"preserve": Preserve, "eval": Eval, "train": Train}

// Run freezes a module's main function. The list has the diagnostics.
func Run(m *ssa.Module, mode Mode) *diag.List {
	list := &diag.List{Table: &m.Locs}
	run(m, list, mode, func(string) {})
	return list
}

// place is an attribute of an object.
type place struct {
	object *ssa.Object
	name   string
}

// instance is the known object of a value, and its path. The object is nil in
// graph text, where only the path is known.
type instance struct {
	object *ssa.Object
	path   string
}

type freezer struct {
	m       *ssa.Module
	f       *ssa.Func
	diags   *diag.List
	mode    Mode
	changed func(string)

	objects  map[*ssa.Value]instance
	origins  map[*ssa.Value][]place // attributes whose memory a value may share
	shared   int                    // entries made in origins
	state    map[place]bool
	replaced map[place]bool  // attributes that hold another object later
	assigned map[string]bool // attributes assigned on objects that are not known, by class.name

	paths   map[*tensor.Tensor]string
	weights map[*tensor.Tensor]*ssa.Value
	holders map[*ssa.Object]*ssa.Value
	inputs  map[string]*ssa.Value
	names   *ssa.Names
	head    ssa.Head // the constants at the start
}

func run(m *ssa.Module, diags *diag.List, mode Mode, changed func(string)) {
	f := m.Main()
	if f == nil {
		return
	}
	z := &freezer{m: m, f: f, diags: diags, mode: mode, changed: changed,
		objects: map[*ssa.Value]instance{}, origins: map[*ssa.Value][]place{}, state: map[place]bool{}, replaced: map[place]bool{}, assigned: map[string]bool{},
		paths: map[*tensor.Tensor]string{}, weights: map[*tensor.Tensor]*ssa.Value{}, holders: map[*ssa.Object]*ssa.Value{},
		inputs: map[string]*ssa.Value{}, names: ssa.NamesOf(f), head: ssa.Head{Block: f.Body}}
	// an object that is assigned while the module runs is not the one that the file has
	for again := true; again; {
		again = false
		clear(z.objects)
		z.roots()
		// what a loop carries reaches its own start: repeat until nothing is new
		for before := -1; before != z.found(); {
			before = z.found()
			z.findState(f.Body)
		}
		for o := range f.Body.AllOps() {
			inst, ok := z.objects[o.Operand(0)]
			if o.Kind != prim.GetAttr || !ok || inst.object == nil {
				continue
			}
			at := place{inst.object, o.AttrStr("name", "")}
			if _, isObject := z.objects[o.Result(0)]; isObject && z.state[at] && !z.replaced[at] {
				z.replaced[at] = true
				again = true
			}
		}
	}
	if m.Root != nil {
		z.inputState()
		z.namePaths()
		if mode == Preserve {
			z.tellTraining()
		}
	}
	var gets []*ssa.Op
	for o := range f.Body.AllOps() {
		if o.Kind == prim.GetAttr {
			gets = append(gets, o)
		}
	}
	for _, o := range gets {
		z.freeze(o)
	}
	if mode != Preserve {
		for o := range f.Body.AllOps() { // after the attributes: whether one is None tells what a mode means
			z.setMode(o)
		}
	}
	// what is left of the object tree holds state
	for o := range f.Body.AllOps() {
		for i := 0; i < o.NumOperands(); i++ {
			if v := o.Operand(i); v != nil {
				if inst, ok := z.objects[v]; ok && inst.object != nil && !z.isHolder(v) {
					o.SetOperand(i, z.holder(inst.object, v.Type))
				}
			}
		}
	}
	for i := len(gets) - 1; i >= 0; i-- {
		if o := gets[i]; o.Block() != nil && !o.Result(0).HasUses() {
			o.Erase()
			z.changed("attribute")
		}
	}
	for i := len(f.Body.Params) - 1; i >= 0; i-- {
		if p := f.Body.Params[i]; !p.HasUses() {
			if _, ok := z.objects[p]; ok {
				f.Body.RemoveParam(i)
				z.changed("self")
			}
		}
	}
}

// inputState keeps the attributes that the caller wants as inputs, under all names that their tensors have: a pass behind puts
// the inputs in their places.
func (z *freezer) inputState() {
	asked := map[*tensor.Tensor]bool{}
	var find func(o *ssa.Object, path string) (place, bool)
	find = func(o *ssa.Object, path string) (place, bool) {
		name, rest, more := strings.Cut(path, ".")
		l, ok := o.Get(name)
		if ok && more && l.Kind == ssa.ObjectLit {
			return find(l.Object, rest)
		}
		return place{o, name}, ok && !more
	}
	for _, in := range z.m.Inputs {
		at, ok := find(z.m.Root, in.Name)
		if !ok || slices.ContainsFunc(z.f.Body.Params, func(p *ssa.Value) bool { return ssa.BareName(p.Name) == in.Name }) {
			continue
		}
		z.state[at] = true
		if l, _ := at.object.Get(at.name); l.Kind == ssa.TensorLit {
			asked[l.Tensor] = true
		}
	}
	if len(asked) == 0 {
		return
	}
	seen := map[*ssa.Object]bool{}
	var walk func(o *ssa.Object)
	walk = func(o *ssa.Object) {
		if seen[o] {
			return
		}
		seen[o] = true
		for _, f := range o.Fields {
			switch f.Value.Kind {
			case ssa.TensorLit:
				if asked[f.Value.Tensor] {
					z.state[place{o, f.Name}] = true
				}
			case ssa.ObjectLit:
				walk(f.Value.Object)
			}
		}
	}
	walk(z.m.Root)
}

// isHolder reports a value that is a constant object already.
func (z *freezer) isHolder(v *ssa.Value) bool { return v.Def() != nil && v.Def().Kind == prim.Constant }

// roots notes the parameters that hold modules.
func (z *freezer) roots() {
	for _, p := range z.f.Body.Params {
		t, ok := p.Type.(*ssa.ClassType)
		if !ok || ssa.IsCustomClass(t.Name) {
			continue
		}
		if z.m.Root == nil {
			z.objects[p] = instance{}
		} else if t.Name == z.m.Root.Class || z.m.Root.Class == "" {
			z.objects[p] = instance{object: z.m.Root}
		}
		return // self comes first; other objects are the user's inputs
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// found returns the number of facts that findState has recorded.
func (z *freezer) found() int {
	return len(z.state) + len(z.assigned) + len(z.objects) + z.shared
}

// findState walks the program in order, follows objects and the memory of
// attributes, and notes the attributes that are written.
func (z *freezer) findState(b *ssa.Block) {
	for o := range b.Ops() {
		for _, inner := range o.Blocks {
			if o.Kind == prim.Loop { // a carried value comes from before, or from the body
				for i, p := range inner.Params[1:] {
					z.share(p, o.Operand(i+2))
					z.share(p, inner.Return(i+1))
				}
			}
			z.findState(inner)
		}
		switch o.Kind {
		case prim.Constant:
			if v, ok := o.Attr("value"); ok && v.Kind == ssa.ObjectLit {
				z.objects[o.Result(0)] = instance{v.Object, v.Object.Path}
			}
		case prim.GetAttr:
			inst, ok := z.objects[o.Operand(0)]
			if !ok {
				continue
			}
			name := o.AttrStr("name", "")
			if sub, ok := z.sub(inst, name, o.Result(0).Type); ok {
				z.objects[o.Result(0)] = sub
			} else if inst.object != nil {
				z.origins[o.Result(0)] = []place{{inst.object, name}}
			}
		case prim.SetAttr:
			name := o.AttrStr("name", "")
			if inst, ok := z.objects[o.Operand(0)]; ok {
				z.state[place{inst.object, name}] = true
				if inst.object == nil {
					z.assigned["."+join(inst.path, name)] = true
				}
			} else if t, ok := o.Operand(0).Type.(*ssa.ClassType); ok && !z.isNew(o.Operand(0)) {
				z.assigned[t.Name+"."+name] = true
			}
		case prim.If:
			for i, r := range o.Results {
				for _, inner := range o.Blocks {
					if i < inner.NumReturns() {
						z.share(r, inner.Return(i))
					}
				}
			}
		case prim.Loop:
			for i, r := range o.Results {
				z.share(r, o.Operand(i+2))
				if len(o.Blocks) == 1 && i+1 < o.Blocks[0].NumReturns() {
					z.share(r, o.Blocks[0].Return(i+1))
				}
			}
		case prim.UncheckedCast, prim.UnwrapOptional:
			if inst, ok := z.objects[o.Operand(0)]; ok {
				z.objects[o.Result(0)] = inst
			}
			z.share(o.Result(0), o.Operand(0))
		case prim.TupleConstruct, prim.ListConstruct, prim.DictConstruct, prim.TupleIndex, prim.TupleSlice, prim.TupleUnpack, prim.ListUnpack:
			for _, r := range o.Results {
				for i := range o.NumOperands() {
					z.share(r, o.Operand(i))
				}
			}
		default:
			z.operator(o)
		}
	}
}

// isNew reports whether the program itself makes the object.
func (z *freezer) isNew(v *ssa.Value) bool {
	return v.Def() != nil && v.Def().Kind == prim.CreateObject
}

// operator records what an operator with a schema writes, and which memory its results share.
func (z *freezer) operator(o *ssa.Op) {
	s := o.Schema
	if s == nil {
		return
	}
	for i := range s.Args {
		if i >= o.NumOperands() {
			break
		}
		a := &s.Args[i]
		v := o.Operand(i)
		if a.Writes {
			for _, p := range z.origins[v] {
				z.state[p] = true
			}
			// what is put into a container can be written through it
			for j := range o.NumOperands() {
				if j != i && s.Args[min(j, len(s.Args)-1)].AliasAfter != "" {
					z.share(v, o.Operand(j))
				}
			}
		}
		if a.Alias == "" && o.Kind != "aten::__getitem__" {
			continue
		}
		for j, r := range o.Results {
			if j < len(s.Returns) && (s.Returns[j].Alias != "" || o.Kind == "aten::__getitem__") {
				z.share(r, v)
			}
		}
	}
}

// share records that v may share the memory of w.
func (z *freezer) share(v, w *ssa.Value) {
	if w == nil || !ssa.IsMutable(v.Type) {
		return
	}
next:
	for _, p := range z.origins[w] {
		for _, have := range z.origins[v] {
			if p == have {
				continue next
			}
		}
		z.origins[v] = append(z.origins[v], p)
		z.shared++
	}
}

// sub returns the object in an attribute.
func (z *freezer) sub(inst instance, name string, t ssa.Type) (instance, bool) {
	if inst.object == nil {
		ct, ok := t.(*ssa.ClassType)
		return instance{path: join(inst.path, name)}, ok && !ssa.IsCustomClass(ct.Name)
	}
	v, ok := inst.object.Get(name)
	if !ok || v.Kind != ssa.ObjectLit || z.replaced[place{inst.object, name}] || ssa.IsCustomClass(v.Object.Class) {
		return instance{}, false
	}
	return instance{v.Object, join(inst.path, name)}, true
}

// namePaths gives every tensor of the object tree the name of the first
// attribute that holds it; those in lists come after all others.
func (z *freezer) namePaths() {
	seen := map[*ssa.Object]bool{}
	var later []func()
	var walk func(o *ssa.Object, path string)
	var inside func(l ssa.Literal, path string)
	note := func(t *tensor.Tensor, path string) {
		if _, ok := z.paths[t]; !ok {
			z.paths[t] = path
		}
	}
	inside = func(l ssa.Literal, path string) {
		switch l.Kind {
		case ssa.TensorLit:
			note(l.Tensor, path)
		case ssa.ObjectLit:
			walk(l.Object, path)
		case ssa.ListLit, ssa.TupleLit:
			for i, e := range l.Elems {
				inside(e, path+"."+strconv.Itoa(i))
			}
		case ssa.DictLit:
			for i := 0; i+1 < len(l.Elems); i += 2 {
				inside(l.Elems[i+1], path+"."+strings.Trim(l.Elems[i].String(), `"`))
			}
		}
	}
	walk = func(o *ssa.Object, path string) {
		if seen[o] {
			return
		}
		seen[o] = true
		for _, f := range o.Fields {
			at := join(path, f.Name)
			switch f.Value.Kind {
			case ssa.TensorLit:
				note(f.Value.Tensor, at)
			case ssa.ObjectLit:
				walk(f.Value.Object, at)
			case ssa.ListLit, ssa.TupleLit, ssa.DictLit:
				later = append(later, func() { inside(f.Value, at) })
			}
		}
	}
	walk(z.m.Root, "")
	for i := 0; i < len(later); i++ {
		later[i]()
	}
}

func (z *freezer) freeze(o *ssa.Op) {
	inst, ok := z.objects[o.Operand(0)]
	if !ok {
		return
	}
	name := o.AttrStr("name", "")
	if _, isObject := z.objects[o.Result(0)]; isObject {
		if z.state[place{inst.object, name}] {
			z.diags.Add(diag.Diagnostic{Severity: diag.Error, ID: "submodule-assigned", Op: string(o.Kind), Loc: o.Loc,
				Message: fmt.Sprintf("the submodule %s is assigned while the module runs", join(inst.path, name))})
		}
		return
	}
	if inst.object == nil {
		z.input(o, join(inst.path, name))
		return
	}
	if z.state[place{inst.object, name}] || z.assigned[inst.object.Class+"."+name] {
		return
	}
	v, ok := inst.object.Get(name)
	if !ok {
		z.input(o, join(inst.path, name))
		return
	}
	if name == "training" && z.mode != Preserve {
		v = ssa.Bool(z.mode == Train)
	}
	z.names.Free(o.Result(0).Name) // for the constant
	o.Replace(z.constant(v, o, join(inst.path, name), o.Result(0).Type))
	z.changed("attribute")
}

// modeArgs are the arguments that tell an operator the mode. The last one is of instance_norm, which has the statistics of
// its input in any mode where it has no others.
var modeArgs = [...]string{"train", "training", "use_input_stats"}

// setMode overrides the recorded mode of a trace, which is an argument of each operator that depends on it.
func (z *freezer) setMode(o *ssa.Op) {
	if o.Schema == nil {
		return
	}
	train := z.mode == Train
	if train {
		z.tellLost(o)
	}
	for _, name := range modeArgs {
		i := o.Schema.Arg(name)
		if i < 0 || i >= o.NumOperands() || o.Operand(i) == nil || name == "use_input_stats" && isNone(z.arg(o, "running_mean")) {
			continue
		}
		def := o.Operand(i).Def()
		if def == nil || def.Kind != prim.Constant {
			continue
		}
		if l, ok := def.Attr("value"); !ok || l.Kind != ssa.BoolLit || l.Bool() == train {
			continue
		}
		c := o.Block().InsertBefore(o, prim.Constant, o.Loc, nil, ssa.BoolType)
		c.SetAttr("value", ssa.Bool(train))
		o.SetOperand(i, c.Result(0))
		z.changed("training")
	}
}

// tellTraining warns of a module in training mode if an operator of its forward depends on the mode.
func (z *freezer) tellTraining() {
	if t, ok := z.m.Root.Get("training"); !ok || !t.Bool() {
		return
	}
	for o := range z.f.Body.AllOps() {
		if z.trains(o) {
			z.diags.Add(diag.Diagnostic{Severity: diag.Warning, ID: "training-mode", Op: string(o.Kind), Loc: o.Loc,
				Message: "the module was saved in training mode and is converted so", Hint: "call eval() before saving, or convert with --training EVAL"})
			return
		}
	}
}

// trains reports an operator that does something else in training than in eval mode, and is told that this is training.
func (z *freezer) trains(o *ssa.Op) bool {
	if o.Schema == nil {
		if o.Kind != prim.If {
			return false
		}
		return z.inTraining(o.Operand(0))
	}
	for _, name := range [...]string{"p", "dropout"} {
		if v, ok := z.known(z.arg(o, name)); ok && v.IsNumber() && v.Float() == 0 {
			return false
		}
	}
	for i := 0; i < o.NumOperands(); i++ {
		if z.inTraining(o.Operand(i)) {
			return true
		}
	}
	for _, name := range modeArgs {
		if name == "use_input_stats" && isNone(z.arg(o, "running_mean")) {
			continue
		}
		if v, ok := z.known(z.arg(o, name)); ok && v.Kind == ssa.BoolLit && v.Bool() {
			return true
		}
	}
	return false
}

// inTraining reports a value that is the mode of a module in training.
func (z *freezer) inTraining(v *ssa.Value) bool {
	if v == nil || v.Def() == nil || v.Def().Kind != prim.GetAttr || v.Def().AttrStr("name", "") != "training" {
		return false
	}
	l, ok := z.known(v)
	return ok && l.Kind == ssa.BoolLit && l.Bool()
}

// known returns the value of a constant, or of an attribute in the file.
func (z *freezer) known(v *ssa.Value) (ssa.Literal, bool) {
	if v == nil || v.Def() == nil {
		return ssa.Literal{}, false
	}
	switch o := v.Def(); o.Kind {
	case prim.Constant:
		return o.Attr("value")
	case prim.GetAttr:
		if inst, ok := z.objects[o.Operand(0)]; ok && inst.object != nil {
			return inst.object.Get(o.AttrStr("name", ""))
		}
	}
	return ssa.Literal{}, false
}

// tellLost tells of operators of a program that was recorded in eval mode and does not say what they do in training.
func (z *freezer) tellLost(o *ssa.Op) {
	switch o.Kind {
	case "aten::_native_batch_norm_legit_no_training":
		z.diags.Add(diag.Diagnostic{Severity: diag.Error, ID: "training-mode", Op: string(o.Kind), Loc: o.Loc,
			Message: "the program was exported in eval mode and does not say what it does in training", Hint: "call train() before torch.export.export"})
	case "aten::scaled_dot_product_attention":
		p := z.arg(o, "dropout_p")
		if p == nil || p.Def() == nil || p.Def().Kind != prim.Constant {
			return
		}
		if l, _ := p.Def().Attr("value"); l.IsNumber() && l.Float() == 0 {
			z.diags.Add(diag.Diagnostic{Severity: diag.Warning, ID: "training-mode", Op: string(o.Kind), Loc: o.Loc,
				Message: "the attention was recorded without dropout, and stays so in training"})
		}
	}
}

// arg returns the operand for an argument of the operator's schema, or nil.
func (z *freezer) arg(o *ssa.Op, name string) *ssa.Value {
	if i := o.Schema.Arg(name); i >= 0 && i < o.NumOperands() {
		return o.Operand(i)
	}
	return nil
}

func isNone(v *ssa.Value) bool {
	if v == nil {
		return true
	}
	if v.Def() == nil || v.Def().Kind != prim.Constant {
		return false
	}
	l, ok := v.Def().Attr("value")
	return !ok || l.IsNone()
}

// input turns an attribute of unknown value into an input of the graph.
func (z *freezer) input(o *ssa.Op, path string) {
	if z.state[place{nil, o.AttrStr("name", "")}] && z.assigned["."+path] {
		return
	}
	t := o.Result(0).Type
	if o.AttrStr("name", "") == "training" && t == ssa.BoolType {
		c := o.Block().InsertBefore(o, prim.Constant, o.Loc, nil, ssa.BoolType)
		c.SetAttr("value", ssa.Bool(false))
		o.Replace(c.Result(0))
		z.changed("attribute")
		return
	}
	if ssa.AsTensor(t) == nil {
		if opt, ok := t.(*ssa.OptionalType); !ok || ssa.AsTensor(opt.Elem) == nil {
			return // refused later, where the value is needed
		}
	}
	v := z.inputs[path]
	if v == nil {
		v = z.f.Body.AddParam(z.names.Unique(path), t)
		z.inputs[path] = v
	}
	o.Replace(v)
	z.changed("input")
}

// atStart inserts a constant among those at the start of the function.
func (z *freezer) atStart(o *ssa.Op, t ssa.Type) *ssa.Op {
	return z.head.Insert(prim.Constant, o.Loc, t)
}

// constant creates the value of an attribute, of the declared type t, before op o.
func (z *freezer) constant(v ssa.Literal, o *ssa.Op, path string, t ssa.Type) *ssa.Value {
	inner := t
	if opt, ok := t.(*ssa.OptionalType); ok {
		inner = opt.Elem
	}
	b := o.Block()
	switch v.Kind {
	case ssa.TensorLit:
		if w := z.weights[v.Tensor]; w != nil {
			return w
		}
		c := z.atStart(o, ssa.TensorOf(v.Tensor))
		c.SetAttr("value", v)
		name := z.paths[v.Tensor]
		if name == "" {
			name = path
		}
		w := c.Result(0)
		w.Name = z.names.Unique(name)
		z.weights[v.Tensor] = w
		return w
	case ssa.ObjectLit:
		return z.holder(v.Object, &ssa.ClassType{Name: v.Object.Class})
	case ssa.NoneLit:
		return b.InsertBefore(o, prim.Constant, o.Loc, nil, ssa.NoneType).Result(0)
	case ssa.ListLit, ssa.TupleLit, ssa.DictLit:
		if !holdsTensors(v) {
			break
		}
		parts := make([]*ssa.Value, len(v.Elems))
		for i, e := range v.Elems {
			var et ssa.Type = e.Type()
			switch it := inner.(type) {
			case *ssa.ListType:
				et = it.Elem
			case *ssa.TupleType:
				if i < len(it.Elems) {
					et = it.Elems[i]
				}
			case *ssa.DictType:
				if i%2 == 1 {
					et = it.Value
				}
			}
			parts[i] = z.constant(e, o, path+"."+strconv.Itoa(i), et)
		}
		kind := prim.ListConstruct
		if v.Kind == ssa.TupleLit {
			kind = prim.TupleConstruct
		} else if v.Kind == ssa.DictLit {
			kind = prim.DictConstruct
		}
		return b.InsertBefore(o, kind, o.Loc, parts, inner).Result(0)
	}
	c := b.InsertBefore(o, prim.Constant, o.Loc, nil, z.typeFor(v, inner))
	c.SetAttr("value", v)
	return c.Result(0)
}

// typeFor is the type of a constant: the declared one where that says more than the literal.
func (z *freezer) typeFor(v ssa.Literal, declared ssa.Type) ssa.Type {
	switch v.Kind {
	case ssa.ListLit, ssa.TupleLit, ssa.DictLit, ssa.EnumLit:
		return declared
	}
	return v.Type()
}

// holdsTensors reports a container with tensors or objects in it.
func holdsTensors(v ssa.Literal) bool {
	if v.Kind == ssa.TensorLit || v.Kind == ssa.ObjectLit {
		return true
	}
	if v.Kind == ssa.ListLit || v.Kind == ssa.TupleLit || v.Kind == ssa.DictLit {
		for _, e := range v.Elems {
			if holdsTensors(e) {
				return true
			}
		}
	}
	return false
}

// holder is the constant that stands for an object with state.
func (z *freezer) holder(obj *ssa.Object, t ssa.Type) *ssa.Value {
	if v := z.holders[obj]; v != nil {
		return v
	}
	c := z.atStart(z.f.Body.First(), t) // there is an op: the one that needs the object
	c.SetAttr("value", ssa.ObjectValue(obj))
	z.holders[obj] = c.Result(0)
	z.objects[c.Result(0)] = instance{obj, obj.Path}
	return c.Result(0)
}
