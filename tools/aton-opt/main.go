// aton-opt reads graph text, runs passes on it, and prints what comes out.
package main

import (
	"os"

	"github.com/aton-project/aton/tools/aton-opt/cmd"
)

func main() {
	os.Exit(cmd.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
