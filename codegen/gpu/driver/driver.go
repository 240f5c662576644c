// Package driver runs kernels on an NVIDIA GPU through the CUDA driver, which it loads at run time: building needs
// neither CUDA nor cgo. Where there is no driver, Open says so with ErrNoDriver. Loading needs the system's dynamic loader: the
// build tag nocuda leaves it out, for a static binary.
package driver

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// ErrNoDriver says that this machine has no CUDA driver, or none that can be loaded.
var ErrNoDriver = errors.New("no NVIDIA driver: install one that brings libcuda.so.1, or use the simulator (--device sim)")

// Error is a failed call of the driver.
type Error struct {
	Call string // name of the function
	Code int    // CUresult
	Name string // CUDA_ERROR_...
	Text string
	Log  string // what the PTX compiler wrote, with the lines it speaks of
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d)", e.Call, e.Name, e.Code)
	if e.Text != "" {
		s += ": " + e.Text
	}
	if e.Log != "" {
		s += "\n" + e.Log
	}
	return s
}

// Info describes a device.
type Info struct {
	Name            string
	Major, Minor    int // compute capability
	Multiprocessors int
	SharedMemory    int // bytes of shared memory that a block may ask for
	Driver          int // CUDA version of the driver: 12040 is 12.4
}

// Target is the device's processor as PTX names it.
func (i Info) Target() string { return fmt.Sprintf("sm_%d%d", i.Major, i.Minor) }

// Device is a GPU with its primary context. Its methods may be called from any goroutine; they run one after another.
type Device struct {
	Info  Info
	api   *api
	calls chan func()
	done  chan struct{}
	close sync.Once
	ctx   uintptr
	id    int32
}

// Memory is an allocation on the device.
type Memory struct {
	addr uintptr
	size int
}

// Size is the bytes of the allocation.
func (m Memory) Size() int { return m.size }

// Module is compiled PTX.
type Module struct {
	d      *Device
	handle uintptr
}

// Function is a kernel of a module.
type Function struct {
	Name      string
	Registers int // a thread
	Local     int // bytes of local memory a thread: spills and arrays
	d         *Device
	handle    uintptr
	dynamic   int
}

// Arg is a kernel argument: an address on the device, or a scalar of 4 or 8 bytes.
type Arg struct {
	bits uint64
	size int
}

// Ptr passes an address, offset bytes into the memory.
func Ptr(m Memory, offset int) Arg { return Arg{uint64(m.addr) + uint64(offset), 8} }

// I32 passes a 32-bit integer.
func I32(v int32) Arg { return Arg{uint64(uint32(v)), 4} }

// I64 passes a 64-bit integer.
func I64(v int64) Arg { return Arg{uint64(v), 8} }

// F32 passes a float32.
func F32(v float32) Arg { return Arg{uint64(math.Float32bits(v)), 4} }

// F64 passes a float64.
func F64(v float64) Arg { return Arg{math.Float64bits(v), 8} }

// Open prepares the device with the given number, 0 being the first. errors.Is(err, ErrNoDriver) tells that there is
// no driver.
func Open(ordinal int) (*Device, error) {
	a, err := load()
	if err != nil {
		return nil, err
	}
	return open(a, ordinal)
}

func open(a *api, ordinal int) (*Device, error) {
	d := &Device{api: a, calls: make(chan func()), done: make(chan struct{})}
	go d.serve()
	err := d.do(func() error { return d.start(ordinal) })
	if err != nil {
		d.close.Do(func() { close(d.calls) })
		<-d.done
		return nil, err
	}
	return d, nil
}

// serve makes all calls on one thread, to which the context belongs.
func (d *Device) serve() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(d.done)
	for f := range d.calls {
		f()
	}
}

func (d *Device) do(f func() error) error {
	result := make(chan error, 1)
	d.calls <- func() { result <- f() }
	return <-result
}

func (d *Device) start(ordinal int) error {
	a := d.api
	if err := d.check("cuInit", a.Init(0)); err != nil {
		return err
	}
	var n, v int32
	if err := d.check("cuDriverGetVersion", a.Version(&v)); err != nil {
		return err
	}
	if err := d.check("cuDeviceGetCount", a.DeviceCount(&n)); err != nil {
		return err
	}
	if ordinal < 0 || ordinal >= int(n) {
		return fmt.Errorf("cuda: no device %d: there are %d", ordinal, n)
	}
	if err := d.check("cuDeviceGet", a.DeviceGet(&d.id, int32(ordinal))); err != nil {
		return err
	}
	d.Info.Driver = int(v)
	name := make([]byte, deviceNameLength)
	if err := d.check("cuDeviceGetName", a.DeviceName(&name[0], deviceNameLength-1, d.id)); err != nil {
		return err
	}
	d.Info.Name = goString(&name[0])
	for _, x := range []struct {
		attr int32
		to   *int
	}{{attrMajor, &d.Info.Major}, {attrMinor, &d.Info.Minor}, {attrMultiproc, &d.Info.Multiprocessors}, {attrSharedOptin, &d.Info.SharedMemory}} {
		if err := d.check("cuDeviceGetAttribute", a.DeviceAttribute(&v, x.attr, d.id)); err != nil {
			return err
		}
		*x.to = int(v)
	}
	if err := d.check("cuDevicePrimaryCtxRetain", a.PrimaryRetain(&d.ctx, d.id)); err != nil {
		return err
	}
	if err := d.check("cuCtxSetCurrent", a.CtxSetCurrent(d.ctx)); err != nil {
		return errors.Join(err, d.check("cuDevicePrimaryCtxRelease", a.PrimaryRelease(d.id)))
	}
	return nil
}

