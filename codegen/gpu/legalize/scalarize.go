package legalize

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// TakesApart reports an operator that ScalarizeSequences does away with where the elements are known.
func TakesApart(k ssa.Kind) bool { return slices.Contains(apart, k) }

var apart = []ssa.Kind{"onnx::ConcatFromSequence", "onnx::Optional", "onnx::OptionalGetElement", "onnx::OptionalHasElement", "onnx::SequenceAt", "onnx::SequenceConstruct", "onnx::SequenceEmpty",
	"onnx::SequenceErase", "onnx::SequenceInsert", "onnx::SequenceLength", "onnx::SequenceMap", "onnx::SplitToSequence"}

// maxElements bounds the sequences that are taken apart.
const maxElements = 1024

// sequences are those whose elements are known before the run, as lists of values. An operator that takes something out of one is
// replaced by what it takes: no sequence is made at all.
type sequences struct {
	context *passes.Context
	lists   map[*ssa.Value][]*ssa.Value
	// holds are the contents of optionals; nil is one without.
	holds map[*ssa.Value]*ssa.Value
}

// ScalarizeSequences does away with sequences and optionals as far as their elements are known before the run: what takes an element out of one is replaced by the
// element.
var ScalarizeSequences = passes.Pass{
	Name:  "scalarize-sequences",
	Takes: []passes.State{passes.Newest},
	Doc:   "replace sequences and optionals whose elements are known before the run by the elements",
	Before: `
graph(%x : Float(2), %y : Float(2)):
  %s : Tensor[] = onnx::SequenceConstruct(%x, %y)
  %i : Long() = onnx::Constant[value={-1}]()
  %r : Float(2) = onnx::SequenceAt(%s, %i)
  return (%r)`,
	After: `
graph(%x : Float(2), %y : Float(2)):
  return (%y)`,
	Run: passes.EachFunc(func(c *passes.Context, f *ssa.Func) error {
		s := &sequences{c, map[*ssa.Value][]*ssa.Value{}, map[*ssa.Value]*ssa.Value{}}
		if s.block(f.Body); len(s.lists)+len(s.holds) > 0 {
			s.sweep(f.Body)
		}
		return nil
	}),
}

// sweep erases what nobody uses any more. Random operators stay: those without a name draw by their place.
func (s *sequences) sweep(block *ssa.Block) {
	for o := block.Last(); o != nil; {
		before := o.Prev()
		for _, in := range o.Blocks {
			s.sweep(in)
		}
		used := emit.Draws(o.Kind)
		for _, r := range o.Results {
			used = used || r.HasUses()
		}
		if !used {
			s.context.Changed("erased")
			o.Erase()
		}
		o = before
	}
}

func (s *sequences) block(block *ssa.Block) {
	for o := block.First(); o != nil; {
		for _, in := range o.Blocks {
			s.block(in)
		}
		before, next := o.Prev(), o.Next()
		if o.Kind.Namespace() == onnx.Namespace {
			if !s.tries(o) {
				ssa.EraseBetween(before, o)
			} else if o.Block() == nil {
				s.context.Changed("replaced")
			}
		}
		o = next
	}
}

// tries is one, false if the operator cannot be expressed after all.
func (s *sequences) tries(o *ssa.Op) (done bool) {
	return onnx.Build(func() { done = s.one(o) }) == nil && done
}

// number is the only element of an operand, if it is known before the run.
func number(v *ssa.Value) (int64, bool) {
	if e, ok := onnx.SymOf(v); ok && len(e) == 1 {
		return e[0].Int()
	}
	return 0, false
}

// position is a place in a sequence of n elements, def if the operand is absent.
func position(v *ssa.Value, def, n int64) (int64, bool) {
	if v != nil {
		p, ok := number(v)
		if !ok {
			return 0, false
		}
		if def = p; def < 0 {
			def += n
		}
	}
	return def, def >= 0 && def <= n
}

