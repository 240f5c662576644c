package export

import (
	"archive/zip"
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton/frontend/spec"
)

// asserting is an archive of a program on x of sizes (s77, 4) that asserts conditions and gives x back; u0 is the
// value of an input n.
func asserting(t *testing.T, guards []string, ranges string, conditions ...string) []byte {
	const sizes = `{"dtype": 7, "sizes": [{"as_expr": {"expr_str": "Symbol('s77', positive=True, integer=True)"}}, {"as_int": 4}], "strides": [{"as_int": 4}, {"as_int": 1}], "storage_offset": {"as_int": 0}, "layout": 7}`
	const scalar = `{"dtype": 5, "sizes": [], "strides": [], "storage_offset": {"as_int": 0}, "layout": 7}`
	nodes := []string{`{"target": "torch.ops.aten.item.default", "inputs": [{"name": "self", "arg": {"as_tensor": {"name": "n"}}}], "outputs": [{"as_sym_int": {"as_name": "item"}}], "metadata": {}}`}
	for _, c := range conditions {
		nodes = append(nodes, fmt.Sprintf(`{"target": "torch.ops.aten._assert_scalar.default", "inputs": [{"name": "self", "arg": {"as_bool": true}}, `+
			`{"name": "assert_msg", "arg": {"as_string": "%s"}}], "outputs": [], "metadata": {"stack_trace": "File \"model.py\", line 3, in forward\n    check(x)"}}`, c))
	}
	program := fmt.Sprintf(`{"graph_module": {"graph": {"inputs": [{"as_tensor": {"name": "x"}}, {"as_tensor": {"name": "n"}}], "outputs": [{"as_tensor": {"name": "x"}}], "nodes": [%s], `+
		`"tensor_values": {"x": %s, "n": %s}, "sym_int_values": {"item": {"as_expr": {"expr_str": "Symbol('u0', integer=True)"}}}}, `+
		`"signature": {"input_specs": [{"user_input": {"arg": {"as_tensor": {"name": "x"}}}}, {"user_input": {"arg": {"as_tensor": {"name": "n"}}}}], "output_specs": [{"user_output": {"arg": {"as_tensor": {"name": "x"}}}}]}, `+
		`"module_call_graph": [{"fqn": "", "signature": {"in_spec": "[1, {\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": [{\"type\": \"builtins.tuple\", \"context\": \"null\", \"children_spec\": `+
		`[{\"type\": null, \"context\": null, \"children_spec\": []}, {\"type\": null, \"context\": null, \"children_spec\": []}]}, {\"type\": \"builtins.dict\", \"context\": \"[]\", \"children_spec\": []}]}]", "out_spec": "", "forward_arg_names": ["x", "n"]}}]}, `+
		`"range_constraints": {%s}, "schema_version": {"major": 8, "minor": 20}, "verifiers": ["TRAINING"], "torch_version": "2.15.0", "guards_code": [%s]}`,
		strings.Join(nodes, ", "), sizes, scalar, ranges, `"`+strings.Join(guards, `", "`)+`"`)
	return pack(t, zip.Store, []string{"m/models/model.json", "m/archive_format"}, map[string][]byte{"m/models/model.json": []byte(program), "m/archive_format": []byte("pt2")})
}

