package specialize

import (
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// resultStrides gives the strides of a result that has memory of its own, nil if they are not known.
func (s *views) resultStrides(o *ssa.Op, args []py.Value, v *ssa.Value) []sym.Expr {
	t := v.Tensor()
	if t == nil || !t.Ranked {
		return nil
	}
	if len(t.Dims) < 2 {
		return layout.RowMajor(v.Tensor())
	}
	name := o.Kind.Name()
	if o.Schema != nil {
		if i := o.Schema.Arg("memory_format"); i >= 0 && i < len(args) {
			if l, ok := args[i].(py.Const); !ok || !l.IsNone() && l.Int() != 1 && l.Int() != 0 {
				return nil
			} else if !l.IsNone() && l.Int() == 0 {
				return layout.RowMajor(v.Tensor())
			}
		}
	}
	reduction := (name == "max" || name == "min") && len(args) > 1 && !py.Tensorial(args[1:2])
	if layout.Otherwise[name] {
		return nil
	}
	fresh := (name == "cat" || name == "stack" || padsByConstant(o, args)) && len(t.Dims) <= 3 // with more dims they may keep channels last
	if layout.AlwaysRowMajor[name] || reduction || fresh {
		return layout.RowMajor(v.Tensor())
	}
	var ops []layout.Operand
	plain, known := true, true
	var visit func(xs []py.Value)
	visit = func(xs []py.Value) {
		for _, x := range xs {
			switch x := x.(type) {
			case *py.Tensor:
				xt := s.vals.read(x).Tensor()
				st := heap.ViewOf(x).Strides
				if xt == nil || !xt.Ranked || st == nil {
					plain, known = false, false
					continue
				}
				if how := s.axes.IsRowMajor(st, xt); how != layout.Shares {
					plain = false
				}
				ops = append(ops, layout.Operand{Dims: xt.Dims, Strides: st})
			case *py.List:
				if x.State().Dyn == nil {
					visit(x.State().Elems)
				}
			}
		}
	}
	visit(args)
	if plain {
		return layout.RowMajor(v.Tensor())
	}
	if !known || !layout.Elementwise[name] && name != "max" && name != "min" {
		return nil
	}
	return layout.LikeOperands(t.Dims, ops)
}

// padsByConstant reports a padding with a constant that is known to add elements: one that adds none clones its operand, strides and all.
func padsByConstant(o *ssa.Op, args []py.Value) bool {
	switch o.Kind {
	case "aten::constant_pad_nd":
	case "aten::pad":
		if mode, ok := py.LiteralOf(args[2]); !ok || mode.Str() != "constant" {
			return false
		}
	default:
		return false
	}
	by, ok := py.LiteralOf(args[1])
	return ok && slices.ContainsFunc(py.IntsOf(by), func(n int64) bool { return n != 0 })
}
