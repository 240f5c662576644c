package kernel

import (
	"math"

	"github.com/aton-project/aton/ssa/tensor"
)

// recurrent finds the kernels of recurrent layers.
func recurrent(name string) kernel {
	switch name {
	case "RNN", "GRU", "LSTM":
		return evalRecurrent
	}
	return nil
}

// activation gives an activation function of a recurrent layer by name.
func (c *call) activation(name string, alpha, beta float64, hasAlpha, hasBeta bool) func(float64) float64 {
	or := func(v, def float64, has bool) float64 {
		if has {
			return v
		}
		return def
	}
	switch name {
	case "Relu":
		return func(x float64) float64 { return max(x, 0) }
	case "Tanh":
		return math.Tanh
	case "Sigmoid":
		return sigmoid
	case "Affine":
		a, b := or(alpha, 1, hasAlpha), or(beta, 0, hasBeta)
		return func(x float64) float64 { return a*x + b }
	case "LeakyRelu":
		a := or(alpha, 0.01, hasAlpha)
		return func(x float64) float64 {
			if x < 0 {
				return a * x
			}
			return x
		}
	case "ThresholdedRelu":
		a := or(alpha, 1, hasAlpha)
		return func(x float64) float64 {
			if x > a {
				return x
			}
			return 0
		}
	case "ScaledTanh":
		a, b := or(alpha, 1, hasAlpha), or(beta, 1, hasBeta)
		return func(x float64) float64 { return a * math.Tanh(b*x) }
	case "HardSigmoid":
		a, b := or(alpha, 0.2, hasAlpha), or(beta, 0.5, hasBeta)
		return func(x float64) float64 { return clamp(a*x+b, 0, 1) }
	case "Elu":
		a := or(alpha, 1, hasAlpha)
		return func(x float64) float64 {
			if x > 0 {
				return x
			}
			return a * math.Expm1(x)
		}
	case "Softsign":
		return func(x float64) float64 { return x / (1 + math.Abs(x)) }
	case "Softplus":
		return softplus
	}
	c.fail("unknown activation %q", name)
	return nil
}

