package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// example is a command of a page, and what it says if it fails.
type example struct {
	line  int
	args  []string
	fails string
}

// examplesOf takes the commands out of the blocks of a page that are marked as sh.
func examplesOf(t *testing.T, page string) (out []example) {
	t.Helper()
	inside := false
	n := 0
	for text := range strings.Lines(page) {
		text = strings.TrimSpace(text)
		n++
		switch {
		case strings.HasPrefix(text, "```"):
			inside = text == "```sh"
		case !inside || text == "":
		case strings.HasPrefix(text, "# fails: "):
			out[len(out)-1].fails = strings.TrimPrefix(text, "# fails: ")
		case strings.HasPrefix(text, "aton "):
			out = append(out, example{line: n, args: words(text)[1:]})
		default:
			t.Errorf("line %d is no command of aton: %s", n, text)
		}
	}
	return out
}

// words splits a command at blanks; text in single quotes is one word.
func words(command string) (out []string) {
	for _, w := range regexp.MustCompile(`'[^']*'|[^\s']+(?:'[^']*')?`).FindAllString(command, -1) {
		out = append(out, strings.ReplaceAll(w, "'", ""))
	}
	return out
}

// TestTorchONNX runs the commands of the page for those who come from torch.onnx, in its order, on the fixtures.
func TestTorchONNX(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/torch-onnx.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(fixtures + "*")
	graphs, err2 := filepath.Glob("../../../judge/seedcheck/graphs/*")
	if err != nil || err2 != nil || len(files) == 0 || len(graphs) == 0 {
		t.Fatal("no fixtures", err, err2)
	}
	files = append(files, graphs...)
	dir := t.TempDir()
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	code, err := os.ReadFile("../../../../example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("`(Example_[A-Za-z]+)`").FindAllSubmatch(page, -1) {
		if !bytes.Contains(code, append(append([]byte("func "), name[1]...), "()"...)) {
			t.Errorf("there is no %s", name[1])
		}
	}
	commands := examplesOf(t, string(page))
	if len(commands) < 30 {
		t.Fatalf("only %d commands in the page", len(commands))
	}
	t.Chdir(dir)
	for _, e := range commands {
		status, _, said := call("", e.args...)
		said = inOneLine(withoutWarnings(said))
		switch {
		case e.fails == "" && status != 0:
			t.Errorf("line %d: aton %s: status %d: %s", e.line, strings.Join(e.args, " "), status, said)
		case e.fails != "" && (status == 0 || !strings.Contains(said, e.fails)):
			t.Errorf("line %d: aton %s: status %d, want %q, got %s", e.line, strings.Join(e.args, " "), status, e.fails, said)
		}
	}
}
