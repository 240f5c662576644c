package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/pattern"
)

// scope is what the names of a rule stand for.
type scope struct {
	values map[string]ssa.Type // %x: the declared type
	consts map[string]bool     // $p
}

// check looks at a rule as a whole, when all declarations are known.
func (r *reader) check(u *rule) {
	r.vague = u.broken
	if len(u.from) == 0 || len(u.to) == 0 {
		if u.broken {
			return
		}
		r.failAt(u.place, "a rule has lines behind from, and behind to", "rule %s is not complete", u.name)
		return
	}
	sc := &scope{map[string]ssa.Type{}, map[string]bool{}}
	before := len(r.list.Items)
	pattern.Resolve(u.from)
	for i := range u.from {
		r.at = u.lines[i].at
		r.checkFrom(u, i, sc)
	}
	r.vague = r.vague || len(r.list.Items) > before
	for i := range u.where {
		r.at = u.where[i].at
		r.checkWhere(&u.where[i], sc)
	}
	r.checkTo(u, sc)
}

func (r *reader) checkFrom(u *rule, i int, sc *scope) {
	l := &u.from[i]
	for _, res := range l.Results {
		if res.Type != nil {
			r.fail(res.Type.At, "state types behind to", "a type says what a line makes, and this one is looked for")
		}
		if _, taken := sc.values[res.Name]; taken {
			r.fail(res.At, "give each value a name of its own", "%%%s is there already", res.Name)
		}
	}
	ns := l.Kind.Namespace()
	all := r.table.Schemas(l.Kind)
	switch {
	case l.Kind == "":
		r.fail(l.At, "write an operator, such as %y = mylib::op(%x)", "a line behind from has no operator")
		return
	case u.from[0].Kind.Namespace() == onnx.Namespace != (ns == onnx.Namespace):
		r.fail(l.At, "write two rules", "a rule looks for operators of PyTorch and a library, or for those of ONNX, and %s is one of the others", l.Kind)
		return
	case ns == onnx.Namespace:
		r.checkFromONNX(u, i, sc)
		return
	case l.Kind == "prim::PythonOp":
		r.fail(l.At, "declare it, such as: declare python::MyRelu(Tensor x) -> Tensor", "a Python function is named after its class: python::MyRelu")
		return
	case len(all) == 0 && (ns == "aten" || ns == "prim" || ns == "quantized" || ns == "torchvision"):
		r.fail(l.At, "aton inspect MODEL prints the operators of a model", "there is no operator %s", l.Kind)
		return
	case len(all) == 0:
		r.fail(l.At, fmt.Sprintf("declare it, such as: declare %s(Tensor x) -> Tensor", l.Kind), "the arguments of %s are not known", l.Kind)
		return
	}
	if len(l.Attrs) > 0 || l.Others {
		r.fail(l.At, "constants are arguments as others are: "+string(l.Kind)+"(%x, alpha=$a)", "operators of PyTorch have no attributes")
	}
	l.Calls = map[*ssa.Schema][]*pattern.Operand{}
	why := ""
	for _, s := range all {
		plan, no := arguments(&l.Line, s)
		if s.Mutates() {
			no = "it writes to an argument, and conversion takes the form that does not"
		}
		if no != "" {
			if why == "" {
				why = no
			}
			continue
		}
		l.Calls[s] = plan
	}
	if len(l.Calls) == 0 {
		if len(all) > 1 {
			why = fmt.Sprintf("none of its %d overloads fits; of the first: %s", len(all), why)
		}
		r.fail(l.At, "its declaration is "+all[0].String(), "%s: %s", l.Kind, why)
		return
	}
	types := map[string]ssa.Type{}
	for s, plan := range l.Calls {
		for k, o := range plan {
			if o != nil {
				bindTerm(&o.Term, s.Args[k].Type, types, sc.consts)
			}
		}
		for k, res := range l.Results {
			types[res.Name] = s.Returns[k].Type
		}
	}
	for k := range l.Operands {
		r.checkSought(u, i, &l.Operands[k].Term)
	}
	maps.Copy(sc.values, types)
}

