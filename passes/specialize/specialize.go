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

// Options steer the pass.
type Options struct {
	// Opset and Table are what types are inferred with: an operator's type is that of its lowering.
	Opset int
	Table *aten.Table
	// UnrollMax is the greatest number of iterations that are unrolled where
	// a loop has to be; 0 stands for 1024.
	UnrollMax int
	// OutputNames name the outputs in order; a prefix will do.
	OutputNames []string
	// State says what becomes of state that the program changes.
	State State

	// KeepWeights leaves named constants of floating point as they are: what is computed of them is not folded.
	KeepWeights bool

	// nonEmpty drops branches that only tensors without elements take: see empty.go.
	nonEmpty bool
	// plural takes dynamic axes that are squeezed to be 2 or more: the model refuses others at run time.
	plural bool
	// peel evaluates the first iteration of a loop by itself where what is carried changes its form, and unrolls loops that cannot stay.
	peel bool
	// split evaluates what follows an If once for each branch, if these give values of unlike form.
	split bool
	// sizes takes what is compared to be equal as equal on the path where it is, and evaluates what follows an If once for each
	// branch, if these give two constant ints: see known.go.
	sizes bool
	// pool has tensors that a loop moves about lie in one memory, and wanted are the types of which there is a pool though none is there before the loop: see pool.go.
	pool   pooling
	wanted []*ssa.TensorType
	// openRanks lets ranks be open that differ between the branches of an If or the iterations of a loop: the pass lower says what needs them.
	openRanks bool
}

// Run specializes the main function in place. Problems of the user's program
// come as *diag.List; warnings are returned beside.
//
// A program is tried as it is first. Where an operator needs a rank that is not
// known then, it is tried again for axes of 2 and more, with the first iteration of loops by
// itself, for tensors that have elements, with the paths split at Ifs that give values of unlike form, and with what comparisons say of sizes.
// At last, where the reason is memory that may have several names, it is tried with pools.
func Run(m *ssa.Module, opts Options) (*diag.List, error) {
	src := m.Main()
	if src == nil {
		return nil, errors.New("the module has no function")
	}
	if opts.Table == nil {
		opts.Table = aten.NewTable()
	}
	if opts.UnrollMax == 0 {
		opts.UnrollMax = 1024
	}
	plain := opts
	opts.Table.BindSchemas(m) // graph text does not name overloads
	found, first := run(m, opts)
	err, chosen := first, found.choices > 0
	if err != nil && found.squeezed > 0 {
		opts.plural = true
		found, err = run(m, opts)
	}
	if err != nil && found.loops > 0 {
		opts.peel = true
		found, err = run(m, opts)
	}
	if err != nil && found.empty > 0 {
		opts.nonEmpty = true
		found, err = run(m, opts)
	}
	if err != nil && found.unlike > 0 {
		opts.split = true
		found, err = run(m, opts)
	}
	if err != nil && (found.unlike > 0 || found.loops > 0) {
		opts.split, opts.openRanks = false, true
		found, err = run(m, opts)
	}
	if err != nil && chosen {
		opts.sizes, opts.openRanks = true, false
		found, err = run(m, opts)
	}
	if err != nil && chosen && found.unlike > 0 {
		opts.split = true
		found, err = run(m, opts)
	}
	for _, plain.pool = range []pooling{everything, containedOnly} {
		for plain.wanted = nil; err != nil && isAlias(first); plain.wanted = append(plain.wanted, found.wanted...) {
			if found, err = run(m, plain); len(found.wanted) == 0 || len(plain.wanted) >= maxWanted {
				break
			}
		}
	}
	warnings := &diag.List{Table: &m.Locs, Items: distinct(found.warnings)}
	if err != nil {
		var list *diag.List
		if errors.As(first, &list) {
			list.Items = passes.AskFor(passes.InputsWithoutTypes(m), list.Items)
		}
		return warnings, first
	}
	return warnings, nil
}

// isAlias reports that a program cannot be converted because of memory that may have several names.
func isAlias(err error) bool {
	var list *diag.List
	return errors.As(err, &list) && len(list.Items) > 0 && list.Items[0].ID == "alias"
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

// run is one try at the program. On failure the module is as it was.
func run(m *ssa.Module, opts Options) (found findings, err error) {
	src := m.Main()
	out := m.NewFunc(src.Name + ".specialized")
	s := newWalk(m, src, out, opts)
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
		if s.rankNeeded {
			panic(&failure{d: s.openRanks[0], found: s.findings})
		}
	})
	if s.build.scratch != nil {
		s.build.scratch.Body.Clear()
		m.RemoveFunc(s.build.scratch)
	}
	if end.verdict != done {
		m.RemoveFunc(out)
		found, problems := end.problems()
		return found, &diag.List{Table: &m.Locs, Items: problems}
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

// problems is how the ending of a whole program is reported.
func (e ending) problems() (findings, []diag.Diagnostic) {
	switch e.verdict {
	case raises:
		return findings{}, []diag.Diagnostic{{ID: "raises", Loc: e.raised.loc, Op: "prim::RaiseException", Message: "the model raises for these inputs: " + e.raised.message, Hint: "check the shapes and types given by --input"}}
	case mustUnroll:
		return e.unroll.found, []diag.Diagnostic{{ID: "dynamic-container", Loc: e.unroll.loc, Message: e.unroll.reason}}
	}
	f := e.failure
	if id := f.d.ID; len(f.found.causes) > 0 && (id == "unknown-shape" || id == "unknown-dtype" || id == "dynamic-rank") {
		// An unknown type usually follows from an operator that could not be lowered: report those instead.
		return f.found, f.found.causes
	}
	return f.found, []diag.Diagnostic{f.d}
}

// writes evaluates operators that write to tensors.
type writes struct {
	*context
	build *builder
	heap  *heap.Heap
	vals  *values
	views *views
	// reaches reports that what is left of the program may read the memory in a cell.
	reaches func(c *journal.Cell) bool
}

// containers evaluates operators on lists, dicts, tuples and strings.
type containers struct {
	*context
	build *builder
	heap  *heap.Heap
	vals  *values
	views *views
	alone func(c *journal.Cell) bool // see walk.alone
}

func newWalk(m *ssa.Module, src, out *ssa.Func, opts Options) *walk {
	c := &context{m: m, opts: opts, spent: newBudget(m), nonEmpty: map[string]bool{}, inShape: map[*ssa.Value]*ssa.Value{}}
	h := &heap.Heap{Step: c.step}
	b := &builder{context: c, out: out, cur: out.Body, consts: map[string]*ssa.Value{}}
	mod := &module{context: c, build: b, heap: h, weights: map[*tensor.Tensor]*py.Tensor{}, objects: map[*ssa.Object]*py.Object{}}
	vals := &values{context: c, build: b, heap: h, module: mod}
	vw := &views{context: c, build: b, heap: h, vals: vals, axes: layout.Axes{}}
	wr := &writes{context: c, build: b, heap: h, vals: vals, views: vw}
	lists := &containers{context: c, build: b, heap: h, vals: vals, views: vw}
	w := &walk{context: c, build: b, heap: h, module: mod, vals: vals, views: vw, writes: wr, lists: lists, src: src, env: make([]py.Value, src.NumValues()), starts: map[loopStart]*ssa.Value{}}
	lists.alone, wr.reaches = w.alone, w.reaches
	return w
}
