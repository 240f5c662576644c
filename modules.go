package aton

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/frontend/jit"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// allModules stands for all modules in Options.ModuleFunctions.
const allModules = "*"

// holdsModules has the classes of container modules, which have no code and are not called.
var holdsModules = map[string]bool{"torch.nn.modules.container.ModuleList": true, "torch.nn.modules.container.ModuleDict": true}

// namelessDomain is the domain of functions of modules whose class has no package or is unknown.
const namelessDomain = "modules"

// noteClasses records the classes of the modules of a program, since the conversion removes the objects.
func noteClasses(m *ssa.Module) {
	if m.Root == nil {
		return
	}
	if m.Classes == nil {
		m.Classes = map[string]string{}
	}
	eachObject(m.Root, func(o *ssa.Object, path string) {
		if path != "" {
			m.Classes[path] = jit.PythonName(o.Class)
		}
	})
}

// modules returns the functions that Options.ModuleFunctions asks for, by the paths of the modules.
func (o Options) modules(m *ssa.Module) (map[string]onnxfile.ModuleFunction, error) {
	if len(o.ModuleFunctions) == 0 || m.Main() == nil {
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
	out := map[string]onnxfile.ModuleFunction{}
	matched := map[string]bool{}
	for path := range paths {
		class := classes[path]
		dot := strings.LastIndexByte(class, '.')
		for _, want := range o.ModuleFunctions {
			if want == allModules && holdsModules[class] || want != allModules && want != path && (class == "" || want != class && want != class[dot+1:]) {
				continue
			}
			matched[want] = true
			f := onnxfile.ModuleFunction{Domain: namelessDomain, Name: class[dot+1:]}
			if dot > 0 {
				f.Domain = class[:dot]
			}
			if class == "" {
				f.Name = strings.ReplaceAll(path, ".", "_")
			}
			out[path] = f
		}
	}
	for _, want := range o.ModuleFunctions {
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
		return nil, fmt.Errorf("functions of modules: no operator of the file belongs to a module or class %q%s", want, passes.DidYouMean(want, known))
	}
	return out, nil
}
