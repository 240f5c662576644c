package bound

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// attention is how far each element of the first result of Attention may be off: a score s by d = 4 eps (sqrt(size) sum|q||k| + |s| + softcap), a weight p
// by p d, which the norm shares, so that y = sum p v may be off by sum p d (|v| + |y|), and by eps (8 + sqrt(keys)) sum p|v| for the sums themselves. Weights for
// values of 16 bits may be rounded to the type of these, as the standard's expression does before it multiplies: by half a unit in the last place.
func attention(attrs []ssa.Attr, in []*tensor.Tensor, want *tensor.Tensor, eps float64) ([]float64, error) {
	eval := func(mode int64, change func(i int, t *tensor.Tensor) *tensor.Tensor) ([]*tensor.Tensor, error) {
		args := make([]*tensor.Tensor, len(in))
		for i, t := range in {
			if args[i] = t; t != nil && t.DType.IsFloat() {
				args[i] = change(i, t)
			}
		}
		as := []ssa.Attr{{Name: "qk_matmul_output_mode", Value: ssa.Int(mode)}}
		for _, a := range attrs {
			if a.Name != as[0].Name {
				as = append(as, a)
			}
		}
		return kernel.Eval("onnx::Attention", as, args, 4)
	}
	wide := func(_ int, t *tensor.Tensor) *tensor.Tensor {
		return tensor.FromFloats(tensor.Float64, t.Shape, t.Float64s())
	}
	weights, err := eval(3, wide)
	if err != nil {
		return nil, err
	}
	scores, err := eval(2, wide)
	if err != nil {
		return nil, err
	}
	sums, err := eval(0, func(i int, t *tensor.Tensor) *tensor.Tensor {
		return tensor.FromFloats(tensor.Float64, t.Shape, absolutes(t))
	})
	if err != nil {
		return nil, err
	}
	softcap := 0.0
	for _, a := range attrs {
		if a.Name == "softcap" {
			softcap = a.Value.Float()
		}
	}
	shape, values := weights[3].Shape, weights[2]
	b, h, l, n := shape[0], shape[1], shape[2], shape[3]
	shared, width := values.Shape[1], values.Shape[3]
	size := weights[1].Shape[3]
	p, s, m, v, y := weights[3].Float64s(), scores[3].Float64s(), sums[3].Float64s(), values.Float64s(), want.Float64s()
	out := make([]float64, len(y))
	root, ends := math.Sqrt(float64(size)), 8+math.Sqrt(float64(n))
	for bh := range b * h {
		kv := bh/h*shared + bh%h/(h/shared)
		for i := range l {
			at := (bh*l + i) * width
			if len(want.Shape) == 3 {
				at = ((bh/h*l+i)*h + bh%h) * width
			}
			for j := range n {
				k := (bh*l+i)*n + j
				if p[k] == 0 {
					continue
				}
				rounds := 0.0
				if t := in[2].DType; t.Size() == 2 {
					rounds = max(p[k]*Eps(t), smallest(t)) / 2
				}
				d := 4 * eps * (root*m[k] + math.Abs(s[k]) + softcap)
				for c := range width {
					a := math.Abs(v[(kv*n+j)*width+c])
					out[at+c] += p[k]*(d*(a+math.Abs(y[at+c]))+eps*ends*a) + rounds*a
				}
			}
		}
	}
	return out, nil
}
