package onnxfile

import "github.com/aton-project/aton/ssa/tensor"

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

// pack is the other way round. Tensors of other types stay as they are.
func pack(t *tensor.Tensor) *tensor.Tensor {
	bits := t.DType.Bits()
	if bits >= 8 || t.DType == tensor.String {
		return t
	}
	n, each := t.NumElements(), 8/bits
	out := make([]byte, packedSize(t.DType, n))
	for i, v := range t.Bytes() {
		out[i/each] |= v & (1<<bits - 1) << (i % each * bits)
	}
	return tensor.New(tensor.Uint8, []int64{int64(len(out))}, out)
}
