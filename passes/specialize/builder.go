package specialize

import (
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/internal/naming"
	"github.com/aton-project/aton/passes/specialize/internal/form"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// builder appends operators to the target function.
type builder struct {
	*context
	out     *ssa.Func
	cur     *ssa.Block
	consts  map[string]*ssa.Value
	lastCon *ssa.Op // the last hoisted constant
	names   ssa.Names
	// numbered has, for each name, the least number that may be free to append.
	numbered map[string]int
	scratch  *ssa.Func
	nscr     int
	emptied  map[*ssa.Value][]emptied
	// supposing counts the evaluations of an operator for an empty input, which is not looked at itself.
	supposing int
}

// constant gives the value of a prim::Constant at the top of the function.
func (s *builder) constant(l ssa.Literal) *ssa.Value {
	key := ""
	if l.Kind != ssa.TensorLit {
		key = l.Type().String() + " " + l.String()
		if v := s.consts[key]; v != nil {
			return v
		}
	}
	block, before := s.out.Body, s.out.Body.First()
	if s.supposing > 0 {
		block, before = s.cur, nil
	} else if s.lastCon != nil {
		before = s.lastCon.Next()
	}
	o := block.InsertBefore(before, "prim::Constant", 0, nil, l.Type())
	if !l.IsNone() {
		o.SetAttr("value", l)
	}
	v := o.Results[0]
	switch l.Kind {
	case ssa.IntLit:
		v.Sym = []sym.Expr{sym.Const(l.Int())}
	case ssa.TensorLit:
		v.Sym = symOfTensor(l.Tensor)
	}
	if s.supposing > 0 {
		return v
	}
	s.lastCon = o
	if key != "" {
		s.consts[key] = v
	}
	return v
}

// returned are the types that a schema states of the results.
func returned(schema *ssa.Schema) []ssa.Type {
	types := make([]ssa.Type, len(schema.Returns))
	for i := range types {
		types[i] = schema.Returns[i].Type
	}
	return types
}

// emit adds a pure op with inferred result types and gives its results; what
// turns out to be constant is folded.
func (s *builder) emit(kind ssa.Kind, schema *ssa.Schema, operands ...*ssa.Value) []*ssa.Value {
	o := s.cur.Append(kind, s.loc, operands, returned(schema)...)
	o.Schema = schema
	rs := s.infer(o)
	if s.supposing == 0 && len(s.nonEmpty) > 0 {
		s.followEmpty(kind, schema, operands, rs)
	}
	return rs
}

func (s *builder) scratchBlock() *ssa.Block {
	if s.scratch == nil || s.nscr >= scratchOps {
		if s.scratch != nil {
			s.m.RemoveFunc(s.scratch)
		}
		s.scratch = s.m.NewFunc("scratch")
		s.nscr = 0
	}
	s.nscr++
	return s.scratch.Body
}

// infer finds the result types of o: by the rule of its family, or by lowering it into a scratch block. An
// operator that cannot be lowered keeps the types of its schema: the lower
// pass reports it.
func (s *builder) infer(o *ssa.Op) []*ssa.Value {
	for _, r := range o.Results {
		if _, ok := r.Type.(*ssa.VarType); ok && o.NumOperands() > 0 { // an element of a list
			if lt, ok := o.Operand(0).Type.(*ssa.ListType); ok {
				r.Type = generalType(lt.Elem)
			}
		}
	}
	if t, ok := s.opts.Table.TypeOf(o, s.opts.Opset); ok {
		o.Results[0].Type, o.Results[0].Sym = t, nil
		return o.Results
	}
	b := s.scratchBlock()
	defer b.Clear()
	vs, err := s.opts.Table.Scratch(o, s.opts.Opset, onnx.Builder{Eval: kernel.Eval, Block: b, Loc: o.Loc, FoldLimit: foldElems})
	if err != nil {
		if err.ID != "unknown-shape" && err.ID != "unknown-dtype" {
			s.causes = append(s.causes, diag.Diagnostic{ID: err.ID, Loc: o.Loc, Op: string(o.Kind), Message: err.Message, Hint: err.Hint, Opset: err.Opset})
		}
		if err.ID == "unknown-shape" {
			s.needRank(o.Operands()...)
		}
		return o.Results
	}
	if len(o.Results) == 1 {
		if lt, ok := o.Results[0].Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) != nil {
			return s.inferList(o, vs)
		}
	}
	if len(vs) != len(o.Results) {
		s.fail("internal", "the lowering gives %d results, the schema %d", len(vs), len(o.Results))
	}
	folded := make([]*ssa.Value, len(vs))
	all := s.foldable(o)
	for i, v := range vs {
		if v == nil {
			all = false
			continue
		}
		r := o.Results[i]
		r.Sym = v.Sym
		if ssa.AsTensor(r.Type) != nil {
			if t := v.Tensor(); t != nil {
				r.Type = t
			}
		}
		t := onnx.ConstOf(v)
		if t == nil || !t.HasData() || t.NumElements() > foldElems {
			all = false
			continue
		}
		if all {
			folded[i] = s.foldedConstant(r.Type, t)
			all = folded[i] != nil
		}
	}
	if all {
		s.nameFolded(o, folded)
		o.Erase()
		return folded
	}
	return o.Results
}

