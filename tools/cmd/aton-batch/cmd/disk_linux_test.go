package cmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// disk is a small file system of its own, in memory.
type disk struct{ at string }

// mount makes one, if the user may; else it gives nil.
func mount(at string, bytes int64) *disk {
	if syscall.Mount("none", at, "tmpfs", 0, "size="+strconv.FormatInt(bytes, 10)) != nil {
		return nil
	}
	return &disk{at}
}

func (d *disk) filler() string { return filepath.Join(d.at, ".filler") }

// fill takes all room that there is.
func (d *disk) fill() {
	f, err := os.OpenFile(d.filler(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 4 {
		for block := make([]byte, size); err == nil; {
			_, err = f.Write(block)
		}
		err = nil
	}
}

func (d *disk) full() bool {
	_, err := os.Stat(d.filler())
	return err == nil
}

func (d *disk) empty() { _ = os.Remove(d.filler()) }

func (d *disk) unmount() { _ = syscall.Unmount(d.at, syscall.MNT_DETACH) }

func suspend(c *exec.Cmd) { _ = c.Process.Signal(syscall.SIGSTOP) }
func resume(c *exec.Cmd)  { _ = c.Process.Signal(syscall.SIGCONT) }

func (d *disk) remount(options string) {
	_ = syscall.Mount("none", d.at, "tmpfs", syscall.MS_REMOUNT, options)
}

// withoutExec lets no program of it be run.
func (d *disk) withoutExec() error {
	return syscall.Mount("none", d.at, "tmpfs", syscall.MS_REMOUNT|syscall.MS_NOEXEC, "")
}
