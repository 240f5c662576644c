// The pick command selects, of many recorded cases, the few that `make test` runs: those that reach most of aton's
// code for their size, and one of each operator. `make pick` builds it with coverage counters and runs it.
//
//	pick -opsets 7,13,17 -out testdata/cases DIR...
//
// writes testdata/cases.tar.gz, and testdata/cases.tsv with a line for each case: its folder, its format, and the opsets that
// the test exports it to. aton gives PyTorch's numbers there; other opsets reach nothing more.
//
// With -only RE the new cases replace those of the archive whose operator matches, and all others stay as they are.
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/coverage"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/internal/pack"
	"github.com/aton-project/aton/tools/lib/cases"
)

type options struct {
	opsets, out, formats, only string
	largest                    int64
	least                      float64
}

// unit is a case in one format, with the opsets at which it is right, what it covers and its size when packed.
type unit struct {
	c      *cases.Case
	format cases.Format
	opsets []int    // at which it is right
	at     []blocks // what it covers at each of them
	covers blocks   // at all of them
	run    []int    // the opsets of the test
	size   int64
}

// key names what there is to be one of: an operator, or a program of indexing or control flow.
func (u *unit) key() string { return string(u.format) + u.c.Op }

func main() {
	var o options
	flag.StringVar(&o.opsets, "opsets", "7,9,11,13,17,20,23", "the opsets that a case is exported to")
	flag.StringVar(&o.out, "out", "testdata/cases", "what to write, without .tar.gz and .tsv")
	flag.Int64Var(&o.largest, "largest", 12<<10, "a case of more bytes is left out")
	flag.Float64Var(&o.least, "least", 2, "stop when no case reaches so many new blocks of statements a kilobyte")
	flag.StringVar(&o.formats, "formats", "model.pt,model.pt2", "the forms of a program that are tried")
	flag.StringVar(&o.only, "only", "", "keep the cases of the archive that -out names whose operator does not match this regular expression")
	flag.Parse()
	if err := run(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pick:", err)
		os.Exit(1)
	}
}

func run(o options, folders []string) error {
	var opsets []int
	for _, s := range strings.Split(o.opsets, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return fmt.Errorf("%q is no opset", s)
		}
		opsets = append(opsets, n)
	}
	var units []*unit
	all := numbering{}
	for _, folder := range folders {
		dirs, err := pack.Find(folder)
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			for _, f := range strings.Split(o.formats, ",") {
				u, err := try(dir, cases.Format(f), opsets, o.largest, all)
				if err != nil {
					return err
				}
				if u != nil {
					units = append(units, u)
				}
			}
		}
	}
	fmt.Println(len(units), "cases are right and small")
	chosen := choose(units, o.least)
	schedule(chosen)
	if o.only != "" {
		root, err := os.MkdirTemp("", "pick")
		if err != nil {
			return err
		}
		defer os.RemoveAll(root)
		others, err := kept(o.out, o.only, root)
		if err != nil {
			return err
		}
		fmt.Println(len(others), "others kept")
		chosen = append(chosen, others...)
	}
	return write(o.out, chosen)
}

// kept unpacks an archive of cases to root and gives those whose operator does not match a regular expression, with the opsets that the
// list beside the archive has for them.
func kept(out, only, root string) ([]*unit, error) {
	re, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	if _, err := pack.Unpack(out+".tar.gz", root); err != nil {
		return nil, err
	}
	list, err := os.ReadFile(out + ".tsv")
	if err != nil {
		return nil, err
	}
	var units []*unit
	for i, line := range strings.Split(strings.TrimSpace(string(list)), "\n") {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("%s.tsv:%d: %q is no case", out, i+1, line)
		}
		c, err := cases.Read(filepath.Join(root, fields[0]))
		if err != nil {
			return nil, err
		}
		if re.MatchString(c.Op) {
			continue
		}
		u := &unit{c: c, format: cases.Format(fields[1])}
		for _, f := range strings.Fields(fields[2]) {
			n, err := strconv.Atoi(f)
			if err != nil {
				return nil, fmt.Errorf("%s.tsv:%d: %q is no opset", out, i+1, f)
			}
			u.run = append(u.run, n)
		}
		units = append(units, u)
	}
	return units, nil
}

// try checks one case with counters of its own; nil if it is large, refused everywhere, or not right somewhere.
func try(dir string, f cases.Format, opsets []int, largest int64, all numbering) (*unit, error) {
	c, err := cases.Read(dir)
	if err != nil {
		return nil, err
	}
	u := &unit{c: c, format: f}
	if u.size, err = packedSize(c, f); err != nil || u.size == 0 || u.size > largest {
		return nil, err
	}
	if sequences, err := filepath.Glob(filepath.Join(dir, "*", "*.seq")); err != nil || sequences != nil {
		return u, err // the interpreter's own test reads these
	}
	for _, n := range opsets {
		if err := coverage.ClearCounters(); err != nil {
			return nil, fmt.Errorf("%w; build with go build -cover -covermode=atomic -coverpkg=./... (make pick)", err)
		}
		err := c.Check(f, n)
		var refused *cases.Refusal
		switch {
		case err == nil:
			places, err := reached()
			if err != nil {
				return nil, err
			}
			b := all.set(places)
			u.opsets, u.at, u.covers = append(u.opsets, n), append(u.at, b), u.covers.with(b)
		case !errors.As(err, &refused):
			fmt.Printf("%s at opset %d is not right: %s\n", dir, n, strings.SplitN(err.Error(), "\n", 2)[0])
			return nil, nil
		}
	}
	if u.opsets == nil {
		return nil, nil
	}
	return u, nil
}

