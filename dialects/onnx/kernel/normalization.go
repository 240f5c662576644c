package kernel

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa/tensor"
)

// normalization finds the kernels of normalizations and attention.
func normalization(name string) kernel {
	switch name {
	case "Softmax", "LogSoftmax", "Hardmax", "LpNormalization":
		return evalSoftmax
	case "LRN":
		return evalLRN
	case "LinearAttention":
		return evalLinearAttention
	}
	return nil
}

// lines applies f to each line of elements along axis k.
func lines(t *tensor.Tensor, k int, f func(line []float64)) *tensor.Tensor {
	v := t.Float64s()
	n, inner := t.Shape[k], prod(t.Shape[k+1:])
	outer := int(prod(t.Shape[:k]) * inner)
	parallel(outer, len(v)*4, func(from, to int) {
		line := make([]float64, n)
		for o := from; o < to; o++ {
			base := int64(o)/inner*n*inner + int64(o)%inner
			for i := range line {
				line[i] = v[base+int64(i)*inner]
			}
			f(line)
			for i := range line {
				v[base+int64(i)*inner] = line[i]
			}
		}
	})
	return tensor.FromFloats(t.DType, t.Shape, v)
}

func softmax(line []float64) {
	top := math.Inf(-1)
	for _, x := range line {
		top = max(top, x)
	}
	s := 0.0
	for i, x := range line {
		line[i] = math.Exp(x - top)
		s += line[i]
	}
	for i := range line {
		line[i] /= s
	}
}

func evalSoftmax(c *call) []*tensor.Tensor {
	x := c.t(0)
	if len(x.Shape) == 0 {
		x = x.Reshape([]int64{1})
	}
	k := c.axis(c.int("axis"), len(x.Shape))
	f := softmax
	switch c.kind.Name() {
	case "LogSoftmax":
		f = func(line []float64) {
			// the greatest element comes off first, as in PyTorch: beside an infinity all results are NaN
			top := slices.Max(append(line[:len(line):len(line)], math.Inf(-1)))
			s := 0.0
			for i := range line {
				line[i] -= top
				s += math.Exp(line[i])
			}
			for i := range line {
				line[i] -= math.Log(s)
			}
		}
	case "Hardmax":
		f = func(line []float64) {
			best := 0
			for i, v := range line {
				if v > line[best] {
					best = i
				}
			}
			clear(line)
			if len(line) > 0 {
				line[best] = 1
			}
		}
	case "LpNormalization":
		p := c.int("p")
		f = func(line []float64) {
			s := 0.0
			for _, v := range line {
				if p == 1 {
					s += math.Abs(v)
				} else {
					s += v * v
				}
			}
			if p != 1 {
				s = math.Sqrt(s)
			}
			for i := range line {
				if s != 0 {
					line[i] /= s
				} else {
					line[i] = 0
				}
			}
		}
	}
	return one(lines(x, k, f).Reshape(c.t(0).Shape))
}

func evalLRN(c *call) []*tensor.Tensor {
	x := c.t(0)
	if len(x.Shape) < 2 {
		c.fail("rank %d", len(x.Shape))
	}
	size := c.int("size")
	alpha, beta, bias := c.float("alpha"), c.float("beta"), c.float("bias")
	return one(lines(x, 1, func(line []float64) {
		in := slices.Clone(line)
		n := int64(len(in))
		for i := range n {
			s := 0.0
			for j := max(0, i-(size-1)/2); j <= min(n-1, i+size/2); j++ {
				s += in[j] * in[j]
			}
			line[i] = in[i] / math.Pow(bias+alpha/float64(size)*s, beta)
		}
	}))
}

// evalLinearAttention runs the recurrence S = decay*S + ..., y = q S token by token.
func evalLinearAttention(c *call) []*tensor.Tensor {
	q, k, v := c.t(0), c.t(1), c.t(2)
	qh, kh := c.int("q_num_heads"), c.int("kv_num_heads")
	if len(q.Shape) != 3 || len(k.Shape) != 3 || len(v.Shape) != 3 || qh < 1 || kh < 1 || qh%kh != 0 {
		c.fail("query %v, key %v, value %v in %d and %d heads", q.Shape, k.Shape, v.Shape, qh, kh)
	}
	b, l := q.Shape[0], q.Shape[1]
	dk, dv := k.Shape[2]/kh, v.Shape[2]/kh
	scale := c.float("scale")
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(dk))
	}
	rule := c.str("update_rule")
	sd := q.DType
	state := make([]float64, b*kh*dk*dv)
	if c.t(3) != nil {
		sd = c.t(3).DType
		state = slices.Clone(c.t(3).Float64s())
	}
	qf, kf, vf := q.Float64s(), k.Float64s(), v.Float64s()
	var decay, beta []float64
	decayWidth, betaWidth := int64(0), int64(0)
	if c.t(4) != nil {
		decay = c.t(4).Float64s()
		decayWidth = c.t(4).Shape[2] / kh
	}
	if c.t(5) != nil {
		beta = c.t(5).Float64s()
		betaWidth = c.t(5).Shape[2]
	}
	gated := rule == "gated" || rule == "gated_delta"
	delta := rule == "delta" || rule == "gated_delta"
	out := make([]float64, b*l*qh*dv)
	for i := range b {
		for t := range l {
			for h := range kh {
				s := state[(i*kh+h)*dk*dv : (i*kh+h+1)*dk*dv]
				kr := kf[((i*l+t)*kh+h)*dk : ((i*l+t)*kh+h+1)*dk]
				vr := slices.Clone(vf[((i*l+t)*kh+h)*dv : ((i*l+t)*kh+h+1)*dv])
				if gated && decay != nil {
					for d := range dk {
						g := decay[((i*l+t)*kh+h)*decayWidth+d%max(decayWidth, 1)]
						for e := range dv {
							s[d*dv+e] *= math.Exp(g)
						}
					}
				}
				if delta {
					bt := 1.0
					if beta != nil {
						bt = beta[(i*l+t)*betaWidth+h%betaWidth]
					}
					for e := range dv {
						r := 0.0
						for d := range dk {
							r += s[d*dv+e] * kr[d]
						}
						vr[e] = bt * (vr[e] - r)
					}
				}
				for d := range dk {
					for e := range dv {
						s[d*dv+e] += kr[d] * vr[e]
					}
				}
				for g := range qh / kh {
					o := h*(qh/kh) + g
					for e := range dv {
						acc := 0.0
						for d := range dk {
							acc += qf[((i*l+t)*qh+o)*dk+d] * s[d*dv+e]
						}
						out[((i*l+t)*qh+o)*dv+e] = acc * scale
					}
				}
			}
		}
	}
	return []*tensor.Tensor{tensor.FromFloats(q.DType, []int64{b, l, qh * dv}, out), tensor.FromFloats(sd, []int64{b, kh, dk, dv}, state)}
}
