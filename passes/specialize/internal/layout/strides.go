package layout

import (
	"cmp"
	mathbits "math/bits"
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Axes are the names of the declared dynamic axes.
type Axes map[string]bool

// Moved permutes as movedim does: the dims from go to the places to, the others keep their order.
func Moved(in []sym.Expr, from, to []int64) []sym.Expr {
	n := int64(len(in))
	if len(from) != len(to) {
		return nil
	}
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
		if f < 0 || f >= n || t < 0 || t >= n || taken[f] || filled[t] {
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

// Sharing says whether a result is a view.
type Sharing int

const (
	Copies  Sharing = iota // memory of its own
	Shares                 // a view
	Unknown                // not known at export
	Assumed                // memory of its own, unless a dynamic axis has size 1
)

// Reshape gives the strides of a reshape that shares memory, as
// ATen/TensorUtils.cpp (computeStride) has it. Sizes that are not the same
// expression count as different; if that decides, the answer is assumed.
func (x Axes) Reshape(in []sym.Expr, t, ot *ssa.TensorType) ([]sym.Expr, Sharing) {
	if in == nil || t == nil || ot == nil || !t.Ranked || !ot.Ranked || len(in) != len(t.Dims) {
		return nil, Unknown
	}
	if ssa.SameType(t, ot) || len(t.Dims) == 1 && len(ot.Dims) == 1 {
		return in, Shares
	}
	if x.IsRowMajor(in, t) == Shares || len(t.Dims) == 0 {
		return RowMajor(ot), Shares
	}
	for _, d := range t.Dims {
		if d.Is(0) {
			return RowMajor(ot), Shares
		}
	}
	certain := true // no decision hung on a symbolic size
	guess := false  // one hung on how symbolic sizes divide, where any size may do
	fresh := false  // one hung on sizes of which nothing is known
	differ := func(a, b sym.Expr) bool {
		if a.Equal(b) {
			return false
		}
		certain = certain && a.IsConst() && b.IsConst()
		fresh = fresh || !x.apart(a, b)
		return true
	}
	for _, d := range in {
		fresh = fresh || !x.Declared(d)
	}
	for _, dims := range [][]sym.Expr{t.Dims, ot.Dims} {
		for _, d := range dims {
			fresh = fresh || !d.Is(1) && !x.Plural(d)
		}
	}
	no := func() ([]sym.Expr, Sharing) {
		switch {
		case certain:
			return nil, Copies
		case fresh || guess && len(ot.Dims) > 1:
			return nil, Unknown
		}
		return nil, Assumed
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
	return res, Shares
}

// IsRowMajor says whether strides are row-major: shares if they are.
func (x Axes) IsRowMajor(in []sym.Expr, t *ssa.TensorType) Sharing {
	if in == nil || t == nil || !t.Ranked || len(in) != len(t.Dims) {
		return Unknown
	}
	result := Shares
	n := sym.Const(1)
	for i := len(in) - 1; i >= 0; i-- {
		if !t.Dims[i].Is(1) && !n.Equal(in[i]) {
			switch {
			case n.IsConst() && in[i].IsConst() && t.Dims[i].IsConst():
				if result != Unknown {
					result = Copies
				}
			case x.Declared(n) && x.Declared(in[i]) && x.Plural(t.Dims[i]) && x.apart(n, in[i]):
				if result == Shares {
					result = Assumed
				}
			default:
				result = Unknown
			}
		}
		if i > 0 {
			n = n.Mul(t.Dims[i])
		}
	}
	return result
}

// Plural reports that a size is at least 2 when all declared dynamic axes are, and has nothing else in it.
func (x Axes) Plural(e sym.Expr) bool {
	if !x.Declared(e) {
		return false
	}
	two := e.Subst(func(name string) (sym.Expr, bool) { return sym.Symbol(name, 2), true })
	return two.Min() >= 2
}

// apart reports that two sizes differ whenever all declared dynamic axes are at least 2.
func (x Axes) apart(a, b sym.Expr) bool {
	two := func(e sym.Expr) sym.Expr {
		return e.Subst(func(name string) (sym.Expr, bool) { return sym.Symbol(name, 2), true })
	}
	if sign, ok := two(a).Compare(two(b)); ok && sign != 0 {
		return true
	}
	times := func(a, b sym.Expr) bool {
		q, ok := a.Divide(b)
		return ok && two(q).Min() >= 2
	}
	return times(a, b) || times(b, a)
}

// maxOnes bounds the number of axes of which Plurals tries which may be of size 1.
const maxOnes = 6

// Plurals names the axes that have to be 2 or more for how to say that memory is not shared, as it does where all of them are: how is asked
// again with some of the axes of size 1. Of several that must not be 1 together, the last one is named.
func (x Axes) Plurals(in []sym.Expr, t, ot *ssa.TensorType, how func(in []sym.Expr, t, ot *ssa.TensorType) Sharing) []string {
	var names []string
	for _, es := range [][]sym.Expr{t.Dims, ot.Dims, in} {
		for _, e := range es {
			e.Symbols(func(name string) {
				if x[name] && !slices.Contains(names, name) {
					names = append(names, name)
				}
			})
		}
	}
	if len(names) > maxOnes {
		return names
	}
	var out []string
	sets := make([]uint, 0, 1<<len(names))
	for set := uint(1); set < 1<<len(names); set++ {
		sets = append(sets, set)
	}
	slices.SortStableFunc(sets, func(a, b uint) int { return cmp.Compare(mathbits.OnesCount(a), mathbits.OnesCount(b)) })
	for _, set := range sets {
		one, last, excluded := map[string]bool{}, "", false
		for i, name := range names {
			if set&(1<<i) != 0 {
				one[name], last = true, name
				excluded = excluded || slices.Contains(out, name)
			}
		}
		if excluded {
			continue
		}
		at := func(es []sym.Expr) []sym.Expr {
			out := make([]sym.Expr, len(es))
			for i, e := range es {
				out[i] = e.Subst(func(name string) (sym.Expr, bool) { return sym.Const(1), one[name] })
			}
			return out
		}
		if s := how(at(in), ssa.Tensor(t.DType, at(t.Dims)...), ssa.Tensor(ot.DType, at(ot.Dims)...)); s == Shares || s == Unknown {
			out = append(out, last)
		}
	}
	return out
}

// Declared reports that only sizes that the user declared are in e.
func (x Axes) Declared(e sym.Expr) bool {
	ok := true
	e.Symbols(func(name string) { ok = ok && x[name] })
	return ok
}

// channelsLast returns the dimensions of a rank from the slowest to the fastest in PyTorch's memory formats channels_last (rank 4)
// and channels_last_3d (rank 5), nil for other ranks.
func channelsLast(rank int) []int {
	switch rank {
	case 4:
		return []int{0, 2, 3, 1}
	case 5:
		return []int{0, 2, 3, 4, 1}
	}
	return nil
}

// ChannelsLast returns the strides of a dense tensor of rank 4 or 5 whose channels, axis 1, lie next to each other in memory; nil for
// other ranks.
func ChannelsLast(t *ssa.TensorType) []sym.Expr {
	if t == nil || !t.Ranked {
		return nil
	}
	order := channelsLast(len(t.Dims))
	if order == nil {
		return nil
	}
	out, n := make([]sym.Expr, len(order)), sym.Const(1)
	for i := len(order) - 1; i >= 0; i-- {
		out[order[i]] = n
		n = n.Mul(t.Dims[order[i]])
	}
	return out
}

// IsChannelsLast is IsRowMajor for the strides of ChannelsLast.
func (x Axes) IsChannelsLast(in []sym.Expr, t *ssa.TensorType) Sharing {
	if in == nil || t == nil || !t.Ranked || len(in) != len(t.Dims) || channelsLast(len(in)) == nil {
		return Unknown
	}
	var strides, dims []sym.Expr
	for _, i := range channelsLast(len(in)) {
		strides, dims = append(strides, in[i]), append(dims, t.Dims[i])
	}
	return x.IsRowMajor(strides, ssa.Tensor(t.DType, dims...))
}

// RowMajor gives the strides of a row-major tensor in elements, nil if its rank is unknown.
func RowMajor(t *ssa.TensorType) []sym.Expr {
	if t == nil || !t.Ranked {
		return nil
	}
	out := make([]sym.Expr, len(t.Dims))
	n := sym.Const(1)
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = n
		if i > 0 {
			n = n.Mul(t.Dims[i])
		}
	}
	return out
}
