package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/internal/markdown"
	opt "github.com/aton-project/aton/tools/cmd/aton-opt/cmd"
	atoncmd "github.com/aton-project/aton/tools/cmd/aton/cmd"
)

// TestRules converts every graph of the page on rules with the rules that stand above it.
func TestRules(t *testing.T) {
	page, err := markdown.Blocks("docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	rules := filepath.Join(dir, "page.rules")
	var all strings.Builder
	graphs := 0
	for _, b := range page {
		switch b.Kind {
		case "rules":
			all.WriteString(b.Text)
			if err := os.WriteFile(rules, []byte(all.String()), 0o666); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			if status := opt.Main([]string{"-", "--rules", rules}, strings.NewReader("graph(%x : Tensor):\n  return (%x)\n"), &out, &errs); status != 0 {
				t.Errorf("rules.md:%d: %s", b.Line, errs.String())
			}
		case "graph":
			graphs++
			before, want, ok := strings.Cut(b.Text, "# becomes\n")
			if !ok {
				t.Errorf("rules.md:%d: the graph does not say what it becomes", b.Line)
			}
			var out, errs bytes.Buffer
			if status := opt.Main([]string{"-", "--rules", rules, "--passes", "export", "--no-locs"}, strings.NewReader(before), &out, &errs); status != 0 || out.String()[max(0, strings.Index(out.String(), "graph(")):] != want {
				t.Errorf("rules.md:%d: the graph becomes\n%s%s", b.Line, out.String(), errs.String())
			}
		}
	}
	if graphs < 2 {
		t.Errorf("the page shows %d graphs", graphs)
	}
}

// TestTutorial runs the commands of the tutorial, and compares what they print with what the page shows.
func TestTutorial(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("docs/custom_operators")); err != nil {
		t.Fatal(err)
	}
	page, err := markdown.Blocks("docs/custom-operators.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	commands := 0
	for _, b := range page {
		switch b.Kind {
		case "rules", "python": // what the page shows of a file is in it
			files, err := filepath.Glob("*")
			if err != nil {
				t.Fatal(err)
			}
			shown := false
			for _, f := range files {
				text, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				shown = shown || strings.Contains(string(text), b.Text)
			}
			if !shown {
				t.Errorf("custom-operators.md:%d: no file has this block", b.Line)
			}
		case "console":
			for _, part := range strings.Split("\n"+b.Text, "\n$ ")[1:] {
				commands++
				line, want, _ := strings.Cut(part, "\n")
				args := strings.Fields(strings.ReplaceAll(line, "'", ""))
				var out bytes.Buffer
				atoncmd.Main(args[1:], strings.NewReader(""), &out, &out)
				if got := strings.TrimSpace(out.String()); got != strings.TrimSpace(want) {
					t.Errorf("custom-operators.md:%d: %s prints\n%s", b.Line, line, got)
				}
			}
		}
	}
	if commands < 5 {
		t.Errorf("the page has %d commands", commands)
	}
}
