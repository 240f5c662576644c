package device_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/verify"
	"github.com/aton-project/aton/verify/device"
)

// Small programs with work for ever are refused as soon as the simulator's budget is spent, whether they have large kernels or many small ones:
// the interpreter does not run them first.
func TestBudget(t *testing.T) {
	for _, shape := range []string{"512, 512", "4"} {
		text := fmt.Sprintf("graph(%%x : Float(%[1]s)):\n  %%n : Long() = onnx::Constant[value={%[2]d}]()\n  %%t : Bool() = onnx::Constant[value={1}]()\n"+
			"  %%y : Float(%[1]s) = onnx::Loop(%%n, %%t, %%x)\n    block0(%%i : Long(), %%c : Bool(), %%a : Float(%[1]s)):\n      %%b : Float(%[1]s) = onnx::Tanh(%%a)\n      -> (%%c, %%b)\n  return (%%y)\n", shape, 1<<40)
		file := filepath.Join(t.TempDir(), "m.ir")
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		m, err := aton.Load(file, aton.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := aton.Convert(m, aton.ConvertOptions{}); err != nil {
			t.Fatal(err)
		}
		data, err := verify.RandomData(m, verify.RandomOptions{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := device.Verify(verify.Verifier{}, m, data, device.Options{Backend: &exec.Sim{Budget: 1 << 28}})
			ended <- err
		}()
		select {
		case err := <-ended:
			if !errors.Is(err, sim.ErrBudget) {
				t.Errorf("(%s): %v", shape, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("(%s): it is not refused", shape)
		}
	}
}
