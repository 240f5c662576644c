package jit

import (
	"math"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/frontend/jit/pyast"
	"github.com/aton-project/aton/ssa"
)

// binaryOps are the operators of Python; archives call them by name, hand-written code does not.
var binaryOps = map[string]string{"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "%": "remainder",
	"**": "pow", "@": "matmul", "==": "eq", "!=": "ne", "<": "lt", ">": "gt", "<=": "le", ">=": "ge", "&": "__and__",
	"|": "__or__", "^": "__xor__", "<<": "__lshift__", ">>": "__rshift__", "is": "__is__", "is not": "__isnot__"}

func (b *builder) expr(e pyast.Expr) val { return b.exprHint(e, nil) }

// exprHint compiles an expression; hint is the type that the context wants, or nil.
func (b *builder) exprHint(e pyast.Expr, hint ssa.Type) val {
	switch e := e.(type) {
	case *pyast.Name:
		return b.name(e)
	case *pyast.Num:
		b.at(e.At())
		return b.literal(b.number(e), nil)
	case *pyast.Str:
		b.at(e.At())
		return b.literal(ssa.Str(e.Value), nil)
	case *pyast.Attr:
		return b.attribute(e)
	case *pyast.Call:
		return b.call(e, hint)
	case *pyast.Index:
		return b.index(e, hint)
	case *pyast.Tuple:
		t := &tupleOf{}
		var hints []ssa.Type
		if tt, ok := strip(hint).(*ssa.TupleType); ok && len(tt.Elems) == len(e.Elems) {
			hints = tt.Elems
		}
		for i, x := range e.Elems {
			var h ssa.Type
			if hints != nil {
				h = hints[i]
			}
			t.elems = append(t.elems, b.exprHint(x, h))
		}
		b.at(e.At())
		t.block, t.last = b.block, b.block.Last()
		return t
	case *pyast.List:
		return b.list(e, hint)
	case *pyast.Dict:
		return b.dict(e, hint)
	case *pyast.Unary:
		return b.unary(e)
	case *pyast.Binary:
		return b.binary(e)
	}
	b.fail(e.At(), "", "this expression is not supported in archives")
	return nil
}

func strip(t ssa.Type) ssa.Type {
	if o, ok := t.(*ssa.OptionalType); ok {
		return o.Elem
	}
	return t
}

// literal gives a constant of a literal's own type.
func (b *builder) literal(l ssa.Literal, t ssa.Type) *ssa.Value {
	if t == nil {
		t = l.Type()
	}
	return b.constant(l, t)
}

func (b *builder) number(n *pyast.Num) ssa.Literal {
	l, err := parseNumber(n)
	if err != "" {
		b.fail(n.At(), "", "%s", err)
	}
	return l
}

func parseNumber(n *pyast.Num) (ssa.Literal, string) {
	if !n.Imag && !strings.ContainsAny(n.Text, ".eE") || strings.HasPrefix(n.Text, "0x") || strings.HasPrefix(n.Text, "0X") {
		i, err := strconv.ParseInt(n.Text, 0, 64)
		if err != nil {
			i, err = strconv.ParseInt(n.Text, 10, 64) // 007 is decimal here
		}
		if err != nil {
			return ssa.None, "the integer " + n.Text + " does not fit 64 bits"
		}
		return ssa.Int(i), ""
	}
	f, err := strconv.ParseFloat(n.Text, 64)
	if err != nil && !math.IsInf(f, 0) {
		return ssa.None, "the number " + n.Text + " is not understood"
	}
	if n.Imag {
		return ssa.Complex(complex(0, f)), ""
	}
	return ssa.Float(f), ""
}

