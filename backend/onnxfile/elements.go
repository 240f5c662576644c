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

// elements writes the elements in row-major order, as many of them in a byte as the type has.
func (m *model) elements(w io.Writer, t *tensor.Tensor) error {
	if bits := t.DType.Bits(); bits > 0 && bits < 8 {
		p := &packer{w: w, bits: bits}
		if err := m.wholeBytes(p, t); err != nil {
			return err
		}
		return p.flush()
	}
	return m.wholeBytes(w, t)
}

// wholeBytes writes the elements as they are in memory; strided data goes through a small buffer.
func (m *model) wholeBytes(w io.Writer, t *tensor.Tensor) error {
	size, n := int64(t.DType.Size()), t.NumElements()
	if n == 0 {
		return nil
	}
	src := t.Storage.Bytes[t.Offset*size:]
	if t.IsContiguous() {
		return m.copyBytes(w, src[:n*size])
	}
	if r := len(t.Shape); r == 2 && t.Strides[0] == 1 && t.Shape[0] > 1 && t.Strides[1] >= t.Shape[0] && uintptr(unsafe.Pointer(&src[0]))%uintptr(size) == 0 {
		switch size {
		case 1:
			return transposed[byte](w, src, t)
		case 2:
			return transposed[uint16](w, src, t)
		case 4:
			return transposed[uint32](w, src, t)
		}
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

// bandSize is about the number of bytes of a band of rows that transposed writes at once.
const bandSize = 4 << 20

// transposed writes a matrix that lies in memory column by column. Rows are made in bands, and a band in squares, each in a
// place of its own: the rows of a band are often a power of two apart, where they would push each other out of the cache.
func transposed[E byte | uint16 | uint32](w io.Writer, src []byte, t *tensor.Tensor) error {
	const side = 32
	size := int(t.DType.Size())
	rows, columns, stride := int(t.Shape[0]), int(t.Shape[1]), int(t.Strides[1])
	band := min(rows, max(bandSize/(columns*size), side))
	buf := make([]E, band*columns)
	var square [side * side]E
	for first := 0; first < rows; first += band {
		n := min(band, rows-first)
		for c0 := 0; c0 < columns; c0 += side {
			width := min(side, columns-c0)
			for r0 := 0; r0 < n; r0 += side {
				height := min(side, n-r0)
				for c := range width {
					at := ((c0+c)*stride + first + r0) * size
					from := unsafe.Slice((*E)(unsafe.Pointer(&src[at])), height)
					for r, e := range from {
						square[r*side+c] = e
					}
				}
				for r := range height {
					copy(buf[(r0+r)*columns+c0:][:width], square[r*side:])
				}
			}
		}
		if _, err := w.Write(unsafe.Slice((*byte)(unsafe.Pointer(&buf[0])), n*columns*size)); err != nil {
			return err
		}
	}
	return nil
}
