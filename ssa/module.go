package ssa

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Module is a program: functions, the module object that they work on, and source locations.
type Module struct {
	Funcs []*Func
	// Root is the top-level module object of a TorchScript archive, nil for other programs.
	Root *Object
	// Classes maps paths of modules to their classes, where known: features.0 to torch.nn.modules.conv.Conv2d.
	Classes map[string]string
	// Locs resolves the locations of ops.
	Locs diag.Table
	// Opsets maps ONNX domains to versions; empty before lowering.
	Opsets map[string]int
	// Metadata is written to the metadata_props of an ONNX file, in this order.
	Metadata []KeyValue
	// File describes an ONNX file beyond Metadata. It is written back when the module is written.
	File FileInfo
	// Producer is the program that wrote the ONNX file that was read. A file that is written of the module has its own.
	Producer string
	// Dialects define what operators mean. An op without a dialect is opaque and has unknown effects.
	Dialects []Dialect

	// Inputs has facts about the main function's inputs besides their types.
	Inputs []Input
	// Recorded maps names of symbols to the size that their axes had in the example from which a trace was made, where
	// known.
	Recorded map[string]int64

	// SizesSolved reports that the conditions on sizes of inputs are solved already, as torch.export does.
	SizesSolved bool

	// TargetOpset is the opset of a conversion in progress, 0 if there is none.
	TargetOpset int
	// State has the names of the program's weights, in the order of its state dict.
	State []string
	// DroppedInputs has the positions of the inputs that a pass has removed because nothing uses them.
	DroppedInputs []int64
	// Passed has the steps of the pipeline export that have run, spelled with their options. It is empty for a module as it was
	// imported and for a converted one.
	Passed []string

	// Budget multiplies the limits on work for this program; 0 means 1. See Allow.
	Budget int

	// Guarded reports that operators of the graph check the bounds of sizes in the metadata (AtLeast).
	Guarded bool

	// Weights has, by name, the weights that became parameters of the main function. WeightStorage says how a file stores them.
	Weights       map[string]*tensor.Tensor
	WeightStorage WeightStorage
	// Defaults has, by name, the default values of parameters of the main function: a file lists such a
	// parameter as an input and has an initializer of the same name.
	Defaults map[string]*tensor.Tensor

	// Rewritten, if not nil, is called for each application of a rewrite rule with the rule's name, the operator that it matched (which
	// may be erased), the operators that it made, and those that it changed in place. It must not change the module.
	Rewritten func(rule string, root *Op, made, changed []*Op)
	// Sources returns the source files that Locs refers to, as far as the model's file has them. It may be nil.
	Sources func() []diag.Source

	// Keep references what must stay alive as long as the module, such as mapped files.
	Keep []any

	funcIndex map[string]*Func
	fresh     int
	supposed  int // the number of fresh symbols that Suppose has set apart
}

// WeightStorage says how a file stores the weights that are parameters of the main function.
type WeightStorage string

// The choices.
const (
	Initializers         WeightStorage = ""       // as initializers
	InitializersAsInputs WeightStorage = "inputs" // as initializers that are inputs too, so that a runtime can replace them
	NoWeights            WeightStorage = "none"   // not at all: they are inputs without values
)

// FileInfo describes a model for people and tools. It does not affect what is computed.
type FileInfo struct {
	Doc, Domain   string
	Version       int64 // of the model, assigned by its author
	Graph         string
	GraphDoc      string
	GraphMetadata []KeyValue
	// Nodes has the notes of nodes by their location. The name of a node is Func of its frame.
	Nodes map[diag.Loc]Note
	// Values has the notes of inputs, outputs, weights and other values by their names.
	Values map[string]Note
	// Dropped has a sentence for each part of the file that is not kept.
	Dropped []string
}

// Note is the documentation and metadata of a node or a value.
type Note struct {
	Doc      string
	Metadata []KeyValue
}

// KeyValue is one entry of Metadata.
type KeyValue struct{ Key, Value string }

// Effect is a set of side effects of an op.
type Effect uint8

// An op without effects may be removed if it is unused, and merged with an equal one.
const (
	Pure    Effect = 0
	Reads   Effect = 1 << iota // reads memory that others may write
	Writes                     // writes to memory: its operands, module state, a container
	Random                     // returns another result each time
	Raises                     // prints, raises or warns
	Unknown                    // nothing is known
	// Fresh results are new mutable memory (lists, tensors): not to be merged while programs still mutate.
	Fresh
)

// OpInfo is what a dialect knows about an op.
type OpInfo struct {
	Effects Effect
	Doc     string
}

// Dialect defines the operators of a namespace.
type Dialect interface {
	// Namespace returns the prefix of the operators' kinds, without "::".
	Namespace() string
	// Info describes an op. ok is false for an operator that the dialect does not know.
	Info(o *Op) (info OpInfo, ok bool)
	// Verify checks the dialect's own rules on an op.
	Verify(o *Op) error
}

