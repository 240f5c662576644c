package surgery

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// maxReadings bounds the ways in which a model is read.
const maxReadings = 64

// left says how a Reshape is read that joins an axis of size 1 to one of its neighbours: to the left one.
func (g *growth) left() bool {
	if g.read == len(g.readings) {
		g.readings = append(g.readings, false)
	}
	g.read++
	return g.readings[g.read-1]
}

// reshape gives the shape of a Reshape the sizes that its operand has now.
func (g *growth) reshape(o *ssa.Op) error {
	x, before := o.Operand(0).Tensor(), ssa.AsTensor(g.was[o.Result(0)])
	err := g.infer(o)
	shape, constant := constInts(o.Operand(1))
	var dims []sym.Expr // with the axes that were joined before
	for _, d := range x.Dims {
		if f := g.factors[d.String()]; f != nil {
			dims = append(dims, f...)
		} else {
			dims = append(dims, d)
		}
	}
	was, known := g.numbers(dims)
	if before == nil || !before.Ranked || !known {
		return err
	}
	out, known := g.numbers(before.Dims)
	if !known {
		return err
	}
	want, parts, ok := g.regroup(dims, was, out)
	if !ok && !constant && err == nil {
		return nil
	}
	if !ok {
		return fmt.Errorf("there is no telling which size of %v grows with %v", out, x)
	}
	for k, part := range parts {
		key := want[k].String()
		if have, ok := g.factors[key]; ok && !slices.EqualFunc(have, part, sym.Expr.Equal) {
			part = nil
		}
		g.factors[key] = part
	}
	if err == nil && slices.EqualFunc(o.Result(0).Tensor().Dims, want, sym.Expr.Equal) {
		return nil
	}
	if !constant {
		return cmp.Or(err, fmt.Errorf("its shape is computed, and gives %v", o.Result(0).Type))
	}
	vector, err := g.vector(want, x.Dims, o.AttrInt("allowzero", 0) == 0)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(vector, func(e element) bool { return e.input != "" }) {
		err = g.change(o, edit{operand: 1, vector: vector})
	} else {
		for i, e := range vector {
			shape[i] = e.n
		}
		err = g.change(o, edit{operand: 1, tensor: tensor.Ints(shape...)})
	}
	return cmp.Or(err, g.infer(o))
}

// numbers are sizes that were built in as numbers.
func (g *growth) numbers(dims []sym.Expr) ([]int64, bool) {
	out := make([]int64, len(dims))
	for i, d := range dims {
		n, ok := g.builtIn(d).Int()
		if !ok || n < 1 {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// vector is a shape as a Reshape takes it: with -1, and 0 for what stays in its place.
func (g *growth) vector(want, in []sym.Expr, zeros bool) ([]element, error) {
	hole := -1
	for i, e := range want {
		if g.named(e) {
			if _, lone := e.Name(); !lone {
				if hole >= 0 {
					return nil, errors.New("two sizes of its shape would be computed")
				}
				hole = i
			}
		}
	}
	for i := len(want) - 1; i >= 0 && hole < 0; i-- {
		if g.named(want[i]) {
			hole = i
		}
	}
	out := make([]element, len(want))
	for i, e := range want {
		n, number := e.Int()
		switch name, _ := e.Name(); {
		case i == hole:
			out[i].n = -1
		case number:
			out[i].n = n
		case zeros && i < len(in) && in[i].Equal(e):
			out[i].n = 0
		case g.named(e):
			out[i] = g.at[name]
		default:
			return nil, fmt.Errorf("the size %v of its shape cannot be written as a number", e)
		}
	}
	return out, nil
}

// regroup finds the sizes of a reshaped tensor, of shape in now, was before, and out then. Both shapes are cut into the smallest groups of axes that have the
// same elements. An axis that grows stays an axis where it can; in a group of several it must be the outermost or the innermost one, and that of the result grows. An
// axis of size 1 is no part of a larger one where the result has a 1 elsewhere: there a Reshape may do the work of a Transpose. One between two groups is a part
// of the left one or of the right one, as left says.
func (g *growth) regroup(in []sym.Expr, was, out []int64) (res []sym.Expr, parts map[int][]sym.Expr, ok bool) {
	res, parts = make([]sym.Expr, len(out)), map[int][]sym.Expr{} // parts: what axes that grow were made of
	for i, n := range out {
		res[i] = sym.Const(n)
	}
	merged := false // an axis of size 1 has become a part of a larger one
	for i, j := 0, 0; i < len(was) || j < len(out); {
		// axes of size 1, between the groups
		var ones, growing, places []int
		for ; i < len(was) && was[i] == 1; i++ {
			if g.named(in[i]) {
				growing = append(growing, len(ones))
			}
			ones = append(ones, i)
		}
		for ; j < len(out) && out[j] == 1; j++ {
			places = append(places, j)
		}
		var carry []sym.Expr // what becomes a part of the next group
		switch {
		case len(growing) == 0:
		case len(ones) == len(places):
			for _, k := range growing {
				res[places[k]] = in[ones[k]]
			}
		case len(places) == 0:
			merged = true
			for _, k := range growing {
				carry = append(carry, in[ones[k]])
			}
			if j > 0 && (i == len(was) || g.left()) {
				if parts[j-1] == nil {
					parts[j-1] = []sym.Expr{res[j-1]}
				}
				parts[j-1] = append(parts[j-1], carry...)
				res[j-1], carry = sym.Product(parts[j-1]...), nil
			}
		case len(growing) == 1 && growing[0] == 0:
			res[places[0]] = in[ones[0]]
		case len(growing) == 1 && growing[0] == len(ones)-1:
			res[places[len(places)-1]] = in[ones[len(ones)-1]]
		default:
			return nil, nil, false
		}
		if i == len(was) && j == len(out) && carry == nil {
			break
		}
		if i == len(was) || j == len(out) {
			return nil, nil, false
		}
		group, first, at := carry, i, j
		p, q := was[i], out[j]
		for i, j = i+1, j+1; p != q; {
			switch {
			case p < q && i < len(was):
				p *= was[i]
				i++
			case q < p && j < len(out):
				q *= out[j]
				j++
			default:
				return nil, nil, false
			}
		}
		for k := first; k < i; k++ {
			group = append(group, in[k])
			merged = merged || g.named(in[k]) && was[k] == 1
		}
		total, grows := sym.Product(group...), 0
		for _, e := range group {
			if g.named(e) {
				grows++
			}
		}
		to := at // the axis that grows
		switch {
		case grows == 0:
			continue
		case j == at+1:
			if res[at] = total; len(group) > 1 {
				parts[at] = group
			}
			continue
		case grows > 1:
			return nil, nil, false
		case g.named(group[0]):
		case g.named(group[len(group)-1]):
			to = j - 1
		default:
			return nil, nil, false
		}
		rest := int64(1)
		for k := at; k < j; k++ {
			if k != to {
				rest *= out[k]
			}
		}
		if res[to], ok = total.Divide(sym.Const(rest)); !ok {
			return nil, nil, false
		}
		outer := group[0]
		if to != at {
			outer = group[len(group)-1]
		}
		if inner, ok := res[to].Divide(outer); ok && !inner.Is(1) {
			if parts[to] = []sym.Expr{outer, inner}; to != at {
				slices.Reverse(parts[to])
			}
		}
	}
	free := slices.ContainsFunc(res, func(e sym.Expr) bool { return e.Is(1) })
	return res, parts, !(merged && free)
}
