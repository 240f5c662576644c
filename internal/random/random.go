// Package random says which random numbers the operators of a graph draw, so that the interpreter and the kernels draw the same ones.
package random

import (
	"fmt"
	"hash/fnv"
	"math"

	"github.com/aton-project/aton/ssa"
)

// Stream is the number of the sequence that a random operator draws from: a hash of the name of its first result, or of its place among
// the operators of the function if it has none.
func Stream(o *ssa.Op) uint64 {
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

// Seed is what the attribute seed of an operator does to the first word of the key.
func Seed(o *ssa.Op) uint32 {
	if _, ok := o.Attr("seed"); ok {
		return math.Float32bits(float32(o.AttrFloat("seed", 0)))
	}
	return 0
}
