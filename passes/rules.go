package passes

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
)

// FromRules makes a pass that applies rules to every function until none matches. It returns the errors of rewrite.Compile. Use
// onnx.RewriteConfig as the config of a pass on ONNX operators.
func FromRules(name, doc string, config rewrite.Config, rules ...rewrite.Rule) (*Pass, error) {
	set, err := rewrite.Compile(rules...)
	if err != nil {
		return nil, err
	}
	return &Pass{Name: name, Doc: doc, Run: EachFunc(func(c *Context, f *ssa.Func) error {
		for _, rule := range rewrite.Run(f, set, config).Applied {
			c.Changed(rule)
		}
		return nil
	})}, nil
}
