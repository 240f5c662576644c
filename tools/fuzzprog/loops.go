package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// Programs of the kind "loops" put tensors and numbers in lists and dicts under several names, replace, write and move them in loops and
// branches, and leave loops early. They are made without being evaluated: the eager evaluator says what they give, at several sizes, 1
// and 0 among them. A size at which the program raises an exception is left out.

// node is a statement: a line, and the statements in it.
type node struct {
	text string
	body []*node
	fix  bool // it is not left out alone
}

// loopSizes are those of the dynamic axis, and the values of the number that is an input.
var loopSizes = []int64{2, 1, 0, 3}

// rowSize is the size of the tensors that programs work on.
const rowSize = 3

// looper makes programs.
type looper struct {
	rng   *rand.Rand
	depth int
	n     int
	rows  []string // names of tensors in scope
	lists []string // of tensors
	dicts []string // of tensors by "a" and "b"
	ints  []string // lists of ints
	maps  []string // lists of ints by "a"
	nums  []string // ints
	body  []*node
	outs  []string
}

func (g *looper) name(prefix string) string {
	g.n++
	return fmt.Sprintf("%s%d", prefix, g.n)
}

func (g *looper) one(names []string) string { return names[g.rng.IntN(len(names))] }

func leaf(format string, args ...any) *node { return &node{text: fmt.Sprintf(format, args...)} }

// call is a statement whose value nobody uses.
func (g *looper) call(format string, args ...any) *node {
	return leaf(g.name("_")+" = "+format, args...)
}

// place is an index of a list that has an element.
func (g *looper) place() string { return pick(g.rng, []string{"0", "0", "-1", "1"}) }

// row is an expression that gives a tensor: a new one, or one that is in a container.
func (g *looper) row() string {
	switch k := g.rng.IntN(9); {
	case k == 0 && len(g.lists) > 0:
		return fmt.Sprintf("%s[%s]", g.one(g.lists), g.place())
	case k == 1 && len(g.dicts) > 0:
		return fmt.Sprintf("%s[%q]", g.one(g.dicts), "a")
	case k < 4:
		return fmt.Sprintf("torch.mul(%s, 2)", g.held())
	case k < 6:
		return fmt.Sprintf("torch.add(%s, %s)", g.held(), g.held())
	case k == 6:
		return fmt.Sprintf("torch.relu(%s)", g.held())
	case k == 7:
		return fmt.Sprintf("torch.clone(%s)", g.held())
	}
	return g.one(g.rows)
}

// held is a tensor that has a name or is in a container.
func (g *looper) held() string {
	switch k := g.rng.IntN(6); {
	case k == 0 && len(g.lists) > 0:
		return fmt.Sprintf("%s[%s]", g.one(g.lists), g.place())
	case k == 1 && len(g.dicts) > 0:
		return fmt.Sprintf("%s[\"a\"]", g.one(g.dicts))
	}
	return g.one(g.rows)
}

// num is an int.
func (g *looper) num() string {
	switch k := g.rng.IntN(5); {
	case k == 0 && len(g.ints) > 0:
		return g.one(g.ints) + "[0]"
	case k == 1 && len(g.lists) > 0:
		return fmt.Sprintf("torch.len(%s)", g.one(g.lists))
	case k < 4:
		return g.one(g.nums)
	}
	return fmt.Sprint(g.rng.IntN(4))
}

// statement makes one.
func (g *looper) statement() *node {
	for {
		if s := g.try(g.rng.IntN(30)); s != nil {
			return s
		}
	}
}

