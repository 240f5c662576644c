package cmd

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/backend/surgery"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/tools/lib/cli"
	"github.com/aton-project/aton/verify"
)

// editor is a command that edits ONNX files.
type editor struct {
	output, external string
	json             bool
}

func (e *editor) flags(c *cobra.Command, made string) {
	f := c.Flags()
	f.StringVarP(&e.output, "output", "o", "", "the ONNX `FILE` to write (default "+made+")")
	externalFlag(c, &e.external)
	f.BoolVar(&e.json, "json", false, "describe the file as JSON on standard output")
}

// read loads an ONNX file as it is.
func (e *editor) read(name string) (*ssa.Module, error) {
	m := model{name: name}
	mod, err := m.read(nil)
	if err != nil {
		return nil, m.locate(err)
	}
	if len(mod.Opsets) == 0 {
		return nil, fmt.Errorf("%s: it is a program of PyTorch: convert it first (aton export %s)", name, name)
	}
	return mod, nil
}

// write writes the edited module, and says what it is.
func (e *editor) write(c *cobra.Command, m *ssa.Module, beside, suffix string) error {
	out := e.output
	if out == "" {
		out = strings.TrimSuffix(beside, filepath.Ext(beside)) + suffix + ".onnx"
	}
	o := onnxfile.Options{External: externals[e.external], Version: aton.Version()}
	if err := onnxfile.Write(out, m, o); err != nil {
		return err
	}
	values, outputs, err := onnxfile.Names(m, o)
	if err != nil {
		return err
	}
	told := describe(m, out, values, outputs)
	delete(told.Operators, "onnx::Constant")
	if e.json {
		return printJSON(c.OutOrStdout(), told)
	}
	nodes := 0
	for _, n := range told.Operators {
		nodes += n
	}
	if _, err := cli.Fprintf(c.ErrOrStderr(), "%s: %d operators, opset %d\n", out, nodes, m.Opsets[""]); err != nil {
		return err
	}
	_, err = io.WriteString(c.ErrOrStderr(), told.ends())
	return err
}

func newCut() *cobra.Command {
	e := &editor{}
	var inputs, outputs []string
	c := &cobra.Command{
		Use:   "cut MODEL.onnx [--inputs NAMES] [--outputs NAMES] [-o PART.onnx]",
		Short: "Cut a part out of an ONNX file",
		Long: `cut keeps what computes the named outputs from the named inputs. Any value of the graph can be an output or an input, weights too. Without
--outputs the outputs stay; without --inputs the inputs that are still needed stay. The operators are those of the file: nothing is optimized.`,
		Example: `  aton cut model.onnx --outputs features -o backbone.onnx
  aton cut model.onnx --inputs features --outputs scores -o head.onnx`,
		Args: oneModel,
	}
	e.flags(c, "MODEL.cut.onnx")
	c.Flags().StringSliceVar(&inputs, "inputs", nil, "the `NAMES` of the values that become the inputs, in order")
	c.Flags().StringSliceVar(&outputs, "outputs", nil, "the `NAMES` of the values that become the outputs, in order")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(inputs)+len(outputs) == 0 {
			return cli.Misusef("say where to cut: --inputs, --outputs or both")
		}
		m, err := e.read(args[0])
		if err != nil {
			return err
		}
		if err := surgery.Cut(m, inputs, outputs); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return e.write(c, m, args[0], ".cut")
	}
	return c
}

func newJoin() *cobra.Command {
	e := &editor{}
	var links []string
	c := &cobra.Command{
		Use:   "join FIRST.onnx SECOND.onnx... [--link OUTPUT=INPUT] [-o JOINED.onnx]",
		Short: "Join ONNX files: outputs of one become inputs of the next",
		Long: `join makes one model of several. An output becomes the input of the next model that has the same name, or that --link names; the only output becomes the
only input without either. The other inputs and outputs stay. A model of an older opset is brought to the newest opset among them; apart from that
the operators are those of the files.`,
		Example: `  aton join resize.onnx model.onnx -o whole.onnx
  aton join encoder.onnx decoder.onnx --link last_hidden_state=encoder_hidden_states`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Misusef("give two models or more: aton join FIRST.onnx SECOND.onnx")
			}
			return nil
		},
	}
	e.flags(c, "FIRST.joined.onnx")
	c.Flags().StringArrayVar(&links, "link", nil, "`OUTPUT=INPUT`: which output becomes which input of a later model")
	c.RunE = func(c *cobra.Command, args []string) error {
		wanted := map[string]string{}
		for _, l := range links {
			out, in, ok := strings.Cut(l, "=")
			if !ok || out == "" || in == "" {
				return cli.Misusef("--link %s: want OUTPUT=INPUT", l)
			}
			wanted[in] = out
		}
		var models []*ssa.Module
		newest := 0
		for _, name := range args {
			m, err := e.read(name)
			if err != nil {
				return err
			}
			models, newest = append(models, m), max(newest, onnx.DefaultOpset(m))
		}
		for i, m := range models {
			if at := onnx.DefaultOpset(m); at != newest {
				if err := toOpset(m, newest); err != nil {
					return fmt.Errorf("%s: opset %d to %d: %w", args[i], at, newest, err)
				}
			}
		}
		joined := models[0]
		for i, m := range models[1:] {
			part := map[string]string{}
			for _, p := range m.Main().Body.Params {
				if out, ok := wanted[p.Name]; ok {
					part[p.Name] = out
					delete(wanted, p.Name)
				}
			}
			if i == len(models)-2 { // what no model has is told of the last one
				for in, out := range wanted {
					part[in] = out
				}
			}
			if err := surgery.Join(joined, m, part); err != nil {
				return fmt.Errorf("%s and %s: %w", strings.Join(args[:i+1], ", "), args[i+1], err)
			}
		}
		return e.write(c, joined, args[0], ".joined")
	}
	return c
}

