// Package explore makes one document of a model and of what the conversion does to it: sources, the graph after every pass, the
// history of each operator, the ONNX graph, weights, cost, numbers, kernels and problems, each linked to the others by location,
// by operator and by name of value. The document is data; web has the page that shows it, which works from a server on the loopback
// address, from one file, and beside the library compiled to WebAssembly.
package explore

// Document is what is known of a model without running it. Numbers of operators, frames, passes and weights are positions in the
// document's lists.
type Document struct {
	Model   string `json:"model"`
	Version string `json:"version"` // of aton
	Opset   int    `json:"opset"`
	// Failed is why there is no converted model; empty if there is one.
	Failed   string    `json:"failed,omitempty"`
	Frames   []Frame   `json:"frames"`
	Sources  []Source  `json:"sources"`
	Ops      []Op      `json:"ops"`
	Text     []string  `json:"text"` // the distinct lines of all stages
	Stages   []Stage   `json:"stages"`
	Passes   []Pass    `json:"passes"`
	Pipeline string    `json:"pipeline"` // to run it again
	Graph    *Graph    `json:"graph,omitempty"`
	Weights  []Weight  `json:"weights"`
	Problems []Problem `json:"problems"`
	// Pages explains the identifiers of the problems, in Markdown.
	Pages map[string]string `json:"pages"`
	// Comparison is what is different from an older model; nil where there is none.
	Comparison *Comparison `json:"comparison,omitempty"`
}

// Comparison puts an older model beside the document's.
type Comparison struct {
	Model string `json:"model"`
	Graph *Graph `json:"graph"`
	// Pairs are the nodes that belong together. The other nodes are new, or are gone.
	Pairs   []Pair         `json:"pairs"`
	Weights []WeightChange `json:"weights"`
	// Signature has the inputs and outputs that only one of the models has: "+ input x f32[2]".
	Signature []string `json:"signature"`
}

// Pair is a node in both models.
type Pair struct {
	New     int      `json:"new"`
	Old     int      `json:"old"`
	Changes []string `json:"changes"` // none: it is the same
}

// WeightChange is a weight that was added or removed, or whose type or elements changed.
type WeightChange struct {
	Name string `json:"name"`
	What string `json:"what"`
	New  string `json:"new,omitempty"` // type
	Old  string `json:"old,omitempty"`
	// Differs is the greatest difference beside the greatest element, -1 where there is no such number.
	Differs float64 `json:"differs"`
}

// Frame is a place in the user's program. Frame 0 is the unknown one.
type Frame struct {
	File  string `json:"file,omitempty"`
	Line  int    `json:"line,omitempty"`
	Scope string `json:"scope,omitempty"` // path of the module
	Func  string `json:"func,omitempty"`
	// Caller is the frame that it was called from, 0 for none.
	Caller int `json:"caller,omitempty"`
}

// Source is the text of a file of the program.
type Source struct {
	File string `json:"file"`
	// Saved says that PyTorch wrote it: TorchScript.
	Saved bool         `json:"saved,omitempty"`
	Lines []SourceLine `json:"lines"`
}

// SourceLine is a line of a Source.
type SourceLine struct {
	Number int    `json:"n"`
	Text   string `json:"t"`
	// From are places, file:line, that the line of TorchScript was made from.
	From []string `json:"from,omitempty"`
}

// Op is an operator that there was at some time of the conversion.
type Op struct {
	Kind  string `json:"kind"`
	Frame int    `json:"frame"`
	// Made is the pass that made it, -1 for one of the program; Gone the pass that removed it, -1 for one that stays.
	Made int `json:"made"`
	Gone int `json:"gone"`
	// Steps are the rules that made or changed it, in order.
	Steps []Step `json:"steps,omitempty"`
	// From are the operators that it was made of: the one that the rule was applied to with the operands' operators that went with it or,
	// of a pass without rules, those of the same line and module that the pass removed.
	From []int `json:"from,omitempty"`
}

// Step is an application of a rule to an operator.
type Step struct {
	Pass int    `json:"pass"`
	Rule string `json:"rule"`
}

// Stage is the program as text: as it was read, or after a pass that changed the text.
type Stage struct {
	Name string `json:"name"`
	Pass int    `json:"pass"` // -1 for what was read
	// Lines are positions in Document.Text, and Ops the operator of each, -1 for lines that are of none.
	Lines []int `json:"lines"`
	Ops   []int `json:"ops"`
	// Inputs are the positions of inputs in the list of parameters. The others hold weights.
	Inputs []int `json:"inputs"`
}

// Pass is a run of a pass.
type Pass struct {
	Name    string  `json:"name"`
	Text    string  `json:"text"` // with its options
	Depth   int     `json:"depth"`
	Millis  float64 `json:"ms"`
	Before  int     `json:"before"` // operators
	After   int     `json:"after"`
	Changes []Count `json:"changes"`
	Stage   int     `json:"stage"` // that shows the program after it
}

// Count is how often something happened.
type Count struct {
	What string `json:"what"`
	N    int    `json:"n"`
}

