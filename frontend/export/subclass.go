package export

import (
	"github.com/aton-project/aton/frontend/pickle"
	"github.com/aton-project/aton/ssa/tensor"
)

// wrapped is a weight that is an object of a tensor subclass, such as those of torchao. The program never uses it as a
// whole: export.access_subclass_inner_tensor names the parts that it computes with. So a part is what becomes a weight, under
// the name of the whole and the attribute (0.weight.qdata).
type wrapped struct {
	name   string
	object *pickle.Subclass
}

// innerTensor builds export.access_subclass_inner_tensor(src_subclass_tensor, attr).
func (im *importer) innerTensor(sc *scope, n *node, src, attr *argument) {
	if src == nil || attr == nil || attr.tag != tagString || len(n.outputs) != 1 || !n.outputs[0].isName() {
		im.failNode(sc, "", "not a tensor and the name of an attribute")
	}
	whole, ok := im.wrapped[src.s]
	if !ok || src.tag != tagTensor {
		im.failNode(sc, "export a module whose inputs are plain tensors", "only weights are tensors of classes of their own, and %q is none", src.s)
	}
	part, _ := whole.object.State.Get(attr.s)
	name, out := whole.name+"."+attr.s, n.outputs[0].s
	switch part := part.(type) {
	case *tensor.Tensor:
		sc.vals[out] = im.weight(part, name)
	case *pickle.Subclass:
		im.wrapped[out] = wrapped{name, part}
	default:
		im.failNode(sc, "", "%s, of class %s, has no tensor %q", whole.name, whole.object.Class, attr.s)
	}
}
