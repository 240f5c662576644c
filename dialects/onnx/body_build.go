package onnx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/pattern"
	"github.com/aton-project/aton/ssa/tensor"
)

// byBody is the step that replaces an operator that did not exist by its body.
func byBody(opset int) Step {
	return Step{opset, func(d *Downgrade) { d.Replace(d.bodyOf(opset)...) }}
}

// bodyUnless is the step that removes an attribute that older versions do not have; the body stands for an operator that means something else
// than they do.
func bodyUnless(opset int, name string, implied ssa.Literal) Step {
	return Step{opset, func(d *Downgrade) {
		if l, ok := d.Node.Attr(name); ok && !sameNumber(l, implied) {
			d.Replace(d.bodyOf(opset)...)
			return
		}
		d.Node.RemoveAttr(name)
	}}
}

// bodyOfAny computes an operator by its body, whatever the type is, where the target has no kernel for that.
func bodyOfAny(d *Downgrade, _ tensor.DType) (done bool) {
	err := Build(func() { d.Replace(d.Body()...) })
	return err == nil
}

// Body builds the body of the node, which has one (see [HasBody]), before it, and gives the results.
func (d *Downgrade) Body() []*ssa.Value { return d.bodyOf(0) }

// WideBody is Body for a node on float64 that stands for one on a narrower type: no number is rounded to such a type on the way.
func (d *Downgrade) WideBody() []*ssa.Value {
	return (&bodyRun{Downgrade: d, wideOnly: true, bound: map[string]item{}}).node()
}

// bodyOf builds the body of the node, and gives its results in the types of those of the node. What the body cannot say needs an opset.
func (d *Downgrade) bodyOf(opset int) []*ssa.Value {
	return (&bodyRun{Downgrade: d, opset: opset, bound: map[string]item{}}).node()
}

// node builds the body of the node.
func (r *bodyRun) node() []*ssa.Value {
	b := bodies()[r.Node.Kind.Name()]
	r.wants = r.Node.Results
	for _, a := range SchemaOf(r.Node.Kind).Attrs {
		l, given := r.Node.Attr(a.Name)
		if !given {
			l, _ = a.Value()
		}
		r.bound["$"+a.Name] = item{lit: l, isLit: true}
	}
	args := make([]item, len(b.params))
	for i := range args {
		args[i] = item{v: r.in(i)}
	}
	given := r.call(b, args)
	if len(given) < len(r.Node.Results) {
		r.mistaken("the body of %s gives %d results", b.name, len(given))
	}
	out := make([]*ssa.Value, len(given))
	for i := range out {
		out[i] = given[i].v
	}
	return out
}

// item is what a name of a body stands for: a value of the graph, nil if it is absent, or something that is known when the body is built.
type item struct {
	v     *ssa.Value
	lit   ssa.Literal
	isLit bool
}

func literal(l ssa.Literal) item { return item{lit: l, isLit: true} }
func whole(n int64) item         { return literal(ssa.Int(n)) }
func truth(b bool) item          { return literal(ssa.Bool(b)) }

// bodyRun builds a body, or a part that one uses.
type bodyRun struct {
	*Downgrade
	opset int // that has the operator
	// wideOnly leaves numbers of float64 in that type.
	wideOnly bool
	bound    map[string]item
	wants    []*ssa.Value // the results of the node; nil in a part
	given    []item
	done     bool
}

// mistaken ends the building of a body that does not fit what it is given, such as a list where a tensor is due.
func (r *bodyRun) mistaken(format string, args ...any) {
	panic(&BuildError{r.Node.Kind, fmt.Errorf(format, args...)})
}

func (r *bodyRun) call(b *body, args []item) []item {
	for i := range b.params {
		r.bound[spelled(&b.params[i])] = args[i]
	}
	r.stmts(b.stmts)
	if !r.done {
		r.mistaken("the body of %s returns nothing", b.name)
	}
	return r.given
}

func (r *bodyRun) stmts(list []stmt) {
	for i := range list {
		s := &list[i]
		switch {
		case s.cond != nil && r.holds(s.cond):
			r.stmts(s.then)
		case s.cond != nil:
			r.stmts(s.not)
		case s.fail != "":
			r.Fail(0, "%s", r.text(s.fail))
		case s.needs != "":
			r.Fail(r.opset, "%s", r.text(s.needs))
		case s.gives:
			for k := range s.give {
				if r.wants != nil && k == len(r.wants) {
					break
				}
				x := r.term(&s.give[k])
				if r.wants != nil {
					x = item{v: r.tensorOf(x)}
					if t := r.wants[k].DType(); t != tensor.Undefined {
						x.v = r.cast(x.v, t)
					}
				}
				r.given = append(r.given, x)
			}
			r.done = true
		case s.define != "":
			r.bound["$"+s.define] = r.term(&s.term)
		default:
			r.line(s.line)
		}
		if r.done {
			return
		}
	}
}

