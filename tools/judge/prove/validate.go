package prove

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/simplify"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Reason is why the graph behind a change computes what the graph before it does.
type Reason int

// The reasons, the strongest first. The last two are no proofs: AgreesOnInputs is of random operands, and Unknown of none.
const (
	// Congruent: the same operators of the same operands.
	Congruent Reason = iota
	// Computed: constants that the interpreter computes, equal bit by bit.
	Computed
	// ForAllElements: the prover, at the sizes of the graph.
	ForAllElements
	// OnReals is ForAllElements for real numbers: the results differ by rounding.
	OnReals
	// AtSmallSizes is ForAllElements or OnReals for the same operators at smaller sizes.
	AtSmallSizes
	// ByRule: an application of a rule that is proved up to its bound.
	ByRule
	AgreesOnInputs
	Unproved
	reasons
)

func (r Reason) String() string {
	return [...]string{"same operators", "constants computed", "for all elements", "on real numbers", "at smaller sizes", "by a proved rule", "agrees on random operands", "not proved"}[r]
}

// Change is what one pass, or one application of a rule in it, did to a graph. By counts its equations by what they follow from.
type Change struct {
	Pass, Rule string
	By         [reasons]int
	// Whys are the reasons of equations that are not proved.
	Whys map[string]int
}

// Proved reports that all equations are proved.
func (c *Change) Proved() bool { return c.By[AgreesOnInputs]+c.By[Unproved] == 0 }

// Validation proves of a conversion, change by change, that the graph computes what it did before. It begins with the first graph that
// consists of ONNX operators. A graph of an older opset means what its operators mean after the steps up to the newest one.
//
// Values of two graphs are equal if they are the same operator of equal operands. What a change made in another way is a claim on the
// operators between it and the next equal values, which stand for any tensors of their types: the kernels, the solver and the table of
// proved rules decide it.
type Validation struct {
	*Prover
	// Dims are the sizes that the symbols of inputs stand for.
	Dims map[string]int64
	// Limit bounds the time for a claim, and Total that for all of them.
	Limit, Total time.Duration
	// Changes are the changes that were compared, without those that left everything as it was.
	Changes []*Change
	// Before counts the passes that ran on graphs with operators of PyTorch, and Large the changes that were not told apart.
	Before int
	// Values counts the values of the last graph, and Sure those whose equations are all proved.
	Values, Sure int

	live    *ssa.Module
	last    *snapshot
	rounds  map[string]bool
	proved  map[string]bool
	hashes  map[*tensor.Tensor]string
	passing string // the pass that runs
	copied  int    // operators
	spent   time.Duration
	err     error
	// hopeless counts the claims on applications of a rule that the prover could not decide in its time: further ones are not asked.
	hopeless map[string]int
}

// maxCopied bounds the operators that are copied to tell the applications of rules apart.
const maxCopied = 1 << 22

// NewValidation makes a validation.
func NewValidation(p *Prover) *Validation {
	v := &Validation{Prover: p, Limit: 3 * time.Second, Total: 2 * time.Minute, rounds: map[string]bool{}, proved: provedRules(), hashes: map[*tensor.Tensor]string{}, hopeless: map[string]int{}}
	for _, r := range simplify.Rules() {
		v.rounds[r.Name] = r.Rounds
	}
	return v
}

//go:embed README.md
var table string

// provedRules are the rules that the table says are proved.
func provedRules() map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, " | "); len(cells) > 5 && strings.HasPrefix(cells[1], "proved") && !strings.HasPrefix(cells[1], "proved in part") {
			out[strings.TrimPrefix(cells[0], "| ")] = true
		}
	}
	return out
}

// Watch makes the observer of a conversion of a module.
func (v *Validation) Watch(m *ssa.Module) passes.Observer {
	v.live = m
	m.Rewritten = func(rule string, _ *ssa.Op, _, _ []*ssa.Op) {
		if v.copied < maxCopied {
			v.advance(v.passing, rule)
		}
	}
	return passes.Observer{
		BeforePass: func(e *passes.Event) { v.passing = e.Pass.Name },
		AfterPass: func(e *passes.Event) {
			if v.last == nil && !graphOfONNX(m) {
				v.Before++
			}
			v.advance(e.Pass.Name, "")
		},
	}
}