// nameFolded calls the tensors that were computed of a weight after it. Weights that stay what they are have no such names:
// what has one would be a weight itself.
func (s *builder) nameFolded(o *ssa.Op, folded []*ssa.Value) {
	if s.opts.KeepWeights {
		return
	}
	for _, v := range o.Operands() {
		if v == nil || v.Def() == nil || v.Def().Kind != prim.Constant || v.Tensor() == nil || v.Name == "" {
			continue
		}
		name := naming.Folded(v.Name, o.Kind)
		for _, f := range folded {
			if f.Tensor() != nil {
				f.Name = s.names.Unique(name)
			}
		}
		return
	}
}

// foldable keeps random operators from being folded, and weights that are to stay what they are.
func (s *builder) foldable(o *ssa.Op) bool {
	if s.m.Effects(o)&(ssa.Random|ssa.Unknown) != 0 {
		return false
	}
	if !s.opts.KeepWeights {
		return true
	}
	for _, v := range o.Operands() {
		if v != nil && v.Name != "" && v.DType().IsFloat() && v.Def() != nil && v.Def().Kind == prim.Constant {
			return false
		}
	}
	return true
}

func (s *builder) foldedConstant(t ssa.Type, c *tensor.Tensor) *ssa.Value {
	if l, ok := aten.LiteralAs(t, c); ok {
		return s.constant(l)
	}
	return nil
}

// inferList splits a result list of known length into values of their own.
func (s *builder) inferList(o *ssa.Op, vs []*ssa.Value) []*ssa.Value {
	if len(vs) == 1 {
		if _, ok := vs[0].Type.(*ssa.ListType); ok {
			o.Results[0].Type = vs[0].Type
			return o.Results // a sequence: its length is not known
		}
	}
	types := make([]ssa.Type, len(vs))
	for i, v := range vs {
		types[i] = v.Type
	}
	u := s.cur.Append("prim::ListUnpack", o.Loc, []*ssa.Value{o.Results[0]}, types...)
	for i, v := range vs {
		u.Results[i].Sym = v.Sym
	}
	return u.Results
}

// inLoop reports that the current block is in the body of a loop that is kept.
func (s *builder) inLoop() bool {
	for b := s.cur; b != nil && b.Owner() != nil; b = b.Owner().Block() {
		if b.Owner().Kind == "prim::Loop" {
			return true
		}
	}
	return false
}

// joinTensors is the type of a tensor that has one of two types: by says what stands for two sizes.
func (s *builder) joinTensors(a, b *ssa.TensorType, by func(axis int, a, b sym.Expr) sym.Expr) *ssa.TensorType {
	t := form.JoinTypes(a, b, func(i int) sym.Expr { return by(i, a.Dims[i], b.Dims[i]) })
	if t == nil {
		s.failDTypes(a.DType, b.DType)
	}
	return t
}

// joinElems is joinTensors for the elements of one list: sizes in which they differ vary from element to element.
func (s *builder) joinElems(a, b *ssa.TensorType) *ssa.TensorType {
	return s.joinTensors(a, b, func(i int, a, b sym.Expr) sym.Expr {
		size, varies := s.size(a, b)
		if varies {
			return sym.Varying(i)
		}
		return size
	})
}

// size is what stands for two sizes: a symbol of its own where they are not the same.
func (s *builder) size(a, b sym.Expr) (size sym.Expr, varies bool) {
	if a.Equal(b) {
		return a, false
	}
	return s.m.FreshSymbol("u", max(0, min(a.Min(), b.Min()))), true
}

func (s *builder) failDTypes(a, b any) {
	s.fail("dynamic-dtype", "a tensor is %v or %v depending on data; ONNX needs one type: convert with .to() in one of the branches", a, b)
}

// when emits an If that gives f() where cond is side, else v.
func (s *builder) when(cond *ssa.Value, side bool, v *ssa.Value, f func() *ssa.Value) *ssa.Value {
	n := s.cur.Append("prim::If", s.loc, []*ssa.Value{cond}, v.Type)
	blocks := [2]*ssa.Block{n.AddBlock(), n.AddBlock()}
	i := 1
	if side {
		i = 0
	}
	cur := s.cur
	s.cur = blocks[i]
	blocks[i].SetReturns(f())
	s.cur = cur
	blocks[1-i].SetReturns(v)
	return n.Results[0]
}

// name keeps the user's variable name on the value that was emitted for it.
func (s *builder) name(x py.Value, name string) {
	if name == "" {
		return
	}
	var v *ssa.Value
	switch x := x.(type) {
	case py.Dynamic:
		v = x.Value
	case *py.Tensor:
		v = x.Val
	}
	if v == nil || v.Name != "" || v.Def() == nil || v.Def().Kind == "prim::Constant" {
		return
	}
	if s.names.Taken(name) {
		stem := strings.TrimRight(name, "0123456789")
		stem = strings.TrimSuffix(stem, ".")
		if stem == "" {
			return
		}
		for i := max(s.numbered[stem], 1); ; i++ {
			s.numbered[stem] = i
			if i > 17 { // long runs of one name: leave it to the printer
				return
			}
			name = stem + "." + strconv.Itoa(i)
			if !s.names.Taken(name) {
				break
			}
		}
	}
	s.names.Take(name)
	v.Name = name
}

func symOfTensor(t *tensor.Tensor) []sym.Expr {
	if t.DType.IsInt() && len(t.Shape) <= 1 && t.NumElements() <= 64 && t.HasData() {
		return ssa.Sizes(t.Int64s())
	}
	return nil
}

// scratchOps is the number of inferences after which scratch memory is given back.
const scratchOps = 512

// foldElems is the number of elements up to which results are computed at export.
const foldElems = 1 << 14

func inScope(v *ssa.Value, b *ssa.Block) bool {
	home := v.Block()
	return home != nil && home.Encloses(b)
}
