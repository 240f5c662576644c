package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/form"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
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
type carried struct{ l *loopState }

func (c carried) Read(t *py.Tensor) *ssa.Value { return c.l.s.vals.read(t) }

func (c carried) RowMajor(t *py.Tensor, v *ssa.Value) bool {
	return c.l.s.views.axes.IsRowMajor(heap.ViewOf(t).Strides, v.Tensor()) == layout.Shares
}

// Overlaps asks for the first iteration by itself, if that was decided: the others may have a tensor that is not expanded.
func (c carried) Overlaps(t *py.Tensor, v *ssa.Value) bool {
	yes := overlaps(heap.ViewOf(t), v)
	if yes && c.l.src.strict {
		c.l.s.fail("alias", "a loop-carried tensor may have several elements in one place of memory")
	}
	return yes
}

func (c carried) Moved(v *heap.View, places []heap.Place, args []py.Value) *py.Tensor {
	return c.l.s.views.movedTo(v, places, args)
}

func (c carried) Number(x py.Value) *ssa.Value { return c.l.s.vals.materialize(x) }

func (c carried) Dummy(t ssa.Type) *ssa.Value {
	vals := c.l.s.vals
	if t := ssa.AsTensor(t); t != nil {
		return vals.read(vals.dummyTensor(t))
	}
	return vals.materialize(vals.dummy(py.Dyn(&ssa.Value{Type: t}), nil))
}

func (c carried) ElemType(st *py.ListState) ssa.Type { return c.l.s.vals.dynElem(st) }

func (c carried) Listed(st *py.ListState, elem ssa.Type) *ssa.Value {
	if st.Dyn == nil && len(st.Elems) == 0 {
		return c.l.s.build.cur.Append("prim::ListConstruct", c.l.s.loc, nil, &ssa.ListType{Elem: elem}).Result(0)
	}
	return c.l.s.vals.dynamic(st, nil)
}

func (c carried) Vectors(elem ssa.Type) bool { return memberList(elem) }

func (c carried) PoolOf(st *py.ListState, changes journal.Changes) *form.Pool {
	return c.l.s.poolIn(st, changes)
}

func (c carried) Places(p *form.Pool, st *py.ListState) *ssa.Value {
	return c.l.s.vals.placesValue(p.Self, st)
}

func (c carried) Rows(p *form.Pool, places *ssa.Value) *py.ListState {
	return c.l.s.vals.placed(p.Self, places)
}

func (c carried) CheckKeys(st *py.DictState) { c.l.s.constantKeys(st) }

func (c carried) Lost(v *ssa.Value) { c.l.s.loses(v) }

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

// Refuse unrolls the loop, if it can be.
func (c carried) Refuse(why string) {
	if c.l.Strict {
		c.l.s.unroll("%s", why)
	}
	c.l.s.fail("loop-carried", "%s", why)
}
