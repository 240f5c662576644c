// aton-opt reads a model, runs passes on it, and prints what comes out.
package main

import (
	"os"

	"github.com/aton-project/aton/tools/cmd/aton-opt/cmd"
	"github.com/aton-project/aton/tools/lib/cli"
)

func main() {
	cli.Collect()
	cli.Signals()
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