// Close gives the context back. Memory and modules of the device end with it.
func (d *Device) Close() error {
	var err error
	d.close.Do(func() {
		err = d.do(func() error { return d.check("cuDevicePrimaryCtxRelease", d.api.PrimaryRelease(d.id)) })
		close(d.calls)
		<-d.done
	})
	return err
}

func (d *Device) check(call string, result int32) error {
	if result == 0 {
		return nil
	}
	e := &Error{Call: call, Code: int(result), Name: "CUDA_ERROR"}
	var p *byte
	if d.api.ErrorName(result, &p) == 0 && p != nil {
		e.Name = goString(p)
	}
	p = nil
	if d.api.ErrorString(result, &p) == 0 && p != nil {
		e.Text = goString(p)
	}
	return e
}

func goString(p *byte) string {
	var b []byte
	for ; *p != 0; p = (*byte)(unsafe.Add(unsafe.Pointer(p), 1)) {
		b = append(b, *p)
	}
	return string(b)
}

// Alloc gives size bytes on the device. Size 0 is allowed and takes one byte.
func (d *Device) Alloc(size int) (Memory, error) {
	m := Memory{size: size}
	if size < 0 {
		return m, fmt.Errorf("cuda: allocation of %d bytes", size)
	}
	err := d.do(func() error { return d.check("cuMemAlloc", d.api.MemAlloc(&m.addr, uintptr(max(size, 1)))) })
	return m, err
}

// Free gives memory back.
func (d *Device) Free(m Memory) error {
	return d.do(func() error { return d.check("cuMemFree", d.api.MemFree(m.addr)) })
}

// Upload copies bytes to the device, offset bytes into the memory.
func (d *Device) Upload(m Memory, offset int, b []byte) error {
	return d.transfer("upload", m, offset, b, func(b *byte, at uintptr, n uintptr) error {
		return d.check("cuMemcpyHtoD", d.api.Upload(at, b, n))
	})
}

// Download copies bytes from the device. It waits for the kernels launched before.
func (d *Device) Download(b []byte, m Memory, offset int) error {
	return d.transfer("download", m, offset, b, func(b *byte, at uintptr, n uintptr) error {
		return d.check("cuMemcpyDtoH", d.api.Download(b, at, n))
	})
}

// transfer checks bounds and pins the bytes for a copy.
func (d *Device) transfer(what string, m Memory, offset int, b []byte, move func(b *byte, at, n uintptr) error) error {
	if offset < 0 || offset > m.size-len(b) {
		return fmt.Errorf("cuda: %s of %d bytes at %d of %d", what, len(b), offset, m.size)
	}
	if len(b) == 0 {
		return nil
	}
	return d.do(func() error {
		var pin runtime.Pinner
		defer pin.Unpin()
		pin.Pin(&b[0])
		return move(&b[0], m.addr+uintptr(offset), uintptr(len(b)))
	})
}

// Clear sets bytes of the memory to zero.
func (d *Device) Clear(m Memory, offset, size int) error {
	if offset < 0 || size < 0 || offset > m.size-size {
		return fmt.Errorf("cuda: clearing %d bytes at %d of %d", size, offset, m.size)
	}
	if size == 0 {
		return nil
	}
	return d.do(func() error {
		return d.check("cuMemsetD8", d.api.MemSet(m.addr+uintptr(offset), 0, uintptr(size)))
	})
}

