package onnxfile

import (
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// source is a mapped file that storages of a module may lie in; what a front end keeps alive for them has this method.
type source interface {
	Source() (*os.File, []byte)
}

func sourcesOf(m *ssa.Module) []source {
	var found []source
	for _, k := range m.Keep {
		if s, ok := k.(source); ok {
			if f, data := s.Source(); f != nil && len(data) > 0 {
				found = append(found, s)
			}
		}
	}
	return found
}

const (
	chunk    = 1 << 16
	copySize = 1 << 20 // measured: reads of 64 KiB take twice as long, reads of 4 MiB as long
)

// copyBytes writes bytes. Those of a mapped file are read from the file: that takes a fifth of the time that the page
// faults of the mapping take, and the mapping stays out of resident memory.
func (m *model) copyBytes(w io.Writer, b []byte) error {
	if len(b) >= chunk {
		for _, s := range m.sources {
			file, data := s.Source()
			at := uintptr(unsafe.Pointer(&b[0])) - uintptr(unsafe.Pointer(&data[0]))
			if at < uintptr(len(data)) && len(b) <= len(data)-int(at) {
				return m.copyFile(w, io.NewSectionReader(file, int64(at), int64(len(b))))
			}
		}
	}
	_, err := w.Write(b)
	return err
}

func (m *model) copyFile(w io.Writer, r *io.SectionReader) error {
	if m.buffer == nil {
		m.buffer = make([]byte, copySize)
	}
	for left := r.Size(); left > 0; {
		b := m.buffer[:min(left, copySize)]
		if _, err := io.ReadFull(r, b); err != nil {
			return fmt.Errorf("reading the weights again: %w", err)
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		left -= int64(len(b))
	}
	return nil
}

// elements writes the elements in row-major order; strided data goes through a small buffer.
func (m *model) elements(w io.Writer, t *tensor.Tensor) error {
	size, n := int64(t.DType.Size()), t.NumElements()
	if n == 0 {
		return nil
	}
	src := t.Storage.Bytes[t.Offset*size:]
	if t.IsContiguous() {
		return m.copyBytes(w, src[:n*size])
	}
	buf := make([]byte, 0, chunk+16)
	r := len(t.Shape)
	idx := make([]int64, r)
	at, inner, step := int64(0), t.Shape[r-1], t.Strides[r-1]
	for {
		for i := int64(0); i < inner; i++ {
			p := (at + i*step) * size
			buf = append(buf, src[p:p+size]...)
			if len(buf) >= chunk {
				if _, err := w.Write(buf); err != nil {
					return err
				}
				buf = buf[:0]
			}
		}
		d := r - 2
		for ; d >= 0; d-- {
			idx[d]++
			at += t.Strides[d]
			if idx[d] < t.Shape[d] {
				break
			}
			at -= idx[d] * t.Strides[d]
			idx[d] = 0
		}
		if d < 0 {
			_, err := w.Write(buf)
			return err
		}
	}
}
