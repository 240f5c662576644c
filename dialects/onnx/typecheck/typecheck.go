// Package typecheck compares the types that an ONNX module states with those that its operators compute.
//
// Types and shapes are inferred from the inputs on, on a copy in the newest encoding, so it works at any opset. An
// operator that cannot run, one whose operands are of types that its opset does not have, and a stated type that
// contradicts what is computed are errors. What is not known contradicts nothing, and sizes that are no numbers are not
// compared.
package typecheck

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// IDs of what is found.
const (
	IDShape  = "onnx-shape"  // an operator that cannot run on operands of these types and sizes
	IDStated = "onnx-stated" // a stated type that is not the one that is computed
	IDType   = "onnx-type"   // an operand of a type that the opset's operator does not take
)

// Module reports what is wrong with the types of a module's main function. The module is not changed.
func Module(m *ssa.Module) *diag.List {
	c := newChecker(m)
	c.examine()
	return c.report()
}

// Mend is Module for a file that is read, where a shape may be stated that only computations with sizes that are no numbers contradict: the standard's own inference
// takes it, and runtimes run the model. The value gets the type that is computed, and there is a warning. With all, that holds for every shape that is stated wrongly, and
// outputs of which less is stated than computed get the computed type.
func Mend(m *ssa.Module, all bool) *diag.List {
	c := newChecker(m)
	c.examine()
	if slices.ContainsFunc(c.found, func(f finding) bool { return f.result != nil }) {
		c.mend(all)
	}
	if all {
		c.complete()
	}
	c.outputs()
	return c.report()
}

func newChecker(m *ssa.Module) *checker {
	c := &checker{m: m, list: &diag.List{Table: &m.Locs}, opset: onnx.DefaultOpset(m)}
	if c.opset == 0 {
		c.opset = onnx.Newest
	}
	return c
}

// examine finds what is wrong.
func (c *checker) examine() {
	f := c.m.Main()
	if f == nil {
		return
	}
	values := c.inferCopy(f, nil)
	c.wrong = map[*ssa.Op]bool{}
	for o := range f.Body.AllOps() {
		d := c.operands(o, func(v *ssa.Value) ssa.Type {
			if w := c.copies[v.ID]; w != nil {
				return w.Type
			}
			return values[v.ID].Type
		})
		if d != nil {
			c.wrong[o] = true
			c.taken = append(c.taken, *d)
		}
	}
}

// outputs warns of outputs of the graph whose stated sizes hold for some sizes of the dynamic axes only: the file was made from an
// example, and the operators give other sizes for others.
func (c *checker) outputs() {
	f := c.m.Main()
	if f == nil {
		return
	}
	axes := map[string]bool{}
	for _, p := range f.Body.Params {
		if t := p.Tensor(); t != nil {
			for _, d := range t.Dims {
				d.Symbols(func(name string) { axes[name] = true })
			}
		}
	}
	for _, v := range f.Body.Returns() {
		if v.Def() == nil || v.Block() != f.Body || c.copies[v.ID] == nil {
			continue
		}
		stated, is := ssa.AsTensor(c.stated[v.ID]), c.copies[v.ID].Tensor()
		if stated == nil || is == nil || !stated.Ranked || !is.Ranked || len(stated.Dims) != len(is.Dims) {
			continue
		}
		for i, d := range is.Dims {
			known := !d.IsConst()
			d.Symbols(func(name string) { known = known && axes[name] })
			if stated.Dims[i].IsConst() && known {
				c.list.Add(diag.Diagnostic{ID: IDStated, Severity: diag.Warning, Op: string(v.Def().Kind), Loc: v.Def().Loc, Hint: "the shape that is computed counts",
					Message: fmt.Sprintf("the output %s is stated to be %v, and it is %v", v.Name, stated, is)})
				break
			}
		}
	}
}