func (g *looper) try(kind int) *node {
	r := g.rng
	switch {
	case kind < 3: // a new name, which may be a second one for a tensor
		n := g.name("v")
		s := leaf("%s = %s", n, g.row())
		g.rows = append(g.rows, n)
		return s
	case kind < 5: // another tensor for a name
		return leaf("%s = %s", g.one(g.rows), g.row())
	case kind < 9:
		w := g.held()
		switch r.IntN(5) {
		case 0:
			return g.call("torch.mul_(%s, 2)", w)
		case 1:
			return g.call("torch.copy_(%s, torch.add(%s, 1))", w, g.held())
		case 2:
			return g.call("torch.add_(torch.slice(%s, 0, 0, 2), 5)", w)
		case 3:
			return g.call("torch.add_(%s, torch.mul(%s, 2))", w, g.held())
		}
		return g.call("torch.add_(%s, 1)", w)
	case kind == 9 && g.depth == 0:
		n := g.name("l")
		s := leaf("%s = [%s, %s]", n, g.row(), g.row())
		g.lists = append(g.lists, n)
		return s
	case kind == 10 && g.depth == 0:
		n := g.name("d")
		s := leaf("%s = {\"a\": %s, \"b\": %s}", n, g.row(), g.row())
		g.dicts = append(g.dicts, n)
		return s
	case kind == 11 && g.depth == 0:
		n := g.name("k")
		s := leaf("%s = [%d, %d]", n, r.IntN(4), r.IntN(4))
		g.ints = append(g.ints, n)
		return s
	case kind == 12 && g.depth == 0 && len(g.ints) > 0:
		n := g.name("m")
		s := leaf("%s = {\"a\": %s}", n, g.one(g.ints))
		g.maps = append(g.maps, n)
		return s
	case kind == 13 && len(g.lists) > 0:
		n := g.name("l")
		s := leaf("%s = %s", n, g.one(g.lists))
		g.lists = append(g.lists, n)
		return s
	case kind < 18 && len(g.lists) > 0:
		l := g.one(g.lists)
		switch r.IntN(9) {
		case 0, 1, 2:
			return g.call("torch._set_item(%s, %s, %s)", l, g.place(), g.row())
		case 3, 4:
			return g.call("torch.append(%s, %s)", l, g.row())
		case 5:
			return leaf("torch.insert(%s, %s, %s)", l, g.place(), g.row())
		case 6:
			return leaf("torch.reverse(%s)", l)
		case 7:
			n := g.name("v")
			s := leaf("%s = torch.pop(%s)", n, l)
			g.rows = append(g.rows, n)
			return s
		}
		n := g.name("t")
		return &node{text: "if True:", fix: false, body: []*node{
			{text: fmt.Sprintf("%s = %s[0]", n, l), fix: true},
			{text: fmt.Sprintf("_%s = torch._set_item(%s, 0, %s[-1])", n, l, l), fix: true},
			{text: fmt.Sprintf("__%s = torch._set_item(%s, -1, %s)", n, l, n), fix: true}}}
	case kind < 20 && len(g.dicts) > 0:
		return g.call("torch._set_item(%s, %q, %s)", g.one(g.dicts), pick(r, []string{"a", "b", "a"}), g.row())
	case kind < 22 && len(g.ints) > 0:
		l := g.one(g.ints)
		switch r.IntN(4) {
		case 0:
			return g.call("torch.append(%s, %s)", l, g.num())
		case 1:
			return leaf("%s = torch.add(%s, [%s])", l, g.one(g.ints), g.num())
		case 2:
			n := g.name("k")
			s := leaf("%s = %s", n, l)
			g.ints = append(g.ints, n)
			return s
		}
		return g.call("torch._set_item(%s, %s, torch.add(%s, 1))", l, g.place(), g.num())
	case kind == 22 && len(g.maps) > 0:
		m := g.one(g.maps)
		return g.call("torch._set_item(%s, \"a\", torch.add(%s[\"a\"], [%s]))", m, m, g.num())
	case kind == 23:
		n := g.name("n")
		s := leaf("%s = torch.add(%s, 1)", n, g.num())
		g.nums = append(g.nums, n)
		return s
	case kind < 26 && g.depth < 2:
		cond := fmt.Sprintf("bool(torch.gt(torch.sum(%s), %d))", g.held(), r.IntN(9)-3)
		if r.IntN(2) == 0 {
			cond = fmt.Sprintf("torch.gt(%s, %d)", g.num(), r.IntN(3))
		}
		return &node{text: "if " + cond + ":", body: g.block(1+r.IntN(3), nil)}
	case kind >= 26 && g.depth < 2:
		return g.loop()
	}
	return nil
}

