package onnxfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

func weight(b *ssa.Block, name string, t *tensor.Tensor) *ssa.Value {
	o := b.Append("onnx::Constant", 0, nil, ssa.TensorOf(t))
	o.SetAttr("value", ssa.TensorValue(t))
	o.Results[0].Name = name
	return o.Results[0]
}

// sample has tied, strided and splat weights, an If, and outputs of all awkward kinds.
func sample() *ssa.Module {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": 20}
	f := m.NewFunc("main")
	n := sym.Symbol("N", 0)
	x := f.Body.AddParam("x", ssa.Tensor(tensor.Float32, n, sym.Const(3)))
	c := f.Body.AddParam("c", ssa.Tensor(tensor.Bool))
	data := make([]float32, 12)
	for i := range data {
		data[i] = float32(i)
	}
	w := tensor.Of(tensor.Float32, []int64{3, 4}, data)
	tr := *w
	tr.Shape, tr.Strides = []int64{4, 3}, []int64{1, 4}
	a, tied := weight(f.Body, "fc.weight", w), weight(f.Body, "tied", w)
	back, full := weight(f.Body, "back", &tr), weight(f.Body, "", tensor.Full(tensor.Float32, []int64{3}, 2))
	y := f.Body.Append("onnx::MatMul", 0, []*ssa.Value{x, a}, ssa.Tensor(tensor.Float32, n, sym.Const(4)))
	z := f.Body.Append("onnx::MatMul", 0, []*ssa.Value{x, tied}, ssa.Tensor(tensor.Float32, n, sym.Const(4)))
	iff := f.Body.Append("onnx::If", 0, []*ssa.Value{c}, ssa.Tensor(tensor.Float32, n, sym.Const(4)))
	then, els := iff.AddBlock(), iff.AddBlock()
	s := then.Append("onnx::Add", 0, []*ssa.Value{y.Results[0], z.Results[0]}, y.Results[0].Type)
	then.SetReturns(s.Results[0])
	els.SetReturns(y.Results[0])
	q := f.Body.Append("onnx::MatMul", 0, []*ssa.Value{iff.Results[0], back}, ssa.Tensor(tensor.Float32, n, sym.Const(3)))
	q = f.Body.Append("onnx::Mul", 0, []*ssa.Value{q.Results[0], full}, ssa.Tensor(tensor.Float32, n, sym.Const(3)))
	r := f.Body.Append("onnx::Clip", 0, []*ssa.Value{q.Results[0], nil, weight(f.Body, "", tensor.Full(tensor.Float32, []int64{}, 6))}, q.Results[0].Type)
	f.Body.SetReturns(r.Results[0], r.Results[0], x, full)
	return m
}

// dump lists ops with names of operands, results, attributes: enough to compare two modules.
func dump(m *ssa.Module) string {
	var b strings.Builder
	var block func(blk *ssa.Block, in string)
	name := func(v *ssa.Value) string {
		if v == nil {
			return "-"
		}
		return v.Name
	}
	block = func(blk *ssa.Block, in string) {
		for _, p := range blk.Params {
			fmt.Fprintf(&b, "%sparam %s %v\n", in, p.Name, p.Type)
		}
		for o := range blk.Ops() {
			fmt.Fprintf(&b, "%s%s", in, o.Kind)
			for _, v := range o.Operands() {
				b.WriteString(" " + name(v))
			}
			for _, r := range o.Results {
				fmt.Fprintf(&b, " -> %s", name(r))
			}
			for _, a := range o.Attrs {
				if a.Value.Kind == ssa.TensorLit {
					fmt.Fprintf(&b, " %s=%v %x", a.Name, a.Value.Tensor, a.Value.Tensor.Bytes())
				} else {
					fmt.Fprintf(&b, " %s=%v", a.Name, a.Value)
				}
			}
			b.WriteString("\n")
			for _, c := range o.Blocks {
				block(c, in+"  ")
			}
		}
		for _, v := range blk.Returns() {
			fmt.Fprintf(&b, "%sreturn %s %v\n", in, name(v), v.Type)
		}
	}
	block(m.Main().Body, "")
	return b.String()
}