// Declarer is a dialect that declares operators. Complete text has the declaration of an operator that [MatchSchema] does not find
// among them.
type Declarer interface {
	Overloads(k Kind) []*Schema
}

// matched returns the declaration that the text of an op stands for.
func (m *Module) matched(o *Op) *Schema {
	ns := o.Kind.Namespace()
	for _, d := range m.Dialects {
		if x, ok := d.(Declarer); ok && d.Namespace() == ns {
			types := make([]Type, o.NumOperands())
			for i := range types {
				if v := o.Operand(i); v != nil {
					types[i] = v.Type
				}
			}
			return MatchSchema(x.Overloads(o.Kind), types)
		}
	}
	return nil
}

// NewModule returns an empty module with the given dialects.
func NewModule(dialects ...Dialect) *Module { return &Module{Dialects: dialects} }

// Info returns what the op's dialect knows about it.
func (m *Module) Info(o *Op) (OpInfo, bool) {
	ns := o.Kind.Namespace()
	for _, d := range m.Dialects {
		if d.Namespace() == ns {
			return d.Info(o)
		}
	}
	return OpInfo{Effects: Unknown}, false
}

// Effects returns the effects of an op, including those of its blocks; Unknown for an unknown operator.
func (m *Module) Effects(o *Op) Effect {
	info, ok := m.Info(o)
	e := info.Effects
	if !ok {
		e |= Unknown
	}
	for _, b := range o.Blocks {
		for c := range b.Ops() {
			e |= m.Effects(c)
		}
	}
	return e
}

// Func is a function of a module.
type Func struct {
	Name string
	Body *Block
	// OutputNames has the preferred names of the returned values; it may be shorter.
	OutputNames []string

	m       *Module
	nvalues int
	ops     []Op
	values  []Value
	uses    []Use
	results []*Value
}

// NewFunc adds an empty function.
func (m *Module) NewFunc(name string) *Func {
	f := &Func{Name: name, m: m}
	f.Body = &Block{fn: f}
	m.Funcs = append(m.Funcs, f)
	if m.funcIndex == nil {
		m.funcIndex = map[string]*Func{}
	}
	m.funcIndex[name] = f
	return f
}

// Func returns the function of this name, or nil.
func (m *Module) Func(name string) *Func { return m.funcIndex[name] }

// RemoveFunc removes a function.
func (m *Module) RemoveFunc(f *Func) {
	for i, g := range m.Funcs {
		if g == f {
			m.Funcs = append(m.Funcs[:i:i], m.Funcs[i+1:]...)
		}
	}
	if m.funcIndex[f.Name] == f {
		delete(m.funcIndex, f.Name)
	}
}

// Held returns the value that a parameter of the main function has if the caller passes none: its weight or its default, or nil.
func (m *Module) Held(name string) *tensor.Tensor {
	if t := m.Weights[name]; t != nil {
		return t
	}
	return m.Defaults[name]
}

// Main returns the function to convert, the first one, or nil for an empty module.
func (m *Module) Main() *Func {
	if len(m.Funcs) == 0 {
		return nil
	}
	return m.Funcs[0]
}

// NoteSymbol keeps FreshSymbol from returning a name that is in use.
func (m *Module) NoteSymbol(name string) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	if n, err := strconv.Atoi(name[i:]); err == nil && n >= m.fresh && n < math.MaxInt32 {
		m.fresh = n + 1
	}
}

// SharesSymbols keeps m, a copy of parts of n, from returning fresh symbols that n has returned.
func (m *Module) SharesSymbols(n *Module) { m.fresh = max(m.fresh, n.fresh) }

// FreshSymbol returns a new symbol that is at least min.
func (m *Module) FreshSymbol(prefix string, min int64) sym.Expr {
	m.fresh++
	return sym.Symbol(prefix+strconv.Itoa(m.fresh-1), min)
}

// SkipSymbol counts a fresh symbol that nobody needs.
func (m *Module) SkipSymbol() { m.fresh++ }

// IsFresh reports a name that inference gives to sizes that a program leaves open (FreshSymbol with the prefix u).
func IsFresh(name string) bool {
	return len(name) > 1 && name[0] == 'u' && strings.Trim(name[1:], "0123456789") == ""
}

// Freshness returns the number of fresh symbols so far.
func (m *Module) Freshness() int { return m.fresh }

// Suppose numbers fresh symbols apart until end is called, so that what is computed and thrown away in between leaves no trace in the names of others.
func (m *Module) Suppose() (end func()) {
	n := m.fresh
	m.fresh = max(n, m.supposed, 1<<30)
	return func() { m.supposed, m.fresh = m.fresh, n }
}

// MadeSince reports whether e may contain a symbol that was made after Freshness returned since.
func (m *Module) MadeSince(e sym.Expr, since int) (made bool) {
	e.Symbols(func(name string) {
		n, err := strconv.Atoi(name[len(strings.TrimRight(name, "0123456789")):])
		made = made || err == nil && n >= since
	})
	return made
}

