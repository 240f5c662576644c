package onnxfile

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
)

// failing takes so many bytes, and then fails.
type failing struct {
	left int
	err  error
}

func (f *failing) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, f.err
	}
	f.left -= len(p)
	return len(p), nil
}

// TestAhead: what is written comes out in order and in full, whatever the sizes of the parts.
func TestAhead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 5*aheadBuffers*aheadSize/2)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	for _, most := range []int{7 << 10, aheadSize, 3 * aheadSize} {
		var out bytes.Buffer
		a := writeAhead(&out)
		for rest := data; len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(most))
			if k, err := a.Write(rest[:n]); k != n || err != nil {
				t.Fatal(k, err)
			}
			rest = rest[n:]
		}
		if err := a.close(); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out.Bytes(), data) {
			t.Errorf("parts of up to %d bytes: another file came out", most)
		}
	}
}

// TestAheadFails: an error of the writer ends the writing, and close tells it.
func TestAheadFails(t *testing.T) {
	full := errors.New("no space left")
	a := writeAhead(&failing{aheadSize, full})
	part := make([]byte, aheadSize)
	var err error
	for range 100 * aheadBuffers {
		if _, err = a.Write(part); err != nil {
			break
		}
	}
	if !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the writer goes on behind an error: %v", err)
	}
	if err := a.close(); !errors.Is(err, full) {
		t.Errorf("close says %v", err)
	}
}
