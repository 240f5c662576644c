package explore

import (
	"bytes"
	"math"
	"slices"
	"strings"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/internal/align"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// Compare has the document show what is different from an older model, which must be one that converts: nodes, weights and, where the model
// runs, numbers.
func (s *Session) Compare(old *Session) error {
	if old.failed != nil {
		return old.failed
	}
	s.old = old
	s.compare()
	return nil
}

func (s *Session) compare() {
	if s.old == nil || s.failed != nil {
		return
	}
	c := &comparer{new: s.doc.Graph, old: s.old.doc.Graph, newWeights: s.weights, oldWeights: s.old.weights, pairs: map[int]int{}, old2new: map[int]int{}}
	c.match(c.children(c.new, -1, 0), c.children(c.old, -1, 0))
	out := &Comparison{Model: s.old.name, Graph: s.old.doc.Graph, Pairs: []Pair{}, Weights: changedWeights(s.doc.Weights, s.weights, s.old.doc.Weights, s.old.weights)}
	for i := range c.new.Nodes {
		if j, ok := c.pairs[i]; ok {
			out.Pairs = append(out.Pairs, Pair{i, j, c.change(i, j)})
		}
	}
	out.Signature = append(signature("input", c.old, c.new, (*Graph).inputNames), signature("output", c.old, c.new, (*Graph).outputNames)...)
	s.doc.Comparison = out
}

// comparer puts the nodes of two graphs beside each other.
type comparer struct {
	new, old               *Graph
	newWeights, oldWeights []*tensor.Tensor
	pairs, old2new         map[int]int
}

// children are the nodes of a graph, or of a body.
func (c *comparer) children(g *Graph, parent, branch int) []int {
	var out []int
	for i := range g.Nodes {
		if g.Nodes[i].Parent == parent && g.Nodes[i].Branch == branch {
			out = append(out, i)
		}
	}
	return out
}

// match pairs nodes of two lists: those of one kind whose results have one name, then those of one kind, module and type in their order, then
// those of one kind and module, last those of one kind and type. The bodies of pairs are matched too.
func (c *comparer) match(news, olds []int) {
	type key struct{ kind, module, text string }
	name := func(g *Graph, i int) string {
		if n := g.Nodes[i]; len(n.Outputs) > 0 {
			return g.Values[n.Outputs[0]].Name
		}
		return ""
	}
	kinds := func(g *Graph, i int) string {
		if n := g.Nodes[i]; len(n.Outputs) > 0 {
			return g.Values[n.Outputs[0]].Type
		}
		return ""
	}
	for _, by := range []func(g *Graph, i int) key{
		func(g *Graph, i int) key { return key{g.Nodes[i].Kind, g.Nodes[i].Module, name(g, i)} },
		func(g *Graph, i int) key { return key{g.Nodes[i].Kind, "", name(g, i)} },
		func(g *Graph, i int) key { return key{g.Nodes[i].Kind, g.Nodes[i].Module, kinds(g, i)} },
		func(g *Graph, i int) key { return key{g.Nodes[i].Kind, g.Nodes[i].Module, ""} },
		func(g *Graph, i int) key { return key{g.Nodes[i].Kind, "", kinds(g, i)} },
	} {
		var a, b []int
		var ka, kb []key
		for _, i := range news {
			if _, ok := c.pairs[i]; !ok {
				a, ka = append(a, i), append(ka, by(c.new, i))
			}
		}
		for _, j := range olds {
			if _, ok := c.old2new[j]; !ok {
				b, kb = append(b, j), append(kb, by(c.old, j))
			}
		}
		for _, p := range common(ka, kb) {
			c.pairs[a[p[0]]], c.old2new[b[p[1]]] = b[p[1]], a[p[0]]
		}
	}
	for _, i := range news {
		j, ok := c.pairs[i]
		if !ok {
			continue
		}
		for k := range min(len(c.new.Nodes[i].Bodies), len(c.old.Nodes[j].Bodies)) {
			c.match(c.children(c.new, i, k), c.children(c.old, j, k))
		}
	}
}

// common pairs equal elements of two lists in an order that both have. Of long lists it takes equal elements in their order, wherever they stand.
func common[T comparable](a, b []T) [][2]int {
	if pairs, ok := align.Common(a, b); ok {
		return pairs
	}
	var out [][2]int
	at := map[T][]int{}
	for j, x := range b {
		at[x] = append(at[x], j)
	}
	for i, x := range a {
		if list := at[x]; len(list) > 0 {
			out, at[x] = append(out, [2]int{i, list[0]}), list[1:]
		}
	}
	return out
}

// change is what is different between two nodes that belong together.
func (c *comparer) change(i, j int) []string {
	n, o := &c.new.Nodes[i], &c.old.Nodes[j]
	out := []string{}
	was := map[string]string{}
	for _, a := range o.Attrs {
		was[a.Name] = a.Text
	}
	for _, a := range n.Attrs {
		if text, ok := was[a.Name]; !ok {
			out = append(out, a.Name+"="+a.Text+" is new")
		} else if text != a.Text {
			out = append(out, a.Name+"="+a.Text+", was "+text)
		}
		delete(was, a.Name)
	}
	for _, a := range o.Attrs {
		if _, gone := was[a.Name]; gone {
			out = append(out, a.Name+" is gone, was "+a.Text)
		}
	}
	if len(n.Inputs) != len(o.Inputs) {
		out = append(out, "reads other inputs")
	} else {
		for k := range n.Inputs {
			if why := c.differ(n.Inputs[k], o.Inputs[k]); why != "" {
				out = append(out, why)
			}
		}
	}
	for k := range min(len(n.Outputs), len(o.Outputs)) {
		if x, y := c.new.Values[n.Outputs[k]].Type, c.old.Values[o.Outputs[k]].Type; x != y {
			out = append(out, "gives "+x+", was "+y)
		}
	}
	return out
}

// differ says how an input is another one; "" if it is the same.
func (c *comparer) differ(v, w int) string {
	if v < 0 || w < 0 {
		if v != w {
			return "reads other inputs"
		}
		return ""
	}
	x, y := &c.new.Values[v], &c.old.Values[w]
	switch {
	case x.Weight >= 0 && y.Weight >= 0:
		if sameTensor(c.newWeights[x.Weight], c.oldWeights[y.Weight]) {
			return ""
		}
		return "the weight " + x.Name + " is another one"
	case x.Weight >= 0 || y.Weight >= 0:
		return "a weight is now computed, or was"
	case x.Note != y.Note:
		return "the constant " + x.Note + " was " + y.Note
	case x.Note != "":
		return ""
	}
	made, k := c.new.maker(v)
	was, l := c.old.maker(w)
	if made < 0 && was < 0 {
		if x.Name == y.Name || slices.Index(c.new.Inputs, v) < 0 {
			return ""
		}
	} else if partner, ok := c.pairs[made]; ok && made >= 0 && partner == was && k == l {
		return ""
	}
	if _, paired := c.pairs[made]; made >= 0 && !paired {
		return "reads what the new " + c.new.Nodes[made].Kind + " gives"
	}
	return "reads " + x.Name + ", was " + y.Name
}

// maker is the node that gives a value, and which of its results it is; -1 for none.
func (g *Graph) maker(v int) (node, result int) {
	if g.makers == nil {
		g.makers = map[int][2]int{}
		for i := range g.Nodes {
			for k, out := range g.Nodes[i].Outputs {
				g.makers[out] = [2]int{i, k}
			}
		}
	}
	if m, ok := g.makers[v]; ok {
		return m[0], m[1]
	}
	return -1, 0
}

func sameTensor(x, y *tensor.Tensor) bool {
	if x == nil || y == nil || ssa.TensorOf(x).String() != ssa.TensorOf(y).String() {
		return false
	}
	return x.HasData() == y.HasData() && (!x.HasData() || bytes.Equal(x.Bytes(), y.Bytes()))
}

// changedWeights compares weights by name.
func changedWeights(news []Weight, x []*tensor.Tensor, olds []Weight, y []*tensor.Tensor) []WeightChange {
	out := []WeightChange{}
	at := map[string]int{}
	for j, w := range olds {
		at[w.Name] = j
	}
	kind := func(t *tensor.Tensor) string { return short(ssa.TensorOf(t)) }
	for i, w := range news {
		j, ok := at[w.Name]
		delete(at, w.Name)
		switch {
		case !ok:
			out = append(out, WeightChange{Name: w.Name, What: "added", New: kind(x[i])})
		case !sameTensor(x[i], y[j]):
			out = append(out, WeightChange{Name: w.Name, What: "changed", New: kind(x[i]), Old: kind(y[j]), Differs: distance(x[i], y[j])})
		}
	}
	for j, w := range olds {
		if left, ok := at[w.Name]; ok && left == j {
			out = append(out, WeightChange{Name: w.Name, What: "removed", Old: kind(y[j])})
		}
	}
	return out
}

// distance is the greatest difference of two tensors beside the greatest element of the second: 0 for equal ones, -1 where that is no number.
func distance(x, y *tensor.Tensor) float64 {
	if !numeric(x) || !numeric(y) || !slices.Equal(x.Shape, y.Shape) {
		return -1
	}
	a, b := x.Float64s(), y.Float64s()
	worst, greatest := 0.0, 0.0
	for i := range a {
		greatest = max(greatest, math.Abs(b[i]))
		if a[i] == b[i] || a[i] != a[i] && b[i] != b[i] {
			continue
		}
		worst = max(worst, math.Abs(a[i]-b[i])) // NaN stays
	}
	switch d := worst / max(greatest, math.SmallestNonzeroFloat64); {
	case worst == 0:
		return 0
	case d-d != 0:
		return -1
	default:
		return d
	}
}

func (g *Graph) inputNames() (names []string) {
	for _, v := range g.Inputs {
		names = append(names, g.Values[v].Name+" "+g.Values[v].Type)
	}
	return names
}

func (g *Graph) outputNames() (names []string) {
	for i, v := range g.Outputs {
		names = append(names, g.OutputNames[i]+" "+g.Values[v].Type)
	}
	return names
}

// signature has the inputs or outputs that only one of two graphs has.
func signature(what string, old, new *Graph, names func(*Graph) []string) []string {
	out := []string{}
	for _, n := range names(new) {
		if !slices.Contains(names(old), n) {
			out = append(out, "+ "+what+" "+n)
		}
	}
	for _, n := range names(old) {
		if !slices.Contains(names(new), n) {
			out = append(out, "- "+what+" "+n)
		}
	}
	return out
}

// former runs the older model on a data set, and keeps the values that nodes of the new one are compared with, by the texts of these.
func (s *Session) former(data verify.DataSet) (map[string]*tensor.Tensor, error) {
	wanted := map[string][]string{} // text of the old value: texts of new ones
	c := s.doc.Comparison
	for _, p := range c.Pairs {
		n, o := s.doc.Graph.Nodes[p.New], c.Graph.Nodes[p.Old]
		for k := range min(len(n.Outputs), len(o.Outputs)) {
			was := c.Graph.Values[o.Outputs[k]].Text
			wanted[was] = append(wanted[was], s.doc.Graph.Values[n.Outputs[k]].Text)
		}
	}
	out := map[string]*tensor.Tensor{}
	text := names(s.old.module)
	judge := verify.Verifier{Tolerance: verify.DefaultTolerance, Kernels: verify.FunctionKernels(s.old.opts.Functions)}
	judge.Observe = func(o *ssa.Op, _, given []interp.Value) error {
		if err := s.stopped(); err != nil {
			return err
		}
		for i, v := range o.Results {
			if i >= len(given) || given[i].Tensor == nil {
				continue
			}
			was := v.Name
			if n := text[v.ID]; n != "" {
				was = n
			}
			for _, to := range wanted[was] {
				out[to] = given[i].Tensor
			}
		}
		return nil
	}
	inputs := verify.DataSet{Name: data.Name}
	for _, v := range c.Graph.Inputs {
		for _, in := range data.Inputs {
			if in.Name == c.Graph.Values[v].Name {
				inputs.Inputs = append(inputs.Inputs, in)
			}
		}
	}
	if len(inputs.Inputs) != len(c.Graph.Inputs) {
		inputs.Inputs = data.Inputs // other names: by position
	}
	_, err := judge.Run(s.old.module, inputs)
	return out, err
}

// differences compares the values of a run with those of the older model, where there is one.
func (s *Session) differences(data verify.DataSet, out *Numbers) (observe func(text string, x *tensor.Tensor)) {
	if s.doc.Comparison == nil {
		return func(string, *tensor.Tensor) {}
	}
	was, err := s.former(data)
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		out.Former = "the older model does not run on these inputs: " + text
		return func(string, *tensor.Tensor) {}
	}
	out.Differs = map[string]float64{}
	return func(text string, x *tensor.Tensor) {
		if y := was[text]; y != nil {
			out.Differs[text] = distance(x, y)
		}
	}
}
