package ssa

import (
	"strings"

	"github.com/aton-project/aton/ssa/tensor"
)

// ParseType reads a type as it is written in graph text.
func ParseType(s string) (t Type, err error) {
	p := &parser{src: s, file: "type", m: NewModule()}
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(*ParseError)
			if !ok {
				panic(r)
			}
			t, err = nil, pe
		}
	}()
	t = p.typ(0)
	p.blanks()
	if p.pos < len(p.src) {
		p.fail("unexpected %q after the type", clip(p.src[p.pos:]))
	}
	return t, nil
}

func (p *parser) annotation() Type {
	p.blanks()
	if p.peek() == ':' {
		p.pos++
		return p.typ(0)
	}
	return AnyTensor
}

var basicTypes = map[string]Basic{
	"int": IntType, "float": FloatType, "bool": BoolType, "complex": ComplexType, "Scalar": NumberType, "number": NumberType,
	"str": StrType, "NoneType": NoneType, "None": NoneType, "Device": DeviceType, "Any": AnyType, "Generator": GeneratorType,
	"Function": FunctionType, "Stream": StreamType, "Storage": StorageType, "QScheme": QSchemeType, "PyObject": PyObjectType,
	"Capsule": CapsuleType, "list": AnyListType, "tuple": AnyTupleType, "AnyEnumType": AnyEnumType, "AnyClassType": AnyClassType,
}

func (p *parser) typ(depth int) Type {
	if depth > maxNesting {
		p.fail("type nested too deeply")
	}
	t := p.baseType(depth)
	for {
		switch {
		case p.has("[]"):
			p.pos += 2
			t = &ListType{t}
		case p.has("?"):
			p.pos++
			t = &OptionalType{t}
		default:
			return t
		}
	}
}

func (p *parser) baseType(depth int) Type {
	p.blanks()
	if p.peek() == '(' {
		p.pos++
		t := &TupleType{}
		for !p.takeS(")") {
			if p.takeS(",") {
				continue
			}
			t.Elems = append(t.Elems, p.typ(depth+1))
		}
		return t
	}
	word := p.dotted()
	if word == "" {
		p.fail("expected a type, found %q", clip(p.src[p.pos:]))
	}
	d, isTensor := tensor.Undefined, false
	switch {
	case word == "Tensor" || word == "Dynamic" || word == "UNKNOWN_TYPE":
		isTensor = true
	case tensor.FromTorch(word) != tensor.Undefined:
		d, isTensor = tensor.FromTorch(word), true
	case strings.HasSuffix(word, "Tensor") && tensor.FromTorch(strings.TrimSuffix(word, "Tensor")) != tensor.Undefined:
		// FloatTensor(requires_grad=0): the rank is not known
		t := &TensorType{DType: tensor.FromTorch(strings.TrimSuffix(word, "Tensor"))}
		if p.peek() == '(' {
			noted := &TensorType{}
			p.dims(noted)
			t.Example = noted.Example
		}
		p.takeUndefined()
		return t
	}
	if isTensor {
		t := &TensorType{DType: d}
		if p.peek() == '(' {
			t.Ranked = true
			p.dims(t)
		}
		p.takeUndefined()
		if !t.Ranked && d == tensor.Undefined {
			return AnyTensor
		}
		return t
	}
	if b, ok := basicTypes[word]; ok {
		return b
	}
	if t := p.head.types[word]; t != nil {
		return t
	}
	brackets := func() []Type {
		closing := ")"
		if p.peek() == '[' {
			closing = "]"
		} else if p.peek() != '(' {
			p.fail("expected parameters of %s", word)
		}
		p.pos++
		var ts []Type
		for !p.takeS(closing) {
			if p.takeS(",") {
				continue
			}
			ts = append(ts, p.typ(depth+1))
		}
		return ts
	}
	need := func(n int) []Type {
		ts := brackets()
		if len(ts) != n {
			p.fail("%s takes %d parameters, not %d", word, n, len(ts))
		}
		return ts
	}
	switch word {
	case "Dict":
		ts := need(2)
		return &DictType{ts[0], ts[1]}
	case "List":
		return &ListType{need(1)[0]}
	case "Optional":
		return &OptionalType{need(1)[0]}
	case "Tuple":
		return &TupleType{Elems: brackets()}
	case "Future", "RRef", "Await", Sparse:
		return &WrapType{word, need(1)[0]}
	case "Union":
		return &UnionType{brackets()}
	case "Enum", "InterfaceType", "Class":
		p.want("<")
		name := p.name(dottedByte)
		p.want(">")
		switch word {
		case "Enum":
			return &EnumType{name}
		case "Class":
			return &ClassType{name}
		}
		return &InterfaceType{name}
	case "NamedTuple":
		p.want("(")
		t := &TupleType{Names: []string{}}
		for !p.takeS(")") {
			if p.takeS(",") {
				continue
			}
			t.Names = append(t.Names, p.name(identByte))
			p.want(":")
			t.Elems = append(t.Elems, p.typ(depth+1))
		}
		return t
	}
	if strings.HasPrefix(word, "__torch__") {
		return &ClassType{word}
	}
	return &VarType{word}
}

func (p *parser) takeUndefined() {
	if p.has("[Undefined]") {
		p.pos += len("[Undefined]")
	}
}

// dims reads (2, N, strides=[...], requires_grad=0, device=cpu).
func (p *parser) dims(t *TensorType) {
	p.pos++
	for !p.takeS(")") {
		if p.takeS(",") {
			continue
		}
		p.space()
		start := p.pos
		depth := 0
	scan:
		for ; p.pos < len(p.src); p.pos++ {
			switch p.src[p.pos] {
			case '(', '[':
				depth++
			case ']':
				depth--
			case ')':
				if depth == 0 {
					break scan
				}
				depth--
			case ',':
				if depth == 0 {
					break scan
				}
			case '\n':
				break scan
			}
		}
		item := strings.TrimSpace(p.src[start:p.pos])
		if strings.Contains(item, "=") {
			t.note(item)
			continue
		}
		item = strings.TrimSuffix(item, "!")
		if i := strings.IndexByte(item, ':'); i >= 0 {
			item = item[:i]
		}
		item = strings.TrimSpace(item)
		if item == "" {
			p.fail("expected a dimension")
		}
		if item == "*" || item == "?" || strings.HasPrefix(item, "SS(") || isNegative(item) {
			t.Dims = append(t.Dims, p.m.FreshSymbol("u", 0))
			p.starred = true
			continue
		}
		t.Dims = append(t.Dims, p.expr(item))
	}
}
