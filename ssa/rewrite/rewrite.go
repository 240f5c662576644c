// Package rewrite applies rules to the ops of a function until none fits.
//
// A [Rule] is a table row, written in the text of the IR, or a Go function; the
// driver treats both alike. It visits ops in order, looks rules up by the kind of
// the op at hand, takes the first that fits, and visits again what a change may
// concern. An op that a rule leaves without use goes at once if it is pure.
//
// # Laws for rules
//
//  1. Never worse: the new ops are no more than those that go. Constants do not
//     count. [Result.Grew] names rules that broke this.
//  2. Converge: no rule undoes what another does. The driver panics, with the
//     names of the last rules, when a function is rewritten without end.
//  3. Exact: same values, NaN and the sign of zero included, unless [Rule.Rounds]
//     says otherwise.
package rewrite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Rule is one transformation. It has From and To, and Check where the pattern
// cannot say all; or Kinds and Apply.
type Rule struct {
	Name string

	// From is a list of ops, the last of which is the root: the op that the
	// driver visits. To is a list of ops that define the root's results. See
	// [Compile] for the syntax.
	From, To string
	// Check looks at what From matched and binds what To needs besides. A
	// reason that it gives is why the rule does not apply.
	Check func(m *Match) (whyNot string)

	// Kinds are the roots of a rule in Go; empty: all ops.
	Kinds []ssa.Kind
	// Apply makes the change through the Rewriter, and reports whether it did. Ops that it
	// creates and does not use after all are removed.
	Apply func(r *Rewriter, o *ssa.Op) bool

	// Rounds says that the rule breaks law 3: its results are the same in real numbers, but they are rounded in another place,
	// and infinities and NaN may come out in another one.
	Rounds bool
}

// Config says how rules are applied. The zero value serves for rules that give types to what they create.
type Config struct {
	// Create makes an op before another one and gives its results, which may
	// be existing values when the op folds. An error abandons the rule.
	// Nil makes just the op. Its results have [ssa.AnyTensor] as type, except
	// those of a table rule that replace results of the root: they have the
	// types of those.
	Create func(before *ssa.Op, loc diag.Loc, kind ssa.Kind, results int, operands []*ssa.Value, attrs []ssa.Attr) ([]*ssa.Value, error)
	// IsConst tells values that "!" in patterns asks for. Nil stands for the
	// results of ops that are called Constant, in any namespace.
	IsConst func(v *ssa.Value) bool
	// Try runs the functions of a rule. An error means that the rule does not apply. Nil stands for calling them.
	Try func(apply func()) error
	// Explain is told of table rules that matched and did not pass their Check; nil for nobody.
	Explain func(rule string, o *ssa.Op, whyNot string)
}

func (c *Config) isConst(v *ssa.Value) bool {
	if c.IsConst != nil {
		return c.IsConst(v)
	}
	return v.Def() != nil && !counts(v.Def())
}

// create is Create, or what stands for it.
func (c *Config) create(before *ssa.Op, kind ssa.Kind, results int, operands []*ssa.Value, attrs []ssa.Attr) ([]*ssa.Value, error) {
	if c.Create != nil {
		return c.Create(before, before.Loc, kind, results, operands, attrs)
	}
	types := make([]ssa.Type, results)
	for i := range types {
		types[i] = ssa.AnyTensor
	}
	o := before.Block().InsertBefore(before, kind, before.Loc, operands, types...)
	o.Attrs = attrs
	return o.Results, nil
}

// Result is what a run did.
type Result struct {
	Applied []string // names of rules, in order of application
	Grew    []string // names of rules that left more ops than there were
}

// Rewriter is what rules change the function through.
type Rewriter struct {
	cfg    Config
	f      *ssa.Func
	root   *ssa.Op
	mark   *ssa.Op // the op before the root when the rule began
	queue  []*ssa.Op
	queued map[*ssa.Op]bool
	news   []*ssa.Op // made by the rule at hand
	// touched were changed in place by the rule at hand
	touched []*ssa.Op
	erased  int
	made    int
	done    bool
	found   Match // of the pattern at hand

	// trial applies the rule at hand to the root and says in fits whether it did. It is made once: there are many rules an op.
	trial  func()
	trying *compiled
	fits   bool
}

// Func is the function being rewritten.
func (r *Rewriter) Func() *ssa.Func { return r.f }

// Root is the op that the rule at hand was called for.
func (r *Rewriter) Root() *ssa.Op { return r.root }

// Hoist moves an op that the rule has created to before another op.
func (r *Rewriter) Hoist(o, before *ssa.Op) {
	if o == before {
		return
	}
	o.MoveBefore(before)
	r.note(o)
}

// Inline moves the ops of one of the root's blocks to before the root.
func (r *Rewriter) Inline(b *ssa.Block) {
	for o := range b.AllOps() {
		if counts(o) {
			r.erased++ // made again by collect
		}
	}
	r.root.Block().Splice(r.root, b)
}

