// Package lsp is a language server for graph text (.ir): it tells editors what is wrong while somebody types, what an operator is, where a value
// comes from and what may stand at a place, runs passes on an open file, and the RUN lines of a text test when it is saved. It speaks the
// Language Server Protocol 3.16 over a stream.
package lsp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"sort"
	"strings"
	"sync"

	"github.com/sourcegraph/jsonrpc2"
	"github.com/tliron/glsp"
	protocol "github.com/tliron/glsp/protocol_3_16"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/lib/lit/script"
)

// RunPasses is the command that runs a pipeline on an open file. Its arguments are the URI and the pipeline; its result is the text of the
// module behind it.
const RunPasses = "aton.runPasses"

// Server is a language server.
type Server struct {
	// Version is what the server says of itself.
	Version string
	// Commands are those that RUN lines may call; nil leaves RUN lines alone.
	Commands map[string]script.Command

	mu    sync.Mutex
	files map[protocol.DocumentUri]string
}

// Serve answers the requests of a stream until it ends or the client says so.
func (s *Server) Serve(ctx context.Context, stream io.ReadWriteCloser) error {
	s.files = map[protocol.DocumentUri]string{}
	h := s.handler()
	conn := jsonrpc2.NewConn(ctx, jsonrpc2.NewBufferedStream(stream, jsonrpc2.VSCodeObjectCodec{}), jsonrpc2.HandlerWithError(
		func(ctx context.Context, c *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
			call := &glsp.Context{Method: r.Method, Notify: func(method string, params any) { _ = c.Notify(ctx, method, params) }}
			if r.Params != nil {
				call.Params = *r.Params
			}
			if r.Method == "exit" {
				return nil, c.Close()
			}
			result, known, valid, err := h.Handle(call)
			switch {
			case !known:
				return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "there is no method " + r.Method}
			case !valid:
				return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: fmt.Sprint(err)}
			}
			return result, err
		}))
	select {
	case <-ctx.Done():
		return errors.Join(ctx.Err(), conn.Close())
	case <-conn.DisconnectNotify():
		return nil
	}
}

func (s *Server) handler() *protocol.Handler {
	return &protocol.Handler{
		Initialize:  s.initialize,
		Initialized: func(*glsp.Context, *protocol.InitializedParams) error { return nil },
		Shutdown:    func(*glsp.Context) error { return nil },
		SetTrace:    func(*glsp.Context, *protocol.SetTraceParams) error { return nil },
		TextDocumentDidOpen: func(c *glsp.Context, p *protocol.DidOpenTextDocumentParams) error {
			return s.changed(c, p.TextDocument.URI, p.TextDocument.Text)
		},
		TextDocumentDidChange:   s.didChange,
		TextDocumentDidSave:     s.didSave,
		TextDocumentDidClose:    s.didClose,
		TextDocumentHover:       s.hover,
		TextDocumentDefinition:  s.definition,
		TextDocumentCompletion:  s.completion,
		WorkspaceExecuteCommand: s.execute,
	}
}

func (s *Server) initialize(*glsp.Context, *protocol.InitializeParams) (any, error) {
	yes, full := true, protocol.TextDocumentSyncKindFull
	return protocol.InitializeResult{
		Capabilities: protocol.ServerCapabilities{
			TextDocumentSync:       protocol.TextDocumentSyncOptions{OpenClose: &yes, Change: &full, Save: protocol.SaveOptions{IncludeText: &yes}},
			HoverProvider:          true,
			DefinitionProvider:     true,
			CompletionProvider:     &protocol.CompletionOptions{TriggerCharacters: []string{":", "["}},
			ExecuteCommandProvider: &protocol.ExecuteCommandOptions{Commands: []string{RunPasses}},
		},
		ServerInfo: &protocol.InitializeResultServerInfo{Name: "aton", Version: &s.Version},
	}, nil
}

// text is the text of an open file.
func (s *Server) text(uri protocol.DocumentUri) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[uri]
}

// changed notes the text of a file, and tells what is wrong with it.
func (s *Server) changed(c *glsp.Context, uri protocol.DocumentUri, text string) error {
	s.mu.Lock()
	s.files[uri] = text
	s.mu.Unlock()
	_, found := parse(pathOf(uri), text)
	s.publish(c, uri, text, found)
	return nil
}

func (s *Server) publish(c *glsp.Context, uri protocol.DocumentUri, text string, found []problem) {
	source := "aton"
	list := []protocol.Diagnostic{}
	for _, p := range found {
		severity := protocol.DiagnosticSeverityError
		if p.warning {
			severity = protocol.DiagnosticSeverityWarning
		}
		list = append(list, protocol.Diagnostic{Range: lineRange(text, p.line, p.col), Severity: &severity, Source: &source, Message: p.message})
	}
	c.Notify(string(protocol.ServerTextDocumentPublishDiagnostics), protocol.PublishDiagnosticsParams{URI: uri, Diagnostics: list})
}

func (s *Server) didChange(c *glsp.Context, p *protocol.DidChangeTextDocumentParams) error {
	for _, change := range p.ContentChanges {
		if whole, ok := change.(protocol.TextDocumentContentChangeEventWhole); ok {
			if err := s.changed(c, p.TextDocument.URI, whole.Text); err != nil {
				return err
			}
		}
	}
	return nil
}

