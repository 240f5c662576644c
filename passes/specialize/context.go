package specialize

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/form"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
)

// context is what all parts of the pass share: the module, the options, the
// place in the source program that is being evaluated, and what was found there.
type context struct {
	m       *ssa.Module
	opts    Options
	decided *decisions
	loc     diag.Loc
	op      *ssa.Op // being evaluated
	findings
	spent budget
	// nonEmpty are the symbols of inputs that are taken to be 1 or more, where the user has not said so.
	nonEmpty map[string]bool
	mode     mode
	// known are the symbols that have a value on the path at hand, and inShape the tensors in the shapes that these give them.
	known   knownSizes
	inShape map[*ssa.Value]*ssa.Value
	// pools are those that the program at hand has: see pool.go.
	pools []*form.Pool
	// region is the newest cell from before the branch or the iteration at hand.
	region int
	// losers are the operators of the program that give values of which less is known than of their operands, and oneOf those that made objects which may be another one.
	losers map[*ssa.Value]*ssa.Op
	oneOf  map[*journal.Cell]*ssa.Op
	// touched are the containers of the module's state that the program writes to, and where it does.
	touched map[*journal.Cell]site
}

// mode is how loops are evaluated.
type mode int

const (
	unrolling    mode = iota // loops that cannot stay loops are unrolled
	keepingLoops             // within a loop that stays one: loops stay loops
)

// findings are what is to be said of the program at the end. An attempt that is
// thrown away takes back its own. Slices only grow, so a copy holds.
type findings struct {
	warnings []diag.Diagnostic
	// causes are the operators whose lowering failed for reasons of their own, so that they have no known types.
	causes []diag.Diagnostic
	// openRanks are the places where what is known at run time decides a rank; rankNeeded is set where an operator needs it.
	openRanks  []diag.Diagnostic
	rankNeeded *failure
	offers     []decision // see decide.go
	// typeless is set when an operator of a user gives a tensor of unknown rank.
	typeless bool
	assumed  []string
	least    []leastSize
	// wanted are the types of tensors that a loop puts into lists, and that have no pool.
	wanted  []*ssa.TensorType
	changed []stateChange // state that the program changes, in the order of the first write
}

// learn notes what another attempt found that may get further in another way.
func (f *findings) learn(other findings) {
	for _, d := range other.offers {
		f.offer(d.way, d.at)
	}
}

// leastSize says that the size of a symbol must be n or more.
type leastSize struct {
	symbol string
	n      int64
}

// failure is why the program cannot be converted, at the user's line.
type failure struct {
	d     diag.Diagnostic
	found findings
	// losers are the operators of the program that lost what was needed, where that is known, and by is what needs it, if it is not where d says.
	losers []*ssa.Op
	by     site
	// unjoined is set where two paths could not be joined at the end of a block.
	unjoined bool
}

// raised ends a path of the program that raises an exception.
type raised struct {
	loc     diag.Loc
	message string
}

// needUnroll says that a loop cannot stay a loop.
type needUnroll struct {
	loc    diag.Loc
	reason string
	found  findings // by then
}

// needSplit says that what follows has to be evaluated once for each value of a
// bool. If that cannot be done, why is the error.
type needSplit struct {
	cond *ssa.Value
	why  *failure
	ask  func() *ssa.Value // computes cond, if it is not there yet
	// otherwise, if it is set, lets the operator be evaluated without a split, where none gives a common form.
	otherwise func()
}

func (s *context) failure(id, format string, args ...any) *failure {
	d := diag.Diagnostic{ID: id, Loc: s.loc, Message: fmt.Sprintf(format, args...)}
	if s.op != nil {
		d.Op = string(s.op.Kind)
	}
	return &failure{d: d, found: s.findings}
}

// fail ends the pass.
func (s *context) fail(id, format string, args ...any) { panic(s.failure(id, format, args...)) }

// undecided ends the evaluation of an operator that has to know whether m is None.
func (s *context) undecided(m *py.Maybe, format string, args ...any) {
	panic(needSplit{cond: m.Has, why: s.failure("optional-data", format, args...)})
}

