// Package setdomains is the pass that gives the domains of custom operators their versions.
package setdomains

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
)

// Pass notes the versions of the domains that the operators of the main function are of. A domain without a version has version 1 in
// the file.
var Pass = passes.Pass{
	Name: "set-domain-versions",
	Doc:  "give the domains of custom operators their versions",
	Before: `
graph(%x : Float(2)):
  %y : Float(2) = mine::double(%x)
  return (%y)`,
	After: `
graph(%x : Float(2)):
  %y : Float(2) = mine::double(%x)
  return (%y)`,
	Demo:    `versions="mine=3"`,
	Options: []passes.Option{{Name: "versions", Doc: "DOMAIN=VERSION,..."}},
	Run:     run,
}

func run(c *passes.Context) error {
	m := c.Module
	versions, err := passes.SplitPairs(c.Option("versions"))
	if err != nil {
		return err
	}
	asked := map[string]int{}
	for _, ns := range slices.Sorted(maps.Keys(versions)) {
		if ns == "" || ns == onnx.Namespace || ns == "ai.onnx" {
			return fmt.Errorf("the version of ONNX's own domain is the opset")
		}
		v, err := strconv.Atoi(versions[ns])
		if err != nil || v < 1 {
			return fmt.Errorf("domain %s: %s is no version", ns, versions[ns])
		}
		asked[ns] = v
	}
	if m.Main() == nil || c.Diags.Err() != nil {
		return nil
	}
	for op := range m.Main().Body.AllOps() {
		ns := op.Kind.Namespace()
		v, ok := asked[ns]
		if ns == "org.pytorch.aten" && !ok {
			v, ok = asked["aten"]
		}
		if ok && m.Opsets[ns] != v {
			if m.Opsets == nil {
				m.Opsets = map[string]int{}
			}
			m.Opsets[ns] = v
			c.Changed("version")
		}
	}
	return nil
}
