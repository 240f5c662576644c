package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/approx"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

const (
	recurrentThreads = 128
	// states of up to that many elements stand in shared memory
	recurrentShared = 1024
)

// activation is an activation function of a recurrent layer; whether it takes alpha and beta, and their defaults.
type activation struct {
	alpha, beta       float64
	hasAlpha, hasBeta bool
	f                 func(b *kir.Builder, x, alpha, beta value) value
}

func plain(f func(b *kir.Builder, x value) value) activation {
	return activation{f: func(b *kir.Builder, x, _, _ value) value { return f(b, x) }}
}

func activationOf(name string) (activation, bool) {
	zero := func(b *kir.Builder, x value) value { return b.Float(x.Type, 0) }
	switch name {
	case "Relu":
		return plain(func(b *kir.Builder, x value) value { return b.Select(b.Compare(kir.Le, x, zero(b, x)), zero(b, x), x) }), true
	case "Tanh":
		return plain(approx.Tanh), true
	case "Sigmoid":
		return plain(approx.Sigmoid), true
	case "Softplus":
		return plain(approx.Softplus), true
	case "Softsign":
		return plain(func(b *kir.Builder, x value) value { return b.Div(x, b.Add(b.Float(x.Type, 1), b.Unary(kir.Abs, x))) }), true
	case "Affine":
		return activation{1, 0, true, true, func(b *kir.Builder, x, alpha, beta value) value { return b.Fma(alpha, x, beta) }}, true
	case "LeakyRelu":
		return activation{0.01, 0, true, false, func(b *kir.Builder, x, alpha, _ value) value {
			return b.Select(b.Lt(x, zero(b, x)), b.Mul(alpha, x), x)
		}}, true
	case "ThresholdedRelu":
		return activation{1, 0, true, false, func(b *kir.Builder, x, alpha, _ value) value {
			return b.Select(b.Lt(alpha, x), x, zero(b, x))
		}}, true
	case "ScaledTanh":
		return activation{1, 1, true, true, func(b *kir.Builder, x, alpha, beta value) value {
			return b.Mul(alpha, approx.Tanh(b, b.Mul(beta, x)))
		}}, true
	case "HardSigmoid":
		return activation{0.2, 0.5, true, true, func(b *kir.Builder, x, alpha, beta value) value {
			v := b.Fma(alpha, x, beta)
			v = b.Select(b.Lt(v, zero(b, x)), zero(b, x), v)
			return b.Select(b.Lt(b.Float(x.Type, 1), v), b.Float(x.Type, 1), v)
		}}, true
	case "Elu":
		return activation{1, 0, true, false, func(b *kir.Builder, x, alpha, _ value) value {
			return b.Select(b.Lt(zero(b, x), x), x, b.Mul(alpha, approx.Expm1(b, x)))
		}}, true
	}
	return activation{}, false
}

// activations are the functions of a direction, with the alphas and betas that are left for it.
func (n node) activations(dirs, each int, names []string) []func(b *kir.Builder, x value) value {
	if l := n.attr("activations"); n.has("activations") {
		names = nil
		for _, e := range l.Elems {
			names = append(names, e.Str())
		}
	} else if dirs == 2 {
		names = append(names, names...)
	}
	if len(names) < each*dirs {
		refuse("%d activations", len(names))
	}
	alphas, _ := n.attr("activation_alpha").FloatList()
	betas, _ := n.attr("activation_beta").FloatList()
	var out []func(b *kir.Builder, x value) value
	for _, name := range names[:each*dirs] {
		a, ok := activationOf(name)
		if !ok {
			refuse("activation %q", name)
		}
		if a.hasAlpha && len(alphas) > 0 {
			a.alpha, alphas = alphas[0], alphas[1:]
		}
		if a.hasBeta && len(betas) > 0 {
			a.beta, betas = betas[0], betas[1:]
		}
		out = append(out, func(b *kir.Builder, x value) value {
			return a.f(b, x, b.Float(x.Type, a.alpha), b.Float(x.Type, a.beta))
		})
	}
	return out
}

