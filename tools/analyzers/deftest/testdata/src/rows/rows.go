package rows

import "github.com/aton-project/aton/dialects/aten"

var table = aten.Defs{
	"aten::relu":          {Doc: "a program has it"},
	"aten::absolute":      {Doc: "there is a reason"},
	"aten::hardly_likely": {Doc: "nobody"}, // want `no recorded program has aten::hardly_likely`
	"aten::impossible":    {Why: "ONNX has no such thing"},
}

var other = map[string]int{"aten::hardly_likely": 1}
