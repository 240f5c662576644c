package specialize

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// inPlace evaluates an operator that writes to its arguments.
func (s *spec) inPlace(o *ssa.Op, args []value) []value {
	schema := o.Schema
	name := strings.TrimPrefix(o.Kind.Name(), "")
	ns := o.Kind.Namespace()
	if out := schema.Arg("out"); out >= 0 && schema.Args[out].Writes {
		return s.outVariant(o, args)
	}
	if rs, ok := s.functionalTwin(o, args); ok {
		return rs
	}
	self, ok := args[0].(*tensorRef)
	if !ok {
		s.fail("mutation", "the operator writes to something that is not a tensor")
	}
	// metadata only: the tensor object becomes another view
	switch name {
	case "unsqueeze_", "squeeze_", "transpose_", "t_", "swapaxes_", "swapdims_":
		return s.viewInPlace(o, args, self)
	case "as_strided_":
		s.reshape(self.c, s.asStrided(args).c.content)
		self.base, self.val = nil, nil
		return []value{self}
	case "detach_", "requires_grad_", "rename_":
		return []value{self}
	case "set_", "resize_", "resize_as_", "_resize_output_":
		if name == "resize_" {
			if l, ok := args[1].(*list); ok {
				cur := s.read(self).Tensor()
				if lit, ok := s.literalOf(l); ok && cur != nil {
					want, _ := lit.IntList()
					if have, ok := cur.Static(); ok && fmt.Sprint(have) == fmt.Sprint(want) {
						return []value{self}
					}
				}
			}
		}
		s.fail("mutation", "%s changes a tensor's memory in place, which has no pure form", name)
	}
	if !strings.HasSuffix(name, "fill_") { // those read their value once, before they write
		for _, a := range args[1:] {
			if other, ok := a.(*tensorRef); ok {
				s.refuseOverlap(self, other)
			}
		}
	}
	cur := s.read(self)
	var v *ssa.Value
	switch name {
	case "copy_":
		if other, ok := args[1].(*tensorRef); ok {
			v = s.castLike(s.read(other), cur)
		} else {
			v = s.emitName("aten::full_like", cur, args[1])
		}
	case "polygamma_": // the pure form has the number first
		v = s.emitName("aten::polygamma", args[1], cur)
	case "fill_diagonal_":
		v = s.filledDiagonal(cur, args[1], args[2])
	case "zero_":
		v = s.emitName("aten::zeros_like", cur)
	default:
		base := strings.TrimSuffix(name, "_")
		switch base {
		case "normal": // aten::normal is another function
			base = "normal_functional"
		case "__iand_", "__ior_", "__ixor_", "__ilshift_", "__irshift_":
			base = "__" + strings.TrimPrefix(base, "__i") + "_"
		}
		fs := s.functional(ns+"::"+base, schema)
		if fs == nil {
			s.fail("mutation", "the in-place operator has no pure twin %s::%s", ns, base)
		}
		operands := s.operands(args)
		if len(operands) > len(fs.Args) {
			operands = operands[:len(fs.Args)]
		}
		for len(operands) < len(fs.Args) {
			a := fs.Args[len(operands)]
			if !a.HasDefault {
				s.fail("mutation", "%s takes an argument %q that %s lacks", fs.FullName(), a.Name, schema.FullName())
			}
			operands = append(operands, s.constant(a.Default))
		}
		v = s.emit(ssa.Kind(fs.Name), fs, operands...)[0]
		v = s.castLike(v, cur)
	}
	if !fitsInto(v.Tensor(), cur.Tensor()) {
		panic(raised{s.loc, "the result does not fit the tensor that is written"})
	}
	if t, c := v.Tensor(), cur.Tensor(); t != nil && c != nil && !ssa.SameType(t, c) && (!t.Ranked || !c.Ranked || !sameDims(t, c)) {
		v = s.emitName("aten::expand_as", v, cur)
	}
	s.noteMutation(self)
	s.write(self, v)
	return []value{self}
}

// maxPlaces is the number of elements up to which overlap is looked into.
const maxPlaces = 1 << 12

