//go:build unix

package mapfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// smallest is the size in bytes from which files are mapped. Tensors keep a mapping for the life of the process, which may
// have 65,530 of them on Linux: a program that reads many small files (inputs, outputs) reaches that.
const smallest = 1 << 16

// Open maps a file read-only, or reads one that is small or cannot be mapped. The data is valid until Close.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := load(f, path)
	if err != nil || m.file == nil {
		_ = f.Close() // was only read
	}
	return m, err
}

func load(f *os.File, path string) (*File, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%s: this is a folder; give a file", path)
	}
	if int64(int(info.Size())) != info.Size() {
		return nil, fmt.Errorf("%s: too large for this machine", path)
	}
	if info.Mode().IsRegular() && info.Size() >= smallest {
		if data, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE); err == nil {
			return &File{data, f, info}, nil
		}
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	return &File{Data: data, info: info}, nil
}

// Close ends the mapping. Nothing read from it may be used afterwards.
func (f *File) Close() error {
	data, file := f.Data, f.file
	f.Data, f.file = nil, nil
	if file == nil {
		return nil
	}
	return errors.Join(syscall.Munmap(data), file.Close())
}
