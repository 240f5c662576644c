package ssa

import "github.com/aton-project/aton/ssa/diag"

// CopyInto copies the ops of a block, including nested blocks, before p in b, or to
// the end if p is nil. values maps values, by their ID, to their copies: it has those of
// values that the block uses from outside, and CopyInto adds those of values that the
// block defines. A value without an entry stands for itself, for copies within one
// function. loc, if not nil, returns the location of each copy, and name its name,
// which must be unique; without name, copies have no names.
func (b *Block) CopyInto(p *Op, src *Block, values []*Value, loc func(diag.Loc) diag.Loc, name func(string) string) {
	for o := src.first; o != nil; o = o.next {
		o.copyBefore(b, p, values, loc, name)
	}
}

// CopyTo copies an op, including its blocks, to the end of b. The arguments are those of [Block.CopyInto].
func (o *Op) CopyTo(b *Block, values []*Value, loc func(diag.Loc) diag.Loc, name func(string) string) *Op {
	return o.copyBefore(b, nil, values, loc, name)
}

func (o *Op) copyBefore(b *Block, p *Op, values []*Value, loc func(diag.Loc) diag.Loc, name func(string) string) *Op {
	get := func(v *Value) *Value {
		if v == nil {
			return nil
		}
		if w := values[v.ID]; w != nil {
			return w
		}
		return v
	}
	operands := make([]*Value, len(o.operands))
	for i := range o.operands {
		operands[i] = get(o.operands[i].value)
	}
	types := make([]Type, len(o.Results))
	for i, r := range o.Results {
		types[i] = r.Type
	}
	at := o.Loc
	if loc != nil {
		at = loc(at)
	}
	c := b.InsertBefore(p, o.Kind, at, operands, types...)
	c.Schema = o.Schema
	c.Attrs = append([]Attr(nil), o.Attrs...)
	for i, r := range o.Results {
		values[r.ID] = c.Results[i]
		if name != nil && r.Name != "" {
			c.Results[i].Name = name(r.Name)
		}
	}
	for _, inner := range o.Blocks {
		n := c.AddBlock()
		for _, prm := range inner.Params {
			label := ""
			if name != nil && prm.Name != "" {
				label = name(prm.Name)
			}
			values[prm.ID] = n.AddParam(label, prm.Type)
		}
		n.CopyInto(nil, inner, values, loc, name)
		returns := make([]*Value, len(inner.returns))
		for i := range inner.returns {
			returns[i] = get(inner.returns[i].value)
		}
		n.SetReturns(returns...)
	}
	return c
}
