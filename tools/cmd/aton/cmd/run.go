package cmd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/tools/lib/cli"
	"github.com/aton-project/aton/verify"
)

type runner struct {
	model
	data   []string
	random uint64
	sizes  map[string]int64
	output string
}

func newRun() *cobra.Command {
	r := &runner{}
	c := &cobra.Command{
		Use:   "run MODEL [--data FILE | --random SEED]",
		Short: "Run the model itself, without converting it, and print or save its outputs",
		Long: `run needs neither PyTorch nor onnxruntime. A program of PyTorch runs as it is, with PyTorch's semantics: views share memory, lists
and objects can be changed, control flow runs, and exceptions are raised. An operator without side effects is computed by its ONNX form for
the given operands. An ONNX file runs in the reference interpreter.

The data is in the form that verify reads: a folder with input_0.pb, ..., or an .npz or safetensors file with the names input_N or SET/in/NUMBER/NAME.
Inputs are matched by name if the data has all names, else by position. Numbers are tensors of rank 0; a container is given by its leaves.`,
		Example: `  aton run model.pt --data inputs.npz
  aton run model.pt2 --data inputs.safetensors -o outputs.npz
  aton run model.pt --input 'x:f32[N,3,32,32]' --random 7 --size N=4
  aton run model.onnx --data test_data_set_0 --json`,
		Args: oneModel,
	}
	r.loadFlags(c)
	r.jsonFlag(c)
	r.functionsFlag(c)
	f := c.Flags()
	f.StringArrayVar(&r.data, "data", nil, "a folder or `FILE` with inputs; may be given several times")
	f.Uint64Var(&r.random, "random", 0, "use random inputs; the same `SEED` gives the same ones")
	f.StringToInt64Var(&r.sizes, "size", nil, "`NAME=N`: the size of a dynamic axis in random inputs (default 2, 1, 3 or 0, by the seed)")
	f.StringVarP(&r.output, "output", "o", "", "write the outputs to this .npz or .safetensors `FILE` under their names; those of several data sets as SET/out/NUMBER/NAME")
	c.RunE = func(c *cobra.Command, args []string) error { return r.run(c, args[0]) }
	return c
}

// ranSet is what run tells of a data set with --json.
type ranSet struct {
	Set     string      `json:"set"`
	Outputs []ranOutput `json:"outputs"`
}

// ranOutput is an output with --json. Values are in row-major order; those that JSON has no numbers for are strings.
type ranOutput struct {
	Name   string            `json:"name"`
	Type   string            `json:"type"`
	Shape  []int64           `json:"shape"`
	Values []json.RawMessage `json:"values"`
}

func (r *runner) run(c *cobra.Command, name string) error {
	made := c.Flags().Changed("random")
	switch {
	case made && len(r.data) > 0:
		return cli.Misusef("--random and --data are mutually exclusive")
	case !made && len(r.sizes) > 0:
		return cli.Misusef("--size requires --random")
	case r.output != "" && !strings.HasSuffix(r.output, ".npz") && !strings.HasSuffix(r.output, ".safetensors"):
		return cli.Misusef("-o %s must end in .npz or .safetensors", r.output)
	}
	for name, n := range r.sizes {
		if n < 0 {
			return cli.Misusef("--size %s must be 0 or more, not %d", name, n)
		}
	}
	if err := r.prepare(c, name); err != nil {
		return err
	}
	m, err := r.read(c.InOrStdin())
	if err != nil {
		return r.locate(err)
	}
	var sets []verify.DataSet
	for _, path := range r.data {
		more, err := verify.ReadData(path)
		if err != nil {
			return r.locate(err)
		}
		sets = append(sets, more...)
	}
	switch {
	case made:
		set, err := verify.RandomData(m, verify.RandomOptions{Seed: r.random, Sizes: r.sizes})
		if err != nil {
			return r.locate(err)
		}
		sets = append(sets, set)
	case len(r.data) == 0: // a program without inputs
		sets = append(sets, verify.DataSet{Name: "0"})
	}
	judge := verify.Verifier{Kernels: verify.FunctionKernels(r.opts.Functions)}
	ran := make([]verify.DataSet, len(sets))
	for i, set := range sets {
		if i > 0 { // a run may change what the model keeps
			if m, err = r.read(c.InOrStdin()); err != nil {
				return r.locate(err)
			}
		}
		out, err := judge.RunProgram(m, set, r.opts.Table)
		if err != nil {
			return r.locate(fmt.Errorf("data set %s: %w", set.Name, err))
		}
		ran[i] = verify.DataSet{Name: set.Name, Outputs: out.Outputs}
	}
	if r.output != "" {
		if err := verify.WriteOutputs(r.output, ran); err != nil {
			return err
		}
		if !r.json {
			return nil
		}
	}
	return r.print(c, ran)
}

