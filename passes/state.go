package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa/diag"
)

// State is a property of a module that some passes take for granted, some bring about and some end. The order of a pipeline follows
// from the states of its passes.
type State string

// The states that a conversion goes through.
const (
	OneFunction State = "one function"                          // methods and calls are in the main function
	Numbers     State = "constants as numbers"                  // those of a trace are no tensors
	Frozen      State = "no attributes of objects"              // what the program depends on is in the graph
	Functional  State = "a functional program with types"       // no mutation, no containers
	Lifted      State = "weights that shall be inputs as such"  // no pass merges them any more
	Newest      State = "ONNX operators in their newest form"   // what rules and inference know
	Checked     State = "demands on sizes that are told"        // where the user wrote them
	OnlyONNX    State = "ONNX operators only"                   // or custom ones
	Standard    State = "operators of the standard only"        // no user's rule, no runtime's own operator has been applied
	Total       State = "operators that are taken not to fail"  // no checks of sizes at run time
	AtOpset     State = "ONNX operators of the opset of a file" // what is written
)

// stateAt follows the states of a module through a pipeline.
type stateAt struct {
	steps []*step
	held  map[State]bool
	ended map[State]string // by which pass
}

// check says which pass of the steps takes a state that the module is not in, and where it should stand. What the module was in before the
// first pass is not known: a state counts as missing if a pass has ended it, or if a pass that is still to come brings it about.
func check(steps []step) error {
	s := stateAt{held: map[State]bool{}, ended: map[State]string{}}
	for st := range all(steps) {
		s.steps = append(s.steps, st)
	}
	later := map[State][]string{} // passes that bring a state about, from the one at hand on
	for _, st := range s.steps {
		for _, made := range st.pass.Makes {
			later[made] = append(later[made], st.pass.Name)
		}
	}
	for _, st := range s.steps {
		p := st.pass
		for _, want := range p.Takes {
			if by := s.ended[want]; by != "" {
				return fmt.Errorf("%s takes %s, which %s ends: put %s before %s", p.Name, want, by, p.Name, by)
			}
			if makers := later[want]; !s.held[want] && len(makers) > 0 && !slices.Contains(makers, p.Name) {
				return fmt.Errorf("%s takes %s, which %s makes: put %s before %s", p.Name, want, makers[0], makers[0], p.Name)
			}
		}
		for _, made := range p.Makes {
			s.held[made] = true
			delete(s.ended, made)
			later[made] = later[made][1:]
		}
		for _, gone := range p.Ends {
			delete(s.held, gone)
			s.ended[gone] = p.Name
		}
	}
	return nil
}

// Insert puts steps before or behind those of a named pipeline. The keys name the pass or the pipeline that a step begins with.
func (n *Named) insert(before, behind map[string]string) (Named, error) {
	out := *n
	out.Steps = nil
	used := map[string]bool{}
	var names []string
	for _, s := range n.Steps {
		name := s.Run
		if i := strings.IndexAny(name, "{("); i >= 0 {
			name = name[:i]
		}
		names = append(names, name)
		if text := before[name]; text != "" && !used["before "+name] {
			used["before "+name] = true
			out.Steps = append(out.Steps, Step{Run: text, Why: "inserted"})
		}
		out.Steps = append(out.Steps, s)
		if text := behind[name]; text != "" && !used["after "+name] {
			used["after "+name] = true
			out.Steps = append(out.Steps, Step{Run: text, Why: "inserted"})
		}
	}
	for where, texts := range map[string]map[string]string{"before ": before, "after ": behind} {
		for name := range texts {
			if !used[where+name] {
				return out, fmt.Errorf("pipeline %s has no step %q%s (there are: %s)", n.Name, name, diag.DidYouMean(name, names), strings.Join(names, ", "))
			}
		}
	}
	return out, nil
}

// Insert is the set with further steps in a named pipeline, before and behind the first step that begins with the pass or the
// pipeline of that name.
func (s *Set) Insert(pipeline string, before, behind map[string]string) (*Set, error) {
	out := *s
	out.Named = slices.Clone(s.Named)
	before, behind = out.currentKeys(before), out.currentKeys(behind)
	for i := range out.Named {
		if out.Named[i].Name == pipeline {
			var err error
			out.Named[i], err = out.Named[i].insert(before, behind)
			return &out, err
		}
	}
	return nil, fmt.Errorf("there is no pipeline %q", pipeline)
}
