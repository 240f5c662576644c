package specialize

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// way is another way to evaluate an operator.
type way int

const (
	atLeastTwo way = iota // an axis that a squeeze may remove is 2 or more: the model refuses others at run time
	peel                  // the first iteration of a loop is evaluated by itself, where what is carried changes its form, or each one if that does not help
	notEmpty              // the branch of an If that only tensors without elements take is left out: see empty.go
	split                 // what follows an If is evaluated once for each branch, where the common form of their values says less
	knowSizes             // what is compared to be equal is known to be equal on the path where it is; an If that gives two constant ints is split: see known.go
	widen                 // the common form stays though it says less: the pass lower says what needs more
	ways
	inPools // tensors that a loop moves about lie in one memory: see pool.go; not with others, since most of these are not needed then
)

func (w way) String() string {
	return [...]string{
		"the axis is taken to be 2 or more",
		"the first iteration is evaluated by itself",
		"the branch for no elements is left out",
		"what follows is evaluated once for each branch",
		"sizes are known where they are compared to be equal",
		"the common form stays, though it says less",
		"", // ways
		"tensors that a loop moves about lie in one memory",
	}[w]
}

// decision says that an operator of the program is evaluated in another way; nil stands for all operators.
type decision struct {
	way way
	at  *ssa.Op
}

// decisions are what was decided by now.
type decisions struct {
	taken map[decision]bool
	used  map[decision]bool // those that changed something
	told  []diag.Diagnostic // of each decision, what it is and what it is for
	of    []decision        // of each element of told
	// offered are the decisions that any walk offered.
	offered []decision
	// pool says which tensors lie in pools, and wanted are the types of which there is a pool though none is there before the loop.
	pool   pooling
	wanted []*ssa.TensorType
}

func newDecisions() *decisions {
	return &decisions{taken: map[decision]bool{}, used: map[decision]bool{}}
}

// pooling says which tensors a loop moves into pools.
type pooling int

const (
	noPools       pooling = iota
	everything            // those that it carries, and those in its containers
	containedOnly         // those in its containers
)
