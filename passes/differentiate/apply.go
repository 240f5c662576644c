package differentiate

import (
	"maps"
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
)

// scope has what the names of a formula stand for.
type scope struct {
	values map[string]*ssa.Value
	lists  map[string][]*ssa.Value // the elements of an argument that is a list
	o      *ssa.Op
}

// apply carries the gradients of an operator's results to its operands by the rule in its row.
func (r *reverser) apply(o *ssa.Op, active map[*ssa.Value]bool, grads map[*ssa.Value]*ssa.Value) {
	if !slices.ContainsFunc(o.Operands(), func(v *ssa.Value) bool { return active[v] }) {
		return
	}
	text := aten.GradientOf(o.Kind)
	if text == "" || o.Schema == nil {
		r.fail("%s has no rule for its gradient", o.Kind)
	}
	u, err := ruleOf(text)
	if err != nil {
		r.fail("the rule for the gradient of %s: %v", o.Kind, err) // a bug, which TestRules finds
	}
	sc := scope{map[string]*ssa.Value{}, map[string][]*ssa.Value{}, o}
	for i := range o.Schema.Args {
		name, v := o.Schema.Args[i].Name, o.Operand(i)
		sc.values[name] = v
		if es, ok := aten.ListElems(v); ok {
			sc.lists[name] = es
		}
	}
	for _, name := range slices.Sorted(maps.Keys(u.guards)) {
		want := u.guards[name]
		if v, has := sc.values[name]; has {
			if lit, ok := aten.LiteralOf(v); !ok || !lit.Equal(want) && !(lit.IsNumber() && want.IsNumber() && lit.Float() == want.Float()) {
				r.fail("%s has a rule for its gradient only if the argument %q is %s", o.Kind, name, want)
			}
		}
	}
	if v, has := sc.values["rounding_mode"]; has {
		if lit, ok := aten.LiteralOf(v); !ok || !lit.IsNone() {
			return // steps have no slope
		}
	}
	r.results(o, &sc, grads)
	together := broadcasts(o)
	for i := range o.Schema.Args {
		name, v := o.Schema.Args[i].Name, o.Operand(i)
		elements := sc.lists[name]
		if !active[v] {
			continue
		}
		at := slices.IndexFunc(u.formulas, func(f formula) bool { return f.operand == name })
		if at < 0 {
			r.fail("%s has no rule for the gradient of its argument %q", o.Kind, name)
		}
		e := u.formulas[at].choose(&sc)
		if e == nil {
			r.fail("%s.%s has no rule for its gradient", o.Kind, o.Schema.Overload)
		}
		if e.op == "number" { // the operand has no gradient
			continue
		}
		g := r.eval(e, &sc)
		if elements != nil && ssa.AsTensor(g.Type) == nil {
			for k, elem := range elements {
				if active[elem] {
					r.addElement(v, len(elements), k, r.op("__getitem__", g, r.int(int64(k))))
				}
			}
			continue
		}
		if together { // operands are broadcast together, and promoted
			g = r.like(r.op("sum_to_size", g, r.op("size", v)), v)
		}
		r.add(grads, v, g)
	}
}

// like is a gradient in the element type of the tensor that it belongs to. The rules are those of real numbers: a complex one is refused, once
// specialize knows.
func (r *reverser) like(g, v *ssa.Value) *ssa.Value {
	message := r.constant(ssa.Str("a gradient through complex numbers cannot be converted"))
	none := r.constant(ssa.Literal{})
	o := r.block.InsertBefore(r.at, prim.If, r.loc, []*ssa.Value{r.op("is_complex", g)}, ssa.AnyTensor)
	refused, real := o.AddBlock(), o.AddBlock()
	refused.Append(prim.RaiseException, r.loc, []*ssa.Value{message, none})
	refused.SetReturns(g)
	block, at := r.block, r.at
	r.block, r.at = real, nil
	real.SetReturns(r.op("type_as", g, v))
	r.block, r.at = block, at
	return o.Result(0)
}

// broadcasts reports an operator of several tensors that are broadcast together.
func broadcasts(o *ssa.Op) bool {
	n := 0
	for _, v := range o.Operands() {
		if v != nil && ssa.AsTensor(v.Type) != nil {
			n++
		}
	}
	return n > 1 && aten.NatureOf(o.Kind) == aten.Pointwise
}

