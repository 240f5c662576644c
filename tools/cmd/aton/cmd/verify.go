package cmd

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/lib/cli"
	"github.com/aton-project/aton/verify"
	"github.com/aton-project/aton/verify/device"
)

// verified is what verify tells of an output with --json.
type verified struct {
	Set string `json:"set"`
	verify.Compared
}

// onDevice is what verify tells of a run on a device with --json.
type onDevice struct {
	Set string `json:"set"`
	*device.Result
}

type verifier struct {
	model
	data                      []string
	device, fusion, reference string
	expected, minimize        string
	random                    int
	seed                      uint64
	sizes                     map[string]int64
	anyDType, anyShape        bool
	percent, sample           float64
	tol                       verify.Tolerance
	nodes, check, noPasses    bool
	prove                     bool
	limit                     time.Duration
	tf32                      bool
	// session sees the sessions of the device before they run, and observers the passes: tests plant faults with them.
	session   func(*exec.Session)
	observers []passes.Observer
}

func newVerify() *cobra.Command { return (&verifier{}).command() }

func (v *verifier) command() *cobra.Command {
	v.tol = verify.DefaultTolerance
	c := &cobra.Command{
		Use:   "verify MODEL [--data DIR] [--device interp|sim|cuda]",
		Short: "Run the converted model on recorded inputs, and compare with the recorded outputs",
		Long: `verify converts the model, runs the result, and compares its outputs with PyTorch's. The data is a folder
with input_0.pb, output_0.pb, ... as in ONNX's test cases, a folder with several such folders named test_data_set_N,
a safetensors file or an .npz with the names SET/in/NUMBER/NAME and SET/out/NUMBER/NAME, or an .npz with the names
input_N and output_N. An ONNX file is run as it is.

The result runs in the reference interpreter, and with --device also on kernels that aton generates: in a simulator of the PTX that a
driver would get, which needs no GPU (sim; ptx means the same); or on an NVIDIA GPU (cuda). Without data, the device is compared with the interpreter on random inputs.

If there are only inputs (--random, or data without outputs), the file is compared with the program itself, which runs unconverted
with PyTorch's semantics, as in 'aton run'.

If an output differs, verify looks for the cause: the first node whose kernel disagrees with the
interpreter on the same operands, the first pass that changed what the graph computes, and with
--reference the first operator or weight that the reference does not have. --minimize writes the wrong node, or the smallest part of
the model that a device computes wrongly, as a model of its own with its inputs and outputs, in the form of ONNX's test cases.

For a large model, --sample SHARE simulates only this fraction of the blocks of each kernel, above 0 and at most 1, selected by
--seed. What they write is compared with the interpreter's results for the same operands; the nodes of a fused kernel are compared one
after another (--fusion none gives each node a kernel of its own). Later kernels read the interpreter's results. A kernel that is wrong in k of its blocks is found with a probability of at least 1 - (1 - SHARE)^k.

--prove also compares the graphs before and after each pass, from the first one of ONNX operators on, for all elements that tensors of the sizes of
the data may have, and tells which share of the changes is proved. It needs the solver z3. What is not proved is left to the numbers.`,
		Example: `  aton verify model.pt --input 'x:f32[N,3,224,224]' --data test_data_set_0
  aton verify model.pt --input 'x:f32[1,3,64,64]' --device sim
  aton verify model.pt2 --device sim --sample 0.05 --seed 7
  aton verify model.onnx --data test_data_set_0 --reference model.pt
  aton verify model.pt2 --random 5 --size N=3
  aton verify model.onnx --data inputs.npz --expected ort.npz --acceptable-error-percentage 0.1
  aton verify model.onnx --data data.npz --device cuda --minimize wrong
  aton verify model.pt --input 'x:f32[N,3,224,224]' --prove`,
		Args: oneModel,
	}
	v.flags(c)
	v.jsonFlag(c)
	v.functionsFlag(c)
	f := c.Flags()
	f.StringArrayVar(&v.data, "data", nil, "a folder or `FILE` with inputs and outputs; may be given several times")
	f.StringVar(&v.expected, "expected", "", "a folder or `FILE` with the expected outputs of the only data set, in place of its own")
	f.IntVar(&v.random, "random", 0, "use `N` data sets of random inputs; without --device and --reference, the file is compared with the program itself")
	f.Uint64Var(&v.seed, "seed", 0, "selects the random inputs and the blocks of --sample")
	f.StringToInt64Var(&v.sizes, "size", nil, "`NAME=N`: the size of a dynamic axis in random inputs (default 2, and 1, 3, 0, 2, ... in further sets)")
	f.StringVar(&v.minimize, "minimize", "", "write the smallest part of the model that is wrong by itself, with its inputs and outputs, to this `FOLDER`")
	f.StringVar(&v.device, "device", "interp", "where to run: interp (the reference interpreter), sim or cuda")
	f.StringVar(&v.fusion, "fusion", "light", "which nodes share a kernel on the device: none, light")
	cli.Complete(c, "device", "interp", "sim", "cuda")
	cli.Complete(c, "fusion", "none", "light")
	f.BoolVar(&v.tf32, "tf32", false, tf32Usage+"; the bounds of nodes allow for it, those of outputs are --rtol, --atol and --atol-of-max")
	f.StringVar(&v.reference, "reference", "", "the `MODEL` that an ONNX file was made from, in which to look for the first difference")
	f.BoolVar(&v.nodes, "nodes", false, "compare every node on the device with the interpreter, even if the outputs are right")
	f.BoolVar(&v.check, "check", false, "let the simulator look for races and for reads of uninitialized memory")
	f.Float64Var(&v.sample, "sample", 0, "simulate only this `SHARE` of the blocks of each kernel, above 0 and at most 1, and compare what they write with the interpreter's results for the nodes of the kernel")
	f.BoolVar(&v.prove, "prove", false, "prove with z3 that the passes keep what the graph computes, and tell which share of their changes is proved")
	f.DurationVar(&v.limit, "limit", time.Second, "time for one question of --prove to the solver")
	f.BoolVar(&v.noPasses, "no-passes", false, "do not look for the first wrong pass")
	f.Float64Var(&v.tol.Relative, "rtol", v.tol.Relative, "the tolerance of floats, relative to the expected value")
	f.Float64Var(&v.tol.Absolute, "atol", v.tol.Absolute, "the absolute tolerance of floats, added to --rtol")
	f.Float64Var(&v.percent, "acceptable-error-percentage", 0, "the percentage of an output's elements that may differ by more")
	f.BoolVar(&v.anyDType, "any-dtype", false, "allow outputs of another element type")
	f.BoolVar(&v.anyShape, "any-shape", false, "allow outputs of another shape with the same number of elements, compared in order")
	f.Float64Var(&v.tol.OfMax, "atol-of-max", 0, "the tolerance of floats relative to the greatest element of the output, added to --rtol")
	c.RunE = func(c *cobra.Command, args []string) error {
		return v.logged(c, args[0], func() error { return v.run(c, args[0]) })
	}
	return c
}