// checkFromONNX looks at an ONNX operator that is sought. Its operands go by their place, and its attributes by their names.
func (r *reader) checkFromONNX(u *rule, i int, sc *scope) {
	l := &u.from[i]
	s := r.schema(&l.Line)
	if s == nil {
		return
	}
	types := map[string]ssa.Type{}
	for k := range l.Attrs {
		a := &l.Attrs[k]
		if _, fixed := a.Value.Fixed(); a.Value.Kind == pattern.Bound {
			sc.consts[a.Value.Name] = true
		} else if !fixed {
			r.fail(a.Value.At, "write $p or a literal", "%q is nothing that an attribute can be compared with", a.Value.Text(u.lines[i].text))
		}
		r.checkAttr(&l.Line, a, s)
	}
	for k := range l.Operands {
		o := &l.Operands[k]
		if o.Arg != "" {
			r.fail(o.At, "give operands in their order, _ for an absent one", "operators of ONNX have no operands by name")
		}
		bindTerm(&o.Term, ssa.AnyTensor, types, sc.consts)
		r.checkSought(u, i, &o.Term)
		if _, fixed := o.Fixed(); o.Kind == pattern.List && !fixed {
			r.fail(o.Term.At, "write the operands one by one", "an operator of ONNX takes no list of values")
		}
	}
	for _, res := range l.Results {
		types[res.Name] = ssa.AnyTensor
	}
	maps.Copy(sc.values, types)
}

// bindTerm notes what an operand of a line binds.
func bindTerm(t *pattern.Term, typ ssa.Type, values map[string]ssa.Type, consts map[string]bool) {
	switch t.Kind {
	case pattern.Value:
		if o, ok := typ.(*ssa.OptionalType); ok {
			typ = o.Elem
		}
		values[t.Name] = typ
	case pattern.Bound:
		consts[t.Name] = true
	case pattern.List:
		elem := ssa.Type(ssa.AnyTensor)
		if lt, ok := typ.(*ssa.ListType); ok {
			elem = lt.Elem
		}
		for i := range t.Terms {
			bindTerm(&t.Terms[i], elem, values, consts)
		}
	}
}

// checkSought looks at an operand of a line behind from.
func (r *reader) checkSought(u *rule, i int, t *pattern.Term) {
	switch t.Kind {
	case pattern.Value:
		switch {
		case t.Shared:
			r.fail(t.Mark, "leave the * out", "other users of a value do not matter here")
		case t.Spread:
			r.fail(t.Mark, "write %"+t.Name+" for the list, [%a, %b] for one of two elements", "%%%s... stands for the elements of a list behind to", t.Name)
		}
	case pattern.List:
		for k := range t.Terms {
			r.checkSought(u, i, &t.Terms[k])
		}
	case pattern.Call, pattern.Word:
		r.fail(t.At, "write %x, $p, _, a literal or a list of these", "%q is nothing that an operand can be", t.Text(u.lines[i].text))
	}
}

