package filecheck

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type kind int

const (
	plain kind = iota
	next
	same
	not
	dag
	label
	empty
	endOfInput
)

var suffixes = map[string]kind{"": plain, "NEXT": next, "SAME": same, "NOT": not, "DAG": dag, "LABEL": label, "EMPTY": empty}

// directive is one check line.
type directive struct {
	kind   kind
	name   string // as written: CHECK-NEXT
	count  int    // of CHECK-COUNT-n; 1 else
	line   int    // in the check file, from 1
	column int
	source string // the whole line
	pat    pattern
	before []*directive // the -DAG and -NOT lines ahead of a positive one
}

// word finds everything that may be meant as a directive.
var word = regexp.MustCompile(`([A-Za-z][A-Za-z0-9_-]*)(\{[A-Za-z,]*\})?([ \t]*:)?`)

type checkParser struct {
	opts     Options
	file     File
	vars     *variables
	known    map[string]bool // prefixes that other RUN lines of the file use
	problems []string
}

func (p *checkParser) fail(line, column int, format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf("%s:%d:%d: error: %s", p.file.Name, line, column, fmt.Sprintf(format, args...)))
}

func parseChecks(file File, opts Options, vars *variables) ([]*directive, error) {
	p := &checkParser{opts: opts, file: file, vars: vars, known: otherPrefixes(file.Text)}
	implicit := p.implicit()
	var checks []*directive
	pending := slices.Clone(implicit)
	used := map[string]bool{}
	text := canonical(file.Text, opts.StrictWhitespace)
	for n, line := range strings.Split(text, "\n") {
		d, prefix := p.line(line, n+1)
		if d == nil {
			continue
		}
		used[prefix] = true
		switch d.kind {
		case not, dag:
			pending = append(pending, d)
			continue
		case next, same, empty:
			if len(checks) == 0 {
				p.fail(d.line, d.column, "found '%s' without a '%s:' line before it", d.name, prefix)
			}
		}
		d.before = pending
		pending = slices.Clone(implicit)
		checks = append(checks, d)
	}
	if !opts.AllowUnused || len(used) == 0 {
		for _, prefix := range opts.Prefixes {
			if !used[prefix] {
				p.problems = append(p.problems, fmt.Sprintf("%s: error: no directive has the prefix '%s:'", file.Name, prefix))
			}
		}
	}
	if len(pending) > 0 {
		last := pending[len(pending)-1]
		checks = append(checks, &directive{kind: endOfInput, name: last.name, count: 1, line: last.line, column: last.column, source: last.source, before: pending, pat: pattern{kind: endOfInput}})
	}
	if len(p.problems) > 0 {
		return nil, &SetupError{p.problems}
	}
	return checks, nil
}

func (p *checkParser) implicit() []*directive {
	var ds []*directive
	for _, text := range p.opts.ImplicitCheckNot {
		d := &directive{kind: not, name: "--implicit-check-not", count: 1, line: 0, source: text}
		var err error
		if d.pat, err = parsePattern(canonical(text, p.opts.StrictWhitespace), 0, false, p.vars, p.opts, not); err != nil {
			p.problems = append(p.problems, "error: --implicit-check-not: "+err.Error())
		}
		ds = append(ds, d)
	}
	return ds
}

// line gives the directive in a line of the check file, if it has one.
func (p *checkParser) line(line string, number int) (*directive, string) {
	for _, at := range word.FindAllStringSubmatchIndex(line, -1) {
		if at[0] > 0 && wordByte(line[at[0]-1]) {
			continue
		}
		name := line[at[2]:at[3]]
		colon := at[6] >= 0 && line[at[6]] == ':'
		if colon && slices.Contains(p.opts.CommentPrefixes, name) {
			return nil, ""
		}
		modifier := ""
		if at[4] >= 0 {
			modifier = line[at[4]:at[5]]
		}
		prefix, k, count, err := p.split(name)
		if err == nil && prefix == "" || !colon {
			if what := p.nearMiss(name, at[6] >= 0, line[:at[0]]); what != "" {
				p.fail(number, at[0]+1, "'%s' is no directive: did you mean '%s:'?", strings.TrimSpace(line[at[0]:at[1]]), what)
				return nil, ""
			}
			continue
		}
		d := &directive{kind: k, name: name, count: count, line: number, column: at[0] + 1, source: line}
		if err != nil {
			p.fail(number, at[0]+1, "%v", err)
			return nil, ""
		}
		literal := false
		switch modifier {
		case "":
		case "{LITERAL}":
			literal = true
			d.name += modifier
		default:
			p.fail(number, at[4]+1, "unknown modifier %s: only {LITERAL} is one", modifier)
			return nil, ""
		}
		rest := line[at[1]:]
		if !p.opts.StrictWhitespace || !p.opts.MatchFullLines {
			rest = strings.Trim(rest, " \t")
		}
		d.pat, err = parsePattern(rest, number, literal, p.vars, p.opts, k)
		if err != nil {
			p.fail(number, at[0]+1, "%s: %v", d.name, err)
			return nil, ""
		}
		return d, prefix
	}
	return nil, ""
}

