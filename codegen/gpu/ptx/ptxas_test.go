package ptx_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/llvm"
	"github.com/aton-project/aton/codegen/gpu/ptx"
)

// TestPTXAS assembles the kernels of package gputest, by both routes, where ATON_PTXAS names the assembler (make ptxas): what
// the simulator takes and the printer writes is PTX for NVIDIA too, and nothing spills.
func TestPTXAS(t *testing.T) {
	ptxas := os.Getenv("ATON_PTXAS")
	if ptxas == "" {
		t.Log("no ATON_PTXAS: what is printed is not assembled")
	}
	registers := regexp.MustCompile(`Used (\d+) registers`)
	for _, c := range gputest.Cases() {
		own, err := c.Texts()
		if err != nil {
			t.Fatal(err)
		}
		if ptxas == "" {
			continue
		}
		type made struct{ route, text string }
		var texts []made
		for _, text := range own {
			texts = append(texts, made{"text", text})
		}
		for _, l := range ptx.AllLLC() {
			if c.Kernel == nil {
				break
			}
			text, err := l.Compile(llvm.Lower(c.Kernel()), ptx.Options{})
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, made{l.Path, text})
		}
		for _, x := range texts {
			route, text := x.route, x.text
			for _, target := range []string{"sm_80", "sm_90"} {
				cmd := exec.Command(ptxas, "-arch="+target, "-v", "-o", os.DevNull, "-")
				cmd.Stdin = strings.NewReader(text)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s, %s, %s: %v\n%s\n%s", c.Name, route, target, err, out, text)
					continue
				}
				if !strings.Contains(string(out), " 0 bytes spill stores, 0 bytes spill loads") {
					t.Errorf("%s, %s, %s: %s", c.Name, route, target, out)
				}
				if r := registers.FindSubmatch(out); r != nil {
					t.Logf("%-10s %-14s %s: %s registers", c.Name, route, target, r[1])
				}
			}
		}
	}
}

// Random kernels assemble, too.
func TestPTXASRandom(t *testing.T) {
	ptxas := os.Getenv("ATON_PTXAS")
	for i := range 100 {
		text, err := ptx.Print(kernelOf(randomBytes(i)), ptx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if ptxas == "" {
			continue
		}
		c := exec.Command(ptxas, "-arch=sm_80", "-o", os.DevNull, "-")
		c.Stdin = strings.NewReader(text)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("kernel %d: %s\n%s", i, out, text)
		}
	}
}
