package e2e

import (
	"bytes"
	"math"
	"path/filepath"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// What converts in float32 converts in float16: the file is right by its types, float32 is neither an input nor an output of it, and its outputs are those of
// float32 but for the digits that float16 has. Where numbers are large, or few digits are left of a difference, there are fewer.
func TestFloat16(t *testing.T) {
	n, ran, near := 0, 0, 0
	for _, name := range []string{"cases", "operators"} {
		for _, dir := range unpack(t, "testdata/"+name+".tar.gz") {
			if n++; n%7 != 0 {
				continue
			}
			c, err := readCase(dir)
			if err != nil {
				continue
			}
			o := withInputs(t, converting(aton.ConvertOptions{Opset: c.Opset}), c.InputSpecs...)
			path := filepath.Join(dir, "model.pt")
			export := func(o options) ([]byte, error) {
				m, err := aton.Load(path, o.load)
				if err != nil {
					return nil, err
				}
				var b bytes.Buffer
				err = aton.ExportTo(&b, m, o.export)
				return b.Bytes(), err
			}
			wide, err := export(o)
			if err != nil {
				continue
			}
			o.export.Floats = aton.Float16
			half, err := export(o)
			if err != nil {
				t.Errorf("%s: %v", dir, err)
				continue
			}
			ok, err := likeFloat32(wide, half)
			if err != nil {
				t.Errorf("%s: %v", dir, err)
				continue
			}
			ran++
			if ok {
				near++
			} else {
				t.Log(dir)
			}
		}
	}
	if ran < 40 || near < ran*95/100 {
		t.Errorf("%d of %d models compute in float16 what they do in float32", near, ran)
	}
}

// likeFloat32 runs both files on the same random numbers, and reports whether 99 % of the elements agree to three digits of the greatest one.
func likeFloat32(wide, half []byte) (bool, error) {
	m, err := aton.LoadBytes(wide, "wide.onnx", aton.LoadOptions{})
	if err != nil {
		return false, err
	}
	h, err := aton.LoadBytes(half, "half.onnx", aton.LoadOptions{})
	if err != nil {
		return false, err
	}
	data, err := verify.RandomData(m, verify.RandomOptions{Seed: 1})
	if err != nil {
		return true, nil
	}
	want, err := verify.Run(m, data)
	if err != nil {
		return true, nil // random inputs may not do
	}
	for i, in := range data.Inputs {
		if in.Tensor.DType == tensor.Float32 {
			data.Inputs[i].Tensor = tensor.FromFloats(tensor.Float16, in.Tensor.Shape, in.Tensor.Float64s())
		}
	}
	got, err := verify.Run(h, data)
	if err != nil {
		return false, err
	}
	beyond, all := 0, 0
	for i := range want {
		x, y := got[i].Tensor, want[i].Tensor
		if y.DType == tensor.Float32 {
			if x.DType != tensor.Float16 {
				return false, nil
			}
			a, b := x.Float64s(), y.Float64s()
			top := 1e-3
			for _, v := range b {
				if !math.IsInf(v, 0) && v == v {
					top = max(top, math.Abs(v))
				}
			}
			for k := range b {
				if all++; k >= len(a) || math.Abs(a[k]-b[k]) > 4e-3*top || a[k] != a[k] && b[k] == b[k] {
					beyond++
				}
			}
		}
	}
	return beyond*100 <= all, nil
}
