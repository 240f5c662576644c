package ssa

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// head is what the parser knows of the sections of complete text.
type head struct {
	symbols  map[string]sym.Expr
	types    map[string]*TupleType
	outputs  map[string][]string
	schemas  []*Schema
	fresh    int // of the head; -1: it does not say
	frames   []diag.Loc
	objects  map[int]*Object
	defined  map[int]bool
	storages map[int]*storage
	same     map[int]*tensor.Tensor
}

// storage is one that tensors of the text refer to, before the data are read and after.
type storage struct {
	memory  *tensor.Storage
	defined bool
	strings bool             // of the first tensor of it
	tensors []*tensor.Tensor // to be checked
	at      []int            // where they stand in the text
}

// reads reports that f reads text without an error.
func (p *parser) reads(f func()) (ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, is := r.(*ParseError); !is {
				panic(r)
			}
			ok = false
		}
	}()
	f()
	return true
}

// rereads gives what the parser makes of the text of a constant with a result of a type.
func rereads(text string, t Type, types map[string]*TupleType) (l Literal, ok bool) {
	p := &parser{src: text + "]", file: "value", m: NewModule(), tensors: strings.Contains(text, "Type{")}
	p.head.types = types
	ok = p.reads(func() {
		l = p.attrValue(t, 0)
		p.blanks()
	})
	if !ok || p.pos != len(text) || p.exact {
		return None, false
	}
	return retype(l, t), true
}

// name reads a name that stands in quotes where it has other characters than ok says.
func (p *parser) name(ok func(c byte) bool) string {
	p.blanks()
	if p.peek() == '"' {
		return p.str()
	}
	start := p.pos
	for p.pos < len(p.src) && ok(p.src[p.pos]) {
		p.pos++
	}
	return p.src[start:p.pos]
}

// moduleHead reads the section "module {...}".
func (p *parser) moduleHead() {
	p.want("{")
	for !p.takeS("}") {
		key := p.ident()
		if key == "" {
			p.unexpected("what a module has")
		}
		p.want("=")
		at := p.pos
		l := p.attrValue(nil, 1)
		after := p.pos
		p.pos = at // where an error is
		p.headEntry(key, l)
		p.pos = after
	}
}

