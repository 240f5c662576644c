package explore

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// recorder watches a conversion, and writes what happens into a document.
type recorder struct {
	doc    *Document
	m      *ssa.Module
	ids    map[*ssa.Op]int
	text   map[string]int
	alive  map[*ssa.Op]bool
	frames map[diag.Loc]int
	places map[Frame]int
	steps  map[*ssa.Op][]Step  // of the pass at work
	from   map[*ssa.Op]*ssa.Op // the roots of rules that made operators in the pass at work
}

func newRecorder(doc *Document, m *ssa.Module) *recorder {
	r := &recorder{doc: doc, m: m, ids: map[*ssa.Op]int{}, text: map[string]int{}, alive: map[*ssa.Op]bool{}, frames: map[diag.Loc]int{}, places: map[Frame]int{}}
	r.place(Frame{})
	r.begin()
	m.Rewritten = func(rule string, root *ssa.Op, made, changed []*ssa.Op) {
		step := Step{Pass: len(doc.Passes), Rule: rule}
		if root.Block() != nil && !slices.Contains(changed, root) && !slices.Contains(made, root) {
			changed = append(changed, root)
		}
		for i, o := range changed {
			if !slices.Contains(changed[:i], o) && !slices.Contains(made, o) {
				r.steps[o] = append(r.steps[o], step)
			}
		}
		for _, o := range made {
			if !r.alive[root] && r.steps[o] == nil { // made in this pass too, and perhaps gone already
				r.steps[o] = slices.Clone(r.steps[root])
			}
			r.steps[o] = append(r.steps[o], step)
			if r.from[o] == nil && o != root {
				r.from[o] = root
			}
		}
	}
	r.settle(-1)
	r.stage("import", -1)
	return r
}

// begin forgets what rules did in the pass before.
func (r *recorder) begin() {
	r.steps, r.from = map[*ssa.Op][]Step{}, map[*ssa.Op]*ssa.Op{}
}

// observer makes a runner feed the recorder.
func (r *recorder) observer() passes.Observer {
	before := len(r.alive)
	return passes.Observer{AfterPass: func(e *passes.Event) {
		n := len(r.doc.Passes)
		p := Pass{Name: e.Pass.Name, Text: e.Text, Depth: e.Depth, Millis: float64(e.Elapsed.Microseconds()) / 1000, Before: before, Changes: []Count{}}
		for _, c := range e.Counts {
			p.Changes = append(p.Changes, Count{c.What, c.N})
		}
		r.settle(n)
		before = len(r.alive)
		p.After = before
		r.stage(e.Pass.Name, n)
		p.Stage = len(r.doc.Stages) - 1
		r.doc.Passes = append(r.doc.Passes, p)
		r.begin()
	}}
}

// place is the number of a frame.
func (r *recorder) place(f Frame) int {
	n, ok := r.places[f]
	if !ok {
		n = len(r.doc.Frames)
		r.places[f] = n
		r.doc.Frames = append(r.doc.Frames, f)
	}
	return n
}

// frame is the number of a location.
func (r *recorder) frame(l diag.Loc) int {
	n, ok := r.frames[l]
	if !ok {
		f := r.m.Locs.Frame(l)
		r.frames[l] = 0 // ends a cycle, which there should not be
		n = r.place(Frame{File: f.File, Line: f.Line, Scope: f.Scope, Func: f.Func, Caller: r.frame(f.Caller)})
		r.frames[l] = n
	}
	return n
}

// settle notes which operators are new after a pass, and which are gone.
func (r *recorder) settle(pass int) {
	now := make(map[*ssa.Op]bool, len(r.alive))
	var news []*ssa.Op
	for _, f := range r.m.Funcs {
		for o := range f.Body.AllOps() {
			now[o] = true
			if !r.alive[o] {
				news = append(news, o)
			}
		}
	}
	gone := map[int][]int{} // by frame
	for o := range r.alive {
		if !now[o] {
			op := &r.doc.Ops[r.ids[o]]
			op.Gone = pass
			gone[op.Frame] = append(gone[op.Frame], r.ids[o])
		}
	}
	for _, o := range news {
		r.ids[o] = len(r.doc.Ops)
		r.doc.Ops = append(r.doc.Ops, Op{Kind: string(o.Kind), Frame: r.frame(o.Loc), Made: pass, Gone: -1})
	}
	for _, o := range news {
		op := &r.doc.Ops[r.ids[o]]
		if root := r.origin(o); root != nil {
			op.From = []int{r.ids[root]}
		} else if op.Frame != 0 && pass >= 0 {
			op.From = relatives(r.doc, op, gone[op.Frame])
		}
	}
	for o, steps := range r.steps {
		if now[o] {
			op := &r.doc.Ops[r.ids[o]]
			op.Steps = append(op.Steps, steps...)
		}
	}
	r.alive = now
}

