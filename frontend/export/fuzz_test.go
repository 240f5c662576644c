package export

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/ssa"
)

var fuzzLimits = archive.Limits{Records: 1000, Inflated: 1 << 24, Text: 1 << 22}

// FuzzRead gives any bytes to the reader.
func FuzzRead(f *testing.F) {
	for _, data := range fixtures(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { read(t, data) })
}

// FuzzProgram gives any program to the reader, in an archive that is right otherwise.
func FuzzProgram(f *testing.F) {
	for name, data := range fixtures(f) {
		_, content := records(f, data)
		if p := content[name+"/models/model.json"]; p != nil {
			f.Add(p)
		}
	}
	names, content := records(f, fixtures(f)["basic"])
	f.Fuzz(func(t *testing.T, program []byte) {
		c := map[string][]byte{}
		for k, v := range content {
			c[k] = v
		}
		c["basic/models/model.json"] = program
		read(t, pack(t, zip.Store, names, c))
	})
}

func read(t *testing.T, data []byte) {
	m, err := Read(data, "fuzz.pt2", Options{Limits: &fuzzLimits, MaxOps: 10000})
	if err != nil {
		if s := err.Error(); s == "" || strings.Contains(s, "%!") {
			t.Errorf("message %q", s)
		}
		return
	}
	if err := ssa.Verify(m); err != nil {
		t.Error(err)
	}
}

// FuzzExpr gives any text to the parser of expressions.
func FuzzExpr(f *testing.F) {
	for _, s := range []string{"Add(Symbol('s0', positive=True), Integer(1))", "s0**2 // (s1 - 3)", "L['x'].size()[0] % 2 == 0 and not a < b", "Mul(Rational(1, 2), s0)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		newSymbols(func(string, ...any) {}).size(symInt{expr: s})
		if e, err := parseExpr(s); err == nil {
			_ = e.str()
		}
	})
}

// chain is an archive of a program of n additions.
func chain(b *testing.B, n int) []byte {
	const size = `{"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)", "hint": {"as_int": 4}}}`
	meta := `{"dtype": 7, "sizes": [` + size + `, {"as_int": 4}], "requires_grad": false, "device": {"type": "cpu", "index": null}, "strides": [{"as_int": 4}, {"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}`
	var nodes, values bytes.Buffer
	values.WriteString(`"x": ` + meta)
	last := "x"
	for i := range n {
		if i > 0 {
			nodes.WriteString(", ")
		}
		name := fmt.Sprintf("add_%d", i)
		fmt.Fprintf(&nodes, `{"target": "torch.ops.aten.add.Tensor", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "%s"}}, "kind": 1}, {"name": "other", "arg": {"as_tensor": {"name": "x"}}, "kind": 1}], "outputs": [{"as_tensor": {"name": "%s"}}], `+
			`"metadata": {"stack_trace": "File \"model.py\", line %d, in forward\n    y = y + x", "nn_module_stack": "L__self__,,model.Model;L__self__a%d,layers.%d,model.Layer", "torch_fn": "add_%d;method_descriptor.add"}, "is_hop_single_tensor_return": null, "name": "%s"}`,
			last, name, i%500, i%100, i%100, i, name)
		fmt.Fprintf(&values, `, "%s": %s`, name, meta)
		last = name
	}
	program := fmt.Sprintf(`{"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "x"}}], "outputs": [{"as_tensor": {"name": "%s"}}], "nodes": [%s], "tensor_values": {%s}, "sym_int_values": {}, "is_single_tensor_return": false}, `+
		`"signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}], "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "%s"}}}}]}, "module_call_graph": []}, `+
		`"opset_version": {"aten": 10}, "range_constraints": {}, "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"], "torch_version": "2.15.0", "guards_code": []}`,
		last, nodes.String(), values.String(), last)
	content := map[string][]byte{"m/models/model.json": []byte(program), "m/archive_format": []byte("pt2")}
	return pack(b, zip.Store, []string{"m/models/model.json", "m/archive_format"}, content)
}

// BenchmarkRead reads programs of 1,000 to 100,000 calls: the time for a call must not grow.
func BenchmarkRead(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			data := chain(b, n)
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := Read(data, "chain.pt2", Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/call")
		})
	}
}
