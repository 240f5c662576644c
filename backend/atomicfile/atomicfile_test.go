package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aton-project/aton/backend/internal/filetest"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// A file is as if os.WriteFile had written it, and is left alone when filling it fails.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if err := Write(path, text("one")); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	a, _ := os.Stat(path)
	b, _ := os.Stat(plain)
	if a.Mode() != b.Mode() {
		t.Errorf("mode %v, os.WriteFile gives %v", a.Mode(), b.Mode())
	}
	boom := errors.New("boom")
	if err := Write(path, func(w io.Writer) error { _ = text("two")(w); return boom }); !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(map[string]string{"a": "one"}, filetest.Contents(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// Files of a group appear together: when the second cannot be put in its place, the first is taken away.
func TestGroup(t *testing.T) {
	boom := errors.New("boom")
	for fail := range 9 {
		dir := t.TempDir()
		n := 0
		g := Group{Fault: func(string) error {
			if n++; n == fail+1 {
				return boom
			}
			return nil
		}}
		err := errors.Join(g.Add(filepath.Join(dir, "data"), text("weights")), g.Add(filepath.Join(dir, "model"), text("model")))
		if err == nil {
			err = g.Commit()
		}
		g.Abandon()
		want := map[string]string{}
		if err == nil {
			want = map[string]string{"data": "weights", "model": "model"}
		}
		if (err == nil) != (fail >= n) {
			t.Errorf("step %d of %d failed: %v", fail, n, err)
		}
		if diff := cmp.Diff(want, filetest.Contents(t, dir)); diff != "" {
			t.Errorf("step %d failed:\n%s", fail, diff)
		}
	}
}

// RemoveTemporary takes away what is not committed.
func TestRemoveTemporary(t *testing.T) {
	dir := t.TempDir()
	var g Group
	if err := g.Add(filepath.Join(dir, "a"), text("one")); err != nil {
		t.Fatal(err)
	}
	RemoveTemporary()
	if left := filetest.Contents(t, dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	g.Abandon()
}

// What a killed process has left goes with the next export to that path; what another one is at stays.
func TestAbandoned(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a[1]*")
	left := filepath.Join(dir, ".a[1]*.123.tmp")
	other := filepath.Join(dir, ".a1x.123.tmp")
	for _, name := range []string{left, other} {
		if err := os.WriteFile(name, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var busy Group
	if err := busy.Add(path, text("one")); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, text("two")); err != nil {
		t.Fatal(err)
	}
	if err := busy.Commit(); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a[1]*": "one", ".a1x.123.tmp": ""}
	if !abandoned(other) { // a system without locks
		want[".a[1]*.123.tmp"] = ""
	}
	if diff := cmp.Diff(want, filetest.Contents(t, dir)); diff != "" {
		t.Error(diff)
	}
}