// graphOfONNX reports that a module has left PyTorch's operators behind.
func graphOfONNX(m *ssa.Module) bool {
	if m.Main() == nil || len(m.Funcs) != 1 {
		return false
	}
	for o := range m.Main().Body.AllOps() {
		if ns := o.Kind.Namespace(); ns == "aten" || ns == "prim" {
			return false
		}
	}
	return m.UsesNamespace(onnx.Namespace)
}

// snapshot is a copy of the graph.
type snapshot struct {
	f     *ssa.Func
	of    map[*ssa.Value]*ssa.Value // copies, by the values of the module
	from  map[*ssa.Value]*ssa.Value // the values of the module, by the copies
	order map[*ssa.Value]int
	// open are the values of which an equation is not proved.
	open map[*ssa.Value]bool
}

// take copies the graph, in the newest encoding.
func (v *Validation) take() *snapshot {
	f := v.live.Main()
	g, values := copied(f)
	s := &snapshot{f: g, of: map[*ssa.Value]*ssa.Value{}, from: map[*ssa.Value]*ssa.Value{}, order: map[*ssa.Value]int{}, open: map[*ssa.Value]bool{}}
	each(f.Body, func(x *ssa.Value) {
		v.copied++
		s.of[x] = values[x.ID]
	})
	if n := onnx.DefaultOpset(v.live); n > 0 && n < onnx.Newest {
		failed := false
		onnx.RaiseBlock(g.Body, n, func(*ssa.Op, error) { failed = true })
		if failed {
			return nil
		}
		onnx.SetOpset(g.Module(), onnx.Newest)
	}
	each(g.Body, func(x *ssa.Value) { s.order[x] = len(s.order) })
	for x, y := range s.of {
		if _, ok := s.order[y]; ok {
			s.from[y] = x
		} else {
			delete(s.of, x) // a step up has replaced it
		}
	}
	return s
}

// each calls a function for the values of a block and those within, in order.
func each(b *ssa.Block, f func(*ssa.Value)) {
	for _, p := range b.Params {
		f(p)
	}
	for o := range b.Ops() {
		for _, inner := range o.Blocks {
			each(inner, f)
		}
		for _, r := range o.Results {
			f(r)
		}
	}
}

// advance compares the graph with the one before.
func (v *Validation) advance(pass, rule string) {
	began := time.Now()
	defer func() { v.spent += time.Since(began) }()
	if v.err != nil || v.last == nil && !graphOfONNX(v.live) {
		return
	}
	cur := v.take()
	if cur == nil {
		return
	}
	if v.last != nil {
		s := &sweep{v: v, b: v.last, a: cur, rule: rule, began: began, change: &Change{Pass: pass, Rule: rule, Whys: map[string]int{}}}
		if s.run(); s.change.By != [reasons]int{} {
			v.Changes = append(v.Changes, s.change)
		}
	}
	v.last = cur
	v.Values, v.Sure = len(cur.order), len(cur.order)-len(cur.open)
}

// Err is the error that ended the validation, such as a solver that is not installed.
func (v *Validation) Err() error { return v.err }

// Count sums up the equations of all changes.
func (v *Validation) Count() (by [reasons]int) {
	for _, c := range v.Changes {
		for i, n := range c.By {
			by[i] += n
		}
	}
	return by
}

// hash is the content of a tensor.
func (v *Validation) hash(t *tensor.Tensor) string {
	if h, ok := v.hashes[t]; ok {
		return h
	}
	h := fmt.Sprintf("%p", t)
	switch {
	case t.DType == tensor.String:
		h = fmt.Sprintf("%q", t.StringData())
	case t.HasData() && t.DType.Size() > 0:
		h = fmt.Sprintf("%x", sha256.Sum256(t.Clone().Bytes()))
	}
	h = fmt.Sprint(t.DType, t.Shape, h)
	v.hashes[t] = h
	return h
}

// sweep compares two graphs. Values that are equal have one class.
type sweep struct {
	v      *Validation
	b, a   *snapshot // before and after
	rule   string
	change *Change

	classes map[string]int
	before  map[*ssa.Value]int
	after   map[*ssa.Value]int
	inB     map[int]*ssa.Value // the first value of a class that is used
	inA     map[int]*ssa.Value
	// same maps values to earlier ones, or to ones of the graph before, that they are shown to equal.
	same  map[*ssa.Value]*ssa.Value
	pairs map[*ssa.Value][]*ssa.Value // which values of the graph before a value may equal
	tried map[[2]*ssa.Value]int
	again bool
	began time.Time
}

