package specialize

import (
	"errors"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// Run specializes the main function in place. Problems of the user's program
// come as *diag.List; warnings and notes are returned beside.
//
// A program is tried as it is first. While it cannot be converted so, one more
// decision is taken, for what lost what was needed. At last, where the reason is
// memory that may have several names, it is tried with pools.
func Run(m *ssa.Module, opts Options) (*diag.List, error) {
	if m.Main() == nil {
		return nil, errors.New("the module has no function")
	}
	if opts.Table == nil {
		opts.Table = aten.NewTable()
	}
	if opts.UnrollMax == 0 {
		opts.UnrollMax = 1024
	}
	opts.Table.BindSchemas(m) // graph text does not name overloads
	ds := newDecisions()
	found, first := run(m, opts, ds)
	failed := first
	again := func() {
		for failed != nil && ds.next(m, failed) {
			found, failed = run(m, opts, ds)
		}
	}
	again()
	tried := ds
	for _, p := range []pooling{everything, containedOnly} {
		for wanted := []*ssa.TensorType(nil); failed != nil && first.d.ID == "alias"; wanted = append(wanted, found.wanted...) {
			ds = newDecisions()
			ds.pool, ds.wanted = p, wanted
			ds.take(m, decision{inPools, nil}, nil, first)
			if found, failed = run(m, opts, ds); len(found.wanted) == 0 || len(wanted) >= maxWanted {
				again()
				break
			}
		}
	}
	if failed != nil {
		return &diag.List{Table: &m.Locs, Items: append(distinct(found.warnings), tried.tried(m, first)...)}, &diag.List{Table: &m.Locs, Items: passes.AskFor(passes.InputsWithoutTypes(m), first.problems())}
	}
	return &diag.List{Table: &m.Locs, Items: append(distinct(found.warnings), ds.needed()...)}, nil
}

// distinct leaves out what was said before: an operator of a loop that is unrolled, or of a path that is split, says it each time.
func distinct(ds []diag.Diagnostic) (out []diag.Diagnostic) {
	type key struct {
		loc         diag.Loc
		op, message string
	}
	seen := map[key]bool{}
	for _, d := range ds {
		if k := (key{d.Loc, d.Op, d.Message}); !seen[k] {
			seen[k] = true
			out = append(out, d)
		}
	}
	return out
}

// run is one walk over the program. On failure the module is as it was.
func run(m *ssa.Module, opts Options, ds *decisions) (found findings, failed *failure) {
	src := m.Main()
	out := m.NewFunc(src.Name + ".specialized")
	s := newWalk(m, src, out, opts, ds)
	end := s.try(func() {
		s.inputs()
		s.views.axes = layout.Axes{}
		for _, p := range out.Body.Params {
			if t := p.Tensor(); t != nil {
				for _, d := range t.Dims {
					d.Symbols(func(name string) { s.views.axes[name] = true })
				}
			}
		}
		s.outputs(s.block(src.Body))
		if need := s.rankNeeded; need != nil {
			need.found = s.findings
			panic(need)
		}
	})
	if s.build.scratch != nil {
		s.build.scratch.Body.Clear()
		m.RemoveFunc(s.build.scratch)
	}
	if end.verdict != done {
		m.RemoveFunc(out)
		failed = end.whole()
		return failed.found, failed
	}
	for _, what := range s.assumed {
		m.Assume(what)
	}
	for _, l := range s.least {
		m.AtLeast(l.symbol, l.n)
	}
	m.RemoveFunc(src)
	m.RemoveFunc(out)
	// the specialized function takes the place of the source, helpers go
	for _, f := range append([]*ssa.Func(nil), m.Funcs...) {
		m.RemoveFunc(f)
	}
	m.AdoptFunc(out, "main")
	m.Root, m.Inputs = nil, nil
	return s.findings, nil
}

// whole is how the walk over a whole program failed.
func (e ending) whole() *failure {
	switch e.verdict {
	case raises:
		return &failure{d: diag.Diagnostic{ID: "raises", Loc: e.raised.loc, Op: "prim::RaiseException", Message: "the model raises for these inputs: " + e.raised.message, Hint: "check the shapes and types given by --input"}}
	case mustUnroll:
		return &failure{d: diag.Diagnostic{ID: "dynamic-container", Loc: e.unroll.loc, Message: e.unroll.reason}, found: e.unroll.found}
	}
	return e.failure
}

// problems is what is told of a failure.
func (f *failure) problems() []diag.Diagnostic {
	if id := f.d.ID; len(f.found.causes) > 0 && (id == "unknown-shape" || id == "unknown-dtype" || id == "dynamic-rank") {
		// An unknown type usually follows from an operator that could not be lowered: report those instead.
		return f.found.causes
	}
	return []diag.Diagnostic{f.d}
}

func newWalk(m *ssa.Module, src, out *ssa.Func, opts Options, ds *decisions) *walk {
	clear(ds.used)
	c := &context{m: m, opts: opts, decided: ds, losers: map[*ssa.Value]*ssa.Op{}, oneOf: map[*journal.Cell]*ssa.Op{}, spent: newBudget(m), nonEmpty: map[string]bool{}, inShape: map[*ssa.Value]*ssa.Value{}}
	h := &heap.Heap{Step: c.step}
	b := &builder{context: c, out: out, cur: out.Body, consts: map[string]*ssa.Value{}, numbered: map[string]int{}}
	mod := &module{context: c, build: b, heap: h, weights: map[*tensor.Tensor]*py.Tensor{}, objects: map[*ssa.Object]*py.Object{}}
	vals := &values{context: c, build: b, heap: h, module: mod}
	vw := &views{context: c, build: b, heap: h, vals: vals, axes: layout.Axes{}, strided: map[*ssa.Value]places{}}
	wr := &writes{context: c, build: b, heap: h, vals: vals, views: vw}
	lists := &containers{context: c, build: b, heap: h, vals: vals, views: vw}
	w := &walk{context: c, build: b, heap: h, module: mod, vals: vals, views: vw, writes: wr, lists: lists, src: src, env: make([]py.Value, src.NumValues()), starts: map[loopStart]*ssa.Value{}}
	lists.alone, wr.reaches = w.alone, w.reaches
	return w
}
