package jit

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
)

// argument is an actual argument of a call; name is empty for a positional one.
type argument struct {
	name string
	v    val
}

// planned is how an argument becomes an operand. Overloads are tried without
// touching the graph; only the plan of the one that fits is carried out.
type planned struct {
	v       val
	typ     ssa.Type // of the operand
	lit     *ssa.Literal
	list    []planned // elements of a new list
	isList  bool
	tuple   []planned // elements of a new tuple
	isTuple bool
	unpack  *ssa.TupleType // v is a tuple whose elements make list or tuple
	convert ssa.Kind       // applied to v
}

// typeOf is the static type of a val.
func (b *builder) typeOf(v val) ssa.Type {
	switch v := v.(type) {
	case *ssa.Value:
		return v.Type
	case *outputs:
		if len(v.vals) == 0 {
			return ssa.NoneType
		}
		t := &ssa.TupleType{}
		for _, x := range v.vals {
			t.Elems = append(t.Elems, x.Type)
		}
		return t
	case *tupleOf:
		t := &ssa.TupleType{}
		for _, x := range v.elems {
			t.Elems = append(t.Elems, b.typeOf(x))
		}
		return t
	case *emptyList:
		return &ssa.ListType{Elem: ssa.AnyTensor}
	case *funcRef:
		return ssa.FunctionType
	}
	return ssa.Basic("?")
}

// plan tries to pass v for a formal type. size is N of T[N].
func (b *builder) plan(v val, formal ssa.Type, size int, conv bool, vars *ssa.TypeVars) (planned, bool) {
	t := b.typeOf(v)
	if _, empty := v.(*emptyList); empty {
		if lt, ok := strip(formal).(*ssa.ListType); ok {
			if u := vars.Apply(lt); u != nil {
				return planned{v: v, typ: u}, true
			}
			if vars.Match(lt, t) {
				return planned{v: v, typ: t}, true
			}
		}
	}
	if size > 0 && (t == ssa.IntType || t == ssa.FloatType) { // one number for int[2]
		if lt, ok := strip(formal).(*ssa.ListType); ok && lt.Elem == t {
			p := planned{isList: true, typ: &ssa.ListType{Elem: t}}
			for i := 0; i < size; i++ {
				p.list = append(p.list, planned{v: v, typ: t})
			}
			return p, true
		}
	}
	if !vars.Match(formal, t) {
		return planned{}, false
	}
	concrete := vars.Apply(formal)
	if concrete == nil {
		if _, opt := formal.(*ssa.OptionalType); opt && t == ssa.NoneType {
			return planned{v: v, typ: t}, true
		}
		return planned{}, false
	}
	return b.convert(v, t, concrete, conv)
}

// convert passes a value of type t where want is expected.
func (b *builder) convert(v val, t, want ssa.Type, conv bool) (planned, bool) {
	if o, ok := want.(*ssa.OptionalType); ok && t != ssa.NoneType {
		if _, isOpt := t.(*ssa.OptionalType); !isOpt {
			return b.convert(v, t, o.Elem, conv)
		}
	}
	tt, isTuple := t.(*ssa.TupleType)
	if lt, ok := want.(*ssa.ListType); ok && isTuple {
		for _, e := range tt.Elems {
			if !ssa.IsSubtype(e, lt.Elem) {
				return planned{}, false
			}
		}
		p := planned{v: v, isList: true, typ: lt, unpack: tt}
		return p, true
	}
	if wt, ok := want.(*ssa.TupleType); ok && isTuple && !b.subtype(t, want) {
		disp, isDisplay := v.(*tupleOf)
		if !isDisplay || len(wt.Elems) != len(tt.Elems) || wt.Name != "" {
			return planned{}, false
		}
		p := planned{isTuple: true}
		out := &ssa.TupleType{}
		for i, x := range disp.elems {
			q, ok := b.convert(x, tt.Elems[i], wt.Elems[i], conv)
			if !ok {
				return planned{}, false
			}
			p.tuple = append(p.tuple, q)
			out.Elems = append(out.Elems, q.typ)
		}
		p.typ = out
		return p, true
	}
	if conv {
		if k := conversion(t, want); k != "" {
			return planned{v: v, typ: want, convert: k}, true
		}
	}
	if !b.subtype(t, want) {
		return planned{}, false
	}
	if _, empty := v.(*emptyList); empty {
		return planned{v: v, typ: want}, true
	}
	return planned{v: v, typ: t}, true
}

// conversion names the implicit conversion from t to want, empty if there is none.
func conversion(t, want ssa.Type) ssa.Kind {
	if ssa.AsTensor(t) != nil {
		switch want {
		case ssa.FloatType:
			return "aten::FloatImplicit"
		case ssa.ComplexType:
			return "aten::ComplexImplicit"
		case ssa.IntType:
			return "aten::IntImplicit"
		case ssa.NumberType:
			return "aten::ScalarImplicit"
		}
	}
	if t == ssa.NumberType {
		switch want {
		case ssa.FloatType:
			return "aten::Float"
		case ssa.ComplexType:
			return "aten::Complex"
		case ssa.IntType:
			return "aten::Int"
		}
	}
	if t == ssa.StrType && want == ssa.DeviceType {
		return "aten::device"
	}
	return ""
}

// subtype is IsSubtype with the methods of interfaces checked.
func (b *builder) subtype(t, want ssa.Type) bool {
	if it, ok := want.(*ssa.InterfaceType); ok {
		ct, ok := t.(*ssa.ClassType)
		if !ok {
			return ssa.SameType(t, want)
		}
		c, ic := b.l.class(ct.Name), b.l.class(it.Name)
		if c == nil || ic == nil {
			return false
		}
		for m := range ic.methods {
			if c.methods[m] == nil {
				return false
			}
		}
		return true
	}
	return ssa.IsSubtype(t, want)
}