func (v *verifier) run(c *cobra.Command, name string) error {
	m := &v.model
	if v.fusion != string(fuse.None) && v.fusion != string(fuse.Light) {
		return cli.Misusef("--fusion must be none or light, not %q", v.fusion)
	}
	for name, x := range map[string]float64{"rtol": v.tol.Relative, "atol": v.tol.Absolute, "atol-of-max": v.tol.OfMax} {
		if !(x >= 0) || math.IsInf(x, 1) {
			return cli.Misusef("--%s must be 0 or more, not %v", name, x)
		}
	}
	if err := v.checkDevice(c); err != nil {
		return err
	}
	if err := v.checkData(c); err != nil {
		return err
	}
	v.tol.Share, v.tol.AnyDType, v.tol.AnyShape = v.percent/100, v.anyDType, v.anyShape
	var backend exec.Backend
	if v.device != "interp" {
		b, err := newBackend(v.device, v.check, m.loading.Budget)
		if err != nil {
			return err
		}
		if c, ok := b.(io.Closer); ok {
			defer c.Close()
		}
		backend = b
	}
	if err := m.prepare(c, name); err != nil {
		return err
	}
	m.opts.Runner.Observers = append(m.opts.Runner.Observers, v.observers...)
	sets, err := v.recorded()
	if err != nil {
		return m.locate(err)
	}
	mod, err := v.lowered(c.InOrStdin(), m)
	if err != nil {
		return m.locate(err)
	}
	for i := range v.random {
		set, err := verify.RandomData(mod, verify.RandomOptions{Seed: v.seed + uint64(i), Sizes: v.sizes})
		if err != nil {
			return m.locate(err)
		}
		sets = append(sets, set)
	}
	if err := v.expect(mod, sets); err != nil {
		return m.locate(err)
	}
	r := &report{Model: m.name, Outputs: []verified{}}
	for _, set := range sets {
		m.activity.begin("running data set " + set.Name)
		if err := v.set(c, mod, set, backend, r); err != nil {
			return fmt.Errorf("%s: data set %s: %w", cli.Inline(m.name), set.Name, err)
		}
	}
	if v.prove {
		m.activity.begin("proving the passes")
		if r.Proof, err = v.validate(mod, sets[0]); err != nil {
			return m.locate(err)
		}
	}
	m.activity.pause()
	return v.print(c.OutOrStdout(), r)
}

