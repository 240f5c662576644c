package driver

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"unsafe"
)

// exercise goes through an upload, a launch with all kinds of arguments, a download, and a module that does not compile.
// The device has the kernel axpy of testdata/standin.c.
func exercise(t *testing.T, d *Device) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	x, err := d.Alloc(16)
	must(err)
	y, err := d.Alloc(16)
	must(err)
	var in []byte
	for _, v := range []float32{1, 2, 3, 4} {
		in = binary.LittleEndian.AppendUint32(in, math.Float32bits(v))
	}
	must(d.Upload(x, 0, in))
	must(d.Clear(y, 0, 16))
	m, err := d.Load(".entry axpy")
	must(err)
	f, err := m.Function("axpy")
	must(err)
	if f.Registers != 18 {
		t.Errorf("%d registers", f.Registers)
	}
	ms, err := d.Time(func() error {
		return f.Launch([3]int{1, 2, 3}, [3]int{4, 5, 6}, 60000, Ptr(y, 4), Ptr(x, 4), I32(3), F64(0.5), I64(1<<20), F32(0.25))
	})
	must(err)
	if ms != 1.5 {
		t.Errorf("%g ms", ms)
	}
	must(d.Sync())
	out := make([]byte, 16)
	must(d.Download(out, y, 0))
	size := float32(1 + 20 + 300 + 4000 + 50000 + 600000 + 60000)
	for i, want := range []float32{0, 1<<20 + 1.25 + size, 1<<20 + 1.75 + size, 1<<20 + 2.25 + size} {
		if got := math.Float32frombits(binary.LittleEndian.Uint32(out[4*i:])); got != want {
			t.Errorf("element %d is %g, want %g", i, got, want)
		}
	}
	_, err = d.Load("first\nthe bad line\n")
	var e *Error
	if !errors.As(err, &e) || e.Code != 218 || e.Name != "CUDA_ERROR_INVALID_PTX" || !strings.Contains(e.Error(), "2 | the bad line") {
		t.Errorf("PTX that does not compile: %v", err)
	}
	if _, err := m.Function("other"); err == nil {
		t.Error("a kernel that the module lacks was found")
	}
	if err := f.Launch([3]int{0, 1, 1}, [3]int{1, 1, 1}, 0); err == nil {
		t.Error("an empty grid was launched")
	}
	if err := f.Launch([3]int{1, 1, 1}, [3]int{1, 1, 1}, 300000); err == nil {
		t.Error("300000 bytes of shared memory were given")
	}
	if err := d.Upload(x, 8, in); err == nil {
		t.Error("an upload went over the end")
	}
	if err := d.Download(in, x, 1); err == nil {
		t.Error("a download went over the end")
	}
	if err := d.Clear(x, 8, 9); err == nil {
		t.Error("clearing went over the end")
	}
	must(d.Upload(x, 16, nil))
	must(d.Free(x))
	must(d.Free(y))
	must(m.Unload())
}

