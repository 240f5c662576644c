package export

import (
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/diag"
)

type locKey struct{ stack, modules string }

// loc is the user's line of a call: the innermost frame that is not PyTorch's
// own. Calls without one stand where the region around them stands.
func (im *importer) loc(n *node, around diag.Loc) diag.Loc {
	key := locKey{n.stack, n.modules}
	frame, ok := im.frames[key]
	if !ok {
		frame = parseStack(n.stack, im.sources.Add)
		frame.Scope = im.parseModules(n.modules)
		im.frames[key] = frame
	}
	if frame.File == "" && around != 0 {
		outer := im.m.Locs.Frame(around)
		scope := frame.Scope
		frame = outer
		if scope != "" {
			frame.Scope = scope
		}
	}
	return im.m.Locs.Add(frame)
}

// parseStack finds the last frame of the user in a Python stack trace. The lines of text in it go to text.
func parseStack(stack string, text func(file string, line int, text string)) (f diag.Frame) {
	var user bool // the line before was a frame of the user
	for line := range strings.SplitSeq(stack, "\n") {
		rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), `File "`)
		if !ok {
			if user && strings.Trim(line, " ^~") != "" {
				text(f.File, f.Line, strings.TrimLeft(line, " "))
			}
			user = false
			continue
		}
		user = false
		file, rest, ok := strings.Cut(rest, `", line `)
		if !ok || diag.InPyTorch(file) {
			continue
		}
		num, fn, _ := strings.Cut(rest, ", in ")
		n, err := strconv.Atoi(num)
		if err != nil || n < 0 {
			continue
		}
		f, user = diag.Frame{File: file, Line: n, Func: fn}, true
	}
	return f
}

// parseModules gives the path of the innermost module of "key,path,class;...", and notes the classes of all.
func (im *importer) parseModules(stack string) (innermost string) {
	depth, start := 0, 0
	for i := 0; i <= len(stack); i++ {
		if i < len(stack) {
			switch stack[i] {
			case '[', '(':
				depth++
			case ']', ')':
				depth--
			}
			if stack[i] != ';' || depth != 0 {
				continue
			}
		}
		_, rest, ok := strings.Cut(stack[start:i], ",")
		start, innermost = i+1, ""
		path, class, _ := strings.Cut(rest, ",")
		if !ok || strings.HasPrefix(path, "_empty_nn_module_stack") {
			continue
		}
		innermost = path
		if path != "" && class != "" {
			if im.m.Classes == nil {
				im.m.Classes = map[string]string{}
			}
			im.m.Classes[path] = class
		}
	}
	return innermost
}
