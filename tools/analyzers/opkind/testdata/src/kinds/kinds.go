package kinds

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
)

const (
	relu  ssa.Kind = "onnx::Relu"
	typo  ssa.Kind = "onnx::Rellu" // want `no schema declares the operator onnx::Rellu, did you mean "onnx::Relu"\?`
	lower ssa.Kind = "aten::relu_"
	wrong ssa.Kind = "aten::reluu"    // want `no schema declares the operator aten::reluu`
	none  ssa.Kind = "prim::Konstant" // want `no schema declares the operator prim::Konstant`
	own   ssa.Kind = "my.domain::Anything"
	tree  ssa.Kind = "ai.onnx.ml::TreeEnsemble"
	bush  ssa.Kind = "ai.onnx.ml::TreeEnsembl" // want `ai.onnx.ml::TreeEnsembl`
	start ssa.Kind = "aten::"
	text           = "aten::only_text"
)

var table = map[ssa.Kind]int{
	"aten::conv2d": 1,
	"aten::conf2d": 2, // want `aten::conf2d`
}

func use(k ssa.Kind, b *onnx.Builder, name string) bool {
	b.Op("Add", 1, 2)
	b.Op("Ad", 1, 2) // want `no schema declares the operator onnx::Ad\b`
	b.OpA("Sum", nil)
	b.OpA("Summ", nil) // want `onnx::Summ`
	b.Op(name)
	b.Softmax(1, onnx.Axis(1))
	b.Softmax(1, onnx.KeepDims(true)) // want `Softmax has no attribute KeepDims`
	other{}.Op("Nothing")
	return k == "onnx::Sigmoid" || k == "onnx::Sigmoidd" // want `onnx::Sigmoidd`
}

type other struct{}

func (other) Op(string) {}

var rules = []rewrite.Rule{
	{Name: "fine", From: "%y = onnx::Neg(%x)\n%z = onnx::Neg(%y)", To: "%z = %x"},
	{Name: "typo", From: "%y = onnx::Nag(%x)", To: "%y = %x"},                 // want `onnx::Nag`
	{Name: "into", From: "%y = onnx::Neg(%x)", To: "%y = onnx::Nog[a=1](%x)"}, // want `onnx::Nog`
}
