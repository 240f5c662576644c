package exec

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// list are the elements of a sequence. Their memory stays to the end of the run.
func (r *run) list(v *ssa.Value) ([]handed, error) {
	if r.isOnHost(v) {
		var out []handed
		for _, t := range r.host[v.ID].List {
			out = append(out, handed{host: interp.Of(t), onHost: true, shape: t.Shape})
		}
		return out, nil
	}
	l, ok := r.lists[v]
	if !ok {
		return nil, fmt.Errorf("sequence %s is not at hand", v.Name)
	}
	return l, nil
}

// listValue brings a sequence to the host.
func (r *run) listValue(v *ssa.Value, t *ssa.ListType) (interp.Value, error) {
	list, err := r.list(v)
	if err != nil {
		return interp.Value{}, err
	}
	out := interp.Value{IsList: true}
	for _, x := range list {
		if x.onHost {
			out.List = append(out.List, x.host.Tensor)
			continue
		}
		d := ssa.AsTensor(t.Elem).DType
		data := make([]byte, count(x.shape)*int64(d.Size()))
		if len(data) > 0 {
			if err := r.Backend.Sync(); err != nil {
				return out, err
			}
			if err := r.Backend.Download(x.memory, data); err != nil {
				return out, err
			}
		}
		out.List = append(out.List, tensor.New(d, x.shape, data))
	}
	return out, nil
}

func count(shape []int64) int64 {
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	return n
}

// sequence carries out an operator on sequences: it hands on what memory the elements have, and copies only where tensors are split or joined.
func (r *run) sequence(s *plan.Step, rep *StepReport) error {
	o := s.Op
	if o.Kind == "onnx::SplitToSequence" {
		return r.split(s, rep)
	}
	if o.Kind == "onnx::SequenceConstruct" {
		var list []handed
		for _, v := range o.Operands() {
			x, err := r.hand(v)
			if err != nil {
				return err
			}
			list = append(list, x)
		}
		return r.receive(o.Results[0], handed{list: list, isList: true})
	}
	list, err := r.list(o.Operand(0))
	if err != nil {
		return err
	}
	n := int64(len(list))
	position := func(i int, def, end int64) (int64, error) {
		p, err := r.scalar(o.Operand(i), def, rep)
		if p < 0 {
			p += n
		}
		if err == nil && (p < 0 || p >= end) {
			err = fmt.Errorf("position %d in a sequence of %d", p, n)
		}
		return p, err
	}
	switch o.Kind {
	case "onnx::SequenceLength":
		r.set(o.Results[0], interp.Of(tensor.ScalarInt(n)))
		return nil
	case "onnx::SequenceAt":
		p, err := position(1, 0, n)
		if err != nil {
			return err
		}
		return r.receive(o.Results[0], list[p])
	case "onnx::SequenceErase":
		p, err := position(1, n-1, n)
		if err != nil {
			return err
		}
		list = slices.Delete(slices.Clone(list), int(p), int(p)+1)
	case "onnx::SequenceInsert":
		p, err := position(2, n, n+1)
		if err != nil {
			return err
		}
		x, err := r.hand(o.Operand(1))
		if err != nil {
			return err
		}
		list = slices.Insert(slices.Clone(list), int(p), x)
	case "onnx::ConcatFromSequence":
		return r.join(s, list, rep)
	}
	return r.receive(o.Results[0], handed{list: list, isList: true})
}

// copyPart copies a part of a tensor, whose memory is m, at a place along the axis.
func (r *run) copyPart(s *plan.Step, m Memory, begin, size int64, rep *StepReport) error {
	r.env[emit.PartBegin], r.env[emit.PartSize] = begin, size
	q := s.Sequence
	r.memory[q.Part], r.fresh[q.Part] = m, true
	sample := r.sample
	r.sample = nil // there is nothing that the interpreter gives for it
	defer func() { r.sample = sample }()
	one := StepReport{Step: q.Copy}
	if err := r.launch(q.Copy, &one); err != nil {
		return err
	}
	rep.LaneInstructions += one.LaneInstructions
	rep.Bytes += one.Bytes
	if !one.Skipped {
		r.report.Launches++
	}
	return nil
}

