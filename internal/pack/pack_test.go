package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is packed is unpacked, and the same files give the same bytes.
func TestRoundTrip(t *testing.T) {
	root := t.TempDir()
	files := []string{"s/a/case.json", "s/a/model.pt"}
	for _, f := range files {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(f)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, f), []byte(f), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var one, two bytes.Buffer
	for _, b := range []*bytes.Buffer{&one, &two} {
		if err := Write(b, root, files); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the same files give other bytes")
	}
	archive, to := filepath.Join(t.TempDir(), "a.tar.gz"), t.TempDir()
	if err := os.WriteFile(archive, one.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	found, err := Unpack(archive, to)
	if diff := cmp.Diff([]string{filepath.Join(to, "s", "a")}, found); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if text, err := os.ReadFile(filepath.Join(to, "s", "a", "model.pt")); err != nil || string(text) != "s/a/model.pt" {
		t.Errorf("%q, %v", text, err)
	}
	if err := Write(&one, root, []string{"nosuch"}); err == nil {
		t.Error("a file that is not there is packed")
	}
}

func TestBadArchives(t *testing.T) {
	packed := func(text string) []byte {
		var b bytes.Buffer
		gz := gzip.NewWriter(&b)
		if _, err := gz.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := gz.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	var outside bytes.Buffer
	tw := tar.NewWriter(&outside)
	if err := tw.WriteHeader(&tar.Header{Name: "../outside", Size: 0, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string][]byte{
		"gzip":                        []byte("no archive"),
		"tar":                         packed(strings.Repeat("x", 2000)),
		"lies outside of the archive": packed(outside.String()),
	} {
		name := filepath.Join(t.TempDir(), "a.tar.gz")
		if err := os.WriteFile(name, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := Unpack(name, t.TempDir()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := Unpack("nosuch", t.TempDir()); err == nil {
		t.Error("an archive that is not there is unpacked")
	}
}
