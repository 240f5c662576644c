package explore

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

func sorted(list []int) []int {
	slices.Sort(list)
	return list
}

// grapher makes the picture's data of a converted module.
type grapher struct {
	r      *recorder
	g      *Graph
	values map[*ssa.Value]int
	files  []string // names of values in the file, by ID
	text   []string // in the stages
	sizes  map[string]int64
}

// graph describes the converted module. files has the names that values have in the file, by ID.
func (r *recorder) graph(files, outputs []string, sizes map[string]int64) *Graph {
	f := r.m.Main()
	g := &grapher{r: r, g: &Graph{Nodes: []Node{}, Values: []Value{}, Inputs: []int{}, Outputs: []int{}, OutputNames: outputs, Operands: map[string][]string{}, Sizes: map[string]int64{}},
		values: map[*ssa.Value]int{}, files: files, text: names(r.m), sizes: sizes}
	for _, p := range f.Body.Params {
		v := g.value(p)
		if t := r.m.Weights[p.Name]; t != nil {
			g.g.Values[v].Weight = r.weight(g.g.Values[v].Name, t)
			continue
		}
		g.g.Inputs = append(g.g.Inputs, v)
	}
	g.block(f.Body, -1, 0)
	for _, v := range f.Body.Returns() {
		g.g.Outputs = append(g.g.Outputs, g.value(v))
	}
	return g.g
}

func (g *grapher) value(v *ssa.Value) int {
	if v == nil {
		return -1
	}
	if n, ok := g.values[v]; ok {
		return n
	}
	n := len(g.g.Values)
	g.values[v] = n
	out := Value{Name: v.Name, Text: v.Name, Type: short(v.Type), Weight: -1}
	if v.ID < len(g.text) && g.text[v.ID] != "" {
		out.Text = g.text[v.ID]
	}
	if v.ID < len(g.files) && g.files[v.ID] != "" {
		out.Name = g.files[v.ID]
	}
	if out.Name == "" {
		out.Name = out.Text
	}
	g.g.Values = append(g.g.Values, out)
	return n
}

// short spells a type as --input does: f32[N,3].
func short(t ssa.Type) string {
	if t == nil {
		return ""
	}
	x, ok := t.(*ssa.TensorType)
	if !ok {
		return t.String()
	}
	s := "?"
	if x.DType != tensor.Undefined {
		s = x.DType.Spec()
	}
	if !x.Ranked {
		return s + "[…]"
	}
	dims := make([]string, len(x.Dims))
	for i, d := range x.Dims {
		dims[i] = d.String()
	}
	return s + "[" + strings.Join(dims, ",") + "]"
}

func (g *grapher) block(b *ssa.Block, parent, branch int) {
	for o := range b.Ops() {
		if len(o.Results) == 1 {
			if t := onnx.ConstOf(o.Results[0]); t != nil && o.NumOperands() == 0 {
				v := &g.g.Values[g.value(o.Results[0])]
				if t.NumElements() > 16 || o.Results[0].Name != "" {
					v.Weight = g.r.weight(v.Name, t)
				} else {
					v.Note = note(t)
				}
				continue
			}
		}
		n := Node{Op: g.r.ids[o], Kind: strings.TrimPrefix(string(o.Kind), "onnx::"), Inputs: []int{}, Outputs: []int{}, Parent: parent, Branch: branch}
		n.Module, n.Name = g.place(o)
		n.Also = g.r.others(n.Op, n.Module)
		if _, known := g.g.Operands[n.Kind]; !known {
			g.g.Operands[n.Kind] = operandNames(o.Kind)
		}
		for _, v := range o.Operands() {
			n.Inputs = append(n.Inputs, g.value(v))
		}
		for _, v := range o.Results {
			n.Outputs = append(n.Outputs, g.value(v))
		}
		if n.Name == "" && len(n.Outputs) > 0 {
			n.Name = g.g.Values[n.Outputs[0]].Name
		}
		for _, a := range o.Attrs {
			text := attribute(a)
			if len(text) > 200 {
				text = strings.ToValidUTF8(text[:200], "") + "…"
			}
			n.Attrs = append(n.Attrs, Attr{a.Name, text, usual(o.Kind, a)})
		}
		n.Flops, n.Bytes = g.cost(o)
		if n.Flops < 0 {
			g.g.Opaque++
		}
		at := len(g.g.Nodes)
		g.g.Nodes = append(g.g.Nodes, n)
		for i, c := range o.Blocks {
			body := Body{Params: []int{}, Returns: []int{}}
			for _, p := range c.Params {
				body.Params = append(body.Params, g.value(p))
			}
			g.block(c, at, i)
			for _, v := range c.Returns() {
				body.Returns = append(body.Returns, g.value(v))
			}
			g.g.Nodes[at].Bodies = append(g.g.Nodes[at].Bodies, body)
		}
	}
}

