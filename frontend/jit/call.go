package jit

import (
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/frontend/jit/pyast"
	"github.com/aton-project/aton/ssa"
)

func (b *builder) call(e *pyast.Call, hint ssa.Type) val {
	if n, ok := e.Fn.(*pyast.Name); ok {
		if _, local := b.scope.get(n.ID); !local {
			return b.builtin(n.ID, e, hint)
		}
	}
	var fn val
	if a, ok := e.Fn.(*pyast.Attr); ok {
		fn = b.member(a)
	} else {
		fn = b.expr(e.Fn)
	}
	switch fn := fn.(type) {
	case *namespace:
		return b.named(fn.path, e)
	case *funcRef:
		return b.callFunction(fn.f, b.arguments(e), e)
	case *classRef:
		return b.construct(fn.c, e)
	case *unbound:
		if fn.name == "__new__" {
			b.at(e.Paren, e.At())
			return b.emit(prim.CreateObject, nil, fn.c.typ()).Result(0)
		}
		args := b.arguments(e)
		if len(args) == 0 || args[0].name != "" {
			b.fail(e.At(), "", "%s.%s is called without an object", PythonName(fn.c.name), fn.name)
		}
		self := b.value(args[0].v, nil, e.At())
		return b.callMethod(self, fn.c, fn.name, args[1:], e)
	case *bound:
		return b.method(fn, e)
	}
	b.fail(e.At(), "", "this is not a function")
	return nil
}

// arguments compiles the arguments of a call, in order.
func (b *builder) arguments(e *pyast.Call) []argument {
	args := make([]argument, len(e.Args))
	for i, a := range e.Args {
		args[i] = argument{a.Name, b.expr(a.Value)}
	}
	return args
}

// named compiles torch.NAME(...) and ops.NS.NAME(...).
func (b *builder) named(path string, e *pyast.Call) val {
	parts := strings.Split(path, ".")
	switch {
	case parts[0] == "ops" && len(parts) == 3:
		return b.operator(ssa.Kind(parts[1]+"::"+parts[2]), b.arguments(e), e.Paren, e.At())
	case path == "torch.device" && len(e.Args) == 1:
		if s, ok := e.Args[0].Value.(*pyast.Str); ok {
			b.at(e.Paren, e.At())
			return b.constant(ssa.Device(s.Value), ssa.DeviceType)
		}
		return b.operator("aten::device", b.arguments(e), e.Paren, e.At())
	case path == "torch.wait" && len(e.Args) == 1:
		return b.operator("aten::wait", b.arguments(e), e.Paren, e.At())
	case parts[0] == "torch" && (len(parts) == 2 || len(parts) == 3 && parts[1] == "autograd"):
		return b.operator(ssa.Kind("aten::"+parts[len(parts)-1]), b.arguments(e), e.Paren, e.At())
	}
	b.fail(e.At(), "", "%s is not an operator", path)
	return nil
}

// signature matches arguments with a function's parameters and makes the operands.
func (b *builder) passArgs(name string, params []ssa.SchemaArg, args []argument, e *pyast.Call) []*ssa.Value {
	plans, _, why := b.matchArgs(params, false, args, true, false)
	if why != "" {
		b.fail(e.At(), "", "%s%s: %s", PythonName(name), b.describe(args), why)
	}
	b.at(e.Paren, e.At())
	operands := make([]*ssa.Value, len(plans))
	for i, p := range plans {
		operands[i] = b.carryOut(p, e.At())
	}
	b.at(e.Paren, e.At())
	return operands
}

// returns is the type that a function gives; one without annotation is compiled to know it.
func (b *builder) returns(f *function, e *pyast.Call) ssa.Type {
	if f.ret == nil {
		if f.state == 2 {
			b.fail(e.At(), "", "%s calls itself and has no return type", PythonName(f.name))
		}
		b.l.compile(f)
	}
	return f.ret
}

func (b *builder) callFunction(f *function, args []argument, e *pyast.Call) val {
	operands := b.passArgs(f.name, f.params, args, e)
	b.l.need(f)
	ret := b.returns(f, e)
	fn := b.function(f.name)
	o := b.emit(prim.CallFunction, append([]*ssa.Value{fn}, operands...), ret)
	return o.Result(0)
}

