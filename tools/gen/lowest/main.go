// Command lowest finds the lowest opset at which each operator of PyTorch converts, by trying: every archive of the
// conformance cases is converted at opset 7, then 8, until it does. An operator converts where no error is on its line.
//
//	go run ./tools/gen/lowest -cases DIR -out dialects/aten/lowest.tsv
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
	"github.com/aton-project/aton/ssa/diag"
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
		if err := try(f, lowest); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	var b strings.Builder
	b.WriteString("# The lowest opset at which an operator converts, where that is above 7. Made by tools/gen/lowest.\n")
	for _, k := range slices.Sorted(maps.Keys(lowest)) {
		if lowest[k] > aton.OldestOpset {
			fmt.Fprintf(&b, "%s\t%d\n", k, lowest[k])
		}
	}
	return os.WriteFile(out, []byte(b.String()), 0o666)
}

// try converts a case's program at one opset after the other until it converts, and notes the operators that do. Where it does
// not convert as a whole, those do that stand on lines without an error.
func try(file string, lowest map[ssa.Kind]int) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var c struct {
		InputSpecs  []string                     `json:"input_specs"`
		DynamicAxes map[string]map[string]string `json:"dynamic_axes"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	inputs, err := spec.ParseAll(c.InputSpecs, c.DynamicAxes)
	if err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(file), "model.pt")
	for n := aton.OldestOpset; n <= onnx.Newest; n++ {
		opts := aton.LoadOptions{Inputs: inputs}
		program, err := aton.Load(path, opts)
		if err != nil {
			return err
		}
		inline.Run(program)
		m, err := aton.Load(path, opts)
		if err != nil {
			return err
		}
		list, err := aton.Check(m, aton.ConvertOptions{Opset: n})
		if err != nil || list == nil {
			return err
		}
		wrong := map[string]bool{}
		for _, d := range list.Items {
			if d.Severity == diag.Error {
				wrong[list.Table.String(d.Loc)] = true
			}
		}
		if wrong[""] {
			continue // of an operator that has no line
		}
		for o := range program.Main().Body.AllOps() {
			if was := lowest[o.Kind]; o.Kind.Namespace() != "prim" && !wrong[program.Locs.String(o.Loc)] && (was == 0 || n < was) {
				lowest[o.Kind] = n
			}
		}
		if len(wrong) == 0 {
			return nil
		}
	}
	return nil
}
