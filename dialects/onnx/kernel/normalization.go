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
	case "BatchNormalization":
		return evalBatchNorm
	case "InstanceNormalization", "GroupNormalization":
		return evalGroupNorm
	case "LayerNormalization", "RMSNormalization":
		return evalLayerNorm
	case "LRN":
		return evalLRN
	case "MeanVarianceNormalization":
		return evalMVN
	case "Attention":
		return evalAttention
	case "RotaryEmbedding":
		return evalRotary
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

// moments gives mean and (biased) variance.
func moments(v []float64) (mean, variance float64) {
	n := float64(len(v))
	for _, x := range v {
		mean += x
	}
	mean /= n
	for _, x := range v {
		variance += (x - mean) * (x - mean)
	}
	return mean, variance / n
}

func evalBatchNorm(c *call) []*tensor.Tensor {
	x := c.t(0)
	if len(x.Shape) < 1 {
		c.fail("rank 0")
	}
	ch := int64(1)
	if len(x.Shape) > 1 {
		ch = x.Shape[1]
	}
	var p [4][]float64
	for i := range p {
		if p[i] = c.t(i + 1).Float64s(); int64(len(p[i])) != ch {
			c.fail("input %d has %d elements for %d channels", i+1, len(p[i]), ch)
		}
	}
	mean, variance := slices.Clone(p[2]), slices.Clone(p[3])
	running := [2][]float64{mean, variance}
	v := x.Float64s()
	n := int64(1)
	if len(x.Shape) > 0 {
		n = x.Shape[0]
	}
	inner := int64(1)
	if len(x.Shape) > 2 {
		inner = prod(x.Shape[2:])
	}
	if c.flag("training_mode") {
		momentum := c.float("momentum")
		running = [2][]float64{make([]float64, ch), make([]float64, ch)}
		for f := range ch {
			var all []float64
			for b := range n {
				all = append(all, v[(b*ch+f)*inner:(b*ch+f+1)*inner]...)
			}
			mean[f], variance[f] = moments(all)
			running[0][f] = p[2][f]*momentum + mean[f]*(1-momentum)
			running[1][f] = p[3][f]*momentum + variance[f]*(1-momentum)
		}
	}
	eps := c.float("epsilon")
	for b := range n {
		for f := range ch {
			scale := p[0][f] / math.Sqrt(variance[f]+eps)
			plane := v[(b*ch+f)*inner : (b*ch+f+1)*inner]
			for i, a := range plane {
				plane[i] = (a-mean[f])*scale + p[1][f]
			}
		}
	}
	d := c.t(3).DType
	return []*tensor.Tensor{tensor.FromFloats(x.DType, x.Shape, v), tensor.FromFloats(d, []int64{ch}, running[0]), tensor.FromFloats(d, []int64{ch}, running[1])}
}

func evalGroupNorm(c *call) []*tensor.Tensor {
	x := c.t(0)
	if len(x.Shape) < 2 {
		c.fail("rank %d", len(x.Shape))
	}
	n, ch, inner := x.Shape[0], x.Shape[1], prod(x.Shape[2:])
	groups := ch
	if c.kind == "onnx::GroupNormalization" {
		if groups = c.int("num_groups"); groups < 1 || ch%groups != 0 {
			c.fail("%d channels in %d groups", ch, groups)
		}
	}
	scale, bias := c.t(1).Float64s(), c.t(2).Float64s()
	if int64(len(scale)) != ch || int64(len(bias)) != ch {
		c.fail("%d scales and %d biases for %d channels", len(scale), len(bias), ch)
	}
	v, eps := x.Float64s(), c.float("epsilon")
	size := ch / max(groups, 1) * inner
	for g := range n * groups {
		group := v[g*size : (g+1)*size]
		mean, variance := moments(group)
		for i, a := range group {
			f := g*(ch/groups) + int64(i)/inner
			group[i] = (a-mean)/math.Sqrt(variance+eps)*scale[f%ch] + bias[f%ch]
		}
	}
	return one(tensor.FromFloats(x.DType, x.Shape, v))
}

