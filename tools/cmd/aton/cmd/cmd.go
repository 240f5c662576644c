// Package cmd is the command aton, callable in this process.
package cmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/aten/rules"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/profiles"
	"github.com/aton-project/aton/docs/diagnostics"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/tools/lib/cli"
)

// Main runs aton and gives its exit status.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return MainWith(missing{}, args, stdin, stdout, stderr)
}

// MainWith is Main with what the commands for many models do.
func MainWith(many Many, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Run(newFor(args, many), args, stdin, stdout, stderr)
}

// New makes the command with its subcommands. Those for many models say that they are in another program.
func New() *cobra.Command { return newFor(nil, missing{}) }

// newFor makes the command for these arguments: with the subcommand that they begin with, and explain, of which messages tell; to make all of them
// takes a millisecond. Other arguments are for all subcommands.
func newFor(args []string, many Many) *cobra.Command {
	c := &cobra.Command{
		Use:   "aton",
		Short: "Convert saved PyTorch models to ONNX",
		Long: `aton converts saved PyTorch models to ONNX, without Python. A model is an archive of torch.jit.save or of
torch.export.save, graph text as PyTorch prints it, or an ONNX file; aton recognizes it by its content.
'-' is standard input.`,
		Example: `  aton export model.pt -o model.onnx --input 'x:f32[N,3,224,224]'
  aton inspect model.pt --at import
  aton check model.pt --opset 13 --json`,
		Version: aton.Version(),
		Args:    cli.Commands,
		RunE: func(c *cobra.Command, _ []string) error {
			return shortHelp(c)
		},
	}
	commands := subcommands(many)
	for name, make := range commands {
		if len(args) == 0 || commands[args[0]] == nil || name == args[0] || name == "explain" {
			c.AddCommand(make()) // which sorts them by name
		}
	}
	return c
}

// subcommands are what makes the subcommands, by their names.
func subcommands(many Many) map[string]func() *cobra.Command {
	return map[string]func() *cobra.Command{
		"batch": func() *cobra.Command { return newBatch(many) }, "check": newCheck, "cut": newCut, "diff": newDiff, "explain": newExplain, "explore": newExplore,
		"export": newExport, "gpu": newGPU, "inspect": newInspect, "join": newJoin, "limited": newLimited, "lsp": newLSP, "reduce": newReduce, "rules": newRules,
		"run": newRun, "set": newSet, "verify": newVerify, "worker": func() *cobra.Command { return newWorker(many) },
	}
}

// shortHelp lists the commands, in place of all that --help says.
func shortHelp(c *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\nUsage: aton COMMAND MODEL [OPTIONS]\n\n", c.Short)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-11s %s\n", sub.Name(), sub.Short)
		}
	}
	b.WriteString("\nBegin with: aton export model.pt2\nRun 'aton COMMAND --help' for the options of a command.\n")
	_, err := io.WriteString(c.OutOrStdout(), b.String())
	return err
}

// model are the options that all commands have.
type model struct {
	inputs, inputFiles []string
	rules, functions   []string
	opset              int
	target, repro      string
	state              string
	unroll             int
	operators          string
	training           string
	eval               bool
	json, timing, each bool
	custom             []string
	only               []string // operators that the file may have
	changed            bool
	after              []string
	verbose, quiet     bool

	name  string
	bytes []byte // of standard input
	// what the conversion and loading have in common is in opts
	loading aton.LoadOptions
	opts    aton.ExportOptions
	set     *rules.Set // of --rules

	sarif string       // where a log goes
	found []*diag.List // what is known besides the error that ends the command

	stderr   io.Writer
	sources  func() []diag.Source // of the program, as far as the model's file has it
	warnings counted              // of the file that is read
	told     map[string]bool      // the problems that have been printed
	activity *activity            // nil where nobody watches
}

func (m *model) flags(c *cobra.Command) {
	m.loadFlags(c)
	m.convertFlags(c)
}

