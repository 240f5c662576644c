//go:build !unix

package archive

import "os"

// Mapping is a file in memory.
type Mapping struct {
	Data []byte
	info os.FileInfo
}

// Info is the file that the data is of; nil if it is not known.
func (m *Mapping) Info() os.FileInfo { return m.info }

// Map reads a file. The data is valid until Close.
func Map(path string) (*Mapping, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, _ := os.Stat(path) // nil is nothing known
	return &Mapping{data, info}, nil
}

// Close drops the data.
func (m *Mapping) Close() error {
	m.Data = nil
	return nil
}