// place is the module that an operator is of, and its name, if it has one. In ONNX files a name such as /features/0/Conv says the
// module.
func (g *grapher) place(o *ssa.Op) (module, name string) {
	var f diag.Frame = g.r.m.Locs.Frame(o.Loc)
	if f.Node != 0 {
		name = f.Func
	}
	if f.Scope != "" || name == "" {
		return f.Scope, name
	}
	parts := strings.Split(strings.Trim(name, "/"), "/")
	return strings.Join(parts[:len(parts)-1], "."), name
}

// operandNames are the names that the standard gives the inputs of an operator, up to those of any number.
func operandNames(k ssa.Kind) []string {
	out := []string{}
	if s := onnx.SchemaOf(k); s != nil {
		for _, p := range s.Inputs {
			if p.Option < onnx.Variadic {
				out = append(out, p.Name)
			}
		}
	}
	return out
}

// attribute spells the value of an attribute, and a number that stands for a type as the type.
func attribute(a ssa.Attr) string {
	switch a.Name {
	case "to", "dtype", "output_dtype":
		if d := tensor.FromONNX(int(a.Value.Int())); a.Value.Kind == ssa.IntLit && d != tensor.Undefined {
			return d.Spec()
		}
	}
	return a.Value.String()
}

// usual reports whether an attribute has the value that the standard takes where it is absent.
func usual(k ssa.Kind, a ssa.Attr) bool {
	s := onnx.SchemaOf(k)
	if s == nil || s.Attr(a.Name) == nil {
		return false
	}
	if d, ok := s.Attr(a.Name).Value(); ok {
		return a.Value.Equal(d)
	}
	neutral, ok := map[string]int64{"dilations": 1, "strides": 1, "pads": 0}[a.Name] // of as many axes as there are
	list, ints := a.Value.IntList()
	return ok && ints && !slices.ContainsFunc(list, func(n int64) bool { return n != neutral })
}

// note is a small constant as text.
func note(t *tensor.Tensor) string {
	list := first(t, 16)
	s := strings.Join(list, ", ")
	if len(t.Shape) == 0 {
		return s
	}
	return "[" + s + "]"
}

// first gives the first elements of a tensor as text.
func first(t *tensor.Tensor, most int64) []string {
	if !t.HasData() || !t.DType.HoldsNumbers() && t.DType != tensor.String || t.DType.IsComplex() {
		return nil
	}
	n := min(t.NumElements(), most)
	out := make([]string, 0, n)
	switch {
	case t.DType == tensor.String:
		for _, s := range t.StringData()[:n] {
			out = append(out, strconv.Quote(s))
		}
		return out
	case t.NumElements() > 1<<16 && t.IsContiguous():
		t = head(t, n)
	}
	if t.DType.IsFloat() {
		bits := 64
		if t.DType != tensor.Float64 {
			bits = 32
		}
		for _, x := range t.Float64s()[:n] {
			out = append(out, strconv.FormatFloat(x, 'g', -1, bits))
		}
		return out
	}
	for _, x := range t.Int64s()[:n] {
		out = append(out, strconv.FormatInt(x, 10))
	}
	return out
}
