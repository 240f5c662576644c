package exec

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// expected is what the interpreter gives for a result, and how far the device may be from it.
type expected struct {
	value   *tensor.Tensor
	allowed func(at int) float64
}

// reference computes what a step should give for the operands that the device has: the nodes of its kernel one after another. A node may
// be off by its own bound, and by what it makes of how far its operands may be off.
func (r *run) reference(s *plan.Step) ([]expected, error) {
	known := map[*ssa.Value]*tensor.Tensor{}
	off := map[*ssa.Value][]float64{} // nil is 0 everywhere
	ops := s.Group
	if len(ops) == 0 {
		ops = []*ssa.Op{s.Op}
	}
	for _, o := range ops {
		in := make([]*tensor.Tensor, o.NumOperands())
		args := make([]interp.Value, len(in))
		errs := make([][]float64, len(in))
		for i := range in {
			v := o.Operand(i)
			if v == nil {
				continue
			}
			if in[i], errs[i] = known[v], off[v]; in[i] == nil {
				x, err := r.value(v)
				if err != nil {
					return nil, err
				}
				in[i] = x.Tensor
			}
			args[i] = interp.Of(in[i])
		}
		out, err := r.interpreter(o, true).RunOp(o, args, nil)
		if err != nil {
			return nil, err
		}
		var results []expected
		for i, v := range o.Results {
			if i >= len(out) || !v.HasUses() {
				results = append(results, expected{})
				continue
			}
			allowed, err := tolerance(r.Plan, o, in, i, out[i].Tensor)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(errs, func(e []float64) bool { return e != nil }) {
				if allowed, err = r.carried(o, in, errs, i, out[i].Tensor, allowed); err != nil {
					return nil, err
				}
			}
			if s.Kernel.Class == "attention" && o.Kind == "onnx::Cast" && out[i].Tensor.DType.Size() == 2 {
				allowed = unrounded(out[i].Tensor, allowed)
			}
			known[v] = out[i].Tensor
			results = append(results, expected{out[i].Tensor, allowed})
			if o == s.Op {
				continue
			}
			e, any := make([]float64, out[i].Tensor.NumElements()), false
			for k := range e {
				e[k] = allowed(k)
				any = any || e[k] != 0
			}
			if any {
				off[v] = e
			}
		}
		if o == s.Op {
			return results, nil
		}
	}
	return nil, fmt.Errorf("%s is not among the nodes of its kernel", plan.NodeName(s.Op))
}

// unrounded adds to a bound what a Cast of the weights of an attention rounds by, half a unit in the last place: the kernel does not, or before it divides by the sum, where half a unit may be a whole
// one of the result.
func unrounded(want *tensor.Tensor, own func(at int) float64) func(at int) float64 {
	x := numbers(want)
	return func(at int) float64 { return own(at) + 1.5*bound.ULP(want.DType, x[at]) }
}

// linear are operators that are sums of products of their operands, if they compute with floats: errors add up with the magnitudes of
// what they are multiplied by.
var linear = []ssa.Kind{"onnx::MatMul", "onnx::Gemm", "onnx::Conv", "onnx::ConvTranspose", "onnx::Einsum", "onnx::ReduceSum", "onnx::ReduceMean", "onnx::GlobalAveragePool", "onnx::AveragePool", "onnx::CumSum"}

// carried adds to a bound what result i changes by when the operands are off by errs. An operator that works element by element, or moves
// elements, is tried at both ends; a sum of products on the magnitudes; any other one is tried with the errors in several patterns of
// signs, and may be off by four times as much.
func (r *run) carried(o *ssa.Op, in []*tensor.Tensor, errs [][]float64, i int, want *tensor.Tensor, own func(at int) float64) (func(at int) float64, error) {
	total := make([]float64, want.NumElements())
	run := func(with func(k int) *tensor.Tensor) ([]float64, error) {
		args := make([]interp.Value, len(in))
		for k, t := range in {
			if t != nil {
				if x := with(k); x != nil {
					t = x
				}
				args[k] = interp.Of(t)
			}
		}
		out, err := r.interpreter(o, true).RunOp(o, args, nil)
		if err != nil {
			return nil, err
		}
		return numbers(out[i].Tensor), nil
	}
	base := numbers(want)
	for k, e := range errs {
		if e == nil {
			continue
		}
		v := numbers(in[k])
		if slices.Contains(linear, o.Kind) && want.DType.IsFloat() {
			y, err := run(func(j int) *tensor.Tensor {
				if j == k {
					return tensor.FromFloats(in[k].DType, in[k].Shape, e)
				}
				if !in[j].DType.IsFloat() {
					return nil
				}
				a := numbers(in[j])
				for n := range a {
					a[n] = math.Abs(a[n])
				}
				return tensor.FromFloats(in[j].DType, in[j].Shape, a)
			})
			if err != nil {
				return nil, err
			}
			for n := range total {
				total[n] += math.Abs(y[n])
			}
			continue
		}
		patterns, factor := []func(n int) float64{func(int) float64 { return 1 }, func(int) float64 { return -1 }}, 1.0
		if !emit.InPlace(o.Kind) && !emit.IsView(o.Kind) {
			factor = 4
			patterns = append(patterns, func(n int) float64 { return float64(1 - 2*(n%2)) }, func(n int) float64 { return float64(1 - 2*((n*7+n/3)%5%2)) })
		}
		change := make([]float64, len(total))
		for _, sign := range patterns {
			moved := make([]float64, len(v))
			for n := range v {
				moved[n] = v[n] + sign(n)*e[n]
			}
			y, err := run(func(j int) *tensor.Tensor {
				if j == k {
					return tensor.FromFloats(in[k].DType, in[k].Shape, moved)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
			for n := range change {
				if d := math.Abs(y[n] - base[n]); d == d {
					change[n] = max(change[n], factor*d)
				} else if (y[n] != y[n]) != (base[n] != base[n]) { // it may be a number or none
					change[n] = math.Inf(1)
				}
			}
		}
		for n := range total {
			total[n] += change[n]
		}
	}
	return func(at int) float64 { return own(at) + total[at] }, nil
}

// numbers are the elements of a tensor, those of types that only pass through as their bits.
func numbers(t *tensor.Tensor) []float64 {
	if t.DType.Opaque() {
		t = tensor.New(tensor.Uint8, t.Shape, t.Bytes())
	}
	return t.Float64s()
}

// stepName names the node of a step, and those that its kernel computes besides.
func stepName(s *plan.Step) string {
	name := plan.NodeName(s.Op)
	var with []string
	for _, o := range s.Ops {
		if o != s.Op {
			with = append(with, plan.NodeName(o))
		}
	}
	if len(with) > 0 {
		name += " with " + strings.Join(with, ", ")
	}
	return name
}
