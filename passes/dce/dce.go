// Package dce is the pass of dead code elimination.
package dce

import (
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// Pass removes dead ops, and dead results of If and Loop.
var Pass = passes.Pass{
	Name: "dce",
	Doc:  "remove ops without effects whose results are unused, and unused values that branches and loops carry",
	Before: `
graph(%x : Float(4), %c : bool):
  %unused : Float(4) = aten::relu(%x)
  %a : Float(4), %b : Float(4) = prim::If(%c)
    block0():
      %y : Float(4) = aten::relu(%x)
      %z : Float(4) = aten::neg(%x)
      -> (%y, %z)
    block1():
      -> (%x, %x)
  return (%a)`,
	After: `
graph(%x : Float(4), %c : bool):
  %a : Float(4) = prim::If(%c)
    block0():
      %y : Float(4) = aten::relu(%x)
      -> (%y)
    block1():
      -> (%x)
  return (%a)`,
	Run: passes.EachFunc(run),
}

// lasting has the effects that keep an op even if its results are unused. A random op may be removed: the remaining ones then
// draw other numbers, and no particular numbers are promised.
const lasting = ssa.Writes | ssa.Raises | ssa.Unknown

func run(c *passes.Context, f *ssa.Func) error {
	m := marker{
		module: c.Module,
		silent: map[*ssa.Op]bool{},
		ops:    make([]bool, f.NumValues()),
		values: make([]bool, f.NumValues()),
	}
	m.roots(f.Body)
	for i := range f.Body.NumReturns() {
		m.value(f.Body.Return(i))
	}
	m.spread()
	m.sweep(c, f.Body)
	return nil
}

type marker struct {
	module *ssa.Module
	ops    []bool           // live, by the ID of the first result
	silent map[*ssa.Op]bool // live, of those without results
	values []bool           // live, by ID
	queue  []*ssa.Value
}

func (m *marker) value(v *ssa.Value) {
	if v != nil && !m.values[v.ID] {
		m.values[v.ID] = true
		m.queue = append(m.queue, v)
	}
}

// roots marks the ops with a lasting effect of their own, and the ops that enclose them. It reports whether there is one.
func (m *marker) roots(b *ssa.Block) bool {
	any := false
	for o := range b.Ops() {
		inner := false
		for _, c := range o.Blocks {
			if m.roots(c) {
				inner = true
			}
		}
		// what its blocks do was looked at by itself
		info, known := m.module.Info(o)
		if inner || !known && !structured(o) || info.Effects&lasting != 0 {
			m.op(o)
			any = true
		}
	}
	return any
}

// structured reports whether the op is an If or a Loop, whose effects are those of its blocks. If the blocks do not match the
// results, as in a damaged file, the op is treated as a whole.
func structured(o *ssa.Op) bool { return isIf(o) || isLoop(o) }

func isIf(o *ssa.Op) bool {
	return (o.Kind == "prim::If" || o.Kind == "onnx::If") && len(o.Blocks) == 2 &&
		o.Blocks[0].NumReturns() == len(o.Results) && o.Blocks[1].NumReturns() == len(o.Results)
}

func isLoop(o *ssa.Op) bool {
	return (o.Kind == "prim::Loop" || o.Kind == "onnx::Loop") && len(o.Blocks) == 1 &&
		o.Blocks[0].NumReturns() == len(o.Results)+1 && len(o.Blocks[0].Params) == o.NumOperands()-2+headParams(o)
}

// headParams is the number of parameters of a loop's block ahead of the carried values.
func headParams(o *ssa.Op) int {
	if o.Kind == "onnx::Loop" {
		return 2 // trip, condition
	}
	return 1 // trip
}

func (m *marker) live(o *ssa.Op) bool {
	if len(o.Results) == 0 {
		return m.silent[o]
	}
	return m.ops[o.Results[0].ID]
}

// op marks an op, and the operands that it needs regardless of which results are used.
func (m *marker) op(o *ssa.Op) {
	if m.live(o) {
		return
	}
	if len(o.Results) == 0 {
		m.silent[o] = true
	} else {
		m.ops[o.Results[0].ID] = true
	}
	needed := o.NumOperands()
	switch {
	case isIf(o):
	case isLoop(o):
		needed = min(needed, 2)
		m.value(o.Blocks[0].Return(0)) // whether to go on
	default:
		for _, r := range o.Results {
			m.value(r)
		}
		for _, b := range o.Blocks {
			for i := range b.NumReturns() {
				m.value(b.Return(i))
			}
		}
	}
	for i := range needed {
		m.value(o.Operand(i))
	}
}

// spread marks the operands of live values.
func (m *marker) spread() {
	for len(m.queue) > 0 {
		v := m.queue[len(m.queue)-1]
		m.queue = m.queue[:len(m.queue)-1]
		if o := v.Def(); o != nil {
			m.op(o)
			if structured(o) {
				m.result(o, index(o.Results, v))
			}
			m.owners(o.Block())
			continue
		}
		b := v.Param()
		if o := b.Owner(); o != nil && isLoop(o) {
			if i := index(b.Params, v) - headParams(o); i >= 0 {
				m.result(o, i)
			}
		}
		m.owners(b)
	}
}

// result marks the values that result i of an If or Loop comes from.
func (m *marker) result(o *ssa.Op, i int) {
	if isIf(o) {
		m.value(o.Blocks[0].Return(i))
		m.value(o.Blocks[1].Return(i))
		return
	}
	b := o.Blocks[0]
	m.value(b.Return(i + 1))
	if i+2 < o.NumOperands() { // carried; else it is collected by an ONNX loop
		m.value(o.Operand(i + 2))
		m.value(o.Results[i])
		m.value(b.Params[i+headParams(o)])
	}
}

// owners marks the ops that enclose a block with a live op.
func (m *marker) owners(b *ssa.Block) {
	for o := b.Owner(); o != nil && !m.live(o); o = o.Block().Owner() {
		m.op(o)
	}
}

// index returns the index of a value in a list. It panics if the list does not have it.
func index(vs []*ssa.Value, v *ssa.Value) int {
	for i, w := range vs {
		if v == w {
			return i
		}
	}
	panic("dce: the value is not where it is defined")
}

// sweep removes what is not marked, users first.
func (m *marker) sweep(c *passes.Context, b *ssa.Block) {
	for o := b.Last(); o != nil; {
		prev := o.Prev()
		if !m.live(o) {
			o.Erase()
			c.Changed("remove-dead-op")
		} else {
			if structured(o) {
				m.trim(c, o)
			}
			for _, inner := range o.Blocks {
				m.sweep(c, inner)
			}
			m.uncarry(o)
		}
		o = prev
	}
}

// trim removes the dead results of an If or Loop, and the values that its blocks return for them.
func (m *marker) trim(c *passes.Context, o *ssa.Op) {
	for i := len(o.Results) - 1; i >= 0; i-- {
		if m.values[o.Results[i].ID] {
			continue
		}
		c.Changed("remove-dead-result")
		at := i
		if isLoop(o) {
			at++ // behind the condition
		}
		for _, b := range o.Blocks {
			b.RemoveReturn(at)
		}
		o.RemoveResult(i)
	}
}

// uncarry removes the dead parameters of a loop, which nothing in its block uses, and their initial values.
func (m *marker) uncarry(o *ssa.Op) {
	if !isLoop(o) {
		return
	}
	b, head := o.Blocks[0], headParams(o)
	for i := len(b.Params) - 1; i >= head; i-- {
		if !m.values[b.Params[i].ID] {
			b.RemoveParam(i)
			operands := o.Operands()
			at := i - head + 2
			o.SetOperands(append(operands[:at:at], operands[at+1:]...)...)
		}
	}
}
