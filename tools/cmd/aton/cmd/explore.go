package cmd

import (
	"fmt"
	"html"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/lib/cli"
	"github.com/aton-project/aton/tools/lib/explore"
	"github.com/aton-project/aton/verify"
)

func newExplore() *cobra.Command {
	var m model
	var html, svg, dot, data string
	var sizes map[string]int64
	var noOpen, random bool
	var port uint16
	c := &cobra.Command{
		Use:   "explore MODEL",
		Short: "Show a model in the browser, from its source to its kernels",
		Long: `explore converts a model and shows what happens to it: the Python and TorchScript that the file contains, the graphs after any two
passes side by side, the ONNX graph as a picture, weights, cost, kernels, and what cannot be converted. A selection in one
place is highlighted in all others. The page is served on the loopback address until the command is interrupted;
with --html it goes to a file that needs no network, and --svg and --dot draw the converted graph without a browser.

The values in the graph come from --data or from random inputs. A model that cannot be converted is shown up to the pass that
fails.`,
		Example: `  aton explore model.pt --input 'x:f32[N,3,224,224]'
  aton explore model.pt2 --data test_data_set_0
  aton explore model.pt2 --html model.html --random
  aton explore model.onnx --svg model.svg`,
		Args: oneModel,
	}
	m.flags(c)
	m.functionsFlag(c)
	f := c.Flags()
	f.StringVar(&html, "html", "", "write the page to this file, with the model in it; '-' is standard output")
	f.StringVar(&svg, "svg", "", "draw the converted graph to this SVG file; '-' is standard output")
	f.StringVar(&dot, "dot", "", "write the converted graph to this file in the language of Graphviz; '-' is standard output")
	f.StringVar(&data, "data", "", "a folder or `FILE` with inputs, and outputs to compare with, as verify reads them; only the first data set is used")
	f.BoolVar(&random, "random", false, "with --html: show the numbers for random inputs")
	f.StringToInt64Var(&sizes, "size", nil, "`NAME=N`: the size of a dynamic axis in random inputs (default 2) and in the cost of nodes (default 1)")
	f.BoolVar(&noOpen, "no-open", false, "print the address and do not open a browser")
	f.Uint16Var(&port, "port", 0, "the port to listen at (default a free one)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := explorable(c, html, svg, dot, data, random, sizes); err != nil {
			return err
		}
		if err := m.prepare(c, args[0]); err != nil {
			return err
		}
		var set *verify.DataSet
		if data != "" {
			sets, err := verify.ReadData(data)
			if err != nil {
				return m.locate(err)
			}
			set = &sets[0]
		}
		s, err := explore.New(m.name, func() (*ssa.Module, error) { return m.read(c.InOrStdin()) }, m.opts, sizes)
		if err != nil {
			return m.locate(err)
		}
		if err := m.tellUnused(); err != nil {
			return err
		}
		if html == "" && svg == "" && dot == "" {
			if s.Failed() != nil {
				fmt.Fprintln(c.ErrOrStderr(), m.locate(s.Failed()))
			}
			return serve(c, s, set, sizes, port, !noOpen)
		}
		return m.locate(writePages(c, s, html, svg, dot, set, random, sizes))
	}
	return c
}

// explorable refuses options that do not go together.
func explorable(c *cobra.Command, html, svg, dot, data string, random bool, sizes map[string]int64) error {
	files, streams := 0, 0
	for _, f := range []string{html, svg, dot} {
		if f != "" {
			files++
		}
		if f == "-" {
			streams++
		}
	}
	for name, n := range sizes {
		if n < 1 {
			return cli.Misusef("--size %s must be 1 or more, not %d", name, n)
		}
	}
	switch {
	case streams > 1:
		return cli.Misusef("only one file can go to standard output, not %d", streams)
	case random && html == "":
		return cli.Misusef("--random requires --html; the page that is served has a button for it")
	case random && data != "":
		return cli.Misusef("--random and --data are mutually exclusive")
	case files > 0 && (c.Flags().Changed("port") || c.Flags().Changed("no-open")):
		return cli.Misusef("--port and --no-open apply to the page that is served: leave out --html, --svg and --dot")
	}
	return nil
}

// writePages writes the files that are asked for. A model that is not converted has a page and no picture.
func writePages(c *cobra.Command, s *explore.Session, html, svg, dot string, set *verify.DataSet, random bool, sizes map[string]int64) error {
	if html != "" {
		if random && s.Failed() == nil {
			made, err := s.Random(0, sizes)
			if err != nil {
				return err
			}
			set = &made
		}
		if err := cli.WriteFile(html, c.OutOrStdout(), func(w io.Writer) error { return s.HTML(w, set) }); err != nil {
			return err
		}
	}
	if s.Failed() != nil {
		return s.Failed()
	}
	if svg != "" {
		if err := cli.WriteText(svg, c.OutOrStdout(), s.Document().Graph.SVG); err != nil {
			return err
		}
	}
	if dot != "" {
		return cli.WriteText(dot, c.OutOrStdout(), s.Document().Graph.DOT)
	}
	return nil
}

// serve shows the page until the command's context ends; a signal ends the process.
func serve(c *cobra.Command, s *explore.Session, set *verify.DataSet, sizes map[string]int64, port uint16, open bool) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	server := explore.NewServer(s, l, set, sizes)
	fmt.Fprintf(c.OutOrStdout(), "%s\n", server.URL())
	if open {
		shown, err := openBrowser(server.URL())
		if err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "note: no browser was opened (%v): open the address above\n", err)
		}
		defer shown()
		go func() { // the file has done what it is for
			select {
			case <-server.Opened():
			case <-c.Context().Done():
			}
			shown()
		}()
	}
	return server.Serve(c.Context(), l)
}

// openBrowser asks the system to show an address. Other users of the machine see the words of every command, and the address has what lets
// its owner in: so the command has the name of a file, which only this user can read, and that leads to the address. What it returns removes
// the file.
func openBrowser(url string) (remove func(), err error) {
	remove = func() {}
	dir, err := os.MkdirTemp("", "aton-explore-") // of mode 0700
	if err != nil {
		return remove, err
	}
	remove = func() { os.RemoveAll(dir) }
	page := filepath.Join(dir, "open.html")
	text := html.EscapeString(url)
	if err := os.WriteFile(page, []byte(`<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url=`+text+`"><title>aton explore</title><a href="`+text+`">aton explore</a>`), 0o600); err != nil {
		return remove, err
	}
	name, args := "xdg-open", []string{page}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", page}
	}
	c := exec.Command(name, args...)
	if err := c.Start(); err != nil {
		return remove, err
	}
	go func() { _ = c.Wait() }() // it may last as long as the browser
	return remove, nil
}
