// Package passes defines transformations of an ssa.Module: how a pass is described, how pipelines are written and run,
// and how a run is observed.
//
// A pass is a folder below this one with an exported Pass value. Passes are not registered; passes/all lists them.
// Each pass has an example, Before and After, which a test executes.
//
// # Errors
//
// A pass reports problems of the user's program to [Context.Report] and goes on, so that the user sees all of them at once.
// An error that a pass returns concerns the environment, such as a file, and ends the run. A bug in aton (a panic, a broken
// contract, an invalid module) becomes a [*Failure], with a reproducer if the caller wants one.
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
	// Before and After are graph text. A test checks that the pass turns Before into After.
	Before, After string
	// Demo has the options with which Before is transformed, such as "opset=17". Most passes need none.
	Demo    string
	Options []Option
	// Takes has the states that the pass requires, Makes those that it establishes, Ends those that it destroys.
	Takes, Makes, Ends []State
	Requires           []Predicate // checked before the pass
	Ensures            []Predicate // checked after it
	Run                func(c *Context) error
}

// Option is an option of a pass, written as name{option=value} in a pipeline.
type Option struct {
	Name, Default, Doc string
	// Int restricts the values to integers, and Bool to true and false.
	Int, Bool bool
	// Least and Most bound an integer, unless both are 0.
	Least, Most int
	Values      []string // the allowed values, if not empty
}

// IsDefault reports whether a value is the default of the option.
func (o *Option) IsDefault(value any) bool { return fmt.Sprint(value) == o.Default }

// parse parses a value: an int, a bool or a string.
func (o *Option) parse(text string) (any, error) {
	switch {
	case o.Int:
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("option %s must be a whole number, not %q", o.Name, text)
		}
		return n, o.check(n)
	case o.Bool:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("option %s must be true or false, not %q", o.Name, text)
		}
		return text == "true", nil
	}
	return text, o.check(text)
}

// check returns an error for a value that has another type or is not allowed.
func (o *Option) check(value any) error {
	var ok bool
	switch {
	case o.Int:
		var n int
		if n, ok = value.(int); ok && (o.Least != 0 || o.Most != 0) && (n < o.Least || n > o.Most) {
			return fmt.Errorf("option %s must be from %d to %d, not %d", o.Name, o.Least, o.Most, n)
		}
	case o.Bool:
		_, ok = value.(bool)
	default:
		_, ok = value.(string)
	}
	if !ok {
		return fmt.Errorf("option %s: %v has the wrong type", o.Name, value)
	}
	if len(o.Values) > 0 && !slices.Contains(o.Values, value.(string)) {
		return fmt.Errorf("option %s must be one of %v, not %q", o.Name, o.Values, value)
	}
	return nil
}

// Predicate is a property of a module that passes rely on. The runner checks it.
type Predicate struct {
	Name  string // a sentence: OnlyONNX
	Check func(m *ssa.Module) error
}

// Context is the argument of a running pass.
type Context struct {
	Module *ssa.Module
	// Diags collects the problems of the user's program.
	Diags *diag.List

	options map[string]any
	counts  map[string]int
}

// Report records a problem of the user's program.
func (c *Context) Report(d diag.Diagnostic) { c.Diags.Add(d) }

// Option returns the value of an option that is declared without Int and Bool. It panics for an option that the pass does not declare.
func (c *Context) Option(name string) string { return option[string](c, name) }

// IntOption returns the value of an option that is declared as Int.
func (c *Context) IntOption(name string) int { return option[int](c, name) }

// BoolOption returns the value of an option that is declared as Bool.
func (c *Context) BoolOption(name string) bool { return option[bool](c, name) }

// option panics for an option that the pass does not declare.
func option[T any](c *Context, name string) T {
	v, ok := c.options[name].(T)
	if !ok {
		panic("passes: no option " + name + " of this type")
	}
	return v
}

// Changed records a change under the name of what made it. A pass must record every change: a fixpoint ends when no pass
// records one, and statistics count them.
func (c *Context) Changed(what string) { c.counts[what]++ }

// EachFunc returns a Run that applies a transformation to each function.
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

// Count says how often something was done.
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
