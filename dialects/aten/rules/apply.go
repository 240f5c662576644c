package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/pattern"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// apply converts the operator at hand by the first rule that fits it, and declines if there is none.
func apply(l *aten.Lowering, list []*rule) []*ssa.Value {
	var why []string
	for _, u := range list {
		m := &match{l: l, u: u, made: map[string]*ssa.Value{}}
		if no := m.fits(); no != "" {
			why = append(why, u.describe()+": "+no)
			continue
		}
		u.used.Store(true)
		return m.build()
	}
	l.Decline("no rule fits: %s", strings.Join(why, "; "))
	return nil
}

// match is a rule on its way to be applied to an operator.
type match struct {
	l      *aten.Lowering
	u      *rule
	found  pattern.Match
	made   map[string]*ssa.Value // %x: what lines behind to have made
	elems  []*ssa.Value          // the elements of a result that is a list
	isList bool
	line   *toLine // at work
}

// fits looks whether the rule holds for the operator at hand, and says why not.
func (m *match) fits() string {
	if no := m.found.WhyNot(program{}, m.u.from, m.l.Node); no != "" {
		return no
	}
	for i := range m.u.where {
		if no := m.holds(&m.u.where[i]); no != "" {
			return no
		}
	}
	return ""
}

// program is how rules of a file see a program: by what numbers and lists its values hold.
type program struct{}

func (program) IsConst(l *pattern.Sought, v *ssa.Value) bool {
	_, known := aten.LiteralOf(v)
	return known
}

func (program) Elems(v *ssa.Value) ([]*ssa.Value, bool) { return aten.ListElems(v) }
func (program) Bind(lit ssa.Literal) ssa.Literal        { return number(lit) }
func (program) Same(a, b ssa.Literal) bool              { return same(a, b) }
func (program) Alone() bool                             { return false }

func (program) Attr(o *ssa.Op, name string) ssa.Literal {
	v, ok := o.Attr(name)
	if !ok {
		v, _ = onnx.Lookup(o.Kind.Name(), onnx.Newest).Attr(name).Value()
	}
	return v
}

func (program) IsDefault(o *ssa.Op, a *ssa.Attr) bool {
	d := onnx.Lookup(o.Kind.Name(), onnx.Newest).Attr(a.Name)
	if d == nil {
		return true
	}
	v, ok := d.Value()
	return ok && same(a.Value, v)
}

// Literal is what an operand holds, a tensor of one element as a number. A constant of ONNX is a number or a list where it can be.
func (program) Literal(l *pattern.Sought, v *ssa.Value) (ssa.Literal, bool) {
	lit, known := aten.LiteralOf(v)
	if !isONNX(l) || !known || lit.Kind != ssa.TensorLit || !lit.Tensor.HasData() {
		return lit, known
	}
	switch t := lit.Tensor; {
	case len(t.Shape) == 0:
		return number(lit), true
	case len(t.Shape) == 1 && t.NumElements() <= maxList && (t.DType.IsInt() || t.DType == tensor.Bool):
		return ssa.Ints(t.Int64s()...), true
	case len(t.Shape) == 1 && t.NumElements() <= maxList && t.DType.IsFloat():
		return ssa.Floats(t.Float64s()...), true
	}
	return lit, true
}

// maxList is the number of elements up to which a constant of ONNX is compared with lists.
const maxList = 64

// number takes a tensor of one element as a number, as PyTorch does where it wants one.
func number(l ssa.Literal) ssa.Literal {
	if l.Kind != ssa.TensorLit || l.Tensor.NumElements() != 1 || !l.Tensor.HasData() {
		return l
	}
	switch d := l.Tensor.DType; {
	case d == tensor.Bool:
		return ssa.Bool(l.Tensor.Int64s()[0] != 0)
	case d.IsInt() && d != tensor.Uint64:
		return ssa.Int(l.Tensor.Int64s()[0])
	case d.IsFloat():
		return ssa.Float(l.Tensor.Float64s()[0])
	}
	return l
}

