// Command passcheck evaluates programs before and after every pass of the
// default pipeline, on random inputs, and reports each difference.
//
//	go run ./tools/judge/passcheck -cases DIR [-suites nn,indexing,script] [-filter RE] [-opset 17] [-seeds 1]
//
// DIR holds suites of cases (tools/lib/cases). Inputs have the shapes
// and element types of the recorded ones, with elements drawn from the range of
// these, so that indices stay in bounds; the recorded inputs themselves are
// tried too, against PyTorch's outputs. The program itself and what passes on its
// own operators make of it run in the eager evaluator, ONNX operators in the
// reference interpreter.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

func main() {
	cases := flag.String("cases", "", "folder of suites of cases")
	suites := flag.String("suites", "nn,indexing,script", "which suites")
	filter := flag.String("filter", "", "regular expression over SUITE/CASE")
	opset := flag.Int("opset", 17, "the opset")
	seeds := flag.Int("seeds", 1, "random inputs for each recorded data set")
	verbose := flag.Bool("v", false, "say what was left out, too")
	flag.Parse()
	re, err := regexp.Compile(*filter)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	c := &check{opset: *opset, seeds: *seeds, passes: map[string]*tally{}, left: map[string]int{}}
	for _, suite := range strings.Split(*suites, ",") {
		folders, err := filepath.Glob(filepath.Join(*cases, suite, "*", "case.json"))
		if err != nil || len(folders) == 0 {
			fmt.Fprintf(os.Stderr, "%s: no cases\n", filepath.Join(*cases, suite))
			os.Exit(2)
		}
		sort.Strings(folders)
		for _, f := range folders {
			dir := filepath.Dir(f)
			name := suite + "/" + filepath.Base(dir)
			if !re.MatchString(name) {
				continue
			}
			if err := c.run(name, dir); err != nil {
				c.left[reason(err)]++
				if *verbose {
					fmt.Printf("%s: left out: %v\n", name, err)
				}
			}
		}
	}
	c.report()
	if c.differences > 0 {
		os.Exit(1)
	}
}

// reason shortens an error to what it is about.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i > 0 && len(text) > 90 {
		text = text[i+2:]
	}
	if len(text) > 90 {
		text = text[:90]
	}
	return text
}

// tally counts for one pass.
type tally struct {
	order                       int
	compared, unchanged, differ int
}

type check struct {
	opset, seeds int
	passes       map[string]*tally
	left         map[string]int
	programs     int
	differences  int
}

func (c *check) tally(pass string) *tally {
	t := c.passes[pass]
	if t == nil {
		t = &tally{order: len(c.passes)}
		c.passes[pass] = t
	}
	return t
}

func (c *check) report() {
	names := make([]string, 0, len(c.passes))
	for n := range c.passes {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool { return c.passes[names[i]].order < c.passes[names[j]].order })
	fmt.Printf("%d programs\n| pass | runs that changed the program | equal | different | runs that changed nothing |\n|---|---|---|---|---|\n", c.programs)
	for _, n := range names {
		t := c.passes[n]
		fmt.Printf("| %s | %d | %d | %d | %d |\n", n, t.compared, t.compared-t.differ, t.differ, t.unchanged)
	}
	total := 0
	for _, n := range c.left {
		total += n
	}
	fmt.Printf("%d programs were left out\n", total)
	why := make([]string, 0, len(c.left))
	for n := range c.left {
		why = append(why, n)
	}
	sort.Slice(why, func(i, j int) bool {
		if a, b := c.left[why[i]], c.left[why[j]]; a != b {
			return a > b
		}
		return why[i] < why[j]
	})
	for _, n := range why {
		fmt.Printf("  %4d  %s\n", c.left[n], n)
	}
}

// recorded is what is needed of case.json.
type recorded struct {
	InputSpecs  []string                     `json:"input_specs"`
	DynamicAxes map[string]map[string]string `json:"dynamic_axes"`
	Rtol, Atol  float64
}

// feed is the inputs of one evaluation, and the outputs if PyTorch recorded them.
type feed struct {
	verify.DataSet
	recorded bool
}

func (c *check) feeds(dir string, rng *rand.Rand) ([]feed, error) {
	sets, err := verify.ReadData(dir)
	if err != nil {
		return nil, err
	}
	var out []feed
	for _, set := range sets {
		out = append(out, feed{set, true})
		for k := range c.seeds {
			g := feed{DataSet: verify.DataSet{Name: fmt.Sprintf("%s, random %d", set.Name, k)}}
			for _, in := range set.Inputs {
				g.Inputs = append(g.Inputs, verify.Named{Name: in.Name, Tensor: randomLike(in.Tensor, rng)})
			}
			out = append(out, g)
		}
	}
	return out, nil
}

