package filecheck

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// cases is run through this package and through LLVM's FileCheck; both must give the same verdict.
var cases = []struct {
	name  string
	check string
	input string
	args  string // blank separated
	want  int    // exit status: 0 as asked, 1 not, 2 mistake
	ours  bool   // LLVM is more lenient, on purpose
}{
	{name: "plain", check: "CHECK: b", input: "a\nb\n"},
	{name: "order", check: "CHECK: b\nCHECK: a", input: "a\nb\n", want: 1},
	{name: "blanks", check: "CHECK: a   b", input: "a\t b\n"},
	{name: "strict blanks", check: "CHECK: a   b", input: "a\t b\n", args: "--strict-whitespace", want: 1},
	{name: "carriage return", check: "CHECK: a\nCHECK-NEXT: b", input: "a\r\nb\r\n"},
	{name: "next", check: "CHECK: a\nCHECK-NEXT: b", input: "a\nb\n"},
	{name: "next too far", check: "CHECK: a\nCHECK-NEXT: b", input: "a\nc\nb\n", want: 1},
	{name: "next on the same line", check: "CHECK: a\nCHECK-NEXT: b", input: "a b\nb\n", want: 1},
	{name: "next first", check: "CHECK-NEXT: b", input: "b\n", want: 2},
	{name: "same", check: "CHECK: a\nCHECK-SAME: b", input: "a b\n"},
	{name: "same not", check: "CHECK: a\nCHECK-SAME: b", input: "a\nb\n", want: 1},
	{name: "not between", check: "CHECK: a\nCHECK-NOT: x\nCHECK: b", input: "x\na\nb\nx\n"},
	{name: "not found", check: "CHECK: a\nCHECK-NOT: x\nCHECK: b", input: "a\nx\nb\n", want: 1},
	{name: "not at the end", check: "CHECK: a\nCHECK-NOT: x", input: "a\nx\n", want: 1},
	{name: "only not", check: "CHECK-NOT: x", input: "a\n"},
	{name: "dag", check: "CHECK-DAG: a\nCHECK-DAG: b\nCHECK: c", input: "b\na\nc\n"},
	{name: "dag behind", check: "CHECK-DAG: a\nCHECK-DAG: b\nCHECK: c", input: "b\nc\na\n", want: 1},
	{name: "dag does not overlap", check: "CHECK-DAG: a\nCHECK-DAG: a\n", input: "a\nb\n", want: 1},
	{name: "dag twice", check: "CHECK-DAG: a\nCHECK-DAG: a\n", input: "a\na\n"},
	{name: "dag then not then dag", check: "CHECK-DAG: a\nCHECK-NOT: x\nCHECK-DAG: b", input: "a\nx\nb\n", want: 1},
	{name: "dag groups", check: "CHECK-DAG: a\nCHECK-NOT: x\nCHECK-DAG: b", input: "b\na\nb\n"},
	{name: "dag variable", check: "CHECK-DAG: [[A:%[0-9]+]] = add\nCHECK-DAG: use [[A]]", input: "%1 = add\nuse %1\n"},
	{name: "label", check: "CHECK-LABEL: f:\nCHECK: a\nCHECK-LABEL: g:\nCHECK: b", input: "f:\na\ng:\nb\n"},
	{name: "label bounds", check: "CHECK-LABEL: f:\nCHECK: b\nCHECK-LABEL: g:\nCHECK: b", input: "f:\na\ng:\nb\n", want: 1},
	{name: "label missing", check: "CHECK-LABEL: h:", input: "f:\n", want: 1},
	{name: "label with variable", check: "CHECK-LABEL: [[A:x]]", input: "x\n", want: 2},
	{name: "empty line", check: "CHECK: a\nCHECK-EMPTY:\nCHECK-NEXT: b", input: "a\n\nb\n"},
	{name: "empty line is not", check: "CHECK: a\nCHECK-EMPTY:\nCHECK-NEXT: b", input: "a\nc\n\nb\n", want: 1},
	{name: "empty with text", check: "CHECK: a\nCHECK-EMPTY: x", input: "a\n\n", want: 2},
	{name: "empty twice", check: "CHECK: a\nCHECK-EMPTY:\nCHECK-EMPTY:\nCHECK-NEXT: b", input: "a\n\n\nb\n"},
	{name: "count", check: "CHECK-COUNT-3: a", input: "a\na\na\n"},
	{name: "count short", check: "CHECK-COUNT-3: a", input: "a\na\n", want: 1},
	{name: "count then not", check: "CHECK-COUNT-2: a\nCHECK-NOT: a", input: "a\na\na\n", want: 1},
	{name: "count zero", check: "CHECK-COUNT-0: a", input: "a\n", want: 2},
	{name: "regex", check: "CHECK: a{{[0-9]+}}b", input: "a12b\n"},
	{name: "regex alternatives", check: "CHECK: a{{x|yy}}b", input: "ayyb\n"},
	{name: "regex keeps to the line", check: "CHECK: a{{.*}}b", input: "a\nb\n", want: 1},
	{name: "class keeps to the line", check: "CHECK: a{{[^x]*}}b", input: "a\nb\n", want: 1},
	{name: "regex longest", check: "CHECK: {{a|ab}}{{$}}", input: "ab\n"},
	{name: "line start", check: "CHECK: {{^}}b", input: "ab\nb\n"},
	{name: "line start not", check: "CHECK: {{^}}b", input: "ab\n", want: 1},
	{name: "regex groups", check: "CHECK: {{(a)(b)}}[[V:c]]{{(d)}}\nCHECK: [[V]]!", input: "abcd\nc!\n"},
	{name: "regex open", check: "CHECK: a{{b", input: "ab\n", want: 2},
	{name: "regex wrong", check: "CHECK: a{{(}}", input: "ab\n", want: 2},
	{name: "special characters", check: "CHECK: f(a.b)*[1]|$^\\", input: "f(a.b)*[1]|$^\\\n"},
	{name: "special characters not", check: "CHECK: a.b", input: "acb\n", want: 1},
	{name: "literal", check: "CHECK{LITERAL}: [[1, 2], {{3}}]", input: "[[1, 2], {{3}}]\n"},
	{name: "literal next", check: "CHECK: a\nCHECK-NEXT{LITERAL}: [[1]]", input: "a\n[[1]]\n"},
	{name: "modifier unknown", check: "CHECK{LITTERAL}: a", input: "a\n", want: 2},
	{name: "variable", check: "CHECK: [[V:%[a-z]+]] =\nCHECK: use [[V]]", input: "%a =\nuse %a\n"},
	{name: "variable differs", check: "CHECK: [[V:%[a-z]+]] =\nCHECK: use [[V]]", input: "%a =\nuse %b\n", want: 1},
	{name: "variable on its line", check: "CHECK: [[V:[a-z]+]] + [[V]]!", input: "a + b!\nc + c!\n"},
	{name: "variable on its line not", check: "CHECK: [[V:[a-z]+]] + [[V]]!", input: "a + b!\n", want: 1},
	{name: "variable backtracks", check: "CHECK: [[V:[a-z]+]][[V]];", input: "abab;\n"},
	{name: "variable undefined", check: "CHECK: use [[V]]", input: "use a\n", want: 1},
	{name: "variable redefined", check: "CHECK: [[V:[a-z]]]\nCHECK: [[V:[a-z]]]\nCHECK: =[[V]]", input: "a\nb\n=b\n"},
	{name: "variable with brackets", check: "CHECK: [[V:[a-z\\[]+]]\nCHECK: =[[V]]", input: "a[b\n=a[b\n"},
	{name: "variable name", check: "CHECK: [[1V:a]]", input: "a\n", want: 2},
	{name: "variable open", check: "CHECK: [[V:a", input: "a\n", want: 2},
	{name: "defined", check: "CHECK: [[V]]b", input: "a.b\n", args: "-DV=a."},
	{name: "defined number", check: "CHECK: [[#V+1]]b", input: "6b\n", args: "-D#V=5"},
	{name: "number", check: "CHECK: x[[#N:]]\nCHECK: y[[#N]]\nCHECK: z[[#N+1]]\nCHECK: w[[#N-1]]", input: "x7\ny7\nz8\nw6\n"},
	{name: "number wrong", check: "CHECK: x[[#N:]]\nCHECK: z[[#N+1]]", input: "x7\nz7\n", want: 1},
	{name: "number carries", check: "CHECK: x[[#N:]]\nCHECK: z[[#N+1]]", input: "x9\nz10\n"},
	{name: "number any", check: "CHECK: x[[#]]y", input: "x123y\n"},
	{name: "number hex", check: "CHECK: x[[#%x,N:]]\nCHECK: z[[#N+1]]", input: "xff\nz100\n"},
	{name: "number hex upper", check: "CHECK: x[[#%X,N:]]\nCHECK: z[[#%u,N+1]]", input: "xFF\nz256\n"},
	{name: "number signed", check: "CHECK: x[[#%d,N:]]\nCHECK: z[[#N+3]]", input: "x-5\nz-2\n"},
	{name: "number undefined", check: "CHECK: [[#N]]", input: "1\n", want: 1},
	{name: "number on its line", check: "CHECK: [[#N:]] [[#N+1]]", input: "1 2\n", want: 2},
	{name: "number and string", check: "CHECK: [[N:a]][[#N:]]", input: "a1\n", want: 2},
	{name: "number constrained", check: "CHECK: [[#N:]]\nCHECK: [[#M: N+1]]\nCHECK: [[#M]]!", input: "4\n5\n5!\n"},
	{name: "number constrained otherwise", check: "CHECK: [[#N:]]\nCHECK: [[#M: N+1]]", input: "4\n6\n", want: 1},
	{name: "number nonsense", check: "CHECK: [[#N*:]]", input: "4\n6\n", want: 2},
	{name: "line number", check: "CHECK: a\nCHECK: l[[#@LINE]] l[[@LINE-1]] l[[#@LINE+1]]", input: "a\nl2 l1 l3\n"},
	{name: "prefix", check: "CHECK: a\nFOO: b", input: "b\n", args: "--check-prefix=FOO"},
	{name: "prefixes", check: "BAR: a\nFOO: b\nFOO-BAR: c", input: "a\nb\nc\n", args: "--check-prefixes=FOO,BAR,FOO-BAR"},
	{name: "prefix in a word", check: "XCHECK: a\nMY-CHECK: b\nCHECK: c", input: "c\n"},
	{name: "prefix behind text", check: "; some text CHECK: c", input: "c\n"},
	{name: "prefix unused", check: "CHECK: a", input: "a\n", args: "--check-prefixes=CHECK,FOO", want: 2},
	{name: "prefix unused allowed", check: "CHECK: a", input: "a\n", args: "--check-prefixes=CHECK,FOO --allow-unused-prefixes"},
	{name: "prefix twice", check: "CHECK: a", input: "a\n", args: "--check-prefixes=CHECK,CHECK", want: 2},
	{name: "prefix wrong", check: "CHECK: a", input: "a\n", args: "--check-prefix=A!", want: 2},
	{name: "nothing to check", check: "a", input: "a\n", want: 2},
	{name: "empty check", check: "CHECK:", input: "a\n", want: 2},
	{name: "comment", check: "COM: CHECK: x\nRUN: CHECK: y\nCHECK: a", input: "a\n"},
	{name: "comment prefix", check: "NOTE: CHECK: x\nCHECK: a", input: "a\n", args: "--comment-prefixes=NOTE"},
	{name: "empty input", check: "CHECK-NOT: a", input: "", want: 2},
	{name: "empty input allowed", check: "CHECK-NOT: a", input: "", args: "--allow-empty"},
	{name: "implicit not", check: "CHECK: a\nCHECK: b", input: "a\nwarning\nb\n", args: "--implicit-check-not=warning", want: 1},
	{name: "implicit not at the end", check: "CHECK: a", input: "a\nwarning\n", args: "--implicit-check-not=warn{{i}}ng", want: 1},
	{name: "implicit not but asked", check: "CHECK: a\nCHECK: warning: b", input: "a\nwarning: b\n", args: "--implicit-check-not=warning"},
	{name: "whole lines", check: "CHECK: a b\nCHECK-NEXT: c", input: "  a  b \nc\n", args: "--match-full-lines"},
	{name: "whole lines not", check: "CHECK: a b", input: "xa b\n", args: "--match-full-lines", want: 1},
	{name: "whole lines strict", check: "CHECK:a b\nCHECK-NEXT:c", input: "a b\nc\n", args: "--match-full-lines --strict-whitespace"},
	{name: "whole lines strict not", check: "CHECK: a b", input: "a b\n", args: "--match-full-lines --strict-whitespace", want: 1},
	{name: "whole lines leave not alone", check: "CHECK: a\nCHECK-NOT: x", input: "a\nyxy\n", args: "--match-full-lines", want: 1},
	{name: "scope", check: "CHECK: [[V:a]]\nCHECK-LABEL: f:\nCHECK: [[V]]", input: "a\nf:\na\n", args: "--enable-var-scope", want: 1},
	{name: "scope global", check: "CHECK: [[$V:a]]\nCHECK-LABEL: f:\nCHECK: [[$V]]", input: "a\nf:\na\n", args: "--enable-var-scope"},
	{name: "not with next", check: "CHECK: a\nCHECK-NOT-NEXT: b", input: "a\nb\n", want: 2},
	{name: "count line", check: "CHECK-COUNT-2: a{{.}}\nCHECK-SAME: c", input: "a1\na2 c\n"},
	{name: "slip underscore", check: "CHECK: a\nCHECK_NEXT: b", input: "a\nc\n", want: 2, ours: true},
	{name: "slip letters", check: "CHECK: a\nCHEKC: b", input: "a\nc\n", want: 2, ours: true},
	{name: "slip suffix", check: "CHECK: a\nCHECK-NXET: b", input: "a\nc\n", want: 2, ours: true},
	{name: "slip blank", check: "CHECK: a\nCHECK-NEXT : b", input: "a\nc\n", want: 2, ours: true},
	{name: "slip colon", check: "CHECK: a\n# CHECK-NEXT b", input: "a\nc\n", want: 2, ours: true},
	{name: "no slip", check: "RUN: FileCheck --check-prefixes=CHECK,CHECK2\nCHECK: a\nCHECK2: b\nNote: the CHECKS. CHECK-O2: x", input: "a\n"},
}

