package explore

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"

	"github.com/aton-project/aton/verify"
)

//go:embed web
var web embed.FS

// modules are the files of the page's program, each behind those that it imports.
var modules = []string{"dom.js", "drop.js", "source.js", "sizes.js", "index.js", "text.js", "diff.js", "stage.js", "code.js", "layout.js", "colour.js", "compare.js", "graph.js", "tables.js", "inspect.js", "main.js"}

var (
	imports = regexp.MustCompile(`(?m)^import .*;\n`)
	exports = regexp.MustCompile(`(?m)^export `)
)

// asset is a file of the page. They are all embedded.
func asset(name string) string {
	b, err := web.ReadFile("web/" + name)
	if err != nil {
		panic(err) // a table of ours is wrong
	}
	return string(b)
}

// program is the page's program as one module: the files one behind the other, without what joins them. The names at the top of
// the files are different ones.
func program() string {
	var b strings.Builder
	for _, name := range modules {
		fmt.Fprintf(&b, "// %s\n", name)
		b.WriteString(exports.ReplaceAllString(imports.ReplaceAllString(asset(name), ""), ""))
	}
	return b.String()
}

// Payload is what a page that needs no server has in it.
type Payload struct {
	Document *Document `json:"document"`
	Kernels  *Kernels  `json:"kernels,omitempty"`
	Numbers  *Numbers  `json:"numbers,omitempty"`
}

// HTML writes the page with the model in it, as one file that needs no network: the document, the kernels and, if there are data,
// the numbers.
func (s *Session) HTML(w io.Writer, data *verify.DataSet) error {
	p := Payload{Document: s.doc}
	if s.failed == nil {
		var err error
		if p.Kernels, err = s.Kernels(); err != nil {
			return err
		}
		if data != nil {
			if p.Numbers, err = s.Numbers(*data); err != nil {
				return err
			}
		}
	}
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(z).Encode(p); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return Page(w, "embedded", s.name, base64.StdEncoding.EncodeToString(b.Bytes()))
}

// Page writes the page. The source says where the document comes from: embedded (the payload, JSON in gzip in base64), server, or
// worker for the page that converts by itself.
func Page(w io.Writer, source, title, payload string) error {
	style, layout, code := asset("style.css"), "/*\n"+asset("vendor/dagre.LICENSE")+"*/\n"+asset("vendor/dagre.min.js"), program()
	connect := "'none'"
	switch source {
	case "server":
		connect = "'self'"
	case "worker":
		connect = "'self' blob:"
	}
	scripts := hash(layout) + " " + hash(code)
	worker := "'none'"
	if source == "worker" {
		scripts += " 'self' 'wasm-unsafe-eval' blob:"
		worker = "'self' blob:"
	}
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src blob: data:; connect-src %s; worker-src %s; base-uri 'none'; form-action 'none'",
		scripts, hash(style), connect, worker)
	_, err := io.WriteString(w, strings.NewReplacer(
		"{{policy}}", html.EscapeString(policy), "{{title}}", html.EscapeString(title), "{{source}}", source,
		"{{style}}", style, "{{layout}}", layout, "{{program}}", code, "{{payload}}", payload).Replace(asset("page.html")))
	return err
}

// hash is what the content security policy calls a script or a style.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