// Fits reports that a value has the type of another one, or a more precise one, and so may take its place.
func (r *Rewriter) Fits(v, old *ssa.Value) bool {
	return ssa.SameType(v.Type, old.Type) || finer(v.Type, old.Type)
}

// Create makes an op of one result before the root, at the root's location.
func (r *Rewriter) Create(kind ssa.Kind, operands []*ssa.Value, attrs ...ssa.Attr) *ssa.Value {
	return r.CreateN(kind, 1, operands, attrs...)[0]
}

// CreateN is Create for any number of results.
func (r *Rewriter) CreateN(kind ssa.Kind, results int, operands []*ssa.Value, attrs ...ssa.Attr) []*ssa.Value {
	vs, err := r.cfg.create(r.root, kind, results, operands, attrs)
	if err != nil {
		panic(abandoned{err})
	}
	return vs
}

type abandoned struct{ err error }

// Replace makes the users of an op's results use other values, and erases the
// op and what it alone used. A nil value is right for a result without use. It panics if
// there are not as many values as results.
func (r *Rewriter) Replace(o *ssa.Op, values ...*ssa.Value) {
	if len(values) != len(o.Results) {
		panic(fmt.Sprintf("rewrite: %d values for %d results of %s", len(values), len(o.Results), o.Kind))
	}
	r.collect()
	for i, old := range o.Results {
		if values[i] != nil {
			r.ReplaceUses(old, values[i])
		}
	}
	r.Erase(o)
}

// ReplaceUses makes the users of a value use another one.
func (r *Rewriter) ReplaceUses(old, with *ssa.Value) {
	r.done = true
	if old == with {
		return
	}
	for u := range old.Uses() {
		if u.Op() != nil {
			r.enqueue(u.Op())
		}
	}
	TakeOver(old, with)
	if d := with.Def(); d != nil {
		r.enqueue(d)
	}
}

// TakeOver makes the users of a value use another one. An output of the function keeps its name, unless the new value
// is an output too, an input, or a constant; a value without name takes the old one's.
func TakeOver(old, with *ssa.Value) {
	if old == with {
		return
	}
	if d := with.Def(); old.Name != "" && d != nil && (with.Name == "" || isOutput(old) && !isOutput(with) && counts(d)) {
		with.Name, old.Name = old.Name, ""
	}
	old.ReplaceUses(with)
}

func isOutput(v *ssa.Value) bool {
	for u := range v.Uses() {
		if u.Op() == nil && u.Block().Owner() == nil {
			return true
		}
	}
	return false
}

// Touch has the driver visit an op again: rules that change an op in place say so.
func (r *Rewriter) Touch(o *ssa.Op) {
	r.done = true
	r.touched = append(r.touched, o)
	r.enqueue(o)
}

func (r *Rewriter) enqueue(o *ssa.Op) {
	if !r.queued[o] {
		r.queued[o] = true
		r.queue = append(r.queue, o)
	}
}

// SetOperands changes the operands of an op in place; what the old ones alone were for goes.
func (r *Rewriter) SetOperands(o *ssa.Op, vs ...*ssa.Value) {
	old := o.Operands()
	r.collect()
	o.SetOperands(vs...)
	r.release(old)
	r.Touch(o)
}

// SetOperand changes one operand of an op in place.
func (r *Rewriter) SetOperand(o *ssa.Op, i int, v *ssa.Value) {
	vs := o.Operands()
	vs[i] = v
	r.SetOperands(o, vs...)
}

// Erase removes an op without uses, and what it alone used.
func (r *Rewriter) Erase(o *ssa.Op) {
	r.done = true
	if o == r.root {
		r.collect()
		r.root = nil
	}
	operands := captured(o, nil)
	if !counts(o) {
		r.erased--
	}
	for _, b := range o.Blocks {
		for c := range b.AllOps() {
			if counts(c) {
				r.erased++
			}
		}
	}
	r.erased++
	if o == r.mark {
		r.mark = o.Prev()
	}
	o.Erase()
	r.release(operands)
}

// captured lists the operands of an op and of the ops in its blocks.
func captured(o *ssa.Op, vs []*ssa.Value) []*ssa.Value {
	vs = append(vs, o.Operands()...)
	for _, b := range o.Blocks {
		vs = append(vs, b.Returns()...)
		for c := range b.Ops() {
			vs = captured(c, vs)
		}
	}
	return vs
}

// release erases pure ops that nothing uses any more and has the others visited again: rules look at uses.
func (r *Rewriter) release(vs []*ssa.Value) {
	for _, v := range vs {
		if v == nil {
			continue
		}
		d := v.Def()
		if d == nil || d.Block() == nil {
			continue
		}
		if d != r.root && d.Unused() && r.f.Module().Effects(d) == ssa.Pure {
			r.Erase(d)
			continue
		}
		if v.HasOneUse() {
			// the last user may fit now
			r.enqueue(d)
			for u := range v.Uses() {
				if u.Op() != nil {
					r.enqueue(u.Op())
				}
			}
		}
	}
}

