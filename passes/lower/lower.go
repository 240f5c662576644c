// Package lower converts a specialized aten graph to ONNX operators.
package lower

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/dialects/onnx/sizes"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Options configures the pass.
type Options struct {
	Opset int
	Table *aten.Table
	// Fallthrough lists namespaces whose operators become nodes of a custom
	// domain if they cannot be converted; "*" stands for all namespaces.
	Fallthrough []string
	// Mode says what happens to operators that cannot be converted. The default is Strict.
	Mode Mode
	// FoldLimit bounds the number of elements that constant folding reads or
	// makes; 0 means 1 << 12. Larger constants are left to the pass fold, which considers all uses of a weight.
	FoldLimit int64
	// Training emits training-mode BatchNormalization operators.
	Training bool
	// Warn, if not nil, receives each assumption of the ONNX form once.
	Warn func(diag.Diagnostic)
}

// Unconverted is an operator that could not be converted.
type Unconverted struct {
	Kind    ssa.Kind
	Loc     diag.Loc
	Failure *aten.Failure
}

// Run lowers the main function in place. If operators cannot be converted, it
// reports all of them and leaves the module unchanged.
func Run(m *ssa.Module, opts Options) error {
	untyped := passes.InputsWithoutTypes(m)
	bad, err := Convert(m, opts)
	if err != nil {
		return err
	}
	if len(bad) == 0 {
		return nil
	}
	list := &diag.List{Table: &m.Locs}
	for _, u := range bad {
		list.Add(diag.Diagnostic{ID: u.Failure.ID, Op: string(u.Kind), Loc: u.Loc, Message: u.Failure.Message, Hint: u.Failure.Hint, Opset: u.Failure.Opset})
	}
	list.Items = passes.AskFor(untyped, list.Items)
	return list.Err()
}

// Convert is like Run but returns the operators that cannot be converted as data.
func Convert(m *ssa.Module, opts Options) ([]Unconverted, error) {
	src := m.Main()
	if src == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	if opts.Table == nil {
		opts.Table = aten.NewTable()
	}
	if opts.FoldLimit == 0 {
		opts.FoldLimit = 1 << 12
	}
	opts.Table.BindSchemas(m) // graph text does not name overloads
	dst := m.NewFunc(src.Name + ".onnx")
	l := &lowerer{m: m, opts: opts, dst: dst, env: make([]*ssa.Value, src.NumValues()), lists: map[*ssa.Value][]*ssa.Value{}, absent: map[*ssa.Value]*aten.Failure{}}
	l.low = aten.NewLowering(opts.Table, opts.Opset, onnx.Builder{Eval: kernel.Eval, FoldLimit: opts.FoldLimit, Names: ssa.NamesOf(src)}, l.lookup)
	l.low.Regrid, l.low.Training = true, opts.Training
	l.low.Assume = func(what, why string) { l.assume(diag.Warning, l.low.Node, what, why) }
	l.low.Note = func(what, why string) { l.assume(diag.Note, l.low.Node, what, why) }
	l.low.Wider = func(opset, bits, written int) { l.wider = append(l.wider, wider{opset, bits, written, l.low.Node}) }
	l.sizes = sizes.New(nil)
	if !m.SizesSolved {
		l.sizes = sizes.New(src.Body.Params)
	}
	l.low.Require = l.require
	for _, p := range src.Body.Params {
		if isComplex(p) && p.Tensor().Ranked {
			l.env[p.ID] = l.pairedInput(p)
			continue
		}
		q := dst.Body.AddParam(p.Name, onnxType(l.m, p.Type))
		q.Sym = p.Sym
		if q.Sym != nil && q.Tensor() == nil {
			q.Sym = nil
		}
		l.env[p.ID] = q
	}
	l.block(src.Body, dst.Body)
	rets := make([]*ssa.Value, src.Body.NumReturns())
	if !l.stuck() {
		for i := range rets {
			rets[i] = l.returned(src.Body.Return(i), dst.Body)
			if l.lost = l.lost || rets[i] == nil; rets[i] != nil && isComplex(rets[i]) {
				rets[i] = l.pairedOutput(rets[i], i, src.OutputNames)
			}
		}
	}
	l.solveSizes()
	if !l.stuck() {
		dst.Body.SetReturns(rets...)
		// an If or a Loop without results was there for what it raises, and nothing in ONNX does
		ssa.EraseUnused(dst.Body, func(o *ssa.Op) bool { return len(o.Results) > 0 || o.Kind == "onnx::If" || o.Kind == "onnx::Loop" })
		l.findComplex()
	}
	if l.stuck() {
		m.RemoveFunc(dst)
		return l.bad, nil
	}
	l.tellAssumptions()
	l.tellWider()
	l.tellPaired()
	l.tellTraced(src.Body)
	l.tellUnused()
	dst.OutputNames = src.OutputNames
	m.RemoveFunc(src)
	m.RemoveFunc(dst)
	m.AdoptFunc(dst, "main")
	if m.Opsets == nil {
		m.Opsets = map[string]int{}
	}
	m.Opsets[""] = onnx.Newest // the encoding; legalize takes it to the opset
	return l.bad, nil
}

