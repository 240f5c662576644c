package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Version is the version of the JSON form.
const Version = 1

type jsonPlan struct {
	Version         int
	Fusion          string
	Inputs, Outputs []jsonValue
	Buffers         []jsonBuffer
	Arena           *int64
	Kernels         []jsonKernel
	Steps           []jsonStep
}

type jsonValue struct {
	Name   string   `json:"name"`
	DType  string   `json:"dtype"`
	Shape  []string `json:"shape"`
	Buffer *int     `json:"buffer,omitempty"`
}

type jsonBuffer struct {
	ID     int      `json:"id"`
	Kind   string   `json:"kind"`
	Name   string   `json:"name,omitempty"`
	DType  string   `json:"dtype"`
	Shape  []string `json:"shape"`
	Live   [2]int   `json:"live"`
	Offset *int64   `json:"offset,omitempty"`
}

type jsonKernel struct {
	Name    string   `json:"name"`
	Class   string   `json:"class"`
	Threads int      `json:"threads"`
	Shared  int      `json:"shared_bytes"`
	Params  []string `json:"params"`
}

type jsonStep struct {
	Node   string   `json:"node"`
	Fused  []string `json:"fused,omitempty"`
	Kernel string   `json:"kernel,omitempty"`
	Grid   []string `json:"grid,omitempty"`
	Args   []int    `json:"buffers,omitempty"`
	Sizes  []string `json:"scalars,omitempty"`
	Host   string   `json:"host,omitempty"`
	// Read are the symbols that get the elements of a buffer, Resolve those of sizes that are inferred from them.
	Read    []string `json:"read,omitempty"`
	Resolve bool     `json:"resolve,omitempty"`
	// Sequence is what is done with a sequence, Copy the launch for each of its elements.
	Sequence string       `json:"sequence,omitempty"`
	Copy     []jsonStep   `json:"copy,omitempty"`
	Regions  [][]jsonStep `json:"regions,omitempty"`
	Stack    []jsonStep   `json:"stack,omitempty"`
	Source   string       `json:"source,omitempty"`
	// Parts are the launches that a joined one does the work of, one after another in its blocks: the nodes of each, and its blocks.
	Parts []jsonStep `json:"parts,omitempty"`
}

func texts(es []sym.Expr) []string {
	out := []string{}
	for _, e := range es {
		out = append(out, e.String())
	}
	return out
}

// NodeName tells an op for messages: its kind, and the name of its first named result.
func NodeName(o *ssa.Op) string {
	name := strings.TrimPrefix(string(o.Kind), "onnx::")
	for _, r := range o.Results {
		if r.Name != "" {
			return name + " " + r.Name
		}
	}
	return name
}

// Source is the line of the user's program that an op comes from, "" if that is not known.
func (p *Plan) Source(o *ssa.Op) string {
	if s := p.Module.Locs.String(o.Loc); s != "" {
		return s
	}
	return p.Module.Locs.Frame(o.Loc).Func
}

// SharedBytes is the static shared memory of a kernel.
func (k *Kernel) SharedBytes() int {
	n := 0
	for _, m := range k.Shared {
		n += (m.Len*m.Elem.Size() + 15) &^ 15
	}
	return n
}

func (p *Plan) jsonValue(name string, v *ssa.Value) jsonValue {
	j := jsonValue{Name: name, Shape: []string{}}
	if t := v.Tensor(); t != nil {
		j.DType, j.Shape = t.DType.Spec(), texts(t.Dims)
	}
	if f := p.BufferOf(v); f != nil {
		j.Buffer = &f.ID
	}
	return j
}

// WriteJSON writes the plan. Sizes are expressions over the symbols in the inputs' shapes; where all are known, buffers
// have the places that [Plan.Allocate] gives them.
func (p *Plan) WriteJSON(w io.Writer) error {
	j := jsonPlan{Version: Version, Fusion: string(p.Fusion)}
	for _, v := range p.Func.Body.Params {
		j.Inputs = append(j.Inputs, p.jsonValue(v.Name, v))
	}
	for i, v := range p.Func.Body.Returns() {
		name := v.Name
		if i < len(p.Func.OutputNames) {
			name = p.Func.OutputNames[i]
		}
		j.Outputs = append(j.Outputs, p.jsonValue(name, v))
	}
	sizes, static := p.BufferSizes(nil)
	var offsets []int64
	if static {
		var total int64
		offsets, total = p.Allocate(sizes)
		j.Arena = &total
	}
	for i, f := range p.Buffers {
		t := f.Value.Tensor()
		b := jsonBuffer{ID: f.ID, Kind: string(f.Kind), Name: f.Value.Name, DType: t.DType.Spec(), Shape: texts(t.Dims), Live: [2]int{f.First, f.Last}}
		if static && (f.Kind == Temp || f.Kind == Output) {
			b.Offset = &offsets[i]
		}
		j.Buffers = append(j.Buffers, b)
	}
	for _, k := range p.Kernels {
		n := jsonKernel{Name: k.Name, Class: k.Class, Threads: k.Threads, Shared: k.SharedBytes()}
		for _, a := range k.Params {
			if a.Mem == nil {
				n.Params = append(n.Params, "i32")
			} else if a.Mem.Writes {
				n.Params = append(n.Params, a.Mem.Elem.String()+"* out")
			} else {
				n.Params = append(n.Params, a.Mem.Elem.String()+"*")
			}
		}
		j.Kernels = append(j.Kernels, n)
	}
	j.Steps = p.jsonSteps(p.Steps)
	return j.write(w)
}

