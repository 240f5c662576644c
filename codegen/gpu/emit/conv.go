package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// window is the geometry of a convolution or pool along its spatial axes.
type window struct {
	in, out                  []sym.Expr
	kernel, stride, dilation []int64
	before, after            []sym.Expr // padding
}

func (w *writer) list(name string, n int, def int64) []int64 {
	if v := w.ints(name); v != nil {
		if len(v) != n {
			refuse("%s has %d elements for %d axes", name, len(v), n)
		}
		return v
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = def
	}
	return v
}

// window reads the attributes; the sizes of the result are those that inference found.
func (w *writer) window(in, out []sym.Expr, kernel []int64) *window {
	n := len(in)
	g := &window{in: in, out: out, kernel: kernel, stride: w.list("strides", n, 1), dilation: w.list("dilations", n, 1)}
	pads := w.list("pads", 2*n, 0)
	for i := range n {
		before, after := sym.Const(pads[i]), sym.Const(pads[n+i])
		switch auto := w.str("auto_pad"); auto {
		case "SAME_UPPER", "SAME_LOWER":
			extent := (kernel[i]-1)*g.dilation[i] + 1
			all := out[i].Sub(sym.Const(1)).Mul(sym.Const(g.stride[i])).Add(sym.Const(extent)).Sub(in[i]).Max(sym.Const(0))
			before = all.FloorDiv(sym.Const(2))
			after = all.Sub(before)
			if auto == "SAME_LOWER" {
				before, after = after, before
			}
		case "VALID":
			before, after = sym.Const(0), sym.Const(0)
		}
		g.before, g.after = append(g.before, before), append(g.after, after)
	}
	return g
}

// place is where a tap of a window stands on axis i: at a place of the input, if ok.
func (g *window) place(c *body, i int, out, tap index.Expr) (at, ok value) {
	b := c.b
	s := &c.space
	at = b.Add(b.Sub(c.lower(s.Scale(out, sym.Const(g.stride[i]))), b.Size(g.before[i])), c.lower(s.Scale(tap, sym.Const(g.dilation[i]))))
	// the last tap of the last window, from the left edge
	reach := g.out[i].Sub(sym.Const(1)).Mul(sym.Const(g.stride[i])).Add(sym.Const((g.kernel[i] - 1) * g.dilation[i]))
	if g.before[i].Is(0) && g.in[i].Sub(sym.Const(1)).AtLeast(reach) {
		return at, b.Int(kir.I1, 1)
	}
	return at, inside(b, at, b.Size(g.in[i]))
}

// kernelSizes are the static sizes of a kernel.
func kernelSizes(shape []sym.Expr) []int64 {
	out := make([]int64, len(shape))
	for i, e := range shape {
		n, ok := e.Int()
		if !ok {
			refuse("the size of the kernel depends on the run")
		}
		out[i] = n
	}
	return out
}

// emitConv multiplies the weights of a group, m x k, by the gathered input, k x n: k runs over the channels and the taps,
// n over the images and the places of the result.
func emitConv(w *writer) {
	x, weight := w.in(0), w.in(1)
	if !dtype(x).IsFloat() {
		refuse("elements of type %s", dtype(x))
	}
	p, _ := w.conv(x, weight, w.in(2))
	p.t, p.factors = regType(dtype(x)), w.factors(x, weight)
	w.product(p)
}

// conv is a convolution without the type in which it is computed, and channel that of the result at hand.
func (w *writer) conv(x, weight, bias *ssa.Value) (p *product, channel func(c *body) index.Expr) {
	sx, sw, so := shapeOf(x), shapeOf(weight), shapeOf(w.o.Results[0])
	g := w.window(sx[2:], so[2:], kernelSizes(sw[2:]))
	groups := max(w.int("group"), 1)
	per, ok := sw[0].Divide(sym.Const(groups))
	if !ok {
		refuse("%s channels in %d groups", sw[0], groups)
	}
	taps := sw[1:] // channels and kernel
	spots := append([]sym.Expr{sx[0]}, so[2:]...)
	p = &product{batch: sym.Const(groups), m: per, n: index.Prod(spots), k: index.Prod(taps), line: index.Prod(so[2:]), aAlongK: true}
	p.bGathered = !index.Prod(sw[2:]).Is(1)
	channel = func(c *body) index.Expr {
		return c.space.Add(c.space.Scale(c.space.Dim(dimBatch), per), c.space.Dim(dimM))
	}
	p.a = func(c *body) value {
		s := &c.space
		return c.at(weight, append([]index.Expr{channel(c)}, s.Unravel(taps, s.Dim(dimK))...))
	}
	p.b = func(c *body) value {
		b, s := c.b, &c.space
		tap, spot := s.Unravel(taps, s.Dim(dimK)), s.Unravel(spots, s.Dim(dimN))
		coords := []index.Expr{spot[0], s.Add(s.Scale(s.Dim(dimBatch), sw[1]), tap[0])}
		all := b.Int(kir.I1, 1)
		for i := range g.in {
			at, ok := g.place(c, i, spot[i+1], tap[i+1])
			all = b.And(all, ok)
			coords = append(coords, c.clamped(at, ok, g.in[i]))
		}
		edge := b.Num(p.t, 0)
		if p.zeroB != nil {
			edge = p.zeroB(c)
		}
		return b.Select(all, c.at(x, coords), edge)
	}
	p.done = func(c *body, sum value) {
		b, s := c.b, &c.space
		spot := s.Unravel(spots, s.Dim(dimN))
		to := channel(c)
		if bias != nil {
			sum = b.Add(sum, c.at(bias, []index.Expr{to}))
		}
		c.put(append([]index.Expr{spot[0], to}, spot[1:]...), sum)
	}
	return p, channel
}

