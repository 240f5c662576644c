package mapfile

import (
	"errors"
	"io"
	"os"
)

// Spool puts what a reader gives into a temporary file without a name, as far as the system has such files, and maps it: they are
// nothing that the process has to keep in memory. It reads so many bytes, or to the end if size is below
// zero; fewer bytes are io.ErrUnexpectedEOF. The bytes are there for the life of the process.
func Spool(r io.Reader, size int64) (data []byte, err error) {
	f, err := os.CreateTemp("", ".aton-*.tmp") // of mode 0600
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	if size >= 0 {
		var n int64
		if n, err = io.Copy(f, io.LimitReader(r, size)); err == nil && n < size {
			err = io.ErrUnexpectedEOF
		}
	} else {
		_, err = io.Copy(f, r)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	m, err := Open(f.Name())
	if err != nil {
		return nil, err
	}
	return m.Data, nil // what is mapped stays when the name is gone
}