// text puts what names stand for in the place of {$n} in a message.
func (r *bodyRun) text(s string) string {
	for name, x := range r.bound {
		if !x.isLit {
			continue
		}
		text := x.lit.String()
		if x.lit.Kind == ssa.StrLit {
			text = x.lit.Str()
		}
		s = strings.ReplaceAll(s, "{"+name+"}", text)
	}
	return s
}

func (r *bodyRun) line(l *pattern.Line) {
	args := make([]item, len(l.Operands))
	for i := range l.Operands {
		args[i] = r.term(&l.Operands[i].Term)
	}
	results := args
	if l.Kind != "" {
		var attrs []ssa.Attr
		for i := range l.Attrs {
			if v := r.known(r.term(&l.Attrs[i].Value)); !v.IsNone() {
				if v.Kind == ssa.BoolLit {
					v = ssa.Int(v.Int())
				}
				attrs = append(attrs, ssa.Attr{Name: l.Attrs[i].Name, Value: v})
			}
		}
		results = r.apply(string(l.Kind), attrs, len(l.Results), args)
	}
	if len(results) < len(l.Results) {
		r.mistaken("%s gives %d results", l.Kind, len(results))
	}
	for i := range l.Results {
		r.bound["%"+l.Results[i].Name] = results[i]
	}
}

// apply calls a function or a part, or builds an operator with n results.
func (r *bodyRun) apply(name string, attrs []ssa.Attr, n int, args []item) []item {
	if f, ok := bodyFuncs[name]; ok {
		for i, a := range args {
			if !a.isLit && a.v == nil && name != "wide" {
				r.mistaken("argument %d of %s is absent", i, name)
			}
		}
		return []item{f.call(r, args)}
	}
	if p := bodies()[name]; p != nil && p.isPart() {
		part := &bodyRun{Downgrade: r.Downgrade, opset: r.opset, wideOnly: r.wideOnly, bound: map[string]item{}}
		return part.call(p, args)
	}
	var like *ssa.Value // what a number has the type of
	for _, a := range args {
		if like == nil && a.v != nil && a.v.DType() != tensor.Bool {
			like = a.v
		}
	}
	if name == "Reshape" && args[1].isLit {
		args[1].lit = literalShape(args[0].v, args[1].lit)
	}
	if strings.HasPrefix(name, "Reduce") && len(args) > 1 && args[1].isLit && args[1].lit.Kind == ssa.ListLit && len(args[1].lit.Elems) == 0 {
		attrs = append(attrs, NoopWithEmptyAxes(true)) // no axes are not all
	}
	operands := make([]*ssa.Value, len(args))
	for i, a := range args {
		if operands[i] = a.v; a.isLit && a.lit.Kind == ssa.FloatLit {
			if like == nil {
				r.mistaken("nothing tells the type of %s", a.lit)
			}
			operands[i] = r.like(like, a.lit.Float())
		} else if a.isLit {
			operands[i] = r.tensorOf(a)
		}
	}
	out := make([]item, n)
	for i, v := range r.Create(ssa.Kind(Namespace+"::"+name), n, operands, attrs...) {
		out[i] = item{v: v}
	}
	return out
}

// literalShape is a shape to which x is reshaped. Of no elements nothing infers the size that is -1: it is what the sizes leave that
// are not copied.
func literalShape(x *ssa.Value, shape ssa.Literal) ssa.Literal {
	have, static := x.Tensor().Static()
	want, _ := shape.IntList()
	open := slices.Index(want, -1)
	if !static || !slices.Contains(have, 0) || open < 0 {
		return shape
	}
	copied := 0
	for copied < min(len(have), open) && want[copied] == 0 {
		copied++
	}
	rest, others := int64(1), int64(1)
	for _, n := range have[copied:] {
		rest *= n
	}
	for i, n := range want[copied:] {
		if copied+i != open {
			others *= n
		}
	}
	if others < 1 {
		return shape
	}
	want[open] = rest / others
	return ssa.Ints(want...)
}

// tensorOf is a value of the graph: of an int a scalar of int64, of a list of ints a vector.
func (r *bodyRun) tensorOf(x item) *ssa.Value {
	switch {
	case !x.isLit:
		return x.v
	case x.lit.IsNone():
		return nil
	case x.lit.Kind == ssa.IntLit:
		return r.long(x.lit.Int())
	}
	ints, ok := x.lit.IntList()
	if !ok {
		r.mistaken("%s is no tensor", x.lit)
	}
	return r.ints(ints...)
}

