package filecheck

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

type pieceKind int

const (
	literalPiece pieceKind = iota
	regexPiece
	definePiece
	usePiece
	numberPiece // defines, constrains or uses a number
)

type piece struct {
	kind   pieceKind
	text   string // literal text or regular expression
	name   string // the variable
	number numberUse
	groups int // in a regular expression
}

// pattern is what stands after a directive's colon.
type pattern struct {
	kind     kind
	pieces   []piece
	whole    bool // --match-full-lines
	blanks   bool // and blanks around the text do not matter
	repeats  bool // a variable is used behind its definition on the same line
	compiled *regexp.Regexp
}

var (
	nameForm    = regexp.MustCompile(`^\$?[A-Za-z_][A-Za-z0-9_]*`)
	errNoBlock  = errors.New("invalid substitution block: no ']]' found")
	errNoRegex  = errors.New("found start of regex string '{{' with no end '}}'")
	errNothing  = errors.New("found empty check string")
	errVariable = errors.New("a -LABEL line may not have variables")
)

func parsePattern(s string, line int, literal bool, vars *variables, opts Options, k kind) (pattern, error) {
	pat := pattern{kind: k, whole: opts.MatchFullLines && k != not, blanks: !opts.StrictWhitespace}
	if k == empty {
		if strings.TrimSpace(s) != "" {
			return pat, errors.New("found non-empty check string for an empty line")
		}
		return pat, nil
	}
	if s == "" {
		return pat, errNothing
	}
	defined := map[string]bool{}
	add := func(p piece) { pat.pieces = append(pat.pieces, p) }
	for s != "" {
		switch {
		case literal:
			add(piece{kind: literalPiece, text: s})
			s = ""
		case strings.HasPrefix(s, "{{"):
			end := strings.Index(s[2:], "}}")
			if end < 0 {
				return pat, errNoRegex
			}
			text := s[2 : end+2]
			n, err := countGroups(text)
			if err != nil {
				return pat, err
			}
			add(piece{kind: regexPiece, text: text, groups: n})
			s = s[end+4:]
		case strings.HasPrefix(s, "[["):
			end, err := blockEnd(s[2:])
			if err != nil {
				return pat, err
			}
			p, err := parseBlock(s[2:end+2], line, vars)
			if err != nil {
				return pat, err
			}
			if k == label && (p.kind != numberPiece || p.number.define != "" || p.number.expr.name != "") {
				return pat, errVariable
			}
			switch p.kind {
			case definePiece:
				defined[p.name] = true
			case usePiece:
				pat.repeats = pat.repeats || defined[p.name]
			case numberPiece:
				if e := p.number.expr; p.number.hasExpr && e.name != "" && defined["#"+e.name] {
					return pat, fmt.Errorf("numeric variable '%s' is defined on the same line", e.name)
				}
				if p.number.define != "" {
					defined["#"+p.number.define] = true
				}
			}
			add(p)
			s = s[end+4:]
		default:
			end := len(s)
			for _, mark := range []string{"{{", "[["} {
				if i := strings.Index(s, mark); i >= 0 && i < end {
					end = i
				}
			}
			add(piece{kind: literalPiece, text: s[:end]})
			s = s[end:]
		}
	}
	return pat, nil
}

func countGroups(re string) (int, error) {
	r, err := regexp.CompilePOSIX(re)
	if err != nil {
		return 0, fmt.Errorf("invalid regex: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	return r.NumSubexp(), nil
}

// blockEnd finds the ]] of a block, past brackets inside.
func blockEnd(s string) (int, error) {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '[':
			depth++
		case ']':
			if depth > 0 {
				depth--
			} else if strings.HasPrefix(s[i:], "]]") {
				return i, nil
			} else {
				return 0, errors.New("missing closing \"]\" for regex variable")
			}
		}
	}
	return 0, errNoBlock
}