// one notes what an operator's result holds, or replaces the operator. It reports whether it has done so.
func (s *sequences) one(o *ssa.Op) bool {
	b := &onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
	var list []*ssa.Value
	known := false
	if v := o.Operand(0); v != nil {
		list, known = s.lists[v]
	}
	n := int64(len(list))
	switch o.Kind {
	case "onnx::SequenceEmpty":
		s.lists[o.Results[0]] = nil
		return true
	case "onnx::SequenceConstruct":
		s.lists[o.Results[0]] = o.Operands()
		return true
	case "onnx::SplitToSequence":
		parts, ok := split(b, o)
		if ok {
			s.lists[o.Results[0]] = parts
		}
		return ok
	case "onnx::Identity":
		if x, ok := s.holds[o.Operand(0)]; ok {
			s.holds[o.Results[0]] = x
		} else if known {
			s.lists[o.Results[0]] = list
		}
		return true
	case "onnx::Optional":
		s.holds[o.Results[0]] = o.Operand(0)
		if known {
			s.lists[o.Results[0]] = list
		}
		return true
	case "onnx::OptionalHasElement":
		v, held := o.Operand(0), true
		if v == nil {
			held = false
		} else if _, optional := v.Type.(*ssa.OptionalType); optional {
			x, ok := s.holds[v]
			if !ok {
				return false
			}
			held = x != nil
		}
		has := int64(0)
		if held {
			has = 1
		}
		o.Replace(b.Const(tensor.FullInt(tensor.Bool, []int64{}, has)))
		return true
	case "onnx::OptionalGetElement":
		v := o.Operand(0)
		if _, optional := v.Type.(*ssa.OptionalType); optional {
			if v = s.holds[v]; v == nil {
				return false
			}
		}
		o.Replace(v)
		return true
	}
	if !known {
		return false
	}
	switch o.Kind {
	case "onnx::SequenceLength":
		o.Replace(b.Const(tensor.ScalarInt(n)))
	case "onnx::SequenceAt":
		p, ok := position(o.Operand(1), 0, n)
		if !ok || p == n {
			return false
		}
		o.Replace(list[p])
	case "onnx::SequenceErase":
		p, ok := position(o.Operand(1), n-1, n)
		if !ok || p == n {
			return false
		}
		s.lists[o.Results[0]] = slices.Delete(slices.Clone(list), int(p), int(p)+1)
	case "onnx::SequenceInsert":
		p, ok := position(o.Operand(2), n, n)
		if !ok {
			return false
		}
		s.lists[o.Results[0]] = slices.Insert(slices.Clone(list), int(p), o.Operand(1))
	case "onnx::ConcatFromSequence":
		if n == 0 {
			return false
		}
		at := o.AttrInt("axis", 0)
		if o.AttrInt("new_axis", 0) != 0 {
			parts := slices.Clone(list)
			for i, v := range parts {
				parts[i] = b.Unsqueeze(v, b.Const(tensor.Ints(at)))
			}
			list = parts
		}
		o.Replace(b.Concat(at, list...))
	case "onnx::SequenceMap":
		return s.each(b, o, list)
	default:
		return false
	}
	return true
}

// each puts the body of a SequenceMap there for each element.
func (s *sequences) each(b *onnx.Builder, o *ssa.Op, list []*ssa.Value) bool {
	body := o.Blocks[0]
	lists := make([][]*ssa.Value, o.NumOperands())
	for i, v := range o.Operands() {
		if v == nil {
			return false
		}
		if _, is := v.Type.(*ssa.ListType); !is {
			continue
		}
		l, ok := s.lists[v]
		if !ok || len(l) < len(list) {
			return false
		}
		lists[i] = l
	}
	results := make([][]*ssa.Value, len(o.Results))
	for i := range list {
		values := make([]*ssa.Value, o.Block().Func().NumValues())
		for k, p := range body.Params {
			if values[p.ID] = o.Operand(k); lists[k] != nil {
				values[p.ID] = lists[k][i]
			}
		}
		b.Block.CopyInto(o, body, values, func(l diag.Loc) diag.Loc { return l }, nil)
		for k, v := range body.Returns() {
			if w := values[v.ID]; w != nil {
				v = w
			}
			results[k] = append(results[k], v)
		}
	}
	for k, r := range o.Results {
		s.lists[r] = results[k]
	}
	return true
}

// split takes a SplitToSequence apart, if the number of the parts is known.
func split(b *onnx.Builder, o *ssa.Op) ([]*ssa.Value, bool) {
	x := o.Operand(0)
	t := x.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) == 0 {
		return nil, false
	}
	at := o.AttrInt("axis", 0)
	if at < 0 {
		at += int64(len(t.Dims))
	}
	if at < 0 || at >= int64(len(t.Dims)) {
		return nil, false
	}
	var sizes []int64
	keep := true
	whole, ok := t.Dims[at].Int()
	switch v := o.Operand(1); {
	case v == nil:
		if keep = o.AttrInt("keepdims", 1) != 0; !ok || whole > maxElements {
			return nil, false
		}
		sizes = slices.Repeat([]int64{1}, int(whole))
	case v.Tensor() != nil && v.Tensor().Ranked && len(v.Tensor().Dims) == 0:
		step, known := number(v)
		if !known || !ok || step < 1 || whole/step > maxElements {
			return nil, false
		}
		for left := whole; left > 0; left -= step {
			sizes = append(sizes, min(step, left))
		}
	default:
		all, known := onnx.SymOf(v)
		for _, e := range all {
			n, ok := e.Int()
			known = known && ok
			sizes = append(sizes, n)
		}
		if !known {
			return nil, false
		}
	}
	if len(sizes) == 0 {
		return nil, true
	}
	parts := slices.Clone(b.Split(len(sizes), x, b.Const(tensor.Ints(sizes...)), onnx.Axis(at)))
	if !keep {
		for i, p := range parts {
			parts[i] = b.Squeeze(p, b.Const(tensor.Ints(at)))
		}
	}
	return parts, true
}
