// aton converts saved PyTorch graphs to ONNX.
package main

import (
	"os"

	"github.com/aton-project/aton/tools/aton/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
