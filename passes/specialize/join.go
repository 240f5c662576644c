package specialize

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/form"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
)

// merger joins what two branches gave into results of the If.
type merger struct {
	form.Space
	s       *walk
	n       *ssa.Op
	blocks  [2]*ssa.Block
	rets    [2][]*ssa.Value
	memo    map[[2]*ssa.Value]*ssa.Value
	reach   *reach // nil stands for all cells
	chooses bool   // while the values that an If of the program gives are merged
	// mergedCells are the last cells of which a cell is one of the two.
	mergedCells map[*journal.Cell]*journal.Cell
	// held are the storages of merged tensors that may be memory which a branch made.
	held map[*heap.Storage][]*heap.Storage
	// shown are merged tensors, by their storage, and what they show of a branch.
	shown [][2]*heap.Storage
}

// newMerger is for the ends of the two branches of n. Cells after start were made in them.
func (s *walk) newMerger(n *ssa.Op, outs [2]outcome, start int) *merger {
	m := &merger{s: s, n: n, blocks: [2]*ssa.Block{n.Blocks[0], n.Blocks[1]}, memo: map[[2]*ssa.Value]*ssa.Value{},
		mergedCells: map[*journal.Cell]*journal.Cell{}, held: map[*heap.Storage][]*heap.Storage{}}
	m.Space = form.Space{Program: branches{onWalk{s}, m}, Heap: s.heap, Module: s.m, If: n, Start: start, Fresh: s.m.Freshness(),
		Changes: [2]journal.Changes{outs[0].changes, outs[1].changes}}
	return m
}

// join gives the values that the two branches give, and makes the writes of both.
func (m *merger) join(outs [2]outcome) []py.Value {
	s := m.s
	if results, done := m.withElements(outs); done {
		return results
	}
	results := make([]py.Value, len(outs[0].results))
	m.chooses = m.reach == nil && s.op.Kind == "prim::If"
	for i := range results {
		results[i] = py.AsValue(m.merge(outs[0].results[i], outs[1].results[i]))
	}
	m.chooses = false
	cells := journal.Changes{}
	for _, changes := range m.Changes {
		for c := range changes {
			if c.ID() <= m.Start && (m.reach == nil || m.reach.has(c)) {
				cells[c] = nil
			}
		}
	}
	for _, c := range journal.Ordered(cells) {
		a, b := m.Changes[0].Of(c), m.Changes[1].Of(c)
		cells[c] = form.Content(stale(a, b), m.merge(a, b))
	}
	for _, pair := range m.shown { // only now: a list that is one of two may have become one of run-time length
		s.heap.Inherit(pair[0], pair[1])
	}
	for _, c := range journal.Ordered(cells) { // only now: merging reads what was before
		s.heap.Set(c, cells[c])
	}
	for i, b := range m.blocks {
		b.SetReturns(m.rets[i]...)
	}
	if len(m.n.Results) == 0 {
		m.n.Erase()
	}
	return results
}

// merge gives the value, or the content of a cell, that is x at the end of one branch and y at that of the other.
func (m *merger) merge(x, y any) any {
	f := m.Join(x, y)
	var ends [2][]*ssa.Value
	for i, x := range [2]any{x, y} {
		m.At(i, func() { ends[i] = m.Flatten(f, x, nil) })
	}
	k := -1
	return m.Rebuild(f, func(t ssa.Type) *ssa.Value {
		k++
		return m.pair(ends[0][k], ends[1][k], t)
	})
}

// read is the value of a tensor at the end of a branch.
func (m *merger) read(side int, t *py.Tensor) (v *ssa.Value) {
	m.At(side, func() { v = m.s.vals.read(t) })
	return v
}

// stale is the content of a cell of which the two branches leave a and b: what one of them leaves unreadable is so.
func stale(a, b any) any {
	x, ok := a.(heap.State)
	if y, _ := b.(heap.State); ok && x.Stale == "" {
		x.Stale = y.Stale
	}
	if ok {
		return x
	}
	return a
}

// pair is the result that is v0 or v1.
func (m *merger) pair(v0, v1 *ssa.Value, t ssa.Type) *ssa.Value {
	key := [2]*ssa.Value{v0, v1}
	if r := m.memo[key]; r != nil {
		return r
	}
	if v0 == v1 && v0.Tensor() != nil {
		return v0
	}
	m.rets[0], m.rets[1] = append(m.rets[0], v0), append(m.rets[1], v1)
	r := m.n.AddResult(t)
	if t == ssa.IntType {
		joined := m.s.m.FreshSymbol("n", minInt)
		if len(v0.Sym) == 1 && len(v1.Sym) == 1 {
			if e, ok := m.size(v0.Sym[0], v1.Sym[0]); ok {
				joined = e
			}
		}
		r.Sym = []sym.Expr{joined}
	}
	m.memo[key] = r
	if t0, t1 := v0.Tensor(), v1.Tensor(); t0 != nil && t1 != nil && t0.Ranked && t1.Ranked && !r.Tensor().Ranked {
		m.openRank(r, len(t0.Dims), len(t1.Dims))
	}
	return r
}

// openRank is called for a result that has another rank in each branch.
func (m *merger) openRank(r *ssa.Value, rank0, rank1 int) {
	why := fmt.Sprintf("a tensor has %d or %d dimensions depending on data, and an operator behind it needs their number", rank0, rank1)
	m.s.less("dynamic-rank", "%s", why)
	m.s.loses(r)
	if !m.s.takes(widen) {
		m.s.openRank(diag.Diagnostic{Op: "prim::If", Message: why})
		if m.s.opts.Opset < ifOfRanks {
			m.s.needRank(r)
		}
	}
}

