package isa

import (
	"fmt"
	"math"
	"sync"

	"github.com/aton-project/aton/codegen/gpu/kir"
)

// group is rows that differ in their type.
type group struct {
	op    kir.Op   // that it computes; Const for none
	names []string // without the type; the first one is printed
	types []Type
	// shape has a letter for the result, and behind the sign = one for each operand: t for the type, w for twice its width, or a number of bytes.
	shape  string
	class  Class
	flops  int
	do     func(t Type) Do
	divide Do
	rough  bool
}

var (
	signedTypes   = []Type{"s16", "s32", "s64"}
	unsignedTypes = []Type{"u16", "u32", "u64"}
	integerTypes  = append(append([]Type{}, signedTypes...), unsignedTypes...)
	bitTypes      = []Type{"b16", "b32", "b64"}
	logicTypes    = append([]Type{"pred"}, bitTypes...)
	floatTypes    = []Type{"f16", "f32", "f64"}
	wideFloats    = []Type{"f32", "f64"}
	single        = []Type{"f32"}
)

// byWidth makes what an operation of a name does of the width of the type.
func byWidth(f func(name string, width int) Do, name string) func(t Type) Do {
	return func(t Type) Do { return f(name, t.Width()) }
}

func fixed(do Do) func(Type) Do { return func(Type) Do { return do } }

