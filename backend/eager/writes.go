package eager

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// writeOp is an operator that writes otherwise than by the operator of the same name without the underscore.
type writeOp func(k *machine, a arguments, self *Tensor) (Value, error)

var writeOps map[string]writeOp

func init() {
	writeOps = map[string]writeOp{
		"copy_": copyOp,
		"fill_": func(k *machine, a arguments, self *Tensor) (Value, error) {
			return self, k.fill(self, a.value("value"))
		},
		"zero_":          func(k *machine, a arguments, self *Tensor) (Value, error) { return self, k.fill(self, int64(0)) },
		"detach_":        keep,
		"requires_grad_": keep,
		"rename_":        keep,
		"unsqueeze_":     viewInPlace, "squeeze_": viewInPlace, "transpose_": viewInPlace, "t_": viewInPlace, "swapaxes_": viewInPlace, "swapdims_": viewInPlace, "as_strided_": viewInPlace,
		"set_data": func(k *machine, a arguments, self *Tensor) (Value, error) {
			u, err := a.tensor("new_data")
			if err == nil {
				self.become(u)
			}
			return nil, err
		},
		"set_": func(k *machine, a arguments, self *Tensor) (Value, error) {
			u, ok := a.value("source").(*Tensor)
			if !ok || len(a.vals) > 2 {
				return nil, refuse("mutation", "gives a tensor other memory, in a way that is not known")
			}
			self.become(u)
			return self, nil
		},
		"resize_": func(k *machine, a arguments, self *Tensor) (Value, error) {
			size, err := a.ints("size")
			if err != nil {
				return nil, err
			}
			return self, k.resize(self, size)
		},
		"resize_as_": func(k *machine, a arguments, self *Tensor) (Value, error) {
			u, err := a.tensor("the_template")
			if err != nil {
				return nil, err
			}
			return self, k.resize(self, u.shape)
		},
		"fill_diagonal_": fillDiagonal,
		"polygamma_": func(k *machine, a arguments, self *Tensor) (Value, error) {
			r, err := k.named("aten::polygamma", a.value("n"), self)
			if err != nil {
				return nil, err
			}
			return self, k.assign(self, r.(*Tensor))
		},
	}
}

func keep(_ *machine, _ arguments, self *Tensor) (Value, error) { return self, nil }

// writes runs an operator that writes to arguments.
func (k *machine) writes(kind ssa.Kind, schema *ssa.Schema, args []Value) ([]Value, error) {
	a := arguments{k, schema, args}
	self, isTensor := args[0].(*Tensor)
	name := kind.Name()
	if isTensor {
		if f := writeOps[name]; f != nil && schema.Arg("out") < 0 {
			v, err := f(k, a, self)
			return results(schema, v), err
		}
		if f := viewOps[name]; f != nil && strings.HasSuffix(name, "_") { // dropout_ in evaluation
			if v, done, err := f(a, self); done || err != nil {
				return results(schema, v), err
			}
		}
	}
	if outs := written(schema, true); outs != nil {
		return k.outVariant(kind, a, outs)
	}
	if twins := k.Table.Schemas(kind + "_functional"); len(twins) > 0 && len(twins[0].Args) == len(schema.Args) {
		rs, err := k.pure(kind+"_functional", twins[0], args)
		if err != nil {
			return nil, err
		}
		n := len(schema.Returns)
		at := n
		for i, arg := range schema.Args {
			if !arg.Writes || at >= len(rs) {
				continue
			}
			if t, ok := args[i].(*Tensor); ok {
				if err := k.assign(t, rs[at].(*Tensor)); err != nil {
					return nil, err
				}
			}
			at++
		}
		return rs[:n], nil
	}
	return k.inPlace(kind, a)
}

// written lists the arguments that an operator writes to; with named, only those that are passed by name, as out is.
func written(schema *ssa.Schema, named bool) []int {
	var out []int
	for i, a := range schema.Args {
		if a.Writes && (!named || a.KwOnly) {
			out = append(out, i)
		}
	}
	return out
}

// pureForm is the overload of an operator that takes the arguments of another one, and writes to none.
func (k *machine) pureForm(kind ssa.Kind, names []string, overload string) *ssa.Schema {
	var found *ssa.Schema
	for _, s := range k.Table.Schemas(kind) {
		if s.Mutates() || len(s.Args) < len(names) {
			continue
		}
		fits := true
		for i, a := range s.Args {
			if i >= len(names) {
				fits = fits && a.HasDefault
			} else if i > 0 {
				fits = fits && a.Name == names[i]
			}
		}
		if fits && s.Overload == overload {
			return s
		}
		if fits && found == nil {
			found = s
		}
	}
	return found
}

