package jit

import (
	"sort"
	"strconv"
	"strings"

	"github.com/aton-project/aton/frontend/pickle"
	"github.com/aton-project/aton/ssa/diag"
)

// ranges maps byte offsets of a code file to the user's places (*.debug_pkl).
type ranges struct {
	records []rangeRecord
	strings []any
}

type rangeRecord struct {
	offset int
	span   any // (source, start, end)
	done   bool
	frame  diag.Frame
}

const debugFormat = "FORMAT_WITH_STRING_TABLE"

// loadRanges reads the ranges of a source; a file without them has none.
func (l *loader) loadRanges(s *source) *ranges {
	if s.ranges != nil {
		return s.ranges
	}
	s.ranges = &ranges{}
	record := s.record + ".debug_pkl"
	if !l.a.Has(record) {
		return s.ranges
	}
	b, err := l.a.Text(record)
	if err != nil {
		l.Warnf("%v", err)
		return s.ranges
	}
	r := &pickle.Reader{}
	v, _, err := r.Read(b)
	t, ok := v.(pickle.Tuple)
	if err != nil || !ok {
		l.Warnf("%s: source positions are not readable", record)
		return s.ranges
	}
	items := []any(t)
	if len(t) == 3 && t[0] == debugFormat {
		s.ranges.strings = sequence(t[1])
		items = sequence(t[2])
	}
	for _, it := range items {
		rec, ok := it.(pickle.Tuple)
		if !ok || len(rec) < 2 {
			continue
		}
		off, ok := rec[0].(int64)
		if !ok {
			continue
		}
		rr := rangeRecord{offset: int(off)}
		for _, f := range rec[1:] { // the old form has a tag before the range
			if span, ok := f.(pickle.Tuple); ok && len(span) >= 3 {
				rr.span = span
				break
			}
		}
		s.ranges.records = append(s.ranges.records, rr)
	}
	rs := s.ranges.records
	sort.SliceStable(rs, func(i, j int) bool { return rs[i].offset < rs[j].offset })
	return s.ranges
}

func sequence(v any) []any {
	switch v := v.(type) {
	case pickle.Tuple:
		return v
	case *pickle.List:
		return v.Items
	case *typed:
		return sequence(v.value)
	case *pickle.Call: // torch.jit._pickle.build_intlist([...])
		if len(v.Args) > 0 {
			return sequence(v.Args[0])
		}
	}
	return nil
}

// at gives the frame of the last record at or before an offset.
func (r *ranges) at(offset int) (diag.Frame, bool) {
	i := sort.Search(len(r.records), func(i int) bool { return r.records[i].offset > offset }) - 1
	if i < 0 {
		return diag.Frame{}, false
	}
	rec := &r.records[i]
	if !rec.done {
		rec.done = true
		rec.frame = r.frame(rec.span)
	}
	return rec.frame, rec.frame.File != ""
}

func (r *ranges) frame(span any) diag.Frame {
	file, first, lines, start, ok := r.text(span)
	if !ok {
		return diag.Frame{}
	}
	if f, ok := stackFrame(lines); ok && start == 0 {
		return f
	}
	if file == "" {
		return diag.Frame{}
	}
	line, at := int(first), int(start)
	for _, s := range lines {
		if at < len(s) || at == len(s) && !strings.HasSuffix(s, "\n") {
			break
		}
		at -= len(s)
		line++
	}
	return diag.Frame{File: file, Line: line, Col: at}
}

// text gives the source that a span lies in: its file, the number of its first line, its lines, and the byte of it at which the
// span begins.
func (r *ranges) text(span any) (file string, first int64, lines []string, start int64, ok bool) {
	t, ok := span.(pickle.Tuple)
	if !ok || len(t) < 3 {
		return "", 0, nil, 0, false
	}
	src, ok := t[0].(pickle.Tuple)
	start, ok1 := t[1].(int64)
	if !ok || !ok1 || len(src) < 3 || start < 0 {
		return "", 0, nil, 0, false
	}
	first, _ = src[2].(int64)
	switch text := src[0].(type) {
	case string:
		lines = strings.SplitAfter(text, "\n")
		file, _ = src[1].(string)
	default:
		for _, ix := range sequence(text) {
			if i, ok := ix.(int64); ok && i >= 0 && i < int64(len(r.strings)) {
				s, _ := r.strings[i].(string)
				lines = append(lines, s)
			}
		}
		if i, ok := src[1].(int64); ok && i >= 0 && i < int64(len(r.strings)) {
			file, _ = r.strings[i].(string)
		}
	}
	return file, first, lines, start, true
}

// stackFrame reads the call stack that tracing leaves, one file(line): function
// a line with the innermost first, and gives the first place outside of torch.
func stackFrame(lines []string) (diag.Frame, bool) {
	var first diag.Frame
	for _, s := range strings.Split(strings.Join(lines, ""), "\n") {
		open := strings.Index(s, "(")
		for open >= 0 {
			end := strings.Index(s[open:], "): ")
			if end < 0 {
				break
			}
			if n, err := strconv.Atoi(s[open+1 : open+end]); err == nil {
				f := diag.Frame{File: s[:open], Line: n, Func: strings.TrimSpace(s[open+end+3:])}
				if first.File == "" {
					first = f
				}
				if !diag.InPyTorch(f.File) {
					return f, true
				}
				break
			}
			next := strings.Index(s[open+1:], "(")
			if next < 0 {
				break
			}
			open += 1 + next
		}
		if first.File == "" {
			return first, false // not a stack at all
		}
	}
	return first, first.File != ""
}

// place gives the location of a node: the user's line if the archive has it,
// else the archive's own.
func (l *loader) place(f *function, candidates ...int) diag.Loc {
	r := l.loadRanges(f.src)
	for _, pos := range candidates {
		if fr, ok := r.at(pos); ok {
			if fr.Func == "" {
				fr.Func = f.def.Name
			}
			return l.m.Locs.Add(fr)
		}
	}
	line, col := f.src.place(candidates[0])
	return l.m.Locs.Add(diag.Frame{File: f.src.record, Line: line, Col: col, Func: f.def.Name})
}