// assumption is an assumption of the ONNX form about the operators ops.
type assumption struct {
	severity  diag.Severity
	what, why string
	ops       []*ssa.Op
}

// assume records an assumption of an operator.
func (l *lowerer) assume(severity diag.Severity, op *ssa.Op, what, why string) {
	for i := range l.assumed {
		if l.assumed[i].what == what {
			l.assumed[i].ops = append(l.assumed[i].ops, op)
			return
		}
	}
	l.assumed = append(l.assumed, assumption{severity, what, why, []*ssa.Op{op}})
}

// require records that the current operator requires two sizes to be equal or to broadcast.
func (l *lowerer) require(b *ssa.Block, x, y sym.Expr, broadcast bool) {
	if b == l.dst.Body && l.low.Node != nil {
		l.sizes.Require(sizes.Demand{X: x, Y: y, Broadcast: broadcast, Op: l.low.Node})
	}
}

// solveSizes reports requirements on sizes that cannot be met, and records the others as assumptions.
func (l *lowerer) solveSizes() {
	conflicts, grants := l.sizes.Solve(&l.m.Locs)
	for _, c := range conflicts {
		l.bad = append(l.bad, Unconverted{Kind: c.Op.Kind, Loc: c.Op.Loc, Failure: &aten.Failure{ID: "axis-size", Message: c.Message, Hint: c.Hint}})
	}
	for _, g := range grants {
		l.assume(diag.Warning, g.Op, g.What, sizes.Why)
	}
}

// tellAssumptions adds the assumptions to the metadata and reports each once, at its first place.
func (l *lowerer) tellAssumptions() {
	for _, a := range l.assumed {
		l.m.Assume(a.what)
		if l.opts.Warn == nil {
			continue
		}
		message := "the model takes for granted that " + a.what + ": " + a.why
		if n := len(a.ops); n > 1 {
			message += fmt.Sprintf(" (%d places)", n)
		}
		l.opts.Warn(diag.Diagnostic{Severity: a.severity, ID: "assumes", Op: string(a.ops[0].Kind), Loc: a.ops[0].Loc, Message: message})
	}
}

// wider describes weights that are written with more bits than they need, and the opset at which they are not.
type wider struct {
	opset, bits, written int
	op                   *ssa.Op
}

// tellWider warns of such weights once for each number of bits, at the first place.
func (l *lowerer) tellWider() {
	if l.opts.Warn == nil {
		return
	}
	told := map[int]bool{}
	for _, w := range l.wider {
		if told[w.bits] {
			continue
		}
		told[w.bits] = true
		l.opts.Warn(diag.Diagnostic{Severity: diag.Warning, ID: "wider-weights", Op: string(w.op.Kind), Loc: w.op.Loc,
			Message: fmt.Sprintf("weights of %d bits are written with %d: opset %d has integers of %d bits", w.bits, w.written, w.opset, w.bits),
			Hint:    fmt.Sprintf("convert with --opset %d if the runtime has it", w.opset)})
	}
}