func parseBlock(s string, line int, vars *variables) (piece, error) {
	if strings.HasPrefix(s, "#") {
		n, err := parseNumber(s[1:], line, vars)
		return piece{kind: numberPiece, number: n}, err
	}
	if strings.HasPrefix(s, "@LINE") {
		n, err := parseNumber(s, line, vars)
		return piece{kind: numberPiece, number: n}, err
	}
	name := nameForm.FindString(s)
	rest := s[len(name):]
	switch {
	case name == "":
		return piece{}, fmt.Errorf("invalid variable name in '[[%s]]'", s)
	case rest == "":
		return piece{kind: usePiece, name: name}, nil
	case rest[0] != ':':
		return piece{}, fmt.Errorf("invalid name in the use of a variable: '[[%s]]'", s)
	}
	if vars.isNumber[name] {
		return piece{}, fmt.Errorf("'%s' is a numeric variable already", name)
	}
	vars.isString[name] = true
	n, err := countGroups(rest[1:])
	if rest == ":" {
		err = fmt.Errorf("'[[%s]]' needs a regular expression behind the colon", s)
	}
	return piece{kind: definePiece, name: name, text: rest[1:], groups: n}, err
}

// match is where a pattern stands in a text.
type match struct{ pos, end int }

// errUndefined: a pattern uses variables without a value.
type errUndefined struct{ names []string }

func (e *errUndefined) Error() string {
	return "uses undefined variable(s): " + strings.Join(e.names, ", ")
}

var emptyLine = regexp.MustCompile(`(?m)\n$`)

// find looks for the first place in s where the pattern is, and stores the variables it defines.
func (p *pattern) find(s string, vars *variables) (match, bool, error) {
	switch p.kind {
	case endOfInput:
		return match{len(s), len(s)}, true, nil
	case empty:
		// the line end that the pattern begins with belongs to the line before
		at := emptyLine.FindStringIndex(s)
		if at == nil {
			return match{}, false, nil
		}
		return match{at[0] + 1, at[1]}, true, nil
	}
	if len(p.pieces) == 1 && p.pieces[0].kind == literalPiece && !p.whole {
		i := strings.Index(s, p.pieces[0].text)
		return match{i, i + len(p.pieces[0].text)}, i >= 0, nil
	}
	re := p.compiled
	if re == nil {
		text, fixed, err := p.expression(vars)
		if err != nil {
			return match{}, false, err
		}
		if re, err = regexp.CompilePOSIX(text); err != nil {
			return match{}, false, fmt.Errorf("invalid regex: %w", err)
		}
		if fixed {
			p.compiled = re
		}
	}
	if p.repeats {
		return p.findRepeating(s, re, vars)
	}
	at := re.FindStringSubmatchIndex(s)
	for at != nil {
		values, ok := p.captured(s, at, vars)
		if ok {
			vars.set(values)
			return match{at[0], at[1]}, true, nil
		}
		// a number that does not satisfy its constraint: go on behind it
		if at[0]+1 > len(s) {
			break
		}
		from := at[0] + 1
		if at = re.FindStringSubmatchIndex(s[from:]); at != nil {
			for i := range at {
				if at[i] >= 0 {
					at[i] += from
				}
			}
		}
	}
	return match{}, false, nil
}

// expression spells the pattern as one regular expression; fixed when it depends on no variable.
func (p *pattern) expression(vars *variables) (text string, fixed bool, err error) {
	var b strings.Builder
	fixed = true
	var missing []string
	if p.whole {
		b.WriteString("^")
		if p.blanks {
			b.WriteString(" *")
		}
	}
	defined := map[string]bool{}
	for _, q := range p.pieces {
		switch q.kind {
		case literalPiece:
			b.WriteString(regexp.QuoteMeta(q.text))
		case regexPiece, definePiece:
			b.WriteString("(" + q.text + ")")
			defined[q.name] = true
		case usePiece:
			if q.name != "" && defined[q.name] {
				b.WriteString(".*") // findRepeating looks closer
				continue
			}
			fixed = false
			value, ok := vars.strings[q.name]
			if n, isNumber := vars.numbers[q.name]; isNumber && !ok {
				value, ok = n.format.spell(n.value), true
			}
			if !ok {
				missing = append(missing, q.name)
			}
			b.WriteString(regexp.QuoteMeta(value))
		case numberPiece:
			re, err := q.number.expression(vars)
			if err != nil {
				missing = append(missing, q.number.expr.name)
			}
			fixed = fixed && !(q.number.hasExpr && q.number.expr.name != "")
			b.WriteString("(" + re + ")")
		}
	}
	if p.whole {
		if p.blanks {
			b.WriteString(" *")
		}
		b.WriteString("$")
	}
	if missing != nil {
		return "", false, &errUndefined{missing}
	}
	return b.String(), fixed, nil
}

