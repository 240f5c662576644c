package ssa

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/tensor"
)

// PrintOptions steer [Fprint]. The zero value prints everything that fits a line.
type PrintOptions struct {
	NoLocs bool // leave out scopes and source lines
	// AllConstants writes tensors of any size; else those of more than
	// elideAbove elements print as <Tensor>.
	AllConstants bool
	// Complete writes all that the module holds, so that [Parse] makes the same module of the text: the head, the data, and
	// names and values in full. WeightsAsInputs and Names do not go with it.
	Complete bool
	// NoData leaves the elements of tensors out of complete text.
	NoData bool
	// Examples prints what the text said of the strides, the device and the gradient of traced tensors, as PyTorch does.
	Examples bool
	// WeightsAsInputs lists named constants among the inputs, as torch.onnx prints graphs.
	WeightsAsInputs bool
	// Names are what the main function's values are called, by ID. Those without a name here keep their own.
	Names []string
	// Before, if set, is called before the line of each operator, when all that stands before it is written.
	Before func(o *Op)
}

// elideAbove is the number of tensor elements above which the text holds <Tensor>.
const elideAbove = 64

// Print gives the text of a module.
func Print(m *Module) string {
	var b strings.Builder
	_ = Fprint(&b, m, PrintOptions{}) // a Builder does not fail
	return b.String()
}

// String gives the text of the function without locations.
func (f *Func) String() string {
	var b strings.Builder
	w := bufio.NewWriter(&b)
	p := printer{w: w, opts: PrintOptions{NoLocs: true}}
	p.printFunc(f)
	_ = w.Flush()
	return b.String()
}

// String gives the op's line of text, with provisional names.
func (o *Op) String() string {
	var b strings.Builder
	w := bufio.NewWriter(&b)
	p := printer{w: w, opts: PrintOptions{NoLocs: true}, flat: true}
	p.printOp(o, 0)
	_ = w.Flush()
	return strings.TrimSpace(b.String())
}

// Fprint writes the text of a module.
func Fprint(out io.Writer, m *Module, opts PrintOptions) error {
	w := bufio.NewWriterSize(out, 1<<16)
	p := printer{w: w, opts: opts, m: m}
	if opts.Complete {
		p.opts.WeightsAsInputs, p.opts.Names, p.opts.AllConstants = false, nil, true
		p.whole = wholeOf(m, opts)
		p.head()
	}
	for i, f := range m.Funcs {
		if i > 0 {
			w.WriteByte('\n')
		}
		p.next = 0
		p.printFunc(f)
		if opts.Complete {
			p.known(f)
		}
	}
	if opts.Complete {
		p.data()
	}
	return w.Flush()
}

func newTextWriter(w io.Writer) *bufio.Writer { return bufio.NewWriterSize(w, 64) }

type printer struct {
	w     *bufio.Writer
	m     *Module
	opts  PrintOptions
	names []string // by Value.ID
	taken map[string]bool
	next  int
	flat  bool // one op without context
	skip  map[*Op]bool
	whole *whole // of complete text
}

func (p *printer) printFunc(f *Func) {
	p.names = make([]string, f.NumValues())
	p.taken = map[string]bool{}
	p.skip = nil
	if f.Name == "main" {
		for id, n := range p.opts.Names {
			if n != "" && !isNumeric(n) {
				n = nameText(n)
				p.names[id], p.taken[n] = n, true
			}
		}
	}
	if f.Name == "" || f.Name == "main" {
		p.w.WriteString("graph(")
	} else {
		p.w.WriteString("graph @" + funcName(f.Name) + "(")
	}
	p.params(f.Body)
	if p.opts.WeightsAsInputs {
		p.skip = map[*Op]bool{}
		n := len(f.Body.Params)
		for o := range f.Body.Ops() {
			if l, ok := o.Attr("value"); ok && l.Kind == TensorLit && o.NumOperands() == 0 && len(o.Results) == 1 && o.Results[0].Name != "" {
				p.skip[o] = true
				if n > 0 {
					p.w.WriteString(",\n      ")
				}
				n++
				p.typed(o.Results[0])
			}
		}
	}
	p.w.WriteString("):\n")
	p.body(f.Body, 1)
	p.w.WriteString("  return (")
	p.refs(f.Body.returns)
	p.w.WriteString(")\n")
}

func (p *printer) params(b *Block) {
	for i, v := range b.Params {
		if i > 0 {
			if b.owner == nil {
				p.w.WriteString(",\n      ")
			} else {
				p.w.WriteString(", ")
			}
		}
		p.typed(v)
	}
}

func (p *printer) indent(depth int) {
	for range depth {
		p.w.WriteString("  ")
	}
}

