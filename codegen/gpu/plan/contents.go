package plan

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// contents are the operands whose elements, not only whose sizes, decide about the sizes of the results, or which a kernel needs to
// know at its launch.
var contents = map[ssa.Kind][]int{
	"onnx::AffineGrid":      {1},
	"onnx::CenterCropPad":   {1},
	"onnx::Col2Im":          {1, 2},
	"onnx::BlackmanWindow":  {0},
	"onnx::ConstantOfShape": {0},
	"onnx::DFT":             {1},
	"onnx::Expand":          {1},
	"onnx::HammingWindow":   {0},
	"onnx::HannWindow":      {0},
	"onnx::MaxUnpool":       {2},
	"onnx::OneHot":          {1},
	"onnx::Pad":             {1},
	"onnx::Range":           {0, 1, 2},
	"onnx::Reshape":         {1},
	"onnx::Resize":          {2, 3},
	"onnx::STFT":            {1, 3},
	"onnx::Slice":           {1, 2, 3, 4},
	"onnx::Split":           {1},
	"onnx::Tile":            {1},
	"onnx::TopK":            {1},
	"onnx::Trilu":           {1},
}

// maxRead is how many elements of a tensor are brought from the device to know sizes.
const maxRead = 16

// readable reports a small tensor of integers of which only the run knows the elements.
func readable(v *ssa.Value) bool {
	t := v.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) > 1 || !t.DType.IsInt() || onnx.ConstOf(v) != nil {
		return false
	}
	if _, known := onnx.SymOf(v); known {
		return false
	}
	if len(t.Dims) == 0 {
		return true
	}
	n, ok := t.Dims[0].Int()
	return ok && 0 < n && n <= maxRead
}

// nameContents infers the types of a block anew, and gives symbols to the elements of tensors that sizes depend on. A step of
// the plan reads them from the device.
func (b *builder) nameContents(block *ssa.Block) error {
	for o := range block.Ops() {
		for _, i := range contents[o.Kind] {
			if v := o.Operand(i); v != nil {
				if err := b.name(v); err != nil {
					return err
				}
			}
		}
		if err := onnx.Infer(o); err != nil {
			return err
		}
		if o.Kind == "onnx::Reshape" {
			b.openSizes(o)
		}
		if o.Kind == "onnx::Loop" {
			o.Blocks[0].Params[0].Sym = append(o.Blocks[0].Params[0].Sym[:0], b.Module.FreshSymbol("u", 0))
		}
		for _, in := range o.Blocks {
			if err := b.nameContents(in); err != nil {
				return err
			}
		}
	}
	return nil
}

// passing are the operators of which inference knows the elements of the result if it knows those of the operands.
var passing = []ssa.Kind{"onnx::Cast", "onnx::Concat", "onnx::Identity", "onnx::Reshape", "onnx::Squeeze", "onnx::Unsqueeze"}

// name gives symbols to the elements of a tensor, or of those that it is put together of.
func (b *builder) name(v *ssa.Value) error {
	if !readable(v) {
		return nil
	}
	if o := v.Def(); o != nil && slices.Contains(passing, o.Kind) {
		ints := true
		for i, w := range o.Operands() {
			if i > 0 && o.Kind != "onnx::Concat" {
				break
			}
			ints = ints && w.DType().IsInt()
		}
		if ints {
			for _, w := range o.Operands() {
				if w != nil {
					if err := b.name(w); err != nil {
						return err
					}
				}
			}
			if err := onnx.Infer(o); err != nil {
				return err
			}
			if !readable(v) {
				return nil
			}
		}
	}
	n := int64(1)
	if t := v.Tensor(); len(t.Dims) == 1 {
		n, _ = t.Dims[0].Int()
	}
	for range n {
		e := b.Module.FreshSymbol("u", math.MinInt64)
		e.Symbols(func(name string) { b.named[name] = true })
		v.Sym = append(v.Sym, e)
	}
	return nil
}

// openSizes gives the result of a Reshape sizes of their own where the run tells what they are: 0 and -1 stand for other sizes.
func (b *builder) openSizes(o *ssa.Op) {
	t := o.Results[0].Tensor()
	if t == nil || !t.Ranked {
		return
	}
	dims := slices.Clone(t.Dims)
	for i, d := range dims {
		open := false
		d.Symbols(func(name string) { open = open || b.named[name] })
		if open {
			dims[i] = b.Module.FreshSymbol("u", 0)
		}
	}
	o.Results[0].Type = ssa.Tensor(t.DType, dims...)
}

// ReadsContent reports an operand whose elements decide about the sizes of the results.
func ReadsContent(k ssa.Kind, i int) bool { return slices.Contains(contents[k], i) }
