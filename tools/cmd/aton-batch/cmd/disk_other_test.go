//go:build !linux

package cmd

import "os/exec"

// disk is a small file system of its own, which only Linux makes for these tests.
type disk struct{}

func mount(string, int64) *disk { return nil }
func (d *disk) fill()           {}
func (d *disk) full() bool      { return false }
func (d *disk) empty()          {}
func (d *disk) unmount()        {}

func suspend(*exec.Cmd) {}
func resume(*exec.Cmd)  {}
