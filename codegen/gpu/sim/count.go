package sim

import (
	"math/bits"
	"slices"

	"github.com/aton-project/aton/codegen/gpu/isa"
)

// SectorSize is the unit in bytes in which a GPU's caches move memory.
const SectorSize = 32

// Shared memory has 32 banks of 4 bytes.
const (
	banks     = 32
	bankWidth = 4
)

// Counts is what a launch with Launch.Count does to memory. A warp access is an instruction that threads of a warp execute together;
// caches are not modelled, so what two warp accesses touch counts twice.
type Counts struct {
	// Read and Written are bytes of global memory, each thread's access for itself; an atomic operation does both.
	Read, Written int64
	// Sectors are those of SectorSize bytes of global memory that warp accesses touch, and LeastSectors those that the distinct bytes of
	// each would fill if they were neighbours.
	Sectors, LeastSectors int64
	// Wavefronts are the passes that accesses to shared memory take, and Conflicts those among them that there would not be without bank
	// conflicts. 32 threads take part in a pass, 16 in one of an access of 8 bytes a thread, 8 in one of 16; threads that want the same
	// word share it. See NVIDIA's CUDA C++ Programming Guide on shared memory.
	Wavefronts, Conflicts int64
	// Flops counts sums, products, quotients and roots of floats once, fused multiply-adds twice.
	Flops int64
	// MatrixFlops are those among Flops that tensor cores do.
	MatrixFlops int64
	// Instructions are lane instructions by class, without branches.
	Instructions [isa.Classes]int64
}

// Add adds what another launch did.
func (c *Counts) Add(d *Counts) {
	c.Read += d.Read
	c.Written += d.Written
	c.Sectors += d.Sectors
	c.LeastSectors += d.LeastSectors
	c.Wavefronts += d.Wavefronts
	c.Conflicts += d.Conflicts
	c.Flops += d.Flops
	c.MatrixFlops += d.MatrixFlops
	for i, n := range d.Instructions {
		c.Instructions[i] += n
	}
}

// Uncoalesced is the part of the sectors that coalesced accesses would not touch, from 0 to 1.
func (c *Counts) Uncoalesced() float64 {
	if c.Sectors == 0 {
		return 0
	}
	return 1 - float64(c.LeastSectors)/float64(c.Sectors)
}

type direction uint8

const (
	noAccess direction = iota
	reads
	writes
	updates
)

// tally counts an instruction that is about to run.
func (w *worker) tally(in *inst) {
	c, lanes := &w.stats.Counts, int64(w.count())
	c.Flops += lanes * int64(in.flops)
	if in.class == isa.Matrix {
		c.MatrixFlops += lanes * int64(in.flops)
	}
	if in.dir == noAccess {
		c.Instructions[in.class] += lanes
		return
	}
	addr := whole[uint64](w, in.A)
	size := int(in.bytes)
	most := 32 * bankWidth / max(size, bankWidth) // threads of a pass
	var keep []uint32                             // bytes that a copy reads; it fills up with zeros
	if in.copy && in.C != none {
		keep = whole[uint32](w, in.C)
	}
	w.warps(func(warp int, active uint32) {
		outer, inner := w.outer[:0], w.inner[:0]
		pass := 0
		for m := active; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			if keep != nil && keep[warp*32+l] == 0 {
				continue
			}
			a, sp := addr[warp*32+l]+in.Imm, in.space
			if sp == generic {
				switch number, off := unbias(a); number {
				case sharedTag:
					sp, a = shared, uint64(off)
				case localTag:
					sp = locals
				}
			}
			switch sp {
			case generic, global:
				outer = append(outer, a)
			case shared:
				if l/most != pass {
					c.wavefronts(inner, size)
					inner, pass = inner[:0], l/most
				}
				inner = append(inner, a)
				c.Instructions[isa.SharedMemory]++
			}
		}
		c.wavefronts(inner, size)
		if in.copy {
			w.copyWavefronts(in, warp, active)
		}
		c.sectors(outer, size, in.dir)
		if w.Touched != nil {
			w.touch(outer, in.dir)
		}
	})
}

// touch tells which sectors an access touches, by ascending addresses.
func (w *worker) touch(addr []uint64, dir direction) {
	for i := 0; i < len(addr); {
		number, off := unbias(addr[i])
		first := off / SectorSize
		last := first
		for i++; i < len(addr); i++ {
			n, off := unbias(addr[i])
			if n != number || off/SectorSize > last+1 {
				break
			}
			last = off / SectorSize
		}
		if number <= 0 || number >= len(w.bufs) || first < 0 || last*SectorSize >= int64(len(w.bufs[number].b)) { // the access itself is a fault
			continue
		}
		if dir != writes {
			w.Touched(w.bufs[number], first, last, false)
		}
		if dir != reads {
			w.Touched(w.bufs[number], first, last, true)
		}
	}
}

// wavefronts counts the passes over shared memory of threads that go together, which want at most as many words as there are banks.
func (c *Counts) wavefronts(addr []uint64, size int) {
	if len(addr) == 0 {
		return
	}
	var words [banks]uint64
	var next, first [banks]int8 // the words of a bank, by their number from 1 on
	var used [banks]int64
	n, most := int8(0), int64(0)
	for _, a := range addr {
	words:
		for o := 0; o < size; o += bankWidth {
			word := (a + uint64(o)) / bankWidth
			bank := word % banks
			for i := first[bank]; i > 0; i = next[i-1] {
				if words[i-1] == word {
					continue words
				}
			}
			words[n], next[n] = word, first[bank]
			n++
			first[bank] = n
			used[bank]++
			most = max(most, used[bank])
		}
	}
	c.Wavefronts += most
	c.Conflicts += most - 1
}

// sectors counts an access of a warp to global memory. Accesses are aligned, so none reaches into two sectors.
func (c *Counts) sectors(addr []uint64, size int, dir direction) {
	if len(addr) == 0 {
		return
	}
	bytes := int64(len(addr) * size)
	c.Instructions[isa.GlobalMemory] += int64(len(addr))
	if !slices.IsSorted(addr) {
		slices.Sort(addr)
	}
	distinct, touched := int64(1), int64(1)
	for i := 1; i < len(addr); i++ {
		if addr[i] != addr[i-1] {
			distinct++
		}
		if addr[i]/SectorSize != addr[i-1]/SectorSize {
			touched++
		}
	}
	least := (distinct*int64(size) + SectorSize - 1) / SectorSize
	if dir != writes {
		c.Read += bytes
		c.Sectors += touched
		c.LeastSectors += least
	}
	if dir != reads {
		c.Written += bytes
		c.Sectors += touched
		c.LeastSectors += least
	}
}
