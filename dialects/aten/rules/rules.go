// Package rules reads files of rules that say, without a line of Go, how operators of PyTorch or of a user's library are
// converted, and puts them into a table of operators. docs/rules.md describes the files; their patterns are those of package
// ssa/pattern, which also reads the rules that are built in.
//
// All that can be known when a file is read is checked then: a rule that is accepted may turn out not to apply to a call, but
// what it makes is an operator that there is, with operands and attributes that it has.
package rules

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/pattern"
)

// Set is what files of rules say.
type Set struct {
	// Domains are the versions of custom domains.
	Domains map[string]int

	locs     diag.Table
	declared []*ssa.Schema
	rules    []*rule
}

// Source is the text of a file of rules.
type Source struct{ Name, Text string }

// rule is one rule of a file.
type rule struct {
	name  string
	place place
	from  []pattern.Sought
	lines []fromLine // of from
	where []condition
	to    []toLine
	used  atomic.Bool
	// broken says that a line of it could not be read.
	broken bool
}

// place is where something stands in a file; lines and columns count from 1.
type place struct {
	file         string
	line, column int
}

func (p place) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column) }

// fromLine is where a line of a rule stands that is looked for.
type fromLine struct {
	text string
	at   place
}

// toLine is an operator that a rule makes.
type toLine struct {
	pattern.Line
	text string
	at   place
}

// condition is a demand on what is bound.
type condition struct {
	pattern.Condition
	text string
	at   place
}

// Errors is all that is wrong with files of rules.
type Errors struct{ list *diag.List }

// Error has a line for each: FILE:LINE:COLUMN: what is wrong; what to do.
func (e *Errors) Error() string {
	var lines []string
	for _, d := range e.list.Items {
		f := e.list.Table.Frame(d.Loc)
		text := fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col+1, d.Message)
		if d.Hint != "" {
			text += "; " + d.Hint
		}
		lines = append(lines, text)
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the errors as diagnostics.
func (e *Errors) Unwrap() error { return e.list }

// Load reads files of rules. If they have mistakes, the error is an [*Errors].
func Load(paths ...string) (*Set, error) {
	sources := make([]Source, len(paths))
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sources[i] = Source{path, string(text)}
	}
	return Parse(sources...)
}

// Parse is like Load but reads from memory. A source may use operators that another one declares.
func Parse(sources ...Source) (*Set, error) {
	r := &reader{set: &Set{Domains: map[string]int{}}, table: &aten.Table{}, names: map[string]place{}}
	r.list.Table = &r.set.locs
	for _, s := range sources {
		r.file(s)
	}
	for _, u := range r.set.rules {
		r.check(u)
	}
	if r.list.Err() != nil {
		r.sort(sources)
		return nil, &Errors{&r.list}
	}
	return r.set, nil
}

// sort orders the errors as the files have them.
func (r *reader) sort(sources []Source) {
	slices.SortStableFunc(r.list.Items, func(a, b diag.Diagnostic) int {
		x, y := r.set.locs.Frame(a.Loc), r.set.locs.Frame(b.Loc)
		file := func(name string) int { return slices.IndexFunc(sources, func(s Source) bool { return s.Name == name }) }
		return cmp.Or(cmp.Compare(file(x.File), file(y.File)), cmp.Compare(x.Line, y.Line), cmp.Compare(x.Col, y.Col))
	})
}

// Register puts the rules and declarations into a table. Rules go before what the table has; where none of them fits a call,
// that is what converts it.
func (s *Set) Register(t *aten.Table) error {
	for _, d := range s.declared {
		if err := t.Declare(d); err != nil {
			return err
		}
	}
	byRoot := map[ssa.Kind][]*rule{}
	for _, u := range s.rules {
		root := u.root()
		byRoot[root.Kind] = append(byRoot[root.Kind], u)
		for i := range u.from[:len(u.from)-1] {
			if !isONNX(&u.from[i]) { // one that nothing uses any more goes
				t.Absorb(u.from[i].Kind)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(byRoot)) {
		list := byRoot[k]
		register := t.Register
		if isONNX(list[0].root()) {
			register = t.Replace
		}
		err := register(k, aten.Def{Doc: "rules of a file", LowerN: func(l *aten.Lowering) []*ssa.Value { return apply(l, list) }})
		if err != nil {
			return fmt.Errorf("%s: %w", list[0].place, err)
		}
	}
	return nil
}

// Unused lists the rules that no conversion has used so far, as warnings.
func (s *Set) Unused() *diag.List {
	list := &diag.List{Table: &s.locs}
	for _, u := range s.rules {
		if !u.used.Load() {
			loc := s.locs.Add(diag.Frame{File: u.place.file, Line: u.place.line, Col: u.place.column - 1})
			list.Add(diag.Diagnostic{Severity: diag.Warning, ID: "unused-rule", Loc: loc, Message: "rule " + u.name + " fits nothing in the model"})
		}
	}
	return list
}

func (u *rule) root() *pattern.Sought { return &u.from[len(u.from)-1] }

// isONNX says that a line is about an operator of ONNX, whose operands go by their place.
func isONNX(l *pattern.Sought) bool { return l.Kind.Namespace() == onnx.Namespace }

// describe names a rule in messages.
func (u *rule) describe() string {
	return fmt.Sprintf("rule %s (%s:%d)", u.name, u.place.file, u.place.line)
}

// Rule is what a rule of a set looks for, for those who try it.
type Rule struct {
	Name, Place string
	From        []pattern.Line
	// ONNX says that it is about operators of ONNX.
	ONNX bool
}

// Rules lists the rules of the set, in the order of the files.
func (s *Set) Rules() []Rule {
	var out []Rule
	for _, u := range s.rules {
		r := Rule{Name: u.name, Place: u.place.String(), ONNX: isONNX(u.root())}
		for _, l := range u.from {
			r.From = append(r.From, l.Line)
		}
		out = append(out, r)
	}
	return out
}

// Only is the set with rule i of [Set.Rules] alone.
func (s *Set) Only(i int) *Set {
	one := *s
	one.rules = s.rules[i : i+1 : i+1]
	return &one
}
