// Package cmd is the command aton-opt, callable in this process.
package cmd

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/codegen/gpu/legalize"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/aten/rules"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/frontend"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/lib/cli"
)

// Main runs aton-opt with the built-in passes and those of GPU kernels, and gives its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	set := all.New(nil)
	set.Passes, set.Named = slices.Concat(set.Passes, legalize.Passes()), slices.Concat(set.Named, []passes.Named{legalize.Pipeline})
	return cli.Run(New(set), args, stdin, stdout, stderr)
}

type options struct {
	set                                                       *passes.Set
	inputs, rules                                             []string
	table                                                     *aten.Table // nil: the built-in operators
	load                                                      frontend.Options
	bisect                                                    int
	bisecting                                                 bool
	passes, output, repro                                     string
	printAfter                                                []string
	printChanged, verifyEach, verifyRoundtrip, timing, stats  bool
	elide                                                     bool
	listPasses, helpPasses, split, verifyDiags                bool
	noLocs, examples, constants, weightsAsInputs, json, quiet bool
	opset                                                     int
}

// New makes the command, with the passes and pipelines of a set. A set of one's own begins with all.New.
func New(set *passes.Set) *cobra.Command {
	o := options{set: set}
	c := &cobra.Command{
		Use:   "aton-opt FILE|- [--passes PIPELINE]",
		Short: "Run passes on a model",
		Long: `aton-opt reads a model, runs passes on it, and prints the result as graph text. The model is graph text as PyTorch
prints it, an archive of torch.jit.save or of torch.export.save, or an ONNX file; aton-opt recognizes it by its content.
Passes are named in a pipeline: 'inline,cse,fixpoint(simplify,dce),legalize{opset=17}'.`,
		Version: aton.Version(),
		Example: `  aton-opt graph.ir                                   # check and print again
  aton-opt model.pt --passes 'inline,freeze'
  aton-opt graph.ir --passes 'fixpoint(cse,dce)' -o out.ir
  aton-opt - --passes cse --print-changed < graph.ir
  aton-opt --help-passes`,
		Args: func(c *cobra.Command, args []string) error {
			if o.listPasses || o.helpPasses {
				return cobra.NoArgs(c, args)
			}
			return cobra.ExactArgs(1)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, args) },
	}
	f := c.Flags()
	f.StringVar(&o.passes, "passes", "", "the pipeline to run")
	f.StringVarP(&o.output, "output", "o", "-", "where the text goes; '-' is standard output")
	f.StringSliceVar(&o.printAfter, "print-after", nil, "print the module after these passes, or 'all', to standard error")
	f.BoolVar(&o.printChanged, "print-changed", false, "print what each pass changes, as a diff, to standard error")
	f.IntVar(&o.opset, "opset", 0, "the opset of the ONNX operators in the text (default: they are in their newest form)")
	// not a StringSlice: specs have commas
	f.StringArrayVar(&o.inputs, "input", nil, "`NAME:TYPE` of an input of an archive or ONNX file, such as x:f32[N,3,224,224]")
	f.StringArrayVar(&o.rules, "rules", nil, "a `FILE` of rules that say how operators are converted; may be given several times")
	f.StringVar(&o.load.Method, "method", "", "the method of a TorchScript module to read (default forward)")
	f.StringVar(&o.load.Program, "program", "", "the program to read of a torch.export archive that holds several (default model)")
	f.IntVar(&o.bisect, "bisect-limit", -1, "stop after `N` runs of passes that changed something, and list these on standard error; -1 runs all passes, and lists them if it is given")
	f.BoolVar(&o.verifyEach, "verify-each", false, "verify the module and the contracts of passes after every pass, and name the pass that broke one")
	f.BoolVar(&o.verifyRoundtrip, "verify-roundtrip", false, "print the module, parse the text and print it again, before the first pass and after every pass, and name the pass whose result the text loses")
	f.BoolVar(&o.timing, "timing", false, "print the time of each pass to standard error")
	f.BoolVar(&o.stats, "stats", false, "print what passes did and how often to standard error")
	f.BoolVar(&o.listPasses, "list-passes", false, "list passes and named pipelines")
	f.BoolVar(&o.helpPasses, "help-passes", false, "describe passes, with options and an example each")
	f.BoolVar(&o.split, "split-input-file", false, "treat each part between lines '# -----' as a file of its own")
	f.BoolVar(&o.verifyDiags, "verify-diagnostics", false, "compare errors with comments '# expected-error {{text}}' instead of printing them")
	f.BoolVar(&o.noLocs, "no-locs", false, "leave source locations out of the text")
	f.BoolVar(&o.constants, "print-constants", false, "print the elements of large constants where they are used, not in the data section after the graphs")
	f.BoolVar(&o.elide, "elide-constants", false, "leave out the elements of large constants (the default on a terminal); the text is not a complete module then")
	f.BoolVar(&o.examples, "full-types", false, "print strides, requires_grad and device of traced tensors too, where the text has them")
	f.BoolVar(&o.weightsAsInputs, "weights-as-inputs", false, "print named constants as inputs, as torch.onnx does")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not print the module")
	f.StringVar(&o.repro, "repro", "aton-repro.ir", "the file for the reproducer of an internal error; empty for none")
	f.BoolVar(&o.json, "json", false, "write errors and lists of passes as JSON")
	var names []string
	for _, p := range set.Passes {
		names = append(names, p.Name)
	}
	cli.CompleteWith(c, "print-after", cli.List(append([]string{"all"}, names...), ","))
	for _, p := range set.Named {
		names = append(names, p.Name)
	}
	cli.CompleteWith(c, "passes", cli.List(append(names, "fixpoint("), ",("))
	return c
}

