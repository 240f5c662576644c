package sim

import "math/bits"

// sregNamed finds a special register by its name (tid.x, laneid).
func sregNamed(name string) (kind, dim int, ok bool) {
	switch name {
	case "laneid":
		return sregLane, 0, true
	case "warpid":
		return sregLane, 1, true
	case "nwarpid":
		return sregLane, 2, true
	}
	if n := len(name) - 2; n > 0 && name[n] == '.' && name[n+1] >= 'x' && name[n+1] <= 'z' {
		dim = int(name[n+1] - 'x')
		switch name[:n] {
		case "tid":
			return sregTid, dim, true
		case "ntid":
			return sregNtid, dim, true
		case "ctaid":
			return sregCtaid, dim, true
		case "nctaid":
			return sregNctaid, dim, true
		}
	}
	return 0, 0, false
}

// together checks that all threads the mask names run this instruction at once.
func (w *worker) together(in *inst, lane int, active, mask uint32) bool {
	first := lane &^ 31
	mask &= uint32(1<<min(w.threads-first, 32) - 1)
	switch {
	case mask>>(lane%32)&1 == 0:
		w.fail(Collective, lane, in.line, "the thread is not in its own mask %#x", mask)
	case mask&^active != 0:
		w.fail(Collective, lane, in.line, "thread %v of the mask is elsewhere", w.thread(first+bits.TrailingZeros32(mask&^active)))
	default:
		return true
	}
	return false
}

// warps calls f for each warp with running threads, and says which these are, up to a fault.
func (w *worker) warps(f func(warp int, active uint32)) {
	if w.Idx == nil {
		for warp := w.Lo / 32; warp*32 < w.Hi && w.fault == nil; warp++ {
			lo, hi := max(w.Lo-warp*32, 0), min(w.Hi-warp*32, 32)
			f(warp, uint32(1<<hi-1)&^uint32(1<<lo-1))
		}
		return
	}
	for list := w.Idx; len(list) > 0 && w.fault == nil; {
		warp, active := list[0]/32, uint32(0)
		for len(list) > 0 && list[0]/32 == warp {
			active |= 1 << (list[0] % 32)
			list = list[1:]
		}
		f(int(warp), active)
	}
}

// shuffle is shfl.sync: a the value, b the lane or distance, c the clamp; v is result, predicate or none, mask.
func shuffle(mode string) runner {
	switch mode {
	case "bfly", "down", "up", "idx":
	default:
		return nil
	}
	return func(w *worker, in *inst) {
		a, b, c, mask := whole[uint32](w, in.A), whole[uint32](w, in.B), whole[uint32](w, in.C), whole[uint32](w, in.v[2])
		w.warps(func(warp int, active uint32) {
			first := warp * 32
			var out [32]uint32
			var valid [32]bool
			for m := active; m != 0; m &= m - 1 {
				l := bits.TrailingZeros32(m)
				i := first + l
				if (mask[i]>>l&1 == 0 || mask[i]&^active != 0) && !w.together(in, i, active, mask[i]) {
					return
				}
				segment := int(c[i] >> 8 & 31)
				clamp, lane := int(c[i]&31), int(b[i]&31)
				least := l & segment
				most := least | clamp&^segment
				j, ok := 0, false
				switch mode {
				case "up":
					j = l - lane
					ok = j >= most
				case "down":
					j = l + lane
					ok = j <= most
				case "bfly":
					j = l ^ lane
					ok = j <= most
				case "idx":
					j = least | lane&^segment
					ok = j <= most
				}
				if !ok || first+j >= w.threads {
					j = l
				} else if active>>j&1 == 0 {
					w.fail(Collective, i, in.line, "reads from thread %v, which does not take part", w.thread(first+j))
					return
				}
				out[l], valid[l] = a[first+j], ok
			}
			d := whole[uint32](w, in.v[0])
			for m := active; m != 0; m &= m - 1 {
				l := bits.TrailingZeros32(m)
				d[first+l] = out[l]
				if in.v[1] != none {
					whole[bool](w, in.v[1])[first+l] = valid[l]
				}
			}
		})
	}
}

// ballot is vote.sync.ballot: a the predicate, b the mask.
func ballot(w *worker, in *inst) {
	a, mask := whole[uint8](w, in.A), whole[uint32](w, in.B)
	w.warps(func(warp int, active uint32) {
		first := warp * 32
		var vote uint32
		for m := active; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m)
			if !w.together(in, first+l, active, mask[first+l]) {
				return
			}
			if a[first+l] != 0 {
				vote |= 1 << l
			}
		}
		d := whole[uint32](w, in.v[0])
		for m := active; m != 0; m &= m - 1 {
			i := first + bits.TrailingZeros32(m)
			d[i] = vote & mask[i]
		}
	})
}

type unsigned interface{ uint32 | uint64 }

type signed interface{ int32 | int64 }

// atomicOp is an atomic operation by the name of PTX; fadd adds floats, umin and umax compare unsigned integers.
func atomicOp(name string, width int, sp space) runner {
	switch width {
	case 4:
		if name == "fadd" {
			return update(sp, func(a, b float32) float32 { return a + b })
		}
		return atomics2[uint32, int32](name, sp)
	case 8:
		if name == "fadd" {
			return update(sp, func(a, b float64) float64 { return a + b })
		}
		return atomics2[uint64, int64](name, sp)
	}
	return nil
}

func atomics2[U unsigned, S signed](name string, sp space) runner {
	switch name {
	case "add":
		return update(sp, func(a, b U) U { return a + b })
	case "and":
		return update(sp, func(a, b U) U { return a & b })
	case "or":
		return update(sp, func(a, b U) U { return a | b })
	case "xor":
		return update(sp, func(a, b U) U { return a ^ b })
	case "min":
		return update(sp, func(a, b S) S { return min(a, b) })
	case "max":
		return update(sp, func(a, b S) S { return max(a, b) })
	case "umin":
		return update(sp, func(a, b U) U { return min(a, b) })
	case "umax":
		return update(sp, func(a, b U) U { return max(a, b) })
	case "exch":
		return update(sp, func(_, b U) U { return b })
	}
	return nil
}
