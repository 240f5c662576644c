package onnxfile

// turn8 transposes 8 columns of high elements of 16 bits, a multiple of 8, which are pitch bytes apart, to rows of a strip. It takes what every amd64 has.
//
//go:noescape
func turn8(strip, src *byte, pitch, high int)

// turn transposes as turn16.
func turn(strip, src []byte, pitch, width, high int) {
	if width%8 != 0 || high%8 != 0 {
		turn16(strip, src, pitch, width, high)
		return
	}
	for c := 0; c < width; c += 8 {
		_ = src[(c+7)*pitch+2*high-1]
		turn8(&strip[2*c], &src[c*pitch], pitch, high)
	}
}
