package jit

import (
	"fmt"
	"sort"
	"strings"

	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/frontend/jit/pyast"
	"github.com/aton-project/aton/ssa"
)

// source is one file of code.
type source struct {
	record  string
	text    string
	classes map[string]*pyast.Class
	defs    map[string]*pyast.Def
	ranges  *ranges // nil until asked for
	lines   []int   // where lines start; nil until asked for
	left    int     // functions that were not compiled
}

type classKind uint8

const (
	plainClass classKind = iota
	moduleClass
	tupleClass
	interfaceClass
	enumClass
	customClass // torch.classes.*: written in C++, without code
)

type class struct {
	name    string
	kind    classKind
	src     *source
	def     *pyast.Class
	attrs   map[string]ssa.Type
	fields  []string              // of attrs, in order
	finals  map[string]pyast.Expr // class constants
	types   map[string]ssa.Type   // of finals
	methods map[string]*pyast.Def
	members []enumDef
	hooks   []string
	tuple   *ssa.TupleType
	// defaults of NamedTuple fields
	defaults map[string]pyast.Expr
}

type enumDef struct {
	name  string
	value ssa.Literal
}

// file gives the source that defines names with a prefix, nil if there is none.
func (l *loader) file(prefix string) *source {
	if s, ok := l.sources[prefix]; ok {
		return s
	}
	record := "code/" + strings.ReplaceAll(prefix, ".", "/") + ".py"
	if !l.a.Has(record) {
		l.sources[prefix] = nil
		return nil
	}
	s := &source{record: record, text: string(l.text(record)), classes: map[string]*pyast.Class{}, defs: map[string]*pyast.Def{}}
	l.sources[prefix] = s
	if l.code += len(s.text); l.code > maxCode {
		l.fail(record, "", "the code has more than %d bytes", maxCode)
	}
	f, err := pyast.Parse(s.text)
	if err != nil {
		l.failSyntax(s, err)
	}
	for _, st := range f.Body {
		switch st := st.(type) {
		case *pyast.Class:
			s.classes[st.Name] = st
			s.left += len(methodsOf(st))
		case *pyast.Def:
			s.defs[st.Name] = st
			s.left++
		case *pyast.Assign, *pyast.Pass: // op_version_set = 1; import
		default:
			l.failAt(s, st.At(), "", "this statement is not expected outside of functions")
		}
	}
	return s
}

func methodsOf(c *pyast.Class) []*pyast.Def {
	var out []*pyast.Def
	for _, st := range c.Body {
		if d, ok := st.(*pyast.Def); ok {
			out = append(out, d)
		}
	}
	return out
}

// compiled takes note that one more function of a source is compiled. Behind the last one nothing needs what they do, nor their
// positions: of a trace with thousands of modules, each in a file of its own, that is most of the memory.
func (s *source) compiled() {
	if s.left--; s.left > 0 {
		return
	}
	s.ranges, s.lines = nil, nil
	for _, d := range s.defs {
		d.Body = nil
	}
	for _, c := range s.classes {
		for _, d := range methodsOf(c) {
			d.Body = nil
		}
	}
}

func (l *loader) failSyntax(s *source, err error) {
	if e, ok := err.(*pyast.Error); ok {
		l.failAt(s, e.Offset, "", "%s", e.Message)
	}
	l.failErr(s.record, err)
}

// failAt ends the reading with an error at a byte of a source.
func (l *loader) failAt(s *source, pos int, hint, format string, args ...any) {
	line, _ := s.place(pos)
	panic(&archive.Error{File: l.File, Record: s.record, Line: line, Offset: int64(pos), Err: fmt.Errorf(format, args...), Hint: hint})
}

func split(qual string) (prefix, name string) {
	i := strings.LastIndexByte(qual, '.')
	if i < 0 {
		return "", qual
	}
	return qual[:i], qual[i+1:]
}

// class finds a class by its qualified name, nil if there is none.
func (l *loader) class(qual string) *class {
	if c, ok := l.classes[qual]; ok {
		return c
	}
	if ssa.IsCustomClass(qual) {
		c := &class{name: qual, kind: customClass}
		l.classes[qual] = c
		return c
	}
	prefix, name := split(qual)
	s := l.file(prefix)
	if s == nil || s.classes[name] == nil {
		l.classes[qual] = nil
		return nil
	}
	c := &class{name: qual, src: s, def: s.classes[name], attrs: map[string]ssa.Type{}, finals: map[string]pyast.Expr{},
		types: map[string]ssa.Type{}, methods: map[string]*pyast.Def{}, defaults: map[string]pyast.Expr{}}
	switch c.def.Base {
	case "Module":
		c.kind = moduleClass
	case "NamedTuple":
		c.kind = tupleClass
		c.tuple = &ssa.TupleType{Name: qual, Names: []string{}}
	case "Interface", "ModuleInterface":
		c.kind = interfaceClass
	case "Enum":
		c.kind = enumClass
	}
	l.classes[qual] = c // before members, which may refer to it
	for _, st := range c.def.Body {
		l.member(c, st)
	}
	if c.kind == tupleClass {
		c.tuple.Names = append(c.tuple.Names, c.fields...)
		for _, f := range c.fields {
			c.tuple.Elems = append(c.tuple.Elems, c.attrs[f])
		}
	}
	return c
}

