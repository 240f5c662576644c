package e2e

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestNumbersOfTheRun gives operators a number as an input of the model, and compares with the model in which it is a constant.
func TestNumbersOfTheRun(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	any := []float64{0.3, 1, 2.5, -0.4, 0, inf, nan}
	positive := []float64{1e-5, 0.3, 1, 2.5}
	for _, tt := range []struct {
		call   string // %r is the number, of the constants those that are called after what they are
		values []float64
	}{
		{"aten::leaky_relu(%x, %r)", positive},
		{"aten::elu(%x, %r, %one, %one)", positive},
		{"aten::elu(%x, %one, %r, %one)", positive},
		{"aten::elu(%x, %one, %one, %r)", positive},
		{"aten::celu(%x, %r)", positive},
		{"aten::rrelu(%x, %r, %one, %false, %none)", positive},
		{"aten::softplus(%x, %r, %twenty)", positive},
		{"aten::softplus(%x, %one, %r)", []float64{-1, 0.3, 2.5, 20}},
		{"aten::hardtanh(%x, %zero, %r)", []float64{0, 0.3, 2.5, inf}},
		{"aten::hardtanh_backward(%x, %x, %zero, %r)", any},
		{"aten::leaky_relu_backward(%y, %x, %r, %false)", positive},
		{"aten::threshold_backward(%y, %x, %r)", any},
		{"aten::elu_backward(%y, %r, %one, %one, %false, %x)", positive},
		{"aten::elu_backward(%y, %one, %r, %one, %true, %x)", positive},
		{"aten::softplus_backward(%y, %x, %r, %twenty)", positive},
		{"aten::hardshrink_backward(%y, %x, %r)", []float64{0, 0.3, 2.5}},
		{"aten::logit_backward(%y, %x, %r)", []float64{0, 0.1, 0.4}},
		{"aten::huber_loss_backward(%y, %x, %y, %int1, %r)", positive},
		{"aten::softshrink(%x, %r)", []float64{0, 0.3, 2.5}},
		{"aten::hardshrink(%x, %r)", any},
		{"aten::logit(%x, %r)", []float64{-1, 0, 0.1, 0.4, 0.7}},
		{"aten::nan_to_num(%bad, %r, %r, %r)", any},
		{"aten::isclose(%x, %y, %r, %zero, %false)", positive},
		{"aten::isclose(%x, %y, %zero, %r, %false)", positive},
		{"aten::layer_norm(%x, %four, %none, %none, %r, %false)", positive},
		{"aten::layer_norm(%x, %four, %v, %v, %r, %false)", positive},
		{"aten::group_norm(%x, %two, %v, %v, %r, %false)", positive},
		{"aten::instance_norm(%x3, %none, %none, %none, %none, %true, %one, %r, %false)", positive},
		{"aten::batch_norm(%x, %v, %v, %v, %w, %false, %one, %r, %false)", positive},
		{"aten::batch_norm(%x, %none, %none, %none, %none, %true, %one, %r, %false)", positive},
		{"aten::rms_norm(%x, %four, %v, %r)", positive},
		{"aten::scaled_dot_product_attention(%x, %y, %x, %none, %zero, %false, %r, %false)", positive},
		{"aten::cosine_similarity(%x, %y, %int1, %r)", positive},
		{"aten::pairwise_distance(%x, %y, %r, %one, %false)", []float64{0, 1, 2, 3, inf, -inf}},
		{"aten::pairwise_distance(%x, %y, %two.0, %r, %false)", positive},
		{"aten::linalg_vector_norm(%x, %r, %none, %false, %none)", []float64{0, 0.5, 1, 2, 3, inf, -inf}},
		{"aten::dist(%x, %y, %r)", []float64{0, 1, 2, inf}},
		{"aten::cdist(%x, %y, %r, %none)", []float64{0, 1, 2, inf}},
		{"aten::renorm(%x, %two.0, %int0, %r)", positive},
		{"aten::var(%x, %dims, %r, %false)", []float64{0, 1, 2, 5}},
		{"aten::trapezoid(%x, %r, %int1)", any},
		{"aten::cumulative_trapezoid(%x, %r, %int1)", any},
		{"aten::smooth_l1_loss(%x, %y, %int0, %r)", []float64{0, 0.3, 2.5}},
		{"aten::huber_loss(%x, %y, %int0, %r)", positive},
		{"aten::margin_ranking_loss(%x, %y, %v, %r, %int0)", any},
		{"aten::cross_entropy_loss(%x, %y, %none, %int1, %minus, %r)", []float64{0, 0.3, 0.9}},
		{"aten::logspace(%zero, %one, %int5, %r, %none, %none, %none, %none)", []float64{0.5, 2, 10}},
		{"aten::diagonal(%x, %r, %int0, %int1)", []float64{0, 1, 3, 4, 7, -1, -2, -3, -9}},
		{"aten::diag_embed(%x, %r, %int0, %int1)", []float64{0, 1, -2}},
		{"aten::unfold(%x, %int1, %r, %int2)", []float64{1, 2, 4}},
		{"aten::unfold(%x, %int1, %int2, %r)", []float64{1, 2, 4}},
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(tt.call, "aten::"), "(")
		integer := name == "diagonal" || name == "diag_embed" || name == "unfold"
		for _, shape := range []string{"3, 4", "N, 4"} {
			typ := "float"
			if integer {
				typ = "int"
			}
			ofRun := withNumber(t, tt.call, shape, typ)
			for _, v := range tt.values {
				lit := ssa.Float(v).String()
				if integer {
					lit = fmt.Sprint(int64(v))
				}
				in := map[string]interp.Value{}
				x := []float64{0, math.Copysign(0, -1), -1.5, 0.7, 0.2, 0.9, -0.3, 3, 0.5, -7, 0.05, 21}
				in["x"] = interp.Of(tensor.FromFloats(tensor.Float32, []int64{3, 4}, x))
				y := make([]float64, len(x))
				for i := range y {
					y[i] = math.Mod(float64(i)*0.37, 1) - 0.2
				}
				in["y"] = interp.Of(tensor.FromFloats(tensor.Float32, []int64{3, 4}, y))
				want := run(t, withNumber(t, strings.ReplaceAll(tt.call, "%r", "%k"), shape, lit), in)[0].Tensor
				if integer {
					in["r"] = interp.Of(tensor.FromInts(tensor.Int64, []int64{}, []int64{int64(v)}))
				} else {
					in["r"] = interp.Of(tensor.FromFloats(tensor.Float64, []int64{}, []float64{v}))
				}
				if got := run(t, ofRun, in)[0].Tensor; !near(got, want, 1e-6) {
					t.Errorf("%s, x of (%s), %v: %v, as a constant %v", tt.call, shape, v, got.Float64s(), want.Float64s())
				}
			}
		}
	}
}

