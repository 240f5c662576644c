package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// mutate applies the n-th fault of a kind to the function, and says what it did. false: there is no n-th.
func mutate(f *ir.Func, kind string, n int) (func() string, bool) {
	at := n
	for _, b := range f.Blocks {
		for i, in := range b.Insts {
			switch in := in.(type) {
			case *ir.InstCall:
				g, ok := in.Callee.(*ir.Func)
				if kind == "barrier" && ok && g.Name() == "llvm.nvvm.barrier0" {
					if n--; n < 0 {
						b.Insts = append(b.Insts[:i:i], b.Insts[i+1:]...)
						return func() string { return fmt.Sprintf("without barrier %d", at) }, true
					}
				}
			case *ir.InstGetElementPtr:
				last := len(in.Indices) - 1
				index := in.Indices[last]
				if kind == "index" && types.Equal(index.Type(), types.I32) {
					if n--; n < 0 {
						add := ir.NewAdd(index, constant.NewInt(types.I32, 1))
						in.Indices[last] = add
						b.Insts = append(b.Insts[:i:i], append([]ir.Instruction{add}, b.Insts[i:]...)...)
						return func() string { return fmt.Sprintf("index + 1 in %s of block %s", in.Ident(), b.Ident()) }, true
					}
				}
			case *ir.InstICmp:
				if kind == "predicate" {
					if n--; n < 0 {
						in.Pred = map[enum.IPred]enum.IPred{enum.IPredSLT: enum.IPredSGE, enum.IPredULT: enum.IPredUGE, enum.IPredEQ: enum.IPredNE,
							enum.IPredNE: enum.IPredEQ, enum.IPredSGT: enum.IPredSLE}[in.Pred]
						return func() string { return fmt.Sprintf("%s in block %s", in.LLString(), b.Ident()) }, true
					}
				}
			}
		}
		if t, ok := b.Term.(*ir.TermCondBr); ok && kind == "branch" {
			if n--; n < 0 {
				t.TargetTrue, t.TargetFalse = t.TargetFalse, t.TargetTrue
				return func() string { return "branch of block " + b.Ident() + " the other way" }, true
			}
		}
	}
	return nil, false
}

// survivors are the mutants that no check can tell from the original, each with its reason.
var survivors = map[string]string{
	"softmax: without barrier 17": "nothing uses the shared memory after it",
}

func TestMutation(t *testing.T) {
	cases := []gputest.Case{gputest.AddRelu(203, 2), gputest.Softmax(9, 150), gputest.Gemm(66, 65, 17), gputest.WarpSum(5, 40), gputest.Local(),
		gputest.Histogram(), gputest.Dynamic(), gputest.Diverge(), gputest.BoolOps()}
	total, found := 0, 0
	byKind := map[sim.FaultKind]int{}
	for _, c := range cases {
		for _, kind := range []string{"barrier", "index", "predicate", "branch"} {
			for n := 0; ; n++ {
				f := gputest.Kernel(c.Build())
				what, ok := mutate(f, kind, n)
				if !ok {
					break
				}
				if err := f.AssignIDs(); err != nil {
					t.Fatal(err)
				}
				total++
				name := c.Name + ": " + strings.TrimSpace(what())
				how, err := caught(c, f)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if how != "" {
					byKind[sim.FaultKind(how)]++
					found++
					if survivors[name] != "" {
						t.Errorf("%s is found now: %s", name, how)
					}
				} else if survivors[name] == "" {
					t.Errorf("not found: %s", name)
				}
			}
		}
	}
	t.Logf("%d of %d mutants found: %v", found, total, byKind)
	if found*100 < total*95 {
		t.Errorf("%d of %d mutants found", found, total)
	}
}

// caught says how a wrong kernel shows: the fault, or "results".
func caught(c gputest.Case, f *ir.Func) (string, error) {
	k, err := sim.FromIR(f)
	if err != nil {
		return "", err
	}
	args := c.Args()
	_, err = k.Run(sim.Launch{Grid: c.Grid, Block: c.Block, Dynamic: c.Shared, Args: args, Check: true, Steps: 1 << 16})
	if fault, ok := err.(*sim.Fault); ok {
		return string(fault.Kind), nil
	}
	if err != nil {
		return "", err
	}
	if c.Verify(args) != nil {
		return "results", nil
	}
	return "", nil
}
