package prove

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/ssa/tensor"
)

// maxSearched bounds the elements of an input that is drawn.
const maxSearched = 1 << 22

// search looks for inputs for which the interpreter computes other results: those of the model, then some with odd numbers
// among them. An open claim, or one that is not expressible, stays that if it finds none.
func (p *Prover) search(c Claim, v Verdict, model map[string]*tensor.Tensor, most uint64) Verdict {
	var until time.Time
	if c.Limit > 0 {
		until = time.Now().Add(c.Limit)
	}
next:
	for seed := range most {
		if seed > 0 && !until.IsZero() && time.Now().After(until) {
			break
		}
		r := rand.New(rand.NewPCG(seed, 7))
		args := make([]interp.Value, len(c.Before.Body.Params))
		inputs := map[string]*tensor.Tensor{}
		for i, in := range c.Before.Body.Params {
			shape, err := sizes(in.Tensor(), c.Dims)
			if err != nil || !fits(shape, maxSearched) || !drawable(in.DType()) {
				return v
			}
			odd := seed > tries/2 && !c.Rounds
			t := randomTensor(r, in.Tensor().DType, shape, [...]float64{3, 1, 1e-3, 100}[seed%4], odd)
			if seed == 0 || seed == 1 {
				t = fromModel(t, model, fmt.Sprint("in", i), seed == 0)
			}
			args[i], inputs[in.Name] = interp.Of(t), t
		}
		if c.Assumes != nil {
			given := make([]*tensor.Tensor, len(args))
			for i, a := range args {
				given[i] = a.Tensor
			}
			if !c.Assumes.Holds(given) {
				continue
			}
		}
		want, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(c.Before, args)
		if err != nil {
			continue
		}
		got, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(c.After, args)
		if err != nil {
			v.Outcome, v.Inputs, v.Why = Refuted, inputs, fmt.Sprintf("the result cannot be computed: %v", err)
			return v
		}
		for i := range want {
			tolerance := 0.0
			if c.Rounds && want[i].Tensor != nil {
				if tolerance = 1e-3; want[i].Tensor.DType == tensor.Float16 || want[i].Tensor.DType == tensor.BFloat16 {
					tolerance = 2e-2
				}
			}
			if want[i].Tensor != nil && got[i].Tensor != nil && !same(want[i].Tensor, got[i].Tensor, tolerance) {
				if c.Rounds && overflows(want[i].Tensor) { // where infinities and NaN come out is not what such a claim is about
					continue next
				}
				v.Outcome, v.Inputs, v.Want, v.Got = Refuted, inputs, want[i].Tensor, got[i].Tensor
				return v
			}
		}
		v.Tried++
	}
	return v
}

// odd looks for inputs with NaN, infinities and zeros of both signs among them, for which results of a claim that rounds are of other classes:
// NaN is NaN, an infinity is that infinity. What is proved on real numbers says nothing of these.
func (p *Prover) odd(c Claim) (refuted Verdict, ok bool) {
	for seed := range uint64(oddTries) {
		r := rand.New(rand.NewPCG(seed, 11))
		args := make([]interp.Value, len(c.Before.Body.Params))
		v := Verdict{Outcome: Refuted, Inputs: map[string]*tensor.Tensor{}}
		given := make([]*tensor.Tensor, len(args))
		for i, in := range c.Before.Body.Params {
			shape, err := sizes(in.Tensor(), c.Dims)
			if err != nil || !fits(shape, 1<<12) || !drawable(in.DType()) {
				return v, false
			}
			t := randomTensor(r, in.DType(), shape, 1, false)
			if in.DType().IsFloat() {
				f := t.Float64s()
				rare := [...]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)}
				for k := range f {
					if r.IntN(int(2+seed%4)) == 0 {
						f[k] = rare[r.IntN(len(rare))]
					}
				}
				t = tensor.FromFloats(t.DType, t.Shape, f)
			}
			given[i], args[i], v.Inputs[in.Name] = t, interp.Of(t), t
		}
		if c.Assumes != nil && !c.Assumes.Holds(given) {
			continue
		}
		want, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(c.Before, args)
		if err != nil {
			continue
		}
		got, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(c.After, args)
		if err != nil {
			continue
		}
		for i := range want {
			if v.Want, v.Got = want[i].Tensor, got[i].Tensor; v.Want != nil && v.Got != nil && !sameClasses(v.Want, v.Got) {
				return v, true
			}
		}
	}
	return Verdict{}, false
}

