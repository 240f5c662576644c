package plan

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/codegen/gpu/legalize"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Control is how If and Loop run: the steps of a block again and again, or those of one of two. The tensors stay on the
// device; conditions and trip counts that it computes are read.
type Control struct {
	// Regions are the body of a Loop, or the two branches of an If.
	Regions []*Region
	// Turn counts the turns of a Loop. Stack copies what a turn gives to its place in a result that has that of all turns: result
	// NumCarried + i by Stack[i].
	Turn  sym.Expr
	Stack []*Step
}

// Region is a block of an If or a Loop. The buffers of values in it have memory of their own at each turn.
type Region struct {
	Block   *ssa.Block
	Steps   []*Step
	Buffers []*Buffer
	// Symbols are those that get a value in the block.
	Symbols []string
}

// NumCarried is the number of values that a Loop carries from turn to turn.
func NumCarried(loop *ssa.Op) int { return max(loop.NumOperands()-2, 0) }

// Endless reports a Loop whose body never ends it.
func Endless(loop *ssa.Op) bool {
	body := loop.Blocks[0]
	v := body.Return(0)
	for v.Def() != nil && v.Def().Kind == "onnx::Identity" {
		v = v.Def().Operand(0)
	}
	if v == body.Params[1] { // true wherever the body runs
		return true
	}
	t := onnx.ConstOf(v)
	return t != nil && t.HasData() && t.NumElements() == 1 && t.Int64s()[0] != 0
}

// Kept reports a carried value that the body returns as it got it.
func Kept(loop *ssa.Op, i int) bool {
	body := loop.Blocks[0]
	return body.Return(1+i) == body.Params[2+i]
}

// ownReturns makes each block return values that it has computed, each once, so that their memory can be handed on: other
// values are copied.
func (b *builder) ownReturns(block *ssa.Block) {
	for o := range block.Ops() {
		for _, in := range o.Blocks {
			b.ownReturns(in)
		}
		if o.Kind != "onnx::If" && o.Kind != "onnx::Loop" {
			continue
		}
		for _, in := range o.Blocks {
			seen := map[*ssa.Value]bool{}
			for i, v := range in.Returns() {
				if v.Tensor() == nil || o.Kind == "onnx::Loop" && (i == 0 || i <= NumCarried(o) && Kept(o, i-1)) {
					continue
				}
				root := v
				for root.Def() != nil && alias(root.Def()) && root.Def().Block() == in {
					root = root.Def().Operand(0)
				}
				if root.Def() == nil || root.Def().Block() != in || isConstant(root.Def()) || seen[root] {
					c := in.Append("onnx::Identity", o.Loc, []*ssa.Value{v}, v.Type)
					b.copies[c] = true
					in.SetReturn(i, c.Results[0])
				}
				seen[root] = true
			}
		}
	}
}

// control plans an If or a Loop; "" or the reason why the host runs it as a whole.
func (b *builder) control(o *ssa.Op) (c *Control, reason string) {
	if o.Kind != "onnx::If" && o.Kind != "onnx::Loop" {
		return nil, b.refusals[o]
	}
	values := slices.Concat(o.Operands(), o.Results)
	for _, in := range o.Blocks {
		values = slices.Concat(values, in.Params, in.Returns())
	}
	for _, v := range values {
		if v == nil {
			continue
		}
		if err := emit.HoldsElements(v); err != nil {
			return nil, err.Error()
		}
	}
	c = &Control{}
	if o.Kind == "onnx::Loop" {
		for _, v := range o.Operands()[min(2, o.NumOperands()):] {
			if v != nil && !legalize.IsSequence(v) && !isConstant(b.Root(v).Def()) {
				b.buffer(v)
			}
		}
	}
	outer := b.region
	for _, in := range o.Blocks {
		r := &Region{Block: in}
		before := b.bound
		b.bound = map[string]bool{}
		for name := range before {
			b.bound[name] = true
		}
		b.region = r
		if o.Kind == "onnx::Loop" {
			c.Turn = in.Params[0].Sym[0]
		}
		for _, p := range in.Params {
			b.bind(p)
		}
		r.Steps = b.block(in)
		for i, v := range in.Returns() {
			if o.Kind == "onnx::Loop" && i == 0 && Endless(o) || legalize.IsSequence(v) {
				continue
			}
			b.buffer(v)
		}
		for name := range b.bound {
			if !before[name] {
				r.Symbols = append(r.Symbols, name)
			}
		}
		slices.Sort(r.Symbols)
		if o.Kind == "onnx::Loop" {
			n := NumCarried(o)
			for i := n; i < len(o.Results); i++ {
				launch := emit.Stack(in.Return(1+i), o.Results[i], c.Turn)
				c.Stack = append(c.Stack, b.launch(o, nil, &launch))
			}
		}
		b.bound = before
		b.region = outer
		c.Regions = append(c.Regions, r)
	}
	for _, v := range o.Results {
		b.bind(v)
		if v.HasUses() && !legalize.IsSequence(v) {
			b.buffer(v)
		}
	}
	return c, ""
}

// bind notes the symbols that a value brings: sizes and elements that are a symbol and nothing else.
func (b *builder) bind(v *ssa.Value) {
	sizes := v.Sym
	if t := v.Tensor(); t != nil {
		sizes = slices.Concat(sizes, t.Dims)
	}
	for _, e := range sizes {
		if name, lone := e.Name(); lone {
			b.bound[name] = true
		}
	}
}