// stuck reports whether the conversion has failed: an operator could not be converted, or a value that a block returns.
func (l *lowerer) stuck() bool { return l.lost || len(l.bad) > 0 && l.opts.Mode != Collect }

// pairedInput returns the complex tensor of a parameter whose real and imaginary parts lie along a new last axis in the graph.
func (l *lowerer) pairedInput(p *ssa.Value) *ssa.Value {
	t := p.Tensor()
	dims := append(slices.Clone(t.Dims), sym.Const(2))
	q := l.dst.Body.AddParam(p.Name, ssa.Tensor(aten.RealOf(t.DType), dims...))
	l.paired = append(l.paired, fmt.Sprintf("input %q", p.Name))
	l.low.Block, l.low.Before = l.dst.Body, nil
	return l.low.Aten("aten::view_as_complex", q)
}

// pairedOutput returns the i-th result of the graph, with complex numbers as pairs along a new last axis.
func (l *lowerer) pairedOutput(v *ssa.Value, i int, names []string) *ssa.Value {
	name := fmt.Sprintf("output %d", i+1)
	if i < len(names) {
		name = fmt.Sprintf("output %q", names[i])
	}
	l.paired = append(l.paired, name)
	l.low.Block, l.low.Before = l.dst.Body, nil
	return l.low.Aten("aten::view_as_real", v)
}

// tellPaired warns once of complex inputs and outputs, which the file has in another form than the program.
func (l *lowerer) tellPaired() {
	if len(l.paired) == 0 || l.opts.Warn == nil {
		return
	}
	l.opts.Warn(diag.Diagnostic{Severity: diag.Warning, ID: "complex-pairs",
		Message: fmt.Sprintf("complex numbers are pairs in the file, the real and the imaginary part along a new last axis: %s", strings.Join(l.paired, ", ")),
		Hint:    "give and read them as torch.view_as_real(x)"})
}

// findComplex reports complex numbers that are left: their operators work on
// pairs of real tensors, which lists and sequences cannot hold.
func (l *lowerer) findComplex() {
	report := func(loc diag.Loc) {
		l.bad = append(l.bad, Unconverted{Kind: "prim::Return", Loc: loc, Failure: &aten.Failure{
			ID:      "complex-value",
			Message: "a complex number in a list, or of a rank that is not known, is an input or an output of the model or of a branch; ONNX has no operators on it",
			Hint:    "pass it as torch.view_as_real(x)",
		}})
	}
	for o := range l.dst.Body.AllOps() {
		if o.Kind.Namespace() == "aton" {
			report(o.Loc)
			return
		}
	}
	for _, v := range append(l.dst.Body.Returns(), l.dst.Body.Params...) { // a constant, or a value that only passes through
		if v.DType().IsComplex() {
			report(0)
			return
		}
	}
}

// onnxType returns the ONNX type of a TorchScript type. Numbers become tensors of rank 0.
func onnxType(m *ssa.Module, t ssa.Type) ssa.Type {
	switch t := t.(type) {
	case ssa.Basic:
		switch t {
		case ssa.IntType:
			return ssa.Tensor(tensor.Int64)
		case ssa.FloatType, ssa.NumberType:
			return ssa.Tensor(tensor.Float64)
		case ssa.BoolType:
			return ssa.Tensor(tensor.Bool)
		}
	case *ssa.ListType:
		switch t.Elem {
		case ssa.IntType:
			return ssa.Tensor(tensor.Int64, m.FreshSymbol("len", 0))
		case ssa.FloatType:
			return ssa.Tensor(tensor.Float64, m.FreshSymbol("len", 0))
		case ssa.BoolType:
			return ssa.Tensor(tensor.Bool, m.FreshSymbol("len", 0))
		}
	}
	return t
}

