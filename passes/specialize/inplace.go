package specialize

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// inPlaceHandler evaluates an operator that writes to self, its first argument.
type inPlaceHandler func(s *writes, o *ssa.Op, args []py.Value, self *py.Tensor) []py.Value

// objectOps change the tensor object, or nothing, and not the memory. The names are of the namespace aten.
var objectOps = map[string]inPlaceHandler{
	"unsqueeze_":      (*writes).viewInPlace,
	"squeeze_":        (*writes).viewInPlace,
	"transpose_":      (*writes).viewInPlace,
	"t_":              (*writes).viewInPlace,
	"swapaxes_":       (*writes).viewInPlace,
	"swapdims_":       (*writes).viewInPlace,
	"as_strided_":     (*writes).asStridedInPlace,
	"detach_":         unchangedSelf,
	"requires_grad_":  unchangedSelf,
	"rename_":         unchangedSelf,
	"resize_":         (*writes).resize,
	"set_":            (*writes).refuseResize,
	"resize_as_":      (*writes).refuseResize,
	"_resize_output_": (*writes).refuseResize,
}

// contentOps give the new content of a tensor whose present value is cur, where
// that is not the operator of the same name without the underscore.
var contentOps = map[string]func(s *writes, o *ssa.Op, args []py.Value, cur *ssa.Value) *ssa.Value{
	"copy_": func(s *writes, _ *ssa.Op, args []py.Value, cur *ssa.Value) *ssa.Value {
		if other, ok := args[1].(*py.Tensor); ok {
			v := s.vals.castLike(s.vals.read(other), cur)
			if t, c := v.Tensor(), cur.Tensor(); t != nil && c != nil && !t.Ranked && !c.Ranked { // of one type, but not of one shape
				v = s.vals.emitName("aten::expand_as", v, cur)
			}
			return v
		}
		return s.vals.emitName("aten::full_like", cur, args[1])
	},
	"polygamma_": func(s *writes, _ *ssa.Op, args []py.Value, cur *ssa.Value) *ssa.Value { // the pure form has the number first
		return s.vals.emitName("aten::polygamma", args[1], cur)
	},
	"fill_diagonal_": func(s *writes, _ *ssa.Op, args []py.Value, cur *ssa.Value) *ssa.Value {
		return s.filledDiagonal(cur, args[1], args[2])
	},
	"zero_": func(s *writes, _ *ssa.Op, _ []py.Value, cur *ssa.Value) *ssa.Value {
		return s.vals.emitName("aten::zeros_like", cur)
	},
}

// inPlace evaluates an operator that writes to its arguments.
func (s *writes) inPlace(o *ssa.Op, args []py.Value) []py.Value {
	if out := o.Schema.Arg("out"); out >= 0 && o.Schema.Args[out].Writes {
		return s.outVariant(o, args)
	}
	if rs, ok := s.functionalTwin(o, args); ok {
		return rs
	}
	self, ok := args[0].(*py.Tensor)
	if !ok {
		s.fail("mutation", "the operator writes to something that is not a tensor")
	}
	name := o.Kind.Name()
	if h := objectOps[name]; h != nil {
		return h(s, o, args, self)
	}
	if !strings.HasSuffix(name, "fill_") { // those read their value once, before they write
		for _, a := range args[1:] {
			if other, ok := a.(*py.Tensor); ok {
				s.refuseOverlap(self, other)
			}
		}
	}
	cur := s.vals.read(self)
	var v *ssa.Value
	if f := contentOps[name]; f != nil {
		v = f(s, o, args, cur)
	} else {
		v = s.vals.castLike(s.pureTwin(o, args), cur)
	}
	if !fitsInto(v.Tensor(), cur.Tensor()) {
		panic(s.raised("the result does not fit the tensor that is written"))
	}
	if t, c := v.Tensor(), cur.Tensor(); t != nil && c != nil && !ssa.SameType(t, c) && (!t.Ranked || !c.Ranked || !sameDims(t, c)) {
		v = s.vals.emitName("aten::expand_as", v, cur)
	}
	s.noteMutation(self)
	s.write(self, v)
	return []py.Value{self}
}