func evalRecurrent(c *call) []*tensor.Tensor {
	kind := c.kind.Name()
	gates, perDirection := int64(1), 1
	def := []string{"Tanh"}
	switch kind {
	case "GRU":
		gates, perDirection, def = 3, 2, []string{"Sigmoid", "Tanh"}
	case "LSTM":
		gates, perDirection, def = 4, 3, []string{"Sigmoid", "Tanh", "Tanh"}
	}
	x, w, r := c.t(0), c.t(1), c.t(2)
	if len(x.Shape) != 3 || len(w.Shape) != 3 || len(r.Shape) != 3 {
		c.fail("input %v, weights %v and %v", x.Shape, w.Shape, r.Shape)
	}
	layout := c.flag("layout")
	if layout {
		x = transpose(x, []int{1, 0, 2})
	}
	steps, batch, width := x.Shape[0], x.Shape[1], x.Shape[2]
	dirs, hidden := w.Shape[0], r.Shape[2]
	if w.Shape[1] != gates*hidden || w.Shape[2] != width || r.Shape[0] != dirs || r.Shape[1] != gates*hidden {
		c.fail("input %v, weights %v and %v", x.Shape, w.Shape, r.Shape)
	}
	direction := c.str("direction")
	if direction == "bidirectional" != (dirs == 2) {
		c.fail("direction %q with %d sets of weights", direction, dirs)
	}
	names := c.strs("activations")
	if !c.has("activations") {
		names = nil
		for range dirs {
			names = append(names, def...)
		}
	}
	if len(names) < perDirection*int(dirs) {
		c.fail("%d activations", len(names))
	}
	alphas, betas := c.floats("activation_alpha"), c.floats("activation_beta")
	clip := math.Inf(1)
	if c.has("clip") {
		clip = c.float("clip")
	}
	state := func(i int) []float64 {
		t := c.t(i)
		if t == nil {
			return make([]float64, dirs*batch*hidden)
		}
		if layout {
			t = transpose(t, []int{1, 0, 2})
		}
		if t.NumElements() != dirs*batch*hidden {
			c.fail("initial state %v", t.Shape)
		}
		return append([]float64(nil), t.Float64s()...)
	}
	xf, wf, rf := x.Float64s(), w.Float64s(), r.Float64s()
	h := state(5)
	var cell, peep, bias []float64
	if kind == "LSTM" {
		cell = state(6)
		if c.t(7) != nil {
			peep = c.t(7).Float64s()
		}
	}
	if c.t(3) != nil {
		bias = c.t(3).Float64s()
	}
	lens := make([]int64, batch)
	for i := range lens {
		lens[i] = steps
	}
	if c.t(4) != nil {
		lens = c.t(4).Int64s()
	}
	y := make([]float64, steps*dirs*batch*hidden)
	before := c.kind == "onnx::GRU" && c.attr("linear_before_reset").Int() != 0
	inputForget := c.kind == "onnx::LSTM" && c.attr("input_forget").Int() != 0
	ai, bi := 0, 0
	for d := range dirs {
		f := make([]func(float64) float64, perDirection)
		for i := range f {
			name := names[int(d)*perDirection+i]
			var a, b float64
			hasA, hasB := false, false
			if usesAlpha(name) && ai < len(alphas) {
				a, hasA = alphas[ai], true
				ai++
			}
			if usesBeta(name) && bi < len(betas) {
				b, hasB = betas[bi], true
				bi++
			}
			f[i] = c.activation(name, a, b, hasA, hasB)
		}
		wd, rd := wf[d*gates*hidden*width:], rf[d*gates*hidden*hidden:]
		var wb, rb []float64
		if bias != nil {
			wb = bias[d*2*gates*hidden : d*2*gates*hidden+gates*hidden]
			rb = bias[d*2*gates*hidden+gates*hidden : (d+1)*2*gates*hidden]
		}
		reverse := direction == "reverse" || d == 1
		parallel(int(batch), int(batch*steps*gates*hidden*(hidden+width)), func(from, to int) {
			in, rec, next := make([]float64, gates*hidden), make([]float64, gates*hidden), make([]float64, hidden)
			for b := int64(from); b < int64(to); b++ {
				hs := h[(d*batch+b)*hidden : (d*batch+b+1)*hidden]
				var cs []float64
				if cell != nil {
					cs = cell[(d*batch+b)*hidden : (d*batch+b+1)*hidden]
				}
				for t := range min(lens[b], steps) {
					at := t
					if reverse {
						at = lens[b] - 1 - t
					}
					row := xf[(at*batch+b)*width : (at*batch+b+1)*width]
					for g := range in {
						in[g], rec[g] = dot(wd[int64(g)*width:], row), dot(rd[int64(g)*hidden:], hs)
						if wb != nil {
							in[g] += wb[g]
							rec[g] += rb[g]
						}
					}
					cl := func(v float64) float64 { return clamp(v, -clip, clip) }
					H := int(hidden)
					switch kind {
					case "RNN":
						for i := range next {
							next[i] = f[0](cl(in[i] + rec[i]))
						}
					case "GRU":
						reset := make([]float64, H)
						for i := range reset {
							reset[i] = f[0](cl(in[H+i] + rec[H+i]))
						}
						if !before {
							gated := make([]float64, H)
							for i := range gated {
								gated[i] = reset[i] * hs[i]
							}
							for i := range gated {
								rec[2*H+i] = dot(rd[int64(2*H+i)*hidden:], gated)
								if rb != nil {
									rec[2*H+i] += rb[2*H+i]
								}
							}
						}
						for i := range next {
							z := f[0](cl(in[i] + rec[i]))
							n := in[2*H+i] + rec[2*H+i]
							if before {
								n = in[2*H+i] + reset[i]*rec[2*H+i]
							}
							next[i] = (1-z)*f[1](cl(n)) + z*hs[i]
						}
					default: // gates i, o, f, c
						for i := range next {
							pi, po, pf := 0.0, 0.0, 0.0
							if peep != nil {
								p := peep[d*3*hidden:]
								pi, po, pf = p[i], p[H+i], p[2*H+i]
							}
							ig := f[0](cl(in[i] + rec[i] + pi*cs[i]))
							fg := f[0](cl(in[2*H+i] + rec[2*H+i] + pf*cs[i]))
							if inputForget {
								fg = 1 - ig
							}
							cc := fg*cs[i] + ig*f[1](cl(in[3*H+i]+rec[3*H+i]))
							og := f[0](cl(in[H+i] + rec[H+i] + po*cc))
							cs[i] = cc
							next[i] = og * f[2](cc)
						}
					}
					copy(hs, next)
					copy(y[((at*dirs+d)*batch+b)*hidden:], next)
				}
			}
		})
	}
	out := []*tensor.Tensor{
		tensor.FromFloats(x.DType, []int64{steps, dirs, batch, hidden}, y),
		tensor.FromFloats(x.DType, []int64{dirs, batch, hidden}, h),
	}
	if cell != nil {
		out = append(out, tensor.FromFloats(x.DType, []int64{dirs, batch, hidden}, cell))
	}
	if layout {
		out[0] = transpose(out[0], []int{2, 0, 1, 3})
		for i := 1; i < len(out); i++ {
			out[i] = transpose(out[i], []int{1, 0, 2})
		}
	}
	return out
}

func usesAlpha(name string) bool {
	switch name {
	case "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu":
		return true
	}
	return false
}

func usesBeta(name string) bool {
	switch name {
	case "Affine", "ScaledTanh", "HardSigmoid":
		return true
	}
	return false
}

// dot multiplies as many elements as b has.
func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range b {
		s += a[i] * v
	}
	return s
}
