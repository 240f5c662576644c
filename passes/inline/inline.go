// Package inline is the pass that inlines calls of functions and methods.
package inline

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Pass inlines all calls.
var Pass = passes.Pass{
	Name:  "inline",
	Makes: []passes.State{passes.OneFunction},
	Doc:   "inline the bodies of functions, methods and forks",
	Before: `
graph(%self : __torch__.M,
      %x : Tensor):
  %f : Function = prim::Constant[name="__torch__.twice"]()
  %h : __torch__.N = prim::GetAttr[name="head"](%self)
  %y : Tensor = prim::CallMethod[name="forward"](%h, %x)
  %z : Tensor = prim::CallFunction(%f, %y)
  return (%z)

graph @__torch__.N.forward(%self : __torch__.N,
      %x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)

graph @__torch__.twice(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %y : Tensor = aten::mul(%x, %two)
  return (%y)`,
	After: `
graph(%self : __torch__.M,
      %x : Tensor):
  %h : __torch__.N = prim::GetAttr[name="head"](%self)
  %y : Tensor = aten::relu(%x), scope: head
  %two : int = prim::Constant[value=2]()
  %z : Tensor = aten::mul(%y, %two)
  return (%z)`,
	Ensures: []passes.Predicate{NoCalls},
	Run:     func(c *passes.Context) error { return run(c.Module, c.Diags, c.Changed) },
}

// NoCalls holds when no operator of the main function calls another function
// for which a body is known.
var NoCalls = passes.Predicate{Name: "NoCalls", Check: func(m *ssa.Module) error {
	if m.Main() == nil {
		return nil
	}
	for o := range m.Main().Body.AllOps() {
		if (o.Kind == prim.CallMethod || o.Kind == prim.CallFunction) && target(m, o, nil) != nil {
			return fmt.Errorf("%s is still there", o)
		}
	}
	return nil
}}

// Run inlines all calls of a module. The list has the problems of the program.
func Run(m *ssa.Module) *diag.List {
	list := &diag.List{Table: &m.Locs}
	_ = run(m, list, func(string) {}) // it reports everything in the list
	return list
}

// Into inlines the calls of one function and leaves other functions unchanged.
func Into(m *ssa.Module, f *ssa.Func) *diag.List {
	list := &diag.List{Table: &m.Locs}
	in := &inliner{m: m, diags: list, changed: func(string) {}, f: f, objects: map[*ssa.Value]instance{}, called: map[*ssa.Func]bool{}, names: ssa.NamesOf(f), sizes: map[*ssa.Func]int{}}
	in.roots()
	in.block(f.Body, "", 0)
	in.settle()
	return list
}

const (
	maxDepth = 500
	maxOps   = 1 << 19
)

type inliner struct {
	m       *ssa.Module
	diags   *diag.List
	changed func(string)
	f       *ssa.Func
	objects map[*ssa.Value]instance
	called  map[*ssa.Func]bool
	calling []*ssa.Func
	names   *ssa.Names
	sizes   map[*ssa.Func]int
	ops     int
	stopped bool
}

// instance is the known object of a value, and its path.
type instance struct {
	object *ssa.Object
	path   string
}

func run(m *ssa.Module, diags *diag.List, changed func(string)) error {
	called := map[*ssa.Func]bool{}
	referenced := map[*ssa.Func]bool{}
	for _, f := range m.Funcs {
		for o := range f.Body.AllOps() {
			if g := target(m, o, nil); g != nil {
				referenced[g] = true
			}
		}
	}
	for i, f := range append([]*ssa.Func(nil), m.Funcs...) {
		if i > 0 && referenced[f] {
			continue
		}
		in := &inliner{m: m, diags: diags, changed: changed, f: f, objects: map[*ssa.Value]instance{}, called: called, names: ssa.NamesOf(f), sizes: map[*ssa.Func]int{}}
		in.roots()
		in.block(f.Body, "", 0)
		in.settle()
		if in.stopped { // nothing behind this pass can go on
			return diags.Err()
		}
	}
	main := m.Main()
	var gone []*ssa.Func
	for _, f := range m.Funcs {
		if f != main && (called[f] || referenced[f] || m.Root != nil) {
			gone = append(gone, f)
		}
	}
	for _, f := range gone {
		m.RemoveFunc(f)
	}
	return nil
}

// roots notes the parameter that holds the top object.
func (in *inliner) roots() {
	if in.m.Root == nil || in.f != in.m.Main() {
		return
	}
	for _, p := range in.f.Body.Params {
		if t, ok := p.Type.(*ssa.ClassType); ok && t.Name == in.m.Root.Class {
			in.objects[p] = instance{in.m.Root, ""}
			return
		}
	}
}