// carryOut makes the operand.
func (b *builder) carryOut(p planned, pos int) *ssa.Value {
	switch {
	case p.lit != nil:
		return b.constant(*p.lit, p.typ)
	case p.unpack != nil:
		elems := b.unpack(p.v, len(p.unpack.Elems), pos)
		vs := make([]*ssa.Value, len(elems))
		for i, e := range elems {
			vs[i] = b.value(e, nil, pos)
		}
		return b.emit(prim.ListConstruct, vs, p.typ).Result(0)
	case p.isList:
		vs := make([]*ssa.Value, len(p.list))
		for i, e := range p.list {
			vs[i] = b.carryOut(e, pos)
		}
		return b.emit(prim.ListConstruct, vs, p.typ).Result(0)
	case p.isTuple:
		vs := make([]*ssa.Value, len(p.tuple))
		for i, e := range p.tuple {
			vs[i] = b.carryOut(e, pos)
		}
		return b.emit(prim.TupleConstruct, vs, p.typ).Result(0)
	}
	v := b.value(p.v, p.typ, pos)
	if p.convert != "" {
		v = b.value(b.operator(p.convert, []argument{{v: v}}, pos), nil, pos)
	}
	return v
}

// coerce converts a value to a declared type or fails.
func (b *builder) coerce(v *ssa.Value, want ssa.Type, pos int, what string) *ssa.Value {
	p, ok := b.convert(v, v.Type, want, true)
	if !ok {
		b.fail(pos, "", "%s %s, not %s", what, want, v.Type)
	}
	return b.carryOut(p, pos)
}

// matchArgs tries to pass arguments for declared ones.
func (b *builder) matchArgs(formals []ssa.SchemaArg, vararg bool, args []argument, conv, operator bool) ([]planned, *ssa.TypeVars, string) {
	var vars ssa.TypeVars
	positional := 0
	for positional < len(args) && args[positional].name == "" {
		positional++
	}
	used := make([]bool, len(args))
	plans := make([]planned, 0, len(formals))
	next := 0
	for fi := range formals {
		f := &formals[fi]
		var at = -1
		if !f.KwOnly && next < positional {
			at = next
			// the remaining positional arguments may form a list
			if lt, ok := f.Type.(*ssa.ListType); ok && operator && conv && f.Size == 0 && lastPositional(formals, fi) && !vararg {
				if _, isList := b.typeOf(args[at].v).(*ssa.ListType); !isList && b.listable(args[next:positional]) {
					p := planned{isList: true}
					ok := true
					for i := next; i < positional && ok; i++ {
						var q planned
						q, ok = b.plan(args[i].v, lt.Elem, 0, conv, &vars)
						p.list = append(p.list, q)
					}
					if ok {
						for i := next; i < positional; i++ {
							used[i] = true
						}
						next = positional
						if u, isList := vars.Apply(lt).(*ssa.ListType); isList {
							lt = u
						}
						p.typ = lt
						plans = append(plans, p)
						continue
					}
				}
			}
			next++
		} else {
			for i := positional; i < len(args); i++ {
				if !used[i] && (args[i].name == f.Name || operator && f.Name == "self" && args[i].name == "input") {
					at = i
					break
				}
			}
		}
		if at < 0 {
			if !f.HasDefault {
				return nil, nil, "argument " + f.Name + " is missing"
			}
			plans = append(plans, b.defaultArg(f))
			continue
		}
		used[at] = true
		size := 0
		if operator {
			size = f.Size
		}
		p, ok := b.plan(args[at].v, f.Type, size, conv, &vars)
		if !ok {
			return nil, nil, fmt.Sprintf("argument %s wants %s, not %s", f.Name, f.Type, b.typeOf(args[at].v))
		}
		plans = append(plans, p)
	}
	for i := range args {
		if used[i] {
			continue
		}
		if vararg && args[i].name == "" {
			plans = append(plans, planned{v: args[i].v, typ: b.typeOf(args[i].v)})
			continue
		}
		if args[i].name != "" {
			return nil, nil, "there is no argument " + args[i].name
		}
		return nil, nil, fmt.Sprintf("takes %d arguments", len(formals))
	}
	return plans, &vars, ""
}

func lastPositional(formals []ssa.SchemaArg, i int) bool {
	return i == len(formals)-1 || formals[i+1].KwOnly
}

// listable reports arguments that may stand for the elements of a list.
func (b *builder) listable(args []argument) bool {
	for _, a := range args {
		switch b.typeOf(a.v).(type) {
		case *ssa.TupleType:
			return len(args) > 1
		}
	}
	return true
}

func (b *builder) defaultArg(f *ssa.SchemaArg) planned {
	l := f.Default
	var t ssa.Type
	switch {
	case l.IsNone():
		t = ssa.NoneType
	case l.Kind == ssa.ListLit || l.Kind == ssa.DictLit || l.Kind == ssa.TupleLit:
		t = strip(f.Type)
	default:
		t = l.Type()
	}
	if l.Kind == ssa.EnumLit {
		t = strip(f.Type)
	}
	return planned{lit: &l, typ: t}
}

// describe lists the types of arguments for messages.
func (b *builder) describe(args []argument) string {
	var s []string
	for _, a := range args {
		t := b.typeOf(a.v).String()
		if a.name != "" {
			t = a.name + "=" + t
		}
		s = append(s, t)
	}
	return "(" + strings.Join(s, ", ") + ")"
}
