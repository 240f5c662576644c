package script

import (
	"fmt"
	"regexp"
	"strings"
)

// A file with a line "# AUTOCHECK" or "# AUTOCHECK PREFIX" has its check lines made: all "# PREFIX..." lines of the file belong to
// the runner. Checks of other prefixes are somebody's own. What a function becomes stands right above the function; what is
// printed before the first one, and what has no function in the file, stands behind the AUTOCHECK line.
var autoLine = regexp.MustCompile(`^#[ \t]*AUTOCHECK(?:[ \t]+([A-Za-z][A-Za-z0-9_-]*))?[ \t]*$`)

// Update is the text of a test file with its AUTOCHECK blocks made anew from what the commands
// print now. It is the text itself when there are none.
func (r *Runner) Update(t *Test, scratch string) (string, error) {
	lines := strings.Split(t.Text, "\n")
	for n, line := range lines {
		m := autoLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		prefix := m[1]
		if prefix == "" {
			prefix = "CHECK"
		}
		printed, err := r.checked(t, prefix, scratch)
		if err != nil {
			return "", fmt.Errorf("%s:%d: %w", t.Path, n+1, err)
		}
		lines = place(without(lines, prefix), line, prefix, sections(string(printed)))
	}
	return strings.Join(lines, "\n"), nil
}

