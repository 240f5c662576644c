package archive

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
)

// deflated is an archive with a record of so many bytes: zeros, or such as deflate gets to half.
func deflated(t *testing.T, size int64, zeros bool) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	w, err := z.Create("model/data/0")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 0))
	block := make([]byte, 1<<20)
	for ; size > 0; size -= int64(len(block)) {
		if !zeros {
			for i := range block {
				block[i] = byte(random.Uint32() & 15)
			}
		}
		if _, err := w.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// heap is the memory that the runtime has from the system.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys
}

// A small file does not inflate to as much as a thousand times its size.
func TestBomb(t *testing.T) {
	data := deflated(t, 512<<20, true)
	before := heap()
	a, err := Read(data, "m.pt", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Bytes("data/0"); err == nil || !strings.Contains(err.Error(), "store the archive without compression") {
		t.Errorf("a file of %d bytes: %v", len(data), err)
	}
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("%d MB more", grown>>20)
	}
}

// What is much goes to a file, and is the same.
func TestSpool(t *testing.T) {
	data := deflated(t, 8<<20, false)
	limits := Limits{Records: 10, Inflated: 1 << 30, Text: 1 << 30, Spool: 1 << 20}
	get := func(l *Limits) []byte {
		t.Helper()
		a, err := Read(data, "m.pt", l)
		if err != nil {
			t.Fatal(err)
		}
		b, err := a.Bytes("data/0")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if spooled, kept := get(&limits), get(nil); !bytes.Equal(spooled, kept) || len(kept) != 8<<20 {
		t.Errorf("%d bytes, %d", len(spooled), len(kept))
	}
	cut := bytes.Clone(data)
	for i := len(cut) / 2; i < len(cut)/2+1000; i++ {
		cut[i] = 0xff
	}
	if a, err := Read(cut, "m.pt", &limits); err == nil {
		if _, err := a.Bytes("data/0"); err == nil {
			t.Error("a damaged record is read")
		}
	}
}