// checkData refuses options on data that do not go together.
func (v *verifier) checkData(c *cobra.Command) error {
	flags := c.Flags()
	if len(v.data) == 0 && v.random == 0 && (v.device != "interp" || v.reference != "" || v.expected != "" || v.prove) {
		v.random = 1
	}
	switch {
	case len(v.data) == 0 && v.random == 0:
		return cli.Misusef("--data is missing: it has the inputs and the expected outputs")
	case v.random < 0 || v.random > 1<<16:
		return cli.Misusef("--random must be a number of data sets, not %d", v.random)
	case v.random == 0 && (flags.Changed("seed") && !flags.Changed("sample") || flags.Changed("size")):
		return cli.Misusef("--seed and --size require --random")
	case flags.Changed("limit") && (!v.prove || v.limit <= 0):
		return cli.Misusef("--limit is a time above 0, and requires --prove")
	case v.expected != "" && len(v.data)+v.random != 1:
		return cli.Misusef("--expected has the outputs of one data set; there are %d", len(v.data)+v.random)
	case !(v.percent >= 0 && v.percent <= 100):
		return cli.Misusef("--acceptable-error-percentage must be a number from 0 to 100, not %v", v.percent)
	}
	for name, n := range v.sizes {
		if n < 0 {
			return cli.Misusef("--size %s must be 0 or more, not %d", name, n)
		}
	}
	return nil
}

// checkDevice refuses options that do not go with the interpreter, or with a part of the blocks.
func (v *verifier) checkDevice(c *cobra.Command) error {
	flags := c.Flags()
	if v.tf32 && v.device == "interp" {
		return cli.Misusef("--tf32 requires --device sim or cuda")
	}
	if !flags.Changed("sample") {
		return nil
	}
	switch {
	case !(v.sample > 0 && v.sample <= 1):
		return cli.Misusef("--sample must be above 0 and at most 1, not %v", v.sample)
	case v.device == "interp":
		return cli.Misusef("--sample requires --device sim")
	case v.device == "cuda":
		return cli.Misusef("--sample requires --device sim; a GPU runs all blocks")
	case v.nodes:
		return cli.Misusef("--sample and --nodes are mutually exclusive: --sample compares every node already")
	case v.minimize != "":
		return cli.Misusef("--minimize and --sample are mutually exclusive: --minimize runs all blocks")
	}
	return nil
}

// recorded reads the data sets of --data, with the outputs of --expected.
func (v *verifier) recorded() ([]verify.DataSet, error) {
	var sets []verify.DataSet
	for _, path := range v.data {
		more, err := verify.ReadData(path)
		if err != nil {
			return nil, err
		}
		if len(v.data) > 1 { // sets of several files are told apart by the files
			for i := range more {
				more[i].Name = filepath.Base(path) + "/" + more[i].Name
			}
		}
		sets = append(sets, more...)
	}
	return sets, nil
}

