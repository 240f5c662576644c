package legalize_test

import (
	"testing"

	"github.com/aton-project/aton/codegen/gpu/legalize"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/passtest"
)

func TestPasses(t *testing.T) {
	for _, p := range legalize.Passes() {
		t.Run(p.Name, func(t *testing.T) { passtest.Check(t, p, onnx.Dialect{}) })
	}
}

// The order of the pipeline follows from the states of its passes: another one is refused.
func TestOrder(t *testing.T) {
	set := passes.Set{Passes: legalize.Passes(), Named: []passes.Named{legalize.Pipeline}}
	if _, err := set.Parse(legalize.Pipeline.Name); err != nil {
		t.Error(err)
	}
	if _, err := set.Parse("type-empty-sequences,sequence-map-to-loop"); err == nil {
		t.Error("empty sequences are typed before all are there")
	}
}
