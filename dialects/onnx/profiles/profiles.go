// Package profiles has the operators of runtimes, as their own documentation lists them. Each file names its source. A list says nothing of element types and
// of limits on attributes and shapes: the page of its source does.
package profiles

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
)

//go:embed *.txt
var files embed.FS

// Names lists the runtimes that there are profiles of, sorted.
func Names() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the folder is embedded
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimSuffix(e.Name(), ".txt"))
	}
	slices.Sort(out)
	return out
}

// Get returns the operators of a runtime; ok is false if there is no profile of it.
func Get(name string) (operators []string, ok bool) {
	if !slices.Contains(Names(), name) {
		return nil, false
	}
	b, err := files.ReadFile(name + ".txt")
	if err != nil {
		return nil, false
	}
	operators, err = Parse(string(b))
	return operators, err == nil
}

// Parse reads a list of operators: one a line, such as Conv or com.microsoft::Gelu. What follows a # is a comment.
func Parse(text string) ([]string, error) {
	var out []string
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		name := strings.TrimSpace(line)
		switch {
		case name == "":
		case strings.ContainsAny(name, " \t,;"):
			return nil, fmt.Errorf("line %d: %q: want one operator, such as Conv or com.microsoft::Gelu", n, name)
		case !strings.Contains(name, "::") && len(onnx.Versions(name)) == 0:
			return nil, fmt.Errorf("line %d: ONNX has no operator %s", n, name)
		default:
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("it has no operators")
	}
	return out, nil
}