func (b *builder) callMethod(self *ssa.Value, c *class, name string, args []argument, e *pyast.Call) val {
	f := b.l.method(c, name)
	if len(f.params) == 0 {
		b.fail(e.At(), "", "method %s.%s has no self", PythonName(c.name), name)
	}
	operands := b.passArgs(f.name, f.params[1:], args, e)
	if c.kind == interfaceClass {
		b.l.callVirtual(f.name)
	} else {
		b.l.need(f)
	}
	var ret ssa.Type
	if c.kind == interfaceClass && f.ret == nil {
		ret = ssa.NoneType
	} else {
		ret = b.returns(f, e)
	}
	o := b.emit(prim.CallMethod, append([]*ssa.Value{self}, operands...), ret)
	o.SetAttr("name", ssa.Str(name))
	return o.Result(0)
}

func (l *loader) callVirtual(name string) {
	if !l.virtual[name] {
		l.virtual[name] = true
		l.virtuals = append(l.virtuals, name)
	}
}

// method compiles a call of a method of a value.
func (b *builder) method(m *bound, e *pyast.Call) val {
	switch t := m.self.Type.(type) {
	case *ssa.ClassType:
		c := b.l.class(t.Name)
		if c == nil {
			b.fail(e.At(), "the archive is not whole: save the module again with torch.jit.save", "the code of class %s is missing", t.Name)
		}
		if c.kind == customClass {
			return b.customMethod(m, t, e)
		}
		if c.methods[m.name] == nil {
			b.fail(e.At(), "", "%s has no method %s", PythonName(t.Name), m.name)
		}
		return b.callMethod(m.self, c, m.name, b.arguments(e), e)
	case *ssa.InterfaceType:
		c := b.l.class(t.Name)
		if c == nil || c.methods[m.name] == nil {
			b.fail(e.At(), "", "interface %s has no method %s", PythonName(t.Name), m.name)
		}
		return b.callMethod(m.self, c, m.name, b.arguments(e), e)
	case *ssa.WrapType:
		if m.name == "wait" {
			return b.operator("aten::wait", []argument{{v: m.self}}, e.Paren, e.At())
		}
	}
	args := append([]argument{{v: m.self}}, b.arguments(e)...)
	return b.operator(ssa.Kind("aten::"+m.name), args, e.Paren, e.At())
}

// customMethod calls a method of a class that is written in C++. Only what the
// operators say of packed parameters is known of them.
func (b *builder) customMethod(m *bound, t *ssa.ClassType, e *pyast.Call) val {
	args := b.arguments(e)
	operands := []*ssa.Value{m.self}
	for _, a := range args {
		operands = append(operands, b.value(a.v, nil, e.At()))
	}
	var ret ssa.Type = ssa.AnyType
	if m.name == "unpack" {
		ret = &ssa.TupleType{Elems: []ssa.Type{ssa.AnyTensor, &ssa.OptionalType{Elem: ssa.AnyTensor}}}
	}
	b.at(e.Paren, e.At())
	o := b.emit(prim.CallMethod, operands, ret)
	o.SetAttr("name", ssa.Str(m.name))
	return o.Result(0)
}

// construct makes a NamedTuple or an object.
func (b *builder) construct(c *class, e *pyast.Call) val {
	args := b.arguments(e)
	switch c.kind {
	case tupleClass:
		params := make([]ssa.SchemaArg, len(c.fields))
		for i, f := range c.fields {
			params[i] = ssa.SchemaArg{Name: f, Type: c.attrs[f]}
			if d := c.defaults[f]; d != nil {
				params[i].HasDefault = true
				params[i].Default = b.l.constant(c.src, d, c.attrs[f])
			}
		}
		operands := b.passArgs(c.name, params, args, e)
		return b.emit(prim.TupleConstruct, operands, c.tuple).Result(0)
	case enumClass:
		if len(args) == 1 {
			if v, ok := args[0].v.(*ssa.Value); ok && v.Def() != nil && v.Def().Kind == prim.Constant {
				l, _ := v.Def().Attr("value")
				for _, m := range c.members {
					if sameNumber(m.value, l) {
						return b.constant(ssa.Enum(c.name+"."+m.name, m.value), c.typ())
					}
				}
			}
		}
	case plainClass:
		b.at(e.Paren, e.At())
		obj := b.emit(prim.CreateObject, nil, c.typ()).Result(0)
		if c.methods["__init__"] != nil {
			b.callMethod(obj, c, "__init__", args, e)
		}
		return obj
	}
	b.fail(e.At(), "", "an object of %s cannot be made here", PythonName(c.name))
	return nil
}

