package onnx

import (
	"math"
	"testing"

	"github.com/aton-project/aton/internal/formula"
)

// TestErfcx compares the polynomial with erfc, as far as exp(x^2) is exact enough to.
func TestErfcx(t *testing.T) {
	for i := range 2600 {
		x := float64(i) / 100
		u, y := 1-7.5/(x+3.75), 0.0
		for _, c := range formula.Erfcx {
			y = y*u + c
		}
		y = y / (1 + 2*x) * math.Exp(-x*x)
		if want := math.Erfc(x); math.Abs(y-want) > (1e-15+x*x*3e-16)*want {
			t.Errorf("erfc(%v) is %v, want %v", x, y, want)
		}
	}
}
