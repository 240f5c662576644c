//go:build !unix

package onnxfile

import "os"

// mapFile reads a file: this system has no mmap in the standard library.
func mapFile(path string) (*mapped, error) {
	b, err := os.ReadFile(path)
	info, _ := os.Stat(path) // nil is nothing known
	return &mapped{nil, b, info}, err
}

func (m *mapped) close() {}
