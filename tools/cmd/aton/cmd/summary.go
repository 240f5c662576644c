package cmd

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

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
	v := overview{Opsets: m.Opsets, Producer: m.Producer, Operators: map[string]int{}, Inputs: []named{}, Outputs: []named{}}
	f := m.Main()
	if f == nil {
		return v
	}
	name := ssa.BareName
	if m.Opsets[""] != 0 {
		name = func(name string) string { return name } // input.1 of a file is no input
	}
	for _, p := range f.Body.Params {
		v.Inputs = append(v.Inputs, named{name(p.Name), p.Type.String()})
	}
	for i, r := range f.Body.Returns() {
		name := name(r.Name)
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
	weights := map[string]bool{}
	for _, name := range m.State {
		weights[name] = true
	}
	for name, t := range contentOf(m).tensors {
		if weights[name] {
			v.Weights++
			v.WeightBytes += t.NumBytes()
		}
	}
	return v
}

// content is what the listing of a graph abbreviates or leaves out: all tensors of a model, and the values of its objects, by what they are called.
type content struct {
	tensors map[string]*tensor.Tensor
	values  map[string]string
	seen    map[*ssa.Object]bool
}

// contentOf collects the content of a module. Constants have the names of their results, or numbers; what objects hold has its path.
func contentOf(m *ssa.Module) *content {
	c := &content{map[string]*tensor.Tensor{}, map[string]string{}, map[*ssa.Object]bool{}}
	maps.Copy(c.tensors, m.Weights)
	maps.Copy(c.tensors, m.Defaults)
	for i, f := range m.Funcs {
		n := 0
		for o := range f.Body.AllOps() {
			for _, a := range o.Attrs {
				name := ""
				if len(o.Results) > 0 {
					name = o.Results[0].Name
				}
				if name == "" || i > 0 {
					name = fmt.Sprintf("%s:%s:%d", f.Name, name, n)
				}
				if a.Name != "value" {
					name += "." + a.Name
				}
				c.literal(name, a.Value, false)
				n++
			}
		}
	}
	if m.Root != nil {
		c.object(m.Root)
	}
	return c
}

func (c *content) object(o *ssa.Object) {
	if c.seen[o] {
		return
	}
	c.seen[o] = true
	for _, f := range o.Fields {
		name := f.Name
		if o.Path != "" {
			name = o.Path + "." + name
		}
		c.literal(name, f.Value, true)
	}
}

// literal takes tensors, and with values the other literals too: those of a graph stand in its text.
func (c *content) literal(name string, l ssa.Literal, values bool) {
	switch {
	case l.Kind == ssa.TensorLit && l.Tensor != nil:
		c.tensors[name] = l.Tensor
	case l.Kind == ssa.ObjectLit && l.Object != nil:
		c.object(l.Object)
	case len(l.Elems) > 0:
		for i, e := range l.Elems {
			c.literal(fmt.Sprintf("%s.%d", name, i), e, values)
		}
	case values:
		c.values[name] = l.String()
	}
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
