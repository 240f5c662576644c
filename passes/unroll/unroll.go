// Package unroll is the pass that unrolls loops whose number of iterations is
// known.
package unroll

import (
	"maps"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass unrolls the loops of a program, prim::Loop and onnx::Loop, with at most max iterations. A loop that runs at most
// once is always unrolled, and so is a short loop that works on constants only, which is then folded. Other loops stay loops unless the
// user sets max; specialize unrolls those in which something must be known at export.
var Pass = passes.Pass{
	Name: "unroll",
	Doc:  "unroll loops with a known number of iterations",
	Before: `
graph(%x : Float(2)):
  %n : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %y : Float(2) = prim::Loop(%n, %true, %x)
    block0(%i : int, %c : Float(2)):
      %d : Float(2) = aten::mul(%c, %i)
      -> (%true, %d)
  return (%y)`,
	After: `
graph(%x : Float(2)):
  %n : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %1 : Float(2) = aten::mul(%x, %0)
  %2 : int = prim::Constant[value=1]()
  %y : Float(2) = aten::mul(%1, %2)
  return (%y)`,
	Options: []passes.Option{
		{Name: "max", Default: "16", Doc: "the greatest number of iterations; 0 and 1 are the same", Int: true},
	},
	Run: func(c *passes.Context) error {
		for _, f := range c.Module.Funcs {
			u := unroller{c: c, limit: max(int64(c.IntOption("max")), 1)}
			u.block(f.Body)
		}
		return nil
	},
}

// Limits on the operators that unrolling makes: for one loop, for one that is folded, and for all loops of a function.
const (
	maxOps      = 1 << 16
	maxComputed = 1 << 10
	maxTotal    = 1 << 20
)

type unroller struct {
	c     *passes.Context
	limit int64
	made  int64
	// values maps values of the copied body, by their ID, to their copies. All loops use it in turn.
	values []*ssa.Value
}

func (u *unroller) block(b *ssa.Block) {
	for o := range b.Ops() {
		for _, inner := range o.Blocks { // inner loops first: what is copied is small then
			u.block(inner)
		}
		l, ok := loopOf(o)
		if !ok {
			continue
		}
		n := l.trips * int64(size(o.Blocks[0])+1)
		if l.trips > u.limit && (l.trips > maxComputed || n > maxComputed || !onConstants(o)) {
			continue
		}
		if n > u.c.Module.Allow(maxOps) && l.trips > 1 || u.made+n > u.c.Module.Allow(maxTotal) {
			continue
		}
		u.made += n
		u.unroll(o, l)
		u.c.Changed("unrolled")
	}
}

// onConstants reports whether all operands of an ONNX loop, and all values that its body captures, are constant.
func onConstants(o *ssa.Op) bool {
	if o.Kind.Namespace() != onnx.Namespace {
		return false
	}
	body := o.Blocks[0]
	constant := func(v *ssa.Value) bool { return v == nil || onnx.ConstOf(v) != nil || body.Encloses(v.Block()) }
	for _, v := range o.Operands() {
		if !constant(v) {
			return false
		}
	}
	for inner := range body.AllOps() {
		for _, v := range inner.Operands() {
			if !constant(v) {
				return false
			}
		}
	}
	return true
}

func size(b *ssa.Block) (n int) {
	for range b.AllOps() {
		n++
	}
	return n
}

// loop is a Loop of a known number of iterations. Its body has the parameters (iteration, [condition,] carried...) and
// returns (condition, carried..., [scanned...]).
type loop struct {
	trips int64
	// index makes the number of an iteration, a constant.
	index func(b *ssa.Block, before *ssa.Op, i int64) *ssa.Value
	// condition is the parameter that has the condition, nil in the prim dialect.
	condition *ssa.Value
	carried   []*ssa.Value // initial values
	params    []*ssa.Value // what they are in the body
}

// loopOf describes an op if it is such a loop.
func loopOf(o *ssa.Op) (loop, bool) {
	switch o.Kind {
	case "prim::Loop":
		return primLoop(o)
	case "onnx::Loop":
		return onnxLoop(o)
	}
	return loop{}, false
}

func primLoop(o *ssa.Op) (loop, bool) {
	n, ok := literal(o.Operand(0))
	first, ok1 := literal(o.Operand(1))
	again, ok2 := literal(o.Blocks[0].Return(0))
	if !ok || !ok1 || !ok2 || n.Kind != ssa.IntLit || !again.Bool() {
		return loop{}, false
	}
	l := loop{trips: max(n.Int(), 0), carried: o.Operands()[2:], params: o.Blocks[0].Params[1:]}
	if !first.Bool() {
		l.trips = 0
	}
	l.index = func(b *ssa.Block, before *ssa.Op, i int64) *ssa.Value {
		at := b.InsertBefore(before, "prim::Constant", o.Loc, nil, ssa.IntType)
		at.SetAttr("value", ssa.Int(i))
		return at.Result(0)
	}
	return l, true
}

func literal(v *ssa.Value) (ssa.Literal, bool) {
	if d := v.Def(); d != nil && d.Kind == "prim::Constant" {
		return d.Attr("value")
	}
	return ssa.None, false
}

func onnxLoop(o *ssa.Op) (loop, bool) {
	if len(o.Blocks) != 1 || len(o.Blocks[0].Params) != max(o.NumOperands(), 2) {
		return loop{}, false
	}
	body := o.Blocks[0]
	trips, bounded := int64(0), false // no operand: no bound
	n, constant := onnx.ConstInts(o.Operand(0))
	if constant && len(n) == 1 {
		trips, bounded = max(n[0], 0), true
	}
	first, known := truth(o.Operand(1))
	if o.Operand(1) == nil {
		first, known = true, true
	}
	again, decided := truth(body.Return(0))
	if body.Return(0) == body.Params[1] {
		again, decided = first, known
	}
	switch {
	case known && !first, bounded && trips == 0:
		trips = 0
	case !known, o.Operand(0) != nil && !bounded:
		return loop{}, false
	case decided && !again:
		trips = 1
	case !decided && bounded && trips == 1: // whether to go on is not asked
	case !decided || !bounded:
		return loop{}, false
	}
	l := loop{trips: trips, condition: body.Params[1], params: body.Params[2:]}
	if o.NumOperands() > 2 {
		l.carried = o.Operands()[2:]
	}
	if trips == 0 && len(o.Results) > len(l.carried) {
		return loop{}, false // what is scanned is empty, of a shape that only the body knows
	}
	l.index = func(b *ssa.Block, before *ssa.Op, i int64) *ssa.Value {
		return (&onnx.Builder{Block: b, Before: before, Loc: o.Loc}).Const(tensor.ScalarInt(i))
	}
	return l, !slices.Contains(l.carried, nil)
}

// truth returns the value of a constant bool.
func truth(v *ssa.Value) (value, known bool) {
	n, ok := onnx.ConstInts(v)
	return ok && len(n) == 1 && n[0] != 0, ok && len(n) == 1
}

func (u *unroller) unroll(o *ssa.Op, l loop) {
	at, body := o.Block(), o.Blocks[0]
	carried := slices.Clone(l.carried)
	scanned := make([][]*ssa.Value, max(len(o.Results)-len(carried), 0))
	condition := o.Operand(1)
	born := bornIn(o)
	for i := range l.trips {
		u.values = append(u.values, make([]*ssa.Value, at.Func().NumValues()-len(u.values))...)
		u.values[body.Params[0].ID] = l.index(at, o, i)
		if l.condition != nil {
			if condition == nil || i > 0 {
				condition = (&onnx.Builder{Block: at, Before: o, Loc: o.Loc}).Const(tensor.FromInts(tensor.Bool, []int64{}, []int64{1}))
			}
			u.values[l.condition.ID] = condition
		}
		for k, v := range carried {
			u.values[l.params[k].ID] = v
		}
		at.CopyInto(o, body, u.values, nil, nil)
		if len(born) > 0 {
			u.resize(body, u.sizes(body, l, born, i, carried))
		}
		for k := range carried {
			carried[k] = u.of(body.Return(k + 1))
		}
		for k := range scanned {
			scanned[k] = append(scanned[k], row(o, u.of(body.Return(len(carried)+1+k))))
		}
	}
	for k, r := range o.Results {
		switch {
		case k < len(carried):
			takeOver(r, carried[k])
		case r.HasUses():
			all := at.InsertBefore(o, "onnx::Concat", o.Loc, scanned[k-len(carried)], r.Type)
			all.SetAttr("axis", ssa.Int(0))
			rewrite.TakeOver(r, all.Result(0))
		}
	}
	o.Erase()
}

// bornIn finds the symbols of sizes and numbers that the body of a loop makes, with a lower bound of each. They stand for other values in each iteration.
func bornIn(o *ssa.Op) map[string]int64 {
	born := map[string]int64{}
	each := func(v *ssa.Value, f func(e sym.Expr, name string)) {
		if v == nil {
			return
		}
		exprs := v.Sym
		if t := v.Tensor(); t != nil {
			exprs = append(slices.Clone(exprs), t.Dims...)
		}
		for _, e := range exprs {
			e.Symbols(func(name string) { f(e, name) })
		}
	}
	note := func(e sym.Expr, name string) { born[name] = sym.Least(e, name) }
	body := o.Blocks[0]
	for _, p := range body.Params {
		each(p, note)
	}
	for inner := range body.Ops() {
		for _, r := range inner.Results {
			each(r, note)
		}
	}
	outside := func(_ sym.Expr, name string) { delete(born, name) }
	for _, v := range o.Operands() {
		each(v, outside)
	}
	for inner := range body.AllOps() {
		for _, v := range inner.Operands() {
			if v != nil && !body.Encloses(v.Block()) {
				each(v, outside)
			}
		}
	}
	return born
}

// sizes says what the symbols of a body are in iteration i: those of the index and of what is carried, as it is in that iteration, and new symbols. The last
// iteration keeps the others.
func (u *unroller) sizes(body *ssa.Block, l loop, born map[string]int64, i int64, carried []*ssa.Value) map[string]sym.Expr {
	is := map[string]sym.Expr{}
	set := func(e, value sym.Expr) {
		name, lone := e.Name()
		_, made := born[name]
		if _, known := is[name]; lone && made && !known {
			is[name] = value
		}
	}
	if index := body.Params[0].Sym; len(index) == 1 {
		set(index[0], sym.Const(i))
	}
	for k, p := range l.params {
		t, now := p.Tensor(), carried[k].Tensor()
		if t == nil || now == nil || !t.Ranked || !now.Ranked || len(t.Dims) != len(now.Dims) {
			continue
		}
		for axis, d := range t.Dims {
			set(d, now.Dims[axis])
		}
	}
	if i < l.trips-1 {
		for _, name := range slices.Sorted(maps.Keys(born)) {
			if _, known := is[name]; !known {
				is[name] = u.c.Module.FreshSymbol("u", born[name])
			}
		}
	}
	return is
}

// resize puts what symbols are into the types of the copies of a body's values.
func (u *unroller) resize(body *ssa.Block, is map[string]sym.Expr) {
	get := func(name string) (sym.Expr, bool) { e, ok := is[name]; return e, ok }
	change := func(vs []*ssa.Value) {
		for _, v := range vs {
			c := u.of(v)
			t := c.Tensor()
			if c == v || t == nil || len(t.Dims) == 0 {
				continue
			}
			n := *t
			n.Dims = slices.Clone(t.Dims)
			for k, d := range n.Dims {
				n.Dims[k] = d.Subst(get)
			}
			c.Type = &n
		}
	}
	for o := range body.AllOps() {
		change(o.Results)
		for _, b := range o.Blocks {
			change(b.Params)
		}
	}
}

// takeOver replaces the loop's result r by v. The type of r may be more precise than that of the body.
func takeOver(r, v *ssa.Value) {
	old, now := r.Tensor(), v.Tensor()
	if old != nil && now != nil && v.Def() != nil && old.Ranked && !now.Ranked && (now.DType == old.DType || now.DType == 0) {
		v.Type = r.Type
	}
	rewrite.TakeOver(r, v)
}

// of returns the copy of a value of the body in the current iteration.
func (u *unroller) of(v *ssa.Value) *ssa.Value {
	if v.ID < len(u.values) && u.values[v.ID] != nil {
		return u.values[v.ID]
	}
	return v
}

// row returns v as one row of a scanned output.
func row(o *ssa.Op, v *ssa.Value) *ssa.Value {
	axes := (&onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}).Const(tensor.Ints(0))
	t := ssa.Unranked(v.DType())
	if old := v.Tensor(); old != nil && old.Ranked {
		t = ssa.Tensor(old.DType, append([]sym.Expr{sym.Const(1)}, old.Dims...)...)
	}
	return o.Block().InsertBefore(o, "onnx::Unsqueeze", o.Loc, []*ssa.Value{v, axes}, t).Result(0)
}
