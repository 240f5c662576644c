package cmd

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

const fixtures = "../../../../testdata/fixtures/torch2.15/"

// rezip copies an archive, with changes to its records; nil drops one.
func rezip(t *testing.T, from, to string, change func(name string, content []byte) []byte) {
	t.Helper()
	r, err := zip.OpenReader(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		if content = change(f.Name, content); content == nil {
			continue
		}
		out, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// Whatever is wrong with a file, an input or the place to write to: one message, status 1, and nothing left behind.
func TestBadInput(t *testing.T) {
	good := fixtures + "convnet.script.pt"
	archive, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	edited := func(name string, change func(name string, content []byte) []byte) string {
		path := filepath.Join(dir, name)
		rezip(t, good, path, change)
		return path
	}
	const fine = "x:f32[N,3,18,18]"
	type problem struct {
		model, input, output string // empty for the usual output
		says                 []string
	}
	problems := []problem{
		{file("text.pt", []byte("hello\n")), fine, "", []string{"text.pt: this is no archive", "; give a file that torch.jit.save"}},
		{file("empty.pt", nil), fine, "", []string{"empty.pt: the file is empty; "}},
		{dir, fine, "", []string{": this is a folder; give a file"}},
		{filepath.Join(dir, "none.pt"), fine, "", []string{"none.pt: no such file or directory; check the path"}},
		{edited("codeless.pt", func(n string, b []byte) []byte {
			if strings.Contains(n, "/code/") {
				return nil
			}
			return b
		}), fine, "", []string{"codeless.pt: ", "; "}},
		{edited("nopickle.pt", func(n string, b []byte) []byte {
			if strings.HasSuffix(n, "/data.pkl") {
				return nil
			}
			return b
		}), fine, "", []string{"nopickle.pt: there is no data.pkl", "; pass a file written by torch.jit.save"}},
		{edited("weightless.pt", func(n string, b []byte) []byte {
			if strings.HasSuffix(n, "/data/3") {
				return nil
			}
			return b
		}), fine, "", []string{"weightless.pt: ", "data/3"}},
		{edited("unknown.pt", func(_ string, b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("torch.flatten("), []byte("torch.flitten("))
		}), fine, "", []string{"unknown.pt: ", "aten::flitten", "; "}},
		{edited("garbled.pt", func(n string, b []byte) []byte {
			if strings.Contains(n, "/nets") && strings.HasSuffix(n, ".py") {
				return append(b, "  return (((\n"...)
			}
			return b
		}), fine, "", []string{"garbled.pt: code/__torch__/nets", ": "}},
		{good, "y:f32[N,3,18,18]", "", []string{`the model has no input "y" (it has: x)`}},
		{good, "x:f32[N,3]", "", []string{"aten::conv2d in features.0: the input has 2 dimensions instead of 3 or 4; correct the shape in --input"}},
		{good, "x:f32[N,4,18,18]", "", []string{"the input has 4 channels, the weight is for 3; correct"}},
		{good, "x:i64[N,3,18,18]", "", []string{"the input has elements of type Long, the weight of type Float; "}},
		{good, "x:f32[N,3,3,3]", "", []string{"aten::max_pool2d in features.2: no window of 3 fits into a size of 2; "}},
		{good, "", "", []string{"the rank of its operand is not known; give the inputs' types, such as --input 'x:f32[N,3"}},
		{good, fine, filepath.Join(dir, "no", "where.onnx"), []string{"where.onnx: no such file or directory; make the folder first"}},
		{good, fine, dir, []string{": is a directory; give the name of a file"}},
	}
	if runtime.GOOS == "linux" {
		problems = append(problems, problem{good, fine, "/dev/full", []string{"/dev/full: no space left on device; free some space"}})
	}
	for _, at := range []int{3, 4, 100, len(archive) / 2, len(archive) - 30, len(archive) - 1} {
		says := []string{fmt.Sprintf("cut%d.pt: ", at), "; "}
		if at > 4 {
			says = append(says, "not a complete zip file")
		}
		problems = append(problems, problem{file(fmt.Sprintf("cut%d.pt", at), archive[:at]), fine, "", says})
	}
	for _, p := range problems {
		out := t.TempDir()
		output := p.output
		if output == "" {
			output = filepath.Join(out, "o.onnx")
		}
		args := []string{"export", p.model, "-o", output, "--repro", ""}
		if p.input != "" {
			args = append(args, "--input", p.input)
		}
		status, stdout, said := call("", args...)
		said = inOneLine(withoutWarnings(said))
		if status != 1 || stdout != "" || strings.Count(said, "\n") != 1 {
			t.Errorf("%v: status %d, want one line and 1: %s", args, status, said)
		}
		for _, s := range p.says {
			if !strings.Contains(said, s) {
				t.Errorf("%v: no %q in %s", args, s, said)
			}
		}
		for _, d := range []string{out, dir} {
			left, _ := filepath.Glob(filepath.Join(d, "*.onnx*"))
			hidden, _ := filepath.Glob(filepath.Join(d, ".*"))
			if len(left)+len(hidden) > 0 {
				t.Errorf("%v: left behind %v %v", args, left, hidden)
			}
		}
	}
}

// A failure leaves a file of an earlier run as it was.
func TestFailureKeepsOldFile(t *testing.T) {
	out := filepath.Join(t.TempDir(), "o.onnx")
	if err := os.WriteFile(out, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := call("", "export", fixtures+"convnet.script.pt", "-o", out, "--input", "x:f32[2]"); status != 1 {
		t.Errorf("status %d", status)
	}
	if b, _ := os.ReadFile(out); string(b) != "old" {
		t.Errorf("the old file is now %q", b)
	}
}

// The flags that shape the file do.
func TestExportFlags(t *testing.T) {
	model, dir := fixtures+"convnet.script.pt", t.TempDir()
	for _, c := range []struct {
		args       string
		has, hasNo []string // of the listing
	}{
		{"", []string{"%x : Float(N, 3, 18, 18),", "%features.0.weight : Float(4, 3, 5, 5),", "onnx::Conv["}, nil},
		{"--param-names learned", []string{"%learned_0 : Float(4, 3, 5, 5),"}, []string{"features.0.weight :"}},
		{"--output-names scores", []string{"return (%scores)"}, nil},
		{"--input-names image,w --output-names y --output-axes y:0=rows", []string{"%image : Float(N, 3, 18, 18)", "%w : Float(4, 3, 5, 5)", "return (%y)"}, []string{"%x :"}},
		{"--rename x=image,features.0.weight=w,output=y", []string{"%image : Float(N, 3, 18, 18)", "%w : Float(4, 3, 5, 5)", "return (%y)"}, []string{"%x :"}},
		{"--no-weights", []string{"%features.0.weight : Float(4, 3, 5, 5)"}, nil},
		{"--keep-initializers-as-inputs", []string{"%features.0.weight : Float(4, 3, 5, 5)"}, nil},
		{"--opset 7", []string{"onnx::Gemm["}, nil},
		{"--external-data always", []string{"%classifier.1.weight : Float(8, 24)"}, nil},
	} {
		out := filepath.Join(dir, "o.onnx")
		args := append([]string{"export", model, "-o", out, "--input", "x:f32[N,3,18,18]"}, strings.Fields(c.args)...)
		if status, _, said := call("", args...); status != 0 {
			t.Errorf("%s: status %d: %s", c.args, status, said)
			continue
		}
		status, text, said := call("", "inspect", "--listing", out)
		if status != 0 {
			t.Errorf("%s: status %d: %s", c.args, status, said)
		}
		for _, s := range c.has {
			if !strings.Contains(text, s) {
				t.Errorf("%s: no %q in\n%s", c.args, s, text)
			}
		}
		for _, s := range c.hasNo {
			if strings.Contains(text, s) {
				t.Errorf("%s: %q in\n%s", c.args, s, text)
			}
		}
	}
	if data, err := filepath.Glob(filepath.Join(dir, "o.onnx.*.data")); len(data) != 1 {
		t.Error(data, err)
	}
}

// A person is told what was written; a model without large weights has no data file.
func TestSummary(t *testing.T) {
	out := filepath.Join(t.TempDir(), "o.onnx")
	status, text, said := call("", "export", fixtures+"residual.script.pt", "-o", out, "--input", "x:f32[N,4,9,9]", "--json", "--external-data", "always")
	if status != 0 {
		t.Fatal(said)
	}
	var e exported
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	if said := summary(e, 1500*time.Millisecond); !regexp.MustCompile(`^.*o\.onnx \(.* kB, opset 20\) in 1\.5 s\n  input  x : Float\(N, 4, 9, 9\)\n  output output : Float\(.*\)\n$`).MatchString(said) {
		t.Error(said)
	}
	if status, text, said = call("", "export", fixtures+"words_lstm.script.pt", "--input", "x:i64[N,T]", "-o", filepath.Join(t.TempDir(), "words.onnx"), "--external-data", "always", "--json"); status != 0 {
		t.Fatal(said)
	}
	e = exported{}
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatal(err)
	}
	if said := summary(e, time.Second); !regexp.MustCompile(`\n  data   .*\.data \(.*B\)\n`).MatchString(said) {
		t.Error(said)
	}
	if data, _ := filepath.Glob(out + ".*"); len(data) > 0 {
		t.Errorf("there is nothing for %v", data)
	}
	for n, want := range map[int64]string{7: "7 B", 1500: "1.5 kB", 244_400_000: "244.4 MB", 3e9: "3.0 GB"} {
		if have := bytesOf(n); have != want {
			t.Errorf("%d bytes are %s, want %s", n, have, want)
		}
	}
}

// withoutWarnings drops the messages that warn, with their places.
func withoutWarnings(said string) string {
	var out strings.Builder
	drop := false
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, " ") {
			drop = strings.HasPrefix(line, "warning")
		}
		if !drop {
			out.WriteString(line)
		}
	}
	return out.String()
}

