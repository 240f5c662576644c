package frontend

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// TestOldListing: a graph as an old torch.onnx printed it has operators of several opsets, in one listing: each is read as the
// newest version that it fits, and whole numbers are floats where the schema says so.
func TestOldListing(t *testing.T) {
	m, err := Read([]byte(`graph(%x : Float(2, 3, 4)
      %w : Float(5, 12)
      %b : Float(5)) {
  %30 : Dynamic = onnx::Shape(%x), scope: AlexNet
  %31 : Dynamic = onnx::Slice[axes=[0], ends=[1], starts=[0]](%30), scope: AlexNet
  %32 : Long() = onnx::Squeeze[axes=[0]](%31), scope: AlexNet
  %33 : Long() = onnx::Constant[value={12}](), scope: AlexNet
  %34 : Dynamic = onnx::Unsqueeze[axes=[0]](%32)
  %35 : Dynamic = onnx::Unsqueeze[axes=[0]](%33)
  %36 : Dynamic = onnx::Concat[axis=0](%34, %35)
  %37 : Float(2, 12) = onnx::Reshape(%x, %36)
  %y : Float(2, 5) = onnx::Gemm[alpha=1, beta=1, broadcast=1, transB=1](%37, %w, %b), scope: AlexNet/Sequential[classifier]/Linear[6]
  return (%y);
}
`), "page.txt", Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := ssa.Print(m)
	for _, want := range []string{"onnx::Gemm[alpha=1., beta=1., transB=1]", "onnx::Slice(", "onnx::Squeeze("} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if _, err := Read([]byte("graph(%x : Float(2)):\n  %y : Float(2) = onnx::Relu[zzz=1](%x)\n  return (%y)\n"), "bad.txt", Options{Dialects: []ssa.Dialect{onnx.Dialect{}}}); err == nil || !strings.Contains(err.Error(), `no attribute "zzz"`) {
		t.Error(err)
	}
	if _, err := Read([]byte("graph(%x : Float(2)):\n  %y : Tensor = aten::add(%x, _)\n  return (%y)\n"), "absent.txt", Options{}); err == nil || !strings.Contains(err.Error(), "an operand is absent") {
		t.Error(err)
	}
}
