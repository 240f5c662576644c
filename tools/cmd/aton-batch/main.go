// aton-batch is aton with the commands for many models, batch and worker, which aton hands over to it.
package main

import (
	"os"

	"github.com/aton-project/aton/tools/cmd/aton-batch/cmd"
	"github.com/aton-project/aton/tools/lib/cli"
)

func main() {
	cli.Signals()
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
