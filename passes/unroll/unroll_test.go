package unroll

import (
	"testing"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes/passtest"
)

func TestPass(t *testing.T) {
	passtest.Check(t, &Pass, append(aten.Dialects(), prim.Dialect{})...)
}
