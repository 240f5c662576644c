package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/aton-project/aton/internal/pack"
	"github.com/aton-project/aton/tools/judge/fuzzprog/mutant"
	"github.com/aton-project/aton/tools/lib/cases"
)

// source is a program that mutants are made of.
type source struct {
	name     string
	ext      string // .pt, .pt2, .onnx or .ir
	data     []byte
	specs    []string // of its inputs
	pipeline string   // that a text test runs
}

// corpus has the sources by extension, and the names of operators in them.
type corpus struct {
	sources map[string][]source
	words   []string
}

// largest is the size of the largest program that mutants are made of, in bytes: what is small gets through often.
const largest = 200_000

// readCorpus reads the programs of the repository: its cases, fixtures and text tests.
func readCorpus(root, tmp string) (*corpus, error) {
	c := &corpus{sources: map[string][]source{}}
	for _, name := range []string{"cases", "operators", "random", "edges", "nodes"} {
		folders, err := pack.Unpack(filepath.Join(root, "testdata", name+".tar.gz"), filepath.Join(tmp, name))
		if err != nil {
			return nil, err
		}
		for _, dir := range folders {
			if err := c.folder(dir); err != nil {
				return nil, err
			}
		}
	}
	indexes, err := filepath.Glob(filepath.Join(root, "testdata/fixtures/*/index.tsv"))
	if err != nil {
		return nil, err
	}
	for _, index := range indexes {
		text, err := os.ReadFile(index)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if err := c.add(filepath.Join(filepath.Dir(index), f[0]), f[1:]); err != nil {
				return nil, err
			}
		}
	}
	texts, err := texts(root)
	if err != nil {
		return nil, err
	}
	for _, f := range texts {
		if err := c.add(f, nil); err != nil {
			return nil, err
		}
	}
	for _, ext := range []string{".pt", ".pt2", ".onnx", ".ir"} {
		if len(c.sources[ext]) == 0 {
			return nil, fmt.Errorf("%s: there are no programs %s", root, ext)
		}
	}
	slices.Sort(c.words)
	c.words = slices.Compact(c.words)
	return c, nil
}

// texts lists the text tests.
func texts(root string) ([]string, error) {
	var out []string
	for _, pattern := range []string{"lit-tests/*/*.ir", "lit-tests/*/*/*.ir"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func (c *corpus) folder(dir string) error {
	info, err := cases.Read(dir)
	if err != nil {
		return err
	}
	for _, f := range []cases.Format{cases.Archive, cases.Exported, cases.ONNX} {
		if !info.Has(f) {
			continue
		}
		opts, err := info.LoadOptions(f)
		if err != nil {
			return err
		}
		var specs []string
		for _, in := range opts.Inputs {
			specs = append(specs, in.String())
		}
		if err := c.add(filepath.Join(dir, string(f)), specs); err != nil {
			return err
		}
	}
	return nil
}

// pipelines are those that text tests run.
var pipelines = regexp.MustCompile(`RUN: .*--passes[= ]'([^']*)'`)

func (c *corpus) add(path string, specs []string) error {
	b, err := os.ReadFile(path)
	if err != nil || len(b) > largest {
		return err
	}
	s := source{name: path, ext: filepath.Ext(path), data: b, specs: specs}
	switch s.ext {
	case ".ir":
		c.words = append(c.words, mutant.Words(string(b))...)
		if m := pipelines.FindSubmatch(b); m != nil {
			s.pipeline = string(m[1])
		}
	case ".pt":
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		for _, f := range z.File {
			if strings.HasSuffix(f.Name, ".py") {
				text, err := content(f)
				if err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
				c.words = append(c.words, mutant.Words(string(text))...)
			}
		}
	}
	c.sources[s.ext] = append(c.sources[s.ext], s)
	return nil
}

func content(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// changed copies a zip archive with one of the records that are picked changed.
func changed(b []byte, picked func(name string) bool, choose func(n int) int, change func([]byte) []byte) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, err
	}
	var at []int
	for i, f := range z.File {
		if picked(f.Name) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("nothing to change")
	}
	which := at[choose(len(at))]
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i, f := range z.File {
		data, err := content(f)
		if err != nil {
			return nil, err
		}
		if i == which {
			data = change(data)
		}
		o, err := w.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Store})
		if err != nil {
			return nil, err
		}
		if _, err := o.Write(data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
