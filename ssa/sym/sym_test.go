package sym

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// node is an expression and the plain way to compute it.
type node struct {
	e    Expr
	eval func(env map[string]int64) int64
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func leaf(r *rand.Rand) node {
	if r.IntN(3) == 0 {
		n := r.Int64N(9) - 2
		return node{Const(n), func(map[string]int64) int64 { return n }}
	}
	name := string(rune('a' + r.IntN(3)))
	e := Symbol(name, 1)
	if name == "b" {
		e = Bounded(name, 1, Const(9))
	}
	return node{e, func(env map[string]int64) int64 { return env[name] }}
}

func random(r *rand.Rand, depth int) node {
	if depth == 0 {
		return leaf(r)
	}
	x, y := random(r, depth-1), random(r, r.IntN(depth))
	k := r.Int64N(4) + 1
	switch r.IntN(7) {
	case 0:
		return node{x.e.Sub(y.e), func(env map[string]int64) int64 { return x.eval(env) - y.eval(env) }}
	case 1:
		return node{x.e.Mul(y.e), func(env map[string]int64) int64 { return x.eval(env) * y.eval(env) }}
	case 2:
		return node{x.e.FloorDiv(Const(k)), func(env map[string]int64) int64 { return floorDiv(x.eval(env), k) }}
	case 3:
		return node{x.e.Mod(Const(k)), func(env map[string]int64) int64 { n := x.eval(env); return n - k*floorDiv(n, k) }}
	case 4:
		return node{x.e.Max(y.e), func(env map[string]int64) int64 { return max(x.eval(env), y.eval(env)) }}
	case 5:
		return node{x.e.Minimum(y.e), func(env map[string]int64) int64 { return min(x.eval(env), y.eval(env)) }}
	}
	return node{x.e.Add(y.e), func(env map[string]int64) int64 { return x.eval(env) + y.eval(env) }}
}

// Normal forms have the value of what they were made of, bounds hold, and text reads back.
func TestRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	summaries := 0
	for range 20000 {
		n := random(r, 1+r.IntN(6))
		env := map[string]int64{"a": 1 + r.Int64N(9), "b": 1 + r.Int64N(9), "c": 1 + r.Int64N(9)}
		want := n.eval(env)
		got, ok := n.e.Eval(env)
		if !ok {
			summaries++
		} else if got != want {
			t.Fatalf("%s at %v is %d, want %d", n.e, env, got, want)
		}
		if m := n.e.Min(); want < m {
			t.Fatalf("%s at %v is %d, below its bound %d", n.e, env, want, m)
		}
		if m := n.e.most(); want > m {
			t.Fatalf("%s at %v is %d, above its bound %d", n.e, env, want, m)
		}
		if back, err := Parse(n.e.String()); err != nil {
			t.Fatal(err)
		} else if back.String() != n.e.String() {
			t.Fatalf("%s reads back as %s", n.e, back)
		}
	}
	if summaries > 2000 {
		t.Errorf("%d of 20000 small expressions were too large", summaries)
	}
}

// Sizes that are computed from each other stay small, and keep saying what they depend on.
func TestSummary(t *testing.T) {
	grow := func(seed string) Expr {
		x, y := Symbol(seed, 1), Symbol("m", 1)
		for i := range int64(200) {
			x, y = x.Max(y.FloorDiv(Const(i+2))).Add(Const(i)), y.Minimum(x.Sub(y)).Mul(x)
		}
		return x.Add(y)
	}
	x := grow("n")
	if n := len(x.String()); n > 2*maxKey {
		t.Fatalf("%d bytes", n)
	}
	if !x.Equal(grow("n")) || x.Equal(grow("k")) {
		t.Error("summaries are equal where their expressions are")
	}
	free := map[string]bool{}
	x.Symbols(func(s string) { free[s] = true })
	if fmt.Sprint(free) != "map[m:true n:true]" {
		t.Errorf("depends on %v", free)
	}
	replaced := x.Subst(func(s string) (Expr, bool) { return Symbol("k", 1), s == "n" })
	if replaced.Equal(x) {
		t.Error("a replaced symbol leaves the summary as it was")
	}
	if same := x.Subst(func(s string) (Expr, bool) { return Symbol(s, 1), true }); !same.Equal(x) {
		t.Error("symbols that stay change the summary")
	}
	if _, ok := x.Eval(map[string]int64{"m": 2, "n": 3}); ok {
		t.Error("the value of a summary is not known")
	}
	if n := Symbol("n", 1); !x.Summarized() || !x.Add(n).Mod(Const(7)).Summarized() || n.Summarized() || n.Add(Const(1)).Mod(Const(7)).Summarized() {
		t.Error("a summary is not seen, or seen where there is none")
	}
}