// mend warns of what a checker that follows no sizes does not find, and sets the types.
func (c *checker) mend(all bool) {
	found := map[*ssa.Value]bool{}
	if !all {
		plain := newChecker(c.m)
		plain.plain = true
		plain.examine()
		for _, f := range plain.found {
			found[f.result] = true
		}
	}
	for i := range c.found {
		f := &c.found[i]
		if f.result == nil || found[f.result] || f.result.DType() != c.copies[f.result.ID].DType() {
			continue
		}
		f.Severity, f.Hint = diag.Warning, "the shape that is computed counts"
		f.result.Type = c.copies[f.result.ID].Type
	}
}

// complete gives outputs of the graph whose rank is not stated the types that are computed.
func (c *checker) complete() {
	f := c.m.Main()
	if f == nil {
		return
	}
	for _, v := range f.Body.Returns() {
		if w := c.copies[v.ID]; v.Def() != nil && w != nil && w.Tensor() != nil && (v.Tensor() == nil || !v.Tensor().Ranked) {
			v.Type = w.Type
		}
	}
}

func (c *checker) report() *diag.List {
	for _, f := range c.found {
		if f.op == nil || !c.wrong[f.op] {
			c.list.Add(f.Diagnostic)
		}
	}
	c.list.Items = append(c.list.Items, c.taken...)
	return c.list
}

// inferCopy infers a copy of a function in the newest encoding. It returns the values of the copy by the ID of the value
// that they stand for.
func (c *checker) inferCopy(f *ssa.Func, require onnx.Require) []*ssa.Value {
	g, values := c.copy(f)
	if onnx.RaiseModule(g.Module(), true) == nil { // what is not understood is not inferred
		c.byName(g)
		c.infer(g.Body, require)
	}
	return values
}

// Demands calls require for the sizes that operators of the main function, outside of branches and loops, need to be equal.
// The op is one of a copy in the newest encoding, at the location of the module's.
func Demands(m *ssa.Module, require func(op *ssa.Op, x, y sym.Expr, broadcast bool)) {
	f := m.Main()
	if f == nil {
		return
	}
	c := &checker{m: m, list: &diag.List{Table: &m.Locs}}
	c.inferCopy(f, func(b *ssa.Block, x, y sym.Expr, broadcast bool) {
		if b.Owner() == nil {
			require(c.at, x, y, broadcast)
		}
	})
}

// Infer calls found for each result of a function of ONNX operators, with the value of the same type in a copy in the newest
// encoding. It reports the operators that cannot run.
func Infer(f *ssa.Func, found func(v, inferred *ssa.Value)) *diag.List {
	c := newChecker(f.Module())
	c.inferCopy(f, nil)
	for id, v := range c.results {
		if v != nil && c.copies[id] != nil {
			found(v, c.copies[id])
		}
	}
	c.found = slices.DeleteFunc(c.found, func(f finding) bool { return f.result != nil })
	return c.report()
}

// finding is what inference found, and the op of the module.
type finding struct {
	diag.Diagnostic
	op     *ssa.Op
	result *ssa.Value // of the module, of which a type is stated that is not its own; else nil
}

type checker struct {
	m       *ssa.Module
	list    *diag.List
	opset   int
	stated  []ssa.Type   // by ID of the module's value
	copies  []*ssa.Value // by ID, what has taken the value's place in the copy
	places  []int        // by ID of the copy's value, 1 more than the ID of the module's, 0 for none
	ops     []*ssa.Op    // by ID, the op of the module that computes the value
	results []*ssa.Value // by ID, the value if an op computes it
	found   []finding
	at      *ssa.Op           // the op of the copy that is inferred
	wrong   map[*ssa.Op]bool  // operands are the root of what inference found
	taken   []diag.Diagnostic // what is said of these
	plain   bool              // sizes that are no numbers are not followed
}