func (o *options) run(c *cobra.Command, args []string) error {
	if o.listPasses || o.helpPasses {
		return o.describe(c.OutOrStdout())
	}
	if err := o.readRules(); err != nil {
		return err
	}
	pipeline, err := o.set.Parse(o.passes)
	if err != nil {
		return cli.Misuse(err)
	}
	o.printAfter = o.set.CurrentNames(o.printAfter, func(remark string) { fmt.Fprintln(c.ErrOrStderr(), "warning: "+remark) })
	for _, name := range o.printAfter {
		if name != "all" && o.set.Pass(name) == nil {
			return cli.Misusef("--print-after: unknown pass %q", name)
		}
	}
	text, err := cli.ReadFile(args[0], c.InOrStdin())
	if err != nil {
		return err
	}
	name := args[0]
	if name == "-" {
		name = "<stdin>"
	}
	if err := o.prepare(c, name, text); err != nil {
		return err
	}
	parts := []string{string(text)}
	if o.split {
		parts = splitInput(parts[0])
	}
	o.elide = o.elide || !c.Flags().Changed("elide-constants") && (o.output == "-" || o.output == "") && cli.Terminal(c.OutOrStdout())
	if o.verifyDiags {
		return o.expect(c, name, parts, pipeline)
	}
	// all parts are printed at once: nothing is written unless all went well
	var errs []error
	var out strings.Builder
	for i, part := range parts {
		if i > 0 {
			out.WriteString(separator + "\n")
		}
		if err := o.one(c.ErrOrStderr(), &out, name, part, pipeline); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	if errs != nil {
		return errors.Join(errs...)
	}
	if o.quiet {
		return nil
	}
	return cli.WriteText(o.output, c.OutOrStdout(), func(w io.Writer) error {
		_, err := io.WriteString(w, out.String())
		return err
	})
}

// readRules has the passes know the rules of the files.
func (o *options) readRules() error {
	if len(o.rules) == 0 {
		return nil
	}
	set, err := rules.Load(o.rules...)
	if err != nil {
		return err
	}
	o.table = aten.NewTable()
	if err := set.Register(o.table); err != nil {
		return err
	}
	with := all.New(o.table)
	for _, p := range o.set.Passes {
		if with.Pass(p.Name) == nil { // one of who made the command
			with.Passes = append(with.Passes, p)
		}
	}
	with.Named = o.set.Named
	o.set, o.load.Table = with, o.table
	return nil
}

const separator = "# -----"

// splitInput gives the parts, each led by as many empty lines as stand before it: line numbers stay.
func splitInput(text string) []string {
	var parts []string
	var part strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		n++
		if strings.TrimRight(line, " \t\r\n") == separator {
			parts = append(parts, part.String())
			part.Reset()
			part.WriteString(strings.Repeat("\n", n))
			continue
		}
		part.WriteString(line)
	}
	return append(parts, part.String())
}

