//go:build !unix

package onnxfile

import "os"

// mapFile reads a file: this system has no mmap in the standard library.
func mapFile(path string) ([]byte, error) { return os.ReadFile(path) }