// run finds out which values are equal, and fills in the change.
func (s *sweep) run() {
	s.same, s.tried = map[*ssa.Value]*ssa.Value{}, map[[2]*ssa.Value]int{}
	s.number(false)
	if s.equal() {
		if s.differs() {
			s.change.By[Congruent]++
		}
		s.pass()
		return
	}
	s.pair()
	for range 8 {
		if s.again = false; true {
			s.number(true)
		}
		if !s.again {
			break
		}
	}
	for i, x := range s.a.f.Body.Returns() {
		if i >= s.b.f.Body.NumReturns() || s.after[x] != s.before[s.b.f.Body.Return(i)] {
			s.change.By[Unproved]++
			s.a.open[x] = true
		}
	}
	s.pass()
}

// differs reports that the graph behind the change has other operators, or fewer.
func (s *sweep) differs() bool { return len(s.inA) != len(s.inB) || len(s.a.order) != len(s.b.order) }

// equal reports that all results are.
func (s *sweep) equal() bool {
	if s.a.f.Body.NumReturns() != s.b.f.Body.NumReturns() {
		return false
	}
	for i, x := range s.a.f.Body.Returns() {
		if s.after[x] != s.before[s.b.f.Body.Return(i)] {
			return false
		}
	}
	return true
}

// pass hands on which values are open.
func (s *sweep) pass() {
	openClass := map[int]bool{}
	for x := range s.b.open {
		openClass[s.before[x]] = true
	}
	for x := range s.a.order {
		if openClass[s.after[x]] {
			s.a.open[x] = true
		}
	}
}

// number gives all values their classes, and tries claims on the way if it is asked to.
func (s *sweep) number(claims bool) {
	s.classes, s.inB, s.inA = map[string]int{}, map[int]*ssa.Value{}, map[int]*ssa.Value{}
	s.before, s.after = map[*ssa.Value]int{}, map[*ssa.Value]int{}
	s.block(s.b, s.b.f.Body, "main", s.before, func(x *ssa.Value) {
		if c := s.before[x]; s.inB[c] == nil && x.HasUses() {
			s.inB[c] = x
		}
	})
	s.block(s.a, s.a.f.Body, "main", s.after, func(x *ssa.Value) {
		if claims {
			s.settle(x)
		}
		if c := s.after[x]; s.inA[c] == nil && x.HasUses() {
			s.inA[c] = x
		}
	})
}

func (s *sweep) class(key string) int {
	c, ok := s.classes[key]
	if !ok {
		c = len(s.classes)
		s.classes[key] = c
	}
	return c
}

// block numbers the values of a block. The parameters of a block within an operator are named after what the operator is given: the
// results of two bodies are compared as functions of them.
func (s *sweep) block(of *snapshot, b *ssa.Block, name string, class map[*ssa.Value]int, visit func(*ssa.Value)) {
	set := func(x *ssa.Value, key string) {
		if y := s.same[x]; y != nil {
			if c, ok := class[y]; ok {
				class[x] = c
			} else {
				class[x] = s.before[y]
			}
		} else {
			class[x] = s.class(key)
		}
		visit(x)
	}
	for i, p := range b.Params {
		key := fmt.Sprintf("%s parameter %d", name, i)
		if b.Owner() == nil {
			key = "input " + p.Name
		}
		set(p, key)
	}
	for o := range b.Ops() {
		var key strings.Builder
		key.WriteString(string(o.Kind))
		for _, a := range attrsOf(o.Kind, o.Attrs) {
			if a.Value.Kind == ssa.TensorLit {
				fmt.Fprintf(&key, " %s=%s", a.Name, s.v.hash(a.Value.Tensor))
			} else {
				fmt.Fprintf(&key, " %s=%s", a.Name, a.Value)
			}
		}
		for _, x := range o.Operands() {
			if x == nil {
				key.WriteString(" -")
			} else {
				fmt.Fprintf(&key, " %d", class[x])
			}
		}
		if s.v.live.Effects(o)&^(ssa.Fresh|ssa.Reads) != 0 && len(o.Results) > 0 { // drawn numbers, and what is printed
			fmt.Fprintf(&key, " of %p", of.from[o.Results[0]])
		}
		outer := key.String()
		for i, inner := range o.Blocks {
			s.block(of, inner, fmt.Sprintf("%d block %d", s.class(outer), i), class, visit)
			key.WriteString(" (")
			for _, x := range inner.Returns() {
				fmt.Fprintf(&key, " %d", class[x])
			}
			key.WriteString(")")
		}
		for i, r := range o.Results {
			set(r, fmt.Sprintf("%s result %d", key.String(), i))
		}
	}
}