// outVariant runs an operator that writes its results to arguments.
func (k *machine) outVariant(kind ssa.Kind, a arguments, outs []int) ([]Value, error) {
	var names []string
	var operands []Value
	for i, arg := range a.schema.Args {
		if !slices.Contains(outs, i) {
			names, operands = append(names, arg.Name), append(operands, a.vals[i])
		}
	}
	overload := strings.TrimSuffix(strings.TrimSuffix(a.schema.Overload, "out"), "_")
	s := k.pureForm(kind, names, overload)
	if s == nil && strings.HasSuffix(a.schema.Overload, "out") { // add.out goes with add.Tensor
		s = k.pureForm(kind, names, "Tensor")
	}
	if s == nil {
		return nil, refuse("mutation", "there is no form of %s that only computes", a.schema.FullName())
	}
	rs, err := k.call(kind, s, nil, operands)
	if err != nil {
		return nil, err
	}
	if len(rs) != len(outs) {
		return nil, refuse("internal", "%d results for %d arguments that are written", len(rs), len(outs))
	}
	given := make([]Value, len(outs))
	for i, at := range outs {
		dst, ok := a.vals[at].(*Tensor)
		src, ok2 := rs[i].(*Tensor)
		if !ok || !ok2 {
			return nil, refuse("unsupported-value", "writes to %s", describe(a.vals[at]))
		}
		if !aten.CanCast(src.dtype, dst.dtype) {
			return nil, raise("result type %v can't be cast to the desired output type %v", src.dtype, dst.dtype)
		}
		if !slices.Equal(dst.shape, src.shape) {
			if err := k.resize(dst, src.shape); err != nil {
				return nil, err
			}
		}
		if err := k.assign(dst, src); err != nil {
			return nil, err
		}
		given[i] = dst
	}
	if len(a.schema.Returns) == 0 {
		return nil, nil
	}
	return given, nil
}

// inPlace runs an operator that writes to its first argument what the operator of the same name without the underscore computes.
func (k *machine) inPlace(kind ssa.Kind, a arguments) ([]Value, error) {
	base := strings.TrimSuffix(kind.Name(), "_")
	if base == "normal" { // aten::normal is another function
		base = "normal_functional"
	}
	if base == "_index_put_impl" {
		base = "index_put"
	}
	if rest, ok := strings.CutPrefix(base, "__i"); ok && strings.HasSuffix(base, "_") { // __iand__ is x &= y
		base = "__" + rest + "_"
	}
	pure := ssa.Kind(kind.Namespace() + "::" + base)
	names := make([]string, len(a.schema.Args))
	for i, arg := range a.schema.Args {
		names[i] = arg.Name
	}
	args := a.vals
	s := k.pureForm(pure, names, a.schema.Overload)
	for n := len(names) - 1; s == nil && n > 0; n-- { // arguments that say how to write
		s = k.pureForm(pure, names[:n], a.schema.Overload)
		args = a.vals[:n]
	}
	if s == nil || len(written(a.schema, false)) != 1 || !a.schema.Args[0].Writes {
		return nil, refuse("mutation", "there is no form of %s that only computes", a.schema.FullName())
	}
	selves, ok := tensors(a.vals[0])
	if self, one := a.vals[0].(*Tensor); one {
		selves, ok = []*Tensor{self}, true
	}
	if !ok {
		return nil, refuse("mutation", "writes to %s", describe(a.vals[0]))
	}
	for _, self := range selves {
		if err := apart(self, a.vals[1:]); err != nil {
			return nil, err
		}
	}
	rs, err := k.call(pure, s, nil, args)
	if err != nil {
		return nil, err
	}
	news, ok := tensors(rs[0])
	if r, one := rs[0].(*Tensor); one {
		news, ok = []*Tensor{r}, true
	}
	if !ok || len(news) != len(selves) {
		return nil, refuse("internal", "gives %s", describe(rs[0]))
	}
	for i, self := range selves {
		if !aten.CanCast(news[i].dtype, self.dtype) {
			return nil, raise("result type %v can't be cast to the desired output type %v", news[i].dtype, self.dtype)
		}
		if !slices.Equal(news[i].shape, self.shape) {
			return nil, raise("output with shape %v doesn't match the broadcast shape %v", self.shape, news[i].shape)
		}
		if err := k.assign(self, news[i]); err != nil {
			return nil, err
		}
	}
	return results(a.schema, a.vals[0]), nil
}

// apart refuses to write to a tensor while another part of its memory is read. The very same view may be read.
func apart(self *Tensor, others []Value) error {
	for _, o := range others {
		var ts []*Tensor
		switch o := o.(type) {
		case *Tensor:
			ts = []*Tensor{o}
		case *List:
			for _, e := range o.Elems {
				if t, ok := e.(*Tensor); ok {
					ts = append(ts, t)
				}
			}
		}
		for _, t := range ts {
			if t.mem == self.mem && !t.same(self) && self.overlaps(t) {
				return raise("unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. Please clone() the tensor before performing the operation.")
			}
		}
	}
	return nil
}

// assign writes the elements of src to dst, broadcast and with the element type of dst.
func (k *machine) assign(dst, src *Tensor) error {
	if dst.spreads() {
		return raise("unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please clone() the tensor before performing the operation.")
	}
	return k.store(dst, src)
}