// origin is the operator that was there before the pass and that rules made another one of; nil if they made it of none.
func (r *recorder) origin(o *ssa.Op) *ssa.Op {
	for range 100 { // rules that make of what rules made
		if o = r.from[o]; o == nil || r.alive[o] {
			return o
		}
	}
	return nil
}

// relatives chooses, of the operators that a pass removed at the place where it made one, those that it was made of: the ones
// of its own name if there are any, without constants if there is something else.
func relatives(doc *Document, op *Op, gone []int) []int {
	name := func(kind string) string { return kind[strings.LastIndexByte(kind, ':')+1:] }
	var same, others []int
	for _, id := range gone {
		switch kind := doc.Ops[id].Kind; {
		case kind == op.Kind:
			same = append(same, id)
		case name(kind) != "Constant" && name(kind) != "GetAttr":
			others = append(others, id)
		}
	}
	list := others
	if len(same) > 0 {
		list = same
	}
	const most = 8
	if len(list) > most {
		list = list[:most]
	}
	return sorted(list)
}

// stage writes the text of the program as it is, if that differs from the last stage's.
func (r *recorder) stage(name string, pass int) {
	s := Stage{Name: name, Pass: pass}
	var b lineWriter
	_ = ssa.Fprint(&b, r.m, ssa.PrintOptions{NoLocs: true, WeightsAsInputs: true, Names: names(r.m), Before: func(o *ssa.Op) { // a lineWriter does not fail
		for len(b.ops) < len(b.lines) {
			b.ops = append(b.ops, -1)
		}
		b.ops = append(b.ops, r.ids[o])
	}})
	for i, line := range b.lines {
		n, ok := r.text[line]
		if !ok {
			n = len(r.doc.Text)
			r.text[line] = n
			r.doc.Text = append(r.doc.Text, line)
		}
		s.Lines = append(s.Lines, n)
		op := -1
		if i < len(b.ops) {
			op = b.ops[i]
		}
		s.Ops = append(s.Ops, op)
	}
	if k := len(r.doc.Stages); k > 0 && equal(r.doc.Stages[k-1], s) {
		r.doc.Stages[k-1].Ops = s.Ops
		return
	}
	r.doc.Stages = append(r.doc.Stages, s)
}

func equal(a, b Stage) bool {
	if len(a.Lines) != len(b.Lines) {
		return false
	}
	for i := range a.Lines {
		if a.Lines[i] != b.Lines[i] {
			return false
		}
	}
	return true
}

// names calls values without a name v and their number, so that a value has one name in all stages.
func names(m *ssa.Module) []string {
	f := m.Main()
	if f == nil {
		return nil
	}
	out := make([]string, f.NumValues())
	var block func(b *ssa.Block)
	give := func(v *ssa.Value) {
		if strings.Trim(v.Name, "0123456789") == "" {
			out[v.ID] = "v" + strconv.Itoa(v.ID)
		}
	}
	block = func(b *ssa.Block) {
		for _, p := range b.Params {
			give(p)
		}
		for o := range b.Ops() {
			for _, v := range o.Results {
				give(v)
			}
			for _, c := range o.Blocks {
				block(c)
			}
		}
	}
	block(f.Body)
	return out
}

// lineWriter splits what is written into lines.
type lineWriter struct {
	lines []string
	rest  string
	ops   []int
}

func (w *lineWriter) Write(p []byte) (int, error) {
	text := w.rest + string(p)
	for {
		line, rest, ok := strings.Cut(text, "\n")
		if !ok {
			w.rest = text
			return len(p), nil
		}
		w.lines = append(w.lines, line)
		text = rest
	}
}