// pair finds out which values stand at the same place of both graphs: those that are the same value of the module, those of the same
// name, results of the graph and of blocks, and operands of the same operator.
func (s *sweep) pair() {
	s.pairs = map[*ssa.Value][]*ssa.Value{}
	add := func(b, a *ssa.Value) {
		if b != nil && a != nil && len(s.pairs[a]) < 4 && !slices.Contains(s.pairs[a], b) {
			s.pairs[a] = append(s.pairs[a], b)
		}
	}
	named := map[string]*ssa.Value{}
	for x := range s.b.order {
		if x.Name != "" {
			named[x.Name] = x
		}
	}
	returns := func(b, a *ssa.Block) {
		for i := range min(a.NumReturns(), b.NumReturns()) {
			add(b.Return(i), a.Return(i))
		}
	}
	returns(s.b.f.Body, s.a.f.Body)
	each(s.a.f.Body, func(x *ssa.Value) {
		y := s.b.of[s.a.from[x]]
		if y == nil {
			if x.Name != "" {
				add(named[x.Name], x)
			}
			return
		}
		add(y, x)
		o, p := y.Def(), x.Def()
		if o == nil || p == nil || o.Kind != p.Kind {
			return
		}
		for i := range min(o.NumOperands(), p.NumOperands()) {
			add(o.Operand(i), p.Operand(i))
		}
		for i := range min(len(o.Blocks), len(p.Blocks)) {
			returns(o.Blocks[i], p.Blocks[i])
		}
	})
}

// settle looks for a value of the graph before that a value equals, unless there is one.
func (s *sweep) settle(x *ssa.Value) {
	for _, y := range s.pairs[x] {
		if s.before[y] == s.after[x] {
			return
		}
	}
	for _, y := range s.pairs[x] {
		key := [2]*ssa.Value{y, x}
		if s.tried[key] >= 2 || !alike(y, x) {
			continue
		}
		s.tried[key]++
		r, why := s.claim(y, x)
		if r == Unproved {
			continue
		}
		s.change.By[r]++
		if r == AgreesOnInputs {
			s.change.Whys[why]++
			s.a.open[x] = true
		}
		z := s.inB[s.after[x]]
		if z == nil {
			s.same[x] = y
			s.after[x] = s.before[y]
			return
		}
		if s.b.order[y] < s.b.order[z] {
			y, z = z, y
		}
		s.same[y] = z
		s.again = true
		return
	}
}

// alike reports two tensors of one element type and rank.
func alike(x, y *ssa.Value) bool {
	t, u := x.Tensor(), y.Tensor()
	return t != nil && u != nil && t.DType == u.DType && (!t.Ranked || !u.Ranked || len(t.Dims) == len(u.Dims))
}

// bounds of the part of a graph that a claim is about.
const (
	maxConeOps      = 64
	maxShared       = 1 << 6  // elements of a constant that both graphs have; a greater one stands for any
	maxConeElements = 1 << 16 // of a constant
)

// claim tries to prove two values equal.
func (s *sweep) claim(y, x *ssa.Value) (Reason, string) {
	best, reason := Unproved, "operators without a meaning here"
	until := time.Now().Add(s.v.Limit)
	for _, level := range [...]struct {
		deep           int
		through, large bool
	}{{0, true, false}, {0, true, true}, {2, true, false}, {0, false, false}} {
		if (level.deep > 0 || !level.through) && best != Unproved {
			break
		}
		if s.v.spent+time.Since(s.began) > s.v.Total {
			return best, "the time has passed"
		}
		c, constant := s.cones(y, x, level.deep, level.through, level.large)
		if c == nil {
			continue
		}
		if constant {
			if computed(c) {
				return Computed, ""
			}
			return Unproved, ""
		}
		c.Rule, c.Dims, c.Limit = s.rule, s.v.Dims, s.v.Limit
		r, why := s.decide(*c, level.large, until)
		if r < AgreesOnInputs {
			return r, ""
		}
		if r == AgreesOnInputs {
			best, reason = r, why
		}
	}
	return best, reason
}