// didSave runs the RUN lines of a text test.
func (s *Server) didSave(c *glsp.Context, p *protocol.DidSaveTextDocumentParams) error {
	text := s.text(p.TextDocument.URI)
	if p.Text != nil {
		text = *p.Text
	}
	_, found := parse(pathOf(p.TextDocument.URI), text)
	if s.Commands != nil && strings.Contains(text, "RUN:") {
		found = append(found, s.runLines(pathOf(p.TextDocument.URI))...)
	}
	s.publish(c, p.TextDocument.URI, text, found)
	return nil
}

// runLines runs a text test, and says which of its lines fails.
func (s *Server) runLines(path string) []problem {
	test, err := script.Parse(path)
	if err != nil {
		return []problem{{message: err.Error()}}
	}
	scratch, err := os.MkdirTemp("", "aton-lsp-")
	if err != nil {
		return []problem{{message: err.Error()}}
	}
	defer os.RemoveAll(scratch)
	err = (&script.Runner{Commands: s.Commands}).Run(test, scratch)
	var failed *script.Error
	switch {
	case errors.As(err, &failed):
		return []problem{{line: failed.Line.Number - 1, message: failed.Reason + "\n" + failed.Output}}
	case err != nil:
		return []problem{{message: err.Error()}}
	}
	return nil
}

func (s *Server) didClose(c *glsp.Context, p *protocol.DidCloseTextDocumentParams) error {
	s.mu.Lock()
	delete(s.files, p.TextDocument.URI)
	s.mu.Unlock()
	s.publish(c, p.TextDocument.URI, "", nil)
	return nil
}

func (s *Server) hover(_ *glsp.Context, p *protocol.HoverParams) (*protocol.Hover, error) {
	text := s.text(p.TextDocument.URI)
	line := lineText(text, int(p.Position.Line))
	w := word(line, column(line, p.Position.Character))
	var said string
	if name, value := strings.CutPrefix(w, "%"); value {
		at, _, ok := definition(text, name, int(p.Position.Line))
		if !ok {
			return nil, nil
		}
		said = "```\n" + strings.TrimSpace(lineText(text, at)) + "\n```"
	} else if said = describe(ssa.Kind(w)); said == "" {
		return nil, nil
	}
	return &protocol.Hover{Contents: protocol.MarkupContent{Kind: protocol.MarkupKindMarkdown, Value: said}}, nil
}

func (s *Server) definition(_ *glsp.Context, p *protocol.DefinitionParams) (any, error) {
	text := s.text(p.TextDocument.URI)
	line := lineText(text, int(p.Position.Line))
	name, value := strings.CutPrefix(word(line, column(line, p.Position.Character)), "%")
	if !value {
		return nil, nil
	}
	at, col, ok := definition(text, name, int(p.Position.Line))
	if !ok {
		return nil, nil
	}
	return protocol.Location{URI: p.TextDocument.URI, Range: protocol.Range{Start: position(text, at, col), End: position(text, at, col+1+len(name))}}, nil
}

func (s *Server) completion(_ *glsp.Context, p *protocol.CompletionParams) (any, error) {
	line := lineText(s.text(p.TextDocument.URI), int(p.Position.Line))
	before := line[:column(line, p.Position.Character)]
	items := []protocol.CompletionItem{}
	add := func(label string, kind protocol.CompletionItemKind, detail string) {
		items = append(items, protocol.CompletionItem{Label: label, Kind: &kind, Detail: &detail})
	}
	if open := strings.LastIndexByte(before, '['); open >= 0 && !strings.Contains(before[open:], "]") {
		if at := kindAt.FindAllString(before[:open], -1); len(at) > 0 {
			if schema := onnx.SchemaOf(ssa.Kind(at[len(at)-1])); schema != nil {
				for _, a := range schema.Attrs {
					add(a.Name, protocol.CompletionItemKindProperty, fmt.Sprint(a.Type))
				}
				return items, nil
			}
		}
	}
	for ns, kinds := range map[string]func() []ssa.Kind{"aten": aten.Kinds, onnx.Namespace: onnx.Kinds} {
		at := strings.LastIndex(before, ns+"::")
		if at < 0 || strings.ContainsAny(before[at:], " (") {
			continue
		}
		for _, k := range kinds() {
			if name := strings.TrimPrefix(string(k), ns+"::"); strings.HasPrefix(name, before[at+len(ns)+2:]) {
				add(name, protocol.CompletionItemKindFunction, string(k))
			}
		}
	}
	sort.Slice(items, func(i, j int) bool { return items[i].Label < items[j].Label })
	return items, nil
}

// execute runs a pipeline on an open file.
func (s *Server) execute(_ *glsp.Context, p *protocol.ExecuteCommandParams) (any, error) {
	if p.Command != RunPasses || len(p.Arguments) != 2 {
		return nil, fmt.Errorf("the command is %s with a URI and a pipeline", RunPasses)
	}
	uri, pipeline := fmt.Sprint(p.Arguments[0]), fmt.Sprint(p.Arguments[1])
	m, found := parse(pathOf(uri), s.text(uri))
	if m == nil {
		return nil, errors.New(found[0].message)
	}
	run, err := all.Set.Parse(pipeline)
	if err != nil {
		return nil, err
	}
	list, err := run.Run(m, nil)
	if err == nil {
		err = list.Err()
	}
	if err != nil {
		return nil, err
	}
	return ssa.Print(m), nil
}

// pathOf is the path of a file's URI, or the URI of what is no file.
func pathOf(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return uri
	}
	return u.Path
}