type lowerer struct {
	sizes   *sizes.Solver
	assumed []assumption
	wider   []wider
	// paired has the names of inputs and outputs that are complex in the program.
	paired []string
	m      *ssa.Module
	opts   Options
	dst    *ssa.Func
	env    []*ssa.Value                // by ID of the source value
	lists  map[*ssa.Value][]*ssa.Value // elements of list results of known length
	low    *aten.Lowering
	bad    []Unconverted
	absent map[*ssa.Value]*aten.Failure // results that only the operators that absorb theirs can do without
	lost   bool                         // a block cannot be completed
}

func (l *lowerer) lookup(v *ssa.Value) (*ssa.Value, *aten.Failure) {
	if v.ID < len(l.env) {
		if w := l.env[v.ID]; w != nil {
			return w, nil
		}
	}
	if d := v.Def(); d != nil && d.Kind == "prim::Constant" {
		lit, _ := d.Attr("value")
		if lit.Kind == ssa.TensorLit {
			return l.constant(v, lit), nil
		}
	}
	if why := l.absent[v]; why != nil {
		return nil, &aten.Failure{
			ID: why.ID, Opset: why.Opset, Hint: why.Hint,
			Message: fmt.Sprintf("its operand is the result of %s, of which: %s", v.Def().Kind, why.Message)}
	}
	return nil, nil
}

// constant makes one onnx::Constant for a tensor constant, at the top of the function.
func (l *lowerer) constant(v *ssa.Value, lit ssa.Literal) *ssa.Value {
	top := l.dst.Body
	o := top.InsertBefore(top.First(), "onnx::Constant", v.Def().Loc, nil, ssa.TensorOf(lit.Tensor))
	o.SetAttr("value", lit)
	w := o.Results[0]
	w.Name, w.Sym = v.Name, v.Sym
	l.env[v.ID] = w
	return w
}

func (l *lowerer) block(src, dst *ssa.Block) {
	for o := range src.Ops() {
		l.low.Block, l.low.Before, l.low.Loc = dst, nil, o.Loc
		switch o.Kind {
		case "prim::Constant", "prim::ListConstruct", "prim::TupleConstruct":
			continue // made where they are used
		case "prim::ListUnpack", "prim::TupleUnpack":
			l.unpack(o)
		case "prim::If":
			l.ifOp(o, dst)
		case "prim::Loop":
			l.loop(o, dst)
		default:
			l.op(o, dst)
		}
	}
}

func (l *lowerer) fail(o *ssa.Op, f *aten.Failure) {
	cause := -1
	if len(l.bad) > 0 && !ownFailure(f.ID) {
		cause = l.causeOf(o)
	}
	if cause < 0 { // what follows from another failure is not told
		cause = len(l.bad)
		l.bad = append(l.bad, Unconverted{Kind: o.Kind, Loc: o.Loc, Failure: f})
	}
	// continue with results of the declared types, to find all problems
	for _, r := range o.Results {
		p := l.dst.Body.InsertBefore(l.dst.Body.First(), unconverted, o.Loc, nil, onnxType(l.m, r.Type))
		p.SetAttr("cause", ssa.Int(int64(cause)))
		l.set(r, p.Results[0])
	}
}

func (l *lowerer) set(v, w *ssa.Value) {
	l.env[v.ID] = w
	refine(w, v.Tensor())
	if w.Sym == nil {
		if t := w.Tensor(); t != nil && t.Rank() >= 0 && t.Rank() <= 1 && t.DType == tensor.Int64 {
			w.Sym = v.Sym
		}
	}
	if w.Name == "" && w.Def() != nil && w.Def().Kind != "onnx::Constant" {
		w.Name = v.Name
	}
}