// inOneLine leaves of a message what is wrong and what to do.
func inOneLine(said string) string {
	said = regexp.MustCompile(`(?m)\n *([0-9]+ )?(-->|\|).*$`).ReplaceAllString(said, "")
	return strings.ReplaceAll(said, "\n   = help: ", "; ")
}

// The listing of --verbose has the look of torch.onnx's: weights among the inputs, types with shapes, attributes, scope, line.
func TestVerbose(t *testing.T) {
	status, text, said := call("", "export", fixtures+"convnet.script.pt", "-o", filepath.Join(t.TempDir(), "o.onnx"), "--input", "x:f32[N,3,18,18]", "--verbose")
	if status != 0 {
		t.Fatal(said)
	}
	for _, want := range []string{
		"graph(%x : Float(N, 3, 18, 18),\n      %features.0.weight : Float(4, 3, 5, 5),\n      %features.0.bias : Float(4),\n",
		" : Float(N, 4, 9, 9) = onnx::Conv[", "kernel_shape=[5, 5]", "](%x, %features.0.weight, %features.0.bias), scope: features.0 # ",
		"torch/nn/modules/conv.py:",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// With --json the listing is a part of what is told.
func TestVerboseJSON(t *testing.T) {
	status, text, said := call("", "export", fixtures+"convnet.script.pt", "-o", filepath.Join(t.TempDir(), "o.onnx"), "--input", "x:f32[N,3,18,18]", "--verbose", "--json")
	var told struct {
		Listing string
		Inputs  []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(text), &told); status != 0 || err != nil {
		t.Fatal(status, err, said)
	}
	if len(told.Inputs) != 1 || !strings.HasPrefix(told.Listing, "graph(%x : Float(N, 3, 18, 18),\n") {
		t.Errorf("inputs %v, listing\n%s", told.Inputs, told.Listing)
	}
}

func TestVerify(t *testing.T) {
	model, data := fixtures+"convnet.script.pt", fixtures+"convnet.script.safetensors"
	status, text, said := call("", "verify", model, "--data", data, "--input", "x:f32[N,3,18,18]")
	if status != 0 || strings.Count(text, "as expected") != 2 {
		t.Errorf("status %d: %s%s", status, text, said)
	}
	status, text, said = call("", "verify", model, "--data", data, "--input", "x:f32[N,3,18,18]", "--rtol", "0", "--atol", "0", "--json")
	if status != 1 || !strings.Contains(text, `elements differ, the first one at [0 0] is`) || withoutWarnings(said) != "" {
		t.Errorf("status %d: %s%s", status, text, said)
	}
	for args, want := range map[string]string{
		"":                       "--data is missing",
		"--data " + model:        "",
		"--data nowhere":         "nowhere: no such file or directory",
		"--device tpu --data x":  "--device must be interp",
		"--fusion full --data x": "--fusion must be none or light",
		"--tf32 --data x":        "--tf32 requires --device",
	} {
		if status, _, said := call("", append([]string{"verify", model, "--input", "x:f32[N,3,18,18]"}, strings.Fields(args)...)...); status == 0 || !strings.Contains(said, want) {
			t.Errorf("verify %s: status %d: %s", args, status, said)
		}
	}
}

// An output never takes the place of what it is made of, and a tolerance is a number.
func TestRefusedCalls(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "m.onnx")
	if status, _, said := call("", "export", fixtures+"convnet.script.pt", "-o", model, "--external-data", "always", "--input", "x:f32[N,3,18,18]"); status != 0 {
		t.Fatal(said)
	}
	data, err := filepath.Glob(filepath.Join(dir, "m.onnx.*.data"))
	if err != nil || len(data) != 1 {
		t.Fatal(data, err)
	}
	link := filepath.Join(dir, "link.onnx")
	if err := os.Link(model, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"export", model, "-o", model}, "the model is read from this file; write to another one"},
		{[]string{"export", model, "-o", link}, "the model is read from this file; write to another one"},
		{[]string{"export", model, "-o", data[0]}, "the model is read from this file; write to another one"},
		{[]string{"verify", model, "--rtol", "nan", "--data", dir}, "--rtol must be 0 or more, not NaN"},
		{[]string{"verify", model, "--atol=-1", "--data", dir}, "--atol must be 0 or more, not -1"},
	} {
		if status, _, said := call("", c.args...); status == 0 || !strings.Contains(said, c.want) {
			t.Errorf("%s: status %d: %s", c.args, status, said)
		}
	}
	if status, _, said := call("", "inspect", model); status != 0 {
		t.Errorf("the model was damaged: %s", said)
	}
}
