package cmd

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/tools/lib/cli"
)

// exported is what export tells with --json.
type exported struct {
	Output    string         `json:"output"`
	Opsets    map[string]int `json:"opsets"`
	Operators map[string]int `json:"operators"`
	Inputs    []named        `json:"inputs"`
	Outputs   []named        `json:"outputs"`
	// DataFiles are the files beside the output that have weights of it.
	DataFiles []string `json:"data_files,omitempty"`
	// Dropped are the places of the inputs that the file leaves out.
	Dropped []int64 `json:"dropped,omitempty"`
	// Newer is what the file would be at a newer opset that makes it smaller, with --verbose.
	Newer *newer `json:"newer,omitempty"`
	// Listing is what --verbose prints.
	Listing string `json:"listing,omitempty"`
}

type named struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

func newExport() *cobra.Command {
	var m model
	var output, external, names string
	var renames, axes, before, after []string
	var half, brain, noWeights, weightInputs bool
	c := &cobra.Command{
		Use:   "export MODEL [-o OUT.onnx]",
		Short: "Convert a model to ONNX",
		Example: `  aton export model.pt --input 'x:f32[N,3,224,224]'
  aton export model.pt -o model.onnx --input 'x:f32[N,3,224,224]' --verbose
  aton export model.pt --input 'x:f32[N,3]' --input-names image --output-names scores --rename fc.weight=w --output-axes scores:0=rows
  aton export model.pt2 --float16 --keep-float32 Softmax --keep-io-types
  aton export model.pt2 --modules-as-functions Conv2d,classifier
  aton export graph.ir -o - --input 'x:f32[2,3]' --input 'mode:str="mean"' --opset 13 > model.onnx`,
		Args: oneModel,
	}
	m.flags(c)
	m.jsonFlag(c)
	m.functionsFlag(c)
	m.sarifFlag(c)
	f := c.Flags()
	f.StringVarP(&output, "output", "o", "", "the ONNX file to write; '-' is standard output (default: the model's name with .onnx, in the current folder)")
	f.StringSliceVar(&m.opts.InputNames, "input-names", nil, "names of the inputs in order, followed by those of the weights in the order of the state dict; the list may be shorter")
	f.StringSliceVar(&m.opts.OutputNames, "output-names", nil, "names of the outputs in order; the list may be shorter")
	f.StringSliceVar(&renames, "rename", nil, "`OLD=NEW`: rename an input, an output or a weight")
	f.StringArrayVar(&axes, "output-axes", nil, "`NAME:AXIS=AXISNAME,...`: names of axes of an output, such as boxes:0=detections")
	f.BoolVar(&noWeights, "no-weights", false, "leave the weights out of the file: they become inputs")
	f.BoolVar(&weightInputs, "keep-initializers-as-inputs", false, "list the weights among the inputs too, so that a runtime can replace them")
	f.BoolVar(&m.loading.FreezeDefaults, "freeze-defaults", false, "turn inputs of an ONNX file that have a default value (an initializer of the same name) into constants")
	f.BoolVar(&m.opts.DropUnused, "drop-unused-inputs", false, "remove the inputs that no output depends on")
	f.StringSliceVar(&m.opts.Modules, "modules-as-functions", nil, "`MODULES` whose calls become functions of the file: paths (features.0), classes (Conv2d), or '*' for all")
	f.BoolVar(&m.opts.DocStrings, "doc-strings", false, "write the line of the program as the doc string of each node, at any opset (from 21 on the metadata has it)")
	f.BoolVar(&m.opts.NodeMetadata, "node-metadata", false, "write the origin of each node as metadata at opsets below 21 too (from 21 on it is always written); the file then has IR version 10")
	cli.Choice(c, (*string)(&m.opts.Contrib), "ort-operators", []string{"none", "cpu", "gpu"}, "use operators of onnxruntime's own (com.microsoft), which no other runtime has, for where it runs: none, cpu (also without =), gpu (residual sums with their normalization, too, which are slower on a cpu); for the target ort")
	f.Lookup("ort-operators").NoOptDefVal = "cpu"
	f.BoolVar(&half, "float16", false, "compute in float16 instead of float32: weights take half of the space")
	f.BoolVar(&brain, "bfloat16", false, "compute in bfloat16 instead of float32")
	f.StringSliceVar(&m.opts.Float32Ops, "keep-float32", nil, "types of `OPERATORS` that stay in float32 with --float16 or --bfloat16, such as Softmax,LayerNormalization")
	f.BoolVar(&m.opts.Float32IO, "keep-io-types", false, "inputs and outputs stay in float32 with --float16 or --bfloat16")
	f.BoolVar(&m.opts.NoFolding, "no-constant-folding", false, "keep the weights as in the state dict: operators compute what depends on weights alone, and no normalization is folded into a convolution")
	cli.Choice(c, &names, "param-names", []string{"state", "learned"}, "the names of weights: state (as in the state dict), or learned (learned_0, learned_1, ...)")
	f.StringArrayVar(&before, "pass-before", nil, "`STEP=PASSES`: run these passes before a step of the conversion, such as legalize=dce; aton-opt --help-passes lists both")
	f.StringArrayVar(&after, "pass-after", nil, "`STEP=PASSES`: run these passes after a step of the conversion, such as lower=dce")
	f.BoolVar(&m.timing, "timing", false, "print the time of each part to standard error")
	f.Lookup("verbose").Usage = "print the graph that is written, with the line of the program after each operator; also notes, and all frames and places of a message"
	externalFlag(c, &external)
	run := func(c *cobra.Command, args []string) error {
		if m.sarif == "-" && (m.json || m.verbose || output == "-") {
			return cli.Misusef("give --sarif a file: standard output is in use")
		}
		began := time.Now()
		if output == "" {
			if info, err := os.Stat(args[0]); err == nil && info.IsDir() {
				_, err := aton.Load(args[0], m.loadOptions()) // says what kind of folder it is
				return err
			}
			if output = besides(args[0]); output == "" {
				return cli.Misusef("-o is missing: it names the file to write")
			}
		}
		mode := externals[external]
		if mode == onnxfile.Always && output == "-" {
			return cli.Misusef("--external-data=always needs a file to write to, not '-'")
		}
		m.opts.External = mode
		switch {
		case half && brain:
			return cli.Misusef("give --float16 or --bfloat16, not both")
		case half:
			m.opts.Floats = aton.Float16
		case brain:
			m.opts.Floats = aton.BFloat16
		case len(m.opts.Float32Ops) > 0 || m.opts.Float32IO:
			return cli.Misusef("--keep-float32 and --keep-io-types go with --float16 or --bfloat16")
		}
		if m.json && output == "-" {
			return cli.Misusef("--json writes to standard output too: give -o a file")
		}
		if m.verbose && output == "-" {
			return cli.Misusef("--verbose writes to standard output: give -o a file")
		}
		switch {
		case noWeights && weightInputs:
			return cli.Misusef("--no-weights and --keep-initializers-as-inputs are mutually exclusive")
		case noWeights:
			m.opts.Weights = aton.NoWeights
		case weightInputs:
			m.opts.Weights = aton.InitializersAsInputs
		}
		m.opts.LearnedNames = names == "learned"
		var err error
		if m.opts.Names, err = parseRenames(renames); err != nil {
			return err
		}
		if m.opts.OutputAxes, err = parseAxes("--output-axes", axes); err != nil {
			return err
		}
		if m.opts.Before, err = parseSteps("pass-before", before); err != nil {
			return err
		}
		if m.opts.After, err = parseSteps("pass-after", after); err != nil {
			return err
		}
		if err := m.prepare(c, args[0]); err != nil {
			return err
		}
		var mod *ssa.Module
		err = m.timed(c, "read", func() (err error) {
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
		m.activity.follow("writing " + output)
		m.opts.Progress = m.activity.progress()
		err = m.timed(c, "convert and write", func() error {
			if output == "-" {
				return aton.ExportTo(cli.Raw(c.OutOrStdout()), mod, m.opts)
			}
			return aton.Export(mod, output, m.opts)
		})
		if err != nil {
			m.tryOpsets(err)
			return m.locate(err)
		}
		if err := m.tellUnused(); err != nil {
			return err
		}
		if m.timing {
			timing.Report(c.ErrOrStderr())
		}
		person := cli.Terminal(c.ErrOrStderr()) && !m.json && !m.quiet
		if !m.json && !m.verbose && !person {
			return nil
		}
		values, outputs, err := aton.FileNames(mod, m.opts.WriteOptions)
		if err != nil {
			return err
		}
		if person {
			defer func() {
				_, _ = io.WriteString(c.ErrOrStderr(), summary(describe(mod, output, values, outputs), time.Since(began)))
			}()
		}
		switch {
		case m.json:
			told := describe(mod, output, values, outputs)
			told.Dropped = mod.DroppedInputs
			if m.verbose {
				told.Newer = m.atNewer(told)
				var text strings.Builder
				if err := ssa.Fprint(&text, mod, listing(values)); err != nil {
					return err
				}
				told.Listing = text.String()
			}
			return printJSON(c.OutOrStdout(), told)
		case m.verbose:
			told := describe(mod, output, values, outputs)
			if n := m.atNewer(told); n != nil {
				list := &diag.List{Items: []diag.Diagnostic{n.note(told)}}
				list.Filter(m.opts.Allow, m.opts.Deny)
				m.found = append(m.found, list)
				m.tell(list)
			}
			return ssa.Fprint(c.OutOrStdout(), mod, listing(values))
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		return m.logged(c, args[0], func() error { return run(c, args) })
	}
	return c
}

// parseRenames reads OLD=NEW, ....
func parseRenames(pairs []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range pairs {
		old, new, ok := strings.Cut(s, "=")
		if !ok || old == "" || new == "" {
			return nil, cli.Misusef("--rename %s: want OLD=NEW, such as fc.weight=w", s)
		}
		if _, twice := out[old]; twice {
			return nil, cli.Misusef("--rename: %s is renamed twice", old)
		}
		out[old] = new
	}
	return out, nil
}

// parseSteps reads STEP=PASSES.
func parseSteps(flag string, specs []string) (map[string]string, error) {
	out := map[string]string{}
	for _, s := range specs {
		step, text, ok := strings.Cut(s, "=")
		if !ok || step == "" || text == "" {
			return nil, cli.Misusef("--%s %s: it is STEP=PASSES, such as lower=dce", flag, s)
		}
		if out[step] != "" {
			text = out[step] + "," + text
		}
		out[step] = text
	}
	return out, nil
}

// parseAxes reads NAME:AXIS=AXISNAME,....
func parseAxes(flag string, specs []string) (map[string]map[int]string, error) {
	out := map[string]map[int]string{}
	for _, s := range specs {
		i := strings.LastIndexByte(s, ':')
		if i < 1 {
			return nil, cli.Misusef("%s %s: want NAME:AXIS=AXISNAME, such as boxes:0=detections", flag, s)
		}
		for _, pair := range strings.Split(s[i+1:], ",") {
			axis, name, _ := strings.Cut(pair, "=")
			n, err := strconv.Atoi(axis)
			if err != nil || name == "" {
				return nil, cli.Misusef("%s %s: %q: want AXIS=AXISNAME, such as 0=detections", flag, s, pair)
			}
			if out[s[:i]] == nil {
				out[s[:i]] = map[int]string{}
			}
			out[s[:i]][n] = name
		}
	}
	return out, nil
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

// externals are the values of --external-data.
var externals = map[string]onnxfile.External{"auto": onnxfile.Auto, "always": onnxfile.Always, "never": onnxfile.Never}

func externalFlag(c *cobra.Command, external *string) {
	cli.Choice(c, external, "external-data", []string{"auto", "always", "never"}, "store weights in a file beside the model, MODEL.HASH.data: auto (if the model would exceed 2 GiB), always, never")
}

// listing is how torch.onnx prints a graph: weights among the inputs, scopes and lines behind the operators. Names are those
// of the file.
func listing(names []string) ssa.PrintOptions {
	return ssa.PrintOptions{WeightsAsInputs: true, Names: names}
}

// summary tells a person what was written, in how much time, and what goes in and comes out.
func summary(e exported, took time.Duration) string {
	var b strings.Builder
	size := ""
	if info, err := os.Stat(e.Output); err == nil && info.Mode().IsRegular() {
		size = fmt.Sprintf(" (%s, opset %d)", bytesOf(info.Size()), e.Opsets[""])
	}
	_, _ = cli.Fprintf(&b, "%s%s in %.1f s\n", e.Output, size, took.Seconds())
	for _, name := range e.DataFiles {
		data := filepath.Join(filepath.Dir(e.Output), name)
		if info, err := os.Stat(data); err == nil {
			_, _ = cli.Fprintf(&b, "  %-6s %s (%s)\n", "data", data, bytesOf(info.Size()))
		}
	}
	return b.String() + e.ends()
}

// ends are lines of what goes in and comes out.
func (e exported) ends() string {
	var b strings.Builder
	for _, list := range []struct {
		what  string
		names []named
	}{{"input", e.Inputs}, {"output", e.Outputs}} {
		for _, n := range list.names {
			_, _ = cli.Fprintf(&b, "  %-6s %s : %s\n", list.what, n.Name, n.Type)
		}
	}
	return b.String()
}

// bytesOf spells a size: 512 B, 1.5 kB, 244.4 MB.
func bytesOf(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x := float64(n)
	for _, unit := range [...]string{"kB", "MB"} {
		if x /= 1000; x < 999.95 {
			return fmt.Sprintf("%.1f %s", x, unit)
		}
	}
	return fmt.Sprintf("%.1f GB", x/1000)
}

// describe says what is in the file; names are those that it has for values and for outputs.
func describe(m *ssa.Module, output string, values, outputs []string) exported {
	e := exported{Output: output, DataFiles: onnxfile.DataFiles(output), Opsets: m.Opsets, Operators: operatorsOf(m), Inputs: []named{}, Outputs: []named{}}
	f := m.Main()
	if f == nil {
		return e
	}
	for _, v := range f.Body.Params {
		e.Inputs = append(e.Inputs, named{values[v.ID], v.Type.String()})
	}
	for i, v := range f.Body.Returns() {
		e.Outputs = append(e.Outputs, named{outputs[i], v.Type.String()})
	}
	return e
}
