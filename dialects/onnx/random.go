package onnx

import (
	"fmt"
	"hash/fnv"
	"math"

	"github.com/aton-project/aton/ssa"
)

// RandomStream is the number of the sequence that a random operator draws from: a hash of the name of its first result, or of its place among
// the operators of the function if it has none.
func RandomStream(o *ssa.Op) uint64 {
	h := fnv.New64a()
	name := ""
	if len(o.Results) > 0 {
		name = o.Results[0].Name
	}
	if name == "" {
		n := 0
		for p := range o.Block().Func().Body.AllOps() {
			if p == o {
				break
			}
			if p.Kind == o.Kind {
				n++
			}
		}
		name = fmt.Sprintf("%%%d", n) // no value is called that
	}
	h.Write([]byte(name))
	return h.Sum64()
}

// RandomSeed is what the attribute seed of an operator does to the first word of the key.
func RandomSeed(o *ssa.Op) uint32 {
	if _, ok := o.Attr("seed"); ok {
		return math.Float32bits(float32(o.AttrFloat("seed", 0)))
	}
	return 0
}