// FreshIndex returns a new symbol for the iteration index of a loop with n iterations.
func (m *Module) FreshIndex(prefix string, n sym.Expr) sym.Expr {
	m.fresh++
	return sym.Bounded(prefix+strconv.Itoa(m.fresh-1), 0, n.Sub(sym.Const(1)))
}

// Module returns the module that the function belongs to.
func (f *Func) Module() *Module { return f.m }

// NumValues returns an upper bound of the IDs of the function's values, for the length of side tables.
func (f *Func) NumValues() int { return f.nvalues }

// Objects of a function are allocated in slabs of as many objects as there are values already, within these bounds. A program has
// thousands of small functions (the forward of each module), and one large one into which they are inlined.
const (
	leastSlab = 4
	slab      = 128
)

func (f *Func) slab() int { return min(max(f.nvalues, leastSlab), slab) }

func (f *Func) newOp() *Op {
	if len(f.ops) == 0 {
		f.ops = make([]Op, f.slab())
	}
	o := &f.ops[0]
	f.ops = f.ops[1:]
	return o
}

func (f *Func) newValue(t Type) *Value {
	if len(f.values) == 0 {
		f.values = make([]Value, f.slab())
	}
	v := &f.values[0]
	f.values = f.values[1:]
	v.ID, v.Type = f.nvalues, t
	f.nvalues++
	return v
}

func (f *Func) newUses(n int) []Use {
	if n == 0 {
		return nil
	}
	if n > len(f.uses) {
		size := 2 * f.slab()
		if n > size {
			return make([]Use, n)
		}
		f.uses = make([]Use, size)
	}
	u := f.uses[:n:n]
	f.uses = f.uses[n:]
	return u
}

func (f *Func) newResults(n int) []*Value {
	if n > len(f.results) {
		size := f.slab()
		if n > size {
			return make([]*Value, n)
		}
		f.results = make([]*Value, size)
	}
	r := f.results[:n:n]
	f.results = f.results[n:]
	return r
}

// AdoptFunc adds a removed function again, as the first one and under another name.
func (m *Module) AdoptFunc(f *Func, name string) {
	f.Name, f.m = name, m
	m.Funcs = append([]*Func{f}, m.Funcs...)
	if m.funcIndex == nil {
		m.funcIndex = map[string]*Func{}
	}
	m.funcIndex[name] = f
}

// Keys of Metadata: the inputs and the outputs that are state of the program (buffers, attributes), separated by commas, and the trees of
// containers of the arguments and of the results, as JSON.
const (
	StateInputs  = "aton.state_inputs"
	StateOutputs = "aton.state_outputs"
	InputTree    = "aton.inputs"
	OutputTree   = "aton.outputs"
)

// WeightOf returns the result of an operator that is a weight, that is, a constant tensor with a name. It returns nil for other operators.
func WeightOf(o *Op) *Value {
	if len(o.Results) != 1 || o.Result(0).Name == "" || o.NumOperands() > 0 {
		return nil
	}
	if l, _ := o.Attr("value"); l.Kind != TensorLit || l.Tensor == nil {
		return nil
	}
	return o.Result(0)
}

// SetMetadata adds or replaces an entry of Metadata.
func (m *Module) SetMetadata(key, value string) {
	for i := range m.Metadata {
		if m.Metadata[i].Key == key {
			m.Metadata[i].Value = value
			return
		}
	}
	m.Metadata = append(m.Metadata, KeyValue{key, value})
}

// Assume adds an assumption of the model to the metadata aton.assumes, which users can read in the file. It
// reports whether the assumption is new.
func (m *Module) Assume(what string) (added bool) {
	const key = "aton.assumes"
	said := m.GetMetadata(key)
	if slices.Contains(strings.Split(said, "; "), what) {
		return false
	}
	if said != "" {
		what = said + "; " + what
	}
	m.SetMetadata(key, what)
	return true
}

// GetMetadata returns an entry of Metadata, or "" if there is none.
func (m *Module) GetMetadata(key string) string {
	for i := range m.Metadata {
		if m.Metadata[i].Key == key {
			return m.Metadata[i].Value
		}
	}
	return ""
}

// Input describes an input of the program before specialization.
type Input struct {
	Name string
	// Type is the type of a run-time input: a tensor (perhaps unranked), int,
	// float or bool; a container has Elems instead.
	Type Type
	// Const is a fixed value: the argument is not an input of the graph.
	Const *Literal
	// Container is "list", "tuple", "dict", or empty.
	Container string
	// Elems has the members of a container, and Keys the keys of a dict.
	Elems []Input
	Keys  []Literal
}

// UsesNamespace reports whether the module has an op of the namespace.
func (m *Module) UsesNamespace(ns string) bool {
	for _, f := range m.Funcs {
		for o := range f.Body.AllOps() {
			if o.Kind.Namespace() == ns {
				return true
			}
		}
	}
	return false
}
