package exec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

func TestWindows(t *testing.T) {
	for _, op := range []string{"HannWindow", "HammingWindow", "BlackmanWindow"} {
		for _, d := range append(floatTypes, tensor.BFloat16) {
			for _, n := range []int64{1, 2, 7, 130} {
				for periodic := range int64(2) {
					attrs := []ssa.Attr{number("periodic", periodic), number("output_datatype", int64(d.ONNX()))}
					(&node{op: op, attrs: attrs, in: []*tensor.Tensor{tensor.ScalarInt(n)}, consts: []bool{true}}).check(t)
					(&node{op: op, attrs: attrs, in: []*tensor.Tensor{tensor.ScalarInt(n)}}).check(t) // the size is read from the device
				}
			}
		}
	}
}

func TestDFT(t *testing.T) {
	scalar := tensor.ScalarInt
	for _, d := range append(floatTypes, tensor.BFloat16) {
		for _, c := range []struct {
			shape        []int64
			length, axis int64 // 0 for none
			attrs        string
		}{
			{shape: []int64{2, 9, 1}},
			{shape: []int64{2, 9, 2}, attrs: "inverse"},
			{shape: []int64{2, 9, 3, 1}, axis: 1, attrs: "onesided"},
			{shape: []int64{2, 9, 3, 2}, axis: 1, length: 14},
			{shape: []int64{2, 9, 3, 2}, axis: -2, length: 2},
			{shape: []int64{2, 9, 3, 1}, axis: 1, length: 6, attrs: "onesided"},
			{shape: []int64{5, 2}, axis: 0, attrs: "inverse"},
			{shape: []int64{3, 6, 2}, attrs: "inverse onesided"},
			{shape: []int64{3, 6, 2}, length: 9, attrs: "inverse onesided"},
			{shape: []int64{3, 6, 2}, length: 4, attrs: "inverse onesided"},
			{shape: []int64{1, 1, 1}},
			{shape: []int64{3, 21, 1}, attrs: "inverse"},
			{shape: []int64{2, 512, 1}, attrs: "onesided"},
			{shape: []int64{2, 400, 2}},
			{shape: []int64{2, 400, 2}, attrs: "inverse"},
			{shape: []int64{2, 201, 2}, attrs: "inverse onesided"}, // gives 400
			{shape: []int64{1, 101, 1}},                            // a prime
			{shape: []int64{2, 60, 2}, length: 134},                // 2 times a prime
		} {
			if d != tensor.Float32 && len(c.shape) > 3 {
				continue
			}
			n := node{op: "DFT", in: []*tensor.Tensor{fill(d, c.shape, 1, false), nil, nil}, consts: []bool{false, true, true}}
			if c.length != 0 {
				n.in[1] = scalar(c.length)
			}
			if c.axis != 0 || len(c.shape) == 2 {
				n.in[2] = scalar(c.axis)
			}
			for _, name := range []string{"inverse", "onesided"} {
				if strings.Contains(c.attrs, name) {
					n.attrs = append(n.attrs, number(name, 1))
				}
			}
			t.Run(fmt.Sprintf("%s/%v/%d/%s", d.Spec(), c.shape, c.length, c.attrs), func(t *testing.T) {
				n.check(t)
				if d == tensor.Float32 && c.shape[len(c.shape)-1] == 1 { // whether numbers are complex must be known
					n.dynamic = true
					n.check(t)
				}
			})
		}
	}
	// a length that only the device knows
	(&node{op: "DFT", in: []*tensor.Tensor{fill(tensor.Float32, []int64{2, 9, 2}, 1, false), scalar(7)}}).check(t)
}

func TestSTFT(t *testing.T) {
	scalar := tensor.ScalarInt
	for _, d := range floatTypes {
		for _, onesided := range []int64{0, 1} {
			attrs := []ssa.Attr{number("onesided", onesided)}
			for _, n := range []node{
				{in: []*tensor.Tensor{fill(d, []int64{2, 40, 1}, 1, false), scalar(7), fill(d, []int64{16}, 2, false)}},
				{in: []*tensor.Tensor{fill(d, []int64{2, 40, 1}, 1, false), scalar(7), nil, scalar(9)}},
				{in: []*tensor.Tensor{fill(d, []int64{1, 200, 1}, 1, false), scalar(50), fill(d, []int64{96}, 2, false), scalar(96)}},
				{in: []*tensor.Tensor{fill(d, []int64{2, 40, 2}, 1, false), scalar(5), fill(d, []int64{12}, 2, false), scalar(12)}},
			} {
				if onesided != 0 && n.in[0].Shape[2] == 2 {
					continue
				}
				n.op, n.attrs, n.consts = "STFT", attrs, []bool{false, true, false, true}
				n.check(t)
				if d == tensor.Float32 && n.in[0].Shape[2] == 1 {
					n.dynamic = true
					n.check(t)
				}
			}
		}
	}
	(&node{op: "STFT", in: []*tensor.Tensor{fill(tensor.Float32, []int64{2, 40, 1}, 1, false), scalar(7), fill(tensor.Float32, []int64{16}, 2, false), scalar(16)}}).check(t)
}
