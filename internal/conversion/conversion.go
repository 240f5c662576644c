// Package conversion assembles the pipeline of a conversion from the options of package aton.
package conversion

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
)

// The pipelines that a conversion consists of.
const (
	Export = "export"
	Raw    = "raw"
	finish = "finish" // what is left to do before a file is written
	own    = "pipeline-of-the-options"
)

// Setting is the value of an option of the pipelines export and finish.
type Setting struct {
	Name  string
	Value any
	// From names the fields of aton.ConvertOptions that the value follows from. If it is empty, no pass needs to read the value.
	From string
}

// Conversion describes a pipeline from a module as it was loaded to one that a file can hold.
type Conversion struct {
	// Name is Export or Raw. Text, if not empty, spells another pipeline.
	Name, Text string
	// Before and After add steps to the pipeline export.
	Before, After map[string]string
	// Passes are those that Text, Before and After may name besides the built-in ones.
	Passes []*passes.Pass
	// Table has the known operators; nil means the built-in ones.
	Table *aten.Table
	// Opset is the one of all passes.
	Opset    int
	Settings []Setting
}

// Pipeline assembles the pipeline.
func (c Conversion) Pipeline() (*passes.Pipeline, error) {
	inserts := len(c.Before)+len(c.After) > 0
	switch {
	case c.Text == "" && !inserts && len(c.Passes) > 0:
		return nil, fmt.Errorf("no pipeline names the pass %s: set After, Before or Pipeline", c.Passes[0].Name)
	case c.Text != "" && inserts:
		return nil, errors.New("steps before and after those of the pipeline export do not go with a pipeline of one's own")
	case c.Name == Raw && (c.Text != "" || inserts):
		return nil, errors.New("operator export type RAW has a pipeline of its own: leave Pipeline, Before and After empty")
	}
	set := all.Set
	if c.Table != nil || c.Text != "" || inserts {
		set = all.New(c.Table)
		set.Passes = append(set.Passes, c.Passes...)
	}
	if inserts {
		var err error
		if set, err = set.Insert(Export, c.Before, c.After); err != nil {
			return nil, err
		}
	}
	if c.Text != "" {
		c.Name = own
		set.Named = append(slices.Clip(set.Named), passes.Named{Name: own, Text: c.Text, Options: set.Lookup(Export).Options})
	}
	if err := c.unread(set); err != nil {
		return nil, err
	}
	p, err := c.build(set, c.Name)
	if err != nil {
		return nil, err
	}
	for _, v := range p.OptionValues("opset") {
		if v != c.Opset {
			return nil, fmt.Errorf("pipeline %q has a pass for opset %v, and the model is converted to opset %d: write opset=$opset", c.Text, v, c.Opset)
		}
	}
	last, err := c.build(set, finish)
	if err != nil {
		return nil, err
	}
	return p.Then(last)
}

// build builds a pipeline of a set with the settings that it has options for.
func (c Conversion) build(set *passes.Set, name string) (*passes.Pipeline, error) {
	values := map[string]any{"opset": c.Opset}
	for _, s := range c.Settings {
		values[s.Name] = s.Value
	}
	maps.DeleteFunc(values, func(option string, _ any) bool { return set.Lookup(name).Option(option) == nil })
	return set.Build(name, values)
}

// unread returns an error for a setting of the pipeline export that the pipeline passes on to no pass: it would be dropped silently.
func (c Conversion) unread(set *passes.Set) error {
	export, p := set.Lookup(Export), set.Lookup(c.Name)
	for _, s := range c.Settings {
		d := export.Option(s.Name)
		if s.From == "" || d == nil || d.IsDefault(s.Value) {
			continue
		}
		switch {
		case c.Name == own && !strings.Contains(c.Text, "$"+s.Name):
			return fmt.Errorf("no pass of pipeline %q reads the option %s: pass $%s to the pass that needs it, as the pipeline export does", c.Text, s.From, s.Name)
		case p.Option(s.Name) == nil:
			return fmt.Errorf("no pass of the pipeline %s reads the option %s", c.Name, s.From)
		}
	}
	return nil
}

// Begin notes the opset of a conversion in the module. It replaces former names of passes in the list of those that the module is behind.
func Begin(m *ssa.Module, opset int) {
	m.TargetOpset = opset
	if len(m.Passed) == 0 {
		return
	}
	if p, err := all.Set.Parse(strings.Join(m.Passed, ",")); err == nil {
		m.Passed = p.Steps()
	}
}

// Remaining returns the part of a pipeline that the module is not behind.
func Remaining(m *ssa.Module, p *passes.Pipeline) *passes.Pipeline {
	n := len(m.Passed)
	if steps := p.Steps(); n > 0 && n <= len(steps) && slices.Equal(steps[:n], m.Passed) {
		return p.From(n)
	}
	return p
}