// refine adds to w the sizes that the source graph has and inference does not.
func refine(w *ssa.Value, src *ssa.TensorType) {
	t := w.Tensor()
	if t == nil || src == nil || !src.Ranked || w.Def() == nil || w.Def().Kind == "onnx::Constant" {
		return
	}
	if !t.Ranked {
		d := t.DType
		if d == tensor.Undefined { // of an operator that inference does not know
			d = src.DType
		}
		w.Type = ssa.Tensor(d, src.Dims...)
		return
	}
	if len(t.Dims) != len(src.Dims) {
		return
	}
	dims := append([]sym.Expr(nil), t.Dims...)
	changed := false
	for i := range dims {
		_, fresh := dims[i].Name()
		if (fresh || src.Dims[i].IsConst() && !dims[i].IsConst()) && !dims[i].Equal(src.Dims[i]) {
			dims[i], changed = src.Dims[i], true
		}
	}
	if changed {
		w.Type = ssa.Tensor(t.DType, dims...)
	}
}

// keeping returns how to keep an operator that cannot be converted, or nil if it must not be kept.
func (l *lowerer) keeping(o *ssa.Op, isAten bool) func(o *ssa.Op) node {
	switch {
	case l.falls(o.Kind.Namespace()):
		return l.customNode
	case l.opts.Mode == Fallthrough:
		return l.sameNode
	case l.opts.Mode == ATenFallback && isAten:
		return l.atenNode
	}
	return nil
}

func (l *lowerer) op(o *ssa.Op, dst *ssa.Block) {
	isAten := o.Kind.Namespace() == "aten"
	if l.opts.Mode == ATen && isAten {
		l.keep(o, l.atenNode)
		return
	}
	last := dst.Last()
	vs, err := l.low.Lower(o)
	if err == nil {
		err = l.invalid(o, dst, last)
	}
	if err != nil {
		keep := l.keeping(o, isAten)
		switch {
		case l.opts.Table.Absorbs(o.Kind) && ownFailure(err.ID):
			for _, r := range o.Results {
				l.absent[r] = err
			}
			return
		case keep == nil:
		case len(o.Results) > 0:
			l.keep(o, keep)
			return
		default:
			err = &aten.Failure{ID: "unsupported-op", Message: "the operator has no results: it writes to its operands, which a node of a graph cannot",
				Hint: "make it functional before saving: ep.run_decompositions({})"}
		}
		l.fail(o, err)
		return
	}
	if len(o.Results) == 1 {
		if lt, ok := o.Results[0].Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) != nil {
			if len(vs) == 1 {
				if _, seq := vs[0].Type.(*ssa.ListType); seq {
					l.set(o.Results[0], vs[0])
					return
				}
			}
			l.lists[o.Results[0]] = vs
			return
		}
	}
	if len(vs) != len(o.Results) {
		l.fail(o, &aten.Failure{ID: "internal", Message: fmt.Sprintf("the lowering gives %d results, not %d", len(vs), len(o.Results))})
		return
	}
	for i, r := range o.Results {
		if vs[i] != nil {
			l.set(r, vs[i])
		}
	}
}

// invalid finds an operator that ONNX does not have among those that the lowering of from added after last; nil stands for the beginning. A built-in
// lowering takes the element types that the program gives it, of which PyTorch and ONNX take some only; one of users is theirs to correct.
func (l *lowerer) invalid(from *ssa.Op, b *ssa.Block, last *ssa.Op) *aten.Failure {
	first := b.First()
	if last != nil {
		first = last.Next()
	}
	for o := first; o != nil; o = o.Next() {
		if o.Kind.Namespace() != onnx.Namespace {
			continue
		}
		err := onnx.Dialect{}.Verify(o)
		for _, inner := range o.Blocks {
			if err == nil {
				if f := l.invalid(from, inner, nil); f != nil {
					return f
				}
			}
		}
		var types *onnx.TypeError
		if errors.As(err, &types) && !l.opts.Table.Registered(from.Kind, l.opts.Opset) {
			return &aten.Failure{ID: "unsupported-type", Message: "the operator takes no elements of " + refusedTypes(from, types),
				Hint: "convert the operands to another element type, or correct the type of the input in --input"}
		}
		if err != nil {
			return &aten.Failure{ID: "invalid-onnx", Message: fmt.Sprintf("its lowering makes %s, which ONNX does not have: %v", o.Kind, err), Hint: "correct the lowering"}
		}
	}
	return nil
}

