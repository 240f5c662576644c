package lit

import (
	"fmt"
	"regexp"
	"strings"
)

// A file with a line "# AUTOCHECK" or "# AUTOCHECK PREFIX" has its check lines made: the
// block of "# PREFIX..." lines right behind that line belongs to the runner. All other checks are somebody's own.
var autoLine = regexp.MustCompile(`^#[ \t]*AUTOCHECK(?:[ \t]+([A-Za-z][A-Za-z0-9_-]*))?[ \t]*$`)

// Update is the text of a test file with its AUTOCHECK blocks made anew from what the commands
// print now. It is the text itself when there are none.
func (r *Runner) Update(t *Test, scratch string) (string, error) {
	lines := strings.Split(t.Text, "\n")
	var out []string
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		m := autoLine.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		prefix := m[1]
		if prefix == "" {
			prefix = "CHECK"
		}
		printed, err := r.checked(t, prefix, scratch)
		if err != nil {
			return "", fmt.Errorf("%s:%d: %w", t.Path, i+1, err)
		}
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "# "+prefix) {
			i++
		}
		out = append(out, checkLines(string(printed), prefix)...)
	}
	return strings.Join(out, "\n"), nil
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
	graphLine = regexp.MustCompile(`^(graph|func|module|define)\b`)
	notWord   = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// checkLines spells each printed line as a check, values as variables: renumbering changes no test.
func checkLines(printed, prefix string) []string {
	var out []string
	names := map[string]string{} // value to variable
	taken := map[string]bool{}
	first := true
	for _, line := range strings.Split(strings.TrimRight(printed, "\n"), "\n") {
		line = strings.TrimRight(line, " \t")
		if graphLine.MatchString(line) {
			names, taken = map[string]string{}, map[string]bool{}
		}
		directive := prefix + "-NEXT"
		if first {
			directive = prefix
		}
		if line == "" {
			if !first {
				out = append(out, "# "+prefix+"-EMPTY:")
			}
			continue
		}
		var b strings.Builder
		pos := 0
		for _, at := range valueName.FindAllStringIndex(line, -1) {
			b.WriteString(escape(line[pos:at[0]]))
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
		out = append(out, "# "+directive+": "+b.String())
		first = false
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
