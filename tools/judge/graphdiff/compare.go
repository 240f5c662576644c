package main

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// comparer compares two functions op by op. Names do not count, and neither do
// the places of constants; everything else does: kinds, overloads, operands,
// attributes, types of results, blocks.
type comparer struct {
	values map[*ssa.Value]*ssa.Value
	places *places
}

// places counts the ops whose line in the user's program is PyTorch's, too.
type places struct{ same, all int }

func (p *places) count(x, y *ssa.Op) {
	a := x.Block().Func().Module().Locs.Frame(x.Loc)
	b := y.Block().Func().Module().Locs.Frame(y.Loc)
	if b.File == "" {
		return
	}
	p.all++
	// of the call stack of a traced op PyTorch shows the innermost place, aton the innermost outside of torch
	if a.File == b.File && a.Line == b.Line || strings.Contains(b.File, "/torch/") && !strings.Contains(a.File, "/torch/") {
		p.same++
	}
}

// compare gives the first difference, empty if there is none.
func compare(ours, theirs *ssa.Func, p *places) string {
	c := &comparer{map[*ssa.Value]*ssa.Value{}, p}
	if d := c.params(ours.Body, theirs.Body); d != "" {
		return d
	}
	return c.block(ours.Body, theirs.Body)
}

func (c *comparer) params(a, b *ssa.Block) string {
	if len(a.Params) != len(b.Params) {
		return fmt.Sprintf("%d parameters, PyTorch has %d", len(a.Params), len(b.Params))
	}
	for i := range a.Params {
		c.values[a.Params[i]] = b.Params[i]
	}
	return ""
}

func next(o *ssa.Op) *ssa.Op {
	for o != nil && o.Kind == "prim::Constant" {
		o = o.Next()
	}
	return o
}

func (c *comparer) block(a, b *ssa.Block) string {
	x, y := next(a.First()), next(b.First())
	for x != nil && y != nil {
		if d := c.op(x, y); d != "" {
			return d
		}
		x, y = next(x.Next()), next(y.Next())
	}
	if x != nil {
		return fmt.Sprintf("more: %s", x.Kind)
	}
	if y != nil {
		return fmt.Sprintf("missing: %s", y.Kind)
	}
	if a.NumReturns() != b.NumReturns() {
		return fmt.Sprintf("%d returns, PyTorch has %d", a.NumReturns(), b.NumReturns())
	}
	for i := range a.NumReturns() {
		if d := c.same(a.Return(i), b.Return(i)); d != "" {
			return "return: " + d
		}
	}
	return ""
}

// sameScales reports two calls of one resizing operator without scales: releases
// differ in which of its overloads a call with None for them is, which take the
// same arguments before and mean the same.
func sameScales(x, y *ssa.Op) bool {
	if !strings.HasPrefix(string(x.Kind), "aten::upsample_") || x.Kind != y.Kind || x.NumOperands() == y.NumOperands() {
		return false
	}
	least := min(x.NumOperands(), y.NumOperands()) - 1
	for _, o := range []*ssa.Op{x, y} {
		for _, v := range o.Operands()[least:] {
			if v.Type != ssa.NoneType {
				return false
			}
		}
	}
	return true
}