// refuseOverlap fails when an operator reads, through another view, some of the
// elements that it writes: its result would hang on the order in which it goes.
func (s *spec) refuseOverlap(self, other *tensorRef) {
	a, b := self.state(), other.state()
	if self == other || a.st != b.st || len(a.chain) == 0 && len(b.chain) == 0 {
		return
	}
	p, q := s.places(a), s.places(b)
	if p == nil || q == nil {
		return
	}
	same := len(p) == len(q)
	written := map[int64]bool{}
	for i, x := range p {
		written[x] = true
		same = same && q[i] == x
	}
	if same || len(q) == 1 && s.op.Kind == "aten::copy_" {
		return // the one element that is read is written with itself
	}
	for _, x := range q {
		if written[x] {
			s.fail("overlap", "the operator reads elements of memory that it writes, through another view; use .clone() for what it reads")
		}
	}
}

// places gives where in the storage the elements of a view are, nil if it is not known.
func (s *spec) places(st *tensorState) []int64 {
	shape, ok := staticShape(st.st.state().base)
	if !ok {
		return nil
	}
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	if n > maxPlaces {
		return nil
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(i)
	}
	at := s.constant(ssa.TensorValue(tensor.FromInts(tensor.Int64, shape, v)))
	for i := range st.chain {
		at = s.step(&st.chain[i], at)
	}
	if c := onnx.ConstOf(at); c != nil {
		return c.Int64s()
	}
	return nil
}

func staticShape(v *ssa.Value) ([]int64, bool) {
	if t := v.Tensor(); t != nil {
		return t.Static()
	}
	return nil, false
}

// filledDiagonal is fill_diagonal_, also of more than two dimensions, which then are of one size.
func (s *spec) filledDiagonal(cur *ssa.Value, fill, wrap value) *ssa.Value {
	shape, ok := staticShape(cur)
	if w, isLit := s.literalOf(wrap); !isLit || w.Bool() || len(shape) > 2 && !ok {
		s.fail("mutation", "fill_diagonal_ with wrap, or of dimensions whose sizes are not known")
	}
	t := cur.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) < 2 {
		s.fail("mutation", "fill_diagonal_ needs at least two dimensions")
	}
	if len(t.Dims) == 2 {
		d := s.emitName("aten::diagonal", cur)
		return s.emitName("aten::diagonal_scatter", cur, s.emitName("aten::full_like", d, fill))
	}
	step, n := int64(0), int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		step += n
		n *= shape[i]
	}
	places := make([]int64, shape[0])
	for i := range places {
		places[i] = int64(i) * step
	}
	at := s.constant(ssa.TensorValue(tensor.FromInts(tensor.Int64, []int64{shape[0]}, places)))
	return s.emitName("aten::put", cur, at, s.emitName("aten::full_like", s.emitName("aten::take", cur, at), fill))
}

// fitsInto reports that a tensor of type t may be broadcast to c, as far as is known.
func fitsInto(t, c *ssa.TensorType) bool {
	if t == nil || c == nil || !t.Ranked || !c.Ranked {
		return true
	}
	if len(t.Dims) > len(c.Dims) {
		return false
	}
	for i := range t.Dims {
		a, ok := t.Dims[len(t.Dims)-1-i].Int()
		b, ok2 := c.Dims[len(c.Dims)-1-i].Int()
		if ok && ok2 && a != b && a != 1 {
			return false
		}
	}
	return true
}

func asTensor(s *spec, x value) *tensorRef {
	if t, ok := x.(*tensorRef); ok {
		return t
	}
	s.fail("mutation", "expected a tensor")
	return nil
}

func sameDims(a, b *ssa.TensorType) bool {
	if len(a.Dims) != len(b.Dims) {
		return false
	}
	for i := range a.Dims {
		if !a.Dims[i].Equal(b.Dims[i]) {
			return false
		}
	}
	return true
}

func (s *spec) noteMutation(t *tensorRef) {
	st := t.state().st
	if st.origin == "parameter" && st.name != "" {
		s.noteState(st.name, func(s *spec) value {
			base := st.state().base
			return s.newView(st, nil, st.strides, base, base)
		})
	}
}

