package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
)

// writes evaluates operators that write to tensors.
type writes struct {
	*context
	build *builder
	heap  *heap.Heap
	vals  *values
	views *views
	// reaches reports that what is left of the program may read the memory in a cell.
	reaches func(c *journal.Cell) bool
}

// containers evaluates operators on lists, dicts, tuples and strings.
type containers struct {
	*context
	build *builder
	heap  *heap.Heap
	vals  *values
	views *views
	alone func(c *journal.Cell) bool // see walk.alone
}

// set writes to a list, a dict or an attribute. Of an object that may be another
// one, the other would not show it.
func (s *containers) set(c *journal.Cell, content any) {
	if s.heap.HasTwins(c) && !s.alone(c) {
		f := s.failure("alias", "what is written is one of several objects, and which one depends on data; write to each of them in the branches")
		f.losers = s.losersOfCells(append(s.heap.Twins(c), c))
		panic(f)
	}
	if c.ID() < 0 && s.op != nil {
		if s.touched == nil {
			s.touched = map[*journal.Cell]site{}
		}
		s.touched[c] = site{s.loc, s.op.Kind}
	}
	s.heap.Set(c, content)
}

// index resolves a list index; ok is false if it is only known at run time.
func (s *containers) index(x py.Value, n int) (int, bool) {
	l, ok := py.LiteralOf(x)
	if !ok {
		return 0, false
	}
	i, err := py.Index(l.Int(), n)
	if err != nil {
		panic(s.raised(err.Error()))
	}
	return i, true
}

func (s *containers) negateIf(v py.Value, neg bool) py.Value {
	if !neg {
		return v
	}
	if l, ok := v.(py.Const); ok {
		return py.Bool(!l.Bool())
	}
	return s.vals.wrap(s.vals.emitName("aten::__not__", v.(py.Dynamic)))
}
