package export

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
)

var update = flag.Bool("update", false, "write what is read from the archives in testdata")

// describe gives all that is read from an archive.
func describe(data []byte, name string, o Options) string {
	var b strings.Builder
	var warnings []string
	o.Warn = func(s string) { warnings = append(warnings, s) }
	m, err := Read(data, name, o)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	if err := ssa.Verify(m); err != nil {
		return "invalid: " + err.Error() + "\n"
	}
	b.WriteString(ssa.Print(m))
	fmt.Fprintf(&b, "outputs: %s\n", strings.Join(m.Main().OutputNames, ", "))
	for _, kv := range m.Metadata {
		fmt.Fprintf(&b, "%s:\n  %s\n", kv.Key, strings.ReplaceAll(strings.TrimSpace(kv.Value), "\n", "\n  "))
	}
	for _, w := range warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}

func fixtures(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.pt2")
	if err != nil || len(files) == 0 {
		t.Fatal("no archives in testdata", err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(f), ".pt2")] = data
	}
	return out
}

func TestArchives(t *testing.T) {
	for name, data := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			got := describe(data, name+".pt2", Options{})
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("read:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestPrintIsFixpoint(t *testing.T) {
	for name, data := range fixtures(t) {
		m, err := Read(data, name, Options{})
		if err != nil {
			continue
		}
		first := ssa.Print(m)
		again, err := ssa.Parse(first, name, m.Dialects...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if second := ssa.Print(again); second != first {
			t.Errorf("%s: printed\n%s\nthen\n%s", name, first, second)
		}
	}
}

// records reads all records of a zip file in order.
func records(t testing.TB, data []byte) (names []string, content map[string][]byte) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	content = map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name)
		content[f.Name] = b
	}
	return names, content
}

