package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/cli"
)

// verified is what verify tells of an output with --json.
type verified struct {
	Set string `json:"set"`
	aton.Compared
}

func newVerify() *cobra.Command {
	var m model
	var data, device string
	tol := aton.DefaultTolerance
	c := &cobra.Command{
		Use:   "verify MODEL --data DIR",
		Short: "Run the converted model on recorded inputs, and compare with the recorded outputs",
		Long: `verify converts the model, runs the result in the reference interpreter, and compares what comes out with what
PyTorch gave. The data is a folder with input_0.pb, output_0.pb, ... as ONNX's test cases have them, one with several
such folders named test_data_set_N, or a safetensors file with the names SET/in/NUMBER/NAME and SET/out/NUMBER/NAME.
An ONNX file is run as it is.`,
		Example: `  aton verify model.pt --input 'x:f32[N,3,224,224]' --data test_data_set_0
  aton verify model.onnx --data test_data_set_0`,
		Args: oneModel,
	}
	m.flags(c)
	f := c.Flags()
	f.StringVar(&data, "data", "", "the folder or file with inputs and outputs")
	f.StringVar(&device, "device", "interp", "where to run: interp, the reference interpreter")
	f.Float64Var(&tol.Relative, "rtol", tol.Relative, "how far floats may be off, relative to what is expected")
	f.Float64Var(&tol.Absolute, "atol", tol.Absolute, "how far floats may be off besides")
	c.RunE = func(c *cobra.Command, args []string) error {
		if data == "" {
			return cli.Misusef("--data is missing: what should the outputs be compared with?")
		}
		if device != "interp" {
			return cli.Misusef("--device: it is interp, not %q", device)
		}
		if err := m.prepare(c, args[0]); err != nil {
			return err
		}
		sets, err := aton.ReadData(data)
		if err != nil {
			return m.locate(err)
		}
		mod, err := m.read(c.InOrStdin())
		if err != nil {
			return m.locate(err)
		}
		if mod.UsesNamespace("aten") || mod.UsesNamespace("prim") {
			if _, err := aton.Lower(mod, m.opts); err != nil {
				return m.locate(err)
			}
		}
		return m.compare(c, mod, sets, tol)
	}
	return c
}

func (m *model) compare(c *cobra.Command, mod *ssa.Module, sets []aton.DataSet, tol aton.Tolerance) error {
	all := []verified{}
	wrong := 0
	for _, set := range sets {
		results, err := aton.Verify(mod, set, tol)
		if err != nil {
			return fmt.Errorf("%s: data set %s: %w", m.name, set.Name, err)
		}
		for _, r := range results {
			if r.Wrong != "" {
				wrong++
			}
			all = append(all, verified{set.Name, r})
		}
	}
	if m.json {
		if err := printJSON(c.OutOrStdout(), map[string]any{"model": m.name, "outputs": all}); err != nil {
			return err
		}
		if wrong > 0 {
			return cli.ErrQuiet
		}
		return nil
	}
	for _, r := range all {
		verdict := fmt.Sprintf("as expected (greatest difference %.2g)", r.Worst)
		if r.Wrong != "" {
			verdict = "WRONG: " + r.Wrong
		}
		if _, err := fmt.Fprintf(c.OutOrStdout(), "data set %s: %s : %s %s\n", r.Set, r.Name, r.Type, verdict); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%s: %d of %d outputs are not as expected; --at and --print-changed of inspect show the steps", m.name, wrong, len(all))
	}
	return nil
}