// pureTwin emits the operator of the same name without the underscore.
func (s *writes) pureTwin(o *ssa.Op, args []py.Value) *ssa.Value {
	base := strings.TrimSuffix(o.Kind.Name(), "_")
	if base == "normal" { // aten::normal is another function
		base = "normal_functional"
	}
	if rest, ok := strings.CutPrefix(base, "__i"); ok && strings.HasSuffix(base, "_") { // __iand__ is x &= y
		base = "__" + rest + "_"
	}
	name := o.Kind.Namespace() + "::" + base
	fs := functional(name, o.Schema)
	if fs == nil {
		s.fail("mutation", "the in-place operator has no pure twin %s", name)
	}
	operands := s.vals.operands(args)
	if len(operands) > len(fs.Args) {
		operands = operands[:len(fs.Args)]
	}
	for len(operands) < len(fs.Args) {
		a := fs.Args[len(operands)]
		if !a.HasDefault {
			s.fail("mutation", "%s takes an argument %q that %s lacks", fs.FullName(), a.Name, o.Schema.FullName())
		}
		operands = append(operands, s.build.constant(a.Default))
	}
	return s.build.emit(ssa.Kind(fs.Name), fs, operands...)[0]
}

func unchangedSelf(_ *writes, _ *ssa.Op, _ []py.Value, self *py.Tensor) []py.Value {
	return []py.Value{self}
}

func (s *writes) asStridedInPlace(_ *ssa.Op, args []py.Value, self *py.Tensor) []py.Value {
	s.reshape(self, heap.ViewOf(s.views.asStrided(args)))
	self.Base, self.Val = nil, nil
	return []py.Value{self}
}

// resize is resize_ to the sizes that the tensor has; others are refused.
func (s *writes) resize(o *ssa.Op, args []py.Value, self *py.Tensor) []py.Value {
	lit, ok := py.LiteralOf(args[1])
	want, isList := lit.IntList()
	if cur := s.vals.read(self).Tensor(); ok && isList && cur != nil {
		if have, ok := cur.Static(); ok && slices.Equal(have, want) {
			return []py.Value{self}
		}
	}
	return s.refuseResize(o, args, self)
}

func (s *writes) refuseResize(o *ssa.Op, _ []py.Value, _ *py.Tensor) []py.Value {
	s.fail("mutation", "%s changes a tensor's memory in place, which has no pure form", o.Kind.Name())
	return nil
}

// filledDiagonal is fill_diagonal_, also of more than two dimensions, which then are of one size.
func (s *writes) filledDiagonal(cur *ssa.Value, fill, wrap py.Value) *ssa.Value {
	shape, ok := staticShape(cur)
	if w, isLit := py.LiteralOf(wrap); !isLit || w.Bool() || len(shape) > 2 && !ok {
		s.fail("mutation", "fill_diagonal_ with wrap, or of dimensions whose sizes are not known")
	}
	t := cur.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) < 2 {
		s.fail("mutation", "fill_diagonal_ needs at least two dimensions")
	}
	if len(t.Dims) == 2 {
		d := s.vals.emitName("aten::diagonal", cur)
		return s.vals.emitName("aten::diagonal_scatter", cur, s.vals.emitName("aten::full_like", d, fill))
	}
	step, n := int64(0), int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		step += n
		n *= shape[i]
	}
	s.takeElems(shape[0], 8)
	places := make([]int64, shape[0])
	for i := range places {
		places[i] = int64(i) * step
	}
	at := s.build.constant(ssa.TensorValue(tensor.FromInts(tensor.Int64, []int64{shape[0]}, places)))
	return s.vals.emitName("aten::put", cur, at, s.vals.emitName("aten::full_like", s.vals.emitName("aten::take", cur, at), fill))
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

func (s *writes) noteMutation(t *py.Tensor) {
	st := heap.ViewOf(t).Storage
	if st.Origin != "" && st.Name != "" {
		s.noteState(st.Name, st.Origin == "input", func() py.Value {
			base := st.State().Base
			return s.heap.View(st, nil, st.Strides, base, base)
		})
	}
}

