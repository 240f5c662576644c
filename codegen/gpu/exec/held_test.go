package exec_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// A row that threads hold in registers is read once, and gives the bits that it gives where its length is known from the run only, and it is
// read for each pass.
func TestHeldRows(t *testing.T) {
	for _, op := range []struct {
		name   string
		attrs  []ssa.Attr
		params int // operands of the length of a row
		axes   bool
	}{
		{name: "Softmax"},
		{name: "LogSoftmax"},
		{name: "LpNormalization"},
		{name: "LayerNormalization", params: 2},
		{name: "RMSNormalization", params: 1},
		{name: "MeanVarianceNormalization", attrs: []ssa.Attr{ints("axes", 1)}},
		{name: "ReduceLogSumExp", axes: true},
	} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.Float64} {
			// a thread alone, a warp, a block, each with a part of the threads idle in the end and without
			for _, n := range []int64{7, 8, 31, 32, 33, 1000, 1024, 1025, 4096, 10000, 32000, 40960} {
				t.Run(fmt.Sprintf("%s/%s/%d", op.name, d.Spec(), n), func(t *testing.T) {
					if words := int64(max(d.Size(), 4)) / 4; n > 8 && n <= 1024 && (n+31)/32*words > 32 || n > 1024 && (n+1023)/1024*words > 40 {
						t.Skip("more than the registers hold")
					}
					const rows = 6
					node := node{op: op.name, attrs: op.attrs, in: []*tensor.Tensor{fill(d, []int64{rows, n}, 1, false)}}
					for i := range op.params {
						node.in = append(node.in, fill(d, []int64{n}, uint64(i)+2, false))
					}
					if op.axes {
						node.in, node.consts = append(node.in, tensor.Ints(1)), []bool{false, true}
					}
					var results [2][]byte
					var read [2]int64
					for i := range results {
						node.dynamic = i == 1
						m, args := node.module(t)
						p, err := plan.NewFor(m, fuse.None, map[string]int64{fmt.Sprintf("N%d", n): n, fmt.Sprintf("N%d", rows): rows})
						if err != nil {
							t.Fatal(err)
						}
						out, report, err := exec.NewSession(p, &exec.Sim{Count: true, Check: true}).Run(args)
						if err != nil {
							t.Fatal(err)
						}
						results[i] = out[0].Tensor.Bytes()
						for _, s := range report.Steps {
							read[i] += s.Counts.Read
						}
					}
					if !bytes.Equal(results[0], results[1]) {
						t.Error("the results differ")
					}
					if want := int64(1+op.params) * rows * n * int64(d.Size()); read[0] != want {
						t.Errorf("%d bytes are read, want %d", read[0], want)
					}
					if read[1] <= read[0] {
						t.Errorf("a row of any length reads %d bytes, one of a known length %d", read[1], read[0])
					}
				})
			}
		}
	}
}

// An RMSNormalization knows no mean: it adds the square of each element, and multiplies the element twice. A LayerNormalization also adds the element, and subtracts the mean
// from it. Besides, each thread sums up with its warp, and finds the factor.
func TestNormalizationFlops(t *testing.T) {
	for _, c := range []struct {
		op           string
		params       int
		element, row int64 // operations for an element, and of a thread for a row
	}{
		{"RMSNormalization", 1, 2 + 1 + 1, 5 + 4},
		{"LayerNormalization", 2, 1 + 1 + 2 + 1 + 2, 5 + 1 + 5 + 4},
	} {
		const rows, n = 4, 1024
		g, m := newGraph(tensor.Float32)
		operands := []*ssa.Value{g.in(rows, n)}
		for range c.params {
			operands = append(operands, g.in(n))
		}
		m.Main().Body.SetReturns(g.Op(c.op, operands...))
		p, err := plan.New(m, fuse.None)
		if err != nil {
			t.Fatal(err)
		}
		_, report, err := exec.NewSession(p, &exec.Sim{Count: true}).Run(g.args)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := report.Steps[0].Counts.Flops, rows*(n*c.element+32*c.row); got != want {
			t.Errorf("%s: %d operations, want %d", c.op, got, want)
		}
	}
}
