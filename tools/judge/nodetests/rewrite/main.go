// Command rewrite exports ONNX's node tests to several opsets, in one process: tools/judge/nodetests/rewrite.py runs what it
// writes and judges it.
//
// usage: rewrite FOLDER OPSET...
//
// For each FOLDER/CASE/model.onnx it does what `aton export model.onnx --opset OPSET` does, and writes
// FOLDER/CASE/aton.OPSET.onnx, or FOLDER/CASE/aton.OPSET.txt with the reason where it refuses.
package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/aton-project/aton/tools/cmd/aton/cmd"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: rewrite FOLDER OPSET...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "rewrite:", err)
		os.Exit(1)
	}
}

func run(folder string, opsets []string) error {
	for _, o := range opsets {
		if _, err := strconv.Atoi(o); err != nil {
			return fmt.Errorf("%q is no opset", o)
		}
	}
	models, err := filepath.Glob(filepath.Join(folder, "*", "model.onnx"))
	if err != nil || len(models) == 0 {
		return fmt.Errorf("%s has no CASE/model.onnx", folder)
	}
	work := make(chan string)
	errs := make([]error, runtime.NumCPU())
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for model := range work {
				for _, opset := range opsets {
					if err := rewrite(model, opset); err != nil {
						errs[i] = err
					}
				}
			}
		})
	}
	for _, m := range models {
		work <- m
	}
	close(work)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// rewrite exports one model. A panic is a refusal with the word panic in it, which rewrite.py counts as wrong.
func rewrite(model, opset string) (err error) {
	base := filepath.Join(filepath.Dir(model), "aton."+opset)
	for _, old := range []string{base + ".onnx", base + ".txt"} {
		if err := os.Remove(old); err != nil && !os.IsNotExist(err) {
			return err.(*fs.PathError)
		}
	}
	var stderr bytes.Buffer
	status := func() (status int) {
		defer func() {
			if r := recover(); r != nil {
				fmt.Fprintf(&stderr, "panic: %v", r)
				status = 1
			}
		}()
		return cmd.Main([]string{"export", model, "-o", base + ".onnx", "--opset", opset, "--repro", ""}, strings.NewReader(""), &stderr, &stderr)
	}()
	if status == 0 {
		return nil
	}
	reason := strings.ReplaceAll(stderr.String(), model+": ", "")
	return os.WriteFile(base+".txt", []byte(reason), 0o666)
}