// refusedTypes names the element types for which an operator of the program cannot be computed: those of its operands that the operator of ONNX does not
// take, or all of them where it is another type that the lowering made of them.
func refusedTypes(o *ssa.Op, err *onnx.TypeError) string {
	var have []tensor.DType
	note := func(v *ssa.Value) {
		if v.Tensor() != nil && !slices.Contains(have, v.DType()) && v.DType() != tensor.Undefined {
			have = append(have, v.DType())
		}
	}
	for _, v := range o.Operands() {
		if v == nil {
			continue
		}
		note(v)
		if elems, ok := aten.ListElems(v); ok {
			for _, e := range elems {
				note(e)
			}
		}
	}
	refused := []tensor.DType{err.DType}
	if err.Beside != tensor.Undefined {
		refused = []tensor.DType{err.Beside, err.DType}
	}
	if len(have) > 0 && !slices.ContainsFunc(refused, func(d tensor.DType) bool { return slices.Contains(have, d) }) {
		refused = have
	}
	if len(refused) == 1 {
		return "type " + refused[0].String()
	}
	names := make([]string, len(refused))
	for i, d := range refused {
		names[i] = d.String()
	}
	last := len(names) - 1
	return "types " + strings.Join(names[:last], ", ") + " and " + names[last] + " at once"
}

func (l *lowerer) falls(ns string) bool {
	for _, f := range l.opts.Fallthrough {
		if f == ns || f == "*" {
			return true
		}
	}
	return false
}

func (l *lowerer) unpack(o *ssa.Op) {
	src := o.Operand(0)
	if vs := l.lists[src]; vs != nil {
		for i, r := range o.Results {
			l.set(r, vs[i])
		}
		return
	}
	if es, ok := aten.ListElems(src); ok {
		for i, r := range o.Results {
			if w := l.value(es[i]); w != nil {
				l.set(r, w)
			}
		}
		return
	}
	if w := l.env[src.ID]; w != nil {
		if _, ok := w.Type.(*ssa.ListType); ok { // of an operator that was kept
			for i, r := range o.Results {
				l.set(r, l.low.SequenceAt(w, l.low.Const(tensor.ScalarInt(int64(i)))))
			}
			return
		}
	}
	l.fail(o, &aten.Failure{ID: "unsupported-op", Message: "a list of unknown length cannot be unpacked"})
}

// value converts a source value and records a failure at the current op.
func (l *lowerer) value(v *ssa.Value) (w *ssa.Value) {
	if f := aten.Try(func() { w = l.low.Value(v) }); f != nil {
		l.bad = append(l.bad, Unconverted{Kind: "prim::Return", Failure: f})
		return nil
	}
	return w
}

// returned converts a value that a block returns; it must be made in the
// function even if it is a constant.
func (l *lowerer) returned(v *ssa.Value, b *ssa.Block) *ssa.Value {
	l.low.Block, l.low.Before = b, nil
	if d := v.Def(); d != nil {
		l.low.Loc = d.Loc
	}
	if vs := l.lists[v]; vs != nil {
		return l.low.SequenceConstruct(vs...)
	}
	return l.value(v)
}

func (l *lowerer) ifOp(o *ssa.Op, dst *ssa.Block) {
	cond := l.value(o.Operand(0))
	if cond == nil {
		l.lost = true
		return
	}
	n := dst.Append("onnx::If", o.Loc, []*ssa.Value{cond}, l.types(o.Results)...)
	for _, src := range o.Blocks {
		b := n.AddBlock()
		l.block(src, b)
		l.returns(src, b)
	}
	l.finish(o, n, dst)
}

