package e2e

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/verify"
)

// TestModuleFunctions: fixtures with functions for all modules give the same numbers, to the bit, when they are read again.
func TestModuleFunctions(t *testing.T) {
	for path, want := range map[string]struct {
		spec, function string
	}{
		"torch2.15/convnet.script.pt":   {"x:f32[N,3,18,18]", "torch.nn.modules.container::Sequential"},
		"torch2.15/convnet.pt2":         {"", "torch.nn.modules.container::Sequential"},
		"torch1.13/residual.trace.pt":   {"x:f32[N,4,H,W]", "torch.nn.modules.batchnorm::BatchNorm2d"},
		"torch2.15/attention.script.pt": {"x:f32[N,T,8]", "torch.nn.modules.normalization::LayerNorm"},
		"torch2.15/tied.pt2":            {"", "torch.nn.modules.linear::Linear"},
	} {
		t.Run(path, func(t *testing.T) {
			path := "testdata/fixtures/" + path
			var o options
			if want.spec != "" {
				o = withInputs(t, o, want.spec)
			}
			flat := writtenFrom(t, path, o)
			o.export.Modules = []string{"*"}
			if got := writtenFrom(t, path, o); !bytes.Equal(got, writtenFrom(t, path, o)) {
				t.Error("two runs differ")
			}
			nested := writtenFrom(t, path, o)
			var p onnxpb.ModelProto
			if err := proto.Unmarshal(nested, &p); err != nil {
				t.Fatal(err)
			}
			var have []string
			for _, f := range p.Functions {
				have = append(have, f.GetDomain()+"::"+f.GetName())
			}
			if !slices.Contains(have, want.function) || p.GetIrVersion() < 8 {
				t.Errorf("functions %v, IR version %d", have, p.GetIrVersion())
			}
			for _, set := range recorded(t, path) {
				a, b := outputsOf(t, flat, set), outputsOf(t, nested, set)
				for i := range a {
					if !bytes.Equal(a[i].Tensor.Bytes(), b[i].Tensor.Bytes()) {
						t.Errorf("%s: output %d differs", set.Name, i)
					}
				}
			}
		})
	}
}

func outputsOf(t *testing.T, file []byte, set verify.DataSet) []interp.Value {
	t.Helper()
	m := parsed(t, file)
	feed := map[string]interp.Value{}
	for i, p := range m.Main().Body.Params {
		feed[p.Name] = interp.Of(set.Inputs[i].Tensor)
	}
	return run(t, m, feed)
}

// layers has two modules of one class whose slopes differ, one of which is called twice, and of whose parts one stands
// between those of another.
const layers = `graph(%x : Float(2)):
  %slow : float = prim::Constant[value=0.10000000000000001]()
  %fast : float = prim::Constant[value=0.5]()
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::tanh(%x), scope: a
  %p : Tensor = aten::sigmoid(%x), scope: b
  %b : Tensor = aten::leaky_relu(%a, %slow), scope: a.act
  %q : Tensor = aten::leaky_relu(%p, %fast), scope: b.act
  %c : Tensor = aten::add(%b, %q, %1)
  %d : Tensor = aten::tanh(%c), scope: a
  %e : Tensor = aten::leaky_relu(%d, %slow), scope: a.act
  return (%e)
`

func TestFunctionsOfScopes(t *testing.T) {
	o := options{export: aton.ExportOptions{WriteOptions: aton.WriteOptions{Modules: []string{"*"}}}}
	m, err := aton.LoadBytes([]byte(layers), "layers.ir", o.load)
	if err != nil {
		t.Fatal(err)
	}
	m.Classes = map[string]string{"a": "pkg.Tanh", "b": "pkg.Sigmoid", "a.act": "pkg.act.Leaky", "b.act": "pkg.act.Leaky"}
	var p onnxpb.ModelProto
	if err := proto.Unmarshal(written(t, m, o), &p); err != nil {
		t.Fatal(err)
	}
	var calls, functions []string
	for _, n := range p.Graph.Node {
		calls = append(calls, n.GetOpType())
	}
	for _, f := range p.Functions {
		functions = append(functions, f.GetDomain()+"::"+f.GetName()+"("+strings.Join(f.Attribute, ",")+")")
	}
	if got := strings.Join(functions, " "); got != "pkg.act::Leaky(alpha) pkg::Tanh() pkg::Sigmoid()" {
		t.Errorf("functions %s", got)
	}
	if got := strings.Join(calls, " "); got != "Sigmoid Tanh Add Tanh" {
		t.Errorf("nodes %s", got)
	}
}

// TestNoSuchModule: a module that is not there is an error, with the nearest name.
func TestNoSuchModule(t *testing.T) {
	for wanted, want := range map[string]string{"act": `no operator of the file belongs to a module or class "act"`, "a.atc": `did you mean "a.act"?`} {
		o := options{export: aton.ExportOptions{WriteOptions: aton.WriteOptions{Modules: []string{wanted}}}}
		m, err := aton.LoadBytes([]byte(layers), "layers.ir", o.load)
		if err != nil {
			t.Fatal(err)
		}
		if err := aton.ExportTo(io.Discard, m, o.export); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", wanted, err)
		}
	}
}
