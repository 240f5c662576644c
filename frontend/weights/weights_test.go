package weights

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
)

func TestStateDicts(t *testing.T) {
	first := map[string]float64{}
	for _, f := range []struct{ file, key string }{{"state.pt", ""}, {"checkpoint.pt", ""}, {"checkpoint.pt", "model"}, {"legacy.pt", ""}} {
		s, err := Load("testdata/"+f.file, f.key)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := strings.Join(s.Names, " "); got != "0.weight 0.bias 1.weight 1.bias 1.running_mean 1.running_var 1.num_batches_tracked" {
			t.Errorf("%s: %s", f.file, got)
		}
		w, _ := s.Get("0.weight")
		v := w.Float64s()
		if len(v) != 6 {
			t.Fatalf("%s: %v", f.file, v)
		}
		first[f.file] = v[0]
	}
	if first["state.pt"] != first["legacy.pt"] || first["state.pt"] == 0 {
		t.Errorf("the files differ: %v", first)
	}
	if _, err := Load("testdata/checkpoint.pt", "optimizer"); err == nil {
		t.Error("a key that is not there is found")
	}
}

func safetensors(header, body string) []byte {
	return append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...), body...)
}

func TestSafetensors(t *testing.T) {
	s, err := Read(safetensors(`{"__metadata__":{"format":"pt"},"b":{"dtype":"I8","shape":[2],"data_offsets":[4,6]},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, "\x00\x00\x80\x3f\x05\x06"), "m", "")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := s.Get("a")
	if strings.Join(s.Names, " ") != "a b" || a.Float64s()[0] != 1 {
		t.Errorf("%v %v", s.Names, a)
	}
	for _, bad := range []string{
		`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}`,
		`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`,
		`{"a":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,4]}}`,
		`{"a":{"dtype":"X","shape":[1],"data_offsets":[0,4]}}`,
		`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`,
		`{"a":`,
	} {
		if _, err := Read(safetensors(bad, "\x00\x00\x80\x3f"), "m", ""); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestAttach(t *testing.T) {
	s, err := Load("testdata/state.pt", "")
	if err != nil {
		t.Fatal(err)
	}
	m, err := ssa.Parse(`graph(%self : __torch__.M, %x : Tensor, %1.weight : Float(3)):
  %l : __torch__.L = prim::GetAttr[name="0"](%self)
  %w : Tensor = prim::GetAttr[name="weight"](%l)
  %self.1.bias.1 : Float(3) = prim::Constant[value=<Tensor>]()
  %y : Tensor = aten::linear(%x, %w, %1.weight)
  return (%y, %self.1.bias.1)`, "t")
	if err != nil {
		t.Fatal(err)
	}
	unused, err := Attach(m, s)
	if err != nil {
		t.Fatal(err)
	}
	if len(unused) != 4 || len(m.Main().Body.Params) != 2 || m.Root == nil {
		t.Errorf("unused %v in\n%s", unused, ssa.Print(m))
	}
	if err := ssa.Verify(m); err != nil {
		t.Error(err)
	}
	bad, err := ssa.Parse("graph(%0.weight : Float(7)):\n  return (%0.weight)", "t")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Attach(bad, s); err == nil {
		t.Error("a weight of another shape is attached")
	}
}

func FuzzRead(f *testing.F) {
	for _, n := range []string{"state.pt", "checkpoint.pt", "legacy.pt"} {
		data, err := os.ReadFile("testdata/" + n)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(safetensors(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, "\x00\x00\x80\x3f"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Read(data, "fuzz", "")
		if err != nil {
			return
		}
		for _, n := range s.Names {
			x, _ := s.Get(n)
			if err := x.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