// isText reports that the input is to be read as graph text: it is, or it is nothing else either.
func isText(text []byte) bool {
	f := frontend.Recognize(text)
	return f == frontend.Text || f == frontend.Unknown
}

// prepare reads what is said of the input and refuses what does not fit its format.
func (o *options) prepare(c *cobra.Command, name string, text []byte) error {
	flags := c.Flags()
	o.bisecting = flags.Changed("bisect-limit")
	if isText(text) {
		for _, f := range []string{"input", "method", "program"} {
			if flags.Changed(f) {
				return cli.Misusef("--%s: %s is graph text, which declares its inputs", f, name)
			}
		}
		return nil
	}
	for _, f := range []string{"split-input-file", "verify-diagnostics", "opset"} {
		if flags.Changed(f) {
			return cli.Misusef("--%s requires graph text, and %s is something else", f, name)
		}
	}
	for _, s := range o.inputs {
		in, err := spec.Parse(s)
		if err != nil {
			return cli.Misusef("--input '%s': %w", s, err)
		}
		o.load.Inputs = append(o.load.Inputs, in)
	}
	o.load.Dialects = all.Dialects()
	o.load.Warn = func(message string) { fmt.Fprintln(c.ErrOrStderr(), "warning: "+message) }
	return nil
}

// read makes the module of a part of the input: of graph text, or of any other format that aton knows.
func (o *options) read(name, text string) (*ssa.Module, error) {
	if isText([]byte(text)) {
		return o.parse(name, text)
	}
	var m *ssa.Module
	var err error
	if name == "<stdin>" {
		m, err = frontend.Read([]byte(text), name, o.load)
	} else { // an ONNX file may have weights in files beside it
		m, err = frontend.Load(name, o.load)
	}
	if err != nil {
		return nil, err
	}
	m.Dialects = all.Dialects()
	return m, nil
}

func (o *options) parse(name, text string) (*ssa.Module, error) {
	m, err := ssa.Parse(text, name, all.Dialects()...)
	if err != nil {
		return nil, err
	}
	if err := aten.CheckOperands(m); err != nil {
		return nil, err
	}
	o.table.BindSchemas(m)
	if o.opset != 0 {
		onnx.SetOpset(m, o.opset)
	}
	return m, nil
}

// one runs the pipeline on one part.
func (o *options) one(stderr, out io.Writer, name, text string, pipeline *passes.Pipeline) error {
	watch := stopwatch{on: o.timing, w: stderr, began: time.Now()}
	m, err := o.read(name, text)
	if err != nil {
		return err
	}
	watch.lap("parse")
	if err := ssa.Verify(m); err != nil {
		return err
	}
	watch.lap("verify")
	r, report := o.runner(stderr)
	r.Reload = func() (*ssa.Module, error) { return o.read(name, text) }
	list, err := pipeline.Run(m, r)
	if err != nil {
		return err
	}
	for _, d := range list.Items {
		fmt.Fprintln(stderr, list.Format(d))
	}
	watch.lap("passes")
	report()
	if err := ssa.Verify(m); err != nil {
		return fmt.Errorf("internal error: the resulting module is invalid: %w", err)
	}
	watch.lap("verify")
	err = ssa.Fprint(out, m, ssa.PrintOptions{Complete: !o.weightsAsInputs, NoData: o.elide, NoLocs: o.noLocs, Examples: o.examples, AllConstants: o.constants, WeightsAsInputs: o.weightsAsInputs})
	watch.lap("print")
	return err
}