// without drops the check lines of a prefix.
func without(lines []string, prefix string) []string {
	check := regexp.MustCompile(`^# ` + regexp.QuoteMeta(prefix) + `(-[A-Z0-9-]+)?:`)
	var out []string
	for _, line := range lines {
		if !check.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

// section is a function as it is printed; that before the first one has no lines of a function.
type section struct {
	name  string // @name, or "" for a function without one
	lines []string
}

var functionName = regexp.MustCompile(`^\w+ (@[A-Za-z0-9_.$]+)`)

func nameOf(line string) string {
	if m := functionName.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return ""
}

// sections splits what is printed at its functions; the first one is what stands before them.
func sections(printed string) []section {
	out := []section{{}}
	besides := false
	for _, line := range strings.Split(strings.TrimRight(printed, "\n"), "\n") {
		line = strings.TrimRight(line, " \t")
		if line == "module {" || line == "known {" || line == "data {" { // who wants to check what a module has besides its graphs writes the checks
			besides = true
		}
		if besides {
			besides = line != "}"
			continue
		}
		if graphLine.MatchString(line) {
			out = append(out, section{name: nameOf(line)})
		}
		last := &out[len(out)-1]
		last.lines = append(last.lines, line)
	}
	for i := range out {
		for n := len(out[i].lines); n > 0 && (out[i].lines[n-1] == "" || partLine.MatchString(out[i].lines[n-1])); n-- {
			out[i].lines = out[i].lines[:n-1]
		}
	}
	return out
}

// place puts the checks of each section above the function of the file that has its name, or, if it has none (a file's only
// function is printed without it), the next one. Checks must be in the order of what is printed, so a section whose function is not there
// goes with the one before it.
func place(lines []string, auto, prefix string, printed []section) []string {
	checks := map[int][]string{} // by line of the file: what goes above it
	behind := -1                 // the line of the function that the last section went to
	var head []string
	for i, s := range printed {
		found := -1
		for n := behind + 1; i > 0 && n < len(lines); n++ {
			if graphLine.MatchString(lines[n]) && (s.name == "" || nameOf(lines[n]) == s.name) {
				found = n
				break
			}
		}
		made := checkLines(s.lines, prefix, i > 0)
		switch {
		case found >= 0:
			behind = found
			checks[found] = made
		case behind >= 0:
			checks[behind] = append(checks[behind], made...)
		default:
			head = append(head, made...)
		}
	}
	var out []string
	for n, line := range lines {
		out = append(out, checks[n]...)
		out = append(out, line)
		if line == auto {
			out = append(out, head...)
		}
	}
	return out
}

// checked gives what the one FileCheck command with the prefix reads.
func (r *Runner) checked(t *Test, prefix, scratch string) ([]byte, error) {
	var found []byte
	n := 0
	for _, line := range t.Lines {
		for _, p := range line.Chain {
			last := p[len(p)-1]
			if last.Name != "FileCheck" || prefixOf(last.Args) != prefix || len(p) == 1 {
				if len(line.Chain) > 1 { // what a later part of the chain reads
					if _, err := r.Pipe(t, line, p, scratch); err != nil {
						return nil, err
					}
				}
				continue
			}
			var err error
			if found, err = r.Pipe(t, line, p[:len(p)-1], scratch); err != nil {
				return nil, err
			}
			n++
		}
	}
	if n != 1 {
		return nil, fmt.Errorf("AUTOCHECK wants exactly one RUN line that pipes into FileCheck with the prefix %s; there are %d", prefix, n)
	}
	return found, nil
}

func prefixOf(args []string) string {
	for i, a := range args {
		name, value, ok := strings.Cut(strings.TrimLeft(a, "-"), "=")
		if name == "check-prefix" || name == "check-prefixes" {
			if !ok && i+1 < len(args) {
				value = args[i+1]
			}
			return value
		}
	}
	return "CHECK"
}

var (
	valueName = regexp.MustCompile(`%[A-Za-z0-9_][A-Za-z0-9_.]*`)
	graphLine = regexp.MustCompile(`^(graph|func|module|define|kernel)\b`)
	partLine  = regexp.MustCompile(`^(#|//) -----$`)
	labelled  = regexp.MustCompile(`^\w+ ?(@[A-Za-z0-9_.$]+)?\(`)
	digest    = regexp.MustCompile(`\b(k_[a-z]+_)[0-9a-f]{12}\b`) // of a kernel, in its name
	notWord   = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// checkLines spells each printed line as a check, values as variables: renumbering changes no test. A function begins with a
// LABEL, which holds no variable.
func checkLines(printed []string, prefix string, function bool) []string {
	var out []string
	names := map[string]string{} // value to variable
	taken := map[string]bool{}
	for n, line := range printed {
		directive := prefix + "-NEXT: "
		if n == 0 {
			directive = prefix + ": "
			if label := labelled.FindString(line); function && label != "" {
				out = append(out, "# "+prefix+"-LABEL: "+escape(label))
				directive = prefix + "-SAME: "
				line = line[len(label):]
			}
		}
		if line == "" {
			if n > 0 {
				out = append(out, "# "+prefix+"-EMPTY:")
			}
			continue
		}
		var b strings.Builder
		pos := 0
		for _, at := range valueName.FindAllStringIndex(line, -1) {
			before, bracket := strings.CutSuffix(line[pos:at[0]], "[") // three brackets are no variable
			if b.WriteString(escape(before)); bracket {
				b.WriteString(`{{\[}}`)
			}
			pos = at[1]
			value := line[at[0]:at[1]]
			name, known := names[value]
			if !known {
				name = variable(value, taken)
				names[value] = name
				fmt.Fprintf(&b, "[[%s:%%[A-Za-z0-9_.]+]]", name)
				continue
			}
			fmt.Fprintf(&b, "[[%s]]", name)
		}
		b.WriteString(escape(line[pos:]))
		out = append(out, "# "+directive+digest.ReplaceAllString(b.String(), "${1}{{[0-9a-f]+}}"))
	}
	return out
}

func variable(value string, taken map[string]bool) string {
	base := strings.ToUpper(strings.Trim(notWord.ReplaceAllString(value, "_"), "_"))
	if base == "" || base[0] >= '0' && base[0] <= '9' {
		base = "V" + base
	}
	name := base
	for n := 2; taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	taken[name] = true
	return name
}

// escape keeps text from being read as a block of FileCheck's.
func escape(s string) string {
	return strings.NewReplacer("[[", `{{\[\[}}`, "{{", `{{\{\{}}`).Replace(s)
}
