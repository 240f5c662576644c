//go:build unix

package archive

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Mapping is a file in memory.
type Mapping struct {
	Data []byte
	file *os.File // nil if the data is a copy
	info os.FileInfo
}

// Info is the file that the data is of, mapped or not.
func (m *Mapping) Info() os.FileInfo { return m.info }

// Source gives the file that is mapped and its bytes, or nil if the data is a copy. Who only moves bytes reads them
// from the file, so that no page of the mapping is touched.
func (m *Mapping) Source() (*os.File, []byte) { return m.file, m.Data }

// smallestMap is the size in bytes from which files are mapped. Tensors keep a mapping for the life of the process, which may
// have 65,530 of them on Linux: a program that reads many small files reaches that.
const smallestMap = 1 << 16

// Map maps a file for reading, or reads a small one. The data is valid until Close.
func Map(path string) (*Mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := mapOpen(f, path)
	if err != nil || m.file == nil {
		_ = f.Close() // was only read
	}
	return m, err
}

func mapOpen(f *os.File, path string) (*Mapping, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, fmt.Errorf("%s: this is a folder; give a file", path)
	}
	if !st.Mode().IsRegular() || st.Size() < smallestMap { // a pipe cannot be mapped
		data, err := io.ReadAll(f)
		if err != nil {
			return nil, err
		}
		return &Mapping{Data: data, info: st}, nil
	}
	if int64(int(st.Size())) != st.Size() {
		return nil, fmt.Errorf("%s: too large for this machine", path)
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot map: %w", path, err)
	}
	return &Mapping{data, f, st}, nil
}

// Close ends the mapping. Nothing read from it may be used afterwards.
func (m *Mapping) Close() error {
	data, file := m.Data, m.file
	m.Data, m.file = nil, nil
	if file == nil {
		return nil
	}
	return errors.Join(syscall.Munmap(data), file.Close())
}
