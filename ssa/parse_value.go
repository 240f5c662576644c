package ssa

import (
	"math"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/tensor"
)

func (p *parser) attrs(results []result) []Attr {
	var as []Attr
	for {
		p.space()
		if p.take("]") {
			return as
		}
		if p.take(",") {
			continue
		}
		quoted := p.peek() == '"'
		name := p.name(identByte)
		if name == "" && !quoted {
			p.fail("expected an attribute, found %q", clip(p.src[p.pos:]))
		}
		p.want("=")
		var want Type
		if len(results) == 1 {
			want = results[0].typ
		}
		as = append(as, Attr{name, p.attrValue(want, 0)})
	}
}

// finishConstant gives a prim::Constant's value the kind that the result type asks for.
func (p *parser) finishConstant(o *Op) {
	if p.exact || o.Kind != "prim::Constant" || len(o.Results) != 1 || len(o.Attrs) == 0 {
		return
	}
	for i := range o.Attrs {
		if o.Attrs[i].Name == "value" {
			o.Attrs[i].Value = retype(o.Attrs[i].Value, o.Results[0].Type)
		}
	}
}

func retype(l Literal, t Type) Literal {
	switch t := t.(type) {
	case Basic:
		switch {
		case t == BoolType && l.Kind == IntLit:
			return Bool(l.i != 0)
		case t == FloatType && l.Kind == IntLit:
			return Float(float64(l.i))
		case t == DeviceType && l.Kind == StrLit:
			return Device(l.s)
		case t == FunctionType && l.Kind == StrLit:
			return FuncName(l.s)
		}
	case *ListType:
		if l.Kind == ListLit {
			l.Elem = t.Elem
			for i := range l.Elems {
				l.Elems[i] = retype(l.Elems[i], t.Elem)
			}
		}
	case *OptionalType:
		return retype(l, t.Elem)
	case *TupleType:
		if l.Kind == TupleLit && len(l.Elems) == len(t.Elems) {
			for i := range l.Elems {
				l.Elems[i] = retype(l.Elems[i], t.Elems[i])
			}
		}
	case *DictType:
		if l.Kind == DictLit {
			for i := range l.Elems {
				if i%2 == 0 {
					l.Elems[i] = retype(l.Elems[i], t.Key)
				} else {
					l.Elems[i] = retype(l.Elems[i], t.Value)
				}
			}
		}
	}
	return l
}

func (p *parser) str() string {
	if p.peek() != '"' {
		p.fail("expected a string")
	}
	p.pos++
	var b strings.Builder
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		p.pos++
		if c == '"' {
			return b.String()
		}
		if c == '\n' {
			break
		}
		if c != '\\' || p.pos >= len(p.src) {
			b.WriteByte(c)
			continue
		}
		e := p.src[p.pos]
		p.pos++
		switch e {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'v':
			b.WriteByte('\v')
		case '0', '1', '2', '3':
			n := int(e - '0')
			for k := 0; k < 2 && p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '7'; k++ {
				n = n*8 + int(p.src[p.pos]-'0')
				p.pos++
			}
			b.WriteByte(byte(n))
		default:
			b.WriteByte(e)
		}
	}
	p.fail("string without end")
	return ""
}

// number reads a number and reports whether it is written as an int.
func (p *parser) number() (f float64, i int64, isInt, ok bool) {
	p.blanks()
	start := p.pos
	if p.peek() == '-' || p.peek() == '+' {
		p.pos++
	}
	for _, w := range []string{"inf", "nan"} {
		if p.has(w) && (p.pos+3 >= len(p.src) || !identByte(p.src[p.pos+3]) || p.src[p.pos+3] == 'j') {
			p.pos += 3
			f, _ = strconv.ParseFloat(p.src[start:p.pos], 64)
			return f, 0, false, true
		}
	}
	digits := func() (n int) {
		for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
			p.pos++
			n++
		}
		return n
	}
	n := digits()
	isInt = true
	if p.peek() == '.' {
		p.pos++
		isInt = false
		n += digits()
	}
	if n == 0 {
		p.pos = start
		return 0, 0, false, false
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		save := p.pos
		p.pos++
		if p.peek() == '-' || p.peek() == '+' {
			p.pos++
		}
		if digits() == 0 {
			p.pos = save
		} else {
			isInt = false
		}
	}
	s := p.src[start:p.pos]
	f, _ = strconv.ParseFloat(s, 64)
	if isInt {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			if u, err := strconv.ParseUint(s, 10, 64); err == nil {
				return f, int64(u), true, true
			}
			p.fail("number %s is out of range", s)
		}
		i = v
	}
	return f, i, isInt, true
}

