// The conformance command exports cases that PyTorch made, has tools/judge/conformance/run.py run the results in onnxruntime and compare
// them with PyTorch's, prints the score beside that of torch.onnx where that is known, and holds it:
// a case that fails and is not on the list of expected failures is an error, and so is one on the list that passes.
//
// The cases are those of ../shared/cases, or, in a checkout without them, those that make_cases.py makes (`make cases`). Each has lists
// of its own. run.py may be called directly, for cases that lie elsewhere:
//
//	.venv/bin/python tools/judge/conformance/run.py --cases DIR --jobs 2 --results out/mine.jsonl \
//	  --exporter 'bin/aton export {model} -o {output} --opset {opset} {specs:--input}'
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

type options struct {
	shared, cases, set, filter, python, jobs, exporter, results, format, share string
	opset                                                                      int
	update, noCheck, fresh, large, reasons                                     bool
	opsets                                                                     string
}

func main() {
	var o options
	flag.StringVar(&o.shared, "shared", "../shared", "the folder with cases/ (and conformance/, which makes the models)")
	flag.StringVar(&o.set, "set", "", "shipped (the cases in --shared, the default where they are), made (those of make cases), edges (numbers at their edges, and gradients, testdata/edges.tar.gz and gradients.tar.gz), models (whole networks, made by the system's PyTorch) or old (the other suites, made by it)")
	flag.StringVar(&o.cases, "cases", "", "where the cases lie or are put (default out/cases, out/cases-SET)")
	flag.StringVar(&o.filter, "filter", "", "only cases whose SUITE/ID matches this regular expression")
	flag.StringVar(&o.share, "share", "", "only that part of the cases, such as 0.15")
	flag.IntVar(&o.opset, "opset", 0, "instead of the opset that the cases ask for (each opset has a list of its own)")
	flag.StringVar(&o.format, "input-format", "archive", "archive or pt2 (a list of its own)")
	flag.StringVar(&o.python, "python", ".venv/bin/python", "a Python that has onnx, onnxruntime and numpy")
	flag.StringVar(&o.jobs, "jobs", "2", "cases at a time")
	flag.StringVar(&o.exporter, "exporter", "", "the command (default bin/aton, with the inputs' types for archives; exported programs state their own)")
	flag.StringVar(&o.results, "results", "", "where the results go (default out/conformance-SET.jsonl)")
	flag.BoolVar(&o.update, "update", false, "write the list of expected failures anew; reasons stay")
	flag.BoolVar(&o.noCheck, "no-check", false, "leave onnx.checker out, which is quicker")
	flag.BoolVar(&o.large, "large", false, "of the models also the large ones, which takes an hour and 6 GB")
	flag.BoolVar(&o.fresh, "fresh", false, "make the cases again")
	flag.BoolVar(&o.reasons, "reasons", false, "print the list of expected failures by reason, with counts; runs nothing")
	flag.StringVar(&o.opsets, "opsets", "", "run at each of these opsets, such as 7,11,13,21, and print one table")
	flag.Parse()
	code, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		code = 1
	}
	os.Exit(code)
}