// castLike converts v to the dtype of like.
func (s *spec) castLike(v, like *ssa.Value) *ssa.Value {
	d := like.DType()
	if d == tensor.Undefined || v.DType() == d {
		return v
	}
	return s.emitName("aten::to.dtype", v, ssa.Int(int64(d.Code())), false, false, nil)
}

// functional finds the pure overload that takes the arguments of an in-place one.
func (s *spec) functional(name string, in *ssa.Schema) *ssa.Schema {
	var same *ssa.Schema
	for _, f := range aten.Schemas(ssa.Kind(name)) {
		if f.Mutates() {
			continue
		}
		if f.Overload == in.Overload && fits(f, in) {
			return f
		}
		if same == nil && fits(f, in) {
			same = f
		}
	}
	return same
}

// fits reports that a call of in's arguments is one of f.
func fits(f, in *ssa.Schema) bool {
	n := len(in.Args)
	if n > len(f.Args) {
		return false
	}
	for i := range f.Args {
		if i >= n {
			if !f.Args[i].HasDefault {
				return false
			}
			continue
		}
		if f.Args[i].Name != in.Args[i].Name && i > 0 {
			return false
		}
	}
	return true
}

// viewInPlace changes what a tensor object views.
func (s *spec) viewInPlace(o *ssa.Op, args []value, self *tensorRef) []value {
	if self.element {
		s.fail("alias", "the shape of an element of a list whose length is only known at run time is changed in place")
	}
	name := "aten::" + strings.TrimSuffix(o.Kind.Name(), "_")
	fs := s.functional(name, o.Schema)
	if fs == nil {
		s.fail("mutation", "no pure twin %s", name)
	}
	if name == "aten::squeeze" {
		if rs, ok := s.squeezed(o, args); ok {
			next := rs[0].(*tensorRef)
			s.reshape(self.c, next.c.content)
			self.base, self.val = next.base, next.val
			return []value{self}
		}
	}
	st := self.state()
	operands := s.operands(args)
	v := s.emit(ssa.Kind(name), fs, operands...)[0]
	s.squeezedMaybe(ssa.Kind(name), args, operands[0], v)
	step := viewStep{kind: ssa.Kind(name), schema: fs, args: s.freeze(args)}
	fake := &ssa.Op{Kind: ssa.Kind(name), Schema: fs}
	next := &tensorState{st: st.st, chain: append(st.chain[:len(st.chain):len(st.chain)], step), strides: s.viewStrides(fake, args, st.strides, operands[0], v)}
	s.reshape(self.c, next)
	self.base, self.val = st.st.state().base, v
	return []value{self}
}

// outVariant evaluates op(..., out=t).
func (s *spec) outVariant(o *ssa.Op, args []value) []value {
	var outs []int
	for i := range o.Schema.Args {
		if o.Schema.Args[i].Writes {
			outs = append(outs, i)
		}
	}
	var fs *ssa.Schema
	for _, f := range aten.Schemas(o.Kind) {
		if f.Mutates() || len(f.Args) != len(o.Schema.Args)-len(outs) || len(f.Returns) != len(outs) {
			continue
		}
		ok := true
		for i := range f.Args {
			ok = ok && f.Args[i].Name == o.Schema.Args[i].Name && f.Args[i].Type.String() == o.Schema.Args[i].Type.String()
		}
		if ok {
			fs = f
			break
		}
	}
	if fs == nil {
		s.fail("mutation", "%s has no pure twin", o.Schema.FullName())
	}
	vs := s.emit(o.Kind, fs, s.operands(args[:len(fs.Args)])...)
	var rs []value
	for k, i := range outs {
		t := asTensor(s, args[i])
		cur := s.read(t)
		v := s.castLike(vs[k], cur)
		a, b := v.Tensor(), cur.Tensor()
		s.noteMutation(t)
		if a != nil && b != nil && a.Ranked && b.Ranked && sameDims(a, b) {
			s.write(t, v)
		} else if len(t.state().chain) == 0 {
			// out= resizes a tensor of another size: it gets new memory
			st := s.newStorage(v, contiguous(v))
			s.set(t.c, &tensorState{st: st, strides: contiguous(v)})
			t.base, t.val = v, v
		} else {
			s.fail("mutation", "out= resizes a view")
		}
		rs = append(rs, t)
	}
	return rs
}