// copy copies a function to a module of its own. Every value is named by the ID of the one that it stands for.
func (c *checker) copy(f *ssa.Func) (*ssa.Func, []*ssa.Value) {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = maps.Clone(c.m.Opsets)
	m.SharesSymbols(c.m)
	g := m.NewFunc(f.Name)
	values := make([]*ssa.Value, f.NumValues())
	for _, p := range f.Body.Params {
		q := g.Body.AddParam("", p.Type)
		q.Sym = p.Sym
		values[p.ID] = q
	}
	g.Body.CopyInto(nil, f.Body, values, nil, nil)
	for _, v := range f.Body.Returns() {
		g.Body.SetReturns(append(g.Body.Returns(), values[v.ID])...)
	}
	c.stated = make([]ssa.Type, f.NumValues())
	c.ops = make([]*ssa.Op, f.NumValues())
	c.results = make([]*ssa.Value, f.NumValues())
	for o := range f.Body.AllOps() {
		for _, r := range o.Results {
			c.ops[r.ID], c.results[r.ID] = o, r
		}
	}
	c.copies = make([]*ssa.Value, f.NumValues())
	for id, v := range values {
		if v != nil {
			v.Name, c.stated[id] = strconv.Itoa(id), v.Type
		}
	}
	return g, values
}

// byName finds the values of the copy again: bringing an op to its newest form may put another one in its place.
func (c *checker) byName(g *ssa.Func) {
	c.places = make([]int, g.NumValues())
	note := func(v *ssa.Value) {
		if id, err := strconv.Atoi(v.Name); err == nil && id < len(c.copies) {
			c.copies[id], c.places[v.ID] = v, id+1
		}
	}
	for _, p := range g.Body.Params {
		note(p)
	}
	for o := range g.Body.AllOps() {
		for _, r := range o.Results {
			note(r)
		}
		for _, inner := range o.Blocks {
			for _, p := range inner.Params {
				note(p)
			}
		}
	}
}

// place gives the ID of the module's value that one of the copy stands for; ok is false for one that was made on the way.
func (c *checker) place(v *ssa.Value) (id int, ok bool) {
	if v.ID >= len(c.places) {
		return 0, false
	}
	return c.places[v.ID] - 1, c.places[v.ID] > 0
}

// infer infers a block of the copy, and compares. An op that fails has results of which nothing is known.
func (c *checker) infer(b *ssa.Block, require onnx.Require) {
	for o := range b.Ops() {
		c.at = o
		err := onnx.InferWith(o, require)
		if c.plain {
			forget(o)
		}
		if err == nil {
			c.compare(o)
			continue
		}
		at := o
		var inner *onnx.OpError
		if errors.As(err, &inner) {
			at, err = inner.Op, inner.Err
		}
		c.find(at, nil, diag.Diagnostic{ID: IDShape, Op: string(at.Kind), Loc: at.Loc, Message: strings.TrimPrefix(err.Error(), string(at.Kind)+": ")})
		for _, r := range o.Results {
			r.Type, r.Sym = ssa.AnyTensor, nil
		}
	}
}

// forget leaves of the types of an op's results what the standard's own inference finds at least, which follows no sizes that are no numbers.
func forget(o *ssa.Op) {
	symbolic := func(e sym.Expr) bool { return !e.IsConst() }
	for _, r := range o.Results {
		if slices.ContainsFunc(r.Sym, symbolic) {
			r.Sym = nil
		}
	}
	switch o.Kind {
	case "onnx::Reshape", "onnx::Expand":
		if _, known := onnx.SymOf(o.Operand(1)); !known {
			o.Results[0].Type = ssa.Unranked(o.Results[0].DType())
		}
	}
}

// find keeps what was found at an op of the copy, of a result of the module's if it is not nil.
func (c *checker) find(o *ssa.Op, result *ssa.Value, ds ...diag.Diagnostic) {
	for _, d := range ds {
		f := finding{d, nil, result}
		for _, r := range o.Results {
			if id, ok := c.place(r); ok {
				f.op = c.ops[id]
			}
		}
		c.found = append(c.found, f)
	}
}

// compare compares the results of an op, and of those in its blocks, with what is stated of them.
func (c *checker) compare(o *ssa.Op) {
	for i, r := range o.Results {
		id, ok := c.place(r)
		if !ok || c.stated[id] == nil {
			continue
		}
		c.find(o, c.results[id], Stated(o, i, c.stated[id])...)
	}
	for _, b := range o.Blocks {
		for inner := range b.Ops() {
			c.compare(inner)
		}
	}
}

