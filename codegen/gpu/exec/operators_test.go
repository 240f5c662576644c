package exec_test

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// shippedOperators are kernels for TestPTXAS, mutatedOperators those for TestMutations: of the operators that few models have.

func shippedOperators() []node {
	f := func(shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, 1, false) }
	second := []bool{false, true}
	return []node{
		{op: "HannWindow", in: []*tensor.Tensor{tensor.ScalarInt(400)}, consts: []bool{true}},
		{op: "DFT", in: []*tensor.Tensor{f(2, 512, 1)}, attrs: []ssa.Attr{number("onesided", 1)}},
		{op: "DFT", in: []*tensor.Tensor{f(2, 201, 2)}, attrs: []ssa.Attr{number("onesided", 1), number("inverse", 1)}},
		{op: "STFT", in: []*tensor.Tensor{f(2, 900, 1), tensor.ScalarInt(100), f(400)}, consts: second, dynamic: true},
	}
}

func mutatedOperators() []node {
	f := func(seed uint64, shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, seed, false) }
	return []node{
		{op: "DFT", in: []*tensor.Tensor{f(1, 2, 72, 1)}},
		{op: "DFT", in: []*tensor.Tensor{f(1, 3, 11, 2)}, attrs: []ssa.Attr{number("onesided", 1), number("inverse", 1)}},
		{op: "STFT", in: []*tensor.Tensor{f(1, 2, 40, 1), tensor.ScalarInt(7), f(2, 16)}, consts: []bool{false, true}},
	}
}
