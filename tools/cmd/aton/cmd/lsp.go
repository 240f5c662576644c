package cmd

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton"
	atonopt "github.com/aton-project/aton/tools/cmd/aton-opt/cmd"
	"github.com/aton-project/aton/tools/lib/cli"
	"github.com/aton-project/aton/tools/lib/filecheck"
	"github.com/aton-project/aton/tools/lib/lit/script"
	"github.com/aton-project/aton/tools/lib/lsp"
)

func newLSP() *cobra.Command {
	return &cobra.Command{
		Use:   "lsp",
		Short: "Serve editors that show graph text, over the Language Server Protocol",
		Long: `lsp is a language server for graph text (.ir), on standard input and output. An editor starts it. It reports errors of the parser, the
verifier and the schemas while somebody types, shows what an operator is and where a value is defined, completes operators and attributes, runs
passes on the open file (the command ` + lsp.RunPasses + `, with a URI and a pipeline), and runs the RUN lines of a text test when it is saved.`,
		Example: `  aton lsp`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s := lsp.Server{Version: aton.Version(), Commands: map[string]script.Command{
				"FileCheck": filecheck.Main,
				"cat":       script.Cat,
				"aton-opt":  atonopt.Main,
				"aton":      Main,
			}}
			return s.Serve(c.Context(), stdio{c.InOrStdin(), cli.Raw(c.OutOrStdout())})
		},
	}
}

// stdio is standard input and output as one stream.
type stdio struct {
	io.Reader
	io.Writer
}

func (stdio) Close() error { return nil }