// builtin compiles a call of one of the names that are not qualified.
func (b *builder) builtin(name string, e *pyast.Call, hint ssa.Type) val {
	n := len(e.Args)
	wrong := func() { b.fail(e.At(), "", "%s with %d arguments", name, n) }
	switch name {
	case "annotate":
		if n != 2 {
			wrong()
		}
		return b.annotate(e)
	case "unchecked_cast":
		if n != 2 {
			wrong()
		}
		t := b.l.typ(b.f.src, e.Args[0].Value)
		v := b.value(b.exprHint(e.Args[1].Value, t), t, e.At())
		b.at(e.Paren, e.At())
		return b.emit(prim.UncheckedCast, []*ssa.Value{v}, t).Result(0)
	case "uninitialized":
		if n != 1 {
			wrong()
		}
		t := b.l.typ(b.f.src, e.Args[0].Value)
		b.at(e.Paren, e.At())
		return b.emit(prim.Uninitialized, nil, t).Result(0)
	case "getattr":
		s, ok := (*pyast.Str)(nil), false
		if n >= 2 {
			s, ok = e.Args[1].Value.(*pyast.Str)
		}
		if !ok {
			wrong()
		}
		return b.attribute(&pyast.Attr{Pos: e.Pos, X: e.Args[0].Value, Name: s.Value})
	case "isinstance":
		if n != 2 {
			wrong()
		}
		return b.isInstance(e)
	case "fork":
		if n < 1 {
			wrong()
		}
		return b.fork(e)
	case "tuple":
		if n == 1 {
			v := b.expr(e.Args[0].Value)
			if _, ok := b.typeOf(v).(*ssa.TupleType); ok {
				return v
			}
		}
		wrong()
	case "print":
		var operands []*ssa.Value
		for _, a := range b.arguments(e) {
			operands = append(operands, b.value(a.v, nil, e.At()))
		}
		b.at(e.Paren, e.At())
		b.emit(prim.Print, operands)
		return &outputs{}
	case "int", "float", "bool", "str", "complex":
		k := map[string]ssa.Kind{"int": "aten::Int", "float": "aten::Float", "bool": "aten::Bool", "str": "aten::str", "complex": "aten::Complex"}[name]
		args := b.arguments(e)
		if n == 1 {
			if t := b.typeOf(args[0].v); t == ssa.Basic(name) { // the cast of a value of that type is none
				return args[0].v
			}
		}
		return b.operator(k, args, e.Paren, e.At())
	case "min", "max", "abs":
		args := b.arguments(e)
		if n > 0 {
			if ssa.AsTensor(b.typeOf(args[0].v)) != nil {
				return b.operator(ssa.Kind("aten::"+name), args, e.Paren, e.At())
			}
		}
		return b.operator(ssa.Kind("prim::"+name), args, e.Paren, e.At())
	case "len", "sorted", "list", "round", "ord", "chr", "hash", "hex", "oct", "bin", "dict", "pow", "divmod", "all", "any", "sum":
		return b.operator(ssa.Kind("aten::"+name), b.arguments(e), e.Paren, e.At())
	case "rangelist", "device":
		ns := ssa.Kind("prim::" + name)
		return b.operator(ns, b.arguments(e), e.Paren, e.At())
	}
	b.fail(e.Fn.At(), "", "%s is not defined here", name)
	return nil
}

// annotate gives an expression a type: an empty list, None, an implicit conversion, tolist.
func (b *builder) annotate(e *pyast.Call) val {
	t := b.l.typ(b.f.src, e.Args[0].Value)
	x := e.Args[1].Value
	if c, ok := x.(*pyast.Call); ok {
		if a, ok := c.Fn.(*pyast.Attr); ok && a.Name == "tolist" && len(c.Args) == 0 && dotted(a) != "torch.tolist" {
			return b.toList(a, t, c)
		}
	}
	v := b.value(b.exprHint(x, t), t, x.At())
	b.at(e.Paren, e.At())
	if v.Type == ssa.NoneType && t != ssa.NoneType {
		if _, ok := t.(*ssa.OptionalType); !ok {
			t = &ssa.OptionalType{Elem: t}
		}
		return b.constant(ssa.None, t)
	}
	return b.coerce(v, t, x.At(), "the annotation is")
}

