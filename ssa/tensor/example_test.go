package tensor_test

import (
	"fmt"

	"github.com/aton-project/aton/ssa/tensor"
)

// Elements are read as float64 or int64 whatever their type is, or as they lie in memory.
func Example() {
	t := tensor.Of(tensor.Float32, []int64{2, 2}, []float32{1, 2, 3, 4.5})
	fmt.Println(t, t.NumElements(), t.Float64s())
	h := tensor.FromFloats(tensor.BFloat16, []int64{2}, []float64{1, 1.00390625})
	fmt.Println(h.DType, len(h.Bytes()), h.Float64s())
	fmt.Println(tensor.Data[float32](t)[3])
	// Output:
	// Float(2, 2) 4 [1 2 3 4.5]
	// BFloat16 4 [1 1]
	// 4.5
}
