package sim_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/sim"
)

// text is a kernel of 32 threads over 32 words.
func text(body string) string {
	return `.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .pred %p<2>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<9>;
	.shared .align 16 .b8 s[512];
	ld.param.u64 %rd1, [p];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	ld.global.b32 { %r2 }, [%rd1];
` + body + `
	st.global.b32 [%rd1], { %r2 };
	ret;
}
`
}

// Approximate instructions are refused, but where results are of no matter.
func TestRough(t *testing.T) {
	for _, c := range []struct {
		op   string
		want func(x float64) float64
	}{
		{"ex2.approx.ftz.f32 %r2, %r2;", math.Exp2}, {"lg2.approx.f32 %r2, %r2;", math.Log2}, {"sqrt.approx.ftz.f32 %r2, %r2;", math.Sqrt},
		{"rsqrt.approx.f32 %r2, %r2;", func(x float64) float64 { return 1 / math.Sqrt(x) }}, {"div.full.f32 %r2, %r2, 0f40400000;", func(x float64) float64 { return x / 3 }},
		{"rcp.approx.ftz.f32 %r2, %r2;", func(x float64) float64 { return 1 / x }}, {"tanh.approx.f32 %r2, %r2;", math.Tanh}, {"sin.approx.f32 %r2, %r2;", math.Sin},
	} {
		if _, err := sim.FromPTX(text(c.op), "k"); err == nil || !strings.Contains(err.Error(), "line 15: "+strings.Fields(c.op)[0]) {
			t.Errorf("%s is taken for exact: %v", c.op, err)
		}
		k, err := sim.CountPTX(text(c.op), "k")
		if err != nil {
			t.Errorf("%s: %v", c.op, err)
			continue
		}
		words := make([]byte, 128)
		binary.LittleEndian.PutUint32(words[4:], math.Float32bits(1.5))
		if _, err := k.Run(sim.Launch{Grid: [3]int{1}, Block: [3]int{32}, Args: []sim.Arg{sim.Ptr(sim.NewBuffer(words))}}); err != nil {
			t.Errorf("%s: %v", c.op, err)
		}
		if got, want := math.Float32frombits(binary.LittleEndian.Uint32(words[4:])), float32(c.want(1.5)); got != want {
			t.Errorf("%s of 1.5 is %v, want %v", c.op, got, want)
		}
	}
}

// Two floats are rounded to halves of a word, the first one to the upper half.
func TestPackHalves(t *testing.T) {
	k, err := sim.FromPTX(text("cvt.rn.f16x2.f32 %r2, %r2, 0f3F800000;"), "k")
	if err != nil {
		t.Fatal(err)
	}
	words := make([]byte, 128)
	binary.LittleEndian.PutUint32(words, math.Float32bits(2049)) // halfway between two halves
	if _, err := k.Run(sim.Launch{Grid: [3]int{1}, Block: [3]int{32}, Args: []sim.Arg{sim.Ptr(sim.NewBuffer(words))}}); err != nil {
		t.Fatal(err)
	}
	if got := binary.LittleEndian.Uint32(words); got != 0x68003c00 {
		t.Errorf("%#x", got)
	}
}

// A copy that reads nothing may have any address, and touches nothing.
func TestCountEmptyCopy(t *testing.T) {
	for _, c := range []struct {
		keep, off string
		sectors   int64
	}{{"16", "0", 12}, {"0", "4096", 8}} { // four are read and written besides
		k, err := sim.FromPTX(text(`
	and.b64 %rd3, %rd2, 0x70;
	sub.s64 %rd4, %rd1, %rd2;
	add.s64 %rd3, %rd3, %rd4;
	add.s64 %rd3, %rd3, `+c.off+`;
	mov.u64 %rd4, s;
	mov.u32 %r4, `+c.keep+`;
	cp.async.cg.shared.global [%rd4], [%rd3], 16, %r4;
	cp.async.wait_all;`), "k")
		if err != nil {
			t.Fatal(err)
		}
		var touched int64
		stats, err := k.Run(sim.Launch{Grid: [3]int{1}, Block: [3]int{32}, Args: []sim.Arg{sim.Ptr(sim.NewBuffer(make([]byte, 128)))}, Count: true,
			Touched: func(_ *sim.Buffer, first, last int64, _ bool) { touched += last - first + 1 }})
		if err != nil {
			t.Fatal(err)
		}
		if stats.Counts.Sectors != c.sectors || touched != c.sectors {
			t.Errorf("a copy of %s bytes: %d sectors, %d touched, want %d", c.keep, stats.Counts.Sectors, touched, c.sectors)
		}
	}
}
