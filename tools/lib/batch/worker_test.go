package batch

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
)

// do does one item as it may come from anybody.
func do(t *testing.T, b *bench, w *Worker, it Item) *Result {
	t.Helper()
	it.Do = "export"
	if it.Name == "" {
		it.Name = "a"
	}
	r, err := w.Do(t.Context(), &it, t.TempDir())
	if err != nil {
		r = &Result{Status: Failed}
		r.Diagnostics = append(r.Diagnostics, refusal("file", "%v", err))
	}
	return r
}

// A worker reads below its root alone, and takes no option that writes.
func TestUntrusted(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine"})
	secret := b.write("../secret.ir", "fine")
	root := filepath.Join(b.dir, "models")
	if err := os.Symlink(secret, filepath.Join(root, "link.ir")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		item Item
		want string // empty if it is done
	}{
		{Item{Model: Source{Path: "a.ir"}}, ""},
		{Item{Model: Source{Path: "sub/../a.ir"}}, ""},
		{Item{Model: Source{Path: "../secret.ir"}}, "leads out of the root"},
		{Item{Model: Source{Path: "link.ir"}}, "leads out of the root"},
		{Item{Model: Source{Path: secret}}, "is not below the root"},
		{Item{Model: Source{Path: "a.ir"}, Name: "../../a"}, "no file can have the name"},
		{Item{Model: Source{Path: "a.ir"}, Options: []Option{{Name: "weights", File: &Source{Path: "a.ir"}}}}, ""},
		{Item{Model: Source{Path: "a.ir"}, Options: []Option{{Name: "weights", File: &Source{Path: secret}}}}, "is not below the root"},
		{Item{Model: Source{Path: "a.ir"}, Options: []Option{{Name: "weights", Value: secret}}}, "it is no option with a file"},
		{Item{Model: Source{Path: "a.ir"}, Options: []Option{{Name: "weights", Value: secret + "\x00", File: &Source{Path: "a.ir"}}}}, "want NAME=FILE"},
		{Item{Model: Source{Path: "a.ir"}, Options: []Option{{Name: "only-ops", Value: "webnn"}}}, ""},
		{Item{Model: Source{Path: "a.ir"}, Options: []Option{{Name: "only-ops", Value: secret}}}, "it is no option with a file"},
		{Item{Model: Source{Path: "a.ir"}, Options: []Option{{Name: "only-ops", File: &Source{Path: secret}}}}, "is not below the root"},
		{Item{Model: Source{Path: "a.ir"}, Options: []Option{{Name: "output", Value: "/tmp/x"}}}, "has no option"},
		{Item{Model: Source{Path: "a.ir"}, Options: []Option{{Name: "opset=1 --output", Value: "/tmp/x"}}}, "has no option"},
		{Item{Model: Source{URL: "http://127.0.0.1:1/a.ir"}}, "does not fetch"},
		{Item{Model: Source{Objects: []File{{Name: "../x"}}, Entry: "x"}}, "no queue"},
	} {
		r := do(t, b, b.worker(root), c.item)
		if c.want == "" && r.Status != OK || c.want != "" && (r.Status != Failed || !strings.Contains(r.Diagnostics[0].Message, c.want)) {
			t.Errorf("%+v: %+v, want %q", c.item, r, c.want)
		}
	}
	free := b.worker(root)
	free.AnyPath = true
	if r := do(t, b, free, Item{Model: Source{Path: secret}}); r.Status != OK {
		t.Errorf("--any-path: %+v", r)
	}
	own := b.worker(root)
	own.Trusted = func(*Item) bool { return true }
	if r := do(t, b, own, Item{Model: Source{Path: secret}}); r.Status != OK {
		t.Errorf("the owner's item: %+v", r)
	}
}

