package kinds

import "github.com/aton-project/aton/ssa"

const unknown ssa.Kind = "onnx::OnPurpose"
