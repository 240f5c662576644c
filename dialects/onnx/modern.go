package onnx

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// OldestReadable is the oldest opset whose operators Modern understands:
// before it, broadcasting needed attributes.
const OldestReadable = 7

// Modernized is an op of an older opset in the newest encoding.
type Modernized struct {
	Kind   ssa.Kind
	Attrs  []ssa.Attr
	Inputs []ModernInput
	// FlatAxis is set for Softmax and its like below opset 13, which work on all
	// axes from this one on, taken as one.
	FlatAxis *int64
	// PerGroup marks a GroupNormalization below opset 21: inputs 1 and 2 have an
	// element for each group and must be repeated for each channel.
	PerGroup bool
}

// ModernInput is an input of the newest encoding: an input of the op as it
// stands (Index), a constant that was an attribute, or nothing (Index -1).
type ModernInput struct {
	Index int
	Const *tensor.Tensor
}

// Modern translates kind, attributes and inputs of an op that an opset has to
// the newest encoding. present tells which inputs are there; dtype is the
// element type of the first one.
func Modern(opset int, o *ssa.Op, present func(i int) bool, dtype tensor.DType) (Modernized, error) {
	m := &modernizer{opset: opset, present: present}
	m.Kind, m.Attrs = o.Kind, slices.Clone(o.Attrs)
	for i := range o.NumOperands() {
		m.Inputs = append(m.Inputs, ModernInput{Index: -1})
		if present(i) {
			m.Inputs[i].Index = i
		}
	}
	if o.Kind.Namespace() == Namespace && opset < Newest {
		if old, now := Lookup(string(o.Kind), opset), Lookup(string(o.Kind), OldestReadable); opset < OldestReadable && (old == nil || now == nil || old.Since != now.Since) {
			return m.Modernized, fmt.Errorf("opset %d is older than %d, the oldest that can be read", opset, OldestReadable)
		}
		m.translate(o, dtype)
	}
	return m.Modernized, m.err
}

type modernizer struct {
	Modernized
	opset   int
	present func(int) bool
	err     error
}

func (m *modernizer) take(name string) (ssa.Literal, bool) {
	for i, a := range m.Attrs {
		if a.Name == name {
			m.Attrs = slices.Delete(m.Attrs, i, i+1)
			return a.Value, true
		}
	}
	return ssa.None, false
}

// set adds an attribute that is not there.
func (m *modernizer) set(name string, v ssa.Literal) {
	for _, a := range m.Attrs {
		if a.Name == name {
			return
		}
	}
	m.Attrs = append(m.Attrs, ssa.Attr{Name: name, Value: v})
}

func (m *modernizer) absent(i int) bool {
	return i >= len(m.Inputs) || m.Inputs[i].Index < 0 && m.Inputs[i].Const == nil
}

func (m *modernizer) constant(i int, t *tensor.Tensor) {
	for len(m.Inputs) <= i {
		m.Inputs = append(m.Inputs, ModernInput{Index: -1})
	}
	m.Inputs[i] = ModernInput{Index: -1, Const: t}
}

// ints makes a list attribute an input.
func (m *modernizer) ints(i int, name string) {
	if l, ok := m.take(name); ok && m.absent(i) {
		v, _ := l.IntList()
		m.constant(i, tensor.Ints(v...))
	}
}

// float makes a float attribute an input of rank 0.
func (m *modernizer) float(i int, name string, d tensor.DType) {
	if l, ok := m.take(name); ok && m.absent(i) {
		if !d.IsFloat() {
			m.err = fmt.Errorf("the element type must be known to read the attribute %s", name)
			return
		}
		m.constant(i, tensor.FromFloats(d, []int64{}, []float64{float64(float32(l.Float()))}))
	}
}

func (m *modernizer) translate(o *ssa.Op, d tensor.DType) {
	switch m.Kind.Name() {
	case "Squeeze", "Unsqueeze":
		m.ints(1, "axes")
	case "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare":
		m.ints(1, "axes")
	case "Split":
		m.ints(1, "split")
		if m.absent(1) {
			m.set("num_outputs", ssa.Int(int64(len(o.Results))))
		}
	case "Slice":
		m.ints(1, "starts")
		m.ints(2, "ends")
		m.ints(3, "axes")
	case "TopK":
		if l, ok := m.take("k"); ok {
			m.constant(1, tensor.Ints(l.Int()))
		}
	case "Clip":
		if m.opset < 11 {
			m.float(1, "min", d)
			m.float(2, "max", d)
		}
	case "Pad":
		if m.opset < 11 {
			m.ints(1, "pads")
			m.float(2, "value", d)
		}
	case "Dropout":
		if m.opset < 12 { // the ratio only matters in training, which these opsets' exporters did not mean
			m.take("ratio")
		}
		m.take("is_test")
	case "DFT":
		if m.opset < 20 {
			axis := int64(1)
			if l, ok := m.take("axis"); ok {
				axis = l.Int()
			}
			m.constant(2, tensor.ScalarInt(axis))
		}
	case "Upsample", "Resize":
		m.resize()
	case "Scatter":
		m.Kind = "onnx::ScatterElements"
	case "Softmax", "LogSoftmax", "Hardmax":
		if m.opset < 13 {
			axis := int64(1)
			if l, ok := m.take("axis"); ok {
				axis = l.Int()
			}
			m.FlatAxis = &axis
		}
	case "BatchNormalization":
		if l, ok := m.take("spatial"); ok && l.Int() == 0 {
			m.err = fmt.Errorf("statistics per element (spatial=0) are not supported")
		}
		if m.opset < 14 && len(o.Results) > 1 {
			m.err = fmt.Errorf("training outputs of opset %d are not supported", m.opset)
		}
	case "GridSample":
		switch l, _ := o.Attr("mode"); {
		case m.opset >= 20:
		case l.Str() == "bicubic":
			m.take("mode")
			m.set("mode", ssa.Str("cubic"))
		case l.Str() == "bilinear":
			m.take("mode")
			m.set("mode", ssa.Str("linear"))
		}
	case "GroupNormalization":
		m.PerGroup = m.opset < 21
	case "RoiAlign":
		if m.opset < 16 {
			m.set("coordinate_transformation_mode", ssa.Str("output_half_pixel"))
		}
	case "Scan":
		if m.opset < 9 {
			m.err = fmt.Errorf("the batched Scan of opset 8 is not supported")
		}
	}
}

