package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/cost"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/ptx"
)

//go:embed registers.tsv
var registersTSV string

// registersFile is where the table stands, from the root of the repository.
var registersFile = filepath.Join("tools", "measure", "gpureport", "registers.tsv")

// registers are those of a thread, by kernel and processor. A kernel's name says what it does, so a number that stands in the table stays right.
type registers struct {
	ptxas string // the assembler, "" if there is none
	table map[string][]int64
	seen  map[string]bool
}

// readRegisters reads the table.
func readRegisters() (*registers, error) {
	r := &registers{ptxas: os.Getenv("ATON_PTXAS"), table: map[string][]int64{}, seen: map[string]bool{}}
	lines := strings.Split(strings.TrimSuffix(registersTSV, "\n"), "\n")
	if lines[0] != r.header() {
		return nil, fmt.Errorf("registers.tsv: its columns are not %q", r.header())
	}
	for i, s := range lines[1:] {
		f := strings.Split(s, "\t")
		if len(f) != 1+len(cost.Machines()) {
			return nil, fmt.Errorf("registers.tsv: line %d has %d columns", i+2, len(f))
		}
		for _, s := range f[1:] {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < 1 {
				return nil, fmt.Errorf("registers.tsv: line %d: %q registers", i+2, s)
			}
			r.table[f[0]] = append(r.table[f[0]], n)
		}
	}
	return r, nil
}

func (r *registers) header() string {
	out := "kernel"
	for _, m := range cost.Machines() {
		out += "\t" + m.Target
	}
	return out
}

// know finds the registers of a kernel, by the assembler if there is one; it reports that they are known.
func (r *registers) know(k *kir.Kernel) (bool, error) {
	if r.ptxas != "" && !r.seen[k.Name] {
		var ns []int64
		for _, m := range cost.Machines() {
			n, err := r.assemble(k, m.Target)
			if err != nil {
				return false, err
			}
			ns = append(ns, n)
		}
		r.table[k.Name] = ns
	}
	r.seen[k.Name] = true
	return r.table[k.Name] != nil, nil
}

var usedRegisters = regexp.MustCompile(`Used (\d+) registers`)

func (r *registers) assemble(k *kir.Kernel, target string) (int64, error) {
	o := ptx.Options{Target: target}
	if target != "sm_80" {
		o.Version = "7.8"
	}
	text, err := ptx.Print(k, o)
	if err != nil {
		return 0, err
	}
	c := exec.Command(r.ptxas, "-arch="+target, "-v", "-o", os.DevNull, "-")
	c.Stdin = strings.NewReader(text)
	said, err := c.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%s: %w: %s", r.ptxas, err, said)
	}
	m := usedRegisters.FindSubmatch(said)
	if m == nil {
		return 0, errors.New("the assembler does not tell the registers")
	}
	return strconv.ParseInt(string(m[1]), 10, 64)
}

// of are the registers on a machine, 0 if they are not known.
func (r *registers) of(k *kir.Kernel, m *cost.Machine) (int64, error) {
	if ns := r.table[k.Name]; ns != nil {
		return ns[slices.Index(cost.Machines(), m)], nil
	}
	return 0, nil
}

// save writes the table, without kernels that are no longer there.
func (r *registers) save() error {
	out := r.header() + "\n"
	var names []string
	for name := range r.table {
		if r.seen[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		out += name
		for _, n := range r.table[name] {
			out += "\t" + strconv.FormatInt(n, 10)
		}
		out += "\n"
	}
	return save(registersFile, out)
}