// toList compiles annotate(List[...], x.tolist()).
func (b *builder) toList(a *pyast.Attr, t ssa.Type, c *pyast.Call) val {
	x := b.value(b.expr(a.X), nil, a.At())
	depth, elem := int64(0), t
	for {
		lt, ok := elem.(*ssa.ListType)
		if !ok {
			break
		}
		elem = lt.Elem
		depth++
	}
	code := map[ssa.Type]int64{ssa.IntType: 0, ssa.FloatType: 1, ssa.BoolType: 2, ssa.ComplexType: 3}
	k, ok := code[elem]
	if !ok {
		b.fail(c.At(), "", "tolist cannot give %s", t)
	}
	b.at(c.Paren, c.At())
	d, ty := b.integer(depth), b.integer(k)
	return b.emit(prim.ToList, []*ssa.Value{x, d, ty}, t).Result(0)
}

func (b *builder) isInstance(e *pyast.Call) val {
	x := b.value(b.expr(e.Args[0].Value), nil, e.At())
	var types []ssa.Type
	items := []pyast.Expr{e.Args[1].Value}
	if t, ok := items[0].(*pyast.Tuple); ok {
		items = t.Elems
	}
	for _, it := range items {
		types = append(types, b.l.typ(b.f.src, it))
	}
	b.at(e.Paren, e.At())
	all := true
	for _, t := range types {
		if b.subtype(x.Type, t) {
			return b.constant(ssa.Bool(true), ssa.BoolType)
		}
		if b.mayBe(x.Type, t) {
			all = false
		}
	}
	if all {
		return b.constant(ssa.Bool(false), ssa.BoolType)
	}
	o := b.emit(prim.IsInstance, []*ssa.Value{x}, ssa.BoolType)
	l := ssa.Literal{Kind: ssa.ListLit}
	for _, t := range types {
		l.Elems = append(l.Elems, ssa.TypeValue(t))
	}
	o.SetAttr("types", l)
	return o.Result(0)
}

// mayBe reports whether a value of static type x can turn out to be of type t.
func (b *builder) mayBe(x, t ssa.Type) bool {
	switch x := x.(type) {
	case *ssa.OptionalType:
		return t == ssa.NoneType || b.mayBe(x.Elem, t)
	case *ssa.UnionType:
		for _, e := range x.Elems {
			if b.mayBe(e, t) {
				return true
			}
		}
		return false
	case *ssa.InterfaceType:
		return true
	}
	return x == ssa.AnyType || x == ssa.NumberType || ssa.IsSubtype(t, x) || b.subtype(x, t)
}

// fork compiles a local function to a graph of its own, with the locals that
// it captures as parameters.
func (b *builder) fork(e *pyast.Call) val {
	v := b.expr(e.Args[0].Value)
	c, ok := v.(*closure)
	if !ok || len(e.Args) != 1 || len(c.def.Params) != 0 {
		b.fail(e.At(), "", "fork of something else than a local function without parameters")
	}
	name := ""
	for i := 0; ; i++ {
		if name = "prim::fork_" + strconv.Itoa(i); b.l.functions[name] == nil {
			break
		}
	}
	free := map[string]bool{}
	freeNames(c.def.Body, free)
	f := &function{name: name, def: c.def, src: b.f.src, state: 2}
	b.l.functions[name] = f
	f.fn = b.l.m.NewFunc(name)
	in := &builder{l: b.l, f: f, fn: f.fn, block: f.fn.Body, scope: newScope(nil), pool: map[poolKey]*ssa.Value{}, names: ssa.NamesOf(f.fn), head: ssa.Head{Block: f.fn.Body}}
	var operands []*ssa.Value
	for _, n := range sortedKeys(free) {
		captured, ok := c.scope.get(n)
		if !ok {
			continue
		}
		if x, ok := captured.(*ssa.Value); ok {
			operands = append(operands, x)
			captured = in.fn.Body.AddParam(in.names.Unique(n), x.Type)
		}
		in.scope.vars[n] = captured
	}
	in.statements(c.def.Body, true)
	if !in.returned {
		in.finish(nil, c.def.At())
	}
	f.state = 3
	b.at(e.Paren, e.At())
	o := b.emit(prim.Fork, operands, &ssa.WrapType{Name: "Future", Elem: f.ret})
	o.SetAttr("Subgraph", ssa.FuncName(name))
	return o.Result(0)
}
