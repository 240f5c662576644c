package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// own marks a symbol of the user while both kinds are in use: a name of theirs may be one of the file's.
const own = "'"

// narrowing applies what the user says of the inputs to what the program says of them.
type narrowing struct {
	im *importer
	// bound is what a symbol of either kind is, in symbols that are not bound.
	bound map[string]sym.Expr
	// origin says by which axis a symbol was bound, for messages.
	origin map[string]string
	names  []string // of the file's symbols that were bound, in order
	users  []string // symbols of the user
}

// narrow applies the specs of the inputs, which must fit what the program says.
func (im *importer) narrow() {
	if len(im.opts.Inputs) == 0 {
		return
	}
	n := &narrowing{im: im, bound: map[string]sym.Expr{}, origin: map[string]string{}}
	var specs []spec.Input
	for _, in := range im.opts.Inputs {
		v := im.state[in.Name]
		if v == nil {
			specs = append(specs, in)
			continue
		}
		n.tensor(v, in.Type)
	}
	for _, p := range im.place(specs) {
		l := &im.leaves[p.leaf]
		switch v := im.param(l.name); {
		case l.fixed != nil:
			im.checkConstant(l, p.t)
		case v == nil: // a number that is no input: it has one value
			im.fail("", "", "input %s is no input of the program", l.name)
		case v.Tensor() != nil:
			n.tensor(v, p.t)
		default:
			n.number(l, v, p.t)
		}
	}
	n.check()
	n.apply()
	im.checkGuards()
}

