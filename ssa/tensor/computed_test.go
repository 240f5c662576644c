package tensor_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/aton-project/aton/ssa/tensor"
)

// squares is a computed tensor of 0, 1, 4, ...; calls counts how many elements were made.
func squares(n int64, calls *int64) *tensor.Tensor {
	var mu sync.Mutex
	return tensor.Computed(tensor.Int32, []int64{n}, func(from, n int64) *tensor.Tensor {
		mu.Lock()
		defer mu.Unlock()
		*calls += n
		v := make([]int32, n)
		for i := range v {
			v[i] = int32((from + int64(i)) * (from + int64(i)))
		}
		return tensor.Of(tensor.Int32, []int64{n}, v)
	})
}

func TestComputed(t *testing.T) {
	var made int64
	x := squares(1000, &made)
	if err := x.Check(); err != nil || !x.HasData() || made != 0 {
		t.Fatalf("%v, %d elements made by looking at the shape", err, made)
	}
	want := x.Int64s()
	if want[3] != 9 || want[999] != 999*999 {
		t.Errorf("%v ... %d", want[:4], want[999])
	}
	// what somebody holds is not made again, and a view shows it
	b := x.Bytes()
	made = 0
	view := &tensor.Tensor{DType: x.DType, Shape: []int64{5}, Strides: []int64{2}, Offset: 10, Storage: x.Storage}
	if got := view.Int64s(); !slices.Equal(got, []int64{100, 144, 196, 256, 324}) || made != 0 {
		t.Errorf("%v, %d elements made", got, made)
	}
	runtime.KeepAlive(b)
}

// TestPieces reads a tensor piece by piece: each element is made once, and no more of them at a time than asked for.
func TestPieces(t *testing.T) {
	var made int64
	x := squares(1000, &made)
	part := &tensor.Tensor{DType: x.DType, Shape: []int64{300}, Strides: []int64{1}, Offset: 600, Storage: x.Storage}
	var all []byte
	n := 0
	for b := range part.Pieces(256) {
		if len(b) > 256 {
			t.Errorf("a piece of %d bytes", len(b))
		}
		all = append(all, b...)
		n++
	}
	if n != 5 || made != 300 || !slices.Equal(all, part.Bytes()) {
		t.Errorf("%d pieces, %d elements made", n, made)
	}
	plain, n := tensor.Ints(1, 2, 3), 0
	for b := range plain.Pieces(8) {
		n++
		if len(b) != 24 {
			t.Errorf("a piece of %d bytes of what is in memory", len(b))
		}
	}
	if n != 1 {
		t.Errorf("%d pieces of what is in memory", n)
	}
}

// TestComputedMemory demands that nothing keeps the elements that nobody holds.
func TestComputedMemory(t *testing.T) {
	var made int64
	x := squares(1<<22, &made)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	if n := len(x.Bytes()); n != 1<<24 {
		t.Fatalf("%d bytes", n)
	}
	if grown := int64(heap()) - int64(before); grown > 1<<22 {
		t.Errorf("%d bytes are held", grown)
	}
	runtime.KeepAlive(x)
}

func TestComputedTogether(t *testing.T) {
	var made int64
	x := squares(1<<12, &made)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for b := range x.Pieces(1 << 10) {
				_ = b
			}
			if v := x.Int64s(); v[77] != 77*77 {
				t.Error(v[77])
			}
		})
	}
	group.Wait()
}