func run(o options) (int, error) {
	if o.format != "archive" && o.format != "pt2" {
		return 0, fmt.Errorf("--input-format is archive or pt2, not %q", o.format)
	}
	shipped := filepath.Join(o.shared, "cases", "torch2.15.tar.xz")
	if _, err := os.Stat(shipped); o.set == "" && err == nil {
		o.set = "shipped"
	} else if o.set == "" {
		o.set = "made"
	}
	if _, err := os.Stat(filepath.Join(o.shared, "conformance")); err != nil {
		o.shared = "" // models and old cases are made by what is here
	}
	name := map[string]string{"shipped": "", "made": "-made", "edges": "-edges", "models": "-models", "old": "-old"}
	suffix, ok := name[o.set]
	if !ok {
		return 0, fmt.Errorf("--set is shipped, made, edges, models or old, not %q", o.set)
	}
	if o.shared == "" && (o.set == "models" || o.set == "old") {
		suffix = "-made" + suffix
	}
	if o.cases == "" {
		o.cases = filepath.Join("out", "cases"+suffix)
	}
	if o.format == "pt2" {
		suffix += "-pt2"
	}
	if o.opset != 0 {
		suffix += "-opset" + strconv.Itoa(o.opset)
	}
	if o.exporter == "" {
		o.exporter = "bin/aton export {model} -o {output} --opset {opset} --repro="
		if o.format == "archive" {
			o.exporter += " {specs:--input}"
		}
	}
	if o.results == "" {
		o.results = filepath.Join("out", "conformance"+suffix+".jsonl")
	}
	list := filepath.Join("tools", "judge", "conformance", "expected-failures"+suffix+".tsv")
	if o.reasons {
		expected, err := readList(list)
		if err == nil {
			fmt.Print(reasonsTable(expected))
		}
		return 0, err
	}
	if err := prepare(o); err != nil {
		return 0, err
	}
	if o.opsets != "" {
		return opsets(o, o.opsets)
	}
	if err := score(o); err != nil {
		return 0, err
	}
	rows, err := readResults(o.results)
	if err != nil {
		return 0, err
	}
	peers := map[string]peer{}
	if o.set == "shipped" {
		if peers, err = readPeers(filepath.Join(filepath.Dir(shipped), "peer_results.tsv")); err != nil {
			return 0, err
		}
	}
	fmt.Print(scoreboard(rows, peers))
	fmt.Printf("\nresults: %s\n", o.results)
	expected, err := readList(list)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	listed := err == nil
	code := 0
	if o.update {
		if err := os.WriteFile(list, []byte(renew(expected, rows)), 0o666); err != nil {
			return 0, err
		}
		fmt.Printf("%s: written\n", list)
	} else if listed {
		report, good := ratchet(expected, rows)
		fmt.Print(report)
		if !good {
			fmt.Printf("\nThe score differs from %s. If that is meant: add --update.\n", list)
			code = 1
		}
	} else {
		fmt.Printf("%s: there is no such list, so nothing holds this score (--update makes one)\n", list)
	}
	passed := 0
	for _, r := range rows {
		if r.Result == "pass" {
			passed++
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, len(rows)-passed)
	return code, nil
}

// prepare unpacks or makes the cases where they are not there yet.
func prepare(o options) error {
	// the mark tells a full folder from one whose making was interrupted
	mark := filepath.Join(o.cases, ".complete")
	_, err := os.Stat(mark)
	if err == nil && !o.fresh {
		return nil
	}
	if _, err := os.Stat(o.cases); err == nil && !o.fresh && !strings.HasPrefix(filepath.Clean(o.cases), "out"+string(filepath.Separator)) {
		return nil // somebody's own folder of cases
	}
	if o.set == "made" {
		return fmt.Errorf("there are no cases in %s: make cases TORCH=PYTHON makes them, with a Python that has PyTorch (half an hour)", o.cases)
	}
	if err := os.MkdirAll(o.cases, 0o777); err != nil {
		return err
	}
	switch o.set {
	case "shipped":
		return unpack(filepath.Join(o.shared, "cases", "torch2.15.tar.xz"), o.cases, mark)
	case "edges":
		if err := unpack(filepath.Join("testdata", "gradients.tar.gz"), filepath.Join(o.cases, "gradients"), filepath.Join(o.cases, ".gradients")); err != nil {
			return err
		}
		return unpack(filepath.Join("testdata", "edges.tar.gz"), filepath.Join(o.cases, "edges"), mark)
	}
	python := "/usr/bin/python3" // the one that Debian's packages belong to, whatever else is on PATH
	if _, err := os.Stat(python); err != nil {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import torch, torchvision").Run(); err != nil {
		return fmt.Errorf("%s has no PyTorch with torchvision to make the cases with: on Debian, apt-get install python3-torch python3-torchvision", python)
	}
	if o.shared == "" {
		args := []string{filepath.Join("tools", "judge", "conformance", "make_cases.py"), "--out", o.cases, "--jobs", o.jobs}
		if o.set == "models" {
			args = append(args, "--suite", "models")
		}
		if o.large {
			args = append(args, "--large")
		}
		if err := tell(python, args...); err != nil {
			return err
		}
		return os.WriteFile(mark, nil, 0o666)
	}
	suites := []string{"models"}
	if o.set == "old" {
		suites = []string{"indexing", "nn", "script", "opinfo"}
	}
	for _, suite := range suites {
		fmt.Printf("making the suite %s with the system's PyTorch; this takes minutes\n", suite)
		args := []string{filepath.Join(o.shared, "conformance", "conformance.py"), "generate", "--suite", suite, "--out", o.cases, "--jobs", o.jobs, "--samples", "3"}
		if o.large {
			args = append(args, "--large", "--case-timeout", "900", "--unit-timeout", "2400")
		}
		if err := tell(python, args...); err != nil {
			return err
		}
	}
	return os.WriteFile(mark, nil, 0o666)
}

// unpack extracts an archive of cases into a folder and leaves the mark that it is complete.
func unpack(archive, folder, mark string) error {
	fmt.Printf("unpacking %s into %s\n", archive, folder)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	if err := tell("tar", "-xf", archive, "-C", folder); err != nil {
		return err
	}
	return os.WriteFile(mark, nil, 0o666)
}

// score has run.py run the exporter and judge what it wrote.
func score(o options) error {
	if err := os.MkdirAll(filepath.Dir(o.results), 0o777); err != nil {
		return err
	}
	if err := exec.Command(o.python, "-c", "import onnx, onnxruntime, numpy").Run(); err != nil {
		return fmt.Errorf("%s cannot import onnx, onnxruntime and numpy: make .venv", o.python)
	}
	if program, _, _ := strings.Cut(o.exporter, " "); strings.Contains(program, "/") {
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("there is no exporter %s: make build", program)
		}
	}
	args := []string{filepath.Join("tools", "judge", "conformance", "run.py"), "--cases", o.cases,
		"--jobs", o.jobs, "--exporter", o.exporter, "--results", o.results, "--input-format", o.format}
	if o.filter != "" {
		args = append(args, "--filter", o.filter)
	}
	if o.share != "" {
		args = append(args, "--share", o.share)
	}
	if o.opset != 0 {
		args = append(args, "--opset", strconv.Itoa(o.opset))
	}
	if o.noCheck {
		args = append(args, "--no-check")
	}
	cmd := exec.Command(o.python, args...)
	cmd.Stderr = os.Stderr
	return wrap(cmd.Run(), "run.py")
}

func tell(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return wrap(cmd.Run(), name)
}

func wrap(err error, what string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