// attrValue reads the value of an attribute; want is the type of the op's only result, if it has one.
func (p *parser) attrValue(want Type, depth int) Literal {
	if depth > maxNesting {
		p.fail("values nested too deeply")
	}
	p.blanks()
	if l, ok := p.tensorText(); ok {
		return l
	}
	switch c := p.peek(); {
	case c == '"':
		return Str(p.str())
	case c == '[':
		p.pos++
		l := Literal{Kind: ListLit}
		for !p.takeS("]") {
			if p.takeS(",") {
				continue
			}
			l.Elems = append(l.Elems, p.attrValue(nil, depth+1))
		}
		if len(l.Elems) == 1 && l.Elems[0].Kind == BlobLit && l.Elems[0].s == "<Tensors>" {
			return Blob("[<Tensors>]")
		}
		if len(l.Elems) > 0 && l.Elems[0].Kind != TypeLit {
			l.Elem = listElem(l.Elems)
		}
		return l
	case c == '(':
		p.pos++
		l := Literal{Kind: TupleLit}
		for !p.takeS(")") {
			if p.takeS(",") {
				continue
			}
			l.Elems = append(l.Elems, p.attrValue(nil, depth+1))
		}
		return l
	case c == '{':
		return p.braced(want, depth)
	case c == '<':
		end := strings.IndexByte(p.src[p.pos:], '>')
		if end < 0 {
			p.fail("expected >")
		}
		s := p.src[p.pos : p.pos+end+1]
		p.pos += end + 1
		if s == "<Tensor>" {
			if t := AsTensor(want); t != nil {
				if shape, ok := t.Static(); ok {
					return TensorValue(&tensor.Tensor{DType: t.DType, Shape: shape, Strides: tensor.ContiguousStrides(shape)})
				}
			}
		}
		return Blob(s)
	case c == '-' || c == '+' || c >= '0' && c <= '9' || c == '.' || p.has("inf") || p.has("nan"):
		f, i, isInt, ok := p.number()
		if !ok {
			p.unexpected("a value")
		}
		if f != f && p.take("(") { // nan(bits / 2, bits % 2)
			hi := p.int(p.attrValue(nil, depth+1))
			p.want(",")
			lo := p.int(p.attrValue(nil, depth+1))
			p.want(")")
			v := math.Float64frombits(uint64(hi)<<1 | uint64(lo)&1)
			if v == v {
				p.fail("these bits are a number")
			}
			return Float(v)
		}
		if c := p.peek(); c == '+' || c == '-' {
			save := p.pos
			if im, _, _, ok := p.number(); ok && p.peek() == 'j' {
				p.pos++
				return Complex(complex(f, im))
			}
			p.pos = save
		}
		if p.peek() == 'j' {
			p.pos++
			return Complex(complex(0, f))
		}
		if isInt {
			return Int(i)
		}
		return Float(f)
	}
	save := p.pos
	word := p.dotted()
	switch word {
	case "":
		p.unexpected("a value")
	case "None":
		return None
	case "True":
		return Bool(true)
	case "False":
		return Bool(false)
	case "annotate":
		p.want("(")
		t := p.typ(0)
		p.want(",")
		l := p.attrValue(nil, depth+1)
		p.want(")")
		if lt, ok := t.(*ListType); ok && l.Kind == ListLit {
			l.Elem = lt.Elem
		}
		return l
	case "type":
		if p.take("(") {
			t := p.typ(0)
			p.want(")")
			return TypeValue(t)
		}
	case "enum":
		if p.take("(") {
			name := p.name(dottedByte)
			p.want(",")
			v := p.attrValue(nil, depth+1)
			p.want(")")
			return Enum(name, v)
		}
	case "exact":
		if depth == 0 && p.take("(") {
			l := p.attrValue(nil, 1)
			p.want(")")
			p.exact = true
			return l
		}
	case "tensor":
		if p.peek() == '(' {
			return p.reference()
		}
	case "device", "function", "blob":
		if p.take("(") {
			p.space()
			s := p.str()
			p.want(")")
			switch word {
			case "device":
				return Device(s)
			case "function":
				return FuncName(s)
			}
			return Blob(s)
		}
	case "object":
		at := p.pos
		if p.take("(") {
			if _, n, isInt, ok := p.number(); ok && isInt && n >= 0 && p.takeS(")") {
				return ObjectValue(p.object(n))
			}
			p.pos = at
		}
		p.pos = save + len(word)
		return Blob(word + p.balanced())
	}
	if t := p.peek(); t != ',' && t != ']' && t != ')' || p.isTypeName(word) {
		p.pos = save
		return TypeValue(p.typ(0))
	}
	return Blob(word)
}