// decide tries two inputs, and then asks the prover, at the sizes of the graph and at smaller ones. Claims with large constants are not
// proved.
func (s *sweep) decide(c Claim, large bool, until time.Time) (Reason, string) {
	exact := c
	c.Rounds = s.rule == "" || s.v.rounds[s.rule] || !s.v.known(s.rule)
	exact.Rounds = s.v.rounds[s.rule] // which says that equal numbers need not come out
	small, shrunk := smallest(c)
	probe := c
	if shrunk {
		probe = small
	}
	v := s.v.search(probe, Verdict{Outcome: Open}, nil, 4)
	if v.Outcome == Refuted {
		return Unproved, ""
	}
	tried, why := v.Tried > 0, "large constants"
	expressible := true
	large = large && tooLarge(c) || s.rule != "" && s.v.hopeless[s.rule] >= 3
	prove := func(c Claim) bool {
		if c.Limit = time.Until(until); c.Limit <= 0 {
			why = "the time has passed"
			return false
		}
		v, err := s.v.prove(c, 0)
		if err != nil {
			s.v.err = err
		}
		why, expressible = v.Why, v.Outcome != Inexpressible
		return err == nil && v.Outcome == Proved
	}
	if !large {
		if prove(exact) {
			if exact.Rounds {
				return OnReals, ""
			}
			return ForAllElements, ""
		}
		if c.Rounds && !exact.Rounds && expressible && prove(c) {
			return OnReals, ""
		}
		at := why
		if small.Rounds = exact.Rounds; shrunk {
			if prove(small) {
				return AtSmallSizes, ""
			}
			small.Rounds = c.Rounds
			if c.Rounds && !exact.Rounds && expressible && prove(small) {
				return AtSmallSizes, ""
			}
		}
		why = at
		s.v.hopeless[s.rule]++
	}
	switch {
	case !tried:
		return Unproved, ""
	case s.v.proved[s.rule]:
		return ByRule, ""
	}
	return AgreesOnInputs, why
}

// tooLarge reports constants with too many elements for the prover.
func tooLarge(c Claim) bool {
	for _, f := range []*ssa.Func{c.Before, c.After} {
		for o := range f.Body.AllOps() {
			if len(o.Results) == 0 {
				continue
			}
			if t := onnx.ConstOf(o.Result(0)); t != nil && t.NumElements() > maxConeElements {
				return true
			}
		}
	}
	return false
}

func (v *Validation) known(rule string) bool { _, ok := v.rounds[rule]; return ok }

// computed reports that two functions without inputs have equal results, bit by bit.
func computed(c *Claim) bool {
	a, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(c.Before, nil)
	if err != nil {
		return false
	}
	b, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(c.After, nil)
	return err == nil && a[0].Tensor != nil && b[0].Tensor != nil && same(a[0].Tensor, b[0].Tensor, 0)
}

// cone is the part of a graph that computes a value from others, its leaves.
type cone struct {
	ops    []*ssa.Op
	leaves []*ssa.Value
	seen   map[*ssa.Value]bool
	failed bool
}

// grow adds what computes x, down to where stop says so. The operators come in the order in which they must run.
func (c *cone) grow(x *ssa.Value, depth int, stop func(x *ssa.Value, depth int) bool) {
	if c.seen[x] || c.failed {
		return
	}
	c.seen[x] = true
	o := x.Def()
	if o == nil || stop(x, depth) {
		c.leaves = append(c.leaves, x)
		return
	}
	for _, r := range o.Results {
		c.seen[r] = true
	}
	for _, in := range append(o.Operands(), captured(o)...) {
		if in != nil {
			c.grow(in, depth+1, stop)
		}
	}
	if c.ops = append(c.ops, o); len(c.ops) > maxConeOps {
		c.failed = true
	}
}

// captured are the values that the blocks of an operator use from outside.
func captured(o *ssa.Op) []*ssa.Value {
	if len(o.Blocks) == 0 {
		return nil
	}
	own, used := map[*ssa.Value]bool{}, []*ssa.Value{}
	var walk func(b *ssa.Block)
	walk = func(b *ssa.Block) {
		for _, p := range b.Params {
			own[p] = true
		}
		for o := range b.Ops() {
			for _, x := range o.Operands() {
				if x != nil && !own[x] {
					used = append(used, x)
				}
			}
			for _, inner := range o.Blocks {
				walk(inner)
			}
			for _, r := range o.Results {
				own[r] = true
			}
		}
		for _, x := range b.Returns() {
			if x != nil && !own[x] {
				used = append(used, x)
			}
		}
	}
	for _, b := range o.Blocks {
		walk(b)
	}
	return used
}

