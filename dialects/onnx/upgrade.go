package onnx

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Rise takes an op from the encoding before Opset to the one that Opset brought. It is the opposite of a [Step]. It
// changes u.Node in place, or builds what computes the same before it; what it builds is in the newest encoding.
type Rise struct {
	Opset int
	Up    func(u *Upgrade)
}

// Upgrade is an op, Node, on its way to the newest encoding, with a builder before it.
type Upgrade struct {
	Builder
	Node *ssa.Op
}

// Fail ends the step: the op means what the newest encoding cannot say.
func (u *Upgrade) Fail(format string, args ...any) {
	panic(&Unsupported{0, fmt.Sprintf(format, args...)})
}

// versionAt is the version of an operator that an opset has, nil if there is none. An operator that was deprecated as
// soon as it appeared is there all the same: files have it.
func versionAt(kind ssa.Kind, opset int) *OpSchema {
	vs := Versions(string(kind))
	for i := len(vs) - 1; i >= 0; i-- {
		if vs[i].Since <= opset {
			if vs[i].Deprecated && i > 0 {
				return nil
			}
			return &vs[i]
		}
	}
	return nil
}

// Ahead reports an operator that onnxruntime runs in files of opsets before the one it came with: they are as in that one.
func Ahead(kind ssa.Kind) bool { return traitsOf(kind)&early != 0 }

// Raise takes one op, without its blocks, from an opset to the newest encoding and infers its types. The types of its
// operands must be inferred. Ops of other domains stay as they are. An error says why the op cannot be read; it is then
// as it was, or partly raised.
func Raise(o *ssa.Op, opset int) (err error) {
	if o.Kind.Namespace() != Namespace {
		return nil
	}
	v := versionAt(o.Kind, opset)
	if v == nil && Ahead(o.Kind) {
		v = &Versions(string(o.Kind))[0]
	}
	if v == nil {
		if Versions(string(o.Kind)) == nil {
			return fmt.Errorf("this is no operator of ONNX")
		}
		return fmt.Errorf("opset %d does not have the operator", opset)
	}
	if o.Kind == "onnx::Constant" { // initializers are such, and of any type at any opset
		v = SchemaOf(o.Kind)
	}
	if err := v.verify(o); err != nil {
		return err
	}
	replaced, err := climb(o, opset)
	if err != nil || replaced {
		return err
	}
	declared := make([]ssa.Type, len(o.Results))
	for i, r := range o.Results {
		declared[i] = r.Type
	}
	if err := Infer(o); err != nil {
		return err
	}
	for i, r := range o.Results {
		r.Type = refine(r.Type, declared[i])
	}
	return nil
}

// climb takes an op's steps above an opset. Where one of them replaced it, there are ops that have types in its place.
func climb(o *ssa.Op, opset int) (replaced bool, err error) {
	u := &Upgrade{Builder: Builder{Block: o.Block(), Before: o, Loc: o.Loc}, Node: o}
	err = Build(func() { replaced = !u.rise(opset) })
	return replaced, err
}

// rise takes the steps that lie above an opset; false if one of them replaced the node. A step may change the operator:
// the other's steps above it follow.
func (u *Upgrade) rise(opset int) bool {
	kind := u.Node.Kind
	for _, s := range rowOf(kind.Name()).up {
		if s.Opset <= opset {
			continue
		}
		if s.Up(u); u.Node.Block() == nil {
			return false
		}
		if u.Node.Kind != kind {
			return u.rise(s.Opset)
		}
	}
	return true
}

// Rises reports whether an operator has a step above an opset: whether the newest encoding may be another.
func Rises(kind ssa.Kind, opset int) bool {
	if kind.Namespace() != Namespace {
		return false
	}
	steps := rowOf(kind.Name()).up
	return len(steps) > 0 && steps[len(steps)-1].Opset > opset
}

// refine adds to an inferred type what only the file states: an element type, a rank.
func refine(t, declared ssa.Type) ssa.Type {
	if o, ok := t.(*ssa.OptionalType); ok { // a loop may begin with an optional value and end with a certain one
		_, list := o.Elem.(*ssa.ListType)
		if _, also := declared.(*ssa.ListType); list && also {
			return declared
		}
	}
	x, ok := t.(*ssa.TensorType)
	y, also := declared.(*ssa.TensorType)
	if !ok || !also {
		return t
	}
	if x.DType == tensor.Undefined && y.DType != tensor.Undefined {
		x = x.WithDType(y.DType)
	}
	if x.DType == y.DType && y.Ranked && !x.Ranked {
		return y
	}
	return x
}