// toOpset brings a model to a newer opset, and changes nothing else.
func toOpset(m *ssa.Module, opset int) error {
	p, err := all.Set.Parse(fmt.Sprintf("upgrade,legalize{opset=%d}", opset))
	if err != nil {
		return err
	}
	list, err := p.Run(m, nil)
	if err == nil {
		err = list.Err()
	}
	return err
}

func newSet() *cobra.Command {
	e := &editor{}
	var renames, weights, axes []string
	c := &cobra.Command{
		Use:   "set MODEL.onnx [--rename OLD=NEW] [--weight NAME=FILE] [--axes NAME:AXIS=AXISNAME] [-o CHANGED.onnx]",
		Short: "Change names, weights and dynamic axes of an ONNX file",
		Long: `set renames inputs, outputs, weights and values, replaces the data of weights, and makes sizes that are built in dynamic. A weight is the array of the same name
in FILE (.npz, safetensors, or a state dict of torch.save) or its only one, or the one behind a colon: --weight w=new.npz:arr_0. With --axes a size is
followed through the operators, and shapes that have it as a number compute it; an operator that it cannot be followed through is an error. Apart from that the operators are
those of the file.`,
		Example: `  aton set model.onnx --rename input.1=image,495=scores -o named.onnx
  aton set model.onnx --weight classifier.weight=tuned.npz -o tuned.onnx
  aton set model.onnx --axes input_ids:0=batch,1=length --axes attention_mask:0=batch,1=length -o dynamic.onnx`,
		Args: oneModel,
	}
	e.flags(c, "MODEL.set.onnx")
	c.Flags().StringArrayVar(&axes, "axes", nil, "`NAME:AXIS=AXISNAME,...`: make axes of an input dynamic, such as x:0=batch; axes of one name have one size")
	c.Flags().StringSliceVar(&renames, "rename", nil, "`OLD=NEW`: rename an input, an output, a weight or another value")
	c.Flags().StringArrayVar(&weights, "weight", nil, "`NAME=FILE[:KEY]`: replace the data of a weight")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(renames)+len(weights)+len(axes) == 0 {
			return cli.Misusef("say what to change: --rename, --weight or --axes")
		}
		dynamic, err := parseAxes("--axes", axes)
		if err != nil {
			return err
		}
		names, err := parseRenames(renames)
		if err != nil {
			return err
		}
		m, err := e.read(args[0])
		if err != nil {
			return err
		}
		for _, w := range weights {
			name, file, ok := strings.Cut(w, "=")
			if !ok || name == "" || file == "" {
				return cli.Misusef("--weight %s: want NAME=FILE", w)
			}
			t, err := weightIn(file, name)
			if err == nil {
				err = surgery.SetWeight(m, name, t)
			}
			if err != nil {
				return fmt.Errorf("--weight %s: %w", w, err)
			}
		}
		if len(dynamic) > 0 {
			if err := surgery.SetAxes(m, dynamic); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
		}
		if err := surgery.Rename(m, names); err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return e.write(c, m, args[0], ".set")
	}
	return c
}

// weightIn reads an array of a file: that of the key behind a colon, or else of the name, or the only one.
func weightIn(file, name string) (*tensor.Tensor, error) {
	key := name
	if at := strings.LastIndex(file, ":"); at > 1 { // not of C:\
		file, key = file[:at], file[at+1:]
	}
	all, err := verify.ReadOutputs(file) // tensors of any names
	if err != nil {
		return nil, err
	}
	var has []string
	for _, n := range all {
		if n.Name == key {
			return n.Tensor, nil
		}
		has = append(has, n.Name)
	}
	if len(all) == 1 && key == name {
		return all[0].Tensor, nil
	}
	return nil, fmt.Errorf("the file has no array %s, but %s", key, strings.Join(has, ", "))
}
