package kir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/sym"
)

// floatBits rounds f to the type and gives its bits, so that equal constants are one.
func floatBits(t *Type, f *float64) uint64 {
	if *t == F32 {
		*f = float64(float32(*f))
	}
	return math.Float64bits(*f)
}

// Digest identifies what the kernel does, whatever its name is and whatever is known of sizes: 12 hexadecimal digits.
func (k *Kernel) Digest() string {
	p := printer{names: map[*Node]string{}}
	p.kernel(k, "")
	h := sha256.Sum256([]byte(p.b.String()))
	return hex.EncodeToString(h[:6])
}

// String is the kernel as text, which Parse reads.
func (k *Kernel) String() string {
	p := printer{names: map[*Node]string{}, facts: true}
	p.kernel(k, k.Name)
	return p.b.String()
}

type printer struct {
	b     strings.Builder
	names map[*Node]string
	facts bool // print what is known of symbols
}

func (p *printer) kernel(k *Kernel, name string) {
	p.printf("kernel %s threads=%d", name, k.Threads)
	if k.Resident > 0 {
		p.printf(" resident=%d", k.Resident)
	}
	p.printf(" {\n")
	if p.facts {
		p.symbols(k)
	}
	for i, a := range k.Params {
		switch {
		case a.Mem == nil:
			p.printf("  param %d: i32 = %s\n", i, a.Size)
		case a.Mem.Writes:
			p.printf("  param %d: %s %s writes\n", i, a.Mem.Name, a.Mem.Elem)
		default:
			p.printf("  param %d: %s %s reads\n", i, a.Mem.Name, a.Mem.Elem)
		}
	}
	for _, m := range k.Shared {
		p.printf("  shared %s %s[%d]\n", m.Name, m.Elem, m.Len)
	}
	p.block(k.Body, 1)
	p.printf("}\n")
}

// symbols prints what is known of the symbols of sizes besides their names.
func (p *printer) symbols(k *Kernel) {
	var names []string
	facts := map[string]sym.Fact{}
	for _, a := range k.Params {
		a.Size.Facts(func(f sym.Fact) {
			have, seen := facts[f.Name]
			if !seen {
				names = append(names, f.Name)
			} else if have.Min <= f.Min {
				return
			}
			facts[f.Name] = f
		})
	}
	for _, name := range names {
		f := facts[name]
		if f.Plain() && !strings.HasPrefix(name, "$") {
			continue // what is read assumes the same
		}
		p.printf("  symbol %s min %d", name, f.Min)
		if f.Max != nil {
			p.printf(" max %s", *f.Max)
		}
		if f.Free != nil {
			p.printf(" of %s", strings.Join(f.Free, ", "))
		}
		p.printf("\n")
	}
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// formatFloat is a constant of a float type: the shortest decimal that is read as the same number, with a point or an exponent.
func formatFloat(t Type, f float64) string {
	switch {
	case math.IsNaN(f) && math.Signbit(f):
		return "-nan"
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	bits := 64
	if t == F32 {
		bits = 32
	}
	s := strconv.FormatFloat(f, 'g', -1, bits)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

func (p *printer) name(v *Node) string {
	switch v.Op {
	case Const:
		if v.Type.IsFloat() {
			return formatFloat(v.Type, v.Float)
		}
		return strconv.FormatInt(v.Int, 10)
	case Scalar:
		return fmt.Sprintf("$%d", v.Int)
	}
	if n, ok := p.names[v]; ok {
		return n
	}
	if v.Op == Result && len(v.Args) == 1 {
		return fmt.Sprintf("%s#%d", p.name(v.Args[0]), v.Int)
	}
	n := fmt.Sprintf("%%%d", len(p.names))
	p.names[v] = n
	return n
}

func (p *printer) list(vs []*Node) string {
	out := make([]string, len(vs))
	for i, v := range vs {
		out[i] = p.name(v)
	}
	return strings.Join(out, ", ")
}

func (p *printer) block(c *Block, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, v := range c.Nodes {
		p.b.WriteString(indent)
		if v.gives() {
			p.printf("%s = ", p.name(v))
		}
		p.b.WriteString(p.operation(v))
		if v.Blocks == nil {
			p.b.WriteByte('\n')
			continue
		}
		for i, in := range v.Blocks {
			if i > 0 {
				if len(in.Nodes)+len(in.Results) == 0 {
					break // an empty side is not said
				}
				p.printf("%s} else", indent)
			}
			p.printf(" {\n")
			p.block(in, depth+1)
			if len(in.Results) > 0 {
				p.printf("%s  give %s\n", indent, p.list(in.Results))
			}
		}
		p.printf("%s}\n", indent)
	}
}

// gives reports an operation that gives values, and has a name.
func (v *Node) gives() bool {
	switch v.Op {
	case Store, Barrier, CopyAsync, CopyCommit, CopyWait:
		return false
	case For, If:
		return len(v.Blocks[0].Results) > 0
	}
	return true
}

// operation is an operation as text, without its name and without its blocks.
func (p *printer) operation(v *Node) string {
	op := v.Op.String()
	arg := func(i int) string { return p.name(v.Args[i]) }
	access := func(t Type) string { // of memory
		s := op + "." + t.String()
		if v.Width > 1 {
			s += fmt.Sprintf("x%d", v.Width)
		}
		return fmt.Sprintf("%s %s[%s]", s, v.Mem.Name, arg(0))
	}
	switch v.Op {
	case Load:
		if v.Words {
			return access(I32)
		}
		return access(v.Mem.Elem)
	case Store:
		return access(v.Mem.Elem) + ", " + p.list(v.Args[1:])
	case Shuffle:
		return fmt.Sprintf("%s.%s %s ^ %d", op, v.Type, arg(0), v.Int)
	case Mma:
		return fmt.Sprintf("%s.%s %s", op, Format(v.Int), p.list(v.Args))
	case LoadMatrix:
		if v.Int != 0 {
			op += ".transposed"
		}
		return fmt.Sprintf("%s %s[%s]", op, v.Mem.Name, arg(0))
	case CopyAsync:
		return fmt.Sprintf("%s.%d %s[%s] from %s[%s]", op, v.Int, v.Mem.Name, arg(0), v.From.Name, arg(1))
	case CopyWait:
		return fmt.Sprintf("%s %d", op, v.Int)
	case For:
		in := v.Blocks[0]
		s := fmt.Sprintf("%s %s = %s to %s step %s", op, p.name(in.Params[0]), arg(0), arg(1), arg(2))
		for i, q := range in.Params[1:] {
			sep := ","
			if i == 0 {
				sep = " carrying"
			}
			s += fmt.Sprintf("%s %s: %s = %s", sep, p.name(q), q.Type, arg(3+i))
		}
		return s
	case If:
		s := op + " " + arg(0)
		for i, r := range v.Blocks[0].Results {
			sep := ","
			if i == 0 {
				sep = " giving"
			}
			s += fmt.Sprintf("%s %s", sep, r.Type)
		}
		return s
	}
	switch v.Op.shape() {
	case compares, packs:
		op += "." + v.Args[0].Type.String()
	case converts:
		op += "." + v.Type.String() + "." + v.Args[0].Type.String()
	case computes:
		op += "." + v.Type.String()
	}
	if len(v.Args) == 0 {
		return op
	}
	return op + " " + p.list(v.Args)
}
