package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa/tensor"
)

// Inputs that verify would make up have a bound.
func TestMadeUpInputs(t *testing.T) {
	big := write(t, "graph(%x : Float(5000, 5000)):\n  %y : Float(5000, 5000) = aten::relu(%x)\n  return (%y)\n")
	if status, _, said := call("", "verify", big, "--random", "1"); status != 1 || !strings.Contains(said, "16777216") {
		t.Errorf("status %d: %s", status, said)
	}
}

// A run in the simulator ends with its budget, and says what allows more.
func TestSimulatorBudget(t *testing.T) {
	file := write(t, "graph(%x : Float(64, 64)):\n  %y : Float(64, 64) = onnx::Tanh(%x)\n  return (%y)\n")
	m, err := aton.Load(file, aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := aton.Convert(m, aton.ConvertOptions{}); err != nil {
		t.Fatal(err)
	}
	p, err := plan.New(m, fuse.Light)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.FromFloats(tensor.Float32, []int64{64, 64}, make([]float64, 64*64))
	_, _, err = exec.NewSession(p, &exec.Sim{Budget: 100}).Run([]interp.Value{{Tensor: x}})
	if !errors.Is(err, sim.ErrBudget) || !strings.Contains(err.Error(), "--budget 10") {
		t.Error(err)
	}
	if _, _, err := exec.NewSession(p, &exec.Sim{Budget: simulated}).Run([]interp.Value{{Tensor: x}}); err != nil {
		t.Error(err)
	}
}

// Graphs in graphs have a bound.
func TestNesting(t *testing.T) {
	g := &onnxpb.GraphProto{Name: proto.String("g")}
	for range 200 {
		g = &onnxpb.GraphProto{Name: proto.String("g"), Node: []*onnxpb.NodeProto{{OpType: proto.String("If"), Input: []string{"c"}, Output: []string{"y"}, Attribute: []*onnxpb.AttributeProto{
			{Name: proto.String("then_branch"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: g}, {Name: proto.String("else_branch"), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: &onnxpb.GraphProto{Name: proto.String("e")}}}}}}
	}
	b, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: proto.Int64(8), OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(17)}}, Graph: g})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
	if status, _, said := call("", "check", file); status != 1 || !strings.Contains(said, "64") {
		t.Errorf("status %d: %.500s", status, said)
	}
}