// forgetSizes replaces the sizes that the file states of an op's results by symbols of their own: a file may state what held
// for an example only, and the operators decide. A name that no other value has stays, as the name of the result's axis.
func (r *raiser) forgetSizes(o *ssa.Op) {
	if o.Kind.Namespace() != Namespace || o.Kind == "onnx::Constant" {
		return
	}
	m := o.Block().Func().Module()
	// of these the sizes follow from the operands alone, so the symbols would be forgotten at once; their numbers are used up all the same
	follows := r.unchecked && traitsOf(o.Kind)&(pointwise|broadcasts) != 0 && !Rises(o.Kind, r.opset)
	for _, v := range o.Results {
		t := v.Tensor()
		if t == nil || !t.Ranked {
			continue
		}
		var dims []sym.Expr
		if !follows {
			dims = slices.Clone(t.Dims)
		}
		for i, d := range t.Dims {
			name, lone := d.Name()
			switch {
			case lone && !r.named[name]:
				r.named[name] = true
			case follows:
				m.SkipSymbol()
			default:
				dims[i] = m.FreshSymbol("u", 0)
			}
		}
		if !follows {
			v.Type = ssa.Tensor(t.DType, dims...)
		}
	}
}

// newRaiser makes a raiser for a function's body.
func newRaiser(b *ssa.Block, opset int) *raiser {
	r := &raiser{opset: opset, failed: map[*ssa.Value]bool{}, named: map[string]bool{}}
	for _, p := range b.Params {
		if t := p.Tensor(); t != nil {
			for _, d := range t.Dims {
				d.Symbols(func(name string) { r.named[name] = true })
			}
		}
	}
	return r
}

// RaiseBlock raises the ops of a block in order, those of nested blocks before the op that has them, and gives the
// number of ops that it visited. It tells report of each op that cannot be raised, and leaves those that depend on one.
func RaiseBlock(b *ssa.Block, opset int, report func(o *ssa.Op, err error)) int {
	r := newRaiser(b, opset)
	r.report = report
	r.block(b)
	return r.visited
}

type raiser struct {
	opset   int
	report  func(o *ssa.Op, err error)
	failed  map[*ssa.Value]bool // results of ops that could not be raised
	named   map[string]bool     // symbols of sizes that have a value already
	visited int
	// unchecked takes ops as they are: what is wrong with their operands is not reported, and their results are unknown.
	unchecked bool
}

// block reports whether all went well.
func (r *raiser) block(b *ssa.Block) bool {
	ok := true
	for o := b.First(); o != nil; {
		next, results := o.Next(), o.Results // the step may replace the op
		if !r.op(o) {
			ok = false
			for _, v := range results {
				r.failed[v] = true
			}
		}
		o = next
	}
	return ok
}

func (r *raiser) op(o *ssa.Op) bool {
	r.visited++
	for _, v := range o.Operands() {
		if r.failed[v] {
			return false
		}
	}
	r.forgetSizes(o)
	seedBlocks(o, r.opset)
	scalarParams(o)
	for _, c := range o.Blocks {
		if !r.block(c) {
			return false
		}
	}
	scalarConditions(o)
	raise := Raise
	if r.unchecked {
		raise = raiseUnchecked
	}
	if err := raise(o, r.opset); err != nil {
		r.report(o, err)
		return false
	}
	return true
}

// raiseUnchecked is Raise for an op that may not be valid. An error is only that of a step that cannot be taken.
func raiseUnchecked(o *ssa.Op, opset int) error {
	if o.Kind.Namespace() != Namespace {
		return nil
	}
	if replaced, err := climb(o, opset); err != nil || replaced {
		return err
	}
	if Infer(o) != nil {
		for _, v := range o.Results {
			v.Type, v.Sym = ssa.AnyTensor, nil
		}
	}
	return nil
}

