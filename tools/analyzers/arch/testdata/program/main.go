// Program converts a model: what a program contains that uses the library for nothing else.
package main

import (
	"log"
	"os"

	"github.com/aton-project/aton"
)

func main() {
	m, err := aton.Load(os.Args[1], aton.LoadOptions{})
	if err == nil {
		err = aton.Export(m, os.Args[2], aton.ExportOptions{})
	}
	if err != nil {
		log.Fatal(err)
	}
}