func BenchmarkGrow(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		x := Symbol("n", 1)
		for i := range int64(100) {
			x = x.Max(Symbol("m", 1).Add(Const(i))).FloorDiv(Const(2))
		}
	}
}

func BenchmarkSymbol(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Symbol("n", 1)
	}
}

func BenchmarkMul(b *testing.B) {
	b.ReportAllocs()
	x, y := Symbol("m", 1).Add(Const(3)), Symbol("n", 1).Add(Const(5))
	for b.Loop() {
		x.Mul(y)
	}
}

// The windows of a loop are whole where the index of its last iteration says so.
func TestBounded(t *testing.T) {
	i := Bounded("i", 0, Const(31))
	end := i.Mul(Const(512)).Add(Const(512))
	if e := end.Minimum(Const(32 * 512)); !e.Equal(end) {
		t.Errorf("a window within the tensor ends at %s", e)
	}
	if e := end.Minimum(Const(32*512 - 1)); e.Equal(end) {
		t.Error("the last window is cut off, which is not seen")
	}
	n := Symbol("n", 1)
	j := Bounded("j", 0, n.Sub(Const(1)))
	end = j.Mul(Const(512)).Add(Const(512))
	if e := end.Minimum(n.Mul(Const(512))); !e.Equal(end) {
		t.Errorf("a window within the tensor ends at %s", e)
	}
	if m := i.Mul(Const(1 << 62)).Neg().Min(); m != minInt {
		t.Errorf("a bound beyond 64 bits is %d", m)
	}
}

// What is left of a division has one form, whose multiples and bounds are seen.
func TestRemainders(t *testing.T) {
	n, c := Symbol("n", 0), Const(512)
	rest := n.Mod(c)
	same := func(what string, got, want Expr) {
		if !got.Equal(want) {
			t.Errorf("%s is %s, want %s", what, got, want)
		}
	}
	up := n.Add(Const(511)).FloorDiv(c)
	same("a size without its rest", n.Sub(rest), c.Mul(n.FloorDiv(c)))
	same("padded by (c - n % c) % c", n.Add(c.Sub(rest).Mod(c)), c.Mul(up))
	same("padded by -n % c", n.Add(n.Neg().Mod(c)), c.Mul(up))
	same("the chunks of the padded size", n.Add(n.Neg().Mod(c)).FloorDiv(c), up)
	same("-(-n // c)", n.Neg().FloorDiv(c).Neg(), up)
	same("(n - 1) // 2 + 1", n.Sub(Const(1)).FloorDiv(Const(2)).Add(Const(1)), n.Add(Const(1)).FloorDiv(Const(2)))
	same("min(n % c, c)", rest.Minimum(c), rest)
	same("max(n % c, 0)", rest.Max(Const(0)), rest)
	if rest.Min() != 0 || rest.most() != 511 {
		t.Errorf("n %% c is from %d to %d", rest.Min(), rest.most())
	}
	if m := n.Sub(Const(1)); !m.Mul(Const(-3)).Multiple(m) || m.Multiple(n) || n.Multiple(Const(1)) {
		t.Error("multiples are not seen, or seen where there are none")
	}
}

// TestFarApart: the difference of two numbers may overflow, their order may not.
func TestFarApart(t *testing.T) {
	lo, one := Const(math.MinInt64), Const(1)
	if !one.AtLeast(lo) || lo.AtLeast(one) || !one.Max(lo).Is(1) || !one.Minimum(lo).Is(math.MinInt64) {
		t.Error("1 and the least int64 are out of order")
	}
	if sign, ok := lo.Compare(one); sign != -1 || !ok {
		t.Errorf("the least int64 compares to 1 as %d, %v", sign, ok)
	}
}

func TestBroadcastAgain(t *testing.T) {
	s, n := Symbol("s", 0), Symbol("n", 0)
	atMost := Const(512).Minimum(s)
	for _, tt := range []struct{ got, want Expr }{
		{atMost.Broadcast(s).Broadcast(s).Broadcast(s), s},
		{s.Broadcast(atMost), s},
		{s.Broadcast(n).Broadcast(n), s.Broadcast(n)},
		{n.Broadcast(s.Broadcast(n)), s.Broadcast(n)},
	} {
		if !tt.got.Equal(tt.want) {
			t.Errorf("%v, not %v", tt.got, tt.want)
		}
	}
	// of a least value of 1 nothing is known: min(1, s) is 1 beside any s
	if got := Const(1).Minimum(s).Broadcast(s); got.Equal(s) {
		t.Error(got)
	}
}