// loop is a for over a constant, a number or the rows of the input, or a while that may end early.
func (g *looper) loop() *node {
	r := g.rng
	if r.IntN(4) > 0 {
		i := g.name("i")
		trips := pick(r, []string{"2", "3", "n", "torch.len(x)"})
		return &node{text: fmt.Sprintf("for %s in range(%s):", i, trips), body: g.block(1+r.IntN(4), func() []*node {
			g.nums = append(g.nums, i)
			if trips != "torch.len(x)" || r.IntN(3) == 0 {
				return nil
			}
			v := g.name("v")
			g.rows = append(g.rows, v)
			return []*node{{text: fmt.Sprintf("%s = torch.select(x, 0, %s)", v, i), fix: true}}
		})}
	}
	j, more := g.name("j"), g.name("c")
	trips := pick(r, []string{"2", "3", "n"})
	body := g.block(1+r.IntN(4), func() []*node { g.nums = append(g.nums, j); return nil })
	early := "True"
	if r.IntN(2) == 0 {
		early = fmt.Sprintf("bool(torch.lt(torch.sum(%s), %d))", g.held(), 3+r.IntN(30))
	}
	body = append(body, &node{text: fmt.Sprintf("%s = torch.add(%s, 1)", j, j), fix: true},
		&node{text: fmt.Sprintf("%s = torch.__and__(torch.lt(%s, %s), %s)", more, j, trips, early), fix: true})
	return &node{text: "if True:", body: []*node{{text: j + " = 0", fix: true}, {text: fmt.Sprintf("%s = torch.gt(%s, 0)", more, trips), fix: true},
		{text: "while " + more + ":", body: body, fix: true}}}
}

// block makes statements in a scope of their own, behind those of first.
func (g *looper) block(size int, first func() []*node) []*node {
	saved := *g
	g.depth++
	var out []*node
	if first != nil {
		out = first()
	}
	for range size {
		out = append(out, g.statement())
	}
	n := g.n
	*g = saved
	g.n = n
	return out
}

func newLooper(rng *rand.Rand) *looper {
	g := &looper{rng: rng, rows: []string{"h"}, nums: []string{"n"}}
	g.body = []*node{{text: "h = torch.clone(y)", fix: true}}
	for _, kind := range []int{9, 10, 11, 12} {
		if s := g.try(kind); s != nil && rng.IntN(3) > 0 {
			g.body = append(g.body, s)
		} else if s != nil { // its name is not there
			name, _, _ := strings.Cut(s.text, " ")
			for _, names := range []*[]string{&g.lists, &g.dicts, &g.ints, &g.maps} {
				*names = slices.DeleteFunc(*names, func(n string) bool { return n == name })
			}
		}
	}
	for range 2 + rng.IntN(7) {
		g.body = append(g.body, g.statement())
	}
	g.outs = append(g.outs, g.rows...)
	for _, n := range g.lists {
		g.outs = append(g.outs, "torch.stack("+n+")")
	}
	for _, n := range g.dicts {
		g.outs = append(g.outs, n+"[\"a\"]", n+"[\"b\"]")
	}
	for _, n := range g.ints {
		g.outs = append(g.outs, "torch.tensor("+n+")")
	}
	for _, n := range g.maps {
		g.outs = append(g.outs, "torch.tensor("+n+"[\"a\"])")
	}
	rng.Shuffle(len(g.outs), func(i, k int) { g.outs[i], g.outs[k] = g.outs[k], g.outs[i] })
	g.outs = g.outs[:min(len(g.outs), 4)]
	return g
}