// raised is the end of the path at hand: PyTorch raises there.
func (s *context) raised(message string) raised { return raised{s.loc, message} }

func (s *context) unroll(format string, args ...any) {
	panic(needUnroll{s.loc, fmt.Sprintf(format, args...), s.findings})
}

func (s *context) warnf(id, format string, args ...any) {
	d := diag.Diagnostic{Severity: diag.Warning, ID: id, Loc: s.loc, Message: fmt.Sprintf(format, args...)}
	if s.op != nil {
		d.Op = string(s.op.Kind)
	}
	s.warnings = append(s.warnings, d)
}

// where names the line at hand in a message on something later.
func (s *context) where() string {
	if at := s.m.Locs.String(s.loc); at != "" {
		return "at " + at
	}
	return "before"
}

// needTwo notes that axes must be 2 or more, which the pass guard has the model check: with size 1, a reshape or contiguous() that copies
// would share memory with a tensor that is written.
func (s *context) needTwo(axes []string) {
	for _, name := range axes {
		if need := (leastSize{name, 2}); !slices.Contains(s.least, need) {
			s.warnf("axis-of-one", "a copy of what is written here would be a view if %s were 1, and show what is written; the model fails at run time where it is 1", name)
			s.least = append(s.least, need)
		}
	}
}

// needPlural notes that the symbols of a size must be 2 or more, which the pass guard has the model check.
func (s *context) needPlural(e sym.Expr) {
	s.warnf("axis-of-one", "axis of size %s is squeezed, and what is behind it needs the number of dimensions; the model fails at run time where it is 1", e)
	e.Symbols(func(name string) { s.least = append(s.least, leastSize{name, 2}) })
}

// needNonEmpty notes that what the program computes on sizes has this answer for axes of size 1 and more only, which the pass guard has the
// model check.
func (s *context) needNonEmpty(symbols []string) {
	for _, name := range symbols {
		if need := (leastSize{name, 1}); !slices.Contains(s.least, need) {
			s.warnf("not-empty", "what is computed here takes %s to be 1 or more; the model fails at run time where it is 0", name)
			s.least = append(s.least, need)
		}
	}
}

// keepLeast takes over the least sizes of other findings, and what warns of them.
func (s *context) keepLeast(found findings) {
	n := len(s.least)
	for _, need := range found.least {
		if !slices.Contains(s.least, need) {
			s.least = append(s.least, need)
		}
	}
	if len(s.least) == n {
		return
	}
	for _, w := range found.warnings[min(len(s.warnings), len(found.warnings)):] {
		if w.ID == "not-empty" || w.ID == "axis-of-one" {
			s.warnings = append(s.warnings, w)
		}
	}
}

// openRank notes that a rank is not known at export.
func (s *context) openRank(d diag.Diagnostic) {
	d.ID, d.Loc = "dynamic-rank", s.loc
	s.openRanks = append(s.openRanks, d)
}

// stateChange is a piece of the module's state that the program changes.
type stateChange struct {
	name  string
	input bool // of the caller's, not of the module's own
	loc   diag.Loc
	op    ssa.Kind
	read  func() py.Value
}

// site is where the program last wrote to a container.
type site struct {
	loc diag.Loc
	op  ssa.Kind
}

// budget bounds what the evaluation of a program may take. A few lines can double a list forty times, or run a loop of a
// million iterations within another one. What an attempt has spent is spent, also where it is thrown away.
type budget struct {
	steps    int64 // operators that were evaluated
	maxSteps int64
	bytes    int64 // of strings and lists that were made
	maxBytes int64
	places   int64 // elements whose places in memory were looked for
}

// The limits of a budget, some seconds and some hundred megabytes: steps of any program, and further ones for each of its
// operators; bytes.
const (
	baseSteps  = 1 << 20
	stepsPerOp = 16
	maxBytes   = 1 << 28
)

// knownSizes is what is known of sizes on the path at hand.
type knownSizes struct {
	values map[string]int64 // of symbols
	zeros  []sym.Expr       // differences that are 0, of which no symbol follows
	apart  []sym.Expr       // differences that are not 0
}
