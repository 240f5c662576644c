package cmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton/docs/diagnostics"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/tools/lib/cli"
)

func newExplain() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "explain [ID...]",
		Short: "Explain a message: what it means, its cause, and what to do",
		Long: `explain prints the page of an identifier, such as unsupported-op. On a terminal, errors end with their
identifiers; --json and --sarif have the identifier of each message. Without an identifier, explain lists all of them.`,
		Example: `  aton explain
  aton explain const-arg dynamic-axis`,
		ValidArgs: diagnostics.IDs(),
		RunE: func(c *cobra.Command, args []string) error {
			var b strings.Builder
			for _, id := range args {
				page, ok := diagnostics.Page(id)
				if !ok {
					return cli.Misusef("there is no identifier %q%s; 'aton explain' lists them", id, diag.DidYouMean(id, diagnostics.IDs()))
				}
				b.WriteString(page)
			}
			if asJSON {
				list := args
				if len(list) == 0 {
					list = diagnostics.IDs()
				}
				pages := make([]explained, len(list))
				for i, id := range list {
					page, _ := diagnostics.Page(id)
					pages[i] = explained{id, diagnostics.Title(id), page}
				}
				return printJSON(c.OutOrStdout(), pages)
			}
			if len(args) == 0 {
				for _, id := range diagnostics.IDs() {
					fmt.Fprintf(&b, "%-20s %s\n", id, diagnostics.Title(id))
				}
			}
			_, err := io.WriteString(c.OutOrStdout(), b.String())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print the pages as JSON")
	return c
}

// explained is a page with --json.
type explained struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Page  string `json:"page"`
}