func (b *builder) name(e *pyast.Name) val {
	if v, ok := b.scope.get(e.ID); ok {
		if u, bad := v.(*unusable); bad {
			b.fail(e.At(), "", "%s has no single type: %s", e.ID, u.why)
		}
		return v
	}
	b.at(e.At())
	switch e.ID {
	case "True":
		return b.literal(ssa.Bool(true), nil)
	case "False":
		return b.literal(ssa.Bool(false), nil)
	case "None":
		return b.none()
	case "inf":
		return b.literal(ssa.Float(math.Inf(1)), nil)
	case "nan":
		return b.literal(ssa.Float(math.NaN()), nil)
	case "infj":
		return b.literal(ssa.Complex(complex(0, math.Inf(1))), nil)
	case "nanj":
		return b.literal(ssa.Complex(complex(0, math.NaN())), nil)
	case "torch", "ops", "CONSTANTS", "__torch__":
		return &namespace{e.ID}
	}
	b.fail(e.At(), "", "%s is not defined here", e.ID)
	return nil
}

// value makes a val an *ssa.Value. hint is the type wanted, or nil.
func (b *builder) value(v val, hint ssa.Type, pos int) *ssa.Value {
	switch v := v.(type) {
	case *ssa.Value:
		return v
	case *outputs:
		if len(v.vals) == 0 {
			return b.none()
		}
		t := &ssa.TupleType{}
		for _, x := range v.vals {
			t.Elems = append(t.Elems, x.Type)
		}
		return b.emit(prim.TupleConstruct, v.vals, t).Result(0)
	case *tupleOf:
		t := &ssa.TupleType{}
		var hints []ssa.Type
		if tt, ok := strip(hint).(*ssa.TupleType); ok && len(tt.Elems) == len(v.elems) {
			hints = tt.Elems
			t.Name, t.Names = tt.Name, tt.Names
			if tt.Name != "" {
				t.Name, t.Names = "", nil // a plain tuple stays one
			}
		}
		var xs []*ssa.Value
		for i, x := range v.elems {
			var h ssa.Type
			if hints != nil {
				h = hints[i]
			}
			y := b.value(x, h, pos)
			xs = append(xs, y)
			t.Elems = append(t.Elems, y.Type)
		}
		o := b.emit(prim.TupleConstruct, xs, t)
		if v.block == b.block && simple(v.elems) {
			at := anchor{v.block, v.last}
			before := b.block.First()
			if last := b.placed[at]; last != nil { // another display was written at the same place
				before = last.Next()
			} else if v.last != nil {
				before = v.last.Next()
			}
			if before != nil && before != o {
				o.MoveBefore(before)
			}
			if b.placed == nil {
				b.placed = map[anchor]*ssa.Op{}
			}
			b.placed[at] = o
		}
		return o.Result(0)
	case *emptyList:
		var elem ssa.Type = ssa.AnyTensor
		if lt, ok := strip(hint).(*ssa.ListType); ok && !ssa.HasTypeVars(lt) {
			elem = lt.Elem
		}
		return b.emit(prim.ListConstruct, nil, &ssa.ListType{Elem: elem}).Result(0)
	case *funcRef:
		b.l.need(v.f)
		return b.function(v.f.name)
	case *unusable:
		b.fail(pos, "", "a name has no single type: %s", v.why)
	case *namespace:
		b.fail(pos, "", "%s is not a value", v.path)
	case *classRef:
		b.fail(pos, "", "class %s is not a value", PythonName(v.c.name))
	case *bound:
		b.fail(pos, "", "%s has no attribute %s", v.self.Type, v.name)
	}
	b.fail(pos, "", "this is not a value")
	return nil
}

// simple reports elements that are values already.
func simple(elems []val) bool {
	for _, e := range elems {
		if _, ok := e.(*ssa.Value); !ok {
			return false
		}
	}
	return true
}