// arguments finds the operands of a line for the arguments of an overload.
func arguments(l *pattern.Line, s *ssa.Schema) (plan []*pattern.Operand, why string) {
	if len(s.Returns) != len(l.Results) {
		return nil, fmt.Sprintf("it has %s, not %d", pattern.Count(len(s.Returns), "result"), len(l.Results))
	}
	plan = make([]*pattern.Operand, len(s.Args))
	for i := range l.Operands {
		o := &l.Operands[i]
		at := i
		switch {
		case o.Arg != "":
			if at = s.Arg(o.Arg); at < 0 {
				return nil, fmt.Sprintf("there is no argument %q", o.Arg)
			}
		case i > 0 && l.Operands[i-1].Arg != "":
			return nil, "an operand without a name stands behind one with a name"
		case i >= len(s.Args):
			return nil, fmt.Sprintf("it takes %s, not %d", pattern.Count(len(s.Args), "argument"), len(l.Operands))
		case s.Args[i].KwOnly:
			return nil, fmt.Sprintf("the argument %q goes by name: %s=...", s.Args[i].Name, s.Args[i].Name)
		}
		if plan[at] != nil {
			return nil, fmt.Sprintf("the argument %q is given twice", s.Args[at].Name)
		}
		plan[at] = o
	}
	for i := range s.Args {
		if plan[i] == nil && !s.Args[i].HasDefault {
			return nil, fmt.Sprintf("the argument %q is missing, and has no default", s.Args[i].Name)
		}
	}
	return plan, ""
}

// functions are those of terms, with what they take and where they may stand.
var functions = map[string]struct {
	args  int
	where bool // in conditions
	attr  bool // as the value of an attribute
	usage string
}{
	"rank":   {1, true, true, "rank(%x)"},
	"dtype":  {1, true, true, "dtype(%x), or dtype($p) where $p is a dtype"},
	"size":   {2, true, true, "size(%x, 0)"},
	"len":    {1, true, true, "len(%xs), or len($p)"},
	"static": {1, true, false, "static(%x): all sizes are known"},
	"const":  {1, true, false, "const(%x): the value is known"},
}

// checkTerm looks at a term that is computed: in a condition, or the value of an attribute.
func (r *reader) checkTerm(t *pattern.Term, text string, sc *scope, attr bool) {
	switch t.Kind {
	case pattern.Bound:
		r.known(t, sc)
	case pattern.List:
		for i := range t.Terms {
			r.checkTerm(&t.Terms[i], text, sc, attr)
		}
	case pattern.Word:
		if _, dtype := pattern.DType(t.Name); !dtype && (attr || t.Name != "opset") {
			r.fail(t.At, "there are opset, dtypes such as f32, True, False and None", "%q is not known", t.Name)
		}
	case pattern.Call:
		f, ok := functions[t.Name]
		switch {
		case !ok || attr && !f.attr || !attr && !f.where:
			r.fail(t.At, "there are "+strings.Join(slices.Sorted(maps.Keys(functions)), ", "), "there is no %s(...) here", t.Name)
			return
		case len(t.Terms) != f.args:
			r.fail(t.At, "write "+f.usage, "%s takes %s, not %d", t.Name, pattern.Count(f.args, "argument"), len(t.Terms))
			return
		}
		first := &t.Terms[0]
		value := first.Kind == pattern.Value && !first.Spread && !first.Shared && !first.Const
		if !value && !(first.Kind == pattern.Bound && (t.Name == "dtype" || t.Name == "len")) {
			r.fail(first.At, "write "+f.usage, "%q is nothing to ask %s of", first.Text(text), t.Name)
			return
		}
		r.known(first, sc)
		if f.args > 1 {
			if l, fixed := t.Terms[1].Fixed(); !fixed || l.Kind != ssa.IntLit {
				r.fail(t.Terms[1].At, "write "+f.usage, "the axis is no number")
			}
		}
	case pattern.Value, pattern.Absent:
		r.fail(t.At, "ask for rank(%x), dtype(%x), size(%x, 0), len(%xs), static(%x) or const(%x)", "%q is no number", t.Text(text))
	}
}

// known insists that a name is bound behind from.
func (r *reader) known(t *pattern.Term, sc *scope) {
	switch {
	case r.vague: // an error before this one says why
	case t.Kind == pattern.Bound && !sc.consts[t.Name]:
		r.fail(t.At, "bind it behind from", "$%s is not defined", t.Name)
	case t.Kind == pattern.Value && sc.values[t.Name] == nil:
		r.fail(t.At, "define it, or bind it behind from", "%%%s is not defined", t.Name)
	}
}