// groups is what computes a result of registers alone.
var groups = []group{
	{op: kir.Add, names: []string{"add"}, types: integerTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "add")},
	{op: kir.Sub, names: []string{"sub"}, types: integerTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "sub")},
	{op: kir.Mul, names: []string{"mul.lo"}, types: integerTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "mul")},
	{names: []string{"mul.hi"}, types: signedTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "smulhi")},
	{names: []string{"mul.hi"}, types: unsignedTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "umulhi")},
	{names: []string{"mul.wide"}, types: []Type{"s16", "s32", "u16", "u32"}, shape: "w=tt", class: Integer, do: mulWideOp},
	{names: []string{"mad.lo"}, types: integerTypes, shape: "t=ttt", class: Integer, do: madOp},
	{names: []string{"mad.wide"}, types: []Type{"s16", "s32", "u16", "u32"}, shape: "w=ttw", class: Integer, do: madWideOp},
	{op: kir.Div, names: []string{"div"}, types: signedTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "sdiv")},
	{op: kir.UDiv, names: []string{"div"}, types: []Type{"u32"}, shape: "t=tt", class: Integer, do: byWidth(intOp, "udiv"), divide: udivBy},
	{op: kir.UDiv, names: []string{"div"}, types: []Type{"u16", "u64"}, shape: "t=tt", class: Integer, do: byWidth(intOp, "udiv")},
	{op: kir.Rem, names: []string{"rem"}, types: signedTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "srem")},
	{op: kir.URem, names: []string{"rem"}, types: unsignedTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "urem")},
	{names: []string{"min"}, types: signedTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "smin")},
	{names: []string{"max"}, types: signedTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "smax")},
	{names: []string{"min"}, types: unsignedTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "umin")},
	{names: []string{"max"}, types: unsignedTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "umax")},
	{names: []string{"neg"}, types: signedTypes, shape: "t=t", class: Integer, do: byWidth(bitOp, "neg")},
	{names: []string{"abs"}, types: signedTypes, shape: "t=t", class: Integer, do: byWidth(bitOp, "abs")},
	{op: kir.And, names: []string{"and"}, types: logicTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "and")},
	{op: kir.Or, names: []string{"or"}, types: logicTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "or")},
	{op: kir.Xor, names: []string{"xor"}, types: logicTypes, shape: "t=tt", class: Integer, do: byWidth(intOp, "xor")},
	{names: []string{"not"}, types: logicTypes, shape: "t=t", class: Integer, do: byWidth(bitOp, "not")},
	{op: kir.Shl, names: []string{"shl"}, types: bitTypes, shape: "t=t4", class: Integer, do: byWidth(shiftOp, "shl")},
	{op: kir.LShr, names: []string{"shr"}, types: append([]Type{"b16", "b32", "b64"}, unsignedTypes...), shape: "t=t4", class: Integer, do: byWidth(shiftOp, "lshr")},
	{op: kir.AShr, names: []string{"shr"}, types: signedTypes, shape: "t=t4", class: Integer, do: byWidth(shiftOp, "ashr")},
	{names: []string{"bfe"}, types: []Type{"s32", "s64", "u32", "u64"}, shape: "t=t44", class: Integer, do: bfeOp},
	{names: []string{"prmt"}, types: []Type{"b32"}, shape: "t=ttt", class: Integer, do: fixed(ternary(prmt))},

	{op: kir.Add, names: []string{"add.rn", "add"}, types: floatTypes, shape: "t=tt", class: Float, flops: 1, do: byWidth(floatOp, "add")},
	{op: kir.Sub, names: []string{"sub.rn", "sub"}, types: floatTypes, shape: "t=tt", class: Float, flops: 1, do: byWidth(floatOp, "sub")},
	{op: kir.Mul, names: []string{"mul.rn", "mul"}, types: floatTypes, shape: "t=tt", class: Float, flops: 1, do: byWidth(floatOp, "mul")},
	{op: kir.Div, names: []string{"div.rn"}, types: wideFloats, shape: "t=tt", class: Float, flops: 1, do: byWidth(floatOp, "div")},
	{op: kir.Fma, names: []string{"fma.rn", "fma"}, types: floatTypes, shape: "t=ttt", class: Fma, flops: 2, do: func(t Type) Do { return fmaOp(t.Width()) }},
	{op: kir.Sqrt, names: []string{"sqrt.rn"}, types: wideFloats, shape: "t=t", class: Float, flops: 1, do: byWidth(roundOp, "sqrt")},
	{names: []string{"rcp.rn"}, types: wideFloats, shape: "t=t", class: Float, flops: 1, do: byWidth(roundOp, "rcp")},
	{names: []string{"min"}, types: floatTypes, shape: "t=tt", class: Float, do: byWidth(floatOp, "min")},
	{names: []string{"max"}, types: floatTypes, shape: "t=tt", class: Float, do: byWidth(floatOp, "max")},
	{names: []string{"min.NaN"}, types: floatTypes, shape: "t=tt", class: Float, do: byWidth(floatOp, "minnan")},
	{names: []string{"max.NaN"}, types: floatTypes, shape: "t=tt", class: Float, do: byWidth(floatOp, "maxnan")},
	{names: []string{"neg"}, types: floatTypes, shape: "t=t", class: Float, do: byWidth(signOp, "neg")},
	{op: kir.Abs, names: []string{"abs"}, types: wideFloats, shape: "t=t", class: Float, do: byWidth(signOp, "abs")},
	{names: []string{"abs"}, types: []Type{"f16"}, shape: "t=t", class: Float, do: byWidth(signOp, "abs")},
	// the sign of the first operand, the magnitude of the second
	{names: []string{"copysign"}, types: wideFloats, shape: "t=tt", class: Float, do: byWidth(floatOp, "signed")},
	{names: []string{"ex2.approx"}, types: single, shape: "t=t", class: Float, rough: true, do: fixed(roughly(math.Exp2))},
	{names: []string{"lg2.approx"}, types: single, shape: "t=t", class: Float, rough: true, do: fixed(roughly(math.Log2))},
	{names: []string{"sin.approx"}, types: single, shape: "t=t", class: Float, rough: true, do: fixed(roughly(math.Sin))},
	{names: []string{"cos.approx"}, types: single, shape: "t=t", class: Float, rough: true, do: fixed(roughly(math.Cos))},
	{names: []string{"tanh.approx"}, types: single, shape: "t=t", class: Float, rough: true, do: fixed(roughly(math.Tanh))},
	{names: []string{"rsqrt.approx"}, types: single, shape: "t=t", class: Float, rough: true, do: fixed(roughly(func(x float64) float64 { return 1 / math.Sqrt(x) }))},
	{names: []string{"sqrt.approx"}, types: single, shape: "t=t", class: Float, flops: 1, rough: true, do: byWidth(roundOp, "sqrt")},
	{names: []string{"rcp.approx"}, types: single, shape: "t=t", class: Float, flops: 1, rough: true, do: byWidth(roundOp, "rcp")},
	{names: []string{"div.full", "div.approx"}, types: single, shape: "t=tt", class: Float, flops: 1, rough: true, do: byWidth(floatOp, "div")},

	{op: kir.Select, names: []string{"selp"}, types: append([]Type{"b16", "b32", "b64", "f32", "f64"}, integerTypes...), shape: "t=tt1", do: func(t Type) Do { return selectOp(t.Width()) }},
	{op: kir.TF32, names: []string{"cvt.rna.tf32"}, types: single, shape: "t=t", do: fixed(unary(toTF32))},
	// the first operand is the upper half
	{names: []string{"cvt.rn.f16x2"}, types: single, shape: "t=tt", do: fixed(binary(func(a, b float32) uint32 { return uint32(half(float64(a)))<<16 | uint32(half(float64(b))) }))},
}

