//go:build unix

package onnxfile

import (
	"fmt"
	"math"
	"os"
	"syscall"
)

// mapFile maps a file read-only. The mapping stays for the life of the process:
// tensors refer to it.
func mapFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return os.ReadFile(path)
	}
	n := info.Size()
	if n == 0 {
		return nil, nil
	}
	if n > math.MaxInt {
		return nil, fmt.Errorf("%s is too large to map", path)
	}
	b, err := syscall.Mmap(int(f.Fd()), 0, int(n), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return os.ReadFile(path)
	}
	return b, nil
}