func (p *parser) headEntry(key string, l Literal) {
	m := p.m
	if n, ok := strings.CutPrefix(key, "object_"); ok {
		p.objectEntry(n, l)
		return
	}
	switch key {
	case "opsets":
		m.Opsets = map[string]int{}
		p.pairs(l, func(k string, v Literal) { m.Opsets[k] = int(p.int(v)) })
	case "target_opset":
		m.TargetOpset = int(p.int(l))
	case "dropped_inputs":
		m.DroppedInputs = p.ints(l)
	case "state":
		m.State = p.strings(l)
	case "passed":
		m.Passed = p.strings(l)
	case "symbols":
		p.pairs(l, func(k string, v Literal) {
			e := p.tuple(v, 3)
			f := sym.Fact{Name: k, Min: p.int(e[0])}
			if !e[1].IsNone() {
				most := p.expr(p.string(e[1]))
				f.Max = &most
			}
			if !e[2].IsNone() {
				f.Free = append([]string{}, p.strings(e[2])...)
			}
			if p.head.symbols == nil {
				p.head.symbols = map[string]sym.Expr{}
			}
			p.head.symbols[k] = f.Symbol()
		})
	case "fresh":
		n := p.int(l)
		if n < 0 || n > math.MaxInt32 {
			p.fail("%d is no number of symbols", n)
		}
		p.head.fresh = int(n)
	case "sizes_solved":
		m.SizesSolved = l.Bool()
	case "guarded":
		m.Guarded = l.Bool()
	case "recorded":
		m.Recorded = map[string]int64{}
		p.pairs(l, func(k string, v Literal) { m.Recorded[k] = p.int(v) })
	case "types":
		if p.head.types == nil {
			p.head.types = map[string]*TupleType{}
		}
		p.pairs(l, func(k string, v Literal) {
			t, ok := v.Elem.(*TupleType)
			if v.Kind != TypeLit || !ok {
				p.fail("expected a tuple type")
			}
			named := *t
			named.Name = k
			p.head.types[k] = &named
		})
	case "schemas":
		for _, e := range p.list(l) {
			p.head.schemas = append(p.head.schemas, p.schema(e))
		}
	case "outputs":
		p.head.outputs = map[string][]string{}
		p.pairs(l, func(k string, v Literal) { p.head.outputs[k] = p.strings(v) })
	case "metadata":
		m.Metadata = p.keyValues(l)
	case "classes":
		m.Classes = map[string]string{}
		p.pairs(l, func(k string, v Literal) { m.Classes[k] = p.string(v) })
	case "inputs":
		for _, e := range p.list(l) {
			m.Inputs = append(m.Inputs, p.input(e))
		}
	case "weights", "defaults":
		held := map[string]*tensor.Tensor{}
		p.pairs(l, func(k string, v Literal) {
			if v.Kind != TensorLit {
				p.fail("expected a tensor")
			}
			held[k] = v.Tensor
		})
		if key == "weights" {
			m.Weights = held
		} else {
			m.Defaults = held
		}
	case "weight_storage":
		switch s := WeightStorage(p.string(l)); s {
		case InitializersAsInputs, NoWeights:
			m.WeightStorage = s
		default:
			p.fail("%q is no way to store weights", s)
		}
	case "root":
		if l.Kind != ObjectLit {
			p.fail("expected an object")
		}
		m.Root = l.Object
	case "file":
		e := p.tuple(l, 8)
		f := &m.File
		f.Doc, f.Domain, f.Version, f.Graph, f.GraphDoc, f.GraphMetadata = p.string(e[0]), p.string(e[1]), p.int(e[2]), p.string(e[3]), p.string(e[4]), p.keyValues(e[5])
		if nodes := p.list(e[6]); len(nodes) > 0 {
			p.nodes = nodes
		}
		p.pairs(e[7], func(k string, v Literal) {
			if f.Values == nil {
				f.Values = map[string]Note{}
			}
			f.Values[k] = p.note(v)
		})
	case "locs":
		for _, v := range p.list(l) {
			e := p.tuple(v, 7)
			f := diag.Frame{File: p.string(e[0]), Line: int(p.int(e[1])), Col: int(p.int(e[2])), Func: p.string(e[3]), Scope: p.string(e[4]), Node: int(p.int(e[5]))}
			f.Caller = p.locNumber(p.int(e[6]))
			p.head.frames = append(p.head.frames, m.Locs.Add(f))
		}
		if len(p.nodes) > 0 {
			m.File.Nodes = map[diag.Loc]Note{}
			for _, n := range p.nodes {
				e := p.tuple(n, 2)
				m.File.Nodes[p.locNumber(p.int(e[0]))] = p.note(e[1])
			}
		}
	default:
		p.fail("a module has no %s", key)
	}
}

func (p *parser) schema(l Literal) *Schema {
	if l.Kind == StrLit {
		s, err := ParseSchema(l.s)
		if err != nil {
			p.fail("%v", err)
		}
		return s
	}
	e := p.tuple(l, 5)
	s := &Schema{Name: p.string(e[0]), Overload: p.string(e[1]), text: p.string(e[4])}
	for _, a := range p.list(e[2]) {
		x := p.tuple(a, 2)
		s.Args = append(s.Args, SchemaArg{Name: p.string(x[0]), Type: p.typeOf(x[1])})
	}
	for _, a := range p.list(e[3]) {
		s.Returns = append(s.Returns, SchemaArg{Type: p.typeOf(a)})
	}
	return s
}

func (p *parser) typeOf(l Literal) Type {
	if l.Kind != TypeLit {
		p.fail("expected a type")
	}
	return l.Elem
}

func (p *parser) objectEntry(number string, l Literal) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		p.fail("object_%s has no number", clip(number))
	}
	if p.head.defined[n] {
		p.fail("object_%d is defined twice", n)
	}
	if p.head.defined == nil {
		p.head.defined = map[int]bool{}
	}
	p.head.defined[n] = true
	e, o := p.tuple(l, 3), p.object(int64(n))
	o.Class, o.Path = p.string(e[0]), p.string(e[1])
	if e[2].Kind != DictLit {
		p.fail("expected the fields of an object")
	}
	for i := 0; i+1 < len(e[2].Elems); i += 2 {
		o.Fields = append(o.Fields, Attr{p.string(e[2].Elems[i]), e[2].Elems[i+1]})
	}
}

