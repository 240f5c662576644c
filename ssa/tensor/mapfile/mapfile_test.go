package mapfile

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A small file and a large one have their bytes and what the system says of them; both can be closed, twice too.
func TestOpen(t *testing.T) {
	for _, n := range []int{0, 1, 1<<16 - 1, 1 << 16, 1<<20 + 3} {
		path := filepath.Join(t.TempDir(), "f")
		want := bytes.Repeat([]byte{7, 1, 5}, n/3+1)[:n]
		if err := os.WriteFile(path, want, 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f.Data, want) {
			t.Errorf("%d bytes: other data", n)
		}
		if f.Info() == nil || f.Info().Size() != int64(n) {
			t.Errorf("%d bytes: Info is %v", n, f.Info())
		}
		if file, data := f.Source(); file != nil && &data[0] != &f.Data[0] {
			t.Errorf("%d bytes: Source is not the data", n)
		}
		for range 2 {
			if err := f.Close(); err != nil || f.Data != nil {
				t.Errorf("%d bytes: Close: %v", n, err)
			}
		}
	}
}

// What cannot be read is an error that names it.
func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "none")} {
		if f, err := Open(path); err == nil || !bytes.Contains([]byte(err.Error()), []byte(dir)) {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
}