// randomLike draws elements from the range of t's.
func randomLike(t *tensor.Tensor, rng *rand.Rand) *tensor.Tensor {
	switch {
	case t.NumElements() == 0 || t.DType.IsComplex() || t.DType == tensor.String:
		return t
	case t.DType.IsFloat():
		v := t.Float64s()
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, x := range v {
			if !math.IsNaN(x) && !math.IsInf(x, 0) {
				lo, hi = min(lo, x), max(hi, x)
			}
		}
		if lo > hi {
			return t
		}
		for i := range v {
			v[i] = lo + (hi-lo)*rng.Float64()
		}
		return tensor.FromFloats(t.DType, t.Shape, v)
	}
	v := t.Int64s()
	lo, hi := v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	for i := range v {
		v[i] = lo + rng.Int64N(max(hi-lo+1, 1))
	}
	return tensor.FromInts(t.DType, t.Shape, v)
}

func (c *check) run(name, dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "case.json"))
	if err != nil {
		return err
	}
	var r recorded
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	inputs, err := spec.ParseAll(r.InputSpecs, r.DynamicAxes)
	if err != nil {
		return err
	}
	opts := aton.ConvertOptions{Opset: c.opset}
	load := func() (*ssa.Module, error) {
		return aton.Load(filepath.Join(dir, "model.pt"), aton.LoadOptions{Inputs: inputs})
	}
	m, err := load()
	if err != nil {
		return err
	}
	if _, err := aton.Convert(m, opts); err != nil {
		return errors.New("it is not converted")
	}
	feeds, err := c.feeds(dir, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		return err
	}
	if m, err = load(); err != nil {
		return err
	}
	kept := feeds[:0]
	var last [][]verify.Named
	for _, f := range feeds {
		ran, err := verify.Verifier{}.RunProgram(m, f.DataSet, nil)
		switch {
		case err == nil && ran.Random:
			return errors.New("it draws random numbers")
		case err == nil && f.recorded && differ(ran.Outputs, f.Outputs, max(r.Rtol, 1e-4), max(r.Atol, 1e-5)) != nil:
			return errors.New("PyTorch's outputs are others (beyond the tolerance)")
		case err == nil:
			kept, last = append(kept, f), append(last, ran.Outputs)
		case f.recorded:
			return err
		}
		if m, err = load(); err != nil { // a run may change what the program keeps
			return err
		}
	}
	feeds = kept
	c.programs++
	opts.Runner = &passes.Runner{Observers: []passes.Observer{{AfterPass: func(e *passes.Event) {
		t := c.tally(e.Pass.Name)
		if !e.Changed() {
			t.unchanged++
			return
		}
		t.compared++
		wrong := false
		for i, f := range feeds {
			out, err := verify.Run(e.Module, f.DataSet)
			if err == nil {
				err = differ(out, last[i], 1e-4, 1e-5)
			}
			if err != nil {
				fmt.Printf("%s: behind %s, %s: %v\n", name, e.Text, f.Name, err)
				wrong = true
				continue
			}
			last[i] = out
		}
		if wrong {
			t.differ++
			c.differences++
		}
	}}}}
	_, err = aton.Convert(m, opts)
	return err
}

// differ says where two lists of results differ by more than rounding.
func differ(got, want []verify.Named, rtol, atol float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs instead of %d", len(got), len(want))
	}
	for i := range got {
		g, w := got[i].Tensor, want[i].Tensor
		float := g.DType == tensor.Float32 && w.DType == tensor.Float64 && len(w.Shape) == 0 // a Python float
		if g.DType != w.DType && !float || fmt.Sprint(g.Shape) != fmt.Sprint(w.Shape) {
			return fmt.Errorf("output %d is %v instead of %v", i, g, w)
		}
		if !g.DType.IsFloat() {
			if g.DType.IsComplex() || g.DType == tensor.String {
				continue
			}
			a, b := g.Int64s(), w.Int64s()
			for k := range a {
				if a[k] != b[k] {
					return fmt.Errorf("output %d: element %d is %d instead of %d", i, k, a[k], b[k])
				}
			}
			continue
		}
		if g.DType.Size() == 2 { // a rounding of half precision
			rtol, atol = max(rtol, 1e-2), max(atol, 1e-2)
		}
		a, b := g.Float64s(), w.Float64s()
		for k := range a {
			if a[k] == b[k] || math.IsNaN(a[k]) && math.IsNaN(b[k]) {
				continue
			}
			if d := math.Abs(a[k] - b[k]); !(d <= atol+rtol*math.Abs(b[k])) {
				return fmt.Errorf("output %d: element %d is %g instead of %g", i, k, a[k], b[k])
			}
		}
	}
	return nil
}
