package sim_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// What is copied asynchronously may be used by nobody before it has been waited for, nor by other threads before a barrier behind that; what is overwritten too early is seen
// as well. Without checks the numbers are wrong wherever a thread does not wait.
func TestCopyFaults(t *testing.T) {
	for _, c := range []struct {
		fault string
		kind  sim.FaultKind
		text  string
		wrong bool // without checks
	}{
		{gputest.NoWait, sim.CopyRace, "read at offset", true},
		{gputest.LateWait, sim.CopyRace, "that thread [63 0 0] has not waited for", true},
		{gputest.NoCommit, sim.CopyRace, "read at offset", true},
		{gputest.NoBarrier, sim.SharedRace, "wrote without a barrier between", false},
		{gputest.NoRing, sim.CopyRace, "in block [0 0 0], thread [", false},
		{gputest.Overwritten, sim.CopyRace, "write at offset", false},
	} {
		for _, bytes := range []int{4, 8, 16} {
			kernel := gputest.Copies(bytes, c.fault)
			k := read(t, texts(t, kernel)[0])
			_, err := k.Run(sim.Launch{Grid: kernel.Grid, Block: kernel.Block, Args: kernel.Args(), Check: true})
			var f *sim.Fault
			if !errors.As(err, &f) || f.Kind != c.kind || f.Kernel != kernel.Name || f.Line == 0 || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s, %d bytes: got %v, want %s with %q", c.fault, bytes, err, c.kind, c.text)
			}
			args := kernel.Args()
			if _, err := k.Run(sim.Launch{Grid: kernel.Grid, Block: kernel.Block, Args: args}); err != nil {
				t.Fatal(err)
			}
			if wrong := kernel.Verify(args) != nil; c.wrong && !wrong {
				t.Errorf("%s, %d bytes: the numbers are right without checks", c.fault, bytes)
			}
		}
	}
}

// PTX may copy fewer bytes than it writes: the rest is zeros, and nothing behind is read, even beyond the end of the buffer.
func TestPartialCopy(t *testing.T) {
	const text = `.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p0, .param .u64 p1)
{
	.shared .align 16 .b8 s[512];
	.reg .b32 %r<6>;
	.reg .b64 %rd<8>;
	ld.param.u64 %rd1, [p0];
	ld.param.u64 %rd2, [p1];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd3, %r1, 16;
	add.s64 %rd1, %rd1, %rd3;
	add.s64 %rd2, %rd2, %rd3;
	mov.u64 %rd4, s;
	add.s64 %rd4, %rd4, %rd3;
	mul.lo.u32 %r2, %r1, 4;
	SIZE
	cp.async.cg.shared.global.L2::128B [%rd4], [%rd1], 16, %r2;
	cp.async.wait_all;
	ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%rd4];
	st.global.v4.u32 [%rd2], {%r2, %r3, %r4, %r5};
	ret;
}
`
	in, out := make([]byte, 64), make([]byte, 64)
	for i := range in {
		in[i] = byte(i + 1)
	}
	run := func(size string) error {
		k, err := sim.FromPTX(strings.Replace(text, "SIZE", size, 1), "k")
		if err != nil {
			t.Fatal(err)
		}
		from, to := sim.NewBuffer(in[:60]), sim.NewBuffer(make([]byte, 64))
		_, err = k.Run(sim.Launch{Grid: [3]int{1}, Block: [3]int{4}, Args: []sim.Arg{sim.Ptr(from), sim.Ptr(to)}, Check: true})
		out = to.Bytes()
		return err
	}
	if err := run(""); err != nil {
		t.Fatal(err)
	}
	for i, x := range out {
		want := byte(0)
		if i%16 < i/16*4 {
			want = byte(i + 1)
		}
		if x != want {
			t.Errorf("byte %d is %d, want %d", i, x, want)
		}
	}
	if err := run("add.u32 %r2, %r2, 4;"); err == nil || !strings.Contains(err.Error(), string(sim.OutOfBounds)) {
		t.Errorf("a copy from beyond the end: %v", err)
	}
}