func (p *parser) isTypeName(w string) bool {
	if tensor.FromTorch(w) != tensor.Undefined || w == "Tensor" || basicTypes[w] != "" || strings.HasPrefix(w, "__torch__") {
		return true
	}
	return w == "List" || w == "Dict" || w == "Optional"
}

// braced reads {scalar}, a boxed element, or {"k" : v, ...}, a dict.
func (p *parser) braced(want Type, depth int) Literal {
	p.pos++
	p.space()
	if t := AsTensor(want); t != nil && depth == 0 {
		var v Literal
		if p.has("-0}") {
			p.pos += 3
			return p.boxed(t, Float(math.Copysign(0, -1)))
		}
		if p.peek() == '(' { // a complex number as a pair
			pair := p.attrValue(nil, 1)
			p.want("}")
			if len(pair.Elems) != 2 {
				p.fail("expected a pair")
			}
			return p.boxed(t, Complex(complex(pair.Elems[0].Float(), pair.Elems[1].Float())))
		}
		v = p.attrValue(nil, 1)
		p.want("}")
		return p.boxed(t, v)
	}
	l := Literal{Kind: DictLit}
	for !p.takeS("}") {
		if p.takeS(",") {
			continue
		}
		k := p.attrValue(nil, depth+1)
		if !p.takeS(":") {
			p.want("}")
			return k // {5} without a tensor type
		}
		l.Elems = append(l.Elems, k, p.attrValue(nil, depth+1))
	}
	return l
}

// boxed makes the tensor of {v}: every element of the result type is v.
func (p *parser) boxed(t *TensorType, v Literal) Literal {
	if !v.IsNumber() {
		p.fail("expected a number in braces")
	}
	shape, ok := t.Static()
	if !ok {
		shape = []int64{}
	}
	if !p.sane(shape) {
		p.fail("constant of shape %v is too large", shape)
	}
	d := t.DType
	if d == tensor.Undefined {
		d = defaultDType(v)
	}
	switch {
	case v.Kind == ComplexLit && d.IsComplex():
		if d == tensor.Complex64 {
			return TensorValue(&tensor.Tensor{DType: d, Shape: shape, Strides: make([]int64, len(shape)), Storage: tensor.Of(d, []int64{}, []complex64{complex64(v.Complex())}).Storage})
		}
		return TensorValue(&tensor.Tensor{DType: tensor.Complex128, Shape: shape, Strides: make([]int64, len(shape)), Storage: tensor.Of(tensor.Complex128, []int64{}, []complex128{v.Complex()}).Storage})
	case d == tensor.String || d == tensor.Complex32 || d.Size() == 0 || d.Opaque():
		p.fail("no constant of type %v", d)
	case v.Kind == IntLit && !d.IsFloat():
		return TensorValue(oneElement(tensor.FullInt(d, shape, v.i)))
	}
	return TensorValue(oneElement(tensor.Full(d, shape, v.Float())))
}

