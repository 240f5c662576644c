package legalize

import (
	"slices"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
)

// needsOpset are the operators that nothing expresses before the opset that
// brought them: exporting one for an older opset names the opset that would do.
var needsOpset = []string{
	"BitShift", "BlackmanWindow", "CausalConvWithState", "Compress", "ConcatFromSequence", "ConvInteger",
	"DFT", "DequantizeLinear", "Det", "DynamicQuantizeLinear", "Einsum", "HammingWindow",
	"HannWindow", "ImageDecoder", "LinearAttention", "MatMulInteger", "MaxUnpool", "MelWeightMatrix",
	"NegativeLogLikelihoodLoss", "NonMaxSuppression", "NonZero", "Optional", "OptionalGetElement", "OptionalHasElement",
	"QLinearConv", "QLinearMatMul", "QuantizeLinear", "RegexFullMatch", "Resize", "ReverseSequence", "RoiAlign",
	"STFT", "Scan", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase",
	"SequenceInsert", "SequenceLength", "SequenceMap", "SoftmaxCrossEntropyLoss", "SplitToSequence", "StringConcat",
	"StringNormalizer", "StringSplit", "SwiGLU", "TfIdfVectorizer", "Unique",
}

// TestEveryOperatorHasAWay walks all operators and opsets: an operator is
// there, or a step expresses it by others, or it is known to need its opset.
func TestEveryOperatorHasAWay(t *testing.T) {
	var without []string
	for _, name := range onnx.Names() {
		vs := onnx.Versions(name)
		if vs[0].Domain != "onnx" || vs[len(vs)-1].Deprecated {
			continue
		}
		first := vs[0].Since
		for opset := 7; opset <= onnx.Newest; opset++ {
			if onnx.Lookup(name, opset) != nil || opset >= first {
				continue
			}
			if !slices.ContainsFunc(onnx.Steps(name), func(s onnx.Step) bool {
				return s.Opset == first || s.Opset > opset && s.Down != nil && expresses(name, s)
			}) {
				without = append(without, name)
				break
			}
		}
	}
	if !slices.Equal(without, needsOpset) {
		t.Errorf("operators without a way to opsets before them are\n%q, the list says\n%q", without, needsOpset)
	}
}

// expresses says that a step of an operator replaces it though an old version exists under another name.
func expresses(name string, s onnx.Step) bool {
	return name == "GroupNormalization" && s.Opset == 21
}

// TestEveryChangeHasAStep walks the versions: where an attribute became an
// input there is a step back.
func TestEveryChangeHasAStep(t *testing.T) {
	for _, name := range onnx.Names() {
		vs := onnx.Versions(name)
		if vs[0].Domain != "onnx" || vs[len(vs)-1].Deprecated {
			continue
		}
		for i := 1; i < len(vs); i++ {
			before, now := &vs[i-1], &vs[i]
			if now.Since <= 7 || before.Deprecated {
				continue
			}
			for _, a := range before.Attrs {
				if now.Attr(a.Name) != nil || a.Type == onnx.AttrGraph || a.Name == "spatial" || a.Name == "momentum" {
					continue
				}
				if !slices.ContainsFunc(onnx.Steps(name), func(s onnx.Step) bool { return s.Opset == now.Since }) {
					t.Errorf("%s-%d lost the attribute %s, and has no step", name, now.Since, a.Name)
				}
			}
			for k, p := range before.Inputs {
				if k >= len(now.Inputs) || p.Option == onnx.Single && now.Inputs[k].Option == onnx.Optional {
					if !slices.ContainsFunc(onnx.Steps(name), func(s onnx.Step) bool { return s.Opset == now.Since }) {
						t.Errorf("%s-%d does not need the input %s, and has no step", name, now.Since, p.Name)
					}
				}
			}
		}
	}
}

// TestStepsDescend checks the order of the table.
func TestStepsDescend(t *testing.T) {
	for _, name := range onnx.Names() {
		steps := onnx.Steps(name)
		for i := range steps {
			if i > 0 && steps[i].Opset > steps[i-1].Opset {
				t.Errorf("%s: step %d comes after step %d", name, steps[i].Opset, steps[i-1].Opset)
			}
		}
	}
}
