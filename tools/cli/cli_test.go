package cli

import (
	"bytes"
	"io"
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
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
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
	if said := stderr.String(); status != Failed || !strings.HasPrefix(said, "internal error: over; this is a defect of aton") || !strings.Contains(said, "cli_test.go") {
		t.Errorf("status %d: %s", status, said)
	}
}