// functional finds the pure overload that takes the arguments of an in-place one.
func functional(name string, in *ssa.Schema) *ssa.Schema {
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

// reshape makes a tensor object another view of its memory.
func (s *writes) reshape(t *py.Tensor, view *heap.View) {
	s.heap.Reshape(t.Cell, view, "the shape of what may be this tensor was changed in place "+s.where()+"; use the form without _ there")
}

// viewInPlace changes what a tensor object views.
func (s *writes) viewInPlace(o *ssa.Op, args []py.Value, self *py.Tensor) []py.Value {
	if self.Element || heap.ViewOf(self).Storage.Pool {
		s.fail("alias", "the shape of an element of a list whose length is only known at run time is changed in place")
	}
	name := "aten::" + strings.TrimSuffix(o.Kind.Name(), "_")
	fs := functional(name, o.Schema)
	if fs == nil {
		s.fail("mutation", "no pure twin %s", name)
	}
	if name == "aten::squeeze" {
		if rs, ok := s.views.squeeze(o, args); ok {
			next := rs[0].(*py.Tensor)
			s.reshape(self, heap.ViewOf(next))
			self.Base, self.Val = next.Base, next.Val
			return []py.Value{self}
		}
	}
	st := heap.ViewOf(self)
	operands := s.vals.operands(args)
	v := s.build.emit(ssa.Kind(name), fs, operands...)[0]
	s.views.squeezedMaybe(ssa.Kind(name), args, operands[0], v)
	step := heap.Step{Kind: ssa.Kind(name), Schema: fs, Args: s.vals.freeze(args)}
	next := &heap.View{Storage: st.Storage, Chain: st.Then(step), Strides: s.views.strides(step, st.Strides, operands[0], v)}
	s.reshape(self, next)
	self.Base, self.Val = st.Storage.State().Base, v
	return []py.Value{self}
}

// options are the arguments that operators which make tensors have, and their forms with out= do not.
var options = []string{"dtype", "layout", "device", "pin_memory"}

// pureTwin is the schema of an operator with out= without its n tensors that are written. Those that make a tensor may have
// options besides.
func pureTwin(o *ssa.Op, n int) *ssa.Schema {
	in := o.Schema.Args[:len(o.Schema.Args)-n]
	for _, f := range aten.Schemas(o.Kind) {
		if f.Mutates() || len(f.Returns) != n || len(f.Args) < len(in) {
			continue
		}
		ok := true
		for i, a := range f.Args {
			if i < len(in) {
				ok = ok && a.Name == in[i].Name && a.Type.String() == in[i].Type.String()
			} else {
				ok = ok && n == 1 && slices.Contains(options, a.Name)
			}
		}
		if ok {
			return f
		}
	}
	return nil
}

// fillsOut reports an operator with out= that makes a row of numbers (arange, linspace): a tensor of as many elements keeps its
// shape, and is resized to the row otherwise (ATen/native/RangeFactories.cpp).
func fillsOut(o *ssa.Op, args []py.Value, made *ssa.TensorType) bool {
	return made != nil && made.Ranked && len(made.Dims) == 1 && o.Schema.Arg("size") < 0 && !py.Tensorial(args[:len(o.Schema.Args)-1])
}

// outVariant evaluates op(..., out=t).
func (s *writes) outVariant(o *ssa.Op, args []py.Value) []py.Value {
	var outs []int
	for i := range o.Schema.Args {
		if o.Schema.Args[i].Writes {
			outs = append(outs, i)
		}
	}
	fs := pureTwin(o, len(outs))
	if fs == nil {
		s.fail("mutation", "%s has no pure twin", o.Schema.FullName())
	}
	pure := slices.Clone(args[:len(o.Schema.Args)-len(outs)])
	for _, a := range fs.Args[len(pure):] {
		x := py.None
		if a.Name == "dtype" { // what is made is of the type of the tensor that it is written to
			t := s.vals.read(s.vals.tensor(args[outs[0]])).Tensor()
			if t == nil || t.DType.Code() < 0 {
				s.fail("mutation", "the element type of the tensor that out= writes to is not known")
			}
			x = py.Int(int64(t.DType.Code()))
		}
		pure = append(pure, x)
	}
	vs := s.build.emit(o.Kind, fs, s.vals.operands(pure)...)
	var rs []py.Value
	for k, i := range outs {
		t := s.vals.tensor(args[i])
		cur := s.vals.read(t)
		v := s.vals.castLike(vs[k], cur)
		a, b := v.Tensor(), cur.Tensor()
		if b != nil && b.Ranked && len(b.Dims) != 1 && fillsOut(o, args, a) {
			n := sym.Const(1)
			for _, d := range b.Dims {
				n = n.Mul(d)
			}
			switch {
			case n.Equal(a.Dims[0]):
				v = s.vals.emitName("aten::view_as", v, cur)
				a = v.Tensor()
			case !n.IsConst() || !a.Dims[0].IsConst():
				s.fail("dynamic-axis", "out= keeps the shape of the tensor that it writes to where that has as many elements, which depends on a dynamic axis; use the form without out=")
			}
		}
		s.noteMutation(t)
		if a != nil && b != nil && a.Ranked && b.Ranked && sameDims(a, b) {
			s.write(t, v)
		} else { // out= resizes a tensor of another size: it gets new memory
			if t.Element || heap.ViewOf(t).Storage.Pool {
				s.fail("alias", "out= changes the size of an element of a list whose length is only known at run time")
			}
			st := s.heap.Storage(v, layout.RowMajor(v.Tensor()))
			err := s.heap.Resize(t.Cell, &heap.View{Storage: st, Strides: layout.RowMajor(v.Tensor())},
				"out= "+s.where()+" changes the size of the memory that this tensor views; use the form without out=")
			if err != nil {
				s.fail("alias", "%v", err)
			}
			t.Base, t.Val = v, v
		}
		rs = append(rs, t)
	}
	return rs
}