// object is the object of a number, which the head may define later.
func (p *parser) object(n int64) *Object {
	if p.head.objects == nil {
		p.head.objects = map[int]*Object{}
	}
	o := p.head.objects[int(n)]
	if o == nil {
		o = &Object{}
		p.head.objects[int(n)] = o
	}
	return o
}

// locNumber is the location of a number of the section; 0 is none.
func (p *parser) locNumber(n int64) diag.Loc {
	if n < 0 || n > int64(len(p.head.frames)) {
		p.fail("there is no location %d", n)
	}
	if n == 0 {
		return 0
	}
	return p.head.frames[n-1]
}

func (p *parser) input(l Literal) Input {
	e := p.tuple(l, 6)
	in := Input{Name: p.string(e[0]), Container: p.string(e[3])}
	if e[1].Kind == TypeLit {
		in.Type = e[1].Elem
	}
	if !e[2].IsNone() {
		v := p.tuple(e[2], 1)[0]
		in.Const = &v
	}
	for _, x := range p.list(e[4]) {
		in.Elems = append(in.Elems, p.input(x))
	}
	in.Keys = append(in.Keys, p.list(e[5])...)
	return in
}

func (p *parser) note(l Literal) Note {
	e := p.tuple(l, 2)
	return Note{p.string(e[0]), p.keyValues(e[1])}
}

func (p *parser) keyValues(l Literal) []KeyValue {
	var out []KeyValue
	for _, x := range p.list(l) {
		e := p.tuple(x, 2)
		out = append(out, KeyValue{p.string(e[0]), p.string(e[1])})
	}
	return out
}

func (p *parser) pairs(l Literal, f func(key string, v Literal)) {
	if l.Kind != DictLit {
		p.fail("expected {...}")
	}
	for i := 0; i+1 < len(l.Elems); i += 2 {
		f(p.string(l.Elems[i]), l.Elems[i+1])
	}
}

func (p *parser) list(l Literal) []Literal {
	if l.Kind != ListLit {
		p.fail("expected [...]")
	}
	return l.Elems
}

func (p *parser) tuple(l Literal, n int) []Literal {
	if l.Kind != TupleLit || len(l.Elems) != n {
		p.fail("expected (...) of %d values", n)
	}
	return l.Elems
}

func (p *parser) string(l Literal) string {
	if l.Kind != StrLit {
		p.fail("expected a string")
	}
	return l.s
}

func (p *parser) strings(l Literal) []string {
	var out []string
	for _, e := range p.list(l) {
		out = append(out, p.string(e))
	}
	return out
}

func (p *parser) ints(l Literal) []int64 {
	var out []int64
	for _, e := range p.list(l) {
		out = append(out, p.int(e))
	}
	return out
}

func (p *parser) int(l Literal) int64 {
	if l.Kind != IntLit {
		p.fail("expected an integer")
	}
	return l.i
}

// expr reads a size with what the head says of its symbols.
func (p *parser) expr(s string) sym.Expr {
	e, err := sym.ParseWith(s, p.head.symbols)
	if err != nil {
		p.fail("%v", err)
	}
	e.Symbols(p.m.NoteSymbol)
	return e
}

