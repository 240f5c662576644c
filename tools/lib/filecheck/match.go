package filecheck

import (
	"fmt"
	"slices"
	"strings"
)

// matcher walks through the input once, label by label.
type matcher struct {
	check   File
	input   File
	opts    Options
	vars    *variables
	reports []string
}

// run divides the input at the -LABEL lines, and checks each part by itself: one that
// fails does not hide what is wrong behind the next label.
func (m *matcher) run(checks []*directive) {
	text := m.input.Text
	begin := 0 // of the part that is looked at
	for i, j := 0, 0; ; {
		for j < len(checks) && checks[j].kind != label {
			j++
		}
		end, last := len(text), j == len(checks)
		if !last {
			at, ok := m.find(checks[j], begin, len(text))
			if !ok {
				return
			}
			end = at.end
			j++
		}
		if i > 0 && m.opts.EnableVarScope {
			m.vars.clearLocal()
		}
		pos := begin
		for ; i < j; i++ {
			next, ok := m.positive(checks[i], pos, end)
			if !ok {
				i = j
				break
			}
			pos = next
		}
		begin = end
		if last {
			return
		}
	}
}

// find looks for a directive in text[pos:end] as often as it wants, and reports when it is not there.
func (m *matcher) find(d *directive, pos, end int) (match, bool) {
	found := match{-1, pos}
	for n := range d.count {
		at, ok, err := d.pat.find(m.input.Text[found.end:end], m.vars)
		if !ok {
			m.missing(d, found.end, end, n, err)
			return match{}, false
		}
		if found.pos < 0 {
			found.pos = pos + at.pos
		}
		found.end += at.end
	}
	return found, true
}

// positive checks a directive and the -DAG and -NOT lines ahead of it in text[pos:end]; it gives where to go on.
func (m *matcher) positive(d *directive, pos, end int) (int, bool) {
	from, nots, ok := m.dags(d.before, pos, end)
	if !ok {
		return 0, false
	}
	at, ok := m.find(d, from, end)
	if !ok {
		return 0, false
	}
	lines := strings.Count(m.input.Text[from:at.pos], "\n")
	switch {
	case d.kind == same && lines > 0:
		m.misplaced(d, "is not on the same line as the match before it", from, at)
		return 0, false
	case (d.kind == next || d.kind == empty) && lines == 0:
		m.misplaced(d, "is on the same line as the match before it", from, at)
		return 0, false
	case (d.kind == next || d.kind == empty) && lines > 1:
		m.misplaced(d, "is not on the line after the match before it", from, at)
		return 0, false
	}
	if !m.absent(nots, from, at.pos) {
		return 0, false
	}
	return at.end, true
}

// dags matches groups of -DAG lines, which may come in any order but not overlap, and checks the -NOT lines between them. It
// gives the end of the last group and the -NOT lines behind it.
func (m *matcher) dags(ds []*directive, pos, end int) (int, []*directive, bool) {
	var nots []*directive
	var taken []match // in order
	for i, d := range ds {
		if d.kind == not {
			nots = append(nots, d)
			continue
		}
		at := match{pos, pos}
		for k := 0; ; {
			found, ok, err := d.pat.find(m.input.Text[at.pos:end], m.vars)
			if !ok {
				m.missing(d, at.pos, end, 0, err)
				return 0, nil, false
			}
			at = match{at.pos + found.pos, at.pos + found.end}
			for k < len(taken) && taken[k].end <= at.pos {
				k++
			}
			if k == len(taken) || at.end <= taken[k].pos {
				taken = slices.Insert(taken, k, at)
				break
			}
			at.pos = taken[k].end
			k++
		}
		if i+1 == len(ds) || ds[i+1].kind == not {
			if !m.absent(nots, pos, taken[0].pos) {
				return 0, nil, false
			}
			nots = nil
			pos = taken[len(taken)-1].end
			taken = nil
		}
	}
	return pos, nots, true
}

// absent reports the first of the directives that is in text[pos:end] after all.
func (m *matcher) absent(nots []*directive, pos, end int) bool {
	clean := true
	for _, d := range nots {
		at, found, err := d.pat.find(m.input.Text[pos:end], m.vars)
		switch {
		case err != nil:
			m.missing(d, pos, end, 0, err)
			clean = false
		case found:
			m.excluded(d, match{pos + at.pos, pos + at.end})
			clean = false
		}
	}
	return clean
}

func (m *matcher) head(d *directive) string {
	name := d.name
	if d.line == 0 {
		return fmt.Sprintf("error: --implicit-check-not='%s'", d.source)
	}
	return fmt.Sprintf("%s:%d:%d: error: %s", m.check.Name, d.line, d.column, name)
}