// attribute compiles X.Name where it is not called.
func (b *builder) attribute(e *pyast.Attr) val {
	v := b.member(e)
	m, ok := v.(*bound)
	if !ok {
		return v
	}
	b.at(e.At())
	switch t := m.self.Type.(type) {
	case *ssa.ClassType:
		return b.getAttr(m.self, t, m.name, e.At())
	case *ssa.TupleType:
		for i, n := range t.Names {
			if n == m.name {
				o := b.emit(prim.TupleIndex, []*ssa.Value{m.self, b.integer(int64(i))}, t.Elems[i])
				return o.Result(0)
			}
		}
	case *ssa.EnumType:
		switch m.name {
		case "name":
			return b.emit(prim.EnumName, []*ssa.Value{m.self}, ssa.StrType).Result(0)
		case "value":
			var vt ssa.Type = ssa.AnyType
			if c := b.l.class(t.Name); c != nil && len(c.members) > 0 {
				vt = c.members[0].value.Type()
			}
			return b.emit(prim.EnumValue, []*ssa.Value{m.self}, vt).Result(0)
		}
	case *ssa.TensorType:
		switch m.name {
		case "dtype", "device", "layout", "is_cuda", "requires_grad", "is_quantized", "is_sparse", "grad", "data":
			return b.operator(ssa.Kind("prim::"+m.name), []argument{{v: m.self}}, e.At())
		}
		if k, ok := properties[m.name]; ok {
			return b.operator(k, []argument{{v: m.self}}, e.At())
		}
	case ssa.Basic:
		if t == ssa.DeviceType && (m.name == "type" || m.name == "index") {
			return b.operator(ssa.Kind("prim::"+m.name), []argument{{v: m.self}}, e.At())
		}
	}
	b.fail(e.At(), "", "%s has no attribute %s", m.self.Type, m.name)
	return nil
}

// properties are the attributes of a tensor that PyTorch defines in TorchScript,
// with what they call. Archives of its first releases call them as operators:
// ops.prim.shape(x).
var properties = map[string]ssa.Kind{
	"shape": "aten::size",
	"ndim":  "aten::dim",
	"T":     "aten::numpy_T",
	"H":     "aten::matrix_H",
	"mT":    "aten::mT",
	"mH":    "aten::mH",
}

func (b *builder) getAttr(obj *ssa.Value, t *ssa.ClassType, name string, pos int) val {
	c := b.l.class(t.Name)
	if c == nil {
		b.fail(pos, "the archive is not whole: save the module again with torch.jit.save", "the code of class %s is missing", t.Name)
	}
	if x, ok := c.finals[name]; ok {
		return b.literal(b.l.constant(c.src, x, c.types[name]), c.types[name])
	}
	at := c.attrs[name]
	if at == nil {
		b.fail(pos, "", "%s has no attribute %s", PythonName(t.Name), name)
	}
	o := b.emit(prim.GetAttr, []*ssa.Value{obj}, at)
	o.SetAttr("name", ssa.Str(name))
	return o.Result(0)
}

// member resolves X.Name: a fixed name, a class member, or a method or attribute of a value.
func (b *builder) member(e *pyast.Attr) val {
	var x val
	if path := dotted(e); path != "" {
		root, _, _ := strings.Cut(path, ".")
		if _, local := b.scope.get(root); !local {
			switch root {
			case "__torch__":
				return b.qualified(path, e.At())
			case "CONSTANTS":
				return b.tableConstant(path, e.At())
			case "torch", "ops":
				return &namespace{path}
			}
		}
	}
	x = b.expr(e.X)
	switch v := x.(type) {
	case *ssa.Value:
		return &bound{v, e.Name}
	case *outputs, *tupleOf:
		return &bound{b.value(v, nil, e.At()), e.Name}
	case *classRef:
		return b.classMember(v.c, e.Name, e.At())
	}
	b.fail(e.At(), "", "this has no member %s", e.Name)
	return nil
}

func (b *builder) tableConstant(path string, pos int) val {
	n := strings.TrimPrefix(path, "CONSTANTS.c")
	i, err := strconv.Atoi(n)
	if err != nil || i < 0 || i >= len(b.l.constants) {
		b.fail(pos, "", "%s is not in constants.pkl, which has %d entries", path, len(b.l.constants))
	}
	b.at(pos)
	c := b.l.constants[i]
	key := poolKey{kind: ssa.TensorLit, text: n}
	if v := b.pool[key]; v != nil {
		return v
	}
	var t ssa.Type = c.Type()
	v := b.constant(c, t)
	b.pool[key] = v
	return v
}

