package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// in goes to an empty folder with an exporter, a python that "runs" run.py by writing results, and a list of expected failures.
func in(t *testing.T, results, list string) options {
	t.Helper()
	t.Chdir(t.TempDir())
	write := func(name, text string, mode os.FileMode) string {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("results", results, 0o666)
	write("out/cases-made/.complete", "", 0o666)
	write("bin/aton", "", 0o777)
	if list != "" {
		write("tools/judge/conformance/expected-failures-made.tsv", list, 0o666)
	}
	// asked to import packages it does; asked for run.py it gives the results
	python := write("python", "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\nwhile [ $# -gt 0 ]; do [ \"$1\" = --results ] && cp results \"$2\"; shift; done\n", 0o777)
	abs, err := filepath.Abs(python)
	if err != nil {
		t.Fatal(err)
	}
	return options{shared: "nosuch", python: abs, jobs: "1", format: "archive"}
}

const results = `{"id": "modules/a", "suite": "modules", "result": "pass", "detail": ""}
{"id": "modules/b", "suite": "modules", "result": "wrong values", "detail": "2 of 3"}
`

func TestRun(t *testing.T) {
	t.Run("as listed", func(t *testing.T) {
		o := in(t, results, "# Cases\nmodules/b\twrong values\tPyTorch is wrong: so\n")
		if code, err := run(o); code != 0 || err != nil {
			t.Errorf("status %d, %v", code, err)
		}
	})
	t.Run("a failure that is not listed", func(t *testing.T) {
		o := in(t, results, "# Cases\n")
		if code, err := run(o); code != 1 || err != nil {
			t.Errorf("status %d, %v", code, err)
		}
	})
	t.Run("a listed failure that passes", func(t *testing.T) {
		o := in(t, strings.Replace(results, "wrong values", "pass", 1), "# Cases\nmodules/b\twrong values\tPyTorch is wrong: so\n")
		if code, err := run(o); code != 1 || err != nil {
			t.Errorf("status %d, %v", code, err)
		}
	})
	t.Run("no list", func(t *testing.T) {
		o := in(t, results, "")
		if code, err := run(o); code != 0 || err != nil {
			t.Errorf("status %d, %v", code, err)
		}
	})
	t.Run("update keeps reasons", func(t *testing.T) {
		o := in(t, results, "# Cases\nmodules/b\twrong values\tPyTorch is wrong: so\n")
		o.update = true
		if code, err := run(o); code != 0 || err != nil {
			t.Fatalf("status %d, %v", code, err)
		}
		text, err := os.ReadFile("tools/judge/conformance/expected-failures-made.tsv")
		if err != nil || !strings.Contains(string(text), "modules/b\twrong values\tPyTorch is wrong: so") {
			t.Errorf("%v\n%s", err, text)
		}
		o.reasons = true
		if code, err := run(o); code != 0 || err != nil {
			t.Errorf("status %d, %v", code, err)
		}
	})
	t.Run("opsets", func(t *testing.T) {
		o := in(t, results, "")
		o.opsets = "13,17"
		if _, err := run(o); err != nil {
			t.Error(err)
		}
	})
}

func TestRunErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*options)
		want   string
	}{
		{"format", func(o *options) { o.format = "zip" }, "--input-format is archive or pt2"},
		{"set", func(o *options) { o.set = "all" }, "--set is shipped, made"},
		{"no cases", func(o *options) { o.cases = filepath.Join("out", "elsewhere") }, "make cases TORCH=PYTHON"},
		{"no python", func(o *options) { o.python = "nosuch" }, "cannot import onnx"},
		{"no exporter", func(o *options) { o.exporter = "bin/nosuch {model}" }, "make build"},
		{"opsets", func(o *options) { o.opsets = "13,x" }, "x"},
		{"no results", func(o *options) {
			if err := os.WriteFile("results", nil, 0o666); err != nil {
				panic(err)
			}
		}, "no results"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := in(t, results, "")
			c.change(&o)
			if _, err := run(o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %q, got %v", c.want, err)
			}
		})
	}
}
