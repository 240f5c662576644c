package sim

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/aton-project/aton/codegen/gpu/isa"
)

// matrixRow is a row of 8 numbers of 16 bits, in bytes.
const matrixRow = 16

// loadMatrices reads four matrices of 8x8 numbers of 16 bits by a warp, to four words of each thread: ldmatrix.sync.aligned.m8n8.x4. Thread t has the address of row t%8 of matrix
// t/8, and gets numbers 2q and 2q+1 of row t/4 of each, q = t%4, or of column t/4 where they are transposed ("ldmatrix" in the PTX ISA).
func loadMatrices(transposed bool) runner {
	return func(w *worker, in *inst) {
		addr := whole[uint64](w, in.A)
		w.warps(func(warp int, active uint32) {
			first := warp * 32
			if active != math.MaxUint32 {
				w.fail(Collective, first+bits.TrailingZeros32(active), in.line, "lane %d of the warp does not take part", bits.TrailingZeros32(^active))
				return
			}
			var rows [32][matrixRow]byte
			for lane := range rows {
				p := w.access(shared, first+lane, addr[first+lane]+in.Imm, matrixRow, matrixRow, false, in)
				if p == nil {
					return
				}
				copy(rows[lane][:], unsafe.Slice((*byte)(p), matrixRow))
			}
			number := func(m, row, col int) uint32 {
				if transposed {
					row, col = col, row
				}
				x := rows[8*m+row][2*col:]
				return uint32(x[0]) | uint32(x[1])<<8
			}
			for m, s := range in.v {
				to := whole[uint32](w, s)[first:]
				for lane := range 32 {
					g, q := lane/4, lane%4*2
					to[lane] = number(m, g, q) | number(m, g, q+1)<<16
				}
			}
		})
	}
}

// readMatrices reads ldmatrix.
func (r *ptxReader) readMatrices(row *isa.Row, _ string, ops []ptxOperand) {
	if !r.args(ops, 2) {
		return
	}
	if len(ops[0].list) != 4 || !ops[1].memory {
		r.fail("%d registers for four matrices, or no address", len(ops[0].list))
		return
	}
	at, off := r.addressOf(ops[1])
	var to []slot
	for _, o := range ops[0].list {
		to = append(to, r.out(o, 4))
	}
	if r.err != nil {
		return
	}
	r.access(shared, matrixRow)
	r.effect(inst{run: loadMatrices(row.Transposed), Op: isa.Op{A: at, B: none, C: none, Imm: off}, v: to, outs: 4, dir: reads, bytes: matrixRow, space: shared})
}
