package simplify

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// sound reports that the ONNX operators of a function have the operands, and Transposes the permutations, that rules take for
// granted. A file may have others; it is left as it is, for the check in front of the writer to refuse.
func sound(f *ssa.Func) bool {
	for o := range f.Body.AllOps() {
		if o.Kind.Namespace() != onnx.Namespace {
			continue
		}
		s := onnx.SchemaOf(o.Kind)
		if s == nil {
			return false
		}
		for i, p := range s.Inputs {
			if (p.Option == onnx.Single || p.Option == onnx.Variadic && len(o.Blocks) == 0) && o.Operand(i) == nil {
				return false
			}
		}
		for i := range o.NumOperands() {
			if p := s.Input(i); p == nil || p.Option == onnx.Variadic && o.Operand(i) == nil && len(o.Blocks) == 0 {
				return false
			}
		}
		if o.Kind == "onnx::Transpose" && !permutes(o) {
			return false
		}
	}
	return true
}

// permutes reports that a Transpose's perm, where it has one, holds each axis of its operand once.
func permutes(o *ssa.Op) bool {
	if _, has := o.Attr("perm"); !has {
		return true
	}
	perm := o.AttrInts("perm")
	if n := rank(o.Operand(0)); n >= 0 && n != len(perm) {
		return false
	}
	seen := make([]bool, len(perm))
	for _, a := range perm {
		if a < 0 || a >= int64(len(perm)) || seen[a] {
			return false
		}
		seen[a] = true
	}
	return true
}
