package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"strings"
	"time"
)

// file is a file of an archive. Its name is relative, with slashes.
type file struct {
	name string
	mode int64
	data []byte
}

// archive writes the files under a folder of the archive's name: a zip for Windows, a compressed tar for others.
func (r *release) archive(t target, base string, files []file) error {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	pack, extension := packTar, ".tar.gz"
	if t.os == "windows" {
		pack, extension = packZip, ".zip"
	}
	if err := pack(&b, base, files, r.time); err != nil {
		return err
	}
	return r.write(base+extension, b.Bytes())
}

func packTar(w io.Writer, base string, files []file, at time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	out := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: base + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: at, Format: tar.FormatUSTAR}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(f.data); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return z.Close()
}

func packZip(w io.Writer, base string, files []file, at time.Time) error {
	out := zip.NewWriter(w)
	for _, f := range files {
		part, err := out.CreateHeader(&zip.FileHeader{Name: base + "/" + f.name, Method: zip.Deflate, Modified: at})
		if err != nil {
			return err
		}
		if _, err := part.Write(f.data); err != nil {
			return err
		}
	}
	return out.Close()
}
