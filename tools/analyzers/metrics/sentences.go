package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// sentence is one of a comment, a message or a page.
type sentence struct {
	place, text string
}

var (
	// stop is the end of a sentence, where another one follows.
	stop = regexp.MustCompile(`[.!?] +[A-Z"` + "`" + `]`)
	// fence begins and ends a block of a page that is no text.
	fence = "```"
)

// draw prints n sentences of the comments and messages of Go files and of pages, chosen by the seed: a reader judges each without its context.
func draw(w io.Writer, root string, n int, seed uint64) error {
	fset := token.NewFileSet()
	files, err := read(fset, root)
	if err != nil {
		return err
	}
	var all []sentence
	for _, f := range files {
		if f.ast != nil {
			all = append(all, ofGo(fset, f)...)
		}
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != "." || d.Name() == "out" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".md"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all = append(all, ofPage(path, string(text))...)
		return nil
	})
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i, s := range all[:min(n, len(all))] {
		if _, err := fmt.Fprintf(w, "%d. %s: %s\n", i+1, s.place, s.text); err != nil {
			return err
		}
	}
	return nil
}

// ofGo lists the sentences of the comments of a file, and its messages: texts of four words and more.
func ofGo(fset *token.FileSet, f source) []sentence {
	var out []sentence
	add := func(pos token.Pos, text string) {
		for _, s := range split(text) {
			out = append(out, sentence{fmt.Sprintf("%s:%d", f.path, fset.Position(pos).Line), s})
		}
	}
	for _, c := range f.ast.Comments {
		add(c.Pos(), c.Text())
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil && !strings.Contains(text, "\n") {
				add(l.Pos(), text)
			}
		}
		return true
	})
	return out
}

// ofPage lists the sentences of a page, without blocks, tables and headings.
func ofPage(path, text string) []sentence {
	var out []sentence
	inside := false
	for i, paragraph := range strings.Split(text, "\n\n") {
		fences := strings.Count(paragraph, fence)
		if !inside && fences == 0 && !strings.HasPrefix(paragraph, "#") && !strings.HasPrefix(paragraph, "|") && !strings.HasPrefix(paragraph, "<") && !strings.HasPrefix(paragraph, "    ") {
			for _, s := range split(paragraph) {
				out = append(out, sentence{fmt.Sprintf("%s, paragraph %d", path, i+1), s})
			}
		}
		inside = inside != (fences%2 == 1)
	}
	return out
}

// split cuts a text at the ends of its sentences, and keeps those of four words and more.
func split(text string) []string {
	text = strings.Join(strings.Fields(text), " ")
	var out []string
	for text != "" {
		end := len(text)
		if m := stop.FindStringIndex(text); m != nil {
			end = m[0] + 1
		}
		out = append(out, text[:end])
		text = strings.TrimSpace(text[end:])
	}
	return slices.DeleteFunc(out, func(s string) bool { return strings.Count(s, " ") < 3 })
}
