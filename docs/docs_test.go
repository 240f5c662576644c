// Package docs has the pages for users; its tests run what they show.
package docs

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	opt "github.com/aton-project/aton/tools/aton-opt/cmd"
	aton "github.com/aton-project/aton/tools/aton/cmd"
)

// blocks gives the fenced blocks of a page, with what stands behind the fence.
func blocks(t *testing.T, page string) (out []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(text), "```")
	for i := 1; i < len(parts); i += 2 {
		kind, body, _ := strings.Cut(parts[i], "\n")
		out = append(out, block{kind, body, strings.Count(strings.Join(parts[:i], ""), "\n") + 1})
	}
	return out
}

type block struct {
	kind, text string
	line       int
}

// TestRules converts every graph of the page on rules with the rules that stand above it.
func TestRules(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, "page.rules")
	var all strings.Builder
	graphs := 0
	for _, b := range blocks(t, "rules.md") {
		switch b.kind {
		case "rules":
			all.WriteString(b.text)
			if err := os.WriteFile(rules, []byte(all.String()), 0o666); err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			if status := opt.Main([]string{"-", "--rules", rules}, strings.NewReader("graph(%x : Tensor):\n  return (%x)\n"), &out, &errs); status != 0 {
				t.Errorf("rules.md:%d: %s", b.line, errs.String())
			}
		case "graph":
			graphs++
			before, want, ok := strings.Cut(b.text, "# becomes\n")
			if !ok {
				t.Errorf("rules.md:%d: the graph does not say what it becomes", b.line)
			}
			var out, errs bytes.Buffer
			if status := opt.Main([]string{"-", "--rules", rules, "--passes", "export", "--no-locs"}, strings.NewReader(before), &out, &errs); status != 0 || out.String()[max(0, strings.Index(out.String(), "graph(")):] != want {
				t.Errorf("rules.md:%d: the graph becomes\n%s%s", b.line, out.String(), errs.String())
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
	if err := os.CopyFS(dir, os.DirFS("custom_operators")); err != nil {
		t.Fatal(err)
	}
	page := blocks(t, "custom-operators.md")
	t.Chdir(dir)
	commands := 0
	for _, b := range page {
		switch b.kind {
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
				shown = shown || strings.Contains(string(text), b.text)
			}
			if !shown {
				t.Errorf("custom-operators.md:%d: no file has this block", b.line)
			}
		case "console":
			for _, part := range strings.Split("\n"+b.text, "\n$ ")[1:] {
				commands++
				line, want, _ := strings.Cut(part, "\n")
				args := strings.Fields(strings.ReplaceAll(line, "'", ""))
				var out bytes.Buffer
				aton.Main(args[1:], strings.NewReader(""), &out, &out)
				if got := strings.TrimSpace(out.String()); got != strings.TrimSpace(want) {
					t.Errorf("custom-operators.md:%d: %s prints\n%s", b.line, line, got)
				}
			}
		}
	}
	if commands < 5 {
		t.Errorf("the page has %d commands", commands)
	}
}
