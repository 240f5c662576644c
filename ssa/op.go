package ssa

import (
	"iter"

	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Kind is the qualified name of an operator: "aten::add".
type Kind string

// Namespace returns the part before "::".
func (k Kind) Namespace() string {
	for i := 0; i+1 < len(k); i++ {
		if k[i] == ':' && k[i+1] == ':' {
			return string(k[:i])
		}
	}
	return ""
}

// Name returns the part after "::".
func (k Kind) Name() string {
	for i := 0; i+1 < len(k); i++ {
		if k[i] == ':' && k[i+1] == ':' {
			return string(k[i+2:])
		}
	}
	return string(k)
}

// Op is one operation. Change it through its methods, which keep the use lists consistent.
type Op struct {
	Kind    Kind
	Results []*Value
	Attrs   []Attr
	Blocks  []*Block // bodies of If, Loop and the like
	Loc     diag.Loc
	// Schema is the overload that the arguments match. It is nil for prim and onnx
	// operators and for unknown ones.
	Schema *Schema

	operands   []Use
	block      *Block
	prev, next *Op
	order      int32 // position in the block, valid while block.ordered
}

// Use is one place where a value is used: an operand of an op, or a return of a block.
type Use struct {
	value      *Value
	op         *Op    // the user, or nil
	block      *Block // the block that returns the value, or nil
	next, prev *Use
}

// Value returns the value that is used.
func (u *Use) Value() *Value { return u.value }

// Op returns the user, or nil if a block returns the value.
func (u *Use) Op() *Op { return u.op }

// Block returns the block that returns the value, or nil if an op uses it.
func (u *Use) Block() *Block { return u.block }

// Value is a result of an op or a parameter of a block.
type Value struct {
	ID   int    // unique and dense in its Func: an index for side tables
	Name string // the preferred name in text; unique in its Func if not empty
	Type Type
	// Sym has the elements of an int, a list of ints, or an integer tensor of
	// rank 0 or 1, if they are known as symbolic expressions. It is derived from the
	// op that defines the value and never printed.
	Sym []sym.Expr

	def  *Op
	blk  *Block // if the value is a parameter
	uses *Use
}

// Def returns the op that defines the value, or nil for a parameter.
func (v *Value) Def() *Op { return v.def }

// Param returns the block of which the value is a parameter, or nil for a result.
func (v *Value) Param() *Block { return v.blk }

// Block returns the block in which the value is defined.
func (v *Value) Block() *Block {
	if v.def != nil {
		return v.def.block
	}
	return v.blk
}

// Tensor returns the value's type if it is a tensor type, else nil. It may be called on nil, an absent operand.
func (v *Value) Tensor() *TensorType {
	if v == nil {
		return nil
	}
	return AsTensor(v.Type)
}

// DType returns the element type of a tensor value, Undefined for others.
func (v *Value) DType() tensor.DType {
	if t := v.Tensor(); t != nil {
		return t.DType
	}
	return tensor.Undefined
}

// HasUses reports whether anything uses the value.
func (v *Value) HasUses() bool { return v.uses != nil }

// HasOneUse reports whether the value has exactly one use.
func (v *Value) HasOneUse() bool { return v.uses != nil && v.uses.next == nil }

// NumUses returns the number of uses.
func (v *Value) NumUses() int {
	n := 0
	for u := v.uses; u != nil; u = u.next {
		n++
	}
	return n
}

// Uses yields the uses. The current use may be changed during the iteration.
func (v *Value) Uses() iter.Seq[*Use] {
	return func(yield func(*Use) bool) {
		for u := v.uses; u != nil; {
			next := u.next
			if !yield(u) {
				return
			}
			u = next
		}
	}
}

// ReplaceUses replaces v by w in all users of v.
func (v *Value) ReplaceUses(w *Value) {
	if v == w {
		return
	}
	for u := v.uses; u != nil; {
		next := u.next
		u.set(w)
		u = next
	}
}

func (u *Use) unlink() {
	if u.value == nil {
		return
	}
	if u.prev != nil {
		u.prev.next = u.next
	} else {
		u.value.uses = u.next
	}
	if u.next != nil {
		u.next.prev = u.prev
	}
	u.value, u.next, u.prev = nil, nil, nil
}

func (u *Use) link(v *Value) {
	u.value = v
	if v == nil {
		return
	}
	u.prev, u.next = nil, v.uses
	if v.uses != nil {
		v.uses.prev = u
	}
	v.uses = u
}

func (u *Use) set(v *Value) {
	u.unlink()
	u.link(v)
}

// Block returns the block that contains the op, or nil if the op was removed.
func (o *Op) Block() *Block { return o.block }

// Next returns the op after o in its block, or nil at the end.
func (o *Op) Next() *Op { return o.next }

// Prev returns the op before o in its block, or nil at the start.
func (o *Op) Prev() *Op { return o.prev }

// NumOperands returns the number of operands.
func (o *Op) NumOperands() int { return len(o.operands) }

// Operand returns operand i. An absent optional operand of an ONNX op is nil.
func (o *Op) Operand(i int) *Value {
	if i >= len(o.operands) {
		return nil
	}
	return o.operands[i].value
}

// Operands returns a copy of the operands.
func (o *Op) Operands() []*Value {
	vs := make([]*Value, len(o.operands))
	for i := range o.operands {
		vs[i] = o.operands[i].value
	}
	return vs
}

// SetOperand replaces operand i.
func (o *Op) SetOperand(i int, v *Value) { o.operands[i].set(v) }

// SetOperands replaces all operands.
func (o *Op) SetOperands(vs ...*Value) {
	for i := range o.operands {
		o.operands[i].unlink()
	}
	o.operands = o.fn().newUses(len(vs))
	for i, v := range vs {
		o.operands[i].op = o
		o.operands[i].link(v)
	}
}

func (o *Op) fn() *Func { return o.block.fn }

// Result returns result i.
func (o *Op) Result(i int) *Value { return o.Results[i] }

// Attr returns an attribute, and whether the op has it.
func (o *Op) Attr(name string) (Literal, bool) {
	for i := range o.Attrs {
		if o.Attrs[i].Name == name {
			return o.Attrs[i].Value, true
		}
	}
	return None, false
}

// SetAttr adds or replaces an attribute.
func (o *Op) SetAttr(name string, v Literal) {
	for i := range o.Attrs {
		if o.Attrs[i].Name == name {
			o.Attrs[i].Value = v
			return
		}
	}
	o.Attrs = append(o.Attrs[:len(o.Attrs):len(o.Attrs)], Attr{name, v})
}

// RemoveAttr removes an attribute if it is there.
func (o *Op) RemoveAttr(name string) {
	for i := range o.Attrs {
		if o.Attrs[i].Name == name {
			o.Attrs = append(append([]Attr(nil), o.Attrs[:i]...), o.Attrs[i+1:]...)
			return
		}
	}
}

// AttrInt returns an int attribute, or def if it is absent.
func (o *Op) AttrInt(name string, def int64) int64 {
	if l, ok := o.Attr(name); ok {
		return l.Int()
	}
	return def
}

// AttrFloat returns a float attribute, or def if it is absent.
func (o *Op) AttrFloat(name string, def float64) float64 {
	if l, ok := o.Attr(name); ok {
		return l.Float()
	}
	return def
}

// AttrStr returns a string attribute, or def if it is absent.
func (o *Op) AttrStr(name, def string) string {
	if l, ok := o.Attr(name); ok {
		return l.Str()
	}
	return def
}

// AttrInts returns an attribute that is a list of ints, or nil if it is absent.
func (o *Op) AttrInts(name string) []int64 {
	l, _ := o.Attr(name)
	v, _ := l.IntList()
	return v
}

// Erase removes the op and its blocks. It panics if a result has uses.
func (o *Op) Erase() {
	for _, r := range o.Results {
		if r.uses != nil {
			panic("ssa: erasing " + string(o.Kind) + ", whose result is in use")
		}
	}
	o.drop()
	o.block.unlink(o)
	o.block = nil
}

// drop removes the uses that o and its blocks make of other values.
func (o *Op) drop() {
	for i := range o.operands {
		o.operands[i].unlink()
	}
	for _, b := range o.Blocks {
		b.clear()
	}
}

// Replace replaces o's results by vs in all users and erases o.
func (o *Op) Replace(vs ...*Value) {
	for i, r := range o.Results {
		r.ReplaceUses(vs[i])
	}
	o.Erase()
}

// MoveBefore moves the op before p, which may be in another block of the same Func.
func (o *Op) MoveBefore(p *Op) {
	o.block.unlink(o)
	p.block.insert(o, p)
}

// MoveToEnd moves the op to the end of a block of the same Func.
func (o *Op) MoveToEnd(b *Block) {
	o.block.unlink(o)
	b.insert(o, nil)
}

// AddResult appends a result.
func (o *Op) AddResult(t Type) *Value {
	v := o.fn().newValue(t)
	v.def = o
	o.Results = append(o.Results, v)
	return v
}

// RemoveResult removes result i. It panics if the result has uses.
func (o *Op) RemoveResult(i int) {
	if o.Results[i].uses != nil {
		panic("ssa: removing a result in use of " + string(o.Kind))
	}
	o.Results = append(o.Results[:i:i], o.Results[i+1:]...)
}

// AddBlock appends an empty block.
func (o *Op) AddBlock() *Block {
	b := &Block{fn: o.block.fn, owner: o}
	o.Blocks = append(o.Blocks, b)
	return b
}
