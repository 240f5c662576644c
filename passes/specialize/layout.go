package specialize

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/passes/specialize/internal/view"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
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
			switch formatOf(args[i]) {
			case channelsLastFormat:
				return layout.ChannelsLast(t)
			case contiguousFormat:
				return layout.RowMajor(t)
			case unknownFormat:
				return nil
			}
		}
	}
	rule := aten.LayoutOf(o.Kind, o.Schema)
	if rule == aten.NatureLayout && view.Of(o.Kind).To != tensor.Undefined { // x.float()
		rule = aten.LikeOperands
	}
	if rule == aten.AnyLayout {
		return nil
	}
	fresh := (name == "cat" || name == "stack" || padsByConstant(o, args)) && len(t.Dims) <= 3     // with more dims they may keep channels last
	powers := (name == "pow" || name == "float_power") && len(args) > 1 && !py.Tensorial(args[:1]) // the powers of a number
	if rule == aten.RowMajor || fresh || powers {
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
				if !x.State().AtRunTime() {
					visit(x.State().Elems)
				}
			}
		}
	}
	visit(args)
	if plain {
		return layout.RowMajor(v.Tensor())
	}
	if !known || rule != aten.LikeOperands {
		return nil
	}
	if name == "rsub" {
		slices.Reverse(ops) // it is sub of the operands exchanged
	}
	return layout.LikeOperands(t.Dims, ops)
}

// memoryFormat is what an argument memory_format asks for.
type memoryFormat int

const (
	noFormat memoryFormat = iota // none is given
	contiguousFormat
	preserveFormat
	channelsLastFormat // of rank 4 or 5
	unknownFormat
)

// formatOf reads an argument memory_format (c10/core/MemoryFormat.h).
func formatOf(v py.Value) memoryFormat {
	l, ok := v.(py.Const)
	switch {
	case !ok:
		return unknownFormat
	case l.IsNone():
		return noFormat
	}
	switch l.Int() {
	case 0:
		return contiguousFormat
	case 1:
		return preserveFormat
	case 2, 3:
		return channelsLastFormat
	}
	return unknownFormat
}

// contiguous says whether contiguous() of self shares memory with it, in the format that is asked for.
func (s *views) contiguous(format py.Value, strides []sym.Expr, t *ssa.TensorType) layout.Sharing {
	switch formatOf(format) {
	case noFormat, contiguousFormat:
		return s.axes.IsRowMajor(strides, t)
	case channelsLastFormat:
		return s.axes.IsChannelsLast(strides, t)
	}
	return layout.Unknown
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

// views evaluates operators whose results share memory with their operands.
type views struct {
	*context
	build *builder
	heap  *heap.Heap
	vals  *values
	axes  layout.Axes
	// strided has the places of each as_strided, by their value.
	strided map[*ssa.Value]places
}