// expect gives the one data set the outputs of --expected. They go by name if all of the model's are there, else in order.
func (v *verifier) expect(mod *ssa.Module, sets []verify.DataSet) error {
	if v.expected == "" {
		return nil
	}
	if len(sets) != 1 {
		return fmt.Errorf("--expected has the outputs of one data set; there are %d in --data", len(sets))
	}
	outputs, err := verify.ReadOutputs(v.expected)
	if err != nil {
		return err
	}
	_, names, err := aton.FileNames(mod, v.opts.WriteOptions)
	if err != nil {
		return err
	}
	var ordered []verify.Named
	for _, name := range names {
		if i := slices.IndexFunc(outputs, func(n verify.Named) bool { return n.Name == name }); i >= 0 {
			ordered = append(ordered, outputs[i])
		}
	}
	if len(ordered) != len(names) {
		numbered := func(n verify.Named) bool { return strings.HasPrefix(n.Name, "output_") }
		if ordered = outputs; !slices.ContainsFunc(outputs, numbered) {
			return fmt.Errorf("%s: its names are not those of the model's outputs (%s); give these, or output_N", v.expected, strings.Join(names, ", "))
		}
	}
	sets[0].Outputs = ordered
	return nil
}

// lowered loads a model and brings it to the ONNX dialect.
func (v *verifier) lowered(stdin io.Reader, m *model) (*ssa.Module, error) {
	mod, err := m.read(stdin)
	if err != nil {
		return nil, err
	}
	if mod.UsesNamespace("aten") || mod.UsesNamespace("prim") {
		if _, err := aton.Convert(mod, m.opts.ConvertOptions); err != nil {
			return nil, err
		}
		m.tellUnused()
	}
	return mod, nil
}

// judge compares within the tolerance, with the functions of --functions as kernels.
func (v *verifier) judge() verify.Verifier {
	return verify.Verifier{Tolerance: v.tol, Kernels: verify.FunctionKernels(v.opts.Functions)}
}

// smallest is the part of a model that --minimize has written.
type smallest struct {
	Folder string `json:"folder"`
	Nodes  int    `json:"nodes"`
	First  string `json:"first"`
}

// report is what verify found.
type report struct {
	Model   string           `json:"model"`
	Outputs []verified       `json:"outputs"`
	Device  []onDevice       `json:"device,omitempty"`
	Suspect []verify.Suspect `json:"suspects,omitempty"`
	// Unchanged are the data sets without expected outputs that every pass left alone, where the program itself could not be run.
	Unchanged []string `json:"unchanged,omitempty"`
	// NotRun says why the program itself was not run on a data set, or its outputs are no measure.
	NotRun   []notRun  `json:"notRun,omitempty"`
	Smallest *smallest `json:"smallest,omitempty"`
	Proof    *proof    `json:"proof,omitempty"`
	wrong    int
	checked  int
}

// notRun is a data set on which the program itself was not run.
type notRun struct {
	Set    string `json:"set"`
	Reason string `json:"reason"`
}

// ask runs the program itself, as it is read, on a data set without outputs, and gives it these. It does nothing where the program is an
// ONNX file, or where options have it compute something else than it does by itself.
func (v *verifier) ask(set *verify.DataSet, r *report) error {
	if v.name == "-" || v.noPasses || v.opts.Weights != aton.Initializers || v.opts.Training != "" && v.opts.Training != aton.Preserve || v.opts.State == "outputs" {
		return nil
	}
	again := &v.model
	program, err := again.read(nil)
	if err != nil {
		return err
	}
	if !program.UsesNamespace("aten") && !program.UsesNamespace("prim") {
		return nil
	}
	asked := verify.DataSet{Name: set.Name, Inputs: slices.Clone(set.Inputs)}
	if strings.HasPrefix(set.Name, "random") { // in the order of the file's inputs, which may have other names
		for i := range asked.Inputs {
			asked.Inputs[i].Name = ""
		}
	}
	ran, err := v.judge().RunProgram(program, asked, v.opts.Table)
	switch {
	case err != nil:
		r.NotRun = append(r.NotRun, notRun{set.Name, err.Error()})
	case ran.Random:
		r.NotRun = append(r.NotRun, notRun{set.Name, "it draws random numbers"})
	default:
		set.Outputs = ran.Outputs
	}
	return nil
}

