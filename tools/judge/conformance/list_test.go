package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var someRows = []row{
	{"nn/a", "nn", "pass", ""},
	{"nn/b", "nn", "export failed", "exit status 1: /tmp/x/model.pt: aten::foo\tis unknown"},
	{"nn/c", "nn", "wrong values", "y: 3 differ"},
	{"script/d", "script", "pass", ""},
}

func TestRatchet(t *testing.T) {
	for name, c := range map[string]struct {
		list map[string]expectation
		good bool
		part string
	}{
		"as listed":     {map[string]expectation{"nn/b": {"export failed", ""}, "nn/c": {"wrong values", ""}, "nn/notrun": {"wrong values", ""}}, true, ""},
		"unlisted":      {map[string]expectation{"nn/b": {"export failed", ""}}, false, "fail and are not listed: 1\n  nn/c"},
		"listed passes": {map[string]expectation{"nn/a": {"export failed", ""}, "nn/b": {"export failed", ""}, "nn/c": {"wrong values", ""}}, false, "pass but are listed as failures: 1\n  nn/a"},
		"other class":   {map[string]expectation{"nn/b": {"wrong shape", ""}, "nn/c": {"wrong values", ""}}, true, "was wrong shape"},
	} {
		text, good := ratchet(c.list, someRows)
		if good != c.good || !strings.Contains(text, c.part) {
			t.Errorf("%s: %v\n%s", name, good, text)
		}
	}
}

func TestRenew(t *testing.T) {
	before := map[string]expectation{"nn/a": {"export failed", "old"}, "nn/c": {"wrong values", "rounds otherwise"}, "nn/notrun": {"wrong shape", "kept"}}
	text := renew(before, someRows)
	want := "nn/b\texport failed\tmodel.pt: aten::foo is unknown\nnn/c\twrong values\trounds otherwise\nnn/notrun\twrong shape\tkept\n"
	if _, got, _ := strings.Cut(text, "\n"); got != want {
		t.Errorf("got:\n%s", text)
	}
	name := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	list, err := readList(name)
	if err != nil || len(list) != 3 || list["nn/c"].reason != "rounds otherwise" {
		t.Errorf("read back: %v, %v", list, err)
	}
}

func TestScoreboard(t *testing.T) {
	got := scoreboard(someRows, map[string]peer{"nn/a": {"pass", "-"}, "nn/b": {"export failed", "pass"}})
	for _, want := range []string{"nn 3 1 1 1 33.3% 50.0% of 2 100.0% of 1", "script 1 1 0 0 100.0% - -", "all 4 2 1 1 50.0% 50.0% of 2 100.0% of 1"} {
		if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestCommittedLists(t *testing.T) {
	names, err := filepath.Glob("expected-failures*.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := readList(name); err != nil {
			t.Error(err)
		}
	}
}