// ifOfRanks is the first opset with an If whose branches give tensors of several ranks.
const ifOfRanks = 11

// sided is the result that is v where the If takes branch i, and false else.
func (m *merger) sided(i int, v *ssa.Value) *ssa.Value {
	no := m.s.build.constant(ssa.Bool(false))
	if i == 0 {
		return m.pair(v, no, ssa.BoolType)
	}
	return m.pair(no, v, ssa.BoolType)
}

// branches is the program as the forms of what the branches of an If give need it.
type branches struct {
	onWalk
	m *merger
}

// At runs f at the end of a branch: what it emits is in that branch.
func (b branches) At(side int, f func()) {
	cur := b.s.build.cur
	b.s.build.cur = b.m.blocks[side]
	b.m.Changes[side].Under(f)
	b.s.build.cur = cur
}

// Overlaps keeps the paths apart, if that was decided: a write to the tensor of one branch may change several of its elements.
func (b branches) Overlaps(t *py.Tensor, v *ssa.Value) bool {
	yes := overlaps(heap.ViewOf(t), v)
	if yes && b.m.reach == nil && b.s.takes(split) {
		b.s.less("alias", "a tensor may have several elements in one place of memory, depending on data")
	}
	return yes
}

func (b branches) Size(x, y sym.Expr) (size sym.Expr, varies bool) {
	if e, ok := b.m.size(x, y); ok {
		return e, false
	}
	return b.s.build.size(x, y)
}

// Numbers asks for the sizes of inputs to be known where they decide which of two constants a number is.
func (b branches) Numbers(x, y py.Value) {
	c, ok := x.(py.Const)
	if _, ok1 := y.(py.Const); !ok || !ok1 || c.Kind != ssa.IntLit || !b.m.chooses {
		return
	}
	b.s.offer(knowSizes, b.s.op)
	if b.s.knowsSizes() {
		b.s.fail("dynamic-axis", "which of two numbers this is depends on data")
	}
}

// CheckKeys has nothing to say: the keys in a branch are those behind it.
func (b branches) CheckKeys(*py.DictState) {}

// Unranked is told when the result is there.
func (b branches) Unranked() {}

// Made records which objects the new one x is. It is another one than these, which are its twins if the program can still reach them:
// nothing may be written to it then.
func (b branches) Made(x any, ends [2]any) {
	switch x := x.(type) {
	case *py.Tensor:
		for i, end := range ends {
			if t, ok := end.(*py.Tensor); ok {
				b.m.relate(x, i, t)
			}
		}
		for _, end := range ends {
			if t, ok := end.(*py.Tensor); ok {
				b.s.heap.Twin(x.Cell, t.Cell)
			}
		}
	case *py.Object:
		for _, n := range sortedAttrs(x) {
			var of []*journal.Cell
			for _, end := range ends {
				if o, ok := end.(*py.Object); ok {
					of = append(of, o.Attrs[n])
				}
			}
			b.m.twin(x.Attrs[n], of...)
		}
	default:
		var of []*journal.Cell
		for _, end := range ends {
			if c := cellOf(end); c != nil {
				of = append(of, c)
			}
		}
		b.m.twin(cellOf(x), of...)
	}
}

// cellOf is the cell of a list or a dict, nil for other values.
func cellOf(x any) *journal.Cell {
	switch x := x.(type) {
	case *py.List:
		return x.Cell
	case *py.Dict:
		return x.Cell
	}
	return nil
}

// twin records that the object of a cell is that of one of several.
func (m *merger) twin(z *journal.Cell, of ...*journal.Cell) {
	for _, c := range of {
		outside := func(t *journal.Cell) bool { return t.ID() <= m.Start }
		if twins := m.s.heap.Twins(c); outside(c) || slices.ContainsFunc(twins, outside) {
			m.s.less("alias", "which of several objects a name means depends on data")
			m.s.oneOf[z] = m.s.op
			m.s.heap.Twin(z, c)
		} else if len(twins) > 0 {
			m.s.heap.Twin(z, c)
		}
		if other := m.mergedCells[c]; other != nil { // c is in two pairs
			m.s.heap.Twin(z, other)
		}
		m.mergedCells[c] = z
	}
}

// clashes are what the two branches give that has no common form, by the identifier of the message.
var clashes = [...]struct{ id, text string }{
	form.NoForm:      {"unsupported-value", "the two branches give values that have no common form in ONNX"},
	form.NotTensor:   {"unsupported-value", "a value is a tensor in one branch only"},
	form.NotNumber:   {"unsupported-value", "a value is a number in one branch only"},
	form.NumberTypes: {"unsupported-value", "a value is %s or %s depending on data"},
	form.Keys:        {"dynamic-container", "the keys of a dict depend on data"},
	form.KeyOrder:    {"dynamic-container", "the keys of a dict, or their order, depend on data"},
	form.NoneOrList:  {"optional-data", "whether this value is None depends on data"},
	form.UnsetOrList: {"unsupported-value", "a list of run-time length is set in one branch only"},
	form.Elements:    {"dynamic-container", "the elements of a list, and their number, depend on data"},
	form.NoneAlone:   {"dynamic-container", "a list holds None alone, and its length depends on data"},
}

// Refuse fails, and the paths of the two branches stay apart.
func (b branches) Refuse(why form.Clash, types ...any) {
	if why == form.DTypes {
		b.s.build.failDTypes(types[0], types[1])
	}
	if int(why) >= len(clashes) || clashes[why].id == "" {
		why = form.NoForm
	}
	b.s.fail(clashes[why].id, clashes[why].text, types...)
}
