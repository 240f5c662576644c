package export

import (
	"fmt"
	"math"

	"github.com/aton-project/aton/frontend/archive"
)

// decodeProgram reads an ExportedProgram. Unknown fields are ignored, since
// minor versions add them; unknown tags are errors.
func decodeProgram(s *scanner) *program {
	p := &program{major: -1}
	s.object(func(key []byte) {
		switch string(key) {
		case "graph_module":
			decodeGraphModule(s, p)
		case "range_constraints":
			s.object(func(k []byte) {
				p.ranges = append(p.ranges, decodeRange(s, string(k)))
			})
		case "schema_version":
			p.major, p.minor = decodeVersion(s)
		case "verifiers":
			p.verifiers = s.strs()
		case "dialect": // up to 2.4
			p.verifiers = []string{s.str()}
		case "torch_version":
			p.torch = s.str()
		case "equality_constraints": // of schema 1
			decodeEqualities(s, p)
		case "guards_code":
			if !s.null() {
				p.guards = s.strs()
			}
		default:
			s.skip()
		}
	})
	s.end()
	if p.graph == nil {
		s.fail("there is no graph in the program")
	}
	p.modern()
	return p
}

func decodeVersion(s *scanner) (major, minor int) {
	if s.peek() != '{' { // up to 2.2
		return int(s.integer()), 0
	}
	s.object(func(key []byte) {
		switch string(key) {
		case "major":
			major = int(s.integer())
		case "minor":
			minor = int(s.integer())
		default:
			s.skip()
		}
	})
	return major, minor
}

// versionOf finds the schema version without understanding the rest.
func versionOf(file, record string, data []byte) (major, minor int, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, mine := r.(*archive.Error); !mine {
				panic(r)
			}
			major, minor, ok = 0, 0, false
		}
	}()
	s := newScanner(file, record, data)
	s.object(func(key []byte) {
		if string(key) == "schema_version" {
			major, minor = decodeVersion(s)
			ok = true
			return
		}
		s.skip()
	})
	return major, minor, ok
}

func decodeRange(s *scanner, expr string) valueRange {
	r := valueRange{expr: expr}
	bound := func() (int64, bool) {
		if s.null() {
			return 0, false
		}
		v := s.float()
		if math.IsInf(v, 0) || v != v || v <= math.MinInt64 || v >= math.MaxInt64 {
			return 0, false // unbounded
		}
		return int64(v), true
	}
	s.object(func(key []byte) {
		switch string(key) {
		case "min_val":
			r.min, r.hasMin = bound()
		case "max_val":
			r.max, r.hasMax = bound()
		default:
			s.skip()
		}
	})
	return r
}

func decodeGraphModule(s *scanner, p *program) {
	s.object(func(key []byte) {
		switch string(key) {
		case "graph":
			p.graph = decodeGraph(s)
		case "signature":
			decodeSignature(s, p)
		case "call_spec": // of schema 1
			s.object(func(k []byte) {
				switch string(k) {
				case "in_spec":
					p.inTree = s.optStr()
				case "out_spec":
					p.outTree = s.optStr()
				default:
					s.skip()
				}
			})
		case "module_call_graph":
			s.array(func() { decodeCallEntry(s, p) })
		case "treespec_namedtuple_fields":
			if s.null() {
				return
			}
			p.fields = map[string][]string{}
			s.object(func(k []byte) {
				name := string(k)
				s.object(func(k []byte) {
					if string(k) == "field_names" {
						p.fields[name] = s.strs()
					} else {
						s.skip()
					}
				})
			})
		default:
			s.skip()
		}
	})
}

