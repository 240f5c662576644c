package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"runtime/coverage"
)

// place is a run of statements: the package, the function in it and the block in that, as the compiler numbered them.
type place struct{ pkg, fn, block uint32 }

// reached lists the blocks that ran since coverage.ClearCounters. It reads what coverage.WriteCounters writes, the format
// of Go's internal/coverage/defs.go, version 1: converting each case with go tool covdata takes a hundred times as long.
func reached() ([]place, error) {
	var b bytes.Buffer
	if err := coverage.WriteCounters(&b); err != nil {
		return nil, err
	}
	return decode(b.Bytes())
}

const (
	fileHeader    = 4 + 4 + 16 + 1 + 1 + 6
	segmentHeader = 8 + 4 + 4
)

func decode(data []byte) ([]place, error) {
	if len(data) < fileHeader+segmentHeader || string(data[:4]) != "\x00cwm" || binary.LittleEndian.Uint32(data[4:]) != 1 || data[25] != 0 {
		return nil, errors.New("counters are in a format that this version of Go does not share")
	}
	raw := data[24] == 1 // words of four bytes, else LEB128
	segment := data[fileHeader:]
	functions := binary.LittleEndian.Uint64(segment)
	strings, args := int(binary.LittleEndian.Uint32(segment[8:])), int(binary.LittleEndian.Uint32(segment[12:]))
	at := (fileHeader + segmentHeader + strings + args + 3) &^ 3
	next := func() (uint32, error) {
		if raw {
			if at+4 > len(data) {
				return 0, errors.New("counters end early")
			}
			at += 4
			return binary.LittleEndian.Uint32(data[at-4:]), nil
		}
		if at > len(data) {
			return 0, errors.New("counters end early")
		}
		v, n := binary.Uvarint(data[at:])
		if n <= 0 {
			return 0, errors.New("counters end early")
		}
		at += n
		return uint32(v), nil
	}
	var places []place
	for range functions {
		var head [3]uint32
		for i := range head {
			var err error
			if head[i], err = next(); err != nil {
				return nil, err
			}
		}
		if head[0] > 1<<20 {
			return nil, fmt.Errorf("a function of %d blocks", head[0])
		}
		for k := range head[0] {
			n, err := next()
			if err != nil {
				return nil, err
			}
			if n != 0 {
				places = append(places, place{head[1], head[2], k})
			}
		}
	}
	return places, nil
}

// numbering gives each place that is seen a number, so that sets of places are small.
type numbering map[place]int

// blocks is a set of numbers, a bit each.
type blocks []uint64

func (n numbering) set(places []place) blocks {
	var b blocks
	for _, p := range places {
		i, ok := n[p]
		if !ok {
			i = len(n)
			n[p] = i
		}
		for len(b) <= i/64 {
			b = append(b, 0)
		}
		b[i/64] |= 1 << (i % 64)
	}
	return b
}

// with adds the blocks of another set.
func (b blocks) with(other blocks) blocks {
	for i, w := range other {
		if i == len(b) {
			b = append(b, 0)
		}
		b[i] |= w
	}
	return b
}

// beyond counts the blocks that are not in the other set.
func (b blocks) beyond(other blocks) (n int) {
	for i, w := range b {
		if i < len(other) {
			w &^= other[i]
		}
		n += bits.OnesCount64(w)
	}
	return n
}
