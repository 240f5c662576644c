package cmd

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/tools/lib/cli"
)

func newCheck() *cobra.Command {
	var m model
	var listOps bool
	c := &cobra.Command{
		Use:   "check MODEL",
		Short: "Report everything that cannot be converted",
		Example: `  aton check model.pt --input 'x:f32[N,3,224,224]'
  aton check model.pt --opset 9 --json
  aton check --list-ops --opset 13`,
		Args: func(c *cobra.Command, args []string) error {
			if listOps {
				return cobra.NoArgs(c, args)
			}
			return oneModel(c, args)
		},
	}
	m.flags(c)
	m.jsonFlag(c)
	m.sarifFlag(c)
	c.Flags().BoolVar(&listOps, "list-ops", false, "list the operators that convert at the opset, without a model; with --json also those that do not, and why")
	run := func(c *cobra.Command, name string) error {
		if m.sarif == "-" && m.json {
			return cli.Misusef("--json writes to standard output too: give --sarif a file")
		}
		if err := m.prepare(c, name); err != nil {
			return err
		}
		if listOps {
			return listOperators(c.OutOrStdout(), m.opts.Table, m.opset, m.json)
		}
		mod, err := m.read(c.InOrStdin())
		if err != nil {
			return m.locate(err)
		}
		opset := m.opts.OpsetFor(mod)
		list, err := aton.Check(mod, m.opts.ConvertOptions)
		if err != nil {
			return m.locate(err)
		}
		m.tryOpsets(list.Err())
		unused := m.tellUnused()
		list.Sort()
		m.found = append(m.found, list)
		if m.json {
			problems := cli.Problems(list)
			if problems == nil {
				problems = []cli.Problem{}
			}
			if err := printJSON(c.OutOrStdout(), map[string]any{"model": m.name, "opset": opset, "operators": diag.Blockers(list), "problems": problems}); err != nil {
				return err
			}
			if list.Err() != nil || unused != nil {
				return cli.ErrQuiet
			}
			return nil
		}
		m.tell(list)
		if err := list.Err(); err != nil {
			return m.locate(err)
		}
		if unused != nil {
			return unused
		}
		if m.sarif == "-" || m.quiet {
			return nil // the log says it, or the exit status
		}
		_, err = cli.Fprintf(c.OutOrStdout(), "%s: converts to opset %d\n", m.name, opset)
		return err
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		name := ""
		if len(args) > 0 {
			name = args[0]
		}
		return m.logged(c, name, func() error { return run(c, name) })
	}
	return c
}

// listOperators tells what converts at an opset.
func listOperators(w io.Writer, table *aten.Table, opset int, asJSON bool) error {
	opset = opsetOf(opset)
	s := all.NewSupport(table, opset)
	if asJSON {
		return printJSON(w, map[string]any{"opset": opset, "operators": s.Operators(), "refused": s.Refused()})
	}
	var b strings.Builder
	for _, op := range s.Operators() {
		b.WriteString(op.Name + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func opsetOf(n int) int {
	if n == 0 {
		return aton.DefaultOpset
	}
	return n
}
