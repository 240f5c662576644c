package form

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// chance makes values of a program at random, of one type: a Python variable has one, and what it is of that type depends on the path.
type chance struct {
	*rand.Rand
	values
	made int
}

func (c *chance) name() string {
	c.made++
	return fmt.Sprint("v", c.made)
}

// kind draws a type: a function that draws values of it.
func (c *chance) kind(depth int) func() py.Value {
	n := 4
	if depth > 0 {
		n = 9
	}
	switch c.IntN(n) {
	case 0, 1:
		return c.tensors()
	case 2:
		return func() py.Value {
			if c.IntN(2) == 0 {
				return runTimeInt(c.name())
			}
			return py.Int(c.Int64N(3))
		}
	case 3:
		return func() py.Value { return py.Bool(c.IntN(2) == 0) }
	case 4, 5:
		a, b := c.kind(depth-1), c.kind(depth-1)
		return func() py.Value { return &py.Tuple{Elems: []py.Value{a(), b()}} }
	case 6:
		elem := c.member()
		return func() py.Value {
			var elems []py.Value
			for range c.IntN(3) {
				elems = append(elems, elem())
			}
			l := c.list(nil, elems...)
			if c.IntN(3) == 0 {
				if st := c.atRunTime(l.State()); st != nil {
					l = &py.List{Cell: c.h.New(st)}
				}
			}
			return l
		}
	case 7:
		a, b := c.kind(depth-1), c.kind(depth-1)
		return func() py.Value { return c.dict("a", a(), "b", b()) }
	}
	return c.option(c.kind(0))
}

// tensors draws one tensor or another.
func (c *chance) tensors() func() py.Value {
	known := c.tensor(c.name(), tensor.Float32, 2, 3)
	return func() py.Value {
		if c.IntN(3) == 0 {
			return known
		}
		dims := []any{c.IntN(2) + 2, "N"}
		return c.tensor(c.name(), tensor.Float32, dims[:1+c.IntN(2)]...)
	}
}

// member draws a type of elements of lists. Tuples of numbers alone are left out: a list of them is one of vectors.
func (c *chance) member() func() py.Value {
	x := c.kind(0)
	switch c.IntN(4) {
	case 0:
		x = c.option(x)
	case 1:
		first, second := c.tensors(), x
		if c.IntN(2) == 0 {
			second = c.option(x)
		}
		x = func() py.Value { return &py.Tuple{Elems: []py.Value{first(), second()}} }
		if c.IntN(3) == 0 {
			x = c.option(x)
		}
	}
	return x
}

// atRunTime is a list of run-time length with elements of the types that st has, nil if these are not known.
func (c *chance) atRunTime(st *py.ListState) *py.ListState {
	cols := st.Spread()
	if cols.Width == 0 {
		elem := (&terms{}).ElemType(st)
		if elem == nil {
			return nil
		}
		return &py.ListState{Dyn: &ssa.Value{Name: c.name(), Type: &ssa.ListType{Elem: elem}}}
	}
	out := &py.Columns{Spread: cols}
	for i := range cols.Width {
		of, _ := st.Column(cols, i)
		col := c.atRunTime(of)
		if col == nil {
			return nil
		}
		out.Lists = append(out.Lists, col)
	}
	return &py.ListState{Columns: out}
}

// option draws None at times.
func (c *chance) option(of func() py.Value) func() py.Value {
	return func() py.Value {
		switch c.IntN(3) {
		case 0:
			return py.None
		case 1:
			return &py.Maybe{Has: &ssa.Value{Name: c.name(), Type: ssa.BoolType}, Val: of()}
		}
		return of()
	}
}

// joined is the form of several values, nil if they have none.
func joined(s *Space, xs ...py.Value) (f *Form) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			f = nil
		default:
			panic(r)
		}
	}()
	f = Of(xs[0])
	for again := true; again; {
		again, s.Awaits = false, false
		for _, x := range xs {
			again = s.Widen(f, x) || again
		}
	}
	if s.Awaits {
		return nil
	}
	return f
}