// cones makes the claim that y before and x after are equal for all values of what both depend on. Leaves are values that both graphs
// have, at least deep operators away, and large constants, unless these are wanted themselves; through says that integers of which there are few are computed from what they depend on, since they are mostly
// sizes. It is nil if there is no such claim, or if it has large constants that only one graph has; constant says that it depends on nothing.
func (s *sweep) cones(y, x *ssa.Value, deep int, through, large bool) (c *Claim, constant bool) {
	of := map[*ssa.Func]*cone{}
	stop := func(root *ssa.Value, class map[*ssa.Value]int, other map[int]*ssa.Value, both bool) func(*ssa.Value, int) bool {
		return func(v *ssa.Value, depth int) bool {
			if t := onnx.ConstOf(v); t != nil {
				return !large && t.NumElements() > maxShared && other[class[v]] != nil
			}
			if v == root {
				return !both && deep == 0 && other[class[v]] != nil
			}
			if depth <= deep || other[class[v]] == nil {
				return false
			}
			if t := v.Tensor(); through && t != nil && t.DType == tensor.Int64 && t.Ranked && len(t.Dims) <= 1 {
				return false
			}
			return true
		}
	}
	both := s.inA[s.before[y]] != nil && s.inB[s.after[x]] != nil
	cb, ca := &cone{seen: map[*ssa.Value]bool{}}, &cone{seen: map[*ssa.Value]bool{}}
	cb.grow(y, 0, stop(y, s.before, s.inA, both))
	ca.grow(x, 0, stop(x, s.after, s.inB, both))
	of[s.b.f], of[s.a.f] = cb, ca
	if cb.failed || ca.failed {
		return nil, false
	}
	var inputs []int
	types := map[int]ssa.Type{}
	leaf := func(v *ssa.Value, class map[*ssa.Value]int) {
		k := class[v]
		if _, ok := types[k]; !ok {
			inputs = append(inputs, k)
			types[k] = v.Type
		}
	}
	for _, v := range cb.leaves {
		leaf(v, s.before)
	}
	for _, v := range ca.leaves {
		leaf(v, s.after)
	}
	build := func(f *ssa.Func, c *cone, root *ssa.Value, class map[*ssa.Value]int) *ssa.Func {
		m := ssa.NewModule(f.Module().Dialects...)
		m.Opsets = maps.Clone(f.Module().Opsets)
		g := m.NewFunc("part")
		params := map[int]*ssa.Value{}
		for i, k := range inputs {
			params[k] = g.Body.AddParam(fmt.Sprintf("x%d", i), types[k])
		}
		values := make([]*ssa.Value, f.NumValues())
		for _, v := range c.leaves {
			values[v.ID] = params[class[v]]
		}
		for _, o := range c.ops {
			if t := onnx.ConstOf(o.Result(0)); t != nil && t.NumElements() > maxConeElements && len(inputs) > 0 && !large {
				return nil
			}
			o.CopyTo(g.Body, values, nil, nil)
		}
		g.Body.SetReturns(values[root.ID])
		return g
	}
	before, after := build(s.b.f, cb, y, s.before), build(s.a.f, ca, x, s.after)
	if before == nil || after == nil {
		return nil, false
	}
	return &Claim{Before: before, After: after}, len(inputs) == 0
}

// smallest is a claim of small sizes, if there is one: windows of a convolution do not fit into all.
func smallest(c Claim) (Claim, bool) {
	for _, images := range [...]bool{true, false} {
		for _, least := range [...]int64{2, 4, 7} {
			if small, ok := shrink(c, least, images); ok {
				return small, true
			}
		}
	}
	return c, false
}

