package cli

import (
	"os"
	"testing"
)

func TestNobodyWatchesTheNullDevice(t *testing.T) {
	f, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Terminal(f) {
		t.Errorf("%s is taken for a terminal", os.DevNull)
	}
}
