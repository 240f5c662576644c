package export

import (
	"encoding/base64"
	"fmt"
)

// signature1 is the signature of schema 1 (PyTorch 2.1), by names of values.
type signature1 struct {
	seen                bool
	parameters, buffers map[string]string // names of inputs to FQNs
	mutated             map[string]string // names of outputs to FQNs of buffers
}

// decodeSignature1 reads a field of the signature of schema 1, and reports whether it is one.
func decodeSignature1(s *scanner, p *program, key string) bool {
	sig := &p.old
	m := map[string]string{}
	switch key {
	case "inputs_to_parameters":
		sig.parameters = m
	case "inputs_to_buffers":
		sig.buffers = m
	case "buffers_to_mutate":
		sig.mutated = m
	default:
		return false
	}
	sig.seen = true
	s.object(func(k []byte) {
		name := string(k)
		m[name] = s.str()
	})
	return true
}

// decodeEqualities reads pairs of (name of an input, axis) that are equal.
func decodeEqualities(s *scanner, p *program) {
	s.array(func() {
		var names []string
		var axes []int64
		s.array(func() {
			s.array(func() {
				if s.peek() == '"' {
					names = append(names, s.str())
				} else {
					axes = append(axes, s.integer())
				}
			})
		})
		if len(names) != 2 || len(axes) != 2 {
			s.fail("an equality of %d inputs", len(names))
		}
		p.equal = append(p.equal, equality{[2]string(names), [2]int64(axes)})
	})
}

// equality says that an axis of one input is an axis of another one.
type equality struct {
	names [2]string
	axes  [2]int64
}

// decodeConstants reads tensors that are kept in the graph as base64 of what torch.save wrote.
func decodeConstants(s *scanner, g *graph) {
	if s.null() {
		return
	}
	s.object(func(k []byte) {
		name := string(k)
		b, err := base64.StdEncoding.DecodeString(s.str())
		if err != nil {
			s.fail("the constant %q is no base64: %v", name, err)
		}
		g.constants = append(g.constants, constant1{name, b})
	})
}

// constant1 is a tensor of schema 1 that is kept in the graph.
type constant1 struct {
	name string
	data []byte
}

// modern makes the specs of inputs and outputs of a signature of schema 1. The order of the outputs is that of
// later schemas: new values of buffers first.
func (p *program) modern() {
	if !p.old.seen || len(p.inputs) > 0 || len(p.outputs) > 0 {
		return
	}
	for _, a := range p.graph.inputs {
		in := inputSpec{kind: userInput, arg: a, persistent: true}
		if fqn, ok := p.old.parameters[a.s]; ok && a.isName() {
			in.kind, in.target = parameter, fqn
		} else if fqn, ok := p.old.buffers[a.s]; ok && a.isName() {
			in.kind, in.target = buffer, fqn
		}
		p.inputs = append(p.inputs, in)
	}
	for i, a := range p.graph.outputs {
		out := outputSpec{kind: userOutput, arg: a}
		if fqn, ok := p.old.mutated[a.s]; ok && i < len(p.old.mutated) {
			out.kind, out.target = bufferMutation, fqn
		}
		p.outputs = append(p.outputs, out)
	}
	place := map[string]int{}
	for _, in := range p.inputs {
		if in.kind == userInput {
			place[in.arg.s] = len(place)
		}
	}
	for _, e := range p.equal {
		i, ok1 := place[e.names[0]]
		j, ok2 := place[e.names[1]]
		if ok1 && ok2 {
			p.guards = append(p.guards, fmt.Sprintf("L['flat_args'][%d].size()[%d] == L['flat_args'][%d].size()[%d]", i, e.axes[0], j, e.axes[1]))
		}
	}
}
