package cmd

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/cli"
)

// verified is what verify tells of an output with --json.
type verified struct {
	Set string `json:"set"`
	aton.Compared
}

// onDevice is what verify tells of a run on a device with --json.
type onDevice struct {
	Set string `json:"set"`
	*aton.OnDevice
}

type verifier struct {
	model
	data, device, fusion, reference string
	tol                             aton.Tolerance
	nodes, check, noPasses          bool
	// session sees the sessions of the device before they run, and observers the passes: tests plant faults with them.
	session   func(*exec.Session)
	observers []passes.Observer
}

func newVerify() *cobra.Command { return (&verifier{}).command() }

func (v *verifier) command() *cobra.Command {
	v.tol = aton.DefaultTolerance
	c := &cobra.Command{
		Use:   "verify MODEL [--data DIR] [--device interp|sim|ptx|cuda]",
		Short: "Run the converted model on recorded inputs, and compare with the recorded outputs",
		Long: `verify converts the model, runs the result, and compares what comes out with what PyTorch gave. The data is a folder
with input_0.pb, output_0.pb, ... as ONNX's test cases have them, one with several such folders named test_data_set_N,
a safetensors file or an .npz with the names SET/in/NUMBER/NAME and SET/out/NUMBER/NAME, or an .npz with the names
input_N and output_N. An ONNX file is run as it is.

The result runs in the reference interpreter, and with --device on kernels that aton generates: in the simulator, which
needs no GPU; in the simulator from the PTX that the driver would be given (ptx); or on an NVIDIA GPU (cuda). Without
data, a device is compared with the interpreter on random inputs.

If an output differs, verify looks for the culprit: for the first node whose kernel gives something else than the
interpreter on the same operands, for the first pass after which the graph computes something else, and with
--reference for the first operator or weight that the reference does not have.`,
		Example: `  aton verify model.pt --input 'x:f32[N,3,224,224]' --data test_data_set_0
  aton verify model.pt --input 'x:f32[1,3,64,64]' --device sim
  aton verify model.onnx --data test_data_set_0 --reference model.pt`,
		Args: oneModel,
	}
	v.flags(c)
	f := c.Flags()
	f.StringVar(&v.data, "data", "", "the folder or file with inputs and outputs")
	f.StringVar(&v.device, "device", "interp", "where to run: interp (the reference interpreter), sim, ptx or cuda")
	f.StringVar(&v.fusion, "fusion", "light", "what kernels of a device share: none, light")
	cli.Complete(c, "device", "interp", "sim", "ptx", "cuda")
	cli.Complete(c, "fusion", "none", "light")
	f.StringVar(&v.reference, "reference", "", "the `MODEL` that an ONNX file was made of, to look for the first difference in")
	f.BoolVar(&v.nodes, "nodes", false, "compare every node on the device with the interpreter, even if the outputs are right")
	f.BoolVar(&v.check, "check", false, "let the simulator look for races and for reads of what nothing wrote")
	f.BoolVar(&v.noPasses, "no-passes", false, "do not look for the first wrong pass")
	f.Float64Var(&v.tol.Relative, "rtol", v.tol.Relative, "how far floats may be off, relative to what is expected")
	f.Float64Var(&v.tol.Absolute, "atol", v.tol.Absolute, "how far floats may be off besides")
	f.Float64Var(&v.tol.OfMax, "atol-of-max", 0, "how far floats may be off besides, times the greatest element of the output")
	c.RunE = func(c *cobra.Command, args []string) error { return v.run(c, args[0]) }
	return c
}

