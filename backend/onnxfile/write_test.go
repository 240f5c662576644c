package onnxfile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aton-project/aton/backend/internal/filetest"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/google/go-cmp/cmp"
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

// Whichever step of writing fails: an error that names the file, no new file, and the old model as it was, with its data.
func TestFaults(t *testing.T) {
	boom := errors.New("no space left on device")
	for _, external := range []External{Never, Always} {
		dir := t.TempDir()
		path := filepath.Join(dir, "m.onnx")
		old, weights := big(2000)
		if err := Write(path, old, Options{External: external}); err != nil {
			t.Fatal(err)
		}
		before := filetest.Contents(t, dir)
		m, _ := big(30000)
		steps := 0
		if err := Write(filepath.Join(t.TempDir(), "m.onnx"), m, Options{External: external, fault: func(string) error { steps++; return nil }}); err != nil {
			t.Fatal(err)
		}
		if steps < 5 {
			t.Fatalf("only %d steps", steps)
		}
		t.Logf("external data %v: %d steps", external == Always, steps)
		for fail := range steps {
			n := 0
			err := Write(path, m, Options{External: external, fault: func(step string) error {
				if n++; n == fail+1 {
					return &os.PathError{Op: step, Path: "x", Err: boom}
				}
				return nil
			}})
			if !errors.Is(err, boom) || !strings.Contains(err.Error(), path) {
				t.Fatalf("step %d of %d: %v", fail, steps, err)
			}
			if diff := cmp.Diff(before, filetest.Contents(t, dir)); diff != "" {
				t.Fatalf("step %d of %d: the folder was changed:\n%s", fail, steps, diff)
			}
		}
		again, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := onnx.ConstOf(again.Main().Body.First().Result(0)).Bytes(); !bytes.Equal(got, weights) {
			t.Error("the old model has other weights")
		}
		if err := Write(path, m, Options{External: external}); err != nil {
			t.Fatal(err)
		}
		if n := len(filetest.Contents(t, dir)); n != len(before) {
			t.Errorf("%d files after the second export, %d after the first", n, len(before))
		}
	}
}

// Of exports to one path at once one remains, with its own weights.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.onnx")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 10 {
				m, _ := big(1000 + i)
				if err := Write(path, m, Options{External: Always}); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	m, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	_, want := big(int(m.Main().Body.Params[0].Tensor().Dims[0].Min()))
	if got := onnx.ConstOf(m.Main().Body.First().Result(0)).Bytes(); !bytes.Equal(got, want) {
		t.Error("the model has the weights of another one")
	}
	if n := len(filetest.Contents(t, dir)); n != 2 {
		t.Errorf("%d files, not a model and its data", n)
	}
}

// Who watches is told of every byte that is written, up to all of them.
func TestProgress(t *testing.T) {
	m, _ := big(100000)
	for _, external := range []External{Never, Always} {
		dir := t.TempDir()
		last, all := int64(0), int64(0)
		opts := Options{External: external, Progress: func(written, of int64) {
			if written < last || written > of || all != 0 && of != all {
				t.Errorf("%d of %d bytes after %d of %d", written, of, last, all)
			}
			last, all = written, of
		}}
		if err := Write(filepath.Join(dir, "m.onnx"), m, opts); err != nil {
			t.Fatal(err)
		}
		size := int64(0)
		for _, text := range filetest.Contents(t, dir) {
			size += int64(len(text))
		}
		if last != all || all != size {
			t.Errorf("told of %d of %d bytes, the files have %d", last, all, size)
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
