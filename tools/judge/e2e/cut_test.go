package e2e

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
)

var (
	cutCases = flag.String("cut.cases", "", "a folder of cases, all of which TestCut takes besides its own")
	cutEvery = flag.Int("cut.every", 16, "TestCut takes one of so many recorded cases")
)

// TestCut converts models whose module becomes text, and is read again, behind every pass: the file has the same bytes as that of a
// conversion in one piece. Some are cut behind one pass only as well.
func TestCut(t *testing.T) {
	type model struct {
		path string
		opts options
	}
	var models []model
	add := func(dir string) {
		var c struct {
			InputSpecs []string `json:"input_specs"`
			Opset      int
		}
		if b, err := os.ReadFile(filepath.Join(dir, "case.json")); err == nil {
			if err := json.Unmarshal(b, &c); err != nil {
				t.Fatal(err)
			}
		}
		archive := filepath.Join(dir, "model.pt")
		for _, path := range []string{archive, archive + "2"} {
			if _, err := os.Stat(path); err != nil {
				continue
			}
			o := converting(aton.ConvertOptions{Opset: c.Opset})
			if path == archive {
				o = withInputs(t, o, c.InputSpecs...)
			}
			models = append(models, model{path, o})
		}
	}
	n := 0
	for _, name := range []string{"cases", "operators", "random", "lists", "quantized"} {
		for _, dir := range unpack(t, "testdata/"+name+".tar.gz") {
			if n++; n%*cutEvery == 0 {
				add(dir)
			}
		}
	}
	if *cutCases != "" {
		dirs, err := filepath.Glob(filepath.Join(*cutCases, "*", "*"))
		if err != nil || len(dirs) == 0 {
			t.Fatalf("no cases in %s: %v", *cutCases, err)
		}
		for _, dir := range dirs {
			add(dir)
		}
	}
	exported, err := filepath.Glob("frontend/export/testdata/*.pt2")
	if err != nil || len(exported) == 0 {
		t.Fatal("no exported programs", err)
	}
	for _, path := range exported {
		models = append(models, model{path, options{}})
	}
	// what options need to know of the program is in the text too
	settings := []func(o *options){
		func(*options) {},
		func(o *options) { o.export.Opset = 9 },
		func(o *options) { o.export.Opset, o.export.DocStrings, o.export.Modules = 24, true, []string{"*"} },
		func(o *options) { o.load.NoWeights, o.export.Weights, o.export.State = true, aton.NoWeights, "outputs" },
		func(o *options) { o.export.Weights, o.export.LearnedNames = aton.InitializersAsInputs, true },
		func(o *options) {
			o.load.Training, o.export.Training, o.export.Target, o.export.NoFolding = aton.Train, aton.Train, "onnx", true
		},
		func(o *options) { o.export.Contrib, o.export.NodeMetadata, o.export.Unroll = "gpu", true, 4 },
	}
	cuts := 0
	for i, m := range models {
		for k, set := range settings {
			if k > 0 && i%len(settings) != k {
				continue
			}
			o := m.opts
			set(&o)
			want, ok := file(m.path, o)
			if !ok {
				continue
			}
			cuts++
			name := strings.TrimPrefix(m.path, os.TempDir())
			steps, err := stepsOf(m.path, o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got, what := cutAt(m.path, o, steps, func(int) bool { return true }); !bytes.Equal(got, want) {
				t.Errorf("%s, cut behind each pass, with settings %d, gives another file: %s", name, k, what)
			}
			if cuts%40 != 0 {
				continue
			}
			for only, step := range steps {
				if got, what := cutAt(m.path, o, steps, func(n int) bool { return n == only }); !bytes.Equal(got, want) {
					t.Errorf("%s, cut behind %s, with settings %d, gives another file: %s", name, step, k, what)
				}
			}
		}
	}
	if cuts < 100 {
		t.Errorf("only %d exports were cut", cuts)
	}
}

// file exports a model.
func file(path string, o options) ([]byte, bool) {
	m, err := aton.Load(path, o.load)
	if err != nil {
		return []byte(err.Error()), false
	}
	var b bytes.Buffer
	if err := aton.ExportTo(&b, m, o.export); err != nil {
		return []byte(err.Error()), false
	}
	return b.Bytes(), true
}

// stepsOf lists the steps of the conversion of a model.
func stepsOf(path string, o options) ([]string, error) {
	m, err := aton.Load(path, o.load)
	if err != nil {
		return nil, err
	}
	stages := aton.Stages()
	if m, _, err = aton.Inspect(m, stages[len(stages)-1], o.export.ConvertOptions); err != nil {
		return nil, err
	}
	return m.Passed, nil
}

// cutAt exports a model that is text behind the chosen steps.
func cutAt(path string, o options, steps []string, cut func(step int) bool) (got []byte, what string) {
	m, err := aton.Load(path, o.load)
	if err != nil {
		return nil, err.Error()
	}
	if m, _, err = aton.Inspect(m, "import", o.export.ConvertOptions); err != nil {
		return nil, err.Error()
	}
	later := o
	later.export.Opset, later.load.Inputs = 0, nil // the text says them
	var text []byte
	for i := -1; i < len(steps); i++ {
		if i >= 0 {
			p, err := all.Set.Parse(steps[i])
			if err != nil {
				return nil, err.Error()
			}
			if _, err := p.Run(m, nil); err != nil {
				return nil, steps[i] + ": " + err.Error()
			}
			m.Passed = steps[:i+1]
		}
		if !cut(i) {
			continue
		}
		var b bytes.Buffer
		if err := ssa.Fprint(&b, m, ssa.PrintOptions{Complete: true}); err != nil {
			return nil, err.Error()
		}
		text = b.Bytes()
		if m, err = aton.LoadBytes(text, "text", later.load); err != nil {
			return nil, fmt.Sprintf("text behind step %d: %v", i, err)
		}
	}
	var b bytes.Buffer
	if err := aton.ExportTo(&b, m, later.export); err != nil {
		return nil, err.Error()
	}
	return b.Bytes(), ""
}

// TestTextOpset: text has the opset of the conversion that it was printed in; another one may be asked for.
func TestTextOpset(t *testing.T) {
	in, err := spec.Parse("x:f32[N,3]")
	if err != nil {
		t.Fatal(err)
	}
	src := []byte("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n")
	m, err := aton.LoadBytes(src, "relu", aton.LoadOptions{Inputs: []spec.Input{in}})
	if err != nil {
		t.Fatal(err)
	}
	if m, _, err = aton.Inspect(m, "legalize", aton.ConvertOptions{Opset: 12}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ssa.Fprint(&b, m, ssa.PrintOptions{Complete: true}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ asked, want int }{{0, 12}, {12, 12}, {15, 15}} {
		m, err := aton.LoadBytes(b.Bytes(), "text", aton.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := aton.Convert(m, aton.ConvertOptions{Opset: c.asked}); err != nil {
			t.Fatal(err)
		}
		if got := m.Opsets[""]; got != c.want {
			t.Errorf("asked for opset %d of a text for 12: opset %d", c.asked, got)
		}
	}
	if !slices.Contains(aton.Stages(), "legalize") {
		t.Error("no stage legalize")
	}
}
