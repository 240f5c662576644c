package onnx

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/pattern"
)

// bodyFiles are the bodies of composite operators, in lines of the IR as rules have them (package ssa/pattern). README.md tells the language.
//
//go:embed bodies/*.ir
var bodyFiles embed.FS

// body is what an operator computes, by other operators in their newest form. Whatever expresses the operator is made of it: its step
// to opsets before it came, the way for types without a kernel, the plan of a GPU, and the kernel. One whose name begins with a small
// letter is a part that others use.
type body struct {
	name   string
	params []pattern.Term // %x or $n
	stmts  []stmt
	at     string // file and line
}

// stmt is a statement of a body: one of its fields is set.
type stmt struct {
	number int // of its line in the file
	line   *pattern.Line
	define string // $NAME = term
	term   pattern.Term
	cond   *pattern.Condition // if: then, else otherwise
	then   []stmt
	not    []stmt
	fail   string // the operator is wrong
	needs  string // nothing but the operator can say it
	give   []pattern.Term
	gives  bool // return
}

// bodies reads the bodies once, when the first is asked for.
var bodies = sync.OnceValue(func() map[string]*body {
	out, err := readBodies()
	if err != nil {
		panic(err) // a mistake in the files, which are part of the program: a test reads them
	}
	return out
})

func readBodies() (map[string]*body, error) {
	files, err := fs.Glob(bodyFiles, "bodies/*.ir")
	if err != nil {
		return nil, err
	}
	out := map[string]*body{}
	for _, name := range files {
		text, err := bodyFiles.ReadFile(name)
		if err == nil {
			err = parseBodies(name, string(text), out)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, b := range out {
		if err := b.check(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// bodyReader reads the lines of a file of bodies.
type bodyReader struct {
	file  string
	lines []string
	at    int
}

func (r *bodyReader) wrong(line int, format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", r.file, line, fmt.Sprintf(format, args...))
}

// next is the line at hand without comment, and how far it is indented; ok is false at the end.
func (r *bodyReader) next() (text string, indent int, ok bool) {
	for ; r.at < len(r.lines); r.at++ {
		s := strings.TrimRight(r.lines[r.at], " ")
		text = strings.TrimLeft(s, " ")
		if text != "" && text[0] != '#' {
			return text, len(s) - len(text), true
		}
	}
	return "", 0, false
}

func parseBodies(file, text string, out map[string]*body) error {
	r := &bodyReader{file: file, lines: strings.Split(text, "\n")}
	for {
		s, indent, ok := r.next()
		if !ok {
			return nil
		}
		number := r.at + 1
		head, is := strings.CutPrefix(s, "body ")
		if !is || indent != 0 || !strings.HasSuffix(head, ":") {
			return r.wrong(number, "a body begins with: body NAME(%%x, ...):")
		}
		call, err := pattern.ParseTerm(strings.TrimSuffix(head, ":"))
		if err != nil || call.Kind != pattern.Call {
			return r.wrong(number, "a body begins with: body NAME(%%x, ...):")
		}
		if out[call.Name] != nil {
			return r.wrong(number, "%s has a body already", call.Name)
		}
		b := &body{name: call.Name, params: call.Terms, at: fmt.Sprintf("%s:%d", file, number)}
		r.at++
		if b.stmts, err = r.block(0); err != nil {
			return err
		}
		out[b.name] = b
	}
}

// block reads the statements that are indented more than a line.
func (r *bodyReader) block(outer int) ([]stmt, error) {
	var out []stmt
	for {
		s, indent, ok := r.next()
		if !ok || indent <= outer {
			return out, nil
		}
		st := stmt{number: r.at + 1}
		r.at++
		var err error
		switch word, rest, _ := strings.Cut(s, " "); {
		case word == "if" && strings.HasSuffix(rest, ":"):
			var c pattern.Condition
			if c, err = pattern.ParseCondition(strings.TrimSuffix(rest, ":")); err != nil {
				break
			}
			st.cond = &c
			if st.then, err = r.block(indent); err != nil {
				return nil, err
			}
			if s, i, ok := r.next(); ok && i == indent && s == "else:" {
				r.at++
				if st.not, err = r.block(indent); err != nil {
					return nil, err
				}
			}
		case word == "fail" || word == "needs":
			var t pattern.Term
			if t, err = pattern.ParseTerm(rest); err != nil {
				break
			}
			if word == "fail" {
				st.fail = t.Literal.Str()
			} else {
				st.needs = t.Literal.Str()
			}
		case word == "return":
			st.gives = true
			var t pattern.Term
			if t, err = pattern.ParseTerm("results" + rest); err == nil {
				st.give = t.Terms
			}
		case strings.HasPrefix(word, "$"):
			name, term, is := strings.Cut(s, " = ")
			if !is {
				return nil, r.wrong(st.number, "a line is $NAME = TERM")
			}
			st.define = name[1:]
			st.term, err = pattern.ParseTerm(term)
		default:
			var l pattern.Line
			l, err = pattern.ParseLine(s)
			st.line = &l
		}
		if err != nil {
			return nil, r.wrong(st.number, "%v", err)
		}
		out = append(out, st)
	}
}

// check looks whether a body names only what there is: bindings, functions, parts, and operators with their attributes.
func (b *body) check(all map[string]*body) error {
	c := &bodyCheck{b: b, all: all, bound: map[string]bool{}}
	for i := range b.params {
		switch p := &b.params[i]; p.Kind {
		case pattern.Value, pattern.Bound:
			c.bound[spelled(p)] = true
		default:
			return fmt.Errorf("%s: a parameter is %%x or $n", b.at)
		}
	}
	if !b.isPart() {
		s := SchemaOf(ssa.Kind(Namespace + "::" + b.name))
		if s == nil {
			return fmt.Errorf("%s: %s is no operator of ONNX", b.at, b.name)
		}
		if len(b.params) != len(s.Inputs) {
			return fmt.Errorf("%s: %s has %d inputs", b.at, b.name, len(s.Inputs))
		}
		for _, a := range s.Attrs {
			c.bound["$"+a.Name] = true
		}
	}
	return c.stmts(b.stmts)
}

func (b *body) isPart() bool { return b.name[0] >= 'a' && b.name[0] <= 'z' }

func spelled(t *pattern.Term) string {
	if t.Kind == pattern.Bound {
		return "$" + t.Name
	}
	return "%" + t.Name
}

type bodyCheck struct {
	b     *body
	all   map[string]*body
	bound map[string]bool
	line  int
}

func (c *bodyCheck) wrong(format string, args ...any) error {
	file, _, _ := strings.Cut(c.b.at, ":")
	return fmt.Errorf("%s:%d: %s", file, c.line, fmt.Sprintf(format, args...))
}

func (c *bodyCheck) stmts(list []stmt) error {
	for i := range list {
		s := &list[i]
		c.line = s.number
		var err error
		switch {
		case s.cond != nil:
			if err = c.terms(s.cond.Left); err == nil && s.cond.Op != "" {
				err = c.terms(s.cond.Right)
			}
			if err == nil {
				err = c.stmts(s.then)
			}
			if err == nil {
				err = c.stmts(s.not)
			}
		case s.gives:
			err = c.terms(s.give...)
		case s.define != "":
			err = c.terms(s.term)
			c.bound["$"+s.define] = true
		case s.line != nil:
			err = c.operator(s.line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *bodyCheck) operator(l *pattern.Line) error {
	for _, a := range l.Attrs {
		if err := c.terms(a.Value); err != nil {
			return err
		}
	}
	for i := range l.Operands {
		if err := c.terms(l.Operands[i].Term); err != nil {
			return err
		}
	}
	if l.Kind != "" {
		if err := c.called(string(l.Kind), len(l.Operands)); err != nil {
			return err
		}
		if s := SchemaOf(ssa.Kind(Namespace + "::" + string(l.Kind))); s != nil {
			for _, a := range l.Attrs {
				if s.Attr(a.Name) == nil {
					return c.wrong("%s has no attribute %s", l.Kind, a.Name)
				}
			}
		} else if len(l.Attrs) > 0 {
			return c.wrong("%s takes no attributes", l.Kind)
		}
	}
	for _, r := range l.Results {
		c.bound["%"+r.Name] = true
	}
	return nil
}

// called checks the name of what is called, and with how much.
func (c *bodyCheck) called(name string, n int) error {
	if f, ok := bodyFuncs[name]; ok {
		if n < f.least || n > f.most {
			return c.wrong("%s takes %d to %d arguments, not %d", name, f.least, f.most, n)
		}
		return nil
	}
	if p := c.all[name]; p != nil && p.isPart() {
		if n != len(p.params) {
			return c.wrong("%s takes %d arguments, not %d", name, len(p.params), n)
		}
		return nil
	}
	if SchemaOf(ssa.Kind(Namespace+"::"+name)) == nil {
		return c.wrong("%s is no operator, part or function", name)
	}
	return nil
}

func (c *bodyCheck) terms(ts ...pattern.Term) error {
	for i := range ts {
		t := &ts[i]
		switch t.Kind {
		case pattern.Value, pattern.Bound:
			if !c.bound[spelled(t)] {
				return c.wrong("%s is not defined", spelled(t))
			}
		case pattern.Word:
			if _, ok := pattern.DType(t.Name); !ok {
				return c.wrong("%s is no element type", t.Name)
			}
		case pattern.Call:
			if err := c.called(t.Name, len(t.Terms)); err != nil {
				return err
			}
		}
		if err := c.terms(t.Terms...); err != nil {
			return err
		}
	}
	return nil
}

// HasBody reports a composite operator: [Downgrade.Body] expresses it by others.
func HasBody(kind ssa.Kind) bool {
	if kind.Namespace() != Namespace {
		return false
	}
	return bodies()[kind.Name()] != nil
}