func (r *reader) checkWhere(c *condition, sc *scope) {
	r.checkTerm(&c.Left, c.text, sc, false)
	if c.Op == "" {
		if t := &c.Left; t.Kind != pattern.Bound && !(t.Kind == pattern.Call && (t.Name == "static" || t.Name == "const")) {
			r.fail(t.At, "compare it, such as: "+t.Text(c.text)+" == 2", "this is neither true nor false")
		}
		return
	}
	r.checkTerm(&c.Right, c.text, sc, false)
	if strings.HasSuffix(c.Op, "in") && c.Right.Kind != pattern.List && c.Right.Kind != pattern.Bound {
		r.fail(c.Right.At, "write a list, such as [f32, f16]", "%q is no list", c.Right.Text(c.text))
	}
	// dtypes are compared with dtypes, and with nothing else
	if left, right := isDType(&c.Left), isDType(&c.Right); left != right {
		r.fail(c.OpAt, "compare dtype(%x) with f32 or dtype(%y)", "a dtype is compared with something else")
	} else if left && !slices.Contains([]string{"==", "!=", "in", "not in"}, c.Op) {
		r.fail(c.OpAt, "use ==, !=, in or not in", "dtypes have no order")
	}
}

func isDType(t *pattern.Term) bool {
	switch t.Kind {
	case pattern.Call:
		return t.Name == "dtype"
	case pattern.Word:
		return t.Name != "opset"
	case pattern.List:
		return len(t.Terms) > 0 && isDType(&t.Terms[0])
	}
	return false
}

