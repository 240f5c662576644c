package kir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
)

// floatBits rounds f to the type and gives its bits, so that equal constants are one and NaN is one value.
func floatBits(t *Type, f *float64) uint64 {
	if *t == F32 {
		*f = float64(float32(*f))
	}
	return math.Float64bits(*f)
}

// Digest identifies what the kernel does, whatever its name is: 12 hexadecimal digits.
func (k *Kernel) Digest() string {
	h := sha256.Sum256([]byte(k.text("")))
	return hex.EncodeToString(h[:6])
}

// String is the kernel as text.
func (k *Kernel) String() string { return k.text(k.Name) }

func (k *Kernel) text(name string) string {
	p := printer{names: map[*Node]string{}}
	fmt.Fprintf(&p.b, "kernel %s threads=%d", name, k.Threads)
	if k.Resident > 0 {
		fmt.Fprintf(&p.b, " resident=%d", k.Resident)
	}
	p.b.WriteByte('\n')
	for i, a := range k.Params {
		if a.Mem != nil {
			access := "reads"
			if a.Mem.Writes {
				access = "writes"
			}
			fmt.Fprintf(&p.b, "  param %d: %s %s %s\n", i, a.Mem.Name, a.Mem.Elem, access)
		} else {
			fmt.Fprintf(&p.b, "  param %d: i32 = %s\n", i, a.Size)
		}
	}
	for _, m := range k.Shared {
		fmt.Fprintf(&p.b, "  shared %s %s[%d]\n", m.Name, m.Elem, m.Len)
	}
	p.block(k.Body, 1)
	return p.b.String()
}

type printer struct {
	b     strings.Builder
	names map[*Node]string
}

func (p *printer) name(v *Node) string {
	switch v.Op {
	case Const:
		if v.Type.IsFloat() {
			return fmt.Sprintf("%x", v.Float)
		}
		return fmt.Sprint(v.Int)
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
	var out []string
	for _, v := range vs {
		out = append(out, p.name(v))
	}
	return strings.Join(out, ", ")
}

func (p *printer) block(c *Block, depth int) {
	indent := strings.Repeat("  ", depth)
	for _, v := range c.Nodes {
		p.b.WriteString(indent)
		if v.Op != Store && v.Op != Barrier && v.Op != CopyAsync && v.Op != CopyCommit && v.Op != CopyWait {
			fmt.Fprintf(&p.b, "%s = ", p.name(v))
		}
		p.b.WriteString(v.Op.String())
		if v.Type != None {
			p.b.WriteString("." + v.Type.String())
		}
		if v.Mem != nil {
			fmt.Fprintf(&p.b, " %s", v.Mem.Name)
			if v.Words {
				p.b.WriteString(" words")
			}
			if v.Width > 1 {
				fmt.Fprintf(&p.b, " x%d", v.Width)
			}
		}
		if v.Op == LoadMatrix && v.Int != 0 {
			p.b.WriteString(" transposed:")
		}
		if v.Op == CopyAsync {
			fmt.Fprintf(&p.b, " from %s, %d bytes:", v.From.Name, v.Int)
		}
		if v.Op == CopyWait {
			fmt.Fprintf(&p.b, " but %d", v.Int)
		}
		if v.Op == Mma {
			fmt.Fprintf(&p.b, ".%s", Format(v.Int))
		}
		if v.Op == Shuffle {
			fmt.Fprintf(&p.b, " ^%d", v.Int)
		}
		fmt.Fprintf(&p.b, " %s\n", p.list(v.Args))
		for i, in := range v.Blocks {
			if i > 0 {
				fmt.Fprintf(&p.b, "%selse\n", indent)
			}
			if len(in.Params) > 0 {
				fmt.Fprintf(&p.b, "%s  with %s\n", indent, p.list(in.Params))
			}
			p.block(in, depth+1)
			if len(in.Results) > 0 {
				fmt.Fprintf(&p.b, "%s  give %s\n", indent, p.list(in.Results))
			}
		}
	}
}
