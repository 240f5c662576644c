// Package passes holds what transformations of an ssa.Module have in common: how one is described, how
// pipelines of them are spelled and run, and how a run is watched.
//
// A pass is one folder below this one with one exported Pass value. The folder passes/all lists them: there is no
// registration. A pass states a Before and an After, which a test executes, so the documentation cannot be wrong.
//
// # Errors
//
// What is wrong with the user's program goes to [Context.Report], and the pass goes on: all of it is told at once. An
// error that a pass returns is about the world outside, such as a file, and ends the run. What is wrong with us is a
// panic, a broken contract or an invalid module: a [*Failure], with a reproducer if the caller wants one.
package passes

import (
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Pass is one transformation of a module.
type Pass struct {
	Name string // a verb: functionalize
	Doc  string // one sentence
	// Before and After are graph text; a test insists that the pass makes the one the other.
	Before, After string
	// Demo are the options that Before is transformed with: "opset=17". Most passes need none.
	Demo    string
	Options []Option
	// Takes are the states that the pass needs the module to be in, Makes those that it brings about, Ends those that it leaves.
	Takes, Makes, Ends []State
	Requires           []Predicate // checked before the pass
	Ensures            []Predicate // checked after it
	Run                func(c *Context) error
}

// Option is a setting of a pass, given as name{option=value} in a pipeline.
type Option struct {
	Name, Default, Doc string
	// Int and Bool restrict the values to numbers, and to true and false.
	Int, Bool bool
	Values    []string // if not empty, the only values
}

// parse reads a value as it is spelled: an int, a bool or a string.
func (o *Option) parse(text string) (any, error) {
	switch {
	case o.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("option %s: %q is no number", o.Name, text)
		}
		return n, nil
	case o.Bool:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("option %s: it is true or false, not %q", o.Name, text)
		}
		return text == "true", nil
	}
	return text, o.check(text)
}

// check reports a value that is not of the option's type, or none of its values.
func (o *Option) check(value any) error {
	var ok bool
	switch {
	case o.Int:
		_, ok = value.(int)
	case o.Bool:
		_, ok = value.(bool)
	default:
		_, ok = value.(string)
	}
	if !ok {
		return fmt.Errorf("option %s: %v has the wrong type", o.Name, value)
	}
	if len(o.Values) > 0 && !slices.Contains(o.Values, value.(string)) {
		return fmt.Errorf("option %s: %q is none of %v", o.Name, value, o.Values)
	}
	return nil
}

// Predicate is a property of a module that passes rely on. It is run, not trusted.
type Predicate struct {
	Name  string // a sentence: OnlyONNX
	Check func(m *ssa.Module) error
}

// Context is what a running pass gets.
type Context struct {
	Module *ssa.Module
	// Diags collects what is wrong with the user's program.
	Diags *diag.List

	options map[string]any
	counts  map[string]int
}

// Report tells of a problem in the user's program.
func (c *Context) Report(d diag.Diagnostic) { c.Diags.Add(d) }

// Option gives the value of an option that is declared without Int and Bool. Only declared options may be asked for.
func (c *Context) Option(name string) string { return option[string](c, name) }

// IntOption gives the value of an option that is declared as Int.
func (c *Context) IntOption(name string) int { return option[int](c, name) }

// BoolOption gives the value of an option that is declared as Bool.
func (c *Context) BoolOption(name string) bool { return option[bool](c, name) }

// option panics for an option that the pass does not declare.
func option[T any](c *Context, name string) T {
	v, ok := c.options[name].(T)
	if !ok {
		panic("passes: no option " + name + " of this type")
	}
	return v
}

// Changed tells that a change was made, under the name of what made it. Every change must be told: fixpoints
// end when no pass tells of any, and statistics count them.
func (c *Context) Changed(what string) { c.counts[what]++ }

// EachFunc makes a Run of a transformation of single functions.
func EachFunc(run func(c *Context, f *ssa.Func) error) func(*Context) error {
	return func(c *Context) error {
		for _, f := range slices.Clone(c.Module.Funcs) {
			if err := run(c, f); err != nil {
				return err
			}
		}
		return nil
	}
}

// Count is how often something was done.
type Count struct {
	What string
	N    int
}

func sorted(counts map[string]int) []Count {
	out := make([]Count, 0, len(counts))
	for what, n := range counts {
		out = append(out, Count{what, n})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].What < out[j].What })
	return out
}
