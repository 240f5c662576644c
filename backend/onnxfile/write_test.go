package onnxfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// big is a module with one weight of n floats, and its bytes.
func big(n int) (*ssa.Module, []byte) {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": 20}
	f := m.NewFunc("main")
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i)
	}
	w := tensor.Of(tensor.Float32, []int64{int64(n)}, data)
	x := f.Body.AddParam("x", ssa.Tensor(tensor.Float32, sym.Const(int64(n))))
	y := f.Body.Append("onnx::Add", 0, []*ssa.Value{x, weight(f.Body, "w", w)}, x.Type)
	f.Body.SetReturns(y.Results[0])
	return m, w.Bytes()
}

func (f fuse) Write(b []byte) (int, error) {
	if len(b) > *f.n {
		k, _ := f.w.Write(b[:*f.n])
		*f.n = 0
		return k, &os.PathError{Op: "write", Path: ".m.onnx.1.tmp", Err: errFull}
	}
	*f.n -= len(b)
	return f.w.Write(b)
}

// However much fits on the disk: an error that names the file, no new file, and the old one as it was.
func TestDiskFull(t *testing.T) {
	for _, external := range []External{Never, Always} {
		for room := 0; room < 12<<10; room += 997 {
			dir := t.TempDir()
			path := filepath.Join(dir, "m.onnx")
			if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
				t.Fatal(err)
			}
			m, _ := big(3000)
			left := room
			err := Write(path, m, Options{External: external, wrap: func(w io.Writer) io.Writer { return fuse{w, &left} }})
			if !errors.Is(err, errFull) || !strings.Contains(err.Error(), path) {
				t.Fatalf("%d bytes of room: %v", room, err)
			}
			files, _ := os.ReadDir(dir)
			if b, _ := os.ReadFile(path); len(files) != 1 || string(b) != "old" {
				t.Fatalf("%d bytes of room: left behind %v, and %q in the old file", room, files, b)
			}
		}
	}
}

func TestOddPaths(t *testing.T) {
	m, _ := big(10)
	if err := Write(os.DevNull, m, Options{}); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(os.DevNull); err != nil || info.Mode().IsRegular() {
		t.Fatal("the null device was replaced")
	}
	if err := Write(os.DevNull, m, Options{External: Always}); err == nil {
		t.Error("a data file beside a device")
	}
	dir := t.TempDir()
	for path, want := range map[string]string{dir: "is a directory", filepath.Join(dir, "no", "m.onnx"): "no such file or directory"} {
		if err := Write(path, m, Options{}); err == nil || !strings.Contains(err.Error(), path+": "+want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
