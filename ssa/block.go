package ssa

import (
	"iter"

	"github.com/aton-project/aton/ssa/diag"
)

// Block is a list of ops with parameters and returned values.
type Block struct {
	Params []*Value

	fn          *Func
	owner       *Op // nil for the body of a Func
	first, last *Op
	returns     []Use
	ordered     bool
	n           int
}

// Func returns the function that the block belongs to.
func (b *Block) Func() *Func { return b.fn }

// Owner returns the op that owns the block, or nil for the body of a function.
func (b *Block) Owner() *Op { return b.owner }

// First returns the first op, or nil if the block is empty.
func (b *Block) First() *Op { return b.first }

// Last returns the last op, or nil if the block is empty.
func (b *Block) Last() *Op { return b.last }

// Len returns the number of ops, not counting nested ones.
func (b *Block) Len() int { return b.n }

// Ops yields the ops in order. Erasing the current op is allowed. Ops inserted
// before it are not visited; ops inserted after it are.
func (b *Block) Ops() iter.Seq[*Op] {
	return func(yield func(*Op) bool) {
		for o := b.first; o != nil; {
			next := o.next
			if !yield(o) {
				return
			}
			if o.block == b { // not erased: visit ops that were inserted after it
				next = o.next
			}
			o = next
		}
	}
}

// AllOps yields the ops of the block and, after each op, those of its blocks.
func (b *Block) AllOps() iter.Seq[*Op] {
	return func(yield func(*Op) bool) { b.walk(yield) }
}

func (b *Block) walk(yield func(*Op) bool) bool {
	for o := range b.Ops() {
		if !yield(o) {
			return false
		}
		for _, c := range o.Blocks {
			if !c.walk(yield) {
				return false
			}
		}
	}
	return true
}

// NumReturns returns the number of returned values.
func (b *Block) NumReturns() int { return len(b.returns) }

// Return returns returned value i.
func (b *Block) Return(i int) *Value { return b.returns[i].value }

// Returns returns a copy of the returned values.
func (b *Block) Returns() []*Value {
	vs := make([]*Value, len(b.returns))
	for i := range b.returns {
		vs[i] = b.returns[i].value
	}
	return vs
}

// SetReturn replaces returned value i.
func (b *Block) SetReturn(i int, v *Value) { b.returns[i].set(v) }

// SetReturns replaces all returned values.
func (b *Block) SetReturns(vs ...*Value) {
	for i := range b.returns {
		b.returns[i].unlink()
	}
	b.returns = b.fn.newUses(len(vs))
	for i, v := range vs {
		b.returns[i].block = b
		b.returns[i].link(v)
	}
}

// RemoveReturn removes returned value i.
func (b *Block) RemoveReturn(i int) {
	vs := b.Returns()
	b.SetReturns(append(vs[:i:i], vs[i+1:]...)...)
}

// AddParam appends a parameter.
func (b *Block) AddParam(name string, t Type) *Value {
	v := b.fn.newValue(t)
	v.Name, v.blk = name, b
	b.Params = append(b.Params, v)
	return v
}

// RemoveParam removes parameter i. It panics if the parameter has uses.
func (b *Block) RemoveParam(i int) {
	if b.Params[i].uses != nil {
		panic("ssa: removing a parameter in use")
	}
	b.Params = append(b.Params[:i:i], b.Params[i+1:]...)
}

// Append adds a new op at the end. A nil operand is an absent one.
func (b *Block) Append(k Kind, loc diag.Loc, operands []*Value, results ...Type) *Op {
	return b.InsertBefore(nil, k, loc, operands, results...)
}

// InsertBefore adds a new op before p, or at the end if p is nil.
func (b *Block) InsertBefore(p *Op, k Kind, loc diag.Loc, operands []*Value, results ...Type) *Op {
	f := b.fn
	o := f.newOp()
	o.Kind, o.Loc = k, loc
	o.operands = f.newUses(len(operands))
	for i, v := range operands {
		o.operands[i].op = o
		o.operands[i].link(v)
	}
	if len(results) > 0 {
		o.Results = f.newResults(len(results))
		for i, t := range results {
			v := f.newValue(t)
			v.def = o
			o.Results[i] = v
		}
	}
	b.insert(o, p)
	return o
}

func (b *Block) insert(o, before *Op) {
	o.block = b
	b.n++
	if before == nil {
		o.prev, o.next = b.last, nil
		if b.last != nil {
			b.last.next = o
			o.order = b.last.order + 1
		} else {
			b.first = o
			o.order = 0
			b.ordered = true
		}
		b.last = o
		return
	}
	o.prev, o.next = before.prev, before
	if before.prev != nil {
		before.prev.next = o
	} else {
		b.first = o
	}
	before.prev = o
	b.ordered = false
}

func (b *Block) unlink(o *Op) {
	b.n--
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		b.first = o.next
	}
	if o.next != nil {
		o.next.prev = o.prev
	} else {
		b.last = o.prev
	}
	o.prev, o.next = nil, nil
}

// clear drops all uses by ops of the block, innermost last.
func (b *Block) clear() {
	for i := range b.returns {
		b.returns[i].unlink()
	}
	b.returns = nil
	for o := b.last; o != nil; o = o.prev {
		o.drop()
	}
}

// Clear removes all ops and returns from the block.
func (b *Block) Clear() {
	b.clear()
	for o := b.first; o != nil; {
		next := o.next
		o.block, o.prev, o.next = nil, nil, nil
		o = next
	}
	b.first, b.last, b.n = nil, nil, 0
}

// Comes reports whether a comes before c in their common block. It takes amortized
// constant time while the block is not edited.
func (b *Block) Comes(a, c *Op) bool {
	if !b.ordered {
		n := int32(0)
		for o := b.first; o != nil; o = o.next {
			o.order = n
			n++
		}
		b.ordered = true
	}
	return a.order < c.order
}

// Encloses reports whether c is b or nested in b.
func (b *Block) Encloses(c *Block) bool {
	for c != nil {
		if c == b {
			return true
		}
		if c.owner == nil {
			return false
		}
		c = c.owner.block
	}
	return false
}

// Splice moves all ops of c before p in b, or to the end if p is nil. Both blocks
// must belong to the same Func.
func (b *Block) Splice(p *Op, c *Block) {
	for o := c.first; o != nil; {
		next := o.next
		c.unlink(o)
		b.insert(o, p)
		o = next
	}
}
