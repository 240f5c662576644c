package ssa

import (
	"encoding/base64"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Text that [PrintOptions.Complete] asks for has more sections than what PyTorch prints. The head says what a module has besides
// its graphs; it is left out where there is nothing to say:
//
//	module {
//	  opsets = {"" : 20}
//	  symbols = {"N" : (2, None, None)}
//	}
//	graph(%x : Float(N, 3)):
//	  %w : Float(3, 300) = onnx::Constant[value=tensor(Float(3, 300), @0)]()
//	  ...
//	data {
//	  @0 = "AACAPwAAgD8..."
//	}
//
// A third section, known {...}, says what is known of the elements of integers. The data are the bytes of storages in base64, or lists of strings. Tensors that share a storage name the same one. The values of
// the head are literals, as those of attributes are.

// whole numbers what the sections of complete text refer to.
type whole struct {
	m        *Module
	tensors  map[*tensor.Tensor]int  // how often a literal holds the tensor
	same     map[*tensor.Tensor]int  // numbers of tensors that several literals hold
	users    map[*tensor.Storage]int // how many literals hold a tensor of the storage
	storages map[*tensor.Storage]int // numbers of those that go to the data
	order    []*tensor.Tensor        // the first tensor of each storage in the data
	objects  map[*Object]int
	listed   []*Object
	locs     map[diag.Loc]int
	frames   []diag.Frame
	schemas  map[*Op]int
	declared map[*Schema]int
	schema   []*Schema // those that text does not stand for
	facts    map[string]sym.Fact
	symbols  []string // names of facts in order
	noted    Module   // counts the symbols that the text shows
	types    map[string]*TupleType
	named    []*TupleType // of types, each behind those in it
	known    []string     // lines of what is known of values
	elide    bool         // leave the data out
	most     int64        // elements of a tensor that the text spells
}

// wholeOf looks through a module.
func wholeOf(m *Module, opts PrintOptions) *whole {
	w := &whole{m: m, elide: opts.NoData, most: elideAbove, tensors: map[*tensor.Tensor]int{}, same: map[*tensor.Tensor]int{}, users: map[*tensor.Storage]int{}, storages: map[*tensor.Storage]int{},
		schemas: map[*Op]int{}, declared: map[*Schema]int{}, objects: map[*Object]int{}, locs: map[diag.Loc]int{}, facts: map[string]sym.Fact{}, types: map[string]*TupleType{}}
	if opts.AllConstants {
		w.most = math.MaxInt64
	}
	if m.Root != nil {
		w.object(m.Root)
	}
	for _, held := range [...]map[string]*tensor.Tensor{m.Weights, m.Defaults} {
		for _, name := range slices.Sorted(maps.Keys(held)) {
			w.tensor(held[name])
		}
	}
	for _, in := range m.Inputs {
		w.input(in)
	}
	for _, f := range m.Funcs {
		w.values(f.Body.Params)
		for o := range f.Body.AllOps() {
			w.values(o.Results)
			w.overload(o)
			for _, b := range o.Blocks {
				w.values(b.Params)
			}
			for _, a := range o.Attrs {
				w.literal(a.Value)
			}
		}
	}
	return w
}

// overload notes the declaration of an operator whose operands do not say which one it is.
func (w *whole) overload(o *Op) {
	if o.Schema == nil || w.m.matched(o) == o.Schema {
		return
	}
	n, seen := w.declared[o.Schema]
	if !seen {
		n = len(w.schema)
		w.declared[o.Schema] = n
		w.schema = append(w.schema, o.Schema)
		for _, a := range o.Schema.Returns {
			w.typ(a.Type)
		}
	}
	w.schemas[o] = n
}

// literal is a declaration as its text or, where that is made up, in parts.
func (s *Schema) literal() Literal {
	if again, err := ParseSchema(s.text); err == nil && again.VarReturn == s.VarReturn {
		return Str(s.text)
	}
	args, returns := List(nil), List(nil)
	for _, a := range s.Args {
		args.Elems = append(args.Elems, Tuple(Str(a.Name), TypeValue(a.Type)))
	}
	for _, a := range s.Returns {
		returns.Elems = append(returns.Elems, TypeValue(a.Type))
	}
	return Tuple(Str(s.Name), Str(s.Overload), args, returns, Str(s.text))
}

func (w *whole) values(vs []*Value) {
	for _, v := range vs {
		w.typ(v.Type)
		if saysSizes(v) {
			for _, e := range v.Sym {
				w.expr(e)
			}
		}
	}
}

// saysSizes reports a value whose elements are known as expressions of sizes, or as numbers that are no constant's: an index of a
// loop is known to be less than the number of its iterations.
func saysSizes(v *Value) bool {
	return len(v.Sym) > 0 && (v.def == nil || v.def.Kind != "prim::Constant" && v.def.Kind != "onnx::Constant")
}

func (w *whole) input(in Input) {
	w.typ(in.Type)
	if in.Const != nil {
		w.literal(*in.Const)
	}
	for _, e := range in.Elems {
		w.input(e)
	}
	for _, k := range in.Keys {
		w.literal(k)
	}
}

func (w *whole) literal(l Literal) {
	switch l.Kind {
	case TensorLit:
		w.tensor(l.Tensor)
	case ObjectLit:
		w.object(l.Object)
	}
	w.typ(l.Elem)
	for _, e := range l.Elems {
		w.literal(e)
	}
}

func (w *whole) tensor(t *tensor.Tensor) {
	if t == nil {
		return
	}
	w.tensors[t]++
	if t.Storage != nil {
		w.users[t.Storage]++
	}
}

func (w *whole) object(o *Object) {
	if _, seen := w.objects[o]; seen {
		return
	}
	w.objects[o] = len(w.listed)
	w.listed = append(w.listed, o)
	for _, f := range o.Fields {
		w.literal(f.Value)
	}
}

// typ notes the symbols of a type and the tuples that it names.
func (w *whole) typ(t Type) {
	switch t := t.(type) {
	case *TensorType:
		for _, d := range t.Dims {
			w.expr(d)
		}
	case *ListType:
		w.typ(t.Elem)
	case *OptionalType:
		w.typ(t.Elem)
	case *WrapType:
		w.typ(t.Elem)
	case *DictType:
		w.typ(t.Key)
		w.typ(t.Value)
	case *UnionType:
		for _, e := range t.Elems {
			w.typ(e)
		}
	case *TupleType:
		if t.Name != "" {
			if w.types[t.Name] != nil {
				return
			}
			w.types[t.Name] = t
		}
		for _, e := range t.Elems {
			w.typ(e)
		}
		if t.Name != "" {
			w.named = append(w.named, t)
		}
	}
}

func (w *whole) expr(e sym.Expr) {
	e.Symbols(w.noted.NoteSymbol)
	e.Facts(func(f sym.Fact) {
		have, seen := w.facts[f.Name]
		if !seen {
			w.symbols = append(w.symbols, f.Name)
		} else if have.Min <= f.Min {
			return
		}
		w.facts[f.Name] = f
	})
}

// inline reports that the text of the elements is all that there is to a tensor, as the value of an attribute of an op.
func (w *whole) inline(t *tensor.Tensor, o *Op) bool {
	if t.NumElements() == 0 {
		return t.Quant == nil && t.DType.HoldsNumbers() && !t.DType.IsComplex() && !t.DType.IsQuantized()
	}
	if t.Storage == nil || w.users[t.Storage] > 1 || t.Quant != nil || !t.DType.HoldsNumbers() || t.DType.IsComplex() || t.DType.IsQuantized() {
		return false
	}
	one, memory := t, o != nil && o.Kind.Namespace() != "onnx" // where elements lie is nothing to an operator of ONNX
	if memory && t.Offset != 0 {
		return false
	}
	if t.IsSplat() && t.NumElements() > 1 {
		if !typedResult(t, o) || t.Storage.Len() != int64(t.DType.Size()) || slices.ContainsFunc(t.Strides, func(n int64) bool { return n != 0 }) {
			return false
		}
		c := *t
		c.Shape, c.Strides = []int64{}, []int64{}
		one = &c
	}
	if memory && (one == t && !slices.Equal(t.Strides, tensor.ContiguousStrides(t.Shape)) || t.Storage.Len() != one.NumBytes()) {
		return false
	}
	if one.NumElements() > w.most {
		return false
	}
	var again *tensor.Tensor
	if t.DType.IsFloat() {
		again = tensor.FromFloats(t.DType, one.Shape, canonicalNaNs(one.Float64s()))
	} else {
		again = tensor.FromInts(t.DType, one.Shape, one.Int64s())
	}
	return string(again.Bytes()) == string(one.Bytes())
}

// canonicalNaNs has NaN as the text has it: without a sign and a payload.
func canonicalNaNs(v []float64) []float64 {
	v = slices.Clone(v)
	for i := range v {
		if v[i] != v[i] {
			v[i] = math.NaN()
		}
	}
	return v
}

// reference prints tensor(Float(2, 3), @0, strides=[1, 2]).
func (p *printer) reference(t *tensor.Tensor) {
	w := p.w
	w.WriteString("tensor(" + TensorOf(t).String())
	if t.Storage != nil && !p.whole.elide {
		n, ok := p.whole.storages[t.Storage]
		if !ok {
			n = len(p.whole.order)
			p.whole.storages[t.Storage] = n
			p.whole.order = append(p.whole.order, t)
		}
		w.WriteString(", @" + strconv.Itoa(n))
	}
	if !slices.Equal(t.Strides, tensor.ContiguousStrides(t.Shape)) {
		w.WriteString(", strides=" + Ints(t.Strides...).String())
	}
	if t.Offset != 0 {
		w.WriteString(", offset=" + strconv.FormatInt(t.Offset, 10))
	}
	if q := t.Quant; q != nil {
		w.WriteString(", quant=" + Tuple(Floats(q.Scales...), Ints(q.ZeroPoints...), Floats(q.RealZeroPoints...), Int(int64(q.Axis))).String())
	}
	if p.whole.tensors[t] > 1 {
		n, ok := p.whole.same[t]
		if !ok {
			n = len(p.whole.same)
			p.whole.same[t] = n
		}
		w.WriteString(", same=" + strconv.Itoa(n))
	}
	w.WriteByte(')')
}

// loc numbers a location that the text of a graph has no form for.
func (w *whole) loc(l diag.Loc) int {
	if l == 0 {
		return 0
	}
	n, ok := w.locs[l]
	if !ok {
		f := w.m.Locs.Frame(l)
		w.loc(f.Caller)
		n = len(w.frames) + 1
		w.locs[l] = n
		w.frames = append(w.frames, f)
	}
	return n
}

func strDict(m map[string]string) Literal {
	d := Dict()
	for _, k := range slices.Sorted(maps.Keys(m)) {
		d.Elems = append(d.Elems, Str(k), Str(m[k]))
	}
	return d
}

func intDict[T int | int64](m map[string]T) Literal {
	d := Dict()
	for _, k := range slices.Sorted(maps.Keys(m)) {
		d.Elems = append(d.Elems, Str(k), Int(int64(m[k])))
	}
	return d
}

func keyValues(kv []KeyValue) Literal {
	l := List(nil)
	for _, e := range kv {
		l.Elems = append(l.Elems, Tuple(Str(e.Key), Str(e.Value)))
	}
	return l
}

func (n Note) literal() Literal { return Tuple(Str(n.Doc), keyValues(n.Metadata)) }

func (in Input) literal() Literal {
	typ, value := None, None
	if in.Type != nil {
		typ = TypeValue(in.Type)
	}
	if in.Const != nil {
		value = Tuple(*in.Const)
	}
	elems := List(nil)
	for _, e := range in.Elems {
		elems.Elems = append(elems.Elems, e.literal())
	}
	return Tuple(Str(in.Name), typ, value, Str(in.Container), elems, List(nil, in.Keys...))
}

// head prints what a module has besides its graphs.
func (p *printer) head() {
	w, m := p.whole, p.m
	open := false
	say := func(key string, l Literal) {
		if !open {
			p.w.WriteString("module {\n")
			open = true
		}
		p.w.WriteString("  " + key + " = ")
		p.literal(l, nil, false)
		p.w.WriteByte('\n')
	}
	if len(m.Opsets) > 0 {
		say("opsets", intDict(m.Opsets))
	}
	if m.TargetOpset != 0 {
		say("target_opset", Int(int64(m.TargetOpset)))
	}
	if len(m.DroppedInputs) > 0 {
		say("dropped_inputs", Ints(m.DroppedInputs...))
	}
	if len(m.State) > 0 {
		say("state", Strs(m.State...))
	}
	if len(m.Passed) > 0 {
		say("passed", Strs(m.Passed...))
	}
	facts := Dict()
	for _, name := range w.symbols {
		if f := w.facts[name]; !f.Plain() {
			most, free := None, None
			if f.Max != nil {
				most = Str(f.Max.String())
			}
			if f.Free != nil {
				free = Strs(f.Free...)
			}
			facts.Elems = append(facts.Elems, Str(name), Tuple(Int(f.Min), most, free))
		}
	}
	if len(facts.Elems) > 0 {
		say("symbols", facts)
	}
	if m.fresh != w.noted.fresh {
		say("fresh", Int(int64(m.fresh)))
	}
	if m.SizesSolved {
		say("sizes_solved", Bool(true))
	}
	if m.Guarded {
		say("guarded", Bool(true))
	}
	if len(m.Recorded) > 0 {
		say("recorded", intDict(m.Recorded))
	}
	for _, named := range w.named {
		t := *named
		t.Name = ""
		say("types", Dict(Str(named.Name), TypeValue(&t)))
	}
	if len(w.schema) > 0 {
		l := List(nil)
		for _, s := range w.schema {
			l.Elems = append(l.Elems, s.literal())
		}
		say("schemas", l)
	}
	outputs := Dict()
	for _, f := range m.Funcs {
		if len(f.OutputNames) > 0 {
			outputs.Elems = append(outputs.Elems, Str(f.Name), Strs(f.OutputNames...))
		}
	}
	if len(outputs.Elems) > 0 {
		say("outputs", outputs)
	}
	if len(m.Metadata) > 0 {
		say("metadata", keyValues(m.Metadata))
	}
	if len(m.Classes) > 0 {
		say("classes", strDict(m.Classes))
	}
	if len(m.Inputs) > 0 {
		l := List(nil)
		for _, in := range m.Inputs {
			l.Elems = append(l.Elems, in.literal())
		}
		say("inputs", l)
	}
	named := func(key string, held map[string]*tensor.Tensor) {
		if len(held) == 0 {
			return
		}
		d := Dict()
		for _, name := range slices.Sorted(maps.Keys(held)) {
			d.Elems = append(d.Elems, Str(name), TensorValue(held[name]))
		}
		say(key, d)
	}
	named("weights", m.Weights)
	if m.WeightStorage != Initializers {
		say("weight_storage", Str(string(m.WeightStorage)))
	}
	named("defaults", m.Defaults)
	for i, o := range w.listed {
		fields := Dict()
		for _, f := range o.Fields {
			fields.Elems = append(fields.Elems, Str(f.Name), f.Value)
		}
		say("object_"+strconv.Itoa(i), Tuple(Str(o.Class), Str(o.Path), fields))
	}
	if m.Root != nil {
		say("root", ObjectValue(m.Root))
	}
	p.headFile(say)
	if open {
		p.w.WriteString("}\n")
	}
}

// headFile says what an ONNX file says of itself, and the locations that the graphs refer to by number.
func (p *printer) headFile(say func(key string, l Literal)) {
	w, f := p.whole, &p.m.File
	nodes := List(nil)
	for _, l := range slices.Sorted(maps.Keys(f.Nodes)) {
		nodes.Elems = append(nodes.Elems, Tuple(Int(int64(w.loc(l))), f.Nodes[l].literal()))
	}
	for _, fn := range p.m.Funcs {
		for o := range fn.Body.AllOps() {
			if !p.opts.NoLocs && o.Loc != 0 && !plainFrame(p.m.Locs.Frame(o.Loc)) {
				w.loc(o.Loc)
			}
		}
	}
	values := Dict()
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		values.Elems = append(values.Elems, Str(name), f.Values[name].literal())
	}
	if f.Doc != "" || f.Domain != "" || f.Version != 0 || f.Graph != "" || f.GraphDoc != "" || len(f.GraphMetadata) > 0 || len(nodes.Elems) > 0 || len(values.Elems) > 0 {
		say("file", Tuple(Str(f.Doc), Str(f.Domain), Int(f.Version), Str(f.Graph), Str(f.GraphDoc), keyValues(f.GraphMetadata), nodes, values))
	}
	if len(w.frames) == 0 {
		return
	}
	frames := List(nil)
	for _, f := range w.frames {
		frames.Elems = append(frames.Elems, Tuple(Str(f.File), Int(int64(f.Line)), Int(int64(f.Col)), Str(f.Func), Str(f.Scope), Int(int64(f.Node)), Int(int64(w.loc(f.Caller)))))
	}
	say("locs", frames)
}

