package jit

import (
	"archive/zip"
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
)

var update = flag.Bool("update", false, "write the golden files anew")

func fixtures(t testing.TB) []string {
	files, err := filepath.Glob("testdata/*.pt")
	if err != nil || len(files) == 0 {
		t.Fatal("no fixtures: ", err)
	}
	return files
}

// TestGolden reads every fixture, verifies what comes of it, and compares its text.
func TestGolden(t *testing.T) {
	for _, f := range fixtures(t) {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".pt"), func(t *testing.T) {
			m, err := Load(f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := ssa.Verify(m); err != nil {
				t.Fatal(err)
			}
			got := ssa.Print(m)
			again, err := ssa.Parse(got, "printed", m.Dialects...)
			if err != nil {
				t.Fatal(err)
			}
			if ssa.Print(again) != got {
				t.Error("print, parse, print is not a fixpoint")
			}
			golden := strings.TrimSuffix(f, ".pt") + ".ir"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; run with -update and look at the change:\n%s", golden, firstDifference(got, string(want)))
			}
		})
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range x {
		if i >= len(y) || x[i] != y[i] {
			w := ""
			if i < len(y) {
				w = y[i]
			}
			return "got  " + x[i] + "\nwant " + w
		}
	}
	return "the text ends early"
}

// rewritten copies an archive with some records changed; an empty value drops one.
func rewritten(t testing.TB, file string, method uint16, change map[string]string) []byte {
	t.Helper()
	r, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	put := func(name string, data []byte) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	prefix, _, _ := strings.Cut(r.File[0].Name, "/")
	done := map[string]bool{}
	for _, f := range r.File {
		rc, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(rc)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(f.Name, prefix+"/")
		if v, ok := change[name]; ok {
			done[name] = true
			if v == "" {
				continue
			}
			data = []byte(v)
		}
		put(f.Name, data)
	}
	for name, v := range change {
		if !done[name] && v != "" {
			put(prefix+"/"+name, []byte(v))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRezipped: deflated storages, which cannot be mapped, read the same.
func TestRezipped(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		m, err := Read(rewritten(t, "testdata/storages.pt", method, nil), "rezipped.pt", Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile("testdata/storages.ir")
		if err != nil {
			t.Fatal(err)
		}
		if ssa.Print(m) != string(want) {
			t.Error("another graph")
		}
		v, _ := m.Root.Get("transposed")
		if got := v.Tensor.Float64s(); len(got) != 24 || got[1] != 4 {
			t.Errorf("transposed is %v", got)
		}
	}
}

// TestOldVersion: below version 4 division of integers truncated, below 5 full made floats.
func TestOldVersion(t *testing.T) {
	m, err := Read(rewritten(t, "testdata/versions.pt", zip.Store, map[string]string{".data/version": "", "version": "3\n"}), "old.pt", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ssa.Verify(m); err != nil {
		t.Fatal(err)
	}
	s := ssa.Print(m)
	if strings.Count(s, "aten::is_floating_point") != 3 || !strings.Contains(s, `value="trunc"`) {
		t.Errorf("division is not upgraded:\n%s", s)
	}
	if !strings.Contains(s, "aten::Float(") {
		t.Errorf("full is not upgraded:\n%s", s)
	}
}

// TestFirstVersion: imports, no types for self, a version inside the code.
func TestFirstVersion(t *testing.T) {
	code := `op_version_set = 1
import __torch__.torch
class Versions(Module):
  __parameters__ = []
  training : bool
  def forward(self,
    x: Tensor,
    y: Optional[Tensor]=None) -> Tuple[Tensor, int]:
    z = ops.prim.unchecked_unwrap_optional(y)
    n = 0
    for i in range((ops.prim.shape(x))[0]):
      n = torch.add(n, i)
    return (torch.add(x, z, alpha=1), n)
`
	m, err := Read(rewritten(t, "testdata/versions.pt", zip.Store, map[string]string{
		".data/version": "", "version": "1", "byteorder": "", "code/__torch__.py": code, "code/__torch__.py.debug_pkl": ""}), "v1.pt", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ssa.Verify(m); err != nil {
		t.Fatal(err)
	}
	if s := ssa.Print(m); !strings.Contains(s, "prim::Loop") || !strings.Contains(s, "aten::size(") || !strings.Contains(s, "code/__torch__.py:12:") {
		t.Errorf("got\n%s", s)
	}
}

func TestErrors(t *testing.T) {
	const code = "code/__torch__.py"
	class := "class Versions(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n  def forward(self: __torch__.Versions, x: Tensor) -> Tensor:\n"
	evil := "\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R."
	for _, c := range []struct {
		name   string
		change map[string]string
		want   string
	}{
		{"syntax", map[string]string{code: class + "    return (x\n"}, "m.pt: code/__torch__.py:7: "},
		{"operator", map[string]string{code: class + "    return torch.no_such(x)\n"}, "m.pt: code/__torch__.py:6: aten::no_such"},
		{"overload", map[string]string{code: class + "    return torch.dropout(x, 1, True)\n"}, "fits no overload"},
		{"name", map[string]string{code: class + "    return y\n"}, "y is not defined here"},
		{"attribute", map[string]string{code: class + "    return self.z\n"}, "has no attribute z"},
		{"early return", map[string]string{code: class + "    if torch.__is__(x, x):\n      return x\n    else:\n      pass\n    return x\n"}, "return before the end"},
		{"type", map[string]string{code: class + "    return 1\n"}, "the function returns Tensor, not int"},
		{"method", map[string]string{code: strings.Replace(class, "forward", "backward", 1) + "    return x\n"}, "no method forward; name one of: backward"},
		{"version", map[string]string{".data/version": "x"}, "is not a version"},
		{"pickle", map[string]string{"data.pkl": "\x80\x02}"}, "m.pt: data.pkl: byte 3: the pickle ends without STOP"},
		{"unsafe", map[string]string{"data.pkl": evil}, "os.system, which TorchScript never writes"},
		{"missing class", map[string]string{code: "class A(Module):\n  pass\n"}, "the code of class"},
		{"weights", map[string]string{"constants.pkl": "", code: "", code + ".debug_pkl": ""}, "torch.save wrote it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(rewritten(t, "testdata/versions.pt", zip.Store, c.change), "m.pt", Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestTruncated: a file cut short anywhere is an error, never a panic.
func TestTruncated(t *testing.T) {
	data, err := os.ReadFile("testdata/traced.pt")
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(data); n += 97 {
		if _, err := Read(data[:n], "cut.pt", Options{}); err == nil {
			t.Errorf("%d bytes are enough", n)
		}
	}
}

// TestPlaces: ops carry the user's lines.
func TestPlaces(t *testing.T) {
	m, err := Load("testdata/traced.pt", Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range m.Funcs {
		for o := range f.Body.AllOps() {
			fr := m.Locs.Frame(o.Loc)
			if strings.HasSuffix(fr.File, "jit_fixtures.py") && fr.Line > 0 {
				n++
			} else if fr.File == "" {
				t.Errorf("%s has no place", o.Kind)
			}
		}
	}
	if n < 5 {
		t.Errorf("%d ops are at lines of the script", n)
	}
	if len(m.Inputs) == 1 && m.Inputs[0].Type.String() != "Float(1, 1, 8, 8)" {
		t.Errorf("the example input is %v", m.Inputs)
	}
}

// FuzzArchive mutates whole files.
func FuzzArchive(f *testing.F) {
	for _, file := range fixtures(f) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { read(t, data) })
}

// FuzzRecords mutates the records of an archive, behind checksums and compression.
func FuzzRecords(f *testing.F) {
	for _, file := range fixtures(f) {
		r, err := zip.OpenReader(file)
		if err != nil {
			f.Fatal(err)
		}
		rec := map[string][]byte{}
		for _, zf := range r.File {
			rc, err := zf.Open()
			if err != nil {
				f.Fatal(err)
			}
			b, err := io.ReadAll(rc)
			if err != nil {
				f.Fatal(err)
			}
			_, name, _ := strings.Cut(zf.Name, "/")
			rec[name] = b
		}
		r.Close()
		f.Add(rec["data.pkl"], rec["constants.pkl"], string(rec["code/__torch__.py"]), rec["code/__torch__.py.debug_pkl"], "3")
	}
	f.Fuzz(func(t *testing.T, data, constants []byte, code string, debug []byte, version string) {
		var out bytes.Buffer
		w := zip.NewWriter(&out)
		for name, b := range map[string][]byte{"data.pkl": data, "constants.pkl": constants, "code/__torch__.py": []byte(code),
			"code/__torch__.py.debug_pkl": debug, "version": []byte(version), "data/0": make([]byte, 512), "data/1": make([]byte, 64)} {
			fw, err := w.CreateHeader(&zip.FileHeader{Name: "m/" + name, Method: zip.Store})
			if err != nil {
				return
			}
			_, _ = fw.Write(b) // a Buffer does not fail
		}
		if w.Close() == nil {
			read(t, out.Bytes())
		}
	})
}

// read reads what a fuzzer made: it may fail, and what it gives must be valid.
func read(t *testing.T, data []byte) {
	if len(data) > 1<<20 {
		return
	}
	m, err := Read(data, "fuzz.pt", Options{MaxOps: 1 << 16})
	if err != nil {
		return
	}
	if err := ssa.Verify(m); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkRead(b *testing.B) {
	data, err := os.ReadFile("testdata/objects.pt")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := Read(data, "m.pt", Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLarge compiles one function of 20,000 calls.
func BenchmarkLarge(b *testing.B) {
	var code strings.Builder
	code.WriteString("class Versions(Module):\n  training : bool\n  def forward(self: __torch__.Versions, x: Tensor) -> Tensor:\n    x0 = x\n")
	for range 10000 {
		code.WriteString("    y = torch.add(x0, 1)\n    x0 = torch.relu(y)\n")
	}
	code.WriteString("    return x0\n")
	data := rewritten(b, "testdata/versions.pt", zip.Store, map[string]string{"code/__torch__.py": code.String(), "code/__torch__.py.debug_pkl": ""})
	b.ReportAllocs()
	b.SetBytes(int64(code.Len()))
	for b.Loop() {
		if _, err := Read(data, "m.pt", Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
