package checksizes

import (
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes/passtest"
)

func TestPass(t *testing.T) { passtest.Check(t, &Pass, onnx.Dialect{}) }