func (c *comparer) op(x, y *ssa.Op) string {
	if x.Kind != y.Kind && !(x.Kind == "prim::fork" && strings.HasPrefix(string(y.Kind), "prim::fork_")) {
		return fmt.Sprintf("%s, PyTorch has %s", x.Kind, y.Kind)
	}
	at := string(x.Kind) + ": "
	if sameScales(x, y) {
		c.values[x.Results[0]] = y.Results[0]
		c.places.count(x, y)
		return ""
	}
	if x.NumOperands() != y.NumOperands() {
		return at + fmt.Sprintf("%d operands, PyTorch has %d", x.NumOperands(), y.NumOperands())
	}
	for i := range x.NumOperands() {
		if d := c.same(x.Operand(i), y.Operand(i)); d != "" {
			return at + fmt.Sprintf("operand %d: %s", i, d)
		}
	}
	// a callee may know less of its arguments' types than the caller: then the text's overload differs
	if x.Schema != nil && y.Schema != nil && x.Schema != y.Schema && x.Schema == byTypes(x) {
		return at + fmt.Sprintf("overload %s, PyTorch's graph has %s", x.Schema.Overload, y.Schema.Overload)
	}
	if a, b := x.AttrStr("name", ""), y.AttrStr("name", ""); a != b {
		return at + fmt.Sprintf("name %s, PyTorch has %s", a, b)
	}
	c.places.count(x, y)
	if len(x.Blocks) != len(y.Blocks) {
		return at + "blocks differ"
	}
	for i := range x.Blocks {
		if d := c.params(x.Blocks[i], y.Blocks[i]); d != "" {
			return at + d
		}
		if d := c.block(x.Blocks[i], y.Blocks[i]); d != "" {
			return d
		}
	}
	if len(x.Results) != len(y.Results) {
		return at + fmt.Sprintf("%d results, PyTorch has %d", len(x.Results), len(y.Results))
	}
	for i := range x.Results {
		c.values[x.Results[i]] = y.Results[i]
		if x.Kind == "prim::Exit" { // PyTorch leaves its type at the default
			continue
		}
		a, b := shapeless(x.Results[i].Type), shapeless(y.Results[i].Type)
		if a != b {
			return at + fmt.Sprintf("result %d is %s, PyTorch has %s", i, a, b)
		}
	}
	return ""
}

// byTypes is the overload that the operands' types ask for.
func byTypes(o *ssa.Op) *ssa.Schema {
	types := make([]ssa.Type, o.NumOperands())
	for i := range types {
		types[i] = o.Operand(i).Type
	}
	return ssa.MatchSchema(aten.Schemas(o.Kind), types)
}

// shapeless prints a type as PyTorch's importer knows it: class names by their
// text, tensors without shapes.
func shapeless(t ssa.Type) string {
	if ssa.AsTensor(t) != nil {
		return "Tensor"
	}
	switch t := t.(type) {
	case *ssa.TupleType:
		if t.Names != nil {
			return "NamedTuple" // printed by its fields or by its class
		}
		var s []string
		for _, e := range t.Elems {
			s = append(s, shapeless(e))
		}
		return "(" + strings.Join(s, ", ") + ")"
	case *ssa.ListType:
		return shapeless(t.Elem) + "[]"
	case *ssa.OptionalType:
		return shapeless(t.Elem) + "?"
	}
	return strings.ReplaceAll(t.String(), "Scalar", "number")
}

func (c *comparer) same(a, b *ssa.Value) string {
	if w, ok := c.values[a]; ok {
		if w != b {
			return fmt.Sprintf("%%%s, PyTorch has %%%s", a.Name, b.Name)
		}
		return ""
	}
	x, y := a.Def(), b.Def()
	if x == nil || y == nil || x.Kind != "prim::Constant" || y.Kind != "prim::Constant" {
		return "one is a constant and the other is not"
	}
	u, v := literal(x), literal(y)
	// PyTorch prints a tensor of one element without its shape
	one := v == "tensor[]" && strings.Trim(u, "tensor[]1 ,") == ""
	if u != v && !one && !(v == "tensor" && strings.HasPrefix(u, "tensor")) {
		return fmt.Sprintf("constant %s, PyTorch has %s", u, v)
	}
	return ""
}

// literal is the text of a constant; large tensors count by their shape.
func literal(o *ssa.Op) string {
	v, ok := o.Attr("value")
	if !ok {
		return "None" + o.AttrStr("name", "")
	}
	if v.Kind == ssa.TensorLit {
		return fmt.Sprintf("tensor%v", v.Tensor.Shape)
	}
	if v.Kind == ssa.DeviceLit {
		return ssa.Str(v.Str()).String()
	}
	if v.Kind == ssa.BlobLit {
		if t := o.Result(0).Type; t != nil && ssa.AsTensor(t) != nil {
			return "tensor"
		}
	}
	return v.String()
}