// qualified resolves __torch__.a.b.c.
func (b *builder) qualified(path string, pos int) val {
	if f := b.l.free(path); f != nil {
		return &funcRef{f}
	}
	if c := b.l.class(path); c != nil {
		return &classRef{c}
	}
	prefix, name := split(path)
	if c := b.l.class(prefix); c != nil {
		return b.classMember(c, name, pos)
	}
	b.fail(pos, "", "the code of %s is missing", path)
	return nil
}

func (b *builder) classMember(c *class, name string, pos int) val {
	if c.kind == enumClass {
		for _, m := range c.members {
			if m.name == name {
				b.at(pos)
				return b.constant(ssa.Enum(c.name+"."+name, m.value), c.typ())
			}
		}
	}
	if name == "__new__" || c.methods[name] != nil {
		return &unbound{c, name}
	}
	b.fail(pos, "", "%s has no member %s", PythonName(c.name), name)
	return nil
}

func (b *builder) list(e *pyast.List, hint ssa.Type) val {
	var elem ssa.Type
	if lt, ok := strip(hint).(*ssa.ListType); ok {
		elem = lt.Elem
	}
	if len(e.Elems) == 0 && elem == nil {
		return &emptyList{}
	}
	var xs []*ssa.Value
	for _, x := range e.Elems {
		xs = append(xs, b.value(b.exprHint(x, elem), elem, x.At()))
	}
	b.at(e.At())
	t := elem
	if len(xs) > 0 {
		u := general(xs[0].Type)
		for _, x := range xs[1:] {
			var ok bool
			if u, ok = ssa.UnifyTypes(u, general(x.Type)); !ok && elem == ssa.AnyType {
				u = elem
				break // a tuple whose length is asked for
			} else if !ok {
				b.fail(e.At(), "", "the list holds %s and %s", xs[0].Type, x.Type)
			}
		}
		if elem == nil || !ssa.IsSubtype(u, elem) {
			t = u
		}
	}
	return b.emit(prim.ListConstruct, xs, &ssa.ListType{Elem: t}).Result(0)
}

func (b *builder) dict(e *pyast.Dict, hint ssa.Type) val {
	dt, _ := strip(hint).(*ssa.DictType)
	var kt, vt ssa.Type
	if dt != nil {
		kt, vt = dt.Key, dt.Value
	}
	var xs []*ssa.Value
	for i := range e.Keys {
		k := b.value(b.exprHint(e.Keys[i], kt), kt, e.At())
		v := b.value(b.exprHint(e.Values[i], vt), vt, e.At())
		xs = append(xs, k, v)
	}
	b.at(e.At())
	if dt == nil {
		dt = &ssa.DictType{Key: ssa.StrType, Value: ssa.AnyTensor}
		if len(xs) > 0 {
			dt.Key, dt.Value = xs[0].Type, general(xs[1].Type)
			for i := 3; i < len(xs); i += 2 {
				u, ok := ssa.UnifyTypes(dt.Value, general(xs[i].Type))
				if !ok {
					b.fail(e.At(), "", "the dict holds %s and %s", dt.Value, xs[i].Type)
				}
				dt.Value = u
			}
		}
	}
	return b.emit(prim.DictConstruct, xs, dt).Result(0)
}

func (b *builder) unary(e *pyast.Unary) val {
	if e.Op == "-" {
		switch x := e.X.(type) {
		case *pyast.Num:
			b.at(e.At())
			if x.Text == leastInt {
				return b.literal(ssa.Int(math.MinInt64), nil)
			}
			return b.literal(negated(b.number(x)), nil)
		case *pyast.Name:
			if _, local := b.scope.get(x.ID); !local && (x.ID == "inf" || x.ID == "nan") {
				b.at(e.At())
				if x.ID == "nan" {
					return b.literal(ssa.Float(math.NaN()), nil)
				}
				return b.literal(ssa.Float(math.Inf(-1)), nil)
			}
		}
	}
	name := map[string]string{"-": "neg", "~": "bitwise_not", "not": "__not__"}[e.Op]
	if name == "" {
		b.fail(e.At(), "", "unary %s is not supported", e.Op)
	}
	if e.Op == "not" {
		return b.operator("aten::__not__", []argument{{v: b.condition(e.X)}}, e.At())
	}
	return b.operator(ssa.Kind("aten::"+name), []argument{{v: b.expr(e.X)}}, e.At())
}

