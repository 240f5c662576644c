//go:build linux && (amd64 || arm64) && !nocuda

package driver

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// standin compiles the library that stands in for the driver's. ok is false when there is no C compiler.
func standin(t *testing.T, flags ...string) (path string, ok bool) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		if os.Getenv("ATON_NEED_CC") != "" {
			t.Fatal("cc is not on PATH: install Debian's gcc")
		}
		t.Log("not tested against a shared library: no cc; the fake in Go still is")
		return "", false
	}
	path = filepath.Join(t.TempDir(), "libcuda-standin.so")
	args := append([]string{"-shared", "-fPIC", "-O1", "-o", path, "testdata/standin.c"}, flags...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path, true
}

func TestStandin(t *testing.T) {
	path, ok := standin(t)
	if !ok {
		return
	}
	a, err := loadFrom(path)
	if err != nil {
		t.Fatal(err)
	}
	d, err := open(a, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := Info{Name: "stand-in 7", Major: 9, Multiprocessors: 132, SharedMemory: 232448, Driver: 12040}
	if d.Info != want || d.Info.Target() != "sm_90" {
		t.Errorf("info %+v, want %+v", d.Info, want)
	}
	exercise(t, d)
	if _, err := d.Alloc(1 << 31); err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_OUT_OF_MEMORY") {
		t.Errorf("too much memory: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if _, err := open(a, 3); err == nil || !strings.Contains(err.Error(), "no device 3") {
		t.Errorf("device 3: %v", err)
	}
}

func TestMissing(t *testing.T) {
	path, ok := standin(t, "-DcuLaunchKernel=cuOther", "-DcuInit=cuElse")
	if !ok {
		return
	}
	if _, err := loadFrom(path); err == nil || !strings.Contains(err.Error(), "lacks cuInit, cuLaunchKernel") {
		t.Errorf("symbols that are missing: %v", err)
	}
}

func TestNoDriver(t *testing.T) {
	_, err := loadFrom(filepath.Join(t.TempDir(), "libcuda.so.1"))
	if !errors.Is(err, ErrNoDriver) || !strings.Contains(err.Error(), "--device sim") {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(file, []byte("no library"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := loadFrom(file); !errors.Is(err, ErrNoDriver) {
		t.Errorf("a file that is no library: %v", err)
	}
	// the machine's own driver, or the reason why there is none
	d, err := Open(0)
	switch {
	case err == nil:
		t.Logf("%s, %s", d.Info.Name, d.Info.Target())
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	case !errors.Is(err, ErrNoDriver):
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("got %v", err)
		}
	}
}
