package main

import (
	"strings"
	"testing"
)

func TestReasonsTable(t *testing.T) {
	got := reasonsTable(map[string]expectation{
		"nn/a": {"export failed", "not done: b"}, "nn/b": {"export failed", "ONNX cannot express it: c"}, "nn/c": {"export failed", "ONNX cannot express it: c"},
		"nn/d": {"wrong values", "ONNX cannot express it: a"}, "nn/e": {"wrong values", "rounds"},
	})
	want := `| reason | | result | cases |
| --- | --- | --- | --- |
| ONNX cannot express it (3) | c | export failed | 2 |
|  | a | wrong values | 1 |
| not done (1) | b | export failed | 1 |
| other (1) | rounds | wrong values | 1 |
| all | | | 5 |
`
	if got != want {
		t.Errorf("got:\n%s", got)
	}
}

func TestOpsetTable(t *testing.T) {
	got := opsetTable([]int{7, 9}, map[int][]row{
		7: {{"nn/a", "nn", "pass", ""}, {"nn/b", "nn", "export failed", "exit status 1: /x/model.pt: f.py:3: onnx::NonZero in part.a: the operator needs opset 9; export with --opset 9 (2 times)"}},
		9: {{"nn/a", "nn", "pass", ""}, {"nn/b", "nn", "wrong values", "output: 1 of 2 elements differ"}},
	})
	want := `| opset | nn | not passed |
| --- | --- | --- |
| 7 | 1/2 | onnx::NonZero: the operator needs opset 9: 1 |
| 9 | 1/2 | wrong values: output: 1 of 2 elements differ: 1 |
`
	if got != want {
		t.Errorf("got:\n%s", got)
	}
}

// TestListsSayWhy reads the lists: every case has a reason of a known kind.
func TestListsSayWhy(t *testing.T) {
	for _, file := range []string{"expected-failures.tsv", "expected-failures-pt2.tsv"} {
		list, err := readList(file)
		if err != nil {
			t.Fatal(err)
		}
		for id, e := range list {
			kind, why, _ := strings.Cut(e.reason, ": ")
			switch kind {
			case "ONNX cannot express it", "onnxruntime has no kernel", "PyTorch does not define it", "PyTorch rounds", "not done", "the program":
			default:
				t.Errorf("%s: %s: the reason is of no known kind: %q", file, id, e.reason)
			}
			if why == "" {
				t.Errorf("%s: %s has no reason", file, id)
			}
		}
	}
}
