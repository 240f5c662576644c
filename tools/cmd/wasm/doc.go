//go:build !(js && wasm)

// Command wasm is for browsers alone: GOOS=js GOARCH=wasm builds it, and make web puts the page together.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "this program runs in a browser: make web builds the page")
	os.Exit(2)
}
