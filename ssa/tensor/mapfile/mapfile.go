// Package mapfile puts files into memory: the storage of tensors that come from a file.
package mapfile

import "os"

// File is a file in memory, mapped where the system can and the file is large enough to gain by it.
type File struct {
	Data []byte
	file *os.File    // nil if Data is a copy
	info os.FileInfo // nil if it is not known
}

// Info is the file that the data is of, mapped or not; nil if it is not known.
func (f *File) Info() os.FileInfo { return f.info }

// Source gives the file that is mapped and its bytes, or nil if the data is a copy. Who only moves bytes reads them
// from the file, so that no page of the mapping is touched.
func (f *File) Source() (*os.File, []byte) { return f.file, f.Data }