func (r *runner) print(c *cobra.Command, ran []verify.DataSet) error {
	if r.json {
		sets := make([]ranSet, len(ran))
		for i, set := range ran {
			sets[i] = ranSet{Set: set.Name, Outputs: []ranOutput{}}
			for _, o := range set.Outputs {
				sets[i].Outputs = append(sets[i].Outputs, ranOutput{o.Name, o.Tensor.DType.String(), append([]int64{}, o.Tensor.Shape...), valuesOf(o.Tensor)})
			}
		}
		return printJSON(c.OutOrStdout(), sets)
	}
	p := &printer{w: c.OutOrStdout()}
	for _, set := range ran {
		for _, o := range set.Outputs {
			prefix := ""
			if len(ran) > 1 {
				prefix = "data set " + set.Name + ": "
			}
			p.printf("%s%s : %s = %s\n", prefix, o.Name, o.Tensor, brief(o.Tensor))
		}
	}
	return p.err
}

// maxPrinted is how many elements of an output are printed.
const maxPrinted = 32

// brief prints the first elements of a tensor in row-major order.
func brief(t *tensor.Tensor) string {
	values := texts(t, maxPrinted)
	if n := t.NumElements(); n > maxPrinted {
		values = append(values, fmt.Sprintf("... (%d more)", n-maxPrinted))
	}
	if len(t.Shape) == 0 && len(values) == 1 {
		return values[0]
	}
	return "[" + strings.Join(values, ", ") + "]"
}

// texts prints elements in row-major order, at most as many as asked for.
func texts(t *tensor.Tensor, most int64) []string {
	n := min(t.NumElements(), most)
	out := make([]string, 0, n)
	switch d := t.DType; {
	case d == tensor.String:
		for _, s := range t.StringData()[:n] {
			out = append(out, fmt.Sprintf("%q", s))
		}
	case d == tensor.Bool:
		for _, v := range t.Int64s()[:n] {
			out = append(out, fmt.Sprint(v != 0))
		}
	case d == tensor.Float64:
		for _, v := range t.Float64s()[:n] {
			out = append(out, fmt.Sprint(v))
		}
	case d.IsFloat():
		for _, v := range t.Float64s()[:n] {
			out = append(out, fmt.Sprint(float32(v)))
		}
	case d == tensor.Uint64:
		for _, v := range t.Int64s()[:n] {
			out = append(out, fmt.Sprint(uint64(v)))
		}
	case d.HoldsNumbers() && !d.IsComplex():
		for _, v := range t.Int64s()[:n] {
			out = append(out, fmt.Sprint(v))
		}
	}
	return out
}

// valuesOf gives all elements as JSON.
func valuesOf(t *tensor.Tensor) []json.RawMessage {
	out := []json.RawMessage{}
	for _, s := range texts(t, t.NumElements()) {
		if !json.Valid([]byte(s)) { // NaN and infinities
			s = fmt.Sprintf("%q", s)
		}
		out = append(out, json.RawMessage(s))
	}
	return out
}