var freshSymbol = regexp.MustCompile(`\bu\d+`)

// spelled tells a form whatever the names of its symbols are, and whether or not it keeps a value from before: what another path gives is not kept.
func spelled(s *Space, f *Form) string {
	if f == nil {
		return "none"
	}
	var open func(f *Form) *Form
	open = func(f *Form) *Form {
		if f == nil {
			return nil
		}
		c := *f
		if _, number := py.NumberType(py.AsValue(c.value)); c.kind == fixed && (number || !isConst(c.value)) {
			s.open(&c)
		}
		if c.kind == runTime {
			return &c
		}
		elems := c.elems
		c.elems = nil
		for _, e := range elems {
			c.elems = append(c.elems, open(e))
		}
		return &c
	}
	return freshSymbol.ReplaceAllString(text(open(f)), "u")
}

func isConst(x any) bool {
	_, ok := x.(py.Const)
	return ok
}

// TestLaws: forms are a lattice. The form of several values is the same in whatever order they come, it is above each of them, and that of one value is
// that value.
func TestLaws(t *testing.T) {
	forms := map[string]bool{}
	for seed := range uint64(3000) {
		s := newSpace()
		c := &chance{Rand: rand.New(rand.NewPCG(seed, 1)), values: values{s.Heap}}
		draw := c.kind(2)
		x, y, z := draw(), draw(), draw()
		say := func() string { return fmt.Sprintf("seed %d: %s, %s and %s", seed, shown(x), shown(y), shown(z)) }
		if s.Widen(Of(x), x) {
			t.Errorf("%s: the first one does not fit itself", say())
		}
		if a, b := spelled(s, joined(s, x, y)), spelled(s, joined(s, y, x)); a != b {
			t.Errorf("%s: the first two are %s, and the other way round %s", say(), a, b)
		}
		all := joined(s, x, y, z)
		for _, order := range [][]py.Value{{x, z, y}, {y, x, z}, {y, z, x}, {z, x, y}, {z, y, x}} {
			if a, b := spelled(s, all), spelled(s, joined(s, order...)); a != b {
				t.Errorf("%s: they are %s, and in the order %s, %s, %s they are %s", say(), a, shown(order[0]), shown(order[1]), shown(order[2]), b)
			}
		}
		if all == nil {
			continue
		}
		for _, v := range []py.Value{x, y, z} {
			if s.Widen(all, v) {
				t.Errorf("%s: %s does not fit %s", say(), text(all), shown(v))
			}
		}
		forms[spelled(s, all)] = true
	}
	if len(forms) < 100 {
		t.Errorf("only %d forms were met", len(forms))
	}
	split := 0
	for f := range forms {
		if strings.Contains(f, "columns") {
			split++
		}
	}
	if split < 100 {
		t.Errorf("only %d forms with columns were met", split)
	}
}

// TestRebuiltIsTheSame: of what a form carries of a value, the value is made again.
func TestRebuiltIsTheSame(t *testing.T) {
	for seed := range uint64(3000) {
		s := newSpace()
		c := &chance{Rand: rand.New(rand.NewPCG(seed, 2)), values: values{s.Heap}}
		draw := c.kind(2)
		x, y := draw(), draw()
		f := joined(s, x, y)
		if f == nil {
			continue
		}
		for _, v := range []py.Value{x, y} {
			carried := s.Flatten(f, v, nil)
			got := s.Rebuild(f, func(t ssa.Type) (v *ssa.Value) {
				v, carried = carried[0], carried[1:]
				return &ssa.Value{Name: v.Name, Type: t}
			})
			if shown(got) != shown(v) || len(carried) > 0 {
				t.Errorf("seed %d: %s is %s again, of %s; %d values are left", seed, shown(v), shown(got), text(f), len(carried))
			}
		}
	}
}
