package specialize

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// firstPlace gives where in the storage, which is row-major, the first element
// of a view is (its storage_offset); ok is false if it is not known.
func (s *spec) firstPlace(st *tensorState) (at sym.Expr, ok bool) {
	v := st.st.state().base
	strides := contiguous(v)
	for i := range st.chain {
		step := &st.chain[i]
		t := v.Tensor()
		if t == nil || !t.Ranked {
			return at, false
		}
		by, ok := s.stepPlace(step, t.Dims, strides)
		if !ok {
			return at, false
		}
		at = at.Add(by)
		next := s.step(step, v)
		strides = s.viewStrides(&ssa.Op{Kind: step.kind, Schema: step.schema}, step.args, strides, v, next)
		v = next
	}
	return at, true
}

// stepPlace is how far behind the first element of its base the first element of a view is.
func (s *spec) stepPlace(st *viewStep, dims, strides []sym.Expr) (sym.Expr, bool) {
	zero := sym.Const(0)
	number := func(name string, none int64) (int64, bool) {
		i := st.schema.Arg(name)
		if i < 0 {
			return none, true
		}
		l, ok := s.literalOf(st.args[i])
		if !ok {
			return 0, false
		}
		if l.IsNone() {
			return none, true
		}
		return l.Int(), l.Kind == ssa.IntLit
	}
	// along gives n elements along a dim.
	along := func(dim int64, n sym.Expr) (sym.Expr, bool) {
		if n.Is(0) {
			return zero, true
		}
		if dim < 0 {
			dim += int64(len(dims))
		}
		if dim < 0 || dim >= int64(len(dims)) || len(strides) != len(dims) {
			return zero, false
		}
		return n.Mul(strides[dim]), true
	}
	size := func(dim int64) (sym.Expr, bool) {
		if dim < 0 {
			dim += int64(len(dims))
		}
		if dim < 0 || dim >= int64(len(dims)) {
			return zero, false
		}
		return dims[dim], true
	}
	if startsWith([]viewStep{*st}) {
		return zero, true
	}
	dim, ok := number("dim", 0)
	n, ok2 := size(dim)
	switch st.kind.Name() {
	case "select", "narrow", "slice":
		arg := map[string]string{"select": "index", "narrow": "start", "slice": "start"}[st.kind.Name()]
		from, ok3 := number(arg, 0)
		if !ok || !ok2 || !ok3 {
			return zero, false
		}
		if st.kind == "aten::slice" && n.Min() < max(from, -from) { // it would begin elsewhere, where the others raise
			return zero, false
		}
		if from < 0 {
			return along(dim, n.Add(sym.Const(from)))
		}
		return along(dim, sym.Const(from))
	case "unbind":
		if ok {
			return along(dim, sym.Const(int64(st.index)))
		}
	case "split":
		if per, ok3 := number("split_size", 0); ok && ok3 && st.schema.Overload == "Tensor" {
			return along(dim, sym.Const(per*int64(st.index)))
		}
	case "split_with_sizes":
		if i := st.schema.Arg("split_sizes"); ok && i >= 0 {
			l, ok3 := s.literalOf(st.args[i])
			sizes, ok4 := l.IntList()
			if ok3 && ok4 && st.index <= len(sizes) {
				sum := int64(0)
				for _, k := range sizes[:st.index] {
					sum += k
				}
				return along(dim, sym.Const(sum))
			}
		}
	case "chunk":
		if st.index == 0 {
			return zero, true
		}
		chunks, ok3 := number("chunks", 1)
		if k, known := n.Int(); ok && ok2 && ok3 && known && chunks > 0 {
			return along(dim, sym.Const((k+chunks-1)/chunks*int64(st.index)))
		}
	case "unfold":
		return zero, true
	case "diagonal":
		if off, ok3 := number("offset", 0); ok3 && off == 0 {
			return zero, true
		}
	}
	return zero, false
}
