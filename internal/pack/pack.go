// Package pack reads and writes the archives of cases that are in testdata: tar files, compressed by gzip, with a folder for each
// case. What a case is stands in package cases.
package pack

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Find lists the folders of cases below dir, in alphabetical order.
func Find(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "case.json" {
			found = append(found, filepath.Dir(path))
		}
		return err
	})
	return found, err
}

// Unpack writes an archive to a folder and lists the folders of cases in it.
func Unpack(archive, dir string) ([]string, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	for r := tar.NewReader(gz); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return Find(dir)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", archive, err)
		}
		if !filepath.IsLocal(h.Name) {
			return nil, fmt.Errorf("%s: %s lies outside of the archive", archive, h.Name)
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return nil, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", archive, err)
		}
		if err := os.WriteFile(path, data, 0o666); err != nil {
			return nil, err
		}
	}
}

// Write writes files to an archive in the order given: the same files give the same bytes. Files are named relative to root.
func Write(w io.Writer, root string, files []string) error {
	gz, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(gz)
	for _, name := range files {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), Size: int64(len(data)), Mode: 0o644, Format: tar.FormatUSTAR}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(data); err != nil {
			return err
		}
	}
	if err := tw.Close(); err != nil {
		return err
	}
	return gz.Close()
}