// place gives "name:line:column" of an offset in the input.
func (m *matcher) place(pos int) string {
	before := m.input.Text[:pos]
	line := strings.Count(before, "\n") + 1
	return fmt.Sprintf("%s:%d:%d", m.input.Name, line, pos-strings.LastIndexByte(before, '\n'))
}

// lineAt is the line around an offset, indented to stand out, with a mark under it.
func (m *matcher) lineAt(pos int) string {
	text := m.input.Text
	start := strings.LastIndexByte(text[:pos], '\n') + 1
	stop := len(text)
	if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
		stop = pos + i
	}
	return fmt.Sprintf("    %s\n    %s^\n", text[start:stop], strings.Repeat(" ", pos-start))
}

func (m *matcher) report(b *strings.Builder) {
	m.reports = append(m.reports, strings.TrimRight(b.String(), "\n"))
}

func (m *matcher) sourceLine(b *strings.Builder, d *directive) {
	if d.line > 0 {
		fmt.Fprintf(b, "    %s\n", d.source)
	}
}

func (m *matcher) missing(d *directive, pos, end, count int, err error) {
	var b strings.Builder
	switch {
	case err != nil:
		fmt.Fprintf(&b, "%s: %v\n", m.head(d), err)
	case d.count > 1:
		fmt.Fprintf(&b, "%s: expected string not found in input (%d of %d times)\n", m.head(d), count, d.count)
	default:
		fmt.Fprintf(&b, "%s: expected string not found in input\n", m.head(d))
	}
	m.sourceLine(&b, d)
	fmt.Fprintf(&b, "%s: note: scanning from here\n%s", m.place(pos), m.lineAt(pos))
	if near := m.nearest(d, pos, end); near >= 0 {
		fmt.Fprintf(&b, "%s: note: the nearest line\n%s", m.place(near), m.lineAt(near))
	}
	m.values(&b, d)
	m.report(&b)
}

func (m *matcher) misplaced(d *directive, what string, before int, at match) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", m.head(d), what)
	m.sourceLine(&b, d)
	fmt.Fprintf(&b, "%s: note: it is here\n%s", m.place(at.pos), m.lineAt(at.pos))
	fmt.Fprintf(&b, "%s: note: the match before it ends here\n%s", m.place(before), m.lineAt(before))
	m.values(&b, d)
	m.report(&b)
}

func (m *matcher) excluded(d *directive, at match) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: excluded string found in input\n", m.head(d))
	m.sourceLine(&b, d)
	fmt.Fprintf(&b, "%s: note: it is here\n%s", m.place(at.pos), m.lineAt(at.pos))
	m.values(&b, d)
	m.report(&b)
}

// values tells what the variables stand for that the directive uses.
func (m *matcher) values(b *strings.Builder, d *directive) {
	told := map[string]bool{}
	for _, p := range d.pat.pieces {
		name := p.name
		if p.kind == numberPiece {
			name = p.number.expr.name
		}
		if name == "" || told[name] || p.kind == definePiece {
			continue
		}
		told[name] = true
		if v, ok := m.vars.strings[name]; ok && p.kind == usePiece {
			fmt.Fprintf(b, "note: with %q equal to %q\n", name, v)
		} else if v, ok := m.vars.numbers[name]; ok {
			fmt.Fprintf(b, "note: with %q equal to %s\n", name, v.format.spell(v.value))
		}
	}
}

const (
	nearLines  = 200 // how far to look for the line that was meant
	nearLength = 300 // and how much of a line to compare
)

// nearest gives the offset of the line that is most like the pattern, or -1 when none is.
func (m *matcher) nearest(d *directive, pos, end int) int {
	var want strings.Builder
	for _, p := range d.pat.pieces {
		switch p.kind {
		case literalPiece:
			want.WriteString(p.text)
		case usePiece:
			want.WriteString(m.vars.strings[p.name])
		}
	}
	text := strings.TrimSpace(want.String())
	if len(text) < 3 {
		return -1
	}
	text = text[:min(len(text), nearLength)]
	best, bestAt := len(text)*3/5, -1
	for n := 0; n < nearLines && pos < end; n++ {
		stop := end
		if i := strings.IndexByte(m.input.Text[pos:end], '\n'); i >= 0 {
			stop = pos + i
		}
		line := m.input.Text[pos:stop]
		if cost := distance(text, line[:min(len(line), nearLength)]); cost < best && strings.TrimSpace(line) != "" {
			best, bestAt = cost, pos+len(line)-len(strings.TrimLeft(line, " "))
		}
		pos = stop + 1
	}
	return bestAt
}

// distance is how many edits make a out of some part of b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return slices.Min(row)
}
