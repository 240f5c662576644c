// aton converts saved PyTorch graphs to ONNX.
package main

import (
	"os"

	"github.com/aton-project/aton/tools/cmd/aton/cmd"
	"github.com/aton-project/aton/tools/lib/cli"
)

func main() {
	if status, done := cmd.HandOver(os.Args[1:]); done {
		os.Exit(status)
	}
	cli.Collect()
	cli.Signals()
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
