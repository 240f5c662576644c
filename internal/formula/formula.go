// Package formula has the constants and the arithmetic of sizes that several packages compute with.
package formula

// The constants of Gelu by tanh: tanh(GeluScale * (x + GeluCube*x^3)) is near erf(x/sqrt(2)) (Hendrycks and Gimpel, 2016).
const (
	GeluCube  = 0.044715
	GeluScale = 0.7978845608028654 // sqrt(2/pi)
)

// Erfcx is a polynomial, highest power first, that gives (1 + 2x) exp(x^2) erfc(x) for x >= 0 of 1 - 7.5/(x + 3.75) (Shepherd and Laframboise,
// 1981): to the last digits of float64.
var Erfcx = [...]float64{
	3.1114333809799254e-10, -2.623107347133476e-09, -3.744210080962018e-09, 3.197926671666804e-08, 2.3263508708859124e-08, -2.4857126248016745e-07,
	-5.7218230603224086e-08, 1.7419821586224816e-06, -9.73559896736775e-07, -1.1438048033346894e-05, 2.238423915508223e-05, 5.164652974177416e-05,
	-0.0002901540805408417, 0.000293714378044958, 0.0017556258528952954, -0.009746579683265262, 0.028362277418956406, -0.05869339857664934,
	0.09230432116037748, -0.10880393014244462, 0.0822767384901452, 0.0035854154854790257, -0.14024059858554697, 1.2375126308378275,
}

// ClampSlice brings the bounds of a Slice into the range of an axis of size n,
// as ONNX's Slice does. Negative bounds count from the end. With a
// negative step, the result -1 as an end is the place before the first element.
func ClampSlice(start, end, step, n int64) (from, to int64) {
	if start < 0 {
		start += n
	}
	if end < 0 {
		end += n
	}
	if step > 0 {
		return min(max(start, 0), n), min(max(end, 0), n)
	}
	return min(max(start, 0), n-1), min(max(end, -1), n-1)
}

// ScaledSize is the size of a resized axis: floor(n * scale) in float32, as runtimes compute it.
func ScaledSize(n int64, scale float64) int64 { return int64(float32(n) * float32(scale)) }

// KeepAspect gives the sizes of a Resize with the policy not_larger or
// not_smaller: one scale for all axes, the smallest or the largest.
func KeepAspect(have, want []int64, policy string) []int64 {
	if len(have) == 0 {
		return nil
	}
	scale := float32(want[0]) / float32(have[0])
	for i := range have {
		s := float32(want[i]) / float32(have[i])
		if policy == "not_larger" {
			scale = min(scale, s)
		} else {
			scale = max(scale, s)
		}
	}
	out := make([]int64, len(have))
	for i, n := range have {
		out[i] = int64(scale*float32(n) + 0.5)
	}
	return out
}
