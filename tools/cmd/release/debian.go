package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

// debian writes the Debian package of a target: commands, manual pages and completions where Debian has them.
func (r *release) debian(t target, binaries, texts, docs []file) error {
	staging, err := os.MkdirTemp("", "aton-deb-") // nfpm reads files
	if err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	info := &nfpm.Info{
		Name: "aton", Arch: t.arch, Platform: "linux", Version: r.version, Section: "devel", Priority: "optional",
		Maintainer:  "The aton maintainers <maintainers@aton-project.example>",
		Description: "PyTorch models to ONNX\naton turns saved PyTorch models into ONNX files, without Python.",
		Homepage:    "https://github.com/aton-project/aton", License: "Apache-2.0", MTime: r.time,
	}
	for place, f := range debianFiles(binaries, texts, docs) {
		path := filepath.Join(staging, strings.ReplaceAll(place, "/", "_"))
		if err := os.WriteFile(path, f.data, os.FileMode(f.mode)); err != nil {
			return err
		}
		info.Contents = append(info.Contents, &files.Content{Source: path, Destination: place, FileInfo: &files.ContentFileInfo{Mode: os.FileMode(f.mode), MTime: r.time}})
	}
	info = nfpm.WithDefaults(info)
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := deb.Default.Package(info, &b); err != nil {
		return err
	}
	return r.write(deb.Default.ConventionalFileName(info), b.Bytes())
}

// debianFiles puts the files where Debian's policy wants them.
func debianFiles(binaries, texts, docs []file) map[string]file {
	out := map[string]file{}
	for _, f := range binaries {
		out["/usr/bin/"+f.name] = f
	}
	for _, f := range texts {
		name := f.name
		if name == "LICENSE" {
			name = "copyright"
		}
		out["/usr/share/doc/aton/"+name] = f
	}
	for _, f := range docs {
		kind, name, _ := strings.Cut(f.name, "/")
		switch {
		case kind == "man":
			out["/usr/share/man/"+name+".gz"] = file{name, f.mode, compress(f.data)}
		case strings.HasSuffix(name, ".bash"):
			out["/usr/share/bash-completion/completions/"+strings.TrimSuffix(name, ".bash")] = f
		case strings.HasSuffix(name, ".fish"):
			out["/usr/share/fish/vendor_completions.d/"+name] = f
		case strings.HasPrefix(name, "_"):
			out["/usr/share/zsh/vendor-completions/"+name] = f
		}
	}
	return out
}

// compress is gzip without name and time.
func compress(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is a right one
	z.Write(data)                                         // a buffer takes everything
	z.Close()
	return b.Bytes()
}
