package isa_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/isa"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/ptx"
)

// types are those of values.
var types = []kir.Type{kir.I1, kir.I8, kir.I16, kir.I32, kir.I64, kir.F16, kir.F32, kir.F64}

var mnemonic = regexp.MustCompile(`(?m)^\s*(?:@!?%p\d+\s+)?([a-z][\w.:]*)[\s;]`)

// instructions are the rows of what stands in a program.
func instructions(t *testing.T, text string) (out []*isa.Row) {
	t.Helper()
	_, body, _ := strings.Cut(text, "{")
	for _, m := range mnemonic.FindAllStringSubmatch(body, -1) {
		name := strings.ReplaceAll(m[1], ".ftz", "")
		row := isa.Find(name)
		if row == nil {
			t.Errorf("%s is no instruction", name)
			continue
		}
		out = append(out, row)
	}
	return out
}

// operations are kernels that have one operation each, on operands of each type that a Builder takes, by the operation.
func operations() map[kir.Op][]*kir.Kernel {
	out := map[kir.Op][]*kir.Kernel{}
	one := func(op kir.Op, of kir.Type, f func(b *kir.Builder, x, y, z kir.Value) kir.Value) {
		b := kir.New("k", 32)
		tid := b.ThreadX()
		load := func(name string) kir.Value {
			if of == kir.I1 {
				return b.Compare(kir.Ne, b.Load(b.Buffer(name, kir.I8, false), tid), b.Int(kir.I8, 0))
			}
			return b.Load(b.Buffer(name, of, false), tid)
		}
		v := f(b, load("x"), load("y"), load("z"))
		if v.Type == kir.I1 {
			v = b.Convert(kir.ZExt, v, kir.I8)
		}
		b.Store(b.Buffer("to", v.Type, true), tid, v)
		b.Prune()
		out[op] = append(out[op], b.K)
	}
	for _, t := range types {
		for op := kir.Add; op <= kir.Select; op++ {
			switch integer := !t.IsFloat() && t != kir.I1; {
			case op >= kir.And && op <= kir.Xor && !integer && t != kir.I1, op >= kir.Rem && op <= kir.URem && !integer, op >= kir.Shl && op <= kir.AShr && !integer,
				(op == kir.ULt || op == kir.ULe) && !integer, t == kir.I1 && (op < kir.And || op > kir.Xor) && op != kir.Eq && op != kir.Ne && op != kir.Select:
			case op >= kir.Eq && op <= kir.ULe:
				one(op, t, func(b *kir.Builder, x, y, _ kir.Value) kir.Value { return b.Compare(op, x, y) })
			case op == kir.Select:
				one(op, t, func(b *kir.Builder, x, y, z kir.Value) kir.Value { return b.Select(b.Compare(kir.Eq, x, z), x, y) })
			default:
				one(op, t, func(b *kir.Builder, x, y, _ kir.Value) kir.Value { return b.Binary(op, x, y) })
			}
		}
		if t.IsFloat() {
			one(kir.Fma, t, func(b *kir.Builder, x, y, z kir.Value) kir.Value { return b.Fma(x, y, z) })
			for op := kir.Sqrt; op <= kir.Abs; op++ {
				one(op, t, func(b *kir.Builder, x, _, _ kir.Value) kir.Value { return b.Unary(op, x) })
			}
		}
		for op := kir.SExt; op <= kir.Bitcast; op++ {
			for _, to := range types {
				if converts(op, t, to) {
					one(op, t, func(b *kir.Builder, x, _, _ kir.Value) kir.Value { return b.Convert(op, x, to) })
				}
			}
		}
	}
	one(kir.TF32, kir.F32, func(b *kir.Builder, x, _, _ kir.Value) kir.Value { return b.TF32(x) })
	for _, t := range []kir.Type{kir.I16, kir.F16} {
		one(kir.Pack, t, func(b *kir.Builder, x, y, _ kir.Value) kir.Value { return b.Pack(x, y) })
	}
	for i := range 3 {
		one(kir.BlockX+kir.Op(i), kir.I32, func(b *kir.Builder, _, _, _ kir.Value) kir.Value { return b.BlockIndex(i) })
	}
	one(kir.ThreadX, kir.I32, func(b *kir.Builder, _, _, _ kir.Value) kir.Value { return b.ThreadX() })
	for _, t := range []kir.Type{kir.I32, kir.F32, kir.I64, kir.F64, kir.I1} {
		one(kir.Shuffle, t, func(b *kir.Builder, x, _, _ kir.Value) kir.Value { return b.Shuffle(x, 1) })
	}
	return out
}

// converts reports the types that a conversion is between.
func converts(op kir.Op, from, to kir.Type) bool {
	if from == to {
		return false
	}
	switch op {
	case kir.SExt, kir.ZExt:
		return !from.IsFloat() && !to.IsFloat() && from < to
	case kir.Narrow:
		return !from.IsFloat() && !to.IsFloat() && from > to
	case kir.Widen:
		return from.IsFloat() && from < to
	case kir.Round:
		return to.IsFloat() && from > to && from.IsFloat()
	case kir.SToF, kir.UToF:
		return !from.IsFloat() && to.IsFloat()
	case kir.FToS, kir.FToU:
		return from.IsFloat() && !to.IsFloat() && to != kir.I1
	case kir.Bitcast:
		return from.Size() == to.Size() && from != kir.I1 && to != kir.I1
	}
	return false
}

// Each operation of kernels, on each type, is printed in instructions of the table.
func TestOperations(t *testing.T) {
	of := operations()
	for op := kir.ThreadX; op <= kir.Pack; op++ {
		if len(of[op]) == 0 {
			t.Errorf("%s is not tried", op)
		}
		for _, k := range of[op] {
			text, err := ptx.Print(k, ptx.Options{})
			if err != nil {
				t.Errorf("%v\n%s", err, k)
				continue
			}
			instructions(t, text)
		}
	}
}

// Each row is an instruction that the printer writes, or that stands in a program that others have made (llc, Triton's compiler) or that was written by hand, on some
// type.
func TestRows(t *testing.T) {
	used := map[string]bool{}
	family := func(r *isa.Row) string {
		return strings.TrimSuffix(strings.TrimSuffix(r.Name, string(r.Type)), string(r.To)+".")
	}
	see := func(text string) {
		for _, r := range instructions(t, text) {
			used[family(r)] = true
		}
	}
	for _, kernels := range operations() {
		for _, k := range kernels {
			text, err := ptx.Print(k, ptx.Options{})
			if err != nil {
				t.Fatal(err)
			}
			see(text)
		}
	}
	for _, c := range gputest.Cases() {
		texts, err := c.Texts()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			see(text)
		}
	}
	names, err := filepath.Glob("../../../tools/measure/gpureport/triton/*.ptx")
	if err != nil || len(names) == 0 {
		t.Fatalf("no kernels of Triton: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		see(string(text))
	}
	for _, r := range isa.Rows() {
		if !used[family(r)] && !r.Rough { // these are tried in package sim
			t.Errorf("nothing has %s", r.Name)
		}
	}
}
