package ssa

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Module is a program: functions, the object they work on, and source locations.
type Module struct {
	Funcs []*Func
	// Root is the top module object of an archive, nil for others.
	Root *Object
	// Classes are those of modules by their paths, where known: torch.nn.modules.conv.Conv2d for features.0.
	Classes map[string]string
	// Locs resolves the locations of ops.
	Locs diag.Table
	// Opsets maps ONNX domains to versions; empty before lowering.
	Opsets map[string]int
	// Metadata is carried to the metadata_props of an ONNX file, in this order.
	Metadata []KeyValue
	// File is what an ONNX file says of itself besides Metadata, to be said again when it is written.
	File FileInfo
	// Dialects say what operators mean. An op of no dialect is opaque: it has unknown effects.
	Dialects []Dialect

	// Inputs is what is known of the main function's inputs besides their types.
	Inputs []Input
	// Recorded is the size that the axes of a symbol's name had in the example that a trace was made with, where one is
	// known.
	Recorded map[string]int64

	// SizesSolved reports that who made the program has solved what it demands of the sizes of its inputs, as torch.export does.
	SizesSolved bool

	// TargetOpset is the opset that a conversion that has begun is for; 0 for none.
	TargetOpset int
	// State names the weights of the program that a conversion began with, in the order of its state dict.
	State []string
	// Passed are the steps of the pipeline of the export that the module is behind, as they are spelled with their options; empty
	// for a module as it was imported and for one that is converted.
	Passed []string

	// Budget multiplies the limits of what may be taken for this program; 0 is 1. See Allow.
	Budget int

	// Guarded reports that the bounds of sizes in the metadata (AtLeast) are checked by operators of the graph.
	Guarded bool

	// Weights are what parameters of the main function stand for, by name, where the weights were made parameters.
	Weights map[string]*tensor.Tensor
	// Defaults are what parameters of the main function hold where the caller gives no value, by name: a file lists such a
	// parameter as an input and has an initializer of its name.
	Defaults map[string]*tensor.Tensor

	// Rewritten, if set, is told of each application of a rule, by its name: the operator that it was applied to, which may be
	// gone, those that it made, and those that it changed in place. It must not change the module.
	Rewritten func(rule string, root *Op, made, changed []*Op)
	// Sources gives the text of the programs that Locs speaks of, as far as the model's file has it; nil where it has none.
	Sources func() []diag.Source

	// Keep holds what must stay alive as long as the module: mapped files.
	Keep []any

	funcIndex map[string]*Func
	fresh     int
}

// FileInfo describes a model to people and tools: nothing in it bears on what is computed.
type FileInfo struct {
	Doc, Domain   string
	Version       int64 // of the model, as its author counts
	Graph         string
	GraphDoc      string
	GraphMetadata []KeyValue
	// Nodes has the notes of nodes by their location; a node's name is Func of its frame.
	Nodes map[diag.Loc]Note
	// Values has the notes of inputs, outputs, weights and other values by their names.
	Values map[string]Note
	// Dropped says, a sentence each, what of the file is not kept.
	Dropped []string
}

// Note is what a node or a value carries for people and tools.
type Note struct {
	Doc      string
	Metadata []KeyValue
}

// KeyValue is one entry of Metadata.
type KeyValue struct{ Key, Value string }

// Effect says what an op does besides computing its results.
type Effect uint8

// Effects. An op with no effect may be removed when unused and merged with an equal one.
const (
	Pure    Effect = 0
	Reads   Effect = 1 << iota // reads memory that others may write
	Writes                     // writes to memory: its operands, module state, a container
	Random                     // gives another result each time
	Raises                     // prints, raises or warns
	Unknown                    // nothing is known
	// Fresh results are new mutable memory (lists, tensors): not to be merged while programs still mutate.
	Fresh
)

// OpInfo is what a dialect knows of an op.
type OpInfo struct {
	Effects Effect
	Doc     string
}

// Dialect gives meaning to the operators of a namespace.
type Dialect interface {
	// Namespace is the prefix of the operators' kinds, without "::".
	Namespace() string
	// Info describes an op; ok is false for an operator that the dialect does not know.
	Info(o *Op) (info OpInfo, ok bool)
	// Verify checks the dialect's own rules on an op.
	Verify(o *Op) error
}

// Declarer is a dialect that declares operators. Complete text says the declaration of an operator that [MatchSchema] does not find among
// them.
type Declarer interface {
	Overloads(k Kind) []*Schema
}

// matched is the declaration that the text of an op stands for.
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

