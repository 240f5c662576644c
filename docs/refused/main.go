// The command refused writes docs/refused.md, "Why is my model refused?", of the pages of docs/diagnostics.
package main

//go:generate go run . ../refused.md

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aton-project/aton/docs/diagnostics"
)

// sections put the identifiers in the order in which a user looks for them. Each identifier is in one of them.
var sections = []struct {
	title, text string
	ids         []string
}{
	{"The operator", "An operator of the model has no conversion, or none for the way it is called.",
		[]string{"unsupported-op", "gradient", "unsupported-args", "unsupported-type", "unsupported-value", "not-expressible", "opset", "no-rule", "unavailable-op", "complex-value", "const-arg", "invalid-args"}},
	{"Sizes and types", "What the inputs are does not fit the model, or must be known and is not.",
		[]string{"input-spec", "axis-size", "dynamic-axis", "dynamic-rank", "dynamic-dtype", "unknown-dtype", "unknown-shape"}},
	{"Python that runs when the model does", "A list, a dict, a string, a branch or a loop depends on the data.",
		[]string{"dynamic-container", "dict-key", "optional-data", "string-data", "loop-carried", "raises", "recursion", "empty-container", "submodule-assigned", "too-large", "budget"}},
	{"Writes", "ONNX has values and no memory. A write of the program becomes a new value, if it is known what else shows the memory.",
		[]string{"alias", "mutation", "overlap", "view", "view-write", "state"}},
	{"The file that was saved", "", []string{"unreadable", "file", "disk-full", "syntax", "missing-function", "no-body", "bad-call", "attribute", "output", "output-names"}},
	{"An ONNX file as the model", "A file that breaks the rules of ONNX is not converted, since nobody knows what it means. `--repair` reads what runtimes load all the same, and tells each change.",
		[]string{"onnx-arity", "onnx-attribute", "onnx-function", "onnx-name", "onnx-op", "onnx-operator", "onnx-shape", "onnx-stated", "onnx-tensor", "onnx-type", "onnx-version"}},
	{"Rules and the command", "", []string{"rules", "usage", "denied", "differs", "failed"}},
	{"Many models at once", "", []string{"memory", "timeout", "not-allowed", "set-aside"}},
	{"Warnings", "These refuse nothing. The model is right where what they say holds.",
		[]string{"assumes", "axis-of-one", "complex-pairs", "decided", "tried", "newer-opset", "not-empty", "traced-size", "training-mode", "autocast", "dropped-assert", "dropped-output", "float-range", "renamed-pass", "unused-input", "unused-name", "unused-rule", "wider-bfloat16", "wider-weights"}},
	{"Defects of aton", "Please report them, with the reproducer that is written.", []string{"internal", "invalid-onnx", "verify"}},
}

const head = `# Why is my model refused?

<!-- made by docs/refused from docs/diagnostics: make gen -->

A conversion that could give wrong numbers is refused, with all reasons at once. To find what to do:

1. ` + "`aton check MODEL`" + ` (in Python ` + "`aton.check(model, args)`" + `) says what, and at which line of your program. It takes the same options as ` + "`aton export`" + `.
2. Each reason has an identifier: ` + "`--json`" + ` and ` + "`--sarif`" + ` have it, ` + "`e.diagnostics[0].id`" + ` in Python. ` + "`aton explain ID`" + ` prints the page on it.
3. No identifier? Look for the words below.

` + "`--verbose`" + ` adds notes and the frames around a line, ` + "`--quiet`" + ` leaves errors alone, ` + "`--allow ID`" + ` drops a warning, and ` + "`--deny ID`" + ` (or ` + "`--deny warnings`" + `) makes an
error of it. A file ` + "`aton.toml`" + ` beside the model has the options of a project, by the names of the flags; the command line goes before it:

` + "```toml" + `
opset = 17
input = ["x:f32[N,3,224,224]"]
deny = ["warnings"]
allow = ["state"]
` + "```" + `

Three things help often: save with ` + "`torch.export`" + ` instead of a trace, or the other way round; give a size as a number instead of a name
(` + "`--input 'x:f32[1,3,224,224]'`" + `); ask for a newer opset (` + "`--opset 21`" + `).
`

func main() {
	text, err := page()
	if err == nil {
		err = os.WriteFile(os.Args[1], []byte(text), 0o666)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "refused: "+err.Error())
		os.Exit(1)
	}
}

// page is the text of the page. It fails if an identifier is in no section, or in two.
func page() (string, error) {
	var b strings.Builder
	b.WriteString(head)
	var listed []string
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n", s.title)
		if s.text != "" {
			b.WriteString(s.text + "\n\n")
		}
		b.WriteString("| | what it means | what to do |\n| --- | --- | --- |\n")
		for _, id := range s.ids {
			remedy, err := remedy(id)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "| [%s](diagnostics/%s.md) | %s | %s |\n", id, id, cell(diagnostics.Title(id)), cell(remedy))
			listed = append(listed, id)
		}
	}
	slices.Sort(listed)
	for _, id := range diagnostics.IDs() {
		if n := len(listed) - len(slices.DeleteFunc(slices.Clone(listed), func(s string) bool { return s == id })); n != 1 {
			return "", fmt.Errorf("%s is in %d sections of docs/refused, not in one", id, n)
		}
	}
	return b.String(), nil
}

// remedy is the first paragraph of what a page says to do.
func remedy(id string) (string, error) {
	text, _ := diagnostics.Page(id)
	_, todo, ok := strings.Cut(text, "\n## What to do\n")
	if !ok {
		return "", fmt.Errorf("there is no page %s, or it does not say what to do", id)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(todo), "\n\n")
	if strings.HasPrefix(first, "```") || strings.HasPrefix(first, "- ") || strings.HasSuffix(first, ":") {
		return "see the page", nil
	}
	return first, nil
}

// cell is text in a table.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
