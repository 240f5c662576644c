// Command graphdiff loads the archives of conformance cases.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"
	"strings"

	"github.com/aton-project/aton/frontend/jit"
	"github.com/aton-project/aton/passes/freeze"
	"github.com/aton-project/aton/passes/inline"
	"github.com/aton-project/aton/ssa"
)

func main() {
	fails := map[string][]string{}
	n, ok := 0, 0
	for _, root := range os.Args[1:] {
		files, _ := filepath.Glob(filepath.Join(root, "*", "model.pt"))
		if strings.HasSuffix(root, ".pt") {
			files = []string{root}
		}
		for _, f := range files {
			n++
			err := try(f, len(files) == 1)
			if err == nil {
				ok++
				continue
			}
			k := err.Error()
			fails[k] = append(fails[k], f)
		}
	}
	var ks []string
	for k := range fails {
		ks = append(ks, k)
	}
	sort.Slice(ks, func(i, j int) bool { return len(fails[ks[i]]) > len(fails[ks[j]]) })
	for _, k := range ks {
		fmt.Printf("%d %s\n   %s\n", len(fails[k]), k, fails[k][0])
	}
	fmt.Println(ok, "of", n)
}

var state = map[string]int{}

func try(f string, print bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("PANIC %v\n%s", r, debug.Stack())
		}
	}()
	m, err := jit.Load(f, jit.Options{})
	if err != nil {
		return err
	}
	if print {
		fmt.Println(ssa.Print(m))
	}
	if err := ssa.Verify(m); err != nil {
		return err
	}
	if err := inline.Run(m).Err(); err != nil {
		return err
	}
	if err := ssa.Verify(m); err != nil {
		return fmt.Errorf("inlined: %w", err)
	}
	if err := freeze.Run(m, false).Err(); err != nil {
		return err
	}
	if print {
		fmt.Println(ssa.Print(m))
	}
	if err := ssa.Verify(m); err != nil {
		return fmt.Errorf("frozen: %w", err)
	}
	for o := range m.Main().Body.AllOps() {
		if (o.Kind == "prim::GetAttr" || o.Kind == "prim::SetAttr") && state[string(o.Kind)] < 40 {
			state[string(o.Kind)]++
			fmt.Println("state", o.Kind, o.AttrStr("name", ""), f)
		}
	}
	return nil
}