// isComplex reports whether a value is a complex tensor, which enters and leaves blocks as a pair of real tensors.
func isComplex(v *ssa.Value) bool { return v.Tensor() != nil && v.DType().IsComplex() }

// types returns the ONNX types of values that blocks return.
func (l *lowerer) types(vs []*ssa.Value) []ssa.Type {
	var types []ssa.Type
	for _, v := range vs {
		if isComplex(v) {
			part := v.Tensor().WithDType(aten.RealOf(v.DType()))
			types = append(types, part, part)
		} else {
			types = append(types, onnxType(l.m, v.Type))
		}
	}
	return types
}

// passed converts, at the end of b, values that enter or leave blocks. ok is false if one has no ONNX form.
func (l *lowerer) passed(vs []*ssa.Value, b *ssa.Block) (out []*ssa.Value, ok bool) {
	for _, v := range vs {
		w := l.returned(v, b)
		if w == nil {
			l.lost = true
			return nil, false
		}
		if isComplex(v) && isComplex(w) {
			re, im := l.low.Parts(w)
			out = append(out, re, im)
		} else {
			out = append(out, w)
		}
	}
	return out, true
}

// returns sets what a block returns.
func (l *lowerer) returns(src, b *ssa.Block) {
	if vs, ok := l.passed(src.Returns(), b); ok && !l.stuck() {
		b.SetReturns(vs...)
	}
}

// received sets vs to what blocks give or take for them: ws, of which two are one that is complex.
func (l *lowerer) received(vs, ws []*ssa.Value, b *ssa.Block) {
	l.low.Block, l.low.Before = b, nil
	for _, v := range vs {
		w := ws[0]
		if ws = ws[1:]; isComplex(v) {
			w, ws = l.low.Pair(w, ws[0]), ws[1:]
		}
		l.set(v, w)
	}
}

func (l *lowerer) finish(o, n *ssa.Op, dst *ssa.Block) {
	if !l.stuck() {
		if err := onnx.Infer(n); err != nil {
			l.bad = append(l.bad, Unconverted{Kind: o.Kind, Loc: o.Loc, Failure: &aten.Failure{ID: "internal", Message: err.Error()}})
		}
	}
	l.received(o.Results, n.Results, dst)
}

func (l *lowerer) loop(o *ssa.Op, dst *ssa.Block) {
	operands, ok := l.passed(o.Operands(), dst)
	if !ok {
		return
	}
	n := dst.Append("onnx::Loop", o.Loc, operands, l.types(o.Results)...)
	src := o.Blocks[0]
	b := n.AddBlock()
	param := func(p *ssa.Value) {
		if isComplex(p) {
			part := l.types([]*ssa.Value{p})[0]
			re, im := b.AddParam("", part), b.AddParam("", part)
			l.received([]*ssa.Value{p}, []*ssa.Value{re, im}, b)
			return
		}
		q := b.AddParam(p.Name, onnxType(l.m, p.Type))
		if p.Type == ssa.IntType {
			q.Sym = p.Sym
		}
		l.env[p.ID] = q
	}
	param(src.Params[0])
	b.AddParam("", ssa.Tensor(tensor.Bool)) // ONNX passes the condition in, TorchScript does not
	for _, p := range src.Params[1:] {
		param(p)
	}
	l.block(src, b)
	l.returns(src, b)
	l.finish(o, n, dst)
}

// Summary groups what could not be converted by operator, in order of first appearance.
func Summary(bad []Unconverted) []Group {
	var order []ssa.Kind
	by := map[ssa.Kind]*Group{}
	for _, u := range bad {
		g := by[u.Kind]
		if g == nil {
			g = &Group{Unconverted: u}
			by[u.Kind] = g
			order = append(order, u.Kind)
		}
		g.Count++
	}
	out := make([]Group, len(order))
	for i, k := range order {
		out[i] = *by[k]
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Count > out[j].Count })
	return out
}

// Group is an operator that could not be converted, at its first place.
type Group struct {
	Unconverted
	Count int
}
