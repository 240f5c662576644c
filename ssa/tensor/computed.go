package tensor

import (
	"fmt"
	"iter"
	"sync"
	"unsafe"
	"weak"
)

// computed are bytes that are made when somebody asks for them, and kept as long as somebody holds them.
type computed struct {
	size, elem int64 // of all bytes, and of an element
	make       func(from, n int64) []byte

	mu   sync.Mutex
	kept weak.Pointer[byte]
}

// Computed is a tensor whose elements are made when they are asked for, and made again when nobody holds them any more: weights that a pass
// changes take no memory until they are written, and little then (see [Tensor.Pieces]). Compute gives n elements in row-major order from the
// place from on, always the same ones; it may be called from several goroutines.
func Computed(d DType, shape []int64, compute func(from, n int64) *Tensor) *Tensor {
	t := &Tensor{DType: d, Shape: shape, Strides: ContiguousStrides(shape)}
	if t.NumElements() == 0 {
		return t // there is nothing to compute
	}
	t.Storage = &Storage{computed: &computed{size: t.NumBytes(), elem: int64(d.Size()), make: func(from, n int64) []byte {
		p := compute(from, n)
		if p.DType != d || p.NumElements() != n {
			panic(fmt.Sprintf("tensor.Computed: %v instead of %d elements of %v", p, n, d)) // a bug of the caller
		}
		return p.Bytes()
	}}}
	return t
}

// held are the bytes if somebody holds them, else nil.
func (c *computed) held() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.kept.Value(); p != nil {
		return unsafe.Slice(p, c.size)
	}
	return nil
}

func (c *computed) get() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.kept.Value(); p != nil {
		return unsafe.Slice(p, c.size)
	}
	b := c.make(0, c.size/c.elem)
	c.kept = weak.Make(&b[0])
	return b
}

// Pieces yields the bytes of a contiguous tensor in order: all at once where they are in memory, else pieces of about size bytes, each computed when it
// is asked for.
func (t *Tensor) Pieces(size int64) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		n, elem := t.NumElements(), int64(t.DType.Size())
		c := (*computed)(nil)
		if t.Storage != nil {
			c = t.Storage.computed
		}
		if c == nil || c.held() != nil {
			if n > 0 {
				yield(t.Bytes())
			}
			return
		}
		for at, step := int64(0), max(size/elem, 1); at < n; at += step {
			if !yield(c.make(t.Offset+at, min(step, n-at))) {
				return
			}
		}
	}
}