// split takes a directive's name apart: its prefix (empty when it has none of ours), its kind and count.
func (p *checkParser) split(name string) (string, kind, int, error) {
	best := ""
	for _, prefix := range p.opts.Prefixes {
		if (name == prefix || strings.HasPrefix(name, prefix+"-")) && len(prefix) > len(best) {
			best = prefix
		}
	}
	if best == "" {
		return "", 0, 0, nil
	}
	rest := strings.TrimPrefix(name[len(best):], "-")
	if name != best && rest == "" {
		return "", 0, 0, nil
	}
	if k, ok := suffixes[rest]; ok {
		return best, k, 1, nil
	}
	if number, ok := strings.CutPrefix(rest, "COUNT-"); ok {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || n == 0 {
			return best, 0, 0, fmt.Errorf("invalid count in '%s': it is a positive number", name)
		}
		return best, plain, int(n), nil
	}
	for _, part := range strings.Split(rest, "-") {
		if part == "NOT" && strings.Trim(strings.ReplaceAll(rest, "NOT", ""), "-") != "" {
			if _, ok := suffixes[strings.Trim(strings.ReplaceAll(rest, "NOT", ""), "-")]; ok {
				return best, 0, 0, fmt.Errorf("'%s': -NOT goes with no other suffix", name)
			}
		}
	}
	return "", 0, 0, nil
}

func wordByte(c byte) bool {
	return c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

var prefixFlag = regexp.MustCompile(`--?check-prefix(?:es)?[= ]([A-Za-z0-9_,-]+)`)

// otherPrefixes are those that RUN lines of the file name: no misspellings, even when this run does not use them.
func otherPrefixes(text string) map[string]bool {
	known := map[string]bool{}
	for _, m := range prefixFlag.FindAllStringSubmatch(text, -1) {
		for _, p := range strings.Split(m[1], ",") {
			known[p] = true
		}
	}
	return known
}

// nearMiss gives the directive that a word was probably meant to be, or "". Prose is left alone: without a
// colon only a correct name at the start of a comment counts, and words in lower case never do.
func (p *checkParser) nearMiss(name string, colon bool, ahead string) string {
	if name != strings.ToUpper(name) {
		return ""
	}
	for prefix := range p.known {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if _, fine := suffixes[strings.TrimPrefix(rest, "-")]; fine && rest != "-" {
				return ""
			}
			if strings.HasPrefix(rest, "-COUNT-") {
				return ""
			}
		}
	}
	if !colon {
		if strings.Trim(ahead, " \t#/;") != "" {
			return ""
		}
		if prefix, k, _, err := p.split(name); err == nil && prefix != "" && k != plain {
			return name
		}
		return ""
	}
	for _, prefix := range p.opts.Prefixes {
		if name == prefix {
			return name
		}
		head, tail, found := name, "", false
		if len(name) > len(prefix) && name[:len(prefix)] == prefix {
			// CHECKNEXT, CHECK_NEXT, CHECK-NXT
			head, tail, found = prefix, strings.TrimLeft(name[len(prefix):], "-_"), true
		} else if i := strings.IndexAny(name, "-_"); i > 0 && !strings.ContainsAny(prefix, "-_") {
			head, tail, found = name[:i], name[i+1:], true
		}
		if head != prefix && !(len(prefix) >= 4 && oneSlip(head, prefix)) {
			continue
		}
		if !found {
			return prefix
		}
		if strings.HasPrefix(tail, "COUNT") {
			return prefix + "-COUNT-n"
		}
		for _, s := range []string{"NEXT", "SAME", "NOT", "DAG", "LABEL", "EMPTY"} {
			if tail == s || oneSlip(tail, s) {
				return prefix + "-" + s
			}
		}
	}
	return ""
}

// oneSlip says whether a is b with one letter dropped, doubled, changed, or two neighbours swapped. Digits tell names apart.
func oneSlip(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	ra, rb := a[i:], b[i:]
	letters := func(s string) bool { return s == "" || s[0] >= 'A' && s[0] <= 'Z' }
	switch {
	case a == b || !letters(ra) || !letters(rb):
		return false
	case len(a) == len(b):
		return ra[1:] == rb[1:] || len(ra) > 1 && ra[0] == rb[1] && ra[1] == rb[0] && ra[2:] == rb[2:]
	case len(a) == len(b)+1:
		return i > 0 && ra[1:] == rb // XCHECK is how people switch a line off
	case len(a)+1 == len(b):
		return ra == rb[1:]
	}
	return false
}