// code is the method forward.
func (g *looper) code() string {
	var lines []string
	var write func(ns []*node, depth int)
	write = func(ns []*node, depth int) {
		pad := strings.Repeat("  ", depth)
		for _, n := range ns {
			if n.text == "if True:" { // statements that belong together
				write(n.body, depth)
				continue
			}
			lines = append(lines, pad+n.text)
			if strings.HasSuffix(n.text, ":") {
				if len(n.body) == 0 {
					lines = append(lines, pad+"  pass")
				}
				write(n.body, depth+1)
				if strings.HasPrefix(n.text, "if ") {
					lines = append(lines, pad+"else:", pad+"  pass")
				}
			}
		}
	}
	write(g.body, 2)
	result, value := "Tensor", g.outs[0]
	if len(g.outs) > 1 {
		result = "Tuple[" + strings.Join(slices.Repeat([]string{"Tensor"}, len(g.outs)), ", ") + "]"
		value = "(" + strings.Join(g.outs, ", ") + ")"
	}
	return fmt.Sprintf("  def forward(self: __torch__.Program,\n    x: Tensor,\n    y: Tensor,\n    n: int) -> %s:\n%s\n    return %s\n", result, strings.Join(lines, "\n"), value)
}

// reduce drops what it can of a program while it stays as it is by some test.
func (g *looper) reduce(still func() bool) {
	for again, rounds := true, 0; again && rounds < 4; rounds++ {
		again = false
		for i := len(g.outs) - 1; i >= 0 && len(g.outs) > 1; i-- {
			was := g.outs
			if g.outs = slices.Delete(slices.Clone(was), i, i+1); !still() {
				g.outs = was
			}
		}
		var drop func(list *[]*node)
		drop = func(list *[]*node) {
			for i := len(*list) - 1; i >= 0; i-- {
				was := *list
				if !was[i].fix {
					if *list = slices.Delete(slices.Clone(was), i, i+1); still() {
						again = true
						continue
					}
					*list = was
				}
				drop(&was[i].body)
			}
		}
		drop(&g.body)
	}
}

var loopSpecs = []string{fmt.Sprintf("x:f32[N,%d]", rowSize), fmt.Sprintf("y:f32[%d]", rowSize), "n:int"}

// loopData are the inputs at a size.
func loopData(size int64) verify.DataSet {
	v := make([]float64, size*rowSize)
	for i := range v {
		v[i] = float64(i%7 - 2)
	}
	return verify.DataSet{Name: fmt.Sprintf("N=%d", size), Inputs: []verify.Named{{Name: "x", Tensor: tensor.FromFloats(tensor.Float32, []int64{size, rowSize}, v)},
		{Name: "y", Tensor: tensor.FromFloats(tensor.Float32, []int64{rowSize}, []float64{1, -2, 3})}, {Name: "n", Tensor: tensor.ScalarInt(size)}}}
}

// loops makes a program, and compares the graphs behind every pass and the file with what the eager evaluator gives.
func (w *worker) loops(rng *rand.Rand) (string, error) {
	w.doing.Store("generating")
	g := newLooper(rng)
	code := g.code()
	archive, err := archiveOf(code)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "program.pt"), archive, 0o666); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "program.specs"), []byte(strings.Join(loopSpecs, "\n")+"\n"+code), 0o666); err != nil {
		return "", err
	}
	w.doing.Store("converting")
	outcome, err := w.loop(archive)
	if w.only >= 0 {
		fmt.Fprintf(w.w, "%s\n%s\n%s %v\n", strings.Join(loopSpecs, " "), code, outcome, err)
	}
	if says := finding(outcome, err); says != "" {
		w.doing.Store("reducing")
		write := w.write
		w.write = "" // the program itself is written
		g.reduce(func() bool {
			archive, err := archiveOf(g.code())
			if err != nil {
				return false
			}
			return kindOf(finding(w.loop(archive))) == kindOf(says)
		})
		w.write = write
		w.found(says, fmt.Sprintf("inputs %s\n%s\nreduced to\n%s", strings.Join(loopSpecs, " "), code, g.code()))
	}
	return outcome, nil
}

