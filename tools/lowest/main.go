// Command lowest finds the lowest opset at which each operator of PyTorch converts, by trying: every archive of the
// conformance cases is converted at opset 7, then 8, until it does, and counts for all operators in it.
//
//	go run ./tools/lowest -cases DIR -out dialects/aten/lowest.tsv
//
// DIR holds suites of cases. An operator that converts at opset 7 is not listed, nor is one that is in no case.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes/inline"
	"github.com/aton-project/aton/ssa"
)

func main() {
	cases := flag.String("cases", "", "folder of suites of cases")
	out := flag.String("out", "dialects/aten/lowest.tsv", "the file to write")
	flag.Parse()
	if err := run(*cases, *out); err != nil {
		fmt.Fprintln(os.Stderr, "lowest:", err)
		os.Exit(1)
	}
}

func run(cases, out string) error {
	files, err := filepath.Glob(filepath.Join(cases, "*", "*", "case.json"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s: no cases", cases)
	}
	slices.Sort(files)
	lowest := map[ssa.Kind]int{}
	for _, f := range files {
		kinds, n, err := try(f)
		if err != nil {
			continue // it converts at no opset
		}
		for _, k := range kinds {
			if was := lowest[k]; was == 0 || n < was {
				lowest[k] = n
			}
		}
	}
	var b strings.Builder
	b.WriteString("# The lowest opset at which an operator converts, where that is above 7. Made by tools/lowest.\n")
	for _, k := range slices.Sorted(maps.Keys(lowest)) {
		if lowest[k] > aton.OldestOpset {
			fmt.Fprintf(&b, "%s\t%d\n", k, lowest[k])
		}
	}
	return os.WriteFile(out, []byte(b.String()), 0o666)
}

// try gives the operators of a case's program and the lowest opset at which it converts.
func try(file string) (kinds []ssa.Kind, opset int, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, 0, err
	}
	var c struct {
		InputSpecs  []string                     `json:"input_specs"`
		DynamicAxes map[string]map[string]string `json:"dynamic_axes"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return nil, 0, err
	}
	inputs, err := spec.ParseAll(c.InputSpecs, c.DynamicAxes)
	if err != nil {
		return nil, 0, err
	}
	path := filepath.Join(filepath.Dir(file), "model.pt")
	for n := aton.OldestOpset; n <= onnx.Newest; n++ {
		opts := aton.Options{Inputs: inputs, Opset: n}
		m, err := aton.Load(path, opts)
		if err != nil {
			return nil, 0, err
		}
		if n == aton.OldestOpset {
			inline.Run(m)
			for o := range m.Main().Body.AllOps() {
				if ns := o.Kind.Namespace(); ns != "prim" && !slices.Contains(kinds, o.Kind) {
					kinds = append(kinds, o.Kind)
				}
			}
			if m, err = aton.Load(path, opts); err != nil {
				return nil, 0, err
			}
		}
		if _, err = aton.Lower(m, opts); err == nil {
			return kinds, n, nil
		}
	}
	return nil, 0, fmt.Errorf("no opset")
}