// recurrent is a layer that goes along a sequence. A block of threads has one sequence of the batch in one direction, for all
// steps: the state stands in memory of the block, in two halves in turn.
type recurrent struct {
	*team
	gates, width, hidden sym.Expr
	dir, batch           value
	acts                 [][]func(b *kir.Builder, x value) value // of each direction
	clip                 float64
	rt                   kir.Type
}

// emitRecurrent serves RNN, GRU and LSTM.
func emitRecurrent(w *writer) {
	w.wants(3, 3, 3, 2, 1, 3, 3, 2)
	x, weights, inner := w.in(0), w.in(1), w.in(2)
	d := dtype(x)
	if !d.IsFloat() {
		refuse("elements of type %s", d)
	}
	for _, i := range []int{1, 2, 3, 5, 6, 7} {
		if v := w.in(i); v != nil && dtype(v) != d {
			refuse("operands of types %s and %s", d, dtype(v))
		}
	}
	gates, each, names := int64(1), 1, []string{"Tanh"}
	kind := w.o.Kind.Name()
	switch kind {
	case "GRU":
		gates, each, names = 3, 2, []string{"Sigmoid", "Tanh"}
	case "LSTM":
		gates, each, names = 4, 3, []string{"Sigmoid", "Tanh", "Tanh"}
	}
	direction, dirs := w.str("direction"), 1
	if direction == "bidirectional" {
		dirs = 2
	}
	functions := w.activations(dirs, each, names)
	steps, batch, width := shapeOf(x)[0], shapeOf(x)[1], shapeOf(x)[2]
	batched := w.int("layout") != 0 // the batch comes first
	if batched {
		steps, batch = batch, steps
	}
	hidden := shapeOf(inner)[2]
	rt := regType(d)
	stored := tensor.Float32 // of the state, which is rounded in the results only
	if rt == kir.F64 {
		stored = tensor.Float64
	}
	used := func(i int) *ssa.Value {
		if r := w.result(i); r != nil && r.HasUses() {
			return r
		}
		return nil
	}
	halves := int64(2)
	if kind != "RNN" {
		halves = 3 // the cell of an LSTM, or the gated state of a GRU
	}
	w.teams(batch.Mul(sym.Const(int64(dirs))), recurrentThreads, func(t *team) {
		b := t.b
		r := &recurrent{team: t, gates: sym.Const(gates), width: width, hidden: hidden, rt: rt, clip: math.Inf(1)}
		if w.has("clip") {
			r.clip = w.float("clip")
		}
		for k := range dirs {
			r.acts = append(r.acts, functions[k*each:(k+1)*each])
		}
		r.dir, r.batch = b.UDiv(t.row, b.Size(batch)), b.URem(t.row, b.Size(batch))
		if dirs == 1 {
			r.dir, r.batch = b.I32(0), t.row
		}
		h := b.Size(hidden)
		var state *kir.Mem
		from := b.I32(0)
		if n, ok := hidden.Int(); ok && n <= recurrentShared {
			state = b.SharedMem("state", rt, int(max(halves*n, 1)))
		} else {
			size := hidden.Mul(sym.Const(halves))
			state = t.mem(scratch(stored, batch.Mul(sym.Const(int64(dirs))), size), true)
			from = b.Mul(t.row, b.Size(size))
		}
		extra := b.Add(from, b.Mul(h, b.I32(2)))
		initial := func(i int, j value) value {
			v := w.in(i)
			if v == nil {
				return b.Float(rt, 0)
			}
			if batched {
				return r.element(v, r.batch, r.dir, j)
			}
			return r.element(v, r.dir, r.batch, j)
		}
		t.each(hidden, nil, func(j value, _ []value) []value {
			b.Store(state, b.Add(from, j), initial(5, j))
			if kind == "LSTM" {
				b.Store(state, b.Add(extra, j), initial(6, j))
			}
			return nil
		})
		b.Barrier()
		length := b.Size(steps)
		if w.in(4) != nil {
			length = convert(b, r.element(w.in(4), r.batch), dtype(w.in(4)), tensor.Int32)
			length = b.Select(b.Lt(b.Size(steps), length), b.Size(steps), length)
		}
		put := func(step, j, v value) {
			y := used(0)
			if y == nil {
				return
			}
			at := []value{step, r.dir, r.batch, j}
			if batched {
				at = []value{r.batch, step, r.dir, j}
			}
			r.store(y, r.place(y, at), v)
		}
		sequence := func(step value) func(i value) value {
			return func(i value) value {
				if batched {
					return r.element(x, r.batch, step, i)
				}
				return r.element(x, step, r.batch, i)
			}
		}
		half := b.For(b.I32(0), length, b.I32(1), []value{b.I32(0)}, func(turn value, c []value) []value {
			step := turn
			back := b.Sub(b.Sub(length, b.I32(1)), turn)
			if direction == "reverse" {
				step = back
			} else if dirs == 2 {
				step = b.Select(b.Eq(r.dir, b.I32(1)), back, turn)
			}
			now, next := b.Add(from, c[0]), b.Add(from, b.Sub(h, c[0]))
			in := sequence(step)
			last := func(i value) value { return b.Load(state, b.Add(now, i)) }
			write := func(j, v value) {
				b.Store(state, b.Add(next, j), v)
				put(step, j, v)
			}
			switch kind {
			case "RNN":
				t.each(hidden, nil, func(j value, _ []value) []value {
					g := r.products(weights, in, width, j, 0)
					write(j, r.act(0, r.clipped(b.Add(r.biased(g[0], 0, j), r.biasedInner(r.products(inner, last, hidden, j, 0)[0], 0, j)))))
					return nil
				})
			case "GRU":
				r.gru(inner, weights, in, last, state, now, extra, write)
			default:
				t.each(hidden, nil, func(j value, _ []value) []value {
					in4, rec4 := r.products(weights, in, width, j, 0, 1, 2, 3), r.products(inner, last, hidden, j, 0, 1, 2, 3)
					gate := func(k int64) value { return b.Add(r.biased(in4[k], k, j), r.biasedInner(rec4[k], k, j)) }
					cell := b.Load(state, b.Add(extra, j))
					peep := func(k int64, v, c value) value {
						p := w.in(7)
						if p == nil {
							return v
						}
						return b.Fma(r.element(p, r.dir, b.Add(b.Mul(h, b.I32(k)), j)), c, v)
					}
					input := r.act(0, r.clipped(peep(0, gate(0), cell)))
					forget := b.Sub(b.Float(rt, 1), input)
					if w.int("input_forget") == 0 {
						forget = r.act(0, r.clipped(peep(2, gate(2), cell)))
					}
					cell = b.Fma(forget, cell, b.Mul(input, r.act(1, r.clipped(gate(3)))))
					output := r.act(0, r.clipped(peep(1, gate(1), cell)))
					b.Store(state, b.Add(extra, j), cell)
					write(j, b.Mul(output, r.act(2, cell)))
					return nil
				})
			}
			b.Barrier()
			return []value{b.Sub(h, c[0])}
		})[0]
		if used(0) != nil && w.in(4) != nil { // behind the end of a sequence
			b.For(length, b.Size(steps), b.I32(1), nil, func(step value, _ []value) []value {
				t.each(hidden, nil, func(j value, _ []value) []value {
					put(step, j, b.Float(rt, 0))
					return nil
				})
				return nil
			})
		}
		for i, at := range []value{b.Add(from, half), extra} {
			y := used(1 + i)
			if y == nil {
				continue
			}
			t.each(hidden, nil, func(j value, _ []value) []value {
				coords := []value{r.dir, r.batch, j}
				if batched {
					coords = []value{r.batch, r.dir, j}
				}
				r.store(y, r.place(y, coords), b.Load(state, b.Add(at, j)))
				return nil
			})
		}
	})
}

