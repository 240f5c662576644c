package kir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/llvm"
	"github.com/aton-project/aton/codegen/gpu/ptx"
)

// everything has each operation once at least.
func everything(t testing.TB) string {
	text, err := os.ReadFile(filepath.Join("testdata", "everything.kir"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The text of a kernel with all operations is what is printed for it, comments and names of values apart.
func TestRoundTrip(t *testing.T) {
	text := everything(t)
	k, err := kir.Parse("everything.kir", text)
	if err != nil {
		t.Fatal(err)
	}
	if err := kir.Verify(k); err != nil {
		t.Fatal(err)
	}
	if got := k.String(); got != text {
		t.Errorf("printed:\n%s", got)
	}
	has := map[kir.Op]bool{}
	var walk func(b *kir.Block)
	walk = func(b *kir.Block) {
		for _, v := range b.Nodes {
			has[v.Op] = true
			for _, in := range v.Blocks {
				walk(in)
			}
		}
	}
	walk(k.Body)
	for op := kir.ThreadX; op <= kir.If; op++ {
		if !has[op] {
			t.Errorf("no %s in everything.kir", op)
		}
	}
}

// Comments, names and other ways to write numbers are read, and not kept.
func TestParse(t *testing.T) {
	ks, err := kir.ParseAll("x.kir", `
# twice
kernel k threads=32 {   # a comment
  param 0: x f32 reads
  param 1: y f32 writes
  param 2: i32 = 3*N + 1   # of a size

  %lane = thread.x
  %in = lt.i32 %lane, $2
  if %in {
    %v = load.f32 x[%lane]
    %w = fma.f32 %v, 0x1p-1, 1e3
    store.f32 y[%lane], %w
  } else {
  }
}
kernel l threads=1 {
}`)
	if err != nil {
		t.Fatal(err)
	}
	if len(ks) != 2 || ks[1].Name != "l" {
		t.Fatalf("%v", ks)
	}
	want := `kernel k threads=32 {
  param 0: x f32 reads
  param 1: y f32 writes
  param 2: i32 = 3*N + 1
  %0 = thread.x
  %1 = lt.i32 %0, $2
  if %1 {
    %2 = load.f32 x[%0]
    %3 = fma.f32 %2, 0.5, 1000.0
    store.f32 y[%0], %3
  }
}
`
	if got := ks[0].String(); got != want {
		t.Errorf("printed:\n%s", got)
	}
}

// What is wrong with a text is told at its place.
func TestErrors(t *testing.T) {
	const head = "kernel k threads=32 {\n  param 0: x f32 reads\n  param 1: y f32 writes\n  param 2: i32 = N\n  shared s i32[64]\n  %0 = thread.x\n"
	for _, c := range []struct{ text, want string }{
		{"", `1:1: expected one kernel, found 0`},
		{"kernl k", `1:1: expected "kernel", found "kernl"`},
		{"kernel k threads=0 {", `1:18: expected a number of threads, 1 to 1024, found "0"`},
		{"kernel k threads=99999999999999999999 {", `1:18: expected a number of threads`},
		{"kernel a.b threads=1 {\n}", `1:1: "a.b" is no name of a kernel`},
		{"kernel k threads=1 {\n  param 1: x f32 reads\n}", `parameter 1 stands where parameter 0 does`},
		{"kernel k threads=1 {\n  param 0: x f33 reads\n}", `2:14: expected a type, found "f33"`},
		{"kernel k threads=1 {\n  param 0: i32 = N +\n}", `2:18: dimension "N +": ends too early`},
		{"kernel k threads=1 {\n  param 0: i32 = $x\n}", `unknown $x`},
		{"kernel k threads=1 {\n  symbol N min 2\n  symbol N min 7\n}", `symbol N is there already`},
		{"kernel k threads=1 {\n  param 0: h f16 writes\n  store.f16 h[0], 100000.0\n}", `expected a value of type f16`},
		{"kernel k threads=1 {\n  %v = add.i1 1, 0\n}", `not of i1`},
		{"kernel k threads=1 {\n  %v = lt.i1 1, 0\n}", `not of i1`},
		{"kernel k threads=1 {\n  for %i = 0 to 5 step 0 {\n  }\n}", `step 0, not 1 or more`},
		{"kernel k threads=1 {\n  shared s f64[30000]\n}", `more than 232448 bytes of shared memory`},
		{"kernel k threads=1 {\n  shared s f64[3]\n  shared s f64[3]\n}", `3:10: memory s is there already`},
		{"kernel k threads=1 {\n  shared s i1[3]\n}", `memory s of i1`},
		{head, `7:1: expected "}", found the end of the text`},
		{head + "}}", `7:2: expected the end of the line, found "}"`},
		{head + "  %0 = block.x\n}", `7:3: %0 is there already`},
		{head + "  %1 = addd.i32 %0, 1\n}", `7:8: expected an operation, found "addd.i32"`},
		{head + "  %1 = add.i33 %0, 1\n}", `add of "i33", which is no type`},
		{head + "  %1 = add.i32 %0 1\n}", `7:19: expected ",", found "1"`},
		{head + "  %1 = add.i32 %0, %2\n}", `7:20: %2 is not known here`},
		{head + "  %1 = add.f32 %0, 1\n}", `7:16: expected a value of type f32, found one of type i32`},
		{head + "  %1 = add.i32 %0, 1.5\n}", `7:20: expected a value of type i32, found "1.5"`},
		{head + "  %1 = add.i8 1, 128\n}", `7:18: expected a value of type i8, found "128"`},
		{head + "  %1 = add.i32 %0, $0\n}", `7:20: parameter 0 is no size`},
		{head + "  %1 = add.i32 %0, $77\n}", `7:20: parameter 77 is no size`},
		{head + "  %1 = and.f32 1.0, 1.0\n}", `7:8: and: not of f32`},
		{head + "  %1 = sqrt.i32 %0\n}", `7:8: sqrt: not of i32`},
		{head + "  %1 = ult.f32 1.0, 1.0\n}", `7:8: ult: not of f32`},
		{head + "  %1 = narrow.i64.i32 %0\n}", `7:8: narrow: not from i32 to i64`},
		{head + "  %1 = bitcast.i64.i32 %0\n}", `7:8: bitcast: not from i32 to i64`},
		{head + "  add.i32 %0, 1\n}", `7:3: add gives a value, which has no name`},
		{head + "  %1 = barrier\n}", `7:3: barrier gives no value`},
		{head + "  %1 = load.f32 z[%0]\n}", `7:17: no memory z`},
		{head + "  %1 = load.i32 x[%0]\n}", `load of i32 from x of f32`},
		{head + "  %1 = load.f32x3 x[%0]\n}", `7:8: load: 3 elements at once, not 1, 2 or 4`},
		{head + "  store.f32 x[%0], 1.0\n}", `7:3: store: x is only read`},
		{head + "  store.f32x2 y[%0], 1.0\n}", `expected ",", found the end of the line`},
		{head + "  %1 = load.f32x2 x[%0]\n  store.f32 y[%0], %1\n}", `8:22: expected "#" and the number of a result, found the end of the line`},
		{head + "  %1 = load.f32x2 x[%0]\n  store.f32 y[%0], %1#2\n}", `expected the number of a result, 0 to 1, found "2"`},
		{head + "  %1 = shuffle.f64 1.0 ^ 1\n}", `7:8: shuffle: not of f64`},
		{head + "  %1 = shuffle.i32 %0 ^ 32\n}", `expected a number of a lane, 0 to 31, found "32"`},
		{head + "  %1 = load.matrix x[%0]\n}", `7:8: load.matrix: x is not shared`},
		{head + "  copy.async.5 s[%0] from x[%0]\n}", `7:3: copy.async: 5 bytes from x to s`},
		{head + "  %1 = mma.f16.f17 %0\n}", `mma of "f16.f17", which is no format`},
		{head + "  %1 = lt.i32 %0, 5\n  if %1 {\n    %2 = block.x\n  }\n  store.i32 s[%2], 1\n}", `11:15: %2 is not known here`},
		{head + "  if %0 {\n  }\n}", `7:6: expected a value of type i1, found one of type i32`},
		{head + "  %1 = lt.i32 %0, 5\n  %2 = if %1 giving i32 {\n    give 1\n  }\n}", `10:4: expected "else", found the end of the line`},
		{head + "  %1 = lt.i32 %0, 5\n  %2 = if %1 giving i32 {\n  } else {\n    give 1\n  }\n}", `9:3: expected "give", found "}"`},
		{head + "  for %i = 0 to 5 step 1 {\n    %i = block.x\n  }\n}", `8:5: %i is there already`},
		{head + "  %1 = for %i = 0 to 5 step 1 carrying %a: f32 = 0 {\n    give %i\n  }\n}", `8:10: expected a value of type f32, found one of type i32`},
		{head + "  for %i = 0 to 5 step 1 {\n    give 1\n  }\n}", `8:5: expected "}", found "give"`},
		{head + strings.Repeat("  for %i = 0 to 5 step 1 {\n", 200), `8:7: %i is there already`},
		{deep(200), `blocks in more than 100 others`},
	} {
		if _, err := kir.Parse("x.kir", c.text); err == nil || !strings.HasPrefix(err.Error(), "x.kir:") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n%v\nwant %s", c.text, err, c.want)
		}
	}
}

func deep(n int) string {
	b := strings.Builder{}
	b.WriteString("kernel k threads=1 {\n")
	for i := range n {
		b.WriteString("for %" + strings.Repeat("i", i+1) + " = 0 to 1 step 1 {\n")
	}
	return b.String()
}

// Verify finds what no text can have: values of other blocks and of other kernels.
func TestVerify(t *testing.T) {
	for name, break_ := range map[string]func(b *kir.Builder, inner kir.Value){
		"a value of load is used where it is not known": func(b *kir.Builder, inner kir.Value) {
			b.K.Body.Nodes[len(b.K.Body.Nodes)-1].Args[0] = inner
		},
		"memory z is not the kernel's": func(b *kir.Builder, _ kir.Value) {
			b.Load(&kir.Mem{Name: "z", Elem: kir.F32}, b.ThreadX())
		},
		"parameter 7 is no size": func(b *kir.Builder, _ kir.Value) {
			b.K.Body.Nodes[len(b.K.Body.Nodes)-1].Args[0] = &kir.Node{Op: kir.Scalar, Type: kir.I32, Int: 7}
		},
		"2000 threads in a block": func(b *kir.Builder, _ kir.Value) { b.K.Threads = 2000 },
		"y is only read":          func(b *kir.Builder, _ kir.Value) { b.K.Params[1].Mem.Writes = false },
	} {
		b := kir.New("k", 32)
		x, y := b.Buffer("x", kir.I32, false), b.Buffer("y", kir.I32, true)
		var inner kir.Value
		b.When(b.Lt(b.ThreadX(), b.I32(4)), func() { inner = b.Load(x, b.ThreadX()) })
		b.Store(y, b.ThreadX(), b.ThreadX())
		if err := kir.Verify(b.K); err != nil {
			t.Fatal(err)
		}
		break_(b, inner)
		if err := kir.Verify(b.K); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

// No text makes the parser panic. A kernel that is read is printed as text that is read as the same one, and lowered without a panic.
func FuzzParse(f *testing.F) {
	f.Add(everything(f))
	f.Add("kernel k threads=32 {\n  symbol N min 2 max 3*M of M, K\n  param 0: i32 = N // 2\n  %0 = add.i1 1, 0\n}")
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "lit-tests", "gpu", "*.ir"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "\nkernel ") {
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		ks, err := kir.ParseAll("x.kir", text)
		if err != nil {
			return
		}
		for _, k := range ks {
			if err := kir.Verify(k); err != nil {
				t.Fatalf("%v\n%s", err, k)
			}
			printed := k.String()
			again, err := kir.Parse("x.kir", printed)
			if err != nil {
				t.Fatalf("%v\n%s", err, printed)
			}
			if again.String() != printed {
				t.Fatalf("%s\nis read as\n%s", printed, again)
			}
			llvm.Lower(k)
			ptx.Print(k, ptx.Options{}) // an error is right where PTX has no such instruction
		}
	})
}