// shrink makes the sizes of a claim small, if there are operators of the same kinds for them: sizes beyond 8 become small ones from least on
// that differ, products and multiples of them products and multiples of those, in constants too. The sizes of constants of floats stay; images
// says that axes behind the second are no such sizes.
func shrink(c Claim, least int64, images bool) (Claim, bool) {
	var all, behind []int64
	for _, p := range c.Before.Body.Params {
		t := p.Tensor()
		if t == nil || !t.Ranked {
			return c, false
		}
		shape, err := sizes(t, c.Dims)
		if err != nil {
			return c, false
		}
		all = append(all, shape...)
		if images && len(shape) > 2 {
			behind = append(behind, shape[2:]...)
		}
	}
	eachShape := func(f *ssa.Func, visit func(o *ssa.Op, t *tensor.Tensor)) {
		for o := range f.Body.AllOps() {
			if o.Kind == "onnx::Constant" {
				if t := onnx.ConstOf(o.Result(0)); t != nil && t.DType == tensor.Int64 && t.NumElements() <= 16 && t.HasData() {
					visit(o, t)
				}
			}
		}
	}
	for _, f := range []*ssa.Func{c.Before, c.After} {
		eachShape(f, func(_ *ssa.Op, t *tensor.Tensor) { all = append(all, t.Int64s()...) })
	}
	kept := map[int64]bool{} // sizes of constants, which do not shrink
	for _, f := range []*ssa.Func{c.Before, c.After} {
		for o := range f.Body.AllOps() {
			if len(o.Results) == 0 {
				continue
			}
			if t := onnx.ConstOf(o.Result(0)); t != nil && (t.DType != tensor.Int64 || t.NumElements() > 16) {
				for _, n := range t.Shape {
					kept[n] = true
				}
			}
		}
	}
	to := smaller(slices.DeleteFunc(all, func(n int64) bool { return kept[n] }), least)
	windows := smaller(behind, least)
	small := func(shape []int64) []int64 {
		out := mapped(shape, to)
		if images && len(shape) > 2 {
			copy(out[2:], mapped(shape[2:], windows))
		}
		return out
	}
	if len(to)+len(windows) == 0 {
		return c, false
	}
	was := [2][]int64{}
	out := c
	out.Dims = nil
	for i, f := range []*ssa.Func{c.Before, c.After} {
		g := clone(f)
		for k, p := range g.Body.Params {
			shape, _ := sizes(c.Before.Body.Params[k].Tensor(), c.Dims)
			p.Type = &ssa.TensorType{DType: p.DType(), Ranked: true, Dims: ssa.Sizes(small(shape))}
		}
		for o := range g.Body.AllOps() {
			for _, a := range slices.Clone(o.Attrs) { // such as the number of groups
				if m, ok := to[a.Value.Int()]; ok && a.Value.Kind == ssa.IntLit {
					o.SetAttr(a.Name, ssa.Int(m))
				}
			}
		}
		eachShape(g, func(o *ssa.Op, t *tensor.Tensor) {
			o.SetAttr("value", ssa.TensorValue(tensor.FromInts(t.DType, t.Shape, mapped(t.Int64s(), to))))
		})
		if infer(g) != nil || ssa.Verify(g.Module()) != nil {
			return c, false
		}
		old, new := f.Body.Return(0).Tensor(), g.Body.Return(0).Tensor()
		if old == nil || new == nil || !new.Ranked {
			return c, false
		}
		shape, ok := new.Static()
		if !ok || slices.Contains(shape, 0) {
			return c, false
		}
		was[i] = shape
		if i == 0 {
			out.Before = g
		} else {
			out.After = g
		}
	}
	return out, slices.Equal(was[0], was[1])
}

func mapped(v []int64, to map[int64]int64) []int64 {
	out := slices.Clone(v)
	for i, n := range out {
		if m, ok := to[n]; ok {
			out[i] = m
		}
	}
	return out
}

// smaller chooses a small size for each that is greater than 8.
func smaller(all []int64, least int64) map[int64]int64 {
	slices.Sort(all)
	all = slices.Compact(all)
	taken, to := map[int64]bool{}, map[int64]int64{}
	for _, n := range all {
		if n >= 0 && n <= 8 {
			taken[n] = true
		}
	}
	chosen := []int64{}
	for _, n := range all {
		if n <= 8 || n > 1<<31 { // the greatest numbers stand for no size
			continue
		}
		m := int64(0)
		for _, p := range chosen {
			if q := n / p; n%p == 0 {
				if r, ok := to[q]; ok {
					m = to[p] * r
				} else if q <= 8 && m == 0 {
					m = to[p] * q
				}
			}
		}
		for k := least; m == 0; k++ {
			if !taken[k] {
				m = k
			}
		}
		taken[m], to[n] = true, m
		chosen = append(chosen, n)
	}
	return to
}
