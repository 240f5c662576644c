package cmd

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// overview is what a model is, in short. Its fields are those of inspect --json.
type overview struct {
	Opsets    map[string]int `json:"opsets,omitempty"`
	Producer  string         `json:"producer,omitempty"`
	Inputs    []named        `json:"inputs"`
	Outputs   []named        `json:"outputs"`
	Operators map[string]int `json:"operators"`
	// Weights is their number, WeightBytes their size.
	Weights     int   `json:"weights"`
	WeightBytes int64 `json:"weight_bytes"`
}

// overviewOf describes a module.
func overviewOf(m *ssa.Module) overview {
	v := overview{Opsets: m.Opsets, Operators: map[string]int{}, Inputs: []named{}, Outputs: []named{}}
	if m.Opsets[""] != 0 {
		v.Producer = onnxfile.Producer(m)
	}
	f := m.Main()
	if f == nil {
		return v
	}
	for _, p := range f.Body.Params {
		v.Inputs = append(v.Inputs, named{ssa.BareName(p.Name), p.Type.String()})
	}
	for i, r := range f.Body.Returns() {
		name := ssa.BareName(r.Name)
		if i < len(f.OutputNames) && f.OutputNames[i] != "" {
			name = f.OutputNames[i]
		}
		v.Outputs = append(v.Outputs, named{name, r.Type.String()})
	}
	for o := range f.Body.AllOps() {
		if o.Kind.Name() != "Constant" {
			v.Operators[string(o.Kind)]++
		}
	}
	for _, t := range weightsOf(m) {
		v.Weights++
		v.WeightBytes += t.NumBytes()
	}
	return v
}

// weightsOf gives the weights of an ONNX graph by their names.
func weightsOf(m *ssa.Module) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for o := range m.Main().Body.Ops() {
		if t := onnxWeight(o); t != nil {
			if name := ssa.BareName(o.Results[0].Name); slices.Contains(m.State, name) {
				out[name] = t
			}
		}
	}
	return out
}

func onnxWeight(o *ssa.Op) *tensor.Tensor {
	if o.Kind != "onnx::Constant" || len(o.Results) != 1 {
		return nil
	}
	return onnx.ConstOf(o.Results[0])
}

// text is the overview as comments of graph text.
func (v overview) text(name string) string {
	var b strings.Builder
	comment := func(format string, args ...any) { // a name with a line break does not end it
		b.WriteString("# " + strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", `\n`) + "\n")
	}
	first := []string{name}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		first[0] += ": " + bytesOf(info.Size())
	}
	if n := v.Opsets[""]; n != 0 {
		first = append(first, fmt.Sprintf("opset %d", n))
	}
	if v.Producer != "" {
		first = append(first, "by "+v.Producer)
	}
	comment("%s", strings.Join(first, ", "))
	for _, list := range []struct {
		what  string
		names []named
	}{{"input", v.Inputs}, {"output", v.Outputs}} {
		for _, n := range list.names {
			comment("%-9s %s : %s", list.what, n.Name, n.Type)
		}
	}
	var kinds []string
	total := 0
	for kind, n := range v.Operators {
		total += n
		kinds = append(kinds, kind)
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if n := v.Operators[b] - v.Operators[a]; n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	more := ""
	if len(kinds) > 12 {
		more, kinds = fmt.Sprintf(", %d other kinds", len(kinds)-12), kinds[:12]
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", v.Operators[kind], strings.TrimPrefix(kind, "onnx::"))
	}
	comment("operators %d (%s%s)", total, strings.Join(kinds, ", "), more)
	comment("weights   %d (%s)", v.Weights, bytesOf(v.WeightBytes))
	return b.String()
}
