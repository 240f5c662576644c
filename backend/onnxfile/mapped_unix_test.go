//go:build unix

package onnxfile

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
)

// What lies in a mapped file is read from the file: to pass the test, from behind the mapping's back.
func TestCopiesFromMappedFile(t *testing.T) {
	m, want := big(copySize/4 + 1000)
	first := filepath.Join(t.TempDir(), "a.onnx")
	if err := Write(first, m, Options{}); err != nil {
		t.Fatal(err)
	}
	m, err := Read(first)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(sourcesOf(m)); n != 1 {
		t.Fatalf("%d sources, want the mapped file", n)
	}
	for _, external := range []External{Never, Always} {
		second := filepath.Join(t.TempDir(), "b.onnx")
		if err := Write(second, m, Options{External: external}); err != nil {
			t.Fatal(err)
		}
		back, err := Read(second)
		if err != nil {
			t.Fatal(err)
		}
		for o := range back.Main().Body.Ops() {
			if c := onnx.ConstOf(o.Results[0]); c != nil && !bytes.Equal(c.Bytes(), want) {
				t.Error("the weight has changed")
			}
		}
	}
	// a file that shrinks while it is in use is an error, not a crash
	if err := os.Truncate(first, copySize/2); err != nil {
		t.Fatal(err)
	}
	if err := Write(filepath.Join(t.TempDir(), "c.onnx"), m, Options{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the file was cut: %v", err)
	}
}