// known is what is known when the body is built.
func (r *bodyRun) known(x item) ssa.Literal {
	if !x.isLit {
		r.mistaken("a tensor stands where a number is due")
	}
	return x.lit
}

func (r *bodyRun) term(t *pattern.Term) item {
	switch t.Kind {
	case pattern.Absent:
		return item{}
	case pattern.Value, pattern.Bound:
		x, ok := r.bound[spelled(t)]
		if !ok {
			r.mistaken("%s is not defined", spelled(t))
		}
		return x
	case pattern.Literal:
		return literal(t.Literal)
	case pattern.Word:
		d, _ := pattern.DType(t.Name)
		return whole(int64(d.ONNX()))
	case pattern.List:
		elems := make([]ssa.Literal, len(t.Terms))
		for i := range t.Terms {
			elems[i] = r.known(r.term(&t.Terms[i]))
		}
		return literal(pattern.ListOf(elems))
	}
	args := make([]item, len(t.Terms))
	for i := range t.Terms {
		args[i] = r.term(&t.Terms[i])
	}
	return r.apply(t.Name, nil, 1, args)[0]
}

// holds computes a condition: of a tensor alone that it is there.
func (r *bodyRun) holds(c *pattern.Condition) bool {
	left := r.term(&c.Left)
	if c.Op == "" {
		if !left.isLit {
			return left.v != nil
		}
		return left.lit.IsNumber() && left.lit.Bool()
	}
	a, b := r.known(left), r.known(r.term(&c.Right))
	switch c.Op {
	case "==":
		return sameLiteral(a, b)
	case "!=":
		return !sameLiteral(a, b)
	case "in":
		return slices.ContainsFunc(b.Elems, func(e ssa.Literal) bool { return sameLiteral(a, e) })
	case "not in":
		return !slices.ContainsFunc(b.Elems, func(e ssa.Literal) bool { return sameLiteral(a, e) })
	}
	if !a.IsNumber() || !b.IsNumber() {
		return false // such as a size that is not known
	}
	x, y := a.Float(), b.Float()
	return c.Op[0] == '<' && x < y || c.Op[0] == '>' && x > y || len(c.Op) == 2 && x == y
}

func sameLiteral(a, b ssa.Literal) bool {
	if a.IsNumber() && b.IsNumber() {
		return a.Float() == b.Float()
	}
	return a.Equal(b)
}

// bodyFunc is a function that bodies call, with least to most arguments.
type bodyFunc struct {
	least, most int
	call        func(r *bodyRun, x []item) item
}

// bodyFuncs are the functions of the language: of numbers, of what is known of a tensor, and a few that build what depends on that.
// An initializer would refer to itself.
var bodyFuncs map[string]bodyFunc

