package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/internal/pack"
)

// nodes unpacks the committed tests of the onnx package.
func nodes(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := pack.Unpack("../../../testdata/nodes.tar.gz", dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "nodes")
}

// No mutant of ONNX's node tests brings a command down.
func TestMutantsOfNodes(t *testing.T) {
	var b strings.Builder
	ok, err := mutants(&b, nodes(t), 1, 12, 1)
	if err != nil || !ok {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A model that onnx.checker refuses and aton takes is missed, and fails the run; one that aton refuses alone is told of.
func TestRunCounts(t *testing.T) {
	dir := nodes(t)
	models, err := filepath.Glob(filepath.Join(dir, "*", "model.onnx"))
	if err != nil || len(models) == 0 {
		t.Fatal(err)
	}
	good, err := os.ReadFile(models[0])
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	index := ""
	for name, c := range map[string]struct {
		data         []byte
		checker, ort string
	}{
		"whole.onnx":  {good, "ok", "ok"},
		"cut.onnx":    {good[:len(good)/2], "it ends early", "it ends early"},
		"missed.onnx": {good, "something is wrong", "ok"},
		"alone.onnx":  {[]byte("noise"), "ok", "ok"},
	} {
		if err := os.WriteFile(filepath.Join(out, name), c.data, 0o666); err != nil {
			t.Fatal(err)
		}
		index += strings.Join([]string{name, "cutting", "whole", c.checker, c.ort}, "\t") + "\n"
	}
	if err := os.WriteFile(filepath.Join(out, "index.tsv"), []byte(index), 0o666); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	ok, err := run(&b, out, true)
	if err != nil || ok {
		t.Fatalf("%v, %v\n%s", ok, err, b.String())
	}
	for _, want := range []string{"| cutting | 4 | 2 | 1 | 2 | 1 | 1 | 1 |", "0 panics", "missed: missed.onnx", "alone: alone.onnx"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	if _, err := run(&b, t.TempDir(), false); err == nil {
		t.Error("a folder without an index is run")
	}
}