// captured reads the variables from the groups of a match.
func (p *pattern) captured(s string, at []int, vars *variables) ([]assignment, bool) {
	var values []assignment
	group := 1
	for _, q := range p.pieces {
		switch q.kind {
		case regexPiece:
			group += 1 + q.groups
		case definePiece:
			if at[2*group] >= 0 {
				values = append(values, assignment{name: q.name, text: s[at[2*group]:at[2*group+1]]})
			}
			group += 1 + q.groups
		case numberPiece:
			v, err := q.number.read(s[at[2*group]:at[2*group+1]], vars)
			if err != nil {
				return nil, false
			}
			if q.number.define != "" {
				values = append(values, assignment{name: q.number.define, number: v, isNumber: true, format: q.number.format(vars)})
			}
			group++
		}
	}
	return values, true
}

// findRepeating is for lines that use a variable that they define themselves. Regular expressions without
// back-references cannot say that, so the pieces are tried one after the other, the longest first.
func (p *pattern) findRepeating(s string, rough *regexp.Regexp, vars *variables) (match, bool, error) {
	pieces := make([]*regexp.Regexp, len(p.pieces))
	for i, q := range p.pieces {
		text := q.text
		switch q.kind {
		case numberPiece:
			var err error
			if text, err = q.number.expression(vars); err != nil {
				return match{}, false, err
			}
		case regexPiece, definePiece:
		default:
			continue
		}
		re, err := regexp.CompilePOSIX("^(" + text + ")$")
		if err != nil {
			return match{}, false, err
		}
		pieces[i] = re
	}
	for start := 0; start <= len(s); {
		at := rough.FindStringIndex(s[start:])
		if at == nil {
			break
		}
		begin := start + at[0]
		stop := len(s)
		if i := strings.IndexByte(s[begin:], '\n'); i >= 0 {
			stop = begin + i
		}
		var values []assignment
		if end := p.try(s[:stop], begin, 0, pieces, vars, &values); end >= 0 {
			vars.set(values)
			return match{begin, end}, true, nil
		}
		start = begin + 1
	}
	return match{}, false, nil
}

// try matches the pieces from i on at pos and gives the end, or -1.
func (p *pattern) try(s string, pos, i int, pieces []*regexp.Regexp, vars *variables, values *[]assignment) int {
	if i == len(p.pieces) {
		if p.whole && strings.Trim(s[pos:], " ") != "" {
			return -1
		}
		return pos
	}
	q := p.pieces[i]
	want, fixed := q.text, q.kind == literalPiece
	if i == 0 && p.whole {
		for fixed && strings.HasPrefix(s[pos:], " ") && !strings.HasPrefix(want, " ") {
			pos++
		}
	}
	if q.kind == usePiece {
		fixed = true
		want = vars.strings[q.name]
		if n, ok := vars.numbers[q.name]; ok {
			want = n.format.spell(n.value)
		}
		for _, v := range *values {
			if v.name == q.name && !v.isNumber {
				want = v.text
			}
		}
	}
	if fixed {
		if !strings.HasPrefix(s[pos:], want) {
			return -1
		}
		return p.try(s, pos+len(want), i+1, pieces, vars, values)
	}
	for end := len(s); end >= pos; end-- {
		text := s[pos:end]
		if !pieces[i].MatchString(text) {
			continue
		}
		kept := len(*values)
		if q.kind == definePiece {
			*values = append(*values, assignment{name: q.name, text: text})
		}
		if q.kind == numberPiece {
			v, err := q.number.read(text, vars)
			if err != nil {
				continue
			}
			if q.number.define != "" {
				*values = append(*values, assignment{name: q.number.define, number: v, isNumber: true, format: q.number.format(vars)})
			}
		}
		if done := p.try(s, end, i+1, pieces, vars, values); done >= 0 {
			return done
		}
		*values = (*values)[:kept]
	}
	return -1
}