// withNumber exports a call whose number r is an input of a type, or a constant k.
func withNumber(t *testing.T, call, shape, number string) *ssa.Module {
	t.Helper()
	input, constant := "", ""
	switch number {
	case "float", "int":
		input = ", %r : " + number
	default:
		typ := "float"
		if !strings.ContainsAny(number, ".infa") {
			typ = "int"
		}
		constant = fmt.Sprintf("  %%k : %s = prim::Constant[value=%s]()\n", typ, number)
	}
	graph := fmt.Sprintf("graph(%%x : Float(%[1]s), %%y : Float(%[1]s)%[2]s):\n", shape, input) + constant + `  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %zero : float = prim::Constant[value=0.]()
  %one : float = prim::Constant[value=1.]()
  %two.0 : float = prim::Constant[value=2.]()
  %twenty : float = prim::Constant[value=20.]()
  %int0 : int = prim::Constant[value=0]()
  %int1 : int = prim::Constant[value=1]()
  %int2 : int = prim::Constant[value=2]()
  %int5 : int = prim::Constant[value=5]()
  %two : int = prim::Constant[value=2]()
  %minus : int = prim::Constant[value=-100]()
  %n4 : int = prim::Constant[value=4]()
  %four : int[] = prim::ListConstruct(%n4)
  %dims : int[] = prim::ListConstruct(%int1)
  %v : Tensor = aten::select(%x, %int0, %int1)
  %abs : Tensor = aten::abs(%v)
  %w : Tensor = aten::add(%abs, %one, %int1)
  %bad : Tensor = aten::div(%x, %zero)
  %x3 : Tensor = aten::unsqueeze(%x, %int0)
  %result : Tensor = ` + call + "\n  return (%result)\n"
	m, err := aton.LoadBytes([]byte(graph), "graph.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := aton.ExportTo(&file, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: 21}}); err != nil {
		t.Fatalf("%s, %s: %v", call, number, err)
	}
	return parsed(t, file.Bytes())
}