func (o *options) runner(stderr io.Writer) (*passes.Runner, func()) {
	r := &passes.Runner{VerifyEach: o.verifyEach, VerifyRoundtrip: o.verifyRoundtrip, Repro: o.repro}
	if o.bisecting {
		r.Bisect = &passes.Bisect{Limit: o.bisect, Log: stderr}
	}
	var reports []func(io.Writer)
	if len(o.printAfter) > 0 {
		r.Observers = append(r.Observers, passes.PrintAfter(stderr, o.printAfter...))
	}
	if o.printChanged {
		r.Observers = append(r.Observers, passes.PrintChanged(stderr))
	}
	if o.timing {
		t := &passes.Timing{}
		r.Observers = append(r.Observers, t.Observer())
		reports = append(reports, t.Report)
	}
	if o.stats {
		s := &passes.Stats{}
		r.Observers = append(r.Observers, s.Observer())
		reports = append(reports, s.Report)
	}
	return r, func() {
		for _, f := range reports {
			f(stderr)
		}
	}
}

type stopwatch struct {
	on    bool
	w     io.Writer
	began time.Time
}

func (s *stopwatch) lap(what string) {
	if s.on {
		now := time.Now()
		fmt.Fprintf(s.w, "%12.3f ms  %s\n", float64(now.Sub(s.began).Microseconds())/1000, what)
		s.began = now
	}
}

type passData struct {
	Name    string       `json:"name"`
	Doc     string       `json:"doc"`
	Options []optionData `json:"options,omitempty"`
	Before  string       `json:"before,omitempty"`
	After   string       `json:"after,omitempty"`
	Text    string       `json:"pipeline,omitempty"`
}

type optionData struct {
	Name    string `json:"name"`
	Default string `json:"default"`
	Doc     string `json:"doc"`
}

// describe lists the passes.
func (o *options) describe(w io.Writer) error {
	var list []passData
	optionsOf := func(os []passes.Option) []optionData {
		var out []optionData
		for _, p := range os {
			out = append(out, optionData{p.Name, p.Default, p.Doc})
		}
		return out
	}
	ps := slices.Clone(o.set.Passes)
	slices.SortFunc(ps, func(a, b *passes.Pass) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range ps {
		d := passData{Name: p.Name, Doc: p.Doc, Options: optionsOf(p.Options)}
		if o.helpPasses {
			d.Before, d.After = strings.TrimSpace(p.Before), strings.TrimSpace(p.After)
		}
		list = append(list, d)
	}
	for _, n := range o.set.Named {
		list = append(list, passData{Name: n.Name, Doc: n.Doc, Options: optionsOf(n.Options), Text: n.Spelling()})
	}
	if o.json {
		return cli.EncodeJSON(w, list, true)
	}
	for _, d := range list {
		if o.listPasses {
			fmt.Fprintf(w, "%-16s %s\n", d.Name, d.Doc)
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", d.Name, d.Doc)
		for _, p := range d.Options {
			fmt.Fprintf(w, "  %s=%s  %s\n", p.Name, p.Default, p.Doc)
		}
		if d.Text != "" {
			fmt.Fprintf(w, "  is short for %s\n", d.Text)
		} else {
			fmt.Fprintf(w, "  turns\n%s\n  into\n%s\n", indent(d.Before), indent(d.After))
		}
		fmt.Fprintln(w)
	}
	return nil
}

func indent(s string) string { return "    " + strings.ReplaceAll(s, "\n", "\n    ") }