// oddTries is how many inputs with NaN and infinities a claim that rounds is tried on.
const oddTries = 16

// sameClasses compares which elements are NaN, and which are infinities.
func sameClasses(a, b *tensor.Tensor) bool {
	if !a.DType.IsFloat() || a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return true
	}
	class := func(f float64) float64 {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return f
		}
		return 0
	}
	x, y := a.Float64s(), b.Float64s()
	for i := range x {
		if p, q := class(x[i]), class(y[i]); p != q && (p == p || q == q) {
			return false
		}
	}
	return true
}

// fromModel puts the numbers of a model into a tensor; other elements are those of t, or 0.
func fromModel(t *tensor.Tensor, model map[string]*tensor.Tensor, name string, zero bool) *tensor.Tensor {
	if t.DType.Size() == 0 {
		return t
	}
	b := slices.Clone(t.Clone().Bytes())
	n := t.DType.Size()
	if zero {
		clear(b)
	}
	for i := range int(t.NumElements()) {
		if x := model[fmt.Sprintf("%s.%d", name, i)]; x != nil {
			copy(b[i*n:(i+1)*n], x.Clone().Bytes())
		}
	}
	return tensor.New(t.DType, t.Shape, b)
}

// overflows reports a float that is no number.
func overflows(t *tensor.Tensor) bool {
	return t.DType.IsFloat() && slices.ContainsFunc(t.Float64s(), func(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) })
}

// drawable reports types of which elements can be drawn.
func drawable(d tensor.DType) bool {
	return d == tensor.String || d.HoldsNumbers() && !d.IsComplex() && d.Size() > 0
}

func randomTensor(r *rand.Rand, d tensor.DType, shape []int64, scale float64, odd bool) *tensor.Tensor {
	n := count(shape)
	if d.IsFloat() {
		rare := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 0.5, 1e30, -1e30, 1e-30}
		v := make([]float64, n)
		for i := range v {
			if v[i] = r.NormFloat64() * scale; odd && r.IntN(3) == 0 {
				v[i] = rare[r.IntN(len(rare))]
			}
		}
		return tensor.FromFloats(d, shape, v)
	}
	if d == tensor.String {
		s := make([]string, n)
		for i := range s {
			s[i] = []string{"", "a", "b"}[r.IntN(3)]
		}
		return tensor.Strings(shape, s)
	}
	v := make([]int64, n)
	for i := range v {
		switch {
		case d == tensor.Bool:
			v[i] = int64(r.IntN(2))
		case odd:
			v[i] = int64(r.Uint64())
		default:
			v[i] = int64(r.IntN(7)) - 3
		}
	}
	return tensor.FromInts(d, shape, v)
}

// same compares results bit by bit, or within a tolerance. NaN is NaN.
func same(a, b *tensor.Tensor, tolerance float64) bool {
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return false
	}
	if a.DType == tensor.String {
		return slices.Equal(a.StringData(), b.StringData())
	}
	if !a.DType.IsFloat() {
		return string(a.Clone().Bytes()) == string(b.Clone().Bytes())
	}
	x, y := a.Float64s(), b.Float64s()
	scale := 1.0 // what cancels leaves the rounding of what was added
	for _, v := range x {
		if a := math.Abs(v); a < math.Inf(1) {
			scale = max(scale, a)
		}
	}
	for i := range x {
		equal := math.Float64bits(x[i]) == math.Float64bits(y[i]) || x[i] != x[i] && y[i] != y[i]
		if !equal && !(tolerance > 0 && math.Abs(x[i]-y[i]) <= tolerance*scale) { // 0.0 is not -0.0
			return false
		}
	}
	return true
}
