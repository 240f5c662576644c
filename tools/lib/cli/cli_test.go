package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// What a file has in its names does not steer a terminal.
func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain é 漢\n\tline": "plain é 漢\n\tline",
		"\x1b[31mred":       `\x1b[31mred`,
		"bell\a\r\u202e":    `bell\a\r\u202e`,
		"\u009b\x7f\xff":    `\u009b\x7f�`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Text is the same however it is cut into writes, and JSON keeps what it says.
func TestTextWriter(t *testing.T) {
	const text = "漢 \u009b\U000e0001\x1b é\xe6"
	for size := 1; size <= len(text); size++ {
		var b strings.Builder
		w := newText(&b)
		for part := range slices.Chunk([]byte(text), size) {
			if n, err := w.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if err := w.flush(); err != nil || b.String() != `漢 \u009b\U000e0001\x1b é�` {
			t.Errorf("in parts of %d: %s, %v", size, b.String(), err)
		}
	}
	var b strings.Builder
	in := map[string]string{"name\u202e": "\u009b\U000e0001\x1b\x7f<漢>"}
	if err := EncodeJSON(&b, in, false); err != nil {
		t.Fatal(err)
	}
	var out map[string]string
	if err := json.Unmarshal([]byte(b.String()), &out); err != nil || !maps.Equal(in, out) || Printable(b.String()) != b.String() || !strings.Contains(b.String(), "<漢>") {
		t.Errorf("%s: %q, %v", b.String(), out, err)
	}
}

// Standard input that does not end is an error.
func TestReadStream(t *testing.T) {
	saved := maxStream
	defer func() { maxStream = saved }()
	maxStream = 1 << 20
	if _, err := ReadStream(endless{}); err == nil || !strings.Contains(err.Error(), "give a file") {
		t.Errorf("error %v", err)
	}
	if b, err := ReadStream(io.LimitReader(endless{}, 1<<20)); err != nil || len(b) != 1<<20 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// A panic of a command is told as a defect, with where it was.
func TestCrash(t *testing.T) {
	var stderr bytes.Buffer
	c := &cobra.Command{Use: "fall", RunE: func(*cobra.Command, []string) error { panic("over") }}
	status := Run(c, nil, strings.NewReader(""), io.Discard, &stderr)
	if said := stderr.String(); status != Failed || !strings.HasPrefix(said, "error: internal error: over; this is a defect of aton") || !strings.Contains(said, "cli_test.go") {
		t.Errorf("status %d: %s", status, said)
	}
}

// A long standard input is no memory of the process's own.
func TestLongStream(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const n = 5*memoryStream + 7
	b, err := ReadStream(io.LimitReader(counting{}, n))
	if err != nil || len(b) != n || b[0] != 1 || b[n-1] != 1 {
		t.Fatal(len(b), err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.Sys - before.Sys; grown > 4*memoryStream {
		t.Errorf("%d MB of memory for %d MB", grown>>20, n>>20)
	}
}

type counting struct{}

func (counting) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 1
	}
	return len(b), nil
}
