package export

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxLeaves bounds a pytree.
const maxLeaves = 1 << 20

// leaf is a place in a tree of containers.
type leaf struct {
	// path names it for people: o.z, xs.0.
	path string
	// steps are the keys and positions to it: a string or an int each.
	steps []any
}

// keyed reports a leaf that stands under the key of a dict or the name of a field: that names an output, where a position tells less than the name of the
// operator does.
func (l leaf) keyed() bool {
	return slices.ContainsFunc(l.steps, func(s any) bool { _, ok := s.(string); return ok })
}

// treeSpec is a node as torch.utils._pytree writes it.
type treeSpec struct {
	Type     *string         `json:"type"`
	Context  json.RawMessage `json:"context"`
	Children []treeSpec      `json:"children_spec"`
}

// parseTree reads [version, node].
func parseTree(text string) (*treeSpec, error) {
	var parts []json.RawMessage
	if err := json.Unmarshal([]byte(text), &parts); err != nil {
		return nil, err
	}
	if len(parts) != 2 {
		return nil, fmt.Errorf("%d parts, not a version and a tree", len(parts))
	}
	var t treeSpec
	if err := json.Unmarshal(parts[1], &t); err != nil {
		return nil, err
	}
	return &t, nil
}

// leaves lists the leaves below t in order; fields are those of named tuples.
func (t *treeSpec) leaves(fields map[string][]string, at leaf, out []leaf) []leaf {
	if t.Type == nil || len(out) > maxLeaves {
		return append(out, at)
	}
	keys := t.keys(fields)
	for i := range t.Children {
		var step any = i
		if i < len(keys) {
			step = keys[i]
		}
		name := fmt.Sprint(step)
		next := leaf{path: name, steps: append(at.steps[:len(at.steps):len(at.steps)], step)}
		if at.path != "" {
			next.path = at.path + "." + name
		}
		out = t.Children[i].leaves(fields, next, out)
	}
	return out
}

// keys are the names of the children, nil if they go by position.
func (t *treeSpec) keys(fields map[string][]string) []any {
	text := ""
	if json.Unmarshal(t.Context, &text) != nil {
		return nil
	}
	if f, ok := fields[text]; ok && *t.Type == "collections.namedtuple" {
		return anys(f)
	}
	switch *t.Type {
	case "builtins.tuple", "builtins.list", "torch.Size", "collections.namedtuple":
		return nil
	case "builtins.dict", "collections.OrderedDict", "collections.defaultdict":
		var keys []any
		if json.Unmarshal([]byte(text), &keys) != nil {
			return nil
		}
		return keys
	}
	var present [][]string // a registered dataclass: fields that are there, fields that are None
	if json.Unmarshal([]byte(text), &present) == nil && len(present) > 0 {
		return anys(present[0])
	}
	return nil
}

func anys(ss []string) []any {
	out := make([]any, len(ss))
	for i, s := range ss {
		out[i] = s
	}
	return out
}

// inputLeaves lists the arguments by the names of the forward function's parameters.
func (p *program) inputLeaves() ([]leaf, error) {
	t, err := parseTree(p.inTree)
	if err != nil {
		return nil, err
	}
	if t.Type == nil || len(t.Children) != 2 {
		return nil, fmt.Errorf("the arguments are not a tuple and a dict")
	}
	var out []leaf
	for i := range t.Children[0].Children {
		name := strconv.Itoa(i)
		if i < len(p.argNames) {
			name = p.argNames[i]
		}
		out = t.Children[0].Children[i].leaves(p.fields, leaf{path: name, steps: []any{name}}, out)
	}
	return t.Children[1].leaves(p.fields, leaf{}, out), nil
}

// outputLeaves lists the results; a lone one has the empty path.
func (p *program) outputLeaves() ([]leaf, error) {
	t, err := parseTree(p.outTree)
	if err != nil {
		return nil, err
	}
	return t.leaves(p.fields, leaf{}, nil), nil
}

// matches reports that the leaf is what a guard means by L[...]...: the same
// steps, or those with *args and **kwargs named on the way.
func (l leaf) matches(steps []any) bool {
	if same(l.steps, steps) {
		return true
	}
	if len(steps) < 2 {
		return false
	}
	if i, ok := steps[1].(int); ok { // L['xs'][1]: the argument xs_1
		if same(l.steps, append([]any{fmt.Sprintf("%v_%d", steps[0], i)}, steps[2:]...)) {
			return true
		}
	}
	return same(l.steps, steps[1:]) // L['kw']['z']
}

func same(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if fmt.Sprint(a[i]) != fmt.Sprint(b[i]) {
			return false
		}
	}
	return true
}

// metadataTree documents the leaves: one line each, path and name of the graph.
func metadataTree(leaves []leaf, names []string) string {
	var b strings.Builder
	for i, l := range leaves {
		if i >= len(names) {
			break
		}
		path := l.path
		if path == "" {
			path = "."
		}
		b.WriteString(path + " = " + names[i] + "\n")
	}
	return b.String()
}