func pack(t testing.TB, method uint16, names []string, content map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, n := range names {
		w, err := z.CreateHeader(&zip.FileHeader{Name: n, Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content[n]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRepacked(t *testing.T) {
	data := fixtures(t)["basic"]
	want := describe(data, "basic.pt2", Options{})
	names, content := records(t, data)
	if got := describe(pack(t, zip.Deflate, names, content), "basic.pt2", Options{}); got != want {
		t.Errorf("deflated: %s", got)
	}
	var reversed []string
	for i := range names {
		reversed = append(reversed, names[len(names)-1-i])
	}
	if got := describe(pack(t, zip.Store, reversed, content), "basic.pt2", Options{}); got != want {
		t.Errorf("reversed: %s", got)
	}
}

func TestEdited(t *testing.T) {
	const program = "basic/models/model.json"
	names, _ := records(t, fixtures(t)["basic"])
	deep := strings.Repeat("Add(", 300) + "1" + strings.Repeat(", 1)", 300)
	tests := []struct {
		name, record, old, new string
		want                   string // part of the error or remark; empty for no change
	}{
		{"unknown key", program, `"target": "torch.ops.aten.relu.default"`, `"later": {"a": [1, {"b": null}]}, "target": "torch.ops.aten.relu.default"`, ""},
		{"unknown tag", program, `{"as_tensor": {"name": "p_fc_weight"}}, "kind"`, `{"as_hologram": 1}, "kind"`, `unknown kind of argument "as_hologram"`},
		{"two tags", program, `{"as_tensor": {"name": "p_fc_weight"}}, "kind"`, `{"as_int": 1, "as_bool": true}, "kind"`, `two tags`},
		{"newer major", program, `"major": 8`, `"major": 9`, "the schema version is 9.20; 8 is the newest that is known"},
		{"newer major with an unknown tag", program, `"as_expr"`, `"as_poem"`, `unknown tag "as_poem"`},
		{"unknown value", program, `{"as_tensor": {"name": "p_fc_weight"}}, "kind"`, `{"as_tensor": {"name": "nobody"}}, "kind"`, `model.py:14: torch.ops.aten.linear.default (linear): the value "nobody" is not defined`},
		{"unknown argument", program, `"name": "bias"`, `"name": "bios"`, `has no argument "bios"`},
		{"unknown operator", program, `torch.ops.aten.relu.default`, `torch.ops.aten.relu.newer`, `aten::relu(`},
		{"deep expression", program, `Symbol('s77', positive=True, integer=True)`, deep, "nested too deeply"},
		{"python in an expression", program, `Symbol('s77', positive=True, integer=True)`, `__import__('os').system('true')`, "Float(e0, 4)"},
		{"plain expression of 2.5", program, `Symbol('s77', positive=True, integer=True)`, `s77`, ""},
		{"bare infinity of 2.5", program, `"max_val": 16`, `"max_val": Infinity`, "2 <= s77\n"},
		{"none of 2.5", program, `"name": "bias", "arg": {"as_tensor": {"name": "p_fc_bias"}}`, `"name": "bias", "arg": {"as_none": []}`, "aten::linear(%x, %fc.weight, %0)"},
		{"schema of 2.2", program, `{"major": 8, "minor": 20}`, `2`, ""},
		{"range", program, `"max_val": 16`, `"max_val": Infinity`, "2 <= s77\n"},
		{"zero-byte weight", "basic/data/weights/weight_0", "*", "", "are not in the file"},
		{"truncated weight", "basic/data/weights/weight_0", "*", "12345678", "the storage has 2"},
		{"odd weight", "basic/data/weights/weight_0", "*", "123", "no whole elements"},
		{"big-endian", "basic/byteorder", "little", "big", "little-endian"},
		{"cut program", program, "*", `{"graph_module": {"graph": {"inputs": [`, "is the file complete"},
		{"config of another shape", "basic/data/weights/model_weights_config.json", `"sizes": [{"as_int": 3}, {"as_int": 4}]`, `"sizes": [{"as_int": 300000000000}, {"as_int": 400000000000}]`, "fc.weight"},
		{"negative stride", "basic/data/weights/model_weights_config.json", `"strides": [{"as_int": 4}`, `"strides": [{"as_int": -4}`, "not a plain number"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, content := records(t, fixtures(t)["basic"])
			before := string(content[tt.record])
			after := tt.new
			if tt.old != "*" {
				after = strings.ReplaceAll(before, tt.old, tt.new)
				if after == before {
					t.Fatalf("%q is not in the record", tt.old)
				}
			}
			content[tt.record] = []byte(after)
			got := describe(pack(t, zip.Store, names, content), "basic.pt2", Options{})
			if tt.want == "" {
				if want := describe(fixtures(t)["basic"], "basic.pt2", Options{}); got != want {
					t.Errorf("read %s", got)
				}
			} else if !strings.Contains(got, tt.want) {
				t.Errorf("read %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestNarrow(t *testing.T) {
	all := fixtures(t)
	// several specs are separated by ";"
	tests := []struct{ file, input, want string }{
		{"basic", "x:f32[N,4]", "graph(%x : Float(N, 4))"},
		{"basic", "x:f32[N,4]", "range_constraints:\n  2 <= N <= 16\n"},
		{"basic", "x:f32[N,C]", "axis 1 of input x is always 4 in this program; for a dynamic one export the program again"},
		{"basic", "x:f32[N,C]", "graph(%x : Float(N, 4))"},
		{"basic", "x:f32[N,N]", "graph(%x : Float(4, 4))"},
		{"basic", "x:f32[1,4]", "axis 0 of input x is 1, and the program was exported for 2 and more"},
		{"basic", "inp:f32[7,4]", "graph(%x : Float(7, 4))"},
		{"basic", "inp:f32[7,4]", `the program has no input "inp"; the spec is taken for x`},
		{"basic", "inp:f32[20,4]", "axis 0 of input x must be 2 to 16 in this program, not 20"},
		{"basic", "inp:f32[7,4];y:f32[7]", `the program has no input "inp" (it has: x)`},
		{"basic", "x:f32[7,4];y:none", "graph(%x : Float(7, 4))"},
		{"basic", "x:tuple(f32[7,4])", "input x is no tuple in this program"},
		{"basic", "x:f32[7,4]", "graph(%x : Float(7, 4))"},
		{"basic", "x:f32[20,4]", "axis 0 of input x must be 2 to 16 in this program, not 20"},
		{"basic", "x:f64[2,4]", "input x is Float in this program, not Double"},
		{"basic", "x:f32[2,5]", "axis 1 of input x is 4 in this program, not 5"},
		{"basic", "x:f32[4]", "input x has 2 axes in this program, not 1"},
		{"dynamic", "x:f32[N,8]", "graph(%x : Float(N, 8),\n      %y : Float(s17, 4))"},
		{"dynamic", "x:f32[N,7]", "axis 1 of input x is 2*s39 in this program, which cannot be 7"},
		{"dynamic", "y:f32[2,A]", "graph(%x : Float(s77, 2*A),\n      %y : Float(2, A))"},
		{"dynamic", "y:f32[2,A]", "2 <= s77\n  2 <= A <= 50"},
		{"dynamic", "x:f32[N,2*W]", "graph(%x : Float(N, 2*W),\n      %y : Float(s17, W))"},
		{"dynamic", "x:f32[N,W]", "axis 1 of input x is 2*s39 in this program"},
		{"dynamic", "x:f32[N,200]", "axis 1 of input y must be 2 to 50 in this program, not 100"},
		{"dynamic", "y:f32[N,80]", "axis 1 of input y must be 2 to 50 in this program, not 80"},
		{"dynamic", "y:f32[N,4];x:f32[N,8]", "graph(%x : Float(N, 8),\n      %y : Float(N, 4))"},
		{"dynamic", "y:f32[N,4];x:f32[N,10]", "axis 1 of input x is 8 and cannot be 10 as well"},
		{"dynamic", "y:f32[N,M];x:f32[M,M]", "axis 1 of input x is 2*M in this program; that it is M is not used"},
		{"dynamic", "x:f32[s39,A]", "graph(%x : Float(s39, 2*s39_1),\n      %y : Float(s17, s39_1))"},
		{"dynamic", "a:f32[2,8];b:f32[N,4]", "graph(%x : Float(2, 8),\n      %y : Float(N, 4))"},
		{"dynamic", "y:f32[N,4];b:f32[2,8]", "graph(%x : Float(2, 8),\n      %y : Float(N, 4))"},
		{"pytree_io", "d:dict(a=f32[2],none=none)", "graph(%d_a : Float(2)"},
		{"pytree_io", "d:dict(a=f32[3],none=none)", "axis 0 of input d_a is 2 in this program, not 3"},
		{"pytree_io", "d:dict(b=f32[2],none=none)", `input d has no part "b" in this program (it has: a, none)`},
		{"pytree_io", "d:dict(a=f32[2])", "input d has 2 parts in this program (d_a, d_none), not 1"},
		{"pytree_io", "d.a:f32[N]", "axis 0 of input d_a is always 2"},
		{"pytree_io", "pair:tuple(f32[2],f64[2])", "input pair_b is Float in this program, not Double"},
		{"pytree_io", "pair:f32[2]", "input pair is made of parts in this program (pair_a, pair_b)"},
		{"pytree_io", "rest:tuple(f64[2])", "input rest_0 is Float in this program, not Double"},
		{"pytree_io", "flag:bool", "graph(%d_a"},
		{"pytree_io", "flag:f32[]", "input flag is the constant True in this program, not a tensor"},
		{"pytree_io", "flag:bool=false", "input flag is True in this program, not False"},
		{"pytree_io", "flag:bool=true", "graph(%d_a"},
	}
	for _, tt := range tests {
		var specs []spec.Input
		for _, text := range strings.Split(tt.input, ";") {
			in, err := spec.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			specs = append(specs, in)
		}
		if got := describe(all[tt.file], tt.file+".pt2", Options{Inputs: specs}); !strings.Contains(got, tt.want) {
			t.Errorf("%s with %s: read %s\nwant %s", tt.file, tt.input, got, tt.want)
		}
	}
}

func TestPrograms(t *testing.T) {
	data := fixtures(t)["two_models"]
	if got := describe(data, "two.pt2", Options{Model: "second"}); !strings.HasPrefix(got, "graph(") {
		t.Errorf("second: %s", got)
	}
	if got := describe(data, "two.pt2", Options{Model: "third"}); !strings.Contains(got, `there is no program "third" (there are: model, second)`) {
		t.Errorf("third: %s", got)
	}
}

func TestMissingWeights(t *testing.T) {
	m, err := Read(fixtures(t)["no_weights"], "m.pt2", Options{NoWeights: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := ssa.Verify(m); err != nil {
		t.Error(err)
	}
}

// Weights that share memory in the program are views of one storage over the file.
func TestStoragesAreShared(t *testing.T) {
	data := fixtures(t)["storages"]
	m, err := Read(data, "m.pt2", Options{})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]ssa.Literal{}
	for o := range m.Main().Body.Ops() {
		if l, ok := o.Attr("value"); ok && l.Kind == ssa.TensorLit {
			byName[o.Results[0].Name] = l
		}
	}
	if _, twice := byName["out.weight"]; twice || byName["emb.weight"].Tensor == nil {
		t.Error("the tied weight is not one constant")
	}
	turned, part := byName["turned"].Tensor, byName["part"].Tensor
	if turned.Storage != part.Storage {
		t.Error("two views of one storage have storages of their own")
	}
	if fmt.Sprint(turned.Shape, turned.Strides, part.Offset) != "[6 4] [1 6] 8" {
		t.Errorf("views %v %v, offset %d", turned.Shape, turned.Strides, part.Offset)
	}
	in := func(b []byte) bool {
		return len(b) > 0 && bytes.Contains(data, b) && cap(b) == len(b)
	}
	if !in(turned.Storage.Bytes()) {
		t.Error("the weight is a copy")
	}
}

// Up to 2.6 the results of cond and its like are one list where they are a tuple.
func TestResultsInList(t *testing.T) {
	var rewrite func(v any) any
	rewrite = func(v any) any {
		switch v := v.(type) {
		case []any:
			for i := range v {
				v[i] = rewrite(v[i])
			}
		case map[string]any:
			for k := range v {
				v[k] = rewrite(v[k])
			}
			if target, ok := v["target"].(string); ok && strings.HasPrefix(target, "torch.ops.higher_order.") {
				var names []any
				for _, o := range v["outputs"].([]any) {
					names = append(names, o.(map[string]any)["as_tensor"])
				}
				v["outputs"] = []any{map[string]any{"as_tensors": names}}
			}
		}
		return v
	}
	for _, name := range []string{"cond", "loops"} {
		data := fixtures(t)[name]
		names, content := records(t, data)
		record := name + "/models/model.json"
		d := json.NewDecoder(bytes.NewReader(content[record]))
		d.UseNumber()
		var program any
		if err := d.Decode(&program); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(rewrite(program))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte(`"outputs":[{"as_tensors":[`)) {
			t.Fatalf("%s has no such call", name)
		}
		content[record] = text
		if got, want := describe(pack(t, zip.Store, names, content), name+".pt2", Options{}), describe(data, name+".pt2", Options{}); got != want {
			t.Errorf("%s: read %s\nwant %s", name, got, want)
		}
	}
}
