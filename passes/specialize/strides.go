package specialize

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

const (
	notView  viewKind = iota
	isView            // always shares memory with self
	mayView           // shares memory if the strides allow it, else copies
	sameView          // gives self itself when nothing changes, else a copy
)

// viewStrides gives the strides of a view, nil if they are not known.
func (s *spec) viewStrides(o *ssa.Op, args []value, in []sym.Expr, self, out *ssa.Value) []sym.Expr {
	t := self.Tensor()
	if in == nil || t == nil || !t.Ranked || len(in) != len(t.Dims) {
		return nil
	}
	arg := func(name string) (int64, bool) {
		if i := o.Schema.Arg(name); i >= 0 {
			if l, ok := args[i].(ssa.Literal); ok && l.Kind == ssa.IntLit {
				return l.Int(), true
			}
		}
		return 0, false
	}
	wrap := func(d int64, n int) int {
		if d < 0 {
			d += int64(n)
		}
		if d < 0 || d >= int64(n) {
			return -1
		}
		return int(d)
	}
	without := func(d int) []sym.Expr {
		return append(append(make([]sym.Expr, 0, len(in)), in[:d]...), in[d+1:]...)
	}
	switch o.Kind.Name() {
	case "detach", "alias", "lift_fresh", "narrow", "chunk", "split", "split_with_sizes", "tensor_split", "hsplit", "vsplit", "dsplit":
		return in
	case "select", "unbind":
		dim, ok := arg("dim")
		if d := wrap(dim, len(in)); ok && d >= 0 {
			return without(d)
		}
	case "slice":
		dim, ok := arg("dim")
		step, ok2 := arg("step")
		if d := wrap(dim, len(in)); ok && ok2 && d >= 0 {
			c := append([]sym.Expr(nil), in...)
			c[d] = c[d].Mul(sym.Const(step))
			return c
		}
	case "transpose", "swapdims", "swapaxes":
		d0, ok := arg("dim0")
		d1, ok2 := arg("dim1")
		if !ok {
			d0, ok = arg("axis0")
			d1, ok2 = arg("axis1")
		}
		a, b := wrap(d0, len(in)), wrap(d1, len(in))
		if ok && ok2 && a >= 0 && b >= 0 {
			c := append([]sym.Expr(nil), in...)
			c[a], c[b] = c[b], c[a]
			return c
		}
	case "t", "numpy_T", "mT", "adjoint":
		if len(in) == 2 {
			return []sym.Expr{in[1], in[0]}
		}
		if len(in) < 2 {
			return in
		}
	case "permute":
		if l, ok := s.literalOf(args[1]); ok {
			if p, ok := l.IntList(); ok && len(p) == len(in) {
				c := make([]sym.Expr, len(in))
				for i, d := range p {
					w := wrap(d, len(in))
					if w < 0 {
						return nil
					}
					c[i] = in[w]
				}
				return c
			}
		}
	case "movedim", "moveaxis":
		from, ok := s.literalOf(args[1])
		to, ok2 := s.literalOf(args[2])
		if ok && ok2 {
			return moved(in, intsOf(from), intsOf(to))
		}
	case "diagonal":
		d1, ok := arg("dim1")
		d2, ok2 := arg("dim2")
		a, b := wrap(d1, len(in)), wrap(d2, len(in))
		if ok && ok2 && a >= 0 && b >= 0 && a != b {
			var c []sym.Expr
			for i, e := range in {
				if i != a && i != b {
					c = append(c, e)
				}
			}
			return append(c, in[a].Add(in[b]))
		}
	case "unfold":
		dim, ok := arg("dimension")
		step, ok2 := arg("step")
		if d := wrap(dim, len(in)); ok && ok2 && d >= 0 {
			c := append(append([]sym.Expr(nil), in...), in[d])
			c[d] = c[d].Mul(sym.Const(step))
			return c
		}
	case "as_strided":
		if l, ok := s.literalOf(args[2]); ok {
			if st, ok := l.IntList(); ok {
				return ssa.Sizes(st)
			}
		}
	case "unsqueeze":
		dim, ok := arg("dim")
		if d := wrap(dim, len(in)+1); ok && d >= 0 {
			n := sym.Const(1)
			if d < len(in) {
				n = in[d].Mul(t.Dims[d])
			}
			return append(append(append([]sym.Expr(nil), in[:d]...), n), in[d:]...)
		}
	case "squeeze":
		ot := out.Tensor()
		if ot == nil || !ot.Ranked {
			return nil
		}
		if len(ot.Dims) == len(in) {
			return in
		}
		if dim, ok := arg("dim"); ok && len(ot.Dims) == len(in)-1 {
			if d := wrap(dim, len(in)); d >= 0 {
				return without(d)
			}
		}
		var c []sym.Expr
		for i, d := range t.Dims {
			if !d.Is(1) {
				c = append(c, in[i])
			}
		}
		if len(c) == len(ot.Dims) {
			return c
		}
	case "view", "view_as", "unflatten", "_unsafe_view", "_reshape_alias", "atleast_1d", "atleast_2d", "atleast_3d":
		c, _ := s.reshapeStrides(in, self, out)
		return c
	case "expand", "expand_as", "broadcast_to":
		ot := out.Tensor()
		if ot == nil || !ot.Ranked {
			return nil
		}
		lead := len(ot.Dims) - len(in)
		c := make([]sym.Expr, len(ot.Dims))
		for i := lead; i < len(c); i++ {
			if t.Dims[i-lead].Equal(ot.Dims[i]) {
				c[i] = in[i-lead]
			}
		}
		return c
	}
	return nil
}