// decodeCallEntry reads the calling convention of the top module.
func decodeCallEntry(s *scanner, p *program) {
	fqn, in, out := "", "", ""
	var names []string
	s.object(func(key []byte) {
		switch string(key) {
		case "fqn":
			fqn = s.str()
		case "signature":
			if s.null() {
				return
			}
			s.object(func(key []byte) {
				switch string(key) {
				case "in_spec":
					in = s.optStr()
				case "out_spec":
					out = s.optStr()
				case "forward_arg_names":
					if !s.null() {
						names = s.strs()
					}
				default:
					s.skip()
				}
			})
		default:
			s.skip()
		}
	})
	if fqn == "" && in != "" {
		p.inTree, p.outTree, p.argNames = in, out, names
	}
}

func decodeSignature(s *scanner, p *program) {
	s.object(func(key []byte) {
		switch string(key) {
		case "input_specs":
			s.array(func() { p.inputs = append(p.inputs, decodeInputSpec(s)) })
		case "output_specs":
			s.array(func() { p.outputs = append(p.outputs, decodeOutputSpec(s)) })
		default:
			if !decodeSignature1(s, p, string(key)) {
				s.skip()
			}
		}
	})
}

func decodeInputSpec(s *scanner) (in inputSpec) {
	in.persistent = true
	s.tagged("an input spec", func(tagName []byte) {
		switch string(tagName) {
		case "user_input":
			in.kind = userInput
		case "constant_input":
			in.kind = constantInput
		case "parameter":
			in.kind = parameter
		case "buffer":
			in.kind = buffer
		case "tensor_constant":
			in.kind = tensorConstant
		case "custom_obj":
			in.kind = customObject
		case "token":
			in.kind = token
		default:
			s.fail("unknown input spec %q", tagName)
		}
		s.object(func(key []byte) {
			switch string(key) {
			case "arg":
				if in.kind == userInput {
					in.arg = decodeArgument(s)
				} else {
					in.arg = argument{tag: tagTensor, s: decodeNamed(s)}
				}
			case "name":
				in.name = s.str()
			case "value":
				in.arg = decodeArgument(s)
			case "parameter_name", "buffer_name", "tensor_constant_name", "custom_obj_name":
				in.target = s.str()
			case "persistent":
				in.persistent = s.boolean()
			default:
				s.skip()
			}
		})
	})
	return in
}

func decodeOutputSpec(s *scanner) (out outputSpec) {
	s.tagged("an output spec", func(tagName []byte) {
		switch string(tagName) {
		case "user_output":
			out.kind = userOutput
		case "buffer_mutation":
			out.kind = bufferMutation
		case "parameter_mutation":
			out.kind = parameterMutation
		case "user_input_mutation":
			out.kind = inputMutation
		case "loss_output":
			out.kind = lossOutput
		case "gradient_to_parameter", "gradient_to_user_input":
			out.kind = gradient
		case "token":
			out.kind = tokenOutput
		default:
			s.fail("unknown output spec %q", tagName)
		}
		s.object(func(key []byte) {
			switch string(key) {
			case "arg":
				if out.kind == userOutput {
					out.arg = decodeArgument(s)
				} else {
					out.arg = argument{tag: tagTensor, s: decodeNamed(s)}
				}
			case "buffer_name", "parameter_name", "user_input_name":
				out.target = s.str()
			default:
				s.skip()
			}
		})
	})
	return out
}

// decodeNamed reads {name} or, up to 2.3, the name alone.
func decodeNamed(s *scanner) string {
	if s.peek() == '"' {
		return s.str()
	}
	name := ""
	s.object(func(key []byte) {
		if string(key) == "name" {
			name = s.str()
		} else {
			s.skip()
		}
	})
	return name
}

func decodeGraph(s *scanner) *graph {
	g := &graph{tensors: map[string]*tensorMeta{}, ints: map[string]symInt{}}
	s.object(func(key []byte) {
		switch string(key) {
		case "inputs":
			g.inputs = decodeArguments(s)
		case "outputs":
			g.outputs = decodeArguments(s)
		case "nodes":
			s.array(func() { g.nodes = append(g.nodes, decodeNode(s)) })
		case "tensor_values":
			s.object(func(k []byte) {
				name := string(k)
				g.tensors[name] = decodeTensorMeta(s)
			})
		case "sym_int_values":
			s.object(func(k []byte) {
				name := string(k)
				g.ints[name] = decodeSymInt(s)
			})
		case "constants": // of schema 1
			decodeConstants(s, g)
		default:
			s.skip()
		}
	})
	return g
}

