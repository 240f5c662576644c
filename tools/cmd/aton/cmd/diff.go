package cmd

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/tools/lib/cli"
)

// differences are what diff tells with --json.
type differences struct {
	Equal     bool              `json:"equal"`
	Inputs    []string          `json:"inputs,omitempty"`
	Outputs   []string          `json:"outputs,omitempty"`
	Opsets    []string          `json:"opsets,omitempty"`
	Operators map[string][2]int `json:"operators,omitempty"`
	Weights   []string          `json:"weights,omitempty"`
	// Attributes are the values of objects of a program that are no tensors.
	Attributes []string `json:"attributes,omitempty"`
	Graph      string   `json:"graph,omitempty"`
}

func newDiff() *cobra.Command {
	var m model
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what is different between two models",
		Long: `diff compares two models as they are in their files: inputs, outputs, opsets, how often each operator occurs, weights and constants by their names, and the
graphs, line by line. Where two files are equal, the exit status is 0; where they differ, it is 1, as of the command diff.`,
		Example: `  aton diff before.onnx after.onnx
  aton diff old.pt2 new.pt2 --json`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s takes two models, not %d", c.CommandPath(), len(args))
			}
			return nil
		},
	}
	m.loadFlags(c)
	m.jsonFlag(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		var both [2]*ssa.Module
		if args[0] == "-" && args[1] == "-" {
			return cli.Misusef("standard input is one model: give a file for the other")
		}
		if err := m.prepare(c, args[0]); err != nil {
			return err
		}
		for i, name := range args {
			m.name = name
			var err error
			if both[i], err = m.read(c.InOrStdin()); err != nil {
				return m.locate(err)
			}
		}
		d := compareModels(both[0], both[1])
		var err error
		if m.json {
			err = printJSON(c.OutOrStdout(), d)
		} else {
			err = d.print(c.OutOrStdout(), args[0], args[1])
		}
		if err == nil && !d.Equal {
			err = cli.ErrQuiet
		}
		return err
	}
	return c
}

// compareModels compares two models.
func compareModels(old, new *ssa.Module) differences {
	a, b := overviewOf(old), overviewOf(new)
	d := differences{Inputs: changedLines(spellNamed(a.Inputs), spellNamed(b.Inputs)), Outputs: changedLines(spellNamed(a.Outputs), spellNamed(b.Outputs)),
		Opsets: changedLines(spellOpsets(a.Opsets), spellOpsets(b.Opsets)), Operators: map[string][2]int{}}
	for kind := range a.Operators {
		d.Operators[kind] = [2]int{a.Operators[kind], b.Operators[kind]}
	}
	for kind, n := range b.Operators {
		d.Operators[kind] = [2]int{a.Operators[kind], n}
	}
	maps.DeleteFunc(d.Operators, func(_ string, n [2]int) bool { return n[0] == n[1] })
	was, is := contentOf(old), contentOf(new)
	d.Weights, d.Attributes = changedWeights(was.tensors, is.tensors), changedLines(spellValues(was.values), spellValues(is.values))
	d.Graph = passes.Diff(listingLines(old), listingLines(new), 2)
	d.Equal = len(d.Inputs)+len(d.Outputs)+len(d.Opsets)+len(d.Operators)+len(d.Weights)+len(d.Attributes) == 0 && d.Graph == ""
	return d
}

func spellNamed(names []named) []string {
	var out []string
	for _, n := range names {
		out = append(out, n.Name+" : "+n.Type)
	}
	return out
}

func spellValues(values map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, name+" = "+values[name])
	}
	return out
}

func spellOpsets(opsets map[string]int) []string {
	var out []string
	for _, domain := range slices.Sorted(maps.Keys(opsets)) {
		name := domain
		if name == "" {
			name = "ai.onnx"
		}
		out = append(out, fmt.Sprintf("%s %d", name, opsets[domain]))
	}
	return out
}

// changedLines has the lines that only one of two lists has: - for those of the first, + for those of the second.
func changedLines(a, b []string) []string {
	return append(without(a, b, "- "), without(b, a, "+ ")...)
}

// without has the lines of a that b has not, behind a sign.
func without(a, b []string, sign string) []string {
	has := map[string]bool{}
	for _, s := range b {
		has[s] = true
	}
	var out []string
	for _, s := range a {
		if !has[s] {
			out = append(out, sign+s)
		}
	}
	return out
}

// changedWeights compares weights by their names.
func changedWeights(a, b map[string]*tensor.Tensor) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		x, y := a[name], b[name]
		switch {
		case y == nil:
			out = append(out, fmt.Sprintf("- %s : %s", name, ssa.TensorOf(x)))
		case x == nil:
			out = append(out, fmt.Sprintf("+ %s : %s", name, ssa.TensorOf(y)))
		case ssa.TensorOf(x).String() != ssa.TensorOf(y).String():
			out = append(out, fmt.Sprintf("- %s : %s", name, ssa.TensorOf(x)), fmt.Sprintf("+ %s : %s", name, ssa.TensorOf(y)))
		case !x.HasData() || !y.HasData() || !bytes.Equal(x.Bytes(), y.Bytes()):
			out = append(out, fmt.Sprintf("~ %s : %s has other elements", name, ssa.TensorOf(x)))
		}
	}
	return out
}

// listingLines is the graph as lines, without places, and without the elements of weights, which are compared by themselves.
func listingLines(m *ssa.Module) []string {
	var b strings.Builder
	_ = ssa.Fprint(&b, m, ssa.PrintOptions{NoLocs: true, WeightsAsInputs: m.Opsets[""] != 0}) // a Builder does not fail
	return strings.Split(b.String(), "\n")
}

func (d differences) print(w io.Writer, old, new string) error {
	p := &printer{w: w}
	if d.Equal {
		p.printf("%s and %s are equal\n", old, new)
		return p.err
	}
	p.printf("--- %s\n+++ %s\n", old, new)
	var counts []string
	for _, kind := range slices.Sorted(maps.Keys(d.Operators)) {
		n := d.Operators[kind]
		counts = append(counts, fmt.Sprintf("  %s: %d, now %d", strings.TrimPrefix(kind, "onnx::"), n[0], n[1]))
	}
	for _, part := range []struct {
		name  string
		lines []string
	}{{"opsets", d.Opsets}, {"inputs", d.Inputs}, {"outputs", d.Outputs}, {"operators", counts}, {"weights", d.Weights}, {"attributes", d.Attributes}} {
		if len(part.lines) > 0 {
			p.printf("%s\n", part.name)
			for _, line := range part.lines {
				p.printf("%s\n", line)
			}
		}
	}
	if d.Graph != "" && p.err == nil {
		_, p.err = io.WriteString(w, "graph\n"+d.Graph) // graph text spells line breaks of names as escapes
	}
	return p.err
}
