// Package cuda runs kernels on an NVIDIA GPU. It is a backend of package exec, and gives the driver the PTX that package ptx prints.
package cuda

import (
	"fmt"

	"github.com/aton-project/aton/codegen/gpu/driver"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/llvm"
	"github.com/aton-project/aton/codegen/gpu/ptx"
)

// Backend runs kernels on a device. Close gives the device back.
type Backend struct {
	dev *driver.Device
	// LLC makes PTX with llc instead of aton's printer.
	LLC *ptx.LLC
}

// Open opens the first device. Without an NVIDIA driver the error is driver.ErrNoDriver.
func Open() (*Backend, error) {
	d, err := driver.Open(0)
	if err != nil {
		return nil, err
	}
	return &Backend{dev: d}, nil
}

// On makes a backend of an open device.
func On(d *driver.Device) *Backend { return &Backend{dev: d} }

// Close gives the device back.
func (b *Backend) Close() error { return b.dev.Close() }

// Name is the device's.
func (b *Backend) Name() string { return "cuda " + b.dev.Info.Name }

// kernel is a loaded one.
type kernel struct {
	f       *driver.Function
	threads int
}

// memory is a part of an allocation.
type memory struct {
	m              driver.Memory
	offset, length int64
}

// Load compiles the kernel for the device.
func (b *Backend) Load(k *kir.Kernel) (exec.Kernel, error) {
	var text string
	var err error
	if b.LLC != nil {
		text, err = b.LLC.Compile(llvm.Lower(k), ptx.Options{})
	} else {
		text, err = ptx.Print(k, ptx.Options{})
	}
	if err != nil {
		return nil, err
	}
	module, err := b.dev.Load(text)
	if err != nil {
		return nil, err
	}
	f, err := module.Function(k.Name)
	if err != nil {
		return nil, err
	}
	return &kernel{f, k.Threads}, nil
}

// Alloc reserves memory.
func (b *Backend) Alloc(bytes int64) (exec.Memory, error) {
	m, err := b.dev.Alloc(int(bytes))
	if err != nil {
		return nil, err
	}
	return &memory{m, 0, bytes}, nil
}

// Slice is a part of an allocation.
func (b *Backend) Slice(m exec.Memory, offset, bytes int64) exec.Memory {
	p := m.(*memory)
	return &memory{p.m, p.offset + offset, bytes}
}

// Free gives an allocation back.
func (b *Backend) Free(m exec.Memory) error { return b.dev.Free(m.(*memory).m) }

// Upload copies to the device.
func (b *Backend) Upload(m exec.Memory, data []byte) error {
	p := m.(*memory)
	if int64(len(data)) > p.length {
		return fmt.Errorf("%d bytes for a buffer of %d", len(data), p.length)
	}
	if len(data) == 0 {
		return nil
	}
	return b.dev.Upload(p.m, int(p.offset), data)
}

// Download copies from the device.
func (b *Backend) Download(m exec.Memory, data []byte) error {
	p := m.(*memory)
	if int64(len(data)) > p.length {
		return fmt.Errorf("%d bytes from a buffer of %d", len(data), p.length)
	}
	if len(data) == 0 {
		return nil
	}
	return b.dev.Download(data, p.m, int(p.offset))
}

// Launch starts the kernel. What goes wrong in it is reported by Sync or Download.
func (b *Backend) Launch(k exec.Kernel, grid [3]int, args []exec.Arg) (exec.Stats, error) {
	c := k.(*kernel)
	list := make([]driver.Arg, len(args))
	for i, a := range args {
		if a.Memory != nil {
			p := a.Memory.(*memory)
			list[i] = driver.Ptr(p.m, int(p.offset))
		} else {
			list[i] = driver.I32(a.Scalar)
		}
	}
	return exec.Stats{}, c.f.Launch(grid, [3]int{c.threads, 1, 1}, 0, list...)
}

// Sync waits for all launches.
func (b *Backend) Sync() error { return b.dev.Sync() }
