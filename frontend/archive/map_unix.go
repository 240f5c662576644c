//go:build unix

package archive

import (
	"fmt"
	"os"
	"syscall"
)

// Mapping is a file in memory.
type Mapping struct {
	Data   []byte
	mapped bool
}

// Map maps a file for reading. The data is valid until Close.
func Map(path string) (*Mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, fmt.Errorf("%s: is a folder", path)
	}
	if !st.Mode().IsRegular() || st.Size() == 0 { // a pipe cannot be mapped
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		return &Mapping{Data: data}, nil
	}
	if int64(int(st.Size())) != st.Size() {
		return nil, fmt.Errorf("%s: too large for this machine", path)
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(st.Size()), syscall.PROT_READ, syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot map: %w", path, err)
	}
	return &Mapping{data, true}, nil
}

// Close ends the mapping. Nothing read from it may be used afterwards.
func (m *Mapping) Close() error {
	data := m.Data
	m.Data = nil
	if m.mapped && data != nil {
		return syscall.Munmap(data)
	}
	return nil
}
