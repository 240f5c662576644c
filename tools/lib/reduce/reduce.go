// Package reduce makes models smaller while a test holds of them, as llvm-reduce does for LLVM IR: what is left of a graph for which a
// command fails is small enough to be read.
package reduce

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/ssa"
)

// Reducer makes a model smaller.
type Reducer struct {
	// Load returns the model, the same one each time.
	Load func() (*ssa.Module, error)
	// Test reports whether a smaller model still shows what is looked for. An error ends the reduction.
	Test func(m *ssa.Module) (bool, error)
	// Progress, if not nil, is told of each smaller model that the test holds of, with the number of its operators.
	Progress func(operators int)
}

// edit makes a module smaller. It reports whether it applies: the same edit of the same module does the same.
type edit func(m *ssa.Module) bool

// Run returns the smallest model that it finds, and the number of models that were tested. Each is valid. The model as it was loaded must
// pass the test.
func (r *Reducer) Run() (m *ssa.Module, tested int, err error) {
	var done []edit
	swept := false // whether what is unused may go: it may be what matters
	// build makes the module of the edits so far and one more, and returns nil if that one does not apply.
	build := func(next edit) (*ssa.Module, error) {
		m, err := r.Load()
		if err != nil {
			return nil, err
		}
		for _, e := range done {
			e(m)
		}
		if next != nil && !next(m) {
			return nil, nil
		}
		return m, nil
	}
	current, err := build(nil)
	if err != nil {
		return nil, 0, err
	}
	try := func(e edit) (bool, error) {
		m, err := build(e)
		if err != nil || m == nil || ssa.Verify(m) != nil {
			return false, err
		}
		tested++
		holds, err := r.Test(m)
		if err == nil && !holds {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		current, done = m, append(done, e)
		if r.Progress != nil {
			r.Progress(Operators(m))
		}
		return true, nil
	}
	for {
		before := len(done)
		if swept, err = try(sweep); err != nil {
			return nil, tested, err
		}
		for _, s := range strategies {
			if err := inChunks(s, &current, func(e edit) (bool, error) {
				if swept {
					return try(func(m *ssa.Module) bool {
						ok := e(m)
						sweep(m)
						return ok
					})
				}
				return try(e)
			}); err != nil {
				return nil, tested, err
			}
		}
		if len(done) == before {
			return current, tested, nil
		}
	}
}

// strategy is a kind of edit. A module has a number of sites for it, and remove edits those from first to last.
type strategy struct {
	sites  func(m *ssa.Module) int
	remove func(m *ssa.Module, first, last int) bool
}

// fewSites is the number of sites up to which all ranges of them are tried: they grow with its square.
const fewSites = 12

// inChunks tries to remove all sites, then halves, and so on to single sites, from the last to the first: what is behind needs what is
// before. Of few sites it tries each range.
func inChunks(s strategy, current **ssa.Module, try func(edit) (bool, error)) error {
	for size := s.sites(*current); size >= 1; {
		step, next := size, size/2
		if size <= fewSites {
			step, next = 1, size-1
		}
		for last := s.sites(*current); last >= size || last > 0 && step > 1; {
			first := max(last-size, 0)
			at := [2]int{first, last}
			holds, err := try(func(m *ssa.Module) bool { return s.remove(m, at[0], at[1]) })
			if err != nil {
				return err
			}
			if last -= step; holds {
				last = min(first, s.sites(*current))
			}
		}
		size = next
	}
	return nil
}

var strategies = []strategy{
	{sites: outputs, remove: removeOutputs},
	{sites: func(m *ssa.Module) int { return len(operators(m)) }, remove: func(m *ssa.Module, first, last int) bool {
		return removeOperators(m, first, last, nearby, ssa.SameType)
	}},
	{sites: func(m *ssa.Module) int { return len(operators(m)) }, remove: func(m *ssa.Module, first, last int) bool { return removeOperators(m, first, last, nearby, bothTensors) }},
	{sites: func(m *ssa.Module) int { return len(blocks(m)) }, remove: flatten},
	{sites: func(m *ssa.Module) int { return len(slots(m)) }, remove: removeSlots},
	{sites: func(m *ssa.Module) int { return len(elements(m)) }, remove: removeElements},
	{sites: outputs, remove: unpackOutputs},
	{sites: func(m *ssa.Module) int { return len(operators(m)) }, remove: makeConstants},
	{sites: func(m *ssa.Module) int { return len(operators(m)) }, remove: func(m *ssa.Module, first, last int) bool {
		return removeOperators(m, first, last, earlier, ssa.SameType)
	}},
	{sites: inputs, remove: removeInputs},
	{sites: func(m *ssa.Module) int { return len(m.Funcs) - 1 }, remove: removeFunctions},
	{sites: func(m *ssa.Module) int { return len(fields(m)) }, remove: removeFields},
}

// Operators counts the operators of a module without constants.
func Operators(m *ssa.Module) int {
	n := 0
	for _, f := range m.Funcs {
		for o := range f.Body.AllOps() {
			if o.Kind.Name() != "Constant" {
				n++
			}
		}
	}
	return n
}

// sweep erases what nothing uses and nobody would miss.
func sweep(m *ssa.Module) bool {
	erased := false
	for _, f := range m.Funcs {
		ssa.EraseUnused(f.Body, func(o *ssa.Op) bool {
			may := m.Effects(o)&^(ssa.Fresh|ssa.Reads) == 0
			erased = erased || may
			return may
		})
	}
	return erased
}

func outputs(m *ssa.Module) int { return m.Main().Body.NumReturns() }

func removeOutputs(m *ssa.Module, first, last int) bool {
	f := m.Main()
	if last-first == f.Body.NumReturns() || last > f.Body.NumReturns() {
		return false // a model without outputs is another kind of error
	}
	for i := last - 1; i >= first; i-- {
		f.Body.RemoveReturn(i)
		if i < len(f.OutputNames) {
			f.OutputNames = slices.Delete(slices.Clone(f.OutputNames), i, i+1)
		}
	}
	return true
}

// unpackOutputs returns the elements of the tuples that the main function returns.
func unpackOutputs(m *ssa.Module, first, last int) bool {
	f := m.Main()
	returns := f.Body.Returns()
	if last > len(returns) {
		return false
	}
	for i := last - 1; i >= first; i-- {
		d := returns[i].Def()
		if d == nil || d.Kind != "prim::TupleConstruct" || d.NumOperands() == 0 {
			return false
		}
		returns = slices.Replace(returns, i, i+1, d.Operands()...)
	}
	f.Body.SetReturns(returns...)
	f.OutputNames = nil
	return true
}

// makeConstants makes constants of lists of constants.
func makeConstants(m *ssa.Module, first, last int) bool {
	ops := operators(m)
	if last > len(ops) {
		return false
	}
	found := false
	for _, o := range ops[first:last] {
		if o.Kind != "prim::ListConstruct" {
			continue
		}
		list, ok := o.Result(0).Type.(*ssa.ListType)
		if !ok {
			continue
		}
		lit := ssa.List(list.Elem)
		for _, v := range o.Operands() {
			if d := v.Def(); d != nil && d.Kind == "prim::Constant" {
				if l, ok := d.Attr("value"); ok && l.Kind != ssa.TensorLit {
					lit.Elems = append(lit.Elems, l)
				}
			}
		}
		if len(lit.Elems) == o.NumOperands() {
			c := o.Block().InsertBefore(o, "prim::Constant", o.Loc, nil, list)
			c.SetAttr("value", lit)
			o.Replace(c.Results[0])
			found = true
		}
	}
	return found
}

// operators are all operators but constants, in order.
func operators(m *ssa.Module) []*ssa.Op {
	var ops []*ssa.Op
	for _, f := range m.Funcs {
		for o := range f.Body.AllOps() {
			if o.Kind.Name() != "Constant" {
				ops = append(ops, o)
			}
		}
	}
	return ops
}

// bothTensors is for values whose types a file does not state.
func bothTensors(a, b ssa.Type) bool { return ssa.AsTensor(a) != nil && ssa.AsTensor(b) != nil }

// removeOperators erases operators. A result that is used becomes the first one of the candidates whose type fits, or else an input of the main
// function.
func removeOperators(m *ssa.Module, first, last int, candidates func(o *ssa.Op) []*ssa.Value, fits func(a, b ssa.Type) bool) bool {
	ops := operators(m)
	if last > len(ops) {
		return false
	}
	names := map[*ssa.Func]*ssa.Names{}
	for i := last - 1; i >= first; i-- {
		o := ops[i]
		f := o.Block().Func()
		if names[f] == nil {
			names[f] = ssa.NamesOf(f)
		}
		for _, r := range o.Results {
			if !r.HasUses() {
				continue
			}
			near := candidates(o)
			at := slices.IndexFunc(near, func(v *ssa.Value) bool { return fits(v.Type, r.Type) })
			switch {
			case at >= 0:
				r.ReplaceUses(near[at])
			case f == m.Main():
				name := r.Name
				if name == "" {
					name = "v"
				}
				r.Name = ""
				r.ReplaceUses(f.Body.AddParam(names[f].Unique(ssa.BareName(name)+".in"), r.Type))
			default:
				return false // callers would have to give a value
			}
		}
		o.Erase()
	}
	return true
}

// nearby are the operands of an operator, and behind them the elements of lists, tuples and dicts among them.
func nearby(o *ssa.Op) []*ssa.Value {
	var own, inner []*ssa.Value
	for _, v := range o.Operands() {
		if v == nil {
			continue
		}
		own = append(own, v)
		if isContainer(v.Def()) {
			inner = append(inner, v.Def().Operands()...)
		}
	}
	return append(own, inner...)
}

// earlier are the results of the operators before one in its block, from the nearest to the farthest, and the parameters of the block.
func earlier(o *ssa.Op) []*ssa.Value {
	var list []*ssa.Value
	for p := o.Prev(); p != nil; p = p.Prev() {
		list = append(list, p.Results...)
	}
	return append(list, o.Block().Params...)
}

func isContainer(o *ssa.Op) bool {
	return o != nil && (o.Kind == "prim::ListConstruct" || o.Kind == "prim::TupleConstruct" || o.Kind == "prim::DictConstruct")
}

// element is an element of a list, tuple or dict that an operator makes: the first of its operands, of which a dict has two.
type element struct {
	of *ssa.Op
	at int
}

func elements(m *ssa.Module) []element {
	var list []element
	for _, o := range operators(m) {
		if isContainer(o) {
			for i := 0; i < o.NumOperands(); i += perElement(o) {
				list = append(list, element{o, i})
			}
		}
	}
	return list
}

func perElement(o *ssa.Op) int {
	if o.Kind == "prim::DictConstruct" {
		return 2
	}
	return 1
}

// removeElements makes lists, tuples and dicts shorter. A tuple that is unpacked does not fit then, and the module is not valid.
func removeElements(m *ssa.Module, first, last int) bool {
	list := elements(m)
	if last > len(list) {
		return false
	}
	for i := last - 1; i >= first; i-- {
		o, at := list[i].of, list[i].at
		t, tuple := o.Results[0].Type.(*ssa.TupleType)
		if tuple && t.Name != "" {
			return false // the class says what fields there are
		}
		o.SetOperands(slices.Delete(slices.Clone(o.Operands()), at, at+perElement(o))...)
		if tuple {
			o.Results[0].Type = &ssa.TupleType{Elems: slices.Delete(slices.Clone(t.Elems), at, at+1)}
		}
	}
	return true
}

// slot is a result of an If, or a value that a Loop carries or collects.
type slot struct {
	op *ssa.Op
	at int
}

func slots(m *ssa.Module) []slot {
	var list []slot
	for _, o := range operators(m) {
		if len(o.Blocks) > 0 {
			for i := range o.Results {
				list = append(list, slot{o, i})
			}
		}
	}
	return list
}

// removeSlots takes results away from Ifs and Loops. What uses one gets what was carried into the loop, or what a branch returns from before it.
func removeSlots(m *ssa.Module, first, last int) bool {
	list := slots(m)
	if last > len(list) {
		return false
	}
	for i := last - 1; i >= first; i-- {
		o, at := list[i].op, list[i].at
		r, body := o.Results[at], o.Blocks[0]
		if skip := leading(o); len(body.Params) > 0 {
			if carried := len(body.Params) - skip; at < carried {
				body.Params[skip+at].ReplaceUses(o.Operand(2 + at))
				r.ReplaceUses(o.Operand(2 + at))
				body.RemoveParam(skip + at)
				o.SetOperands(slices.Delete(slices.Clone(o.Operands()), 2+at, 3+at)...)
			}
			if r.HasUses() {
				return false
			}
			body.RemoveReturn(1 + at)
			o.RemoveResult(at)
			continue
		}
		for _, b := range o.Blocks {
			if v := b.Return(at); r.HasUses() && comesBefore(v, o) {
				r.ReplaceUses(v)
			}
		}
		if r.HasUses() {
			return false
		}
		for _, b := range o.Blocks {
			b.RemoveReturn(at)
		}
		o.RemoveResult(at)
	}
	return true
}

// comesBefore reports whether a value is made outside of the blocks of an operator.
func comesBefore(v *ssa.Value, o *ssa.Op) bool {
	at := v.Block()
	return !slices.ContainsFunc(o.Blocks, func(b *ssa.Block) bool { return b.Encloses(at) })
}

// leading is the number of parameters of a loop's body before those that it carries.
func leading(o *ssa.Op) int {
	if o.Kind.Namespace() == "onnx" {
		return 2
	}
	return 1
}

// branch is a block that may stand in the place of the operator that owns it.
type branch struct {
	op    *ssa.Op
	block int
}

func blocks(m *ssa.Module) []branch {
	var list []branch
	for _, o := range operators(m) {
		for i := range o.Blocks {
			list = append(list, branch{o, i})
		}
	}
	return list
}

// flatten replaces an If by one of its branches, and a Loop by one iteration.
func flatten(m *ssa.Module, first, last int) bool {
	list := blocks(m)
	if last > len(list) || last-first != 1 {
		return false
	}
	o, b := list[first].op, list[first].op.Blocks[list[first].block]
	results, skip := b.Returns(), 0
	if len(b.Params) > 0 { // a loop: the number of iterations, a condition and what it carries
		skip = leading(o)
		results = results[min(1, len(results)):]
	}
	if len(results) != len(o.Results) || o.Block().Func() != m.Main() || len(b.Params) > skip && o.NumOperands() != 2+len(b.Params)-skip {
		return false // scans, for example
	}
	names := ssa.NamesOf(m.Main())
	for i, p := range b.Params {
		if !p.HasUses() {
			continue
		}
		if i >= skip {
			p.ReplaceUses(o.Operand(2 + i - skip))
			continue
		}
		p.ReplaceUses(m.Main().Body.AddParam(names.Unique("iteration"), p.Type))
	}
	results = results[:len(o.Results):len(o.Results)]
	for i, v := range results {
		if at := slices.Index(b.Params, v); at >= skip && at >= 0 && len(b.Params) > 0 {
			results[i] = o.Operand(2 + at - skip)
		}
	}
	o.Block().Splice(o, b)
	o.Replace(results...)
	return true
}

func inputs(m *ssa.Module) int { return len(m.Main().Body.Params) }

// removeInputs removes the inputs of a range that nothing uses.
func removeInputs(m *ssa.Module, first, last int) bool {
	body, found := m.Main().Body, false
	for i := min(last, len(body.Params)) - 1; i >= first; i-- {
		if p := body.Params[i]; !p.HasUses() {
			delete(m.Weights, p.Name)
			delete(m.Defaults, p.Name)
			m.Inputs = slices.DeleteFunc(slices.Clone(m.Inputs), func(in ssa.Input) bool { return in.Name == ssa.BareName(p.Name) })
			body.RemoveParam(i)
			found = true
		}
	}
	return found
}

// removeFunctions removes functions besides the main one, by their places in the module.
func removeFunctions(m *ssa.Module, first, last int) bool {
	var others []*ssa.Func
	for _, f := range m.Funcs {
		if f != m.Main() {
			others = append(others, f)
		}
	}
	if last > len(others) {
		return false
	}
	for _, f := range others[first:last] {
		m.RemoveFunc(f)
	}
	return true
}

// field is a field of an object.
type field struct {
	of   *ssa.Object
	name string
}

// fields are those of all objects of the program, those of inner objects behind that which holds them.
func fields(m *ssa.Module) []field {
	var list []field
	seen := map[*ssa.Object]bool{}
	var walk func(o *ssa.Object)
	walk = func(o *ssa.Object) {
		if o == nil || seen[o] {
			return
		}
		seen[o] = true
		for _, f := range o.Fields {
			list = append(list, field{o, f.Name})
			if f.Value.Kind == ssa.ObjectLit {
				walk(f.Value.Object)
			}
		}
	}
	walk(m.Root)
	return list
}

func removeFields(m *ssa.Module, first, last int) bool {
	list := fields(m)
	if last > len(list) {
		return false
	}
	for _, f := range list[first:last] {
		f.of.Remove(f.name)
	}
	return true
}

// Describe says what a module consists of.
func Describe(m *ssa.Module) string {
	return fmt.Sprintf("%d operators, %d inputs, %d outputs", Operators(m), inputs(m), outputs(m))
}