func (v *verifier) run(c *cobra.Command, name string) error {
	m := &v.model
	if v.fusion != string(fuse.None) && v.fusion != string(fuse.Light) {
		return cli.Misusef("--fusion: it is none or light, not %q", v.fusion)
	}
	for name, x := range map[string]float64{"rtol": v.tol.Relative, "atol": v.tol.Absolute, "atol-of-max": v.tol.OfMax} {
		if !(x >= 0) || math.IsInf(x, 1) {
			return cli.Misusef("--%s: it is a number from 0 on, not %v", name, x)
		}
	}
	if v.data == "" && (v.device == "interp" && v.reference == "") {
		return cli.Misusef("--data is missing: what should the outputs be compared with?")
	}
	var backend exec.Backend
	if v.device != "interp" {
		b, err := newBackend(v.device, v.check)
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
	var sets []aton.DataSet
	if v.data != "" {
		var err error
		if sets, err = aton.ReadData(v.data); err != nil {
			return m.locate(err)
		}
	}
	mod, err := v.lowered(c.InOrStdin(), m)
	if err != nil {
		return m.locate(err)
	}
	if v.data == "" {
		set, err := aton.RandomData(mod)
		if err != nil {
			return m.locate(err)
		}
		sets = []aton.DataSet{set}
	}
	r := &report{Model: m.name, Outputs: []verified{}}
	for _, set := range sets {
		if err := v.set(c, mod, set, backend, r); err != nil {
			return fmt.Errorf("%s: data set %s: %w", m.name, set.Name, err)
		}
	}
	return v.print(c.OutOrStdout(), r)
}

// lowered loads a model and brings it to the ONNX dialect.
func (v *verifier) lowered(stdin io.Reader, m *model) (*ssa.Module, error) {
	mod, err := m.read(stdin)
	if err != nil {
		return nil, err
	}
	if mod.UsesNamespace("aten") || mod.UsesNamespace("prim") {
		if _, err := aton.Lower(mod, m.opts); err != nil {
			return nil, err
		}
	}
	return mod, nil
}

// report is what verify found.
type report struct {
	Model   string         `json:"model"`
	Outputs []verified     `json:"outputs"`
	Device  []onDevice     `json:"device,omitempty"`
	Suspect []aton.Suspect `json:"suspects,omitempty"`
	wrong   int
	checked int
}

func (v *verifier) set(c *cobra.Command, mod *ssa.Module, set aton.DataSet, backend exec.Backend, r *report) error {
	wrong := 0
	if len(set.Outputs) > 0 {
		results, err := aton.Verify(mod, set, v.tol)
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
		d, err := aton.VerifyOn(mod, set, v.tol, aton.DeviceOptions{Backend: backend, Fusion: fuse.Mode(v.fusion), Nodes: v.nodes, Session: v.session})
		if d != nil {
			r.Device = append(r.Device, onDevice{set.Name, d})
			for _, out := range d.Outputs {
				r.checked++
				if out.Wrong != "" {
					r.wrong++
				}
			}
			if d.Node != nil {
				r.wrong++
			}
		}
		if err != nil {
			return err
		}
	}
	r.wrong += wrong
	if wrong > 0 && v.reference == "" && !v.noPasses && v.name != "-" {
		opts := v.opts
		again := &v.model
		fresh, err := again.read(nil)
		if err != nil {
			return err
		}
		if fresh.UsesNamespace("aten") || fresh.UsesNamespace("prim") {
			s, err := aton.FirstBadPass(func() (*ssa.Module, error) { return fresh, nil }, set, v.tol, opts)
			if err != nil {
				return err
			}
			if s != nil {
				r.Suspect = append(r.Suspect, *s)
			}
		}
	}
	if v.reference != "" {
		ref := v.model
		ref.name = v.reference
		other, err := v.lowered(c.InOrStdin(), &ref)
		if err != nil {
			return err
		}
		s, err := aton.FirstDifference(other, mod, set, v.tol)
		if err != nil {
			return err
		}
		if s != nil {
			r.Suspect = append(r.Suspect, *s)
			if wrong == 0 {
				r.wrong++
			}
		}
		r.checked++
	}
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
	line := func(set, where string, out aton.Compared) {
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
		if d.Compared > 0 && d.Node == nil {
			p.printf("data set %s: %s: %d nodes compared one by one, all within the bounds of their operators\n", d.Set, d.Device, d.Compared)
		}
		if d.Node != nil {
			p.printf("data set %s: %s: first wrong %s\n", d.Set, d.Device, d.Node)
		}
	}
	for i := range r.Suspect {
		p.printf("%s\n", r.Suspect[i].String())
	}
	if p.err != nil {
		return p.err
	}
	if r.wrong > 0 {
		return fmt.Errorf("%s: %d of %d outputs are not as expected; --at and --print-changed of inspect show the steps", v.name, r.wrong, r.checked)
	}
	return nil
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
