package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNewerOpset: --verbose says that a newer opset makes the file smaller, where it does.
func TestNewerOpset(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return file
	}
	attention := put("attention.ir", `graph(%q : Float(2, 2, 3, 4), %k : Float(2, 2, 5, 4), %v : Float(2, 2, 5, 4)):
  %t : Float(2, 2, 4, 5) = onnx::Transpose[perm=[0, 1, 3, 2]](%k)
  %s : Float(2, 2, 3, 5) = onnx::MatMul(%q, %t)
  %p : Float(2, 2, 3, 5) = onnx::Softmax[axis=-1](%s)
  %o : Float(2, 2, 3, 4) = onnx::MatMul(%p, %v)
  return (%o)
`)
	softmax := put("softmax.ir", "graph(%x : Float(2, 3)):\n  %y : Float(2, 3) = onnx::Softmax[axis=-1](%x)\n  return (%y)\n")
	out := filepath.Join(dir, "o.onnx")
	for _, c := range []struct {
		args []string
		told bool
	}{
		{[]string{attention, "--opset", "20", "--verbose"}, true},
		{[]string{attention, "--opset", "20"}, false},
		{[]string{attention, "--opset", "20", "--verbose", "--allow", "newer-opset"}, false},
		{[]string{attention, "--opset", "23", "--verbose"}, false},
		{[]string{attention, "--opset", "20", "--verbose", "--only-ops", "ort-mobile"}, false},
		{[]string{softmax, "--opset", "20", "--verbose"}, false},
	} {
		code, _, stderr := call("", append([]string{"export", "-o", out}, c.args...)...)
		if told := strings.Contains(stderr, "at opset 23 the file would have 1 instead of 4 operators, by Attention"); code != 0 || told != c.told {
			t.Errorf("%q: status %d, told %v: %s", c.args, code, told, stderr)
		}
	}
	_, stdout, stderr := call("", "export", "-o", out, attention, "--opset", "20", "--verbose", "--json")
	var told exported
	if err := json.Unmarshal([]byte(stdout), &told); err != nil {
		t.Fatalf("%v: %s", err, stderr)
	}
	if told.Newer == nil || told.Newer.Opset != 23 || told.Newer.Operators["onnx::Attention"] != 1 {
		t.Errorf("--json tells of a newer opset: %+v", told.Newer)
	}
}
