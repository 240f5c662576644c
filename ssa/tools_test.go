package ssa_test

import (
	"testing"

	"github.com/aton-project/aton/ssa"
)

func mustParse(t *testing.T, text string) *ssa.Module {
	t.Helper()
	m, err := ssa.Parse(text, "test")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestNames(t *testing.T) {
	m := mustParse(t, "graph(%x : Float(2), %w : Float(2)):\n  %w.1 : Float(2) = aten::relu(%x)\n  return (%w.1, %w)\n")
	n := ssa.NamesOf(m.Funcs[0])
	for _, c := range []struct{ want, got string }{
		{"y", "y"}, {"y", "y.1"}, {"y", "y.2"},
		{"w", "w.2"},     // w.1 is there
		{"w.1", "w.1.1"}, // and it is taken itself
		{"y.1", "y.1.1"},
	} {
		if s := n.Unique(c.want); s != c.got {
			t.Errorf("Unique(%q) is %q, want %q", c.want, s, c.got)
		}
	}
	n.Free("x")
	if s := n.Unique("x"); s != "x" {
		t.Errorf("a name that is free again is given as %q", s)
	}
	n.Take("z")
	if s := n.Unique("z"); s != "z.1" {
		t.Errorf("a name that was taken is given as %q", s)
	}
}

func TestHead(t *testing.T) {
	m := mustParse(t, "graph(%x : Float(2)):\n  %y : Float(2) = aten::relu(%x)\n  return (%y)\n")
	h := ssa.Head{Block: m.Funcs[0].Body}
	for i := range 3 {
		h.Insert("prim::Constant", 0, ssa.IntType).SetAttr("value", ssa.Int(int64(i)))
	}
	i := int64(0)
	for o := range m.Funcs[0].Body.Ops() {
		if o.Kind == "aten::relu" {
			break
		}
		if l, _ := o.Attr("value"); l.Int() != i {
			t.Errorf("constant %d is %d", i, l.Int())
		}
		i++
	}
	if i != 3 {
		t.Errorf("%d constants come before the first op, not 3", i)
	}
}

func TestEraseUnused(t *testing.T) {
	m := mustParse(t, `graph(%x : Float(2), %c : bool):
  %a : Float(2) = aten::relu(%x)
  %b : Float(2) = aten::neg(%a)
  %keep : Float(2) = aten::exp(%x)
  %y : Float(2) = prim::If(%c)
    block0():
      %d : Float(2) = aten::abs(%x)
      -> (%x)
    block1():
      -> (%x)
  return (%y)
`)
	ssa.EraseUnused(m.Funcs[0].Body, func(o *ssa.Op) bool { return o.Kind != "aten::exp" })
	kinds := map[ssa.Kind]bool{}
	for o := range m.Funcs[0].Body.AllOps() {
		kinds[o.Kind] = true
	}
	if len(kinds) != 2 || !kinds["aten::exp"] || !kinds["prim::If"] {
		t.Errorf("left are %v, want aten::exp, which must not go, and prim::If, which is used", kinds)
	}
}

func TestEraseChain(t *testing.T) {
	m := mustParse(t, `graph(%x : Float(2)):
  %a : Float(2) = aten::relu(%x)
  %b : Float(2) = aten::neg(%a)
  %c : Float(2) = aten::mul(%b, %a)
  %d : Float(2) = aten::exp(%a)
  return (%d)
`)
	b := m.Funcs[0].Body
	ssa.EraseChain(b.Last().Prev(), func(*ssa.Op) bool { return true })
	var left []ssa.Kind
	for o := range b.Ops() {
		left = append(left, o.Kind)
	}
	if len(left) != 2 || left[0] != "aten::relu" || left[1] != "aten::exp" {
		t.Errorf("left are %v, want relu, which exp uses, and exp", left)
	}
	ssa.EraseChain(b.Last(), func(*ssa.Op) bool { return true })
	if b.Last().Kind != "aten::exp" {
		t.Error("an op that is used was erased")
	}
}
