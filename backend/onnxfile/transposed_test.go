package onnxfile

import (
	"bytes"
	"io"
	"testing"

	"github.com/aton-project/aton/ssa/tensor"
)

// columnwise is a matrix of rows by columns whose elements lie in memory column by column.
func columnwise(d tensor.DType, rows, columns int64) *tensor.Tensor {
	data := make([]byte, rows*columns*int64(d.Size()))
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	t := tensor.New(d, []int64{rows, columns}, data)
	t.Strides = []int64{1, rows}
	return t
}

// TestTransposed compares the elements that are written with those of Bytes, which goes through them one by one.
func TestTransposed(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Int8, tensor.BFloat16, tensor.Float32, tensor.Float64} {
		for _, shape := range [][2]int64{{2, 1}, {2, 3}, {31, 33}, {32, 64}, {100, 7}, {3, 70000}, {3000, 1100}} {
			m := columnwise(d, shape[0], shape[1])
			var b bytes.Buffer
			if err := (&model{}).elements(&b, m); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), m.Bytes()) {
				t.Errorf("%v of %v: other elements", d, shape)
			}
		}
	}
}

// TestPacked writes elements of 4 and 2 bits and reads them again, also where they end within a byte and where there are more of
// them than a buffer holds.
func TestPacked(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2} {
		for _, n := range []int64{1, 2, 3, 4, 5, 8, 4*chunk - 1, 4*chunk + 3, 9 * chunk} {
			data := make([]byte, n)
			for i := range data {
				data[i] = unpack(d, 8, []byte{byte(i * 37), byte(i * 59), 0x1b, 0xe4})[i%4]
			}
			var b bytes.Buffer
			if err := (&model{}).elements(&b, tensor.New(d, []int64{n}, data)); err != nil {
				t.Fatal(err)
			}
			if int64(b.Len()) != packedSize(d, n) || !bytes.Equal(unpack(d, n, b.Bytes()), data) {
				t.Errorf("%d of %v: other elements", n, d)
			}
		}
	}
}

// turn gives what turn16 gives, of strips of all sizes.
func TestTurn(t *testing.T) {
	const pitch = 2*stripRows + 6
	src := make([]byte, stripColumns*pitch)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	for _, width := range []int{4, 8, 20, 24, 32} {
		for _, high := range []int{4, 8, 12, 16, 248, 256} {
			want, got := make([]byte, 2*stripColumns*stripRows), make([]byte, 2*stripColumns*stripRows)
			end := (width-1)*pitch + 2*high // of the source, which may end there
			turn16(want, src[:end:end], pitch, width, high)
			turn(got, src[:end:end], pitch, width, high)
			if !bytes.Equal(got, want) {
				t.Errorf("%d columns of %d elements differ", width, high)
			}
		}
	}
}

func BenchmarkTransposed(b *testing.B) {
	m := columnwise(tensor.BFloat16, 2048, 8192)
	b.SetBytes(m.NumBytes())
	for b.Loop() {
		if err := (&model{}).elements(io.Discard, m); err != nil {
			b.Fatal(err)
		}
	}
}
