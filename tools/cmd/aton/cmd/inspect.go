package cmd

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/lib/cli"
)

// inspected is what inspect tells with --json.
type inspected struct {
	Stage string `json:"stage"`
	overview
	Graph string `json:"graph"`
}

func newInspect() *cobra.Command {
	var m model
	var at, output string
	var source, constants, examples, listing bool
	c := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "Print a model as graph text, at any stage of the conversion",
		Long: "inspect prints a model as graph text; that of an ONNX file begins with a summary. --at selects the stage: import, or after a pass: " + strings.Join(aton.Stages()[1:], ", ") +
			". functional means after specialize, onnx at the end. A terminal gets a listing, as torch.onnx prints graphs: without large constants, and with the weights of an ONNX graph among the inputs. A file or a pipe gets the complete module, from which aton export and aton-opt continue with the same result.",
		Example: `  aton inspect model.pt
  aton inspect model.pt --at onnx --source --input 'x:f32[N,3,224,224]'
  aton inspect model.onnx --source
  aton inspect graph.ir --at dce --input 'x:f32[N,3]'`,
		Args: oneModel,
	}
	m.flags(c)
	m.jsonFlag(c)
	f := c.Flags()
	f.StringVar(&at, "at", "import", "the stage")
	cli.Complete(c, "at", aton.Stages()...)
	f.StringVarP(&output, "output", "o", "-", "the file to write; '-' is standard output")
	f.BoolVar(&source, "source", false, "print the line of the program after each operator of a listing")
	f.BoolVar(&listing, "listing", false, "print a listing to a file or a pipe too")
	f.BoolVar(&examples, "full-types", false, "print strides, requires_grad and device of traced tensors too, where the text has them")
	f.BoolVar(&constants, "print-constants", false, "print the elements of large constants too")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := m.prepare(c, args[0]); err != nil {
			return err
		}
		stages := aton.Stages()
		switch at {
		case "functional":
			at = "specialize"
		case "onnx":
			at = stages[len(stages)-1]
		}
		at = all.Set.CurrentNames([]string{at}, m.opts.Warn)[0]
		if !slices.Contains(stages, at) {
			return cli.Misusef("--at: no stage %q (there are: %s)", at, strings.Join(stages, ", "))
		}
		mod, err := m.read(c.InOrStdin())
		if err != nil {
			return m.locate(err)
		}
		mod, list, failed := aton.Inspect(mod, at, m.opts.ConvertOptions)
		if failed != nil && (list == nil || list.Err() == nil) {
			return m.locate(failed)
		}
		m.tell(list)
		// what cannot be converted can be looked at all the same
		err = cli.WriteText(output, c.OutOrStdout(), func(w io.Writer) error {
			opts := ssa.PrintOptions{NoLocs: !source, AllConstants: constants, Examples: examples, WeightsAsInputs: !constants && !mod.UsesNamespace("aten") && !mod.UsesNamespace("prim")}
			if !listing && !m.json && !(output == "-" && cli.Terminal(c.OutOrStdout())) {
				opts = ssa.PrintOptions{Complete: true, AllConstants: constants, Examples: examples}
			}
			if m.json {
				var b strings.Builder
				if err := ssa.Fprint(&b, mod, opts); err != nil {
					return err
				}
				return printJSON(w, inspected{at, overviewOf(mod), b.String()})
			}
			if at == "import" && mod.Opsets[""] != 0 {
				if _, err := io.WriteString(w, overviewOf(mod).text(m.name)); err != nil {
					return err
				}
			}
			return ssa.Fprint(w, mod, opts)
		})
		if err == nil {
			err = m.locate(failed)
		}
		return err
	}
	return c
}
