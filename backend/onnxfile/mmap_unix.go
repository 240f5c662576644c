//go:build unix

package onnxfile

import (
	"io"
	"math"
	"os"
	"syscall"
)

// smallestMap is the size in bytes from which files are mapped. A mapping stays for the life of the process, which may have
// 65,530 of them on Linux: a program that reads many small files (inputs, outputs) reaches that.
const smallestMap = 1 << 16

// mapFile maps a file read-only, or reads a small one. The mapping stays for the life of the process:
// tensors refer to it.
func mapFile(path string) (*mapped, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() >= smallestMap && info.Size() <= math.MaxInt {
		if b, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE); err == nil {
			return &mapped{f, b, info}, nil
		}
	}
	defer f.Close()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return &mapped{nil, b, info}, err
}

// close gives the memory back, of a file that no tensor refers to.
func (m *mapped) close() {
	if m.file != nil {
		_ = syscall.Munmap(m.data)
		_ = m.file.Close() // was only read
	}
}
