// aton converts saved PyTorch graphs to ONNX.
package main

import (
	"os"
	"runtime/debug"

	"github.com/aton-project/aton/tools/aton/cmd"
	"github.com/aton-project/aton/tools/cli"
)

func main() {
	if status, done := cmd.HandOver(os.Args[1:]); done {
		os.Exit(status)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a short run with a small live heap: collecting less often halves the time
	}
	cli.Signals()
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