func TestAssertions(t *testing.T) {
	const run = "Runtime assertion failed for expression %s on node 'le_1'"
	tests := []struct {
		condition, ranges, input string
		want                     string // what is read has it, or has not if it begins with "no "
	}{
		{fmt.Sprintf(run, "u0 <= s77"), "", "", "assertions:\n  u0 <= s77, where u0 is item\n"},
		{fmt.Sprintf(run, "u0 <= s77"), "", "x:f32[N,4]", "assertions:\n  u0 <= N, where u0 is item\n"},
		{fmt.Sprintf(run, "u0 <= s77"), "", "x:f32[2*N,4]", "assertions:\n  u0 <= 2 * N, where u0 is item\n"},
		{fmt.Sprintf(run, "u0 >= 5"), `"u0": {"min_val": 5, "max_val": null}`, "", "assertions:\n  u0 >= 5, where u0 is item\n"}, // the range is from the assertion
		{fmt.Sprintf(run, "Ne(u0, 3)"), "", "", "assertions:\n  u0 != 3, where u0 is item\n"},
		{fmt.Sprintf(run, "Eq(Mod(s77, 2), 0)"), "", "", "assertions:\n  Mod(s77, 2) == 0\n"},
		{fmt.Sprintf(run, "Eq(Mod(s77, 2), 0)"), "", "x:f32[6,4]", "no assertions"},
		{fmt.Sprintf(run, "Eq(Mod(s77, 2), 0)"), "", "x:f32[7,4]", "model.py:3: torch.ops.aten._assert_scalar.default: the program asserts Mod(7, 2) == 0, and the inputs given do not satisfy it"},
		{fmt.Sprintf(run, "s77 <= 8"), "", "x:f32[9,4]", "the program asserts 9 <= 8"},
		{fmt.Sprintf(run, "s77 <= 8"), "", "x:f32[8,4]", "no assertions"},
		{fmt.Sprintf(run, "s77 >= 3"), `"s77": {"min_val": 3, "max_val": null}`, "", "no assertions"}, // it is the range
		{"my own words", "", "", "assertions:\n  my own words\n"},
	}
	for _, tt := range tests {
		var o Options
		if tt.input != "" {
			in, err := spec.Parse(tt.input)
			if err != nil {
				t.Fatal(err)
			}
			o.Inputs = []spec.Input{in}
		}
		got := describe(asserting(t, nil, tt.ranges, tt.condition), "m.pt2", o)
		want, not := strings.CutPrefix(tt.want, "no ")
		if strings.Contains(got, want) == not || not && !strings.HasPrefix(got, "graph(") {
			t.Errorf("%s with %q: read %s\nwant %s", tt.condition, tt.input, got, tt.want)
		}
	}
}

func TestGuardsAgainstSpecs(t *testing.T) {
	const axis = "L['x'].size()[0]"
	tests := []struct{ guard, input, want string }{
		{axis + " % 2 == 0", "", "guards:\n  x.shape[0] % 2 == 0\n"},
		{axis + " % 2 == 0", "x:f32[6,4]", "graph(%x : Float(6, 4)"},
		{axis + " % 2 == 0", "x:f32[7,4]", "the inputs must satisfy x.shape[0] % 2 == 0"},
		{axis + " <= 8", "", "range_constraints:\n  s77 <= 8\n"},
		{axis + " <= 8", "x:f32[9,4]", "axis 0 of input x must be at most 8 in this program, not 9"},
		{"4 <= " + axis + " <= 8", "x:f32[3,4]", "axis 0 of input x must be 4 to 8 in this program, not 3"},
		{axis + " == 7", "", "axis 0 of input x is always 7 in this program"},
		{axis + " == 7", "", "graph(%x : Float(7, 4)"},
		{axis + " == 7", "x:f32[6,4]", "axis 0 of input x is 7 in this program, not 6"},
		{axis + " == L['n']", "x:f32[6,4]", "the program holds for inputs with x.shape[0] == n"},
		{axis + " % 2 == 0 or " + axis + " == 3", "x:f32[5,4]", "the inputs must satisfy x.shape[0] % 2 == 0 or x.shape[0] == 3"},
		{axis + " % 2 == 0 or " + axis + " == 3", "x:f32[3,4]", "graph(%x : Float(3, 4)"},
		{"not Eq(" + axis + ", 5)", "x:f32[5,4]", "the inputs must satisfy not x.shape[0] == 5"},
		{axis + " != 1", "x:f32[1,4]", "the program was exported for x.shape[0] != 1, which the inputs given do not satisfy"},
		{axis + " // 4 == 1", "x:f32[8,4]", "the inputs must satisfy x.shape[0] // 4 == 1"},
		{axis + " // 4 == 1", "x:f32[7,4]", "graph(%x : Float(7, 4)"},
		{"__import__('os')", "", "the program holds for inputs with __import__('os')"},
		{axis + " === 1", "", "a guard is not understood"},
	}
	for _, tt := range tests {
		var o Options
		if tt.input != "" {
			in, err := spec.Parse(tt.input)
			if err != nil {
				t.Fatal(err)
			}
			o.Inputs = []spec.Input{in}
		}
		if got := describe(asserting(t, []string{tt.guard}, ""), "m.pt2", o); !strings.Contains(got, tt.want) {
			t.Errorf("%s with %q: read %s\nwant %s", tt.guard, tt.input, got, tt.want)
		}
	}
}