func (p *printer) body(b *Block, depth int) {
	for o := b.first; o != nil; o = o.next {
		if !p.skip[o] {
			p.printOp(o, depth)
		}
	}
}

func (p *printer) printOp(o *Op, depth int) {
	if p.opts.Before != nil {
		_ = p.w.Flush() // its error stays, and Fprint returns it
		p.opts.Before(o)
	}
	p.indent(depth)
	for i, r := range o.Results {
		if i > 0 {
			p.w.WriteString(", ")
		}
		p.typed(r)
	}
	p.w.WriteString(" = ")
	if name, scalars, ok := pythonOp(o); ok {
		p.pythonOp(o, name, scalars)
	} else {
		p.w.WriteString(kindText(o.Kind))
		p.attrs(o, o.Attrs)
	}
	p.w.WriteByte('(')
	p.refs(o.operands)
	p.w.WriteByte(')')
	if p.whole != nil {
		if n, ok := p.whole.schemas[o]; ok {
			p.w.WriteString(", schema: " + strconv.Itoa(n))
		}
	}
	p.loc(o)
	p.w.WriteByte('\n')
	if p.flat {
		return
	}
	for i, b := range o.Blocks {
		p.indent(depth + 1)
		p.w.WriteString("block" + strconv.Itoa(i) + "(")
		p.params(b)
		p.w.WriteString("):\n")
		p.body(b, depth+2)
		p.indent(depth + 2)
		p.w.WriteString("-> (")
		p.refs(b.returns)
		p.w.WriteString(")\n")
	}
}

// pythonOp gives the name and the arguments that are no values of an operator that PyTorch prints as ^name(arguments)(operands).
func pythonOp(o *Op) (name string, scalars string, ok bool) {
	if o.Kind != "prim::PythonOp" || len(o.Attrs) == 0 || o.Attrs[0].Name != "name" || o.Attrs[0].Value.Kind != StrLit {
		return "", "", false
	}
	name = o.Attrs[0].Value.s
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") != "" || name == "" {
		return "", "", false
	}
	last := o.Attrs[len(o.Attrs)-1]
	if last.Name != "scalars" || last.Value.Kind != BlobLit {
		return "", "", false
	}
	for _, a := range o.Attrs[1 : len(o.Attrs)-1] {
		if a.Name == "name" || a.Name == "scalars" {
			return "", "", false
		}
	}
	p := &parser{src: last.Value.s + "("}
	return name, last.Value.s, p.reads(func() { p.balanced() }) && p.pos == len(last.Value.s)
}

func (p *printer) pythonOp(o *Op, name, scalars string) {
	p.w.WriteString("^" + name)
	p.attrs(o, o.Attrs[1:len(o.Attrs)-1])
	p.w.WriteString(scalars)
}

// loc prints where the program has the operator.
func (p *printer) loc(o *Op) {
	if p.m == nil || p.opts.NoLocs || o.Loc == 0 {
		return
	}
	f := p.m.Locs.Frame(o.Loc)
	if f.Scope != "" {
		p.w.WriteString(", scope: " + place(f.Scope))
	}
	if f.File != "" {
		p.w.WriteString(" # " + place(f.File) + ":" + strconv.Itoa(f.Line) + ":" + strconv.Itoa(f.Col))
	}
	if p.whole != nil && !plainFrame(f) {
		p.w.WriteString(", loc: " + strconv.Itoa(p.whole.loc(o.Loc)))
	}
}

func (p *printer) attrs(o *Op, attrs []Attr) {
	shown := 0
	for i := range attrs {
		if attrs[i].Value.IsNone() && o.Kind == "prim::Constant" && (p.whole == nil || len(attrs) == 1 && attrs[0].Name == "value") {
			continue
		}
		if shown == 0 {
			p.w.WriteByte('[')
		} else {
			p.w.WriteString(", ")
		}
		shown++
		p.w.WriteString(attrName(attrs[i].Name))
		p.w.WriteByte('=')
		switch {
		case p.whole == nil:
			p.literal(attrs[i].Value, o, true)
		case attrs[i].Name == "value" && len(o.Results) == 1 && o.Kind == "prim::Constant":
			p.constant(attrs[i].Value, o)
		default:
			p.attr(attrs[i].Value, o)
		}
	}
	if shown > 0 {
		p.w.WriteByte(']')
	}
}

// attr prints the value of an attribute in complete text: a tensor as PyTorch does where that says all.
func (p *printer) attr(l Literal, o *Op) {
	if l.Kind == TensorLit && p.whole.inline(l.Tensor, o) {
		p.tensor(l.Tensor, o, true)
		return
	}
	if l.Kind == DictLit { // {...} is the element of a tensor, where the result is one
		p.w.WriteString("exact(")
		p.literal(l, nil, false)
		p.w.WriteByte(')')
		return
	}
	p.literal(l, nil, false)
}

