// FileCheck compares standard input with the CHECK lines of a file.
package main

import (
	"os"

	"github.com/aton-project/aton/tools/lib/filecheck"
)

func main() {
	os.Exit(filecheck.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