// clamped is a coordinate that is 0 where it would be out of range.
func (c *body) clamped(at, ok value, n sym.Expr) index.Expr {
	if n.Is(1) {
		return index.Expr{}
	}
	return c.dim(c.b.Select(ok, at, c.b.I32(0)), n)
}

// emitConvTranspose gathers too: each result from the places whose kernels reach it.
func emitConvTranspose(w *writer) {
	x, weight, bias := w.in(0), w.in(1), w.in(2)
	sx, sw, so := shapeOf(x), shapeOf(weight), shapeOf(w.o.Results[0])
	if !dtype(x).IsFloat() {
		refuse("elements of type %s", dtype(x))
	}
	if auto := w.str("auto_pad"); auto != "" && auto != "NOTSET" && auto != "VALID" || w.has("output_shape") {
		refuse("padding by the size of the result")
	}
	n := len(sx) - 2
	kernel := kernelSizes(sw[2:])
	stride, dilation, pads := w.list("strides", n, 1), w.list("dilations", n, 1), w.list("pads", 2*n, 0)
	if w.str("auto_pad") == "VALID" {
		pads = make([]int64, 2*n)
	}
	groups := max(w.int("group"), 1)
	perIn, ok := sw[0].Divide(sym.Const(groups))
	if !ok {
		refuse("%s channels in %d groups", sw[0], groups)
	}
	taps := []sym.Expr{perIn}
	for _, k := range kernel {
		taps = append(taps, sym.Const(k))
	}
	spots := append([]sym.Expr{sx[0]}, so[2:]...)
	p := &product{batch: sym.Const(groups), m: sw[1], n: index.Prod(spots), k: index.Prod(taps), line: index.Prod(so[2:]), t: regType(dtype(x)), factors: w.factors(x, weight)}
	channel := func(c *body, tap index.Expr) index.Expr {
		return c.space.Add(c.space.Scale(c.space.Dim(dimBatch), perIn), tap)
	}
	p.a = func(c *body) value {
		tap := c.space.Unravel(taps, c.space.Dim(dimK))
		return c.at(weight, append([]index.Expr{channel(c, tap[0]), c.space.Dim(dimM)}, tap[1:]...))
	}
	p.b = func(c *body) value {
		b, s := c.b, &c.space
		tap, spot := s.Unravel(taps, s.Dim(dimK)), s.Unravel(spots, s.Dim(dimN))
		coords := []index.Expr{spot[0], channel(c, tap[0])}
		all := b.Int(kir.I1, 1)
		for i := range n {
			// result = place*stride - pad + tap*dilation
			from := b.Sub(b.Add(c.lower(spot[i+1]), b.I32(pads[i])), c.lower(s.Scale(tap[i+1], sym.Const(dilation[i]))))
			ok := b.Compare(kir.Le, b.I32(0), from)
			from = b.Select(ok, from, b.I32(0))
			at := b.UDiv(from, b.I32(stride[i]))
			ok = b.And(ok, b.And(b.Eq(b.URem(from, b.I32(stride[i])), b.I32(0)), b.Lt(at, b.Size(sx[2+i]))))
			all = b.And(all, ok)
			coords = append(coords, c.clamped(at, ok, sx[2+i]))
		}
		return b.Select(all, c.at(x, coords), b.Float(p.t, 0))
	}
	p.done = func(c *body, sum value) {
		b, s := c.b, &c.space
		spot := s.Unravel(spots, s.Dim(dimN))
		to := s.Add(s.Scale(s.Dim(dimBatch), sw[1]), s.Dim(dimM))
		if bias != nil {
			sum = b.Add(sum, c.at(bias, []index.Expr{to}))
		}
		c.put(append([]index.Expr{spot[0], to}, spot[1:]...), sum)
	}
	w.product(p)
}
