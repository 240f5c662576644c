// Command page writes the page that converts models by itself, beside the worker of tools/cmd/wasm, to standard output.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/aton-project/aton/tools/lib/explore"
)

func main() {
	w := bufio.NewWriter(os.Stdout)
	err := explore.Page(w, "worker", "convert a model", "")
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