func (r *reader) checkTo(u *rule, sc *scope) {
	root := u.root()
	made := map[string]place{}
	needed := map[string]bool{}
	for _, res := range root.Results {
		needed[res.Name] = true
		delete(sc.values, res.Name) // it is what is replaced
	}
	for i := range u.to {
		l := &u.to[i]
		r.at = l.at
		for k := range l.Operands {
			o := &l.Operands[k]
			r.checkOperand(l, &o.Term, sc)
			if o.Arg != "" {
				r.fail(o.At, "give operands in their order, _ for an absent one", "operators of ONNX have no operands by name")
			}
			if o.Kind == pattern.Value {
				needed[o.Name] = true
			}
			for j := range o.Terms {
				needed[o.Terms[j].Name] = true
			}
		}
		r.checkMade(l, sc, root)
		for _, res := range l.Results {
			if _, taken := sc.values[res.Name]; taken {
				r.fail(res.At, "give each value a name of its own", "%%%s is there already", res.Name)
			}
			sc.values[res.Name] = ssa.AnyTensor
			at := l.at
			at.column = res.At
			made[res.Name] = at
		}
	}
	if r.vague {
		return
	}
	for _, res := range root.Results {
		if _, ok := made[res.Name]; !ok {
			r.failAt(u.lines[len(u.from)-1].at, "define it behind to", "rule %s does not say what becomes of %%%s", u.name, res.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if used := needed[name] || slices.ContainsFunc(u.to, func(l toLine) bool { return sibling(&l, name, needed) }); !used {
			r.failAt(made[name], "leave it out, or use it", "nothing uses %%%s", name)
		}
	}
}

// sibling reports a result beside one that is used: an operator has all its results.
func sibling(l *toLine, name string, needed map[string]bool) bool {
	has := func(f func(string) bool) bool {
		return slices.ContainsFunc(l.Results, func(r pattern.Result) bool { return f(r.Name) })
	}
	return has(func(n string) bool { return n == name }) && has(func(n string) bool { return needed[n] })
}

// checkOperand looks at an operand of a line behind to.
func (r *reader) checkOperand(l *toLine, t *pattern.Term, sc *scope) {
	switch t.Kind {
	case pattern.Value:
		r.known(t, sc)
		if t.Shared || t.Const {
			r.fail(t.Mark, "leave the mark out", "* and ! say what is looked for")
		}
		if _, list := sc.values[t.Name].(*ssa.ListType); t.Spread && !list && sc.values[t.Name] != nil {
			r.fail(t.Mark, "write %"+t.Name, "%%%s is no list", t.Name)
		}
	case pattern.Bound:
		r.known(t, sc)
	case pattern.Word:
		r.fail(t.At, "write %x, $p, a number, const(2.0, %x) or _", "%q is no operand", t.Name)
	case pattern.Call:
		if t.Name != "const" || len(t.Terms) != 2 || !typeTerm(&t.Terms[1]) {
			r.fail(t.At, "write const(2.0, f32), or const($p, %x) for a constant of the type of %x", "%q is no operand", t.Text(l.text))
			return
		}
		if !r.constant(&t.Terms[0], sc) {
			r.fail(t.Terms[0].At, "write a number, $p or a list of these", "%q is no constant", t.Terms[0].Text(l.text))
		}
		r.known(&t.Terms[1], sc)
	case pattern.List:
		if l.Kind != "" && r.constant(t, sc) {
			return
		}
		for i := range t.Terms {
			if e := &t.Terms[i]; e.Kind != pattern.Value || l.Kind != "" {
				r.fail(e.At, "write %ys = [%a, %b] for a list that is a result, a list of numbers and $p for a constant", "%q cannot stand in a list here", e.Text(l.text))
			} else {
				r.known(e, sc)
			}
		}
	}
}

// constant reports a term that is a constant when the rule is applied: a literal, $p, or a list of these.
func (r *reader) constant(t *pattern.Term, sc *scope) bool {
	if _, fixed := t.Fixed(); fixed {
		return true
	}
	switch t.Kind {
	case pattern.Bound:
		r.known(t, sc)
		return true
	case pattern.List:
		for i := range t.Terms {
			if !r.constant(&t.Terms[i], sc) {
				return false
			}
		}
		return true
	}
	return false
}

func typeTerm(t *pattern.Term) bool {
	_, dtype := pattern.DType(t.Name)
	return t.Kind == pattern.Value || t.Kind == pattern.Word && dtype
}

// checkMade looks at the operator that a line makes.
func (r *reader) checkMade(l *toLine, sc *scope, root *pattern.Sought) {
	for i := range l.Attrs {
		r.checkTerm(&l.Attrs[i].Value, l.text, sc, true)
	}
	for _, res := range l.Results {
		r.checkType(res.Type, sc)
	}
	if l.Others {
		r.fail(l.At, "name the attributes", "[*] says what is looked for")
	}
	ns := l.Kind.Namespace()
	switch {
	case l.Kind == "":
		return
	case ns == onnx.Namespace || ns == "ai.onnx":
		r.checkSchema(l)
	case ns == "" || !domainName.MatchString(ns) || l.Kind.Name() == "":
		r.fail(l.At, "write onnx::Relu, or my.domain::Op for an operator of your own", "%q is no operator", l.Kind)
	case ns == "aten" || ns == "prim":
		r.fail(l.At, "write operators of ONNX, or of a domain of your own", "%s is an operator of PyTorch", l.Kind)
	default:
		for _, res := range l.Results {
			if res.Type == nil {
				r.fail(res.At, fmt.Sprintf("state it: %%%s : %%x for that of %%x, %%%s : f32[...] where the sizes are not known", res.Name, res.Name), "the type of %%%s cannot be inferred: %s is no operator of ONNX", res.Name, l.Kind)
			}
		}
	}
}

// checkSchema compares a line that makes an operator with what the standard says of it.
func (r *reader) checkSchema(l *toLine) {
	s := r.schema(&l.Line)
	if s == nil {
		return
	}
	given := map[string]bool{}
	for i := range l.Attrs {
		a := &l.Attrs[i]
		given[a.Name] = true
		r.checkAttr(&l.Line, a, s)
	}
	for i := range s.Attrs {
		if d := &s.Attrs[i]; d.Required && !given[d.Name] {
			r.fail(l.At, fmt.Sprintf("give it: %s[%s=...]", l.Kind, d.Name), "attribute %s of %s is missing", d.Name, l.Kind)
		}
	}
}

// checkAttr compares a literal with the type of the attribute.
func (r *reader) checkAttr(l *pattern.Line, a *pattern.Attr, s *onnx.OpSchema) {
	d := s.Attr(a.Name)
	if v, fixed := a.Value.Fixed(); fixed && d != nil {
		if _, ok := convert(v, d); !ok {
			r.fail(a.Value.At, "", "attribute %s of %s is of type %s, and %s is not", a.Name, l.Kind, d.Type, v)
		}
	}
}

// schema finds what the standard says of the operator of a line, and compares the numbers of operands and results and the names
// of attributes with it.
func (r *reader) schema(l *pattern.Line) *onnx.OpSchema {
	s := onnx.Lookup(l.Kind.Name(), onnx.Newest)
	if s == nil {
		r.fail(l.At, "operators are written as the newest opset has them, and brought to that of --opset", "ONNX has no operator %s", l.Kind.Name())
		return nil
	}
	spread := slices.ContainsFunc(l.Operands, func(o pattern.Operand) bool { return o.Spread })
	least, most := onnx.Arity(s.Inputs)
	if n := len(l.Operands); !spread && n < least || most >= 0 && n > most {
		r.fail(l.At, "", "%s has %s, not %d", l.Kind, onnx.ArityString("input", least, most), n)
	}
	if least, most := onnx.Arity(s.Outputs); len(l.Results) < least || most >= 0 && len(l.Results) > most {
		r.fail(l.At, "", "%s has %s, not %d", l.Kind, onnx.ArityString("output", least, most), len(l.Results))
	}
	given := map[string]bool{}
	for i := range l.Attrs {
		a := &l.Attrs[i]
		if given[a.Name] {
			r.fail(a.At, "keep one", "attribute %s is given twice", a.Name)
		}
		given[a.Name] = true
		if s.Attr(a.Name) == nil {
			r.fail(a.At, hasAttrs(s), "%s has no attribute %s in the newest opset", l.Kind, a.Name)
		}
	}
	for i := range s.Attrs {
		if d := &s.Attrs[i]; d.Type == onnx.AttrGraph {
			r.fail(l.At, "register a lowering in Go for control flow", "%s has a graph in it, which a rule cannot write", l.Kind)
		}
	}
	return s
}

func hasAttrs(s *onnx.OpSchema) string {
	var names, inputs []string
	for _, a := range s.Attrs {
		names = append(names, a.Name)
	}
	for _, p := range s.Inputs {
		inputs = append(inputs, p.Name)
	}
	attrs := "it has " + strings.Join(names, ", ")
	if len(names) == 0 {
		attrs = "it has none"
	}
	return attrs + "; its inputs are " + strings.Join(inputs, ", ")
}

// checkType looks at a stated type.
func (r *reader) checkType(t *pattern.Type, sc *scope) {
	if t == nil {
		return
	}
	if t.Like != "" {
		r.known(&pattern.Term{Kind: pattern.Value, At: t.At, Name: t.Like}, sc)
	}
	for i := range t.Dims {
		d := &t.Dims[i]
		if d.Spread != "" {
			r.known(&pattern.Term{Kind: pattern.Value, At: d.At, Name: d.Spread}, sc)
		}
		for _, ref := range d.Refs {
			if ref.Value != "" {
				r.known(&pattern.Term{Kind: pattern.Value, At: d.At, Name: ref.Value}, sc)
			} else {
				r.known(&pattern.Term{Kind: pattern.Bound, At: d.At, Name: ref.Bound}, sc)
			}
		}
	}
}
