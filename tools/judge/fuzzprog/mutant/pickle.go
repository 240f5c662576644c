package mutant

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// Opcodes of pickles that have operands, by what follows them.
const (
	byte1   = "KhqU\x80\x8a\x8c" // one byte; of U, \x8a and \x8c it is a length
	byte2   = "M"
	byte4   = "JXTjrB" // four bytes; of X, T and B a length
	byte8   = "G\x95"
	counted = "U\x8a\x8cXTB"
	line1   = "IFLSVgp"
	line2   = "c"
)

// simple are opcodes without operands.
const simple = "()]}NQRab0tsu.12e\x81\x85\x86\x87\x88\x89\x93\x94"

// operations splits a pickle; what does not parse is the last one.
func operations(b []byte) [][]byte {
	var out [][]byte
	for len(b) > 0 {
		c, n := b[:1], 1
		lines := 0
		switch {
		case bytes.Contains([]byte(byte1), c):
			n += 1
		case bytes.Contains([]byte(byte2), c):
			n += 2
		case bytes.Contains([]byte(byte4), c):
			n += 4
		case bytes.Contains([]byte(byte8), c):
			n += 8
		case bytes.Contains([]byte(line1), c):
			lines = 1
		case bytes.Contains([]byte(line2), c):
			lines = 2
		}
		for range lines {
			i := bytes.IndexByte(b[min(n, len(b)):], '\n')
			if i < 0 {
				n = len(b)
				break
			}
			n += i + 1
		}
		if n <= len(b) && bytes.Contains([]byte(counted), c) {
			switch n {
			case 2:
				n += int(b[1])
			case 5:
				n += int(min(binary.LittleEndian.Uint32(b[1:]), uint32(len(b))))
			}
		}
		n = min(n, len(b))
		out = append(out, b[:n:n])
		b = b[n:]
	}
	return out
}

// Pickle changes operations of a pickle.
func Pickle(b []byte, rng *rand.Rand) []byte {
	ops := operations(b)
	if len(ops) == 0 {
		return b
	}
	for range few(rng) {
		if len(ops) == 0 {
			break
		}
		i, j := rng.IntN(len(ops)), rng.IntN(len(ops))
		switch rng.IntN(7) {
		case 0:
			ops = slices.Delete(ops, i, i+1)
		case 1:
			ops = slices.Insert(ops, i, ops[j])
		case 2:
			ops[i], ops[j] = ops[j], ops[i]
		case 3:
			ops[i] = []byte{simple[rng.IntN(len(simple))]}
		case 4: // another operation of the same kind: a name, a string, a number
			for range 50 {
				if ops[j][0] == ops[i][0] && !bytes.Equal(ops[i], ops[j]) {
					break
				}
				j = rng.IntN(len(ops))
			}
			ops[i] = ops[j]
		case 5: // a number
			for range 50 {
				if bytes.ContainsAny(ops[i][:1], "KMJ") || ops[i][0] == 0x8a {
					break
				}
				i = rng.IntN(len(ops))
			}
			v := hostileInts[rng.IntN(len(hostileInts))]
			ops[i] = binary.LittleEndian.AppendUint64([]byte{0x8a, 8}, uint64(v))
		default:
			op := slices.Clone(ops[i])
			op[rng.IntN(len(op))] ^= 1 << rng.IntN(8)
			ops[i] = op
		}
	}
	return bytes.Join(ops, nil)
}
