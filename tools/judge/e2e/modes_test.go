package e2e

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/ssa/tensor"
)

// normalized is a convolution, batch normalization and dropout, traced in eval mode or in training.
func normalized(mode string) string {
	return strings.ReplaceAll(`graph(%x : Float(4, 2, 3)):
  %w : Float(3, 2, 1) = prim::Constant[value= 1.5  -1  0.5  2  1  1 [ CPUFloatType{3,2,1} ]]()
  %m : Float(3) = prim::Constant[value= 0.5  -1  2 [ CPUFloatType{3} ]]()
  %v : Float(3) = prim::Constant[value= 2  3  0.25 [ CPUFloatType{3} ]]()
  %none : NoneType = prim::Constant()
  %mode : bool = prim::Constant[value=MODE]()
  %true : bool = prim::Constant[value=1]()
  %momentum : float = prim::Constant[value=0.1]()
  %eps : float = prim::Constant[value=1.0000000000000001e-05]()
  %p : float = prim::Constant[value=0.25]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %ones : int[] = prim::ListConstruct(%1)
  %zeros : int[] = prim::ListConstruct(%0)
  %c : Tensor = aten::conv1d(%x, %w, %none, %ones, %zeros, %ones, %1)
  %b : Tensor = aten::batch_norm(%c, %m, %m, %m, %v, %mode, %momentum, %eps, %true)
  %d : Tensor = aten::dropout(%b, %p, %mode)
  return (%b, %d)
`, "MODE", mode)
}

// kindsAndOutputs gives the operators of the file that a graph becomes, and what it computes.
func kindsAndOutputs(t *testing.T, text string, o options) (kinds []string, outputs []*tensor.Tensor) {
	t.Helper()
	back := parsed(t, writtenText(t, text, o))
	for op := range back.Main().Body.AllOps() {
		kinds = append(kinds, op.Kind.Name())
	}
	x := make([]float64, 24)
	for i := range x {
		x[i] = math.Sin(float64(i * i))
	}
	for _, v := range run(t, back, map[string]interp.Value{"x": interp.Of(tensor.FromFloats(tensor.Float32, []int64{4, 2, 3}, x))}) {
		outputs = append(outputs, v.Tensor)
	}
	return kinds, outputs
}

// TestTraining: EVAL and TRAINING override what a trace has recorded, whichever it was; PRESERVE keeps it. In training a batch
// has mean m and deviation |m| in each channel, by construction.
func TestTraining(t *testing.T) {
	for _, saved := range []string{"0", "1"} {
		for _, mode := range append(aton.TrainingModes(), "") {
			for _, target := range []aton.Target{aton.ORT, aton.Standard} {
				for _, opset := range []int{13, 14, 20} {
					train := mode == aton.Train || saved == "1" && mode != aton.Eval
					kinds, out := kindsAndOutputs(t, normalized(saved), converting(aton.ConvertOptions{Training: mode, Target: target, Opset: opset}))
					where := strings.Join([]string{"saved in", saved, string(mode), string(target)}, " ")
					if got := slices.Contains(kinds, "Dropout"); got != train {
						t.Errorf("%s: Dropout %t in %v", where, got, kinds)
					}
					if got := slices.Contains(kinds, "BatchNormalization"); got != (mode == aton.Train && target == "onnx" && opset > 13) {
						t.Errorf("%s, opset %d: BatchNormalization %t in %v", where, opset, got, kinds)
					}
					for c, want := range []float64{0.5, -1, 2} { // the mean of a channel is the bias, in training
						sum := 0.0
						y := out[0].Float64s()
						for i := range 12 {
							sum += y[(i/3)*9+c*3+i%3]
						}
						if right := math.Abs(sum/12-want) < 1e-5; right != train {
							t.Errorf("%s, opset %d: channel %d has mean %g", where, opset, c, sum/12)
						}
					}
					if same := slices.Equal(out[0].Float64s(), out[1].Float64s()); same == train {
						t.Errorf("%s: dropout kept all: %t", where, same)
					}
				}
			}
		}
	}
	if _, err := aton.LoadBytes([]byte(normalized("0")), "graph.ir", aton.LoadOptions{Training: "SLEEP"}); err == nil {
		m, _ := aton.LoadBytes([]byte(normalized("0")), "graph.ir", aton.LoadOptions{})
		if _, err := aton.Convert(m, aton.ConvertOptions{Training: "SLEEP"}); err == nil || !strings.Contains(err.Error(), `no training mode "SLEEP"`) {
			t.Error(err)
		}
	}
}

// TestTrainingLost: what a program that was recorded in eval mode does not say of training is told.
func TestTrainingLost(t *testing.T) {
	const exported = `graph(%x : Float(4, 2)):
  %w : Float(2) = prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()
  %momentum : float = prim::Constant[value=0.1]()
  %y : Tensor, %a : Tensor, %b : Tensor = aten::_native_batch_norm_legit_no_training(%x, %w, %w, %w, %w, %momentum, %momentum)
  return (%y)
`
	m, err := aton.LoadBytes([]byte(exported), "graph.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := aton.Convert(m, aton.ConvertOptions{Training: aton.Train}); err == nil || !strings.Contains(err.Error(), "does not say what it does in training") {
		t.Error(err)
	}
}

// TestNoFolding: without folding the weights are those of the state dict, and the numbers are the same.
func TestNoFolding(t *testing.T) {
	const model, input = "testdata/fixtures/torch2.15/convnet.script.pt", "x:f32[N,3,18,18]"
	folded, err := protoOf(t, model, options{}, input)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := protoOf(t, model, converting(aton.ConvertOptions{NoFolding: true}), input)
	if err != nil {
		t.Fatal(err)
	}
	in, before, _ := edges(folded)
	inPlain, after, _ := edges(plain)
	if slices.Contains(before, "features.4.running_mean") || !slices.Contains(after, "features.4.running_mean") || !slices.Equal(in, inPlain) {
		t.Errorf("weights %v, without folding %v, inputs %v", before, after, inPlain)
	}
}
