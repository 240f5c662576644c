package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// reduce finds the operator that a command fails for, in graph text and in an ONNX file, and says so where nothing fails.
func TestReduce(t *testing.T) {
	dir := t.TempDir()
	graph, onnxFile, small := filepath.Join(dir, "graph.ir"), filepath.Join(dir, "graph.onnx"), filepath.Join(dir, "small")
	text := `graph(%x : Float(2, 3)):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::add(%a, %x, %one)
  %c : Tensor = aten::sigmoid(%b)
  %d : Tensor = aten::tanh(%c)
  return (%d, %a)
`
	if err := os.WriteFile(graph, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if status, _, said := call("", "export", graph, "-o", onnxFile); status != 0 {
		t.Fatal(said)
	}
	fails := func(word string) []string { // for a file that has the word
		return []string{"--", "sh", "-c", "grep -q " + word + ` "$1" && exit 3; exit 0`, "x", "{}"}
	}
	for _, c := range []struct {
		model, word, ext string
	}{{graph, "aten::sigmoid", ".ir"}, {onnxFile, "Sigmoid", ".onnx"}} {
		args := append([]string{"reduce", c.model, "-o", small + c.ext}, fails(c.word)...)
		if status, _, said := call("", args...); status != 0 || !strings.Contains(said, "1 operators") {
			t.Errorf("%s: status %d: %s", c.model, status, said)
		}
		status, out, said := call("", "inspect", small+c.ext)
		if status != 0 || !strings.Contains(strings.ToLower(out), "sigmoid") || strings.Contains(strings.ToLower(out), "tanh") {
			t.Errorf("%s: %s%s", c.model, out, said)
		}
	}
	for want, args := range map[string][]string{
		"does not fail":    append([]string{"reduce", graph}, fails("nosuch")...),
		"behind --":        {"reduce", graph},
		"many times":       append([]string{"reduce", "-"}, fails("x")...),
		"--match":          append([]string{"reduce", graph, "--match", "("}, fails("x")...),
		"there is nothing": append([]string{"reduce", graph, "--match", "nosuch"}, fails("aten")...),
		"nosuchcommand":    {"reduce", graph, "--", "nosuchcommand"},
		"no such file":     append([]string{"reduce", graph + ".no"}, fails("x")...),
	} {
		if status, _, said := call("", args...); status == 0 || !strings.Contains(said, want) {
			t.Errorf("%v: status %d: %s; want %s", args, status, said, want)
		}
	}
}
