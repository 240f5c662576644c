package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("a/pass.ir", "# RUN: cat %s | FileCheck %s\n# CHECK: hello\nhello\n")
	write("a/fixtures/no.ir", "no test\n")
	write("b/fail.ir", "# RUN: cat %s | FileCheck %s\n# CHECK: {{^}}hello\n")
	write("c/missing.ir", "# RUN: no-such-program-anywhere %s\n")
	write("d/process.ir", "# RUN: go version | FileCheck %s\n# CHECK: go version\n")
	for _, c := range []struct {
		args string
		code int
		want []string
	}{
		{"-v a", 0, []string{"PASS: ", "1 tests, 0 failed"}},
		{"a b", 1, []string{"FAIL: ", "fail.ir:1: FileCheck: exit status 1", "2 tests, 1 failed"}},
		{"-filter pass a b", 0, []string{"1 tests, 0 failed"}},
		{"c", 1, []string{"missing.ir:1: no-such-program-anywhere: exit status 127", "executable file not found"}},
		{"d", 0, []string{"1 tests, 0 failed"}},
		{"-filter nothing a", 2, []string{"no test"}},
		{"-filter ( a", 2, []string{"-filter"}},
		{"", 2, []string{"name a test file"}},
		{"-nonsense", 2, []string{"usage: lit"}},
		{"e", 2, []string{"e"}},
	} {
		t.Chdir(dir)
		var out strings.Builder
		if code := run(strings.Fields(c.args), &out, &out); code != c.code {
			t.Errorf("lit %s: exit status %d, not %d\n%s", c.args, code, c.code, out.String())
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("lit %s: %q is missing in\n%s", c.args, want, out.String())
			}
		}
	}
}
