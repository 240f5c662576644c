package export

import "github.com/aton-project/aton/ssa/tensor"

// The structs of torch/_export/serde/schema.py, as far as they are needed.

// newestMajor is the newest schema that is known, that of PyTorch 2.15; the oldest is 1, of PyTorch 2.1. Minor
// versions only add fields.
const newestMajor = 8

type program struct {
	major, minor int
	torch        string
	verifiers    []string
	graph        *graph
	inputs       []inputSpec
	outputs      []outputSpec
	inTree       string // pytree of (args, kwargs)
	outTree      string
	argNames     []string
	fields       map[string][]string // of named tuples, by type name
	ranges       []valueRange
	guards       []string
	old          signature1
	equal        []equality
}

type graph struct {
	inputs, outputs []argument
	nodes           []node
	tensors         map[string]*tensorMeta
	ints            map[string]symInt
	constants       []constant1 // of schema 1
}

type node struct {
	target  string
	inputs  []namedArgument
	outputs []argument
	stack   string // Python's stack trace
	modules string // nn_module_stack
}

type namedArgument struct {
	name string
	argument
}

// tag is the kind of an argument.
type tag uint8

const (
	tagNone tag = iota
	tagTensor
	tagInt
	tagFloat
	tagComplex
	tagBool
	tagString
	tagSymInt // by name; the numbers that may stand for it are tagInt
	tagSymFloat
	tagSymBool
	tagDType
	tagLayout
	tagMemoryFormat
	tagDevice
	tagList
	tagGraph
	tagObject
	tagOperator
	tagDict
)

func (t tag) String() string {
	return [...]string{"None", "a tensor", "an int", "a float", "a complex number", "a bool", "a string", "a symbolic int", "a symbolic float",
		"a symbolic bool", "a dtype", "a layout", "a memory format", "a device", "a list", "a graph", "an object", "an operator", "a dict"}[t]
}

// argument is a value of a call, or a place for one.
type argument struct {
	tag   tag
	s     string // name of a value, text, device, operator; class of an object
	n     int64  // int, bool, code
	f     float64
	im    float64 // imaginary part
	list  []argument
	keys  []string // of a dict
	graph *graph
}

// isName reports that the argument refers to a value of the graph.
func (a *argument) isName() bool {
	return a.tag == tagTensor || a.tag == tagSymInt || a.tag == tagSymFloat || a.tag == tagSymBool
}

// symInt is a number or an expression.
type symInt struct {
	n    int64
	expr string // empty: n
}

type tensorMeta struct {
	dtype   int
	layout  int
	sizes   []symInt
	strides []symInt
	offset  symInt
}

type inputKind uint8

const (
	userInput inputKind = iota
	constantInput
	parameter
	buffer
	tensorConstant
	customObject
	token
)

type inputSpec struct {
	kind       inputKind
	arg        argument // the value's name; the value of a constant input
	name       string   // of a constant input
	target     string   // FQN
	persistent bool
}

type outputKind uint8

const (
	userOutput outputKind = iota
	bufferMutation
	parameterMutation
	inputMutation
	lossOutput
	gradient
	tokenOutput
)

type outputSpec struct {
	kind   outputKind
	arg    argument
	target string
}

// valueRange bounds a symbol or an expression.
type valueRange struct {
	expr           string
	min, max       int64
	hasMin, hasMax bool
}

// dtypeOf maps the codes of the format, which are not those of c10.
func dtypeOf(code int64) tensor.DType {
	switch code {
	case 1:
		return tensor.Uint8
	case 2:
		return tensor.Int8
	case 3:
		return tensor.Int16
	case 4:
		return tensor.Int32
	case 5:
		return tensor.Int64
	case 6:
		return tensor.Float16
	case 7:
		return tensor.Float32
	case 8:
		return tensor.Float64
	case 9:
		return tensor.Complex32
	case 10:
		return tensor.Complex64
	case 11:
		return tensor.Complex128
	case 12:
		return tensor.Bool
	case 13:
		return tensor.BFloat16
	case 28:
		return tensor.Uint16
	case 29:
		return tensor.Float8E4M3FN
	case 30:
		return tensor.Float8E5M2
	case 31:
		return tensor.Float8E4M3FNUZ
	case 32:
		return tensor.Float8E5M2FNUZ
	case 34:
		return tensor.Uint32
	case 35:
		return tensor.Uint64
	}
	return tensor.Undefined
}

// memoryFormatOf maps the codes of the format to those of c10.
func memoryFormatOf(code int64) (int64, bool) {
	switch code {
	case 1: // contiguous
		return 0, true
	case 2: // channels last
		return 2, true
	case 3: // channels last, 3d
		return 3, true
	case 4: // preserve
		return 1, true
	}
	return 0, false
}

// layoutOf maps the codes of the format to those of c10.
func layoutOf(code int64) (int64, bool) {
	switch code {
	case 1: // sparse COO
		return 1, true
	case 2: // sparse CSR
		return 2, true
	case 3: // sparse CSC
		return 4, true
	case 4: // sparse BSR
		return 5, true
	case 5: // sparse BSC
		return 6, true
	case 6: // mkldnn
		return 3, true
	case 7: // strided
		return 0, true
	}
	return 0, false
}
