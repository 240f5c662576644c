//go:build !amd64

package sim

import "unsafe"

const vectors = false

var lanesOf map[string]vector

func vLoad32(d, addr, mem unsafe.Pointer, n int, delta, limit uint64) int { return 0 }

func vStore32(s, addr, mem unsafe.Pointer, n int, delta, limit uint64) int { return 0 }

func vLoad32x4(d *[4]unsafe.Pointer, addr, mem unsafe.Pointer, n int, delta, limit uint64) int {
	return 0
}

func vStore32x4(d *[4]unsafe.Pointer, addr, mem unsafe.Pointer, n int, delta, limit uint64) int {
	return 0
}
