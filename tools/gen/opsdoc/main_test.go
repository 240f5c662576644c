package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestUpToDate(t *testing.T) {
	files, err := generate("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		if got, err := os.ReadFile(filepath.Join("../../..", name)); err != nil || string(got) != want {
			t.Errorf("%s is not what the code says: make gen (%v)", name, err)
		}
	}
}