// leastInt is the least integer of 64 bits without its sign, which alone does not fit.
const leastInt = "9223372036854775808"

func negated(l ssa.Literal) ssa.Literal {
	switch l.Kind {
	case ssa.IntLit:
		return ssa.Int(-l.Int())
	case ssa.FloatLit:
		return ssa.Float(-l.Float())
	case ssa.ComplexLit:
		return ssa.Complex(-l.Complex())
	}
	return l
}

func (b *builder) binary(e *pyast.Binary) val {
	if e.Op == "+" || e.Op == "-" { // 0.+3.j is a literal
		if l, ok := b.complexLiteral(e); ok {
			b.at(e.At())
			return b.literal(l, nil)
		}
	}
	switch e.Op {
	case "in", "not in":
		x, y := b.expr(e.X), b.expr(e.Y)
		v := b.operator("aten::__contains__", []argument{{v: y}, {v: x}}, e.At())
		if e.Op == "not in" {
			v = b.operator("aten::__not__", []argument{{v: v}}, e.At())
		}
		return v
	case "and", "or":
		b.fail(e.At(), "save the module again with torch.jit.save", "%s is not supported in archives", e.Op)
	}
	name := binaryOps[e.Op]
	if name == "" {
		b.fail(e.At(), "", "%s is not supported", e.Op)
	}
	x, y := b.expr(e.X), b.expr(e.Y)
	return b.operator(ssa.Kind("aten::"+name), []argument{{v: x}, {v: y}}, e.At())
}

func (b *builder) complexLiteral(e *pyast.Binary) (ssa.Literal, bool) {
	im, ok := constantPart(e.Y)
	if !ok || im.Kind != ssa.ComplexLit {
		return ssa.None, false
	}
	re, ok := constantPart(e.X)
	if !ok || !re.IsNumber() {
		return ssa.None, false
	}
	// built from parts: inf + nan*j must not meet arithmetic
	i := imag(im.Complex())
	if e.Op == "-" {
		i = -i
	}
	return ssa.Complex(complex(re.Float(), i)), true
}

func constantPart(e pyast.Expr) (ssa.Literal, bool) {
	switch e := e.(type) {
	case *pyast.Num:
		l, err := parseNumber(e)
		return l, err == ""
	case *pyast.Name:
		switch e.ID {
		case "inf":
			return ssa.Float(math.Inf(1)), true
		case "nan":
			return ssa.Float(math.NaN()), true
		case "infj":
			return ssa.Complex(complex(0, math.Inf(1))), true
		case "nanj":
			return ssa.Complex(complex(0, math.NaN())), true
		}
	case *pyast.Unary:
		if e.Op == "-" {
			l, ok := constantPart(e.X)
			return negated(l), ok
		}
	}
	return ssa.None, false
}

