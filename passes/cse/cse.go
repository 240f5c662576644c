// Package cse is the pass that computes nothing twice.
package cse

import (
	"hash/maphash"
	"math"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// Pass merges equal ops.
var Pass = passes.Pass{
	Name: "cse",
	Doc:  "reuse the result of an earlier equal op",
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
	e := eliminator{c: c, table: map[uint64][]*ssa.Op{}, seed: maphash.MakeSeed()}
	for o := range f.Body.AllOps() {
		if c.Module.Effects(o)&(ssa.Writes|ssa.Unknown) != 0 {
			e.mutates = true
			break
		}
	}
	e.block(f.Body)
	return nil
}

type eliminator struct {
	c *passes.Context
	// mutates: something in the function writes to memory. Then two tensors are not the same
	// because they began with equal elements, and a tensor is not what it was.
	mutates bool
	table   map[uint64][]*ssa.Op
	seed    maphash.Seed
}

// block merges ops with earlier ones of the block and of those around it.
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
		if first := e.find(h, o); first != nil {
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
		e.table[h] = append(e.table[h], o)
		added = append(added, h)
	}
	for _, h := range added { // the scope ends
		e.table[h] = e.table[h][:len(e.table[h])-1]
		if len(e.table[h]) == 0 {
			delete(e.table, h)
		}
	}
}

func (e *eliminator) mergeable(o *ssa.Op) bool {
	if len(o.Blocks) > 0 || len(o.Results) == 0 {
		return false
	}
	if effects := e.c.Module.Effects(o); effects&^(ssa.Fresh|ssa.Reads) != 0 || e.mutates && effects&ssa.Reads != 0 {
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

// immutable says that no program can change a value of the type.
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

func (e *eliminator) find(h uint64, o *ssa.Op) *ssa.Op {
	for _, first := range e.table[h] {
		if equal(first, o) {
			return first
		}
	}
	return nil
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
	var h maphash.Hash
	h.SetSeed(e.seed)
	h.WriteString(string(o.Kind))
	for i := range o.NumOperands() {
		id := -1
		if v := o.Operand(i); v != nil {
			id = v.ID
		}
		number(&h, int64(id))
	}
	sum := h.Sum64()
	for _, a := range o.Attrs { // in any order
		h.Reset()
		h.WriteString(a.Name)
		literal(&h, a.Value)
		sum += h.Sum64()
	}
	return sum
}

func number(h *maphash.Hash, v int64) {
	var b [8]byte
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	h.Write(b[:])
}

// hashed bounds the tensors whose elements are looked at: the small ones are many, and alike in all else.
const hashed = 64

func literal(h *maphash.Hash, l ssa.Literal) {
	h.WriteByte(byte(l.Kind))
	switch l.Kind {
	case ssa.IntLit, ssa.BoolLit:
		number(h, l.Int())
	case ssa.FloatLit:
		number(h, int64(math.Float64bits(l.Float())))
	case ssa.TensorLit:
		t := l.Tensor
		number(h, int64(t.DType))
		for _, n := range t.Shape {
			number(h, n)
		}
		if t.HasData() && t.DType.Size() > 0 && t.NumBytes() <= hashed {
			h.Write(t.Bytes())
		}
	default:
		h.WriteString(l.Str())
		for _, x := range l.Elems {
			literal(h, x)
		}
	}
}