// ask runs a program in the eager evaluator at all sizes, and gives the inputs and the outputs where it raises no exception.
func (w *worker) ask(m *ssa.Module) ([]verify.DataSet, error) {
	var sets []verify.DataSet
	for _, size := range loopSizes {
		set := loopData(size)
		inputs := make([]eager.Named, len(set.Inputs))
		for i, in := range set.Inputs {
			inputs[i] = eager.Named(in)
		}
		outputs, err := w.eager.Run(m, inputs)
		var raised *eager.Raised
		switch {
		case err == nil:
			for _, o := range outputs {
				set.Outputs = append(set.Outputs, verify.Named(o))
			}
			sets = append(sets, set)
		case !errors.As(err, &raised):
			return nil, fmt.Errorf("the eager evaluator: %w", err)
		}
	}
	return sets, nil
}

// keepFor writes a program, and what the evaluator gives at each size, for beside.py.
func (w *worker) keepFor(archive []byte, sets []verify.DataSet) error {
	name := filepath.Join(w.write, fmt.Sprintf("%d-%d", w.seed, w.i))
	if err := os.MkdirAll(w.write, 0o777); err != nil {
		return err
	}
	for _, set := range sets {
		if err := verify.WriteOutputs(name+"."+strings.TrimPrefix(set.Name, "N=")+".npz", []verify.DataSet{set}); err != nil {
			return err
		}
	}
	return os.WriteFile(name+".pt", archive, 0o666)
}

// loop converts a program; the outcome is as that of compare, or "not run" where the evaluator gives nothing at any size.
func (w *worker) loop(archive []byte) (outcome string, err error) {
	defer func() {
		if r := recover(); r != nil {
			outcome, err = "panic", fmt.Errorf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	opts := aton.Options{}
	for _, s := range loopSpecs {
		in, err := spec.Parse(s)
		if err != nil {
			return "", err
		}
		opts.Inputs = append(opts.Inputs, in)
	}
	m, err := aton.LoadBytes(archive, "program.pt", opts)
	if err != nil {
		return "refused", err
	}
	sets, err := w.ask(m)
	if err != nil {
		return "not run", err
	}
	if len(sets) == 0 {
		return "raises", nil
	}
	if w.write != "" {
		if err := w.keepFor(archive, sets); err != nil {
			return "not run", err
		}
	}
	agrees := func(m *ssa.Module) error {
		limits, err := ssa.ParseLimits(m.GetMetadata(ssa.LimitsKey))
		if err != nil {
			return err
		}
		for _, set := range sets {
			if slices.ContainsFunc(limits, func(l ssa.Limit) bool { return l.Symbol == "N" && set.Inputs[0].Tensor.Shape[0] < l.Min }) {
				continue
			}
			compared, err := verify.Verifier{}.Verify(m, set)
			if err != nil {
				return fmt.Errorf("%s: %w", set.Name, err)
			}
			for i, c := range compared {
				if c.Wrong != "" {
					return fmt.Errorf("%s: output %d has other numbers instead of PyTorch's: %s", set.Name, i, c.Wrong)
				}
			}
		}
		return nil
	}
	var wrong error
	opts.Runner = &passes.Runner{Observers: []passes.Observer{{AfterPass: func(e *passes.Event) {
		if wrong != nil || !e.Changed() || e.Module.UsesNamespace("aten") || e.Module.UsesNamespace("prim") {
			return
		}
		if err := agrees(e.Module); err != nil {
			wrong = fmt.Errorf("behind %s: %w", e.Pass.Name, err)
		}
	}}}}
	var file bytes.Buffer
	err = aton.ExportTo(&file, m, opts)
	if refusal := (*diag.List)(nil); errors.As(err, &refusal) {
		return "refused", err
	}
	if wrong != nil {
		return "converted", wrong
	}
	if err != nil {
		return "refused", err
	}
	again, err := aton.LoadBytes(file.Bytes(), "program.onnx", aton.Options{})
	if err != nil {
		return "converted", fmt.Errorf("the file that is written: %w", err)
	}
	if err := agrees(again); err != nil {
		return "converted", fmt.Errorf("the file that is written: %w", err)
	}
	return "converted", nil
}
