//go:build !unix

package mapfile

import "os"

// Open reads a file: this system has no mmap in the standard library. The data is valid until Close.
func Open(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, _ := os.Stat(path) // nil is nothing known
	return &File{Data: data, info: info}, nil
}

// Close drops the data.
func (f *File) Close() error {
	f.Data = nil
	return nil
}
