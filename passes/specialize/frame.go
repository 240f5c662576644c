package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// walk is the walk over the source program.
type walk struct {
	*context
	build  *builder
	heap   *heap.Heap
	module *module
	vals   *values
	views  *views
	writes *writes
	lists  *containers

	src   *ssa.Func
	env   []py.Value // of the function that is being evaluated, by ID of the source value
	frame *frame     // whose operator is being evaluated
	facts facts      // of the path at hand
	paths int        // how often the path was split
	// starts are the bools that say whether a loop has an iteration, where the first one is evaluated by itself.
	starts map[loopStart]*ssa.Value
	// lookups is how often alone looked at what is left of the program.
	lookups int
}

// frame is a block of the source program that is being evaluated. Frames are a
// stack: of an If whose condition is known, the block has a frame on that of the
// If, and so has the body of a function that is called.
type frame struct {
	up    *frame // that waits for the results; nil at the bottom
	outer *frame // of the frame at the bottom: the one in whose operator it is evaluated
	op    *ssa.Op
	env   []py.Value
	block *ssa.Block
	next  *ssa.Op
	loc   diag.Loc // of operators that have none of their own
	calls int      // how deep calls are nested
}

// loopStart is what decides whether a loop has an iteration.
type loopStart struct{ trip, cond *ssa.Value }

// outside is the frame around a frame: the one that waits for it, or the one in
// which a branch or the body of a loop is evaluated.
func (f *frame) outside() *frame {
	if f.up != nil {
		return f.up
	}
	return f.outer
}

// sourceLoop is a loop of the source program.
type sourceLoop struct {
	op         *ssa.Op
	body       *ssa.Block
	trip, cond py.Value
	inits      []py.Value
	counted    bool  // it may be unrolled
	few        bool  // it has at most maxAliased iterations
	first      int64 // the index of its first iteration
	strict     bool  // what is carried keeps its form
	runs       bool  // it has an iteration on the path at hand
}
