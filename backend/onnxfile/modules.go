package onnxfile

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// allModules stands for all modules in Options.Modules.
const allModules = "*"

// holdsModules has the classes of container modules, which have no code and are not called.
var holdsModules = map[string]bool{"torch.nn.modules.container.ModuleList": true, "torch.nn.modules.container.ModuleDict": true}

// namelessDomain is the domain of functions of modules whose class has no package or is unknown.
const namelessDomain = "modules"

// modules returns the functions that Options.Modules asks for, by the paths of the modules.
func (o Options) modules(m *ssa.Module) (map[string]ModuleFunction, error) {
	if len(o.Modules) == 0 {
		return nil, nil
	}
	classes := m.Classes
	paths := map[string]bool{}
	scopes := map[string]bool{}
	for op := range m.Main().Body.AllOps() {
		scope := m.Locs.Frame(op.Loc).Scope
		if scopes[scope] || scope == "" {
			continue
		}
		scopes[scope], paths[scope] = true, true
		for i := range len(scope) {
			if scope[i] == '.' {
				paths[scope[:i]] = true
			}
		}
	}
	out := map[string]ModuleFunction{}
	matched := map[string]bool{}
	for path := range paths {
		class := classes[path]
		dot := strings.LastIndexByte(class, '.')
		for _, want := range o.Modules {
			if want == allModules && holdsModules[class] || want != allModules && want != path && (class == "" || want != class && want != class[dot+1:]) {
				continue
			}
			matched[want] = true
			f := ModuleFunction{Domain: namelessDomain, Name: class[dot+1:]}
			if dot > 0 {
				f.Domain = class[:dot]
			}
			if class == "" {
				f.Name = strings.ReplaceAll(path, ".", "_")
			}
			out[path] = f
		}
	}
	for _, want := range o.Modules {
		if matched[want] {
			continue
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("functions of modules: no operator of the file belongs to a module")
		}
		known := slices.Collect(maps.Keys(paths))
		for path := range paths {
			if c := classes[path]; c != "" {
				known = append(known, c, c[strings.LastIndexByte(c, '.')+1:])
			}
		}
		slices.Sort(known)
		return nil, fmt.Errorf("functions of modules: no operator of the file belongs to a module or class %q%s", want, diag.DidYouMean(want, known))
	}
	return out, nil
}
