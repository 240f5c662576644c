package profiles

import (
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
)

// Every profile has a source, is sorted, and has operators of the standard.
func TestProfiles(t *testing.T) {
	if names := Names(); !slices.Equal(names, []string{"coreml", "openvino", "ort-mobile", "tensorrt", "webnn"}) {
		t.Errorf("the profiles are %v", names)
	}
	for _, name := range Names() {
		list, ok := Get(name)
		if !ok || len(list) < 50 || !slices.IsSorted(list) {
			t.Errorf("%s has %d operators", name, len(list))
		}
		text, err := files.ReadFile(name + ".txt")
		if err != nil || !strings.Contains(string(text), "\n# https://") {
			t.Errorf("%s does not name its source: %v", name, err)
		}
		for _, op := range []string{"Conv", "MatMul", "Softmax", "Reshape"} {
			if !slices.Contains(list, op) {
				t.Errorf("%s has no %s", name, op)
			}
		}
		for _, op := range list {
			if !strings.Contains(op, "::") && len(onnx.Versions(op)) == 0 {
				t.Errorf("%s: ONNX has no %s", name, op)
			}
		}
	}
	for _, name := range []string{"", "nothing", "../profiles", "webnn.txt"} {
		if _, ok := Get(name); ok {
			t.Errorf("there is a profile %q", name)
		}
	}
}

func TestParse(t *testing.T) {
	got, err := Parse("# mine\nConv\n\n  com.microsoft::Gelu # fused\nRelu")
	if err != nil || !slices.Equal(got, []string{"Conv", "com.microsoft::Gelu", "Relu"}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, want := range map[string]string{"Conv Relu": "line 1", "Conv\nConvolution": "line 2: ONNX has no operator Convolution", "# none": "no operators", "": "no operators"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