// gru computes a step of a GRU: update, reset and hidden gate. The state that the hidden gate reads is reset before its product,
// or, with linear_before_reset, behind it.
func (r *recurrent) gru(inner, weights *ssa.Value, in, last func(i value) value, state *kir.Mem, now, extra value, write func(j, v value)) {
	b, n := r.b, r.w.node
	after := n.int("linear_before_reset") != 0
	reset := func(j value) value {
		g := r.products(weights, in, r.width, j, 1)[0]
		return r.act(0, r.clipped(b.Add(r.biased(g, 1, j), r.biasedInner(r.products(inner, last, r.hidden, j, 1)[0], 1, j))))
	}
	recalled := last
	if !after {
		r.each(r.hidden, nil, func(j value, _ []value) []value {
			b.Store(state, b.Add(extra, j), b.Mul(reset(j), b.Load(state, b.Add(now, j))))
			return nil
		})
		b.Barrier()
		recalled = func(i value) value { return b.Load(state, b.Add(extra, i)) }
	}
	r.each(r.hidden, nil, func(j value, _ []value) []value {
		in2, rec := r.products(weights, in, r.width, j, 0, 2), r.products(inner, last, r.hidden, j, 0)
		update := r.act(0, r.clipped(b.Add(r.biased(in2[0], 0, j), r.biasedInner(rec[0], 0, j))))
		own := r.biasedInner(r.products(inner, recalled, r.hidden, j, 2)[0], 2, j)
		if after {
			own = b.Mul(reset(j), own)
		}
		candidate := r.act(1, r.clipped(b.Add(r.biased(in2[1], 2, j), own)))
		old := b.Load(state, b.Add(now, j))
		write(j, b.Add(b.Mul(b.Sub(b.Float(r.rt, 1), update), candidate), b.Mul(update, old)))
		return nil
	})
}