// Graph is the converted model.
type Graph struct {
	Nodes   []Node  `json:"nodes"`
	Values  []Value `json:"values"`
	Inputs  []int   `json:"inputs"`
	Outputs []int   `json:"outputs"`
	// OutputNames are what the file calls the outputs.
	OutputNames []string `json:"outputNames"`
	// Operands are the standard's names of the inputs of each kind of node.
	Operands map[string][]string `json:"operands"`
	Opaque   int                 `json:"opaque"` // nodes whose cost is not known
	// Sizes are those that dynamic axes have in Node.Flops and Node.Bytes.
	Sizes map[string]int64 `json:"sizes"`

	makers map[int][2]int // of values: node and result
}

// Node is an operator of the converted model. Constants are no nodes: they are values.
type Node struct {
	Op      int    `json:"op"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Inputs  []int  `json:"in"` // -1 for one that is left out
	Outputs []int  `json:"out"`
	Module  string `json:"module,omitempty"` // path
	// Also are other modules that it was made from, such as that of a convolution into which a normalization was folded.
	Also []string `json:"also,omitempty"`
	// Parent is the node in whose body it stands, -1 for none; Branch says in which one.
	Parent int    `json:"parent"`
	Branch int    `json:"branch,omitempty"`
	Attrs  []Attr `json:"attrs,omitempty"`
	// Flops and Bytes are an estimate of what it computes, and moves to and from memory; -1 where that is not known.
	Flops int64 `json:"flops"`
	Bytes int64 `json:"bytes"`
	// Bodies are those of a Loop, If or Scan. The parameters of a body have the values of the node's inputs at first.
	Bodies []Body `json:"bodies,omitempty"`
}

// Body is a graph within a node.
type Body struct {
	Params  []int `json:"params"`
	Returns []int `json:"returns"`
}

// Attr is an attribute as text.
type Attr struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// Usual is true for the standard's default: the picture leaves it out.
	Usual bool `json:"usual,omitempty"`
}

// Value is a value of the converted model.
type Value struct {
	Name   string `json:"name"` // in the file
	Text   string `json:"text"` // in the stages
	Type   string `json:"type"` // f32[N,3,224,224]
	Weight int    `json:"weight"`
	Note   string `json:"note,omitempty"` // elements of a small constant
}

// Weight is a tensor that the file holds.
type Weight struct {
	Name  string  `json:"name"`
	DType string  `json:"dtype"`
	Shape []int64 `json:"shape"`
	Bytes int64   `json:"bytes"`
	// Stats are those of at most 65,536 elements, evenly spread.
	Stats *Stats `json:"stats,omitempty"`
}

// Stats describes elements of a tensor.
type Stats struct {
	Count int     `json:"count"` // elements that were looked at
	Min   float64 `json:"min"`   // of the finite ones
	Max   float64 `json:"max"`
	Mean  float64 `json:"mean"`
	NaN   int     `json:"nan"`
	Inf   int     `json:"inf"`
	// Histogram counts the finite elements in 32 parts of equal width from Min to Max; empty if they are all the same.
	Histogram []int    `json:"histogram,omitempty"`
	First     []string `json:"first,omitempty"` // elements
}

// Problem is a message about the program.
type Problem struct {
	ID       string `json:"id"`
	Severity string `json:"severity"`
	Op       string `json:"op,omitempty"`
	Frame    int    `json:"frame"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
}

// Numbers is what a run in the reference interpreter gave.
type Numbers struct {
	Data string `json:"data"` // the name of the data set
	// Values are by the text of Value; those of loops are the last ones.
	Values map[string]Run `json:"values"`
	// Outputs compares with what was recorded; empty if nothing was.
	Outputs []Compared `json:"outputs"`
	// Wrong is the text of the first value that is wrong, and Suspect the sentence about it; empty if nothing is known to be.
	Wrong   string `json:"wrong,omitempty"`
	Suspect string `json:"suspect,omitempty"`
	// NaN is the first value that has one where its operands have none.
	NaN string `json:"nan,omitempty"`
	// Differs has, by value, the greatest difference from the older model's value beside that one's greatest element; -1 where that is no number.
	// Former is why there is none.
	Differs map[string]float64 `json:"differs,omitempty"`
	Former  string             `json:"former,omitempty"`
}

// Run is a value in a run.
type Run struct {
	Type  string `json:"type"`
	Stats *Stats `json:"stats,omitempty"`
	Times int    `json:"times"` // how often it was computed
}

// Compared is an output beside what was recorded.
type Compared struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Worst float64 `json:"worst"`
	Wrong string  `json:"wrong,omitempty"`
}

// Kernels is what aton generates for a GPU.
type Kernels struct {
	Failed  string   `json:"failed,omitempty"` // why there are none
	Kernels []Kernel `json:"kernels"`
	Launch  []Launch `json:"launch"`
	Plan    string   `json:"plan"` // as JSON
}

// Kernel is the code of a kernel.
type Kernel struct {
	Name    string `json:"name"`
	Class   string `json:"class"`
	Threads int    `json:"threads"`
	Shared  int    `json:"shared"` // bytes
	KIR     string `json:"kir"`
	LLVM    string `json:"llvm"`
	PTX     string `json:"ptx"`
}

// Launch is a step of the plan: a launch of a kernel, or a node that the host computes.
type Launch struct {
	// Nodes are the names of the first results of what it computes, and Frames their places.
	Nodes  []string `json:"nodes"`
	Frames []int    `json:"frames"`
	Kernel int      `json:"kernel"` // -1: the host
	Grid   []string `json:"grid,omitempty"`
	Host   string   `json:"host,omitempty"` // why
}