func (v *verifier) set(c *cobra.Command, mod *ssa.Module, set verify.DataSet, backend exec.Backend, r *report) error {
	wrong := 0
	if len(set.Outputs) == 0 && backend == nil && v.reference == "" {
		if err := v.ask(&set, r); err != nil {
			return err
		}
	}
	if len(set.Outputs) > 0 {
		results, err := v.judge().Verify(mod, set)
		if err != nil {
			return err
		}
		for _, out := range results {
			r.Outputs = append(r.Outputs, verified{set.Name, out})
			r.checked++
			if out.Wrong != "" {
				wrong++
			}
		}
	}
	if backend != nil {
		options := device.Options{Backend: backend, Fusion: fuse.Mode(v.fusion), TF32: v.tf32, Nodes: v.nodes, Sample: v.sample, Seed: v.seed, Session: v.session}
		d, err := device.Verify(v.judge(), mod, set, options)
		if d != nil {
			r.Device = append(r.Device, onDevice{set.Name, d})
			for _, out := range d.Outputs {
				r.checked++
				if out.Wrong != "" {
					r.wrong++
				}
			}
			if d.Sample != nil {
				r.checked += d.Sample.Nodes
			}
			if d.Node != nil {
				r.wrong++
			}
			if r.wrong > 0 && v.minimize != "" && r.Smallest == nil {
				piece, err := device.Minimize(v.judge(), mod, set, options)
				if err != nil {
					return err
				}
				if err := v.write(r, piece); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
	r.wrong += wrong
	unchecked := len(set.Outputs) == 0 && backend == nil && v.reference == "" // but for what passes do
	if (wrong > 0 || unchecked) && v.reference == "" && !v.noPasses && v.name != "-" {
		fresh, err := v.model.read(nil)
		if err != nil {
			return err
		}
		if fresh.UsesNamespace("aten") || fresh.UsesNamespace("prim") {
			s, err := v.judge().FirstBadPass(fresh, func(m *ssa.Module, watch passes.Observer) error {
				_, err := aton.Convert(m, v.opts.WithObserver(watch))
				return err
			}, set)
			if err != nil {
				return err
			}
			if s != nil {
				r.Suspect = append(r.Suspect, *s)
				if err := v.write(r, s.Piece); err != nil {
					return err
				}
			}
			if unchecked {
				r.checked++
				if s != nil {
					r.wrong++
				} else {
					r.Unchanged = append(r.Unchanged, set.Name)
				}
			}
		} else if unchecked {
			return fmt.Errorf("there is nothing to compare an ONNX file with: give --reference, --device or the expected outputs (--expected)")
		}
	} else if unchecked {
		return fmt.Errorf("there is nothing to compare the outputs with: leave out --no-passes, give a file in place of standard input, or the expected outputs (--expected)")
	}
	if v.reference != "" {
		ref := v.model
		ref.name = v.reference
		other, err := v.lowered(c.InOrStdin(), &ref)
		if err != nil {
			return err
		}
		s, err := v.judge().FirstDifference(other, mod, set)
		if err != nil {
			return err
		}
		if s != nil {
			r.Suspect = append(r.Suspect, *s)
			if wrong == 0 {
				r.wrong++
			}
			if err := v.write(r, s.Piece); err != nil {
				return err
			}
		}
		r.checked++
	}
	return nil
}

// write writes the first wrong part that is found to the folder of --minimize.
func (v *verifier) write(r *report, p *verify.Piece) error {
	if v.minimize == "" || p == nil || r.Smallest != nil {
		return nil
	}
	if err := p.Write(v.minimize); err != nil {
		return err
	}
	r.Smallest = &smallest{v.minimize, p.Nodes, p.First}
	return nil
}

func (v *verifier) print(w io.Writer, r *report) error {
	if v.json {
		if err := printJSON(w, r); err != nil {
			return err
		}
		if r.wrong > 0 {
			return cli.ErrQuiet
		}
		return nil
	}
	p := &printer{w: w}
	line := func(set, where string, out verify.Compared) {
		verdict := "as expected"
		if out.Wrong != "" {
			verdict = "WRONG: " + out.Wrong
		}
		if d := out.Difference; d != nil && d.Shape == "" {
			verdict += fmt.Sprintf(" (greatest difference %.2g, relative %.2g, %.3g ulp", d.MaxAbs, d.MaxRel, d.MaxULP)
			if d.MaxAbs > 0 {
				verdict += fmt.Sprintf(", at %v", d.At)
			}
			if d.NaN > 0 {
				verdict += fmt.Sprintf("; %d NaN or infinities differ", d.NaN)
			}
			verdict += ")"
		}
		p.printf("data set %s: %s%s : %s %s\n", set, where, out.Name, out.Type, verdict)
	}
	for _, out := range r.Outputs {
		line(out.Set, "", out.Compared)
	}
	for _, d := range r.Device {
		for _, out := range d.Outputs {
			line(d.Set, d.Device+": ", out)
		}
		p.printf("data set %s: %s: %.1f %% of %d nodes on the device, %d launches, %d host steps, %.2f s", d.Set, d.Device, d.Share, d.Nodes, d.Launches, d.Host, d.Seconds)
		if d.LaneInstructions > 0 && d.Seconds > 0 {
			p.printf(", %.3g lane-instructions", float64(d.LaneInstructions))
		}
		p.printf("\n")
		if s := d.Sample; s != nil {
			p.printf("data set %s: %s: sample %v, seed %d: %d of %d blocks (%.2f %%), %d of %d elements of %d nodes compared (%.2f %%)", d.Set, d.Device, s.Share, s.Seed,
				s.Ran, s.Blocks, percent(s.Ran, s.Blocks), s.Compared, s.Elements, s.Nodes, percent(s.Compared, s.Elements))
			if d.Node == nil {
				p.printf(", all within the bounds of their operators")
			}
			p.printf("\n")
			for _, l := range s.Whole {
				p.printf("data set %s: %s: all %d blocks of %s (%s): %s\n", d.Set, d.Device, l.Blocks, l.Kernel, l.Node, l.Reason)
			}
		}
		if d.Compared > 0 && d.Node == nil {
			p.printf("data set %s: %s: %d nodes compared one by one, all within the bounds of their operators\n", d.Set, d.Device, d.Compared)
		}
		if d.Node != nil {
			p.printf("data set %s: %s: first wrong %s\n", d.Set, d.Device, d.Node)
		}
	}
	if r.Proof != nil {
		r.Proof.print(p)
	}
	for i := range r.Suspect {
		p.printf("%s\n", r.Suspect[i].String())
	}
	for _, n := range r.NotRun {
		p.printf("data set %s: the program itself is no measure: %s\n", n.Set, n.Reason)
	}
	for _, set := range r.Unchanged {
		p.printf("data set %s: no pass changes what the graph computes\n", set)
	}
	switch s := r.Smallest; {
	case s != nil:
		nodes := "1 node"
		if s.Nodes > 1 {
			nodes = fmt.Sprintf("%d nodes", s.Nodes)
		}
		p.printf("the smallest part that is wrong by itself has %s, %s: %s\n", nodes, s.First, filepath.Join(s.Folder, "model.onnx"))
	case v.minimize != "" && r.wrong > 0:
		p.printf("no part of the model is wrong by itself: nothing is written to %s\n", v.minimize)
	}
	if p.err != nil {
		return p.err
	}
	if r.wrong > 0 {
		return fmt.Errorf("%s: %d of %d outputs are not as expected; --at and --print-changed of inspect show the steps", v.name, r.wrong, r.checked)
	}
	return nil
}

// percent is part of all, 100 if there is nothing.
func percent(part, all int64) float64 {
	if all == 0 {
		return 100
	}
	return 100 * float64(part) / float64(all)
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = cli.Fprintf(p.w, format, args...)
	}
}
