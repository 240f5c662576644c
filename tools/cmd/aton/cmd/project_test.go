package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The options of aton.toml are those of the command line, which goes before them.
func TestProject(t *testing.T) {
	b, err := os.ReadFile(fixtures + "convnet.script.pt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	model := filepath.Join(dir, "net.pt")
	if err := os.WriteFile(model, b, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		toml   string
		args   string
		status int
		says   string
	}{
		{"opset = 13\ninput = ['x:f32[N,3,18,18]']\n", "", 0, "converts to opset 13"},
		{"opset = 13\ninput = ['x:f32[N,3,18,18]']\n", "--opset 17", 0, "converts to opset 17"},
		{"input = ['x:f32[N,3,18,18]']\nrename = ['x=y']\n", "", 0, "converts to opset 20"}, // an option of export
		{"deny = ['warnings']\n", "", 1, "error[input-spec]: input x has no --input"},
		{"allow = ['input-spec']\n", "", 1, "error[unknown-shape]"},
		{"opset = 'new'\n", "", 2, "aton.toml: --opset must be a whole number, not \"new\""},
		{"opset = [13]\n", "", 2, "aton.toml: opset has one value, not a list"},
		{"opset = 2020-01-01\n", "", 2, "aton.toml: opset must be a string, a number"},
		{"opsett = 13\n", "", 2, `aton.toml: no option is called opsett, did you mean "opset"?`},
		{"output = 'elsewhere.onnx'\n", "", 2, "aton.toml: output belongs on the command line"},
		{"opset =\n", "", 2, "aton.toml:1:"},
	} {
		if err := os.WriteFile(filepath.Join(dir, projectFile), []byte(c.toml), 0o666); err != nil {
			t.Fatal(err)
		}
		status, stdout, stderr := call("", append([]string{"check", model}, strings.Fields(c.args)...)...)
		if status != c.status || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%s%s: status %d: %s%s", c.toml, c.args, status, stdout, stderr)
		}
		if strings.HasPrefix(c.toml, "allow") && strings.Contains(stderr, "warning") {
			t.Errorf("%s: %s", c.toml, stderr)
		}
	}
}

// The file beside a model, which may come from anybody, names nothing that is written, and opens no port.
func TestProjectWritesNothing(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "net.ir")
	if err := os.WriteFile(model, []byte("graph(%x : Float(2)):\n  %y : Float(2) = aten::relu(%x)\n  return (%y)\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"output", "sarif", "repro", "minimize", "html", "svg", "dot", "port"} {
		written := filepath.Join(t.TempDir(), "written")
		if err := os.WriteFile(filepath.Join(dir, projectFile), []byte(name+" = '"+written+"'\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"check", "export", "verify", "explore"} {
			status, _, stderr := call("", command, model)
			if status != 2 || !strings.Contains(stderr, name+" belongs on the command line") {
				t.Errorf("%s with %s: status %d: %s", command, name, status, stderr)
			}
			if _, err := os.Stat(written); err == nil {
				t.Errorf("%s with %s writes", command, name)
			}
		}
	}
}

// What is denied leaves no file.
func TestDenied(t *testing.T) {
	out := filepath.Join(t.TempDir(), "o.onnx")
	status, _, said := call("", "export", fixtures+"state.script.pt", "--input", "x:f32[N,2]", "-o", out, "--deny", "state")
	if _, err := os.Stat(out); status != 1 || err == nil || !strings.HasPrefix(said, "error[state]") {
		t.Errorf("status %d, %v: %s", status, err, said)
	}
	status, _, said = call("", "export", fixtures+"state.script.pt", "--input", "x:f32[N,2]", "-o", out, "--allow", "state", "--verbose")
	if _, err := os.Stat(out); status != 0 || err != nil || strings.Contains(said, "[state]") {
		t.Errorf("status %d, %v: %s", status, err, said)
	}
}

// diff tells what two files have in common with nobody, and its status says whether they differ.
func TestDiff(t *testing.T) {
	dir := t.TempDir()
	export := func(name string, flags ...string) string {
		to := filepath.Join(dir, name)
		if status, _, said := call("", append([]string{"export", fixtures + "perceptron.pt2", "-o", to}, flags...)...); status != 0 {
			t.Fatal(said)
		}
		return to
	}
	a, b := export("a.onnx"), export("b.onnx", "--opset", "13", "--output-names", "scores")
	if status, said, _ := call("", "diff", a, a); status != 0 || !strings.HasSuffix(said, "are equal\n") {
		t.Errorf("status %d: %s", status, said)
	}
	status, said, _ := call("", "diff", a, b)
	if status != 1 || !strings.Contains(said, "opsets\n- ai.onnx 20\n+ ai.onnx 13\n") || !strings.Contains(said, "\n+ scores : Float(") || strings.Contains(said, "\nweights\n") {
		t.Errorf("status %d: %s", status, said)
	}
	if status, said, _ := call("", "diff", a, b, "--json"); status != 1 || !strings.Contains(said, `"equal": false`) {
		t.Errorf("status %d: %s", status, said)
	}
	if status, _, said := call("", "diff", a); status != 2 {
		t.Errorf("status %d: %s", status, said)
	}
}

// inspect begins with what an ONNX file is, and its text is still one that is read.
func TestInspectSummary(t *testing.T) {
	out := filepath.Join(t.TempDir(), "o.onnx")
	if status, _, said := call("", "export", fixtures+"convnet.script.pt", "--input", "x:f32[N,3,18,18]", "-o", out); status != 0 {
		t.Fatal(said)
	}
	status, text, said := call("", "inspect", out)
	if status != 0 || !strings.HasPrefix(text, "# "+out+": ") || !strings.Contains(text, "opset 20, by aton\n# input     x : Float(N, 3, 18, 18)\n") || !strings.Contains(text, " Conv, ") {
		t.Errorf("status %d: %s%s", status, text, said)
	}
	if status, _, said := call(text, "check", "-"); status != 0 {
		t.Errorf("status %d: %s", status, said)
	}
}