// known prints what is known of the elements of integers, by the names that the graphs gave their values.
func (p *printer) known(f *Func) {
	say := func(vs []*Value) {
		for _, v := range vs {
			if !saysSizes(v) {
				continue
			}
			texts := make([]string, len(v.Sym))
			for i, e := range v.Sym {
				texts[i] = e.String()
			}
			p.whole.known = append(p.whole.known, "  @"+funcName(f.Name)+" %"+p.name(v)+" = "+Strs(texts...).String()+"\n")
		}
	}
	say(f.Body.Params)
	for o := range f.Body.AllOps() {
		say(o.Results)
		for _, b := range o.Blocks {
			say(b.Params)
		}
	}
}

// data prints the storages that the text refers to.
func (p *printer) data() {
	if len(p.whole.known) > 0 {
		p.w.WriteString("known {\n")
		for _, line := range p.whole.known {
			p.w.WriteString(line)
		}
		p.w.WriteString("}\n")
	}
	if len(p.whole.order) == 0 {
		return
	}
	p.w.WriteString("data {\n")
	for i, t := range p.whole.order {
		p.w.WriteString("  @" + strconv.Itoa(i) + " = ")
		if t.DType == tensor.String {
			p.literal(Strs(t.Storage.Strings...), nil, false)
		} else {
			p.w.WriteByte('"')
			e := base64.NewEncoder(base64.StdEncoding, p.w)
			_, _ = e.Write(t.Storage.Bytes()) // an error of p.w stays there
			_ = e.Close()
			p.w.WriteByte('"')
		}
		p.w.WriteByte('\n')
	}
	p.w.WriteString("}\n")
}

