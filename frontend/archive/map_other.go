//go:build !unix

package archive

import "os"

// Mapping is a file in memory.
type Mapping struct{ Data []byte }

// Map reads a file. The data is valid until Close.
func Map(path string) (*Mapping, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return &Mapping{data}, nil
}

// Close drops the data.
func (m *Mapping) Close() error {
	m.Data = nil
	return nil
}