// Stated compares the type of a result with one that is stated of it.
func Stated(o *ssa.Op, i int, stated ssa.Type) []diag.Diagnostic {
	is := o.Results[i].Type
	why := contradiction(stated, is)
	if why == "" {
		return nil
	}
	return []diag.Diagnostic{{ID: IDStated, Op: string(o.Kind), Loc: o.Loc, Hint: "correct what the file states of it, or leave that out",
		Message: fmt.Sprintf("output %d is stated to be %v, and it is %v: %s", i, stated, is, why)}}
}

// contradiction says why no value has both types, "" if some may. A value is also an optional that is there.
func contradiction(stated, is ssa.Type) string {
	if o, ok := stated.(*ssa.OptionalType); ok {
		stated = o.Elem
	}
	if o, ok := is.(*ssa.OptionalType); ok {
		is = o.Elem
	}
	if anything(stated) || anything(is) {
		return ""
	}
	switch s := stated.(type) {
	case *ssa.TensorType:
		t, ok := is.(*ssa.TensorType)
		if !ok {
			return "one is a tensor"
		}
		return tensorContradiction(s, t)
	case *ssa.ListType:
		t, ok := is.(*ssa.ListType)
		if !ok {
			return "one is a sequence"
		}
		return elemContradiction(s.Elem, t.Elem)
	}
	return ""
}

// elemContradiction compares what sequences hold, whose sizes may differ from one to the next.
func elemContradiction(stated, is ssa.Type) string {
	a, b := ssa.AsTensor(stated), ssa.AsTensor(is)
	if a == nil || b == nil {
		return contradiction(stated, is)
	}
	return tensorContradiction(ssa.Unranked(a.DType), ssa.Unranked(b.DType))
}

// anything reports a type that says nothing.
func anything(t ssa.Type) bool {
	x, ok := t.(*ssa.TensorType)
	return t == nil || ok && x.DType == tensor.Undefined && !x.Ranked
}

func tensorContradiction(a, b *ssa.TensorType) string {
	if a.DType != tensor.Undefined && b.DType != tensor.Undefined && a.DType.ONNX() != b.DType.ONNX() {
		return "the element types differ"
	}
	if !a.Ranked || !b.Ranked {
		return ""
	}
	if len(a.Dims) != len(b.Dims) {
		return "the ranks differ"
	}
	for i := range a.Dims {
		n, okN := a.Dims[i].Int()
		k, okK := b.Dims[i].Int()
		if okN && okK && n != k {
			return fmt.Sprintf("axis %d differs", i)
		}
	}
	return ""
}

// operands checks an op of the module against the schema of its opset.
func (c *checker) operands(o *ssa.Op, typ func(*ssa.Value) ssa.Type) *diag.Diagnostic {
	if o.Kind == "onnx::Constant" { // which files hold as initializers, of any type
		return nil
	}
	opset := c.opset
	if ns := o.Kind.Namespace(); ns != onnx.Namespace {
		opset = max(c.m.Opsets[ns], 1)
	}
	s := onnx.Lookup(string(o.Kind), opset)
	if s == nil {
		return nil
	}
	in, out := make([]ssa.Type, o.NumOperands()), make([]ssa.Type, len(o.Results))
	for i := range in {
		if v := o.Operand(i); v != nil {
			in[i] = typ(v)
		}
	}
	for i, r := range o.Results {
		out[i] = typ(r)
	}
	err := s.CheckTypes(in, out)
	if err == nil {
		return nil
	}
	hint := "insert a Cast"
	if slices.ContainsFunc(in, func(t ssa.Type) bool { return t != nil && ssa.AsTensor(t) == nil }) {
		hint = ""
	}
	return &diag.Diagnostic{ID: IDType, Op: string(o.Kind), Loc: o.Loc, Message: err.Error(), Hint: hint}
}
