package lsp

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/aton-project/aton/tools/lib/filecheck"
	"github.com/aton-project/aton/tools/lib/lit/script"
)

// client talks to a server as an editor does.
type client struct {
	t    *testing.T
	conn *jsonrpc2.Conn
	told chan string // the diagnostics of a file, as JSON
}

func connect(t *testing.T) *client {
	t.Helper()
	near, far := net.Pipe()
	c := &client{t: t, told: make(chan string, 100)}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	s := Server{Version: "1.2.3", Commands: map[string]script.Command{"FileCheck": filecheck.Main, "cat": script.Cat}}
	go func() { ended <- s.Serve(ctx, far) }()
	c.conn = jsonrpc2.NewConn(ctx, jsonrpc2.NewBufferedStream(near, jsonrpc2.VSCodeObjectCodec{}), jsonrpc2.HandlerWithError(
		func(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
			c.told <- string(*r.Params)
			return nil, nil
		}))
	t.Cleanup(func() {
		_ = c.conn.Notify(ctx, "exit", nil)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("the server does not end")
		}
		cancel()
		_ = c.conn.Close()
	})
	return c
}

// ask makes a request, and returns the result as JSON, or the error.
func (c *client) ask(method, params string) string {
	c.t.Helper()
	var result json.RawMessage
	if err := c.conn.Call(context.Background(), method, json.RawMessage(params), &result); err != nil {
		return err.Error()
	}
	return string(result)
}

// tell makes a notification, and returns what the server says of the file then.
func (c *client) tell(method, params string) string {
	c.t.Helper()
	if err := c.conn.Notify(context.Background(), method, json.RawMessage(params)); err != nil {
		c.t.Fatal(err)
	}
	select {
	case said := <-c.told:
		return said
	case <-time.After(20 * time.Second):
		c.t.Fatalf("%s: no answer", method)
		return ""
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

const graph = `# a graph
graph(%x : Float(2, 3)):
  %one : int = prim::Constant[value=1]()
  %ä : Tensor = aten::add(%x, %x, %one)
  %y : Float(2, 3) = onnx::LeakyRelu[alpha=0.5](%ä)
  return (%y)
`

// TestSession is a session of an editor, request by request.
func TestSession(t *testing.T) {
	c := connect(t)
	file := filepath.Join(t.TempDir(), "graph.ir")
	uri := "file://" + file
	document := func(rest string) string { return `{"textDocument": {"uri": "` + uri + `"}` + rest + `}` }
	at := func(line, character string) string {
		return document(`, "position": {"line": ` + line + `, "character": ` + character + `}`)
	}
	open := func(text string) string {
		return c.tell("textDocument/didOpen", `{"textDocument": {"uri": "`+uri+`", "languageId": "aton", "version": 1, "text": `+quote(text)+`}}`)
	}
	change := func(text string) string {
		return c.tell("textDocument/didChange", `{"textDocument": {"uri": "`+uri+`", "version": 2}, "contentChanges": [{"text": `+quote(text)+`}]}`)
	}
	line := func(n string) string { return `"line":` + n + `},"start"` }
	for _, step := range []struct{ what, got, want string }{
		{"capabilities", c.ask("initialize", `{"capabilities": {}}`), `"executeCommandProvider":{"commands":["aton.runPasses"]}`},
		{"name and version", c.ask("initialize", `{"capabilities": {}}`), `"serverInfo":{"name":"aton","version":"1.2.3"}`},
		{"a text without errors", open(strings.Replace(graph, "ä", "a", 2)), `"diagnostics":[]`},
		{"a syntax error while typing", change(strings.Replace(graph, "return (", "return ", 1)), line("3")},
		{"an operator that PyTorch does not have", change(strings.Replace(strings.Replace(graph, "ä", "a", 2), "aten::add", "aten::ad", 1)), `did you mean \"aten::add\"?`},
		{"its line", change(strings.Replace(strings.Replace(graph, "ä", "a", 2), "aten::add", "aten::ad", 1)), line("3")},
		{"an operand that is missing", change(strings.Replace(strings.Replace(graph, "ä", "a", 2), "%x, %x, %one", "%x", 1)), line("3")},
		{"a value that is not defined", change(strings.Replace(strings.Replace(graph, "ä", "a", 2), "(%x, %x", "(%z, %x", 1)), "z"},
		{"well again", change(strings.Replace(graph, "ä", "a", 2)), `"diagnostics":[]`},
		{"an operator of PyTorch", c.ask("textDocument/hover", at("3", "20")), `aten::add.Tensor(Tensor self, Tensor other`},
		{"an operator of ONNX", c.ask("textDocument/hover", at("4", "28")), "- `alpha`: float = "},
		{"the type of a value", c.ask("textDocument/hover", at("4", "49")), `%a : Tensor = aten::add(%x, %x, %one)`},
		{"nothing to say", c.ask("textDocument/hover", at("0", "3")), "null"},
		{"where a value is defined", c.ask("textDocument/definition", at("3", "27")), `"range":{"start":{"line":1,"character":6},"end":{"line":1,"character":8}}`},
		{"operators", c.ask("textDocument/completion", at("3", "24")), `"label":"add"`},
		{"attributes", c.ask("textDocument/completion", at("4", "38")), `"label":"alpha"`},
		{"a pass", c.ask("workspace/executeCommand", `{"command": "aton.runPasses", "arguments": ["`+uri+`", "infer-types"]}`), `%a : Float(2, 3) = aten::add(%x, %x, %one)`},
		{"a pass that there is not", c.ask("workspace/executeCommand", `{"command": "aton.runPasses", "arguments": ["`+uri+`", "infer-tipes"]}`), `did you mean \"infer-types\"?`},
		{"a method that there is not", c.ask("textDocument/rename", document("")), "no method textDocument/rename"},
		{"the end", c.ask("shutdown", "null"), "null"},
	} {
		if !strings.Contains(step.got, step.want) && !strings.Contains(step.got, strings.ReplaceAll(step.want, `\"`, `"`)) {
			t.Errorf("%s: %s; want %s", step.what, step.got, step.want)
		}
	}
}

// TestRunLines: a text test that is saved is run; a line that fails is marked.
func TestRunLines(t *testing.T) {
	c := connect(t)
	c.ask("initialize", `{"capabilities": {}}`)
	for want, check := range map[string]string{`"diagnostics":[]`: "graph(", `"start":{"character":0,"line":0}`: "nosuch("} {
		file := filepath.Join(t.TempDir(), "test.ir")
		text := "# RUN: cat %s | FileCheck %s\n# CHECK: {{^}}" + check + "\ngraph(%x : Float(2)):\n  return (%x)\n"
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		uri := "file://" + file
		if said := c.tell("textDocument/didOpen", `{"textDocument": {"uri": "`+uri+`", "languageId": "aton", "version": 1, "text": `+quote(text)+`}}`); !strings.Contains(said, `"diagnostics":[]`) {
			t.Errorf("open: %s", said)
		}
		if said := c.tell("textDocument/didSave", `{"textDocument": {"uri": "`+uri+`"}}`); !strings.Contains(said, want) {
			t.Errorf("save: %s; want %s", said, want)
		}
	}
}
