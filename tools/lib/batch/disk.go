package batch

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// A DiskError says that a folder takes nothing more: its disk is full, or may not be written.
type DiskError struct {
	Folder string
	Err    error
}

func (e *DiskError) Error() string {
	return fmt.Sprintf("%s: the disk of this folder takes nothing more: %v; make room, or name a folder on another disk", e.Folder, e.Err)
}

// Unwrap gives the system's error.
func (e *DiskError) Unwrap() error { return e.Err }

// diskError makes an error of a disk one that names the folder, and keeps all others.
func diskError(err error) error {
	var disk *DiskError
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case err == nil || errors.As(err, &disk) || !diskIsFull(err):
		return err
	case errors.As(err, &path):
		return &DiskError{filepath.Dir(path.Path), err}
	case errors.As(err, &link):
		return &DiskError{filepath.Dir(link.New), err}
	}
	return err
}

// writable writes a little into a folder and takes it away. The error is a [DiskError] if there is no room.
func writable(dir string) error {
	f, err := os.CreateTemp(dir, ".room-*.tmp")
	if err != nil {
		return diskError(err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(bytes.Repeat([]byte("room"), 1<<14))
	if err == nil {
		err = f.Sync()
	}
	return diskError(errors.Join(err, f.Close()))
}