// RaiseFitting brings the operators of printed graphs to the newest encoding. A listing says no opset, and those of old
// exporters are at no single one: an operator that does not fit its newest version is taken to be of the newest one that it
// fits. What fits none stays, for the verifier to tell of.
func RaiseFitting(f *ssa.Func) {
	var ops []*ssa.Op
	for o := range f.Body.AllOps() {
		if o.Kind.Namespace() == Namespace {
			ops = append(ops, o)
		}
	}
	for _, o := range ops {
		vs := Versions(string(o.Kind))
		for i := range o.Attrs {
			wholeFloat(&o.Attrs[i], vs)
		}
		for i := len(vs) - 1; i >= 0; i-- {
			if vs[i].Deprecated || vs[i].verify(o) != nil {
				continue
			}
			if i < len(vs)-1 {
				_ = Raise(o, vs[i].Since) // what cannot be raised fits no version that is read
			}
			break
		}
	}
}

// wholeFloat makes a float of a number that is one by the schema: a listing has alpha=1.
func wholeFloat(a *ssa.Attr, versions []OpSchema) {
	if a.Value.Kind != ssa.IntLit {
		return
	}
	for i := range versions {
		for j := range versions[i].Attrs {
			if s := &versions[i].Attrs[j]; s.Name == a.Name {
				if s.Type == AttrFloat {
					a.Value = ssa.Float(float64(a.Value.Int()))
				}
				return
			}
		}
	}
}

// seedBlocks gives the parameters of an op's blocks the element types of what they start as: the steps of the ops in
// there need them, and files need not state them.
func seedBlocks(o *ssa.Op, opset int) {
	if len(o.Blocks) != 1 {
		return
	}
	first, lengths := 0, 0
	switch o.Kind {
	case "onnx::Loop":
		first = 2
	case "onnx::Scan":
		if opset < 9 {
			lengths = 1 // operand 0 has the lengths of the sequences
		}
	default:
		return
	}
	for i, p := range o.Blocks[0].Params {
		v := o.Operand(i + lengths)
		if i < first || v == nil || p.DType() != tensor.Undefined {
			continue
		}
		if t := v.Tensor(); t != nil {
			p.Type = ssa.Unranked(t.DType)
		} else {
			p.Type = v.Type
		}
	}
}

// The standard lets the number of iterations and the conditions of Loop and If be scalars or have the shape [1], inside of a
// Loop's body too. The IR has scalars.

// scalarParams makes scalars of the iteration number and the condition that the body of a Loop takes. What reads them still
// reads the shape [1] where the file states that.
func scalarParams(o *ssa.Op) {
	if o.Kind != "onnx::Loop" || len(o.Blocks) != 1 || len(o.Blocks[0].Params) < 2 {
		return
	}
	body := o.Blocks[0]
	for i, d := range [...]tensor.DType{tensor.Int64, tensor.Bool} {
		p := body.Params[i]
		if !oneElement(p) {
			continue
		}
		b := Builder{Block: body, Before: body.First(), Loc: o.Loc}
		shape := b.Const(tensor.Ints(1))
		p.Type = ssa.Tensor(d)
		v := b.Reshape(p, shape)
		p.ReplaceUses(v)
		v.Def().SetOperand(0, p)
		v.Name, p.Name = p.Name, ""
	}
}

// oneElement reports a tensor of rank 1 that has, or may have, one element.
func oneElement(v *ssa.Value) bool {
	t := v.Tensor()
	return t != nil && t.Ranked && len(t.Dims) == 1 && t.DType != tensor.Undefined && (t.Dims[0].Is(1) || !t.Dims[0].IsConst())
}

// scalarConditions makes scalars of the number of iterations and the conditions that a Loop or an If reads.
func scalarConditions(o *ssa.Op) {
	scalar := func(b Builder, v *ssa.Value) *ssa.Value {
		if v == nil || !oneElement(v) {
			return v
		}
		b.Loc = o.Loc
		return b.Reshape(v, b.Const(tensor.Ints()))
	}
	outside := Builder{Block: o.Block(), Before: o}
	switch {
	case o.Kind == "onnx::If" && o.NumOperands() == 1:
		o.SetOperand(0, scalar(outside, o.Operand(0)))
	case o.Kind == "onnx::Loop" && len(o.Blocks) == 1 && o.NumOperands() >= 2:
		o.SetOperand(0, scalar(outside, o.Operand(0)))
		o.SetOperand(1, scalar(outside, o.Operand(1)))
		if body := o.Blocks[0]; body.NumReturns() > 0 {
			body.SetReturn(0, scalar(Builder{Block: body}, body.Return(0)))
		}
	}
}

// failed is the opset, in a module's Opsets, of a module whose conversion broke off: its operators are not of one opset.
const failed = -1