func (p *printer) refs(us []Use) {
	for i := range us {
		if i > 0 {
			p.w.WriteString(", ")
		}
		if us[i].value == nil {
			p.w.WriteByte('_')
			continue
		}
		p.w.WriteByte('%')
		p.w.WriteString(p.name(us[i].value))
	}
}

func (p *printer) typed(v *Value) {
	p.w.WriteByte('%')
	p.w.WriteString(p.name(v))
	p.w.WriteString(" : ")
	if v.Type == nil {
		p.w.WriteString("Tensor")
	} else {
		p.w.WriteString(p.typeText(v.Type))
	}
}

func (p *printer) typeText(t Type) string {
	if p.opts.Examples {
		return typeText(t)
	}
	return t.String()
}

func (p *printer) name(v *Value) string {
	if p.flat {
		if v.Name != "" {
			return nameText(v.Name)
		}
		return strconv.Itoa(v.ID)
	}
	if n := p.names[v.ID]; n != "" {
		return n
	}
	n := v.Name
	switch {
	case n == "" || isNumeric(n) && p.whole == nil:
		n = strconv.Itoa(p.next)
		p.next++
	default:
		stem := n
		n = nameText(stem)
		for i := 1; p.taken[n]; i++ {
			n = nameText(stem + "." + strconv.Itoa(i))
		}
	}
	if v.Name != "" {
		p.taken[n] = true
	}
	p.names[v.ID] = n
	return n
}

