package simplify

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// formulas holds the rules that find an operator in a program that spells it out. What it is made of stands in the operator's row or body (onnx.Formulas).
// Programs spell it in many ways: both are compared as sums of products of powers, with all constant factors in one, so that x / sqrt(v), x * (1 / sqrt(v)) and
// x * v^-0.5 are one, and so are clip(x + 3, 0, 6) / 6 and clip(x/6 + 1/2, 0, 1). These rules round a last place otherwise. Halves that are widened to float32 are left
// alone: a kernel may round at another place.
func (s *simplifier) formulas() (rules []rewrite.Rule) {
	for _, f := range spelledOut() {
		rules = append(rules, s.from(f.Since, f.rules())...)
	}
	return rules
}

// from gives rules that make operators which came with an opset, none for a module of an older one.
func (s *simplifier) from(opset int, rules []rewrite.Rule) []rewrite.Rule {
	if s.opset != 0 && s.opset < opset {
		return nil
	}
	return rules
}

// spelling is a formula, and what is known of it before a program is looked at.
type spelling struct {
	*onnx.Formula
	ways []way
}

type way struct {
	onnx.Way
	top product
	// repeated are the parts that occur more than once: what they are in a program has several uses.
	repeated map[*onnx.Expr]bool
}

var spelledOut = sync.OnceValue(func() (out []spelling) {
	for _, f := range onnx.Formulas() {
		sp := spelling{Formula: f}
		for _, w := range f.Ways {
			seen, repeated := map[*onnx.Expr]bool{}, map[*onnx.Expr]bool{}
			var visit func(e *onnx.Expr)
			visit = func(e *onnx.Expr) {
				repeated[e] = seen[e]
				if seen[e] {
					return
				}
				seen[e] = true
				for _, a := range e.Args {
					visit(a)
				}
			}
			visit(w.Expr)
			sp.ways = append(sp.ways, way{w, node{e: w.Expr}.product(true), repeated})
		}
		out = append(out, sp)
	}
	return out
})

// rules are that which finds the formula, and those that find the scale and the offset behind it.
func (sp spelling) rules() []rewrite.Rule {
	name := ruleName(sp.Kind.Name())
	roots := []ssa.Kind{"onnx::Mul", "onnx::Div"}
	for _, w := range sp.ways {
		if fs := w.top.factors; len(fs) == 1 {
			roots = append(roots, ssa.Kind(onnx.Namespace+"::"+fs[0].e.Func))
		}
	}
	rules := []rewrite.Rule{{Name: name, Kinds: roots, Apply: sp.find, Rounds: true}}
	name = strings.TrimSuffix(name, "-normalization")
	if sp.Scale > 0 {
		rules = append(rules, rewrite.Rule{Name: name + "-scale", Kinds: []ssa.Kind{"onnx::Mul"}, Apply: sp.scale, Rounds: true})
	}
	if sp.Offset > 0 {
		rules = append(rules, rewrite.Rule{Name: name + "-offset", Kinds: []ssa.Kind{"onnx::Add"}, Apply: sp.offset, Rounds: true})
	}
	return rules
}