func (b *builder) index(e *pyast.Index, hint ssa.Type) val {
	base := b.expr(e.X)
	if t, ok := base.(*tupleOf); ok && len(e.Items) == 1 {
		if n, ok := b.staticInt(e.Items[0]); ok {
			if n < 0 {
				n += int64(len(t.elems))
			}
			if n >= 0 && n < int64(len(t.elems)) {
				return t.elems[n]
			}
		}
	}
	x := b.value(base, nil, e.At())
	if len(e.Items) != 1 {
		b.fail(e.At(), "", "subscripts with several indices do not occur in archives")
	}
	it := e.Items[0]
	switch t := x.Type.(type) {
	case *ssa.TupleType:
		return b.tupleIndex(x, t, it, e.At())
	case *ssa.ListType, *ssa.DictType:
		if s, ok := it.(*pyast.Slice); ok {
			return b.slice(x, s, e.At())
		}
		i := b.expr(it)
		return b.operator("aten::__getitem__", []argument{{v: x}, {v: i}}, e.At())
	case *ssa.ClassType: // a ModuleList by a number that is not known
		i := b.value(b.expr(it), nil, it.At())
		if hint == nil {
			b.fail(e.At(), "", "a module container is indexed without the type of the result")
		}
		b.at(e.At())
		return b.emit(prim.ContainerIndex, []*ssa.Value{x, i}, hint).Result(0)
	case *ssa.TensorType:
		if s, ok := it.(*pyast.Slice); ok {
			return b.slice(x, s, e.At())
		}
		i := b.expr(it)
		if iv, ok := i.(*ssa.Value); ok && iv.Type == ssa.IntType {
			return b.operator("aten::select", []argument{{v: x}, {v: b.integer(0)}, {v: i}}, e.At())
		}
	case ssa.Basic:
		if t == ssa.StrType {
			if s, ok := it.(*pyast.Slice); ok {
				return b.slice(x, s, e.At())
			}
			i := b.expr(it)
			return b.operator("aten::__getitem__", []argument{{v: x}, {v: i}}, e.At())
		}
	}
	b.fail(e.At(), "", "a subscript of %s is not supported in archives", x.Type)
	return nil
}

func (b *builder) slice(x *ssa.Value, s *pyast.Slice, pos int) val {
	part := func(e pyast.Expr, def *ssa.Value) val {
		if e == nil {
			return def
		}
		return b.expr(e)
	}
	args := []argument{{v: x}}
	if ssa.AsTensor(x.Type) != nil {
		args = append(args, argument{v: b.integer(0)})
	}
	args = append(args, argument{v: part(s.Lo, b.none())}, argument{v: part(s.Hi, b.none())}, argument{v: part(s.Step, b.integer(1))})
	return b.operator("aten::slice", args, pos)
}

// staticInt evaluates an index that must be known while compiling.
func (b *builder) staticInt(e pyast.Expr) (int64, bool) {
	l, ok := constantPart(e)
	return l.Int(), ok && l.Kind == ssa.IntLit
}

func (b *builder) tupleIndex(x *ssa.Value, t *ssa.TupleType, it pyast.Expr, pos int) val {
	n := int64(len(t.Elems))
	if s, ok := it.(*pyast.Slice); ok {
		lo, hi := int64(0), n
		if s.Lo != nil {
			lo, ok = b.staticInt(s.Lo)
		}
		if ok && s.Hi != nil {
			hi, ok = b.staticInt(s.Hi)
		}
		if !ok || s.Step != nil {
			b.fail(pos, "", "a tuple is sliced by bounds that are not constant")
		}
		if lo < 0 {
			lo += n
		}
		if hi < 0 {
			hi += n
		}
		lo, hi = min(max(lo, 0), n), min(max(hi, 0), n)
		hi = max(lo, hi)
		b.at(pos)
		o := b.emit(prim.TupleSlice, []*ssa.Value{x}, &ssa.TupleType{Elems: t.Elems[lo:hi:hi]})
		o.SetAttr("beg", ssa.Int(lo))
		o.SetAttr("end", ssa.Int(hi))
		return o.Result(0)
	}
	i, ok := b.staticInt(it)
	if ok {
		k := i
		if k < 0 {
			k += n
		}
		if k < 0 || k >= n {
			b.fail(pos, "", "index %d of a tuple of %d", i, n)
		}
		b.at(pos)
		return b.emit(prim.TupleIndex, []*ssa.Value{x, b.integer(i)}, t.Elems[k]).Result(0)
	}
	iv := b.value(b.expr(it), ssa.IntType, pos)
	u := t.Elems[0]
	for _, e := range t.Elems[1:] {
		if u, ok = ssa.UnifyTypes(u, e); !ok {
			b.fail(pos, "", "a tuple of different types is indexed by a number that is not constant")
		}
	}
	b.at(pos)
	return b.emit(prim.TupleIndex, []*ssa.Value{x, iv}, u).Result(0)
}

