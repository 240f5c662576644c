// Package spec reads what users say about the inputs of a model: NAME:TYPE, or types alone in the order of the inputs, such as
//
//	x:f32[N,3,224,224]      a tensor; a number is a size, a name a dynamic axis, which is the same size wherever it stands
//	x:f32[2*N,?]            sizes may be computed from others; ? is a dynamic axis without a name
//	x:f32[]  x:f32[...]     of rank 0; of unknown rank; float32 and torch.float32 are f32 as well
//	n:int  n:int=3          an argument; one with a value is built into the model
//	s:str="mean"  y:none
//	xs:list(f32[N,?],...)   any number of members, all of one type; N is the same in all, ? may differ
//	xs:list(f32[2],f32[3])  p:tuple(f32[2],int)  d:dict(key=f32[2],"other key"=none)
//	xs:[f32[2],f32[3]]      p:(f32[2],int)       d:{"key": f32[2]}    the same as in Python
package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Kind says which fields of a Type count.
type Kind uint8

// The kinds of types.
const (
	Tensor Kind = iota
	Int
	Float
	Bool
	Str
	None
	List
	Tuple
	Dict
)

var kindNames = [...]string{"tensor", "int", "float", "bool", "str", "none", "list", "tuple", "dict"}

// String is the word in specs.
func (k Kind) String() string { return kindNames[k] }

// Input is the spec of one input.
type Input struct {
	Name string // empty: the input at the place that the spec has among all
	Type Type
}

// OldName is the name that becomes the new one in a table of new names by old ones: the first in order, or the new name itself.
func OldName(names map[string]string, new string) string {
	for _, old := range slices.Sorted(maps.Keys(names)) {
		if names[old] == new {
			return old
		}
	}
	return new
}

// Type is what an input is.
type Type struct {
	Kind   Kind
	Tensor *ssa.TensorType // of a Tensor
	// Const is the value of an Int, Float, Bool or Str that is built into the model; nil: it is an input.
	Const *ssa.Literal
	Elems []Type   // of a List, Tuple or Dict
	Open  bool     // a List of any number of members, which are of the type of the only one of Elems
	Keys  []string // of a Dict
}

// String spells the input so that Parse gives it back.
func (i Input) String() string {
	if i.Name == "" {
		return i.Type.String()
	}
	return i.Name + ":" + i.Type.String()
}

// String spells the type so that ParseType gives it back.
func (t Type) String() string {
	switch t.Kind {
	case Tensor:
		name := t.Tensor.DType.Spec()
		if !t.Tensor.Ranked {
			return name + "[...]"
		}
		dims := make([]string, len(t.Tensor.Dims))
		for i, d := range t.Tensor.Dims {
			if dims[i] = d.String(); sym.Varies(d) {
				dims[i] = "?"
			}
		}
		return name + "[" + strings.Join(dims, ",") + "]"
	case List, Tuple, Dict:
		parts := make([]string, len(t.Elems))
		for i, e := range t.Elems {
			parts[i] = e.String()
			if t.Kind == Dict {
				parts[i] = spellKey(t.Keys[i]) + "=" + parts[i]
			}
		}
		if t.Open {
			parts = append(parts, "...")
		}
		return t.Kind.String() + "(" + strings.Join(parts, ",") + ")"
	}
	if t.Const == nil {
		return t.Kind.String()
	}
	switch t.Kind {
	case Float:
		return "float=" + strconv.FormatFloat(t.Const.Float(), 'g', -1, 64)
	case Bool:
		return "bool=" + strconv.FormatBool(t.Const.Bool())
	case Str:
		return "str=" + strconv.Quote(t.Const.Str())
	}
	return fmt.Sprintf("int=%d", t.Const.Int())
}