// param is the parameter of main of that name.
func (im *importer) param(name string) *ssa.Value {
	for _, v := range im.f.Body.Params {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// checkConstant compares a spec with an input that was built in. One without a value is satisfied: that the
// input is a constant is a remark that the user gets anyhow.
func (im *importer) checkConstant(l *userLeaf, t spec.Type) {
	have, _ := im.literal(l.fixed, nil)
	want := ssa.None
	switch {
	case t.Kind == spec.Tensor:
		im.fail("", "export the program again with a tensor", "input %s is the constant %s in this program, not a tensor", l.name, have)
	case t.Const != nil:
		want = *t.Const
	case t.Kind != spec.None:
		return
	}
	if !want.Equal(have) && !(want.IsNumber() && have.IsNumber() && want.Float() == have.Float()) {
		im.fail("", "export the program again with the other value", "input %s is %s in this program, not %s", l.name, have, want)
	}
}

// subst writes e with what is known of its symbols.
func (n *narrowing) subst(e sym.Expr) sym.Expr {
	return e.Subst(func(name string) (sym.Expr, bool) { v, ok := n.bound[name]; return v, ok })
}

// bind says what a symbol is, in what is bound already too.
func (n *narrowing) bind(name string, e sym.Expr, origin string) {
	for k, v := range n.bound {
		n.bound[k] = v.Subst(func(s string) (sym.Expr, bool) { return e, s == name })
	}
	n.bound[name] = e
	n.origin[name] = origin
	if !strings.HasPrefix(name, own) {
		n.names = append(n.names, name)
	}
}

func has(e sym.Expr, name string) bool {
	found := false
	e.Symbols(func(s string) { found = found || s == name })
	return found
}

// spelled is e as the user writes it.
func spelled(e sym.Expr) string { return strings.ReplaceAll(e.String(), own, "") }

// again is what to do where an input has another type than the program was exported for.
const again = "correct its type in --input, or export the program again with such an input"

func (n *narrowing) tensor(p *ssa.Value, in spec.Type) {
	t, u := p.Tensor(), in.Tensor
	if in.Kind != spec.Tensor || u == nil {
		n.im.fail("", again, "input %s is a tensor in this program", p.Name)
	}
	if u.DType != t.DType {
		n.im.fail("", again, "input %s is %v in this program, not %v", p.Name, t.DType, u.DType)
	}
	if !u.Ranked {
		return
	}
	if len(u.Dims) != len(t.Dims) {
		n.im.fail("", again, "input %s has %d axes in this program, not %d", p.Name, len(t.Dims), len(u.Dims))
	}
	for i, want := range u.Dims {
		want = want.Subst(func(name string) (sym.Expr, bool) {
			if !slices.Contains(n.users, name) {
				n.users = append(n.users, name)
			}
			return sym.Symbol(own+name, 0), true
		})
		n.axis(t.Dims[i], want, fmt.Sprintf("axis %d of input %s", i, p.Name))
	}
}

// axis makes a size of the program the one that the user wants.
func (n *narrowing) axis(file, asked sym.Expr, origin string) {
	im := n.im
	have, want := n.subst(file), n.subst(asked)
	if have.Equal(want) {
		return
	}
	value, isNumber := want.Int()
	if have.IsConst() {
		switch name, lone := want.Name(); {
		case isNumber && asked.IsConst() && file.IsConst():
			im.fail("", "export the program again with that axis dynamic", "%s is %s in this program, not %d", origin, have, value)
		case isNumber:
			im.fail("", "", "%s is %s and cannot be %s as well, which is %d elsewhere", origin, have, spelled(asked), value)
		case lone:
			im.Warnf("%s is always %s in this program; for a dynamic one export the program again with dynamic_shapes", origin, have)
			n.bind(name, have, origin)
		default:
			n.solve(want, have, origin)
		}
		return
	}
	if name, ok := have.Name(); ok && !has(want, name) {
		n.bind(name, want, origin)
		return
	}
	if name, ok := want.Name(); ok && !has(have, name) {
		if strings.HasPrefix(name, own) {
			im.Warnf("%s is %s in this program and has no name of its own", origin, spelled(have))
		}
		n.bind(name, have, origin)
		return
	}
	n.solve(have, want, origin)
}

// solve finds the symbol of e at which e is want. Where that is not known the axis stays as the program has it.
func (n *narrowing) solve(e, want sym.Expr, origin string) {
	var names []string
	e.Symbols(func(s string) {
		if !slices.Contains(names, s) {
			names = append(names, s)
		}
	})
	for _, name := range names {
		at := func(v sym.Expr) sym.Expr {
			return e.Subst(func(s string) (sym.Expr, bool) { return v, s == name })
		}
		rest := at(sym.Const(0))
		factor := at(sym.Const(1)).Sub(rest)
		if factor.Is(0) || has(want, name) || !rest.Add(sym.Symbol(name, 0).Mul(factor)).Equal(e) {
			continue
		}
		if v, ok := want.Sub(rest).Divide(factor); ok {
			n.bind(name, v, origin)
			return
		}
	}
	if value, ok := want.Int(); ok && len(names) == 1 {
		vs := search(e, names[0], value)
		if len(vs) == 0 {
			n.im.fail("", "", "%s is %s in this program, which cannot be %d", origin, spelled(e), value)
		}
		if len(vs) == 1 {
			n.bind(names[0], sym.Const(vs[0]), origin)
			return
		}
	}
	n.im.Warnf("%s is %s in this program; that it is %s is not used", origin, spelled(e), spelled(want))
}

// search finds the least values of the only symbol of e at which it is n, two at most.
func search(e sym.Expr, name string, n int64) (found []int64) {
	env := map[string]int64{}
	for v := int64(0); v < 1<<16 && len(found) < 2; v++ {
		env[name] = v
		if got, ok := e.Eval(env); ok && got == n {
			found = append(found, v)
		}
	}
	return found
}

// number builds the value of a number in.
func (n *narrowing) number(l *userLeaf, p *ssa.Value, t spec.Type) {
	im := n.im
	if t.Kind == spec.Tensor || t.Kind == spec.None {
		im.fail("", "", "input %s is %s in this program", p.Name, p.Type)
	}
	c := t.Const
	if c == nil {
		return
	}
	if p.Type == ssa.IntType && c.Kind != ssa.IntLit {
		im.fail("", "", "input %s is an int in this program", p.Name)
	}
	im.m.Inputs = append(im.m.Inputs, ssa.Input{Name: p.Name, Type: p.Type, Const: c})
	if p.Type != ssa.IntType || len(p.Sym) != 1 {
		return
	}
	if l.value != nil && l.value.expr == "" && l.value.n != c.Int() {
		im.fail("", "export the program again with the other value", "input %s is %d in this program, not %d", p.Name, l.value.n, c.Int())
	}
	if name, ok := p.Sym[0].Name(); ok {
		n.bind(name, sym.Const(c.Int()), "input "+p.Name)
	}
}

// check compares the sizes that are numbers now with their ranges.
func (n *narrowing) check() {
	for _, name := range n.names {
		e := n.bound[name]
		v, ok := e.Int()
		lo, hasLo := n.im.syms.mins[name]
		hi, hasHi := n.im.syms.maxes[name]
		if !ok {
			continue
		}
		if v < 0 && n.im.param(name) == nil {
			n.im.fail("", "", "%s cannot have that size in this program", n.origin[name])
		}
		if hasLo && lo > trustedMin && v < lo || hasHi && v > hi {
			n.im.fail("", "", "%s must be %s in this program, not %d", n.sized(name), within(lo, hasLo, hi, hasHi), v)
		}
		if hasLo && v < lo {
			n.im.Warnf("%s is %d, and the program was exported for %d and more: PyTorch may compute something else", n.sized(name), v, lo)
		}
	}
}

// sized says where a symbol comes from: the axis that is that symbol, else the one that is made of it.
func (n *narrowing) sized(name string) string {
	for _, p := range n.im.f.Body.Params {
		if t := p.Tensor(); t != nil {
			for i, d := range t.Dims {
				if s, ok := d.Name(); ok && s == name {
					return fmt.Sprintf("axis %d of input %s", i, p.Name)
				}
			}
		}
	}
	if strings.HasPrefix(n.origin[name], "input ") {
		return n.origin[name]
	}
	return name + " in " + n.origin[name]
}

func within(lo int64, hasLo bool, hi int64, hasHi bool) string {
	switch {
	case hasLo && hasHi:
		return fmt.Sprintf("%d to %d", lo, hi)
	case hasLo:
		return fmt.Sprintf("at least %d", lo)
	}
	return fmt.Sprintf("at most %d", hi)
}

// apply gives all symbols their new names and writes them into the types of the inputs.
func (n *narrowing) apply() {
	im := n.im
	// a symbol of the file that stays gives way to one of the user with its name
	for _, u := range n.users {
		_, isBound := n.bound[u]
		_, known := im.syms.mins[u]
		if isBound || !known && !slices.Contains(im.free, u) {
			continue
		}
		fresh := u + "_1"
		for k := 2; slices.Contains(n.users, fresh) || slices.Contains(im.free, fresh); k++ {
			fresh = u + "_" + strconv.Itoa(k)
		}
		n.bind(u, sym.Symbol(fresh, im.syms.symbol(u).Min()), "")
	}
	final := map[string]sym.Expr{}
	for _, u := range n.users {
		lo := int64(0)
		for _, name := range n.names {
			if s, ok := n.bound[name].Name(); ok && s == own+u {
				lo = max(lo, im.syms.symbol(name).Min())
			}
		}
		final[own+u] = sym.Symbol(u, lo)
	}
	for _, name := range n.names {
		n.bound[name] = n.bound[name].Subst(func(s string) (sym.Expr, bool) { e, ok := final[s]; return e, ok })
	}
	for _, p := range im.f.Body.Params {
		if t := p.Tensor(); t != nil && t.Ranked {
			dims := make([]sym.Expr, len(t.Dims))
			for i, d := range t.Dims {
				dims[i] = n.subst(d)
			}
			p.Type = ssa.Tensor(t.DType, dims...)
		}
	}
	im.syms.learnAll(n.bound)
}

// checkGuards refuses sizes that a condition of the trace excludes.
func (im *importer) checkGuards() {
	im.syms.path = im.guards.resolve
	for _, c := range im.guards.rest {
		if holds, known := im.syms.truth(c.e); known && !holds {
			im.fail("", "export the program again with an example of these sizes", "the inputs must satisfy %s, and those given do not", c.text)
		}
	}
	for _, c := range im.guards.faint {
		if holds, known := im.syms.truth(c.e); known && !holds {
			im.Warnf("the program was exported for %s, which the inputs given do not satisfy: PyTorch may compute something else", c.text)
		}
	}
	im.syms.path = nil
}