// URLs are fetched if they begin as they may, and lead to no others.
func TestURLs(t *testing.T) {
	b := newBench(t, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("/models/a.ir", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("fine")) })
	mux.HandleFunc("/models/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/private/a.ir", http.StatusFound) })
	mux.HandleFunc("/private/a.ir", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("fine")) })
	server := httptest.NewServer(mux)
	defer server.Close()
	w := b.worker(t.TempDir())
	w.URLs = []string{server.URL + "/models/"}
	for path, want := range map[string]string{
		"/models/a.ir":                    "",
		"/models/a.ir?token=geheim":       "",
		"/models/none?token=geheim":       "404",
		"/models/away?token=geheim":       "does not fetch",
		"/private/a.ir?token=geheim":      "does not fetch",
		"/models/../private/a.ir":         "does not fetch",
		"/modelsandmore/a.ir":             "does not fetch",
		"@models.example.org/models/a.ir": "does not fetch",
	} {
		r := do(t, b, w, Item{Model: Source{URL: server.URL + path}})
		if want == "" && r.Status != OK || want != "" && (r.Status == OK || !strings.Contains(r.Diagnostics[0].Message, want)) {
			t.Errorf("%s: %+v, want %q", path, r, want)
		}
		for _, d := range r.Diagnostics {
			if strings.Contains(d.Message, "geheim") {
				t.Errorf("%s: a secret is told: %s", path, d.Message)
			}
		}
	}
}

// What is told of a server's URL has no password and no token.
func TestRedacted(t *testing.T) {
	if got := redactedURLs("nats://user:geheim@a:4222, tls://geheim@b:4222,%zz"); got != "nats://a:4222,tls://b:4222,the queue" {
		t.Error(got)
	}
	_, err := Dial(Access{URLs: "nats://user:geheim@127.0.0.1:1"}, "1", Taker, nil)
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
}

// The external data of an ONNX model belongs to it, wherever in the model it is named.
func TestExternalData(t *testing.T) {
	named := func(location string) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{ExternalData: []*onnxpb.StringStringEntryProto{
			{Key: proto.String("location"), Value: proto.String(location)}, {Key: proto.String("offset"), Value: proto.String("0")}}}
	}
	inner := &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{named("inner.data")}}
	m := &onnxpb.ModelProto{IrVersion: proto.Int64(8), Graph: &onnxpb.GraphProto{
		Initializer: []*onnxpb.TensorProto{named("w.data"), named("w.data"), named("../outside.data"), named("missing.data")},
		Node:        []*onnxpb.NodeProto{{Attribute: []*onnxpb.AttributeProto{{G: inner}, {T: named("attribute.data")}}}},
	}, Functions: []*onnxpb.FunctionProto{{Node: []*onnxpb.NodeProto{{Attribute: []*onnxpb.AttributeProto{{Tensors: []*onnxpb.TensorProto{named("function.data")}}}}}}}}
	text, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "models")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	put("m.onnx", string(text))
	for _, name := range []string{"w.data", "inner.data", "attribute.data", "function.data", "other.data", "../outside.data"} {
		put(name, name)
	}
	hash := func() string {
		t.Helper()
		b, err := filesOf(filepath.Join(dir, "m.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		if want := []string{"m.onnx", "attribute.data", "function.data", "inner.data", "w.data"}; !slices.Equal(b.names, want) {
			t.Errorf("%v, want %v", b.names, want)
		}
		_, h, err := b.hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	before := hash()
	put("other.data", "changed")
	if hash() != before {
		t.Error("a file that is none of the model changes its hash")
	}
	put("inner.data", "changed")
	if hash() == before {
		t.Error("other weights have the same hash")
	}
}

// Damaged models end the search for external data, and nothing else.
func FuzzExternal(f *testing.F) {
	text, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: proto.Int64(8), Graph: &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{
		{ExternalData: []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("w")}}}}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("\x08\x08\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, location := range external(data) {
			if len(location) > len(data) {
				t.Error(location)
			}
		}
	})
}

// Home removes what workers that were killed left behind, and nothing of those that live.
func TestHome(t *testing.T) {
	dir := t.TempDir()
	alive, dead := &Worker{}, filepath.Join(dir, "dead")
	if err := errors.Join(os.Mkdir(dead, 0o777), os.WriteFile(dead+".lock", nil, 0o666), os.WriteFile(filepath.Join(dead, "item"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	freeAlive, err := alive.Home(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dead); err == nil {
		t.Error("the folder of a dead worker is still there")
	}
	other := &Worker{}
	freeOther, err := other.Home(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(alive.Folder); err != nil || alive.Folder == other.Folder {
		t.Error("a worker that lives has no folder", err)
	}
	freeAlive()
	freeOther()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// external1 is a model whose weights are in a file.
func external1(location string) string {
	text, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: proto.Int64(8), Graph: &onnxpb.GraphProto{Initializer: []*onnxpb.TensorProto{
		{ExternalData: []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String(location)}}}}}})
	if err != nil {
		panic(err) // strings and numbers
	}
	return string(text)
}