func isNumeric(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

func nameByte(c byte) bool {
	return c == '_' || c == '.' || c == '/' || c == '-' || c == '$' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// validName reports a name that the parser reads behind % and @ without quotes.
func validName(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == ':' && i+2 < len(s) && s[i+1] == ':' && nameByte(s[i+2]) {
			i++
			continue
		}
		if !nameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// nameText is the name of a value as it stands behind %, in quotes where it has other characters than names have, or would be
// taken for the number of a value without a name.
func nameText(s string) string {
	if validName(s) && !isNumeric(s) {
		return s
	}
	return Quote(s)
}

// funcName is the name of a graph as it stands behind @.
func funcName(s string) string {
	if validName(s) {
		return s
	}
	return Quote(s)
}

// attrName is the name of an attribute as it stands before =.
func attrName(s string) string {
	for i := 0; i < len(s); i++ {
		if !identByte(s[i]) {
			return Quote(s)
		}
	}
	if s == "" {
		return Quote(s)
	}
	return s
}

// kindText is the name of an operator.
func kindText(k Kind) string {
	p := parser{src: string(k)}
	if p.kindName() == string(k) && k.Namespace() != "" && k != "" {
		return string(k)
	}
	return Quote(string(k))
}

// FormatFloat prints a float as TorchScript does: always with a point, an exponent, inf or nan.
func FormatFloat(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	case v != v:
		return "nan"
	}
	s := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += "."
	}
	return s
}

// Quote prints a string literal with TorchScript's escapes.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\', '"':
			b.WriteByte('\\')
			b.WriteByte(c)
		case '\n':
			b.WriteString(`\n`)
		case '\t':
			b.WriteString(`\t`)
		case '\r':
			b.WriteString(`\r`)
		default:
			if c < 0x20 || c >= 0x7f {
				b.WriteByte('\\')
				b.WriteByte('0' + c>>6)
				b.WriteByte('0' + c>>3&7)
				b.WriteByte('0' + c&7)
			} else {
				b.WriteByte(c)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}

// String prints the literal as it stands in an attribute.
func (l Literal) String() string {
	switch l.Kind { // the many small ones
	case NoneLit:
		return "None"
	case IntLit:
		return strconv.FormatInt(l.i, 10)
	case FloatLit:
		return FormatFloat(l.f)
	}
	var b strings.Builder
	w := bufio.NewWriterSize(&b, 64)
	p := printer{w: w}
	p.literal(l, nil, false)
	_ = w.Flush()
	return b.String()
}

// literal prints a value; top is set for the value of an attribute itself, where bools print as 0 and 1.
func (p *printer) literal(l Literal, o *Op, top bool) {
	w := p.w
	if p.whole != nil && p.exact(l, o) {
		return
	}
	switch l.Kind {
	case NoneLit:
		w.WriteString("None")
	case IntLit:
		w.WriteString(strconv.FormatInt(l.i, 10))
	case FloatLit:
		w.WriteString(FormatFloat(l.f))
	case BoolLit:
		switch {
		case top && o != nil && o.Kind == "prim::Constant":
			w.WriteString(strconv.FormatInt(l.i, 10))
		case l.i != 0:
			w.WriteString("True")
		default:
			w.WriteString("False")
		}
	case ComplexLit:
		c := l.Complex()
		im := FormatFloat(imag(c))
		if im[0] != '-' {
			im = "+" + im
		}
		w.WriteString(FormatFloat(real(c)) + im + "j")
	case StrLit, DeviceLit:
		w.WriteString(Quote(l.s))
	case FuncLit:
		w.WriteString(Quote(l.s))
	case BlobLit:
		w.WriteString(l.s)
	case EnumLit:
		w.WriteString("enum(" + dottedText(l.s) + ", ")
		p.literal(l.Elems[0], nil, false)
		w.WriteByte(')')
	case ObjectLit:
		w.WriteString("object(" + dottedText(l.Object.Class) + ", " + Quote(l.Object.Path) + ")")
	case TypeLit:
		w.WriteString("type(" + p.typeText(l.Elem) + ")")
	case ListLit:
		if len(l.Elems) == 0 && l.Elem != nil && (o == nil || o.Kind == "prim::Constant") {
			w.WriteString("annotate(" + l.Elem.String() + "[], [])")
			return
		}
		w.WriteByte('[')
		for i, e := range l.Elems {
			if i > 0 {
				w.WriteString(", ")
			}
			p.literal(e, o, false)
		}
		w.WriteByte(']')
	case TupleLit:
		w.WriteByte('(')
		for i, e := range l.Elems {
			if i > 0 {
				w.WriteString(", ")
			}
			p.literal(e, o, false)
		}
		if len(l.Elems) == 1 {
			w.WriteByte(',')
		}
		w.WriteByte(')')
	case DictLit:
		w.WriteByte('{')
		for i := 0; i+1 < len(l.Elems); i += 2 {
			if i > 0 {
				w.WriteString(", ")
			}
			p.literal(l.Elems[i], o, false)
			w.WriteString(" : ")
			p.literal(l.Elems[i+1], o, false)
		}
		w.WriteByte('}')
	case TensorLit:
		p.tensor(l.Tensor, o, top)
	}
}

// typedResult reports that the op's only result has the tensor's type, so that the text of the value need not.
func typedResult(t *tensor.Tensor, o *Op) bool {
	if o == nil || len(o.Results) != 1 || (o.Kind != "prim::Constant" && o.Kind != "onnx::Constant") {
		return false
	}
	return SameType(o.Results[0].Type, TensorOf(t))
}

func (p *printer) tensor(t *tensor.Tensor, o *Op, top bool) {
	n := t.NumElements()
	inType := top && typedResult(t, o)
	if !t.HasData() || t.DType == tensor.String || t.DType.IsComplex() || t.DType.Opaque() || t.DType == tensor.Undefined {
		p.w.WriteString("<Tensor>")
		return
	}
	if inType && n > 0 && (n == 1 || t.IsSplat()) {
		one := *t
		one.Shape, one.Strides = []int64{}, []int64{}
		p.w.WriteByte('{')
		p.elements(&one)
		p.w.WriteByte('}')
		return
	}
	if n > elideAbove && !p.opts.AllConstants {
		p.w.WriteString("<Tensor>")
		return
	}
	p.w.WriteByte(' ')
	p.elements(t)
	p.w.WriteString(" [ CPU" + t.DType.String() + "Type{")
	for i, d := range t.Shape {
		if i > 0 {
			p.w.WriteByte(',')
		}
		p.w.WriteString(strconv.FormatInt(d, 10))
	}
	p.w.WriteString("} ]")
}

func (p *printer) elements(t *tensor.Tensor) {
	var buf []byte
	if t.DType.IsFloat() {
		for i, v := range t.Float64s() {
			if i > 0 {
				p.w.WriteString("  ")
			}
			switch {
			case t.DType == tensor.Float32 && !math.IsInf(v, 0) && v == v:
				buf = strconv.AppendFloat(buf[:0], v, 'g', -1, 32)
				p.w.Write(buf)
			default:
				p.w.WriteString(strings.TrimSuffix(FormatFloat(v), "."))
			}
		}
		return
	}
	for i, v := range t.Int64s() {
		if i > 0 {
			p.w.WriteString("  ")
		}
		if t.DType == tensor.Uint64 {
			buf = strconv.AppendUint(buf[:0], uint64(v), 10)
		} else {
			buf = strconv.AppendInt(buf[:0], v, 10)
		}
		p.w.Write(buf)
	}
}