// Load compiles PTX for the device. When that fails the *Error has the compiler's log.
func (d *Device) Load(ptx string) (*Module, error) {
	m := &Module{d: d}
	err := d.do(func() error {
		image := append([]byte(ptx), 0)
		info, errs := make([]byte, jitLogBytes), make([]byte, jitLogBytes)
		options := []int32{jitInfoBuffer, jitInfoSize, jitErrorBuffer, jitErrorSize}
		values := []uintptr{uintptr(unsafe.Pointer(&info[0])), jitLogBytes - 1, uintptr(unsafe.Pointer(&errs[0])), jitLogBytes - 1}
		var pin runtime.Pinner
		defer pin.Unpin()
		for _, p := range []any{&image[0], &info[0], &errs[0], &options[0], &values[0]} {
			pin.Pin(p)
		}
		err := d.check("cuModuleLoadDataEx", d.api.ModuleLoad(&m.handle, &image[0], uint32(len(options)), &options[0], &values[0]))
		var e *Error
		if errors.As(err, &e) {
			e.Log = jitLog(goString(&errs[0]), ptx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// jitLog adds the lines of PTX that the log names.
func jitLog(log, ptx string) string {
	const shown = 8
	lines := strings.Split(ptx, "\n")
	var out strings.Builder
	out.WriteString(strings.TrimSpace(log))
	n := 0
	for rest := log; n < shown; n++ {
		_, after, ok := strings.Cut(rest, "line ")
		if !ok {
			break
		}
		var at int
		if _, err := fmt.Sscanf(after, "%d", &at); err == nil && at >= 1 && at <= len(lines) {
			fmt.Fprintf(&out, "\n%5d | %s", at, lines[at-1])
		}
		rest = after
	}
	return out.String()
}

// Unload frees the module.
func (m *Module) Unload() error {
	return m.d.do(func() error { return m.d.check("cuModuleUnload", m.d.api.ModuleUnload(m.handle)) })
}

// Function finds a kernel.
func (m *Module) Function(name string) (*Function, error) {
	f := &Function{Name: name, d: m.d, dynamic: defaultShared}
	err := m.d.do(func() error {
		a := m.d.api
		s := append([]byte(name), 0)
		if err := m.d.check("cuModuleGetFunction "+name, a.ModuleFunction(&f.handle, m.handle, &s[0])); err != nil {
			return err
		}
		var v int32
		if err := m.d.check("cuFuncGetAttribute", a.FuncGetAttribute(&v, funcRegisters, f.handle)); err != nil {
			return err
		}
		f.Registers = int(v)
		if err := m.d.check("cuFuncGetAttribute", a.FuncGetAttribute(&v, funcLocal, f.handle)); err != nil {
			return err
		}
		f.Local = int(v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Launch starts the kernel; the default stream keeps launches in order. Errors of the kernel itself show at Sync or Download.
func (f *Function) Launch(grid, block [3]int, dynamic int, args ...Arg) error {
	for i := range 3 {
		if grid[i] < 1 || grid[i] > math.MaxInt32 || block[i] < 1 || block[i] > 1024 {
			return fmt.Errorf("cuda: launch of %s with grid %v, block %v", f.Name, grid, block)
		}
	}
	if dynamic < 0 || dynamic > math.MaxInt32 || len(args) > maxKernelParams/4 {
		return fmt.Errorf("cuda: launch of %s with %d bytes of shared memory, %d arguments", f.Name, dynamic, len(args))
	}
	return f.d.do(func() error {
		a := f.d.api
		if dynamic > f.dynamic {
			if err := f.d.check("cuFuncSetAttribute", a.FuncSetAttribute(f.handle, funcMaxDynamic, int32(dynamic))); err != nil {
				return err
			}
			f.dynamic = dynamic
		}
		values := make([]uint64, len(args)+1) // little-endian: a smaller scalar is at the start of its word
		params := make([]unsafe.Pointer, len(args)+1)
		var pin runtime.Pinner
		defer pin.Unpin()
		pin.Pin(&values[0])
		for i, x := range args {
			values[i] = x.bits
			params[i] = unsafe.Pointer(&values[i])
		}
		pin.Pin(&params[0])
		return f.d.check("cuLaunchKernel "+f.Name, a.Launch(f.handle, uint32(grid[0]), uint32(grid[1]), uint32(grid[2]),
			uint32(block[0]), uint32(block[1]), uint32(block[2]), uint32(dynamic), 0, &params[0], nil))
	})
}

// Sync waits until everything launched is done, and reports a kernel that failed.
func (d *Device) Sync() error {
	return d.do(func() error { return d.check("cuCtxSynchronize", d.api.CtxSynchronize()) })
}

// Time measures the device's milliseconds between the start and the end of what run launches.
func (d *Device) Time(run func() error) (ms float32, err error) {
	var events [2]uintptr
	for i := range events {
		if err := d.do(func() error { return d.check("cuEventCreate", d.api.EventCreate(&events[i], 0)) }); err != nil {
			return 0, err
		}
		defer func() {
			err = errors.Join(err, d.do(func() error { return d.check("cuEventDestroy", d.api.EventDestroy(events[i])) }))
		}()
	}
	record := func(i int) error {
		return d.do(func() error { return d.check("cuEventRecord", d.api.EventRecord(events[i], 0)) })
	}
	if err := record(0); err != nil {
		return 0, err
	}
	if err := run(); err != nil {
		return 0, err
	}
	if err := record(1); err != nil {
		return 0, err
	}
	err = d.do(func() error {
		if err := d.check("cuEventSynchronize", d.api.EventSynchronize(events[1])); err != nil {
			return err
		}
		return d.check("cuEventElapsedTime", d.api.EventElapsed(&ms, events[0], events[1]))
	})
	return ms, err
}