// loadFlags adds the options of the commands that read a model and do not convert it.
func (m *model) loadFlags(c *cobra.Command) {
	c.PreRunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return project(c, args[0])
	}
	f := c.Flags()
	// not a StringSlice: specs have commas
	f.StringArrayVar(&m.inputs, "input", nil, "`NAME:TYPE` of an input, such as x:f32[N,3,224,224], n:int=3, xs:[f32[2],f32[3]], p:(f32[2],none); a TYPE alone applies by position; the name of a buffer or attribute makes it an input")
	f.StringArrayVar(&m.inputFiles, "input-file", nil, "`NAME=FILE`: the input has the type of the tensor in the file (a TensorProto)")
	f.StringVar(&m.loading.Program, "program", "", "the program to convert of a torch.export archive that holds several (default model)")
	f.StringVar(&m.loading.Method, "method", "", "the method of a TorchScript module to convert (default forward)")
	f.StringVar(&m.loading.Weights, "weights", "", "a file of weights for graph text: a state dict of torch.save, an archive, or safetensors")
	f.StringVar(&m.loading.WeightsKey, "weights-key", "", "the path of the state dict in a checkpoint, such as model.encoder (default the first one)")
	var modes []string
	for _, mode := range aton.TrainingModes() {
		modes = append(modes, string(mode))
	}
	cli.Choice(c, &m.training, "training", modes, "the mode of the modules: PRESERVE (as they were saved), EVAL, or TRAINING (dropout drops, batches are normalized by their own statistics, and weights stay as they are)")
	f.BoolVar(&m.eval, "eval", false, "short for --training EVAL")
	f.StringArrayVar(&m.rules, "rules", nil, "a `FILE` of rules that say how operators are converted; may be given several times")
	f.BoolVar(&m.loading.Repair, "repair", false, "read an ONNX file that runtimes load although the standard refuses it, and warn of each change: shapes that are stated wrongly, domains that are not imported, outputs without type, nodes that are not sorted, LayerNormalization below opset 17, initializers that are no inputs, a graph without name")
	f.IntVar(&m.loading.Budget, "budget", 1, "multiply the limits on steps, bytes, operators and elements of a conversion or run")
	f.BoolVarP(&m.verbose, "verbose", "v", false, "print notes, and all frames and places of a message")
	f.BoolVarP(&m.quiet, "quiet", "q", false, "print errors only: no warnings, notes and progress")
	f.StringSliceVar(&m.opts.Allow, "allow", nil, "`ID`: do not report warnings and notes with this identifier; may be given several times")
	f.StringSliceVar(&m.opts.Deny, "deny", nil, "`ID`: warnings with this identifier are errors; '"+diag.AllWarnings+"' stands for all")
	cli.CompleteWith(c, "allow", cli.List(diagnostics.IDs(), ","))
	cli.CompleteWith(c, "deny", cli.List(append([]string{diag.AllWarnings}, diagnostics.IDs()...), ","))
}

