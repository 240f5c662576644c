package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// Programs of the kind "loops" put tensors and numbers in lists, dicts, dicts of lists, objects and attributes of the module under several names,
// replace, write and move them in loops and branches, and leave loops early, or the function. They are made without being evaluated: the eager evaluator says what they give, at several sizes, 1
// and 0 among them. A size at which the program raises an exception is left out.

// node is a statement: a line, and the statements in it.
type node struct {
	text string
	body []*node
	rest []*node // what an if does otherwise
	fix  bool    // it is not left out alone
}

// maxOutputs bounds the outputs of a program.
const maxOutputs = 4

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
	boxes []string // objects of class Box, with a tensor h and a list of tensors l
	shelf []string // lists of tensors by "a" and "b"
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

// place is an index of a list that has an element, which may be known at run time only.
func (g *looper) place(list string) string {
	if g.rng.IntN(6) == 0 {
		return fmt.Sprintf("torch.remainder(%s, torch.len(%s))", g.one(g.nums), list)
	}
	return pick(g.rng, []string{"0", "0", "-1", "1"})
}

// item is an element of a list of tensors.
func (g *looper) item() string {
	l := g.list()
	return fmt.Sprintf("%s[%s]", l, g.place(l))
}

// list is an expression that gives a list of tensors: of a variable, a dict or an object; "" if there is none.
func (g *looper) list() string {
	var all []string
	all = append(all, g.lists...)
	for _, n := range g.shelf {
		all = append(all, n+`["a"]`, n+`["b"]`)
	}
	for _, n := range g.boxes {
		all = append(all, n+".l")
	}
	if len(all) == 0 {
		return ""
	}
	return g.one(all)
}

// attribute is a tensor of the module or of an object.
func (g *looper) attribute() string {
	return g.one(append([]string{"self"}, g.boxes...)) + ".h"
}

