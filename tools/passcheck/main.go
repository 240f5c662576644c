// Command passcheck evaluates programs before and after every pass of the
// default pipeline, on random inputs, and reports each difference.
//
//	go run ./tools/passcheck -cases DIR [-suites nn,indexing,script] [-filter RE] [-opset 17] [-seeds 1]
//
// DIR holds suites of cases (tools/cases). Inputs have the shapes
// and element types of the recorded ones, with elements drawn from the range of
// these, so that indices stay in bounds; the recorded inputs themselves are
// tried too, against PyTorch's outputs. Passes on ONNX operators are evaluated as
// they are. A pass on the program's own operators has no evaluator: what it
// gives is specialized, if it is not yet, and lowered, and that is evaluated.
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
	"strconv"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
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

// feeds are the inputs of one evaluation, and the outputs if PyTorch recorded them.
type feed struct {
	name string
	in   map[string]interp.Value
	want []*tensor.Tensor
}

func (c *check) feeds(dir string, rng *rand.Rand) ([]feed, error) {
	sets, err := aton.ReadData(dir)
	if err != nil {
		return nil, err
	}
	var out []feed
	for _, set := range sets {
		f := feed{name: set.Name, in: map[string]interp.Value{}}
		for _, in := range set.Inputs {
			f.in[in.Name] = interp.Of(in.Tensor)
		}
		for _, o := range set.Outputs {
			f.want = append(f.want, o.Tensor)
		}
		out = append(out, f)
		for k := range c.seeds {
			g := feed{name: fmt.Sprintf("%s, random %d", set.Name, k), in: map[string]interp.Value{}}
			for _, in := range set.Inputs {
				g.in[in.Name] = interp.Of(randomLike(in.Tensor, rng))
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

// prefixes are the pipelines that show passes on the program's own operators. Each has canonicalize: it says what the
// constants of a trace mean.
var prefixes = []struct{ pass, text string }{
	{"", "canonicalize,specialize{opset=$},lower{opset=$}"},
	{"inline", "inline,canonicalize,specialize{opset=$},lower{opset=$}"},
	{"freeze", "inline,canonicalize,freeze,specialize{opset=$},lower{opset=$}"},
	{"cse (aten)", "inline,canonicalize,freeze,specialize{opset=$},cse,lower{opset=$}"},
	{"dce (aten)", "inline,canonicalize,freeze,specialize{opset=$},cse,dce,lower{opset=$}"},
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
	opts := aton.Options{Inputs: inputs, Opset: c.opset}
	load := func() (*ssa.Module, error) { return aton.Load(filepath.Join(dir, "model.pt"), opts) }
	m, err := load()
	if err != nil {
		return err
	}
	if _, err := aton.Lower(m, opts); err != nil {
		return errors.New("it is not converted")
	}
	feeds, err := c.feeds(dir, rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		return err
	}
	// what cannot be evaluated at all is left out: random operators, say
	if m, err = load(); err != nil {
		return err
	}
	if err := pipeline(prefixes[2].text, c.opset, m); err != nil {
		return err
	}
	kept := feeds[:0]
	for _, f := range feeds {
		out, err := interp.Run(m, f.in)
		switch {
		case err == nil && f.want != nil && differ(out, values(f.want), max(r.Rtol, 1e-4), max(r.Atol, 1e-5)) != nil:
			return errors.New("PyTorch's outputs are others (random, or beyond the tolerance)")
		case err == nil:
			kept = append(kept, f)
		case f.want != nil:
			return err
		}
	}
	feeds = kept
	c.programs++
	last := make([][]interp.Value, len(feeds))
	evaluate := func(pass string, m *ssa.Module) {
		t := c.tally(pass)
		t.compared++
		wrong := false
		for i, f := range feeds {
			out, err := interp.Run(m, f.in)
			if err == nil && last[i] != nil {
				err = differ(out, last[i], 1e-4, 1e-5)
			}
			if err != nil {
				fmt.Printf("%s: behind %s, %s: %v\n", name, pass, f.name, err)
				wrong = true
				continue
			}
			last[i] = out
		}
		if wrong {
			t.differ++
			c.differences++
		}
	}
	before := ""
	for _, p := range prefixes {
		m, err := load()
		if err != nil {
			return err
		}
		if err := pipeline(p.text, c.opset, m); err != nil {
			if p.pass == "" { // methods that only inlining resolves
				continue
			}
			fmt.Printf("%s: behind %s: %v\n", name, p.pass, err)
			c.differences++
			continue
		}
		text := ssa.Print(m)
		if p.pass != "" && text == before {
			c.tally(p.pass).unchanged++
			continue
		}
		before = text
		if p.pass == "" {
			p.pass = "specialize, lower"
		}
		evaluate(p.pass, m)
	}
	if m, err = load(); err != nil {
		return err
	}
	// the program by the default pipeline: cleanup comes before lower in it
	seen := false
	opts.Runner = &passes.Runner{Observers: []passes.Observer{{AfterPass: func(e *passes.Event) {
		if e.Module.UsesNamespace("aten") || e.Module.UsesNamespace("prim") {
			return
		}
		if seen && !e.Changed() {
			c.tally(e.Pass.Name).unchanged++
			return
		}
		seen = true
		evaluate(e.Pass.Name, e.Module)
	}}}}
	_, err = aton.Lower(m, opts)
	return err
}

func pipeline(text string, opset int, m *ssa.Module) error {
	p, err := all.Set.Parse(strings.ReplaceAll(text, "$", strconv.Itoa(opset)))
	if err != nil {
		return err
	}
	_, err = p.Run(m, nil)
	return err
}

func values(ts []*tensor.Tensor) []interp.Value {
	out := make([]interp.Value, len(ts))
	for i, t := range ts {
		out[i] = interp.Of(t)
	}
	return out
}

// flat puts the elements of lists in their place.
func flat(vs []interp.Value) []interp.Value {
	var out []interp.Value
	for _, v := range vs {
		if v.IsList {
			out = append(out, values(v.List)...)
		} else {
			out = append(out, v)
		}
	}
	return out
}

// differ says where two lists of results differ by more than rounding.
func differ(got, want []interp.Value, rtol, atol float64) error {
	got, want = flat(got), flat(want)
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs instead of %d", len(got), len(want))
	}
	for i := range got {
		g, w := got[i].Tensor, want[i].Tensor
		if g == nil || w == nil {
			if (g == nil) != (w == nil) {
				return fmt.Errorf("output %d is a tensor on one side only", i)
			}
			continue
		}
		if g.DType != w.DType || fmt.Sprint(g.Shape) != fmt.Sprint(w.Shape) {
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
