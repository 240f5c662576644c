package plan

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/codegen/gpu/legalize"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// Runs reports an operator that has kernels of its own, that the steps of a plan carry out, or that is expressed by such operators.
func Runs(k ssa.Kind) bool {
	how, _ := Way(k)
	return how == Device || how == Expressed || how == Steps || how == Apart
}

// How an operator gets to the device, besides by kernels of its own.
const (
	Expressed Place = "expressed"   // by operators that have kernels
	Steps     Place = "steps"       // of the plan
	Replaced  Place = "replaced"    // before the plan is made
	Apart     Place = "taken apart" // before the run, where the elements are known
)

// Way tells how an operator runs: on the device by kernels of a class, expressed by others, as steps, not at all because it is taken apart, or from
// the sizes; or on the host, and why.
func Way(k ssa.Kind) (how Place, what string) {
	class := emit.Class(k)
	switch {
	case class != "":
		return Device, class
	case legalize.Expands(k):
		return Expressed, ""
	case slices.Contains(controls, k):
		return Steps, ""
	case slices.Contains(listed, k) || k == "onnx::SequenceEmpty" || k == "onnx::SequenceMap":
		return Apart, "where the elements are known before the run, else steps"
	case legalize.TakesApart(k):
		return Apart, "where the elements are known before the run, else on the host"
	case k == "onnx::Constant":
		return Constant, ""
	case k == "onnx::Shape" || k == "onnx::Size":
		return Sizes, "which are known when the launches begin"
	}
	if v := onnx.Versions(k.Name()); k.Namespace() == onnx.Namespace && v[len(v)-1].Deprecated {
		return Replaced, "by the operator of newer opsets"
	}
	return Host, onnx.Gaps(k).GPU
}

// controls are the operators that are steps with steps of their own.
var controls = []ssa.Kind{"onnx::If", "onnx::Loop", "onnx::Scan"}