func runOurs(t *testing.T, check, input, args string) (int, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "checks")
	if err := os.WriteFile(file, []byte(check), 0o666); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code := Main(append([]string{file}, strings.Fields(args)...), strings.NewReader(input), &out, &out)
	return code, out.String()
}

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, text := runOurs(t, c.check, c.input, c.args); got != c.want {
				t.Errorf("exit status %d, want %d\n%s", got, c.want, text)
			}
		})
	}
}

// llvmFileCheck finds LLVM's program, not one of the same name that came from here.
func llvmFileCheck() string {
	for _, name := range []string{"FileCheck", "FileCheck-14", "FileCheck-19", "FileCheck-18", "FileCheck-17", "FileCheck-16", "FileCheck-15"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if out, err := exec.Command(path, "--version").Output(); err == nil && bytes.Contains(out, []byte("LLVM")) {
			return path
		}
	}
	return ""
}

func TestSameAsLLVM(t *testing.T) {
	path := llvmFileCheck()
	if path == "" {
		if os.Getenv("ATON_NEED_LLVM") != "" {
			t.Fatal("LLVM's FileCheck is not on PATH: install Debian's llvm-14-tools")
		}
		t.Log("not compared with LLVM's FileCheck, which is not on PATH (Debian: llvm-14-tools)")
		return
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "checks")
			if err := os.WriteFile(file, []byte(c.check), 0o666); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(path, append([]string{file}, strings.Fields(c.args)...)...)
			cmd.Stdin = strings.NewReader(c.input)
			out, err := cmd.CombinedOutput()
			if _, exited := err.(*exec.ExitError); err != nil && !exited {
				t.Fatal(err)
			}
			got := cmd.ProcessState.ExitCode()
			if c.ours {
				if got != 0 {
					t.Errorf("LLVM complains as well (%d): the case is no exception\n%s", got, out)
				}
				return
			}
			// LLVM has no rule when it exits with 1 and when with 2
			if (got == 0) != (c.want == 0) {
				t.Errorf("LLVM's exit status %d, ours %d\n%s", got, c.want, out)
			}
		})
	}
}

func TestReports(t *testing.T) {
	_, got := runOurs(t, "CHECK: [[V:%[0-9]+]] = add\nCHECK-NEXT: [[W:%[0-9]+]] = multiply([[V]], %9)", "%3 = add\n%4 = noise\n%5 = multiply(%3, %8)\n", "")
	for _, part := range []string{
		":2:1: error: CHECK-NEXT: expected string not found in input",
		"<stdin>:1:9: note: scanning from here",
		"<stdin>:3:1: note: the nearest line\n    %5 = multiply(%3, %8)",
		`note: with "V" equal to "%3"`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("the report has no %q:\n%s", part, got)
		}
	}
}

func FuzzFileCheck(f *testing.F) {
	for _, c := range cases {
		f.Add(c.check, c.input)
	}
	f.Fuzz(func(t *testing.T, check, input string) {
		if len(check)+len(input) > 400 {
			return // repetition of repetitions takes long, in LLVM's too
		}
		first := Check(File{"c", check}, File{"i", input}, Options{})
		second := Check(File{"c", check}, File{"i", input}, Options{})
		if (first == nil) != (second == nil) || first != nil && first.Error() != second.Error() {
			t.Fatalf("two runs differ: %v, %v", first, second)
		}
	})
}