func intsOf(l ssa.Literal) []int64 {
	if l.Kind == ssa.IntLit {
		return []int64{l.Int()}
	}
	v, _ := l.IntList()
	return v
}

// moved permutes as movedim does: the dims from go to the places to, the others keep their order.
func moved(in []sym.Expr, from, to []int64) []sym.Expr {
	n := int64(len(in))
	out := make([]sym.Expr, n)
	filled, taken := make([]bool, n), make([]bool, n)
	for i := range from {
		f, t := from[i], to[i]
		if f < 0 {
			f += n
		}
		if t < 0 {
			t += n
		}
		if f < 0 || f >= n || t < 0 || t >= n {
			return nil
		}
		out[t], filled[t], taken[f] = in[f], true, true
	}
	k := 0
	for i := range in {
		if taken[i] {
			continue
		}
		for filled[k] {
			k++
		}
		out[k], filled[k] = in[i], true
	}
	return out
}

// sharing says whether a result is a view.
type sharing int

const (
	copies  sharing = iota // memory of its own
	shares                 // a view
	unknown                // not known at export
	assumed                // memory of its own, unless a dynamic axis has size 1
)

// reshapeStrides gives the strides of a reshape that shares memory, as
// ATen/TensorUtils.cpp (computeStride) has it. Sizes that are not the same
// expression count as different; if that decides, the answer is assumed.
func (s *spec) reshapeStrides(in []sym.Expr, self, out *ssa.Value) ([]sym.Expr, sharing) {
	t, ot := self.Tensor(), out.Tensor()
	if in == nil || t == nil || ot == nil || !t.Ranked || !ot.Ranked || len(in) != len(t.Dims) {
		return nil, unknown
	}
	if ssa.SameType(t, ot) || len(t.Dims) == 1 && len(ot.Dims) == 1 {
		return in, shares
	}
	if same, _ := s.isContiguous(in, t); same == shares || len(t.Dims) == 0 {
		return contiguous(out), shares
	}
	for _, d := range t.Dims {
		if d.Is(0) {
			return contiguous(out), shares
		}
	}
	certain := true // no decision hung on a symbolic size
	guess := false  // one hung on how symbolic sizes divide, where any size may do
	differ := func(a, b sym.Expr) bool {
		if a.Equal(b) {
			return false
		}
		certain = certain && a.IsConst() && b.IsConst()
		return true
	}
	fresh := false
	for _, d := range in {
		fresh = fresh || !s.declared(d)
	}
	for _, dims := range [][]sym.Expr{t.Dims, ot.Dims} {
		for _, d := range dims {
			fresh = fresh || !d.Is(1) && !s.plural(d)
		}
	}
	no := func() ([]sym.Expr, sharing) {
		switch {
		case certain:
			return nil, copies
		case fresh || guess && len(ot.Dims) > 1:
			return nil, unknown
		}
		return nil, assumed
	}
	res := make([]sym.Expr, len(ot.Dims))
	d := len(ot.Dims) - 1
	chunk := in[len(in)-1]
	tnum, vnum := sym.Const(1), sym.Const(1)
	for i := len(t.Dims) - 1; i >= 0; i-- {
		tnum = tnum.Mul(t.Dims[i])
		if i > 0 && (t.Dims[i-1].Is(1) || !differ(in[i-1], tnum.Mul(chunk))) {
			continue
		}
		for d >= 0 && (!vnum.Equal(tnum) || ot.Dims[d].Is(1)) {
			if n, ok := vnum.Int(); ok {
				if m, ok := tnum.Int(); ok && n > m {
					return no()
				}
			}
			if !vnum.IsConst() || !tnum.IsConst() || !ot.Dims[d].IsConst() {
				certain, guess = false, true
			}
			res[d] = vnum.Mul(chunk)
			vnum = vnum.Mul(ot.Dims[d])
			d--
		}
		if !vnum.Equal(tnum) {
			return no()
		}
		if i > 0 {
			chunk = in[i-1]
			tnum, vnum = sym.Const(1), sym.Const(1)
		}
	}
	if d != -1 {
		return no()
	}
	return res, shares
}

// isContiguous says whether strides are row-major: shares if they are.
func (s *spec) isContiguous(in []sym.Expr, t *ssa.TensorType) (sharing, bool) {
	if in == nil || t == nil || !t.Ranked || len(in) != len(t.Dims) {
		return unknown, false
	}
	result := shares
	n := sym.Const(1)
	for i := len(in) - 1; i >= 0; i-- {
		if !t.Dims[i].Is(1) && !n.Equal(in[i]) {
			switch {
			case n.IsConst() && in[i].IsConst() && t.Dims[i].IsConst():
				if result != unknown {
					result = copies
				}
			case s.declared(n) && s.declared(in[i]) && s.plural(t.Dims[i]):
				if result == shares {
					result = assumed
				}
			default:
				result = unknown
			}
		}
		n = n.Mul(t.Dims[i])
	}
	return result, true
}

// plural reports that a size is at least 2 when all declared dynamic axes are, and has nothing else in it.
func (s *spec) plural(e sym.Expr) bool {
	if !s.declared(e) {
		return false
	}
	two := e.Subst(func(name string) (sym.Expr, bool) { return sym.Symbol(name, 2), true })
	return two.Min() >= 2
}

// declared reports that only sizes that the user declared are in e.
func (s *spec) declared(e sym.Expr) bool {
	ok := true
	e.Symbols(func(name string) { ok = ok && s.axes[name] })
	return ok
}
