package onnx

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/internal/naming"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// BuildError is why a Builder cannot build an operator from these operands.
type BuildError struct {
	Kind ssa.Kind
	Err  error
}

func (e *BuildError) Error() string {
	if r, ok := e.Err.(*InferError); ok && r.Kind == e.Kind {
		return r.Error()
	}
	return fmt.Sprintf("%s: %v", e.Kind, e.Err)
}
func (e *BuildError) Unwrap() error { return e.Err }

// Reason is what is wrong, without the operator that cannot be built.
func (e *BuildError) Reason() string {
	if r, ok := e.Err.(*InferError); ok && r.Kind == e.Kind {
		return r.Err.Error()
	}
	return e.Err.Error()
}

// Build runs a function that uses a Builder, an Upgrade or a Downgrade. It returns the *BuildError or *Unsupported that ended the function
// early, and leaves the operators that the function has made.
func Build(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Unsupported:
			err = r
		case *BuildError:
			err = r
		default:
			panic(r) // a bug, not an operator that cannot be built
		}
	}()
	f()
	return nil
}

// Builder creates ONNX operators in their newest form, infers their types and
// folds what is constant. Use it in a function that [Build] runs: an operator that inference
// rejects ends that function, by a panic that Build recovers.
type Builder struct {
	Block  *ssa.Block
	Before *ssa.Op // insertion point, the end of the block if nil
	Loc    diag.Loc
	// Eval computes an op on constants (kernel.Eval); nil turns that off.
	Eval func(kind ssa.Kind, attrs []ssa.Attr, inputs []*tensor.Tensor, outputs int) ([]*tensor.Tensor, error)
	// FoldLimit bounds the number of elements that folding reads or makes; 0 turns folding off.
	FoldLimit int64
	// Names gives the folds of weights, which have names, names of their own; nil leaves them without.
	Names *ssa.Names
	// Require receives the sizes that the ops made here demand to be equal; nil drops them.
	Require Require
	// Make creates the operators where it is set: a rewriter's own way, which the fields above have no part in.
	Make func(kind ssa.Kind, results int, operands []*ssa.Value, attrs ...ssa.Attr) []*ssa.Value
}

// Const makes a constant.
func (b *Builder) Const(t *tensor.Tensor) *ssa.Value {
	o := b.Block.InsertBefore(b.Before, "onnx::Constant", b.Loc, nil, ssa.TensorOf(t))
	o.SetAttr("value", ssa.TensorValue(t))
	if s, ok := SymOf(o.Results[0]); ok {
		o.Results[0].Sym = s
	}
	return o.Results[0]
}

// Create makes an op of n results. Operands may be nil where they are optional.
func (b *Builder) Create(kind ssa.Kind, n int, operands []*ssa.Value, attrs ...ssa.Attr) []*ssa.Value {
	if b.Make != nil {
		return b.Make(kind, n, operands, attrs...)
	}
	for len(operands) > 0 && operands[len(operands)-1] == nil {
		operands = operands[:len(operands)-1]
	}
	var few [4]ssa.Type // most operators have one result: no memory for it
	types := few[:0]
	for range n {
		types = append(types, ssa.AnyTensor)
	}
	o := b.Block.InsertBefore(b.Before, kind, b.Loc, operands, types...)
	o.Attrs = attrs
	if err := InferWith(o, b.Require); err != nil {
		o.Erase()
		panic(&BuildError{kind, err})
	}
	if vs := b.fold(o); vs != nil {
		o.Erase()
		return vs
	}
	return o.Results
}

// flag is an attribute that is 0 or 1.
func flag(on bool) ssa.Literal {
	if on {
		return ssa.Int(1)
	}
	return ssa.Int(0)
}

// Op is Create for one result, for a name that the program computes. builder_gen.go has a method for each operator.
func (b *Builder) Op(name string, operands ...*ssa.Value) *ssa.Value {
	return b.Create(ssa.Kind("onnx::"+name), 1, operands)[0]
}

// OpA is Op with attributes.
func (b *Builder) OpA(name string, attrs []ssa.Attr, operands ...*ssa.Value) *ssa.Value {
	return b.Create(ssa.Kind("onnx::"+name), 1, operands, attrs...)[0]
}

// Scan builds an onnx::Scan: body maps states and the elements of xs along
// their first axis to new states and outputs, which are stacked. States keep their types.
func (b *Builder) Scan(states, xs []*ssa.Value, reverse bool, body func(states, elems []*ssa.Value) (next, outs []*ssa.Value)) (finals, stacked []*ssa.Value) {
	op := b.Block.InsertBefore(b.Before, "onnx::Scan", b.Loc, append(append([]*ssa.Value{}, states...), xs...))
	op.SetAttr("num_scan_inputs", ssa.Int(int64(len(xs))))
	blk := op.AddBlock()
	var st, el []*ssa.Value
	for _, s := range states {
		st = append(st, blk.AddParam("", s.Type))
	}
	for _, x := range xs {
		t := x.Tensor()
		if t == nil || len(t.Dims) == 0 {
			op.Erase()
			panic(&BuildError{Kind: op.Kind, Err: fmt.Errorf("a scan over %v", x.Type)})
		}
		el = append(el, blk.AddParam("", ssa.Tensor(t.DType, t.Dims[1:]...)))
	}
	block, before := b.Block, b.Before
	done := false
	defer func() { // also when the body fails
		b.Block, b.Before = block, before
		if !done {
			op.Erase()
		}
	}()
	b.Block, b.Before = blk, nil
	next, outs := body(st, el)
	blk.SetReturns(append(append([]*ssa.Value{}, next...), outs...)...)
	for range len(next) + len(outs) {
		op.AddResult(ssa.AnyTensor)
	}
	if reverse {
		ones := make([]int64, len(outs))
		for i := range ones {
			ones[i] = 1
		}
		in := make([]int64, len(xs))
		for i := range in {
			in[i] = 1
		}
		op.SetAttr("scan_input_directions", ssa.Ints(in...))
		op.SetAttr("scan_output_directions", ssa.Ints(ones...))
	}
	if err := Infer(op); err != nil {
		panic(&BuildError{Kind: op.Kind, Err: err})
	}
	done = true
	return op.Results[:len(next)], op.Results[len(next):]
}