func (l *loader) member(c *class, st pyast.Stmt) {
	switch st := st.(type) {
	case *pyast.Def:
		c.methods[st.Name] = st
	case *pyast.Pass:
	case *pyast.Assign:
		if len(st.Targets) != 1 || st.Op != "" {
			l.failAt(c.src, st.At(), "", "this statement is not expected in a class")
		}
		switch t := st.Targets[0].(type) {
		case *pyast.Name:
			if st.Type != nil {
				if f, ok := st.Type.(*pyast.Index); ok && isName(f.X, "Final") && len(f.Items) == 1 {
					c.types[t.ID] = l.typ(c.src, f.Items[0])
					c.finals[t.ID] = st.Value
					return
				}
				l.addAttr(c, t.ID, st.Type)
				if st.Value != nil {
					c.defaults[t.ID] = st.Value
				}
				return
			}
			switch t.ID {
			case "__forward_pre_hooks__", "__forward_hooks__":
				if list, ok := st.Value.(*pyast.List); ok {
					for _, e := range list.Elems {
						if s, ok := e.(*pyast.Str); ok {
							c.hooks = append(c.hooks, s.Value)
						}
					}
				}
			case "__parameters__", "__buffers__", "__annotations__":
			default:
				if c.kind == enumClass {
					c.members = append(c.members, enumDef{t.ID, l.constant(c.src, st.Value, nil)})
				}
			}
		case *pyast.Index: // __annotations__["0"] = type
			if isName(t.X, "__annotations__") && len(t.Items) == 1 {
				if s, ok := t.Items[0].(*pyast.Str); ok {
					l.addAttr(c, s.Value, st.Value)
					return
				}
			}
			l.failAt(c.src, st.At(), "", "this statement is not expected in a class")
		}
	case *pyast.ExprStmt: // a doc string
	default:
		l.failAt(c.src, st.At(), "", "this statement is not expected in a class")
	}
}

func (l *loader) addAttr(c *class, name string, e pyast.Expr) {
	if _, dup := c.attrs[name]; !dup {
		c.fields = append(c.fields, name)
	}
	c.attrs[name] = l.typ(c.src, e)
}

func isName(e pyast.Expr, id string) bool {
	n, ok := e.(*pyast.Name)
	return ok && n.ID == id
}

// dotted gives a.b.c of an expression, empty if it is not of that form.
func dotted(e pyast.Expr) string {
	switch e := e.(type) {
	case *pyast.Name:
		return e.ID
	case *pyast.Attr:
		if x := dotted(e.X); x != "" {
			return x + "." + e.Name
		}
	}
	return ""
}

// typ reads a type annotation.
func (l *loader) typ(s *source, e pyast.Expr) ssa.Type {
	t, err := l.typeOf(e, 0)
	if err != nil {
		l.failAt(s, e.At(), "", "%v", err)
	}
	return t
}

const maxTypeDepth = 100

func (l *loader) typeOf(e pyast.Expr, depth int) (ssa.Type, error) {
	if depth > maxTypeDepth {
		return nil, fmt.Errorf("type nested too deeply")
	}
	switch e := e.(type) {
	case *pyast.Name:
		switch e.ID {
		case "Tensor":
			return ssa.AnyTensor, nil
		case "int", "float", "bool", "complex", "str", "NoneType", "Device", "Any", "Generator", "Stream", "Storage",
			"QScheme", "Capsule", "list", "tuple", "AnyClassType", "AnyEnumType", "PyObject":
			return ssa.Basic(e.ID), nil
		case "number", "Scalar":
			return ssa.NumberType, nil
		case "None":
			return ssa.NoneType, nil
		case "function":
			return ssa.FunctionType, nil
		}
		return nil, fmt.Errorf("type %s is not known", e.ID)
	case *pyast.Str: // a forward reference
		x, err := pyast.ParseExpr(e.Value)
		if err != nil {
			return nil, err
		}
		return l.typeOf(x, depth+1)
	case *pyast.Attr:
		name := dotted(e)
		if !strings.HasPrefix(name, "__torch__.") {
			switch name {
			case "torch.Tensor":
				return ssa.AnyTensor, nil
			case "torch.device":
				return ssa.DeviceType, nil
			}
			return nil, fmt.Errorf("type %s is not known", name)
		}
		c := l.class(name)
		if c == nil {
			return nil, fmt.Errorf("the code of class %s is missing", name)
		}
		return c.typ(), nil
	case *pyast.Index:
		var ps []ssa.Type
		items := e.Items
		if len(items) == 1 {
			if t, ok := items[0].(*pyast.Tuple); ok { // Tuple[()]
				items = t.Elems
			}
		}
		for _, it := range items {
			p, err := l.typeOf(it, depth+1)
			if err != nil {
				return nil, err
			}
			ps = append(ps, p)
		}
		return generic(dotted(e.X), ps)
	}
	return nil, fmt.Errorf("this is not a type")
}

