//go:build !amd64

package onnxfile

// turn transposes as turn16.
func turn(strip, src []byte, pitch, width, high int) { turn16(strip, src, pitch, width, high) }