func (b *Builder) fold(o *ssa.Op) []*ssa.Value {
	if b.FoldLimit == 0 || len(o.Blocks) > 0 || StaysQuantized(o) {
		return nil
	}
	// An integer tensor whose content is known needs no computation.
	if len(o.Results) == 1 && o.Results[0].Sym != nil {
		if t := o.Results[0].Tensor(); t != nil && t.Ranked && t.DType.IsInt() {
			if vals, ok := constSym(o.Results[0].Sym); ok {
				shape := []int64{}
				if len(t.Dims) == 1 {
					shape = []int64{int64(len(vals))}
				}
				return []*ssa.Value{b.Const(tensor.FromInts(t.DType, shape, vals))}
			}
		}
	}
	if vs := b.foldEmpty(o); vs != nil {
		return vs
	}
	if v := PassesOn(o); v != nil {
		return []*ssa.Value{v}
	}
	ins := make([]*tensor.Tensor, o.NumOperands())
	if len(ins) == 0 {
		return nil
	}
	size := int64(0)
	for i := range ins {
		v := o.Operand(i)
		if v == nil {
			continue
		}
		t := ConstOf(v)
		if t == nil || !t.HasData() {
			return nil
		}
		size += t.NumElements()
		ins[i] = t
	}
	for _, r := range o.Results {
		t := r.Tensor()
		if t == nil {
			return nil
		}
		if shape, ok := t.Static(); ok {
			n := int64(1)
			for _, d := range shape {
				n *= d
			}
			size += n
		}
	}
	if size > b.FoldLimit || b.Eval == nil {
		return nil
	}
	if info, ok := (Dialect{}).Info(o); !ok || info.Effects != ssa.Pure {
		return nil
	}
	outs, err := b.Eval(o.Kind, o.Attrs, ins, len(o.Results))
	if err != nil {
		return nil // left for the runtime to judge
	}
	name := ""
	for i := 0; i < o.NumOperands() && b.Names != nil && name == ""; i++ {
		if v := o.Operand(i); v != nil {
			name = naming.Folded(v.Name, o.Kind)
		}
	}
	vs := make([]*ssa.Value, len(outs))
	for i, t := range outs {
		if vs[i] = b.Const(t); b.Names != nil {
			vs[i].Name = b.Names.Unique(name)
		}
	}
	return vs
}

// foldEmpty makes constants of results that are known to have no elements:
// there is nothing to compute, and runtimes differ in how they get there.
func (b *Builder) foldEmpty(o *ssa.Op) []*ssa.Value {
	if o.NumOperands() == 0 {
		return nil
	}
	for _, r := range o.Results {
		t := r.Tensor()
		if t == nil || t.DType == tensor.Undefined || t.DType == tensor.String {
			return nil
		}
		shape, ok := t.Static()
		if !ok || !slices.Contains(shape, 0) {
			return nil
		}
	}
	if info, ok := (Dialect{}).Info(o); !ok || info.Effects != ssa.Pure {
		return nil
	}
	vs := make([]*ssa.Value, len(o.Results))
	for i, r := range o.Results {
		shape, _ := r.Tensor().Static()
		vs[i] = b.Const(tensor.FromInts(r.DType(), shape, nil))
	}
	return vs
}

func constSym(s []sym.Expr) ([]int64, bool) {
	out := make([]int64, len(s))
	for i, e := range s {
		n, ok := e.Int()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// PassesOn gives the operand that an op merely passes on, nil if it does more.
func PassesOn(o *ssa.Op) *ssa.Value {
	x := o.Operand(0)
	if x == nil || len(o.Results) != 1 {
		return nil
	}
	in, out := x.Tensor(), o.Results[0].Tensor()
	if in == nil || out == nil {
		return nil
	}
	switch o.Kind {
	case "onnx::Identity":
		if in.Ranked || !out.Ranked { // else it is where a file states what nothing computes
			return x
		}
	case "onnx::Cast":
		if in.DType == out.DType && in.DType != tensor.Undefined {
			return x
		}
	case "onnx::Reshape", "onnx::Expand", "onnx::Tile", "onnx::Squeeze", "onnx::Unsqueeze", "onnx::Flatten":
		if in.Ranked && len(in.Dims) <= 1 && o.Kind == "onnx::Tile" {
			return nil
		}
		if in.Ranked && ssa.SameType(in, out) && (o.Kind != "onnx::Tile") {
			return x
		}
	case "onnx::Transpose":
		if perm := o.AttrInts("perm"); perm != nil {
			for i, p := range perm {
				if int64(i) != p {
					return nil
				}
			}
			return x
		}
	case "onnx::Concat":
		if o.NumOperands() == 1 {
			return x
		}
	case "onnx::Slice":
		// a slice of step 1 that keeps every size keeps every element
		if in.Ranked && ssa.SameType(in, out) && (o.Operand(4) == nil || allOnes(ConstOf(o.Operand(4)))) {
			return x
		}
	}
	return nil
}

func allOnes(t *tensor.Tensor) bool {
	if t == nil {
		return false
	}
	for _, v := range t.Int64s() {
		if v != 1 {
			return false
		}
	}
	return true
}
