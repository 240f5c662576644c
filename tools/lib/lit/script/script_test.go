package script

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aton-project/aton/tools/lib/filecheck"
)

func testRunner() *Runner {
	return &Runner{Commands: map[string]Command{
		"cat":       Cat,
		"FileCheck": filecheck.Main,
		"echo": func(args []string, _ io.Reader, stdout, _ io.Writer) int {
			fmt.Fprintln(stdout, strings.Join(args, "|"))
			return 0
		},
		"fail": func(args []string, _ io.Reader, _, stderr io.Writer) int {
			fmt.Fprintln(stderr, "failed")
			return 1
		},
		"crash": func([]string, io.Reader, io.Writer, io.Writer) int { panic("boom") },
	}}
}

func write(t *testing.T, text string) *Test {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ir")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	test, err := Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	return test
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"pipe":             {"# RUN: cat %s | cat | FileCheck %s\n# CHECK: hello\nhello\n", ""},
		"mismatch":         {"# RUN: cat %s | FileCheck %s\n# CHECK: {{^}}hello\n", "FileCheck: exit status 1"},
		"words":            {"# RUN: echo 'a b' \"c|d\" x'y'z %%s %self %s.x | FileCheck %s\n# CHECK: {{^}}a b|c|d|xyz|%s|%self|{{.*}}x.ir.x\n", ""},
		"files":            {"# RUN: cat < %s > %t.1 && cat %t.1 | FileCheck %s\n# CHECK: {{^}}hello\nhello\n", ""},
		"continued":        {"# RUN: cat %s \\\n# RUN:   | FileCheck %s\n# CHECK: {{^}}hello\nhello\n", ""},
		"not":              {"# RUN: not fail\n", ""},
		"not turned":       {"# RUN: not cat %s\n", "cat should have failed"},
		"fail in the pipe": {"# RUN: fail | cat\n", "fail: exit status 1\nRUN: fail | cat\nfail says:\nfailed"},
		"errors checked":   {"# RUN: not fail 2>&1 | FileCheck %s\n# CHECK: failed\n", ""},
		"a panic is never": {"# RUN: not crash\n", "crash panicked"},
		"unknown":          {"# RUN: rm %s\n", `unknown command "rm"`},
	} {
		t.Run(name, func(t *testing.T) {
			err := testRunner().Run(write(t, c.text), t.TempDir())
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"nothing\n":                    "no RUN line",
		"# RUN: a | | b\n":             "a command is missing",
		"# RUN: a >\n":                 "a file name is missing",
		"# RUN: a $(b)\n":              "needs a shell",
		"# RUN: a; b\n":                "needs a shell",
		"# RUN: a || b\n":              "needs a shell",
		"# RUN: a 'b\n":                "no closing '",
		"# RUN: a \\\nb\n":             "ends with a backslash",
		"# RUN: a > x | b\n":           "last command",
		"# RUN: a | b < x\n":           "first command",
		"# text RUN: a\n# RUN: not |a": "a command is missing",
	} {
		path := filepath.Join(t.TempDir(), "x.ir")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %q, got %v", text, want, err)
		}
	}
}

const auto = `# RUN: cat %s | FileCheck %s
# AUTOCHECK
# CHECK: old
# CHECK-NEXT: older

# a function without a name
graph(%x.1 : int, %0 : int[[]]):
  %x_1 : int = f(%x.1, %0, %0)
  return (%x_1)

# CHECK-LABEL: another old one
# OWN: graph
graph @gone(%x.1 : int):

graph @named(%x.1 : int):
  return (%x.1)
`

func TestUpdate(t *testing.T) {
	test := write(t, auto)
	r := testRunner()
	// the check lines would be part of the output
	r.Commands["cat"] = func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		io.WriteString(stdout, `a remark
graph(%x.1 : int, %0 : int[[]]):
  %x_1 : int = f(%x.1, %0, %0)
  return (%x_1)

graph @made(%y : int):

# -----

graph @named(%x.1 : int):
  return (%x.1)
`)
		return 0
	}
	got, err := r.Update(test, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	want := `# RUN: cat %s | FileCheck %s
# AUTOCHECK
# CHECK: a remark

# a function without a name
# CHECK-LABEL: graph(
# CHECK-SAME: [[X_1:%[A-Za-z0-9_.]+]] : int, [[V0:%[A-Za-z0-9_.]+]] : int{{\[\[}}]]):
# CHECK-NEXT:   [[X_1_2:%[A-Za-z0-9_.]+]] : int = f([[X_1]], [[V0]], [[V0]])
# CHECK-NEXT:   return ([[X_1_2]])
# CHECK-LABEL: graph @made(
# CHECK-SAME: [[Y:%[A-Za-z0-9_.]+]] : int):
graph(%x.1 : int, %0 : int[[]]):
  %x_1 : int = f(%x.1, %0, %0)
  return (%x_1)

# OWN: graph
graph @gone(%x.1 : int):

# CHECK-LABEL: graph @named(
# CHECK-SAME: [[X_1:%[A-Za-z0-9_.]+]] : int):
# CHECK-NEXT:   return ([[X_1]])
graph @named(%x.1 : int):
  return (%x.1)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := os.WriteFile(test.Path, []byte(got), 0o666); err != nil {
		t.Fatal(err)
	}
	if test, err = Parse(test.Path); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(test, t.TempDir()); err != nil {
		t.Error(err)
	}
}