func encode(t *testing.T, m *ssa.Module) []byte {
	t.Helper()
	var b bytes.Buffer
	m.Main().OutputNames = []string{"out"}
	if err := WriteTo(&b, m, Options{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	first := encode(t, sample())
	if !bytes.Equal(first, encode(t, sample())) {
		t.Error("two writes differ")
	}
	m, err := Parse(first)
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := WriteTo(&again, m, Options{}); err != nil {
		t.Fatal(err)
	}
	back, err := Parse(again.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := dump(m), dump(back); a != b {
		t.Errorf("after another round:\n%s\nwas:\n%s", b, a)
	}
	got := dump(m)
	for _, want := range []string{
		"param x Float(N, 3)", "-> fc.weight value=Float(3, 4)", "onnx::MatMul x fc.weight -> /MatMul_1_output_0", "onnx::Clip /Mul_output_0 -",
		"return out Float(N, 3)", "000000000000804000000041", "0000004000000040000000400",
	} {
		if !strings.Contains(got, want) && !strings.Contains(got, want[:len(want)-1]) {
			t.Errorf("missing %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "tied") {
		t.Errorf("tied weight was written twice:\n%s", got)
	}
}

func TestExternalData(t *testing.T) {
	dir := t.TempDir()
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": 20}
	f := m.NewFunc("main")
	data := make([]float32, 3000)
	for i := range data {
		data[i] = float32(i)
	}
	x := f.Body.AddParam("x", ssa.Tensor(tensor.Float32, sym.Const(3000)))
	y := f.Body.Append("onnx::Add", 0, []*ssa.Value{x, weight(f.Body, "w", tensor.Of(tensor.Float32, []int64{3000}, data))}, x.Type)
	y = f.Body.Append("onnx::Mul", 0, []*ssa.Value{y.Results[0], weight(f.Body, "v", tensor.Full(tensor.Float32, []int64{3000}, 3))}, x.Type)
	f.Body.SetReturns(y.Results[0])
	path := filepath.Join(dir, "m.onnx")
	for _, o := range []Options{{External: Always}, {limit: 4000}} {
		if err := Write(path, m, o); err != nil {
			t.Fatal(err)
		}
		back, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []*tensor.Tensor
		for o := range back.Main().Body.Ops() {
			if c := onnx.ConstOf(o.Results[0]); c != nil {
				got = append(got, c)
			}
		}
		if len(got) != 2 || !slices.Equal(tensor.Data[float32](got[0]), data) || got[1].Float64s()[2999] != 3 {
			t.Fatalf("read back %v", got)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
	for _, bad := range []string{"../m.onnx.data", "/etc/passwd", "", "."} {
		e := &externalFiles{dir: dir, files: map[string]*tensor.Storage{}}
		if _, err := e.open(bad); err == nil {
			t.Errorf("external data %q was opened", bad)
		}
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "link")); err == nil {
		e := &externalFiles{dir: dir, files: map[string]*tensor.Storage{}}
		if _, err := e.open("link/passwd"); err == nil {
			t.Error("a symbolic link led out of the folder")
		}
	}
}

func TestOldFormat(t *testing.T) {
	m := sample()
	m.Opsets[""] = 8
	for o := range m.Main().Body.Ops() { // Clip took its bounds as attributes
		if o.Kind == "onnx::Clip" {
			o.SetOperands(o.Operand(0))
			o.SetAttr("max", ssa.Float(6))
		}
	}
	b := encode(t, m)
	back, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(back.Main().Body.Params); n != 2 {
		t.Errorf("%d inputs after reading, want 2: initializers are not inputs", n)
	}
	if !bytes.Contains(b[len(b)-400:], []byte("fc.weight")) {
		t.Error("initializers of an IR 3 file must be among the inputs")
	}
}

func FuzzParse(f *testing.F) {
	var b bytes.Buffer
	if err := WriteTo(&b, sample(), Options{}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		_ = WriteTo(&bytes.Buffer{}, m, Options{})
	})
}
