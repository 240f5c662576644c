package jit

import (
	"math"
	"strings"

	"github.com/aton-project/aton/ssa/diag"
)

// sourceTexts gives the files of TorchScript in the archive, each line with the places that it was made from, and what the archive
// keeps of the user's own files. What is not readable is left out: it is for people to look at.
func (l *loader) sourceTexts() []diag.Source {
	var user diag.SourceFiles
	var saved []diag.Source
	known := map[kept]bool{}
	for _, record := range l.a.Records() {
		if !strings.HasPrefix(record, "code/") || !strings.HasSuffix(record, ".py") {
			continue
		}
		b, err := l.a.Text(record)
		if err != nil {
			continue
		}
		r := l.loadRanges(&source{record: record})
		src, at, offset := diag.Source{File: record, Saved: true}, 0, 0
		for i, text := range strings.SplitAfter(string(b), "\n") {
			line := diag.SourceLine{Number: i + 1, Text: strings.TrimRight(text, "\r\n")}
			offset += len(text)
			for ; at < len(r.records) && r.records[at].offset < offset; at++ {
				f, ok := r.at(r.records[at].offset)
				if !ok {
					continue
				}
				if n := len(line.From); n == 0 || line.From[n-1] != f {
					line.From = append(line.From, f)
				}
				r.keep(&user, r.records[at].span, known)
			}
			src.Lines = append(src.Lines, line)
		}
		saved = append(saved, src)
	}
	return append(user.Sources(), saved...)
}

// kept names a text that has been noted: many ranges share one.
type kept struct {
	file  string
	first int64
	lines int
}

// keep notes the lines of the file that a span lies in.
func (r *ranges) keep(to *diag.SourceFiles, span any, known map[kept]bool) {
	file, first, lines, _, ok := r.text(span)
	key := kept{file, first, len(lines)}
	if !ok || known[key] || file == "" || first < 0 || first > math.MaxInt32 {
		return
	}
	if _, stack := stackFrame(lines); stack {
		return
	}
	known[key] = true
	for i, text := range strings.SplitAfter(strings.Join(lines, ""), "\n") {
		if text != "" {
			to.Add(file, int(first)+i, text)
		}
	}
}
