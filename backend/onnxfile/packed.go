package onnxfile

import (
	"io"

	"github.com/aton-project/aton/ssa/tensor"
)

// packedSize is the number of bytes that n elements take in a file.
func packedSize(d tensor.DType, n int64) int64 { return (n*int64(d.Bits()) + 7) / 8 }

// unpack gives elements of 4 or 2 bits a byte each, integers with their sign. The first one is in the lowest bits.
func unpack(d tensor.DType, n int64, b []byte) []byte {
	bits := d.Bits()
	if bits >= 8 {
		return b
	}
	out := make([]byte, n)
	each := 8 / bits
	for i := range out {
		v := b[i/each] >> (i % each * bits) & (1<<bits - 1)
		if (d == tensor.Int4 || d == tensor.Int2) && v>>(bits-1) != 0 {
			v |= 0xff << bits
		}
		out[i] = v
	}
	return out
}

// packer writes elements of 4 or 2 bits, which it is given with a byte each, as a file has them.
type packer struct {
	w    io.Writer
	bits int
	// out is what is packed and not written yet; the last of its bytes has room for further elements where n is no multiple of
	// those that a byte holds.
	out []byte
	n   int // elements in out
}

func (p *packer) Write(b []byte) (int, error) {
	each := 8 / p.bits
	for _, v := range b {
		if p.n%each == 0 {
			if len(p.out) >= chunk {
				if err := p.flush(); err != nil {
					return 0, err
				}
			}
			p.out = append(p.out, 0)
		}
		p.out[len(p.out)-1] |= v & (1<<p.bits - 1) << (p.n % each * p.bits)
		p.n++
	}
	return len(b), nil
}

// flush writes what there is; elements that follow begin a byte.
func (p *packer) flush() error {
	_, err := p.w.Write(p.out)
	p.out, p.n = p.out[:0], 0
	return err
}