func (in *inliner) report(o *ssa.Op, id, hint, format string, args ...any) {
	in.diags.Add(diag.Diagnostic{ID: id, Op: string(o.Kind), Loc: o.Loc, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// block inlines the calls of a block and of the blocks in it. scope is the
// module path of the code around it.
func (in *inliner) block(b *ssa.Block, scope string, depth int) {
	for o := b.First(); o != nil && !in.stopped; {
		next := o.Next()
		in.op(o, scope, depth)
		o = next
	}
}

func (in *inliner) op(o *ssa.Op, scope string, depth int) {
	switch o.Kind {
	case prim.GetAttr:
		in.getAttr(o)
		return
	case prim.UncheckedCast:
		if i, ok := in.objects[o.Operand(0)]; ok {
			in.objects[o.Result(0)] = i
		}
		return
	case prim.Constant:
		if v, ok := o.Attr("value"); ok && v.Kind == ssa.ObjectLit {
			in.objects[o.Result(0)] = instance{v.Object, v.Object.Path}
		}
		return
	case prim.Enter, prim.Exit:
		in.context(o, scope, depth)
		return
	case prim.CallMethod:
		self := o.Operand(0)
		if self == nil {
			return
		}
		if d := self.Def(); d != nil && d.Kind == prim.ContainerIndex {
			if c, ok := in.objects[d.Operand(0)]; ok {
				in.choose(o, d, c, scope, depth)
				return
			}
		}
		inst, known := in.objects[self]
		var obj *ssa.Object
		if known {
			obj = inst.object
			scope = inst.path
		} else if d := self.Def(); d != nil && d.Kind == prim.GetAttr {
			scope = join(scope, d.AttrStr("name", ""))
		}
		g := target(in.m, o, obj)
		if g == nil {
			in.noBody(o)
			return
		}
		in.inline(o, g, o.Operands(), scope, depth)
		return
	case prim.CallFunction:
		g := target(in.m, o, nil)
		if g == nil {
			in.noBody(o)
			return
		}
		fn := o.Operand(0)
		in.inline(o, g, o.Operands()[1:], scope, depth)
		if d := fn.Def(); d != nil && !fn.HasUses() && d.Kind == prim.Constant && d.Block() != nil {
			d.Erase()
		}
		return
	}
	if isFork(o) {
		if g := target(in.m, o, nil); g != nil {
			in.inline(o, g, o.Operands(), scope, depth)
		} else {
			in.noBody(o)
		}
		return
	}
	for _, b := range o.Blocks {
		in.block(b, scope, depth)
	}
}

func (in *inliner) noBody(o *ssa.Op) {
	if o.Kind == prim.CallMethod {
		if t, ok := o.Operand(0).Type.(*ssa.ClassType); ok && ssa.IsCustomClass(t.Name) {
			return // a class written in C++: its operators know what to do
		}
	}
	name := o.AttrStr("name", "")
	if name == "" && o.NumOperands() > 0 && o.Operand(0).Def() != nil {
		name = o.Operand(0).Def().AttrStr("name", "")
	}
	in.report(o, "no-body", "print module.inlined_graph instead of module.graph, or give the archive", "the body of %s is not known", name)
}

func isFork(o *ssa.Op) bool {
	return o.Kind == prim.Fork || strings.HasPrefix(string(o.Kind), "prim::fork_")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// target returns the function that an op calls. obj is the receiver, if known.
func target(m *ssa.Module, o *ssa.Op, obj *ssa.Object) *ssa.Func {
	switch {
	case o.Kind == prim.CallMethod:
		name := o.AttrStr("name", "")
		if obj != nil {
			return m.Func(obj.Class + "." + name)
		}
		if o.NumOperands() == 0 {
			return nil
		}
		if t, ok := o.Operand(0).Type.(*ssa.ClassType); ok {
			return m.Func(t.Name + "." + name)
		}
	case o.Kind == prim.CallFunction:
		if o.NumOperands() > 0 {
			if d := o.Operand(0).Def(); d != nil {
				return m.Func(d.AttrStr("name", ""))
			}
		}
	case o.Kind == prim.Fork:
		return m.Func(o.AttrStr("Subgraph", ""))
	case isFork(o):
		return m.Func(string(o.Kind))
	}
	return nil
}

func (in *inliner) getAttr(o *ssa.Op) {
	i, ok := in.objects[o.Operand(0)]
	if !ok {
		return
	}
	name := o.AttrStr("name", "")
	if v, ok := i.object.Get(name); ok && v.Kind == ssa.ObjectLit {
		in.objects[o.Result(0)] = instance{v.Object, join(i.path, name)}
	}
}

// inline replaces a call by the body of g.
func (in *inliner) inline(o *ssa.Op, g *ssa.Func, args []*ssa.Value, scope string, depth int) {
	for _, f := range in.calling {
		if f == g {
			in.report(o, "recursion", "write it as a loop", "%s calls itself", g.Name)
			in.stopped = true
			return
		}
	}
	if in.ops += 1 + in.size(g); depth > maxDepth {
		in.report(o, "too-large", "", "calls are nested deeper than %d", maxDepth)
		in.stopped = true
		return
	}
	if most := in.m.Allow(maxOps); int64(in.ops) > most {
		in.report(o, "budget", ssa.BudgetHint, "inlining gives more than %d operators", most)
		in.stopped = true
		return
	}
	if len(args) != len(g.Body.Params) || len(o.Results) != g.Body.NumReturns() {
		in.report(o, "bad-call", "", "%d arguments and %d results for a function of %d and %d", len(args), len(o.Results), len(g.Body.Params), g.Body.NumReturns())
		return
	}
	in.called[g] = true
	in.changed("inline")
	values := make([]*ssa.Value, g.NumValues())
	for i, p := range g.Body.Params {
		values[p.ID] = args[i]
	}
	call := o.Loc
	block := o.Block()
	before := o.Prev()
	places := map[diag.Loc]diag.Loc{}
	block.CopyInto(o, g.Body, values, func(l diag.Loc) diag.Loc {
		if at, ok := places[l]; ok {
			return at
		}
		f := in.m.Locs.Frame(l)
		if f.Scope == "" {
			f.Scope = scope
		}
		if f.File == "" { // a constant of no place: the call's
			c := in.m.Locs.Frame(call)
			f.File, f.Line, f.Col, f.Func = c.File, c.Line, c.Col, c.Func
		}
		f.Caller = call
		at := in.m.Locs.Add(f)
		places[l] = at
		return at
	}, in.names.Unique)
	results := make([]*ssa.Value, len(o.Results))
	for i, r := range g.Body.Returns() {
		results[i] = r
		if w := values[r.ID]; w != nil {
			results[i] = w
		}
		// the caller's name for the result says more than the callee's
		if n := o.Results[i].Name; n != "" && r.Def() != nil && results[i].Def() != nil && results[i].Def().Kind != prim.Constant && values[r.ID] == results[i] {
			results[i].Name, o.Results[i].Name = n, ""
		}
	}
	end := o.Next()
	o.Replace(results...)
	first := block.First()
	if before != nil {
		first = before.Next()
	}
	in.calling = append(in.calling, g)
	for c := first; c != end && !in.stopped; {
		next := c.Next()
		in.op(c, scope, depth+1)
		c = next
	}
	in.calling = in.calling[:len(in.calling)-1]
}

// size returns the number of operators of a function, including nested ones.
func (in *inliner) size(g *ssa.Func) int {
	n, ok := in.sizes[g]
	if !ok {
		for range g.Body.AllOps() {
			n++
		}
		in.sizes[g] = n
	}
	return n
}

// choose calls a method of one of a container's modules, by the number that the program computes.
func (in *inliner) choose(o, index *ssa.Op, c instance, scope string, depth int) {
	b := o.Block()
	key := index.Operand(1)
	var members []ssa.Attr
	for _, f := range c.object.Fields {
		if f.Value.Kind == ssa.ObjectLit {
			members = append(members, f)
		}
	}
	n := int64(len(members))
	if n == 0 {
		in.report(o, "empty-container", "", "a module container without modules is indexed")
		return
	}
	constant := func(at *ssa.Block, v ssa.Literal) *ssa.Value {
		k := at.InsertBefore(nil, prim.Constant, o.Loc, nil, v.Type())
		k.SetAttr("value", v)
		return k.Result(0)
	}
	result := make([]ssa.Type, len(o.Results))
	for i, r := range o.Results {
		result[i] = r.Type
	}
	args := o.Operands()[1:]
	// member k, else the rest, innermost a raise
	var rest func(at *ssa.Block, before *ssa.Op, k int64) *ssa.Op
	rest = func(at *ssa.Block, before *ssa.Op, k int64) *ssa.Op {
		eq := func(v ssa.Literal) *ssa.Value {
			cst := constant(at, v)
			if before != nil {
				cst.Def().MoveBefore(before)
			}
			return at.InsertBefore(before, "aten::eq", o.Loc, []*ssa.Value{key, cst}, ssa.BoolType).Result(0)
		}
		var cond *ssa.Value
		if key.Type == ssa.StrType {
			cond = eq(ssa.Str(members[k].Name))
		} else {
			cond = at.InsertBefore(before, "aten::__or__", o.Loc, []*ssa.Value{eq(ssa.Int(k)), eq(ssa.Int(k - n))}, ssa.BoolType).Result(0)
		}
		branch := at.InsertBefore(before, prim.If, o.Loc, []*ssa.Value{cond}, result...)
		then, other := branch.AddBlock(), branch.AddBlock()
		get := then.Append(prim.GetAttr, o.Loc, []*ssa.Value{index.Operand(0)}, &ssa.ClassType{Name: members[k].Value.Object.Class})
		get.SetAttr("name", ssa.Str(members[k].Name))
		call := then.Append(prim.CallMethod, o.Loc, append([]*ssa.Value{get.Result(0)}, args...), result...)
		call.SetAttr("name", ssa.Str(o.AttrStr("name", "")))
		then.SetReturns(call.Results...)
		if k+1 < n {
			other.SetReturns(rest(other, nil, k+1).Results...)
			return branch
		}
		msg := constant(other, ssa.Str("index out of range"))
		cls := other.Append(prim.Constant, o.Loc, nil, ssa.NoneType).Result(0)
		other.Append(prim.RaiseException, o.Loc, []*ssa.Value{msg, cls})
		none := make([]*ssa.Value, len(result))
		for i, t := range result {
			none[i] = other.Append(prim.Uninitialized, o.Loc, nil, t).Result(0)
		}
		other.SetReturns(none...)
		return branch
	}
	branch := rest(b, o, 0)
	o.Replace(branch.Results...)
	if !index.Result(0).HasUses() {
		index.Erase()
	}
	in.changed("choose")
	for _, inner := range branch.Blocks {
		in.block(inner, scope, depth+1)
	}
}

// context resolves with: context managers of torch do nothing for inference,
// others are calls of __enter__ and __exit__.
func (in *inliner) context(o *ssa.Op, scope string, depth int) {
	t, ok := o.Operand(0).Type.(*ssa.ClassType)
	if !ok {
		return
	}
	if strings.HasPrefix(t.Name, "__torch__.torch.") {
		if strings.Contains(t.Name, "autocast") {
			in.diags.Add(diag.Diagnostic{Severity: diag.Warning, ID: "autocast", Op: string(o.Kind), Loc: o.Loc,
				Message: "autocast is not applied: element types are those outside of it"})
		}
		for _, r := range o.Results {
			if r.HasUses() {
				r.ReplaceUses(o.Operand(0))
			}
		}
		o.Erase()
		in.changed("context")
		return
	}
	name := "__enter__"
	if o.Kind == prim.Exit {
		name = "__exit__"
	}
	g := in.m.Func(t.Name + "." + name)
	if g == nil || len(o.Results) != g.Body.NumReturns() {
		in.report(o, "no-body", "give the archive", "the body of %s.%s is not known", t.Name, name)
		return
	}
	args := []*ssa.Value{o.Operand(0)}
	for len(args) < len(g.Body.Params) { // no exception: None, None, None
		args = append(args, o.Block().InsertBefore(o, prim.Constant, o.Loc, nil, ssa.NoneType).Result(0))
	}
	in.inline(o, g, args, scope, depth)
}

// settle removes futures: a fork has become its body, and waiting is over.
func (in *inliner) settle() {
	forked := false
	for o := range in.f.Body.AllOps() {
		if o.Kind == "aten::wait" {
			forked = true
		}
	}
	if !forked {
		return
	}
	retype := func(vs []*ssa.Value) {
		for _, v := range vs {
			v.Type = withoutFuture(v.Type)
		}
	}
	for o := range in.f.Body.AllOps() {
		for _, b := range o.Blocks {
			retype(b.Params)
		}
		retype(o.Results)
	}
	var waits []*ssa.Op
	for o := range in.f.Body.AllOps() {
		if o.Kind == "aten::wait" && o.NumOperands() == 1 && len(o.Results) == 1 {
			waits = append(waits, o)
		}
	}
	for _, o := range waits {
		if _, still := o.Operand(0).Type.(*ssa.WrapType); !still {
			o.Replace(o.Operand(0))
			in.changed("wait")
		}
	}
}

// withoutFuture replaces Future[T] by T anywhere in a type.
func withoutFuture(t ssa.Type) ssa.Type {
	switch t := t.(type) {
	case *ssa.WrapType:
		if t.Name == "Future" || t.Name == "Await" {
			return withoutFuture(t.Elem)
		}
	case *ssa.ListType:
		if e := withoutFuture(t.Elem); e != t.Elem {
			return &ssa.ListType{Elem: e}
		}
	case *ssa.OptionalType:
		if e := withoutFuture(t.Elem); e != t.Elem {
			return &ssa.OptionalType{Elem: e}
		}
	case *ssa.DictType:
		if e := withoutFuture(t.Value); e != t.Value {
			return &ssa.DictType{Key: t.Key, Value: e}
		}
	case *ssa.TupleType:
		for i, e := range t.Elems {
			if w := withoutFuture(e); w != e {
				u := *t
				u.Elems = append([]ssa.Type(nil), t.Elems...)
				u.Elems[i] = w
				return withoutFuture(&u)
			}
		}
	}
	return t
}