func (k *machine) store(dst, src *Tensor) error {
	src, err := k.cast(src, dst.dtype)
	if err != nil {
		return err
	}
	if !slices.Equal(src.shape, dst.shape) {
		if src, err = expand(src, dst.shape); err != nil {
			return err
		}
	}
	if !dst.plain().HasData() || !src.plain().HasData() {
		return refuse("unsupported-value", "the elements of a tensor are not there")
	}
	if dst.dtype == tensor.String || dst.dtype.Opaque() {
		return refuse("unsupported-type", "writes elements of type %v", dst.dtype)
	}
	dst.write(src.Tensor())
	return nil
}

// cast is the tensor with another element type.
func (k *machine) cast(x *Tensor, d tensor.DType) (*Tensor, error) {
	if x.dtype == d {
		return x, nil
	}
	r, err := k.named("aten::to.dtype", x, int64(d.Code()), false, false, nil)
	if err != nil {
		return nil, err
	}
	return r.(*Tensor), nil
}

// named runs an overload by its full name on arguments; those that are missing take their defaults.
func (k *machine) named(name string, args ...Value) (Value, error) {
	s := aten.SchemaByName(name)
	if s == nil {
		return nil, refuse("internal", "no operator %s", name)
	}
	rs, err := k.call(ssa.Kind(s.Name), s, nil, args)
	if err != nil {
		return nil, err
	}
	if len(rs) != 1 {
		return nil, refuse("internal", "%s gives %d results", name, len(rs))
	}
	return rs[0], nil
}

func copyOp(k *machine, a arguments, self *Tensor) (Value, error) {
	src := a.vals[1]
	if t, ok := src.(*Tensor); ok {
		if t.same(self) {
			return self, nil
		}
		if err := apart(self, []Value{t}); err != nil {
			return nil, err
		}
		return self, k.assign(self, t)
	}
	t, err := scalarTensor(src, tensor.Undefined)
	if err != nil {
		return nil, err
	}
	return self, k.assign(self, t)
}

// fill writes one number to all elements, also where several of them are one in memory.
func (k *machine) fill(self *Tensor, v Value) error {
	if t, ok := v.(*Tensor); ok {
		if len(t.shape) != 0 {
			return raise("fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", len(t.shape))
		}
		return k.store(self, copied(t))
	}
	t, err := scalarTensor(v, tensor.Undefined)
	if err != nil {
		return err
	}
	return k.store(self, t)
}

// viewInPlace makes a tensor object the view of itself that the operator without the underscore gives.
func viewInPlace(k *machine, a arguments, self *Tensor) (Value, error) {
	f := viewOps[strings.TrimSuffix(ssa.Kind(a.schema.Name).Name(), "_")]
	v, done, err := f(a, self)
	if err != nil {
		return nil, err
	}
	t, ok := v.(*Tensor)
	if !done || !ok {
		return nil, refuse("mutation", "changes a tensor in a way that is not known")
	}
	self.become(t)
	return self, nil
}

// resize gives a tensor other sizes, row-major; its memory grows where it must, by elements that are 0.
func (k *machine) resize(t *Tensor, shape []int64) error {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return raise("requested resize to %v", shape)
		}
		if d > 0 && n > k.m.Allow(maxElements*8)/d {
			return &refusal{"budget", "makes a tensor of too many elements", ssa.BudgetHint}
		}
		n *= d
	}
	if t.dtype.Size() == 0 || t.mem.store == nil {
		return refuse("mutation", "resizes a tensor of type %v", t.dtype)
	}
	t.shape, t.strides = slices.Clone(shape), tensor.ContiguousStrides(shape)
	if need := (t.offset + n) * int64(t.dtype.Size()); need > t.mem.store.Len() {
		b := make([]byte, need)
		copy(b, t.mem.store.Bytes())
		t.mem.store, t.mem.owned = tensor.NewStorage(b), true
	}
	return nil
}

// fillDiagonal writes a number to the main diagonal, with wrap to the one that goes on behind the last column of a tall matrix.
func fillDiagonal(k *machine, a arguments, self *Tensor) (Value, error) {
	if len(self.shape) < 2 {
		return nil, raise("dimensions must larger than 1")
	}
	least, step := self.shape[0], int64(0)
	for i, n := range self.shape {
		if len(self.shape) > 2 && n != self.shape[0] {
			return nil, raise("all dimensions of input must be of equal length")
		}
		least = min(least, n)
		step += self.strides[i]
	}
	fill := a.value("fill_value")
	if err := k.fill(self.view(self.offset, []int64{least}, []int64{step}), fill); err != nil {
		return nil, err
	}
	if wrap, _ := a.value("wrap").(bool); wrap && len(self.shape) == 2 && self.shape[0] > self.shape[1]+1 {
		rows, cols := self.shape[0], self.shape[1]
		n := (rows*cols + cols) / (cols + 1) // elements, cols+1 apart in row-major order
		n -= least
		for i := range n {
			at := (least + i) * (cols + 1)
			row, col := at/cols, at%cols
			if err := k.fill(self.view(self.offset+row*self.strides[0]+col*self.strides[1], []int64{}, []int64{}), fill); err != nil {
				return nil, err
			}
		}
	}
	return self, nil
}
