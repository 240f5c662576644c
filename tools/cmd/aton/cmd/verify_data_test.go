package cmd

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// npz writes float32 arrays of rank 1 as numpy.savez does.
func npz(t *testing.T, path string, arrays map[string][]float32) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, v := range arrays {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }", len(v))
		head += strings.Repeat(" ", 118-len(head)-1) + "\n"
		b := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), 0)
		b = append(b, head...)
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		if _, err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestVerifyData goes through the options on data: what is compared, with what, and how exactly.
func TestVerifyData(t *testing.T) {
	dir := t.TempDir()
	graph := filepath.Join(dir, "graph.ir")
	text := `graph(%x : Float(N), %y : Float(N)):
  %one : int = prim::Constant[value=1]()
  %sum : Tensor = aten::add(%x, %y, %one)
  %neg : Tensor = aten::neg(%x)
  return (%sum, %neg)
`
	if err := os.WriteFile(graph, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	in := func(name string, arrays map[string][]float32) string { return npz(t, filepath.Join(dir, name), arrays) }
	x, y := []float32{1, 2, 3, 4}, []float32{10, 20, 30, 40}
	right := in("right.npz", map[string][]float32{"input_0": x, "input_1": y, "output_0": {11, 22, 33, 44}, "output_1": {-1, -2, -3, -4}})
	one := in("one.npz", map[string][]float32{"input_0": x, "input_1": y, "output_0": {11, 22, 33, 44}, "output_1": {-1, -2, -3, 5}})
	inputs := in("inputs.npz", map[string][]float32{"input_0": x, "input_1": y})
	byName := in("names.npz", map[string][]float32{"1": {-1, -2, -3, -4}, "0": {11, 22, 33, 44}})
	swapped := in("swapped.npz", map[string][]float32{"0": {-1, -2, -3, -4}, "1": {11, 22, 33, 44}})
	otherNames := in("other.npz", map[string][]float32{"sum": {-1, -2, -3, -4}, "neg": {11, 22, 33, 44}})
	byNumber := in("numbers.npz", map[string][]float32{"output_1": {-1, -2, -3, -4}, "output_0": {11, 22, 33, 44}})
	onnxFile := filepath.Join(dir, "graph.onnx")
	if status, _, said := call("", "export", graph, "-o", onnxFile); status != 0 {
		t.Fatal(said)
	}
	for _, c := range []struct {
		name   string
		args   string
		status int
		want   string
	}{
		{"right", "--data " + right, 0, "data set 0: output_0 : Float(4) as expected"},
		{"one wrong element", "--data " + one, 1, "1 of 4 elements differ"},
		{"a quarter may be wrong", "--acceptable-error-percentage 25 --data " + one, 0, "as expected"},
		{"a quarter is too much", "--acceptable-error-percentage 24 --data " + one, 1, "1 of 4 elements differ"},
		{"two files", "--data " + right + " --data " + one, 1, "data set right.npz/0: output_0 : Float(4) as expected"},
		{"expected, by name", "--data " + inputs + " --expected " + byName, 0, "0 : Float(4) as expected"},
		{"expected, by name, wrong", "--data " + inputs + " --expected " + swapped, 1, "4 of 4 elements differ"},
		{"expected, in order", "--data " + inputs + " --expected " + byNumber, 0, "output_1 : Float(4) as expected"},
		{"expected of two", "--data " + right + " --data " + one + " --expected " + byName, 2, "--expected has the outputs of one data set"},
		{"expected, other names", "--data " + inputs + " --expected " + otherNames, 1, "its names are not those of the model's outputs (0, 1)"},
		{"expected, no file", "--data " + inputs + " --expected " + byName + ".not", 1, "no such file"},
		{"random", "--random 2 --size N=3", 0, "data set random 1: 1 : Float(3) as expected"},
		{"random, on a device", "--random 2 --size N=3 --seed 7 --device sim", 0, "data set random 8: sim: 0 : Float(3) as expected"},
		{"size without random", "--size N=3 --data " + right, 2, "require --random"},
		{"size of nothing", "--random 1 --size N=0", 0, "0 : Float(0) as expected"},
		{"no size", "--random 1 --size N=-1", 2, "must be 0 or more"},
		{"percentage", "--acceptable-error-percentage 101 --data " + right, 2, "must be a number from 0 to 100"},
		{"nothing", "", 2, "--data is missing"},
		{"inputs alone", "--data " + inputs, 0, "data set 0: 1 : Float(4) as expected"},
	} {
		status, out, said := call("", append([]string{"verify", graph}, strings.Fields(c.args)...)...)
		if status != c.status || !strings.Contains(out+said, c.want) {
			t.Errorf("%s: status %d\n%s%s", c.name, status, out, said)
		}
	}
	if status, out, said := call("", "verify", onnxFile, "--data", inputs); status != 1 || !strings.Contains(said, "there is nothing to compare an ONNX file with") {
		t.Errorf("an ONNX file without outputs: status %d\n%s%s", status, out, said)
	}
}

// TestVerifyLoosely compares outputs of another type and of another shape where that is asked for, and only there.
func TestVerifyLoosely(t *testing.T) {
	m, err := aton.LoadBytes([]byte("graph(%x : Float(4)):\n  %y : Float(4) = onnx::Neg(%x)\n  return (%y)\n"), "graph.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.FromFloats(tensor.Float32, []int64{4}, []float64{1, 2, 3, 4})
	for _, c := range []struct {
		name  string
		want  *tensor.Tensor
		tol   verify.Tolerance
		wrong bool
	}{
		{"shape", tensor.FromFloats(tensor.Float32, []int64{2, 2}, []float64{-1, -2, -3, -4}), verify.Tolerance{}, true},
		{"any shape", tensor.FromFloats(tensor.Float32, []int64{2, 2}, []float64{-1, -2, -3, -4}), verify.Tolerance{AnyShape: true}, false},
		{"any shape, other numbers", tensor.FromFloats(tensor.Float32, []int64{2, 2}, []float64{-1, -2, -3, -5}), verify.Tolerance{AnyShape: true}, true},
		{"any shape, more elements", tensor.FromFloats(tensor.Float32, []int64{5}, []float64{-1, -2, -3, -4, -5}), verify.Tolerance{AnyShape: true}, true},
		{"type", tensor.FromFloats(tensor.Float64, []int64{4}, []float64{-1, -2, -3, -4}), verify.Tolerance{}, true},
		{"any type", tensor.FromFloats(tensor.Float64, []int64{4}, []float64{-1, -2, -3, -4}), verify.Tolerance{AnyDType: true}, false},
		{"integers", tensor.FromInts(tensor.Int64, []int64{4}, []int64{-1, -2, -3, -4}), verify.Tolerance{AnyDType: true}, false},
		{"integers, other numbers", tensor.FromInts(tensor.Int64, []int64{4}, []int64{-1, -2, -3, -5}), verify.Tolerance{AnyDType: true}, true},
	} {
		data := verify.DataSet{Inputs: []verify.Named{{Name: "x", Tensor: x}}, Outputs: []verify.Named{{Name: "y", Tensor: c.want}}}
		r, err := verify.Verifier{Tolerance: c.tol}.Verify(m, data)
		if err != nil || (r[0].Wrong != "") != c.wrong {
			t.Errorf("%s: %v, %+v", c.name, err, r)
		}
	}
}

// TestMinimizeKernel plants a wrong kernel, and has the smallest part that it makes wrong written: it is one operator, right in the
// interpreter and wrong on the device.
func TestMinimizeKernel(t *testing.T) {
	planted := func(s *exec.Session) {
		s.Replace = func(k *kir.Kernel) *kir.Kernel {
			if strings.HasPrefix(k.Name, "k_conv_") {
				for _, n := range k.Body.Nodes {
					breakFma(n)
				}
			}
			return k
		}
	}
	dir := filepath.Join(t.TempDir(), "piece")
	text, err := runVerify(t, &verifier{session: planted}, convnet, "--data", convnetData, "--input", convnetType, "--device", "sim", "--minimize", dir)
	if err == nil || !strings.Contains(text, "the smallest part that is wrong by itself has 1 node") || !strings.Contains(text, "onnx::Conv") {
		t.Fatalf("%v\n%s", err, text)
	}
	piece, data := filepath.Join(dir, "model.onnx"), filepath.Join(dir, "test_data_set_0")
	if text, err := runVerify(t, &verifier{}, piece, "--data", data, "--device", "sim"); err != nil {
		t.Errorf("the piece without the fault: %v\n%s", err, text)
	}
	if text, err := runVerify(t, &verifier{session: planted}, piece, "--data", data, "--device", "sim"); err == nil {
		t.Errorf("the piece with the fault is right\n%s", text)
	}
	m, err := onnxfile.Read(piece)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for o := range m.Main().Body.Ops() {
		if o.Kind != "onnx::Constant" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the piece has %d operators", n)
	}
}

// TestMinimizePass plants a pass that changes the last operator: what is written has the output that the model had before it.
func TestMinimizePass(t *testing.T) {
	dir := t.TempDir()
	graph := filepath.Join(dir, "graph.ir")
	if err := os.WriteFile(graph, []byte("graph(%x : Float(4)):\n  %e : Tensor = aten::exp(%x)\n  %n : Tensor = aten::neg(%e)\n  return (%n)\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	done := map[*ssa.Module]bool{}
	v := &verifier{observers: []passes.Observer{{AfterPass: func(e *passes.Event) {
		if e.Pass.Name != "legalize" || done[e.Module] {
			return
		}
		done[e.Module] = true
		for o := range e.Module.Main().Body.Ops() {
			if o.Kind == "onnx::Neg" {
				o.Kind = "onnx::Sqrt"
				return
			}
		}
	}}}}
	piece := filepath.Join(dir, "piece")
	text, err := runVerify(t, v, graph, "--random", "1", "--minimize", piece)
	if err == nil || !strings.Contains(text, "pass legalize") || !strings.Contains(text, "has 1 node, onnx::Sqrt n") {
		t.Fatalf("%v\n%s", err, text)
	}
	text, err = runVerify(t, &verifier{}, filepath.Join(piece, "model.onnx"), "--data", filepath.Join(piece, "test_data_set_0"))
	if err == nil || !strings.Contains(text, "4 of 4 elements differ") {
		t.Errorf("%v\n%s", err, text)
	}
	// a second search leaves nothing of the first one
	if err := os.WriteFile(filepath.Join(piece, "test_data_set_0", "input_7.pb"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	clear(done)
	if _, err := runVerify(t, v, graph, "--random", "1", "--minimize", piece); err == nil {
		t.Error("the second search finds nothing")
	}
	if _, err := os.Stat(filepath.Join(piece, "test_data_set_0", "input_7.pb")); err == nil {
		t.Error("inputs of another piece are left")
	}
}