// counts says whether an op is a node of the graph: constants are not.
func counts(o *ssa.Op) bool { return o.Kind.Name() != "Constant" }

// collect queues the ops created since it was last called.
func (r *Rewriter) collect() {
	if r.root == nil {
		return
	}
	for o := r.root.Prev(); o != nil && o != r.mark; o = o.Prev() {
		r.note(o)
	}
	r.mark = r.root.Prev()
}

// note counts and queues a new op.
func (r *Rewriter) note(o *ssa.Op) {
	r.news = append(r.news, o)
	if counts(o) {
		r.made++
	}
	r.enqueue(o)
	for _, b := range o.Blocks {
		for c := range b.AllOps() {
			r.enqueue(c)
			if counts(c) {
				r.made++
			}
		}
	}
}

// discard removes what an abandoned rule created.
func (r *Rewriter) discard() {
	if r.root == nil {
		return
	}
	ssa.EraseBetween(r.mark, r.root)
	for i := len(r.news) - 1; i >= 0; i-- { // hoisted ones
		if o := r.news[i]; o.Block() != nil && o.Unused() {
			o.Erase()
		}
	}
}

// Run applies compiled rules to a function until none fits. It panics if the rules undo each other without end: that is a
// mistake in them, whatever the function is.
func Run(f *ssa.Func, set *Set, cfg Config) Result {
	r := &Rewriter{cfg: cfg, f: f, queued: map[*ssa.Op]bool{}}
	r.trial = func() {
		if apply := r.trying.rule.Apply; apply != nil {
			r.fits = apply(r, r.root)
		} else {
			r.fits = r.table(r.trying, r.root)
		}
	}
	var res Result
	ops := slices.Collect(f.Body.AllOps())
	limit := 64*len(ops) + 1000
	visit := func(o *ssa.Op) {
		for o.Block() != nil {
			name := r.apply(set, o)
			if name == "" {
				return
			}
			res.Applied = append(res.Applied, name)
			if r.made > r.erased {
				res.Grew = append(res.Grew, name)
			}
			if len(res.Applied) > limit {
				last := res.Applied[len(res.Applied)-10:]
				panic("rewrite: the rules do not converge; the last ones: " + strings.Join(last, ", "))
			}
		}
	}
	for _, o := range ops {
		visit(o)
	}
	for len(r.queue) > 0 {
		batch := r.queue
		r.queue = nil
		for _, o := range batch {
			delete(r.queued, o)
			visit(o)
		}
	}
	return res
}

// apply applies the first rule that fits and gives its name, "" for none.
func (r *Rewriter) apply(set *Set, o *ssa.Op) string {
	for _, list := range [...][]*compiled{set.byKind[o.Kind], set.all} {
		for _, c := range list {
			if r.try(c, o) {
				return c.rule.Name
			}
		}
	}
	return ""
}

// run makes the trial of a rule, and returns why the rule is abandoned, nil if it is not.
func (r *Rewriter) run() (why any) {
	defer func() {
		if p := recover(); p != nil {
			if _, is := p.(abandoned); !is {
				panic(p)
			}
			why = p
		}
	}()
	if r.cfg.Try == nil {
		r.trial()
	} else if err := r.cfg.Try(r.trial); err != nil {
		return err
	}
	return nil
}

func (r *Rewriter) try(c *compiled, o *ssa.Op) bool {
	if c.rule.Apply == nil && !r.found.found.Find(written{&r.cfg}, c.from, o) {
		return false
	}
	r.root, r.mark, r.news, r.touched, r.made, r.erased, r.done = o, o.Prev(), r.news[:0], r.touched[:0], 0, 0, false
	r.trying, r.fits = c, false
	if why := r.run(); why != nil {
		if r.done {
			panic(fmt.Sprintf("rewrite: rule %s gave up after it changed something: %v", c.rule.Name, why)) // a bug in the rule
		}
		r.discard()
		return false
	}
	if !r.fits {
		if r.done {
			panic("rewrite: rule " + c.rule.Name + " changed something and reports nothing") // a bug in the rule
		}
		r.discard()
		return false
	}
	if r.root != nil {
		r.collect()
	}
	for i := len(r.news) - 1; i >= 0; i-- {
		if o := r.news[i]; o.Block() != nil && o.Unused() && r.f.Module().Effects(o) == ssa.Pure {
			r.Erase(o)
		}
	}
	if told := r.f.Module().Rewritten; told != nil {
		gone := func(o *ssa.Op) bool { return o.Block() == nil }
		told(c.rule.Name, o, slices.DeleteFunc(slices.Clone(r.news), gone), slices.DeleteFunc(slices.Clone(r.touched), gone))
	}
	return true
}