// fusedNames are the nodes that a step computes besides its own.
func fusedNames(s *Step) (names []string) {
	for _, o := range s.Ops {
		if o != s.Op {
			names = append(names, NodeName(o))
		}
	}
	return names
}

func (p *Plan) jsonSteps(steps []*Step) []jsonStep {
	out := []jsonStep{}
	for _, s := range steps {
		n := jsonStep{Node: NodeName(s.Op), Fused: fusedNames(s), Host: s.Host, Source: p.Source(s.Op), Resolve: s.Resolve}
		for _, part := range s.Parts {
			n.Parts = append(n.Parts, jsonStep{Node: NodeName(part.Op), Fused: fusedNames(part), Grid: texts(part.Launch.Grid[:]), Source: p.Source(part.Op)})
		}
		if s.Launch != nil {
			n.Kernel, n.Grid = s.Kernel.Name, texts(s.Launch.Grid[:])
			for _, f := range s.Args {
				n.Args = append(n.Args, f.ID)
			}
			for _, a := range s.Launch.Kernel.Params {
				if a.Mem == nil {
					n.Sizes = append(n.Sizes, a.Size.String())
				}
			}
		}
		if s.Read != nil {
			n.Read = texts(s.Read.Sym)
			if f := p.BufferOf(s.Read); f != nil {
				n.Args = []int{f.ID}
			}
		}
		if s.Sequence != nil {
			n.Sequence = s.Op.Kind.Name()
			if s.Sequence.Copy != nil {
				n.Copy = p.jsonSteps([]*Step{s.Sequence.Copy})
			}
		}
		if s.Control != nil {
			for _, r := range s.Control.Regions {
				n.Regions = append(n.Regions, p.jsonSteps(r.Steps))
			}
			if len(s.Control.Stack) > 0 {
				n.Stack = p.jsonSteps(s.Control.Stack)
			}
		}
		out = append(out, n)
	}
	return out
}

// write puts each buffer, kernel and step on a line.
func (j *jsonPlan) write(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"version\": %d,\n  \"fusion\": %q", j.Version, j.Fusion)
	if j.Arena != nil {
		fmt.Fprintf(&b, ",\n  \"arena\": %d", *j.Arena)
	}
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	var failed error
	list := func(name string, n int, at func(i int) any) {
		fmt.Fprintf(&b, ",\n  %q: [", name)
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString("\n    ")
			if err := e.Encode(at(i)); err != nil && failed == nil {
				failed = err
			}
			b.Truncate(b.Len() - 1) // the encoder ends the line
		}
		b.WriteString("\n  ]")
	}
	list("inputs", len(j.Inputs), func(i int) any { return j.Inputs[i] })
	list("outputs", len(j.Outputs), func(i int) any { return j.Outputs[i] })
	list("buffers", len(j.Buffers), func(i int) any { return j.Buffers[i] })
	list("kernels", len(j.Kernels), func(i int) any { return j.Kernels[i] })
	list("steps", len(j.Steps), func(i int) any { return j.Steps[i] })
	b.WriteString("\n}\n")
	if failed != nil {
		return failed
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Coverage counts the nodes by place. share, from 0 to 1, is the part of those that compute on tensors which a kernel computes, or which
// need none because they only name their operand's elements. Constants compute nothing, and sizes are expressions of the plan, for which
// nothing runs: neither counts.
func (p *Plan) Coverage() (counts map[Place]int, share float64) {
	counts = map[Place]int{}
	for _, n := range p.Nodes {
		counts[n.Place]++
	}
	total := len(p.Nodes) - counts[Constant] - counts[Sizes]
	if total == 0 {
		return counts, 1
	}
	return counts, float64(counts[Device]+counts[Fused]+counts[Alias]) / float64(total)
}

// WriteCoverage writes a table: each kind of operator, how many of its nodes are where, and why they are on the host.
func (p *Plan) WriteCoverage(w io.Writer) error {
	type row struct {
		kind    string
		counts  map[Place]int
		reasons []string
	}
	var rows []*row
	byKind := map[string]*row{}
	for _, n := range p.Nodes {
		if n.Place == Constant {
			continue
		}
		kind := strings.TrimPrefix(string(n.Op.Kind), "onnx::")
		r := byKind[kind]
		if r == nil {
			r = &row{kind: kind, counts: map[Place]int{}}
			byKind[kind] = r
			rows = append(rows, r)
		}
		r.counts[n.Place]++
		if n.Reason != "" && !strings.Contains(strings.Join(r.reasons, "; ")+";", n.Reason+";") {
			r.reasons = append(r.reasons, n.Reason)
		}
	}
	if _, err := fmt.Fprintf(w, "%-28s %7s %7s %7s %7s %7s  %s\n", "operator", "device", "fused", "alias", "sizes", "host", "why on the host"); err != nil {
		return err
	}
	for _, r := range rows {
		kind := strings.ReplaceAll(string(r.kind), "\n", `\n`) // of a file that anybody may have written
		if _, err := fmt.Fprintf(w, "%-28s %7d %7d %7d %7d %7d  %s\n", kind, r.counts[Device], r.counts[Fused], r.counts[Alias], r.counts[Sizes], r.counts[Host], strings.Join(r.reasons, "; ")); err != nil {
			return err
		}
	}
	counts, share := p.Coverage()
	_, err := fmt.Fprintf(w, "%d nodes besides %d constants and %d sizes: %.1f %% on the device\n",
		len(p.Nodes)-counts[Constant]-counts[Sizes], counts[Constant], counts[Sizes], 100*share)
	return err
}
