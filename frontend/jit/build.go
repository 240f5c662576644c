package jit

import (
	"math"
	"sort"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/frontend/jit/pyast"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// A val is what an expression may stand for: an *ssa.Value, or something that
// exists only while compiling.
type val any

type (
	// outputs are the results of an operator that has none or several.
	outputs struct{ vals []*ssa.Value }
	// tupleOf is a tuple display that has not become a value yet.
	// Should it become one, it stands where it was written: after the op last.
	tupleOf struct {
		elems []val
		block *ssa.Block
		last  *ssa.Op
	}
	// emptyList is [] whose type the context gives.
	emptyList struct{}
	// funcRef is a free function.
	funcRef struct{ f *function }
	// classRef is a class.
	classRef struct{ c *class }
	// namespace is a path of fixed names: torch, ops.prim.
	namespace struct{ path string }
	// bound is a method of a value.
	bound struct {
		self *ssa.Value
		name string
	}
	// unbound is a method taken from its class.
	unbound struct {
		c    *class
		name string
	}
	// closure is a local function, of fork.
	closure struct {
		def   *pyast.Def
		scope *scope
	}
	// unusable is a name that has no single type after a branch.
	unusable struct{ why string }
)

// scope holds the names assigned in a block.
type scope struct {
	vars   map[string]val
	parent *scope
	// optional are the types that variables are declared with which hold None.
	optional map[string]*ssa.OptionalType
	// unions are the types that variables are declared with, where these are several.
	unions map[string]*ssa.UnionType
}

func (s *scope) get(name string) (val, bool) {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func newScope(parent *scope) *scope { return &scope{vars: map[string]val{}, parent: parent} }

// declareOptional notes that a variable which holds None is of type t.
func (s *scope) declareOptional(name string, t *ssa.OptionalType) {
	if s.optional == nil {
		s.optional = map[string]*ssa.OptionalType{}
	}
	s.optional[name] = t
}

// declareUnion notes that a variable is declared to be of one of several types.
func (s *scope) declareUnion(name string, t *ssa.UnionType) {
	if s.unions == nil {
		s.unions = map[string]*ssa.UnionType{}
	}
	s.unions[name] = t
}

// union is the type that a branch declares for a variable of which the branches have x and y, nil if there is none.
func (s *scope) union(name string, x, y ssa.Type) ssa.Type {
	if t := s.unions[name]; t != nil && ssa.IsSubtype(x, t) && ssa.IsSubtype(y, t) {
		return t
	}
	return nil
}

// carried is the type with which a variable that holds x goes into a loop: the type that it is declared with, where it holds None or one of
// several types, since the loop may set another one.
func (s *scope) carried(name string, x *ssa.Value) ssa.Type {
	for at := s; at != nil; at = at.parent {
		if t := at.optional[name]; t != nil && x.Type == ssa.NoneType {
			return t
		}
		if t := at.union(name, x.Type, x.Type); t != nil {
			return t
		}
	}
	return general(x.Type)
}

// builder compiles one function.
type builder struct {
	l        *loader
	f        *function
	fn       *ssa.Func
	block    *ssa.Block
	scope    *scope
	head     ssa.Head // the constants at the start of the function
	pool     map[poolKey]*ssa.Value
	names    *ssa.Names
	loc      diag.Loc // meant for the operators to come, unless where says
	where    [2]int   // positions whose location is not looked up yet
	pending  bool
	returned bool
	placed   map[anchor]*ssa.Op // tuples that were moved to where they are written
}

// anchor is the place behind an op of a block; nil is the block's start.
type anchor struct {
	block *ssa.Block
	last  *ssa.Op
}

type poolKey struct {
	kind ssa.AttrKind
	bits uint64
	text string
	typ  string
}

const maxCallDepth = 500

// compile builds the body of a function.
func (l *loader) compile(f *function) {
	if f.state >= 2 {
		return
	}
	f.state = 2
	if l.depth++; l.depth > maxCallDepth {
		l.failAt(f.src, f.def.At(), "", "calls nested too deeply")
	}
	defer func() { l.depth-- }()
	if f.fn == nil {
		f.fn = l.m.NewFunc(f.name)
	}
	b := &builder{l: l, f: f, fn: f.fn, block: f.fn.Body, scope: newScope(nil), pool: map[poolKey]*ssa.Value{}, names: ssa.NamesOf(f.fn), head: ssa.Head{Block: f.fn.Body}}
	for _, p := range f.params {
		v := b.fn.Body.AddParam(b.names.Unique(p.Name), p.Type)
		b.scope.vars[p.Name] = v
	}
	b.statements(f.def.Body, true)
	if !b.returned { // falls off the end
		b.finish(nil, f.def.At())
	}
	f.state = 3
	if f != l.functions["main"] { // whose method may be called by its own name, too
		f.src.compiled()
	}
}

// finish sets the value that the function returns.
func (b *builder) finish(x pyast.Expr, pos int) {
	b.returned = true
	var v *ssa.Value
	if x == nil {
		b.at(pos)
		v = b.constant(ssa.None, ssa.NoneType)
	} else {
		v = b.value(b.exprHint(x, b.f.ret), b.f.ret, x.At())
		if b.f.ret != nil {
			v = b.coerce(v, b.f.ret, x.At(), "the function returns")
		}
	}
	if b.f.ret == nil {
		b.f.ret = v.Type
	}
	b.fn.Body.SetReturns(v)
}

func (b *builder) fail(pos int, hint, format string, args ...any) {
	b.l.failAt(b.f.src, pos, hint, format, args...)
}

// at sets the location of the operators to come; the first known one of the positions counts.
func (b *builder) at(pos ...int) {
	b.where = [2]int{pos[0], pos[len(pos)-1]}
	b.pending = true
}

// location is the location of the operators to come.
func (b *builder) location() diag.Loc {
	if b.pending {
		b.loc, b.pending = b.l.place(b.f, b.where[0], b.where[1]), false
	}
	return b.loc
}

// restore sets a location that location gave before.
func (b *builder) restore(loc diag.Loc) { b.loc, b.pending = loc, false }

// temporary reports a name that the writer of archives made up: _0, _12.
func temporary(name string) bool {
	if len(name) < 2 || name[0] != '_' {
		return false
	}
	for i := 1; i < len(name); i++ {
		if name[i] < '0' || name[i] > '9' {
			return false
		}
	}
	return true
}

// emit appends an operator at the current place.
func (b *builder) emit(k ssa.Kind, operands []*ssa.Value, results ...ssa.Type) *ssa.Op {
	if b.l.ops++; b.l.ops > b.l.opts.MaxOps {
		b.l.fail("", "", "the code has more than %d operators", b.l.opts.MaxOps)
	}
	return b.block.Append(k, b.location(), operands, results...)
}

// constant gives a constant; equal ones are one op at the start of the function.
func (b *builder) constant(v ssa.Literal, t ssa.Type) *ssa.Value {
	key := poolKey{kind: v.Kind}
	pooled := true
	switch v.Kind {
	case ssa.TensorLit, ssa.ObjectLit:
		pooled = false
	case ssa.IntLit, ssa.BoolLit:
		key.bits = uint64(v.Int())
	case ssa.FloatLit:
		key.bits = math.Float64bits(v.Float())
	case ssa.StrLit:
		key.text = v.Str()
	case ssa.NoneLit:
		if t != ssa.NoneType {
			key.typ = t.String()
		}
	default:
		key.text, key.typ = v.String(), t.String()
	}
	if pooled {
		if c := b.pool[key]; c != nil {
			return c
		}
	}
	o := b.insertConstant(t)
	if v.Kind != ssa.NoneLit {
		o.SetAttr("value", v)
	}
	if pooled {
		b.pool[key] = o.Result(0)
	}
	return o.Result(0)
}

func (b *builder) insertConstant(t ssa.Type) *ssa.Op {
	b.l.ops++
	return b.head.Insert(prim.Constant, b.location(), t)
}

// function gives the constant that names a function.
func (b *builder) function(name string) *ssa.Value {
	key := poolKey{kind: ssa.FuncLit, text: name}
	if c := b.pool[key]; c != nil {
		return c
	}
	o := b.insertConstant(ssa.FunctionType)
	o.SetAttr("name", ssa.Str(name))
	b.pool[key] = o.Result(0)
	return o.Result(0)
}

// integer gives an int constant.
func (b *builder) integer(i int64) *ssa.Value { return b.constant(ssa.Int(i), ssa.IntType) }

func (b *builder) none() *ssa.Value { return b.constant(ssa.None, ssa.NoneType) }

// statements compiles a block; only the last statement of a function may return.
func (b *builder) statements(body []pyast.Stmt, top bool) {
	for i, st := range body {
		b.at(st.At())
		switch st := st.(type) {
		case *pyast.Pass:
		case *pyast.Return:
			if !top || i != len(body)-1 {
				b.fail(st.At(), "save the module again: torch.jit.save writes one return, at the end", "return before the end of a function")
			}
			b.finish(st.X, st.At())
		case *pyast.ExprStmt:
			b.expr(st.X)
		case *pyast.Assign:
			b.assign(st)
		case *pyast.If:
			b.ifStmt(st)
		case *pyast.While:
			b.loop(st.At(), nil, nil, st.Cond, st.Body)
		case *pyast.For:
			b.forStmt(st)
		case *pyast.With:
			b.with(st)
		case *pyast.Def:
			b.scope.vars[st.Name] = &closure{st, b.scope}
		case *pyast.Other:
			b.fail(st.At(), "save the module again with torch.jit.save, which writes none", "%s is not supported in archives", st.What)
		default:
			b.fail(st.At(), "", "this statement is not expected in a function")
		}
	}
}

// set assigns a name and lets the value keep it as a wish for printing.
func (b *builder) set(name string, v val) {
	if x, ok := v.(*ssa.Value); ok && x.Name == "" && !temporary(name) && x.Block() == b.block {
		if d := x.Def(); d != nil && d.Kind != prim.Constant {
			x.Name = b.names.Unique(name)
		}
	}
	b.scope.vars[name] = v
}

func (b *builder) assign(a *pyast.Assign) {
	if a.Value == nil {
		return // a declaration
	}
	if a.Op != "" {
		b.augmented(a)
		return
	}
	var hint ssa.Type
	if a.Type != nil {
		hint = b.l.typ(b.f.src, a.Type)
	}
	if len(a.Targets) == 1 && !a.Unpack {
		v := b.exprHint(a.Value, hint)
		switch v.(type) {
		case *ssa.Value, *outputs, *tupleOf, *emptyList:
			x := b.value(v, hint, a.Value.At())
			if hint != nil {
				x = b.coerce(x, hint, a.Value.At(), "the variable is")
			}
			v = x
		}
		b.target(a.Targets[0], v)
		if n, name := a.Targets[0].(*pyast.Name); name {
			switch t := hint.(type) {
			case *ssa.OptionalType:
				b.scope.declareOptional(n.ID, t)
			case *ssa.UnionType:
				b.scope.declareUnion(n.ID, t)
			}
		}
		return
	}
	vals := b.unpack(b.expr(a.Value), len(a.Targets), a.Value.At())
	for i, v := range vals { // all of the right side before any assignment
		switch v.(type) {
		case *outputs, *tupleOf, *emptyList:
			vals[i] = b.value(v, nil, a.Value.At())
		}
	}
	for i, t := range a.Targets {
		b.target(t, vals[i])
	}
}

func (b *builder) target(t pyast.Expr, v val) {
	switch t := t.(type) {
	case *pyast.Name:
		b.set(t.ID, v)
	case *pyast.Attr:
		obj := b.value(b.expr(t.X), nil, t.At())
		ct, ok := obj.Type.(*ssa.ClassType)
		if !ok {
			b.fail(t.At(), "", "cannot assign an attribute of %s", obj.Type)
		}
		var at ssa.Type
		if c := b.l.class(ct.Name); c != nil {
			at = c.attrs[t.Name]
		}
		x := b.value(v, at, t.At())
		if at != nil {
			x = b.coerce(x, at, t.At(), "the attribute is")
		}
		b.at(t.At())
		b.emit(prim.SetAttr, []*ssa.Value{obj, x}).SetAttr("name", ssa.Str(t.Name))
	case *pyast.Tuple:
		for i, x := range b.unpack(v, len(t.Elems), t.At()) {
			b.target(t.Elems[i], x)
		}
	case *pyast.Index:
		if len(t.Items) == 1 {
			x := b.value(b.expr(t.X), nil, t.At())
			switch x.Type.(type) {
			case *ssa.ListType, *ssa.DictType:
				i := b.expr(t.Items[0])
				b.operator("aten::_set_item", []argument{{v: x}, {v: i}, {v: v}}, t.At())
				return
			}
		}
		b.fail(t.At(), "", "this assignment to a subscript is not supported in archives")
	default:
		b.fail(t.At(), "", "cannot assign to this")
	}
}

// unpack gives the n parts of a value.
func (b *builder) unpack(v val, n, pos int) []val {
	out := make([]val, n)
	switch v := v.(type) {
	case *outputs:
		if len(v.vals) != n {
			b.fail(pos, "", "%d values for %d names", len(v.vals), n)
		}
		for i, x := range v.vals {
			out[i] = x
		}
		return out
	case *tupleOf:
		if len(v.elems) != n {
			b.fail(pos, "", "%d values for %d names", len(v.elems), n)
		}
		copy(out, v.elems)
		return out
	case *ssa.Value:
		switch t := v.Type.(type) {
		case *ssa.TupleType:
			if len(t.Elems) != n {
				b.fail(pos, "", "a tuple of %d for %d names", len(t.Elems), n)
			}
			o := b.emit(prim.TupleUnpack, []*ssa.Value{v}, t.Elems...)
			for i, r := range o.Results {
				out[i] = r
			}
			return out
		case *ssa.ListType:
			ts := make([]ssa.Type, n)
			for i := range ts {
				ts[i] = t.Elem
			}
			o := b.emit(prim.ListUnpack, []*ssa.Value{v}, ts...)
			for i, r := range o.Results {
				out[i] = r
			}
			return out
		}
		if o := v.Def(); b.l.guessed[o] && !v.HasUses() { // how many results it has is only seen here
			delete(b.l.guessed, o)
			for len(o.Results) < n {
				o.AddResult(ssa.AnyTensor)
			}
			for i, r := range o.Results {
				out[i] = r
			}
			return out
		}
		b.fail(pos, "", "cannot unpack %s into %d names", v.Type, n)
	}
	b.fail(pos, "", "cannot unpack this into %d names", n)
	return nil
}

func (b *builder) augmented(a *pyast.Assign) {
	x := b.value(b.expr(a.Targets[0]), nil, a.At())
	y := b.expr(a.Value)
	name := binaryOps[a.Op]
	if name == "" {
		b.fail(a.At(), "", "%s= is not supported", a.Op)
	}
	if ssa.AsTensor(x.Type) != nil {
		switch a.Op {
		case "+", "-", "*", "/":
			name += "_"
		case "%":
			name = "fmod_"
		}
	} else if _, list := x.Type.(*ssa.ListType); list && a.Op == "+" {
		name = "add_"
	}
	v := b.operator(ssa.Kind("aten::"+name), []argument{{v: x}, {v: y}}, a.At())
	b.target(a.Targets[0], v)
}

// body compiles statements into a new block of an op and gives its names.
func (b *builder) body(o *ssa.Op, stmts func()) (*ssa.Block, *scope) {
	block := o.AddBlock()
	outer, scope := b.block, newScope(b.scope)
	b.block, b.scope = block, scope
	stmts()
	b.block, b.scope = outer, scope.parent
	return block, scope
}

func (b *builder) ifStmt(s *pyast.If) {
	cond := b.condition(s.Cond)
	b.at(s.At())
	o := b.emit(prim.If, []*ssa.Value{cond})
	loc := b.location()
	then, ts := b.body(o, func() { b.statements(s.Then, false) })
	other, es := b.body(o, func() { b.statements(s.Else, false) })
	b.restore(loc)
	assigned := map[string]bool{}
	for n := range ts.vars {
		assigned[n] = true
	}
	for n := range es.vars {
		assigned[n] = true
	}
	var names []string
	for n := range assigned {
		names = append(names, n)
	}
	sort.Strings(names)
	var tr, er []*ssa.Value
	var merged []string
	for _, n := range names {
		tv, ok1 := ts.get(n)
		ev, ok2 := es.get(n)
		if !ok1 || !ok2 {
			continue // local to one branch
		}
		x, ok1 := tv.(*ssa.Value)
		y, ok2 := ev.(*ssa.Value)
		if !ok1 || !ok2 {
			if same(tv, ev) {
				b.scope.vars[n] = tv
			} else {
				b.scope.vars[n] = &unusable{"it is something else in each branch"}
			}
			continue
		}
		t, ok := ssa.UnifyTypes(general(x.Type), general(y.Type))
		for _, branch := range []*scope{ts, es} {
			if u := branch.union(n, x.Type, y.Type); !ok && u != nil {
				t, ok = u, true
			}
		}
		if !ok {
			b.scope.vars[n] = &unusable{"it is " + x.Type.String() + " in one branch and " + y.Type.String() + " in the other"}
			continue
		}
		tr, er = append(tr, x), append(er, y)
		merged = append(merged, n)
		o.AddResult(t)
	}
	then.SetReturns(tr...)
	other.SetReturns(er...)
	for i, n := range merged {
		b.set(n, o.Result(i))
	}
}

func same(a, b val) bool {
	switch a := a.(type) {
	case *funcRef:
		o, ok := b.(*funcRef)
		return ok && o.f == a.f
	case *classRef:
		o, ok := b.(*classRef)
		return ok && o.c == a.c
	case *namespace:
		o, ok := b.(*namespace)
		return ok && o.path == a.path
	}
	return false
}

// general forgets what is known of a tensor, as merged values must.
func general(t ssa.Type) ssa.Type {
	if ssa.AsTensor(t) != nil {
		return ssa.AnyTensor
	}
	return t
}

func (b *builder) condition(e pyast.Expr) *ssa.Value {
	v := b.value(b.expr(e), ssa.BoolType, e.At())
	if v.Type != ssa.BoolType {
		v = b.value(b.operator("aten::Bool", []argument{{v: v}}, e.At()), nil, e.At())
	}
	return v
}

func (b *builder) forStmt(s *pyast.For) {
	target, ok := s.Target.(*pyast.Name)
	c, isCall := s.Iter.(*pyast.Call)
	if !ok || !isCall || !isName(c.Fn, "range") || len(c.Args) != 1 {
		b.fail(s.At(), "save the module again: torch.jit.save writes loops over range(n)", "this form of for is not supported in archives")
	}
	n := b.value(b.expr(c.Args[0].Value), ssa.IntType, c.At())
	n = b.coerce(n, ssa.IntType, c.At(), "the number of trips is")
	b.loop(s.At(), target, n, nil, s.Body)
}

// loop compiles for (target, trips) and while (cond).
func (b *builder) loop(pos int, target *pyast.Name, trips *ssa.Value, cond pyast.Expr, body []pyast.Stmt) {
	var first *ssa.Value
	if cond == nil {
		b.at(pos)
		first = b.constant(ssa.Bool(true), ssa.BoolType)
	} else {
		b.at(pos)
		trips = b.integer(1<<63 - 1)
		first = b.condition(cond)
	}
	assigned := map[string]bool{}
	collect(body, assigned)
	if target != nil {
		delete(assigned, target.ID)
	}
	var names []string
	operands := []*ssa.Value{trips, first}
	for n := range assigned {
		if v, ok := b.scope.get(n); ok {
			if _, ok := v.(*ssa.Value); ok {
				names = append(names, n)
			}
		}
	}
	sort.Strings(names)
	types := make([]ssa.Type, len(names))
	for i, n := range names {
		v, _ := b.scope.get(n)
		x := v.(*ssa.Value)
		operands = append(operands, x)
		types[i] = b.scope.carried(n, x)
	}
	b.at(pos)
	loc := b.location()
	o := b.emit(prim.Loop, operands, types...)
	_, _ = b.body(o, func() {
		induction := ""
		if target != nil && !temporary(target.ID) {
			induction = b.names.Unique(target.ID)
		}
		i := b.block.AddParam(induction, ssa.IntType)
		if target != nil {
			b.scope.vars[target.ID] = i
		}
		for k, n := range names {
			name := n
			if temporary(n) {
				name = ""
			}
			b.scope.vars[n] = b.block.AddParam(b.names.Unique(name), types[k])
		}
		b.statements(body, false)
		next := first
		if cond != nil {
			next = b.condition(cond)
		}
		returns := []*ssa.Value{next}
		for k, n := range names {
			v, _ := b.scope.get(n)
			x, ok := v.(*ssa.Value)
			if !ok {
				b.fail(pos, "", "%s has no single value after the loop's body", n)
			}
			if !ssa.IsSubtype(x.Type, types[k]) {
				b.fail(pos, "", "%s is %s before the loop and %s after its body", n, types[k], x.Type)
			}
			returns = append(returns, x)
		}
		b.block.SetReturns(returns...)
	})
	b.restore(loc)
	for k, n := range names {
		b.set(n, o.Result(k))
	}
}

// collect gathers the names that statements assign.
func collect(body []pyast.Stmt, names map[string]bool) {
	var target func(e pyast.Expr)
	target = func(e pyast.Expr) {
		switch e := e.(type) {
		case *pyast.Name:
			names[e.ID] = true
		case *pyast.Tuple:
			for _, x := range e.Elems {
				target(x)
			}
		}
	}
	for _, st := range body {
		switch st := st.(type) {
		case *pyast.Assign:
			if st.Value != nil {
				for _, t := range st.Targets {
					target(t)
				}
			}
		case *pyast.If:
			collect(st.Then, names)
			collect(st.Else, names)
		case *pyast.For:
			target(st.Target)
			collect(st.Body, names)
		case *pyast.While:
			collect(st.Body, names)
		case *pyast.With:
			if st.Name != "" {
				names[st.Name] = true
			}
			collect(st.Body, names)
		}
	}
}

func (b *builder) with(s *pyast.With) {
	obj := b.value(b.expr(s.X), nil, s.X.At())
	ct, ok := obj.Type.(*ssa.ClassType)
	if !ok {
		b.fail(s.At(), "", "with %s, which is not an object", obj.Type)
	}
	var ret ssa.Type = ssa.NoneType
	if c := b.l.class(ct.Name); c != nil {
		for _, m := range []string{"__enter__", "__exit__"} {
			if c.methods[m] == nil {
				b.fail(s.At(), "", "%s has no %s", PythonName(ct.Name), m)
			}
			f := b.l.method(c, m)
			b.l.need(f)
			if m == "__enter__" && f.ret != nil {
				ret = f.ret
			}
		}
	}
	b.at(s.At())
	loc := b.location()
	enter := b.emit(prim.Enter, []*ssa.Value{obj}, ret)
	if s.Name != "" {
		b.set(s.Name, enter.Result(0))
	}
	b.statements(s.Body, false)
	b.restore(loc)
	b.emit(prim.Exit, []*ssa.Value{obj}, ssa.NoneType)
}