func decodeNode(s *scanner) (n node) {
	s.object(func(key []byte) {
		switch string(key) {
		case "target":
			n.target = s.str()
		case "inputs":
			s.array(func() {
				var a namedArgument
				s.object(func(key []byte) {
					switch string(key) {
					case "name":
						a.name = s.str()
					case "arg":
						a.argument = decodeArgument(s)
					default:
						s.skip()
					}
				})
				n.inputs = append(n.inputs, a)
			})
		case "outputs":
			n.outputs = decodeArguments(s)
		case "metadata":
			s.object(func(key []byte) {
				switch string(key) {
				case "stack_trace":
					n.stack = s.optStr()
				case "nn_module_stack":
					n.modules = s.optStr()
				default:
					s.skip()
				}
			})
		default:
			s.skip()
		}
	})
	return n
}

func decodeTensorMeta(s *scanner) *tensorMeta {
	m := &tensorMeta{layout: 7}
	var read func(key []byte)
	read = func(key []byte) {
		switch string(key) {
		case "meta": // of schema 1
			s.object(read)
		case "dtype":
			m.dtype = int(s.integer())
		case "sizes":
			m.sizes = decodeSymInts(s)
		case "strides":
			m.strides = decodeSymInts(s)
		case "storage_offset":
			if s.peek() == '{' {
				m.offset = decodeSymInt(s)
			} else if !s.null() {
				m.offset = symInt{n: s.integer()}
			}
		case "layout":
			m.layout = int(s.integer())
		default:
			s.skip()
		}
	}
	s.object(read)
	return m
}

func decodeSymInts(s *scanner) []symInt {
	out := []symInt{}
	s.array(func() { out = append(out, decodeSymInt(s)) })
	return out
}

func decodeSymInt(s *scanner) (v symInt) {
	s.tagged("a size", func(tagName []byte) {
		switch string(tagName) {
		case "as_int":
			v.n = s.integer()
		case "as_expr":
			s.object(func(key []byte) {
				if string(key) == "expr_str" {
					v.expr = s.str()
				} else {
					s.skip()
				}
			})
			if v.expr == "" {
				s.fail("a size without an expression")
			}
		default:
			s.fail("unknown tag %q of a size", tagName)
		}
	})
	return v
}

func decodeArguments(s *scanner) []argument {
	var out []argument
	s.array(func() { out = append(out, decodeArgument(s)) })
	return out
}

// elements reads a list with one function for each element.
func elements(s *scanner, f func() argument) argument {
	a := argument{tag: tagList, list: []argument{}}
	s.array(func() { a.list = append(a.list, f()) })
	return a
}

func decodeArgument(s *scanner) (a argument) {
	s.tagged("an argument", func(tagName []byte) { a = decodeTagged(s, tagName) })
	return a
}

