package sim_test

import (
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// try runs whatever the reader accepted, with a buffer for each parameter that can be one: no panic, and an end.
func try(t *testing.T, k *sim.Kernel) {
	t.Helper()
	var args []sim.Arg
	for _, width := range k.ParamSizes() {
		if width == 8 {
			args = append(args, sim.Ptr(sim.NewBuffer(make([]byte, 512))))
		} else {
			args = append(args, sim.I32(17))
		}
	}
	for _, check := range []bool{true, false} {
		grid := 1
		if check {
			grid = 2 // without checks the blocks of such a kernel would race in our own memory too
		}
		if _, err := k.Run(sim.Launch{Grid: [3]int{grid}, Block: [3]int{33}, Dynamic: 64, Args: args, Check: check, Steps: 2000}); err == nil {
			continue
		}
	}
}

func FuzzPTX(f *testing.F) {
	for _, c := range gputest.Cases() {
		for _, text := range texts(f, c) {
			f.Add(text)
		}
	}
	head := ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .pred %p<4>;\n.reg .b16 %rs<4>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .f32 %f<9>;\n"
	for _, body := range []string{
		"L: bra L;", "@%p1 bra L; ret; L: bar.sync 0; ret;", "@!%p1 ld.param.u64 %rd1, [p]; st.global.u8 [%rd1+600], %rs1; ret;",
		"mov.b32 {%rs1, %rs2}, %r1; mov.b64 %rd2, {%r1, %r2}; prmt.b32 %r1, %r2, %r3, 0x5410; bfe.s32 %r2, %r1, 3, 40; ret;",
		"ld.f32 %f1, [%rd1]; cvt.rni.s32.f32 %r1, %f1; shfl.sync.idx.b32 %r2|%p1, %r1, 40, 0x1f1f, -1; ret;",
		".shared .align 16 .b8 s[99999999]; ret;", ".local .align 8 .b8 a[64]; mov.u64 %rd1, a; cvta.local.u64 %rd2, %rd1; st.u64 [%rd2-8], %rd1; ret;",
		"div.s32 %r1, %r2, 0; rem.u64 %rd1, %rd2, %rd3; shr.s32 %r1, %r2, 77; atom.global.add.u32 %r1, [%rd1], 1; trap;",
		"fma.rn.f32 %f1, 0f7FC00000, %f2, %f3; ex2.approx.f32 %f1, %f2;", "{ ret; }", "mov.u32 %r1, %tid.w;", "bra", "@", "ld.global.v4.f32 {%f1, %f2, %f3}, [%rd1];",
	} {
		f.Add(head + body + "\n}\n")
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := sim.FromPTX(text, "")
		if err == nil {
			try(t, k)
		}
	})
}
