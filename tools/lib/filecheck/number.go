package filecheck

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// numberFormat is how a number is spelled: u, d, x or X.
type numberFormat byte

func (f numberFormat) wildcard() string {
	switch f {
	case 'd':
		return "-?[0-9]+"
	case 'x':
		return "[0-9a-f]+"
	case 'X':
		return "[0-9A-F]+"
	}
	return "[0-9]+"
}

func (f numberFormat) spell(v int64) string {
	switch f {
	case 'x':
		return strconv.FormatInt(v, 16)
	case 'X':
		return strings.ToUpper(strconv.FormatInt(v, 16))
	}
	return strconv.FormatInt(v, 10)
}

func (f numberFormat) read(s string) (int64, error) {
	if f == 'x' || f == 'X' {
		return strconv.ParseInt(s, 16, 64)
	}
	return strconv.ParseInt(s, 10, 64)
}

type variables struct {
	strings  map[string]string
	numbers  map[string]numberValue
	isString map[string]bool // by what the patterns say, whether they have a value yet or not
	isNumber map[string]bool
}

type numberValue struct {
	value  int64
	format numberFormat
}

type assignment struct {
	name     string
	text     string
	number   int64
	isNumber bool
	format   numberFormat
}

func (v *variables) set(values []assignment) {
	for _, a := range values {
		if a.isNumber {
			v.numbers[a.name] = numberValue{a.number, a.format}
		} else {
			v.strings[a.name] = a.text
		}
	}
}

// clearLocal forgets what does not start with $.
func (v *variables) clearLocal() {
	for name := range v.strings {
		if name[0] != '$' {
			delete(v.strings, name)
		}
	}
	for name := range v.numbers {
		if name[0] != '$' {
			delete(v.numbers, name)
		}
	}
}

func newVariables(defines map[string]string) (*variables, error) {
	v := &variables{map[string]string{}, map[string]numberValue{}, map[string]bool{}, map[string]bool{}}
	for name, text := range defines {
		bare, number := strings.CutPrefix(name, "#")
		if nameForm.FindString(bare) != bare || bare == "" {
			return nil, fmt.Errorf("error: -D: %q is no name of a variable", name)
		}
		if !number {
			v.strings[bare] = text
			v.isString[bare] = true
			continue
		}
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("error: -D: %q is no number", text)
		}
		v.numbers[bare] = numberValue{value, 'u'}
		v.isNumber[bare] = true
	}
	return v, nil
}

// numberUse is a block such as [[#%x,N: M+1]].
type numberUse struct {
	spelled numberFormat // 0: that of the variable in the expression
	define  string
	hasExpr bool
	expr    sum
}

// sum is a variable, or none, and a constant.
type sum struct {
	name string
	add  int64
}

var (
	formatForm = regexp.MustCompile(`^%([udxX])[ \t]*(,|$)`)
	defineForm = regexp.MustCompile(`^[ \t]*(\$?[A-Za-z_][A-Za-z0-9_]*)[ \t]*:`)
	termForm   = regexp.MustCompile(`^[ \t]*(@LINE|\$?[A-Za-z_][A-Za-z0-9_]*|[0-9]+)[ \t]*`)
)

func parseNumber(s string, line int, vars *variables) (numberUse, error) {
	whole := s
	var n numberUse
	s = strings.TrimSpace(s)
	if m := formatForm.FindStringSubmatch(s); m != nil {
		n.spelled = numberFormat(m[1][0])
		s = s[len(m[0]):]
	} else if strings.HasPrefix(s, "%") {
		return n, fmt.Errorf("invalid format in '[[#%s]]': it is %%u, %%d, %%x or %%X", whole)
	}
	if m := defineForm.FindStringSubmatch(s); m != nil {
		n.define = m[1]
		if vars.isString[n.define] {
			return n, fmt.Errorf("'%s' is a string variable already", n.define)
		}
		vars.isNumber[n.define] = true
		s = s[len(m[0]):]
	}
	s = strings.TrimSpace(s)
	if s = strings.TrimSpace(strings.TrimPrefix(s, "==")); s == "" {
		return n, nil
	}
	n.hasExpr = true
	for sign := int64(1); ; {
		m := termForm.FindStringSubmatch(s)
		if m == nil {
			return n, fmt.Errorf("invalid numeric expression in '[[#%s]]': variables, numbers, @LINE, + and - are known", whole)
		}
		switch {
		case m[1] == "@LINE":
			n.expr.add += sign * int64(line)
		case m[1][0] >= '0' && m[1][0] <= '9':
			v, err := strconv.ParseInt(m[1], 10, 64)
			if err != nil {
				return n, fmt.Errorf("invalid number in '[[#%s]]'", whole)
			}
			n.expr.add += sign * v
		case n.expr.name != "" || sign < 0:
			return n, fmt.Errorf("'[[#%s]]': one variable, added, is all that is known", whole)
		default:
			if vars.isString[m[1]] {
				return n, fmt.Errorf("'%s' is a string variable", m[1])
			}
			n.expr.name = m[1]
		}
		if s = s[len(m[0]):]; s == "" {
			return n, nil
		}
		switch s[0] {
		case '+':
			sign = 1
		case '-':
			sign = -1
		default:
			return n, fmt.Errorf("invalid operation in '[[#%s]]': + and - are known", whole)
		}
		s = s[1:]
	}
}

func (n numberUse) format(vars *variables) numberFormat {
	if n.spelled != 0 {
		return n.spelled
	}
	if v, ok := vars.numbers[n.expr.name]; ok && n.hasExpr {
		return v.format
	}
	return 'u'
}

var errNotThere = errors.New("no value")

func (n numberUse) value(vars *variables) (int64, error) {
	if n.expr.name == "" {
		return n.expr.add, nil
	}
	v, ok := vars.numbers[n.expr.name]
	if !ok {
		return 0, errNotThere
	}
	return v.value + n.expr.add, nil
}

// expression is a regular expression for the number, without groups.
func (n numberUse) expression(vars *variables) (string, error) {
	if !n.hasExpr {
		return n.format(vars).wildcard(), nil
	}
	v, err := n.value(vars)
	if err != nil {
		return "", err
	}
	return regexp.QuoteMeta(n.format(vars).spell(v)), nil
}

// read gives the number that the text spells.
func (n numberUse) read(text string, vars *variables) (int64, error) {
	return n.format(vars).read(text)
}