// files are those of a case in one format, relative to its folder.
func files(c *cases.Case, f cases.Format) ([]string, error) {
	if !c.Has(f) {
		return nil, nil
	}
	names := []string{string(f)}
	for _, d := range c.DataSets {
		err := fs.WalkDir(os.DirFS(c.Dir), d.Dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				names = append(names, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

func packedSize(c *cases.Case, f cases.Format) (int64, error) {
	names, err := files(c, f)
	if err != nil || names == nil {
		return 0, err
	}
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	for _, n := range names {
		data, err := os.ReadFile(filepath.Join(c.Dir, n))
		if err != nil {
			return 0, err
		}
		if _, err := gz.Write(data); err != nil {
			return 0, err
		}
	}
	err = gz.Close()
	return int64(b.Len()) + 200, err // the case.json and the names
}

// choose takes the case that reaches the most new statements for its size, again and again, then one of each operator.
func choose(units []*unit, least float64) []*unit {
	var covered blocks
	have := map[string]bool{}
	var chosen []*unit
	take := func(u *unit) {
		covered = covered.with(u.covers)
		have[u.key()] = true
		chosen = append(chosen, u)
	}
	worth := func(u *unit) float64 { return float64(u.covers.beyond(covered)) * 1024 / float64(u.size) }
	// worth only falls as others are chosen: a heap of old values gives the best one after few evaluations
	type entry struct {
		u     *unit
		worth float64
	}
	var queue []entry
	for _, u := range units {
		queue = append(queue, entry{u, worth(u)})
	}
	order := func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.u.c.Dir, b.u.c.Dir), cmp.Compare(a.u.format, b.u.format))
	}
	slices.SortFunc(queue, order)
	for len(queue) > 0 && queue[0].worth >= least {
		queue[0].worth = worth(queue[0].u)
		if at, _ := slices.BinarySearchFunc(queue[1:], queue[0], order); at > 0 {
			e := queue[0]
			copy(queue, queue[1:at+1])
			queue[at] = e
			continue
		}
		if queue[0].worth < least {
			break
		}
		take(queue[0].u)
		queue = queue[1:]
	}
	fmt.Println(len(chosen), "chosen for what they reach")
	slices.SortFunc(units, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.c.Dir, b.c.Dir), cmp.Compare(a.format, b.format))
	})
	for _, u := range units {
		if !have[u.key()] {
			take(u)
		}
	}
	fmt.Println(len(chosen), "with one of each operator")
	return chosen
}

// schedule chooses the opsets of each case: as few runs as reach what all of them reach, and one at least of each case.
func schedule(chosen []*unit) {
	type pair struct {
		u    *unit
		at   int
		gain int
	}
	var queue []pair
	for _, u := range chosen {
		for i := range u.opsets {
			queue = append(queue, pair{u, i, u.at[i].beyond(nil)})
		}
	}
	order := func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.u.c.Dir, b.u.c.Dir), cmp.Compare(a.u.format, b.u.format), cmp.Compare(a.at, b.at))
	}
	slices.SortFunc(queue, order)
	var covered blocks
	for len(queue) > 0 {
		p := queue[0]
		p.gain = p.u.at[p.at].beyond(covered)
		if p.gain == 0 {
			queue = queue[1:]
			continue
		}
		if at, _ := slices.BinarySearchFunc(queue[1:], p, order); at > 0 {
			copy(queue, queue[1:at+1])
			queue[at] = p
			continue
		}
		covered = covered.with(p.u.at[p.at])
		p.u.run = append(p.u.run, p.u.opsets[p.at])
		queue = queue[1:]
	}
	runs := 0
	for _, u := range chosen {
		if u.run == nil && u.opsets != nil {
			u.run = []int{u.opsets[len(u.opsets)/2]}
		}
		slices.Sort(u.run)
		runs += len(u.run)
	}
	fmt.Println(runs, "runs")
}

func (u *unit) name() string {
	return u.c.Suite + "/" + filepath.Base(u.c.Dir)
}

// write packs the cases, each with no more of its case.json than the tests read, and lists them.
func write(out string, chosen []*unit) error {
	root, err := os.MkdirTemp("", "pick")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	slices.SortFunc(chosen, func(a, b *unit) int { return cmp.Or(cmp.Compare(a.name(), b.name()), cmp.Compare(a.format, b.format)) })
	var list strings.Builder
	var packed []string
	for _, u := range chosen {
		if u.run != nil {
			fmt.Fprintf(&list, "%s\t%s\t%s\n", u.name(), u.format, strings.Trim(fmt.Sprint(u.run), "[]"))
		}
		names, err := files(u.c, u.format)
		if err != nil {
			return err
		}
		text, err := json.Marshal(u.c)
		if err != nil {
			return err
		}
		dir := filepath.Join(root, u.name())
		for _, n := range append(names, "case.json") {
			data := text
			if n != "case.json" {
				if data, err = os.ReadFile(filepath.Join(u.c.Dir, n)); err != nil {
					return err
				}
			}
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, n)), 0o777); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(dir, n), data, 0o666); err != nil {
				return err
			}
			if p := filepath.Join(u.name(), n); !slices.Contains(packed, p) {
				packed = append(packed, p)
			}
		}
	}
	var archive bytes.Buffer
	if err := pack.Write(&archive, root, packed); err != nil {
		return err
	}
	if err := os.WriteFile(out+".tar.gz", archive.Bytes(), 0o666); err != nil {
		return err
	}
	fmt.Printf("%s.tar.gz: %d cases, %d bytes\n", out, len(chosen), archive.Len())
	return os.WriteFile(out+".tsv", []byte(list.String()), 0o666)
}