// ruleName is the name of an operator with hyphens: rms-normalization.
func ruleName(op string) string {
	var b strings.Builder
	for i, c := range op {
		if unicode.IsUpper(c) && i > 0 && (unicode.IsLower(rune(op[i-1])) || i+1 < len(op) && unicode.IsLower(rune(op[i+1]))) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// find puts the operator in the place of an op that ends its formula.
func (sp spelling) find(r *rewrite.Rewriter, o *ssa.Op) bool {
	t := o.Result(0).Tensor()
	if t == nil || t.DType != tensor.Float32 && !(t.DType == tensor.Float64 && sp.Double) {
		return false
	}
	g := node{v: o.Result(0)}.product(true)
	for i := range sp.ways {
		m := &finding{way: &sp.ways[i], out: t, axis: -1, floats: map[string]float64{}, values: map[*onnx.Expr]*ssa.Value{}}
		if !m.products(m.top, g, 1) || m.x == nil {
			continue
		}
		operands := []*ssa.Value{m.x}
		if sp.Scale > 0 {
			shape, ok := (&ssa.TensorType{Ranked: true, DType: t.DType, Dims: t.Dims[m.axis:]}).Static()
			ones := tensor.Full(t.DType, shape, 1)
			if n := ones.NumElements(); !ok || n == 0 || n > maxScale {
				return false
			}
			operands = append(operands, constant(r, ones))
		}
		y := r.Create(sp.Kind, operands, sp.attrs(m)...)
		if !r.Fits(y, o.Result(0)) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}

// attrs are the attributes that a program was found to have.
func (sp spelling) attrs(m *finding) []ssa.Attr {
	attrs := slices.Clone(m.Texts)
	for _, a := range onnx.SchemaOf(sp.Kind).Attrs {
		if k, ok := m.floats[a.Name]; ok {
			attrs = append(attrs, ssa.Attr{Name: a.Name, Value: ssa.Float(k)})
		} else if a.Name == m.first {
			attrs = append(attrs, ssa.Attr{Name: a.Name, Value: ssa.Int(int64(m.axis - len(m.out.Dims)))})
		}
	}
	return attrs
}

// scale gives an operator without scale the factor behind it. Ones stand where it has none.
func (sp spelling) scale(r *rewrite.Rewriter, o *ssa.Op) bool {
	return sp.behind(r, o, func(d *ssa.Op, v *ssa.Value) []*ssa.Value {
		if d.Operand(sp.Offset) != nil && sp.Offset > 0 || !allAre(d.Operand(sp.Scale), 1) {
			return nil
		}
		if v = shapedLike(r, v, d.Operand(sp.Scale)); v == nil {
			return nil
		}
		return []*ssa.Value{d.Operand(0), v}
	})
}

// offset gives an operator without offset what is added behind it.
func (sp spelling) offset(r *rewrite.Rewriter, o *ssa.Op) bool {
	return sp.behind(r, o, func(d *ssa.Op, v *ssa.Value) []*ssa.Value {
		if d.Operand(sp.Offset) != nil {
			return nil
		}
		if v = shapedLike(r, v, d.Operand(sp.Scale)); v == nil {
			return nil
		}
		return []*ssa.Value{d.Operand(0), d.Operand(sp.Scale), v}
	})
}

// behind puts the operator with other operands in the place of an op behind it; with gives these for the op's other operand.
func (sp spelling) behind(r *rewrite.Rewriter, o *ssa.Op, with func(d *ssa.Op, v *ssa.Value) []*ssa.Value) bool {
	for i := range 2 {
		d := definedBy(o.Operand(i), sp.Kind)
		if d == nil || len(d.Results) > 1 || !d.Result(0).HasOneUse() {
			continue
		}
		operands := with(d, o.Operand(1-i))
		if operands == nil {
			continue
		}
		y := r.Create(d.Kind, operands, d.Attrs...)
		if !r.Fits(y, o.Result(0)) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}

// node is a value of the graph, a part of the expression of an operator of the graph, or, without op, a part of a formula.
type node struct {
	v  *ssa.Value
	e  *onnx.Expr
	op *ssa.Op
}

// call is the function that computes a node, and its arguments. It is "" for other nodes, and for a value of several uses unless it is taken whole: it stays.
func (n node) call(whole bool) (name string, args []node) {
	if n.e != nil {
		for _, a := range n.e.Args {
			if a.Operand > 0 && n.op != nil {
				args = append(args, node{v: n.op.Operand(a.Operand - 1)})
			} else {
				args = append(args, node{e: a, op: n.op})
			}
		}
		return n.e.Func, args
	}
	d := n.v.Def()
	if d == nil || d.Kind.Namespace() != onnx.Namespace || !whole && !n.v.HasOneUse() {
		return "", nil
	}
	for _, v := range d.Operands() {
		if v == nil {
			break
		}
		args = append(args, node{v: v})
	}
	return d.Kind.Name(), args
}

// number is the value of a node that is a constant: a number, or one times an attribute of a formula.
func (n node) number() (k float64, attr string, ok bool) {
	switch {
	case n.v != nil:
		k, ok = onlyElement(n.v) // an exponent may be an int
		return k, "", ok
	case n.e.Attr != "" && n.op != nil:
		def, _ := onnx.SchemaOf(n.op.Kind).Attr(n.e.Attr).Value()
		return n.op.AttrFloat(n.e.Attr, def.Float()), "", true
	case n.e.Attr != "":
		return 1, n.e.Attr, true
	}
	return n.e.Number, "", n.e.Func == "" && n.e.Operand == 0
}

// is reports that two nodes are one.
func (n node) is(m node) bool {
	if n.e != nil && m.e != nil && n.e.Operand > 0 {
		return n.e.Operand == m.e.Operand
	}
	return n == m
}

// product is a constant, times an attribute of a formula if it names one, times powers.
type product struct {
	k       float64
	attr    string
	factors []powered
}

// powered is a power of scale * node.
type powered struct {
	node
	power, scale float64
}

// maxFactors bounds the factors of a product and the terms of a sum, and maxDepth how deep they are looked for: a long chain is looked at from each of its ends.
const (
	maxFactors = 4
	maxDepth   = 8
)

// maxScale bounds the elements of a scale of ones, which the file holds though the program has none.
const maxScale = 1 << 20

// product takes a node apart.
func (n node) product(whole bool) product { return n.productTo(maxDepth, whole) }

func (n node) productTo(depth int, whole bool) product {
	if k, attr, ok := n.number(); ok {
		return product{k: k, attr: attr}
	}
	atom := product{k: 1, factors: []powered{{n, 1, 1}}}
	if depth == 0 {
		return atom
	}
	name, args := n.call(whole)
	of := func(i int) product { return args[i].productTo(depth-1, false) }
	p, ok := atom, true
	switch name {
	case "Mul":
		p, ok = of(0).times(of(1))
	case "Div":
		if p, ok = of(1).power(-1); ok {
			p, ok = of(0).times(p)
		}
	case "Neg":
		p, ok = of(0).times(product{k: -1})
	case "Reciprocal":
		p, ok = of(0).power(-1)
	case "Sqrt":
		p, ok = of(0).power(0.5)
	case "Pow":
		if k, attr, constant := args[1].number(); constant && attr == "" {
			p, ok = of(0).power(k)
		}
	case "Clip":
		if _, most, bounded := n.bounds(args); bounded { // the greatest value becomes 1
			p = product{k: most, factors: []powered{{n, 1, 1 / most}}}
		}
	}
	if !ok || len(p.factors) > maxFactors {
		return atom
	}
	return p
}

// scaled is a node as a number times another one.
func (n node) scaled() (k float64, of node) {
	k = 1
	for range maxDepth {
		name, args := n.call(false)
		switch {
		case name == "Neg":
			k, n = -k, args[0]
			continue
		case name != "Mul" && name != "Div":
			return k, n
		}
		if c, attr, ok := args[1].number(); !ok || attr != "" {
			return k, n
		} else if n = args[0]; name == "Mul" {
			k *= c
		} else {
			k /= c
		}
	}
	return k, n
}

// bounds are those of a Clip between two numbers, of which the second one is positive.
func (n node) bounds(args []node) (least, most float64, ok bool) {
	if len(args) < 3 {
		return 0, 0, false
	}
	least, _, ok = args[1].number()
	most, _, ok2 := args[2].number()
	return least, most, ok && ok2 && most > 0
}

// times is a product of products; ok is false for two attributes, and for two powers of a node that one power is not for all numbers: of 0, above and below the
// line, and of negative numbers, the roots.
func (p product) times(q product) (_ product, ok bool) {
	if p.attr != "" && q.attr != "" {
		return p, false
	}
	out := product{k: p.k * q.k, attr: p.attr + q.attr, factors: slices.Clone(p.factors)}
	for _, f := range q.factors {
		i := slices.IndexFunc(out.factors, func(g powered) bool { return g.is(f.node) && g.scale == f.scale })
		switch {
		case i < 0:
			out.factors = append(out.factors, f)
		case f.power > 0 != (out.factors[i].power > 0) || !isWhole(f.power) || !isWhole(out.factors[i].power):
			return p, false
		default:
			out.factors[i].power += f.power
		}
	}
	return out, true
}

func isWhole(power float64) bool { return power == math.Trunc(power) }

// power is a power of a product. A root of a square is no power: only one that is 1 has others than the inverse.
func (p product) power(k float64) (_ product, ok bool) {
	single := len(p.factors) == 1 && p.k == 1 && p.factors[0].power == 1
	if p.attr != "" || k != -1 && !single {
		return p, false
	}
	out := product{k: math.Pow(p.k, k)}
	for _, f := range p.factors {
		f.power *= k
		out.factors = append(out.factors, f)
	}
	return out, true
}

// terms takes a sum apart into products of numbers and nodes, and a constant, of which ok says whether there is one.
func (n node) terms(whole bool) (terms []term, k float64, attr string, ok bool) {
	return n.termsTo(maxDepth, whole)
}

func (n node) termsTo(depth int, whole bool) (terms []term, k float64, attr string, ok bool) {
	add := func(n node, by float64) {
		if c, a, constant := n.number(); constant {
			k, attr, ok = k+by*c, attr+a, true
			return
		}
		inner, c, a, constant := n.termsTo(depth-1, false)
		for _, t := range inner {
			terms = append(terms, term{t.node, by * t.k})
		}
		if constant {
			k, attr, ok = k+by*c, attr+a, true
		}
	}
	name, args := n.call(whole)
	if depth == 0 {
		name = ""
	}
	switch name {
	case "Add":
		add(args[0], 1)
		add(args[1], 1)
	case "Sub":
		add(args[0], 1)
		add(args[1], -1)
	case "Fma":
		add(node{e: &onnx.Expr{Func: "Mul", Args: n.e.Args[:2]}, op: n.op}, 1)
		add(args[2], 1)
	default:
		return []term{{n, 1}}, 0, "", false
	}
	return terms, k, attr, ok
}

// term is a number times a node.
type term struct {
	node
	k float64
}

// isSum reports a sum of a formula.
func (n node) isSum() bool {
	return n.e != nil && (n.e.Func == "Add" || n.e.Func == "Sub" || n.e.Func == "Fma")
}

// finding is what was found by now of a formula in a graph.
type finding struct {
	*way
	out *ssa.TensorType
	// x is the operand, floats are attributes, and axis is the first axis of means, which the attribute first says; -1 if none was met.
	x      *ssa.Value
	floats map[string]float64
	first  string
	axis   int
	// values are what parts that occur more than once are in the graph.
	values map[*onnx.Expr]*ssa.Value
}

// attempt runs f, and forgets what that finds if it fails.
func (m *finding) attempt(f func() bool) bool {
	was := *m
	was.floats, was.values = maps.Clone(m.floats), maps.Clone(m.values)
	if f() {
		return true
	}
	*m = was
	return false
}

// matches reports that a node of the graph, times a number, is a part of the formula; taken whole, the node may have other uses.
func (m *finding) matches(part, n node, by float64, whole bool) bool {
	p := part.product(true)
	if len(p.factors) == 1 && p.factors[0].e.Operand > 0 && p.factors[0].power == 1 { // whatever the operand is made of
		k, x := n.scaled()
		return m.number(p.k, p.attr, by*k) && m.operand(x.v)
	}
	return m.products(p, n.product(whole), by)
}

// products reports that a product of the graph, times a number, is one of the formula.
func (m *finding) products(p, g product, by float64) bool {
	if len(p.factors) != len(g.factors) {
		return false
	}
	if len(p.factors) == 1 {
		if a, b := p.factors[0], g.factors[0]; a.isSum() && a.power == 1 && b.power == 1 && !m.repeated[a.e] {
			return m.sums(a.node, b.node, by*g.k/p.k, false)
		}
	}
	return m.number(p.k, p.attr, by*g.k) && m.factors(p.factors, g.factors)
}

// near reports that a constant of float32 is meant to be a number.
func near(k, want float64) bool { return math.Abs(k-want) <= 1e-6*math.Abs(want) }

// number reports that a number is that of the formula, k times an attribute if it names one.
func (m *finding) number(k float64, attr string, got float64) bool {
	if attr == "" {
		return near(got, k)
	}
	if got /= k; !near(float64(float32(got)), got) { // an attribute is a float32, also where elements are float64
		return false
	}
	if have, ok := m.floats[attr]; ok {
		return near(got, have)
	}
	m.floats[attr] = got
	return true
}

func (m *finding) factors(ps, gs []powered) bool {
	if len(ps) == 0 {
		return true
	}
	for i, g := range gs {
		if m.attempt(func() bool {
			return m.factor(ps[0], g) && m.factors(ps[1:], slices.Concat(gs[:i], gs[i+1:]))
		}) {
			return true
		}
	}
	return false
}

func (m *finding) factor(p, g powered) bool {
	switch {
	case p.power != g.power:
		return false
	case p.e.Operand > 0:
		return g.scale == 1 && m.operand(g.v)
	case !m.repeated[p.e]:
		return p.isSum() && m.sums(p.node, g.node, g.scale, false) || !p.isSum() && m.calls(p, g, false)
	}
	if v := m.values[p.e]; v != nil {
		return v == g.v && g.scale == 1
	}
	m.values[p.e] = g.v
	return g.v != nil && (p.isSum() && m.sums(p.node, g.node, g.scale, true) || !p.isSum() && m.calls(p, g, true))
}

// operand reports that a value is the operand of the formula.
func (m *finding) operand(v *ssa.Value) bool {
	if m.x == nil && v != nil && ssa.SameType(v.Type, m.out) {
		m.x = v
	}
	return v != nil && v == m.x
}

// sums reports that a sum of the graph, times a number, is one of the formula.
func (m *finding) sums(p, g node, by float64, whole bool) bool {
	ps, k, attr, constant := p.terms(true)
	gs, c, _, constant2 := g.terms(whole)
	if len(ps) != len(gs) || len(ps) > maxFactors || constant != constant2 || constant && !m.number(k, attr, by*c) {
		return false
	}
	return m.terms(ps, gs, by)
}

func (m *finding) terms(ps, gs []term, by float64) bool {
	if len(ps) == 0 {
		return true
	}
	for i, g := range gs {
		if m.attempt(func() bool {
			return m.matches(ps[0].node, g.node, by*g.k/ps[0].k, false) && m.terms(ps[1:], slices.Concat(gs[:i], gs[i+1:]), by)
		}) {
			return true
		}
	}
	return false
}

// calls reports that a function of the graph is one of the formula.
func (m *finding) calls(p, g powered, whole bool) bool {
	name, args := p.call(true)
	have, given := g.call(whole)
	if e := onnx.ExprOf(ssa.Kind(onnx.Namespace + "::" + have)); e != nil && have != name && g.v != nil { // an operator that was found before
		inner := node{e: e, op: g.v.Def()}.product(true)
		return inner.k == 1 && len(inner.factors) == 1 && m.calls(p, inner.factors[0], true)
	}
	switch {
	case name != have:
		return false
	case name == "Clip":
		least, most, ok := p.bounds(args)
		l, _, ok2 := g.bounds(given)
		return ok && ok2 && near(l*g.scale, least/most) && m.matches(args[0], given[0], most*g.scale, false)
	case p.scale != 1 || g.scale != 1:
		return false
	case name == "ReduceMean":
		return m.mean(g.v.Def(), args[1].e.Attr) && m.matches(args[0], given[0], 1, true) // such as the square, which a cube is made of, too
	case len(args) != len(given):
		return false
	}
	for i := range args {
		if !m.matches(args[i], given[i], 1, false) {
			return false
		}
	}
	return true
}

// mean reports a mean over the axes from one on, the same as those of other means, which it keeps.
func (m *finding) mean(o *ssa.Op, attr string) bool {
	axes, ok := reducedAxes(o)
	first := len(m.out.Dims) - len(axes)
	if !ok || len(axes) == 0 || o.AttrInt("keepdims", 1) == 0 || rank(o.Operand(0)) != len(m.out.Dims) || m.axis >= 0 && m.axis != first {
		return false
	}
	for i, a := range axes {
		if a != int64(first+i) {
			return false
		}
	}
	m.axis, m.first = first, attr
	return true
}

// scalarOf is the only element of a constant that is a float.
func scalarOf(v *ssa.Value) (float64, bool) {
	t := onnx.ConstOf(v)
	if t == nil || !t.HasData() || !t.DType.IsFloat() || t.NumElements() != 1 {
		return 0, false
	}
	return t.Float64s()[0], true
}

// other gives the operand of an operator of two that is not v.
func other(o *ssa.Op, v *ssa.Value) *ssa.Value {
	if o.Operand(0) == v {
		return o.Operand(1)
	}
	return o.Operand(0)
}

// definedBy is the op of a kind that defines a value, nil if another one does.
func definedBy(v *ssa.Value, kind ssa.Kind) *ssa.Op {
	if v == nil || v.Def() == nil || v.Def().Kind != kind {
		return nil
	}
	return v.Def()
}

// shapedLike is v where it has the type of like; a constant with axes of size 1 in front of those serves too. It is nil for others.
func shapedLike(r *rewrite.Rewriter, v, like *ssa.Value) *ssa.Value {
	want, t := like.Tensor(), onnx.ConstOf(v)
	if ssa.SameType(v.Type, want) {
		return v
	}
	shape, ok := want.Static()
	if !ok || t == nil || t.DType != want.DType || len(t.Shape) <= len(shape) {
		return nil
	}
	k := len(t.Shape) - len(shape)
	if !allEqual(t.Shape[:k], 1) || !slices.Equal(t.Shape[k:], shape) {
		return nil
	}
	return build(r).Reshape(v, ints(r, shape...))
}