// NewModule makes an empty module that knows the given dialects.
func NewModule(dialects ...Dialect) *Module { return &Module{Dialects: dialects} }

// Info describes an op by its dialect.
func (m *Module) Info(o *Op) (OpInfo, bool) {
	ns := o.Kind.Namespace()
	for _, d := range m.Dialects {
		if d.Namespace() == ns {
			return d.Info(o)
		}
	}
	return OpInfo{Effects: Unknown}, false
}

// Effects is what an op does, Unknown for an unknown operator. The effects of nested blocks count.
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
	// OutputNames are the names wished for the returned values; may be shorter.
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

// Func finds a function by name, nil if there is none.
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

// Held is what a parameter of the main function holds unless a caller gives it a value: its weight or its default, nil if it has neither.
func (m *Module) Held(name string) *tensor.Tensor {
	if t := m.Weights[name]; t != nil {
		return t
	}
	return m.Defaults[name]
}

// Main is the function to convert: the first one. Nil for an empty module.
func (m *Module) Main() *Func {
	if len(m.Funcs) == 0 {
		return nil
	}
	return m.Funcs[0]
}

// NoteSymbol keeps FreshSymbol from handing out a name that is in use already.
func (m *Module) NoteSymbol(name string) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	if n, err := strconv.Atoi(name[i:]); err == nil && n >= m.fresh && n < math.MaxInt32 {
		m.fresh = n + 1
	}
}

// SharesSymbols makes the fresh symbols of m, a copy of parts of n, others than those that n has handed out.
func (m *Module) SharesSymbols(n *Module) { m.fresh = max(m.fresh, n.fresh) }

// FreshSymbol makes a symbol that occurs nowhere else, at least min.
func (m *Module) FreshSymbol(prefix string, min int64) sym.Expr {
	m.fresh++
	return sym.Symbol(fmt.Sprintf("%s%d", prefix, m.fresh-1), min)
}

// Freshness counts the symbols that were made so far.
func (m *Module) Freshness() int { return m.fresh }

// MadeSince reports that e may have a symbol that was made since Freshness was since.
func (m *Module) MadeSince(e sym.Expr, since int) (made bool) {
	e.Symbols(func(name string) {
		n, err := strconv.Atoi(name[len(strings.TrimRight(name, "0123456789")):])
		made = made || err == nil && n >= since
	})
	return made
}

// FreshIndex is a symbol for the index of an iteration of a loop that has n of them.
func (m *Module) FreshIndex(prefix string, n sym.Expr) sym.Expr {
	m.fresh++
	return sym.Bounded(fmt.Sprintf("%s%d", prefix, m.fresh-1), 0, n.Sub(sym.Const(1)))
}

// Module is the module that the function belongs to.
func (f *Func) Module() *Module { return f.m }

// NumValues bounds the IDs of the function's values: the length for side tables.
func (f *Func) NumValues() int { return f.nvalues }

// Objects of a function are allocated together: as many as there are values already, within these bounds. A program has thousands of small
// functions (the forward of each module), and one large one into which they are inlined.
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

// AdoptFunc puts a function that was removed back, first and under another name.
func (m *Module) AdoptFunc(f *Func, name string) {
	f.Name, f.m = name, m
	m.Funcs = append([]*Func{f}, m.Funcs...)
	if m.funcIndex == nil {
		m.funcIndex = map[string]*Func{}
	}
	m.funcIndex[name] = f
}

// StateInputs is the key of the metadata that names the inputs which are state of the program (buffers, attributes), separated by commas.
const StateInputs = "aton.state_inputs"

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

// Assume adds to the metadata that users read in the file, under aton.assumes, what the model takes for granted. It
// reports whether that is new.
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

// GetMetadata gives an entry of Metadata, "" if there is none.
func (m *Module) GetMetadata(key string) string {
	for i := range m.Metadata {
		if m.Metadata[i].Key == key {
			return m.Metadata[i].Value
		}
	}
	return ""
}

// Input is what is known of an input of the program before it is specialized.
type Input struct {
	Name string
	// Type is the type of a run-time input: a tensor (perhaps unranked), int,
	// float or bool; a container has Elems instead.
	Type Type
	// Const is a baked-in value: the argument is not an input of the graph.
	Const *Literal
	// Container is "list", "tuple", "dict", or empty.
	Container string
	// Elems are the members of a container; Keys those of a dict.
	Elems []Input
	Keys  []Literal
}

// UsesNamespace reports whether an op of the module is of the namespace.
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
