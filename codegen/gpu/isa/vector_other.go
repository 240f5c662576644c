//go:build !amd64

package isa

import "unsafe"

// Vectors says that the processor has instructions for 8 threads at a time that are made use of.
const Vectors = false

var lanesOf map[string]vector

// Load32 is not there: it serves nobody.
func Load32(d, addr, mem unsafe.Pointer, n int, delta, limit uint64) int { return 0 }

// Store32 is not there: it serves nobody.
func Store32(s, addr, mem unsafe.Pointer, n int, delta, limit uint64) int { return 0 }

// Load32x4 is not there: it serves nobody.
func Load32x4(d *[4]unsafe.Pointer, addr, mem unsafe.Pointer, n int, delta, limit uint64) int {
	return 0
}

// Store32x4 is not there: it serves nobody.
func Store32x4(d *[4]unsafe.Pointer, addr, mem unsafe.Pointer, n int, delta, limit uint64) int {
	return 0
}