// convertFlags adds the options of the commands that convert a model.
func (m *model) convertFlags(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&m.opset, "opset", 0, fmt.Sprintf("the ONNX opset, %d to %d (default %d; an ONNX file keeps its own)", aton.OldestOpset, onnx.Newest, aton.DefaultOpset))
	f.StringSliceVar(&m.opts.Fallthrough, "fallthrough", nil, "`NS`: operators of this namespace that cannot be converted become nodes of a custom domain; * for all")
	f.StringSliceVar(&m.custom, "custom-opset", nil, "`NS=N`: the version of a custom domain (default 1)")
	f.IntVar(&m.unroll, "unroll", 0, "unroll loops whose number of iterations is known and at most this")
	cli.Choice(c, &m.state, "state", []string{"drop", "outputs", "refuse"}, "what happens to buffers and attributes that the model changes: drop (lost after each run, with a warning), outputs (additional outputs, and with --input of the name inputs too), refuse")
	cli.Choice(c, &m.target, "target", []string{"ort", "onnx"}, "the runtime whose kernels determine element types: ort, or onnx for the standard alone")
	f.StringArrayVar(&m.only, "only-ops", nil, "the operators that the file may have: those of a runtime ("+strings.Join(profiles.Names(), ", ")+") or of a `FILE` with one a line; others are replaced where operators among them compute the same, and errors where not. Given several times, the file may have all of them")
	cli.Complete(c, "only-ops", profiles.Names()...)
	var types []string
	for _, t := range aton.OperatorExportTypes() {
		types = append(types, string(t))
	}
	cli.Choice(c, &m.operators, "operator-export-type", types, "what happens to operators that cannot be converted: "+strings.Join(types, ", "))
	f.BoolVar(&m.each, "verify-each", false, "verify the module after every pass")
	f.BoolVar(&m.changed, "print-changed", false, "print what each pass changes, as a diff, to standard error")
	f.StringSliceVar(&m.after, "print-after", nil, "print the module after these passes, or 'all', to standard error")
	cli.Complete(c, "opset", opsets()...)
	stages := aton.Stages()
	cli.CompleteWith(c, "print-after", cli.List(append([]string{"all"}, stages[1:]...), ","))
	f.StringVar(&m.repro, "repro", "aton-repro.ir", "the file for the reproducer of an internal error; empty for none")
}

// jsonFlag adds the option of the commands that tell what they find as data too.
func (m *model) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&m.json, "json", false, "write errors and results as JSON")
}

// functionsFlag adds the option of the commands that write or run operators of custom domains.
func (m *model) functionsFlag(c *cobra.Command) {
	c.Flags().StringArrayVar(&m.functions, "functions", nil, "an ONNX `FILE` with local functions: bodies for operators of custom domains, which are written to the model and run by verify")
}

// sarifFlag adds the option of the commands that tell what is wrong with a model.
func (m *model) sarifFlag(c *cobra.Command) {
	c.Flags().StringVar(&m.sarif, "sarif", "", "write the diagnostics to this file as a SARIF 2.1.0 log, for editors and code scanning; '-' is standard output")
}

// listener is the key of a function in a command's context that is told what the command finds: a func([]cli.Problem).
type listener struct{}

// logged runs a command, and writes what it finds to the log of --sarif, whether it fails or not. A listener is told too.
func (m *model) logged(c *cobra.Command, name string, run func() error) error {
	err := run()
	told, _ := c.Context().Value(listener{}).(func([]cli.Problem))
	if m.sarif == "" && told == nil || cli.IsMisuse(err) {
		return err
	}
	var problems []cli.Problem
	for _, list := range m.found {
		problems = append(problems, cli.Problems(list)...)
	}
	if err != nil && !errors.Is(err, cli.ErrQuiet) {
		for _, p := range cli.Problems(err) {
			if !slices.ContainsFunc(problems, func(q cli.Problem) bool { return reflect.DeepEqual(p, q) }) {
				problems = append(problems, p)
			}
		}
	}
	if told != nil {
		told(problems)
	}
	if m.sarif == "" {
		return err
	}
	if failed := cli.WriteFile(m.sarif, c.OutOrStdout(), func(w io.Writer) error { return cli.WriteSARIF(w, aton.Version(), name, problems, err == nil) }); failed != nil {
		return failed
	}
	return err
}

// opsets lists those that models are written for, the newest first.
func opsets() []string {
	var out []string
	for n := onnx.Newest; n >= aton.OldestOpset; n-- {
		out = append(out, strconv.Itoa(n))
	}
	return out
}

// oneModel demands one argument.
func oneModel(c *cobra.Command, args []string) error {
	if len(args) == 2 && strings.HasSuffix(args[1], ".onnx") && c.Flags().Lookup("output") != nil {
		return fmt.Errorf("%s takes one model, not 2; to write %s, give it as -o %s", c.CommandPath(), args[1], args[1])
	}
	if len(args) != 1 {
		return fmt.Errorf("%s takes one model, not %d", c.CommandPath(), len(args))
	}
	return nil
}

