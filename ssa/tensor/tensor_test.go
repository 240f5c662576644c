package tensor

import (
	"bytes"
	"testing"
)

// The bytes of a view are those of its elements in row-major order, whatever the strides and the size of an element.
func TestBytesOfViews(t *testing.T) {
	for _, d := range []DType{Uint8, Int16, Float32, Int64, Complex128} {
		size := d.Size()
		memory := make([]byte, 60*size)
		for i := range memory {
			memory[i] = byte(i/size + i%size*7)
		}
		base := New(d, []int64{60}, memory)
		for _, v := range []struct {
			offset         int64
			shape, strides []int64
		}{
			{0, []int64{3, 4}, []int64{4, 1}},        // all of it
			{5, []int64{3, 4}, []int64{10, 1}},       // rows
			{1, []int64{4, 3}, []int64{1, 4}},        // transposed
			{2, []int64{2, 3, 4}, []int64{12, 0, 3}}, // expanded, every third
			{7, []int64{2, 5}, []int64{0, 0}},        // one element
			{3, []int64{}, []int64{}},
			{3, []int64{2, 0}, []int64{1, 1}},
		} {
			var want []byte
			index := make([]int64, len(v.shape))
			n := int64(1)
			for _, s := range v.shape {
				n *= s
			}
			for range n {
				at := v.offset
				for k, i := range index {
					at += i * v.strides[k]
				}
				want = append(want, memory[int(at)*size:(int(at)+1)*size]...)
				for k := len(index) - 1; k >= 0; k-- {
					if index[k]++; index[k] < v.shape[k] {
						break
					}
					index[k] = 0
				}
			}
			view := &Tensor{DType: d, Shape: v.shape, Strides: v.strides, Offset: v.offset, Storage: base.Storage}
			if got := view.Bytes(); !bytes.Equal(got, want) {
				t.Errorf("%v %v by %v from %d: %v instead of %v", d, v.shape, v.strides, v.offset, got, want)
			}
		}
	}
}
