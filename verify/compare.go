package verify

import (
	"fmt"
	"math"

	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/ssa/tensor"
)

// Tolerance bounds the difference of floats from their expected values: |got - want| <= Absolute + Relative |want| + OfMax max|want|,
// where the maximum is over the finite elements of the output. NaN equals NaN.
type Tolerance struct {
	Relative, Absolute, OfMax float64
	// Share is the fraction of an output's elements that may differ by more, from 0 to 1.
	Share float64
	// AnyDType allows outputs of another element type, and AnyShape outputs of another shape with the same number of
	// elements, which are compared in order.
	AnyDType, AnyShape bool
}

// DefaultTolerance suits float32 and allows for sums in another order.
var DefaultTolerance = Tolerance{Relative: 1e-3, Absolute: 1e-5}

// Compared is the result of comparing an output with its expected value.
type Compared struct {
	Name string `json:"name"`
	Type string `json:"type"`
	// Elements is the number of elements, and Worst the greatest difference.
	Elements int64   `json:"elements"`
	Worst    float64 `json:"worst"`
	// Wrong describes a difference beyond the tolerance; it is empty if there is none.
	Wrong string `json:"wrong,omitempty"`
	// Difference measures the difference and says where it is greatest.
	Difference *bound.Difference `json:"difference,omitempty"`
}

// alike removes the differences in type and shape that the tolerance allows.
func (tol Tolerance) alike(got, want *tensor.Tensor) (g, w *tensor.Tensor) {
	if tol.AnyShape && got.NumElements() == want.NumElements() && fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		got = got.Clone().Reshape(want.Shape)
	}
	numbers := func(t *tensor.Tensor) bool { return t.DType.HoldsNumbers() && !t.DType.IsComplex() && t.HasData() }
	if tol.AnyDType && got.DType != want.DType && numbers(got) && numbers(want) {
		as := func(t *tensor.Tensor) *tensor.Tensor {
			return tensor.FromFloats(tensor.Float64, t.Shape, t.Float64s())
		}
		return as(got), as(want)
	}
	return got, want
}

// Compare compares an output with its expected value.
func (tol Tolerance) Compare(name string, got, want *tensor.Tensor) Compared {
	c := Compared{Name: name, Type: want.String(), Elements: want.NumElements()}
	got, want = tol.alike(got, want)
	sameType := got.DType == want.DType || want.DType == tensor.Float64 && len(want.Shape) == 0 && got.DType == tensor.Float32 // a Python float
	if !sameType || fmt.Sprint(got.Shape) != fmt.Sprint(want.Shape) {
		c.Wrong = fmt.Sprintf("is %v, expected %v", got, want)
		return c
	}
	if !want.DType.HoldsNumbers() || want.DType.IsComplex() {
		c.Wrong = fmt.Sprintf("elements of type %v are not compared", want.DType)
		return c
	}
	if want.DType.IsFloat() && got.DType != want.DType { // a Python float: the file computes it in float32
		want = tensor.FromFloats(got.DType, want.Shape, want.Float64s())
	}
	var allowed func(i int) float64
	if want.DType.IsFloat() {
		w := want.Float64s()
		base := tol.Absolute
		if tol.OfMax > 0 {
			top := 0.0
			for _, x := range w {
				if x = math.Abs(x); x <= math.MaxFloat64 {
					top = max(top, x)
				}
			}
			base += tol.OfMax * top
		}
		allowed = func(i int) float64 { return base + tol.Relative*math.Abs(w[i]) }
	}
	d := bound.Measure(got, want, allowed)
	c.Difference, c.Worst = d, d.MaxAbs
	if d.NaN > 0 {
		c.Worst = math.MaxFloat64 // JSON has no infinities
	}
	if d.Shape != "" || float64(d.Beyond) > tol.Share*float64(d.Elements) {
		c.Wrong = fmt.Sprintf("%d of %d elements differ, the first one at %v is %v, expected %v", d.Beyond, d.Elements, d.First, d.Got, d.Want)
	}
	return c
}