// split makes a sequence of the parts of a tensor.
func (r *run) split(s *plan.Step, rep *StepReport) error {
	o := s.Op
	shape, err := r.shape(o.Operand(0))
	if err != nil {
		return err
	}
	axis := s.Sequence.Axis
	whole := shape[axis]
	var sizes []int64
	keep := true
	if v := o.Operand(1); v == nil {
		keep = o.AttrInt("keepdims", 1) != 0
		sizes = slices.Repeat([]int64{1}, int(whole))
	} else {
		x, err := r.value(v)
		if err != nil {
			return err
		}
		if sizes = x.Tensor.Int64s(); len(x.Tensor.Shape) == 0 {
			step := sizes[0]
			if step < 1 {
				return fmt.Errorf("pieces of %d", step)
			}
			sizes = nil
			for left := whole; left > 0; left -= step {
				sizes = append(sizes, min(step, left))
			}
		}
	}
	var list []handed
	begin := int64(0)
	for _, n := range sizes {
		if n < 0 || begin+n > whole {
			return fmt.Errorf("parts of %v of an axis of %d", sizes, whole)
		}
		part := slices.Clone(shape)
		part[axis] = n
		h, err := r.take(count(part) * int64(o.Operand(0).DType().Size()))
		if err != nil {
			return err
		}
		if err := r.copyPart(s, h.memory, begin, n, rep); err != nil {
			return err
		}
		if !keep {
			part = slices.Delete(part, axis, axis+1)
		}
		list = append(list, handed{shape: part, memory: h.memory, held: h})
		begin += n
	}
	if begin != whole {
		return fmt.Errorf("parts of %v of an axis of %d", sizes, whole)
	}
	return r.receive(o.Results[0], handed{list: list, isList: true})
}

// join puts the elements of a sequence side by side.
func (r *run) join(s *plan.Step, list []handed, rep *StepReport) error {
	o, axis := s.Op, s.Sequence.Axis
	if len(list) == 0 {
		return fmt.Errorf("an empty sequence")
	}
	var all []int64
	sizes := make([]int64, len(list))
	for i, x := range list {
		shape := slices.Clone(x.shape)
		if o.AttrInt("new_axis", 0) != 0 {
			if axis > len(shape) {
				return fmt.Errorf("axis %d of %v", axis, x.shape)
			}
			shape = slices.Insert(shape, axis, 1)
		}
		if axis >= len(shape) {
			return fmt.Errorf("axis %d of %v", axis, x.shape)
		}
		sizes[i] = shape[axis]
		if all == nil {
			all = shape
			continue
		}
		total := all[axis] + shape[axis]
		all[axis], shape[axis] = 0, 0
		if !slices.Equal(all, shape) {
			return fmt.Errorf("element %d has the sizes %v, element 0 %v", i, x.shape, list[0].shape)
		}
		all[axis] = total
	}
	v := o.Results[0]
	r.onHost[v.ID] = false
	f := r.Plan.BufferOf(v)
	r.forget(f)
	if err := r.bindShape(v, all); err != nil {
		return err
	}
	begin := int64(0)
	for i, x := range list {
		m := x.memory
		if x.onHost {
			h, err := r.take(x.host.Tensor.NumBytes())
			if err != nil {
				return err
			}
			m = h.memory
			if err := r.Backend.Upload(m, x.host.Tensor.Bytes()); err != nil {
				return err
			}
			defer r.drop(h)
		}
		if err := r.copyPart(s, m, begin, sizes[i], rep); err != nil {
			return err
		}
		begin += sizes[i]
	}
	return nil
}