func evalLayerNorm(c *call) []*tensor.Tensor {
	x := c.t(0)
	k := c.axis(c.int("axis"), len(x.Shape))
	n := prod(x.Shape[k:])
	rows := prod(x.Shape[:k])
	v, eps := x.Float64s(), c.float("epsilon")
	full := func(i int) []float64 {
		if c.t(i) == nil {
			return nil
		}
		return expandTo(c, c.t(i), x.Shape).Float64s()
	}
	scale := full(1)
	var bias []float64
	rms := c.kind == "onnx::RMSNormalization"
	if !rms {
		bias = full(2)
	}
	means, inverse := make([]float64, rows), make([]float64, rows)
	parallel(int(rows), len(v)*2, func(from, to int) {
		for r := int64(from); r < int64(to); r++ {
			row := v[r*n : (r+1)*n]
			mean, variance := moments(row)
			if rms {
				mean, variance = 0, 0
				for _, a := range row {
					variance += a * a
				}
				variance /= float64(n)
			}
			means[r], inverse[r] = mean, 1/math.Sqrt(variance+eps)
			for i, a := range row {
				p := r*n + int64(i)
				row[i] = (a - mean) * inverse[r] * scale[p]
				if bias != nil {
					row[i] += bias[p]
				}
			}
		}
	})
	if rms {
		return one(tensor.FromFloats(c.t(1).DType, x.Shape, v))
	}
	stat := slices.Clone(x.Shape)
	for i := k; i < len(stat); i++ {
		stat[i] = 1
	}
	d := c.dtype("stash_type", tensor.Float32)
	return []*tensor.Tensor{tensor.FromFloats(x.DType, x.Shape, v), tensor.FromFloats(d, stat, means), tensor.FromFloats(d, stat, inverse)}
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

func evalMVN(c *call) []*tensor.Tensor {
	x := c.t(0)
	drop := make([]bool, len(x.Shape))
	for _, a := range c.ints("axes") {
		drop[c.axis(a, len(drop))] = true
	}
	view, rows, n := folded(x, drop)
	v := view.Float64s()
	for r := range rows {
		row := v[r*n : (r+1)*n]
		mean, variance := moments(row)
		for i, a := range row {
			row[i] = (a - mean) / (math.Sqrt(variance) + 1e-9)
		}
	}
	y := tensor.FromFloats(x.DType, view.Shape, v)
	// Back to the order of axes that the input has.
	var order []int
	for i, d := range drop {
		if !d {
			order = append(order, i)
		}
	}
	for i, d := range drop {
		if d {
			order = append(order, i)
		}
	}
	back := make([]int, len(order))
	for i, a := range order {
		back[a] = i
	}
	return one(transpose(y, back))
}

func evalAttention(c *call) []*tensor.Tensor {
	q, k, v := c.t(0), c.t(1), c.t(2)
	flat := len(q.Shape) == 3
	if flat {
		heads := func(t *tensor.Tensor, h int64) *tensor.Tensor {
			if h < 1 || len(t.Shape) != 3 || t.Shape[2]%h != 0 {
				c.fail("%v in %d heads", t.Shape, h)
			}
			return transpose(t.Reshape([]int64{t.Shape[0], t.Shape[1], h, t.Shape[2] / h}), []int{0, 2, 1, 3})
		}
		q, k, v = heads(q, c.int("q_num_heads")), heads(k, c.int("kv_num_heads")), heads(v, c.int("kv_num_heads"))
	}
	if c.t(4) != nil {
		k = Concat([]*tensor.Tensor{c.t(4), k}, 2)
	}
	if c.t(5) != nil {
		v = Concat([]*tensor.Tensor{c.t(5), v}, 2)
	}
	if len(q.Shape) != 4 || len(k.Shape) != 4 || len(v.Shape) != 4 {
		c.fail("Q %v, K %v, V %v", q.Shape, k.Shape, v.Shape)
	}
	past := int64(0)
	if c.t(4) != nil {
		past = c.t(4).Shape[2]
	}
	b, h, l, e := q.Shape[0], q.Shape[1], q.Shape[2], q.Shape[3]
	kh, s, ev := k.Shape[1], k.Shape[2], v.Shape[3]
	if kh < 1 || h%kh != 0 || v.Shape[1] != kh || v.Shape[2] != s || k.Shape[3] != e {
		c.fail("Q %v, K %v, V %v", q.Shape, k.Shape, v.Shape)
	}
	scale := 1 / math.Sqrt(float64(e))
	if c.has("scale") {
		scale = c.float("scale")
	}
	root := math.Sqrt(scale)
	softcap := c.float("softcap")
	mode := c.int("qk_matmul_output_mode")
	causal := c.flag("is_causal")
	left, right := int64(-1), int64(-1)
	if c.has("left_window_size") {
		left = c.int("left_window_size")
	}
	if c.has("right_window_size") {
		right = c.int("right_window_size")
	}
	mask := attentionMask(c, b, h, l, s)
	var valid []int64
	if c.t(6) != nil {
		valid = c.t(6).Int64s()
	}
	qf, kf, vf := q.Float64s(), k.Float64s(), v.Float64s()
	out, scores := make([]float64, b*h*l*ev), make([]float64, b*h*l*s)
	inf := math.Inf(-1)
	parallel(int(b*h), int(b*h*l*s*(e+ev)), func(from, to int) {
		row := make([]float64, s)
		for bh := int64(from); bh < int64(to); bh++ {
			kv := bh/h*kh + bh%h/(h/kh)
			offset := past
			if valid != nil && c.t(4) == nil {
				offset = valid[bh/h] - l
			}
			for i := range l {
				for j := range s {
					dot := 0.0
					for d := range e {
						dot += qf[(bh*l+i)*e+d] * root * kf[(kv*s+j)*e+d] * root
					}
					raw := dot
					bias := 0.0
					if mask != nil {
						bias = mask[(bh*l+i)*s+j]
					}
					if causal && j > i+offset || left >= 0 && j < i+offset-left || right >= 0 && j > i+offset+right || valid != nil && j >= valid[bh/h] {
						bias = inf
					}
					if softcap > 0 {
						dot = softcap * math.Tanh(dot/softcap)
					}
					capped := dot
					dot += bias
					switch mode {
					case 0:
						scores[(bh*l+i)*s+j] = raw
					case 1:
						scores[(bh*l+i)*s+j] = capped
					case 2:
						scores[(bh*l+i)*s+j] = dot
					}
					row[j] = dot
				}
				blind := true
				for _, x := range row {
					blind = blind && math.IsInf(x, -1)
				}
				if softmax(row); blind {
					clear(row)
				}
				for j, p := range row {
					if mode == 3 {
						scores[(bh*l+i)*s+int64(j)] = p
					}
					for d := range ev {
						out[(bh*l+i)*ev+d] += p * vf[(kv*s+int64(j))*ev+d]
					}
				}
			}
		}
	})
	y := tensor.FromFloats(c.t(0).DType, []int64{b, h, l, ev}, out)
	if flat {
		y = transpose(y, []int{0, 2, 1, 3}).Reshape([]int64{b, l, h * ev})
	}
	return []*tensor.Tensor{y, k, v, tensor.FromFloats(c.t(0).DType, []int64{b, h, l, s}, scores)}
}

// attentionMask is what a mask adds to the scores: 0 or minus infinity for a bool mask.
func attentionMask(c *call, b, h, l, s int64) []float64 {
	t := c.t(3)
	if t == nil {
		return nil
	}
	if n := len(t.Shape); n > 0 && t.Shape[n-1] < s { // what the mask does not cover is hidden
		pad := slices.Clone(t.Shape)
		pad[n-1] = s - t.Shape[n-1]
		fill := tensor.Full(t.DType, pad, math.Inf(-1))
		if t.DType == tensor.Bool {
			fill = tensor.FullInt(tensor.Bool, pad, 0)
		}
		t = Concat([]*tensor.Tensor{t, fill}, int64(n-1))
	}
	full := expandTo(c, t, []int64{b, h, l, s})
	if t.DType != tensor.Bool {
		return full.Float64s()
	}
	out := make([]float64, 0, b*h*l*s)
	for _, ok := range full.Int64s() {
		if ok != 0 {
			out = append(out, 0)
		} else {
			out = append(out, math.Inf(-1))
		}
	}
	return out
}

func evalRotary(c *call) []*tensor.Tensor {
	x, cos, sin := c.t(0), c.t(1), c.t(2)
	flat := len(x.Shape) == 3
	in := x
	if flat {
		h := c.int("num_heads")
		if h < 1 || x.Shape[2]%h != 0 {
			c.fail("%v in %d heads", x.Shape, h)
		}
		in = transpose(x.Reshape([]int64{x.Shape[0], x.Shape[1], h, x.Shape[2] / h}), []int{0, 2, 1, 3})
	}
	if len(in.Shape) != 4 {
		c.fail("rank %d", len(x.Shape))
	}
	b, h, l, e := in.Shape[0], in.Shape[1], in.Shape[2], in.Shape[3]
	rot := c.int("rotary_embedding_dim")
	if rot == 0 {
		rot = e
	}
	half := rot / 2
	v, cf, sf := in.Float64s(), cos.Float64s(), sin.Float64s()
	var pos []int64
	if c.t(3) != nil {
		pos = c.t(3).Int64s()
	}
	width := cos.Shape[len(cos.Shape)-1]
	interleaved := c.flag("interleaved")
	for bh := range b * h {
		for i := range l {
			row := bh/h*l + i
			if pos != nil {
				row = pos[row]
			}
			line := v[(bh*l+i)*e : (bh*l+i+1)*e]
			for d := range half {
				p, q := d, d+half
				if interleaved {
					p, q = 2*d, 2*d+1
				}
				co, si := cf[row*width+d], sf[row*width+d]
				re, im := line[p], line[q]
				line[p], line[q] = re*co-im*si, re*si+im*co
			}
		}
	}
	y := tensor.FromFloats(x.DType, in.Shape, v)
	if flat {
		y = transpose(y, []int{0, 2, 1, 3}).Reshape(x.Shape)
	}
	return one(y)
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
