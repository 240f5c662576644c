//go:build !unix

package onnxfile

import "os"

// mapFile reads a file: this system has no mmap in the standard library.
func mapFile(path string) (*mapped, error) {
	b, err := os.ReadFile(path)
	return &mapped{nil, b}, err
}

func (m *mapped) close() {}
