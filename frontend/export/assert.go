package export

import (
	"errors"
	"strings"

	"github.com/aton-project/aton/frontend/archive"
)

// assertion is a condition that the program checks while it runs. The ONNX model
// does not: what is known to hold is dropped, what is known to fail is an error,
// and the rest is documented in the metadata.
type assertion struct {
	e    *expr  // nil if the text is no expression
	text string // as the program has it
	at   string // the user's line
	node string // the operator
}

// assertion reads the message of an assertion, in which torch.export states the condition.
func (im *importer) assertion(sc *scope, msg *argument) {
	if msg == nil {
		return
	}
	text, generated := strings.CutPrefix(msg.s, "Runtime assertion failed for expression ")
	if i := strings.LastIndex(text, " on node '"); i >= 0 {
		text = text[:i]
	}
	a := assertion{text: text, at: im.m.Locs.String(sc.at)}
	if sc.node != nil {
		a.node = sc.node.target
	}
	if generated {
		if e, err := parseExpr(text); err == nil {
			a.e = e
		}
	}
	im.asserts = append(im.asserts, a)
}

// assertions gives the conditions that are left, one a line, in the symbols that the model has.
func (im *importer) assertions() string {
	var b strings.Builder
	seen := map[string]bool{}
	// the ranges of sizes that depend on data come from assertions: they prove nothing
	t := newSymbols(im.Warnf)
	t.facts = im.syms.facts
	for name, e := range im.syms.table {
		if !strings.HasPrefix(name, "u") {
			t.table[name] = e
		}
	}
	for name, lo := range im.syms.mins {
		if t.mins[name] = lo; strings.HasPrefix(name, "u") {
			t.mins[name] = -1 << 63
		}
	}
	for _, a := range im.asserts {
		text := a.text
		if a.e != nil {
			holds, known := t.truth(a.e)
			text = im.inSymbols(a.e).str()
			if known && !holds {
				where := a.node
				if a.at != "" {
					where = a.at + ": " + where
				}
				panic(&archive.Error{File: im.File, Record: im.record, Offset: -1, Node: where, Err: errors.New("the program asserts " + text + ", and the inputs given do not satisfy it")})
			}
			if known {
				continue
			}
		}
		if line := text + im.legend(a.e); !seen[line] {
			seen[line] = true
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// inSymbols writes an expression with what is known of its symbols.
func (im *importer) inSymbols(e *expr) *expr {
	if e.op == "name" {
		if f, ok := im.syms.facts[e.text]; ok {
			if p, err := parseExpr(f.String()); err == nil {
				return p
			}
		}
		return e
	}
	c := *e
	c.args = make([]*expr, len(e.args))
	for i, a := range e.args {
		c.args[i] = im.inSymbols(a)
	}
	return &c
}

// legend says which values of the graph the symbols are that no input has.
func (im *importer) legend(e *expr) string {
	if e == nil {
		return ""
	}
	var b strings.Builder
	seen := map[string]bool{}
	var walk func(e *expr)
	walk = func(e *expr) {
		if e.op == "name" && !seen[e.text] {
			seen[e.text] = true
			if v := im.values[e.text]; v != "" {
				b.WriteString(", where " + e.text + " is " + v)
			}
		}
		for _, a := range e.args {
			walk(a)
		}
	}
	walk(e)
	return b.String()
}

// unbacked records the value that a symbol stands for: the first one that is no input's size.
func (im *importer) unbacked(sc *scope, name string) {
	s := symbolOf(sc.g.ints[name].expr)
	if s == "" || !strings.HasPrefix(s, "u") || im.values[s] != "" {
		return
	}
	v := name
	if at := im.m.Locs.String(sc.at); at != "" {
		v += " (" + at + ")"
	}
	im.values[s] = v
}
