package cmd

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const convertible = `graph(%x : Float(2, 3), %n : Float(2, 3)):
  %a : Float(2, 3) = onnx::Relu(%x)
  %b : Float(2, 3) = onnx::Add(%a, %n)
  return (%b)
`

const foreign = `graph(%x : Float(2, 3)):
  %a : Float(2, 3) = aten::no_such_operator(%x) # net.py:7:3
  %b : Float(2, 3) = aten::no_such_operator(%a) # net.py:8:3
  return (%b)
`

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "graph.ir")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return name
}

func call(stdin string, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = Main(args, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

func TestStatus(t *testing.T) {
	good := write(t, convertible)
	out := filepath.Join(t.TempDir(), "o.onnx")
	for _, c := range []struct {
		args   string
		status int
		said   string
	}{
		{"exprot", 2, `unknown command "exprot" for "aton", did you mean "export"?`},
		{"export", 2, "takes one model"},
		{"export " + good + " out.onnx", 2, "give it as -o out.onnx"},
		{"export -", 2, "-o is missing"},
		{"export " + out, 2, "-o is missing"},
		{"export " + good + " -o " + out + " --nonsense", 2, "unknown flag: --nonsense"},
		{"export " + good + " --opsett 3", 2, `unknown flag: --opsett, did you mean "--opset"?`},
		{"export " + good + " --opset x", 2, `--opset must be a whole number, not "x"`},
		{"export " + good + " --json=maybe", 2, `--json must be true or false, not "maybe"`},
		{"verify " + good + " --rtol x", 2, `--rtol must be a number, not "x"`},
		{"export " + good + " -o " + out + " --input x:f33[2]", 2, "unknown type"},
		{"export " + good + " -o " + out + " --input y:f32[2]", 1, `no input "y" (it has: x, n)`},
		{"export " + good + " -o " + out + " --opset 6", 2, "not between 7 and"},
		{"export " + good + " -o " + out + " --opset 0", 2, "not between 7 and"},
		{"export " + good + " -o " + out + " --custom-opset x", 2, "NAMESPACE=VERSION"},
		{"export " + good + " -o " + out + " --param-names mine", 2, "state or learned"},
		{"export " + good + " -o " + out + " --rename x", 2, "want OLD=NEW"},
		{"export " + good + " -o " + out + " --rename x=a,x=b", 2, "x is renamed twice"},
		{"check " + good + " --only-ops tensorrt", 0, ""},
		{"check " + good + " --only-ops notensor", 2, "no runtime of this name (there are: coreml, openvino, ort-mobile, tensorrt, webnn)"},
		{"check " + good + " --only-ops ../../../../README.md", 1, "--only-ops ../../../../README.md: line"},
		{"export " + good + " -o " + out + " --output-axes y=a", 2, "want NAME:AXIS=AXISNAME"},
		{"export " + good + " -o " + out + " --output-axes y:a=0", 2, `"a=0": want AXIS=AXISNAME`},
		{"export " + good + " -o - --verbose", 2, "standard output"},
		{"export " + good + " -o " + out + " --target tvm", 2, "ort or onnx"},
		{"export " + good + " -o " + out + " --ort-operators --target onnx", 1, "are for the target ort"},
		{"export " + good + " -o " + out + " --ort-operators=tpu", 2, "none, cpu or gpu"},
		{"export " + good + " -o " + out + " --external-data maybe", 2, "auto, always or never"},
		{"export " + good + " -o - --external-data always", 2, "needs a file"},
		{"export " + good + " -o - --json", 2, "standard output"},
		{"export " + good + " -o - --operator-export-type onx", 2, "ONNX_ATEN_FALLBACK"},
		{"export " + good + " -o " + filepath.Join(out, "deeper"), 1, "o.onnx/deeper: no such file or directory; make the folder first"},
		{"export " + good + ".not -o " + out, 1, good + ".not: no such file or directory; "},
		{"inspect " + good + " --at nowhere", 2, "no stage"},
		{"batch " + good, 2, "-o is missing"},
		{"batch " + good + " -o " + out, 1, "aton-batch is missing"},
		{"batch --help", 0, ""},
		{"worker", 2, "--queue is missing"},
		{"inspect " + good, 0, ""},
		{"export --help", 0, ""},
		{"completion bash", 0, ""},
		{"--version", 0, ""},
		{"export " + good + " -o " + out, 0, ""},
	} {
		status, _, said := call("", strings.Fields(c.args)...)
		if status != c.status || !strings.Contains(said, c.said) {
			t.Errorf("aton %s: status %d, want %d: %s", c.args, status, c.status, said)
		}
	}
}

func TestOutputByItself(t *testing.T) {
	model := write(t, convertible)
	t.Chdir(t.TempDir())
	if status, _, said := call("", "export", model); status != 0 {
		t.Fatal(said)
	}
	if _, err := os.Stat("graph.onnx"); err != nil {
		t.Error(err)
	}
}

func TestFailureLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "o.onnx")
	model := write(t, foreign)
	status, _, said := call("", "export", model, "-o", out)
	want := `error[unsupported-op]: aten::no_such_operator: the operator is not supported (2 times)
  --> net.py:7:4
  --> net.py:8:4
   = help: give a rule for it (--rules), register a symbolic function, or export with --fallthrough aten
2 errors in ` + model + "\n"
	if status != 1 || said != want {
		t.Errorf("status %d: %s", status, said)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if status, text, _ := call(foreign, "export", "-", "-o", "-"); status != 1 || text != "" {
		t.Errorf("status %d, and %d bytes on standard output", status, len(text))
	}
}

func TestRoundTrip(t *testing.T) {
	out := filepath.Join(t.TempDir(), "o.onnx")
	status, text, said := call(convertible, "export", "-", "-o", out, "--json", "--opset", "13", "--input", "x:f32[N,3]", "--output-names", "result")
	if status != 0 {
		t.Fatal(said)
	}
	var e exported
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	if e.Opsets[""] != 13 || e.Operators["onnx::Add"] != 1 || len(e.Inputs) != 2 || e.Inputs[0].Type != "Float(N, 3)" {
		t.Errorf("%+v", e)
	}
	status, text, said = call("", "inspect", out)
	if status != 0 || !strings.Contains(text, "%x : Float(N, 3)") || !strings.Contains(text, "return (%result)") {
		t.Errorf("status %d: %s%s", status, text, said)
	}
}

func TestCheck(t *testing.T) {
	status, text, said := call(foreign, "check", "-", "--json")
	var got struct {
		Problems []struct {
			ID, Op, File string
			Line         int
		}
		Operators []struct {
			Operator, File string
			Count, Line    int
		}
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if status != 1 || said != "" || len(got.Problems) != 2 || got.Problems[1].File != "net.py" || got.Problems[1].Line != 8 || got.Problems[0].ID != "unsupported-op" {
		t.Errorf("status %d: %s%s", status, text, said)
	}
	if len(got.Operators) != 1 || got.Operators[0].Count != 2 || got.Operators[0].Line != 7 {
		t.Errorf("%+v", got.Operators)
	}
	if status, text, _ := call("", "check", "--list-ops", "--json"); status != 0 || !strings.Contains(text, `"why": "Bunch-Kaufman pivoting has no ONNX form"`) {
		t.Errorf("check --list-ops --json: exit status %d, %.200s", status, text)
	}
	if status, text, said := call("", "check", "--list-ops", "--opset", "13"); status != 0 || !strings.Contains(text, "aten::relu\n") || strings.Contains(text, "aten::no_such_operator") {
		t.Errorf("status %d: %.200s%s", status, text, said)
	}
	if status, _, _ := call("", "check"); status != 2 {
		t.Errorf("status %d without a model", status)
	}
	if status, text, _ := call(convertible, "check", "-"); status != 0 || !strings.Contains(text, "converts to opset 20") {
		t.Errorf("status %d: %s", status, text)
	}
}

func TestConstants(t *testing.T) {
	status, text, said := call("graph(%x : Tensor, %k : int, %m : str, %o : Tensor?):\n  %r : Tensor = aten::div(%x, %k, %m)\n  return (%r)\n",
		"inspect", "-", "--listing", "--at", "specialize", "--input", "k:int=3", "--input", `m:str="floor"`, "--input", "o:none", "--input", "x:f32[N,2]")
	want := `graph(%x : Float(N, 2)):
  %0 : int = prim::Constant[value=3]()
  %1 : str = prim::Constant[value="floor"]()
  %r : Float(N, 2) = aten::div(%x, %0, %1)
  return (%r)
`
	if status != 0 || text != want {
		t.Errorf("status %d: %s%s", status, text, said)
	}
}

// TestLimited runs a command in the form in which a batch does, in this process: what it finds is data.
func TestLimited(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{
		{convertible, `{"exit":0,"problems":null`},
		{foreign, `{"exit":1,"problems":[{"id":"unsupported-op"`},
	} {
		words, err := json.Marshal(map[string]any{"words": []string{"check", write(t, c.text), "--json"}})
		if err != nil {
			t.Fatal(err)
		}
		never, _ := io.Pipe() // the end of standard input would end this process, as the one that started it would be gone
		var out, errs bytes.Buffer
		status := Main([]string{"limited", "--memory=0"}, io.MultiReader(bytes.NewReader(words), never), &out, &errs)
		if status != 0 || !strings.HasPrefix(out.String(), c.want) {
			t.Errorf("status %d: %s%s", status, out.String(), errs.String())
		}
	}
}

func TestHandOver(t *testing.T) {
	for _, args := range [][]string{nil, {"export", "batch"}, {"batch"}} { // there is no aton-batch beside this test
		if _, done := HandOver(args); done {
			t.Errorf("%v is handed over", args)
		}
	}
}

// A type alone is that of the input at its place: the same file as with the name.
func TestInputByPlace(t *testing.T) {
	dir := t.TempDir()
	for _, model := range []string{"convnet.script.pt", "convnet.pt2"} {
		var files [2][]byte
		for i, input := range []string{"x:f32[2,3,18,18]", "f32[2,3,18,18]"} {
			out := filepath.Join(dir, "out.onnx")
			if status, _, stderr := call("", "export", fixtures+model, "-o", out, "--input", input); status != 0 {
				t.Fatalf("%s %s: %s", model, input, stderr)
			}
			files[i], _ = os.ReadFile(out)
		}
		if len(files[0]) == 0 || !bytes.Equal(files[0], files[1]) {
			t.Errorf("%s: %d bytes by name, others by place", model, len(files[0]))
		}
	}
	status, _, stderr := call("", "export", fixtures+"convnet.script.pt", "-o", filepath.Join(dir, "none.onnx"), "--input", "f32[1,3,18,18]", "--input", "f32[2]")
	if want := "convnet.script.pt: there is a type for input 2, and the model has 1 (x)"; status != 1 || !strings.Contains(stderr, want) {
		t.Errorf("status %d, %s, want %s", status, stderr, want)
	}
}