// comparisons are the names of setp on floats, integers with and without sign, and what they compute.
var comparisons = []struct {
	op    kir.Op
	name  string
	types []Type
	do    string
}{
	{kir.Eq, "eq", append(integerTypes, bitTypes...), "eq"}, {kir.Ne, "ne", append(integerTypes, bitTypes...), "ne"},
	{kir.Lt, "lt", signedTypes, "slt"}, {kir.Le, "le", signedTypes, "sle"}, {0, "gt", signedTypes, "sgt"}, {0, "ge", signedTypes, "sge"},
	{kir.ULt, "lt", unsignedTypes, "ult"}, {kir.ULe, "le", unsignedTypes, "ule"}, {0, "gt", unsignedTypes, "ugt"}, {0, "ge", unsignedTypes, "uge"},
	{kir.Eq, "eq", floatTypes, "oeq"}, {0, "ne", floatTypes, "one"}, {kir.Lt, "lt", floatTypes, "olt"}, {kir.Le, "le", floatTypes, "ole"},
	{0, "gt", floatTypes, "ogt"}, {0, "ge", floatTypes, "oge"}, {0, "num", floatTypes, "ord"}, {0, "nan", floatTypes, "uno"}, {0, "equ", floatTypes, "ueq"},
	{kir.Ne, "neu", floatTypes, "une"}, {0, "ltu", floatTypes, "ult"}, {0, "leu", floatTypes, "ule"}, {0, "gtu", floatTypes, "ugt"}, {0, "geu", floatTypes, "uge"},
}

// roundings are those of a conversion to an integral value.
var roundings = []struct {
	op      kir.Op
	mod, do string
}{{kir.Rint, "rni", "rint"}, {kir.Trunc, "rzi", "trunc"}, {kir.Floor, "rmi", "floor"}, {kir.Ceil, "rpi", "ceil"}}

// caches are hints that an access may have.
var caches = []string{"nc", "weak", "ca", "cg", "cs", "lu", "wb", "wt", "L1::no_allocate", "L1::evict_last", "L1::evict_first", "L2::128B", "relaxed", "gpu", "cta"}

// table is made when it is first asked for: most runs of a command make no code for a GPU.
var table = sync.OnceValue(newIndex)

func newIndex() *index {
	x := &index{byName: map[string]*Row{}, byOp: map[operation]*Row{}}
	for _, g := range groups {
		for _, t := range g.types {
			x.group(g, t)
		}
	}
	for _, c := range comparisons {
		f := compareOp
		if c.types[0].IsFloat() {
			f = floatCompareOp
		}
		for _, t := range c.types {
			x.group(group{op: c.op, names: []string{"setp." + c.name}, shape: "1=tt", do: byWidth(f, c.do)}, t)
		}
	}
	x.conversions()
	x.others()
	return x
}

// group enters the row of a group for a type.
func (x *index) group(g group, t Type) {
	width := func(c byte) int {
		switch c {
		case 't':
			return t.Width()
		case 'w':
			return 2 * t.Width()
		}
		return int(c - '0')
	}
	r := &Row{Name: g.names[0] + "." + string(t), D: width(g.shape[0]), Do: g.do(t), Divide: g.divide, Class: g.class, Flops: g.flops, Type: t, Rough: g.rough}
	for _, c := range []byte(g.shape[2:]) {
		r.Args = append(r.Args, width(c))
	}
	if r.Do == nil {
		panic("isa: nothing computes " + r.Name) // the table is at fault
	}
	var others []string
	for _, name := range g.names[1:] {
		others = append(others, name+"."+string(t))
	}
	x.add(r, others...)
	if g.op == kir.Const {
		return
	}
	if at := (operation{g.op, kirType(t)}); x.byOp[at] == nil {
		x.byOp[at] = r
	}
}