// oneElement gives a tensor of one element the strides that it has if it is written out.
func oneElement(t *tensor.Tensor) *tensor.Tensor {
	if t.NumElements() == 1 {
		t.Strides = tensor.ContiguousStrides(t.Shape)
	}
	return t
}

func defaultDType(v Literal) tensor.DType {
	switch v.Kind {
	case IntLit:
		return tensor.Int64
	case BoolLit:
		return tensor.Bool
	case ComplexLit:
		return tensor.Complex64
	}
	return tensor.Float32
}

func (p *parser) sane(shape []int64) bool {
	n := int64(1)
	for _, s := range shape {
		if s < 0 || s > maxElements {
			return false
		}
		if n *= max(s, 1); n > maxElements*64 {
			return false
		}
	}
	return true
}

// tensorText reads numbers followed by [ CPUFloatType{2,3} ], with PyTorch's
// matrix display: a factor "0.01 *" in front and "(1,.,.) =" before each plane.
func (p *parser) tensorText() (Literal, bool) {
	if !p.tensors {
		return None, false
	}
	end := strings.IndexByte(p.src[p.pos:], '[')
	if end < 0 {
		return None, false
	}
	// cheap test before the real one: the bracket must open "[ CPU...Type{"
	head := strings.TrimLeft(p.src[p.pos+end+1:], " ")
	if !strings.HasPrefix(head, "CPU") && !strings.HasPrefix(head, "CUDA") && !strings.HasPrefix(head, "Quantized") {
		return None, false
	}
	save := p.pos
	factor := 1.0
	var fs []float64
	var is []int64
	allInt := true
	for {
		p.space()
		switch c := p.peek(); {
		case c == '[':
		case c == '(':
			i := strings.IndexByte(p.src[p.pos:], ')')
			if i < 0 {
				p.pos = save
				return None, false
			}
			p.pos += i + 1
			p.takeS("=")
			continue
		default:
			f, i, isInt, ok := p.number()
			if !ok {
				p.pos = save
				return None, false
			}
			if p.take("*") {
				factor = f
				continue
			}
			fs, is = append(fs, f), append(is, i)
			allInt = allInt && isInt
			continue
		}
		break
	}
	p.want("[")
	name := p.ident()
	for _, b := range []string{"Quantized", "CPU", "CUDA"} {
		name = strings.TrimPrefix(name, b)
	}
	d := tensor.FromTorch(strings.TrimSuffix(name, "Type"))
	if d.Size() == 0 || d.IsComplex() || d.Opaque() {
		p.fail("constant of unknown type %s", name)
	}
	p.want("{")
	shape := []int64{}
	n := int64(1)
	for !p.takeS("}") {
		if p.takeS(",") {
			continue
		}
		_, v, isInt, ok := p.number()
		if !ok || !isInt || v < 0 || v > maxElements {
			p.fail("expected a size")
		}
		shape = append(shape, v)
		if n *= max(v, 1); n > maxElements {
			p.fail("constant is too large")
		}
	}
	p.want("]")
	n = 1
	for _, s := range shape {
		n *= s
	}
	if n != int64(len(fs)) {
		p.fail("constant of shape %v has %d elements in the text", shape, len(fs))
	}
	if allInt && factor == 1 && !d.IsFloat() {
		return TensorValue(tensor.FromInts(d, shape, is)), true
	}
	for i := range fs {
		fs[i] *= factor
	}
	return TensorValue(tensor.FromFloats(d, shape, fs)), true
}

func isNegative(s string) bool {
	if len(s) < 2 || s[0] != '-' {
		return false
	}
	return isNumeric(s[1:])
}
