package main

import (
	"os"
	"strings"
	"testing"
)

// TestPage compares the page with the one in the repository.
func TestPage(t *testing.T) {
	want, err := page()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../refused.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/refused.md is not what the pages of docs/diagnostics make: make gen")
	}
	if n := strings.Count(want, "see the page"); n > 10 {
		t.Errorf("%d rows say nothing", n)
	}
}