// generic applies a type constructor.
func generic(name string, ps []ssa.Type) (ssa.Type, error) {
	switch name {
	case "Tuple":
		return &ssa.TupleType{Elems: ps}, nil
	case "Union":
		var rest []ssa.Type
		for _, p := range ps {
			if p != ssa.NoneType {
				rest = append(rest, p)
			}
		}
		if len(rest) == 1 && len(ps) == 2 {
			return &ssa.OptionalType{Elem: rest[0]}, nil
		}
		return &ssa.UnionType{Elems: ps}, nil
	case "Dict":
		if len(ps) == 2 {
			return &ssa.DictType{Key: ps[0], Value: ps[1]}, nil
		}
	case "List", "Optional", "Future", "Await", "RRef", "Final":
		if len(ps) != 1 {
			break
		}
		switch name {
		case "List":
			return &ssa.ListType{Elem: ps[0]}, nil
		case "Optional":
			switch p := ps[0].(type) {
			case *ssa.OptionalType:
				return p, nil
			case ssa.Basic:
				if p == ssa.NoneType {
					return p, nil
				}
			}
			return &ssa.OptionalType{Elem: ps[0]}, nil
		case "Final":
			return ps[0], nil
		}
		return &ssa.WrapType{Name: name, Elem: ps[0]}, nil
	}
	return nil, fmt.Errorf("type %s of %d parameters is not known", name, len(ps))
}

// typ is the type of instances of a class.
func (c *class) typ() ssa.Type {
	switch c.kind {
	case tupleClass:
		return c.tuple
	case enumClass:
		return &ssa.EnumType{Name: c.name}
	case interfaceClass:
		return &ssa.InterfaceType{Name: c.name}
	}
	return &ssa.ClassType{Name: c.name}
}

// implementers lists the live classes that have all methods of an interface.
func (l *loader) implementers(iface string) []string {
	ic := l.class(iface)
	if ic == nil {
		return nil
	}
	var names []string
	for m := range ic.methods {
		names = append(names, m)
	}
	sort.Strings(names)
	var out []string
classes:
	for _, name := range l.live {
		c := l.class(name)
		for _, m := range names {
			def, want := c.methods[m], ic.methods[m]
			if def == nil || len(def.Params) < len(want.Params) {
				continue classes
			}
		}
		out = append(out, name)
	}
	return out
}

// function is a function or method of the code.
type function struct {
	name   string // of the ssa.Func
	def    *pyast.Def
	src    *source
	self   *class
	params []ssa.SchemaArg // self included
	ret    ssa.Type        // nil if not annotated
	fn     *ssa.Func
	state  uint8 // 0 new, 1 queued, 2 being compiled, 3 done
}

// method gives a method of a class.
func (l *loader) method(c *class, name string) *function {
	qual := c.name + "." + name
	if f := l.functions[qual]; f != nil {
		return f
	}
	f := &function{name: qual, def: c.methods[name], src: c.src, self: c}
	l.functions[qual] = f
	l.signature(f)
	return f
}

// free gives a free function by its qualified name, nil if there is none.
func (l *loader) free(qual string) *function {
	if f := l.functions[qual]; f != nil {
		return f
	}
	prefix, name := split(qual)
	s := l.file(prefix)
	if s == nil || s.defs[name] == nil {
		return nil
	}
	f := &function{name: qual, def: s.defs[name], src: s}
	l.functions[qual] = f
	l.signature(f)
	return f
}

func (l *loader) signature(f *function) {
	kwOnly := false
	for i, p := range f.def.Params {
		if p.Name == "*" {
			kwOnly = true
			continue
		}
		a := ssa.SchemaArg{Name: p.Name, KwOnly: kwOnly}
		switch {
		case p.Type != nil:
			a.Type = l.typ(f.src, p.Type)
		case i == 0 && f.self != nil:
			a.Type = f.self.typ()
		default:
			a.Type = ssa.AnyTensor
		}
		if p.Default != nil {
			a.HasDefault = true
			a.Default = l.constant(f.src, p.Default, a.Type)
		}
		f.params = append(f.params, a)
	}
	if f.def.Ret != nil {
		f.ret = l.typ(f.src, f.def.Ret)
	}
}

// need queues a function for compilation.
func (l *loader) need(f *function) {
	if f.state == 0 {
		f.state = 1
		l.queue = append(l.queue, f)
	}
}
