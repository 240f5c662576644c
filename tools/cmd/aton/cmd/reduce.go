package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/backend/surgery"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/tools/lib/cli"
	"github.com/aton-project/aton/tools/lib/reduce"
)

// reducer is the command reduce.
type reducer struct {
	model
	output, match string
	timeout       time.Duration

	command []string
	status  int            // of the command for the model as it is
	says    *regexp.Regexp // what its output has, nil for anything
	folder  string         // of the smaller models
}

func newReduce() *cobra.Command {
	r := &reducer{}
	c := &cobra.Command{
		Use:   "reduce MODEL [-o SMALL] -- COMMAND [ARG]...",
		Short: "Make a model smaller as long as a command fails for it",
		Long: `reduce looks for a small model for which a command fails as it does for MODEL: with the same exit status, and with output that --match
finds. The command gets the file of the smaller model in place of {}, or as its last argument. A program of PyTorch becomes graph text (SMALL.ir),
an ONNX file stays one. Operators are replaced by their operands or by inputs, branches take the place of what owns them, and outputs, inputs,
functions and fields of objects go.`,
		Example: `  aton reduce model.pt --input 'x:f32[N,3]' --match 'aten::foo' -- aton export {} -o /dev/null --opset 17
  aton reduce model.onnx -o small.onnx --match WRONG -- aton verify {} --random 1 --device sim
  aton reduce model.pt2 -- python compare.py`,
		Args: func(c *cobra.Command, args []string) error {
			if at := c.ArgsLenAtDash(); at != 1 || len(args) < 2 {
				return cli.Misusef("give one model, and a command behind --: aton reduce MODEL -- COMMAND")
			}
			return nil
		},
	}
	r.flags(c)
	r.jsonFlag(c)
	f := c.Flags()
	f.StringVarP(&r.output, "output", "o", "", "the `FILE` for the small model (default MODEL with .reduced.ir or .reduced.onnx)")
	f.StringVar(&r.match, "match", "", "a regular `EXPRESSION` that the output of the command must have")
	f.DurationVar(&r.timeout, "timeout", time.Minute, "the time that a run of the command may take")
	c.RunE = func(c *cobra.Command, args []string) error {
		r.command = args[1:]
		return r.run(c, args[0])
	}
	return c
}

func (r *reducer) run(c *cobra.Command, name string) error {
	if name == "-" {
		return cli.Misusef("reduce reads the model many times: give a file")
	}
	var err error
	if r.match != "" {
		if r.says, err = regexp.Compile(r.match); err != nil {
			return cli.Misusef("--match: %w", err)
		}
	}
	if err := r.prepare(c, name); err != nil {
		return err
	}
	r.opts.Warn, r.loading.Note = nil, nil
	if r.folder, err = os.MkdirTemp("", "aton-reduce-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.folder)
	var types map[string]ssa.Type                                  // of the values of an ONNX file
	for _, stage := range []string{"freeze", "inline", "import"} { // the further, the simpler
		load := func() (*ssa.Module, error) {
			m, err := r.read(nil)
			if err == nil && len(m.Opsets) > 0 {
				if types == nil {
					types = surgery.Types(m)
				}
				setTypes(m, types)
			}
			if err != nil || stage == "import" || len(m.Opsets) > 0 {
				return m, err
			}
			m, list, err := aton.Inspect(m, stage, r.opts.ConvertOptions)
			if err == nil {
				err = list.Err()
			}
			return m, err
		}
		m, err := load()
		if err != nil {
			if stage == "import" {
				return r.locate(err)
			}
			continue
		}
		r.status = -1
		if holds, err := r.test(c.Context(), m); err != nil {
			return err
		} else if !holds {
			if stage == "import" {
				return fmt.Errorf("%s: the command does not fail for the model as it is%s: there is nothing to look for", name, r.expected())
			}
			continue
		}
		return r.reduce(c, name, load)
	}
	return nil
}

// setTypes gives the values of a module that have no type of their own those of a table.
func setTypes(m *ssa.Module, types map[string]ssa.Type) {
	for o := range m.Main().Body.AllOps() {
		for _, v := range o.Results {
			if t := v.Tensor(); t != nil && t.DType == tensor.Undefined && types[v.Name] != nil {
				v.Type = types[v.Name]
			}
		}
	}
}

func (r *reducer) expected() string {
	if r.says == nil {
		return ""
	}
	return fmt.Sprintf(" with output that matches %q", r.match)
}

// reduce makes the model that load gives smaller, and writes the smallest one.
func (r *reducer) reduce(c *cobra.Command, name string, load func() (*ssa.Module, error)) error {
	terminal := cli.Terminal(c.ErrOrStderr())
	x := reduce.Reducer{Load: load, Test: func(m *ssa.Module) (bool, error) { return r.test(c.Context(), m) }}
	if terminal {
		x.Progress = func(operators int) { fmt.Fprintf(c.ErrOrStderr(), "\r\x1b[K%d operators", operators) }
	}
	m, tested, err := x.Run()
	if terminal {
		fmt.Fprint(c.ErrOrStderr(), "\r\x1b[K")
	}
	if err != nil {
		return err
	}
	out := r.output
	if out == "" {
		out = strings.TrimSuffix(name, filepath.Ext(name)) + ".reduced" + extension(m)
	}
	if err := writeAs(out, c.OutOrStdout(), m); err != nil {
		return err
	}
	if r.json {
		return printJSON(c.OutOrStdout(), map[string]any{"model": out, "operators": reduce.Operators(m), "tested": tested})
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s: %s (%d models were tested)\n", out, reduce.Describe(m), tested)
	return nil
}

// extension is that of a file of the module.
func extension(m *ssa.Module) string {
	if len(m.Opsets) > 0 {
		return ".onnx"
	}
	return ".ir"
}

// writeAs writes a module as an ONNX file, or, if it is a program of PyTorch, as complete graph text.
func writeAs(path string, stdout io.Writer, m *ssa.Module) error {
	if extension(m) == ".onnx" {
		return onnxfile.Write(path, m, onnxfile.Options{Unchecked: true})
	}
	return cli.WriteText(path, stdout, func(w io.Writer) error { return ssa.Fprint(w, m, ssa.PrintOptions{Complete: true}) })
}

// test reports whether the command fails for a model as it did for the first one.
func (r *reducer) test(ctx context.Context, m *ssa.Module) (bool, error) {
	file := filepath.Join(r.folder, "model"+extension(m))
	if err := writeAs(file, nil, m); err != nil {
		return false, nil //nolint // what cannot be written is no model
	}
	args, placed := make([]string, len(r.command)), false
	for i, a := range r.command {
		args[i] = strings.ReplaceAll(a, "{}", file)
		placed = placed || args[i] != a
	}
	if !placed {
		args = append(args, file)
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	var out bytes.Buffer
	run := exec.CommandContext(ctx, args[0], args[1:]...)
	run.Stdout, run.Stderr, run.WaitDelay = &out, &out, time.Second
	err := run.Run()
	var exit *exec.ExitError
	switch {
	case err == nil, ctx.Err() != nil:
		return false, nil
	case !errors.As(err, &exit):
		return false, fmt.Errorf("%s: %w", args[0], err)
	case r.says != nil && !r.says.Match(out.Bytes()):
		return false, nil
	case r.status < 0:
		r.status = exit.ExitCode()
	}
	return exit.ExitCode() == r.status, nil
}