func isNumber(l ssa.Literal) bool { return l.IsNumber() && l.Kind != ssa.ComplexLit }

// same compares literals: numbers by their values, whatever their types, and lists and tuples by their elements.
func same(a, b ssa.Literal) bool {
	if isNumber(a) && isNumber(b) {
		return compare(a, b) == 0
	}
	listed := func(l ssa.Literal) bool { return l.Kind == ssa.ListLit || l.Kind == ssa.TupleLit }
	if listed(a) && listed(b) {
		return slices.EqualFunc(a.Elems, b.Elems, same)
	}
	return a.Equal(b)
}

// compare orders two real numbers; 2 where one is NaN.
func compare(a, b ssa.Literal) int {
	if a.Kind != ssa.FloatLit && b.Kind != ssa.FloatLit {
		switch x, y := a.Int(), b.Int(); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	switch x, y := a.Float(), b.Float(); {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	}
	return 2
}

// holds computes a condition, and says why it does not hold.
func (m *match) holds(c *condition) string {
	left, no := m.term(&c.Left)
	if no != "" {
		return no
	}
	text := strings.TrimSpace(c.text)
	if c.Op == "" {
		if isNumber(left) && left.Bool() {
			return ""
		}
		return text + " does not hold"
	}
	right, no := m.term(&c.Right)
	if no != "" {
		return no
	}
	var ok bool
	switch c.Op {
	case "==":
		ok = same(left, right)
	case "!=":
		ok = !same(left, right)
	case "in", "not in":
		if right.Kind != ssa.ListLit && right.Kind != ssa.TupleLit {
			return text + ": the right side is no list"
		}
		ok = slices.ContainsFunc(right.Elems, func(e ssa.Literal) bool { return same(left, e) }) == (c.Op == "in")
	default:
		if !isNumber(left) || !isNumber(right) {
			return text + ": only numbers have an order"
		}
		order := compare(left, right)
		ok = order == -1 && c.Op[0] == '<' || order == 1 && c.Op[0] == '>' || order == 0 && len(c.Op) == 2
	}
	if ok {
		return ""
	}
	if c.Left.Kind == pattern.Literal {
		return text + " does not hold"
	}
	return fmt.Sprintf("%s does not hold: it is %s", text, spell(&c.Left, left))
}

// spell writes the value of a term; dtypes by their names.
func spell(t *pattern.Term, l ssa.Literal) string {
	if isDType(t) && l.Kind == ssa.IntLit {
		return tensor.FromONNX(int(l.Int())).Spec()
	}
	return l.String()
}

// term computes a term of a condition or of an attribute; no says why that cannot be done. A dtype is its number in ONNX.
func (m *match) term(t *pattern.Term) (v ssa.Literal, no string) {
	switch t.Kind {
	case pattern.Literal:
		return t.Literal, ""
	case pattern.Bound:
		return m.found.Literal(t.Name), ""
	case pattern.List:
		elems := make([]ssa.Literal, len(t.Terms))
		for i := range t.Terms {
			if elems[i], no = m.term(&t.Terms[i]); no != "" {
				return ssa.None, no
			}
		}
		return pattern.ListOf(elems), ""
	case pattern.Word:
		if t.Name == "opset" {
			return ssa.Int(int64(m.l.Opset)), ""
		}
		d, _ := pattern.DType(t.Name)
		return ssa.Int(int64(d.ONNX())), ""
	}
	return m.call(t)
}

func (m *match) call(t *pattern.Term) (ssa.Literal, string) {
	of := &t.Terms[0]
	if of.Kind == pattern.Bound {
		lit := m.found.Literal(of.Name)
		switch {
		case t.Name == "len" && (lit.Kind == ssa.ListLit || lit.Kind == ssa.TupleLit):
			return ssa.Int(int64(len(lit.Elems))), ""
		case t.Name == "len":
			return ssa.None, fmt.Sprintf("$%s is %s, which is no list", of.Name, lit)
		case lit.Kind == ssa.IntLit && tensor.FromCode(int(lit.Int())) != tensor.Undefined:
			return ssa.Int(int64(tensor.FromCode(int(lit.Int())).ONNX())), ""
		}
		return ssa.None, fmt.Sprintf("$%s is %s, which is no dtype", of.Name, lit)
	}
	if t.Name == "len" {
		es, ok := m.list(of.Name)
		if !ok {
			return ssa.None, fmt.Sprintf("the length of %%%s is not known", of.Name)
		}
		return ssa.Int(int64(len(es))), ""
	}
	if t.Name == "const" {
		_, known := aten.LiteralOf(m.found.Value(of.Name))
		return ssa.Bool(known), ""
	}
	v := m.value(of.Name)
	typ := v.Tensor()
	if typ == nil {
		return ssa.None, fmt.Sprintf("%%%s is no tensor", of.Name)
	}
	if t.Name == "dtype" {
		if typ.DType == tensor.Undefined {
			return ssa.None, fmt.Sprintf("the dtype of %%%s is not known", of.Name)
		}
		return ssa.Int(int64(typ.DType.ONNX())), ""
	}
	if !typ.Ranked {
		return ssa.None, fmt.Sprintf("the rank of %%%s is not known", of.Name)
	}
	switch t.Name {
	case "rank":
		return ssa.Int(int64(len(typ.Dims))), ""
	case "static":
		_, static := typ.Static()
		return ssa.Bool(static), ""
	}
	axis := int(t.Terms[1].Literal.Int())
	if axis < 0 {
		axis += len(typ.Dims)
	}
	if axis < 0 || axis >= len(typ.Dims) {
		return ssa.None, fmt.Sprintf("%%%s has no axis %d", of.Name, t.Terms[1].Literal.Int())
	}
	n, ok := typ.Dims[axis].Int()
	if !ok {
		return ssa.None, fmt.Sprintf("the size of axis %d of %%%s is %s", axis, of.Name, typ.Dims[axis])
	}
	return ssa.Int(n), ""
}

// list gives the elements of a list of the program.
func (m *match) list(name string) ([]*ssa.Value, bool) {
	v := m.found.Value(name)
	if v == nil {
		return nil, false
	}
	return aten.ListElems(v)
}

// value is the ONNX value of a name.
func (m *match) value(name string) *ssa.Value {
	if v := m.made[name]; v != nil {
		return v
	}
	return m.l.Value(m.found.Value(name))
}

// fail abandons the conversion: the rule fits, and what it makes is wrong.
func (m *match) fail(format string, args ...any) {
	where := m.u.describe()
	if m.line != nil {
		where = fmt.Sprintf("rule %s (%s)", m.u.name, m.line.at)
	}
	m.l.Fail("%s: %s", where, fmt.Sprintf(format, args...))
}

// build makes the operators of the rule, and gives the results of the root.
func (m *match) build() []*ssa.Value {
	if err := onnx.Build(func() {
		for i := range m.u.to {
			m.line = &m.u.to[i]
			m.make(m.line)
		}
	}); err != nil {
		m.fail("%v", err)
	}
	root := m.u.root()
	if m.isList {
		if len(root.Results) == 1 {
			return m.elems
		}
		m.fail("a list beside other results is a sequence: onnx::SequenceConstruct(...)")
	}
	out := make([]*ssa.Value, len(root.Results))
	for i, res := range root.Results {
		out[i] = m.value(res.Name)
	}
	return out
}

// make makes the operator of a line.
func (m *match) make(l *toLine) {
	if l.Kind == "" {
		for i := range l.Operands {
			t := &l.Operands[i].Term
			if t.Kind == pattern.List {
				if !listResult(m.l.Node) {
					m.fail("a list is given for a result that is none")
				}
				m.isList = true
				for k := range t.Terms {
					m.elems = append(m.elems, m.value(t.Terms[k].Name))
				}
				continue
			}
			m.made[l.Results[i].Name] = m.operand(t)[0]
		}
		return
	}
	var operands []*ssa.Value
	for i := range l.Operands {
		operands = append(operands, m.operand(&l.Operands[i].Term)...)
	}
	schema := onnx.Lookup(l.Kind.Name(), onnx.Newest)
	kind := l.Kind
	switch kind.Namespace() {
	case onnx.Namespace:
	case "ai.onnx":
		kind = ssa.Kind(onnx.Namespace + "::" + kind.Name())
	default:
		schema = nil
	}
	vs := m.l.Create(kind, len(l.Results), operands, m.attrs(l, schema)...)
	for i, res := range l.Results {
		m.state(vs[i], res.Type, schema != nil)
		m.made[res.Name] = vs[i]
	}
}

func listResult(o *ssa.Op) bool {
	if len(o.Results) != 1 {
		return false
	}
	lt, ok := o.Results[0].Type.(*ssa.ListType)
	return ok && ssa.AsTensor(lt.Elem) != nil
}

// operand gives the values that an operand of a line stands for: one, or the elements of a list.
func (m *match) operand(t *pattern.Term) []*ssa.Value {
	one := func(v *ssa.Value) []*ssa.Value { return []*ssa.Value{v} }
	switch t.Kind {
	case pattern.Absent:
		return one(nil)
	case pattern.Value:
		if !t.Spread {
			return one(m.value(t.Name))
		}
		es, ok := m.list(t.Name)
		if !ok {
			m.fail("the length of the list %%%s is not known", t.Name)
		}
		out := make([]*ssa.Value, len(es))
		for i, e := range es {
			if lit, known := aten.LiteralOf(e); !known || !lit.IsNone() {
				out[i] = m.l.Value(e)
			}
		}
		return out
	case pattern.Bound:
		lit := m.found.Literal(t.Name)
		if lit.IsNone() {
			return one(nil)
		}
		return one(m.constant(lit, tensor.Undefined))
	case pattern.Call: // const(VALUE, TYPE)
		lit, _ := m.term(&t.Terms[0])
		like := &t.Terms[1]
		d, _ := pattern.DType(like.Name)
		if like.Kind == pattern.Value {
			d = m.l.DType(m.value(like.Name))
		}
		return one(m.constant(lit, d))
	}
	lit, _ := m.term(t) // the check leaves literals, and lists of these and $p
	return one(m.constant(lit, tensor.Undefined))
}

// constant makes a tensor of a number or a list of numbers: of the given type, or of that which PyTorch gives these.
func (m *match) constant(lit ssa.Literal, d tensor.DType) *ssa.Value {
	if lit.Kind == ssa.TensorLit && d == tensor.Undefined {
		return m.l.Const(lit.Tensor)
	}
	lit = number(lit)
	elems, shape := []ssa.Literal{lit}, []int64{}
	if lit.Kind == ssa.ListLit || lit.Kind == ssa.TupleLit {
		elems, shape = lit.Elems, []int64{int64(len(lit.Elems))}
	}
	natural := tensor.Int64
	for i, e := range elems {
		switch {
		case e.Kind == ssa.StrLit && (d == tensor.Undefined || d == tensor.String):
			natural = tensor.String
		case !isNumber(e):
			m.fail("%s is no constant tensor", lit)
		case e.Kind == ssa.FloatLit:
			natural = tensor.Float32
		case e.Kind == ssa.BoolLit && i == 0:
			natural = tensor.Bool
		}
	}
	if d == tensor.Undefined {
		d = natural
	}
	switch {
	case d == tensor.String:
		strs := make([]string, len(elems))
		for i, e := range elems {
			if e.Kind != ssa.StrLit {
				m.fail("%s is no constant tensor", lit)
			}
			strs[i] = e.Str()
		}
		return m.l.Const(tensor.Strings(shape, strs))
	case d.IsInt() || d == tensor.Bool:
		ints := make([]int64, len(elems))
		for i, e := range elems {
			if e.Kind == ssa.FloatLit && d != tensor.Bool {
				if f := e.Float(); f != float64(int64(f)) {
					m.fail("%s is no %s", e, d.Spec())
				}
				ints[i] = int64(e.Float())
				continue
			}
			ints[i] = e.Int()
			if d == tensor.Bool {
				ints[i] = 0
				if e.Bool() {
					ints[i] = 1
				}
			}
		}
		t := tensor.FromInts(d, shape, ints)
		if d != tensor.Uint64 && !slices.Equal(t.Int64s(), ints) || d == tensor.Uint64 && len(ints) > 0 && slices.Min(ints) < 0 {
			m.fail("%s does not fit %s", lit, d.Spec())
		}
		return m.l.Const(t)
	case d.IsFloat():
		floats := make([]float64, len(elems))
		for i, e := range elems {
			floats[i] = e.Float()
		}
		return m.l.Const(tensor.FromFloats(d, shape, floats))
	}
	m.fail("there are no constants of %s", d.Spec())
	return nil
}

// attrs gives the attributes of a line. One that is None is left out.
func (m *match) attrs(l *toLine, schema *onnx.OpSchema) []ssa.Attr {
	var out []ssa.Attr
	for i := range l.Attrs {
		a := &l.Attrs[i]
		lit, no := m.term(&a.Value)
		if no != "" {
			m.fail("attribute %s: %s", a.Name, no)
		}
		if lit.IsNone() {
			continue
		}
		var d *onnx.AttrSchema
		if schema != nil {
			d = schema.Attr(a.Name)
		}
		v, ok := convert(lit, d)
		if !ok {
			m.fail("attribute %s cannot be %s", a.Name, lit)
		}
		out = append(out, ssa.Attr{Name: a.Name, Value: v})
	}
	return out
}

// convert makes the value of an attribute of a literal: as the operator declares it, or, without a declaration, as far as
// ONNX has such values.
func convert(l ssa.Literal, d *onnx.AttrSchema) (ssa.Literal, bool) {
	whole := func(l ssa.Literal) (int64, bool) {
		if !isNumber(l) || l.Kind == ssa.FloatLit && l.Float() != float64(int64(l.Float())) {
			return 0, false
		}
		if l.Kind == ssa.FloatLit {
			return int64(l.Float()), true
		}
		return l.Int(), true
	}
	if d == nil {
		switch l.Kind {
		case ssa.BoolLit:
			return ssa.Int(l.Int()), true
		case ssa.IntLit, ssa.FloatLit, ssa.StrLit, ssa.TensorLit:
			return l, true
		case ssa.DeviceLit:
			return ssa.Str(l.Str()), true
		case ssa.ListLit, ssa.TupleLit:
			elems := make([]ssa.Literal, len(l.Elems))
			for i, e := range l.Elems {
				v, ok := convert(e, nil)
				if !ok || v.Kind == ssa.ListLit || v.Kind == ssa.TensorLit || i > 0 && (v.Kind == ssa.StrLit) != (elems[0].Kind == ssa.StrLit) {
					return ssa.None, false
				}
				elems[i] = v
			}
			return pattern.ListOf(elems), true
		}
		return ssa.None, false
	}
	elems := []ssa.Literal{l} // a number stands for a list of one, as in PyTorch
	if l.Kind == ssa.ListLit || l.Kind == ssa.TupleLit {
		elems = l.Elems
	}
	switch d.Type {
	case onnx.AttrInt:
		n, ok := whole(l)
		return ssa.Int(n), ok
	case onnx.AttrFloat:
		if !isNumber(l) {
			return ssa.None, false
		}
		return ssa.Float(l.Float()), true
	case onnx.AttrString:
		return l, l.Kind == ssa.StrLit
	case onnx.AttrTensor:
		return l, l.Kind == ssa.TensorLit
	case onnx.AttrInts:
		ints := make([]int64, len(elems))
		for i, e := range elems {
			var ok bool
			if ints[i], ok = whole(e); !ok {
				return ssa.None, false
			}
		}
		return ssa.Ints(ints...), true
	case onnx.AttrFloats:
		floats := make([]float64, len(elems))
		for i, e := range elems {
			if !isNumber(e) {
				return ssa.None, false
			}
			floats[i] = e.Float()
		}
		return ssa.Floats(floats...), true
	case onnx.AttrStrings:
		strs := make([]string, len(elems))
		for i, e := range elems {
			if e.Kind != ssa.StrLit {
				return ssa.None, false
			}
			strs[i] = e.Str()
		}
		return ssa.Strs(strs...), true
	}
	return ssa.None, false
}

// state gives a value the type that the rule states. One that inference knows otherwise is an error.
func (m *match) state(v *ssa.Value, t *pattern.Type, inferred bool) {
	if t == nil {
		return
	}
	var stated *ssa.TensorType
	switch {
	case t.Whole:
		like := m.value(t.Like).Type
		if lt, list := like.(*ssa.ListType); list {
			if lt, is := v.Type.(*ssa.ListType); is && inferred && !ssa.SameType(lt, like) {
				m.fail("a %s is stated, and it is a %s", like, v.Type)
			}
			if t.Seq {
				m.fail("seq(%%%s) of a value that is a sequence itself", t.Like)
			}
			v.Type = lt
			return
		}
		stated = ssa.AsTensor(like)
	default:
		d := t.DType
		if t.Like != "" {
			d = m.l.DType(m.value(t.Like))
		}
		stated = ssa.Unranked(d)
		if t.Ranked {
			stated = ssa.Tensor(d, m.dims(t)...)
		}
	}
	if stated == nil {
		m.fail("%%%s is no tensor", t.Like)
	}
	if t.Seq {
		v.Type = &ssa.ListType{Elem: stated}
		return
	}
	if have := v.Tensor(); inferred && have != nil {
		stated = m.meet(have, stated)
	}
	v.Type = stated
}

// meet joins what inference and the rule say of a type.
func (m *match) meet(have, stated *ssa.TensorType) *ssa.TensorType {
	clash := have.DType != tensor.Undefined && stated.DType != tensor.Undefined && have.DType != stated.DType
	out := *have
	if out.DType == tensor.Undefined {
		out.DType = stated.DType
	}
	switch {
	case !stated.Ranked:
	case !have.Ranked:
		out.Ranked, out.Dims = true, stated.Dims
	case len(have.Dims) != len(stated.Dims):
		clash = true
	default:
		out.Dims = slices.Clone(have.Dims)
		for i := range out.Dims {
			if order, known := have.Dims[i].Compare(stated.Dims[i]); known && order != 0 {
				clash = true
			}
			if !out.Dims[i].IsConst() && stated.Dims[i].IsConst() {
				out.Dims[i] = stated.Dims[i]
			}
		}
	}
	if clash {
		m.fail("%s is stated, and it is %s", stated, have)
	}
	return &out
}

// dims computes stated sizes.
func (m *match) dims(t *pattern.Type) []sym.Expr {
	module := m.l.Block.Func().Module()
	var out []sym.Expr
	for i := range t.Dims {
		d := &t.Dims[i]
		switch {
		case d.Any:
			out = append(out, module.FreshSymbol("u", 0))
			continue
		case d.Spread != "":
			out = append(out, m.l.Shape(m.value(d.Spread))...)
			continue
		}
		values := make([]sym.Expr, len(d.Refs))
		for k, ref := range d.Refs {
			values[k] = m.size(ref)
		}
		out = append(out, d.Size.Subst(func(name string) (sym.Expr, bool) {
			for k := range values {
				if name == fmt.Sprintf("d%d", k) {
					return values[k], true
				}
			}
			return sym.Expr{}, false
		}))
	}
	return out
}

// size is the number that a size is computed from.
func (m *match) size(ref pattern.Ref) sym.Expr {
	if ref.Value == "" {
		lit := m.found.Literal(ref.Bound)
		if lit.Kind != ssa.IntLit {
			m.fail("$%s is %s, which is no size", ref.Bound, lit)
		}
		return sym.Const(lit.Int())
	}
	dims := m.l.Shape(m.value(ref.Value))
	axis := ref.Axis
	if axis < 0 {
		axis += len(dims)
	}
	if axis < 0 || axis >= len(dims) {
		m.fail("%%%s has no axis %d", ref.Value, ref.Axis)
	}
	return dims[axis]
}
