package batch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// planOf reads a manifest in a folder that has the models a.pt and b.pt, a folder d and the weights w.bin.
func planOf(t *testing.T, manifest string) (*Plan, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.pt": "a", "b.pt": "b", "w.bin": "w", "d/c.pt": "c", "m.jsonl": manifest} {
		if err := os.MkdirAll(filepath.Join(dir, "d"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return NewPlan(commands, Request{Models: filepath.Join(dir, "m.jsonl"), Out: filepath.Join(dir, "out"), Do: "export", Build: "1",
		Options: []Option{{Name: "opset", Value: "17"}, {Name: "eval", Value: "true"}}})
}

// A line has a model, a name and options, which go before those of the command.
func TestManifest(t *testing.T) {
	p, err := planOf(t, `{"model": "a.pt", "input": ["x:f32[N,3]", "y:i64[2]"], "opset": 13, "weights": "w.bin"}

{"model": "d/c.pt", "name": "nets/c", "eval": false}
{"model": "https://user:password@models.example.org/net.pt?key=1"}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []Item{
		{Name: "a", Do: "export", Model: Source{Path: "a.pt"}, Options: []Option{
			{Name: "input", Value: "x:f32[N,3]"}, {Name: "input", Value: "y:i64[2]"}, {Name: "opset", Value: "13"},
			{Name: "weights", File: &Source{Path: "w.bin"}}, {Name: "eval", Value: "true"}}},
		{Name: "nets/c", Do: "export", Model: Source{Path: "d/c.pt"}, Options: []Option{{Name: "eval", Value: "false"}, {Name: "opset", Value: "17"}}},
		{Name: "net", Do: "export", Model: Source{URL: "https://user:password@models.example.org/net.pt?key=1"}, Options: []Option{
			{Name: "opset", Value: "17"}, {Name: "eval", Value: "true"}}},
	}
	for i, it := range p.Items {
		got := *it
		got.Key = ""
		if diff := cmp.Diff(want[i], got); diff != "" {
			t.Error(diff)
		}
	}
}

// A wrong line is told with its file and number, and nothing is done then.
func TestWrongLines(t *testing.T) {
	for line, want := range map[string]string{
		`{"model": "a.pt"`:                        "m.jsonl:2: this is no JSON object",
		`["a.pt"]`:                                "m.jsonl:2: this is no JSON object",
		`{"model": "a.pt"} {}`:                    "something behind the JSON object",
		`{"name": "a"}`:                           `"model" is missing`,
		`{"model": "x.pt"}`:                       "no such file",
		`{"model": "d"}`:                          "d is no file",
		`{"model": "b.pt"}`:                       `the name "b" is that of line 1`,
		`{"model": "a.pt", "name": "../a"}`:       "no file can have the name",
		`{"model": "a.pt", "name": "/a"}`:         "no file can have the name",
		`{"model": "a.pt", "name": 3}`:            "no file can have the name",
		`{"model": "a.pt", "opste": 3}`:           `export has no option "opste", did you mean "opset"?`,
		`{"model": "a.pt", "output": "x"}`:        `export has no option "output"`,
		`{"model": "a.pt", "opset": "x"}`:         `opset: "x"`,
		`{"model": "a.pt", "opset": {"n": 3}}`:    "a value is a string, a number",
		`{"model": "a.pt", "weights": "none"}`:    "no such file",
		`{"model": "a.pt", "input-file": "file"}`: "want NAME=FILE",
		`{"model": "https://h/%zz"}`:              "the URL is not well-formed",
	} {
		_, err := planOf(t, `{"model": "b.pt"}`+"\n"+line+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	_, err := planOf(t, "1\n2\n{\"model\": \"a.pt\"}\n3\n")
	if n := strings.Count(err.Error(), "m.jsonl:"); n != 3 {
		t.Errorf("%d lines are told: %v", n, err)
	}
}

// A folder stands for the models in it, by their paths without extensions where these tell them apart. The output is not a model.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b.pt", "b.onnx", "a.ir", "sub/a.pt2", "readme.md", "out/b.onnx", ".git/x.pt"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	request := Request{Models: dir, Out: filepath.Join(dir, "out"), Do: "export"}
	p, err := NewPlan(commands, request)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, it := range p.Items {
		names = append(names, it.Name)
	}
	if diff := cmp.Diff([]string{"a", "b.onnx", "b.pt", "sub/a"}, names); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(filepath.Join(dir, "b.pt")); err != nil {
		t.Fatal(err)
	}
	request.Out = dir
	if _, err := NewPlan(commands, request); err == nil || !strings.Contains(err.Error(), "would replace this model") {
		t.Errorf("%v", err)
	}
	request.Models = t.TempDir()
	if _, err := NewPlan(commands, request); err == nil || !strings.Contains(err.Error(), "there is no model") {
		t.Errorf("%v", err)
	}
}

// An item is the same after its way through the queue, and a result never has more diagnostics than a message holds.
func TestMessages(t *testing.T) {
	p, err := planOf(t, `{"model": "a.pt", "weights": "w.bin"}`)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p.Items[0])
	if err != nil {
		t.Fatal(err)
	}
	var back Item
	if err := json.Unmarshal(text, &back); err != nil || digest(back) != digest(p.Items[0]) {
		t.Errorf("%+v, %v", back, err)
	}
	r := &Result{}
	for range 10000 {
		r.Diagnostics = append(r.Diagnostics, refusal("x", "%s", strings.Repeat("long ", 30)))
	}
	r.shorten()
	if text, _ := json.Marshal(r); len(text) > 1<<19 || len(r.Diagnostics)+r.More != 10000 || r.More == 0 {
		t.Errorf("%d bytes, %d and %d", len(text), len(r.Diagnostics), r.More)
	}
}

func TestSummary(t *testing.T) {
	problem := func(id string) *Result {
		return &Result{Status: Refused, Diagnostics: append((&Result{}).Diagnostics, refusal(id, ""), refusal(id, ""))}
	}
	got := Summary([]*Result{{Status: OK, Cached: true}, {Status: OK}, problem("b"), problem("a"), problem("b")})
	want := "5 models: 2 ok, 3 refused (1 from the cache)\n       2 b\n       1 a\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