// place is the row-major place of coordinates in a value.
func (r *recurrent) place(v *ssa.Value, at []value) value {
	return r.lower(r.space.Linear(shapeOf(v), r.coordinates(v, at)))
}

func (r *recurrent) coordinates(v *ssa.Value, at []value) []index.Expr {
	r.space.Sizes, r.dims = r.space.Sizes[:1], r.dims[:1]
	out := make([]index.Expr, len(at))
	for i, a := range at {
		out[i] = r.dim(a, shapeOf(v)[i])
	}
	return out
}

// element reads an element of an operand.
func (r *recurrent) element(v *ssa.Value, at ...value) value {
	return r.at(v, r.coordinates(v, at))
}

// products are the products of rows of weights with a vector of n elements, for gates of unit j.
func (r *recurrent) products(weights *ssa.Value, vector func(i value) value, n sym.Expr, j value, gates ...int64) []value {
	b := r.b
	start := make([]value, len(gates))
	for i := range start {
		start[i] = b.Float(r.rt, 0)
	}
	return b.For(b.I32(0), b.Size(n), b.I32(1), start, func(i value, c []value) []value {
		v := vector(i)
		out := make([]value, len(gates))
		for k, g := range gates {
			out[k] = b.Fma(r.element(weights, r.dir, r.row(g, j), i), v, c[k])
		}
		return out
	})
}

// row is where unit j of a gate stands among all of them.
func (r *recurrent) row(gate int64, j value) value {
	return r.b.Add(r.b.Mul(r.b.Size(r.hidden), r.b.I32(gate)), j)
}

// biased and biasedInner add the bias of the input, and that of the state.
func (r *recurrent) biased(v value, gate int64, j value) value { return r.bias(v, gate, j, 0) }

func (r *recurrent) biasedInner(v value, gate int64, j value) value {
	gates, _ := r.gates.Int()
	return r.bias(v, gate, j, gates)
}

func (r *recurrent) bias(v value, gate int64, j value, skip int64) value {
	if x := r.w.in(3); x != nil {
		return r.b.Add(v, r.element(x, r.dir, r.row(skip+gate, j)))
	}
	return v
}

// act applies activation k of the direction at hand.
func (r *recurrent) act(k int, x value) value {
	if len(r.acts) == 1 {
		return r.acts[0][k](r.b, x)
	}
	return r.b.Select(r.b.Eq(r.dir, r.b.I32(0)), r.acts[0][k](r.b, x), r.acts[1][k](r.b, x))
}

func (r *recurrent) clipped(x value) value {
	if math.IsInf(r.clip, 1) {
		return x
	}
	b := r.b
	lo, hi := b.Float(r.rt, -r.clip), b.Float(r.rt, r.clip)
	return b.Select(b.Lt(x, lo), lo, b.Select(b.Lt(hi, x), hi, x))
}