// exact prints a literal so that the parser reads it as it is, whatever the op and its result are.
func (p *printer) exact(l Literal, o *Op) bool {
	w := p.w
	switch l.Kind {
	case FloatLit:
		if l.f != l.f && math.Float64bits(l.f) != math.Float64bits(math.NaN()) {
			w.WriteString("nan(" + strconv.FormatUint(math.Float64bits(l.f)>>1, 10) + ", " + strconv.FormatUint(math.Float64bits(l.f)&1, 10) + ")")
			return true
		}
	case DeviceLit:
		w.WriteString("device(" + Quote(l.s) + ")")
		return true
	case FuncLit:
		w.WriteString("function(" + Quote(l.s) + ")")
		return true
	case BlobLit:
		w.WriteString("blob(" + Quote(l.s) + ")")
		return true
	case EnumLit:
		w.WriteString("enum(" + Quote(l.s) + ", ")
		p.literal(l.Elems[0], o, false)
		w.WriteByte(')')
		return true
	case ObjectLit:
		w.WriteString("object(" + strconv.Itoa(p.whole.objects[l.Object]) + ")")
		return true
	case TensorLit:
		p.reference(l.Tensor)
		return true
	case ListLit:
		if l.Elem == nil || len(l.Elems) > 0 && l.Elems[0].Kind != TypeLit && SameType(l.Elem, listElem(l.Elems)) {
			return false
		}
		w.WriteString("annotate(" + p.typeText(l.Elem) + "[], [")
		for i, e := range l.Elems {
			if i > 0 {
				w.WriteString(", ")
			}
			p.literal(e, o, false)
		}
		w.WriteString("])")
		return true
	}
	return false
}

