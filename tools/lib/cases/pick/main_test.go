package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An archive of which nothing is replaced is written again byte for byte, and a case that is left out leaves the others as they are.
func TestKept(t *testing.T) {
	out := filepath.Join(t.TempDir(), "operators")
	read := func(ext string) []byte {
		t.Helper()
		data, err := os.ReadFile(out + ext)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	again := func(from, only string) {
		t.Helper()
		units, err := kept(from, only, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := write(out, units); err != nil {
			t.Fatal(err)
		}
	}
	again(filepath.Join("..", "..", "..", "..", "testdata", "operators"), "^[^v]") // few are enough
	archive, list := read(".tar.gz"), read(".tsv")
	again(out, "^no operator$")
	if !bytes.Equal(read(".tar.gz"), archive) || !bytes.Equal(read(".tsv"), list) {
		t.Error("the archive is not what it was")
	}
	again(out, "^vander$")
	var want []string
	for _, line := range strings.SplitAfter(string(list), "\n") {
		if !strings.HasPrefix(line, "operators/vander.") {
			want = append(want, line)
		}
	}
	if got := string(read(".tsv")); got != strings.Join(want, "") || got == string(list) {
		t.Errorf("the list has\n%sthe one before\n%s", got, list)
	}
}