// conversions enters cvt between all pairs of types.
func (x *index) conversions() {
	types := append(append([]Type{"s8", "u8"}, integerTypes...), floatTypes...)
	row := func(mod string, from, to Type, class Class, do Do) *Row {
		r := &Row{Name: fmt.Sprintf("cvt%s.%s.%s", mod, to, from), D: to.Width(), Args: []int{from.Width()}, Do: do, Class: class, Type: from, To: to}
		x.add(r)
		return r
	}
	for _, from := range types {
		for _, to := range types {
			convert := convertOp(string(from), string(to))
			switch {
			case !from.IsFloat() && !to.IsFloat():
				row("", from, to, Other, convert)
			case !from.IsFloat():
				row(".rn", from, to, Other, convert)
			case !to.IsFloat():
				for _, r := range roundings {
					do := convert // towards zero
					if r.do != "trunc" {
						do = roundedOp(r.do, string(from), string(to))
					}
					row("."+r.mod, from, to, Other, do)
				}
			case from == to:
				for _, r := range roundings {
					round := row("."+r.mod, from, to, Float, roundOp(r.do, from.Width()))
					if from != "f16" { // which ptxas does not take
						x.byOp[operation{r.op, kirType(from)}] = round
					}
				}
			case from.Width() < to.Width():
				row("", from, to, Other, convert)
			default:
				row(".rn", from, to, Other, convert)
			}
		}
	}
}

// others enters what package sim has to execute.
func (x *index) others() {
	for _, t := range append([]Type{"pred", "f32", "f64"}, append(bitTypes, integerTypes...)...) {
		x.add(&Row{Name: "mov." + string(t), Kind: Move, D: t.Width(), Type: t})
	}
	for _, s := range []string{"global", "shared", "local"} {
		x.add(&Row{Name: "cvta." + s + ".u64", Kind: ToGeneric})
		x.add(&Row{Name: "cvta.to." + s + ".u64", Kind: FromGeneric})
	}
	x.add(&Row{Name: "ld", Kind: Load, Mods: caches}, "ldu")
	x.add(&Row{Name: "st", Kind: Store, Mods: caches})
	x.add(&Row{Name: "atom", Kind: Atomic, Mods: caches})
	for _, cache := range []string{"ca", "cg"} {
		name := "cp.async." + cache + ".shared.global"
		x.add(&Row{Name: name, Kind: AsyncCopy, Type: Type(cache)}, name+".L2::64B", name+".L2::128B", name+".L2::256B")
	}
	x.add(&Row{Name: "cp.async.commit_group", Kind: AsyncCommit})
	x.add(&Row{Name: "cp.async.wait_group", Kind: AsyncWait, Args: []int{8}})
	x.add(&Row{Name: "cp.async.wait_all", Kind: AsyncWait})
	x.add(&Row{Name: "bra", Kind: Branch}, "bra.uni")
	x.add(&Row{Name: "ret", Kind: Return}, "ret.uni", "exit")
	x.add(&Row{Name: "trap", Kind: Trap})
	x.add(&Row{Name: "bar.sync", Kind: Barrier}, "barrier.sync", "barrier.sync.aligned", "bar.cta.sync", "barrier.cta.sync.aligned")
	for _, mode := range []string{"bfly", "down", "up", "idx"} {
		x.add(&Row{Name: "shfl.sync." + mode + ".b32", Kind: Shuffle, Class: Warp})
	}
	x.add(&Row{Name: "vote.sync.ballot.b32", Kind: Ballot, Class: Warp})
	for f := kir.Half; f <= kir.U8; f++ {
		sum := "f32"
		if f.Sum() == kir.I32 {
			sum = "s32"
		}
		k := 8 * f.PerWord()
		x.add(&Row{Name: fmt.Sprintf("mma.sync.aligned.m16n8k%d.row.col.%s.%s.%s", k, sum, f, sum), Kind: MatrixProduct, Class: Matrix, Flops: int(2 * 16 * 8 * k / 32), Factors: f})
	}
	x.add(&Row{Name: "ldmatrix.sync.aligned.m8n8.x4.shared.b16", Kind: LoadMatrix})
	x.add(&Row{Name: "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", Kind: LoadMatrix, Transposed: true})
}
