package verify

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// npy is an array as numpy.save writes it.
func npy(descr, shape string, fortran bool, data []byte) []byte {
	order := "False"
	if fortran {
		order = "True"
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, order, shape)
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	return append([]byte("\x93NUMPY\x01\x00"+string([]byte{byte(len(head)), byte(len(head) >> 8)})+head), data...)
}

func npz(t *testing.T, arrays map[string][]byte) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range arrays {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "data.npz")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNPZ(t *testing.T) {
	six := []byte{1, 2, 3, 4, 5, 6}
	sets, err := ReadData(npz(t, map[string][]byte{
		"input_0": npy("|u1", "2, 3", false, six), "input_1": npy("|u1", "2, 3", true, six), "output_0": npy("<f4", "", false, []byte{0, 0, 128, 63}),
	}))
	if err != nil || len(sets) != 1 || len(sets[0].Inputs) != 2 || len(sets[0].Outputs) != 1 {
		t.Fatalf("%v, %v", sets, err)
	}
	if got := fmt.Sprint(sets[0].Inputs[0].Tensor.Int64s(), sets[0].Inputs[1].Tensor.Int64s(), sets[0].Outputs[0].Tensor.Float64s()); got != "[1 2 3 4 5 6] [1 3 5 2 4 6] [1]" {
		t.Error(got)
	}
	sets, err = ReadData(npz(t, map[string][]byte{"input_0": npy("<c8", "1,", false, []byte{0, 0, 128, 63, 0, 0, 0, 64})}))
	if err != nil {
		t.Fatal(err)
	}
	if z := sets[0].Inputs[0].Tensor; fmt.Sprint(z.Shape, z.Float64s()) != "[1 2] [1 2]" {
		t.Errorf("a complex number: %v %v", z.Shape, z.Float64s())
	}
	for what, array := range map[string][]byte{
		"ends before its":   npy("<f8", "2, 3", false, six),
		"no array of NumPy": []byte("nothing at all"),
		"not supported":     npy(">f4", "1", false, six),
		"its shape is":      npy("|u1", "99999999999999999999", false, six),
	} {
		if _, err := ReadData(npz(t, map[string][]byte{"input_0": array})); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := ReadData(npz(t, map[string][]byte{"x": six})); err == nil || !strings.Contains(err.Error(), "SET/in/NUMBER/NAME") {
		t.Error(err)
	}
}
