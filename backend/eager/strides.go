package eager

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa/tensor"
)

// pointwise are the operators whose results are laid out in memory as their operands are: PyTorch computes them with a TensorIterator, or
// copies the strides. Results of all others are row-major here.
var pointwise = func() map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(`
		abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh
		bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min clip clone
		conj_physical copysign cos cosh deg2rad digamma div divide dropout elu empty_like eq erf erfc erfinv exp exp2 expm1 fix flip float_power
		floor floor_divide fmax fmin fmod frac full_like ge gelu greater greater_equal gt hardshrink hardsigmoid hardswish hardtanh heaviside
		hypot i0 index_fill isclose isfinite isinf isnan isneginf isposinf le leaky_relu lerp less less_equal lgamma log log10 log1p log2 logaddexp
		logaddexp2 logical_and logical_not logical_or logical_xor logit lt maximum minimum mish mul multiply nan_to_num native_dropout ne neg
		negative not_equal ones_like pow prelu put rad2deg rand_like randint_like randn_like reciprocal relu relu6 remainder round rrelu rsqrt
		rsub select_scatter selu sgn sigmoid sign signbit silu sin sinc sinh slice_scatter diagonal_scatter softplus softshrink sort sqrt square
		sub subtract tan tanh threshold to float double half bfloat16 int long short char byte bool type_as true_divide trunc where xlogy
		zeros_like _to_copy __and__ __or__ __xor__ __lshift__ __rshift__ special_xlog1py`) {
		m[name] = true
	}
	return m
}()

// resultStrides are those that PyTorch gives a pointwise result: dense, with the axes in the order of the operands' strides.
func resultStrides(shape []int64, args []Value) []int64 {
	var operands []*Tensor
	for _, a := range args {
		if t, ok := a.(*Tensor); ok {
			if len(t.shape) > len(shape) {
				return tensor.ContiguousStrides(shape)
			}
			operands = append(operands, t)
		}
	}
	n := len(shape)
	strides := make([][]int64, len(operands))
	for i, t := range operands {
		st := make([]int64, n)
		pad := n - len(t.shape)
		for d := range t.shape {
			if t.shape[d] != 1 || shape[pad+d] == 1 {
				st[pad+d] = t.strides[d]
			}
		}
		strides[i] = st
	}
	order := make([]int, n) // from the fastest axis to the slowest, as TensorIteratorBase::reorder_dimensions has it
	for i := range order {
		order[i] = n - 1 - i
	}
	compare := func(a, b int) int {
		for _, st := range strides {
			switch x, y := st[a], st[b]; {
			case x == 0 || y == 0: // a broadcast axis says nothing
			case x < y:
				return -1
			case x > y:
				return 1
			case shape[a] > shape[b]:
				return 1
			}
		}
		return 0
	}
	for i := 1; i < n; i++ {
		at := i
		for j := i - 1; j >= 0; j-- {
			c := compare(order[j], order[at])
			if c > 0 {
				order[j], order[at] = order[at], order[j]
				at = j
			} else if c < 0 {
				break
			}
		}
	}
	out := make([]int64, n)
	step := int64(1)
	for _, d := range order {
		out[d] = step
		step *= max(shape[d], 1)
	}
	return out
}

// reshapedStrides are the strides of a view with another shape, where there is one (computeStride in ATen/TensorUtils.cpp).
func reshapedStrides(t *Tensor, shape []int64) ([]int64, bool) {
	if t.numel() == 0 {
		if slices.Equal(t.shape, shape) {
			return slices.Clone(t.strides), true
		}
		return tensor.ContiguousStrides(shape), true
	}
	out := make([]int64, len(shape))
	if len(t.shape) == 0 {
		for i := range out {
			out[i] = 1
		}
		return out, true
	}
	at := len(shape) - 1
	base := t.strides[len(t.strides)-1]
	have, want := int64(1), int64(1)
	for d := len(t.shape) - 1; d >= 0; d-- {
		have *= t.shape[d]
		if d != 0 && (t.shape[d-1] == 1 || t.strides[d-1] == have*base) {
			continue
		}
		for at >= 0 && (want < have || shape[at] == 1) {
			out[at] = want * base
			want *= shape[at]
			at--
		}
		if want != have {
			return nil, false
		}
		if d > 0 {
			base = t.strides[d-1]
			have, want = 1, 1
		}
	}
	return out, at == -1
}

// isContiguous reports a row-major tensor. Strides of axes of size 1 do not matter, nor do any where there are no elements.
func (t *Tensor) isContiguous() bool {
	step := int64(1)
	if t.numel() == 0 {
		return true
	}
	for i := len(t.shape) - 1; i >= 0; i-- {
		if t.shape[i] != 1 {
			if t.strides[i] != step {
				return false
			}
			step *= t.shape[i]
		}
	}
	return true
}

// isDense reports a tensor whose elements lie in memory without gaps and without overlap, in some order of its axes.
func (t *Tensor) isDense() bool {
	if t.isContiguous() {
		return true
	}
	order := make([]int, 0, len(t.shape))
	for i, n := range t.shape {
		if n != 1 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return int(t.strides[a] - t.strides[b]) })
	step := int64(1)
	for _, d := range order {
		if t.strides[d] != step {
			return false
		}
		step *= t.shape[d]
	}
	return true
}

// spreads reports a tensor that shows one element of memory in several places, as expand does.
func (t *Tensor) spreads() bool {
	if t.isDense() {
		return false
	}
	for i, n := range t.shape {
		if n > 1 && t.strides[i] == 0 {
			return true
		}
	}
	return false
}

// maxPlaces is the number of elements up to which the places of two views are compared one by one.
const maxPlaces = 1 << 16

// overlaps reports that two views have elements of memory in common.
func (t *Tensor) overlaps(u *Tensor) bool {
	if t.mem != u.mem || t.numel() == 0 || u.numel() == 0 {
		return false
	}
	a, b := t.reach(), u.reach()
	if a[1] < b[0] || b[1] < a[0] {
		return false
	}
	if t.numel() > maxPlaces || u.numel() > maxPlaces {
		return true
	}
	places := map[int64]bool{}
	t.each(func(at int64) { places[at] = true })
	found := false
	u.each(func(at int64) { found = found || places[at] })
	return found
}

// reach is the first and the last place in memory.
func (t *Tensor) reach() [2]int64 {
	last := t.offset
	for i, n := range t.shape {
		last += (n - 1) * t.strides[i]
	}
	return [2]int64{t.offset, last}
}
