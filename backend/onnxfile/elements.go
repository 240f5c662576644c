package onnxfile

import (
	"encoding/binary"
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
	if t.IsContiguous() {
		for b := range t.Pieces(copySize) {
			if err := m.copyBytes(w, b); err != nil {
				return err
			}
		}
		return nil
	}
	src := t.Storage.Bytes()[t.Offset*size:]
	if r := len(t.Shape); r == 2 && t.Strides[0] == 1 && t.Shape[0] > 1 && t.Strides[1] >= t.Shape[0] && uintptr(unsafe.Pointer(&src[0]))%uintptr(size) == 0 {
		switch size {
		case 1:
			return transposed[byte](m, w, src, t)
		case 2:
			return transposed[uint16](m, w, src, t)
		case 4:
			return transposed[uint32](m, w, src, t)
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

// What is transposed in the cache's first level: so many columns, and so many rows, of which memory gives the neighbours fast.
const (
	stripColumns = 32
	stripRows    = 256
)

// transposed writes a matrix that lies in memory column by column. Rows are made in bands, and a band in strips, each in a
// place of its own: the rows of a band are often a power of two apart, where they would push each other out of the cache.
func transposed[E byte | uint16 | uint32](m *model, w io.Writer, src []byte, t *tensor.Tensor) error {
	size := int(t.DType.Size())
	rows, columns, stride := int(t.Shape[0]), int(t.Shape[1]), int(t.Strides[1])
	height := min(rows, max(bandSize/(columns*size), stripColumns))
	if n := height * columns * size; cap(m.band) < n {
		m.band = make([]byte, n)
	}
	band := m.band[:height*columns*size]
	var strip [stripRows * stripColumns]E
	flat := unsafe.Slice((*byte)(unsafe.Pointer(&strip[0])), len(strip)*size)
	for first := 0; first < rows; first += height {
		n := min(height, rows-first)
		for c0 := 0; c0 < columns; c0 += stripColumns {
			width := min(stripColumns, columns-c0)
			for r0 := 0; r0 < n; r0 += stripRows {
				high := min(stripRows, n-r0)
				from := src[(c0*stride+first+r0)*size:]
				if size == 2 && width%4 == 0 && high%4 == 0 {
					turn(flat, from, 2*stride, width, high)
				} else {
					for c := range width {
						for r, e := range unsafe.Slice((*E)(unsafe.Pointer(&from[c*stride*size])), high) {
							strip[r*stripColumns+c] = e
						}
					}
				}
				for r := range high {
					copy(band[((r0+r)*columns+c0)*size:][:width*size], flat[r*stripColumns*size:])
				}
			}
		}
		if _, err := w.Write(band[:n*columns*size]); err != nil {
			return err
		}
	}
	return nil
}

// turn16 transposes a strip of elements of 16 bits, whose columns are pitch bytes apart. It does so 4 by 4: the elements of a column that
// are in one word change places with those of its neighbours, first in pairs, then in pairs of pairs.
func turn16(strip, src []byte, pitch, width, high int) {
	const even, low = 0x0000ffff_0000ffff, 0x00000000_ffffffff
	word := binary.LittleEndian
	for c := 0; c < width; c += 4 {
		c0, c1, c2, c3 := src[c*pitch:][:2*high], src[(c+1)*pitch:][:2*high], src[(c+2)*pitch:][:2*high], src[(c+3)*pitch:][:2*high]
		for r := 0; r < high; r += 4 {
			x0, x1, x2, x3 := word.Uint64(c0[2*r:]), word.Uint64(c1[2*r:]), word.Uint64(c2[2*r:]), word.Uint64(c3[2*r:])
			y0, y1 := x0&even|x1&even<<16, x0>>16&even|x1&^even
			y2, y3 := x2&even|x3&even<<16, x2>>16&even|x3&^even
			to := strip[2*(r*stripColumns+c):]
			word.PutUint64(to, y0&low|y2<<32)
			word.PutUint64(to[2*stripColumns:], y1&low|y3<<32)
			word.PutUint64(to[4*stripColumns:], y0>>32|y2&^low)
			word.PutUint64(to[6*stripColumns:], y1>>32|y3&^low)
		}
	}
}
