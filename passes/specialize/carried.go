package specialize

import (
	"fmt"

	"github.com/aton-project/aton/passes/specialize/internal/form"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
)

// loopState is the attempt to keep one loop.
type loopState struct {
	s   *walk
	src *sourceLoop
	form.Space
	trip  *ssa.Value
	cond  *ssa.Value
	outer *ssa.Block

	forms   []*form.Form // of the carried values of the source loop
	cells   []*journal.Cell
	inCells map[*journal.Cell]*form.Form
	stale   map[*journal.Cell]string // storages that an iteration leaves unreadable
	before  sharing                  // the first iteration
	later   sharing                  // any iteration

	// of the last round
	n     *ssa.Op
	block *ssa.Block
	again py.Value
	outs  []py.Value
}

// carried is the program as the forms of what a loop carries need it.
type carried struct {
	onWalk
	l *loopState
}

func (c carried) At(moment int, f func()) { c.l.Changes[moment].Under(f) }

// Overlaps asks for the first iteration by itself, if that was decided: the others may have a tensor that is not expanded.
func (c carried) Overlaps(t *py.Tensor, v *ssa.Value) bool {
	yes := overlaps(heap.ViewOf(t), v)
	if yes && c.l.src.strict {
		c.l.s.fail("alias", "a loop-carried tensor may have several elements in one place of memory")
	}
	return yes
}

// Size is a symbol of its own for a size that an iteration makes: another one makes another size.
func (c carried) Size(a, b sym.Expr) (size sym.Expr, varies bool) {
	if a.Equal(b) && !c.l.Module.MadeSince(b, c.l.Fresh) {
		return a, false
	}
	return c.l.Module.FreshSymbol("u", max(0, min(a.Min(), b.Min(), 1))), true
}

func (carried) Numbers(_, _ py.Value) {}

func (c carried) CheckKeys(st *py.DictState) { c.l.s.constantKeys(st) }

// Made is told of nothing: relate says what the results of a loop share.
func (carried) Made(any, [2]any) {}

// fresh notes what is not known of a value that is another one each time.
func (l *loopState) fresh(v *ssa.Value) *ssa.Value {
	if t := v.Tensor(); t != nil && !t.Ranked {
		l.Lost(v)
	}
	if v.Type == ssa.IntType {
		v.Sym = []sym.Expr{l.Module.FreshSymbol("n", minInt)}
	}
	return v
}

// Unranked asks for the first iteration by itself, where a carried tensor does not keep its rank.
func (c carried) Unranked() {
	l := c.l
	l.s.offer(peel, l.src.op)
	if l.s.takes(peel) {
		l.s.offer(widen, l.src.op)
	}
	if l.src.strict {
		l.s.fail("loop-carried", "a loop-carried tensor changes its rank")
	}
	if !l.s.takes(widen) {
		l.s.openRank(diag.Diagnostic{Op: string(l.src.op.Kind), Message: "a loop-carried tensor has another number of dimensions in later iterations, and an operator behind it needs their number"})
	}
}

var carriedClashes = [...]string{
	form.NoForm:       "a value that changes in the loop has no form in ONNX",
	form.NotTensor:    "a loop-carried tensor becomes something else",
	form.NotNumber:    "a loop-carried number becomes something else",
	form.NotTuple:     "a loop-carried tuple changes its form",
	form.NotList:      "a loop-carried list becomes something else",
	form.NotDict:      "a loop-carried dict becomes something else",
	form.DTypes:       "a loop-carried tensor changes its dtype from %v to %v",
	form.NumberTypes:  "a loop-carried number changes its type from %v to %v",
	form.Ranks:        "a loop-carried tensor changes its rank",
	form.Lengths:      "a list changes its length in the loop",
	form.Keys:         "the keys of a dict change in the loop",
	form.KeyOrder:     "the keys of a dict change in the loop, or their order",
	form.Strings:      "a string changes in the loop",
	form.NoneOrValue:  "a value is None at times in the loop",
	form.NoneOrList:   "a value is None before the loop and a container in it",
	form.UnsetOrList:  "a list of run-time length is set in the loop only",
	form.Elements:     "the elements of a list become something else in the loop",
	form.NoneAlone:    "a list holds None alone, and its length is not known",
	form.ShapeInPlace: "a tensor's shape is changed in place in the loop",
	form.Attribute:    "an attribute is set in the loop only",
}

// Refuse unrolls the loop, if it can be.
func (c carried) Refuse(why form.Clash, types ...any) {
	text := fmt.Sprintf(carriedClashes[why], types...)
	if c.l.Strict {
		c.l.s.unroll("%s", text)
	}
	c.l.s.fail("loop-carried", "%s", text)
}