// reference reads tensor(TYPE, @N, ...) behind the word.
func (p *parser) reference() Literal {
	at := p.pos
	p.want("(")
	tt := AsTensor(p.typ(0))
	if tt == nil {
		p.fail("expected a tensor type")
	}
	shape, ok := tt.Static()
	if !ok {
		p.fail("a constant has no size that is not a number")
	}
	t := &tensor.Tensor{DType: tt.DType, Shape: shape, Strides: tensor.ContiguousStrides(shape)}
	same := -1
	for !p.takeS(")") {
		p.want(",")
		if p.takeS("@") {
			s := p.storageOf(p.int(p.attrValue(nil, 1)))
			t.Storage = s.memory
			s.tensors, s.at = append(s.tensors, t), append(s.at, at)
			continue
		}
		p.space()
		key := p.ident()
		p.want("=")
		v := p.attrValue(nil, 1)
		switch key {
		case "strides":
			t.Strides, ok = v.IntList()
			if !ok || len(t.Strides) != len(shape) {
				p.fail("expected a stride for each axis")
			}
		case "offset":
			t.Offset = p.int(v)
		case "same":
			if same = int(p.int(v)); same < 0 {
				p.fail("expected a number")
			}
		case "quant":
			e := p.tuple(v, 4)
			q := &tensor.Quant{Axis: int(p.int(e[3]))}
			var a, b, c bool
			q.Scales, a = e[0].FloatList()
			q.ZeroPoints, b = e[1].IntList()
			q.RealZeroPoints, c = e[2].FloatList()
			if !a || !b || !c || q.Axis < -1 || q.Axis >= len(shape) {
				p.fail("expected the parameters of a quantized tensor")
			}
			if len(q.RealZeroPoints) == 0 {
				q.RealZeroPoints = nil
			}
			if len(q.ZeroPoints) == 0 {
				q.ZeroPoints = nil
			}
			t.Quant = q
		default:
			p.fail("a tensor has no %q", key)
		}
	}
	if same >= 0 {
		if first := p.head.same[same]; first != nil {
			return TensorValue(first)
		}
		if p.head.same == nil {
			p.head.same = map[int]*tensor.Tensor{}
		}
		p.head.same[same] = t
	}
	return TensorValue(t)
}

// storageOf is the storage of a number, which the data define later.
func (p *parser) storageOf(n int64) *storage {
	if p.head.storages == nil {
		p.head.storages = map[int]*storage{}
	}
	s := p.head.storages[int(n)]
	if s == nil {
		s = &storage{memory: &tensor.Storage{}}
		p.head.storages[int(n)] = s
	}
	return s
}

// data reads the section "data {...}".
func (p *parser) data() {
	p.want("{")
	for !p.takeS("}") {
		p.want("@")
		n := p.int(p.attrValue(nil, 1))
		s := p.storageOf(n)
		if s.defined {
			p.fail("@%d is defined twice", n)
		}
		s.defined = true
		p.want("=")
		p.space()
		if p.peek() == '[' {
			s.memory.Strings = p.strings(p.attrValue(nil, 1))
			s.strings = true
			continue
		}
		if p.peek() != '"' {
			p.unexpected("the bytes of a storage")
		}
		end := strings.IndexByte(p.src[p.pos+1:], '"')
		if end < 0 {
			p.fail("string without end")
		}
		b, err := base64.StdEncoding.DecodeString(p.src[p.pos+1 : p.pos+1+end])
		if err != nil {
			p.fail("the bytes of a storage are in base64: %v", err)
		}
		s.memory.SetBytes(b)
		p.pos += end + 2
	}
}

// known reads the section "known {...}".
func (p *parser) known() {
	p.want("{")
	for !p.takeS("}") {
		p.want("@")
		name := p.name(func(c byte) bool { return nameByte(c) || c == ':' })
		if p.values = p.funcs[name]; p.values == nil {
			p.fail("there is no graph %s", name)
		}
		p.space()
		v := p.ref()
		p.want("=")
		for _, s := range p.strings(p.attrValue(nil, 1)) {
			v.Sym = append(v.Sym, p.expr(s))
		}
	}
}

// finish checks that what the text refers to is there.
func (p *parser) finish() {
	for n := range p.head.objects {
		if !p.head.defined[n] {
			p.fail("object_%d is not defined", n)
		}
	}
	for n, s := range p.head.storages {
		for i, t := range s.tensors {
			p.pos = s.at[i]
			if !s.defined {
				p.fail("the data have no @%d", n)
			}
			if (t.DType == tensor.String) != s.strings || t.DType == tensor.Undefined {
				p.fail("@%d does not hold elements of type %v", n, t.DType)
			}
			if err := t.Check(); err != nil {
				p.fail("@%d: %v", n, err)
			}
		}
	}
	p.pos = len(p.src)
	if p.head.fresh >= 0 {
		p.m.fresh = p.head.fresh
		if p.starred {
			p.m.fresh = max(p.head.fresh, p.m.fresh)
		}
	}
	for name, outputs := range p.head.outputs {
		if f := p.m.Func(name); f != nil {
			f.OutputNames = outputs
		}
	}
}