func spellKey(s string) string {
	for i := 0; i < len(s); i++ {
		if !wordByte(s[i]) && (i > 0 || s[i] != '-' || len(s) == 1) {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

// SSA is the type that a value of the IR has.
func (t Type) SSA() ssa.Type {
	switch t.Kind {
	case Tensor:
		return t.Tensor
	case Int:
		return ssa.IntType
	case Float:
		return ssa.FloatType
	case Bool:
		return ssa.BoolType
	case Str:
		return ssa.StrType
	case None:
		return ssa.NoneType
	case List:
		return &ssa.ListType{Elem: common(t.Elems)}
	case Dict:
		return &ssa.DictType{Key: ssa.StrType, Value: common(t.Elems)}
	}
	tuple := &ssa.TupleType{}
	for _, e := range t.Elems {
		tuple.Elems = append(tuple.Elems, e.SSA())
	}
	return tuple
}

// common is the type of elements that may differ: tensors of several shapes are tensors.
func common(ts []Type) ssa.Type {
	if len(ts) == 0 {
		return ssa.AnyTensor
	}
	first, optional := ssa.Type(nil), false
	for _, t := range ts {
		switch s := t.SSA(); {
		case t.Kind == None:
			optional = true
		case first == nil:
			first = s
		case ssa.SameType(first, s):
		case ssa.AsTensor(first) != nil && ssa.AsTensor(s) != nil:
			first = ssa.AnyTensor
		default:
			first = ssa.AnyType
		}
	}
	switch {
	case first == nil:
		return ssa.NoneType
	case optional:
		return &ssa.OptionalType{Elem: first}
	}
	return first
}

// maxDepth bounds the nesting of containers.
const maxDepth = 50

type parser struct {
	s     string
	pos   int
	name  string // of the input
	fresh int    // dynamic axes without names so far
	open  bool   // in a list of unknown length
}

// Parse reads NAME:TYPE. A type alone is of the input at its place: its name is empty.
func Parse(s string) (Input, error) {
	t, err := parse("input", s)
	if err == nil {
		return Input{"", t}, nil
	}
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") || strings.HasPrefix(s, "(") {
		return Input{}, fmt.Errorf("input %s: %w", s, err)
	}
	name, rest, ok := strings.Cut(s, ":")
	name = strings.TrimSpace(name)
	if !ok || name == "" {
		return Input{}, fmt.Errorf("input %q: it is NAME:TYPE, such as x:f32[N,3]", s)
	}
	for i := 0; i < len(name); i++ {
		if !wordByte(name[i]) {
			return Input{}, fmt.Errorf("input %q: %q is no name", s, name)
		}
	}
	if t, err = parse(name, rest); err != nil {
		return Input{}, fmt.Errorf("input %s: %w", name, err)
	}
	return Input{name, t}, nil
}

// ParseType reads a type alone.
func ParseType(s string) (Type, error) { return parse("dim", s) }

func parse(name, s string) (Type, error) {
	p := &parser{s: s, name: name}
	t, err := p.typ(0)
	if err != nil {
		return Type{}, err
	}
	if p.blanks(); p.pos < len(s) {
		return Type{}, fmt.Errorf("unexpected %q behind the type", s[p.pos:])
	}
	return t, nil
}

func wordByte(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *parser) blanks() {
	for p.pos < len(p.s) && (p.s[p.pos] == ' ' || p.s[p.pos] == '\t') {
		p.pos++
	}
}

func (p *parser) take(c byte) bool {
	p.blanks()
	if p.pos < len(p.s) && p.s[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) word() string {
	p.blanks()
	start := p.pos
	for p.pos < len(p.s) && wordByte(p.s[p.pos]) {
		p.pos++
	}
	return p.s[start:p.pos]
}

func (p *parser) typ(depth int) (Type, error) {
	if depth > maxDepth {
		return Type{}, fmt.Errorf("types are nested too deeply")
	}
	word := p.word()
	// bool is a scalar, bool[] a tensor
	if d := dtype(word); d != tensor.Undefined && (word != "bool" && word != "str" || p.next('[')) {
		return p.tensor(word, d)
	}
	for k, name := range kindNames {
		if name == word && Kind(k) != Tensor {
			t, err := p.other(Kind(k), depth)
			if meant := tensorsOf[Kind(k)]; meant != "" && err == nil && p.next('[') {
				err = fmt.Errorf("%s[...] is no type; write %s for a tensor", word, meant)
			}
			return t, err
		}
	}
	if word == "" {
		for k, b := range pythonBrackets {
			if p.next(b[0]) {
				return p.container(Type{Kind: k}, depth)
			}
		}
		return Type{}, fmt.Errorf("a type is missing at %q", p.s[p.pos:])
	}
	return Type{}, fmt.Errorf("unknown type %q: tensors are f32[...], f64 f16 bf16 i64 i32 i16 i8 u8 bool; others int float bool str none list() tuple() dict()", word)
}

// pythonBrackets are those that a container has in Python.
var pythonBrackets = map[Kind]string{List: "[]", Tuple: "()", Dict: "{}"}

// tensorsOf has the element types that the word may stand for where a shape follows it: PyTorch and Python differ.
var tensorsOf = map[Kind]string{Int: "i64[...] or i32[...]", Float: "f32[...] or f64[...]"}

// longNames are PyTorch's words in names of element types, and those of specs.
var longNames = [...][2]string{{"bfloat", "bf"}, {"float", "f"}, {"uint", "u"}, {"int", "i"}, {"complex", "c"}}

// dtype finds an element type by its name in specs, such as f32, or by PyTorch's, float32 or torch.float32. It is Undefined
// if there is none.
func dtype(word string) tensor.DType {
	word = strings.TrimPrefix(word, "torch.")
	if d := tensor.FromSpec(word); d != tensor.Undefined {
		return d
	}
	for _, l := range longNames {
		if bits, ok := strings.CutPrefix(word, l[0]); ok && bits != "" {
			return tensor.FromSpec(l[1] + strings.ReplaceAll(bits, "_", ""))
		}
	}
	return tensor.Undefined
}

func (p *parser) next(c byte) bool {
	p.blanks()
	return p.pos < len(p.s) && p.s[p.pos] == c
}

func (p *parser) tensor(word string, d tensor.DType) (Type, error) {
	if !p.take('[') {
		return Type{}, fmt.Errorf("%s needs a shape: %s[2,N], %s[] for rank 0, %s[...] for unknown rank", word, word, word, word)
	}
	t := &ssa.TensorType{DType: d, Ranked: true, Dims: []sym.Expr{}}
	end := strings.IndexByte(p.s[p.pos:], ']')
	if end < 0 {
		return Type{}, fmt.Errorf("%s: no closing ']'", word)
	}
	text := strings.TrimSpace(p.s[p.pos : p.pos+end])
	p.pos += end + 1
	switch text {
	case "":
		return Type{Kind: Tensor, Tensor: t}, nil
	case "...":
		return Type{Kind: Tensor, Tensor: ssa.Unranked(d)}, nil
	}
	for _, dim := range splitDims(text) {
		dim = strings.TrimSpace(dim)
		if dim == "?" && p.open {
			t.Dims = append(t.Dims, sym.Varying(len(t.Dims)))
			continue
		}
		if dim == "?" {
			t.Dims = append(t.Dims, sym.Symbol(fmt.Sprintf("%s_%d", symbolName(p.name), p.fresh), 0))
			p.fresh++
			continue
		}
		e, err := sym.Parse(dim)
		if err != nil || dim == "" {
			return Type{}, fmt.Errorf("%s[%s]: %q is no size: it is a number, a name, or computed such as 2*N", word, text, dim)
		}
		if n, ok := e.Int(); ok && n < 0 {
			return Type{}, fmt.Errorf("%s[%s]: a size is negative; a name such as N, or ?, stands for any size", word, text)
		}
		t.Dims = append(t.Dims, e)
	}
	return Type{Kind: Tensor, Tensor: t}, nil
}

// symbolName makes of an input's name one that a symbol can have.
func symbolName(s string) string {
	if s[0] >= '0' && s[0] <= '9' || s[0] == '.' {
		s = "dim" + s
	}
	return strings.ReplaceAll(s, ".", "_")
}

// splitDims splits at commas that are not inside parentheses: min(N, 3).
func splitDims(s string) []string {
	var parts []string
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, s[start:])
}

func (p *parser) other(k Kind, depth int) (Type, error) {
	t := Type{Kind: k}
	switch k {
	case None:
		return t, nil
	case List, Tuple, Dict:
		return p.container(t, depth)
	}
	if !p.take('=') {
		return t, nil
	}
	value, err := p.constant(k)
	t.Const = &value
	return t, err
}

func (p *parser) constant(k Kind) (ssa.Literal, error) {
	p.blanks()
	if k == Str {
		s, err := p.quoted()
		return ssa.Str(s), err
	}
	start := p.pos
	for p.pos < len(p.s) && (wordByte(p.s[p.pos]) || p.s[p.pos] == '-' || p.s[p.pos] == '+') {
		p.pos++
	}
	text := p.s[start:p.pos]
	switch k {
	case Int:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return ssa.Int(n), nil
		}
	case Float:
		if f, err := strconv.ParseFloat(text, 64); err == nil && (!math.IsInf(f, 0) || strings.Contains(strings.ToLower(text), "inf")) {
			return ssa.Float(f), nil
		}
	case Bool:
		switch text {
		case "true", "True", "1":
			return ssa.Bool(true), nil
		case "false", "False", "0":
			return ssa.Bool(false), nil
		}
	}
	return ssa.None, fmt.Errorf("%q is no value of type %s", text, k)
}

// quoted reads a text in the quotes of Go or of Python.
func (p *parser) quoted() (string, error) {
	rest := p.s[p.pos:]
	prefix, err := strconv.QuotedPrefix(rest)
	if err == nil && prefix[0] != '\'' {
		p.pos += len(prefix)
		return strconv.Unquote(prefix)
	}
	if strings.HasPrefix(rest, "'") {
		for i := 1; i < len(rest); i++ {
			switch rest[i] {
			case '\\':
				i++
			case '\'':
				p.pos += i + 1
				inner := strings.ReplaceAll(rest[1:i], `\'`, "'")
				return strconv.Unquote(`"` + strings.ReplaceAll(inner, `"`, `\"`) + `"`)
			}
		}
	}
	return "", fmt.Errorf("a text in quotes is missing at %q", rest)
}

func (p *parser) container(t Type, depth int) (Type, error) {
	end := byte(')')
	if b := pythonBrackets[t.Kind]; p.take(b[0]) {
		end = b[1]
	} else if !p.take('(') {
		return t, fmt.Errorf("%s needs its elements: %s(f32[2],int)", t.Kind, t.Kind)
	}
	if p.take(end) {
		return t, nil
	}
	if t.Kind == List && p.isOpen() {
		return p.openList(t, depth, end)
	}
	seen := map[string]bool{}
	for {
		if t.Kind == Dict {
			key, err := p.key()
			if err != nil {
				return t, err
			}
			if seen[key] {
				return t, fmt.Errorf("the key %q comes twice", key)
			}
			seen[key] = true
			t.Keys = append(t.Keys, key)
		}
		e, err := p.typ(depth + 1)
		if err != nil {
			return t, err
		}
		t.Elems = append(t.Elems, e)
		switch {
		case p.take(','):
			if t.Kind == Tuple && len(t.Elems) == 1 && p.take(end) { // (f32[2],)
				return t, nil
			}
		case p.take(end):
			return t, nil
		default:
			return t, fmt.Errorf("%s: ',' or '%c' is missing at %q", t.Kind, end, p.s[p.pos:])
		}
	}
}

// isOpen reports a list whose only type is followed by dots. Its bracket has been taken.
func (p *parser) isOpen() bool {
	depth := 0
	for i := p.pos; i < len(p.s); i++ {
		switch p.s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth >= 0 {
				continue
			}
			head, ok := strings.CutSuffix(strings.TrimRight(p.s[p.pos:i], " \t"), "...")
			return ok && strings.HasSuffix(strings.TrimRight(head, " \t"), ",")
		}
	}
	return false
}

// openList reads TYPE,... and end of a list of any length.
func (p *parser) openList(t Type, depth int, end byte) (Type, error) {
	outer := p.open
	p.open, t.Open = true, true
	defer func() { p.open = outer }()
	e, err := p.typ(depth + 1)
	if err != nil {
		return t, err
	}
	if e.Kind > Bool || e.Const != nil {
		return t, fmt.Errorf("a list of any length is of tensors, ints, floats or bools, not of %s", e)
	}
	t.Elems = []Type{e}
	if p.take(',') {
		p.blanks()
		if strings.HasPrefix(p.s[p.pos:], "...") {
			p.pos += len("...")
			if p.take(end) {
				return t, nil
			}
		}
	}
	return t, fmt.Errorf("a list of any length has one type: list(f32[2],...)")
}

// bareKey reads a word or a number.
func (p *parser) bareKey() string {
	if p.take('-') {
		return "-" + p.word()
	}
	return p.word()
}

func (p *parser) key() (key string, err error) {
	if p.next('"') || p.next('\'') {
		key, err = p.quoted()
	} else if key = p.bareKey(); key == "" {
		err = fmt.Errorf("a key is missing at %q", p.s[p.pos:])
	}
	if err == nil && !p.take('=') && !p.take(':') {
		err = fmt.Errorf("'=' is missing behind the key %q", key)
	}
	return key, err
}