// fake is the driver in Go: what testdata/standin.c is in C.
func fake(t *testing.T) *api {
	memory := map[uintptr][]byte{}
	at := func(p uintptr) []byte {
		for base, b := range memory {
			if p >= base && p < base+uintptr(len(b)) {
				return b[p-base:]
			}
		}
		t.Errorf("address %#x is not allocated", p)
		return nil
	}
	text := func(s string, to **byte) int32 {
		b := append([]byte(s), 0)
		*to = &b[0]
		return 0
	}
	next := uintptr(1 << 20)
	ok := func() int32 { return 0 }
	limit := uint32(48 << 10)
	return &api{
		Init:        func(uint32) int32 { return 0 },
		Version:     func(v *int32) int32 { *v = 12000; return 0 },
		DeviceCount: func(n *int32) int32 { *n = 1; return 0 },
		DeviceGet:   func(d *int32, i int32) int32 { *d = i; return 0 },
		DeviceName: func(p *byte, n int32, _ int32) int32 {
			copy(unsafe.Slice(p, n), "fake")
			return 0
		},
		DeviceAttribute: func(v *int32, a, _ int32) int32 { *v = a; return 0 },
		PrimaryRetain:   func(c *uintptr, _ int32) int32 { *c = 1; return 0 },
		PrimaryRelease:  func(int32) int32 { return 0 },
		CtxSetCurrent:   func(uintptr) int32 { return 0 },
		CtxSynchronize:  ok,
		ModuleLoad: func(m *uintptr, image *byte, n uint32, options *int32, values *uintptr) int32 {
			if !strings.Contains(goString(image), "bad") {
				*m = 5
				return 0
			}
			for i, o := range unsafe.Slice(options, n) {
				if o == jitErrorBuffer {
					copy(unsafe.Slice(*(**byte)(unsafe.Pointer(&unsafe.Slice(values, n)[i])), 64), "ptxas line 2; bad\x00")
				}
			}
			return 218
		},
		ModuleUnload: func(uintptr) int32 { return 0 },
		ModuleFunction: func(f *uintptr, m uintptr, name *byte) int32 {
			if goString(name) != "axpy" {
				return 500
			}
			*f = m
			return 0
		},
		FuncSetAttribute: func(_ uintptr, a, v int32) int32 {
			if a != funcMaxDynamic || v > 232448 {
				return 1
			}
			limit = uint32(v)
			return 0
		},
		FuncGetAttribute: func(v *int32, _ int32, _ uintptr) int32 { *v = 18; return 0 },
		MemAlloc: func(p *uintptr, n uintptr) int32 {
			*p = next
			memory[next] = make([]byte, n)
			next += n + 4096
			return 0
		},
		MemFree:  func(p uintptr) int32 { delete(memory, p); return 0 },
		MemSet:   func(p uintptr, v uint8, n uintptr) int32 { clear(at(p)[:n]); return 0 },
		Upload:   func(p uintptr, b *byte, n uintptr) int32 { copy(at(p), unsafe.Slice(b, n)); return 0 },
		Download: func(b *byte, p uintptr, n uintptr) int32 { copy(unsafe.Slice(b, n), at(p)); return 0 },
		Launch: func(_ uintptr, gx, gy, gz, bx, by, bz, shared uint32, _ uintptr, params *unsafe.Pointer, _ unsafe.Pointer) int32 {
			if shared > limit {
				return 1
			}
			p := unsafe.Slice(params, 6)
			y, x := at(*(*uintptr)(p[0])), at(*(*uintptr)(p[1]))
			size := float32(gx + 10*gy + 100*gz + 1000*bx + 10000*by + 100000*bz + shared)
			for i := range int(*(*int32)(p[2])) {
				v := float64(math.Float32frombits(binary.LittleEndian.Uint32(x[4*i:])))
				v = *(*float64)(p[3])*v + float64(*(*int64)(p[4])) + float64(*(*float32)(p[5]))
				binary.LittleEndian.PutUint32(y[4*i:], math.Float32bits(float32(v)+size))
			}
			return 0
		},
		EventCreate:      func(*uintptr, uint32) int32 { return 0 },
		EventDestroy:     func(uintptr) int32 { return 0 },
		EventRecord:      func(_, _ uintptr) int32 { return 0 },
		EventSynchronize: func(uintptr) int32 { return 0 },
		EventElapsed:     func(ms *float32, _, _ uintptr) int32 { *ms = 1.5; return 0 },
		ErrorName: func(r int32, s **byte) int32 {
			if r == 218 {
				return text("CUDA_ERROR_INVALID_PTX", s)
			}
			return 1
		},
		ErrorString: func(int32, **byte) int32 { return 1 },
	}
}

func TestFake(t *testing.T) {
	d, err := open(fake(t), 0)
	if err != nil {
		t.Fatal(err)
	}
	exercise(t, d)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error("closing twice:", err)
	}
	if _, err := open(fake(t), 1); err == nil {
		t.Error("device 1 of 1 was opened")
	}
}
