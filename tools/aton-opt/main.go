// aton-opt reads a model, runs passes on it, and prints what comes out.
package main

import (
	"os"
	"runtime/debug"

	"github.com/aton-project/aton/tools/aton-opt/cmd"
	"github.com/aton-project/aton/tools/cli"
)

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a short run with a small live heap: collecting less often halves the time
	}
	cli.Signals()
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
