package minimax

import (
	"math"
	"os"
	"testing"
)

// The functions behind the coefficients against those of package math.
func TestReference(t *testing.T) {
	for _, c := range []struct {
		name string
		big  func(real) real
		want func(float64) float64
		at   []float64
	}{
		{"exp", Exp, math.Exp, []float64{-40, -1, 0, 0.3, 5, 80}},
		{"log", Log, math.Log, []float64{1e-17, 0.3, 1, 2, 1000}},
		{"atan", Atan, math.Atan, []float64{-0.4, 0.01, 0.2, 0.45}},
		{"erf", Erf, math.Erf, []float64{-2, 0.1, 1, 3, 6}},
		{"tanh", tanh, math.Tanh, []float64{-2, 0.1, 1}},
	} {
		for _, x := range c.at {
			got, _ := c.big(num(x)).Float64()
			if want := c.want(x); math.Abs(got-want) > 4e-16*math.Abs(want)+1e-100 {
				t.Errorf("%s(%v) = %v, want %v", c.name, x, got, want)
			}
		}
	}
	if pi, _ := Pi().Float64(); pi != math.Pi {
		t.Errorf("pi = %v", pi)
	}
}

// The committed coefficients are what the tool finds.
func TestDrift(t *testing.T) {
	have, err := os.ReadFile("../../approx/coefficients_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != Source() {
		t.Error("coefficients_gen.go is not what the tool writes: make gen")
	}
}

// A polynomial of a polynomial is found exactly, and the error of a fit has as many extrema as it must.
func TestSolve(t *testing.T) {
	f := Fit{"", "", 2, -1, 1, func(x real) real { return add(mul(x, x), num(3)) }, func(real) real { return num(1) }}
	c, err := f.Solve()
	if e, _ := err.Float64(); e > 1e-100 {
		t.Errorf("error %g, coefficients %v", e, c)
	}
	// |x^3 - p(x)| on [-1, 1] with p of degree 2 is least for x^3 - T3/4: 1/4
	f.Target = func(x real) real { return mul(x, mul(x, x)) }
	_, err = f.Solve()
	if e, _ := err.Float64(); math.Abs(e-0.25) > 1e-3 {
		t.Errorf("error %g, want 1/4", e)
	}
}
