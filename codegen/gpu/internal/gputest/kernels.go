// Package gputest has kernels, each with inputs and the expected output: PTX that was written by hand, or made by llc, for what aton's own kernels do not use, and
// kernels of package kir.
package gputest

import (
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// Case is a kernel with a launch and what it must compute.
type Case struct {
	Name        string
	Kernel      func() *kir.Kernel // a new one of this name; nil if the kernel is PTX, in testdata
	Grid, Block [3]int
	Shared      int                     // bytes of dynamic shared memory
	Args        func() []sim.Arg        // with buffers of their own
	Verify      func(a []sim.Arg) error // of the arguments after the run
}

//go:embed testdata
var texts embed.FS

// Texts are the kernel as PTX: as it was written, or is printed, and of most that are PTX, what llc 14 made of the LLVM IR of the same kernel.
func (c Case) Texts() ([]string, error) {
	if c.Kernel != nil {
		text, err := ptx.Print(c.Kernel(), ptx.Options{})
		return []string{text}, err
	}
	var out []string
	for _, dir := range []string{"testdata/", "testdata/llc/"} {
		text, err := texts.ReadFile(dir + c.Name + ".ptx")
		switch {
		case err == nil:
			out = append(out, string(text))
		case len(out) == 0 || !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return out, nil
}

// Bytes is the little-endian memory of a slice.
func Bytes[T any](x []T) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, x)
	if err != nil {
		panic(err) // a slice of numbers always has a memory form
	}
	return b
}

// Values reads n numbers of a buffer. It panics if there are fewer.
func Values[T any](b *sim.Buffer, n int) []T {
	x := make([]T, n)
	if _, err := binary.Decode(b.Bytes(), binary.LittleEndian, x); err != nil {
		panic(err)
	}
	return x
}

// Random gives numbers in [-2, 2), the same each time.
func Random(n int, seed uint64) []float32 {
	x := make([]float32, n)
	s := seed*2654435761 + 12345
	for i := range x {
		s = s*6364136223846793005 + 1442695040888963407
		x[i] = float32(int32(s>>33)-1<<30) / (1 << 29)
	}
	return x
}

func buffer[T any](x []T) sim.Arg { return sim.Ptr(sim.NewBuffer(Bytes(x))) }

func close32(got, want []float32, rel float64) error {
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= rel*math.Max(1e-3, math.Abs(float64(want[i])))) {
			return fmt.Errorf("element %d is %g, want %g", i, got[i], want[i])
		}
	}
	return nil
}

// AddRelu is max(x+y, 0) over n elements: four at a time, then a tail.
func AddRelu(n, blocks int) Case {
	x, y := Random(n, 1), Random(n, 2)
	return Case{
		Name: "addrelu", Grid: [3]int{blocks}, Block: [3]int{256},
		Args: func() []sim.Arg {
			return []sim.Arg{buffer(x), buffer(y), buffer(make([]float32, n)), sim.I32(int32(n))}
		},
		Verify: func(a []sim.Arg) error {
			want := make([]float32, n)
			for i := range want {
				want[i] = max(x[i]+y[i], 0)
			}
			return close32(Values[float32](a[2].Buffer, n), want, 0)
		},
	}
}

// Softmax normalises rows of the given length, one block a row, with reductions through shared memory.
func Softmax(rows, cols int) Case {
	const threads = 128
	x := Random(rows*cols, 3)
	// but for each ninth row, the maximum sits with another thread, far above the rest: a reduction that loses it overflows
	for r := range rows {
		if r%9 < 8 {
			x[r*cols+min(cols-1, 1<<(r%9)>>1)] += 300
		}
	}
	return Case{
		Name: "softmax", Grid: [3]int{rows}, Block: [3]int{threads},
		Args: func() []sim.Arg {
			return []sim.Arg{buffer(x), buffer(make([]float32, rows*cols)), sim.I32(int32(cols))}
		},
		Verify: func(a []sim.Arg) error {
			want := make([]float32, rows*cols)
			for r := range rows {
				top, sum := math.Inf(-1), 0.0
				for _, v := range x[r*cols : (r+1)*cols] {
					top = max(top, float64(v))
				}
				for _, v := range x[r*cols : (r+1)*cols] {
					sum += math.Exp(float64(v) - top)
				}
				for i, v := range x[r*cols : (r+1)*cols] {
					want[r*cols+i] = float32(math.Exp(float64(v)-top) / sum)
				}
			}
			return close32(Values[float32](a[1].Buffer, rows*cols), want, 1e-5)
		},
	}
}

// Gemm is C = A B in tiles of 64x64x16, four by four results a thread; the edges are guarded.
func Gemm(m, n, k int) Case {
	x, y := Random(m*k, 4), Random(k*n, 5)
	return Case{
		Name: "gemm", Grid: [3]int{(n + 63) / 64, (m + 63) / 64}, Block: [3]int{16, 16},
		Args: func() []sim.Arg {
			return []sim.Arg{buffer(x), buffer(y), buffer(make([]float32, m*n)), sim.I32(int32(m)), sim.I32(int32(n)), sim.I32(int32(k))}
		},
		Verify: func(a []sim.Arg) error {
			got := Values[float32](a[2].Buffer, m*n)
			for i := range m {
				for j := range n {
					want, size := 0.0, 0.0
					for p := range k {
						v := float64(x[i*k+p]) * float64(y[p*n+j])
						want += v
						size += math.Abs(v)
					}
					if d := math.Abs(float64(got[i*n+j]) - want); !(d <= size*math.Sqrt(float64(k))*1.2e-7) {
						return fmt.Errorf("element %d,%d is %g, want %g", i, j, got[i*n+j], want)
					}
				}
			}
			return nil
		},
	}
}

// WarpSum adds rows of x, one warp a row, by shuffles.
func WarpSum(rows, cols int) Case {
	x := Random(rows*cols, 6)
	return Case{
		Name: "warpsum", Grid: [3]int{(rows + 3) / 4}, Block: [3]int{128},
		Args: func() []sim.Arg {
			return []sim.Arg{buffer(x), buffer(make([]float32, rows)), sim.I32(int32(rows)), sim.I32(int32(cols))}
		},
		Verify: func(a []sim.Arg) error {
			got := Values[float32](a[1].Buffer, rows)
			for r := range rows {
				want, size := 0.0, 0.0
				for _, v := range x[r*cols : (r+1)*cols] {
					want += float64(v)
					size += math.Abs(float64(v))
				}
				if !(math.Abs(float64(got[r])-want) <= size*1e-6) {
					return fmt.Errorf("row %d is %g, want %g", r, got[r], want)
				}
			}
			return nil
		},
	}
}

// Cases is the kernels at small sizes.
func Cases() []Case {
	return []Case{
		AddRelu(1003, 2), AddRelu(3, 1), AddRelu(0, 1), Softmax(3, 200), Softmax(2, 5), Gemm(70, 65, 33), Gemm(1, 1, 1), WarpSum(6, 77),
		Float32Ops(), Compare32(), Float64Ops(), HalfOps(), Int64Ops(), BoolOps(), Casts(), Local(), Histogram(), Diverge(), HalfVec(), Dynamic(), Others(),
		Mma(kir.Half), Mma(kir.BFloat16), Mma(kir.Tensor32), ToTF32(), Mma(kir.S8), Mma(kir.S8U8), Mma(kir.U8S8), Mma(kir.U8), Copies(4, ""), Copies(8, ""), Copies(16, ""), Matrices(false), Matrices(true),
	}
}