// Invalidate marks a module whose conversion broke off. Its operators are not of one opset, and a conversion refuses the module.
func Invalidate(m *ssa.Module) { SetOpset(m, failed) }

// Raisable says why a module cannot be raised as a whole, nil if it can. The opset 0 is that of a program that was not
// converted yet.
func Raisable(opset int) error {
	switch {
	case opset == failed:
		return fmt.Errorf("a conversion of this module failed and left it half done; load it again")
	case opset < 0:
		return fmt.Errorf("%d is no opset", opset)
	case opset > Newest:
		return fmt.Errorf("opset %d is newer than %d, the newest that is known", opset, Newest)
	}
	return nil
}

// RaiseModule brings all ops of a module to the newest encoding, infers their types and sets the module's opset to
// [Newest]. Modules without an opset are taken to be new. The error is the first of all. If unchecked is true, types that do not fit
// are no errors: the caller finds what is wrong with them.
func RaiseModule(m *ssa.Module, unchecked bool) error {
	opset := DefaultOpset(m)
	if err := Raisable(opset); err != nil {
		return err
	}
	if opset == 0 {
		opset = Newest
	}
	var first error
	for _, f := range m.Funcs {
		r := newRaiser(f.Body, opset)
		r.unchecked, r.report = unchecked, func(o *ssa.Op, err error) {
			if first == nil {
				first = fmt.Errorf("%s: %w", o.Kind, err)
			}
		}
		r.block(f.Body)
	}
	SetOpset(m, Newest)
	return first
}

// SetOpset sets the version of ONNX's default domain, which has several names.
func SetOpset(m *ssa.Module, opset int) {
	delete(m.Opsets, "ai.onnx")
	delete(m.Opsets, Namespace)
	if m.Opsets == nil {
		m.Opsets = map[string]int{}
	}
	m.Opsets[""] = opset
}

// Short forms for what steps do.

func (u *Upgrade) in(i int) *ssa.Value { return u.Node.Operand(i) }

// take removes an attribute and gives its value.
func (u *Upgrade) take(name string) (ssa.Literal, bool) {
	l, ok := u.Node.Attr(name)
	u.Node.RemoveAttr(name)
	return l, ok
}

// set adds an attribute unless it is there.
func (u *Upgrade) set(name string, v ssa.Literal) {
	if _, ok := u.Node.Attr(name); !ok {
		u.Node.SetAttr(name, v)
	}
}

// operand makes v the operand i.
func (u *Upgrade) operand(i int, v *ssa.Value) {
	vs := u.Node.Operands()
	for len(vs) <= i {
		vs = append(vs, nil)
	}
	vs[i] = v
	u.Node.SetOperands(vs...)
}

// ints makes an operand of a list attribute.
func (u *Upgrade) ints(i int, name string) {
	if l, ok := u.take(name); ok && u.in(i) == nil {
		v, ok := l.IntList()
		if !ok {
			u.Fail("the attribute %s is no list of integers", name)
		}
		u.operand(i, u.Const(tensor.Ints(v...)))
	}
}

// float makes an operand of rank 0 of a float attribute, of the element type of operand 0.
func (u *Upgrade) float(i int, name string) {
	l, ok := u.take(name)
	if !ok || u.in(i) != nil {
		return
	}
	v, x := float64(float32(l.Float())), u.in(0)
	if d := x.DType(); d != tensor.Undefined && !d.IsInt() {
		u.operand(i, u.Const(tensor.FromFloats(d, []int64{}, []float64{v})))
		return
	}
	c := u.Const(tensor.FromFloats(tensor.Float32, []int64{}, []float64{v}))
	u.operand(i, u.CastLike(c, x))
}

// rank is the rank of a tensor; the step fails if it is not known.
func (u *Upgrade) rank(v *ssa.Value, why string) int {
	t := v.Tensor()
	if t == nil || !t.Ranked {
		u.Fail("the rank of its input must be known: %s", why)
	}
	return len(t.Dims)
}

// dropResults removes results that nobody uses, from the n-th on; the step fails if one is used.
func (u *Upgrade) dropResults(n int, why string) {
	for i := len(u.Node.Results) - 1; i >= n; i-- {
		if u.Node.Results[i].HasUses() {
			u.Fail("%s", why)
		}
		u.Node.RemoveResult(i)
	}
}

// Replace makes vs the op's results and removes the op.
func (u *Upgrade) Replace(vs ...*ssa.Value) { replaceOp(u.Node, vs) }
