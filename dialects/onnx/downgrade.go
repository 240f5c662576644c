package onnx

import (
	"fmt"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Step takes an op from the encoding that an operator has at Opset to the one
// before. It changes d.Node in place, or builds what computes the same and calls
// Replace. What it builds is in the newest encoding again.
type Step struct {
	Opset int
	Down  func(d *Downgrade)
}

// Downgrade is an op, Node, on its way to an older opset, with a builder before it.
type Downgrade struct {
	Builder
	Node   *ssa.Op
	Opset  int // the goal
	Target Target
	Hint   string // what the user can do when the step fails, if not a newer opset
}

// Unsupported is the panic value of a step that cannot be done.
type Unsupported struct {
	Opset int // the lowest opset that has what it takes, 0 if there is none
	Why   string
}

func (u *Unsupported) Error() string { return u.Why }

// Fail ends the step: the op needs an opset, 0 if none would do.
func (d *Downgrade) Fail(opset int, format string, args ...any) {
	panic(&Unsupported{opset, fmt.Sprintf(format, args...)})
}

// Replace makes vs the op's results and removes the op.
func (d *Downgrade) Replace(vs ...*ssa.Value) { replaceOp(d.Node, vs) }

// Instead replaces the op by others that compute the same, whatever the opset: by its expression, or by what it was before it came. It reports whether
// there are such. If not, its kind, attributes and operands may be those of an older opset afterwards.
func (d *Downgrade) Instead() bool {
	r := rowOf(d.Node.Kind.Name())
	if r.expr != nil {
		d.Replace(d.expressionOf(d.Node.Result(0).DType(), false))
		return true
	}
	for _, s := range r.down {
		if s.Down(d); d.Node.Block() == nil {
			return true
		}
	}
	return false
}

// replaceOp makes vs an op's results and removes the op.
func replaceOp(o *ssa.Op, vs []*ssa.Value) {
	for i, v := range vs {
		if r := o.Results[i]; v != r && r.HasUses() {
			adopt(v, r)
		}
	}
	o.Replace(vs...)
}

// adopt lets a value that takes another's place keep what was known of that.
func adopt(v, r *ssa.Value) {
	if r.Name != "" && v.Name == "" && v.Def() != nil {
		v.Name, r.Name = r.Name, ""
	}
	if v.Sym == nil && v.Def() != nil {
		v.Sym = r.Sym
	}
	a, b := v.Tensor(), r.Tensor()
	if a == nil || b == nil || v.Def() == nil || a.DType != b.DType {
		return
	}
	if !a.Ranked && b.Ranked {
		v.Type = b
	} else if a.Ranked && b.Ranked && len(a.Dims) == len(b.Dims) {
		t := ssa.Tensor(a.DType, append(a.Dims[:0:0], a.Dims...)...)
		for i := range t.Dims {
			if !t.Dims[i].IsConst() {
				t.Dims[i] = b.Dims[i]
			}
		}
		v.Type = t
	}
}

// in is operand i, nil if it is absent.
func (d *Downgrade) in(i int) *ssa.Value { return d.Node.Operand(i) }

// used reports that result i exists and is used.
func (d *Downgrade) used(i int) bool { return i < len(d.Node.Results) && d.Node.Results[i].HasUses() }

// ConstInts is the content of an integer or bool tensor that never changes.
func ConstInts(v *ssa.Value) ([]int64, bool) {
	if v == nil {
		return nil, false
	}
	if t := ConstOf(v); t != nil && t.HasData() && (t.DType.IsInt() || t.DType == tensor.Bool) {
		return t.Int64s(), true
	}
	if v.Sym != nil {
		return constSym(v.Sym)
	}
	return nil, false
}

// ConstFloat is the only element of a tensor that never changes.
func ConstFloat(v *ssa.Value) (float64, bool) {
	t := ConstOf(v)
	if t == nil || !t.HasData() || t.NumElements() != 1 || t.DType == tensor.String || t.DType.IsComplex() {
		return 0, false
	}
	if f := t.Float64s(); len(f) == 1 {
		return f[0], true
	}
	return 0, false
}

// dropOperands keeps the first n operands.
func (d *Downgrade) dropOperands(n int) {
	vs := d.Node.Operands()
	if len(vs) > n {
		vs = vs[:n]
	}
	for len(vs) > 0 && vs[len(vs)-1] == nil {
		vs = vs[:len(vs)-1]
	}
	d.Node.SetOperands(vs...)
}

// intsAttr turns the constant operand i into the attribute; an absent one adds
// nothing. The operand is cleared.
func (d *Downgrade) intsAttr(i int, name string, opset int) {
	v := d.in(i)
	if v == nil {
		return
	}
	ints, ok := ConstInts(v)
	if !ok {
		d.Fail(opset, "%s is computed at run time", name)
	}
	d.Node.SetAttr(name, ssa.Ints(ints...))
	d.Node.SetOperand(i, nil)
}

// rank is the rank of a tensor; the step fails if it is not known.
func (d *Downgrade) rank(v *ssa.Value, opset int) int {
	if t := v.Tensor(); t != nil && t.Ranked {
		return len(t.Dims)
	}
	d.Fail(opset, "the rank of its input must be known")
	return 0
}

// sizes is the shape of a tensor; the step fails if a size is not known.
func (d *Downgrade) sizes(v *ssa.Value, opset int) []int64 {
	if t := v.Tensor(); t != nil {
		if s, ok := t.Static(); ok {
			return s
		}
	}
	d.Fail(opset, "the sizes of its input must be known")
	return nil
}

// positiveAxes makes the axes of an attribute count from the front.
func (d *Downgrade) positiveAxes(name string, rank func() int) {
	l, ok := d.Node.Attr(name)
	if !ok {
		return
	}
	if l.Kind == ssa.IntLit {
		if l.Int() < 0 {
			d.Node.SetAttr(name, ssa.Int(l.Int()+int64(rank())))
		}
		return
	}
	axes, _ := l.IntList()
	changed := false
	for i, a := range axes {
		if a < 0 {
			axes[i], changed = a+int64(rank()), true
		}
	}
	if changed {
		d.Node.SetAttr(name, ssa.Ints(axes...))
	}
}

func inputRank(opset int) func(*Downgrade) func() int {
	return func(d *Downgrade) func() int { return func() int { return d.rank(d.in(0), opset) } }
}

// frontAxes is the step that makes the axes of attributes count from the front.
func frontAxes(opset int, names ...string) Step {
	return Step{opset, func(d *Downgrade) {
		for _, n := range names {
			d.positiveAxes(n, inputRank(opset)(d))
		}
	}}
}

// without is the step that removes attributes that say what holds anyway.
// The value is the one that older versions imply.
func without(opset int, name string, implied ssa.Literal) Step {
	return Step{opset, func(d *Downgrade) {
		if l, ok := d.Node.Attr(name); ok {
			if !sameNumber(l, implied) {
				d.Fail(opset, "the attribute %s cannot be told before", name)
			}
			d.Node.RemoveAttr(name)
		}
	}}
}

func sameNumber(a, b ssa.Literal) bool {
	if a.IsNumber() && b.IsNumber() {
		return a.Float() == b.Float()
	}
	if a.Kind == ssa.StrLit && b.Kind == ssa.StrLit {
		return a.Str() == b.Str()
	}
	x, okx := a.IntList()
	y, oky := b.IntList()
	if !okx || !oky {
		return false
	}
	if len(y) == 1 { // all of them
		for _, n := range x {
			if n != y[0] {
				return false
			}
		}
		return true
	}
	return false
}

// unsaid is the step that removes an attribute without which nothing changes.
func unsaid(opset int, name string) Step {
	return Step{opset, func(d *Downgrade) { d.Node.RemoveAttr(name) }}
}

// express is the step that replaces an operator that did not exist.
func express(opset int, build func(d *Downgrade) *ssa.Value) Step {
	return Step{opset, func(d *Downgrade) { d.Replace(build(d)) }}
}

// Short forms for what steps build.

func (d *Downgrade) ints(v ...int64) *ssa.Value { return d.Const(tensor.Ints(v...)) }

func (d *Downgrade) scalar(t tensor.DType, v float64) *ssa.Value {
	return d.Const(tensor.FromFloats(t, []int64{}, []float64{v}))
}

func (d *Downgrade) scalarInt(t tensor.DType, v int64) *ssa.Value {
	return d.Const(tensor.FromInts(t, []int64{}, []int64{v}))
}

// like makes a scalar of x's element type.
func (d *Downgrade) like(x *ssa.Value, v float64) *ssa.Value { return d.scalar(x.DType(), v) }

func (d *Downgrade) cast(x *ssa.Value, t tensor.DType) *ssa.Value {
	if x.DType() == t {
		return x
	}
	return d.Cast(x, t)
}
