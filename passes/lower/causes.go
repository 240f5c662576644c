package lower

import (
	"github.com/aton-project/aton/ssa"
)

// ownFailure reports that a failure is about the operator itself, whatever its operands are.
func ownFailure(id string) bool {
	switch id {
	case "unsupported-op", "no-rule", "not-expressible", "opset", "const-arg", "invalid-onnx":
		return true
	}
	return false
}

// causeOf returns the place in l.bad of the operator that a failure of o follows from, -1 if it is of its own: the first one
// on the way back from o's operands that could not be converted.
func (l *lowerer) causeOf(o *ssa.Op) int {
	seen := map[*ssa.Value]bool{}
	for _, v := range o.Operands() {
		if v == nil {
			continue
		}
		for _, w := range l.parts(v) {
			if i := l.traced(w, seen); i >= 0 {
				return i
			}
		}
	}
	return -1
}

// parts returns the values of the new graph that stand for a value of the program: those of its elements for a list.
func (l *lowerer) parts(v *ssa.Value) []*ssa.Value {
	if w := l.env[v.ID]; w != nil {
		return []*ssa.Value{w}
	}
	if d := v.Def(); d != nil && (d.Kind == "prim::ListConstruct" || d.Kind == "prim::TupleConstruct") {
		var out []*ssa.Value
		for _, e := range d.Operands() {
			out = append(out, l.parts(e)...)
		}
		return out
	}
	return nil
}

// traced follows a value of the new graph back to a result that stands for an operator of l.bad.
func (l *lowerer) traced(v *ssa.Value, seen map[*ssa.Value]bool) int {
	work := []*ssa.Value{v}
	for len(work) > 0 {
		v := work[len(work)-1]
		work = work[:len(work)-1]
		if v == nil || seen[v] {
			continue
		}
		seen[v] = true
		d := v.Def()
		if d == nil { // of a body: what its operator takes
			d = v.Block().Owner()
		}
		if d == nil {
			continue
		}
		if d.Kind == unconverted {
			return int(d.AttrInt("cause", -1))
		}
		work = append(work, d.Operands()...)
		for _, b := range d.Blocks {
			work = append(work, b.Returns()...)
		}
	}
	return -1
}