func decodeTagged(s *scanner, tagName []byte) argument {
	tensor := func() argument { return argument{tag: tagTensor, s: decodeNamed(s)} }
	integer := func() argument { return argument{tag: tagInt, n: s.integer()} }
	float := func() argument { return argument{tag: tagFloat, f: s.float()} }
	boolean := func() argument { return argument{tag: tagBool, n: truth(s.boolean())} }
	str := func() argument { return argument{tag: tagString, s: s.str()} }
	symbolic := func(t tag) func() argument { return func() argument { return decodeSym(s, t) } }
	switch string(tagName) {
	case "as_none":
		s.skip()
		return argument{}
	case "as_tensor":
		return tensor()
	case "as_tensors":
		return elements(s, tensor)
	case "as_nested_tensors":
		return elements(s, func() argument { return elements(s, tensor) })
	case "as_optional_tensor":
		return decodeArgument(s)
	case "as_optional_tensors":
		return elements(s, func() argument { return decodeArgument(s) })
	case "as_int":
		return integer()
	case "as_ints":
		return elements(s, integer)
	case "as_int_lists":
		return elements(s, func() argument { return elements(s, integer) })
	case "as_float":
		return float()
	case "as_floats":
		return elements(s, float)
	case "as_float_lists":
		return elements(s, func() argument { return elements(s, float) })
	case "as_complex":
		c := argument{tag: tagComplex}
		s.object(func(key []byte) {
			switch string(key) {
			case "real":
				c.f = s.float()
			case "imag":
				c.im = s.float()
			default:
				s.skip()
			}
		})
		return c
	case "as_bool":
		return boolean()
	case "as_bools":
		return elements(s, boolean)
	case "as_string":
		return str()
	case "as_strings":
		return elements(s, str)
	case "as_sym_int":
		return decodeSym(s, tagSymInt)
	case "as_sym_ints":
		return elements(s, symbolic(tagSymInt))
	case "as_sym_float":
		return decodeSym(s, tagSymFloat)
	case "as_sym_floats":
		return elements(s, symbolic(tagSymFloat))
	case "as_sym_bool":
		return decodeSym(s, tagSymBool)
	case "as_sym_bools":
		return elements(s, symbolic(tagSymBool))
	case "as_scalar_type":
		return argument{tag: tagDType, n: s.integer()}
	case "as_layout":
		return argument{tag: tagLayout, n: s.integer()}
	case "as_memory_format":
		return argument{tag: tagMemoryFormat, n: s.integer()}
	case "as_device":
		return decodeDevice(s)
	case "as_graph":
		g := argument{tag: tagGraph}
		s.object(func(key []byte) {
			switch string(key) {
			case "name":
				g.s = s.str()
			case "graph":
				g.graph = decodeGraph(s)
			default:
				s.skip()
			}
		})
		if g.graph == nil {
			s.fail("a graph argument without a graph")
		}
		return g
	case "as_custom_obj":
		o := argument{tag: tagObject}
		s.object(func(key []byte) {
			if string(key) == "class_fqn" {
				o.s = s.str()
			} else {
				s.skip()
			}
		})
		return o
	case "as_operator":
		return argument{tag: tagOperator, s: s.str()}
	case "as_string_to_argument":
		d := argument{tag: tagDict}
		s.object(func(key []byte) {
			k := string(key)
			d.keys = append(d.keys, k)
			d.list = append(d.list, decodeArgument(s))
		})
		return d
	}
	s.fail("unknown kind of argument %q; the file may be of a newer PyTorch", tagName)
	return argument{}
}

func decodeSym(s *scanner, t tag) (a argument) {
	s.tagged("a symbolic value", func(tagName []byte) {
		switch string(tagName) {
		case "as_name":
			a = argument{tag: t, s: s.str()}
		case "as_int":
			a = argument{tag: tagInt, n: s.integer()}
		case "as_float":
			a = argument{tag: tagFloat, f: s.float()}
		case "as_bool":
			a = argument{tag: tagBool, n: truth(s.boolean())}
		default:
			s.fail("unknown tag %q of a symbolic value", tagName)
		}
	})
	return a
}

func decodeDevice(s *scanner) argument {
	name, index := "", int64(-1)
	s.object(func(key []byte) {
		switch string(key) {
		case "type":
			name = s.str()
		case "index":
			if !s.null() {
				index = s.integer()
			}
		default:
			s.skip()
		}
	})
	if index >= 0 {
		name = fmt.Sprintf("%s:%d", name, index)
	}
	return argument{tag: tagDevice, s: name}
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
