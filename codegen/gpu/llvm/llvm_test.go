package llvm

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
)

// sample uses every kind of node.
func sample() *kir.Kernel {
	b := kir.New("sample", 128)
	x, y := b.Buffer("x", kir.F32, false), b.Buffer("y", kir.F32, true)
	s := b.SharedMem("s", kir.F32, 128)
	n := b.Size(sym.Symbol("N", 1))
	t := b.ThreadX()
	at := b.Add(b.Mul(b.BlockIndex(0), b.I32(128)), t)
	v := b.If(b.Lt(at, n), func() []kir.Value { return []kir.Value{b.Load(x, at)} }, func() []kir.Value { return []kir.Value{b.Float(kir.F32, 0.1)} })
	b.Store(s, t, v[0])
	b.Barrier()
	sum := b.For(b.I32(0), b.I32(128), b.I32(4), []kir.Value{b.Float(kir.F32, 0)}, func(i kir.Value, c []kir.Value) []kir.Value {
		acc := c[0]
		for _, e := range b.LoadVec(s, i, 4) {
			acc = b.Fma(e, e, acc)
		}
		return []kir.Value{acc}
	})
	r := b.Unary(kir.Sqrt, b.Add(sum[0], b.Shuffle(v[0], 16)))
	b.When(b.Lt(at, n), func() { b.Store(y, at, r) })
	return b.K
}

func TestLower(t *testing.T) {
	text := Lower(sample()).String()
	for _, want := range []string{"define ptx_kernel void @sample(float addrspace(1)* noalias readonly nocapture align 16 %p0", "phi i32", "load <4 x float>", "@llvm.fma.f32", "shfl.sync.bfly.f32",
		"llvm.nvvm.barrier0", "@shared.s = internal addrspace(3) global [128 x float] undef, align 16", `"kernel", i32 1`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if again := Lower(sample()).String(); again != text {
		t.Error("lowering twice gives two texts")
	}
	llc, err := exec.LookPath("llc")
	if err != nil {
		llc, err = exec.LookPath("llc-14")
	}
	if err != nil {
		if os.Getenv("ATON_NEED_LLVM") != "" {
			t.Fatal("llc is not on PATH: install Debian's llvm-14")
		}
		t.Log("llc is not there: what it says of the module is not tested")
		return
	}
	c := exec.Command(llc, "-O3", "-march=nvptx64", "-mcpu=sm_80", "-mattr=+ptx70", "-o", "-")
	c.Stdin = strings.NewReader(text)
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), ".visible .entry sample") || strings.Contains(string(out), "call") {
		t.Fatalf("llc: %v\n%s\n%s", err, out, text)
	}
}