// constant evaluates a literal expression: a default, a class constant, an enum member's value.
func (l *loader) constant(s *source, e pyast.Expr, t ssa.Type) ssa.Literal {
	t = strip(t)
	switch x := e.(type) {
	case *pyast.Num, *pyast.Unary:
		if v, ok := constantPart(e); ok {
			if t == ssa.FloatType && v.Kind == ssa.IntLit {
				return ssa.Float(v.Float())
			}
			return v
		}
	case *pyast.Str:
		return ssa.Str(x.Value)
	case *pyast.Binary:
		b := &builder{l: l}
		if v, ok := b.complexLiteral(x); ok {
			return v
		}
	case *pyast.Name:
		switch x.ID {
		case "True":
			return ssa.Bool(true)
		case "False":
			return ssa.Bool(false)
		case "None":
			return ssa.None
		}
		if v, ok := constantPart(e); ok {
			return v
		}
	case *pyast.Tuple, *pyast.List:
		var elems []pyast.Expr
		out := ssa.Literal{Kind: ssa.TupleLit}
		if list, ok := x.(*pyast.List); ok {
			elems, out.Kind = list.Elems, ssa.ListLit
		} else {
			elems = x.(*pyast.Tuple).Elems
		}
		for i, el := range elems {
			var et ssa.Type
			switch t := t.(type) {
			case *ssa.ListType:
				et = t.Elem
			case *ssa.TupleType:
				if i < len(t.Elems) {
					et = t.Elems[i]
				}
			}
			out.Elems = append(out.Elems, l.constant(s, el, et))
		}
		if lt, ok := t.(*ssa.ListType); ok && out.Kind == ssa.ListLit {
			out.Elem = lt.Elem
		}
		return out
	case *pyast.Dict:
		var out ssa.Literal
		out.Kind = ssa.DictLit
		dt, _ := t.(*ssa.DictType)
		for i := range x.Keys {
			var kt, vt ssa.Type
			if dt != nil {
				kt, vt = dt.Key, dt.Value
			}
			out.Elems = append(out.Elems, l.constant(s, x.Keys[i], kt), l.constant(s, x.Values[i], vt))
		}
		return out
	case *pyast.Attr:
		path := dotted(x)
		if i, ok := strings.CutPrefix(path, "CONSTANTS.c"); ok {
			if n, err := strconv.Atoi(i); err == nil && n >= 0 && n < len(l.constants) {
				return l.constants[n]
			}
		}
		if prefix, name := split(path); strings.HasPrefix(path, "__torch__.") {
			if c := l.class(prefix); c != nil {
				for _, m := range c.members {
					if m.name == name {
						return ssa.Enum(path, m.value)
					}
				}
			}
		}
	case *pyast.Call:
		switch dotted(x.Fn) {
		case "annotate":
			if len(x.Args) == 2 {
				return l.constant(s, x.Args[1].Value, l.typ(s, x.Args[0].Value))
			}
		case "torch.device":
			if len(x.Args) == 1 {
				if d, ok := x.Args[0].Value.(*pyast.Str); ok {
					return ssa.Device(d.Value)
				}
			}
		}
		if fn := dotted(x.Fn); strings.HasPrefix(fn, "__torch__.") { // a NamedTuple
			if c := l.class(fn); c != nil && c.kind == tupleClass {
				out := ssa.Literal{Kind: ssa.TupleLit}
				for i, a := range x.Args {
					var et ssa.Type
					if i < len(c.tuple.Elems) {
						et = c.tuple.Elems[i]
					}
					out.Elems = append(out.Elems, l.constant(s, a.Value, et))
				}
				return out
			}
		}
	}
	l.failAt(s, e.At(), "", "a constant is expected here")
	return ssa.None
}
