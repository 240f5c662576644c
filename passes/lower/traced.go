package lower

import (
	"fmt"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
)

// tellUnused warns of inputs that nothing depends on.
func (l *lowerer) tellUnused() {
	if l.opts.Warn == nil || len(l.bad) > 0 { // what is missing may use them
		return
	}
	for _, p := range l.dst.Body.Params {
		if !p.HasUses() && l.m.Weights[p.Name] == nil {
			l.opts.Warn(diag.Diagnostic{Severity: diag.Warning, ID: "unused-input", Message: fmt.Sprintf("input %s is not used: no output depends on it", p.Name)})
		}
	}
}

// tellTraced warns of sizes of the traced example that the program has as constants although their axes are dynamic.
// Only a constant that is the very size of the axis in the example, at the place of that axis, counts.
func (l *lowerer) tellTraced(b *ssa.Block) {
	if l.opts.Warn == nil || len(l.m.Recorded) == 0 {
		return
	}
	loops := map[loopKey]*unrolled{}
	for o := range b.Ops() {
		if o.NumOperands() == 0 {
			continue
		}
		switch o.Kind {
		case "aten::view", "aten::reshape", "aten::_reshape_alias", "aten::_unsafe_view":
			l.tracedShape(o)
		case "aten::select":
			l.tracedSelect(o, loops)
		}
	}
}

// recorded is the name of a dynamic axis of x and the size that it had in the example.
func (l *lowerer) recorded(x *ssa.Value, axis int) (name string, size int64, ok bool) {
	t := x.Tensor()
	if t == nil || axis < 0 || axis >= len(t.Dims) {
		return "", 0, false
	}
	if name, ok = t.Dims[axis].Name(); ok {
		size, ok = l.m.Recorded[name]
	}
	return name, size, ok
}

// tracedShape warns of view(2, -1) where the axis at that place is dynamic and was 2.
func (l *lowerer) tracedShape(o *ssa.Op) {
	for i, s := range constSizes(o.Operand(1)) {
		n, known := s.Int()
		name, size, dynamic := l.recorded(o.Operand(0), i)
		if known && dynamic && n == size {
			l.opts.Warn(diag.Diagnostic{Severity: diag.Warning, ID: "traced-size", Op: string(o.Kind), Loc: o.Loc,
				Message: fmt.Sprintf("the trace has the size %d built in where %s is, which was %d in the example: for other sizes the result is not that of the program", n, name, size),
				Hint:    "write x.size(0) or -1 in the program in place of the number, and trace it again"})
			return
		}
	}
}

// constSizes is a list of ints with what is known of them; what is computed is a symbol.
func constSizes(list *ssa.Value) []sym.Expr {
	if list.Sym != nil {
		return list.Sym
	}
	elems, _ := aten.ListElems(list)
	out := make([]sym.Expr, len(elems))
	for i, e := range elems {
		out[i] = sym.Symbol("computed", 0)
		if n, ok := aten.ConstInt(e); ok {
			out[i] = sym.Const(n)
		}
	}
	if d := list.Def(); d != nil && d.Kind == "prim::Constant" {
		lit, _ := d.Attr("value")
		ints, _ := lit.IntList()
		return ssa.Sizes(ints)
	}
	return out
}

// loopKey is an axis that elements are taken from one by one.
type loopKey struct {
	x    *ssa.Value
	axis int
}

// unrolled counts the different elements that are taken from an axis.
type unrolled struct {
	seen map[int64]bool
	told bool
}

// tracedSelect warns at the last of the operators that take all elements of a dynamic axis that the example had.
func (l *lowerer) tracedSelect(o *ssa.Op, loops map[loopKey]*unrolled) {
	axis, okAxis := aten.ConstInt(o.Operand(1))
	index, okIndex := aten.ConstInt(o.Operand(2))
	t := o.Operand(0).Tensor()
	if !okAxis || !okIndex || t == nil || !t.Ranked {
		return
	}
	if axis < 0 {
		axis += int64(len(t.Dims))
	}
	name, size, ok := l.recorded(o.Operand(0), int(axis))
	if !ok || size < 2 || index < 0 || index >= size {
		return
	}
	key := loopKey{o.Operand(0), int(axis)}
	u := loops[key]
	if u == nil {
		u = &unrolled{seen: map[int64]bool{}}
		loops[key] = u
	}
	u.seen[index] = true
	if int64(len(u.seen)) == size && !u.told {
		u.told = true
		l.opts.Warn(diag.Diagnostic{Severity: diag.Warning, ID: "traced-size", Op: string(o.Kind), Loc: o.Loc,
			Message: fmt.Sprintf("the trace takes the elements 0 to %d of %s one by one, which are all that the example had: further ones are left out", size-1, name),
			Hint:    "script the loop (torch.jit.script), or make this axis static"})
	}
}