// prepare reads the options.
func (m *model) prepare(c *cobra.Command, name string) error {
	m.name, m.stderr, m.told = name, c.ErrOrStderr(), map[string]bool{}
	m.opts.Warn = m.warn
	if !m.json && !m.quiet {
		m.loading.Note = func(message string) {
			m.activity.pause()
			cli.Tell(m.stderr, diag.Note, message)
		}
	}
	m.opts.Diagnosed = func(list *diag.List) {
		m.found = append(m.found, list)
		m.tell(list)
	}
	if cli.Terminal(m.stderr) && !m.quiet && !m.json {
		m.activity = watched(cli.Raw(m.stderr))
	}
	if c.Flags().Changed("opset") && (m.opset < aton.OldestOpset || m.opset > onnx.Newest) {
		return cli.Misusef("--opset: %d is not between %d and %d", m.opset, aton.OldestOpset, onnx.Newest)
	}
	if m.quiet && m.verbose {
		return cli.Misusef("--quiet and --verbose are mutually exclusive")
	}
	for flag, ids := range map[string][]string{"allow": m.opts.Allow, "deny": m.opts.Deny} {
		for _, id := range ids {
			if _, known := diagnostics.Page(id); !known && (flag == "allow" || id != diag.AllWarnings) {
				return cli.Misusef("--%s: no message has the identifier %q%s", flag, id, diag.DidYouMean(id, diagnostics.IDs()))
			}
		}
	}
	if err := m.loadRules(); err != nil {
		return err
	}
	if len(m.functions) > 0 {
		var err error
		if m.opts.Functions, err = onnxfile.ReadFunctions(m.functions...); err != nil {
			return beside(err, "--functions")
		}
	}
	for _, s := range m.custom {
		domain, version, _ := strings.Cut(s, "=")
		n, err := strconv.Atoi(version)
		if domain == "" || err != nil || n < 1 {
			return cli.Misusef("--custom-opset %s: want NAMESPACE=VERSION, such as my.ops=2", s)
		}
		if m.opts.CustomOpsets == nil {
			m.opts.CustomOpsets = map[string]int{}
		}
		m.opts.CustomOpsets[domain] = n
	}
	for _, s := range m.only {
		list, ok := profiles.Get(s)
		if !ok {
			b, err := os.ReadFile(s)
			if errors.Is(err, fs.ErrNotExist) {
				return cli.Misusef("--only-ops %s: there is no such file, and no runtime of this name (there are: %s)", s, strings.Join(profiles.Names(), ", "))
			}
			if err == nil {
				list, err = profiles.Parse(string(b))
			}
			if err != nil {
				return m.locate(fmt.Errorf("--only-ops %s: %w", s, err))
			}
		}
		m.opts.OnlyOps = append(m.opts.OnlyOps, list...)
	}
	if m.loading.Budget < 1 {
		return cli.Misusef("--budget must be 1 or more, not %d", m.loading.Budget)
	}
	for _, s := range m.inputs {
		in, err := spec.Parse(s)
		if err != nil {
			return cli.Misusef("--input '%s': %w", s, err)
		}
		m.loading.Inputs = append(m.loading.Inputs, in)
	}
	for _, s := range m.inputFiles {
		name, file, ok := strings.Cut(s, "=")
		if !ok {
			return cli.Misusef("--input-file %s: want NAME=FILE", s)
		}
		_, t, err := onnxfile.ReadTensor(file)
		if err != nil {
			return m.locate(fmt.Errorf("--input-file %s: %w", s, err))
		}
		m.loading.Inputs = append(m.loading.Inputs, spec.Input{Name: name, Type: spec.Type{Kind: spec.Tensor, Tensor: ssa.TensorOf(t)}})
	}
	m.opts.OperatorExport = aton.OperatorExportType(m.operators) // empty if the command does not convert
	m.opts.Unchecked = m.opts.OperatorExport == aton.Raw
	m.opts.Training = aton.TrainingMode(m.training)
	if m.eval {
		if c.Flags().Changed("training") && m.opts.Training != aton.Eval {
			return cli.Misusef("--eval and --training %s are mutually exclusive", m.training)
		}
		m.opts.Training = aton.Eval
	}
	m.opts.Opset, m.opts.Target, m.opts.State, m.opts.Unroll = m.opset, aton.Target(m.target), aton.State(m.state), m.unroll
	stderr := c.ErrOrStderr()
	r := &passes.Runner{VerifyEach: m.each, Repro: m.repro, Reload: func() (*ssa.Module, error) { return m.read(nil) }}
	if len(m.after) > 0 {
		names := all.Set.CurrentNames(m.after, m.warn)
		r.Observers = append(r.Observers, passes.PrintAfter(stderr, names...))
	}
	if m.changed {
		r.Observers = append(r.Observers, passes.PrintChanged(stderr))
	}
	if m.activity != nil && len(r.Observers) == 0 {
		r.Observers = append(r.Observers, m.activity.passes())
	}
	m.opts.Runner = r
	return nil
}

