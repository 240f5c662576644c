// Package unroll puts the iterations of loops one behind the other where their
// number is known.
package unroll

import (
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// Pass unrolls the loops of a program with at most max iterations. No default
// pipeline has it: a loop stays a loop unless something in it has to be known at
// export, which specialize sees to. With this pass in front of specialize or behind it
// the user decides.
var Pass = passes.Pass{
	Name: "unroll",
	Doc:  "put the iterations of loops with a known number of them one behind the other",
	Before: `
graph(%x : Float(2)):
  %n : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %y : Float(2) = prim::Loop(%n, %true, %x)
    block0(%i : int, %c : Float(2)):
      %d : Float(2) = aten::mul(%c, %i)
      -> (%true, %d)
  return (%y)`,
	After: `
graph(%x : Float(2)):
  %n : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %1 : Float(2) = aten::mul(%x, %0)
  %2 : int = prim::Constant[value=1]()
  %3 : Float(2) = aten::mul(%1, %2)
  return (%3)`,
	Options: []passes.Option{
		{Name: "max", Default: "16", Doc: "the greatest number of iterations", Int: true},
	},
	Run: func(c *passes.Context) error {
		for _, f := range c.Module.Funcs {
			block(c, f.Body, int64(c.IntOption("max")))
		}
		return nil
	},
}

// maxOps bounds what nested loops can become.
const maxOps = 1 << 16

func block(c *passes.Context, b *ssa.Block, limit int64) {
	for o := range b.Ops() {
		for _, inner := range o.Blocks { // inner loops first: what is copied is small then
			block(c, inner, limit)
		}
		if n, ok := trips(o); ok && n <= limit && n*int64(size(o.Blocks[0])) <= maxOps {
			unroll(o, n)
			c.Changed("unrolled")
		}
	}
}

func size(b *ssa.Block) (n int) {
	for range b.AllOps() {
		n++
	}
	return n
}

// trips gives the number of iterations of a loop that runs all of them.
func trips(o *ssa.Op) (int64, bool) {
	if o.Kind != "prim::Loop" {
		return 0, false
	}
	n, ok := constant(o.Operand(0))
	first, ok1 := constant(o.Operand(1))
	again, ok2 := constant(o.Blocks[0].Return(0))
	if !ok || !ok1 || !ok2 || n.Kind != ssa.IntLit || !again.Bool() {
		return 0, false
	}
	if !first.Bool() {
		return 0, true
	}
	return max(n.Int(), 0), true
}

func constant(v *ssa.Value) (ssa.Literal, bool) {
	if d := v.Def(); d != nil && d.Kind == "prim::Constant" {
		return d.Attr("value")
	}
	return ssa.None, false
}

func unroll(o *ssa.Op, n int64) {
	body := o.Blocks[0]
	carried := append([]*ssa.Value(nil), o.Operands()[2:]...)
	for i := range n {
		values := make([]*ssa.Value, o.Block().Func().NumValues())
		at := o.Block().InsertBefore(o, "prim::Constant", o.Loc, nil, ssa.IntType)
		at.SetAttr("value", ssa.Int(i))
		values[body.Params[0].ID] = at.Result(0)
		for k, v := range carried {
			values[body.Params[k+1].ID] = v
		}
		o.Block().CopyInto(o, body, values, nil, nil)
		for k := range carried {
			r := body.Return(k + 1)
			carried[k] = r
			if v := values[r.ID]; v != nil {
				carried[k] = v
			}
		}
	}
	o.Replace(carried...)
}
