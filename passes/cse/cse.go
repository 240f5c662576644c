// Package cse is the pass of common subexpression elimination.
package cse

import (
	"math"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass merges equal ops.
var Pass = passes.Pass{
	Name:  "cse",
	Takes: []passes.State{passes.Lifted},
	Doc:   "reuse the result of an earlier equal op",
	Before: `
graph(%x : Float(4)):
  %a : Float(4) = aten::relu(%x)
  %b : Float(4) = aten::relu(%x)
  return (%a, %b)`,
	After: `
graph(%x : Float(4)):
  %a : Float(4) = aten::relu(%x)
  return (%a, %a)`,
	Run: passes.EachFunc(run),
}

func run(c *passes.Context, f *ssa.Func) error {
	e := eliminator{c: c, storages: map[*tensor.Storage]int64{}, effects: make([]ssa.Effect, f.NumValues())}
	n := 0
	for o := range f.Body.AllOps() {
		n++
		effects := c.Module.Effects(o)
		e.mutates = e.mutates || effects&(ssa.Writes|ssa.Unknown) != 0
		if len(o.Results) > 0 {
			e.effects[o.Results[0].ID] = effects
		}
	}
	e.table = make(map[uint64]*ssa.Op, n)
	e.block(f.Body)
	return nil
}

type eliminator struct {
	c *passes.Context
	// mutates reports whether anything in the function writes to memory. Then equal tensors may become
	// different, and a tensor may differ between two reads.
	mutates bool
	// table has an op for each hash. Collisions are so rare that it keeps only one op.
	table    map[uint64]*ssa.Op
	storages map[*tensor.Storage]int64 // numbers them
	effects  []ssa.Effect              // of an op, by the ID of its first result
}

// block merges ops with earlier ones of the block and of enclosing blocks.
func (e *eliminator) block(b *ssa.Block) {
	var added []uint64
	for o := range b.Ops() {
		for _, inner := range o.Blocks {
			e.block(inner)
		}
		if !e.mergeable(o) {
			continue
		}
		h := e.hash(o)
		first := e.table[h]
		if first != nil && !equal(first, o) {
			continue
		}
		if first != nil {
			for i, r := range o.Results {
				// an output keeps its name
				if kept := first.Results[i]; kept.Name == "" {
					kept.Name, r.Name = r.Name, ""
				}
			}
			o.Replace(first.Results...)
			e.c.Changed("merge-equal")
			continue
		}
		e.table[h] = o
		if b.Owner() != nil {
			added = append(added, h)
		}
	}
	for _, h := range added { // the scope ends
		delete(e.table, h)
	}
}

func (e *eliminator) mergeable(o *ssa.Op) bool {
	if len(o.Blocks) > 0 || len(o.Results) == 0 {
		return false
	}
	if effects := e.effects[o.Results[0].ID]; effects&^(ssa.Fresh|ssa.Reads) != 0 || e.mutates && effects&ssa.Reads != 0 {
		return false
	}
	if !e.mutates {
		return true
	}
	for i := range o.NumOperands() {
		if v := o.Operand(i); v != nil && !immutable(v.Type) {
			return false
		}
	}
	for _, r := range o.Results {
		if !immutable(r.Type) {
			return false
		}
	}
	return true
}

// immutable reports whether values of the type cannot change.
func immutable(t ssa.Type) bool {
	switch t := t.(type) {
	case ssa.Basic:
		return t != ssa.AnyType && t != ssa.AnyListType && t != ssa.AnyTupleType && t != ssa.AnyClassType &&
			t != ssa.PyObjectType && t != ssa.GeneratorType && t != ssa.StorageType && t != ssa.CapsuleType
	case *ssa.OptionalType:
		return immutable(t.Elem)
	case *ssa.TupleType:
		for _, elem := range t.Elems {
			if !immutable(elem) {
				return false
			}
		}
		return true
	case *ssa.EnumType:
		return true
	}
	return false
}

func equal(a, b *ssa.Op) bool {
	if a.Kind != b.Kind || a.Schema != b.Schema || a.NumOperands() != b.NumOperands() || len(a.Results) != len(b.Results) || len(a.Attrs) != len(b.Attrs) {
		return false
	}
	for i := range a.NumOperands() {
		if a.Operand(i) != b.Operand(i) {
			return false
		}
	}
	for i := range a.Results {
		if !ssa.SameType(a.Results[i].Type, b.Results[i].Type) {
			return false
		}
	}
	for _, attr := range a.Attrs {
		if v, ok := b.Attr(attr.Name); !ok || !v.Equal(attr.Value) {
			return false
		}
	}
	return true
}

func (e *eliminator) hash(o *ssa.Op) uint64 {
	h := start.text(string(o.Kind))
	for i := range o.NumOperands() {
		id := -1
		if v := o.Operand(i); v != nil {
			id = v.ID
		}
		h = h.number(int64(id))
	}
	for _, a := range o.Attrs { // in any order
		h += e.literal(start.text(a.Name), a.Value)
	}
	return uint64(h)
}

// hash is a running hash by multiplication and rotation. It is the same in every run.
type hash uint64

const start hash = 0x9e3779b97f4a7c15

func (h hash) number(v int64) hash {
	h ^= hash(v)
	h *= 0xff51afd7ed558ccd
	return h ^ h>>32
}

func (h hash) text(s string) hash {
	for len(s) >= 8 {
		h = h.number(int64(s[0]) | int64(s[1])<<8 | int64(s[2])<<16 | int64(s[3])<<24 | int64(s[4])<<32 | int64(s[5])<<40 | int64(s[6])<<48 | int64(s[7])<<56)
		s = s[8:]
	}
	tail := int64(len(s))
	for i := range len(s) {
		tail = tail<<8 | int64(s[i])
	}
	return h.number(tail)
}

// hashed bounds the size of tensors whose elements are hashed, as for comparison: small tensors are frequent, and often
// differ in their elements only.
const hashed = 256

func (e *eliminator) literal(h hash, l ssa.Literal) hash {
	h = h.number(int64(l.Kind))
	switch l.Kind {
	case ssa.IntLit, ssa.BoolLit:
		h = h.number(l.Int())
	case ssa.FloatLit:
		h = h.number(int64(math.Float64bits(l.Float())))
	case ssa.TensorLit:
		t := l.Tensor
		h = h.number(int64(t.DType))
		for _, n := range t.Shape {
			h = h.number(n)
		}
		if t.HasData() && t.DType.Size() > 0 && t.NumBytes() <= hashed {
			h = h.text(string(t.Bytes()))
		} else if t.Storage != nil {
			n := e.storages[t.Storage]
			if n == 0 {
				n = int64(len(e.storages) + 1)
				e.storages[t.Storage] = n
			}
			h = h.number(n).number(t.Offset)
		}
	default:
		h = h.text(l.Str())
		for _, x := range l.Elems {
			h = e.literal(h, x)
		}
	}
	return h
}