// loadRules reads the files of --rules. A version in --custom-opset goes before one in a file.
func (m *model) loadRules() error {
	if len(m.rules) == 0 {
		return nil
	}
	set, err := rules.Load(m.rules...)
	if err != nil {
		return beside(err, "--rules")
	}
	table := aten.NewTable()
	if err := set.Register(table); err != nil {
		return err
	}
	m.set, m.opts.Table, m.opts.CustomOpsets = set, table, maps.Clone(set.Domains)
	return nil
}

// beside says which option an unreadable file was given with.
func beside(err error, option string) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return filed{path, "check the path after " + option}
	}
	return err
}

// tellUnused warns of rules that the conversion had no use for.
func (m *model) tellUnused() error {
	if m.set == nil {
		return nil
	}
	list := m.set.Unused()
	list.Filter(m.opts.Allow, m.opts.Deny)
	m.found = append(m.found, list)
	m.tell(list)
	return list.Err()
}

// counted are messages in the order in which they came first.
type counted struct {
	order []string
	times map[string]int
}

func (c *counted) add(message string) {
	if c.times == nil {
		c.times = map[string]int{}
	}
	if c.times[message]++; c.times[message] == 1 {
		c.order = append(c.order, message)
	}
}

// warn keeps a warning about the file until it is read: equal ones are one.
func (m *model) warn(message string) { m.warnings.add(message) }

// tellWarnings prints the warnings that came of reading the model. It returns an error if they are denied.
func (m *model) tellWarnings() error {
	w := m.warnings
	m.warnings = counted{}
	denied := &diag.List{}
	for _, message := range w.order {
		if m.told[message] {
			continue
		}
		m.told[message] = true
		if n := w.times[message]; n > 1 {
			message += fmt.Sprintf(" (%d times)", n)
		}
		switch {
		case slices.Contains(m.opts.Deny, diag.AllWarnings):
			denied.Add(diag.Diagnostic{ID: "denied", Message: message})
		case m.json:
			_, _ = cli.Fprintf(m.stderr, "warning: %s\n", message)
		case !m.quiet:
			m.activity.pause()
			cli.Tell(m.stderr, diag.Warning, message)
		}
	}
	return denied.Err()
}

// tell prints the warnings of a conversion, and with --verbose its notes. Its errors end the command.
func (m *model) tell(list *diag.List) {
	var shown []cli.Problem
	for i, p := range cli.Problems(list) {
		d := list.Items[i]
		line := list.Format(d)
		if d.Severity == diag.Error || d.Severity == diag.Note && !m.verbose || m.told[line] || m.quiet {
			continue
		}
		if m.json {
			if d.Severity == diag.Warning {
				d.Severity = diag.Error // what follows "warning: " does not say it again
				_, _ = cli.Fprintf(m.stderr, "warning: %s\n", list.Format(d))
			}
			continue
		}
		shown = append(shown, p)
	}
	for _, d := range list.Items { // those of one list that are equal are counted
		m.told[list.Format(d)] = true
	}
	if len(shown) > 0 {
		m.activity.pause()
		r := cli.Report{Model: m.name, Sources: m.sources, Verbose: m.verbose}
		r.Print(m.stderr, shown)
	}
}