func init() {
	num := func(r *bodyRun, x item) int64 { return r.known(x).Int() }
	list := func(r *bodyRun, x item) []int64 {
		if l := r.known(x); l.Kind != ssa.IntLit {
			ints, _ := l.IntList()
			return ints
		}
		return []int64{x.lit.Int()}
	}
	arithmetic := func(ints func(a, b int64) int64, floats func(a, b float64) float64) bodyFunc {
		return bodyFunc{2, 2, func(r *bodyRun, x []item) item {
			a, b := r.known(x[0]), r.known(x[1])
			if ints != nil && a.Kind != ssa.FloatLit && b.Kind != ssa.FloatLit {
				return whole(ints(a.Int(), b.Int()))
			}
			return literal(ssa.Float(floats(a.Float(), b.Float())))
		}}
	}
	quotient := func(a, b int64) int64 {
		if b == 0 {
			return 0
		}
		return a / b
	}
	bodyFuncs = map[string]bodyFunc{
		"add":  arithmetic(func(a, b int64) int64 { return a + b }, func(a, b float64) float64 { return a + b }),
		"sub":  arithmetic(func(a, b int64) int64 { return a - b }, func(a, b float64) float64 { return a - b }),
		"mul":  arithmetic(func(a, b int64) int64 { return a * b }, func(a, b float64) float64 { return a * b }),
		"div":  arithmetic(quotient, func(a, b float64) float64 { return a / b }),
		"root": {1, 1, func(r *bodyRun, x []item) item { return literal(ssa.Float(math.Sqrt(r.known(x[0]).Float()))) }},
		// repeat(k, n) is a list of n times k, upto(a, b) the ints from a to below b, join(l, ...) the elements of lists and ints.
		"repeat": {2, 2, func(r *bodyRun, x []item) item {
			return literal(ssa.Ints(slices.Repeat(list(r, x[0]), int(max(num(r, x[1]), 0)))...))
		}},
		"upto": {2, 2, func(r *bodyRun, x []item) item {
			var l []int64
			for i := num(r, x[0]); i < num(r, x[1]); i++ {
				l = append(l, i)
			}
			return literal(ssa.Ints(l...))
		}},
		"join": {1, 9, func(r *bodyRun, x []item) item {
			var l []int64
			for i := range x {
				l = append(l, list(r, x[i])...)
			}
			return literal(ssa.Ints(l...))
		}},
		// rank(%x), size(%x, axis), which is None where it is not known, same_size(%x, axis, %y, axis), dtype(%x), whether that is one of floats, and whether a tensor may be empty.
		"rank": {1, 1, func(r *bodyRun, x []item) item { return whole(int64(r.rank(x[0].v, r.opset))) }},
		"size": {2, 2, func(r *bodyRun, x []item) item {
			if t := x[0].v.Tensor(); t != nil && t.Ranked && num(r, x[1]) < int64(len(t.Dims)) {
				if n, ok := t.Dims[num(r, x[1])].Int(); ok {
					return whole(n)
				}
			}
			return literal(ssa.None)
		}},
		"same_size": {4, 4, func(r *bodyRun, x []item) item {
			return truth(dimOf(x[0].v, int(num(r, x[1]))).Equal(dimOf(x[2].v, int(num(r, x[3])))))
		}},
		"is_float":     {1, 1, func(_ *bodyRun, x []item) item { return truth(x[0].v.DType().IsFloat()) }},
		"dtype":        {1, 1, func(_ *bodyRun, x []item) item { return whole(int64(x[0].v.DType().ONNX())) }},
		"may_be_empty": {1, 1, func(_ *bodyRun, x []item) item { return truth(mayBeEmpty(x[0].v)) }},
		// axes(%x, $axes) counts axes from the front, axis(%x, $axis) one.
		"axes": {2, 2, func(r *bodyRun, x []item) item {
			return literal(ssa.Ints(r.axes(list(r, x[1]), r.rank(x[0].v, r.opset))...))
		}},
		"axis": {2, 2, func(r *bodyRun, x []item) item {
			return whole(r.axes(list(r, x[1]), r.rank(x[0].v, r.opset))[0])
		}},
		// wide(%x) is %x in a type to compute in, cast(%x, type) %x in a type, like(%x, n) a number in the type of %x, full(%x, shape, n) a tensor of them.
		"wide": {1, 1, func(r *bodyRun, x []item) item { return item{v: r.up(x[0].v)} }},
		"cast": {2, 2, func(r *bodyRun, x []item) item {
			v, t := r.tensorOf(x[0]), tensor.FromONNX(int(num(r, x[1])))
			if r.wideOnly && v.DType() == tensor.Float64 && t.IsFloat() {
				return item{v: v}
			}
			return item{v: r.cast(v, t)}
		}},
		// long(n) is a tensor of int64, places(%n) the ints less than a scalar, and may_be(%n, n) whether a scalar may be a number.
		"long":   {1, 1, func(r *bodyRun, x []item) item { return item{v: r.tensorOf(x[0])} }},
		"places": {1, 1, func(r *bodyRun, x []item) item { return item{v: r.upTo(x[0].v)} }},
		"may_be": {2, 2, func(r *bodyRun, x []item) item {
			n, ok := ConstInts(x[0].v)
			return truth(!ok || len(n) == 1 && n[0] == num(r, x[1]))
		}},
		"like": {2, 2, func(r *bodyRun, x []item) item { return item{v: r.like(x[0].v, r.known(x[1]).Float())} }},
		"full": {3, 3, func(r *bodyRun, x []item) item {
			return item{v: r.Const(tensor.Full(x[0].v.DType(), list(r, x[1]), r.known(x[2]).Float()))}
		}},
		// extent(%x, axis) is a size as a scalar, shape(%x, from, to) a vector of sizes, volume(%x, from, to) their product.
		"extent": {2, 2, func(r *bodyRun, x []item) item { return item{v: r.size(x[0].v, int(num(r, x[1])))} }},
		"shape": {3, 3, func(r *bodyRun, x []item) item {
			return item{v: r.sizes1(x[0].v, int(num(r, x[1])), int(num(r, x[2])))}
		}},
		"volume": {3, 3, func(r *bodyRun, x []item) item {
			return item{v: r.stride(x[0].v, int(num(r, x[1])), int(num(r, x[2])))}
		}},
	}
}
