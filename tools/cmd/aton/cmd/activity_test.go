package cmd

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// A part of the work that takes long is named, with how many bytes of it are done.
func TestActivity(t *testing.T) {
	var b bytes.Buffer
	a := &activity{w: &b}
	a.begin("writing model.onnx")
	a.show()
	if b.Len() != 0 {
		t.Errorf("at once it says %q", b.String())
	}
	a.began = time.Now().Add(-2 * time.Second)
	a.progress()(500_000_000, 2_000_000_000)
	a.show()
	if got := b.String(); !strings.Contains(got, "writing model.onnx ... 500.0 MB of 2.0 GB, 25%, 2 s") {
		t.Errorf("it says %q", got)
	}
	a.begin("pass cse")
	a.began = time.Now().Add(-2 * time.Second)
	b.Reset()
	a.show()
	if got := b.String(); strings.Contains(got, "%") {
		t.Errorf("of what has no size it says %q", got)
	}
	if (*activity)(nil).progress() != nil {
		t.Error("nobody watches, and the writer counts")
	}
}