// row is an expression that gives a tensor: a new one, or one that is in a container.
func (g *looper) row() string {
	switch k := g.rng.IntN(10); {
	case k == 9:
		return g.attribute()
	case k == 0 && g.list() != "":
		return g.item()
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
	switch k := g.rng.IntN(8); {
	case k == 7:
		return g.attribute()
	case k == 0 && g.list() != "":
		return g.item()
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
	case k == 1 && g.list() != "":
		return fmt.Sprintf("torch.len(%s)", g.list())
	case k < 4:
		return g.one(g.nums)
	}
	return fmt.Sprint(g.rng.IntN(4))
}

// statement makes one.
func (g *looper) statement() *node {
	for {
		if s := g.try(g.rng.IntN(36)); s != nil {
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
	case kind == 13 && g.list() != "":
		n := g.name("l")
		s := leaf("%s = %s", n, g.list())
		g.lists = append(g.lists, n)
		return s
	case kind < 18 && g.list() != "":
		l := g.list()
		switch r.IntN(9) {
		case 0, 1, 2:
			return g.call("torch._set_item(%s, %s, %s)", l, g.place(l), g.row())
		case 3, 4:
			return g.call("torch.append(%s, %s)", l, g.row())
		case 5:
			return leaf("torch.insert(%s, %s, %s)", l, g.place(l), g.row())
		case 6:
			return leaf("torch.reverse(%s)", l)
		case 7:
			n := g.name("v")
			s := leaf("%s = torch.pop(%s)", n, l)
			g.rows = append(g.rows, n)
			return s
		}
		n, a, b := g.name("t"), g.place(l), g.place(l)
		return &node{text: "if True:", fix: false, body: []*node{
			{text: fmt.Sprintf("%s = %s[%s]", n, l, a), fix: true},
			{text: fmt.Sprintf("_%s = torch._set_item(%s, %s, %s[%s])", n, l, a, l, b), fix: true},
			{text: fmt.Sprintf("__%s = torch._set_item(%s, %s, %s)", n, l, b, n), fix: true}}}
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
		return g.call("torch._set_item(%s, %s, torch.add(%s, 1))", l, g.place(l), g.num())
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
	case kind >= 26 && kind < 30 && g.depth < 2:
		return g.loop()
	case kind == 30 || kind == 31:
		return leaf("%s = %s", g.attribute(), g.row())
	case kind == 32 && g.depth == 0:
		n := g.name("o")
		s := &node{text: "if True:", body: []*node{leaf("%s = __torch__.Box.__new__(__torch__.Box)", n), leaf("_%s = (%s).__init__(%s, [%s, %s])", n, n, g.row(), g.row(), g.row())}}
		s.body[0].fix, s.body[1].fix = true, true
		g.boxes = append(g.boxes, n)
		return s
	case kind == 33 && len(g.boxes) > 0:
		if l := g.list(); r.IntN(2) == 0 {
			return leaf("%s.l = %s", g.one(g.boxes), l)
		}
		n := g.name("o")
		s := leaf("%s = %s", n, g.one(g.boxes))
		g.boxes = append(g.boxes, n)
		return s
	case kind == 34 && g.depth == 0:
		n := g.name("q")
		second := "[" + g.row() + "]"
		if l := g.list(); l != "" && r.IntN(2) == 0 {
			second = l
		}
		s := leaf("%s = {\"a\": [%s, %s], \"b\": %s}", n, g.row(), g.row(), second)
		g.shelf = append(g.shelf, n)
		return s
	case kind == 35 && len(g.shelf) > 0:
		value := "[" + g.row() + "]"
		if r.IntN(2) == 0 {
			value = g.list()
		}
		return g.call("torch._set_item(%s, %q, %s)", g.one(g.shelf), pick(r, []string{"a", "b"}), value)
	}
	return nil
}

// exit is a loop that may end the function, in the form in which archives have it: what it returns then, and a bool that says so. The
// second node stands for what is behind the loop.
func (g *looper) exit() []*node {
	r := g.rng
	ret, i, more := g.name("e"), g.name("j"), g.name("c")
	set := func(how func(k int) string) (ns []*node) {
		for k := range maxOutputs {
			ns = append(ns, &node{text: fmt.Sprintf("%s_%d = %s", ret, k, how(k)), fix: true})
		}
		return ns
	}
	trips := pick(r, []string{"2", "3", "n", "torch.len(x)"})
	before := append(set(func(int) string { return "h" }), &node{text: ret + " = False", fix: true}, &node{text: i + " = 0", fix: true},
		&node{text: fmt.Sprintf("%s = torch.gt(%s, 0)", more, trips), fix: true})
	body := g.block(1+r.IntN(2), func() []*node { g.nums = append(g.nums, i); return nil })
	leave := &node{text: fmt.Sprintf("if bool(torch.gt(torch.sum(%s), %d)):", g.held(), r.IntN(20)), fix: true,
		body: append(set(func(int) string { return g.held() }), &node{text: ret + " = True", fix: true}), rest: g.block(1+r.IntN(2), nil)}
	body = append(body, leave, &node{text: fmt.Sprintf("%s = torch.add(%s, 1)", i, i), fix: true},
		&node{text: fmt.Sprintf("%s = torch.__and__(torch.lt(%s, %s), torch.__not__(%s))", more, i, trips, ret), fix: true})
	return []*node{{text: "if True:", body: append(before, &node{text: "while " + more + ":", body: body, fix: true})}, {text: "return " + ret}}
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
	for _, kind := range []int{9, 10, 11, 12, 32, 34} {
		if s := g.try(kind); s != nil && rng.IntN(3) > 0 {
			g.body = append(g.body, s)
		} else if s != nil { // its name is not there
			for _, b := range s.body {
				s = b
				break
			}
			name, _, _ := strings.Cut(s.text, " ")
			for _, names := range []*[]string{&g.lists, &g.dicts, &g.ints, &g.maps, &g.boxes, &g.shelf} {
				*names = slices.DeleteFunc(*names, func(n string) bool { return n == name })
			}
		}
	}
	for range 2 + rng.IntN(7) {
		if rng.IntN(10) == 0 && g.n < 60 {
			g.body = append(g.body, g.exit()...)
			continue
		}
		g.body = append(g.body, g.statement())
	}
	g.outs = append(g.outs, g.rows...)
	for _, n := range g.lists {
		g.outs = append(g.outs, "torch.stack("+n+")")
	}
	g.outs = append(g.outs, "self.h")
	for _, n := range g.boxes {
		g.outs = append(g.outs, n+".h", "torch.stack("+n+".l)")
	}
	for _, n := range g.shelf {
		g.outs = append(g.outs, "torch.stack("+n+"[\"a\"])", "torch.stack("+n+"[\"b\"])")
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
	g.outs = g.outs[:min(len(g.outs), maxOutputs)]
	return g
}

// code is the method forward.
func (g *looper) code() string {
	var lines []string
	results := g.outs
	for _, n := range g.body {
		if strings.HasPrefix(n.text, "return ") {
			results = nil
		}
	}
	if results == nil { // both ends of the function have names
		for k := range g.outs {
			results = append(results, fmt.Sprintf("out%d", k))
		}
	}
	var write func(ns []*node, depth int)
	write = func(ns []*node, depth int) {
		pad := strings.Repeat("  ", depth)
		block := func(ns []*node) {
			if len(ns) == 0 {
				lines = append(lines, pad+"  pass")
			}
			write(ns, depth+1)
		}
		for i, n := range ns {
			if n.text == "if True:" { // statements that belong together
				write(n.body, depth)
				continue
			}
			if ret, ok := strings.CutPrefix(n.text, "return "); ok {
				lines = append(lines, pad+"if "+ret+":")
				for k := range g.outs {
					lines = append(lines, fmt.Sprintf("%s  out%d = %s_%d", pad, k, ret, k))
				}
				lines = append(lines, pad+"else:")
				rest := slices.Clone(ns[i+1:])
				if !slices.ContainsFunc(rest, func(n *node) bool { return strings.HasPrefix(n.text, "return ") }) {
					for k, o := range g.outs {
						rest = append(rest, leaf("out%d = %s", k, o))
					}
				}
				write(rest, depth+1)
				return
			}
			lines = append(lines, pad+n.text)
			if strings.HasSuffix(n.text, ":") {
				block(n.body)
				if strings.HasPrefix(n.text, "if ") {
					lines = append(lines, pad+"else:")
					block(n.rest)
				}
			}
		}
	}
	write(g.body, 0)
	return method([]string{"x: Tensor", "y: Tensor", "n: int"}, lines, slices.Repeat([]string{"Tensor"}, len(g.outs)), results)
}

// box is the class of the objects of programs.
const box = `class Box:
  h : Tensor
  l : List[Tensor]
  def __init__(self: __torch__.Box,
    h: Tensor,
    l: List[Tensor]) -> NoneType:
    self.h = h
    self.l = l
    return None
`

// archive is the module with a tensor h, ones.
func (g *looper) archive() ([]byte, error) {
	h := fmt.Sprintf("ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK%[1]ctQK\x00K%[1]c\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtR", rowSize)
	return zipped("data.pkl", "\x80\x02c__torch__\nProgram\n)\x81}(X\x08\x00\x00\x00training\x89X\x01\x00\x00\x00h"+h+"ub.", "data/0", strings.Repeat("\x00\x00\x80\x3f", rowSize),
		"code/__torch__.py", "class Program(Module):\n  __parameters__ = []\n  __buffers__ = [\"h\", ]\n  training : bool\n  h : Tensor\n"+g.code()+box)
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
				drop(&was[i].rest)
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

// data are the inputs at all sizes.
func (*looper) data() []verify.DataSet {
	out := make([]verify.DataSet, len(loopSizes))
	for i, size := range loopSizes {
		out[i] = loopData(size)
	}
	return out
}

func (*looper) specs() []string { return loopSpecs }

// loops makes a program and judges it.
func (w *worker) loops(rng *rand.Rand) (string, error) {
	w.doing.Store("generating")
	return w.judge(newLooper(rng), 0)
}