// read loads the model; standard input only once.
func (m *model) read(stdin io.Reader) (*ssa.Module, error) {
	what := "reading " + m.name
	if info, err := os.Stat(m.name); err == nil && info.Mode().IsRegular() {
		what += ", " + bytesOf(info.Size())
	}
	m.activity.begin(what)
	mod, err := m.load(stdin)
	m.activity.pause()
	if denied := m.tellWarnings(); err == nil && denied != nil {
		return nil, denied
	}
	var list *diag.List
	var path *fs.PathError
	var named interface{ ProblemID() string }
	if err != nil && !errors.As(err, &list) && !errors.As(err, &path) && !errors.As(err, &named) {
		err = unreadable{err}
	}
	if err == nil {
		m.sources = mod.Sources
	}
	return mod, err
}

// loadOptions returns the options of loading.
func (m *model) loadOptions() aton.LoadOptions {
	o, both := m.loading, m.opts.LoadOptions()
	o.InputNames, o.Names, o.NoWeights, o.Training, o.Table, o.Warn = both.InputNames, both.Names, both.NoWeights, both.Training, both.Table, both.Warn
	return o
}

func (m *model) load(stdin io.Reader) (*ssa.Module, error) {
	defer func() { m.loading.Note = nil }() // a second reading has nothing new to say
	if m.name != "-" {
		return aton.Load(m.name, m.loadOptions())
	}
	if m.bytes == nil {
		b, err := cli.ReadStream(stdin)
		if err != nil {
			return nil, err
		}
		m.bytes = b
	}
	return aton.LoadBytes(m.bytes, "<stdin>", m.loadOptions())
}

// unreadable is why a file is no model.
type unreadable struct{ error }

func (e unreadable) Unwrap() error { return e.error }

// ProblemID is the identifier of the problem.
func (unreadable) ProblemID() (id string) {
	id = "unreadable"
	return id
}

// locate says which file an error is about, and what can be done.
func (m *model) locate(err error) error {
	m.activity.pause()
	var list *diag.List
	var failure *passes.Failure
	var path *fs.PathError
	switch {
	case errors.As(err, &list), errors.As(err, &failure):
		return &cli.ModelError{Model: m.name, Err: err, Sources: m.sources, Verbose: m.verbose}
	case errors.As(err, &path):
		return filed{path, m.remedy(path)}
	}
	return err
}

func (m *model) remedy(err *fs.PathError) string {
	switch {
	case errors.Is(err, fs.ErrNotExist) && err.Path != m.name:
		return "make the folder first"
	case errors.Is(err, fs.ErrNotExist):
		return "check the path of the model"
	case errors.Is(err, fs.ErrPermission):
		return "check the permissions"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free some space, or write elsewhere"
	case errors.Is(err, syscall.EISDIR):
		return "give the name of a file"
	}
	return ""
}

// filed is a problem of a file, in words.
type filed struct {
	err    *fs.PathError
	remedy string
}

func (f filed) Error() string {
	s := f.err.Path + ": " + f.err.Err.Error()
	if f.remedy != "" {
		s += "; " + f.remedy
	}
	return s
}

func (f filed) Unwrap() error { return f.err }

// timed runs f, and tells how long it took where that is wanted.
func (m *model) timed(c *cobra.Command, what string, f func() error) error {
	began := time.Now()
	err := f()
	m.activity.pause()
	if m.timing && err == nil {
		fmt.Fprintf(c.ErrOrStderr(), "%12.3f ms  %s\n", float64(time.Since(began).Microseconds())/1000, what)
	}
	return err
}

func printJSON(w io.Writer, v any) error {
	return cli.EncodeJSON(w, v, true)
}
