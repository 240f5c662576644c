package cmd

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/tools/cli"
)

// exported is what export tells with --json.
type exported struct {
	Output    string         `json:"output"`
	Opsets    map[string]int `json:"opsets"`
	Operators map[string]int `json:"operators"`
	Inputs    []named        `json:"inputs"`
	Outputs   []named        `json:"outputs"`
}

type named struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func newExport() *cobra.Command {
	var m model
	var output, external, names string
	var verbose bool
	c := &cobra.Command{
		Use:   "export MODEL [-o OUT.onnx]",
		Short: "Convert a model to ONNX",
		Example: `  aton export model.pt --input 'x:f32[N,3,224,224]'
  aton export model.pt -o model.onnx --input 'x:f32[N,3,224,224]' --verbose
  aton export graph.ir -o - --input 'x:f32[2,3]' --input 'mode:str="mean"' --opset 13 > model.onnx`,
		Args: oneModel,
	}
	m.flags(c)
	m.functionsFlag(c)
	m.sarifFlag(c)
	f := c.Flags()
	f.StringVarP(&output, "output", "o", "", "the ONNX file to write; '-' is standard output (default the model's name with .onnx, in this folder)")
	f.StringSliceVar(&m.opts.OutputNames, "output-names", nil, "names of the outputs, in order")
	f.BoolVar(&m.opts.NoWeights, "no-weights", false, "write no weights: they become inputs")
	f.BoolVar(&m.opts.InitializersAsInputs, "keep-initializers-as-inputs", false, "list the weights among the inputs too, so that a runtime may replace them")
	f.StringVar(&names, "param-names", "state", "what weights are called: state (as in the state dict), or learned (learned_0, learned_1, ...)")
	f.BoolVarP(&verbose, "verbose", "v", false, "print the graph that is written, with the line of the program behind each operator")
	f.StringVar(&external, "external-data", "auto", "weights in a file beside the model, MODEL.HASH.data: auto (where the model would pass 2 GiB), always, never")
	run := func(c *cobra.Command, args []string) error {
		if m.sarif == "-" && (m.json || verbose || output == "-") {
			return cli.Misusef("--sarif needs a file: something else goes to standard output")
		}
		m.opts.Diagnosed = func(list *diag.List) { m.found = append(m.found, list) }
		if output == "" {
			if output = besides(args[0]); output == "" {
				return cli.Misusef("-o is missing: where should the model go?")
			}
		}
		modes := map[string]onnxfile.External{"auto": onnxfile.Auto, "always": onnxfile.Always, "never": onnxfile.Never}
		mode, ok := modes[external]
		if !ok {
			return cli.Misusef("--external-data: it is auto, always or never, not %q", external)
		}
		if mode == onnxfile.Always && output == "-" {
			return cli.Misusef("--external-data=always needs a file to write to, not '-'")
		}
		m.opts.External = mode
		if m.json && output == "-" {
			return cli.Misusef("--json writes to standard output as well: -o needs a file")
		}
		if verbose && (m.json || output == "-") {
			return cli.Misusef("--verbose writes to standard output: -o needs a file, and --json cannot be there")
		}
		if names != "state" && names != "learned" {
			return cli.Misusef("--param-names: it is state or learned, not %q", names)
		}
		m.opts.LearnedNames = names == "learned"
		if err := m.prepare(c, args[0]); err != nil {
			return err
		}
		var mod *ssa.Module
		err := m.timed(c, "read", func() (err error) {
			mod, err = m.read(c.InOrStdin())
			return err
		})
		if err != nil {
			return m.locate(err)
		}
		var timing passes.Timing
		if m.timing {
			m.opts.Runner.Observers = append(m.opts.Runner.Observers, timing.Observer())
		}
		err = m.timed(c, "convert and write", func() error {
			if output == "-" {
				return aton.ExportTo(c.OutOrStdout(), mod, m.opts)
			}
			return aton.Export(mod, output, m.opts)
		})
		if err != nil {
			m.tryOpsets(err)
			return m.locate(err)
		}
		m.tellUnused()
		if m.timing {
			timing.Report(c.ErrOrStderr())
		}
		if !m.json && !verbose {
			return nil
		}
		values, outputs, err := aton.FileNames(mod, m.opts)
		if err != nil {
			return err
		}
		if m.json {
			return printJSON(c.OutOrStdout(), describe(mod, output, values, outputs))
		}
		return ssa.Fprint(c.OutOrStdout(), mod, listing(values))
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return m.logged(c, args[0], func() error { return run(c, args) })
	}
	return c
}

// besides is the file that a model goes to when none is named, as go build does it: model.onnx of dir/model.pt. It is
// empty where that would be the model itself, or there is no name to take.
func besides(model string) string {
	base := filepath.Base(model)
	name := strings.TrimSuffix(base, filepath.Ext(base)) + ".onnx"
	if model == "-" || base == name || name == ".onnx" {
		return ""
	}
	return name
}

// listing is how torch.onnx prints a graph: weights among the inputs, scopes and lines behind the operators. Names are those
// of the file.
func listing(names []string) ssa.PrintOptions {
	return ssa.PrintOptions{WeightsAsInputs: true, Names: names}
}

// describe says what is in the file; names are those that it has for values and for outputs.
func describe(m *ssa.Module, output string, values, outputs []string) exported {
	e := exported{Output: output, Opsets: m.Opsets, Operators: map[string]int{}, Inputs: []named{}, Outputs: []named{}}
	f := m.Main()
	if f == nil {
		return e
	}
	for o := range f.Body.AllOps() {
		e.Operators[string(o.Kind)]++
	}
	for _, v := range f.Body.Params {
		e.Inputs = append(e.Inputs, named{values[v.ID], v.Type.String()})
	}
	for i, v := range f.Body.Returns() {
		e.Outputs = append(e.Outputs, named{outputs[i], v.Type.String()})
	}
	return e
}