// results names the results and their gradients: result is the first one, result1 the next; grad that of the first one, grads those of the elements of a list.
func (r *reverser) results(o *ssa.Op, sc *scope, grads map[*ssa.Value]*ssa.Value) {
	for i, v := range o.Results {
		suffix := ""
		if i > 0 {
			suffix = string(rune('0' + i))
		}
		sc.values["result"+suffix] = v
		if g := grads[v]; g != nil {
			sc.values["grad"+suffix] = g
		}
	}
	if es := r.lists[o.Result(0)]; es != nil {
		all := make([]*ssa.Value, len(es))
		for i, g := range es {
			if all[i] = g; g == nil {
				all[i] = r.op("zeros_like", r.op("__getitem__", o.Result(0), r.int(int64(i))))
			}
		}
		sc.values["grads"] = r.list(all...)
	}
}

// choose is the first choice whose names the operator has.
func (f *formula) choose(sc *scope) *expr {
	for _, e := range f.choices {
		known := true
		e.names(func(name string) {
			_, has := sc.values[name]
			known = known && has
		})
		if known {
			return e
		}
	}
	return nil
}

// eval builds a formula.
func (r *reverser) eval(e *expr, sc *scope) *ssa.Value { return r.evalAll(e, sc)[0] }

func (r *reverser) evalAll(e *expr, sc *scope) []*ssa.Value {
	one := func(v *ssa.Value) []*ssa.Value { return []*ssa.Value{v} }
	switch e.op {
	case "name":
		return one(sc.values[e.name])
	case "number":
		return one(r.constant(e.value))
	case "list":
		var vs []*ssa.Value
		for _, a := range e.args {
			vs = append(vs, r.eval(a, sc))
		}
		return one(r.list(vs...))
	case "index":
		if e.args[0].op == "call" && e.args[1].op == "number" {
			if vs := r.evalAll(e.args[0], sc); len(vs) > 1 {
				return one(vs[e.args[1].value.Int()])
			}
		}
		return one(r.op("__getitem__", r.eval(e.args[0], sc), r.eval(e.args[1], sc)))
	case "?":
		return one(r.choice(e, sc))
	case "call":
		return r.call(e, sc)
	}
	a, b := r.eval(e.args[0], sc), r.eval(e.args[1], sc)
	return one(r.arithmetic(e.op, a, b))
}

// arithmetic builds an infix operator; PyTorch has no overloads with a number on the left.
func (r *reverser) arithmetic(op string, a, b *ssa.Value) *ssa.Value {
	names := map[string]string{"+": "add", "-": "sub", "*": "mul", "/": "div", "//": "floordiv", "==": "eq"}
	left := ssa.AsTensor(a.Type) == nil && ssa.AsTensor(b.Type) != nil
	switch {
	case left && (op == "+" || op == "*"):
		a, b = b, a
	case left && op == "-":
		return r.op("rsub", b, a)
	case left && op == "/":
		return r.op("mul", r.op("reciprocal", b), a)
	}
	return r.op(names[op], a, b)
}

// choice builds c ? a : b, in which only one of the two is evaluated.
func (r *reverser) choice(e *expr, sc *scope) *ssa.Value {
	o := r.block.InsertBefore(r.at, prim.If, r.loc, []*ssa.Value{r.eval(e.args[0], sc)}, ssa.AnyTensor)
	block, at := r.block, r.at
	for _, side := range e.args[1:] {
		r.block, r.at = o.AddBlock(), nil
		r.block.SetReturns(r.eval(side, sc))
	}
	r.block, r.at = block, at
	return o.Result(0)
}

// call builds a call of an operator of PyTorch, or of one of the functions that formulas have besides.
func (r *reverser) call(e *expr, sc *scope) []*ssa.Value {
	switch e.name {
	case "inverse": // of a permutation that is known
		dims, ok := constInts(r.eval(e.args[0], sc))
		if !ok {
			r.fail("%s needs its dimensions at export for a gradient", sc.o.Kind)
		}
		back := make([]*ssa.Value, len(dims))
		for i, d := range dims {
			if d < 0 {
				d += int64(len(dims))
			}
			if d < 0 || d >= int64(len(dims)) || back[d] != nil {
				r.fail("%s has dimensions that are no permutation", sc.o.Kind)
			}
			back[d] = r.int(int64(i))
		}
		return []*ssa.Value{r.list(back...)}
	case "negatives": // of the numbers in a list
		v := sc.values[e.args[0].name]
		var vs []*ssa.Value
		if ns, ok := constInts(v); ok {
			for _, n := range ns {
				vs = append(vs, r.int(-n))
			}
		} else if elements, ok := aten.ListElems(v); ok {
			for _, n := range elements {
				vs = append(vs, r.op("neg", n))
			}
		} else {
			r.fail("%s needs a list as it was written for a gradient", sc.o.Kind)
		}
		return []*ssa.Value{r.list(vs...)}
	case "unbroadcast": // gradients of the results of broadcast_tensors
		var vs []*ssa.Value
		for i, v := range sc.lists[e.args[1].name] {
			vs = append(vs, r.op("sum_to_size", r.op("__getitem__", sc.values[e.args[0].name], r.int(int64(i))), r.op("size", v)))
		}
		return []*ssa.Value{r.list(vs...)}
	case "sizes": // of the tensors of a list, along a dimension
		var vs []*ssa.Value
		dim := r.eval(e.args[1], sc)
		elements, ok := sc.lists[e.args[0].name]
		if !ok {
			r.fail("%s needs a list as it was written for a gradient", sc.o.Kind)
		}
		for _, v := range elements {
			vs = append(vs, r.op("size", v, dim))
		}
		return []*ssa.Value{r.list(vs...)}
	}
	args := make([]*ssa.Value, len(e.args))
	for i, a := range e.args {
		args[i] = r.eval(a, sc)
	}
	named := map[string]*ssa.Value{}
	for _, name := range slices.Sorted(maps.Keys(e.named)) {
		named[name] = r.eval(e.named[name], sc)
	}
	return r.emit(e.name, args, named)
}