// constant prints the value of a prim::Constant as PyTorch does where the parser reads that as what it is.
func (p *printer) constant(l Literal, o *Op) {
	if l.Kind == TensorLit && p.whole.inline(l.Tensor, o) {
		p.tensor(l.Tensor, o, true)
		return
	}
	if !holdsReferences(l) {
		var b strings.Builder
		plain := printer{w: newTextWriter(&b)}
		plain.literal(l, o, true)
		_ = plain.w.Flush()
		if again, ok := rereads(b.String(), o.Results[0].Type, p.whole.types); ok && identical(again, l) {
			p.w.WriteString(b.String())
			return
		}
	}
	p.w.WriteString("exact(")
	p.literal(l, nil, false)
	p.w.WriteByte(')')
}

func holdsReferences(l Literal) bool {
	return l.Kind == TensorLit || l.Kind == ObjectLit || slices.ContainsFunc(l.Elems, holdsReferences)
}

// identical is Equal of literals without tensors, where the type of the elements of a list that has some need not be said.
func identical(a, b Literal) bool {
	if a.Kind == ListLit && b.Kind == ListLit && len(a.Elems) > 0 && len(b.Elems) > 0 {
		if a.Elem == nil {
			a.Elem = listElem(a.Elems)
		}
		if b.Elem == nil {
			b.Elem = listElem(b.Elems)
		}
	}
	if a.Kind != b.Kind || a.i != b.i || a.s != b.s || math.Float64bits(a.f) != math.Float64bits(b.f) || len(a.Elems) != len(b.Elems) || a.Object != b.Object || a.Tensor != b.Tensor {
		return false
	}
	if (a.Elem == nil) != (b.Elem == nil) || a.Elem != nil && !SameType(a.Elem, b.Elem) {
		return false
	}
	return slices.EqualFunc(a.Elems, b.Elems, identical)
}

// plainPlace reports that a scope or a file reads back from the end of a line as it is.
func plainPlace(s string) bool {
	for _, r := range s {
		if !unicode.IsPrint(r) || r == '"' || r == utf8.RuneError {
			return false
		}
	}
	return !strings.Contains(s, " #") && !strings.Contains(s, ", loc: ") && strings.Trim(s, " ;,") == s && !strings.HasPrefix(s, "#")
}

// plainFrame reports that a location has nothing besides a scope and a line.
func plainFrame(f diag.Frame) bool {
	return f.Func == "" && f.Node == 0 && f.Caller == 0 && f.Line >= 0 && f.Col >= 0 && (f.File != "" || f.Line == 0 && f.Col == 0) && (f.File != "" || f.Scope != "")
}

// place prints a scope or a file, in quotes where it needs them.
func place(s string) string {
	if plainPlace(s) {
		return s
	}
	return Quote(s)
}