func (m *modernizer) resize() {
	if m.Kind == "onnx::Upsample" || m.opset < 11 {
		// Up to opset 10: scales right after the data, coordinates x/scale, nearest rounds down.
		mode, _ := m.take("mode")
		scales := ModernInput{Index: -1}
		if l, ok := m.take("scales"); ok {
			v, _ := l.FloatList()
			scales.Const = tensor.FromFloats(tensor.Float32, []int64{int64(len(v))}, v)
		} else if len(m.Inputs) > 1 {
			scales = m.Inputs[1]
		}
		m.Kind, m.Attrs = "onnx::Resize", nil
		m.Inputs = []ModernInput{m.Inputs[0], {Index: -1}, scales}
		m.set("coordinate_transformation_mode", ssa.Str("asymmetric"))
		m.set("nearest_mode", ssa.Str("floor"))
		switch s := mode.Str(); s {
		case "":
		case "bilinear":
			m.set("mode", ssa.Str("linear"))
		default:
			m.set("mode", ssa.Str(s))
		}
		return
	}
	// Opsets 11 and 12 could not leave inputs out: roi counts in one mode only,
	// and scales is empty when there are sizes.
	if !slices.ContainsFunc(m.Attrs, func(a ssa.Attr) bool { return a.Value.Str() == "tf_crop_and_resize" }) {
		m.drop(1)
	}
	if !m.absent(3) {
		m.drop(2)
	}
}

func (m *modernizer) drop(i int) {
	if i < len(m.Inputs) {
		m.Inputs[i] = ModernInput{Index: -1}
	}
}

// Modernize brings all ops of a module to the newest encoding and sets the
// module's opset to Newest. Modules without an opset are taken to be new.
func Modernize(m *ssa.Module) error {
	opset := DefaultOpset(m)
	if opset == 0 || opset == Newest {
		return nil
	}
	if opset > Newest {
		return fmt.Errorf("opset %d is newer than %d, the newest that is known", opset, Newest)
	}
	for _, f := range m.Funcs {
		for o := range f.Body.AllOps() {
			if err := modernize(opset, o); err != nil {
				return fmt.Errorf("%s: %w", o.Kind, err)
			}
		}
	}
	delete(m.Opsets, "ai.onnx")
	delete(m.Opsets, "onnx")
	m.Opsets[""] = Newest
	return nil
}

func modernize(opset int, o *ssa.Op) error {
	if o.Kind.Namespace() != Namespace {
		return nil
	}
	d := tensor.Undefined
	if v := o.Operand(0); v != nil {
		d = v.DType()
	}
	m, err := Modern(opset, o, func(i int) bool { return o.Operand(i) != nil }, d)
	if err != nil {
		return err
	}
	b := &Builder{Block: o.Block(), Before: o, Loc: o.Loc}
	in := make([]*ssa.Value, len(m.Inputs))
	for i, p := range m.Inputs {
		if in[i] = nil; p.Const != nil {
			in[i] = b.Const(p.Const)
		} else if p.Index >= 0 {
			in[i] = o.Operand(p.Index)
		}
	}
	o.Kind, o.Attrs = m.Kind, m.Attrs
	// New ops get their types when the whole module is inferred.
	add := func(kind ssa.Kind, attrs []ssa.Attr, in ...*ssa.Value) *ssa.Value {
		n := o.Block().InsertBefore(o, kind, o.Loc, in, ssa.AnyTensor)
		n.Attrs = attrs
		return n.Results[0]
	}
	if m.PerGroup {
		// Reshape(Expand(Unsqueeze(scale, 1), [groups, channels/groups]), [-1])
		one := func(name string, v int64) []ssa.Attr { return []ssa.Attr{{Name: name, Value: ssa.Int(v)}} }
		channels := add("onnx::Shape", []ssa.Attr{{Name: "start", Value: ssa.Int(1)}, {Name: "end", Value: ssa.Int(2)}}, in[0])
		groups := b.Const(tensor.Ints(o.AttrInt("num_groups", 1)))
		size := add("onnx::Concat", one("axis", 0), groups, add("onnx::Div", nil, channels, groups))
		for i := 1; i < 3; i++ {
			wide := add("onnx::Expand", nil, add("onnx::Unsqueeze", nil, in[i], b.Const(tensor.Ints(1))), size)
			in[i] = add("onnx::Reshape", nil, wide, b.Const(tensor.Ints(-1)))
		}
	}
	if m.FlatAxis != nil {
		shape := add("onnx::Shape", nil, in[0])
		in[0] = add("onnx::Flatten", []ssa.Attr{{Name: "axis", Value: ssa.Int(*m.FlatAxis)}}, in[0])
		o.SetAttr("axis", ssa.Int(1))
		y := o.Results[0]
		back := o.Block().InsertBefore(o.Next(), "onnx::Reshape", o.Loc, []*ssa.Value{nil, shape}, y.Type)
		y.ReplaceUses(back.Results[0])
		back.Results[0].Name, y.Name = y.Name, ""
		y.Type = ssa.AnyTensor
		back.SetOperand(0, y)
	}
	o.SetOperands(in...)
	return nil
}