func constInts(v *ssa.Value) ([]int64, bool) {
	lit, ok := aten.LiteralOf(v)
	if !ok {
		return nil, false
	}
	return lit.IntList()
}

// op builds an operator of one result.
func (r *reverser) op(name string, args ...*ssa.Value) *ssa.Value { return r.emit(name, args, nil)[0] }

// emit builds the first overload of an operator that takes the arguments; those that are missing have their defaults.
func (r *reverser) emit(name string, args []*ssa.Value, named map[string]*ssa.Value) []*ssa.Value {
	kind := ssa.Kind("aten::" + name)
	for _, s := range aten.Schemas(kind) {
		operands, ok := complete(s, args, named)
		if !ok {
			continue
		}
		formal := make([]ssa.Type, len(operands))
		for i, v := range operands {
			if formal[i] = s.Args[i].Type; v != nil {
				formal[i] = v.Type
			} else if s.Args[i].Default.IsNone() {
				formal[i] = ssa.NoneType
			}
		}
		if ssa.MatchSchema([]*ssa.Schema{s}, formal) == nil {
			continue
		}
		for i, v := range operands {
			if v == nil {
				operands[i] = r.constant(s.Args[i].Default)
			}
		}
		results := make([]ssa.Type, len(s.Returns))
		for i := range results {
			results[i] = s.Returns[i].Type
			if v, ok := results[i].(*ssa.VarType); ok && v != nil {
				results[i] = ssa.AnyTensor // an element of a list of tensors
			}
		}
		o := r.block.InsertBefore(r.at, kind, r.loc, operands, results...)
		o.Schema = s
		return o.Results
	}
	r.fail("no overload of aten::%s takes what a gradient gives it", name)
	return nil
}

// complete puts arguments in the order of a schema; nil stands for a default.
func complete(s *ssa.Schema, args []*ssa.Value, named map[string]*ssa.Value) ([]*ssa.Value, bool) {
	if len(args) > len(s.Args) {
		return nil, false
	}
	out := make([]*ssa.Value, len(s.Args))
	used := 0
	for i := range s.Args {
		a := &s.Args[i]
		v, byName := named[a.Name]
		switch {
		case a.Writes:
			return nil, false
		case i < len(args) && !byName && !a.KwOnly:
			out[i] = args[i]
		case i < len(args):
			return nil, false
		case byName:
			out[i] = v
			used++
		case !a.HasDefault:
			return nil, false
		}
	}
	return out, used == len(named)
}

// constant makes a constant, once in each block.
func (r *reverser) constant(l ssa.Literal) *ssa.Value {
	key := constantKey{r.block, l.Type().String() + " " + l.String()}
	if v := r.constants[key]; v != nil {
		return v
	}
	o := r.block.InsertBefore(r.at, prim.Constant, r.loc, nil, l.Type())
	if !l.IsNone() {
		o.SetAttr("value", l)
	}
	if r.constants == nil {
		r.constants = map[constantKey]*ssa.Value{}
	}
	r.constants[key] = o.Result(0)
	return o.Result(0)
}

// constantKey is a constant of a block.
type constantKey struct {
	block *ssa.Block
	text  string
}

func (r *reverser) int(n int64) *ssa.Value { return r.constant(ssa.Int(n)) }

// list makes a list of values of one type; of none, a list of ints.
func (r *reverser) list(vs ...*ssa.Value) *ssa.Value {
	elem := ssa.Type(ssa.IntType)
	if len(vs) > 0 {
		if elem = vs[0].Type; ssa.AsTensor(elem) != nil {
			elem = ssa.AnyTensor
		}
	}
	return r.block.InsertBefore(r.at, prim.ListConstruct, r.loc, vs, &ssa.ListType{Elem: elem}).Result(0)
}
